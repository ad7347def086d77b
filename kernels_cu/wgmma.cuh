/* What both kernels with the warpgroup matrix instructions (wgmma) of sm_90a use. */
/* What this thread has copied may be read by wgmma (behind a barrier). */
#define SHOW_COPIES() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define WGMMA_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WGMMA_WAIT(left) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory")
/* Rows of 128 bytes, 8 of them a pattern of 1024, swizzled; the address comes in units of 16. */
#define DESCRIPTOR (1ull << 62 | 64ull << 32 | 1ull << 16)
/* Sums as operands, four for each 8 columns, and their names in the instruction's text. */
#define SUM4(c) "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])
#define SUM16(c, j) SUM4(c[j]), SUM4(c[(j) + 1]), SUM4(c[(j) + 2]), SUM4(c[(j) + 3])
#define SUM64(c, j) SUM16(c, j), SUM16(c, (j) + 4), SUM16(c, (j) + 8), SUM16(c, (j) + 12)
#define SUM_NAMES_32                                                                               \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"                         \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SUM_NAMES_64                                                                               \
    SUM_NAMES_32                                                                                   \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"             \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SUM_NAMES_128                                                                              \
    SUM_NAMES_64                                                                                   \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"             \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"             \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
    "%127"
/* Sums are read behind this only, which no compiler knows by itself. SUM_LIST: the kernel's. */
#define SUMS_DONE(c) asm volatile("" : SUM_LIST(c))
