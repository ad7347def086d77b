/* stream_copy: copies n vectors of V floats, passes times. Every pass begins shift vectors further
 * on, so that what one thread copied is copied by another next time: caches private to a unit do
 * not stand in for the memory or the shared cache that is to be measured.
 * CHUNKED 0: neighbours copy neighbouring vectors (GPUs). 1: every thread copies a piece of its
 * own (CPUs). n and shift are below 2^30, shift is below n.
 * Group: any size. Grid: x. Bytes: 2 * passes * n * V * 4. */
#ifndef V
#define V 4 /* floats in a vector: 4, 8 or 16; CUDA has 4 only */
#endif
#ifndef CHUNKED
#define CHUNKED 0 /* 1: a piece for every thread */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#if V != 4
#error "V is 4: the widest load there is"
#endif

extern "C" __global__ void stream_copy(const float *__restrict__ in, float *__restrict__ out,
                                       const int n, const int passes, const int shift) {
    const float4 *from = (const float4 *)in;
    float4 *to = (float4 *)out;
    const unsigned int count = (unsigned int)n, items = gridDim.x * blockDim.x;
    const unsigned int item = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int at = 0;
    for (int pass = 0; pass < passes; pass++) {
#if CHUNKED
        const unsigned int each = (count + items - 1) / items;
        const unsigned int first = item * each, end = first + each;
        const unsigned int last = end < count ? end : count;
        for (unsigned int i = first; i < last; i++) {
#else
#pragma unroll 4
        for (unsigned int i = item; i < count; i += items) {
#endif
            unsigned int k = i + at;
            if (k >= count) k -= count;
            to[k] = from[k];
        }
        at += (unsigned int)shift;
        if (at >= count) at -= count;
    }
}
