/* Compiles every CUDA kernel with the real NVRTC, which needs no GPU: for one architecture all
 * defaults and a part of the tuning space, for three others those defaults that differ in more than
 * the layer's sizes. On the first no default may use more than a small stack frame, which is where
 * spilled registers go. Skipped (77), saying why, without NVRTC.
 * Usage: nvrtc_all [MOST]: how many builds of each row's tuning space. */
#include "cuda/compile.h"
#include "variants.h"

#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_DEFAULT 5
#define MAX_THREADS 8
/* Bytes a thread of a default build may spill. Some tiles were chosen because they measured fastest
 * although a few registers are spilled outside of the inner loop; real trouble is kilobytes. The
 * most are 136: conv_wgmma's tile of 128 x 128 in tf32, all behind its last product (disassembled).
 */
#define STACK_MOST 144

static const char *const archs[] = {"sm_90a", "sm_75", "sm_80", "sm_120"};
#define ARCHS (sizeof archs / sizeof archs[0])

/* cuobjdump's names: an entry of .nv.info whose value is {symbol, bytes of stack}. */
#define EIFMT_SVAL 4
#define EIATTR_FRAME_SIZE 0x11

static variants all;
static atomic_size_t next_job;
static atomic_size_t compiled, failed;
static atomic_bool no_nvrtc;

/* Largest stack frame in a CUBIN; -1 when it says nothing about frames. */
static long frame_bytes(const unsigned char *image, size_t bytes) {
    Elf64_Ehdr header;
    if (bytes < sizeof header || memcmp(image, ELFMAG, SELFMAG) != 0) return -1;
    memcpy(&header, image, sizeof header);
    long most = -1;
    for (size_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section, names;
        memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
        memcpy(&names, image + header.e_shoff + header.e_shstrndx * sizeof names, sizeof names);
        const char *name = (const char *)image + names.sh_offset + section.sh_name;
        if (strcmp(name, ".nv.info") != 0) continue;
        const unsigned char *at = image + section.sh_offset, *end = at + section.sh_size;
        while (at + 4 <= end) {
            uint16_t size;
            memcpy(&size, at + 2, sizeof size);
            if (at[0] == EIFMT_SVAL && at[1] == EIATTR_FRAME_SIZE && size >= 8) {
                uint32_t frame;
                memcpy(&frame, at + 8, sizeof frame);
                if ((long)frame > most) most = (long)frame;
            }
            at += 4 + (at[0] == EIFMT_SVAL ? size : 0);
        }
    }
    return most;
}

static void compile(const variant *v, const char *arch) {
    lap_build build = {v->stem, lap_kernel_source("cu", v->stem), v->entry, v->defines,
                       v->define_count};
    void *image = NULL;
    size_t bytes = 0;
    lap_error err = {0};
    lap_status status = lap_cuda_compile(&build, arch, &image, &bytes, &err);
    if (status == LAP_E_UNSUPPORTED) {
        if (!atomic_exchange(&no_nvrtc, true)) printf("skipped: %s\n", err.message);
        return;
    }
    atomic_fetch_add(&compiled, 1);
    if (status != LAP_OK) {
        atomic_fetch_add(&failed, 1);
        printf("%s: %s %s: %s\n", arch, v->stem, v->options, err.message);
        return;
    }
    /* Tools have no row; sin and cos keep a small array for huge arguments. */
    if (v->row && v->is_default && strcmp(arch, archs[0]) == 0) {
        long frame = frame_bytes(image, bytes);
        if (frame < 0 || frame > STACK_MOST) {
            atomic_fetch_add(&failed, 1);
            printf("%s: %s %s: %ld bytes of stack (spilled registers), at most %d expected\n", arch,
                   v->stem, v->options, frame, STACK_MOST);
        }
    }
    free(image);
}

/* Job order: the first architecture's builds, then the defaults of the others. */
static void *work(void *unused) {
    for (;;) {
        size_t job = atomic_fetch_add(&next_job, 1);
        if (job >= ARCHS * all.count || atomic_load(&no_nvrtc)) return unused;
        const variant *v = &all.list[job % all.count];
        size_t arch = job / all.count;
        const char *only = getenv("LAP_TEST_STEM"); /* kernels whose name begins so */
        if (only && strncmp(v->stem, only, strlen(only)) != 0) continue;
        if (!lap_kernel_source("cu", v->stem)) continue;
        if (arch > 0 && (!v->is_default || !v->is_first_of_kind)) continue;
        /* Tensor-core rows are refused there, because the probe does not build either. */
        bool old = strcmp(archs[arch], "sm_75") == 0;
        if (old && v->row && !(v->row->precisions & 1u << LAP_FP32)) continue;
        /* Instructions of one architecture only; accepts() keeps the row there. */
        if (arch > 0 && strncmp(v->stem, "conv_wgmma", 10) == 0) continue;
        compile(v, archs[arch]);
    }
}

int main(int argc, char **argv) {
    size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : MOST_DEFAULT;
    const lap_device_info *gpu = variants_device("nvidia");
    if (!variants_defaults(gpu, &all) || !variants_space(gpu, most, &all)) {
        printf("out of memory, or no network\n");
        return 1;
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (size_t)cores;
    pthread_t thread[MAX_THREADS];
    size_t started = 0;
    while (started + 1 < threads && pthread_create(&thread[started], NULL, work, NULL) == 0)
        started++;
    work(NULL);
    for (size_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    variants_free(&all);
    if (no_nvrtc) return 77;
    printf("%zu builds, %zu failed\n", (size_t)compiled, (size_t)failed);
    return compiled == 0 || failed != 0;
}
