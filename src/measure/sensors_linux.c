/* Files of the Linux kernel as sources of readings: hwmon of a PCI device; cpufreq, hwmon and
 * powercap of the CPU. Small files are read, nothing is written. */
#include "base/text.h"
#include "measure/sensors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 512, MAX_CPUS = 8, MAX_PACKAGES = 16 };

typedef struct files {
    char clock[MAX_CPUS][PATH_SIZE]; /* each in clock_unit; their mean is the clock */
    size_t clocks;
    double clock_unit;                    /* MHz per unit of the file */
    char energy[MAX_PACKAGES][PATH_SIZE]; /* their sum is the energy */
    size_t energies;
    char temperature[PATH_SIZE], power[PATH_SIZE], throttle[PATH_SIZE];
    lap_optional throttle_last; /* counter of the reading before */
} files;

static lap_optional read_number(const char *path) {
    char line[64];
    double value;
    FILE *f = path[0] ? fopen(path, "r") : NULL;
    if (!f) return lap_none();
    char *got = fgets(line, sizeof line, f);
    fclose(f);
    if (!got) return lap_none();
    line[strcspn(line, "\n")] = '\0';
    return lap_parse_double(line, &value) ? lap_some(value) : lap_none();
}

static bool readable(const char *path) {
    return read_number(path).has;
}

static lap_optional scaled(lap_optional value, double factor) {
    return value.has ? lap_some(value.value * factor) : value;
}

/* Of all packages; one that cannot be read leaves the sum unknown. */
static lap_optional read_energy(const files *f) {
    double sum = 0;
    for (size_t i = 0; i < f->energies; i++) {
        lap_optional energy = read_number(f->energy[i]);
        if (!energy.has) return lap_none();
        sum += energy.value;
    }
    return f->energies ? lap_some(sum * 1e-6) : lap_none();
}

static void files_read(void *context, lap_reading *out) {
    files *f = context;
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < f->clocks; i++) {
        lap_optional clock = read_number(f->clock[i]);
        if (!clock.has) continue;
        sum += clock.value * f->clock_unit;
        n++;
    }
    if (n > 0) out->clock_mhz = lap_some(sum / (double)n);
    out->temperature_c = scaled(read_number(f->temperature), 1e-3);
    out->power_w = scaled(read_number(f->power), 1e-6);
    out->energy_j = read_energy(f);
    lap_optional count = read_number(f->throttle);
    if (!count.has) return;
    /* The counter tells of what happened since the reading before. */
    bool rose = f->throttle_last.has && count.value > f->throttle_last.value;
    out->throttled = lap_some(rose);
    if (rose) out->reasons = LAP_THROTTLE_THERMAL;
    f->throttle_last = count;
}

static void files_close(void *context) {
    free(context);
}

/* directory/hwmonN for the first N that accept likes; "" if none. accept gets the name file's
 * text. */
static bool find_hwmon(const char *directory, bool (*accept)(const char *name), char *out) {
    DIR *d = opendir(directory);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        char path[PATH_SIZE], name[64] = "";
        if (strncmp(e->d_name, "hwmon", 5) != 0) continue;
        if (snprintf(path, sizeof path, "%s/%.64s/name", directory, e->d_name) >= PATH_SIZE)
            continue;
        FILE *f = fopen(path, "r");
        if (f) {
            if (fgets(name, sizeof name, f)) name[strcspn(name, "\n")] = '\0';
            fclose(f);
        }
        if (!accept(name)) continue;
        found = snprintf(out, PATH_SIZE - 40, "%s/%.64s", directory, e->d_name) < PATH_SIZE - 40;
    }
    if (d) closedir(d);
    return found;
}

static bool any_name(const char *name) {
    (void)name;
    return true;
}

static bool cpu_name(const char *name) {
    return strcmp(name, "coretemp") == 0 || strcmp(name, "k10temp") == 0 ||
           strcmp(name, "zenpower") == 0 || strcmp(name, "cpu_thermal") == 0;
}

static void fill(lap_sensors *out, files *f, const char *name) {
    snprintf(out->name, sizeof out->name, "%s", name);
    out->read = files_read;
    out->close = files_close;
    out->context = f;
}

/* directory/name; path becomes "" where that cannot be read. */
static void try_file(char *path, const char *directory, const char *name) {
    int n = snprintf(path, PATH_SIZE, "%s/%s", directory, name);
    if (n < 0 || n >= PATH_SIZE || !readable(path)) path[0] = '\0';
}

bool lap_sensors_hwmon(const lap_device_info *d, const char *root, lap_sensors *out) {
    char directory[PATH_SIZE], hwmon[PATH_SIZE];
    if (d->type == LAP_DEVICE_CPU || !d->has_pci) return false;
    snprintf(directory, sizeof directory, "%.200s/sys/bus/pci/devices/%04x:%02x:%02x.%x/hwmon",
             root, (unsigned)d->pci_domain, (unsigned)d->pci_bus, (unsigned)d->pci_device,
             (unsigned)d->pci_function);
    if (!find_hwmon(directory, any_name, hwmon)) return false;
    files *f = calloc(1, sizeof *f);
    if (!f) return false;
    f->clock_unit = 1e-6; /* hertz */
    try_file(f->clock[0], hwmon, "freq1_input");
    f->clocks = f->clock[0][0] ? 1 : 0;
    try_file(f->temperature, hwmon, "temp1_input");
    try_file(f->power, hwmon, "power1_average");
    if (!f->power[0]) try_file(f->power, hwmon, "power1_input");
    fill(out, f, "hwmon");
    return true;
}

/* Up to MAX_CPUS of the CPUs, spread over all of them. */
static void find_clocks(files *f, const char *root, uint32_t units) {
    uint32_t step = units > MAX_CPUS ? units / MAX_CPUS : 1;
    for (uint32_t cpu = 0; cpu < (units ? units : 1) && f->clocks < MAX_CPUS; cpu += step) {
        char *path = f->clock[f->clocks];
        snprintf(path, PATH_SIZE, "%.200s/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq",
                 root, (unsigned)cpu);
        if (readable(path)) f->clocks++;
    }
}

/* The counters of the packages: a machine has one for each socket or die, and may have one of the
 * whole platform among them. */
static void find_energies(files *f, const char *root) {
    for (int zone = 0; zone < MAX_PACKAGES; zone++) {
        char directory[PATH_SIZE], path[PATH_SIZE + 8], name[32] = "";
        snprintf(directory, sizeof directory, "%.200s/sys/class/powercap/intel-rapl:%d", root,
                 zone);
        snprintf(path, sizeof path, "%s/name", directory);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (!fgets(name, sizeof name, file)) name[0] = '\0';
        fclose(file);
        if (strncmp(name, "package", 7) != 0) continue;
        try_file(f->energy[f->energies], directory, "energy_uj");
        if (f->energy[f->energies][0]) f->energies++;
    }
}

bool lap_sensors_cpu(const lap_device_info *d, const char *root, lap_sensors *out) {
    char directory[PATH_SIZE], hwmon[PATH_SIZE], short_root[201];
    if (d->type != LAP_DEVICE_CPU) return false;
    files *f = calloc(1, sizeof *f);
    if (!f) return false;
    f->clock_unit = 1e-3; /* kilohertz */
    find_clocks(f, root, d->units);
    snprintf(short_root, sizeof short_root, "%s", root);
    snprintf(directory, sizeof directory, "%s/sys/class/hwmon", short_root);
    if (find_hwmon(directory, cpu_name, hwmon)) try_file(f->temperature, hwmon, "temp1_input");
    find_energies(f, short_root);
    try_file(f->throttle, short_root,
             "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count");
    if (f->clocks == 0 && !f->temperature[0] && f->energies == 0 && !f->throttle[0]) {
        free(f);
        return false;
    }
    lap_text name = {0};
    if (f->clocks) lap_text_add(&name, "cpufreq");
    if (f->temperature[0]) lap_text_addf(&name, "%shwmon", name.length ? ", " : "");
    if (f->energies) lap_text_addf(&name, "%spowercap", name.length ? ", " : "");
    if (f->throttle[0]) lap_text_addf(&name, "%sthermal_throttle", name.length ? ", " : "");
    fill(out, f, lap_text_get(&name));
    out->since_last = true;
    lap_text_free(&name);
    return true;
}
