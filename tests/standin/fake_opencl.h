/* Private to the fake OpenCL driver: its objects, and how its functions begin. */
#ifndef LAP_TESTS_FAKE_OPENCL_H
#define LAP_TESTS_FAKE_OPENCL_H

#include "script.h"

#include <CL/cl_icd.h>

/* Every OpenCL object starts with the loader's dispatch table. */
struct _cl_platform_id {
    const cl_icd_dispatch *dispatch;
    unsigned index;
};

struct _cl_device_id {
    const cl_icd_dispatch *dispatch;
    cl_platform_id platform;
    unsigned index;
};

extern const cl_icd_dispatch fake_dispatch;

/* One answer in OpenCL's way: the size, and the bytes when there is room. */
cl_int fake_answer(const void *bytes, size_t n, size_t size, void *value, size_t *needed);
/* What the script says of a device. */
const script_device *fake_device_of(cl_device_id device);
uint64_t fake_max_alloc(const script_device *device);

/* The first line of a function that gives a code. */
#define FAKE_ENTER(function)                                                                       \
    do {                                                                                           \
        cl_int code_ = script_enter(function);                                                     \
        if (code_ != CL_SUCCESS) return code_;                                                     \
    } while (0)

/* fake_opencl_work.c */
cl_context CL_API_CALL fake_create_context(const cl_context_properties *properties, cl_uint count,
                                           const cl_device_id *devices,
                                           void(CL_CALLBACK *notify)(const char *, const void *,
                                                                     size_t, void *),
                                           void *data, cl_int *code);
cl_int CL_API_CALL fake_release_context(cl_context context);
cl_command_queue CL_API_CALL fake_create_queue(cl_context context, cl_device_id device,
                                               cl_command_queue_properties properties,
                                               cl_int *code);
cl_int CL_API_CALL fake_release_queue(cl_command_queue queue);
cl_int CL_API_CALL fake_flush(cl_command_queue queue);
cl_int CL_API_CALL fake_finish(cl_command_queue queue);
cl_mem CL_API_CALL fake_create_buffer(cl_context context, cl_mem_flags flags, size_t size,
                                      void *host, cl_int *code);
cl_mem CL_API_CALL fake_create_sub_buffer(cl_mem parent, cl_mem_flags flags,
                                          cl_buffer_create_type type, const void *info,
                                          cl_int *code);
cl_int CL_API_CALL fake_release_memory(cl_mem memory);
cl_program CL_API_CALL fake_create_program(cl_context context, cl_uint count, const char **sources,
                                           const size_t *lengths, cl_int *code);
cl_int CL_API_CALL fake_build_program(cl_program program, cl_uint count,
                                      const cl_device_id *devices, const char *options,
                                      void(CL_CALLBACK *notify)(cl_program, void *), void *data);
cl_int CL_API_CALL fake_build_info(cl_program program, cl_device_id device,
                                   cl_program_build_info what, size_t size, void *value,
                                   size_t *needed);
cl_int CL_API_CALL fake_release_program(cl_program program);
cl_kernel CL_API_CALL fake_create_kernel(cl_program program, const char *name, cl_int *code);
cl_int CL_API_CALL fake_kernel_info(cl_kernel kernel, cl_kernel_info what, size_t size, void *value,
                                    size_t *needed);
cl_int CL_API_CALL fake_group_info(cl_kernel kernel, cl_device_id device,
                                   cl_kernel_work_group_info what, size_t size, void *value,
                                   size_t *needed);
cl_int CL_API_CALL fake_set_arg(cl_kernel kernel, cl_uint index, size_t size, const void *value);
cl_int CL_API_CALL fake_release_kernel(cl_kernel kernel);
cl_int CL_API_CALL fake_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                               const size_t *offset, const size_t *global, const size_t *local,
                               cl_uint waits, const cl_event *wait_list, cl_event *event);
cl_int CL_API_CALL fake_fill(cl_command_queue queue, cl_mem buffer, const void *pattern,
                             size_t pattern_size, size_t offset, size_t size, cl_uint waits,
                             const cl_event *wait_list, cl_event *event);
void *CL_API_CALL fake_map(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                           cl_map_flags flags, size_t offset, size_t size, cl_uint waits,
                           const cl_event *wait_list, cl_event *event, cl_int *code);
cl_int CL_API_CALL fake_unmap(cl_command_queue queue, cl_mem buffer, void *data, cl_uint waits,
                              const cl_event *wait_list, cl_event *event);
cl_int CL_API_CALL fake_barrier(cl_command_queue queue, cl_uint waits, const cl_event *wait_list,
                                cl_event *event);
cl_int CL_API_CALL fake_read(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                             size_t size, void *data, cl_uint waits, const cl_event *wait_list,
                             cl_event *event);
cl_int CL_API_CALL fake_write(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                              size_t offset, size_t size, const void *data, cl_uint waits,
                              const cl_event *wait_list, cl_event *event);
cl_int CL_API_CALL fake_wait(cl_uint count, const cl_event *events);
cl_int CL_API_CALL fake_event_info(cl_event event, cl_event_info what, size_t size, void *value,
                                   size_t *needed);
cl_int CL_API_CALL fake_profiling_info(cl_event event, cl_profiling_info what, size_t size,
                                       void *value, size_t *needed);
cl_int CL_API_CALL fake_retain_event(cl_event event);
cl_int CL_API_CALL fake_release_event(cl_event event);

#endif
