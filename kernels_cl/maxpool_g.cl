/* maxpool_g: max-pool, four channels of one output pixel a work-item. The border counts as minus
 * infinity; a NaN in the window gives NaN. Padding channels C..CS-1 come out zero, since they are
 * zero in the input.
 * Group: 128. Grid: x = groups over P * Q * CS / 4 of one image; y walks over the images. */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of 4 */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef P
#define P 4 /* output height */
#endif
#ifndef Q
#define Q 4 /* output width */
#endif
#ifndef R
#define R 3 /* window height */
#endif
#ifndef S
#define S 3 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 2 /* step of the window in both directions */
#endif
#ifndef PAD
#define PAD 1 /* border in both directions, smaller than the window */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* Four stored elements: float, float rounded to tf32, half, bfloat16. */
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
typedef float4 stored4;
#define LOAD4(p, i) ((p)[i])
#define STORE4(p, i, v) ((p)[i] = (v))
#elif PRECISION == 2
typedef float4 stored4;
#define LOAD4(p, i) ((p)[i])
#define R13(v) as_float(rounded(v, 13))
#define STORE4(p, i, v) ((p)[i] = (float4)(R13((v).x), R13((v).y), R13((v).z), R13((v).w)))
#elif PRECISION == 3
typedef ushort4 stored4; /* halves need an extension as vectors, not as pointers */
#define LOAD4(p, i) vload_half4(i, (__global const half *)(p))
#define STORE4(p, i, v) vstore_half4_rte(v, i, (__global half *)(p))
#elif PRECISION == 4
typedef ushort4 stored4;
#define LOAD4(p, i) as_float4(convert_uint4((p)[i]) << 16)
#define R16(v) ((ushort)(rounded(v, 16) >> 16))
#define STORE4(p, i, v) ((p)[i] = (ushort4)(R16((v).x), R16((v).y), R16((v).z), R16((v).w)))
#else
#error "no storage of this precision here"
#endif

#define GROUP 128
#define QUADS (CS / 4)
#define LOWEST (-INFINITY)
#define LARGER(best, v) ((v) > (best) || (v) != (v) ? (v) : (best))

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
maxpool_g(__global const stored4 *restrict in, __global stored4 *restrict out, const int n) {
    const uint e = get_group_id(0) * GROUP + get_local_id(0);
    if (e >= P * Q * QUADS) return;
    const uint quad = e % QUADS, pixel = e / QUADS;
    const int y = (int)(pixel / Q) * STRIDE - PAD, x = (int)(pixel % Q) * STRIDE - PAD;
    for (uint image = get_group_id(1); image < (uint)n; image += get_num_groups(1)) {
        __global const stored4 *from = in + (ulong)image * (H * W * QUADS) + quad;
        float4 best = (float4)(LOWEST, LOWEST, LOWEST, LOWEST);
#pragma unroll
        for (int r = 0; r < R; r++) {
            if ((uint)(y + r) >= H) continue;
#pragma unroll
            for (int s = 0; s < S; s++) {
                if ((uint)(x + s) >= W) continue;
                const float4 v = LOAD4(from, ((y + r) * W + x + s) * QUADS);
                best.x = LARGER(best.x, v.x), best.y = LARGER(best.y, v.y);
                best.z = LARGER(best.z, v.z), best.w = LARGER(best.w, v.w);
            }
        }
        STORE4(out, (ulong)image * (P * Q * QUADS) + e, best);
    }
}
