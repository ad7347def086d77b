/* Putting the configuration together: defaults, files, single settings, rules between keys.
 * Reading a value is config_value.c's work, showing the result config_write.c's. */
#include "app/config_keys.h"
#include "base/ini.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lap_status no_memory(lap_error *err) {
    return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the configuration");
}

void lap_config_free(lap_config *config) {
    if (!config) return;
    for (size_t i = 0; i < LAP_CONFIG_KEY_MAX; i++) {
        free(config->text[i]);
        free(config->origin[i]);
    }
    free(config);
}

/* ---- finding keys --------------------------------------------------------------------------- */

static bool section_known(const char *section) {
    for (size_t i = 0; i < lap_section_count; i++)
        if (!strcmp(lap_sections[i].name, section)) return true;
    return false;
}

static lap_status check_section(const char *section, const char *where, lap_error *err) {
    if (section_known(section)) return LAP_OK;
    const char *names[16];
    lap_text known = {0};
    for (size_t i = 0; i < lap_section_count && i < 16; i++) {
        names[i] = lap_sections[i].name;
        lap_text_addf(&known, "%s[%s]", i ? " " : "", names[i]);
    }
    const char *closest = lap_text_closest(section, names, lap_section_count);
    lap_status status =
        LAP_FAIL(err, LAP_E_CONFIG, "%.400s: unknown section [%.60s]%s%s%s sections are %s", where,
                 section, closest ? "; did you mean [" : "", closest ? closest : "",
                 closest ? "]? The" : "; the", lap_text_get(&known));
    lap_text_free(&known);
    return status;
}

static lap_status unknown_key(const char *section, const char *name, const char *where,
                              lap_error *err) {
    const char *names[LAP_CONFIG_KEY_MAX];
    size_t count = 0;
    const char *elsewhere = NULL;
    lap_text known = {0};
    for (size_t i = 0; i < lap_key_count; i++) {
        if (!strcmp(lap_keys[i].section, section)) {
            lap_text_addf(&known, "%s%s", count ? ", " : "", lap_keys[i].name);
            names[count++] = lap_keys[i].name;
        } else if (!elsewhere && !strcmp(lap_keys[i].name, name)) {
            elsewhere = lap_keys[i].section;
        }
    }
    const char *closest = elsewhere ? NULL : lap_text_closest(name, names, count);
    lap_text hint = {0};
    if (elsewhere) lap_text_addf(&hint, "; it belongs to [%s]", elsewhere);
    if (closest) lap_text_addf(&hint, "; did you mean %s?", closest);
    lap_text_add(&hint, closest ? " Its" : "; its");
    lap_status status =
        LAP_FAIL(err, LAP_E_CONFIG, "%.400s: unknown key %.60s in [%s]%s keys are %s", where, name,
                 section, lap_text_get(&hint), lap_text_get(&known));
    lap_text_free(&hint);
    lap_text_free(&known);
    return status;
}

static lap_status find_key(const char *section, const char *name, const char *where, size_t *index,
                           lap_error *err) {
    LAP_TRY(check_section(section, where, err));
    for (size_t i = 0; i < lap_key_count; i++) {
        if (strcmp(lap_keys[i].section, section) != 0 || strcmp(lap_keys[i].name, name) != 0)
            continue;
        *index = i;
        return LAP_OK;
    }
    return unknown_key(section, name, where, err);
}

/* ---- setting -------------------------------------------------------------------------------- */

/* A value must survive --dump-config and come back the same, so it is held to what a file can say.
 */
static const char *unwritable(const char *value) {
    for (const char *p = value; *p;) {
        size_t n = lap_text_utf8(p);
        if (n == 0) return "the value is not valid UTF-8";
        bool c1 = !strncmp(p, "\xC2", 1) && (unsigned char)p[1] < 0xA0; /* U+0080..U+009F */
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7F || c1)
            return "the value holds a control character";
        p += n;
    }
    if (strlen(value) > LAP_CONFIG_VALUE_MAX) return "the value is longer than 900 bytes";
    if (strchr(value, '"') && strchr(value, '\''))
        return "the value holds both \" and '; one kind of quote is possible";
    return NULL;
}
_Static_assert(LAP_CONFIG_VALUE_MAX == 900, "the message above names the limit");

static lap_status parse_value(const lap_key *key, const char *value, const char *where,
                              lap_key_value *out, lap_error *err) {
    lap_text why = {0};
    const char *bad = unwritable(value);
    if (bad)
        lap_text_add(&why, bad);
    else if (lap_key_parse(key, value, out, &why))
        return LAP_OK;
    char shown[256];
    snprintf(shown, sizeof shown, "%s", value);
    lap_text_clean(shown);
    lap_status status = LAP_FAIL(err, LAP_E_CONFIG, "%.400s: [%s] %s = %s: %s", where, key->section,
                                 key->name, shown, lap_text_get(&why));
    lap_text_free(&why);
    return status;
}

static lap_status store(lap_config *config, size_t index, const lap_key_value *value,
                        const char *text, const char *origin, lap_error *err) {
    const lap_key *key = &lap_keys[index];
    char *text_copy = strdup(text), *origin_copy = strdup(origin);
    if (!text_copy || !origin_copy) {
        free(text_copy);
        free(origin_copy);
        return no_memory(err);
    }
    free(config->text[index]);
    free(config->origin[index]);
    config->text[index] = text_copy;
    config->origin[index] = origin_copy;
    char *field = (char *)config + key->offset;
    const char *owned = text_copy;
    unsigned choice = (unsigned)value->count;
    switch (key->type) {
    case LAP_KEY_TEXT:
    case LAP_KEY_SOURCE:
    case LAP_KEY_PATH:
    case LAP_KEY_ROWS:
        memcpy(field, &owned, sizeof owned);
        break;
    case LAP_KEY_CHOICE:
        memcpy(field, &choice, sizeof choice);
        break;
    case LAP_KEY_CHOICES:
    case LAP_KEY_COUNTS:
        memcpy(field, &value->list, sizeof value->list);
        break;
    case LAP_KEY_COUNT:
        memcpy(field, &value->count, sizeof value->count);
        break;
    case LAP_KEY_AMOUNT:
        memcpy(field, &value->amount, sizeof value->amount);
        break;
    case LAP_KEY_REAL:
        memcpy(field, &value->real, sizeof value->real);
        break;
    case LAP_KEY_BOOL:
        memcpy(field, &value->flag, sizeof value->flag);
        break;
    }
    return LAP_OK;
}

lap_status lap_config_set_key(lap_config *config, const char *section, const char *key,
                              const char *value, const char *origin, lap_error *err) {
    if (!config || !section || !key || !value || !origin)
        return LAP_FAIL(err, LAP_E_ARG, "lap_config_set_key: NULL argument");
    size_t index;
    lap_key_value parsed = {0};
    LAP_TRY(find_key(section, key, origin, &index, err));
    LAP_TRY(parse_value(&lap_keys[index], value, origin, &parsed, err));
    return store(config, index, &parsed, value, origin, err);
}

lap_status lap_config_new(lap_config **out, lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_config_new: out is NULL");
    *out = NULL;
    lap_config *config = calloc(1, sizeof *config);
    if (!config) return no_memory(err);
    for (size_t i = 0; i < lap_key_count; i++) {
        const lap_key *key = &lap_keys[i];
        lap_status status = lap_config_set_key(config, key->section, key->name, key->fallback,
                                               "built-in default", err);
        if (status != LAP_OK) {
            lap_config_free(config);
            return status;
        }
    }
    *out = config;
    return LAP_OK;
}

/* Trim blanks and lower the case of a name, as a file's would be; false if it does not fit. */
static bool take_name(const char *start, size_t n, char *out, size_t size) {
    for (; n > 0 && (*start == ' ' || *start == '\t'); n--)
        start++;
    while (n > 0 && (start[n - 1] == ' ' || start[n - 1] == '\t'))
        n--;
    if (n == 0 || n >= size) return false;
    for (size_t i = 0; i < n; i++)
        out[i] = start[i] >= 'A' && start[i] <= 'Z' ? (char)(start[i] - 'A' + 'a') : start[i];
    out[n] = '\0';
    lap_text_clean(out);
    return true;
}

lap_status lap_config_set(lap_config *config, const char *assignment, const char *origin,
                          lap_error *err) {
    if (!config || !assignment || !origin)
        return LAP_FAIL(err, LAP_E_ARG, "lap_config_set: NULL argument");
    char section[64], key[64], shown[256];
    const char *equals = strchr(assignment, '=');
    const char *colon = strchr(assignment, ':');
    if (!equals || !colon || colon > equals ||
        !take_name(assignment, (size_t)(colon - assignment), section, sizeof section) ||
        !take_name(colon + 1, (size_t)(equals - colon - 1), key, sizeof key)) {
        snprintf(shown, sizeof shown, "%s", assignment);
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "%.60s '%s': expected section:key=value, such as latency:batch=1,8", origin,
                        lap_text_clean(shown));
    }
    const char *value = equals + 1;
    while (*value == ' ' || *value == '\t')
        value++;
    size_t n = strlen(value);
    while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
        n--;
    char *copy = strndup(value, n);
    if (!copy) return no_memory(err);
    lap_status status = lap_config_set_key(config, section, key, copy, origin, err);
    free(copy);
    return status;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Two passes, so that a file with an error changes nothing. */
static lap_status merge(lap_config *config, const lap_ini *ini, lap_error *err) {
    for (int apply = 0; apply <= 1; apply++) {
        for (size_t i = 0; i < ini->count; i++) {
            const lap_ini_entry *entry = &ini->entries[i];
            lap_text where = {0};
            lap_text_addf(&where, "%.400s:%d", ini->name, entry->line);
            size_t index = 0;
            lap_key_value value = {0};
            lap_status status = where.failed ? no_memory(err) : LAP_OK;
            if (status == LAP_OK && !entry->key)
                status = check_section(entry->section, where.data, err);
            if (status == LAP_OK && entry->key)
                status = find_key(entry->section, entry->key, where.data, &index, err);
            if (status == LAP_OK && entry->key)
                status = parse_value(&lap_keys[index], entry->value, where.data, &value, err);
            if (status == LAP_OK && entry->key && apply)
                status = store(config, index, &value, entry->value, where.data, err);
            lap_text_free(&where);
            if (status != LAP_OK) return status;
        }
    }
    return LAP_OK;
}

lap_status lap_config_load_text(lap_config *config, const char *name, const void *bytes,
                                size_t size, lap_error *err) {
    if (!config) return LAP_FAIL(err, LAP_E_ARG, "lap_config_load_text: config is NULL");
    lap_ini *ini;
    LAP_TRY(lap_ini_parse(name, bytes, size, &ini, err));
    lap_status status = merge(config, ini, err);
    lap_ini_free(ini);
    return status;
}

lap_status lap_config_load(lap_config *config, const char *path, lap_error *err) {
    if (!config || !path) return LAP_FAIL(err, LAP_E_ARG, "lap_config_load: NULL argument");
    char *found;
    LAP_TRY(lap_config_find(path, &found, err));
    lap_ini *ini = NULL;
    lap_status status = lap_ini_load(found, &ini, err);
    if (status == LAP_OK) status = merge(config, ini, err);
    lap_ini_free(ini);
    free(found);
    return status;
}

/* ---- what the fields mean together ---------------------------------------------------------- */

size_t lap_config_size_count(const lap_config *config) {
    size_t h = config->network.height.count, w = config->network.width.count;
    return h > w ? h : w;
}

void lap_config_size(const lap_config *config, size_t index, int *height, int *width) {
    const lap_config_list *h = &config->network.height, *w = &config->network.width;
    *height = (int)h->values[h->count == 1 ? 0 : index];
    *width = (int)w->values[w->count == 1 ? 0 : index];
}

bool lap_config_has_mode(const lap_config *config, lap_run_mode mode) {
    for (size_t i = 0; i < config->run.modes.count; i++)
        if (config->run.modes.values[i] == (uint64_t)mode) return true;
    return false;
}

const char *lap_config_origin(const lap_config *config, const char *section, const char *key) {
    for (size_t i = 0; i < lap_key_count; i++)
        if (!strcmp(lap_keys[i].section, section) && !strcmp(lap_keys[i].name, key))
            return config->origin[i];
    return NULL;
}

static lap_status check_sizes(const lap_config *config, lap_error *err) {
    const lap_config_list *h = &config->network.height, *w = &config->network.width;
    if (h->count != w->count && h->count != 1 && w->count != 1)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "[network] height has %zu entries (%.400s) and width has %zu (%.400s): "
                        "expected equally many, or one of them single",
                        h->count, lap_config_origin(config, "network", "height"), w->count,
                        lap_config_origin(config, "network", "width"));
    for (size_t i = 0; i < lap_config_size_count(config); i++) {
        for (size_t j = 0; j < i; j++) {
            int h1, w1, h2, w2;
            lap_config_size(config, i, &h1, &w1);
            lap_config_size(config, j, &h2, &w2);
            if (h1 == h2 && w1 == w2)
                return LAP_FAIL(err, LAP_E_CONFIG,
                                "[network] height (%.400s) and width (%.400s) give the size %dx%d "
                                "twice: expected each once",
                                lap_config_origin(config, "network", "height"),
                                lap_config_origin(config, "network", "width"), h1, w1);
        }
    }
    return LAP_OK;
}

static lap_status check_outputs(const lap_config *config, lap_error *err) {
    const char *names[] = {"json", "csv", "markdown"};
    const char *paths[] = {config->output.json, config->output.csv, config->output.markdown};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < i; j++)
            if (*paths[i] && !strcmp(paths[i], paths[j]))
                return LAP_FAIL(err, LAP_E_CONFIG,
                                "[output] %s (%.300s) and %s (%.300s) both go to %.200s: expected "
                                "different files, and at most one on standard output",
                                names[j], lap_config_origin(config, "output", names[j]), names[i],
                                lap_config_origin(config, "output", names[i]),
                                strcmp(paths[i], "-") ? paths[i] : "standard output");
    return LAP_OK;
}

lap_status lap_config_check(const lap_config *config, lap_error *err) {
    if (!config) return LAP_FAIL(err, LAP_E_ARG, "lap_config_check: config is NULL");
    LAP_TRY(check_sizes(config, err));
    if (config->latency.max_samples < config->latency.min_samples)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "[latency] max_samples = %llu is below min_samples = %llu: raise the one "
                        "or lower the other",
                        (unsigned long long)config->latency.max_samples,
                        (unsigned long long)config->latency.min_samples);
    if (config->throughput.streams.count > LAP_MAX_STREAM_POINTS)
        return LAP_FAIL(err, LAP_E_CONFIG, "[throughput] streams: %zu entries, expected at most %d",
                        config->throughput.streams.count, LAP_MAX_STREAM_POINTS);
    return check_outputs(config, err);
}
