/* Compiling and launching kernels. Source text in, launches out: what a kernel computes is not
 * known here.
 *
 * Options are "-cl-std=CL1.2" and the defines: no fast math of any kind. Build logs are driver
 * output and are not trusted: their size may be missing, absurd or wrong.
 */
#include "opencl.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOG_READ_LIMIT = 64 << 20, /* the API gives a log whole or not at all */
    LOG_KEEP_BYTES = 64 << 10,
    BINARY_LIMIT = 64 << 20,
    LOG_LINES = 20
};

/* ---- build ---------------------------------------------------------------------------------- */

static lap_status make_options(const lap_build *build, lap_text *options, lap_error *err) {
    lap_text_add(options, LAP_CL_OPTIONS);
    for (size_t i = 0; i < build->define_count; i++)
        lap_text_addf(options, " -D%s=%" PRId64, build->defines[i].name, build->defines[i].value);
    if (options->failed)
        return LAP_FAIL(err, LAP_E_NOMEM, "building %s: no memory for the options", build->stem);
    return LAP_OK;
}

/* The build log, malloc'ed and terminated, or NULL when the driver has none to give. */
static char *read_log(cl_program program, cl_device_id device) {
    size_t size = 0;
    if (LAP_CL(NULL, LAP_CL_QUERY, "",
               clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size)) !=
            LAP_OK ||
        size == 0 || size > LOG_READ_LIMIT)
        return NULL;
    char *log = calloc(1, size + 1);
    if (!log) return NULL;
    if (LAP_CL(NULL, LAP_CL_QUERY, "",
               clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log, NULL)) !=
        LAP_OK) {
        free(log);
        return NULL;
    }
    log[size < LOG_KEEP_BYTES ? size : LOG_KEEP_BYTES] = '\0';
    return log;
}

/* The first lines that say something, each on a line of its own. */
static void add_log(lap_text *text, char *log) {
    size_t lines = 0;
    char *rest = NULL;
    for (char *line = strtok_r(log, "\r\n", &rest); line && lines < LOG_LINES;
         line = strtok_r(NULL, "\r\n", &rest)) {
        lap_text_clean(line);
        if (!*line) continue;
        lap_text_addf(text, "\n%s", line);
        lines++;
    }
    if (lines == 0) lap_text_add(text, "\n(the driver gave an empty build log)");
}

static lap_status build_failed(const lap_build *build, const lap_cl_device *device,
                               cl_program program, cl_int code, const char *options,
                               lap_error *err) {
    lap_text text = {0};
    lap_text_addf(&text, "%s: kernel %s does not build with %.300s%s", build->stem, build->entry,
                  options, strlen(options) > 300 ? "…" : "");
    char *log = read_log(program, device->id);
    if (log)
        add_log(&text, log);
    else
        lap_text_add(&text, "\n(the driver gave no build log)");
    free(log);
    lap_status status = lap_cl_status(LAP_CL_BUILD, code);
    (void)lap_fail_native_at(err, status, __FILE__, __LINE__, "clBuildProgram", code,
                             lap_cl_error_name(code), "%s", lap_text_get(&text));
    lap_text_free(&text);
    return status;
}

/* Build a program, made of source or of a binary; it is released when that fails. */
static lap_status finish_program(lap_cl_device *device, const lap_build *build, const char *options,
                                 cl_program program, lap_error *err) {
    cl_int code;
    LAP_CL_IGNORE((code = clBuildProgram(program, 1, &device->id, options, NULL, NULL)));
    cl_build_status built = CL_BUILD_SUCCESS;
    if (code == CL_SUCCESS && /* some drivers fail only here */
        LAP_CL(NULL, LAP_CL_QUERY, "",
               clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_STATUS, sizeof built,
                                     &built, NULL)) == LAP_OK &&
        built == CL_BUILD_ERROR)
        code = CL_BUILD_PROGRAM_FAILURE;
    if (code == CL_SUCCESS) return LAP_OK;
    lap_status status = build_failed(build, device, program, code, options, err);
    LAP_CL_IGNORE(clReleaseProgram(program));
    return status;
}

/* The binary of a program whose context has one device, terminated, malloc'ed. */
static lap_status read_binary(cl_program program, const char *name, char **bytes, size_t *size,
                              lap_error *err) {
    size_t length = 0;
    LAP_TRY(
        LAP_CL(err, LAP_CL_QUERY, "asking for the size of a program's binary",
               clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof length, &length, NULL)));
    if (length == 0 || length > BINARY_LIMIT)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s: the driver has no binary of it", name);
    char *binary = malloc(length + 1);
    if (!binary)
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for %zu bytes of its binary", name,
                        length);
    lap_status status = LAP_CL(
        err, LAP_CL_QUERY, "asking for a program's binary",
        clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, (void *)&binary, NULL));
    if (status != LAP_OK) {
        free(binary);
        return status;
    }
    binary[length] = '\0';
    *bytes = binary;
    *size = length;
    return LAP_OK;
}

static lap_status load_program(lap_cl_device *device, const lap_build *build, const char *options,
                               const void *bytes, size_t size, cl_program *out, lap_error *err) {
    cl_int code, loaded = CL_SUCCESS;
    cl_program program = NULL;
    const unsigned char *binary = bytes;
    lap_status status = LAP_CL(err, LAP_CL_BUILD, "making a program of a binary",
                               (program = clCreateProgramWithBinary(device->context, 1, &device->id,
                                                                    &size, &binary, &loaded, &code),
                                code != CL_SUCCESS ? code : loaded));
    if (status != LAP_OK) {
        if (program) LAP_CL_IGNORE(clReleaseProgram(program));
        lap_error_prefix(err, "%s: ", build->stem);
        return status;
    }
    LAP_TRY(finish_program(device, build, options, program, err));
    *out = program;
    return LAP_OK;
}

/* *program again, for a target that the driver does not compile for. */
static lap_status raise_target(lap_cl_device *device, const lap_build *build, const char *options,
                               const char *target, cl_program *program, lap_error *err) {
    char *ptx = NULL;
    size_t size = 0;
    lap_text text = {0};
    cl_program raised = NULL;
    lap_status status = read_binary(*program, build->stem, &ptx, &size, err);
    if (status == LAP_OK) {
        status = lap_cl_retarget(ptx, target, &text, err);
        if (status != LAP_OK) lap_error_prefix(err, "%s: ", build->stem);
    }
    if (status == LAP_OK)
        status = load_program(device, build, options, text.data, text.length, &raised, err);
    free(ptx);
    lap_text_free(&text);
    LAP_CL_IGNORE(clReleaseProgram(*program));
    *program = raised;
    return status;
}

static lap_status build_program(lap_cl_device *device, const lap_build *build, const char *options,
                                cl_program *out, lap_error *err) {
    cl_int code;
    cl_program program = NULL;
    char target[LAP_CL_TARGET_ROOM];
    lap_status status =
        LAP_CL(err, LAP_CL_BUILD, "making a program",
               (program = clCreateProgramWithSource(device->context, 1,
                                                    (const char *[]){build->source}, NULL, &code),
                code));
    if (status != LAP_OK) {
        lap_error_prefix(err, "%s: ", build->stem);
        return status;
    }
    LAP_TRY(finish_program(device, build, options, program, err));
    if (lap_cl_target_of(build->source, target))
        LAP_TRY(raise_target(device, build, options, target, &program, err));
    *out = program;
    return LAP_OK;
}

/* ---- what the driver says of the kernel ------------------------------------------------------ */

static uint64_t group_info(const lap_cl_kernel *kernel, cl_kernel_work_group_info what,
                           size_t size) {
    union {
        size_t size;
        cl_ulong ulong;
    } value = {.ulong = 0};
    if (LAP_CL(NULL, LAP_CL_QUERY, "",
               clGetKernelWorkGroupInfo(kernel->handle, kernel->device->id, what, size, &value,
                                        NULL)) != LAP_OK)
        return 0;
    return size == sizeof value.ulong ? value.ulong : value.size;
}

static void fill_info(lap_cl_kernel *kernel, lap_kernel_info *info) {
    const size_t device_limit = kernel->device->max_group_size;
    uint64_t limit = group_info(kernel, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size_t));
    if (limit == 0 || (device_limit > 0 && limit > device_limit)) limit = device_limit;
    kernel->max_group_size = (size_t)limit;
    *info = (lap_kernel_info){
        .max_group_size = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit,
        .local_bytes = group_info(kernel, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(cl_ulong)),
        .private_bytes = group_info(kernel, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof(cl_ulong)),
        .preferred_multiple = (uint32_t)group_info(
            kernel, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof(size_t)),
    };
}

static lap_status make_kernel(lap_cl_kernel *kernel, cl_program program, const lap_build *build,
                              lap_error *err) {
    cl_int code;
    lap_status status =
        LAP_CL(err, LAP_CL_BUILD, "finding the kernel",
               (kernel->handle = clCreateKernel(program, build->entry, &code), code));
    if (status == LAP_OK) {
        status = LAP_CL(err, LAP_CL_BUILD, "counting the kernel's arguments",
                        clGetKernelInfo(kernel->handle, CL_KERNEL_NUM_ARGS,
                                        sizeof kernel->arg_count, &kernel->arg_count, NULL));
        if (status != LAP_OK) LAP_CL_IGNORE(clReleaseKernel(kernel->handle));
    }
    if (status != LAP_OK) lap_error_prefix(err, "%s, kernel %s: ", build->stem, build->entry);
    return status;
}

/* From source, or from bytes when there are any. */
static lap_status new_kernel(lap_cl_device *device, const lap_build *build, const void *bytes,
                             size_t size, void **out, lap_kernel_info *info, lap_error *err) {
    *out = NULL;
    lap_cl_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) return LAP_FAIL(err, LAP_E_NOMEM, "building %s: no memory", build->stem);
    kernel->device = device;
    snprintf(kernel->entry, sizeof kernel->entry, "%s", build->entry);
    lap_text options = {0};
    cl_program program = NULL;
    lap_status status = make_options(build, &options, err);
    if (status == LAP_OK)
        status =
            bytes ? load_program(device, build, lap_text_get(&options), bytes, size, &program, err)
                  : build_program(device, build, lap_text_get(&options), &program, err);
    if (status == LAP_OK) status = make_kernel(kernel, program, build, err);
    if (program) LAP_CL_IGNORE(clReleaseProgram(program)); /* the kernel keeps it */
    lap_text_free(&options);
    if (status != LAP_OK) {
        free(kernel);
        return status;
    }
    fill_info(kernel, info);
    *out = kernel;
    return LAP_OK;
}

lap_status lap_cl_kernel_build(void *device, const lap_build *build, void **kernel,
                               lap_kernel_info *info, lap_error *err) {
    return new_kernel(device, build, NULL, 0, kernel, info, err);
}

lap_status lap_cl_kernel_load(void *device, const lap_build *build, const void *bytes, size_t size,
                              void **kernel, lap_kernel_info *info, lap_error *err) {
    return new_kernel(device, build, bytes, size, kernel, info, err);
}

/* Contexts here have one device, so its binary is the only one. */
lap_status lap_cl_kernel_binary(void *handle, void **bytes, size_t *size, lap_error *err) {
    lap_cl_kernel *kernel = handle;
    cl_program program = NULL;
    LAP_TRY(LAP_CL(err, LAP_CL_QUERY, "asking for a kernel's program",
                   clGetKernelInfo(kernel->handle, CL_KERNEL_PROGRAM, sizeof program,
                                   (void *)&program, NULL)));
    char name[80], *binary = NULL;
    snprintf(name, sizeof name, "entry %s", kernel->entry);
    LAP_TRY(read_binary(program, name, &binary, size, err));
    *bytes = binary;
    return LAP_OK;
}

void lap_cl_kernel_free(void *handle) {
    lap_cl_kernel *kernel = handle;
    if (!kernel) return;
    LAP_CL_IGNORE(clReleaseKernel(kernel->handle));
    free(kernel);
}

/* ---- launch --------------------------------------------------------------------------------- */

/* The driver's own refusals (-54, -55, -52) do not say which number was wrong. */
static lap_status check_launch(const lap_cl_kernel *kernel, const lap_raw_launch *launch,
                               lap_error *err) {
    const lap_cl_device *device = kernel->device;
    if (launch->dynamic_local_bytes != 0)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "kernel %s: OpenCL has no dynamic local memory (%zu bytes asked for); "
                        "declare it in the kernel",
                        kernel->entry, launch->dynamic_local_bytes);
    if (launch->arg_count != kernel->arg_count)
        return LAP_FAIL(err, LAP_E_LAUNCH, "kernel %s takes %u arguments, not %zu", kernel->entry,
                        kernel->arg_count, launch->arg_count);
    uint64_t items = 1;
    for (int i = 0; i < 3; i++) {
        uint32_t local = launch->local[i];
        if (device->max_group_dim[i] > 0 && local > device->max_group_dim[i])
            return LAP_FAIL(err, LAP_E_LAUNCH,
                            "kernel %s: a group of %u work-items in dimension %d is above the "
                            "device's limit of %zu",
                            kernel->entry, local, i, device->max_group_dim[i]);
        if (local > 0 && items > UINT64_MAX / local) items = UINT64_MAX / local;
        items *= local;
        if ((uint64_t)launch->groups[i] * local > SIZE_MAX)
            return LAP_FAIL(err, LAP_E_LAUNCH,
                            "kernel %s: %u groups of %u in dimension %d are too "
                            "many for this machine's size type",
                            kernel->entry, launch->groups[i], local, i);
    }
    if (kernel->max_group_size > 0 && items > kernel->max_group_size)
        return LAP_FAIL(err, LAP_E_LAUNCH,
                        "kernel %s: a group of %u x %u x %u work-items is above this kernel's "
                        "limit of %zu on this device",
                        kernel->entry, launch->local[0], launch->local[1], launch->local[2],
                        kernel->max_group_size);
    return LAP_OK;
}

/* Tell the driver about one argument unless it knows already. Buffers are compared by id: their
 * addresses may come back for another buffer. */
static lap_status set_arg(lap_cl_kernel *kernel, cl_uint index, const lap_raw_arg *arg,
                          lap_error *err) {
    const lap_cl_buffer *buffer = arg->kind == LAP_ARG_BUFFER ? arg->buffer : NULL;
    uint64_t id = buffer ? buffer->id : 0;
    lap_cl_arg *known = &kernel->args[index];
    if (known->set && known->kind == arg->kind &&
        (arg->kind == LAP_ARG_BUFFER ? known->buffer_id == id : known->i32 == arg->i32))
        return LAP_OK;
    known->set = false;
    cl_mem memory = buffer ? buffer->memory : NULL;
    cl_int number = arg->i32;
    const void *value = arg->kind == LAP_ARG_BUFFER ? (const void *)&memory : (const void *)&number;
    size_t size = arg->kind == LAP_ARG_BUFFER ? sizeof memory : sizeof number;
    lap_status status = LAP_CL(err, LAP_CL_ENQUEUE, "setting an argument",
                               clSetKernelArg(kernel->handle, index, size, value));
    if (status != LAP_OK) {
        lap_error_prefix(err, "entry %s, argument %u: ", kernel->entry, index);
        return status;
    }
    *known = (lap_cl_arg){.set = true, .kind = arg->kind, .buffer_id = id, .i32 = arg->i32};
    return LAP_OK;
}

lap_status lap_cl_enqueue(void *queue_handle, void *kernel_handle, const lap_raw_launch *launch,
                          lap_error *err) {
    lap_cl_queue *queue = queue_handle;
    lap_cl_kernel *kernel = kernel_handle;
    LAP_TRY(check_launch(kernel, launch, err));
    for (cl_uint i = 0; i < kernel->arg_count; i++)
        LAP_TRY(set_arg(kernel, i, &launch->args[i], err));
    size_t local[3], global[3];
    for (int i = 0; i < 3; i++) {
        local[i] = launch->local[i];
        global[i] = (size_t)launch->groups[i] * launch->local[i];
    }
    cl_event event = NULL, *wanted = launch->unstamped && !queue->pending ? NULL : &event;
    lap_status status = LAP_CL(err, LAP_CL_ENQUEUE, "the launch",
                               clEnqueueNDRangeKernel(queue->handle, kernel->handle, 3, NULL,
                                                      global, local, 0, NULL, wanted));
    if (status != LAP_OK) {
        lap_error_prefix(err, "entry %s: ", kernel->entry);
        return status;
    }
    lap_cl_queue_push(queue, event);
    return LAP_OK;
}
