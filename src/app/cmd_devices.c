/* `warmlap devices`: every device of every backend, the routes to one physical device together, and
 * a line for whatever could not be listed. Opens no device. */
#include "app/commands.h"
#include "app/precisions.h"
#include "base/text.h"
#include "device/device.h"
#include "net/op.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { UUID_TEXT = 37, PCI_TEXT = 24 };

static void uuid_text(const lap_device_info *d, char out[UUID_TEXT]) {
    char *p = out;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *p++ = '-';
        p += snprintf(p, 3, "%02x", d->uuid[i]);
    }
}

static void pci_text(const lap_device_info *d, char out[PCI_TEXT]) {
    snprintf(out, PCI_TEXT, "%04x:%02x:%02x.%x", d->pci_domain, d->pci_bus & 0xFFu,
             d->pci_device & 0xFFu, d->pci_function & 0xFu);
}

/* The first route of a physical device for which a fact is known; NULL when none has it. */
static const lap_device_info *with_uuid(const lap_device_list *list, int physical) {
    for (size_t i = 0; i < list->count; i++) {
        const lap_device_info *d = &list->devices[i];
        if (d->physical == physical && d->has_uuid) return d;
    }
    return NULL;
}

static const lap_device_info *with_pci(const lap_device_list *list, int physical) {
    for (size_t i = 0; i < list->count; i++) {
        const lap_device_info *d = &list->devices[i];
        if (d->physical == physical && d->has_pci) return d;
    }
    return NULL;
}

/* True at the first route in list order: where a physical device is shown. */
static bool is_first(const lap_device_list *list, size_t at) {
    for (size_t i = 0; i < at; i++) {
        if (list->devices[i].physical == list->devices[at].physical) return false;
    }
    return true;
}

/* ---- text ----------------------------------------------------------------------------------- */

/* "139.7 GiB"; "unknown" for 0, which is how the device layer says so. */
static const char *bytes_text(uint64_t bytes, char *out, size_t size) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    if (bytes == 0) {
        snprintf(out, size, "unknown");
    } else {
        snprintf(out, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    }
    return out;
}

static const char *count_text(uint32_t count, char *out, size_t size) {
    if (count) {
        snprintf(out, size, "%" PRIu32, count);
    } else {
        snprintf(out, size, "unknown");
    }
    return out;
}

static void line(const char *key, const char *value) {
    printf("    %-12s%s\n", key, value[0] ? value : "unknown");
}

static void print_limits(const lap_device_info *d) {
    char a[32], b[32], c[32];
    printf("    %-12s%s, largest allocation %s, cache %s%s\n", "memory",
           bytes_text(d->memory_bytes, a, sizeof a), bytes_text(d->max_alloc_bytes, b, sizeof b),
           bytes_text(d->cache_bytes, c, sizeof c), d->host_memory ? " (the host's memory)" : "");
    printf("    %-12s%s, clock %s MHz, vector or warp width %s", "units",
           count_text(d->units, a, sizeof a), count_text(d->clock_mhz, b, sizeof b),
           count_text(d->simd_width, c, sizeof c));
    if (d->cc_major) printf(", compute capability %d.%d", d->cc_major, d->cc_minor);
    printf("\n    %-12sgroup %s", "limits", count_text(d->max_group_size, a, sizeof a));
    printf(" (%" PRIu32 " x %" PRIu32 " x %" PRIu32 "), ", d->max_group_dim[0], d->max_group_dim[1],
           d->max_group_dim[2]);
    printf("local memory %s%s", bytes_text(d->local_bytes, a, sizeof a),
           d->local_is_real ? "" : " (in global memory)");
    if (d->local_optin_bytes > d->local_bytes)
        printf(", %s on request", bytes_text(d->local_optin_bytes, a, sizeof a));
    putchar('\n');
}

static void print_precisions(const lap_device_info *d) {
    unsigned mask = lap_device_precisions(d);
    char text[128];
    size_t n = 0;
    text[0] = '\0';
    for (int p = 0; p < LAP_PRECISION_COUNT; p++) {
        if (mask & 1u << p)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "",
                                  lap_precision_name((lap_precision)p));
    }
    line("precisions", n ? text : "none");
}

static void print_route(const lap_device_info *d) {
    printf("  %s\n", d->selector);
    line("platform", d->platform);
    line("api", d->api);
    line("driver", d->driver);
    line("toolchain", d->toolchain);
    print_limits(d);
    print_precisions(d);
}

static void print_physical(const lap_device_list *list, size_t first) {
    const lap_device_info *head = &list->devices[first];
    printf("%s (%s%s%s)\n", head->name, lap_device_type_name(head->type),
           head->vendor[0] ? ", " : "", head->vendor);
    const lap_device_info *uuid = with_uuid(list, head->physical);
    const lap_device_info *pci = with_pci(list, head->physical);
    char text[UUID_TEXT];
    if (uuid) {
        uuid_text(uuid, text);
        printf("  uuid %s\n", text);
    }
    if (pci) {
        pci_text(pci, text);
        printf("  pci %s\n", text);
    }
    for (size_t i = first; i < list->count; i++) {
        if (list->devices[i].physical == head->physical) print_route(&list->devices[i]);
    }
    putchar('\n');
}

static void print_text(const lap_device_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        if (is_first(list, i)) print_physical(list, i);
    }
    if (list->count == 0) puts("No device was found.");
    if (list->note_count > 0) puts("Not listed:");
    for (size_t i = 0; i < list->note_count; i++) {
        const lap_device_note *n = &list->notes[i];
        printf("  %s%s%s: %s\n", n->backend, n->platform[0] ? ", " : "", n->platform, n->reason);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *text_or_null(const char *text) {
    return text[0] ? json_string(text) : json_null();
}

/* 0 is how the device layer says unknown. */
static json_t *count_or_null(uint64_t count) {
    return count && count <= INT64_MAX ? json_integer((json_int_t)count) : json_null();
}

static json_t *uuid_json(const lap_device_info *d) {
    char text[UUID_TEXT];
    if (!d) return json_null();
    uuid_text(d, text);
    return json_string(text);
}

static json_t *pci_json(const lap_device_info *d) {
    char text[PCI_TEXT];
    if (!d) return json_null();
    pci_text(d, text);
    return json_string(text);
}

static json_t *precisions_json(const lap_device_info *d) {
    json_t *array = json_array();
    unsigned mask = lap_device_precisions(d);
    for (int p = 0; p < LAP_PRECISION_COUNT; p++) {
        if (mask & 1u << p)
            json_array_append_new(array, json_string(lap_precision_name((lap_precision)p)));
    }
    return array;
}

static json_t *group_json(const lap_device_info *d) {
    json_t *array = json_array();
    for (int i = 0; i < 3; i++)
        json_array_append_new(array, count_or_null(d->max_group_dim[i]));
    return array;
}

static json_t *route_json(const lap_device_info *d) {
    char cc[32] = "";
    if (d->cc_major) snprintf(cc, sizeof cc, "%d.%d", d->cc_major, d->cc_minor);
    json_t *timer = d->timer_resolution_s > 0 ? json_real(d->timer_resolution_s) : json_null();
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:b, s:b, s:b, s:o, s:o, s:o, s:o}",
        "selector", d->selector, "backend", d->backend, "platform", text_or_null(d->platform),
        "name", text_or_null(d->name), "vendor", text_or_null(d->vendor), "api",
        text_or_null(d->api), "driver", text_or_null(d->driver), "toolchain",
        text_or_null(d->toolchain), "memory_bytes", count_or_null(d->memory_bytes),
        "max_alloc_bytes", count_or_null(d->max_alloc_bytes), "cache_bytes",
        count_or_null(d->cache_bytes), "local_bytes", count_or_null(d->local_bytes),
        "local_optin_bytes", count_or_null(d->local_optin_bytes), "units", count_or_null(d->units),
        "clock_mhz", count_or_null(d->clock_mhz), "simd_width", count_or_null(d->simd_width),
        "max_group_size", count_or_null(d->max_group_size), "max_group_dim", group_json(d),
        "host_memory", (int)d->host_memory, "local_is_real", (int)d->local_is_real, "claims_fp16",
        (int)d->has_fp16, "compute_capability", text_or_null(cc), "base_align_bytes",
        count_or_null(d->base_align_bytes), "timer_resolution_s", timer, "precisions",
        precisions_json(d));
}

static json_t *physical_json(const lap_device_list *list, size_t first) {
    const lap_device_info *head = &list->devices[first];
    json_t *routes = json_array();
    for (size_t i = first; i < list->count; i++) {
        if (list->devices[i].physical == head->physical)
            json_array_append_new(routes, route_json(&list->devices[i]));
    }
    return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o}", "physical", head->physical, "name",
                     head->name, "type", lap_device_type_name(head->type), "uuid",
                     uuid_json(with_uuid(list, head->physical)), "pci",
                     pci_json(with_pci(list, head->physical)), "routes", routes);
}

static int print_json(const lap_device_list *list) {
    json_t *devices = json_array(), *notes = json_array();
    for (size_t i = 0; i < list->count; i++) {
        if (is_first(list, i)) json_array_append_new(devices, physical_json(list, i));
    }
    for (size_t i = 0; i < list->note_count; i++) {
        const lap_device_note *n = &list->notes[i];
        json_array_append_new(notes, json_pack("{s:s, s:o, s:s}", "backend", n->backend, "platform",
                                               text_or_null(n->platform), "reason", n->reason));
    }
    json_t *root = json_pack("{s:s, s:o, s:o}", "schema", "warmlap-devices/1", "devices", devices,
                             "notes", notes);
    bool ok = root && json_dumpf(root, stdout, JSON_INDENT(2)) == 0;
    putchar('\n');
    json_decref(root);
    if (ok) return LAP_EXIT_OK;
    fputs("warmlap: the device list could not be written as JSON\n", stderr);
    return LAP_EXIT_FAILED;
}

/* ---- command -------------------------------------------------------------------------------- */

static const char help[] =
    "Usage: warmlap devices [--json]\n\n"
    "Lists every device of every backend with its selector, driver, compiler, memory,\n"
    "limits and the precisions it can run. One physical device reached through two\n"
    "interfaces is one entry with two routes. What could not be listed is named with\n"
    "the reason.\n\n"
    "  --json      print one JSON document (warmlap-devices/1) and nothing else\n"
    "  -h, --help  print this text\n\n"
    "Exit status: 0 ok, 2 wrong usage, 3 no device at all.\n";

int cmd_devices(int argc, char **argv) {
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return LAP_EXIT_OK;
        }
        if (strcmp(argv[i], "--json") != 0) {
            fprintf(stderr,
                    "warmlap devices: unknown argument '%s': expected --json, or --help for more\n",
                    argv[i]);
            return LAP_EXIT_USAGE;
        }
        json = true;
    }
    lap_error err;
    lap_error_clear(&err);
    lap_device_list *list;
    if (lap_device_enumerate(&list, &err) != LAP_OK) return lap_app_complain(&err);
    int status = LAP_EXIT_OK;
    if (json) {
        status = print_json(list);
    } else {
        print_text(list);
    }
    if (status == LAP_EXIT_OK && list->count == 0) status = LAP_EXIT_NO_DEVICE;
    lap_device_list_free(list);
    return status;
}
