/* peak_fma: nothing but fused multiply-adds in CHAINS independent chains of V floats each: what the
 * arithmetic units can do when nothing else limits them. Every chain is x = x * one + step, n times;
 * with one = 1 the results are exact small integers, so that the host can tell that the work was
 * done, and no compiler can foresee them because one and step are arguments.
 * out has groups * group size * V floats: the sum of a work-item's chains.
 * Group: any size. Grid: x. FLOPs: 2 * n * CHAINS * V a work-item. */
#ifndef V
#define V 4 /* floats in a vector: 1, 4, 8 or 16; CUDA has 1 only */
#endif
#ifndef CHAINS
#define CHAINS 8 /* independent chains a work-item: 8 or 12 */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif
#if CHAINS != 8 && CHAINS != 12
#error "CHAINS is 8 or 12"
#endif

#if V == 16
typedef float16 vec;
#define LANES (vec)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define STORE(value, at) vstore16(value, at, out)
#elif V == 8
typedef float8 vec;
#define LANES (vec)(0, 1, 2, 3, 4, 5, 6, 7)
#define STORE(value, at) vstore8(value, at, out)
#elif V == 4
typedef float4 vec;
#define LANES (vec)(0, 1, 2, 3)
#define STORE(value, at) vstore4(value, at, out)
#else
typedef float vec;
#define LANES 0.0f
#define STORE(value, at) out[at] = (value)
#endif

/* mad is the fast one where fma is not; CPUs (vectors) have fma. Both are exact on these values. */
#if defined(FP_FAST_FMAF) || V > 1
#define FMA fma
#else
#define FMA mad
#endif

__kernel void
peak_fma(__global float *out, const int one, const int step, const int n) {
    const vec m = (vec)((float)one), s = (vec)((float)step), x = LANES;
    vec a = x, b = x + 1, c = x + 2, d = x + 3, e = x + 4, f = x + 5, g = x + 6, h = x + 7;
#if CHAINS == 12
    vec i = x + 8, j = x + 9, k = x + 10, l = x + 11;
#endif
    for (int t = 0; t < n; t++) {
        a = FMA(a, m, s), b = FMA(b, m, s), c = FMA(c, m, s), d = FMA(d, m, s);
        e = FMA(e, m, s), f = FMA(f, m, s), g = FMA(g, m, s), h = FMA(h, m, s);
#if CHAINS == 12
        i = FMA(i, m, s), j = FMA(j, m, s), k = FMA(k, m, s), l = FMA(l, m, s);
#endif
    }
    vec sum = a + b + c + d + e + f + g + h;
#if CHAINS == 12
    sum += i + j + k + l;
#endif
    STORE(sum, get_global_id(0));
}
