/* Part of chain: a network's first convolution with the max-pool behind it: 7x7, step 2,
 * border 3, over pixels of 4 stored channels, then 3x3, step 2, border 1, + bias [+ ReLU].
 *
 * A tile is 7 x 8 pixels of the pool and 32 channels; 15 x 17 pixels of the convolution are
 * computed for it, 32 by each warp. One window row is 8 neighbouring pixels, 32 values in a line,
 * which start at multiples of 16 bytes in the input patch: ldmatrix reads them in place. Weights
 * are packed as [32 channels][window row][depth step][half][lane][16 bytes]. NaN stays NaN. tf32:
 * the input is rounded here. */
#define POOL_H 7
#define POOL_W 8
#define TILE_W (POOL_W * 2 + 1)
#define TILE_H (POOL_H * 2 + 1)
#define PIXEL (4 * ELEMENT)
#define PATCH_W (TILE_W * 2 + 6)
#define PATCH_H (TILE_H * 2 + 5)
#define DEPTH ELEMENT /* products of a window row: 64 or 128 bytes, 32 each */
#define WARPS_N                                                                                    \
    (ELEMENT / 2) /* warps side by side in channels, for their weights to fit registers */
#define STEM_MI (2 * WARPS_N)
#define STEM_NI (4 / WARPS_N)
#define RESULT_ROW (32 * ELEMENT + 16)
#define ROW_PIECES (2 * ELEMENT)
/* Place i of a tile that begins at `from`, moved into an image of `size`. */
#define CLAMP(i, from, size)                                                                       \
    ((i) + (from) < 0 ? -(from) : (i) + (from) >= (size) ? (size)-1 - (from) : (i))

static __device__ __forceinline__ bool stem(char *memory, const char *weights, const int *t,
                                            char *shared, const u32 base, const place *p) {
    const u32 tid = own_id(), lane = tid & 31, warp = tid >> 5;
    const int in_h = t[IN_H], in_w = t[IN_W], conv_h = t[LINES], conv_w = t[PHASES];
    const int out_w = t[OUT_W], out_h = t[PIXELS] / out_w, flags = t[FLAGS];
    const u32 channels = (u32)t[OUT_C], blocks = channels / 32, columns = (u32)t[COLUMNS];
    const u32 tiles = columns * ((u32)(out_h + POOL_H - 1) / POOL_H);
    const char *in = memory + (u64)(u32)t[IN] * 16;
    const float *bias = (const float *)(weights + (u64)(u32)t[BIAS] * 16);
    char *out = memory + (u64)(u32)t[OUT] * 16;
    const u32 patch = base + HEAD;
    const u32 mg = warp / WARPS_N, ng = warp % WARPS_N;
    bool waiting = true;

    for (u32 item = blockIdx.x; item < (u32)t[ITEMS]; item += gridDim.x) {
        const u32 block = item % blocks, all = item / blocks;
        const u32 image = all / tiles, tile = all % tiles;
        const int p0 = (int)(tile / columns) * POOL_H, q0 = (int)(tile % columns) * POOL_W;
        const int y0 = p0 * 2 - 1, x0 = q0 * 2 - 1; /* of the convolution */
        const char *w_from =
            weights + (u64)(u32)t[WEIGHTS] * 16 + block * (7 * DEPTH * 1024) + ng * 512 + lane * 16;
        if (!waiting) __syncthreads();
        if (waiting && !AWAIT(p)) return false;
        waiting = false;
        const char *image_in = in + (u64)image * ((u32)(in_h * in_w) * PIXEL);
        for (u32 i = tid; i < PATCH_H * PATCH_W; i += THREADS) {
            const int y = y0 * 2 - 3 + (int)(i / PATCH_W), x = x0 * 2 - 3 + (int)(i % PATCH_W);
            const bool real = (u32)y < (u32)in_h && (u32)x < (u32)in_w;
            const char *from = real ? image_in + (y * in_w + x) * PIXEL : image_in;
#if ELEMENT == 4
            COPY16(patch + i * PIXEL, from, real ? PIXEL : 0);
#else
            COPY8(patch + i * PIXEL, from, real ? PIXEL : 0);
#endif
        }
        COPY_COMMIT();
        u32 w[7][DEPTH][STEM_NI][2];
#pragma unroll
        for (int r = 0; r < 7; r++)
#pragma unroll
            for (int k = 0; k < DEPTH; k++)
#pragma unroll
                for (int j = 0; j < STEM_NI; j += 2)
                    LOAD_WEIGHTS4(&w[r][k][j][0], w_from + (r * DEPTH + k) * 1024 + j * 256);
        /* A row behind the tile's last pixel repeats the first. */
        u32 a_at[STEM_MI];
#pragma unroll
        for (int i = 0; i < STEM_MI; i++) {
            const u32 m = mg * (STEM_MI * 16) + i * 16 + (lane & 15),
                      pixel = m < TILE_H * TILE_W ? m : 0;
            a_at[i] = patch + (pixel / TILE_W * PATCH_W + pixel % TILE_W) * (2 * PIXEL) +
                      (lane >> 4 << 4);
        }
        float acc[STEM_MI][STEM_NI][4];
#pragma unroll
        for (int j = 0; j < STEM_NI; j++) {
            const u32 k = block * 32 + ng * 16 + j * 8 + (lane & 3) * 2;
            const float add0 = bias[k], add1 = bias[k + 1];
#pragma unroll
            for (int i = 0; i < STEM_MI; i++) {
                acc[i][j][0] = acc[i][j][2] = add0;
                acc[i][j][1] = acc[i][j][3] = add1;
            }
        }
        COPY_WAIT(0);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 7; r++) {
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
#pragma unroll
                for (int i = 0; i < STEM_MI; i++) {
                    u32 a[4];
                    LOAD_MATRICES(a, a_at[i] + r * (PATCH_W * PIXEL) + k * 32);
#if PRECISION == 2
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        ROUND_WORD_TF32(a[e]);
#endif
#pragma unroll
                    for (int j = 0; j < STEM_NI; j++)
                        MMA(acc[i][j], a, w[r][k][j][0], w[r][k][j][1]);
                }
            }
        }
        __syncthreads();
        char *results = shared + HEAD;
#if PRECISION != 2
        const u32 least = flags & FLAG_RELU ? 0 : LOWEST;
#endif
#pragma unroll
        for (int i = 0; i < STEM_MI; i++)
#pragma unroll
            for (int j = 0; j < STEM_NI; j++)
#pragma unroll
                for (int low = 0; low < 2; low++) {
                    const u32 m = mg * (STEM_MI * 16) + i * 16 + low * 8 + (lane >> 2);
                    char *to =
                        results + m * RESULT_ROW + (ng * 16 + j * 8 + (lane & 3) * 2) * ELEMENT;
                    float v0 = acc[i][j][low * 2], v1 = acc[i][j][low * 2 + 1];
#if PRECISION == 2
                    if (flags & FLAG_RELU) {
                        v0 = v0 < 0.0f ? 0.0f : v0;
                        v1 = v1 < 0.0f ? 0.0f : v1;
                    }
                    ROUND_TF32(v0);
                    ROUND_TF32(v1);
                    *(float2 *)to = make_float2(v0, v1);
#else
                    u32 word;
                    PACK2(word, v0, v1);
                    MAX(word, least); /* the ReLU, two at a time */
                    *(u32 *)to = word;
#endif
                }
        __syncthreads();
        for (u32 i = tid; i < POOL_H * POOL_W * ROW_PIECES; i += THREADS) {
            const u32 at = i % ROW_PIECES * 16;
            const int pp = (int)(i / ROW_PIECES / POOL_W), qq = (int)(i / ROW_PIECES % POOL_W);
            if (p0 + pp >= out_h || q0 + qq >= out_w) continue;
            /* Pixels outside the image count as their neighbour inside, which is in the window too.
             */
            uint4 best = make_uint4(LOWEST, LOWEST, LOWEST, LOWEST);
            u32 across[3];
#pragma unroll
            for (int c = 0; c < 3; c++)
                across[c] = (u32)CLAMP(qq * 2 + c, x0, conv_w) * RESULT_ROW + at;
#pragma unroll
            for (int r = 0; r < 3; r++) {
                const u32 down = (u32)CLAMP(pp * 2 + r, y0, conv_h) * (TILE_W * RESULT_ROW);
#pragma unroll
                for (int c = 0; c < 3; c++) {
                    const uint4 v = *(const uint4 *)(results + down + across[c]);
                    MAX(best.x, v.x);
                    MAX(best.y, v.y);
                    MAX(best.z, v.z);
                    MAX(best.w, v.w);
                }
            }
            const u64 pixel =
                (u64)image * (u32)(out_h * out_w) + (u32)((p0 + pp) * out_w + q0 + qq);
            *(uint4 *)(out + (pixel * channels + block * 32) * ELEMENT + at) = best;
        }
    }
    return true;
}
