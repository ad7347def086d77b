/* Builds the list of devices: asks every backend in the registry, turns what fails into notes and
 * groups the routes that lead to one physical device. Opens nothing. */
#include "device/device_ops.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lap_list_builder {
    lap_device_list *list;
    size_t device_capacity, note_capacity;
};

/* Room for one element more: *items is reallocated when count reaches *capacity. */
static bool grow(void **items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity) return true;
    size_t more = *capacity ? *capacity * 2 : 8;
    void *bigger = realloc(*items, more * item_size);
    if (!bigger) return false;
    *items = bigger;
    *capacity = more;
    return true;
}

static void clean_field(char *field, size_t size) {
    field[size - 1] = '\0';
    lap_text_clean(field);
}

static void clean_info(lap_device_info *info) {
    clean_field(info->backend, sizeof info->backend);
    clean_field(info->language, sizeof info->language);
    clean_field(info->selector, sizeof info->selector);
    clean_field(info->platform, sizeof info->platform);
    clean_field(info->name, sizeof info->name);
    clean_field(info->vendor, sizeof info->vendor);
    clean_field(info->driver, sizeof info->driver);
    clean_field(info->toolchain, sizeof info->toolchain);
    clean_field(info->api, sizeof info->api);
    if (info->base_align_bytes == 0) info->base_align_bytes = 1;
    if (!info->name[0]) snprintf(info->name, sizeof info->name, "unnamed device");
    /* Some drivers answer the query with zeros; that identifies nothing. */
    static const uint8_t zero[16];
    if (memcmp(info->uuid, zero, sizeof zero) == 0) info->has_uuid = false;
    if (!(info->pci_domain || info->pci_bus || info->pci_device || info->pci_function))
        info->has_pci = false;
}

lap_status lap_list_add_device(lap_list_builder *builder, const lap_device_info *info,
                               lap_error *err) {
    lap_device_list *list = builder->list;
    void *items = list->devices;
    bool room = grow(&items, list->count, &builder->device_capacity, sizeof *list->devices);
    list->devices = items;
    if (!room) return LAP_FAIL(err, LAP_E_NOMEM, "listing devices: out of memory");
    list->devices[list->count] = *info;
    clean_info(&list->devices[list->count]);
    list->count++;
    return LAP_OK;
}

static lap_status add_note(lap_list_builder *builder, const char *backend, const char *platform,
                           const char *reason, lap_error *err) {
    lap_device_list *list = builder->list;
    void *items = list->notes;
    bool room = grow(&items, list->note_count, &builder->note_capacity, sizeof *list->notes);
    list->notes = items;
    if (!room) return LAP_FAIL(err, LAP_E_NOMEM, "listing devices: out of memory");
    lap_device_note *note = &list->notes[list->note_count++];
    snprintf(note->backend, sizeof note->backend, "%s", backend ? backend : "");
    snprintf(note->platform, sizeof note->platform, "%s", platform ? platform : "");
    snprintf(note->reason, sizeof note->reason, "%s", reason);
    lap_text_clean(note->backend);
    lap_text_clean(note->platform);
    lap_text_clean(note->reason);
    return LAP_OK;
}

lap_status lap_list_add_note(lap_list_builder *builder, const char *backend, const char *platform,
                             lap_error *err, const char *format, ...) {
    char reason[sizeof builder->list->notes->reason];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return add_note(builder, backend, platform, reason, err);
}

/* ---- grouping ------------------------------------------------------------------------------- */

static bool same_device(const lap_device_info *a, const lap_device_info *b) {
    if (a->has_uuid && b->has_uuid && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0) return true;
    return a->has_pci && b->has_pci && a->pci_domain == b->pci_domain && a->pci_bus == b->pci_bus &&
           a->pci_device == b->pci_device && a->pci_function == b->pci_function;
}

/* Number the physical devices from 0 in list order. Sameness is carried on: A and C are one when
 * both are the same as B, since one route may know only the UUID and another only the PCI id. */
static void group(lap_device_list *list) {
    lap_device_info *d = list->devices;
    for (size_t i = 0; i < list->count; i++) {
        d[i].physical = (int)i;
        for (size_t j = 0; j < i; j++) {
            if (!same_device(&d[i], &d[j]) || d[i].physical == d[j].physical) continue;
            int low = d[i].physical < d[j].physical ? d[i].physical : d[j].physical;
            int high = d[i].physical < d[j].physical ? d[j].physical : d[i].physical;
            for (size_t k = 0; k <= i; k++) {
                if (d[k].physical == high) d[k].physical = low;
            }
        }
    }
    int next = 0;
    for (size_t i = 0; i < list->count; i++) {
        int old = d[i].physical;
        if (old < next) continue; /* numbered together with an earlier route */
        for (size_t k = i; k < list->count; k++) {
            if (d[k].physical == old) d[k].physical = next;
        }
        next++;
    }
}

/* ---- enumeration ---------------------------------------------------------------------------- */

/* A backend that fails half-way keeps the devices it listed before; the failure is a note. */
static lap_status ask(lap_list_builder *builder, const lap_device_ops *ops, lap_error *err) {
    if (!ops->enumerate)
        return lap_list_add_note(builder, ops->name, "", err, "this backend cannot list devices");
    lap_error detail;
    lap_error_clear(&detail);
    lap_status status = ops->enumerate(builder, &detail);
    if (status == LAP_OK) return LAP_OK;
    if (status == LAP_E_NOMEM) {
        if (err) *err = detail;
        return status;
    }
    detail.status = status;
    char reason[sizeof builder->list->notes->reason];
    lap_error_text(&detail, reason, sizeof reason);
    return add_note(builder, ops->name, "", reason, err);
}

lap_status lap_device_enumerate(lap_device_list **out, lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_device_enumerate: out is NULL");
    *out = NULL;
    lap_list_builder builder = {.list = calloc(1, sizeof *builder.list)};
    if (!builder.list) return LAP_FAIL(err, LAP_E_NOMEM, "listing devices: out of memory");
    lap_status status = LAP_OK;
    for (size_t i = 0; status == LAP_OK && i < lap_registry_count(); i++)
        status = ask(&builder, lap_registry_get(i), err);
    for (size_t i = 0; status == LAP_OK && lap_registry_known(i, NULL); i++) {
        const char *name = lap_registry_known(i, NULL);
        if (!lap_registry_find(name))
            status = lap_list_add_note(&builder, name, "", err, "not part of this build");
    }
    if (status != LAP_OK) {
        lap_device_list_free(builder.list);
        return status;
    }
    group(builder.list);
    *out = builder.list;
    return LAP_OK;
}

void lap_device_list_free(lap_device_list *list) {
    if (!list) return;
    free(list->devices);
    free(list->notes);
    free(list);
}
