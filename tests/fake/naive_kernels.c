/* C versions of the project's naive kernels for the fake backend: same stem, entry, argument order
 * and layout, so that a whole network runs on it. Accumulate in float, as the kernels do. */
#include "fake_backend.h"

#include <math.h>

typedef struct geometry {
    size_t c, cs, h, w, k, ks, p, q, r, s;
    ptrdiff_t stride, pad;
} geometry;

static geometry read_geometry(const lap_define *d, size_t n) {
    geometry g = {.c = (size_t)fake_define(d, n, "C", 1)};
    g.cs = (size_t)fake_define(d, n, "CS", (int64_t)g.c);
    g.h = (size_t)fake_define(d, n, "H", 1);
    g.w = (size_t)fake_define(d, n, "W", 1);
    /* Kinds that keep their channels need not say so twice. */
    g.k = (size_t)fake_define(d, n, "K", (int64_t)g.c);
    g.ks = (size_t)fake_define(d, n, "KS", (int64_t)g.cs);
    g.p = (size_t)fake_define(d, n, "P", 1);
    g.q = (size_t)fake_define(d, n, "Q", 1);
    g.r = (size_t)fake_define(d, n, "R", 1);
    g.s = (size_t)fake_define(d, n, "S", 1);
    g.stride = (ptrdiff_t)fake_define(d, n, "STRIDE", 1);
    g.pad = (ptrdiff_t)fake_define(d, n, "PAD", 0);
    return g;
}

/* The channels of input pixel (row, col) of image n; NULL in the padding. */
static const float *input_pixel(const geometry *g, const float *in, size_t n, ptrdiff_t row,
                                ptrdiff_t col) {
    if (row < 0 || col < 0 || row >= (ptrdiff_t)g->h || col >= (ptrdiff_t)g->w) return NULL;
    return in + ((n * g->h + (size_t)row) * g->w + (size_t)col) * g->cs;
}

static float conv_pixel(const geometry *g, const float *in, const float *weights, size_t n,
                        size_t p, size_t q) {
    float sum = 0;
    for (size_t r = 0; r < g->r; r++) {
        for (size_t s = 0; s < g->s; s++) {
            const float *x = input_pixel(g, in, n, (ptrdiff_t)(p)*g->stride - g->pad + (ptrdiff_t)r,
                                         (ptrdiff_t)(q)*g->stride - g->pad + (ptrdiff_t)s);
            const float *w = weights + (r * g->s + s) * g->c;
            for (size_t c = 0; x && c < g->c; c++)
                sum += x[c] * w[c];
        }
    }
    return sum;
}

/* The activations that the define ACT asks for. */
static float activate(const lap_define *defines, size_t count, float y) {
    int64_t act = fake_define(defines, count, "ACT", 0);
    if (act == 2) return y / (1.0f + expf(-y));
    return act == 3 ? 1.0f / (1.0f + expf(-y)) : y;
}

/* IN, WEIGHTS [K][R][S][C], BIAS, RESIDUAL, OUT, N, FLAGS (1 ReLU, 2 residual) */
static void conv_naive(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                       void *const *pointers) {
    geometry g = read_geometry(defines, count);
    const float *in = pointers[0], *weights = pointers[1], *bias = pointers[2];
    const float *residual = pointers[3];
    float *out = pointers[4];
    size_t images = (size_t)launch->args[5].i32;
    bool relu = launch->args[6].i32 & 1, add = launch->args[6].i32 & 2;
    size_t at = 0;
    for (size_t n = 0; n < images; n++) {
        for (size_t pixel = 0; pixel < g.p * g.q; pixel++) {
            for (size_t k = 0; k < g.ks; k++, at++) {
                float y = 0;
                if (k < g.k) {
                    y = conv_pixel(&g, in, weights + k * g.r * g.s * g.c, n, pixel / g.q,
                                   pixel % g.q) +
                        bias[k];
                    if (add) y += residual[at];
                    /* Not fmaxf: a NaN must stay one. */
                    if (relu && y < 0) y = 0;
                    y = activate(defines, count, y);
                }
                out[at] = y;
            }
        }
    }
}

/* IN, OUT, N */
static void maxpool_naive(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                          void *const *pointers) {
    geometry g = read_geometry(defines, count);
    const float *in = pointers[0];
    float *out = pointers[1];
    size_t images = (size_t)launch->args[2].i32;
    for (size_t i = 0; i < images * g.p * g.q; i++) {
        size_t n = i / (g.p * g.q), p = i / g.q % g.p, q = i % g.q;
        for (size_t k = 0; k < g.ks; k++) {
            float most = k < g.k ? -INFINITY : 0;
            for (size_t window = 0; k < g.k && window < g.r * g.s; window++) {
                const float *x = input_pixel(
                    &g, in, n, (ptrdiff_t)p * g.stride - g.pad + (ptrdiff_t)(window / g.s),
                    (ptrdiff_t)q * g.stride - g.pad + (ptrdiff_t)(window % g.s));
                if (x && !(x[k] <= most)) most = x[k];
            }
            out[i * g.ks + k] = most;
        }
    }
}

/* IN, OUT, N */
static void avgpool_naive(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                          void *const *pointers) {
    geometry g = read_geometry(defines, count);
    const float *in = pointers[0];
    float *out = pointers[1];
    size_t images = (size_t)launch->args[2].i32;
    for (size_t n = 0; n < images; n++) {
        for (size_t k = 0; k < g.ks; k++) {
            float sum = 0;
            for (size_t i = 0; k < g.k && i < g.h * g.w; i++)
                sum += in[(n * g.h * g.w + i) * g.cs + k];
            out[n * g.ks + k] = sum / (float)(g.h * g.w);
        }
    }
}

/* IN, WEIGHTS [K][C], BIAS, OUT, N */
static void fc_naive(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                     void *const *pointers) {
    geometry g = read_geometry(defines, count);
    const float *in = pointers[0], *weights = pointers[1], *bias = pointers[2];
    float *out = pointers[3];
    size_t images = (size_t)launch->args[4].i32;
    for (size_t n = 0; n < images; n++) {
        for (size_t k = 0; k < g.ks; k++) {
            float sum = 0;
            for (size_t c = 0; k < g.k && c < g.c; c++)
                sum += in[n * g.cs + c] * weights[k * g.c + c];
            out[n * g.ks + k] = k < g.k ? sum + bias[k] : 0;
        }
    }
}

/* IN, WEIGHTS [R][S][CS], BIAS, OUT, N, FLAGS */
static void dwconv_naive(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                         void *const *pointers) {
    geometry g = read_geometry(defines, count);
    const float *in = pointers[0], *weights = pointers[1], *bias = pointers[2];
    float *out = pointers[3];
    size_t images = (size_t)launch->args[4].i32;
    bool relu = launch->args[5].i32 & 1;
    for (size_t i = 0; i < images * g.p * g.q * g.ks; i++) {
        size_t k = i % g.ks, q = i / g.ks % g.q, p = i / g.ks / g.q % g.p;
        size_t n = i / g.ks / g.q / g.p;
        float y = 0;
        for (size_t tap = 0; k < g.k && tap < g.r * g.s; tap++) {
            const float *x =
                input_pixel(&g, in, n, (ptrdiff_t)p * g.stride - g.pad + (ptrdiff_t)(tap / g.s),
                            (ptrdiff_t)q * g.stride - g.pad + (ptrdiff_t)(tap % g.s));
            if (x) y += x[k] * weights[tap * g.cs + k];
        }
        if (k < g.k) y += bias[k];
        if (relu && y < 0) y = 0;
        out[i] = k < g.k ? activate(defines, count, y) : 0;
    }
}

/* IN, factors, OUT, N */
static void scale_naive(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                        void *const *pointers) {
    geometry g = read_geometry(defines, count);
    const float *in = pointers[0], *factors = pointers[1];
    float *out = pointers[2];
    size_t image = g.h * g.w * g.cs, images = (size_t)launch->args[3].i32;
    for (size_t i = 0; i < images * image; i++)
        out[i] = in[i] * factors[i / image * g.cs + i % g.cs];
}

static void nop(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                void *const *pointers) {
    (void)defines, (void)count, (void)launch, (void)pointers;
}

void fake_register_naive(void) {
    fake_register("nop", "nop", nop);
    fake_register("conv_naive", "conv_naive", conv_naive);
    fake_register("maxpool_naive", "maxpool_naive", maxpool_naive);
    fake_register("avgpool_naive", "avgpool_naive", avgpool_naive);
    fake_register("fc_naive", "fc_naive", fc_naive);
    fake_register("dwconv_naive", "dwconv_naive", dwconv_naive);
    fake_register("scale_naive", "scale_naive", scale_naive);
}
