/* A device selector over a made-up list. */
#include "fuzz.h"

#include "device/device.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 4 };

static void make(lap_device_info *d, const char *selector, const char *backend, const char *name,
                 lap_device_type type) {
    *d = (lap_device_info){.type = type, .memory_bytes = 1u << 30};
    strcpy(d->selector, selector);
    strcpy(d->backend, backend);
    strcpy(d->name, name);
    strcpy(d->platform, "Platform");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static lap_device_info devices[DEVICES];
    if (!devices[0].name[0]) {
        make(&devices[0], "cuda:0", "cuda", "NVIDIA Large", LAP_DEVICE_GPU);
        make(&devices[1], "opencl:0:0", "opencl", "A \"quoted\" CPU \xC2\xAE", LAP_DEVICE_CPU);
        make(&devices[2], "opencl:1:0", "opencl", "NVIDIA Large", LAP_DEVICE_GPU);
        make(&devices[3], "opencl:1:1", "opencl", "Some FPGA", LAP_DEVICE_ACCELERATOR);
        for (int i = 0; i < 16; i++)
            devices[0].uuid[i] = devices[2].uuid[i] = (uint8_t)(0xA0 + i);
        devices[0].has_uuid = devices[2].has_uuid = true;
        devices[0].has_pci = true;
        devices[0].pci_bus = 0xC1;
        for (int i = 0; i < DEVICES; i++)
            devices[i].physical = i == 2 ? 0 : i;
    }
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    lap_device_list list = {.devices = devices, .count = DEVICES};
    lap_error err = {0};
    size_t *indices = NULL, count = 0;
    lap_status status = lap_device_select(&list, text, &indices, &count, &err);
    FUZZ_HOLDS(status == LAP_OK || status == LAP_E_CONFIG || status == LAP_E_NODEVICE);
    FUZZ_HOLDS((status == LAP_OK) == (count > 0) && count <= DEVICES);
    FUZZ_HOLDS(status == LAP_OK || err.message[0]);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            FUZZ_HOLDS(indices[i] < DEVICES && indices[i] != indices[k]);
    free(indices);
    free(text);
    return 0;
}
