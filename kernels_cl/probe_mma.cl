/* probe_mma: one product of a 16-row and an 8-column matrix, 32 bytes deep, through every special
 * instruction that the tensor-core kernels need: cp.async, ldmatrix, mma.sync. in is 24 rows of 32
 * bytes, the 16 rows and then the 8 columns; out is [16][8]. Whether it builds and what it gives
 * decides if those kernels are used.
 * Group: one warp. Grid: one group. */
#ifndef PRECISION
#define PRECISION 3 /* lap_precision: 2 tf32, 3 fp16, 4 bf16 */
#endif

#if PRECISION == 2
#define MMA_TYPE "m16n8k8.row.col.f32.tf32.tf32.f32"
#elif PRECISION == 3
#define MMA_TYPE "m16n8k16.row.col.f32.f16.f16.f32"
#elif PRECISION == 4
#define MMA_TYPE "m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#error "only tf32, fp16 and bf16 have these matrix instructions"
#endif
/* The compiler's target may be older than the instructions need; the program that picks kernels
 * tests that by running a small one. */

typedef unsigned int u32;

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void
probe_mma(__global const u32 *restrict in, __global float *restrict out) {
    __local char shared[768] __attribute__((aligned(128)));
    const u32 lane = get_local_id(0);
    const u32 base = (u32)(size_t)shared;
    for (u32 i = lane; i < 48; i += 32)
        __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + i * 16),
                         "l"((__global const char *)in + i * 16)
                         : "memory");
    __asm__ volatile("cp.async.commit_group;" ::: "memory");
    __asm__ volatile("cp.async.wait_group 0;" ::: "memory");
    barrier(CLK_LOCAL_MEM_FENCE);
    u32 a0, a1, a2, a3, b0, b1;
    float c0 = 0.0f, c1 = 0.0f, c2 = 0.0f, c3 = 0.0f;
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3)
                     : "r"(base + (lane & 15) * 32 + (lane >> 4) * 16)
                     : "memory");
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(b0), "=r"(b1)
                     : "r"(base + 512 + (lane & 7) * 32 + (lane >> 3 & 1) * 16)
                     : "memory");
    __asm__ volatile("mma.sync.aligned." MMA_TYPE
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    const u32 at = lane / 4 * 8 + lane % 4 * 2;
    out[at] = c0, out[at + 1] = c1, out[at + 64] = c2, out[at + 65] = c3;
}
