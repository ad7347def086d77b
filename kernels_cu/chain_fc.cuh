/* Part of chain: the average over an image's pixels and the fully connected layer behind it.
 * Every group averages all channels again rather than wait for others; then a warp makes an output
 * at a time. Weights are [outputs as stored][channels], logits are float.
 * Channels: at most 128 pieces of 16 bytes. */
#define PIECE (16 / ELEMENT) /* channels of a piece */
#define LANE_PIECES 4
#define AT_ONCE 13 /* pieces on their way to a thread */
/* A division that is correctly rounded whatever the language's own is; infinity and NaN pass. */
#define MEAN(s)                                                                                    \
    (fabsf((s)*inverse) <= 3.4e38f ? fmaf(fmaf(-((s)*inverse), count, (s)), inverse, (s)*inverse)  \
                                   : (s)*inverse)
#if ELEMENT == 2
#define UNPACK_PIECE(v, w)                                                                         \
    do {                                                                                           \
        UNPACK2((w)[0], (v)[0], (v)[1]);                                                           \
        UNPACK2((w)[1], (v)[2], (v)[3]);                                                           \
        UNPACK2((w)[2], (v)[4], (v)[5]);                                                           \
        UNPACK2((w)[3], (v)[6], (v)[7]);                                                           \
    } while (0)
#else
#define UNPACK_PIECE(v, w)                                                                         \
    do {                                                                                           \
        (v)[0] = __uint_as_float((w)[0]), (v)[1] = __uint_as_float((w)[1]);                        \
        (v)[2] = __uint_as_float((w)[2]), (v)[3] = __uint_as_float((w)[3]);                        \
    } while (0)
#endif

static __device__ __forceinline__ bool pool_fc(char *memory, const char *weights, const int *t,
                                               char *shared, const place *p) {
    const u32 tid = own_id(), lane = tid & 31, warp = tid >> 5;
    const u32 pieces = (u32)t[IN_BYTES] / 16, pixels = (u32)t[PIXELS], outputs = (u32)t[OUT_C];
    const u32 channels = pieces * PIECE, parts = THREADS / pieces, images = (u32)t[IMAGES];
    const char *in = memory + (u64)(u32)t[IN] * 16;
    const char *w_from = weights + (u64)(u32)t[WEIGHTS] * 16;
    const float *bias = (const float *)(weights + (u64)(u32)t[BIAS] * 16);
    float *out = (float *)(memory + (u64)(u32)t[OUT] * 16);
    float *mean = (float *)(shared + HEAD), *sums = mean + 128 * PIECE;
    const float inverse = 1.0f / (float)pixels, count = (float)pixels;
    const u32 first = blockIdx.x * (THREADS / 32) + warp, step = gridDim.x * (THREADS / 32);
    u32 w[LANE_PIECES][4];
#pragma unroll
    for (int i = 0; i < LANE_PIECES; i++) {
        w[i][0] = w[i][1] = w[i][2] = w[i][3] = 0;
        if (first < outputs && lane + i * 32 < pieces)
            LOAD_WEIGHTS4(w[i], w_from + ((u64)first * pieces + lane + i * 32) * 16);
    }
    if (!AWAIT(p)) return false;
    for (u32 image = 0; image < images; image++) {
        const u32 piece = tid % pieces, part = tid / pieces;
        if (part < parts) {
            const char *from = in + ((u64)image * pixels * pieces + piece) * 16;
            float sum[PIECE];
#pragma unroll
            for (int e = 0; e < PIECE; e++)
                sum[e] = 0.0f;
            for (u32 i0 = part; i0 < pixels; i0 += AT_ONCE * parts) {
                u32 word[AT_ONCE][4];
#pragma unroll
                for (int m = 0; m < AT_ONCE; m++) {
                    word[m][0] = word[m][1] = word[m][2] = word[m][3] = 0;
                    if (i0 + m * parts < pixels)
                        LOAD_SHARED_PIECE(word[m], from + (u64)((i0 + m * parts) * pieces) * 16);
                }
#pragma unroll
                for (int m = 0; m < AT_ONCE; m++) {
                    float v[PIECE];
                    UNPACK_PIECE(v, word[m]);
#pragma unroll
                    for (int e = 0; e < PIECE; e++)
                        sum[e] += v[e];
                }
            }
#pragma unroll
            for (int e = 0; e < PIECE; e++)
                sums[part * channels + piece * PIECE + e] = sum[e];
        }
        __syncthreads();
        for (u32 c = tid; c < channels; c += THREADS) {
            float sum = sums[c];
            for (u32 i = 1; i < parts; i++)
                sum += sums[i * channels + c];
            mean[c] = MEAN(sum);
        }
        __syncthreads();
        for (u32 k = first; k < outputs; k += step) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < LANE_PIECES; i++) {
                if (lane + i * 32 >= pieces) continue;
                if (step < outputs) /* the first weights are not the only ones */
                    LOAD_WEIGHTS4(w[i], w_from + ((u64)k * pieces + lane + i * 32) * 16);
                float v[PIECE];
                UNPACK_PIECE(v, w[i]);
#pragma unroll
                for (int e = 0; e < PIECE; e++)
                    sum = fmaf(v[e], mean[(lane + i * 32) * PIECE + e], sum);
            }
            ADD_LANES(sum);
            if (lane == 0) out[(u64)image * outputs + k] = sum + bias[k];
        }
        __syncthreads();
    }
    return true;
}
