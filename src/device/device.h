/* The device layer: one interface over CUDA and OpenCL. This is all that the rest of the program
 * sees of either.
 *
 * Ownership: whoever receives an object frees it with its _free; _free takes NULL. A device
 * outlives its queues, buffers, pinned memory, kernels, events and graphs; lap_device_close returns
 * LAP_E_INTERNAL and names the counts when some are still alive (they are then leaked, not freed
 * twice). Sizes are size_t bytes, times are double seconds. Launches are given in groups, not
 * global size. Every call may fail; asynchronous faults surface in lap_queue_finish,
 * lap_event_wait, _read. Threads: objects of different devices may be used from different threads;
 * one device's may not.
 */
#ifndef LAP_DEVICE_DEVICE_H
#define LAP_DEVICE_DEVICE_H

#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

/* ---- what exists ---------------------------------------------------------------------------- */

typedef enum lap_device_type {
    LAP_DEVICE_GPU = 0,
    LAP_DEVICE_CPU,
    LAP_DEVICE_ACCELERATOR,
    LAP_DEVICE_OTHER
} lap_device_type;

const char *lap_device_type_name(lap_device_type type); /* "gpu", … */

/* Bytes of a device's name and its NUL. What is longer is cut at a whole character. */
enum { LAP_DEVICE_NAME = 512 };

typedef struct lap_device_info {
    char backend[16];   /* "cuda", "opencl" */
    char language[8];   /* kernel language: "cu", "cl" */
    char selector[40];  /* "cuda:0", "opencl:0:1": unique, accepted by the selector */
    char platform[256]; /* "NVIDIA CUDA"; cleaned text like all that follow */
    char name[LAP_DEVICE_NAME];
    char vendor[128];
    char driver[128];    /* driver version */
    char toolchain[256]; /* what compiles kernels: "NVRTC 13.0", the OpenCL driver's version text */
    char api[128];       /* "CUDA 13.0", "OpenCL 3.0" */
    lap_device_type type;
    bool host_memory;      /* device memory is (part of) the host's memory */
    bool local_is_real;    /* local memory is a memory of its own, not a piece of global memory */
    bool has_fp16;         /* native half arithmetic claimed by the API (a hint, not a verdict) */
    uint64_t memory_bytes; /* 0 when unknown, like all counts here */
    uint64_t max_alloc_bytes;   /* largest single allocation */
    uint64_t cache_bytes;       /* last-level cache */
    uint64_t local_bytes;       /* local ("shared") memory of one group, without opt-in */
    uint64_t local_optin_bytes; /* with opt-in (CUDA); what NVIDIA's OpenCL may give unlisted, a
                                   hint to try (kernel/probe.h); else equal to local_bytes */
    uint32_t units;             /* multiprocessors, compute units, cores */
    uint32_t clock_mhz;         /* as the API claims */
    uint32_t max_group_size;
    uint32_t max_group_dim[3];
    uint32_t simd_width;       /* warp size on CUDA; native float vector width on CPUs; else a
                                  preferred multiple when known; 0 unknown */
    uint32_t base_align_bytes; /* alignment that lap_buffer_view needs, at least 1 */
    int cc_major, cc_minor;    /* CUDA compute capability, also when OpenCL tells it; 0 unknown */
    double timer_resolution_s; /* of event stamps; 0 unknown */
    bool has_uuid, has_pci;
    uint8_t uuid[16];
    uint32_t pci_domain, pci_bus, pci_device, pci_function;
    int physical;       /* devices of one list with the same value are one physical device */
    uint64_t native[2]; /* the backend's private handles, meaningless elsewhere */
} lap_device_info;

/* A line for people about something that could not be listed: a platform without devices, a missing
 * driver or compiler, with the reason and what was looked for. */
typedef struct lap_device_note {
    char backend[16];
    char platform[256]; /* "" when it is about the whole backend */
    char reason[512];
} lap_device_note;

typedef struct lap_device_list {
    lap_device_info *devices;
    size_t count;
    lap_device_note *notes;
    size_t note_count;
} lap_device_list;

/* Ask every compiled-in backend. Never fails because of a broken driver: that becomes a note.
 * An empty list is LAP_OK. */
lap_status lap_device_enumerate(lap_device_list **out, lap_error *err);
void lap_device_list_free(lap_device_list *list);

/* Resolve a selector ("auto", "all", "cuda[:i]", "opencl[:p[:d]]", "name=TEXT", "uuid=HEX",
 * "pci=D:B:D.F", "type=gpu|cpu|accelerator", comma-separated union) to indices into list->devices,
 * in list order, without repeats. *indices is malloc'ed, free() it.
 * "auto" is one device: GPU before accelerator before CPU before other; CUDA before OpenCL for one
 * physical GPU; most memory first. "all" is every route. Errors: LAP_E_CONFIG for bad syntax (names
 * the valid forms), LAP_E_NODEVICE when nothing matches (the message lists what there is). */
lap_status lap_device_select(const lap_device_list *list, const char *selector, size_t **indices,
                             size_t *count, lap_error *err);

/* ---- devices and queues --------------------------------------------------------------------- */

typedef struct lap_device lap_device;
typedef struct lap_queue lap_queue;
typedef struct lap_buffer lap_buffer;
typedef struct lap_kernel lap_kernel;
typedef struct lap_event lap_event;
typedef struct lap_graph lap_graph;

lap_status lap_device_open(const lap_device_info *info, lap_device **out, lap_error *err);
lap_status lap_device_close(lap_device *device, lap_error *err);
const lap_device_info *lap_device_get_info(const lap_device *device);
/* Free and total device memory right now; LAP_E_UNSUPPORTED where the API cannot tell. */
lap_status lap_device_memory(lap_device *device, uint64_t *free_bytes, uint64_t *total_bytes,
                             lap_error *err);

/* An in-order queue (stream) whose commands carry time stamps. */
lap_status lap_queue_new(lap_device *device, lap_queue **out, lap_error *err);
void lap_queue_free(lap_queue *queue); /* finishes first, ignoring errors */
lap_device *lap_queue_device(const lap_queue *queue);
/* Wait until everything enqueued is done. */
lap_status lap_queue_finish(lap_queue *queue, lap_error *err);
/* Make the device start on what is enqueued, without waiting. */
lap_status lap_queue_flush(lap_queue *queue, lap_error *err);

/* ---- memory --------------------------------------------------------------------------------- */

lap_status lap_buffer_new(lap_device *device, size_t bytes, lap_buffer **out, lap_error *err);
/* A window on parent (which must outlive it). offset must be a multiple of base_align_bytes. A view
 * of a view is refused. */
lap_status lap_buffer_view(lap_buffer *parent, size_t offset, size_t bytes, lap_buffer **out,
                           lap_error *err);
void lap_buffer_free(lap_buffer *buffer);
size_t lap_buffer_bytes(const lap_buffer *buffer);
/* Blocking copies: on return the host memory may be reused, respectively holds the data. */
lap_status lap_buffer_write(lap_queue *queue, lap_buffer *buffer, size_t offset, const void *data,
                            size_t bytes, lap_error *err);
lap_status lap_buffer_read(lap_queue *queue, const lap_buffer *buffer, size_t offset, void *data,
                           size_t bytes, lap_error *err);
/* Fill with a repeated 32-bit pattern, asynchronously; offset and bytes are multiples of 4. */
lap_status lap_buffer_fill(lap_queue *queue, lap_buffer *buffer, size_t offset, size_t bytes,
                           uint32_t pattern, lap_error *err);

/* Copies that return at once; the host memory must stay as it is, respectively be left alone, until
 * an event recorded behind the copy, or the queue, was waited for. They overlap with other queues
 * only from and to pinned memory. LAP_E_UNSUPPORTED where lap_device_has_async is false. */
bool lap_device_has_async(const lap_device *device); /* these two and lap_queue_wait_event */
lap_status lap_buffer_write_async(lap_queue *queue, lap_buffer *buffer, size_t offset,
                                  const void *data, size_t bytes, lap_error *err);
lap_status lap_buffer_read_async(lap_queue *queue, const lap_buffer *buffer, size_t offset,
                                 void *data, size_t bytes, lap_error *err);
/* What is enqueued on queue from now on starts only after everything before the event on its own
 * queue is done. Does not wait on the host. The event must be of the same device and recorded. */
lap_status lap_queue_wait_event(lap_queue *queue, lap_event *event, lap_error *err);

/* Host memory that the device copies from and to directly ("pinned"): LAP_E_UNSUPPORTED where there
 * is none. Freed with lap_pinned_free, after the copies that use it. */
typedef struct lap_pinned lap_pinned;
bool lap_device_has_pinned(const lap_device *device);
lap_status lap_pinned_new(lap_device *device, size_t bytes, lap_pinned **out, lap_error *err);
void *lap_pinned_data(const lap_pinned *pinned); /* NULL for NULL */
void lap_pinned_free(lap_pinned *pinned);

/* ---- kernels -------------------------------------------------------------------------------- */

typedef struct lap_define {
    char name[24];
    int64_t value;
} lap_define;

typedef struct lap_build {
    const char *stem;   /* for messages: "conv_direct" */
    const char *source; /* terminated text in the device's language */
    const char *entry;
    const lap_define *defines;
    size_t define_count;
} lap_build;

/* Kernels built before, on disk (device/build_cache.h). */
typedef struct lap_build_cache lap_build_cache;
/* Builds of this device look there first, and leave there what they compiled; NULL stops that. The
 * cache must outlive the device. A backend that cannot take a kernel apart makes this no use. */
void lap_device_use_cache(lap_device *device, lap_build_cache *cache);
/* Kernels made so far: loaded from the cache, and compiled. */
void lap_device_build_counts(const lap_device *device, uint64_t *cached, uint64_t *compiled);

typedef struct lap_kernel_info {
    uint32_t max_group_size;     /* this kernel's own limit, at most the device's */
    uint64_t local_bytes;        /* static local memory */
    uint64_t private_bytes;      /* spill or stack bytes a work-item, when known */
    uint32_t registers;          /* 0 when unknown */
    uint32_t preferred_multiple; /* of the group size; 0 when unknown */
} lap_kernel_info;

/* Compile and load. LAP_E_BUILD carries the first lines of the build log. No fast-math: division
 * and square root as the language's default, denormals kept, FMA contraction allowed. */
lap_status lap_kernel_build(lap_device *device, const lap_build *build, lap_kernel **out,
                            lap_error *err);
void lap_kernel_free(lap_kernel *kernel);
const lap_kernel_info *lap_kernel_get_info(const lap_kernel *kernel);

/* How many groups of that size the whole device holds at a time when nothing else runs; 0 where the
 * API cannot tell. */
lap_status lap_kernel_resident(lap_kernel *kernel, const uint32_t local[3],
                               size_t dynamic_local_bytes, uint64_t *groups, lap_error *err);

typedef enum lap_arg_kind { LAP_ARG_BUFFER = 0, LAP_ARG_I32 } lap_arg_kind;

typedef struct lap_arg {
    lap_arg_kind kind;
    lap_buffer *buffer; /* NULL is allowed: the kernel sees a null pointer */
    int32_t i32;
} lap_arg;

typedef struct lap_launch {
    lap_kernel *kernel;
    uint32_t groups[3];
    uint32_t local[3];
    size_t dynamic_local_bytes; /* CUDA only (extern shared); must be 0 elsewhere */
    const lap_arg *args;
    size_t arg_count;
    /* May be started while the launch directly before it in the queue comes to its end. Without
     * effect where the API has no such thing, or where the kernel does not itself wait for that
     * launch. False behind anything but a launch. */
    bool overlap;
    /* No event will be recorded directly behind it, so that it may go without a time stamp. One
     * that is recorded there all the same can be waited for; the time up to it is LAP_E_TIMER. */
    bool unstamped;
} lap_launch;

lap_status lap_enqueue(lap_queue *queue, const lap_launch *launch, lap_error *err);

/* C[m,n] = A[m,k] * B[k,n], row-major, fp32, by a library. LAP_E_UNSUPPORTED where there is none.
 */
typedef struct lap_gemm {
    size_t m, n, k;
    lap_buffer *a, *b, *c;
    size_t a_offset, b_offset, c_offset; /* in elements */
    size_t lda, ldb, ldc;
    bool b_transposed; /* B is stored [n,k] with row length ldb */
    float beta;        /* C = A*B + beta*C */
} lap_gemm;

bool lap_device_has_gemm(const lap_device *device);
const char *lap_device_gemm_name(const lap_device *device);    /* "CLBlast 1.5.3", "" if none */
const char *lap_device_gemm_lacking(const lap_device *device); /* why there is none; "" if any */
lap_status lap_gemm_enqueue(lap_queue *queue, const lap_gemm *gemm, lap_error *err);

/* ---- events --------------------------------------------------------------------------------- */

/* An event is a point in a queue between two commands. elapsed(a, b) is the device time from the
 * start of the first command after a to the end of the last command before b. Both points must be
 * on one queue, a first, at least one command between them, and the commands done (lap_event_wait
 * or lap_queue_finish). A missing, zero or reversed stamp is LAP_E_TIMER, never a silent 0. */
lap_status lap_event_new(lap_device *device, lap_event **out, lap_error *err);
void lap_event_free(lap_event *event);
lap_status lap_event_record(lap_event *event, lap_queue *queue, lap_error *err); /* reusable */
lap_status lap_event_wait(lap_event *event, lap_error *err);
lap_status lap_event_elapsed(const lap_event *a, const lap_event *b, double *seconds,
                             lap_error *err);

/* ---- graphs (optional) ---------------------------------------------------------------------- */

bool lap_device_has_graphs(const lap_device *device);
/* Between begin and end, enqueued launches are recorded, not run. */
lap_status lap_graph_begin(lap_queue *queue, lap_error *err);
lap_status lap_graph_end(lap_queue *queue, lap_graph **out, lap_error *err);
lap_status lap_graph_launch(lap_graph *graph, lap_queue *queue, lap_error *err);
void lap_graph_free(lap_graph *graph);

/* ---- for tests ------------------------------------------------------------------------------ */

/* Fail the nth (1-based) fallible device call from now with status; 0 disarms. Returns how many
 * calls were made since the last arming. Also armed at first use by
 * LAP_FAULT="N:oom|launch|device|build| timer" in the environment. */
uint64_t lap_device_fault_arm(uint64_t nth, lap_status status);

#endif
