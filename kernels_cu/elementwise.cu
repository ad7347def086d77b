/* elementwise: out = a * b, a + b, sin(a) or cos(b), four floats a thread. n counts groups of four;
 * buffers are padded to whole ones. No tiling, no reuse: the workload of the spans protocol.
 * Group: any size. Grid: x = groups over n. */
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void elementwise_mul(const float4 *a, const float4 *b, float4 *out,
                                           const int n) {
    const unsigned int i = INDEX;
    if (i >= (unsigned int)n) return;
    const float4 x = a[i], y = b[i];
    out[i] = make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
}

extern "C" __global__ void elementwise_add(const float4 *a, const float4 *b, float4 *out,
                                           const int n) {
    const unsigned int i = INDEX;
    if (i >= (unsigned int)n) return;
    const float4 x = a[i], y = b[i];
    out[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

extern "C" __global__ void elementwise_sin(const float4 *a, const float4 *b, float4 *out,
                                           const int n) {
    const unsigned int i = INDEX;
    if (i >= (unsigned int)n) return;
    const float4 x = a[i];
    out[i] = make_float4(sinf(x.x), sinf(x.y), sinf(x.z), sinf(x.w));
}

extern "C" __global__ void elementwise_cos(const float4 *a, const float4 *b, float4 *out,
                                           const int n) {
    const unsigned int i = INDEX;
    if (i >= (unsigned int)n) return;
    const float4 x = b[i];
    out[i] = make_float4(cosf(x.x), cosf(x.y), cosf(x.z), cosf(x.w));
}
