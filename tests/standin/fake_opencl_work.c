/* The fake OpenCL driver's work: buffers of host memory, programs that always build, kernels that
 * do nothing, events with stamps from the host's clock or as the script wants them. */
#include "fake_opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct _cl_context {
    const cl_icd_dispatch *dispatch;
    cl_device_id device; /* the first, whose limits hold */
};

struct _cl_command_queue {
    const cl_icd_dispatch *dispatch;
    cl_device_id device;
};

struct _cl_mem {
    const cl_icd_dispatch *dispatch;
    char *bytes;
    size_t size;
    cl_mem parent; /* whose bytes these are, NULL for its own */
};

struct _cl_program {
    const cl_icd_dispatch *dispatch;
    char *source;
};

struct _cl_kernel {
    const cl_icd_dispatch *dispatch;
    cl_uint args;
};

struct _cl_event {
    const cl_icd_dispatch *dispatch;
    unsigned references;
    cl_command_queue queue; /* not told: commands are done at once, no queue needs a flush */
    cl_ulong start, end;
};

static void *new_object(size_t size, cl_int code, cl_int *out) {
    const cl_icd_dispatch **object = code == CL_SUCCESS ? calloc(1, size) : NULL;
    if (object) *object = &fake_dispatch;
    if (code == CL_SUCCESS && !object) code = CL_OUT_OF_HOST_MEMORY;
    if (out) *out = code;
    return object;
}

cl_context CL_API_CALL fake_create_context(const cl_context_properties *properties, cl_uint count,
                                           const cl_device_id *devices,
                                           void(CL_CALLBACK *notify)(const char *, const void *,
                                                                     size_t, void *),
                                           void *data, cl_int *code) {
    (void)properties, (void)notify, (void)data;
    cl_int failure = count ? script_enter("clCreateContext") : CL_INVALID_VALUE;
    cl_context context = new_object(sizeof *context, failure, code);
    if (context) context->device = devices[0];
    return context;
}

cl_int CL_API_CALL fake_release_context(cl_context context) {
    free(context);
    return script_enter("clReleaseContext");
}

cl_command_queue CL_API_CALL fake_create_queue(cl_context context, cl_device_id device,
                                               cl_command_queue_properties properties,
                                               cl_int *code) {
    (void)context, (void)device, (void)properties;
    cl_command_queue queue =
        new_object(sizeof(struct _cl_command_queue), script_enter("clCreateCommandQueue"), code);
    if (queue) queue->device = device;
    return queue;
}

cl_int CL_API_CALL fake_release_queue(cl_command_queue queue) {
    free(queue);
    return script_enter("clReleaseCommandQueue");
}

cl_int CL_API_CALL fake_flush(cl_command_queue queue) {
    (void)queue;
    return script_enter("clFlush");
}

cl_int CL_API_CALL fake_finish(cl_command_queue queue) {
    (void)queue;
    return script_enter("clFinish");
}

/* ---- memory --------------------------------------------------------------------------------- */

cl_mem CL_API_CALL fake_create_buffer(cl_context context, cl_mem_flags flags, size_t size,
                                      void *host, cl_int *code) {
    (void)flags, (void)host;
    cl_int failure = script_enter("clCreateBuffer");
    if (failure == CL_SUCCESS && size > fake_max_alloc(fake_device_of(context->device)))
        failure = CL_INVALID_BUFFER_SIZE;
    cl_mem memory = new_object(sizeof *memory, failure, code);
    if (!memory) return NULL;
    memory->size = size;
    memory->bytes = calloc(1, size); /* large ones stay untouched pages */
    if (memory->bytes) return memory;
    free(memory);
    if (code) *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
}

cl_mem CL_API_CALL fake_create_sub_buffer(cl_mem parent, cl_mem_flags flags,
                                          cl_buffer_create_type type, const void *info,
                                          cl_int *code) {
    (void)flags, (void)type;
    const cl_buffer_region *region = info;
    cl_int failure =
        region->origin % 128 ? CL_MISALIGNED_SUB_BUFFER_OFFSET : script_enter("clCreateSubBuffer");
    cl_mem memory = new_object(sizeof *memory, failure, code);
    if (!memory) return NULL;
    memory->parent = parent;
    memory->bytes = parent->bytes + region->origin;
    memory->size = region->size;
    return memory;
}

cl_int CL_API_CALL fake_release_memory(cl_mem memory) {
    if (!memory->parent) free(memory->bytes);
    free(memory);
    return script_enter("clReleaseMemObject");
}

/* ---- programs and kernels ------------------------------------------------------------------- */

cl_program CL_API_CALL fake_create_program(cl_context context, cl_uint count, const char **sources,
                                           const size_t *lengths, cl_int *code) {
    (void)context, (void)lengths;
    cl_program program =
        new_object(sizeof *program, script_enter("clCreateProgramWithSource"), code);
    if (program && count > 0) program->source = strdup(sources[0]);
    return program;
}

cl_int CL_API_CALL fake_build_program(cl_program program, cl_uint count,
                                      const cl_device_id *devices, const char *options,
                                      void(CL_CALLBACK *notify)(cl_program, void *), void *data) {
    (void)program, (void)count, (void)devices, (void)options, (void)notify, (void)data;
    return script_enter("clBuildProgram");
}

cl_int CL_API_CALL fake_build_info(cl_program program, cl_device_id device,
                                   cl_program_build_info what, size_t size, void *value,
                                   size_t *needed) {
    (void)program, (void)device;
    FAKE_ENTER("clGetProgramBuildInfo");
    static const char log[] = "fake: told to fail";
    if (what == CL_PROGRAM_BUILD_LOG) return fake_answer(log, sizeof log, size, value, needed);
    return CL_INVALID_VALUE;
}

cl_int CL_API_CALL fake_release_program(cl_program program) {
    free(program->source);
    free(program);
    return script_enter("clReleaseProgram");
}

/* How many parameters "name(" … ")" lists; -1 when the source has no such thing. */
static int count_parameters(const char *source, const char *name) {
    size_t n = strlen(name);
    for (const char *p = strstr(source, name); p; p = strstr(p + 1, name)) {
        if (p == source || (p[-1] != ' ' && p[-1] != '\n') || p[n] != '(') continue;
        const char *end = strchr(p, ')');
        if (!end) return -1;
        int commas = 0;
        for (const char *q = p; q < end; q++)
            commas += *q == ',';
        const char *first = p + n + 1 + strspn(p + n + 1, " \n");
        return first == end || strncmp(first, "void)", 5) == 0 ? 0 : commas + 1;
    }
    return -1;
}

cl_kernel CL_API_CALL fake_create_kernel(cl_program program, const char *name, cl_int *code) {
    int args = program->source ? count_parameters(program->source, name) : -1;
    cl_int failure = args < 0 ? CL_INVALID_KERNEL_NAME : script_enter("clCreateKernel");
    cl_kernel kernel = new_object(sizeof *kernel, failure, code);
    if (kernel) kernel->args = (cl_uint)args;
    return kernel;
}

cl_int CL_API_CALL fake_kernel_info(cl_kernel kernel, cl_kernel_info what, size_t size, void *value,
                                    size_t *needed) {
    FAKE_ENTER("clGetKernelInfo");
    if (what != CL_KERNEL_NUM_ARGS) return CL_INVALID_VALUE;
    return fake_answer(&kernel->args, sizeof kernel->args, size, value, needed);
}

static size_t largest_group(cl_device_id device) {
    const script_device *d = fake_device_of(device);
    return (size_t)(d->kernel_group ? d->kernel_group : d->group);
}

cl_int CL_API_CALL fake_group_info(cl_kernel kernel, cl_device_id device,
                                   cl_kernel_work_group_info what, size_t size, void *value,
                                   size_t *needed) {
    (void)kernel;
    FAKE_ENTER("clGetKernelWorkGroupInfo");
    if (what != CL_KERNEL_WORK_GROUP_SIZE) return CL_INVALID_VALUE;
    size_t limit = largest_group(device);
    return fake_answer(&limit, sizeof limit, size, value, needed);
}

cl_int CL_API_CALL fake_set_arg(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    (void)size, (void)value;
    FAKE_ENTER("clSetKernelArg");
    return index < kernel->args ? CL_SUCCESS : CL_INVALID_ARG_INDEX;
}

cl_int CL_API_CALL fake_release_kernel(cl_kernel kernel) {
    free(kernel);
    return script_enter("clReleaseKernel");
}

/* ---- commands and events -------------------------------------------------------------------- */

static cl_ulong now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (cl_ulong)t.tv_sec * 1000000000u + (cl_ulong)t.tv_nsec;
}

static cl_int done(cl_ulong start, cl_event *event) {
    if (!event) return CL_SUCCESS;
    *event = new_object(sizeof **event, CL_SUCCESS, NULL);
    if (!*event) return CL_OUT_OF_HOST_MEMORY;
    (*event)->references = 1;
    (*event)->start = start;
    (*event)->end = now() + 1; /* the clock may not have moved */
    return CL_SUCCESS;
}

cl_int CL_API_CALL fake_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                               const size_t *offset, const size_t *global, const size_t *local,
                               cl_uint waits, const cl_event *wait_list, cl_event *event) {
    (void)kernel, (void)offset, (void)global, (void)waits, (void)wait_list;
    cl_ulong start = now();
    FAKE_ENTER("clEnqueueNDRangeKernel");
    size_t items = 1;
    for (cl_uint i = 0; local && i < dimensions; i++)
        items *= local[i];
    if (items > largest_group(queue->device)) return CL_INVALID_WORK_GROUP_SIZE;
    return done(start, event);
}

cl_int CL_API_CALL fake_fill(cl_command_queue queue, cl_mem buffer, const void *pattern,
                             size_t pattern_size, size_t offset, size_t size, cl_uint waits,
                             const cl_event *wait_list, cl_event *event) {
    (void)queue, (void)waits, (void)wait_list;
    cl_ulong start = now();
    FAKE_ENTER("clEnqueueFillBuffer");
    for (size_t i = 0; i + pattern_size <= size; i += pattern_size)
        memcpy(buffer->bytes + offset + i, pattern, pattern_size);
    return done(start, event);
}

void *CL_API_CALL fake_map(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                           cl_map_flags flags, size_t offset, size_t size, cl_uint waits,
                           const cl_event *wait_list, cl_event *event, cl_int *code) {
    (void)queue, (void)blocking, (void)flags, (void)size, (void)waits, (void)wait_list;
    cl_int failure = script_enter("clEnqueueMapBuffer");
    if (code) *code = failure;
    if (failure != CL_SUCCESS) return NULL;
    if (event) done(now(), event);
    return buffer->bytes + offset;
}

cl_int CL_API_CALL fake_unmap(cl_command_queue queue, cl_mem buffer, void *data, cl_uint waits,
                              const cl_event *wait_list, cl_event *event) {
    (void)queue, (void)buffer, (void)data, (void)waits, (void)wait_list;
    FAKE_ENTER("clEnqueueUnmapMemObject");
    return done(now(), event);
}

/* Commands are done when they are enqueued: nothing to wait for. */
cl_int CL_API_CALL fake_barrier(cl_command_queue queue, cl_uint waits, const cl_event *wait_list,
                                cl_event *event) {
    (void)queue, (void)waits, (void)wait_list;
    FAKE_ENTER("clEnqueueBarrierWithWaitList");
    return done(now(), event);
}

cl_int CL_API_CALL fake_read(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                             size_t size, void *data, cl_uint waits, const cl_event *wait_list,
                             cl_event *event) {
    (void)queue, (void)blocking, (void)waits, (void)wait_list;
    cl_ulong start = now();
    FAKE_ENTER("clEnqueueReadBuffer");
    memcpy(data, buffer->bytes + offset, size);
    return done(start, event);
}

cl_int CL_API_CALL fake_write(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                              size_t offset, size_t size, const void *data, cl_uint waits,
                              const cl_event *wait_list, cl_event *event) {
    (void)queue, (void)blocking, (void)waits, (void)wait_list;
    cl_ulong start = now();
    FAKE_ENTER("clEnqueueWriteBuffer");
    memcpy(buffer->bytes + offset, data, size);
    return done(start, event);
}

cl_int CL_API_CALL fake_wait(cl_uint count, const cl_event *events) {
    (void)count, (void)events;
    return script_enter("clWaitForEvents");
}

cl_int CL_API_CALL fake_event_info(cl_event event, cl_event_info what, size_t size, void *value,
                                   size_t *needed) {
    FAKE_ENTER("clGetEventInfo");
    const cl_int status = CL_COMPLETE;
    if (what == CL_EVENT_COMMAND_QUEUE)
        return fake_answer(&event->queue, sizeof event->queue, size, value, needed);
    if (what != CL_EVENT_COMMAND_EXECUTION_STATUS) return CL_INVALID_VALUE;
    return fake_answer(&status, sizeof status, size, value, needed);
}

cl_int CL_API_CALL fake_profiling_info(cl_event event, cl_profiling_info what, size_t size,
                                       void *value, size_t *needed) {
    FAKE_ENTER("clGetEventProfilingInfo");
    cl_ulong stamp = what == CL_PROFILING_COMMAND_END ? event->end : event->start;
    if (!script_stamp(what == CL_PROFILING_COMMAND_END, &stamp))
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    return fake_answer(&stamp, sizeof stamp, size, value, needed);
}

cl_int CL_API_CALL fake_retain_event(cl_event event) {
    event->references++;
    return script_enter("clRetainEvent");
}

cl_int CL_API_CALL fake_release_event(cl_event event) {
    if (--event->references == 0) free(event);
    return script_enter("clReleaseEvent");
}
