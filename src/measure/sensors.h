/* Private to telemetry: one reading of everything a source knows, and the sources. */
#ifndef LAP_MEASURE_SENSORS_H
#define LAP_MEASURE_SENSORS_H

#include "device/device.h"
#include "measure/stats.h"

typedef struct lap_reading {
    lap_optional clock_mhz, memory_clock_mhz, temperature_c, power_w;
    lap_optional energy_j;  /* counter; only differences mean something */
    lap_optional throttled; /* 0 or 1 */
    unsigned reasons;       /* bits: lap_throttle */
    lap_optional persistence, ecc, other_processes;
} lap_reading;

enum lap_throttle {
    LAP_THROTTLE_THERMAL = 1,
    LAP_THROTTLE_POWER_CAP = 2,
    LAP_THROTTLE_POWER_BRAKE = 4,
    LAP_THROTTLE_HARDWARE = 8
};

/* A source: read fills what it can (out is zeroed before); close frees. */
typedef struct lap_sensors {
    char name[64];
    void (*read)(void *context, lap_reading *out);
    void (*close)(void *context);
    void *context;
    bool since_last; /* throttled is about the time since the reading before, not about now */
} lap_sensors;

/* Each: false when the source does not know the device; true fills out. */
bool lap_sensors_nvml(const lap_device_info *device, lap_sensors *out);
bool lap_sensors_hwmon(const lap_device_info *device, const char *root, lap_sensors *out);
bool lap_sensors_cpu(const lap_device_info *device, const char *root, lap_sensors *out);

#endif
