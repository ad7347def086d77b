/* The process that does what may go wrong: it opens the device, builds and runs candidates. Its
 * parent holds nothing on the device, survives its death and starts another one.
 *
 * It reads requests, a line each, from standard input and answers on standard output in lines:
 *   list                             features BITS, step OP PARTNER FUSION CANDIDATE ...,
 *                                    gemm 0|1, done
 *   time STEP SAMPLE_S ROUNDS CANDIDATE...   at I (before candidate I is touched), bad I WHY,
 *                                    time I BEST_S MEDIAN_S, memory (too little for all), done
 *   check STEP CANDIDATE             right, or wrong WHY
 * STEP is OP PARTNER FUSION; a CANDIDATE is one word (space.h). "fail WHY" is its last line when it
 * cannot go on. The program calls it for the hidden command LAP_TUNE_WORKER.
 */
#ifndef LAP_TUNE_WORKER_H
#define LAP_TUNE_WORKER_H

#define LAP_TUNE_WORKER "tune-worker"

/* argv: the command, selector, model, height, width, precision, batch, cache yes|no. Returns the
 * exit status. */
int lap_tune_worker(int argc, char **argv);

#endif
