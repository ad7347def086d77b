/* The means of an image, at the end of the depthwise kernels' loop over images: sum[] of each work-item,
 * through sums[] of the group, scratch of the bands and whoever comes last. */
#if POOLED
        const float inverse = 1.0f / (P * Q), count = (float)(P * Q);
#pragma unroll
        for (int v = 0; v < VC; v++)
            sums[tid * VC + v] = sum[v];
        __syncthreads();
        if (first == 0) {
#pragma unroll
            for (int v = 0; v < VC; v++)
                for (unsigned int line = 1; line < LINES; line++)
                    sum[v] += sums[(line * CX + lane) * VC + v];
        }
#if BANDS > 1
        float *parts =
            scratch + ((unsigned long long)n * BLOCKS + 63) / 64 * 64 + (unsigned long long)image * (BANDS * CS) + which * VC;
        int *counter = (int *)scratch + image * BLOCKS + block;
        if (first == 0 && used) {
#pragma unroll
            for (int v = 0; v < VC; v++)
                __stcg(parts + band * CS + v, sum[v]);
        }
        DEVICE_FENCE();
        __syncthreads();
        if (tid == 0) {
            const int taken = atomicAdd(counter, 1);
            if (taken == BANDS - 1) *counter = 0; /* nobody takes another before the next launch */
            ticket = taken;
        }
        __syncthreads();
        const bool last = ticket == BANDS - 1;
        if (last && first == 0 && used) {
            DEVICE_FENCE();
#pragma unroll
            for (int v = 0; v < VC; v++) {
                sum[v] = 0.0f;
                for (unsigned int b = 0; b < BANDS; b++)
                    sum[v] += __ldcg(parts + b * CS + v);
            }
        }
#else
        const bool last = true;
#endif
        if (last && first == 0 && used) {
#pragma unroll
            for (int v = 0; v < VC; v++)
                sum[v] = MEAN(sum[v]);
            means[(unsigned long long)image * (KS / VC) + which] = narrow(sum);
        }
        __syncthreads(); /* sums and ticket are free again */
#endif
