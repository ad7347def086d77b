/* Is it the same run? (see resume.h) */
#include "app/resume.h"

#include "compare/load.h"
#include "compare/restore.h"
#include "report/format.h"
#include "report/host.h"
#include "report/output.h"

#include <stdio.h>
#include <string.h>

static const char *text_at(json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* A text of the file, fit to be shown. */
typedef struct shown {
    char text[128];
} shown;

static shown show(const char *text) {
    shown s;
    snprintf(s.text, sizeof s.text, "%s", text);
    lap_text_clean(s.text);
    return s;
}

static lap_status differs(const char *path, const char *what, const char *theirs, const char *now,
                          lap_error *err) {
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "--resume %.400s: %s is '%s' there, '%s' here: not the same run", path, what,
                    show(theirs).text, show(now).text);
}

lap_status lap_resume_load(const char *path, lap_document **out, lap_error *err) {
    *out = NULL;
    if (!*path || strcmp(path, "-") == 0 || !lap_output_again(path))
        return LAP_FAIL(err, LAP_E_CONFIG, "--resume '%.400s': expected a result file", path);
    lap_document *d;
    LAP_TRY(lap_document_load_whole(path, &d, err));
    lap_host_info host;
    lap_host_info_read("", &host);
    lap_status status = LAP_OK;
    if (strcmp(d->version, LAP_VERSION) != 0)
        status = differs(path, "the version of warmlap", d->version, LAP_VERSION, err);
    else if (strcmp(d->cpu, host.cpu) != 0)
        status = differs(path, "the host's processor", d->cpu, host.cpu, err);
    else if (strcmp(d->kernel, host.kernel) != 0)
        status = differs(path, "the host's kernel", d->kernel, host.kernel, err);
    if (status == LAP_OK)
        *out = d;
    else
        lap_document_free(d);
    return status;
}

/* ---- configuration -------------------------------------------------------------------------- */

/* Whether a key is about where results go or how the program guards itself, not what is measured.
 */
static bool is_free(const char *section, const char *key) {
    if (strcmp(section, "output") == 0) return strcmp(key, "layers") != 0;
    return strcmp(section, "run") == 0 &&
           (strcmp(key, "watchdog") == 0 || strcmp(key, "isolate") == 0);
}

lap_status lap_resume_configure(const lap_document *document, lap_config *config, lap_error *err) {
    const char *name, *key;
    json_t *section, *value;
    json_object_foreach(json_object_get(document->json, "config"), name, section) {
        json_object_foreach(section, key, value) {
            if (is_free(name, key)) continue;
            if (!json_is_string(value))
                return LAP_FAIL(err, LAP_E_FORMAT, "%.400s: config.%s.%s is no text",
                                document->path, show(name).text, show(key).text);
            LAP_TRY(
                lap_config_set_key(config, name, key, json_string_value(value), "--resume", err));
        }
    }
    return lap_config_set_key(config, "output", "json", document->path, "--resume", err);
}

lap_status lap_resume_check(const lap_document *document, const lap_config *config,
                            lap_error *err) {
    lap_report_setting settings[LAP_CONFIG_KEY_MAX];
    size_t count = lap_config_settings(config, settings);
    json_t *theirs = json_object_get(document->json, "config");
    for (size_t i = 0; i < count; i++) {
        const lap_report_setting *s = &settings[i];
        char what[96];
        if (is_free(s->section, s->key)) continue;
        json_t *value = json_object_get(json_object_get(theirs, s->section), s->key);
        snprintf(what, sizeof what, "[%s] %s", s->section, s->key);
        if (!value)
            return LAP_FAIL(err, LAP_E_CONFIG,
                            "--resume %.400s: %s is missing there: not the same run",
                            document->path, what);
        const char *text = json_string_value(value);
        if (!text || strcmp(text, s->value) != 0)
            return differs(document->path, what, text ? text : "", s->value, err);
    }
    return LAP_OK;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static lap_status check_device(const char *path, size_t index, json_t *row, const lap_row *planned,
                               lap_error *err) {
    const lap_device_info *d = &planned->device;
    json_t *device = json_object_get(row, "device");
    char uuid[48], pci[32];
    lap_format_uuid(uuid, sizeof uuid, d);
    lap_format_pci(pci, sizeof pci, d);
    const struct {
        const char *what, *theirs, *now;
    } pairs[] = {{"device", text_at(device, "name"), d->name},
                 {"route", text_at(row, "selector"), d->selector},
                 {"platform", text_at(row, "platform"), d->platform},
                 {"driver", text_at(device, "driver"), d->driver},
                 {"toolchain", text_at(device, "toolchain"), d->toolchain},
                 {"uuid", text_at(device, "uuid"), uuid},
                 {"pci address", text_at(device, "pci"), pci}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char what[96];
        if (strcmp(pairs[i].theirs, pairs[i].now) == 0) continue;
        snprintf(what, sizeof what, "the %s of row %zu", pairs[i].what, index + 1);
        return differs(path, what, pairs[i].theirs, pairs[i].now, err);
    }
    return LAP_OK;
}

static lap_status check_case(const char *path, size_t index, json_t *row, const lap_row *planned,
                             lap_error *err) {
    char theirs[160], now[160];
    json_t *modes = json_object_get(row, "modes");
    lap_text list = {0};
    for (size_t i = 0; i < json_array_size(modes); i++) {
        const char *mode = json_string_value(json_array_get(modes, i));
        lap_text_addf(&list, "%s%s", i ? "+" : "", mode ? mode : "?");
    }
    char ours[64];
    lap_format_modes(ours, sizeof ours, planned->modes, "+");
    snprintf(theirs, sizeof theirs, "%.40s %lldx%lld %.16s batch %lld, %.60s",
             text_at(row, "network"), (long long)json_integer_value(json_object_get(row, "height")),
             (long long)json_integer_value(json_object_get(row, "width")),
             text_at(row, "precision"),
             (long long)json_integer_value(json_object_get(row, "batch")), lap_text_get(&list));
    snprintf(now, sizeof now, "%.40s %dx%d %.16s batch %llu, %.60s", planned->network,
             planned->height, planned->width, planned->precision,
             (unsigned long long)planned->batch, ours);
    lap_text_free(&list);
    if (strcmp(theirs, now) == 0) return LAP_OK;
    char what[64];
    snprintf(what, sizeof what, "the case of row %zu", index + 1);
    return differs(path, what, theirs, now, err);
}

lap_status lap_resume_row(const lap_document *document, size_t index, const lap_row *planned,
                          bool *finished, lap_row *row, lap_error *err) {
    *finished = false;
    json_t *there = json_array_get(json_object_get(document->json, "rows"), index);
    LAP_TRY(check_case(document->path, index, there, planned, err));
    LAP_TRY(check_device(document->path, index, there, planned, err));
    if (strcmp(text_at(there, "status"), lap_row_status_name(LAP_ROW_SKIPPED)) == 0) return LAP_OK;
    LAP_TRY(lap_row_restore(document->path, index, there, &planned->device, row, err));
    *finished = true;
    return LAP_OK;
}
