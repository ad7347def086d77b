/* Private to the OpenCL backend: its objects, and the one macro around every OpenCL call.
 *
 * Knows of buffers, kernels and commands, never of what they compute. Objects are reached through
 * the table in backend.c; argument checks (NULL, ranges, foreign objects) are the caller's.
 */
#ifndef LAP_OPENCL_OPENCL_H
#define LAP_OPENCL_OPENCL_H

#include "api.h"
#include "base/text.h"
#include "device/device_ops.h"

/* Each call goes through a pointer of api.h's tables. */
#define clBuildProgram lap_cl.clBuildProgram
#define clCreateBuffer lap_cl.clCreateBuffer
#define clCreateCommandQueue lap_cl.clCreateCommandQueue
#define clCreateContext lap_cl.clCreateContext
#define clCreateKernel lap_cl.clCreateKernel
#define clCreateProgramWithBinary lap_cl.clCreateProgramWithBinary
#define clCreateProgramWithSource lap_cl.clCreateProgramWithSource
#define clCreateSubBuffer lap_cl.clCreateSubBuffer
#define clEnqueueBarrierWithWaitList lap_cl.clEnqueueBarrierWithWaitList
#define clEnqueueFillBuffer lap_cl.clEnqueueFillBuffer
#define clEnqueueMapBuffer lap_cl.clEnqueueMapBuffer
#define clEnqueueNDRangeKernel lap_cl.clEnqueueNDRangeKernel
#define clEnqueueReadBuffer lap_cl.clEnqueueReadBuffer
#define clEnqueueUnmapMemObject lap_cl.clEnqueueUnmapMemObject
#define clEnqueueWriteBuffer lap_cl.clEnqueueWriteBuffer
#define clFinish lap_cl.clFinish
#define clFlush lap_cl.clFlush
#define clGetDeviceIDs lap_cl.clGetDeviceIDs
#define clGetDeviceInfo lap_cl.clGetDeviceInfo
#define clGetEventInfo lap_cl.clGetEventInfo
#define clGetEventProfilingInfo lap_cl.clGetEventProfilingInfo
#define clGetExtensionFunctionAddress lap_cl.clGetExtensionFunctionAddress
#define clGetKernelInfo lap_cl.clGetKernelInfo
#define clGetKernelWorkGroupInfo lap_cl.clGetKernelWorkGroupInfo
#define clGetPlatformIDs lap_cl.clGetPlatformIDs
#define clGetPlatformInfo lap_cl.clGetPlatformInfo
#define clGetProgramBuildInfo lap_cl.clGetProgramBuildInfo
#define clGetProgramInfo lap_cl.clGetProgramInfo
#define clReleaseCommandQueue lap_cl.clReleaseCommandQueue
#define clReleaseContext lap_cl.clReleaseContext
#define clReleaseEvent lap_cl.clReleaseEvent
#define clReleaseKernel lap_cl.clReleaseKernel
#define clReleaseMemObject lap_cl.clReleaseMemObject
#define clReleaseProgram lap_cl.clReleaseProgram
#define clRetainEvent lap_cl.clRetainEvent
#define clSetKernelArg lap_cl.clSetKernelArg
#define clWaitForEvents lap_cl.clWaitForEvents
#ifdef LAP_HAVE_CLBLAST
#define CLBlastClearCache lap_clblast.CLBlastClearCache
#define CLBlastSgemm lap_clblast.CLBlastSgemm
#endif

/* ---- errors --------------------------------------------------------------------------------- */

/* Where a call stands; the same code means different things at different places. */
typedef enum lap_cl_stage {
    LAP_CL_QUERY,   /* asking; never fatal by itself */
    LAP_CL_OPEN,    /* making a context or a queue */
    LAP_CL_ALLOC,   /* making a buffer */
    LAP_CL_BUILD,   /* compiling */
    LAP_CL_ENQUEUE, /* handing a command to a queue */
    LAP_CL_WAIT,    /* waiting for commands: faults of earlier commands surface here */
    LAP_CL_TIMER    /* reading a time stamp */
} lap_cl_stage;

const char *lap_cl_error_name(cl_int code);                /* "CL_OUT_OF_RESOURCES"; never NULL */
lap_status lap_cl_status(lap_cl_stage stage, cl_int code); /* LAP_OK for CL_SUCCESS */

/* Fill err when code is not CL_SUCCESS; the call's name is found in the expression's text. */
lap_status lap_cl_check(lap_error *err, lap_cl_stage stage, const char *what,
                        const char *expression, cl_int code, const char *file, int line);

/* Every OpenCL call goes through here. what says what was being done ("creating a queue").
 * Creators give their code as (object = clCreateX(…, &code), code). */
#define LAP_CL(err, stage, what, expression)                                                       \
    lap_cl_check((err), (stage), (what), #expression, (expression), __FILE__, __LINE__)

/* For releases and optional queries: checked, but a failure has no consequence. */
#define LAP_CL_IGNORE(expression) ((void)LAP_CL(NULL, LAP_CL_QUERY, "", expression))

/* ---- objects -------------------------------------------------------------------------------- */

typedef struct lap_cl_device {
    cl_device_id id;
    cl_context context;
    size_t max_group_size, max_group_dim[3];
    uint64_t memory_bytes;
    uint64_t next_id;    /* numbers buffers and queues: a freed address may come back, an id not */
    bool has_amd_memory; /* cl_amd_device_attribute_query */
    bool gemm_used;      /* the library then keeps programs of this context */
    cl_mem scratch;      /* 4 bytes, made at the first need: see gemm.c */
} lap_cl_device;

typedef struct lap_cl_buffer {
    lap_cl_device *device;
    cl_mem memory;
    uint64_t id;
} lap_cl_buffer;

typedef struct lap_cl_event lap_cl_event;

typedef struct lap_cl_queue {
    lap_cl_device *device;
    cl_command_queue handle;
    uint64_t id;
    cl_int profiling_code; /* CL_SUCCESS, or why commands carry no time stamps */
    uint64_t commands;     /* enqueued so far */
    cl_event last;         /* the newest command's event, owned; NULL where it has none */
    bool barrier;          /* last is that of a barrier behind it, without a stamp */
    lap_cl_event *pending; /* records that wait for their first command */
} lap_cl_queue;

struct lap_cl_event {
    bool recorded;
    bool barrier; /* before is a barrier's */
    uint64_t queue_id;
    cl_int profiling_code;  /* the queue's */
    uint64_t position;      /* the queue's command count at the record */
    cl_event before, after; /* neighbouring commands' events, owned; either may be NULL */
    lap_cl_queue *waiting;  /* the queue in whose pending list this record is */
    lap_cl_event *next;     /* in that list */
};

typedef struct lap_cl_arg {
    bool set;
    lap_arg_kind kind;
    uint64_t buffer_id; /* 0 for a null pointer */
    int32_t i32;
} lap_cl_arg;

typedef struct lap_cl_kernel {
    lap_cl_device *device;
    cl_kernel handle;
    char entry[64]; /* for messages */
    size_t max_group_size;
    cl_uint arg_count;
    lap_cl_arg args[LAP_MAX_ARGS]; /* what the driver was told last */
} lap_cl_kernel;

/* The command behind event was enqueued: it ends the wait of pending records and becomes the last
 * one. Takes over the caller's reference. NULL: the command has no event. */
void lap_cl_queue_push(lap_cl_queue *queue, cl_event event);
/* Drop one record from its queue's pending list, if it is in one. */
void lap_cl_event_unlink(lap_cl_event *event);

/* ---- device queries (info.c) ---------------------------------------------------------------- */

/* malloc'ed, cleaned text; NULL when the driver does not tell or memory is out. */
char *lap_cl_platform_text(cl_platform_id platform, cl_platform_info what);
char *lap_cl_device_text(cl_device_id device, cl_device_info what);
/* A fixed-size value; false and zeroes when the driver does not tell. */
bool lap_cl_device_value(cl_device_id device, cl_device_info what, void *value, size_t size);
/* Whether a blank-separated list holds the word. */
bool lap_cl_has_word(const char *list, const char *word);
/* Copy into a fixed field, cut between characters, never within one. NULL gives "". */
void lap_cl_copy_text(char *to, size_t size, const char *from);
void lap_cl_device_describe(cl_platform_id platform, cl_device_id device, lap_device_info *info);

/* ---- the table's functions ------------------------------------------------------------------ */

void lap_cl_version(char *buffer, size_t size);
lap_status lap_cl_enumerate(lap_list_builder *builder, lap_error *err);
lap_status lap_cl_open(const lap_device_info *info, void **device, lap_error *err);
void lap_cl_close(void *device);
lap_status lap_cl_memory(void *device, uint64_t *free_bytes, uint64_t *total_bytes, lap_error *err);

lap_status lap_cl_queue_new(void *device, void **queue, lap_error *err);
void lap_cl_queue_free(void *queue);
lap_status lap_cl_queue_finish(void *queue, lap_error *err);
lap_status lap_cl_queue_flush(void *queue, lap_error *err);

lap_status lap_cl_buffer_new(void *device, size_t bytes, void **buffer, lap_error *err);
lap_status lap_cl_buffer_view(void *parent, size_t offset, size_t bytes, void **buffer,
                              lap_error *err);
void lap_cl_buffer_free(void *buffer);
lap_status lap_cl_buffer_write(void *queue, void *buffer, size_t offset, const void *data,
                               size_t bytes, lap_error *err);
lap_status lap_cl_buffer_read(void *queue, void *buffer, size_t offset, void *data, size_t bytes,
                              lap_error *err);
lap_status lap_cl_buffer_fill(void *queue, void *buffer, size_t offset, size_t bytes,
                              uint32_t pattern, lap_error *err);

lap_status lap_cl_buffer_write_async(void *queue, void *buffer, size_t offset, const void *data,
                                     size_t bytes, lap_error *err);
lap_status lap_cl_buffer_read_async(void *queue, void *buffer, size_t offset, void *data,
                                    size_t bytes, lap_error *err);
lap_status lap_cl_queue_wait_event(void *queue, void *event, lap_error *err);
lap_status lap_cl_pinned_new(void *device, size_t bytes, void **pinned, void **data,
                             lap_error *err);
void lap_cl_pinned_free(void *pinned);

/* Of every build, before the defines. */
#define LAP_CL_OPTIONS "-cl-std=CL1.2"
/* retarget.c: the target whose instructions the source hides from the compiler ("sm_90a"), if it
 * does; a driver's PTX with them, for that target. */
enum { LAP_CL_TARGET_ROOM = 16 };
bool lap_cl_target_of(const char *source, char target[LAP_CL_TARGET_ROOM]);
lap_status lap_cl_retarget(const char *ptx, const char *target, lap_text *out, lap_error *err);
lap_status lap_cl_kernel_binary(void *kernel, void **bytes, size_t *size, lap_error *err);
lap_status lap_cl_kernel_load(void *device, const lap_build *build, const void *bytes, size_t size,
                              void **kernel, lap_kernel_info *info, lap_error *err);
lap_status lap_cl_kernel_build(void *device, const lap_build *build, void **kernel,
                               lap_kernel_info *info, lap_error *err);
void lap_cl_kernel_free(void *kernel);
lap_status lap_cl_enqueue(void *queue, void *kernel, const lap_raw_launch *launch, lap_error *err);

const char *lap_cl_gemm_name(void *device, const char **why);
lap_status lap_cl_gemm(void *queue, const lap_raw_gemm *gemm, lap_error *err);
void lap_cl_gemm_forget(lap_cl_device *device); /* at close */

lap_status lap_cl_event_new(void *device, void **event, lap_error *err);
void lap_cl_event_free(void *event);
lap_status lap_cl_event_record(void *event, void *queue, lap_error *err);
lap_status lap_cl_event_wait(void *event, lap_error *err);
lap_status lap_cl_event_elapsed(void *a, void *b, double *seconds, lap_error *err);

#endif
