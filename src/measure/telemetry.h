/* What the device does meanwhile: clocks, temperature, power, throttling. Optional everywhere: a
 * source that does not exist leaves its values absent and never fails a row.
 *
 * Sources: NVML (a library of the NVIDIA driver, opened at run time) for GPUs that it knows by UUID
 * or PCI address; the kernel's hwmon files for other PCI devices; cpufreq, hwmon and the powercap
 * energy counters for CPUs. A thread reads them LAP_TELEMETRY_HZ times a second while the row is
 * being timed, and the caller's thread once before and once after each timed block, outside of all
 * spans. The thread touches no device API.
 *
 * The environment variable LAP_NVML names another library than libnvidia-ml.so.1 ("none": no NVML).
 */
#ifndef LAP_MEASURE_TELEMETRY_H
#define LAP_MEASURE_TELEMETRY_H

#include "device/device.h"
#include "measure/stats.h"

enum { LAP_TELEMETRY_HZ = 20 };
/* Power is given for timed blocks of at least this length together: drivers average power over
 * about as long. */
#define LAP_TELEMETRY_POWER_S 0.5

/* Most readings that are kept one by one: of a longer row every second, fourth, ... one. */
enum { LAP_TELEMETRY_POINTS = 256 };

typedef struct lap_telemetry_point {
    double at_s; /* host clock */
    lap_optional clock_mhz, power_w, temperature_c;
} lap_telemetry_point;

typedef struct lap_telemetry_summary {
    bool has;        /* there was a source */
    char source[64]; /* "NVML 580.95.05", "hwmon", "cpufreq" */
    size_t samples;  /* readings taken during timed blocks */
    double seconds;  /* length of the timed blocks */
    lap_optional clock_min_mhz, clock_mean_mhz, clock_max_mhz;
    lap_optional memory_clock_mhz; /* mean */
    lap_optional temperature_c;    /* highest */
    lap_optional power_w;          /* mean; from the energy counter where there is one */
    lap_optional energy_j;         /* of the timed blocks */
    lap_optional throttled_share;  /* of the readings, 0..1 */
    char reasons[128];             /* of throttling: "thermal, power cap"; "" for none */
    lap_optional persistence, ecc; /* 0 or 1 */
    lap_optional other_processes;  /* with a context on the device; absent where not to be told */
    lap_telemetry_point points[LAP_TELEMETRY_POINTS]; /* in order of time */
    size_t point_count;
} lap_telemetry_summary;

typedef struct lap_telemetry lap_telemetry;

/* Find the sources of a device and start the thread, paused. root is "" except in tests: a prefix
 * of /sys. *out is NULL, and the result still LAP_OK, where there is no source. LAP_E_NOMEM. */
lap_status lap_telemetry_start(const lap_device_info *device, const char *root, lap_telemetry **out,
                               lap_error *err);
/* A timed block begins, ends. NULL is allowed in all of these. */
void lap_telemetry_resume(lap_telemetry *telemetry);
void lap_telemetry_pause(lap_telemetry *telemetry);
/* End the thread, fill out (zeroed when there is nothing), free. */
void lap_telemetry_stop(lap_telemetry *telemetry, lap_telemetry_summary *out);

#endif
