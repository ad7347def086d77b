/* Rendering and writing the documents of a run (see documents.h). */
#include "app/documents.h"

#include "report/sets.h"

#include <stdio.h>
#include <string.h>

typedef lap_status (*renderer)(const lap_report *, lap_text *, lap_error *);

static const renderer renderers[LAP_DOCUMENTS] = {lap_report_json, lap_report_csv,
                                                  lap_report_markdown};
enum { JSON = 0 };

static const char *path_of(const lap_config *config, size_t index) {
    const char *const paths[LAP_DOCUMENTS] = {config->output.json, config->output.csv,
                                              config->output.markdown};
    return paths[index];
}

void lap_documents_library(lap_documents *d, const char *name, const char *version) {
    if (d->library_count == LAP_LIBRARIES_MOST) return;
    snprintf(d->names[d->library_count], sizeof d->names[0], "%s", name);
    snprintf(d->versions[d->library_count++], sizeof d->versions[0], "%s", version);
}

/* What a document is made of, besides its rows. */
typedef struct paper {
    lap_report report;
    lap_report_library libraries[LAP_LIBRARIES_MOST];
    lap_report_setting settings[LAP_CONFIG_KEY_MAX];
    lap_set *sets;
    size_t set_count;
} paper;

static lap_status fill(const lap_documents *d, const lap_row *rows, size_t count, paper *p,
                       lap_error *err) {
    p->sets = NULL;
    p->set_count = 0;
    /* The sums of a fleet are not one rank's. */
    if (!d->host_name) LAP_TRY(lap_sets_of_rows(rows, count, &p->sets, &p->set_count, err));
    for (size_t i = 0; i < d->library_count; i++)
        p->libraries[i] = (lap_report_library){d->names[i], d->versions[i]};
    p->report = (lap_report){.host = &d->host,
                             .settings = p->settings,
                             .setting_count = lap_config_settings(d->config, p->settings),
                             .libraries = p->libraries,
                             .library_count = d->library_count,
                             .run_id = d->run_id,
                             .started = d->started,
                             .resumed = d->resumed,
                             .resumed_count = d->resumed_count,
                             .rows = rows,
                             .row_count = count,
                             .sets = p->sets,
                             .set_count = p->set_count,
                             .host_name = d->host_name,
                             .rank = d->rank,
                             .samples = d->config->output.samples};
    return LAP_OK;
}

static lap_status write_one(lap_documents *d, size_t index, const lap_report *report,
                            lap_error *err) {
    const char *path = path_of(d->config, index);
    bool force = d->config->output.force || (index == JSON && d->resuming);
    lap_text text = {0};
    lap_status status = renderers[index](report, &text, err);
    if (status == LAP_OK)
        status = lap_output_again(path)
                     ? lap_output_update(&d->slots[index], path, lap_text_get(&text), text.length,
                                         force, err)
                     : lap_output_save(path, lap_text_get(&text), text.length, force, err);
    lap_text_free(&text);
    return status;
}

/* One document that cannot be written must not cost the others. */
static lap_status write_all(lap_documents *d, const lap_report *report, lap_error *err) {
    lap_status worst = LAP_OK;
    for (size_t i = 0; i < LAP_DOCUMENTS; i++) {
        const char *path = path_of(d->config, i);
        if (!*path || (report->unfinished && !lap_output_again(path))) continue;
        lap_error detail = {0};
        lap_status status = write_one(d, i, report, &detail);
        if (status == LAP_OK || worst != LAP_OK) continue;
        worst = status;
        if (err) *err = detail;
    }
    return worst;
}

lap_status lap_documents_update(lap_documents *d, const lap_row *rows, size_t count,
                                lap_error *err) {
    paper p;
    LAP_TRY(fill(d, rows, count, &p, err));
    p.report.unfinished = true;
    lap_status status = write_all(d, &p.report, err);
    lap_sets_free(p.sets, p.set_count);
    return status;
}

static lap_status print_tables(const lap_config *config, const lap_report *report,
                               const lap_style *style, lap_error *err) {
    lap_text text = {0};
    lap_status status = lap_report_table(report, style, &text, err);
    if (status == LAP_OK) lap_text_add(&text, "\n");
    if (status == LAP_OK) status = lap_report_sets(report, style, &text, err);
    for (size_t i = 0; status == LAP_OK && i < report->row_count; i++)
        status = lap_report_extras(report, &report->rows[i], style, &text, err);
    for (size_t i = 0; status == LAP_OK && config->output.layers && i < report->row_count; i++)
        status = lap_report_layers(&report->rows[i], style, &text, err);
    if (status == LAP_OK) fputs(lap_text_get(&text), stdout);
    lap_text_free(&text);
    return status;
}

lap_status lap_documents_finish(lap_documents *d, const lap_row *rows, size_t count,
                                const lap_style *style, lap_error *err) {
    paper p;
    LAP_TRY(fill(d, rows, count, &p, err));
    lap_status worst = write_all(d, &p.report, err);
    bool taken = false;
    for (size_t i = 0; i < LAP_DOCUMENTS; i++)
        taken = taken || strcmp(path_of(d->config, i), "-") == 0;
    lap_status status = LAP_OK;
    if (!taken) status = print_tables(d->config, &p.report, style, worst == LAP_OK ? err : NULL);
    lap_sets_free(p.sets, p.set_count);
    return worst != LAP_OK ? worst : status;
}

lap_status lap_documents_of_rank(lap_documents *d, const lap_row *rows, size_t count,
                                 lap_text *json, lap_text *csv, lap_error *err) {
    paper p;
    LAP_TRY(fill(d, rows, count, &p, err));
    lap_status worst = write_all(d, &p.report, err);
    lap_status status = lap_report_json(&p.report, json, worst == LAP_OK ? err : NULL);
    if (status == LAP_OK) status = lap_report_csv(&p.report, csv, worst == LAP_OK ? err : NULL);
    lap_sets_free(p.sets, p.set_count);
    return status != LAP_OK ? status : worst;
}
