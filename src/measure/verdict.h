/* How far a row's latency can be believed, in one word. The rules and their order are those of
 * docs/METHOD.md ("Verdicts"); the first that applies is the verdict. */
#ifndef LAP_MEASURE_VERDICT_H
#define LAP_MEASURE_VERDICT_H

typedef enum lap_verdict {
    LAP_VERDICT_NONE = 0, /* no latency was measured */
    LAP_VERDICT_STABLE,
    LAP_VERDICT_NOISY,
    LAP_VERDICT_DRIFTING,
    LAP_VERDICT_THROTTLED,
    LAP_VERDICT_BIMODAL,
    LAP_VERDICT_TOO_SHORT
} lap_verdict;

const char *lap_verdict_name(lap_verdict verdict); /* "stable", …; "" for none. Never NULL. */

struct lap_row;
/* Fill verdict, verdict_reason and verdict_advice from latency, floor and telemetry. */
void lap_verdict_decide(struct lap_row *row);

#endif
