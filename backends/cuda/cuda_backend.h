/* Private to backends/cuda: its objects, and the one way to check a CUDA runtime call.
 *
 * Every object belongs to one device; every function that may be called from another thread makes
 * that device current first (lap_cuda_use). The driver API is not used: cudart is linked
 * statically and finds the driver itself, so the program starts where there is none.
 */
#ifndef LAP_CUDA_BACKEND_H
#define LAP_CUDA_BACKEND_H

#include "device/device_ops.h"

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12080
#error "The CUDA backend needs toolkit 12.8 or newer: cudaLibraryLoadData is not in older runtimes"
#endif

typedef struct lap_cuda_device {
    int index; /* the runtime's ordinal */
    int cc_major, cc_minor;
    uint32_t warp_size;
    uint32_t max_group_size;
    uint64_t local_optin_bytes;
    char driver[128]; /* as listed, for messages */
} lap_cuda_device;

typedef struct lap_cuda_queue {
    lap_cuda_device *device;
    cudaStream_t stream;
    bool capturing; /* between graph_begin and graph_end */
} lap_cuda_queue;

typedef struct lap_cuda_buffer {
    lap_cuda_device *device;
    void *pointer; /* device address */
    bool view;     /* pointer lies in another buffer: not ours to free */
} lap_cuda_buffer;

typedef struct lap_cuda_pinned {
    lap_cuda_device *device;
    void *pointer; /* host address */
} lap_cuda_pinned;

typedef struct lap_cuda_kernel {
    lap_cuda_device *device;
    cudaLibrary_t library;
    cudaKernel_t kernel;
    bool waits; /* by itself, for the launch before it */
    uint64_t static_local_bytes;
    uint64_t dynamic_limit; /* dynamic shared memory that a launch may ask for at present */
    void *image;            /* what was loaded, until somebody takes it; may be NULL */
    size_t image_bytes;
    char name[96]; /* "stem (entry)", for messages */
} lap_cuda_kernel;

typedef struct lap_cuda_event {
    lap_cuda_device *device;
    cudaEvent_t event;
    bool recorded;
} lap_cuda_event;

typedef struct lap_cuda_graph {
    lap_cuda_device *device;
    cudaGraphExec_t exec;
} lap_cuda_graph;

/* ---- error.c -------------------------------------------------------------------------------- */

/* Check one runtime call: LAP_OK, or fill err and return the status that stands for the code.
 *     LAP_TRY(LAP_CUDA(err, cudaMalloc(&p, n), "allocating %zu bytes", n));
 * The text says what was being done. An error that does not stick is cleared from the runtime, so
 * that no later call is blamed for it. */
#define LAP_CUDA(err, call, ...)                                                                   \
    lap_cuda_check((call), #call, __FILE__, __LINE__, (err), __VA_ARGS__)

lap_status lap_cuda_check(cudaError_t code, const char *call, const char *file, int line,
                          lap_error *err, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* For clean-up, where nobody can be told: the error is cleared and dropped. */
#define LAP_CUDA_IGNORE(call) ((void)LAP_CUDA(NULL, call, "freeing"))

/* The status that a runtime error stands for. */
lap_status lap_cuda_status(cudaError_t code);

/* Make the device current in this thread. */
lap_status lap_cuda_use(const lap_cuda_device *device, lap_error *err);

/* Refuse what would break a capture. what is "waiting", "reading a buffer", … */
lap_status lap_cuda_not_capturing(const lap_cuda_queue *queue, const char *what, lap_error *err);

/* ---- the table's functions ------------------------------------------------------------------ */

/* "580.159.03" out of the first line of /proc/driver/nvidia/version; false when it has none. */
bool lap_cuda_driver_text(const char *line, char *text, size_t size);

void lap_cuda_version(char *buffer, size_t size);
lap_status lap_cuda_enumerate(lap_list_builder *builder, lap_error *err);
lap_status lap_cuda_open(const lap_device_info *info, void **device, lap_error *err);
void lap_cuda_close(void *device);
lap_status lap_cuda_memory(void *device, uint64_t *free_bytes, uint64_t *total_bytes,
                           lap_error *err);

lap_status lap_cuda_queue_new(void *device, void **queue, lap_error *err);
void lap_cuda_queue_free(void *queue);
lap_status lap_cuda_queue_finish(void *queue, lap_error *err);
lap_status lap_cuda_queue_flush(void *queue, lap_error *err);

lap_status lap_cuda_buffer_new(void *device, size_t bytes, void **buffer, lap_error *err);
lap_status lap_cuda_buffer_view(void *parent, size_t offset, size_t bytes, void **buffer,
                                lap_error *err);
void lap_cuda_buffer_free(void *buffer);
lap_status lap_cuda_buffer_write(void *queue, void *buffer, size_t offset, const void *data,
                                 size_t bytes, lap_error *err);
lap_status lap_cuda_buffer_read(void *queue, void *buffer, size_t offset, void *data, size_t bytes,
                                lap_error *err);
lap_status lap_cuda_buffer_fill(void *queue, void *buffer, size_t offset, size_t bytes,
                                uint32_t pattern, lap_error *err);

lap_status lap_cuda_buffer_write_async(void *queue, void *buffer, size_t offset, const void *data,
                                       size_t bytes, lap_error *err);
lap_status lap_cuda_buffer_read_async(void *queue, void *buffer, size_t offset, void *data,
                                      size_t bytes, lap_error *err);
lap_status lap_cuda_queue_wait_event(void *queue, void *event, lap_error *err);
lap_status lap_cuda_pinned_new(void *device, size_t bytes, void **pinned, void **data,
                               lap_error *err);
void lap_cuda_pinned_free(void *pinned);

lap_status lap_cuda_kernel_binary(void *kernel, void **bytes, size_t *size, lap_error *err);
lap_status lap_cuda_kernel_load(void *device, const lap_build *build, const void *bytes,
                                size_t size, void **kernel, lap_kernel_info *info, lap_error *err);
lap_status lap_cuda_kernel_build(void *device, const lap_build *build, void **kernel,
                                 lap_kernel_info *info, lap_error *err);
lap_status lap_cuda_kernel_resident(void *kernel, const uint32_t local[3],
                                    size_t dynamic_local_bytes, uint64_t *groups, lap_error *err);
void lap_cuda_kernel_free(void *kernel);
lap_status lap_cuda_enqueue(void *queue, void *kernel, const lap_raw_launch *launch,
                            lap_error *err);

lap_status lap_cuda_event_new(void *device, void **event, lap_error *err);
void lap_cuda_event_free(void *event);
lap_status lap_cuda_event_record(void *event, void *queue, lap_error *err);
lap_status lap_cuda_event_wait(void *event, lap_error *err);
lap_status lap_cuda_event_elapsed(void *a, void *b, double *seconds, lap_error *err);

lap_status lap_cuda_graph_begin(void *queue, lap_error *err);
lap_status lap_cuda_graph_end(void *queue, void **graph, lap_error *err);
lap_status lap_cuda_graph_launch(void *graph, void *queue, lap_error *err);
void lap_cuda_graph_free(void *graph);

#endif
