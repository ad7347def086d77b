/* Max-pool for CPUs: explicit vectors over channels, one work-item computes one output row. The
 * border counts as minus infinity; a NaN in the window gives NaN. Padding channels C..CS-1 are
 * written as zero. */
#ifndef C
#define C 3 /* input channels */
#endif
#ifndef CS
#define CS 4 /* input channel stride, >= C */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef P
#define P 8 /* output height */
#endif
#ifndef Q
#define Q 8 /* output width */
#endif
#ifndef R
#define R 3 /* window height */
#endif
#ifndef S
#define S 3 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window, both directions */
#endif
#ifndef PAD
#define PAD 1 /* border on every side */
#endif
#ifndef V
#define V 4 /* floats in a vector: 4, 8 or 16; divides CS */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#if V == 16
typedef float16 vec;
#define LOAD vload16
#define STORE vstore16
#elif V == 8
typedef float8 vec;
#define LOAD vload8
#define STORE vstore8
#else
typedef float4 vec;
#define LOAD vload4
#define STORE vstore4
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
maxpool_v(__global const float *in, __global float *out, const int n) {
    const int p = (int)get_group_id(0);
    const int h0 = p * STRIDE - PAD;
    const int r_first = max(0, -h0), r_last = min(R, H - h0);
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const float *x = in + (long)image * (H * W * CS);
        __global float *y = out + ((long)image * P + p) * (Q * CS);
        for (int q = 0; q < Q; q++) {
            const int w0 = q * STRIDE - PAD;
            const int s_first = max(0, -w0), s_last = min(S, W - w0);
            for (int c = 0; c < CS; c += V) {
                vec best = (vec)(-INFINITY);
                for (int r = r_first; r < r_last; r++) {
                    for (int s = s_first; s < s_last; s++) {
                        const vec value = LOAD(0, x + ((h0 + r) * W + w0 + s) * CS + c);
                        best = ((value > best) | (value != value)) ? value : best;
                    }
                }
                STORE(best, 0, y + q * CS + c);
            }
            for (int c = C; c < CS; c++)
                y[q * CS + c] = 0.0f;
        }
    }
}
