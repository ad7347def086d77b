/* A stand-in for NVML, for LAP_NVML: one GPU with UUID GPU-00010203-0405-0607-0809-0a0b0c0d0e0f at
 * 0000:17:00.0. Told by the script (script.h: [nvml], fail, delay). */
#include "script.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, UNINITIALISED = 1 };

const char *const script_functions[] = {"nvmlInit_v2",
                                        "nvmlDeviceGetHandleByUUID",
                                        "nvmlDeviceGetHandleByPciBusId_v2",
                                        "nvmlDeviceGetClockInfo",
                                        "nvmlDeviceGetTemperature",
                                        "nvmlDeviceGetPowerUsage",
                                        "nvmlDeviceGetTotalEnergyConsumption",
                                        "nvmlDeviceGetCurrentClocksThrottleReasons",
                                        "nvmlDeviceGetPersistenceMode",
                                        "nvmlDeviceGetEccMode",
                                        "nvmlDeviceGetComputeRunningProcesses_v3",
                                        NULL};

#define ENTER()                                                                                    \
    do {                                                                                           \
        int code_ = script_enter(__func__);                                                        \
        if (code_) return code_;                                                                   \
    } while (0)

static int opened;
static char gpu; /* its address is the handle */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *out, unsigned size);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **out);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **out);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *out);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out);
int nvmlDeviceGetPowerUsage(void *device, unsigned *out);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *out);
int nvmlDeviceGetPersistenceMode(void *device, int *out);
int nvmlDeviceGetEccMode(void *device, int *current, int *pending);

typedef struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} process;
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *out);

int nvmlInit_v2(void) {
    ENTER();
    opened++;
    return 0;
}

int nvmlShutdown(void) {
    opened--;
    return 0;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    strncpy(out, "580.1", size);
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **out) {
    ENTER();
    if (!opened) return UNINITIALISED;
    if (strncmp(uuid, script_get()->nvml.part ? "MIG-" : "GPU-", 4) != 0) return NOT_FOUND;
    if (strcmp(uuid + 4, "00010203-0405-0607-0809-0a0b0c0d0e0f") != 0) return NOT_FOUND;
    *out = &gpu;
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **out) {
    ENTER();
    if (!opened) return UNINITIALISED;
    if (strcmp(id, "00000000:17:00.0") != 0) return NOT_FOUND;
    *out = &gpu;
    return 0;
}

/* 1500, 1510, 1520, ... from reading to reading. */
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *out) {
    static unsigned readings;
    ENTER();
    if (device != &gpu) return NOT_SUPPORTED;
    *out = type == 1 ? 1500 + 10 * (readings++ % 10) : 2619;
    return 0;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out) {
    (void)sensor;
    ENTER();
    if (device != &gpu) return NOT_SUPPORTED;
    *out = 61;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *out) {
    ENTER();
    if (device != &gpu) return NOT_SUPPORTED;
    *out = 250000;
    return 0;
}

/* 300 W by the counter: not what the power reading says, so that a test can tell them apart. */
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out) {
    ENTER();
    if (device != &gpu) return NOT_SUPPORTED;
    *out = (unsigned long long)(now() * 300e3);
    return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *out) {
    ENTER();
    if (device != &gpu) return NOT_SUPPORTED;
    *out = 0x1 | (unsigned long long)script_get()->nvml.reasons; /* 1, idle, holds nothing back */
    return 0;
}

int nvmlDeviceGetPersistenceMode(void *device, int *out) {
    (void)device;
    ENTER();
    *out = 1;
    return 0;
}

int nvmlDeviceGetEccMode(void *device, int *current, int *pending) {
    (void)device;
    ENTER();
    *current = *pending = 0;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *out) {
    (void)device;
    ENTER();
    if (*count < 3) return NOT_SUPPORTED;
    memset(out, 0, 3 * sizeof *out);
    out[0].pid = 1;
    out[1].pid = 2;
    out[2].pid = script_get()->nvml.own_process ? (unsigned)getpid() : 3;
    *count = 3;
    return 0;
}
