/* Enumeration: every platform is asked, and one that fails stops none of the others. What cannot be
 * listed becomes a note that says why and, where nothing was found, what was looked for.
 */
#include "opencl.h"

#include "base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR_FOLDER "/etc/OpenCL/vendors"

/* What loaders read: OCL_ICD_VENDORS (both loaders), OCL_ICD_FILENAMES (Khronos),
 * OPENCL_VENDOR_PATH (ocl-icd). */
static const char *const variables[] = {"OCL_ICD_VENDORS", "OCL_ICD_FILENAMES",
                                        "OPENCL_VENDOR_PATH"};

static bool ends_in_icd(const char *name) {
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".icd") == 0;
}

/* "it holds a.icd, b.icd" / "it holds no ICD file" / "it does not exist" */
static void describe_folder(lap_text *text, const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) {
        lap_text_add(text, ", which cannot be read");
        return;
    }
    size_t count = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (!ends_in_icd(entry->d_name)) continue;
        if (count < 4)
            lap_text_addf(text, "%s%.60s", count ? ", " : ", which holds ", entry->d_name);
        count++;
    }
    if (count == 0) lap_text_add(text, ", which holds no ICD file");
    if (count > 4) lap_text_addf(text, " and %zu more", count - 4);
    closedir(dir);
}

static lap_status note_no_platform(lap_list_builder *builder, const char *reason, lap_error *err) {
    lap_text looked = {0};
    const char *vendors = getenv("OCL_ICD_VENDORS");
    if (vendors && *vendors) {
        lap_text_add(&looked, "ICD files as OCL_ICD_VENDORS says");
    } else {
        lap_text_add(&looked, "ICD files in " VENDOR_FOLDER);
        describe_folder(&looked, VENDOR_FOLDER);
    }
    lap_text_add(&looked, " (");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        char shown[100] = "";
        if (value) snprintf(shown, sizeof shown, "%s", value);
        lap_text_clean(shown);
        lap_text_addf(&looked, "%s%s%s%s", i ? ", " : "", variables[i], value ? "=" : " not set",
                      shown);
    }
    lap_text_add(&looked, ")");
    lap_status status =
        lap_list_add_note(builder, "opencl", "", err, "no OpenCL platform%s: looked for %s", reason,
                          lap_text_get(&looked));
    lap_text_free(&looked);
    return status;
}

/* Kernels and the queue functions need OpenCL 1.2. A version that cannot be read is given a try. */
static bool too_old(const char *api) {
    int major, minor;
    if (sscanf(api, "OpenCL %d.%d", &major, &minor) != 2) return false;
    return major < 1 || (major == 1 && minor < 2);
}

static bool says_no(cl_device_id device, cl_device_info what) {
    cl_bool value;
    return lap_cl_device_value(device, what, &value, sizeof value) && value == CL_FALSE;
}

static lap_status add_device(lap_list_builder *builder, cl_platform_id platform,
                             cl_device_id device, cl_uint p, cl_uint d, lap_error *err) {
    lap_device_info *info = calloc(1, sizeof *info);
    if (!info) return LAP_FAIL(err, LAP_E_NOMEM, "listing OpenCL devices: no memory");
    lap_cl_device_describe(platform, device, info);
    snprintf(info->selector, sizeof info->selector, "opencl:%u:%u", p, d);
    lap_status status;
    if (says_no(device, CL_DEVICE_AVAILABLE))
        status =
            lap_list_add_note(builder, "opencl", info->platform, err,
                              "%s (%s) says that it is not available", info->selector, info->name);
    else if (says_no(device, CL_DEVICE_COMPILER_AVAILABLE))
        status = lap_list_add_note(builder, "opencl", info->platform, err,
                                   "%s (%s) has no compiler for kernel sources", info->selector,
                                   info->name);
    else if (too_old(info->api))
        status = lap_list_add_note(builder, "opencl", info->platform, err,
                                   "%s (%s) has %s: OpenCL 1.2 or newer is needed", info->selector,
                                   info->name, info->api);
    else
        status = lap_list_add_device(builder, info, err);
    free(info);
    return status;
}

static lap_status note_platform(lap_list_builder *builder, cl_platform_id platform, cl_uint p,
                                cl_int code, lap_error *err) {
    char *name = lap_cl_platform_text(platform, CL_PLATFORM_NAME);
    lap_status status;
    if (code == CL_SUCCESS || code == CL_DEVICE_NOT_FOUND)
        status =
            lap_list_add_note(builder, "opencl", name ? name : "", err,
                              "platform opencl:%u has no devices (%s)", p, lap_cl_error_name(code));
    else
        status = lap_list_add_note(builder, "opencl", name ? name : "", err,
                                   "platform opencl:%u cannot list its devices: clGetDeviceIDs "
                                   "gave %s (%d)",
                                   p, lap_cl_error_name(code), code);
    free(name);
    return status;
}

static lap_status add_platform(lap_list_builder *builder, cl_platform_id platform, cl_uint p,
                               lap_error *err) {
    cl_uint count = 0;
    cl_int code;
    LAP_CL_IGNORE((code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count)));
    if (code != CL_SUCCESS || count == 0) return note_platform(builder, platform, p, code, err);
    cl_device_id *devices = calloc(count, sizeof *devices);
    if (!devices) return LAP_FAIL(err, LAP_E_NOMEM, "listing OpenCL devices: no memory");
    cl_uint room = count;
    LAP_CL_IGNORE((code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, room, devices, &count)));
    lap_status status = LAP_OK;
    if (code != CL_SUCCESS) status = note_platform(builder, platform, p, code, err);
    for (cl_uint d = 0; d < room && code == CL_SUCCESS && status == LAP_OK; d++)
        if (devices[d]) status = add_device(builder, platform, devices[d], p, d, err);
    free(devices);
    return status;
}

lap_status lap_cl_enumerate(lap_list_builder *builder, lap_error *err) {
    const char *missing = lap_cl_missing();
    if (missing) return lap_list_add_note(builder, "opencl", "", err, "%s", missing);
    cl_uint count = 0;
    cl_int code;
    LAP_CL_IGNORE((code = clGetPlatformIDs(0, NULL, &count)));
    if (code != CL_SUCCESS || count == 0) {
        char reason[96] = "";
        if (code != CL_SUCCESS)
            snprintf(reason, sizeof reason, " (%s, %d)", lap_cl_error_name(code), code);
        return note_no_platform(builder, reason, err);
    }
    cl_platform_id *platforms = calloc(count, sizeof *platforms);
    if (!platforms) return LAP_FAIL(err, LAP_E_NOMEM, "listing OpenCL platforms: no memory");
    cl_uint room = count;
    LAP_CL_IGNORE((code = clGetPlatformIDs(room, platforms, &count)));
    lap_status status = LAP_OK;
    if (code != CL_SUCCESS)
        status = lap_list_add_note(builder, "opencl", "", err,
                                   "the OpenCL platforms cannot be listed: clGetPlatformIDs gave "
                                   "%s (%d)",
                                   lap_cl_error_name(code), code);
    for (cl_uint p = 0; p < room && code == CL_SUCCESS && status == LAP_OK; p++)
        if (platforms[p]) status = add_platform(builder, platforms[p], p, err);
    free(platforms);
    return status;
}
