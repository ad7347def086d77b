/* peak_fma: nothing but fused multiply-adds in CHAINS independent chains of V floats each: what the
 * arithmetic units can do when nothing else limits them. Every chain is x = x * one + step, n times;
 * with one = 1 the results are exact small integers, so that the host can tell that the work was
 * done, and no compiler can foresee them because one and step are arguments.
 * out has groups * group size * V floats: the sum of a thread's chains.
 * Group: any size. Grid: x. FLOPs: 2 * n * CHAINS * V a thread. */
#ifndef V
#define V 1 /* floats in a vector: 1, 4, 8 or 16; CUDA has 1 only */
#endif
#ifndef CHAINS
#define CHAINS 8 /* independent chains a thread: 8 or 12 */
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

#if V != 1
#error "no vector arithmetic here: V is 1"
#endif

extern "C" __global__ void peak_fma(float *out, const int one, const int step, const int n) {
    const float m = (float)one, s = (float)step;
    float x[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        x[c] = (float)c;
#pragma unroll 8
    for (int t = 0; t < n; t++) {
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
            x[c] = fmaf(x[c], m, s);
    }
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
