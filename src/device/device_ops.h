/* Private: the table a backend fills, and what it may use of the device layer. Included by
 * src/device and by backends/ only. Called only through the wrappers in device.c, which check
 * arguments (NULL objects, zero sizes, ranges, foreign devices), count live objects and inject
 * faults; a backend may rely on that.
 *
 * `void *` handles are the backend's own objects. Functions marked optional may be NULL.
 */
#ifndef LAP_DEVICE_DEVICE_OPS_H
#define LAP_DEVICE_DEVICE_OPS_H

#include "device/device.h"

/* Collects what an enumeration finds. Both copy; both return LAP_E_NOMEM or LAP_OK. */
typedef struct lap_list_builder lap_list_builder;
lap_status lap_list_add_device(lap_list_builder *builder, const lap_device_info *info,
                               lap_error *err);
lap_status lap_list_add_note(lap_list_builder *builder, const char *backend, const char *platform,
                             lap_error *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A launch with the wrapper objects already replaced by the backend's handles. */
typedef struct lap_raw_arg {
    lap_arg_kind kind;
    void *buffer; /* backend buffer handle or NULL */
    int32_t i32;
} lap_raw_arg;

#define LAP_MAX_ARGS 16

typedef struct lap_raw_launch {
    uint32_t groups[3], local[3];
    size_t dynamic_local_bytes;
    lap_raw_arg args[LAP_MAX_ARGS];
    size_t arg_count;
    bool overlap, unstamped; /* see lap_launch; a backend may ignore them */
} lap_raw_launch;

typedef struct lap_raw_gemm {
    size_t m, n, k;
    void *a, *b, *c;
    size_t a_offset, b_offset, c_offset, lda, ldb, ldc;
    bool b_transposed;
    float beta;
} lap_raw_gemm;

typedef struct lap_device_ops {
    const char *name; /* "cuda" */
    /* Text for --version: "CUDA runtime 13.0 (static), NVRTC 13.0". */
    void (*version)(char *buffer, size_t size);

    lap_status (*enumerate)(lap_list_builder *builder, lap_error *err);
    lap_status (*open)(const lap_device_info *info, void **device, lap_error *err);
    void (*close)(void *device);
    lap_status (*memory)(void *device, uint64_t *free_bytes, uint64_t *total_bytes,
                         lap_error *err); /* optional */

    lap_status (*queue_new)(void *device, void **queue, lap_error *err);
    void (*queue_free)(void *queue);
    lap_status (*queue_finish)(void *queue, lap_error *err);
    lap_status (*queue_flush)(void *queue, lap_error *err);

    lap_status (*buffer_new)(void *device, size_t bytes, void **buffer, lap_error *err);
    lap_status (*buffer_view)(void *parent, size_t offset, size_t bytes, void **buffer,
                              lap_error *err);
    void (*buffer_free)(void *buffer);
    lap_status (*buffer_write)(void *queue, void *buffer, size_t offset, const void *data,
                               size_t bytes, lap_error *err);
    lap_status (*buffer_read)(void *queue, void *buffer, size_t offset, void *data, size_t bytes,
                              lap_error *err);
    lap_status (*buffer_fill)(void *queue, void *buffer, size_t offset, size_t bytes,
                              uint32_t pattern, lap_error *err);

    /* Optional, all three or none. The copies return at once. */
    lap_status (*buffer_write_async)(void *queue, void *buffer, size_t offset, const void *data,
                                     size_t bytes, lap_error *err);
    lap_status (*buffer_read_async)(void *queue, void *buffer, size_t offset, void *data,
                                    size_t bytes, lap_error *err);
    lap_status (*queue_wait_event)(void *queue, void *event, lap_error *err);
    /* Optional, both or none: page-locked host memory and its address. */
    lap_status (*pinned_new)(void *device, size_t bytes, void **pinned, void **data,
                             lap_error *err);
    void (*pinned_free)(void *pinned);

    lap_status (*kernel_build)(void *device, const lap_build *build, void **kernel,
                               lap_kernel_info *info, lap_error *err);
    /* Optional, both or neither. The loadable form of a kernel just built, malloc'ed, once; and a
     * kernel made of such bytes. A form that cannot be loaded is LAP_E_BUILD. fixed_options: what
     * else decides what a build makes (may be NULL). */
    lap_status (*kernel_binary)(void *kernel, void **bytes, size_t *size, lap_error *err);
    lap_status (*kernel_load)(void *device, const lap_build *build, const void *bytes, size_t size,
                              void **kernel, lap_kernel_info *info, lap_error *err);
    const char *fixed_options;
    /* Optional: groups that the device holds at a time. */
    lap_status (*kernel_resident)(void *kernel, const uint32_t local[3], size_t dynamic_local_bytes,
                                  uint64_t *groups, lap_error *err);
    void (*kernel_free)(void *kernel);
    lap_status (*enqueue)(void *queue, void *kernel, const lap_raw_launch *launch, lap_error *err);

    /* Optional, both or neither. NULL, and why in one line, where there is no library after all. */
    const char *(*gemm_name)(void *device, const char **why);
    lap_status (*gemm)(void *queue, const lap_raw_gemm *gemm, lap_error *err);

    lap_status (*event_new)(void *device, void **event, lap_error *err);
    void (*event_free)(void *event);
    lap_status (*event_record)(void *event, void *queue, lap_error *err);
    lap_status (*event_wait)(void *event, lap_error *err);
    lap_status (*event_elapsed)(void *a, void *b, double *seconds, lap_error *err);

    lap_status (*graph_begin)(void *queue, lap_error *err);               /* optional */
    lap_status (*graph_end)(void *queue, void **graph, lap_error *err);   /* optional */
    lap_status (*graph_launch)(void *graph, void *queue, lap_error *err); /* optional */
    void (*graph_free)(void *graph);                                      /* optional */
} lap_device_ops;

/* Backends compiled in; registry.c is the only file that names them. Tests may add one more. */
size_t lap_registry_count(void);
const lap_device_ops *lap_registry_get(size_t index);
const lap_device_ops *lap_registry_find(const char *name);
/* For tests: append a backend (replaces an earlier one of the same name). NULL removes all added.
 */
void lap_registry_add(const lap_device_ops *ops);
/* Backends that a build can have, compiled in here or not, for messages: name and selector form
 * (form may be NULL). NULL past the end. */
const char *lap_registry_known(size_t index, const char **form);

#endif
