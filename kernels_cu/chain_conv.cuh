/* Part of chain: a convolution with a window of 3x3, border 1, step 1 or 2, + bias [+
 * residual, stored or made here by a 1x1 convolution of a second input] [+ ReLU]. Included once for
 * every tile, with CONV (its name), MF and NF.
 *
 * A tile is BM pixels times BN channels. Warps are 2 (rows) x 4 (depth): a warp multiplies BM / 2
 * pixels by all BN channels over a quarter of every phase, which is 128 bytes of input channels by
 * all taps; the quarters are added in shared memory. A warp's weights of DIST phases are in its
 * registers. With SPLITS > 1 that many groups share a tile, each with its phases: they leave their
 * sums in scratch, wait for each other, and each adds all parts of its share of the tile's rows.
 * All sums are in a fixed order.
 *
 * The input pixels from the tile's first one to its last, with the image rows around them, are one
 * line of memory. Each tap reads it shifted, and a row that a tap finds outside its image is read
 * from zeros. */
#define BM (MF * 32)
#define BN (NF * 8)
#define DIST (4 / NF)
#define TAP_BYTES (NF * 256) /* weights of a warp for a tap */
#define SUM_ROW (BN + 8)
#define QUADS (BM * BN / 4)
#define HELD (QUADS / THREADS)
#if NF == 2
#define LOAD_TAP(d, from) LOAD_WEIGHTS4(&(d)[0][0], from)
#else
#define LOAD_TAP(d, from)                                                                          \
    LOAD_WEIGHTS4(&(d)[0][0], from);                                                               \
    LOAD_WEIGHTS4(&(d)[2][0], (from) + 512)
#endif
#define MULTIPLY(a, w)                                                                             \
    do {                                                                                           \
        _Pragma("unroll") for (int i = 0; i < MF; i++)                                             \
            _Pragma("unroll") for (int j = 0; j < NF; j++)                                         \
                MMA(acc[i][j], (a)[i], (w)[j][0], (w)[j][1]);                                      \
    } while (0)

static __device__ __forceinline__ bool CONV(char *memory, const char *weights, const int *t,
                                            char *shared, const u32 base, const place *p) {
    const u32 tid = own_id(), lane = tid & 31, warp = tid >> 5;
    const u32 kg = warp & 3, mg = warp >> 2;
    const u32 splits = (u32)t[SPLITS], columns = (u32)t[COLUMNS];
    const int flags = t[FLAGS], buffers = t[BUFFERS];
    const u32 width = (u32)t[IN_W], height = (u32)t[IN_H], pixel_bytes = (u32)t[IN_BYTES];
    const u32 pixels = (u32)t[PIXELS], out_w = (u32)t[OUT_W], rows = (u32)t[ROWS];
    const u32 channels = (u32)t[OUT_C], lines = (u32)t[LINES], window_step = (u32)t[STEP];
    const char *in = memory + (u64)(u32)t[IN] * 16, *second = memory + (u64)(u32)t[SECOND] * 16;
    char *out = memory + (u64)(u32)t[OUT] * 16, *scratch = memory + (u64)(u32)t[SCRATCH] * 16;
    const u32 load_piece = tid & 7, load_row = tid >> 3;
    const u32 a_row = mg * (MF * 16) + (lane & 15), a_byte = kg * 32 + (lane >> 4 << 4);
    const u32 zeros = base + 2 * TABLE_WORDS * 4 + (lane >> 4 << 4);
    const u32 in_pixels = (u32)t[IMAGES] * height * width, quads = QUADS / splits;
    bool waiting = true;

    for (u32 item = blockIdx.x; item < (u32)t[ITEMS]; item += gridDim.x) {
        const u32 part = item % splits, tile = item / splits;
        const u32 column = tile % columns, row0 = tile / columns * BM;
        const int all_phases = t[PHASES], all_tails = t[TAILS];
        const int phase_from = (int)part * all_phases / (int)splits;
        const int phases = ((int)part + 1) * all_phases / (int)splits - phase_from;
        const int tail_from = (int)part * all_tails / (int)splits;
        const int tails = ((int)part + 1) * all_tails / (int)splits - tail_from;
        const char *w_tail = weights + (u64)(u32)t[WEIGHTS] * 16 +
                             (u64)column * ((u32)(all_phases * 9 + all_tails) * (4 * TAP_BYTES)) +
                             lane * 16;
        const char *w_from = w_tail + ((u32)phase_from * 36 + kg * 9) * TAP_BYTES;
        w_tail += (u32)(all_phases * 36 + (int)kg * all_tails + tail_from) * TAP_BYTES;

        /* Zeros first: what is set on some paths only would take a register for the whole launch.
         */
        u32 w[DIST][9][NF][2], w_second[NF][2], residual[HELD][ELEMENT];
#pragma unroll
        for (int d = 0; d < DIST; d++)
#pragma unroll
            for (int tap = 0; tap < 9; tap++) {
#pragma unroll
                for (int j = 0; j < NF; j++)
                    w[d][tap][j][0] = w[d][tap][j][1] = 0;
                if (d < phases) {
                    LOAD_TAP(w[d][tap], w_from + (d * 36 + tap) * TAP_BYTES);
                }
            }
#pragma unroll
        for (int j = 0; j < NF; j++)
            w_second[j][0] = w_second[j][1] = 0;
#pragma unroll
        for (int e = 0; e < HELD; e++)
#pragma unroll
            for (int f = 0; f < ELEMENT; f++)
                residual[e][f] = 0;
        float acc[MF][NF][4];
#pragma unroll
        for (int i = 0; i < MF; i++)
#pragma unroll
            for (int j = 0; j < NF; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    acc[i][j][e] = 0.0f;
        const u32 tail_at = base + HEAD, ring = tail_at + (u32)tails * (BM * LINE);
        if (!waiting) __syncthreads(); /* the last tile's sums have been read */

        /* The second input is older than the step before: its product needs no waiting. */
        if (tails > 0) {
            LOAD_TAP(w_second, w_tail);
#pragma unroll
            for (int i = 0; i < MF; i++) {
                const u32 m = load_row + i * 32, row = row0 + m;
                const u32 image = row / pixels, pixel = row % pixels;
                const u64 at =
                    (u64)image * (u32)t[SECOND_IMAGE] +
                    (pixel / out_w * (u32)t[SECOND_W] + pixel % out_w) * (u32)t[SECOND_STEP];
                const char *from =
                    second + at * (u32)t[SECOND_BYTES] + tail_from * 128 + load_piece * 16;
                for (int chunk = 0; chunk < tails; chunk++)
                    COPY16(tail_at + (chunk * BM + m) * LINE + load_piece * 16,
                           row < rows ? from + chunk * 128 : second, row < rows ? 16 : 0);
            }
            COPY_COMMIT();
            COPY_WAIT(0);
            __syncthreads();
#pragma unroll 1
            for (int chunk = 0; chunk < tails; chunk++) {
                u32 a[MF][4];
#pragma unroll
                for (int i = 0; i < MF; i++)
                    LOAD_MATRICES(a[i], tail_at + (chunk * BM + a_row + i * 16) * LINE + a_byte);
                MULTIPLY(a, w_second);
                if (chunk + 1 < tails) {
                    LOAD_TAP(w_second, w_tail + (chunk + 1) * TAP_BYTES);
                }
            }
        }

        /* All that addresses need, before the input is there. Input pixels under the middle of the
         * window are counted in one line of all images. */
        const u32 pixel0 = row0 % pixels;
        const u32 middle0 = row0 / pixels * (height * width) +
                            (pixel0 / out_w * width + pixel0 % out_w) * window_step;
        u32 inside[MF], a_at[MF];
#pragma unroll
        for (int i = 0; i < MF; i++) {
            const u32 row = row0 + a_row + i * 16, pixel = row % pixels;
            const u32 y = pixel / out_w * window_step, x = pixel % out_w * window_step;
            const u32 middle = row / pixels * (height * width) + y * width + x;
            u32 bits = 0;
#pragma unroll
            for (int r = 0; r < 3; r++)
#pragma unroll
                for (int s = 0; s < 3; s++)
                    bits |= y + r - 1 < height && x + s - 1 < width ? 1u << (r * 3 + s) : 0;
            inside[i] = row < rows ? bits : 0;
            a_at[i] = ring + (middle - middle0) * LINE + a_byte;
        }
        /* This thread's results: quads of channels; their bias and residual. */
        const u32 out_first = splits > 1 ? part * quads + tid : tid;
        const float4 add = *(const float4 *)(weights + (u64)(u32)t[BIAS] * 16 +
                                             (column * BN + tid % (BN / 4) * 4) * 4);
        if (flags & FLAG_RESIDUAL) { /* older than the step before, too */
#pragma unroll
            for (int e = 0; e < HELD; e++) {
                const u32 quad = out_first + e * THREADS, row = row0 + quad / (BN / 4);
                if ((splits > 1 && (e > 0 || tid >= quads)) || row >= rows) continue;
                const char *from =
                    second + ((u64)row * channels + column * BN + quad % (BN / 4) * 4) * ELEMENT;
#if ELEMENT == 2
                LOAD_SHARED_HALF(residual[e], from);
#else
                LOAD_SHARED_PIECE(residual[e], from);
#endif
            }
        }
        char *counter = scratch + (u64)tile * 128;
        u64 met = splits > 1 ? count_now(counter) : 0;
        met += splits - (u32)met % splits;
        const u32 pixel_first = middle0 - width - 1 + load_row; /* below 0 is very large */
        const char *load_from = in + (long long)(int)pixel_first * (int)pixel_bytes +
                                phase_from * 128 + load_piece * 16;
        if (waiting && !AWAIT(p)) return false;
        waiting = false;

#define LOAD_PHASE(phase, buffer)                                                                  \
    do {                                                                                           \
        u32 to_ = ring + ((u32)(buffer)*lines + load_row) * LINE + load_piece * 16;                \
        const char *from_ = load_from + (phase)*128;                                               \
        u32 pixel_ = pixel_first;                                                                  \
        _Pragma("unroll 2") for (u32 line_ = load_row; line_ < lines; line_ += 32) {               \
            const bool real = pixel_ < in_pixels;                                                  \
            COPY16(to_, real ? from_ : in, real ? 16 : 0);                                         \
            to_ += 32 * LINE, from_ += 32 * pixel_bytes, pixel_ += 32;                             \
        }                                                                                          \
        COPY_COMMIT();                                                                             \
    } while (0)

        const int at_first = buffers < phases ? buffers : phases;
#pragma unroll 1
        for (int phase = 0; phase < at_first; phase++)
            LOAD_PHASE(phase, phase);
        const u32 row_bytes = width * LINE;
        int buffer = 0;
#pragma unroll 1
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
                    default:
                        COPY_WAIT(3);
                        break;
                    }
                    __syncthreads();
                    const u32 shift = (u32)buffer * (lines * LINE);
                    const bool more = phase + DIST < phases;
                    u32 a[2][MF][4]; /* of this tap and the next */
#define LOAD_TAP_ROWS(tap)                                                                         \
    _Pragma("unroll") for (int i = 0; i < MF; i++) LOAD_MATRICES(                                  \
        a[(tap) % 2][i], inside[i] >> (tap)&1                                                      \
                             ? a_at[i] + (shift + (tap) / 3 * row_bytes + (tap) % 3 * LINE)        \
                             : zeros)
                    LOAD_TAP_ROWS(0);
#pragma unroll
                    for (int tap = 0; tap < 9; tap++) {
                        if (tap < 8) LOAD_TAP_ROWS(tap + 1);
                        MULTIPLY(a[tap % 2], w[d][tap]);
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
                float2 *to =
                    (float2 *)(sums + (kg * BM + mg * (MF * 16) + i * 16 + (lane >> 2)) * SUM_ROW +
                               j * 8 + (lane & 3) * 2);
                to[0] = make_float2(acc[i][j][0], acc[i][j][1]);
                to[4 * SUM_ROW] = make_float2(acc[i][j][2], acc[i][j][3]);
            }
        __syncthreads();
        float v[HELD][4];
#pragma unroll
        for (int e = 0; e < HELD; e++) {
            const u32 quad = tid + e * THREADS, m = quad / (BN / 4), n = quad % (BN / 4) * 4;
            v[e][0] = v[e][1] = v[e][2] = v[e][3] = 0.0f;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float4 s = *(const float4 *)(sums + (k * BM + m) * SUM_ROW + n);
                v[e][0] += s.x, v[e][1] += s.y, v[e][2] += s.z, v[e][3] += s.w;
            }
        }
        if (splits > 1) {
            char *parts = scratch + (u64)(u32)t[TILES] * 128 + (u64)tile * (splits * (QUADS * 16));
#pragma unroll
            for (int e = 0; e < HELD; e++)
                STORE_SHARED_PIECE(parts + (part * QUADS + e * THREADS + tid) * 16, v[e]);
            arrive(counter);
            if (!await(counter, met, p->sync, p->over)) return false;
            /* A thread adds HELD neighbouring parts of a quad, then one thread what those gave. */
            const u32 quad = tid % quads, group = tid / quads, groups = THREADS / quads;
            const char *from = parts + (group * HELD * QUADS + part * quads + quad) * 16;
            u32 word[HELD][4];
#pragma unroll
            for (int e = 0; e < HELD; e++)
                LOAD_SHARED_PIECE(word[e], from + e * (QUADS * 16));
#pragma unroll
            for (int f = 0; f < 4; f++) {
                v[0][f] = __uint_as_float(word[0][f]);
#pragma unroll
                for (int e = 1; e < HELD; e++)
                    v[0][f] += __uint_as_float(word[e][f]);
            }
            *(float4 *)(sums + tid * 4) = make_float4(v[0][0], v[0][1], v[0][2], v[0][3]);
            __syncthreads();
            if (tid < quads) {
                for (u32 g = 1; g < groups; g++) {
                    const float4 s = *(const float4 *)(sums + (g * quads + tid) * 4);
                    v[0][0] += s.x, v[0][1] += s.y, v[0][2] += s.z, v[0][3] += s.w;
                }
            }
        }
#pragma unroll
        for (int e = 0; e < HELD; e++) {
            const u32 quad = out_first + e * THREADS, row = row0 + quad / (BN / 4);
            const u32 k = column * BN + quad % (BN / 4) * 4;
            if ((splits > 1 && (e > 0 || tid >= quads)) || row >= rows) continue;
            v[e][0] += add.x, v[e][1] += add.y, v[e][2] += add.z, v[e][3] += add.w;
            if (flags & FLAG_RESIDUAL) {
#if ELEMENT == 2
                float low, high;
                UNPACK2(residual[e][0], low, high);
                v[e][0] += low, v[e][1] += high;
                UNPACK2(residual[e][1], low, high);
                v[e][2] += low, v[e][3] += high;
#else
#pragma unroll
                for (int f = 0; f < 4; f++)
                    v[e][f] += __uint_as_float(residual[e][f]);
#endif
            }
            if (flags & FLAG_RELU) {
#pragma unroll
                for (int f = 0; f < 4; f++)
                    v[e][f] = v[e][f] < 0.0f ? 0.0f : v[e][f];
            }
            char *to = out + ((u64)row * channels + k) * ELEMENT;
#if ELEMENT == 2
            uint2 both;
            PACK2(both.x, v[e][0], v[e][1]);
            PACK2(both.y, v[e][2], v[e][3]);
            *(uint2 *)to = both;
#else
#pragma unroll
            for (int f = 0; f < 4; f++)
                ROUND_TF32(v[e][f]);
            *(float4 *)to = make_float4(v[e][0], v[e][1], v[e][2], v[e][3]);
#endif
        }
    }
    return true;
}
#undef LOAD_TAP_ROWS
#undef LOAD_PHASE
#undef MULTIPLY
#undef LOAD_TAP
#undef HELD
#undef QUADS
#undef SUM_ROW
#undef TAP_BYTES
#undef DIST
#undef BN
#undef BM
#undef NF
#undef MF
#undef CONV
