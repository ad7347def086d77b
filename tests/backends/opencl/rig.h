/* What the OpenCL tests share: the list of devices, an opened first device, small helpers. */
#ifndef LAP_TESTS_OPENCL_RIG_H
#define LAP_TESTS_OPENCL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/device_ops.h"
#include "staged.h"

extern const lap_device_ops lap_opencl_ops;

/* Enumerate, this backend only; the list is valid until the next call. */
const lap_device_list *rig_enumerate(void);

typedef struct rig {
    lap_device_info info;
    void *device, *queue;
    lap_error err;
} rig;

/* cmocka group fixtures: *state is a rig with the first device that enumeration finds. */
int rig_setup(void **state);
int rig_teardown(void **state);
/* cmocka test fixture: all calls are real again. */
int rig_unstage(void **state);

/* Whether there is a device at all; says why a program is skipped when not. */
bool rig_has_device(void);

void rig_ok(const rig *r, lap_status status);
void *rig_kernel(rig *r, const char *source, const char *entry, lap_kernel_info *info);
void *rig_buffer(rig *r, size_t bytes);
lap_raw_arg rig_buffer_arg(void *buffer);
lap_raw_arg rig_int_arg(int32_t value);

/* A main: skip (77) without a device. */
#define RIG_MAIN(tests)                                                                            \
    int main(void) {                                                                               \
        if (!rig_has_device()) return 77;                                                          \
        return cmocka_run_group_tests(tests, rig_setup, rig_teardown);                             \
    }

#endif
