/* elementwise: out = a * b, a + b, sin(a) or cos(b), four floats a work-item. n counts groups of
 * four; buffers are padded to whole ones. No tiling, no reuse: the workload of the spans protocol.
 * Group: any size. Grid: x = groups over n. */
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

__kernel void elementwise_mul(__global const float4 *a, __global const float4 *b,
                              __global float4 *out, const int n) {
    const uint i = get_global_id(0);
    if (i < (uint)n) out[i] = a[i] * b[i];
}

__kernel void elementwise_add(__global const float4 *a, __global const float4 *b,
                              __global float4 *out, const int n) {
    const uint i = get_global_id(0);
    if (i < (uint)n) out[i] = a[i] + b[i];
}

__kernel void elementwise_sin(__global const float4 *a, __global const float4 *b,
                              __global float4 *out, const int n) {
    const uint i = get_global_id(0);
    if (i < (uint)n) out[i] = sin(a[i]);
}

__kernel void elementwise_cos(__global const float4 *a, __global const float4 *b,
                              __global float4 *out, const int n) {
    const uint i = get_global_id(0);
    if (i < (uint)n) out[i] = cos(b[i]);
}
