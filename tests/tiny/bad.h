/* Kernels that misbehave on one layer only: they wrap the fake backend's naive kernels and spoil
 * the output where the layer's geometry is the chosen one. */
#ifndef BAD_H
#define BAD_H

#include "fake_backend.h"
#include "net/op.h"

typedef enum bad_kind {
    BAD_NONE = 0,
    BAD_WRONG,   /* one value is off by one */
    BAD_NAN,     /* one value is NaN */
    BAD_INF,     /* one value is infinite */
    BAD_NOTHING, /* writes nothing */
    BAD_AFTER,   /* one word right behind the output */
    BAD_BEFORE,  /* one word right before it */
    BAD_PADDING, /* the last padding channel of the first pixel is not zero */
    BAD_RANDOM,  /* the last bit of one value differs from run to run */
    BAD_LATE,    /* wrong by one, but only after `good` launches */
    BAD_ONCE,    /* wrong by one in the launch after `good` launches only */
    BAD_BEHIND,  /* one word right behind the output in the launch after `good` launches only */
    BAD_IDLE,    /* writes nothing after `good` launches */
    BAD_SECOND, /* wrong by one after `good` launches, but not where the next of them writes: in the
                   second of two plans */
    BAD_TF32    /* convolutions and fc: inputs and weights rounded to 10 fraction bits */
} bad_kind;

/* Call after fake_reset. Spoils launches for op; good: launches that are right before
 * (BAD_LATE, BAD_ONCE, BAD_BEHIND, BAD_IDLE, BAD_SECOND). */
void bad_plant(const lap_op *op, bad_kind kind, uint64_t good);
/* Launches of the planted layer so far. */
uint64_t bad_launches(void);

#endif
