/* Every channel times its own factor of the image, the plainest form: one work-item computes one stored
 * output element. Padding channels are written as zero. The second grid dimension walks over the
 * images, so any batch fits. */
#ifndef C
#define C 5 /* input channels */
#endif
#ifndef CS
#define CS 8 /* input channel stride, >= C */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* Stored elements: float, float rounded to tf32, half, bfloat16. */
#if PRECISION == 2 || PRECISION == 4
/* Rounds off `drop` bits, to nearest, ties to even; infinity and NaN stay. */
static uint rounded(float v, int drop) {
    const uint bits = as_uint(v);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits | ((bits & 0x7fffffu) != 0 ? 0x400000u : 0);
    return (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop << drop;
}
#endif
#if PRECISION == 0
typedef float stored;
#define LOAD(p, i) ((p)[i])
#define STORE(p, i, v) ((p)[i] = (v))
#elif PRECISION == 2
typedef float stored;
#define LOAD(p, i) as_float(rounded((p)[i], 13))
#define STORE(p, i, v) ((p)[i] = as_float(rounded(v, 13)))
#elif PRECISION == 3
typedef half stored;
#define LOAD(p, i) vload_half(i, p)
#define STORE(p, i, v) vstore_half_rte(v, i, p)
#elif PRECISION == 4
typedef ushort stored;
#define LOAD(p, i) as_float((uint)(p)[i] << 16)
#define STORE(p, i, v) ((p)[i] = (ushort)(rounded(v, 16) >> 16))
#else
#error "no storage of this precision here"
#endif

__kernel void scale_naive(__global const stored *in, __global const stored *factors,
                          __global stored *out, const int n) {
    const uint e = (uint)get_global_id(0);
    if (e >= (uint)(H * W * CS)) return;
    const int c = (int)(e % CS);
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        const long at = (long)image * (H * W * CS) + e;
        const float v = c < C ? LOAD(in, at) * LOAD(factors, (long)image * CS + c) : 0.0f;
        STORE(out, at, v);
    }
}
