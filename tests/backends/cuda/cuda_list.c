/* Enumeration: every way in which there is no device becomes one note that says why; a device is
 * described fully; nothing makes a context. */
#include "collect.h"

#include <stdlib.h>

static int setup(void **state) {
    (void)state;
    standin_reset();
    unsetenv("CUDA_VISIBLE_DEVICES");
    use_nvrtc(NVRTC_STANDIN);
    return 0;
}

static void one_note(int code, int driver, const char *part, const char *name) {
    standin_reset();
    standin.count_error = code;
    standin.driver = driver;
    lap_list_builder list;
    collect(&list);
    assert_int_equal(list.count, 0);
    assert_int_equal(list.note_count, 1);
    assert_string_equal(list.notes[0].backend, "cuda");
    assert_contains(list.notes[0].reason, part);
    assert_contains(list.notes[0].reason, name);
    /* The failure is not left for a later call to find. */
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void test_no_driver(void **state) {
    (void)state;
    one_note(35, 0, "no NVIDIA driver: libcuda.so.1 was not found or is older than CUDA",
             "cudaErrorInsufficientDriver, 35");
}

static void test_old_driver(void **state) {
    (void)state;
    one_note(35, 11040, "supports CUDA 11.4, this program needs one for CUDA", "35");
}

static void test_no_device(void **state) {
    (void)state;
    one_note(100, 13000, "shows no CUDA device", "cudaErrorNoDevice, 100");
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    one_note(100, 13000, "CUDA_VISIBLE_DEVICES is \"7\"", "100");
}

static void test_driver_broken(void **state) {
    (void)state;
    one_note(3, 13000, "did not start", "cudaErrorInitializationError, 3");
    one_note(999, 13000, "did not start", "cudaErrorUnknown, 999");
    one_note(46, 13000, "could not be asked", "46");
}

static void test_count_zero(void **state) {
    (void)state;
    standin.devices = 0;
    lap_list_builder list;
    collect(&list);
    assert_int_equal(list.count, 0);
    assert_int_equal(list.note_count, 1);
    assert_contains(list.notes[0].reason, "shows no CUDA device");
}

static void test_described(void **state) {
    (void)state;
    standin.devices = 2;
    standin.memory_bytes = 3u << 20;
    strcpy(standin.name, "  Odd\tname \x01");
    lap_list_builder list;
    collect(&list);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.note_count, 0);
    const lap_device_info *d = &list.devices[1];
    assert_string_equal(d->backend, "cuda");
    assert_string_equal(d->language, "cu");
    assert_string_equal(d->selector, "cuda:1");
    assert_string_equal(d->name, "Odd name");
    assert_string_equal(d->toolchain, "NVRTC 13.0");
    assert_string_equal(d->api, "CUDA 13.0");
    assert_true(d->driver[0] != '\0');
    assert_int_equal(d->type, LAP_DEVICE_GPU);
    assert_false(d->host_memory);
    assert_true(d->has_fp16);
    assert_int_equal(d->cc_major, 9);
    assert_int_equal(d->memory_bytes, 3u << 20);
    assert_int_equal(d->max_alloc_bytes, 3u << 20);
    assert_int_equal(d->cache_bytes, 50 << 20);
    assert_int_equal(d->local_bytes, 48 << 10);
    assert_int_equal(d->local_optin_bytes, 227 << 10);
    assert_int_equal(d->units, 132);
    assert_int_equal(d->clock_mhz, 1980);
    assert_int_equal(d->max_group_size, 1024);
    assert_int_equal(d->max_group_dim[2], 64);
    assert_int_equal(d->simd_width, 32);
    assert_int_equal(d->base_align_bytes, 256);
    assert_true(d->has_uuid);
    assert_int_equal(d->uuid[15], 0xa0 + 15 + 1);
    assert_true(d->has_pci);
    assert_int_equal(d->pci_domain, 1);
    assert_int_equal(d->pci_bus, 0x3c);
    assert_int_equal(d->pci_device, 2);
    assert_int_equal(d->native[0], 1);
}

static void test_no_context(void **state) {
    (void)state;
    lap_list_builder list;
    collect(&list);
    assert_int_equal(standin_calls("cudaSetDevice"), 0);
    assert_int_equal(standin_calls("cudaFree"), 0);
    assert_int_equal(standin_calls("cudaMemGetInfo"), 0);
    assert_nothing_alive();
}

/* Of several devices the wanted one only is touched; one that another process has is an error with
 * its reason, and stays listed. */
static void test_exclusive(void **state) {
    (void)state;
    standin.devices = 4;
    lap_list_builder list;
    collect(&list);
    assert_int_equal(list.count, 4);
    void *device, *queue;
    lap_error err = {0};
    assert_ok(lap_cuda_ops.open(&list.devices[2], &device, &err));
    assert_ok(lap_cuda_ops.queue_new(device, &queue, &err));
    assert_int_equal(standin.used, 1u << 2);
    close_both(device, queue);
    standin_fail("cudaSetDevice", 1, 46);
    assert_int_equal(lap_cuda_ops.open(&list.devices[1], &device, &err), LAP_E_DEVICE);
    assert_contains(err.message, "another process has it exclusively");
    assert_int_equal(err.native, 46);
    collect(&list);
    assert_int_equal(list.count, 4);
    assert_nothing_alive();
}

/* A part of a GPU, as CUDA_VISIBLE_DEVICES=MIG-... leaves it: one device with a name and a UUID of
 * its own, smaller than the whole. It is listed and opened like any other. */
static void test_part_of_a_gpu(void **state) {
    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "MIG-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", 1);
    strcpy(standin.name, "NVIDIA H200 MIG 1g.18gb");
    standin.memory_bytes = (size_t)18 << 30;
    lap_list_builder list;
    collect(&list);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.devices[0].name, "NVIDIA H200 MIG 1g.18gb");
    assert_true(list.devices[0].has_uuid);
    void *device, *queue;
    open_both(&device, &queue);
    close_both(device, queue);
    assert_nothing_alive();
}

static void test_one_device_broken(void **state) {
    (void)state;
    standin.devices = 3;
    standin_fail("cudaGetDeviceProperties", 2, 999);
    lap_list_builder list;
    collect(&list);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.devices[0].selector, "cuda:0");
    assert_string_equal(list.devices[1].selector, "cuda:2");
    assert_int_equal(list.note_count, 1);
    assert_contains(list.notes[0].reason, "cuda:1 not listed");
    assert_contains(list.notes[0].reason, "999");
}

static void test_clock_unknown(void **state) {
    (void)state;
    standin_fail("cudaDeviceGetAttribute", 1, 1);
    lap_list_builder list;
    collect(&list);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.devices[0].clock_mhz, 0);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void test_nvrtc_missing(void **state) {
    (void)state;
    use_nvrtc("/nowhere/libnvrtc.so");
    lap_list_builder list;
    collect(&list);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.devices[0].toolchain, "NVRTC missing");
    assert_int_equal(list.note_count, 1);
    assert_contains(list.notes[0].reason, "NVRTC not found, looked for /nowhere/libnvrtc.so");

    char version[512];
    lap_cuda_ops.version(version, sizeof version);
    assert_contains(version, "(static), NVRTC not found");
    use_nvrtc(NVRTC_STANDIN);
    lap_cuda_ops.version(version, sizeof version);
    assert_contains(version, "CUDA runtime ");
    assert_contains(version, "NVRTC 13.0 (" NVRTC_STANDIN ")");
    char small[16]; /* too small a buffer is cut, not overrun */
    lap_cuda_ops.version(small, sizeof small);
    assert_int_equal(strlen(small), 15);
}

static void test_driver_text(void **state) {
    (void)state;
    char text[32];
    assert_true(lap_cuda_driver_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  "
                                     "Tue Nov  4 2025\n",
                                     text, sizeof text));
    assert_string_equal(text, "580.159.03");
    assert_true(lap_cuda_driver_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build", text,
        sizeof text));
    assert_string_equal(text, "580.65.06");
    assert_false(lap_cuda_driver_text("NVRM version: none 12 of x86_64", text, sizeof text));
    assert_false(lap_cuda_driver_text("", text, sizeof text));
    assert_false(lap_cuda_driver_text("580.65.06", text, 4));
    assert_string_equal(text, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_driver, setup),
        cmocka_unit_test_setup(test_old_driver, setup),
        cmocka_unit_test_setup(test_no_device, setup),
        cmocka_unit_test_setup(test_driver_broken, setup),
        cmocka_unit_test_setup(test_count_zero, setup),
        cmocka_unit_test_setup(test_described, setup),
        cmocka_unit_test_setup(test_no_context, setup),
        cmocka_unit_test_setup(test_exclusive, setup),
        cmocka_unit_test_setup(test_part_of_a_gpu, setup),
        cmocka_unit_test_setup(test_one_device_broken, setup),
        cmocka_unit_test_setup(test_clock_unknown, setup),
        cmocka_unit_test_setup(test_nvrtc_missing, setup),
        cmocka_unit_test(test_driver_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
