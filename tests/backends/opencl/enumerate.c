/* Enumeration: what a device says, and what happens when a platform or a query is broken. */
#include "rig.h"

#include <stdio.h>
#include <string.h>

static void test_first_device(void **state) {
    (void)state;
    const lap_device_info *info = &rig_enumerate()->devices[0];
    assert_string_equal(info->backend, "opencl");
    assert_string_equal(info->language, "cl");
    assert_int_equal(strncmp(info->selector, "opencl:", 7), 0);
    assert_true(info->name[0] && info->platform[0] && info->driver[0] && info->vendor[0]);
    assert_int_equal(strncmp(info->api, "OpenCL ", 7), 0);
    assert_int_equal(strspn(info->api + 7, "0123456789."), strlen(info->api + 7));
    assert_non_null(strstr(info->toolchain, info->driver));
    assert_non_null(strstr(info->toolchain, info->api));
    assert_true(info->memory_bytes > 0 && info->max_alloc_bytes > 0);
    assert_true(info->max_alloc_bytes <= info->memory_bytes);
    assert_true(info->units > 0 && info->max_group_size > 0 && info->local_bytes > 0);
    assert_true(info->max_group_dim[0] > 0 && info->max_group_dim[2] > 0);
    assert_true(info->base_align_bytes >= 1 && 4096 % info->base_align_bytes == 0);
    assert_true(info->timer_resolution_s > 0 && info->timer_resolution_s < 1e-2);
    if (info->type == LAP_DEVICE_CPU) {
        assert_true(info->host_memory);
        assert_in_range(info->simd_width, 1, 64);
    }
}

/* A platform without devices (rusticl, AMD) comes first: the good one behind it is still listed,
 * under the number it has among all platforms. */
static void test_empty_platform_first(void **state) {
    (void)state;
    size_t devices = rig_enumerate()->count, notes = rig_enumerate()->note_count;
    char selector[40];
    snprintf(selector, sizeof selector, "%s", rig_enumerate()->devices[0].selector);
    assert_string_equal(selector, "opencl:0:0");

    staged.empty_platform = CL_DEVICE_NOT_FOUND;
    const lap_device_list *list = rig_enumerate();
    assert_int_equal(list->count, devices);
    assert_string_equal(list->devices[0].selector, "opencl:1:0");
    assert_int_equal(list->note_count, notes + 1);
    assert_string_equal(list->notes[0].platform, "Empty");
    assert_non_null(strstr(list->notes[0].reason, "no devices"));

    staged.empty_platform = CL_OUT_OF_HOST_MEMORY; /* any other error */
    list = rig_enumerate();
    assert_int_equal(list->count, devices);
    assert_non_null(strstr(list->notes[0].reason, "CL_OUT_OF_HOST_MEMORY"));
}

static const char *name_for(const char *bytes, size_t size) {
    staged.device_name = bytes;
    staged.device_name_size = size;
    return rig_enumerate()->devices[0].name;
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(name_for("Iris\0", 6), "Iris");
    assert_string_equal(name_for("Iris  \0\0\0", 9), "Iris");
    assert_string_equal(name_for("Iris", 4), "Iris"); /* no NUL at all */
    assert_string_equal(name_for("  x  ", 6), "x");
    assert_string_equal(name_for("A,B\"C", 6), "A,B\"C");
    assert_string_equal(name_for("Two\nlines", 10), "Two lines");
    assert_string_equal(name_for("Core\xC2\xAE i7", 10), "Core\xC2\xAE i7");
    assert_string_equal(name_for("bad\xFF", 5), "bad?");
    assert_string_equal(name_for("", 1), "unnamed OpenCL device");
    assert_string_equal(name_for("", 0), "unnamed OpenCL device");

    char longest[601];
    memset(longest, 'n', 600);
    longest[600] = '\0';
    assert_string_equal(name_for(longest + 344, 257), longest + 344); /* 256 characters: in full */
    assert_int_equal(strlen(name_for(longest, 601)), LAP_DEVICE_NAME - 1);
    longest[510] = (char)0xC2; /* a character that straddles the field's end is left out whole */
    longest[511] = (char)0xAE;
    assert_int_equal(strlen(name_for(longest, 601)), LAP_DEVICE_NAME - 2);
}

static void test_failing_queries(void **state) {
    (void)state;
    staged.fail_query = CL_DEVICE_NAME;
    assert_string_equal(rig_enumerate()->devices[0].name, "unnamed OpenCL device");
    staged.fail_query = CL_DEVICE_GLOBAL_MEM_SIZE;
    assert_int_equal(rig_enumerate()->devices[0].memory_bytes, 0);
    staged.fail_query = CL_DEVICE_EXTENSIONS;
    assert_false(rig_enumerate()->devices[0].has_uuid);
    assert_int_equal(rig_enumerate()->count > 0, 1);
    staged.fail_query = CL_DEVICE_MAX_WORK_ITEM_SIZES;
    assert_int_equal(rig_enumerate()->devices[0].max_group_dim[0], 0);
}

/* A device that claims to be several things at once is a simulator, not a GPU to prefer. */
static void test_types(void **state) {
    (void)state;
    staged.device_type = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT;
    assert_int_equal(rig_enumerate()->devices[0].type, LAP_DEVICE_GPU);
    staged.device_type = CL_DEVICE_TYPE_ACCELERATOR;
    assert_int_equal(rig_enumerate()->devices[0].type, LAP_DEVICE_ACCELERATOR);
    staged.device_type = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_ACCELERATOR;
    assert_int_equal(rig_enumerate()->devices[0].type, LAP_DEVICE_OTHER);
    staged.device_type = CL_DEVICE_TYPE_CPU;
    assert_int_equal(rig_enumerate()->devices[0].type, LAP_DEVICE_CPU);
    assert_true(rig_enumerate()->devices[0].host_memory);
}

static void stage_value(size_t i, cl_device_info what, const void *bytes, size_t size) {
    staged.values[i].what = what;
    staged.values[i].bytes = bytes;
    staged.values[i].size = size;
}

/* cl_nv_device_attribute_query, as a GPU driver without the Khronos queries answers it. */
static void test_nvidia_attributes(void **state) {
    (void)state;
    const cl_uint major = 9, minor = 0, warp = 32, bus = 0x1b, slot = 5 << 3 | 2, domain = 4;
    staged.extensions = "cl_khr_fp64 cl_nv_device_attribute_query";
    staged.device_type = CL_DEVICE_TYPE_GPU;
    stage_value(0, 0x4000, &major, 4);
    stage_value(1, 0x4001, &minor, 4);
    stage_value(2, 0x4003, &warp, 4);
    stage_value(3, 0x4008, &bus, 4);
    stage_value(4, 0x4009, &slot, 4);
    stage_value(5, 0x400A, &domain, 4);
    const cl_ulong local = 48 << 10;
    stage_value(6, CL_DEVICE_LOCAL_MEM_SIZE, &local, sizeof local);
    const lap_device_info *info = &rig_enumerate()->devices[0];
    assert_int_equal(info->cc_major, 9);
    assert_int_equal(info->cc_minor, 0);
    assert_int_equal(info->simd_width, 32);
    assert_int_equal(info->local_optin_bytes, 226 << 10); /* 227 KiB, less what is the driver's */
    assert_true(info->has_pci);
    assert_false(info->has_uuid || info->has_fp16);
    assert_int_equal(info->pci_domain, 4);
    assert_int_equal(info->pci_bus, 0x1b);
    assert_int_equal(info->pci_device, 5);
    assert_int_equal(info->pci_function, 2);
}

/* cl_amd_device_attribute_query: the topology is 24 bytes, its last three the address. */
static void test_amd_attributes(void **state) {
    (void)state;
    unsigned char topology[24] = {0};
    const cl_uint pcie = 1, other = 7, wave = 64;
    memcpy(topology, &pcie, 4);
    topology[21] = 0xc3;
    topology[22] = 4;
    topology[23] = 1;
    staged.extensions = "cl_amd_device_attribute_query cl_khr_fp16";
    staged.device_type = CL_DEVICE_TYPE_GPU;
    stage_value(0, 0x4037, topology, sizeof topology);
    stage_value(1, 0x4043, &wave, 4);
    const lap_device_info *info = &rig_enumerate()->devices[0];
    assert_true(info->has_pci && info->has_fp16);
    assert_int_equal(info->pci_bus, 0xc3);
    assert_int_equal(info->pci_device, 4);
    assert_int_equal(info->pci_function, 1);
    assert_int_equal(info->simd_width, 64);
    assert_int_equal(info->cc_major, 0);
    memcpy(topology, &other, 4);
    assert_false(rig_enumerate()->devices[0].has_pci);
    /* A longer name is another extension. */
    staged.extensions = "cl_amd_device_attribute_query2 xcl_khr_fp16";
    memcpy(topology, &pcie, 4);
    assert_false(rig_enumerate()->devices[0].has_pci || rig_enumerate()->devices[0].has_fp16);
}

static void test_old_version(void **state) {
    (void)state;
    size_t devices = rig_enumerate()->count;
    staged.device_version = "OpenCL 1.1 CUDA";
    assert_int_equal(rig_enumerate()->count, 0);
    assert_non_null(strstr(rig_enumerate()->notes[0].reason, "OpenCL 1.2 or newer"));
    staged.device_version = "OpenCL 1.2";
    assert_int_equal(rig_enumerate()->count, devices);
    assert_string_equal(rig_enumerate()->devices[0].api, "OpenCL 1.2");
}

static void test_version_text(void **state) {
    (void)state;
    char text[256];
    lap_opencl_ops.version(text, sizeof text);
    assert_non_null(strstr(text, "OpenCL ICD Loader"));
    assert_non_null(strstr(text, "headers "));
    assert_non_null(strstr(text, "CLBlast"));
    lap_opencl_ops.version(text, 8);
    assert_int_equal(strlen(text), 7);
}

int main(void) {
    if (!rig_has_device()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_first_device, rig_unstage),
        cmocka_unit_test_teardown(test_empty_platform_first, rig_unstage),
        cmocka_unit_test_teardown(test_names, rig_unstage),
        cmocka_unit_test_teardown(test_failing_queries, rig_unstage),
        cmocka_unit_test_teardown(test_types, rig_unstage),
        cmocka_unit_test_teardown(test_nvidia_attributes, rig_unstage),
        cmocka_unit_test_teardown(test_amd_attributes, rig_unstage),
        cmocka_unit_test_teardown(test_old_version, rig_unstage),
        cmocka_unit_test_teardown(test_version_text, rig_unstage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
