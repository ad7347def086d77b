/* Texts of single values (see format.h). Formats what it is given and derives nothing. */
#include "report/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers -------------------------------------------------------------------------------- */

/* Some locales write the decimal point as other bytes: whatever is not part of a plain number is
 * it. */
static void plain_point(char *s) {
    char *out = s;
    while (*s) {
        size_t other = strcspn(s, "0123456789+-.eE");
        if (other > 0) {
            *out++ = '.';
            s += other;
        } else {
            *out++ = *s++;
        }
    }
    *out = '\0';
}

void lap_format_fixed(char *buffer, size_t size, int decimals, double value) {
    if (size == 0) return;
    if (!isfinite(value)) {
        snprintf(buffer, size, "n/a");
        return;
    }
    snprintf(buffer, size, "%.*f", decimals, value);
    plain_point(buffer);
}

int lap_ms_decimals(double seconds) {
    double ms = fabs(seconds) * 1e3;
    return ms < 0.01 ? 5 : ms < 10 ? 3 : ms < 100 ? 2 : ms < 1000 ? 1 : 0;
}

void lap_format_ms(char *buffer, size_t size, double seconds) {
    lap_format_fixed(buffer, size, lap_ms_decimals(seconds), seconds * 1e3);
}

/* "1234567" -> "1,234,567" where it fits. */
static void group_digits(char *digits, size_t size) {
    size_t n = strlen(digits);
    size_t commas = n > 0 ? (n - 1) / 3 : 0;
    if (strspn(digits, "0123456789") != n || n + commas + 1 > size) return;
    digits[n + commas] = '\0';
    for (size_t i = 0; i < n && commas > 0; i++) {
        digits[n - 1 - i + commas] = digits[n - 1 - i];
        if (i % 3 == 2) digits[n - 2 - i + commas--] = ',';
    }
}

void lap_format_rate(char *buffer, size_t size, double rate, bool group) {
    int decimals = rate < 1 ? 3 : rate < 10 ? 2 : rate < 100 ? 1 : 0;
    lap_format_fixed(buffer, size, decimals, rate);
    if (group && rate >= 10000) group_digits(buffer, size);
}

void lap_format_si(char *buffer, size_t size, double value) {
    static const char prefixes[] = {'\0', 'k', 'M', 'G', 'T', 'P', 'E'};
    size_t i = 0;
    /* 999.5 would round to 1000. */
    while (fabs(value) >= 999.5 && i + 1 < sizeof prefixes) {
        value /= 1000;
        i++;
    }
    double size_of = fabs(value);
    char number[64];
    lap_format_fixed(number, sizeof number, size_of < 9.995 ? 2 : size_of < 99.95 ? 1 : 0, value);
    snprintf(buffer, size, "%s%.1s", number, i ? &prefixes[i] : "");
}

/* ---- texts of a device and a row ------------------------------------------------------------ */

void lap_format_uuid(char *buffer, size_t size, const lap_device_info *device) {
    const uint8_t *u = device->uuid;
    if (size == 0) return;
    buffer[0] = '\0';
    if (!device->has_uuid) return;
    snprintf(buffer, size, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
}

void lap_format_pci(char *buffer, size_t size, const lap_device_info *device) {
    if (size == 0) return;
    buffer[0] = '\0';
    if (!device->has_pci) return;
    snprintf(buffer, size, "%04x:%02x:%02x.%x", (unsigned)device->pci_domain,
             (unsigned)device->pci_bus, (unsigned)device->pci_device,
             (unsigned)device->pci_function);
}

void lap_format_api(char *buffer, size_t size, const lap_device_info *device) {
    const char *name = device->api[0] ? device->api : device->backend;
    snprintf(buffer, size, "%.*s", (int)strcspn(name, " "), name);
}

const char *lap_row_reason(const lap_row *row) {
    if (row->reason) return row->reason;
    if (row->status == LAP_ROW_OK) return "";
    return row->cause != LAP_OK ? lap_status_name(row->cause) : lap_row_status_name(row->status);
}

void lap_format_modes(char *buffer, size_t size, unsigned modes, const char *separator) {
    static const struct {
        unsigned mode;
        const char *name;
    } list[] = {{LAP_MODE_LATENCY, "latency"},
                {LAP_MODE_THROUGHPUT, "throughput"},
                {LAP_MODE_VERIFY, "verify"}};
    size_t used = 0;
    if (size == 0) return;
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (!(modes & list[i].mode) || used >= size) continue;
        int n = snprintf(buffer + used, size - used, "%s%s", used ? separator : "", list[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* ---- the cells of a row --------------------------------------------------------------------- */

static void latency_cell(const lap_row *row, const char *absent, bool utf8, lap_cells *out) {
    const lap_stats *s = &row->latency.stats;
    snprintf(out->latency_ms, sizeof out->latency_ms, "%s", absent);
    if (!row->latency.has || !s->p50.has) return;
    char median[24], deviation[24] = "n/a";
    lap_format_ms(median, sizeof median, s->p50.value);
    if (s->std.has)
        lap_format_fixed(deviation, sizeof deviation, lap_ms_decimals(s->p50.value),
                         s->std.value * 1e3);
    snprintf(out->latency_ms, sizeof out->latency_ms, "%s %s %s", median, utf8 ? "±" : "+-",
             deviation);
}

static void throughput_cell(const lap_row *row, const char *absent, lap_cells *out) {
    const lap_throughput *t = &row->throughput;
    snprintf(out->throughput, sizeof out->throughput, "%s", absent);
    if (!t->images_per_s.has) return;
    char rate[24];
    lap_format_rate(rate, sizeof rate, t->images_per_s.value, false);
    snprintf(out->throughput, sizeof out->throughput, "%s @ %llu", rate,
             (unsigned long long)t->batch);
}

static void verified_cell(const lap_row *row, const char *absent, lap_cells *out) {
    const lap_row_verified *v = &row->verified;
    if (!v->has)
        snprintf(out->verified, sizeof out->verified, "%s", absent);
    else if (!v->passed)
        snprintf(out->verified, sizeof out->verified, "no");
    else if (!v->logits_rel_l2.has)
        snprintf(out->verified, sizeof out->verified, "yes");
    else
        lap_format_double(out->verified, sizeof out->verified, 2, v->logits_rel_l2.value);
}

void lap_cells_fill(const lap_row *row, bool utf8, lap_cells *out) {
    const lap_device_info *d = &row->device;
    const char *absent = row->status == LAP_ROW_OK ? "n/a" : "-";
    memset(out, 0, sizeof *out);
    snprintf(out->route, sizeof out->route, "%s", d->selector);
    if (row->concurrent.others > 0)
        snprintf(out->route, sizeof out->route, "%s +%zu", d->selector, row->concurrent.others);
    snprintf(out->device, sizeof out->device, "%s", d->name);
    snprintf(out->network, sizeof out->network, "%s", row->network);
    snprintf(out->size, sizeof out->size, "%dx%d", row->height, row->width);
    snprintf(out->precision, sizeof out->precision, "%s", row->precision);
    snprintf(out->batch, sizeof out->batch, "%llu", (unsigned long long)row->batch);
    snprintf(out->status, sizeof out->status, "%s", lap_row_status_name(row->status));
    const char *verdict = lap_verdict_name(row->verdict);
    snprintf(out->verdict, sizeof out->verdict, "%s", verdict[0] ? verdict : "-");
    latency_cell(row, row->modes & LAP_MODE_LATENCY ? absent : "-", utf8, out);
    throughput_cell(row, row->modes & LAP_MODE_THROUGHPUT ? absent : "-", out);
    verified_cell(row, absent, out);
    snprintf(out->fps, sizeof out->fps, "%s", row->modes & LAP_MODE_LATENCY ? absent : "-");
    if (row->fps.has) lap_format_rate(out->fps, sizeof out->fps, row->fps.value, false);
    snprintf(out->flops_per_s, sizeof out->flops_per_s, "%s", absent);
    /* The better of the two rates is what the device reached. */
    lap_optional rate = row->throughput.flops_per_s;
    if (!rate.has || (row->flops_per_s.has && row->flops_per_s.value > rate.value))
        rate = row->flops_per_s;
    if (rate.has) lap_format_si(out->flops_per_s, sizeof out->flops_per_s, rate.value);
}

void lap_format_row(char *buffer, size_t size, const lap_row *rows, size_t count,
                    const lap_row *row) {
    bool networks = false, sizes = false, precisions = false;
    char beside[32] = "", network[40] = "", image[40] = "", precision[24] = "";
    for (size_t i = 0; i < count; i++) {
        networks |= strcmp(rows[i].network, row->network) != 0;
        sizes |= rows[i].height != row->height || rows[i].width != row->width;
        precisions |= strcmp(rows[i].precision, row->precision) != 0;
    }
    if (row->concurrent.others) snprintf(beside, sizeof beside, " +%zu", row->concurrent.others);
    if (networks) snprintf(network, sizeof network, " %.36s", row->network);
    if (sizes) snprintf(image, sizeof image, " %dx%d", row->height, row->width);
    if (precisions) snprintf(precision, sizeof precision, " %.20s", row->precision);
    snprintf(buffer, size, "%.40s%s%s%s%s batch %llu", row->device.selector, beside, network, image,
             precision, (unsigned long long)row->batch);
}

/* ---- a layer -------------------------------------------------------------------------------- */

static void si_cell(char *buffer, size_t size, lap_optional value) {
    snprintf(buffer, size, "-");
    if (value.has) lap_format_si(buffer, size, value.value);
}

static lap_optional counted(uint64_t n) {
    return n ? lap_some((double)n) : lap_none();
}

void lap_layer_cells_fill(const lap_layer *l, lap_layer_cells *out) {
    si_cell(out->macs, sizeof out->macs, counted(l->macs));
    si_cell(out->flops, sizeof out->flops, counted(l->flops));
    si_cell(out->bytes, sizeof out->bytes, counted(l->bytes));
    snprintf(out->time_ms, sizeof out->time_ms, "-");
    if (l->device_s.has) lap_format_ms(out->time_ms, sizeof out->time_ms, l->device_s.value);
    si_cell(out->flops_per_s, sizeof out->flops_per_s, l->flops_per_s);
    si_cell(out->bytes_per_s, sizeof out->bytes_per_s, l->bytes_per_s);
    si_cell(out->intensity, sizeof out->intensity, l->intensity);
    snprintf(out->share, sizeof out->share, "-");
    if (lap_some(l->share.value).has && l->share.has)
        snprintf(out->share, sizeof out->share, "%.0f%%", l->share.value * 100);
    snprintf(out->bound, sizeof out->bound, "%s", l->bound ? l->bound : "-");
}

lap_layer lap_layer_total(const lap_row *row) {
    lap_layer total = {.name = "whole network", .macs = row->work.macs, .flops = row->work.flops};
    if (row->latency.has) total.device_s = row->latency.stats.mean;
    total.flops_per_s = row->flops_per_s;
    return total;
}
