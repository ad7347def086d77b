/* Synthetic weights. Written down so that an independent program can reproduce every bit:
 *
 * Element i (torch's C order) of the state-dict tensor called T uses stream lap_rng_stream(T) (the
 * 64-bit FNV-1a of its name), index i and the seed; z is lap_rng_normal, u is lap_rng_uniform. All
 * arithmetic is in double in the order written, and the result is rounded once to float:
 *
 *   conv weight        z * sqrt(2 / (c * r * s))        He-normal over the fan-in; c = 1 if
 * depthwise z * sqrt(6 / (c * r * s))        where the input comes from a SCALE, whose factors
 * (near 1/2) and SiLU before them would let signals die out fc weight          z * sqrt(1 / c) conv
 * or fc bias    z * 0.01 bn weight          0.8 + 0.4 * u;  0.2 + 0.2 * u where the op adds a
 * residual (the last of a block), which keeps the sums along the residual path from growing block
 * by block bn bias            z * 0.1 bn running_mean    z * 0.1 bn running_var     0.8 + 0.4 * u
 *   bn num_batches_tracked   0 (int64)
 */
#include "base/rng.h"
#include "base/threads.h"
#include "net/state.h"

#include <math.h>

/* Elements of one item of the parallel loop. Every element is a function of its index alone, so the
 * bits do not depend on how the work is divided. */
enum { CHUNK = 16384 };

typedef struct normal_fill {
    uint64_t seed, stream, count;
    double scale;
    float *out;
} normal_fill;

static void fill_chunk(void *context, uint64_t chunk) {
    const normal_fill *f = context;
    uint64_t end = (chunk + 1) * CHUNK < f->count ? (chunk + 1) * CHUNK : f->count;
    for (uint64_t i = chunk * CHUNK; i < end; i++)
        f->out[i] = (float)(lap_rng_normal(f->seed, f->stream, i) * f->scale);
}

static void fill_normal(uint64_t seed, const lap_state_tensor *t, double scale, float *out) {
    normal_fill fill = {seed, lap_rng_stream(t->name), t->count, scale, out};
    lap_parallel((t->count + CHUNK - 1) / CHUNK, fill_chunk, &fill);
}

static void fill_uniform(uint64_t seed, const lap_state_tensor *t, double low, double width,
                         float *out) {
    uint64_t stream = lap_rng_stream(t->name);
    for (uint64_t i = 0; i < t->count; i++)
        out[i] = (float)(low + width * lap_rng_uniform(seed, stream, i));
}

void lap_synthetic_fill(uint64_t seed, const lap_state_tensor *t, float *out) {
    const lap_op *op = t->op;
    switch (t->role) {
    case LAP_STATE_WEIGHT: {
        double fan_in = (double)lap_op_depth(op) * op->r * op->s;
        double gain = op->kind == LAP_OP_FC ? 1.0 : t->scaled ? 6.0 : 2.0;
        fill_normal(seed, t, sqrt(gain / fan_in), out);
        break;
    }
    case LAP_STATE_BIAS:
        fill_normal(seed, t, 0.01, out);
        break;
    case LAP_STATE_BN_SCALE:
        if (op->residual >= 0) {
            fill_uniform(seed, t, 0.2, 0.2, out);
        } else {
            fill_uniform(seed, t, 0.8, 0.4, out);
        }
        break;
    case LAP_STATE_BN_SHIFT:
    case LAP_STATE_BN_MEAN:
        fill_normal(seed, t, 0.1, out);
        break;
    case LAP_STATE_BN_VARIANCE:
        fill_uniform(seed, t, 0.8, 0.4, out);
        break;
    case LAP_STATE_BN_COUNTER:
        out[0] = 0.0f;
        break;
    }
}
