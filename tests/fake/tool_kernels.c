/* C versions of the kernels that the program measures devices with. They give the right results in
 * closed form instead of doing the work, since the fake clock does not look at it. */
#include "fake_backend.h"

#include <math.h>
#include <string.h>

/* OUT, ONE, STEP, N */
static void peak_fma(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                     void *const *pointers) {
    size_t v = (size_t)fake_define(defines, count, "V", 1);
    double chains = (double)fake_define(defines, count, "CHAINS", 8);
    double n = (double)launch->args[2].i32 * launch->args[3].i32;
    float *out = pointers[0];
    size_t items = (size_t)launch->groups[0] * launch->local[0];
    for (size_t i = 0; i < items * v; i++)
        out[i] = (float)(chains * ((double)(i % v) + n) + chains * (chains - 1) / 2);
}

/* OUT, BITS, N */
static void peak_mma(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                     void *const *pointers) {
    int depth = fake_define(defines, count, "PRECISION", 3) == 2 ? 8 : 16;
    float *out = pointers[0];
    for (size_t i = 0; i < (size_t)launch->groups[0] * launch->local[0]; i++)
        out[i] = (float)depth * 8.0f * (float)launch->args[2].i32;
}

/* IN, OUT, N, PASSES, SHIFT */
static void stream_copy(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                        void *const *pointers) {
    size_t v = (size_t)fake_define(defines, count, "V", 4);
    memcpy(pointers[1], pointers[0], (size_t)launch->args[2].i32 * v * sizeof(float));
}

typedef float (*elementwise)(float a, float b);

static void each(elementwise f, const lap_raw_launch *launch, void *const *pointers) {
    const float *a = pointers[0], *b = pointers[1];
    float *out = pointers[2];
    for (size_t i = 0; i < 4 * (size_t)launch->args[3].i32; i++)
        out[i] = f(a[i], b[i]);
}

static float mul(float a, float b) {
    return a * b;
}

static float add(float a, float b) {
    return a + b;
}

static float sin_a(float a, float b) {
    (void)b;
    return sinf(a);
}

static float cos_b(float a, float b) {
    (void)a;
    return cosf(b);
}

#define EACH(name, f)                                                                              \
    static void name(const lap_define *defines, size_t count, const lap_raw_launch *launch,        \
                     void *const *pointers) {                                                      \
        (void)defines, (void)count;                                                                \
        each(f, launch, pointers);                                                                 \
    }
EACH(elementwise_mul, mul)
EACH(elementwise_add, add)
EACH(elementwise_sin, sin_a)
EACH(elementwise_cos, cos_b)

void fake_register_tools(void) {
    fake_register("peak_fma", "peak_fma", peak_fma);
    fake_register("peak_mma", "peak_mma", peak_mma);
    fake_register("stream_copy", "stream_copy", stream_copy);
    fake_register("elementwise", "elementwise_mul", elementwise_mul);
    fake_register("elementwise", "elementwise_add", elementwise_add);
    fake_register("elementwise", "elementwise_sin", elementwise_sin);
    fake_register("elementwise", "elementwise_cos", elementwise_cos);
}
