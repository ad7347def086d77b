/* conv_matrix: convolution + bias [+ residual] [+ activation] as an implicit matrix product through
 * the matrix instructions of AMD and Intel GPUs; fp16 or bf16 operands, fp32 sums.
 *
 * Rows of the product are output channels, columns are output pixels (all images in one long line),
 * depth is (r, s, c) in steps of 16 channels, then, with C2 defined, the channels of in2, whose 1x1
 * convolution with step STRIDE2 is the residual. A sub-group (AMD: a wave) makes a WM x WN tile of
 * fragments of ROWS x COLUMNS. Both operands go from global memory to registers: each work-item
 * reads channels of its own pixel, zeros outside the image and beyond CS; weights come packed as
 * [fragment of ROWS channels][step], a fragment as the instruction wants it. Since a column of the
 * result belongs to one work-item, that has runs of neighbouring channels of a pixel to store.
 *
 * With TEAMS > 1 that many sub-groups share a tile, each taking a part of the steps; the first one
 * adds the others' sums in their order.
 *
 * What FORM stands for is in one place below. Its layouts:
 *   work-item l      weights (row, depth)                   sums (row, column l % COLUMNS)
 *   1  MFMA, 64      l % 16, l / 16 * 4 + 0..3              l / 16 * 4 + 0..3
 *   2  WMMA, 32      l % 16, 0..15                          l / 16 + 0, 2, 4 .. 14
 *   3  Intel, 8      0..7, l * 2 + 0..1 (a block read)      0..7
 *   4  Intel, 16     0..7, l (a block read)                 0..7
 * and for the input's column l % COLUMNS: 1 the same depth as of weights, else 0..15. Packed rows
 * of form 2 are in an order that makes its channels of a work-item neighbours.
 *
 * Group: GM * GN * TEAMS sub-groups. Grid: x = tiles of GN * WN pixels and GM * WM channels, the
 * latter fastest. Must not: assume another size of sub-groups than it asks for, write outside out.
 * Any other compiler than the form's refuses it, which is how the form is found. */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of 4 */
#endif
#ifndef H
#define H 1 /* input height */
#endif
#ifndef W
#define W 1 /* input width */
#endif
#ifndef K
#define K 64 /* output channels */
#endif
#ifndef KS
#define KS 64 /* output channel stride, >= K, a multiple of 4 */
#endif
#ifndef P
#define P 1 /* output height */
#endif
#ifndef Q
#define Q 1 /* output width */
#endif
#ifndef R
#define R 1 /* window height, at most 15 */
#endif
#ifndef S
#define S 1 /* window width, at most 15 */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window in both directions */
#endif
#ifndef PAD
#define PAD 0 /* border of zeros in both directions */
#endif
#ifndef ACT
#define ACT 0 /* lap_activation of the results: 2 SiLU, 3 sigmoid, else as flags say */
#endif
#ifndef C2
#define C2 0 /* the partner's input channels; 0: there is no partner */
#endif
#ifndef CS2
#define CS2 0 /* the partner's input channel stride */
#endif
#ifndef H2
#define H2 1 /* the partner's input height */
#endif
#ifndef W2
#define W2 1 /* the partner's input width */
#endif
#ifndef STRIDE2
#define STRIDE2 1 /* the partner's step */
#endif
#ifndef FORM
#define FORM 1 /* which instructions: see above */
#endif
#ifndef WM
#define WM 32 /* channels of a sub-group's tile, a multiple of 16 */
#endif
#ifndef WN
#define WN 32 /* pixels of a sub-group's tile, a multiple of 16 */
#endif
#ifndef GM
#define GM 1 /* such tiles of a group, channels */
#endif
#ifndef GN
#define GN 1 /* ... and pixels */
#endif
#ifndef TEAMS
#define TEAMS 1 /* sub-groups that share a tile */
#endif
#ifndef PRECISION
#define PRECISION 3 /* lap_precision: 3 fp16, 4 bf16 */
#endif

#if PRECISION != 3 && PRECISION != 4
#error "this kernel computes in fp16 and bf16 only"
#endif

/* ---- the instructions ----------------------------------------------------------------------- */

/* WAVE work-items, fragments of ROWS x COLUMNS, QUADS runs of 4 channels of its pixel that a
 * work-item reads in a step, RUN neighbouring rows of its column that it has sums of. */
#if FORM == 1 || FORM == 2
/* Asked for by name: on neighbours that have other instructions (gfx12), or some of these (bf16 on
 * gfx908), and where they are new (gfx11, clang 15), compilers were seen to die instead of to
 * refuse. */
#if FORM == 1 && !defined(__gfx90a__) && !defined(__gfx940__) && !defined(__gfx941__) &&           \
    !defined(__gfx942__) && !defined(__gfx950__) && !(defined(__gfx908__) && PRECISION == 3)
#error "this device is not known to have these MFMA instructions"
#endif
#if FORM == 2 && !defined(__GFX11__) && !defined(__gfx1100__) && !defined(__gfx1101__) &&          \
    !defined(__gfx1102__) && !defined(__gfx1103__)
#error "this device is not known to have these WMMA instructions"
#endif
#if FORM == 2 && __clang_major__ < 16
#error "this compiler is too old for WMMA instructions"
#endif
#if PRECISION == 3
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#define SUBGROUP_SIZE
#define LANE (get_local_id(0) % WAVE)
#define SUBGROUP (get_local_id(0) / WAVE)
#endif
#if FORM == 1
#define WAVE 64
#define ROWS 16
#define COLUMNS 16
#define QUADS 1
#define RUN 4
typedef uint2 weight_part;
#define LOAD_WEIGHTS(from) ((__global const uint2 *)(from))[lane]
#if PRECISION == 3
#define MULTIPLY(a, b, c)                                                                          \
    __builtin_amdgcn_mfma_f32_16x16x16f16(as_half4(a), as_half4(b), c, 0, 0, 0)
#else
#define MULTIPLY(a, b, c)                                                                          \
    __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_short4(a), as_short4(b), c, 0, 0, 0)
#endif
#elif FORM == 2
#define WAVE 32
#define ROWS 16
#define COLUMNS 16
#define QUADS 4
#define RUN 8
typedef uint8 weight_part;
#define LOAD_WEIGHTS(from) ((__global const uint8 *)(from))[lane % 16]
#if PRECISION == 3
#define MULTIPLY(a, b, c)                                                                          \
    __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16(a), as_half16(b), c)
#else
#define MULTIPLY(a, b, c)                                                                          \
    __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(as_short16(a), as_short16(b), c)
#endif
#elif FORM == 3 || FORM == 4
#ifndef cl_intel_subgroup_matrix_multiply_accumulate
#error "the compiler does not say that it has cl_intel_subgroup_matrix_multiply_accumulate"
#endif
#define ROWS 8
#define QUADS 4
#define RUN 8
#define SUBGROUP_SIZE , intel_reqd_sub_group_size(WAVE)
#define LANE get_sub_group_local_id()
#define SUBGROUP get_sub_group_id()
#if FORM == 3
#define WAVE 8
#define COLUMNS 8
typedef int8 weight_part;
#define LOAD_WEIGHTS(from) as_int8(intel_sub_group_block_read8((__global const uint *)(from)))
#else
#define WAVE 16
#define COLUMNS 16
typedef short8 weight_part;
#define LOAD_WEIGHTS(from)                                                                         \
    as_short8(intel_sub_group_block_read_us8((__global const ushort *)(from)))
#endif
#if PRECISION == 3
#define MULTIPLY(a, b, c) intel_sub_group_f16_f16_matrix_mad_k16(a, as_int8(b), c)
#else
#define MULTIPLY(a, b, c) intel_sub_group_bf16_bf16_matrix_mad_k16(a, as_int8(b), c)
#endif
#else
#error "FORM must be 1, 2, 3 or 4"
#endif

/* ---- the product ---------------------------------------------------------------------------- */

#define STEP 16 /* channels */
#define CHUNKS ((CS + STEP - 1) / STEP)
#define STEPS_OWN (R * S * CHUNKS) /* the partner's follow */
#define STEPS (STEPS_OWN + (CS2 + STEP - 1) / STEP)
#define TURNS ((STEPS + TEAMS - 1) / TEAMS)
#define FRAGMENTS ((KS + ROWS - 1) / ROWS)
#define FRAGMENT_BYTES (ROWS * STEP * 2)
#define MI (WM / ROWS)
#define NI (WN / COLUMNS)
#define SUBGROUPS (GM * GN)
#define THREADS (SUBGROUPS * TEAMS * WAVE)
#define TILES_M ((KS + GM * WM - 1) / (GM * WM))
#define SUMS ((TEAMS - 1) * SUBGROUPS * WM * WN / 4)
#if CS % 8 == 0 && CS2 % 8 == 0
#define PIECE 8 /* channels that are read at once, aligned to their size */
#else
#define PIECE 4
#endif
#if ACT == 2
#define ACTIVATE(v) ((v) / (1.0f + exp(-(v))))
#elif ACT == 3
#define ACTIVATE(v) (1.0f / (1.0f + exp(-(v))))
#endif
#define FLAG_RELU 1
#define FLAG_RESIDUAL 2

#if RUN == 4
typedef float4 sums_part;
#define QUAD(sums, q) (sums)
#else
typedef float8 sums_part;
#define QUAD(sums, q) ((q) == 0 ? (sums).lo : (sums).hi)
#endif
#if QUADS == 1
typedef uint2 pixel_part;
#else
typedef uint8 pixel_part;
#endif

/* Channels from `from` on, zeros if there are none; left: channels until the pixel's end. */
__attribute__((always_inline)) static pixel_part load_pixel(__global const ushort *from,
                                                            bool inside, int left) {
#if QUADS == 1
    return inside && left > 0 ? *(__global const uint2 *)from : (uint2)(0);
#else
    uint8 v = (uint8)(0);
    if (!inside) return v;
#if PIECE == 8
    v.lo = *(__global const uint4 *)from;
    if (left > 8) v.hi = *(__global const uint4 *)(from + 8);
#else
    v.s01 = *(__global const uint2 *)from;
    if (left > 4) v.s23 = *(__global const uint2 *)(from + 4);
    if (left > 8) v.s45 = *(__global const uint2 *)(from + 8);
    if (left > 12) v.s67 = *(__global const uint2 *)(from + 12);
#endif
    return v;
#endif
}

#if PRECISION == 3
#define LOAD4(p) vloada_half4(0, (__global const half *)(p))
#define STORE4(p, v) vstorea_half4_rte(v, 0, (__global half *)(p))
#else
#define LOAD4(p) as_float4(convert_uint4(*(__global const ushort4 *)(p)) << 16)
#define STORE4(p, v) (*(__global ushort4 *)(p) = narrow4(v))
/* To nearest, ties to even; infinity and NaN stay. */
__attribute__((always_inline)) static ushort4 narrow4(float4 v) {
    const uint4 bits = as_uint4(v), even = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const uint4 special = bits >> 16 | select((uint4)(0), (uint4)(0x40u), (bits & 0x7fffffu) != 0u);
    return convert_ushort4(select(even, special, (bits & 0x7f800000u) == 0x7f800000u));
}
#endif

/* Both operands of a step; beyond the last one, zeros times anything that is there. */
#define LOAD(a, b, step)                                                                           \
    {                                                                                              \
        const uint own_ = min((uint)(step), STEPS_OWN - 1u), tap_ = own_ / CHUNKS;                 \
        const uint r_ = tap_ / S, s_ = tap_ % S;                                                   \
        const bool partner_ = C2 > 0 && (step) >= STEPS_OWN;                                       \
        const int c_ = (int)(partner_ ? (step)-STEPS_OWN : own_ % CHUNKS) * STEP + quad * 4;       \
        const int left_ = (partner_ ? CS2 : CS) - c_;                                              \
        _Pragma("unroll") for (int j = 0; j < NI; j++) {                                           \
            const bool inside_ = partner_ ? valid[j] != 0                                          \
                                          : (valid[j] >> r_ & valid[j] >> (16 + s_) & 1) != 0;     \
            __global const ushort *from_ =                                                         \
                partner_ ? images2 + (offset2[j] + c_)                                             \
                         : images + (offset[j] + (int)(r_ * W + s_) * CS + c_);                    \
            (b)[j] = load_pixel(from_, inside_ && (step) < STEPS, left_);                          \
        }                                                                                          \
        const uint at_ = min((uint)(step), STEPS - 1u) * FRAGMENT_BYTES;                           \
        _Pragma("unroll") for (int i = 0; i < MI; i++)(a)[i] =                                     \
            LOAD_WEIGHTS(weights_from + (fragment[i] + at_));                                      \
    }

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1) SUBGROUP_SIZE)) void
conv_matrix(__global const ushort *restrict in, __global const ushort *restrict weights,
            __global const float *restrict bias, __global const ushort *restrict residual,
            __global ushort *restrict out, __global const ushort *restrict in2, const int n,
            const int flags) {
#if TEAMS > 1
    __local float4 shared[SUMS];
#endif
    const uint lane = LANE, subgroup = SUBGROUP % SUBGROUPS, team = SUBGROUP / SUBGROUPS;
    const uint group = get_group_id(0), tile_m = group % TILES_M, tile_n = group / TILES_M;
    const ulong rows = (ulong)n * (P * Q);
    const ulong row0 = ((ulong)tile_n * GN + subgroup / GM) * WN;
    const uint k0 = (tile_m * GM + subgroup % GM) * WM;
    const uint image0 = (uint)(row0 / (P * Q));
    const uint pixel0 = (uint)(row0 - (ulong)image0 * (P * Q));
    const int quad = QUADS == 1 ? (int)(lane / COLUMNS) : 0; /* first one of the step's four */

    /* This work-item's pixels. Bit r: window row r lies inside the image; bit 16 + s: column s. */
    __global const ushort *images = in + (ulong)image0 * ((ulong)H * W * CS);
    __global const ushort *images2 = in2 + (ulong)image0 * ((ulong)H2 * W2 * CS2);
    int offset[NI], offset2[NI];
    uint valid[NI];
#pragma unroll
    for (int j = 0; j < NI; j++) {
        const uint t = pixel0 + j * COLUMNS + lane % COLUMNS;
        const uint image = t / (P * Q), pixel = t % (P * Q);
        const int y = (int)(pixel / Q) * STRIDE - PAD, x = (int)(pixel % Q) * STRIDE - PAD;
        uint bits = 0;
#pragma unroll
        for (int r = 0; r < R; r++)
            bits |= (uint)(y + r) < H ? 1u << r : 0;
#pragma unroll
        for (int s = 0; s < S; s++)
            bits |= (uint)(x + s) < W ? 0x10000u << s : 0;
#if C2 > 0
        bits |= 1u << 15; /* so that a pixel of the output has a bit in any case */
#endif
        valid[j] = (ulong)image0 + image < (ulong)n ? bits : 0;
        offset[j] = ((int)image * (H * W) + y * W + x) * CS;
        offset2[j] = ((int)image * (H2 * W2) + (int)(pixel / Q * W2 + pixel % Q) * STRIDE2) * CS2;
    }
    /* Fragments beyond the last one are computed, and not stored. */
    __global const char *weights_from = (__global const char *)weights;
    uint fragment[MI];
#pragma unroll
    for (int i = 0; i < MI; i++)
        fragment[i] = min(k0 / ROWS + i, FRAGMENTS - 1u) * (STEPS * FRAGMENT_BYTES);

    sums_part acc[MI][NI];
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
        for (int j = 0; j < NI; j++)
            acc[i][j] = (sums_part)(0.0f);

    /* Every team makes as many turns as the others. The next step's operands are on their way while
     * one is multiplied. */
    weight_part a[MI], a_next[MI];
    pixel_part b[NI], b_next[NI];
    const uint begin = team * TURNS;
    LOAD(a_next, b_next, begin)
#pragma unroll 1 /* unrolled, small layers would spill */
    for (uint turn = 0; turn < TURNS; turn++) {
#pragma unroll
        for (int i = 0; i < MI; i++)
            a[i] = a_next[i];
#pragma unroll
        for (int j = 0; j < NI; j++)
            b[j] = b_next[j];
        const uint next = begin + min(turn + 1, TURNS - 1u);
        LOAD(a_next, b_next, next)
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++)
                acc[i][j] = MULTIPLY(a[i], b[j], acc[i][j]);
    }

#if TEAMS > 1
    /* One quad of every work-item after the other. */
    const uint place = subgroup * WAVE + lane;
    if (team > 0) {
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++)
#pragma unroll
                for (int q = 0; q < RUN / 4; q++)
                    shared[(((team - 1) * MI + i) * NI + j) * (RUN / 4 * SUBGROUPS * WAVE) +
                           q * (SUBGROUPS * WAVE) + place] = QUAD(acc[i][j], q);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (team > 0) return;
#endif

    /* Epilogue: out is [rows][KS], so a row's place needs no division. */
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
        for (int j = 0; j < NI; j++)
#pragma unroll
            for (int q = 0; q < RUN / 4; q++) {
                const uint k = k0 + i * ROWS + lane / COLUMNS * RUN + q * 4;
                const ulong row = row0 + j * COLUMNS + lane % COLUMNS;
                if (k >= KS || row >= rows) continue;
                float4 v = QUAD(acc[i][j], q);
#if TEAMS > 1
#pragma unroll
                for (int z = 0; z < TEAMS - 1; z++)
                    v += shared[((z * MI + i) * NI + j) * (RUN / 4 * SUBGROUPS * WAVE) +
                                q * (SUBGROUPS * WAVE) + place];
#endif
                v += *(__global const float4 *)(bias + k);
                if (flags & FLAG_RESIDUAL) v += LOAD4(residual + row * KS + k);
                if (flags & FLAG_RELU) {
                    v.x = v.x < 0.0f ? 0.0f : v.x, v.y = v.y < 0.0f ? 0.0f : v.y;
                    v.z = v.z < 0.0f ? 0.0f : v.z, v.w = v.w < 0.0f ? 0.0f : v.w;
                }
#if ACT >= 2
                v.x = ACTIVATE(v.x), v.y = ACTIVATE(v.y);
                v.z = ACTIVATE(v.z), v.w = ACTIVATE(v.w);
#if ACT == 3 && K != KS /* of zero it is not zero, which padding must be */
                v.x = k < K ? v.x : 0.0f, v.y = k + 1 < K ? v.y : 0.0f;
                v.z = k + 2 < K ? v.z : 0.0f, v.w = k + 3 < K ? v.w : 0.0f;
#endif
#endif
                STORE4(out + row * KS + k, v);
            }
}
