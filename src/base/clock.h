/* The host clock every wall span is read from: monotonic, in seconds, unaffected by date changes.
 */
#ifndef LAP_BASE_CLOCK_H
#define LAP_BASE_CLOCK_H

/* Seconds since an arbitrary fixed point; never goes back. */
double lap_clock_now(void);

/* Sleep at least so many seconds (0 or less returns at once; a signal may end it early). */
void lap_clock_sleep(double seconds);

#endif
