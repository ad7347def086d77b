/* probe_wgmma: one product of a 64-row and a 64-column matrix, 128 bytes deep, through every
 * special instruction that the warpgroup kernels need: cp.async, the fence to the asynchronous
 * proxy, ldmatrix, wgmma with swizzled shared memory. in is 128 lines of 128 bytes, the 64 rows and
 * then the 64 columns; out is [64][64]. Whether it builds and what it gives decides if those
 * kernels are used.
 *
 * The compiler's target has no wgmma. Instructions behind HIDE are comments to it; the program
 * takes the mark out of the text that comes of it and raises its target to the one named there.
 * Group: one warpgroup. Grid: one group. */
#ifndef PRECISION
#define PRECISION 3 /* lap_precision: 2 tf32, 3 fp16, 4 bf16 */
#endif

#if PRECISION == 2
#define WGMMA_TYPE "k8.f32.tf32.tf32"
#define WGMMA_ORDER ""
#elif PRECISION == 3
#define WGMMA_TYPE "k16.f32.f16.f16"
#define WGMMA_ORDER ", 0"
#elif PRECISION == 4
#define WGMMA_TYPE "k16.f32.bf16.bf16"
#define WGMMA_ORDER ", 0"
#else
#error "only tf32, fp16 and bf16 have these matrix instructions"
#endif

#define HIDE "//@sm_90a "
#define ROWB 128
#define ROWS 64
#define COLUMNS 64
#define THREADS 128

typedef unsigned int u32;
typedef unsigned long u64;

#define SUM4(c) "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void
probe_wgmma(__global const char *restrict in, __global float *restrict out) {
    __local char shared[(ROWS + COLUMNS) * ROWB] __attribute__((aligned(1024)));
    const u32 tid = get_local_id(0), lane = tid & 31, warp = tid >> 5;
    const u32 base = (u32)(size_t)shared;
    for (u32 i = tid; i < (ROWS + COLUMNS) * ROWB / 16; i += THREADS) {
        const u32 line = i / 8, to = base + line * ROWB + ((i % 8 ^ (line & 7)) << 4);
        __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + i * 16)
                         : "memory");
    }
    __asm__ volatile("cp.async.commit_group;" ::: "memory");
    __asm__ volatile("cp.async.wait_group 0;" ::: "memory");
    __asm__ volatile(HIDE "fence.proxy.async.shared::cta;" ::: "memory");
    barrier(CLK_LOCAL_MEM_FENCE);
    float c[8][4];
    for (int j = 0; j < 8; j++)
        for (int e = 0; e < 4; e++)
            c[j][e] = 0.0f;
    const u32 row = warp * 16 + (lane & 15);
    /* Rows of 128 bytes, 8 of them a pattern of 1024, swizzled; addresses in units of 16. */
    const u64 columns = 1ul << 62 | 64ul << 32 | 1ul << 16 | (base + ROWS * ROWB) >> 4;
    u32 a[ROWB / 32][4];
#pragma unroll
    for (u32 k = 0; k < ROWB / 32; k++)
        __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                         : "r"(base + row * ROWB + ((2 * k + (lane >> 4) ^ (row & 7)) << 4))
                         : "memory");
    __asm__ volatile(HIDE "wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (u32 k = 0; k < ROWB / 32; k++)
        __asm__ volatile(
            HIDE
            "{.reg .pred add; setp.ne.u32 add, %37, 0; "
            "wgmma.mma_async.sync.aligned.m64n64" WGMMA_TYPE
            " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
            "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, "
            "%34, %35}, %36, add, 1, 1" WGMMA_ORDER ";}"
            : SUM4(c[0]), SUM4(c[1]), SUM4(c[2]), SUM4(c[3]), SUM4(c[4]), SUM4(c[5]), SUM4(c[6]),
              SUM4(c[7])
            : "r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]), "l"(columns + k * 2), "r"(1)
            : "memory");
    __asm__ volatile(HIDE "wgmma.commit_group.sync.aligned;" ::: "memory");
    __asm__ volatile(HIDE "wgmma.wait_group.sync.aligned 0;"
                     : SUM4(c[0]), SUM4(c[1]), SUM4(c[2]), SUM4(c[3]), SUM4(c[4]), SUM4(c[5]),
                       SUM4(c[6]), SUM4(c[7])::"memory");
    const u32 at = (warp * 16 + lane / 4) * COLUMNS + lane % 4 * 2;
    for (int j = 0; j < 8; j++)
        for (int e = 0; e < 4; e++)
            out[at + e / 2 * 8 * COLUMNS + j * 8 + e % 2] = c[j][e];
}
