/* How tests script the stand-in for the CUDA runtime. It implements the runtime functions that
 * backends/cuda uses over host memory, and is linked instead of libcudart_static. It checks what it
 * is given (addresses, handles, capture rules) as the real one would, and runs registered C
 * functions as kernels. Not thread-safe.
 *
 * The script (script.h: [cuda], fail, delay) has the start values, for whole programs too.
 */
#ifndef LAP_TESTS_CUDART_STANDIN_H
#define LAP_TESTS_CUDART_STANDIN_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum standin_timer {
    STANDIN_TIMER_NORMAL = 0,
    STANDIN_TIMER_ZERO,
    STANDIN_TIMER_REVERSED,
    STANDIN_TIMER_NAN
} standin_timer;

typedef struct standin_settings {
    int devices;
    int count_error; /* cudaGetDeviceCount fails with it; 0 does not */
    int driver;      /* 13000; 0 is no driver */
    int cc_major, cc_minor;
    char name[256];
    size_t memory_bytes;
    int max_threads; /* of every kernel */
    standin_timer timer;
    unsigned used; /* filled: a bit for each device that cudaSetDevice made a context on */
    int fault;     /* the next kernel to run leaves this sticky error; seen at a later wait */
} standin_settings;

typedef struct standin_counts {
    int buffers, streams, events, graphs, execs, libraries;
    int pinned;    /* of cudaMallocHost */
    int bad_frees; /* cudaFree of what cudaMalloc did not give, or gave back */
    size_t bytes;
} standin_counts;

/* Change freely between calls. */
extern standin_settings standin;

/* Start values again, no registered kernels, no scripted failures, no sticky error. Live objects
 * stay counted: a test that leaks is seen in the next one too. */
void standin_reset(void);

/* The nth call from now (1-based) of this runtime function returns code, once. */
void standin_fail(const char *function, int nth, int code);

/* How often a function was called since the reset. */
int standin_calls(const char *function);

/* Objects alive. */
standin_counts standin_live(void);

/* args point to the argument values, as the kernel would see them. kinds has a letter for each:
 * 'p' pointer, 'i' int32. */
typedef void (*standin_kernel)(struct dim3 grid, struct dim3 block, size_t shared, void **args);
void standin_register(const char *entry, const char *kinds, standin_kernel function);

#endif
