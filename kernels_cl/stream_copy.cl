/* stream_copy: copies n vectors of V floats, passes times. Every pass begins shift vectors further
 * on, so that what one work-item copied is copied by another next time: caches private to a unit do
 * not stand in for the memory or the shared cache that is to be measured.
 * CHUNKED 0: neighbours copy neighbouring vectors (GPUs). 1: every work-item copies a piece of its
 * own (CPUs). n and shift are below 2^30, shift is below n.
 * Group: any size. Grid: x. Bytes: 2 * passes * n * V * 4. */
#ifndef V
#define V 4 /* floats in a vector: 4, 8 or 16; CUDA has 4 only */
#endif
#ifndef CHUNKED
#define CHUNKED 0 /* 1: a piece for every work-item */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#if V == 16
#define LOAD vload16
#define STORE vstore16
#elif V == 8
#define LOAD vload8
#define STORE vstore8
#else
#define LOAD vload4
#define STORE vstore4
#endif

__kernel void stream_copy(__global const float *restrict in, __global float *restrict out,
                          const int n, const int passes, const int shift) {
    const uint count = (uint)n, items = get_global_size(0), item = get_global_id(0);
    uint at = 0;
    for (int pass = 0; pass < passes; pass++) {
#if CHUNKED
        const uint each = (count + items - 1) / items;
        const uint first = item * each, last = min(first + each, count);
        for (uint i = first; i < last; i++) {
#else
        for (uint i = item; i < count; i += items) {
#endif
            uint k = i + at;
            if (k >= count) k -= count;
            STORE(LOAD(k, in), k, out);
        }
        at += (uint)shift;
        if (at >= count) at -= count;
    }
}
