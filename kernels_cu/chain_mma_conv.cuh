/* Part of chain_mma: a convolution with a window of 3x3, border 1, step 1 or 2, + bias [+ residual,
 * stored or made here by a 1x1 convolution of a second input] [+ ReLU]. Included once for every
 * tile, with CONV (its name), MF and NF.
 *
 * A tile is BM pixels times BN channels. Warps are 2 (rows) x 4 (depth): a warp multiplies BM / 2
 * pixels by all BN channels over a quarter of every phase, which is 128 bytes of input channels by
 * all taps; the quarters are added in shared memory, in a fixed order. A warp's weights of DIST
 * phases are in its registers.
 *
 * HALO: the pixels of the tile with the image rows around it are one line of memory, each tap reads
 * it shifted, rows outside the image come from zeros. Otherwise (step 2) each tap gathers its own
 * rows. Rows of 128 bytes, pieces of 16 bytes exchanged within a row for ldmatrix. */
#define BM (MF * 32)
#define BN (NF * 8)
#define DIST (4 / NF)
#define CHAINS (MF * NF == 1 ? 2 : 1) /* sums that do not wait for each other */
#define TAP_BYTES (NF * 256)          /* weights of a warp for a tap */
#define SUM_ROW (BN == 8 ? 8 : BN + 8)
#define QUADS (BM * BN / 4)
#define HELD ((QUADS + THREADS - 1) / THREADS)
#if NF == 1
#define LANE_BYTES 8
#define LOAD_TAP(d, from) LOAD_WEIGHTS2((d)[0], from)
#elif NF == 2
#define LANE_BYTES 16
#define LOAD_TAP(d, from) LOAD_WEIGHTS4(&(d)[0][0], from)
#else
#define LANE_BYTES 16
#define LOAD_TAP(d, from)                                                                          \
    LOAD_WEIGHTS4(&(d)[0][0], from);                                                               \
    LOAD_WEIGHTS4(&(d)[2][0], (from) + 512)
#endif
#define MULTIPLY(w, tap, line, ok)                                                                 \
    do {                                                                                           \
        const u32 r_ = a_row + (line), at_ = (r_ * 128) + ((piece ^ (r_ & 7)) << 4);               \
        _Pragma("unroll") for (int i = 0; i < MF; i++) {                                           \
            u32 a[4];                                                                              \
            LOAD_MATRICES(a, (ok) ? from + at_ + i * 2048 : zeros);                                \
            _Pragma("unroll") for (int j = 0; j < NF; j++)                                         \
                MMA(acc[(tap) % CHAINS][i][j], a, (w)[j][0], (w)[j][1]);                           \
        }                                                                                          \
    } while (0)

static __device__ __forceinline__ bool CONV(char *memory, const char *weights, const int *t,
                                            char *shared, const u32 base, const place *p) {
    const u32 tid = own_id(), lane = tid & 31, warp = tid >> 5;
    const u32 kg = warp & 3, mg = warp >> 2;
    const int phases = t[PHASES], buffers = t[BUFFERS], tails = t[TAILS], flags = t[FLAGS];
    const u32 width = (u32)t[IN_W], height = (u32)t[IN_H], pixel_bytes = (u32)t[IN_BYTES];
    const u32 pixels = (u32)t[PIXELS], out_w = (u32)t[OUT_W], rows = (u32)t[ROWS];
    const u32 columns = (u32)t[COLUMNS], channels = (u32)t[OUT_C], lines = (u32)t[LINES];
    const bool halo = t[HALO] != 0;
    const char *in = memory + (u64)(u32)t[IN] * 16, *second = memory + (u64)(u32)t[SECOND] * 16;
    const float *bias = (const float *)(weights + (u64)(u32)t[BIAS] * 16);
    char *out = memory + (u64)(u32)t[OUT] * 16;
    const u32 load_piece = tid & 7, load_row = tid >> 3;
    const u32 a_row = mg * (MF * 16) + (lane & 15), piece = kg * 2 + (lane >> 4);
    const u32 zeros = base + 2 * TABLE_WORDS * 4 + (lane >> 4 << 4);
    const u32 tail_at = base + HEAD, ring = tail_at + (u32)tails * (BM * 128);
    bool waiting = true;

    for (u32 item = blockIdx.x; item < (u32)t[ITEMS]; item += gridDim.x) {
        const u32 column = item % columns, row0 = item / columns * BM;
        const char *w_from = weights + (u64)(u32)t[WEIGHTS] * 16 +
                             (u64)column * ((u32)(phases * 9 + tails) * (4 * TAP_BYTES)) +
                             lane * LANE_BYTES;
        float acc[CHAINS][MF][NF][4];
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
#pragma unroll
            for (int i = 0; i < MF; i++)
#pragma unroll
                for (int j = 0; j < NF; j++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        acc[c][i][j][e] = 0.0f;
        /* Zeros first: what is set on some paths only would take a register for the whole launch.
         */
        u32 w[DIST][9][NF][2], residual[HELD][ELEMENT];
#pragma unroll
        for (int d = 0; d < DIST; d++)
#pragma unroll
            for (int tap = 0; tap < 9; tap++)
#pragma unroll
                for (int j = 0; j < NF; j++)
                    w[d][tap][j][0] = w[d][tap][j][1] = 0;
#pragma unroll
        for (int e = 0; e < HELD; e++)
#pragma unroll
            for (int f = 0; f < ELEMENT; f++)
                residual[e][f] = 0;
        if (!waiting) __syncthreads(); /* the last tile's sums have been read */

        /* The second input is older than the step before: its product needs no waiting. */
        if (tails > 0) {
            const char *from_tail = w_from + ((u32)phases * (9 * 4) + kg * (u32)tails) * TAP_BYTES;
#pragma unroll
            for (int chunk = 0; chunk < 9; chunk++)
                if (chunk < tails) {
                    LOAD_TAP(w[0][chunk], from_tail + chunk * TAP_BYTES);
                }
#pragma unroll
            for (int i = 0; i < MF; i++) {
                const u32 m = load_row + i * 32, row = row0 + m;
                const u32 image = row / pixels, pixel = row % pixels;
                const u64 at =
                    (u64)image * (u32)t[SECOND_IMAGE] +
                    (pixel / out_w * (u32)t[SECOND_W] + pixel % out_w) * (u32)t[SECOND_STEP];
                const char *from = second + at * (u32)t[SECOND_BYTES] + load_piece * 16;
                for (int chunk = 0; chunk < tails; chunk++)
                    COPY16(tail_at + (chunk * BM + m) * 128 + ((load_piece ^ (m & 7)) << 4),
                           row < rows ? from + chunk * 128 : second, row < rows ? 16 : 0);
            }
            COPY_COMMIT();
            COPY_WAIT(0);
            __syncthreads();
            const u32 from = tail_at;
#pragma unroll
            for (int chunk = 0; chunk < 9; chunk++)
                if (chunk < tails) MULTIPLY(w[0][chunk], chunk, (u32)chunk * BM, true);
        }

        /* The first weights and all that addresses need, before the input is there. */
        w_from += kg * (9 * TAP_BYTES);
#pragma unroll
        for (int d = 0; d < DIST; d++)
            if (d < phases) {
#pragma unroll
                for (int tap = 0; tap < 9; tap++) {
                    LOAD_TAP(w[d][tap], w_from + (d * 36 + tap) * TAP_BYTES);
                }
            }
        u32 inside[MF];
#pragma unroll
        for (int i = 0; i < MF; i++) {
            const u32 row = row0 + a_row + i * 16, pixel = row % pixels;
            const u32 y = pixel / out_w - 1, x = pixel % out_w - 1;
            u32 bits = 0;
#pragma unroll
            for (int r = 0; r < 3; r++)
#pragma unroll
                for (int s = 0; s < 3; s++)
                    bits |= y + r < height && x + s < width ? 1u << (r * 3 + s) : 0;
            inside[i] = !halo ? 0x1ff : row < rows ? bits : 0;
        }
        u32 gather_y[MF], gather_x[MF];
        u64 gather_image[MF];
#pragma unroll
        for (int i = 0; i < MF; i++)
            gather_y[i] = gather_x[i] = 0, gather_image[i] = 0;
        if (!halo) {
#pragma unroll
            for (int i = 0; i < MF; i++) {
                const u32 row = row0 + load_row + i * 32, pixel = row % pixels;
                gather_image[i] = (u64)(row / pixels) * (height * width);
                gather_y[i] = row < rows ? pixel / out_w * 2 - 1 : height;
                gather_x[i] = pixel % out_w * 2 - 1;
            }
        }
        if (flags & FLAG_RESIDUAL) { /* older than the step before, too */
#pragma unroll
            for (int e = 0; e < HELD; e++) {
                const u32 quad = tid + e * THREADS, row = row0 + quad / (BN / 4);
                if (quad >= QUADS || row >= rows) continue;
                const char *from =
                    second + ((u64)row * channels + column * BN + quad % (BN / 4) * 4) * ELEMENT;
#if ELEMENT == 2
                LOAD_SHARED_HALF(residual[e], from);
#else
                LOAD_SHARED_PIECE(residual[e], from);
#endif
            }
        }
        if (waiting && !AWAIT(p)) return false;
        waiting = false;

#define LOAD_PHASE(phase, buffer)                                                                  \
    do {                                                                                           \
        const u32 to = ring + (u32)(buffer) * (lines * 128);                                       \
        const char *from_ = in + (u32)(phase)*128 + load_piece * 16;                               \
        if (halo) {                                                                                \
            _Pragma("unroll 1") for (u32 r_ = load_row; r_ < lines; r_ += 32) {                    \
                const u32 pixel = row0 - (width + 1) + r_;                                         \
                const bool real = pixel < rows;                                                    \
                COPY16(to + r_ * 128 + ((load_piece ^ (r_ & 7)) << 4),                             \
                       real ? from_ + (u64)pixel * pixel_bytes : in, real ? 16 : 0);               \
            }                                                                                      \
        } else {                                                                                   \
            _Pragma("unroll") for (int i = 0; i < MF; i++)                                         \
                _Pragma("unroll 1") for (u32 tap = 0; tap < 9; tap++) {                            \
                const u32 y = gather_y[i] + tap / 3, x = gather_x[i] + tap % 3;                    \
                const bool real = y < height && x < width;                                         \
                const u32 r_ = tap * BM + load_row + i * 32;                                       \
                COPY16(to + r_ * 128 + ((load_piece ^ (r_ & 7)) << 4),                             \
                       real ? from_ + (gather_image[i] + y * width + x) * pixel_bytes : in,        \
                       real ? 16 : 0);                                                             \
            }                                                                                      \
        }                                                                                          \
        COPY_COMMIT();                                                                             \
    } while (0)

        const int at_first = buffers < phases ? buffers : phases;
        for (int phase = 0; phase < at_first; phase++)
            LOAD_PHASE(phase, phase);
        const u32 line_r = halo ? width : 3 * BM, line_s = halo ? 1 : BM;
        int buffer = 0;
        for (int phase0 = 0; phase0 < phases; phase0 += DIST) {
#pragma unroll
            for (int d = 0; d < DIST; d++) {
                const int phase = phase0 + d;
                if (phase < phases) {
                    /* Loads of later phases may still be under way. */
                    const int asked = phase + buffers < phases ? phase + buffers : phases;
                    switch (asked - phase - 1) {
                    case 0:
                        COPY_WAIT(0);
                        break;
                    case 1:
                        COPY_WAIT(1);
                        break;
                    case 2:
                        COPY_WAIT(2);
                        break;
                    case 3:
                        COPY_WAIT(3);
                        break;
                    case 4:
                        COPY_WAIT(4);
                        break;
                    case 5:
                        COPY_WAIT(5);
                        break;
                    case 6:
                        COPY_WAIT(6);
                        break;
                    default:
                        COPY_WAIT(7);
                        break;
                    }
                    __syncthreads();
                    const u32 from = ring + (u32)buffer * (lines * 128);
                    const bool more = phase + DIST < phases;
#pragma unroll
                    for (int tap = 0; tap < 9; tap++) {
                        MULTIPLY(w[d][tap], tap, tap / 3 * line_r + tap % 3 * line_s,
                                 inside[i] >> tap & 1);
                        if (more) {
                            LOAD_TAP(w[d][tap], w_from + (DIST * 36 + tap) * TAP_BYTES);
                        }
                    }
                    w_from += 36 * TAP_BYTES;
                    if (phase + buffers < phases) {
                        __syncthreads(); /* all have read the buffer */
                        LOAD_PHASE(phase + buffers, buffer);
                    }
                    buffer = buffer + 1 == buffers ? 0 : buffer + 1;
                }
            }
        }

        /* The quarters of the depth meet where the input was. */
        __syncthreads();
        float *sums = (float *)(shared + HEAD);
#pragma unroll
        for (int i = 0; i < MF; i++)
#pragma unroll
            for (int j = 0; j < NF; j++) {
#if MF * NF == 1
#pragma unroll
                for (int e = 0; e < 4; e++)
                    acc[0][i][j][e] += acc[1][i][j][e];
#endif
                float2 *to =
                    (float2 *)(sums + (kg * BM + mg * (MF * 16) + i * 16 + (lane >> 2)) * SUM_ROW +
                               j * 8 + (lane & 3) * 2);
                to[0] = make_float2(acc[0][i][j][0], acc[0][i][j][1]);
                to[4 * SUM_ROW] = make_float2(acc[0][i][j][2], acc[0][i][j][3]);
            }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < HELD; e++) {
            const u32 quad = tid + e * THREADS, m = quad / (BN / 4), n = quad % (BN / 4) * 4;
            const u32 row = row0 + m, k = column * BN + n;
            if (quad >= QUADS || row >= rows) continue;
            const float4 add = *(const float4 *)(bias + k);
            float v[4] = {add.x, add.y, add.z, add.w};
#pragma unroll
            for (int part = 0; part < 4; part++) {
                const float4 s = *(const float4 *)(sums + (part * BM + m) * SUM_ROW + n);
                v[0] += s.x, v[1] += s.y, v[2] += s.z, v[3] += s.w;
            }
            if (flags & FLAG_RESIDUAL) {
#if ELEMENT == 2
                float l, h;
                UNPACK2(residual[e][0], l, h);
                v[0] += l, v[1] += h;
                UNPACK2(residual[e][1], l, h);
                v[2] += l, v[3] += h;
#else
#pragma unroll
                for (int f = 0; f < 4; f++)
                    v[f] += __uint_as_float(residual[e][f]);
#endif
            }
            if (flags & FLAG_RELU) {
#pragma unroll
                for (int f = 0; f < 4; f++)
                    v[f] = v[f] < 0.0f ? 0.0f : v[f];
            }
            char *to = out + ((u64)row * channels + k) * ELEMENT;
#if ELEMENT == 2
            uint2 both;
            PACK2(both.x, v[0], v[1]);
            PACK2(both.y, v[2], v[3]);
            *(uint2 *)to = both;
#else
#pragma unroll
            for (int f = 0; f < 4; f++)
                ROUND_TF32(v[f]);
            *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
#endif
        }
    }
    return true;
}
#undef LOAD_PHASE
#undef MULTIPLY
#undef LOAD_TAP
#undef LANE_BYTES
#undef HELD
#undef QUADS
#undef SUM_ROW
#undef TAP_BYTES
#undef CHAINS
#undef DIST
#undef BN
#undef BM
#undef NF
#undef MF
#undef CONV
