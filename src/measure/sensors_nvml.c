/* NVML as a source of readings. The library is opened at run time and only the few functions used
 * are declared here, after its documentation; each but the first three may be missing. Nothing is
 * ever set or reset. */
#include "measure/sensors.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* nvmlReturn_t and nvmlDevice_t; 0 is success. */
typedef int code;
typedef void *handle;

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0, MAX_PROCESSES = 64 };

/* Bits of the current clocks' event reasons that hold the clocks back. Idle and settings made by
 * the user are none. */
#define REASON_SW_POWER_CAP 0x4ull
#define REASON_HW_SLOWDOWN 0x8ull
#define REASON_SW_THERMAL 0x20ull
#define REASON_HW_THERMAL 0x40ull
#define REASON_HW_POWER_BRAKE 0x80ull

typedef struct process_info {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} process_info;

typedef struct nvml {
    void *library;
    handle device;
    code (*shutdown)(void);
    code (*clock)(handle, int, unsigned *);
    code (*temperature)(handle, int, unsigned *);
    code (*power)(handle, unsigned *);
    code (*energy)(handle, unsigned long long *);
    code (*reasons)(handle, unsigned long long *);
    code (*persistence)(handle, int *);
    code (*ecc)(handle, int *, int *);
    code (*processes)(handle, unsigned *, process_info *);
    lap_optional persistence_seen, ecc_seen, others_seen;
} nvml;

/* POSIX promises that a function pointer survives this; ISO C lacks the cast. */
static void find(void *library, const char *name, void *slot) {
    void *symbol = dlsym(library, name);
    memcpy(slot, &symbol, sizeof symbol);
}

static void find_either(void *library, const char *name, const char *older, void *slot) {
    find(library, name, slot);
    void *symbol;
    memcpy(&symbol, slot, sizeof symbol);
    if (!symbol) find(library, older, slot);
}

static bool by_uuid(const nvml *n, const lap_device_info *d, handle *out) {
    code (*get)(const char *, handle *);
    find(n->library, "nvmlDeviceGetHandleByUUID", &get);
    if (!get || !d->has_uuid) return false;
    const uint8_t *u = d->uuid;
    char text[64];
    snprintf(text, sizeof text,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    if (get(text, out) == 0) return true;
    memcpy(text, "MIG", 3); /* a part of a GPU has a name of its own */
    return get(text, out) == 0;
}

static bool by_pci(const nvml *n, const lap_device_info *d, handle *out) {
    code (*get)(const char *, handle *);
    find_either(n->library, "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId",
                &get);
    if (!get || !d->has_pci) return false;
    char text[48];
    snprintf(text, sizeof text, "%08x:%02x:%02x.0", (unsigned)d->pci_domain, (unsigned)d->pci_bus,
             (unsigned)d->pci_device);
    return get(text, out) == 0;
}

/* Without the own process among them (another process namespace) nothing can be told. */
static lap_optional count_others(const nvml *n) {
    process_info list[MAX_PROCESSES];
    unsigned count = MAX_PROCESSES;
    if (!n->processes || n->processes(n->device, &count, list) != 0) return lap_none();
    bool own = false;
    for (unsigned i = 0; i < count && i < MAX_PROCESSES; i++)
        own |= list[i].pid == (unsigned)getpid();
    return own ? lap_some((double)count - 1) : lap_none();
}

/* What does not change while a row is timed is asked once. */
static void read_modes(nvml *n) {
    int on = 0, pending = 0;
    if (n->persistence && n->persistence(n->device, &on) == 0) n->persistence_seen = lap_some(on);
    if (n->ecc && n->ecc(n->device, &on, &pending) == 0) n->ecc_seen = lap_some(on);
    n->others_seen = count_others(n);
}

static void read_reasons(const nvml *n, lap_reading *out) {
    unsigned long long bits = 0;
    if (!n->reasons || n->reasons(n->device, &bits) != 0) return;
    if (bits & (REASON_SW_THERMAL | REASON_HW_THERMAL)) out->reasons |= LAP_THROTTLE_THERMAL;
    if (bits & REASON_SW_POWER_CAP) out->reasons |= LAP_THROTTLE_POWER_CAP;
    if (bits & REASON_HW_POWER_BRAKE) out->reasons |= LAP_THROTTLE_POWER_BRAKE;
    if (bits & REASON_HW_SLOWDOWN) out->reasons |= LAP_THROTTLE_HARDWARE;
    out->throttled = lap_some(out->reasons != 0);
}

static void nvml_read(void *context, lap_reading *out) {
    const nvml *n = context;
    unsigned value = 0;
    unsigned long long counter = 0;
    if (n->clock && n->clock(n->device, CLOCK_SM, &value) == 0) out->clock_mhz = lap_some(value);
    if (n->clock && n->clock(n->device, CLOCK_MEMORY, &value) == 0)
        out->memory_clock_mhz = lap_some(value);
    if (n->temperature && n->temperature(n->device, TEMPERATURE_GPU, &value) == 0)
        out->temperature_c = lap_some(value);
    if (n->power && n->power(n->device, &value) == 0) out->power_w = lap_some(value / 1e3);
    if (n->energy && n->energy(n->device, &counter) == 0)
        out->energy_j = lap_some((double)counter / 1e3);
    read_reasons(n, out);
    out->persistence = n->persistence_seen;
    out->ecc = n->ecc_seen;
    out->other_processes = n->others_seen;
}

static void nvml_close(void *context) {
    nvml *n = context;
    if (n->shutdown) n->shutdown();
    dlclose(n->library);
    free(n);
}

static void find_all(nvml *n) {
    void *l = n->library;
    find(l, "nvmlShutdown", &n->shutdown);
    find(l, "nvmlDeviceGetClockInfo", &n->clock);
    find(l, "nvmlDeviceGetTemperature", &n->temperature);
    find(l, "nvmlDeviceGetPowerUsage", &n->power);
    find(l, "nvmlDeviceGetTotalEnergyConsumption", &n->energy);
    find_either(l, "nvmlDeviceGetCurrentClocksEventReasons",
                "nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons);
    find(l, "nvmlDeviceGetPersistenceMode", &n->persistence);
    find(l, "nvmlDeviceGetEccMode", &n->ecc);
    find(l, "nvmlDeviceGetComputeRunningProcesses_v3", &n->processes);
}

static void name_source(const nvml *n, lap_sensors *out) {
    code (*version)(char *, unsigned);
    char text[48] = "";
    find(n->library, "nvmlSystemGetDriverVersion", &version);
    if (!version || version(text, sizeof text) != 0) text[0] = '\0';
    snprintf(out->name, sizeof out->name, "NVML%s%.40s", text[0] ? " " : "", text);
}

bool lap_sensors_nvml(const lap_device_info *device, lap_sensors *out) {
    if (device->type == LAP_DEVICE_CPU || (!device->has_uuid && !device->has_pci)) return false;
    const char *path = getenv("LAP_NVML");
    if (path && strcmp(path, "none") == 0) return false;
    nvml *n = calloc(1, sizeof *n);
    if (!n) return false;
    n->library = dlopen(path && *path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        free(n);
        return false;
    }
    code (*init)(void);
    find_either(n->library, "nvmlInit_v2", "nvmlInit", &init);
    if (!init || init() != 0) {
        dlclose(n->library);
        free(n);
        return false;
    }
    find_all(n);
    if (!by_uuid(n, device, &n->device) && !by_pci(n, device, &n->device)) {
        nvml_close(n);
        return false;
    }
    read_modes(n);
    name_source(n, out);
    out->read = nvml_read;
    out->close = nvml_close;
    out->context = n;
    return true;
}
