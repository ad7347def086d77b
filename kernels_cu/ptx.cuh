/* Instructions of NVIDIA's GPUs that several kernels use. Behind PRECISION; MMA also wants
 * MMA_TYPE, the shape and types of mma.sync. Addresses in shared memory are 32-bit numbers. */
typedef unsigned int u32;
typedef unsigned long long u64;
/* 16 or 8 bytes to shared memory without passing through registers; zeros if bytes is 0. */
#define COPY16(to, from, bytes)                                                                    \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)  \
                 : "memory")
#define COPY8(to, from, bytes)                                                                     \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(bytes)   \
                 : "memory")
#define COPY_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPY_WAIT(left) asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory")
#define WARP_BARRIER() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
/* Four 8 x 8 matrices of 16-bit elements; each lane names a row. */
#define LOAD_MATRICES(d, from)                                                                     \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"                \
                 : "=r"((d)[0]), "=r"((d)[1]), "=r"((d)[2]), "=r"((d)[3])                          \
                 : "r"(from)                                                                       \
                 : "memory")
/* c += a * b of a warp. */
#define MMA(c, a, b0, b1)                                                                          \
    asm volatile("mma.sync.aligned." MMA_TYPE                                                      \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                \
                 : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])                          \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b0), "r"(b1))
/* Two neighbouring stored elements from two floats and back. */
#if PRECISION == 1 || PRECISION == 3
#define PACK2(word, low, high)                                                                     \
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low))
#define UNPACK2(word, low, high)                                                                   \
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"              \
        : "=f"(low), "=f"(high)                                                                    \
        : "r"(word))
#elif PRECISION == 4
#define PACK2(word, low, high)                                                                     \
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low))
#define UNPACK2(word, low, high)                                                                   \
    low = __uint_as_float((word) << 16), high = __uint_as_float((word)&0xffff0000u)
#endif
/* A float, or its bits, rounded to tf32. */
#define ROUND_TF32(v) asm("{.reg .b32 t; cvt.rna.tf32.f32 t, %0; mov.b32 %0, t;}" : "+f"(v))
#define ROUND_WORD_TF32(w) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(__uint_as_float(w)))
