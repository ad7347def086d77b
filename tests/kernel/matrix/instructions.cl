/* The matrix instructions of conv_matrix on a device that has none: put in front of its text (see
 * rows_device.c, which also declares emulated_room in the kernel). Each is written down from its
 * vendor's description, by element: which work-item holds row, column and depth of what. Operands
 * are exchanged through local memory between two barriers, so all work-items of a group must reach
 * every instruction together. */
#define __gfx90a__ 1
#define __gfx1100__ 1
#undef __clang_major__
#define __clang_major__ 16
#define cl_intel_subgroup_matrix_multiply_accumulate 1
#define get_sub_group_local_id() (get_local_id(0) % WAVE)
#define get_sub_group_id() (get_local_id(0) / WAVE)
#undef as_half4
#undef as_half16
#define as_half4(v) (v)
#define as_half16(v) (v)

#define ROOM_WORDS 16 /* of a work-item: up to 8 of each operand */
#define ROOM_B 8

/* Small code, which compiles faster than it would run otherwise. */
#define SLOWLY _Pragma("clang loop unroll(disable) vectorize(disable)")
#define INLINE __attribute__((always_inline)) static

/* Element i of 16-bit floats. */
INLINE float element(__local const uint *words, uint i) {
#if PRECISION == 3
    return vload_half(i, (__local const half *)words);
#else
    return as_float((uint)((__local const ushort *)words)[i] << 16);
#endif
}

INLINE void put8(__local uint *to, uint8 v) {
    to[0] = v.s0, to[1] = v.s1, to[2] = v.s2, to[3] = v.s3;
    to[4] = v.s4, to[5] = v.s5, to[6] = v.s6, to[7] = v.s7;
}

INLINE uint8 wide2(uint2 v) {
    return (uint8)(v, 0, 0, 0, 0, 0, 0);
}

INLINE uint8 wide4(uint4 v) {
    return (uint8)(v, 0, 0, 0, 0);
}

/* Everybody's operands; returns the room of the sub-group's first work-item. */
INLINE __local uint *exchange(uint8 a, uint8 b, uint wave, __local uint *room) {
    const uint l = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    put8(room + l * ROOM_WORDS, a);
    put8(room + l * ROOM_WORDS + ROOM_B, b);
    barrier(CLK_LOCAL_MEM_FENCE);
    return room + l / wave * wave * ROOM_WORDS;
}

/* v_mfma_f32_16x16x16f16 and bf16_1k: A[i][k] is element k % 4 of work-item i + 16 * (k / 4),
 * B[k][j] element k % 4 of j + 16 * (k / 4), D[i][j] element i % 4 of j + 16 * (i / 4). */
INLINE float4 mfma(uint2 a, uint2 b, float4 c, __local uint *room) {
    __local uint *all = exchange(wide2(a), wide2(b), 64, room);
    const uint l = get_local_id(0) % 64, column = l % 16;
    float sums[4] = {c.x, c.y, c.z, c.w};
    SLOWLY for (uint e = 0; e < 4; e++)
        SLOWLY for (uint k = 0; k < 16; k++) {
            const uint row = l / 16 * 4 + e;
            sums[e] += element(all + (row + k / 4 * 16) * ROOM_WORDS, k % 4) *
                       element(all + (column + k / 4 * 16) * ROOM_WORDS + ROOM_B, k % 4);
        }
    return (float4)(sums[0], sums[1], sums[2], sums[3]);
}

/* v_wmma_f32_16x16x16_f16 and bf16 of 32: work-items l and l + 16 both hold row l of A and column l
 * of B (NaN here if they differ); D[i][j] is element i / 2 of work-item j + 16 * (i % 2). */
INLINE float8 wmma(uint8 a, uint8 b, float8 c, __local uint *room) {
    __local uint *all = exchange(a, b, 32, room);
    const uint l = get_local_id(0) % 32, column = l % 16;
    float sums[8] = {c.s0, c.s1, c.s2, c.s3, c.s4, c.s5, c.s6, c.s7};
    uint differ = 0;
    SLOWLY for (uint i = 0; i < 16 * ROOM_WORDS; i++)
        differ |= all[i] ^ all[16 * ROOM_WORDS + i];
    SLOWLY for (uint e = 0; e < 8; e++) {
        const uint row = e * 2 + l / 16;
        SLOWLY for (uint k = 0; k < 16; k++)
            sums[e] += element(all + row * ROOM_WORDS, k) *
                       element(all + column * ROOM_WORDS + ROOM_B, k);
        if (differ) sums[e] = NAN;
    }
    return (float8)(sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7]);
}

/* intel_sub_group_*_matrix_mad_k16 with 8 rows: B[2 * j + h][n] is half h of component j of
 * work-item n, D[m][n] component m of n. A[m] is spread over the sub-group: component m of
 * work-item i has depths 2 * i and 2 * i + 1 in sub-groups of 8, depth i in those of 16. */
INLINE float8 dpas(uint8 a, uint8 b, float8 c, uint wave, __local uint *room) {
    __local uint *all = exchange(a, b, wave, room);
    const uint column = get_local_id(0) % wave;
    float sums[8] = {c.s0, c.s1, c.s2, c.s3, c.s4, c.s5, c.s6, c.s7};
    SLOWLY for (uint m = 0; m < 8; m++)
        SLOWLY for (uint k = 0; k < 16; k++) {
            const uint item = wave == 8 ? k / 2 : k, at = wave == 8 ? m * 2 + k % 2 : m;
            sums[m] += element(all + item * ROOM_WORDS, at) *
                       element(all + column * ROOM_WORDS + ROOM_B, k);
        }
    return (float8)(sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7]);
}

#define __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, x, y, z)                                    \
    mfma(as_uint2(a), as_uint2(b), c, emulated_room)
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k __builtin_amdgcn_mfma_f32_16x16x16f16
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c)                                        \
    wmma(as_uint8(a), as_uint8(b), c, emulated_room)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32 __builtin_amdgcn_wmma_f32_16x16x16_f16_w32
#define intel_sub_group_f16_f16_matrix_mad_k16(a, b, c)                                            \
    dpas(a_words(a), as_uint8(b), c, WAVE, emulated_room)
#define intel_sub_group_bf16_bf16_matrix_mad_k16 intel_sub_group_f16_f16_matrix_mad_k16
#if FORM == 3
#define a_words(a) as_uint8(a)
#else
#define a_words(a) wide4(as_uint4(a))
#endif

/* Component j of work-item i is element j * size + i. */
#define BLOCK_READ8(type, p, at)                                                                   \
    (type)((p)[at], (p)[WAVE + at], (p)[2 * WAVE + at], (p)[3 * WAVE + at], (p)[4 * WAVE + at],    \
           (p)[5 * WAVE + at], (p)[6 * WAVE + at], (p)[7 * WAVE + at])
#define intel_sub_group_block_read8(p) BLOCK_READ8(uint8, p, get_sub_group_local_id())
#define intel_sub_group_block_read_us8(p) BLOCK_READ8(ushort8, p, get_sub_group_local_id())
