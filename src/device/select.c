/* Device selectors: from what a person typed to indices into a device list. Strict: what matches
 * nothing is an error that says what there is, never another device. Knows no backend by name. */
#include "device/device_ops.h"

#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct selection {
    const lap_device_list *list;
    bool *chosen; /* parallel to list->devices */
} selection;

/* ---- messages ------------------------------------------------------------------------------- */

/* Leaves room in an error message for its first line. */
enum { LISTING_MAX = 1000 };

/* "  cuda:0  gpu  NVIDIA H200 (NVIDIA CUDA)" a device, "  backend: reason" a note when there is no
 * device; ends with "and N more" rather than in the middle of a line. */
static void add_listing(lap_text *text, const lap_device_list *list) {
    char line[480]; /* a reason says what was looked for at its end */
    bool notes = list->count == 0;
    size_t total = notes ? list->note_count : list->count, start = text->length;
    lap_text_add(text, notes ? "\nthere is no device" : "\nthere are:");
    for (size_t i = 0; i < total; i++) {
        if (notes) {
            const lap_device_note *n = &list->notes[i];
            snprintf(line, sizeof line, "%s%s%.60s: %.360s", n->backend, n->platform[0] ? " " : "",
                     n->platform, n->reason);
        } else {
            const lap_device_info *d = &list->devices[i];
            snprintf(line, sizeof line, "%-12s %s  %.80s (%.60s)", d->selector,
                     lap_device_type_name(d->type), d->name, d->platform);
        }
        lap_text_clean(line); /* a cut may have left half a character */
        if (text->length - start + strlen(line) + 3 > LISTING_MAX) {
            lap_text_addf(text, "\n  and %zu more", total - i);
            break;
        }
        lap_text_addf(text, "\n  %s", line);
    }
}

static void add_forms(lap_text *text) {
    lap_text_add(text, "\nvalid forms, separated by commas: auto, all");
    const char *form;
    for (size_t i = 0; lap_registry_known(i, &form); i++)
        lap_text_addf(text, ", %s", form);
    lap_text_add(text, ", name=TEXT, uuid=HEX, pci=DOMAIN:BUS:DEVICE.FUNCTION, "
                       "type=gpu|cpu|accelerator");
}

static lap_status fail_text(lap_error *err, lap_status status, lap_text *text) {
    status = text->failed ? LAP_FAIL(err, LAP_E_NOMEM, "choosing devices: out of memory")
                          : LAP_FAIL(err, status, "%s", lap_text_get(text));
    lap_text_free(text);
    return status;
}

static lap_status bad_syntax(const selection *s, const char *piece, const char *why,
                             lap_error *err) {
    lap_text text = {0};
    lap_text_addf(&text, "device selector \"%.120s\": %s", piece, why);
    add_forms(&text);
    add_listing(&text, s->list);
    return fail_text(err, LAP_E_CONFIG, &text);
}

static lap_status no_match(const selection *s, const char *piece, const char *why, lap_error *err) {
    lap_text text = {0};
    lap_text_addf(&text, "device selector \"%.120s\": %s", piece, why);
    add_listing(&text, s->list);
    return fail_text(err, LAP_E_NODEVICE, &text);
}

/* ---- BACKEND[:i[:j]] ------------------------------------------------------------------------ */

enum { MAX_LEVELS = 8 };

typedef struct route {
    char backend[sizeof((lap_device_info *)0)->backend];
    uint64_t index[MAX_LEVELS];
    const char *typed[MAX_LEVELS]; /* where each index stands in the text it came from */
    int levels;
} route;

/* Digits only. A number too large for 64 bits is a number all the same: it becomes the largest. */
static bool parse_index(const char *s, size_t n, uint64_t *out) {
    if (n == 0 || strspn(s, "0123456789") < n) return false;
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t digit = (uint64_t)(s[i] - '0');
        *out = *out > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *out * 10 + digit;
    }
    return true;
}

/* False when an index is not a plain number, or there are too many. The backend is always set. */
static bool parse_route(const char *text, route *out) {
    size_t n = strcspn(text, ":");
    *out = (route){0};
    snprintf(out->backend, sizeof out->backend, "%.*s", (int)(n < 64 ? n : 64), text);
    const char *p = text + n;
    while (*p == ':') {
        size_t digits = strcspn(++p, ":");
        if (out->levels == MAX_LEVELS || !parse_index(p, digits, &out->index[out->levels]))
            return false;
        out->typed[out->levels++] = p;
        p += digits;
    }
    return true;
}

/* Does the device's own route start with the first `levels` indices of r? */
static bool route_matches(const lap_device_info *device, const route *r, int levels, route *own) {
    if (!parse_route(device->selector, own) || strcasecmp(own->backend, r->backend) != 0)
        return false;
    if (own->levels < levels) return false;
    for (int i = 0; i < levels; i++) {
        if (own->index[i] != r->index[i]) return false;
    }
    return true;
}

/* The indices that exist below the first `levels` of r, as "0-3, 5"; false when there are none. */
static bool valid_range(const lap_device_list *list, const route *r, int levels, lap_text *out) {
    uint64_t last = 0, from = 0;
    bool any = false, more = true;
    while (more) {
        /* The least index above the last one found: lists are short, so order does not matter. */
        uint64_t next = UINT64_MAX;
        more = false;
        for (size_t i = 0; i < list->count; i++) {
            route own;
            if (!route_matches(&list->devices[i], r, levels, &own) || own.levels <= levels)
                continue;
            uint64_t index = own.index[levels];
            if ((!any || index > last) && index <= next) {
                next = index;
                more = true;
            }
        }
        if (more && any && next == last + 1) {
            last = next;
            continue;
        }
        if (any && last > from) lap_text_addf(out, "-%llu", (unsigned long long)last);
        if (more) {
            lap_text_addf(out, "%s%llu", any ? ", " : "", (unsigned long long)next);
            from = last = next;
            any = true;
        }
    }
    return any;
}

/* What enumeration noted about a backend; where there is no device at all, every note follows. */
static void add_reasons(const lap_device_list *list, const char *backend, lap_text *why) {
    if (list->count == 0) return;
    for (size_t i = 0; i < list->note_count; i++) {
        const lap_device_note *note = &list->notes[i];
        if (strcmp(note->backend, backend) != 0) continue;
        lap_text_addf(why, ": %s%s%.360s", note->platform, *note->platform ? ": " : "",
                      note->reason);
    }
}

/* Say at which level r leaves what exists, and what is valid there. */
static void explain_route(const lap_device_list *list, const route *r, lap_text *why) {
    char prefix[96];
    int n = snprintf(prefix, sizeof prefix, "%s", r->backend);
    for (int level = 0; level < r->levels; level++) {
        lap_text range = {0};
        bool any = valid_range(list, r, level, &range);
        route deeper = *r, own;
        bool exists = false;
        for (size_t i = 0; i < list->count; i++)
            exists = exists || route_matches(&list->devices[i], &deeper, level + 1, &own);
        if (!any) {
            lap_text_addf(why, "%s %s", prefix,
                          level ? "takes no further index" : "has no device here");
            if (level == 0) add_reasons(list, r->backend, why);
        } else if (!exists) {
            const char *typed = r->typed[level];
            lap_text_addf(why, "no %s:%.*s; the index after \"%s:\" can only be %s", prefix,
                          (int)strcspn(typed, ":"), typed, prefix, lap_text_get(&range));
        }
        lap_text_free(&range);
        if (!any || !exists) return;
        n += snprintf(prefix + n, sizeof prefix - (size_t)n, ":%llu",
                      (unsigned long long)r->index[level]);
    }
    lap_text_addf(why, "%s has no device here", prefix);
    if (r->levels == 0) add_reasons(list, r->backend, why);
}

static lap_status select_route(selection *s, const char *piece, lap_error *err) {
    route r, own;
    if (!parse_route(piece, &r)) {
        lap_text why = {0}, range = {0};
        lap_text_add(&why, "an index must be a plain number from 0 up");
        if (valid_range(s->list, &r, 0, &range))
            lap_text_addf(&why, "; the index after \"%s:\" can only be %s", r.backend,
                          lap_text_get(&range));
        lap_status status = bad_syntax(s, piece, lap_text_get(&why), err);
        lap_text_free(&why);
        lap_text_free(&range);
        return status;
    }
    bool any = false;
    for (size_t i = 0; i < s->list->count; i++) {
        if (!route_matches(&s->list->devices[i], &r, r.levels, &own)) continue;
        s->chosen[i] = any = true;
    }
    if (any) return LAP_OK;
    lap_text why = {0};
    explain_route(s->list, &r, &why);
    lap_status status = no_match(s, piece, lap_text_get(&why), err);
    lap_text_free(&why);
    return status;
}

/* ---- KEY=VALUE ------------------------------------------------------------------------------ */

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 32 digits, with dashes in the usual places or none at all; "GPU-" or "MIG-" in front as the
 * vendor's tools print it. */
static bool parse_uuid(const char *text, uint8_t out[16]) {
    if (strncasecmp(text, "GPU-", 4) == 0 || strncasecmp(text, "MIG-", 4) == 0) text += 4;
    bool dashes = strchr(text, '-') != NULL;
    if (strlen(text) != (dashes ? 36 : 32)) return false;
    for (int i = 0; i < 16; i++) {
        if (dashes && (i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-') return false;
        int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);
        if (low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return true;
}

typedef struct pci_id {
    bool has_domain;
    uint32_t domain, bus, device, function;
} pci_id;

/* 1 to most hexadecimal digits, then the character `end`; moves *p behind it. */
static bool parse_hex(const char **p, int most, char end, uint32_t *out) {
    int n = 0;
    *out = 0;
    for (; hex_digit((*p)[n]) >= 0; n++) {
        if (n == most) return false;
        *out = *out << 4 | (uint32_t)hex_digit((*p)[n]);
    }
    if (n == 0 || (*p)[n] != end) return false;
    *p += end ? n + 1 : n;
    return true;
}

static bool parse_pci(const char *text, pci_id *out) {
    const char *first = strchr(text, ':');
    out->has_domain = first && strchr(first + 1, ':');
    out->domain = 0;
    if (out->has_domain && !parse_hex(&text, 8, ':', &out->domain)) return false;
    return parse_hex(&text, 2, ':', &out->bus) && parse_hex(&text, 2, '.', &out->device) &&
           parse_hex(&text, 1, '\0', &out->function) && out->device <= 31 && out->function <= 7;
}

typedef enum key { KEY_NAME, KEY_UUID, KEY_PCI, KEY_TYPE, KEY_COUNT } key;
static const char *const key_names[KEY_COUNT] = {"name", "uuid", "pci", "type"};

/* A parsed KEY=VALUE; only the member of its key is set. */
typedef struct condition {
    key key;
    const char *name;
    uint8_t uuid[16];
    pci_id pci;
    lap_device_type type;
} condition;

static bool parse_type(const char *text, lap_device_type *out) {
    static const lap_device_type types[] = {LAP_DEVICE_GPU, LAP_DEVICE_CPU, LAP_DEVICE_ACCELERATOR};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        *out = types[i];
        if (strcasecmp(text, lap_device_type_name(types[i])) == 0) return true;
    }
    return false;
}

/* NULL, or what is wrong with the value. */
static const char *parse_condition(key k, const char *value, condition *out) {
    out->key = k;
    out->name = value;
    switch (k) {
    case KEY_NAME:
        return *value ? NULL : "name= needs a text to look for in the device names";
    case KEY_UUID:
        return parse_uuid(value, out->uuid) ? NULL
                                            : "uuid= needs 32 hexadecimal digits, with or without "
                                              "dashes, as `warmlap devices` prints them";
    case KEY_PCI:
        return parse_pci(value, &out->pci) ? NULL
                                           : "pci= needs hexadecimal [DOMAIN:]BUS:DEVICE.FUNCTION "
                                             "like 0000:01:00.0";
    case KEY_TYPE:
        return parse_type(value, &out->type) ? NULL : "type= must be gpu, cpu or accelerator";
    case KEY_COUNT:
        break;
    }
    return "unknown key";
}

static bool condition_holds(const condition *c, const lap_device_info *d) {
    switch (c->key) {
    case KEY_NAME:
        return lap_text_contains(d->name, c->name);
    case KEY_UUID:
        return d->has_uuid && memcmp(d->uuid, c->uuid, sizeof d->uuid) == 0;
    case KEY_PCI:
        return d->has_pci && (!c->pci.has_domain || d->pci_domain == c->pci.domain) &&
               d->pci_bus == c->pci.bus && d->pci_device == c->pci.device &&
               d->pci_function == c->pci.function;
    case KEY_TYPE:
        return d->type == c->type;
    case KEY_COUNT:
        break;
    }
    return false;
}

static lap_status select_condition(selection *s, const char *piece, const char *equals,
                                   lap_error *err) {
    size_t n = (size_t)(equals - piece);
    key k = KEY_NAME;
    while (k < KEY_COUNT &&
           !(strlen(key_names[k]) == n && strncasecmp(piece, key_names[k], n) == 0))
        k++;
    condition c = {0};
    const char *value = equals + 1 + strspn(equals + 1, " \t");
    const char *wrong = k == KEY_COUNT ? "unknown key before \"=\"" : parse_condition(k, value, &c);
    if (wrong) return bad_syntax(s, piece, wrong, err);
    bool any = false;
    for (size_t i = 0; i < s->list->count; i++) {
        if (!condition_holds(&c, &s->list->devices[i])) continue;
        s->chosen[i] = any = true;
    }
    return any ? LAP_OK : no_match(s, piece, "matches no device", err);
}

/* ---- auto, all and the whole ---------------------------------------------------------------- */

static int type_rank(lap_device_type type) {
    switch (type) {
    case LAP_DEVICE_GPU:
        return 0;
    case LAP_DEVICE_ACCELERATOR:
        return 1;
    case LAP_DEVICE_CPU:
        return 2;
    case LAP_DEVICE_OTHER:
        break;
    }
    return 3;
}

/* Routes of one device may report different sizes; its size is the largest of them. */
static uint64_t physical_memory(const lap_device_list *list, int physical) {
    uint64_t most = 0;
    for (size_t i = 0; i < list->count; i++) {
        const lap_device_info *d = &list->devices[i];
        if (d->physical == physical && d->memory_bytes > most) most = d->memory_bytes;
    }
    return most;
}

/* List order is the registry's order of preference, so the first of equals is the right route. */
static size_t best_device(const lap_device_list *list) {
    size_t best = 0;
    for (size_t i = 1; i < list->count; i++) {
        const lap_device_info *a = &list->devices[best], *b = &list->devices[i];
        int difference = type_rank(b->type) - type_rank(a->type);
        bool larger = physical_memory(list, b->physical) > physical_memory(list, a->physical);
        if (difference < 0 || (difference == 0 && larger)) best = i;
    }
    return best;
}

static bool known_backend(const lap_device_list *list, const char *piece) {
    route r;
    (void)parse_route(piece, &r);
    if (strcspn(piece, ":") >= sizeof r.backend) return false;
    for (size_t i = 0; lap_registry_known(i, NULL); i++) {
        if (strcasecmp(lap_registry_known(i, NULL), r.backend) == 0) return true;
    }
    for (size_t i = 0; i < lap_registry_count(); i++) {
        if (strcasecmp(lap_registry_get(i)->name, r.backend) == 0) return true;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (strcasecmp(list->devices[i].backend, r.backend) == 0) return true;
    }
    return false;
}

static lap_status unknown_word(const selection *s, const char *piece, lap_error *err) {
    const char *words[16] = {"auto", "all", "name=", "uuid=", "pci=", "type="};
    size_t count = 6;
    for (size_t i = 0; count < 16 && lap_registry_known(i, NULL); i++)
        words[count++] = lap_registry_known(i, NULL);
    char head[64], why[128];
    snprintf(head, sizeof head, "%.*s", (int)strcspn(piece, ":"), piece);
    const char *close = lap_text_closest(head, words, count);
    snprintf(why, sizeof why, "not a selector");
    if (close) snprintf(why, sizeof why, "not a selector; did you mean \"%s\"?", close);
    return bad_syntax(s, piece, why, err);
}

static lap_status select_piece(selection *s, const char *piece, lap_error *err) {
    if (!*piece) return bad_syntax(s, piece, "an empty selector chooses nothing", err);
    const char *equals = strchr(piece, '=');
    if (equals) return select_condition(s, piece, equals, err);
    bool all = strcasecmp(piece, "all") == 0;
    if (all || strcasecmp(piece, "auto") == 0) {
        if (s->list->count == 0) return no_match(s, piece, "matches no device", err);
        for (size_t i = 0; all && i < s->list->count; i++)
            s->chosen[i] = true;
        if (!all) s->chosen[best_device(s->list)] = true;
        return LAP_OK;
    }
    if (known_backend(s->list, piece)) return select_route(s, piece, err);
    return unknown_word(s, piece, err);
}

/* Cuts copy at its commas. */
static lap_status select_pieces(selection *s, char *copy, lap_error *err) {
    for (char *piece = copy, *next; piece; piece = next) {
        next = strchr(piece, ',');
        if (next) *next++ = '\0';
        LAP_TRY(select_piece(s, lap_text_clean(piece), err));
    }
    return LAP_OK;
}

lap_status lap_device_select(const lap_device_list *list, const char *selector, size_t **indices,
                             size_t *count, lap_error *err) {
    if (indices) *indices = NULL;
    if (count) *count = 0;
    if (!list || !selector || !indices || !count)
        return LAP_FAIL(err, LAP_E_ARG, "lap_device_select: an argument is NULL");
    selection s = {.list = list, .chosen = calloc(list->count + 1, sizeof *s.chosen)};
    size_t *result = calloc(list->count + 1, sizeof *result);
    char *copy = strdup(selector);
    lap_status status = s.chosen && result && copy
                            ? select_pieces(&s, copy, err)
                            : LAP_FAIL(err, LAP_E_NOMEM, "choosing devices: out of memory");
    size_t found = 0;
    for (size_t i = 0; status == LAP_OK && i < list->count; i++) {
        if (s.chosen[i]) result[found++] = i;
    }
    free(copy);
    free(s.chosen);
    if (status != LAP_OK) {
        free(result);
        return status;
    }
    *indices = result;
    *count = found;
    return LAP_OK;
}
