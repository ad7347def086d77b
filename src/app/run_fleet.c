/* A rank of a fleet (see run_fleet.h, src/fleet): the rows are worked on in this very process,
 * since an MPI library does not follow a fork. Every rank keeps files of its own, written after
 * every row, so that what was measured outlives whatever happens to the fleet. */
#include "app/run_fleet.h"
#include "app/commands.h"
#include "fleet/merge.h"
#include "report/output.h"
#include "report/sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool lap_app_fleet_wanted(const lap_config *config) {
    const char *name;
    if (config->run.fleet != LAP_FLEET_AUTO) return config->run.fleet == LAP_FLEET_YES;
    return lap_fleet_launched(&name);
}

/* ---- files ---------------------------------------------------------------------------------- */

enum { JSON, CSV, MARKDOWN, FILES };

static const char *const keys[FILES] = {"json", "csv", "markdown"};

typedef struct crew {
    lap_job *job;
    lap_fleet fleet;
    lap_merge *merge;
    char *paths[FILES]; /* as configured, for rank 0 */
    lap_text csv;
    char host[128];
    int worst; /* exit status of the rows of all ranks */
} crew;

/* "out.json" of rank 3 is "out.rank3.json"; standard output has no such file. */
static void rank_path(const char *path, size_t rank, lap_text *out) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (!*path || strcmp(path, "-") == 0) return;
    size_t stem = dot && dot != name ? (size_t)(dot - path) : strlen(path);
    lap_text_addn(out, path, stem);
    lap_text_addf(out, ".rank%zu%s", rank, path + stem);
}

static lap_status own_files(crew *c, size_t rank, lap_error *err) {
    lap_config *config = c->job->options->config;
    const char *const paths[FILES] = {config->output.json, config->output.csv,
                                      config->output.markdown};
    for (size_t i = 0; i < FILES; i++) {
        c->paths[i] = strdup(paths[i]);
        if (!c->paths[i]) return LAP_FAIL(err, LAP_E_NOMEM, "fleet: no memory");
    }
    for (size_t i = 0; i < FILES; i++) {
        lap_text path = {0};
        if (i != MARKDOWN) rank_path(c->paths[i], rank, &path);
        lap_status status =
            lap_config_set_key(config, "output", keys[i], lap_text_get(&path), "fleet", err);
        lap_text_free(&path);
        LAP_TRY(status);
    }
    return LAP_OK;
}

/* ---- joining -------------------------------------------------------------------------------- */

static json_t *config_value(const lap_config *config) {
    lap_report_setting settings[LAP_CONFIG_KEY_MAX];
    size_t n = lap_config_settings(config, settings);
    json_t *o = json_object();
    for (size_t i = 0; i < n; i++) {
        json_t *section = json_object_get(o, settings[i].section);
        if (!section) {
            section = json_object();
            json_object_set_new(o, settings[i].section, section);
        }
        json_object_set_new(section, settings[i].key, json_string(settings[i].value));
    }
    return o;
}

static lap_status join(crew *c, const lap_wire *wire, lap_error *err) {
    const lap_config *config = c->job->config;
    json_t *settings = config_value(config);
    lap_fleet_card card = {c->host, LAP_VERSION, (uint64_t)getpid(), settings};
    lap_status status = settings
                            ? lap_fleet_join(&c->fleet, wire, &card, config->run.fleet_timeout, err)
                            : LAP_FAIL(err, LAP_E_NOMEM, "fleet: no memory");
    json_decref(settings);
    return status;
}

/* ---- the result ----------------------------------------------------------------------------- */

/* Of several exit statuses the one that says most. */
static int worse(int a, int b) {
    static const int order[] = {LAP_EXIT_WRONG, LAP_EXIT_INTERRUPTED, LAP_EXIT_FAILED,
                                LAP_EXIT_NO_DEVICE, LAP_EXIT_USAGE};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i]) return order[i];
    return LAP_EXIT_OK;
}

/* Records only: the header and the sums are written once, by rank 0. */
static void add_records(lap_text *out, const char *csv) {
    const char *first = strstr(csv, "\r\n");
    if (first) lap_text_add(out, first + 2);
}

static lap_status take_result(void *context, size_t rank, const char *json, size_t size,
                              const char *csv) {
    crew *c = context;
    lap_rank *r = &c->fleet.ranks[rank];
    lap_error detail = {0};
    c->worst = worse(c->worst, r->exit_status);
    if (lap_merge_add(c->merge, rank, r->host, json, size, &detail) == LAP_OK) {
        add_records(&c->csv, csv);
        return LAP_OK;
    }
    r->state = LAP_RANK_FAILED;
    snprintf(r->reason, sizeof r->reason, "%.390s", detail.message);
    return LAP_OK;
}

static lap_status render(crew *c, size_t file, const lap_report *report, lap_text *out,
                         lap_error *err) {
    lap_merge_head head = {c->paths[JSON], c->fleet.wire.library, c->fleet.timeout_s};
    if (file == JSON) return lap_merge_write(c->merge, c->fleet.ranks, &head, out, err);
    lap_text text = {0};
    lap_status status = file == CSV ? lap_report_csv(report, &text, err) : LAP_OK;
    const char *sums = status == LAP_OK && file == CSV ? strstr(text.data, "\r\n") : NULL;
    if (sums) {
        lap_text_addn(out, text.data, (size_t)(sums + 2 - text.data));
        lap_text_addn(out, lap_text_get(&c->csv), c->csv.length);
        lap_text_add(out, sums + 2);
    }
    if (file == MARKDOWN) lap_report_sets_markdown(report, out);
    lap_text_free(&text);
    return status;
}

static lap_status write_all(crew *c, const lap_report *report, bool *taken, lap_error *err) {
    lap_status worst = LAP_OK;
    for (size_t i = 0; i < FILES; i++) {
        lap_text text = {0};
        lap_error detail = {0};
        if (!*c->paths[i]) continue;
        *taken = *taken || strcmp(c->paths[i], "-") == 0;
        lap_status status = render(c, i, report, &text, &detail);
        if (status == LAP_OK)
            status = lap_output_save(c->paths[i], lap_text_get(&text), text.length,
                                     c->job->config->output.force, &detail);
        lap_text_free(&text);
        if (status == LAP_OK || worst != LAP_OK) continue;
        worst = status;
        if (err) *err = detail;
    }
    return worst;
}

static void print(const crew *c, const lap_report *report) {
    lap_style style;
    lap_text text = {0};
    lap_error ignored = {0};
    size_t ok = 0;
    lap_style_query(STDOUT_FILENO, &style);
    if (lap_report_sets(report, &style, &text, &ignored) == LAP_OK)
        fputs(lap_text_get(&text), stdout);
    lap_text_free(&text);
    for (size_t i = 0; i < c->fleet.size; i++) {
        const lap_rank *r = &c->fleet.ranks[i];
        ok += r->state == LAP_RANK_OK;
        if (r->state == LAP_RANK_OK) continue;
        char line[700];
        snprintf(line, sizeof line, "rank %zu%s%s %s: %s", i, r->host[0] ? " on " : "", r->host,
                 lap_rank_state_name(r->state), r->reason);
        puts(lap_text_clean(line));
    }
    printf("%zu of %zu ranks have a result.\n", ok, c->fleet.size);
}

static lap_status conclude(crew *c, lap_error *err) {
    const lap_fleet *f = &c->fleet;
    bool taken = false;
    for (size_t i = 0; i < f->size; i++)
        if (f->ranks[i].state != LAP_RANK_OK) c->worst = worse(c->worst, LAP_EXIT_FAILED);
    LAP_TRY(lap_merge_sum(c->merge, f->ranks, err));
    lap_report report = {.started = c->job->documents.started};
    report.sets = lap_merge_sets(c->merge, &report.set_count);
    lap_status status = write_all(c, &report, &taken, err);
    if (!taken) print(c, &report);
    return status;
}

/* ---- the run -------------------------------------------------------------------------------- */

/* Measure; the texts are empty when there is nothing to hand over. */
static lap_status measure(crew *c, lap_text *json, lap_text *csv, int *exit_status,
                          lap_error *err) {
    lap_job *j = c->job;
    j->documents.config = j->config;
    j->documents.host_name = c->host;
    j->documents.rank = c->fleet.rank;
    lap_host_info_read("", &j->documents.host);
    lap_report_time(j->documents.started);
    lap_report_run_id(j->documents.run_id);
    lap_status status = lap_job_run(j, err);
    if (status != LAP_OK && !j->fleet_ready) {
        char why[400];
        lap_error_text(err, why, sizeof why);
        lap_fleet_ready(&c->fleet, "", "", why, NULL);
        return status;
    }
    lap_row *rows = lap_job_rows(j);
    if (!rows) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu rows", j->count);
    *exit_status =
        lap_app_interrupted(NULL) ? LAP_EXIT_INTERRUPTED : lap_rows_exit_status(rows, j->count);
    lap_error detail = {0};
    lap_status written = lap_documents_of_rank(&j->documents, rows, j->count, json, csv, &detail);
    free(rows);
    if (status == LAP_OK && written != LAP_OK && err) *err = detail;
    return status != LAP_OK ? status : written;
}

static lap_status as_rank_0(crew *c, int *exit_status, lap_error *err) {
    lap_text json = {0}, csv = {0};
    lap_error detail = {0};
    LAP_TRY(lap_merge_new(c->fleet.size, &c->merge, err));
    lap_status status = measure(c, &json, &csv, exit_status, &detail);
    c->worst = *exit_status;
    lap_rank *me = &c->fleet.ranks[0];
    if (status != LAP_OK) {
        me->state = LAP_RANK_FAILED;
        snprintf(me->reason, sizeof me->reason, "%.390s", detail.message);
    }
    if (json.length > 0 &&
        lap_merge_add(c->merge, 0, c->host, json.data, json.length, err) == LAP_OK)
        add_records(&c->csv, lap_text_get(&csv));
    lap_text_free(&json);
    lap_text_free(&csv);
    status = lap_fleet_gather(&c->fleet, take_result, c, err);
    lap_status concluded = conclude(c, status == LAP_OK ? err : NULL);
    *exit_status = c->worst;
    return status != LAP_OK ? status : concluded;
}

/* Once rank 0 has the result, it speaks for this one. */
static lap_status as_another(crew *c, int *exit_status, lap_error *err) {
    lap_text json = {0}, csv = {0};
    lap_error detail = {0};
    lap_status status = measure(c, &json, &csv, exit_status, &detail);
    bool given = status == LAP_OK || json.length > 0;
    status = lap_fleet_deliver(&c->fleet, *exit_status, given ? lap_text_get(&json) : NULL,
                               lap_text_get(&csv), err);
    lap_text_free(&json);
    lap_text_free(&csv);
    if (status == LAP_OK) *exit_status = LAP_EXIT_OK;
    return status;
}

static void close_crew(crew *c) {
    lap_merge_free(c->merge);
    lap_text_free(&c->csv);
    for (size_t i = 0; i < FILES; i++)
        free(c->paths[i]);
}

static lap_status with_wire(crew *c, const lap_wire *wire,
                            lap_status (*check)(const lap_job *, lap_error *), int *exit_status,
                            lap_error *err) {
    /* Rank 0 looks at the files of the fleet before any is its own. */
    lap_error detail = {0};
    lap_status checked = wire->rank == 0 ? check(c->job, &detail) : LAP_OK;
    lap_status status = own_files(c, wire->rank, err);
    if (status == LAP_OK) status = join(c, wire, err);
    if (status == LAP_OK && checked == LAP_OK) checked = check(c->job, &detail);
    if (status == LAP_OK && checked != LAP_OK && wire->rank != 0)
        lap_fleet_ready(&c->fleet, "", "", detail.message, NULL);
    bool refused = status == LAP_E_CONFIG && wire->rank != 0;
    if (refused || (status == LAP_OK && checked != LAP_OK && wire->rank != 0))
        status = lap_fleet_deliver(&c->fleet, 0, NULL, NULL, err); /* rank 0 names it */
    else if (status == LAP_OK && checked == LAP_OK)
        status = wire->rank == 0 ? as_rank_0(c, exit_status, err) : as_another(c, exit_status, err);
    if (status == LAP_OK && checked != LAP_OK && wire->rank == 0) {
        if (err) *err = detail;
        status = checked;
    }
    /* Rank 0 has ended, and said why. */
    if (wire->rank != 0 && c->fleet.bye) status = LAP_OK;
    lap_fleet_leave(&c->fleet);
    return status;
}

lap_status lap_app_run_fleet(lap_job *job, lap_status (*check)(const lap_job *, lap_error *),
                             bool *alone, int *exit_status, lap_error *err) {
    lap_wire wire = {0};
    crew c = {.job = job};
    *alone = false;
    if (job->config->run.concurrent)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "[run] concurrent = yes: in a fleet each rank has one device, and all are "
                        "at work at the same time anyway; expected no");
    LAP_TRY(lap_fleet_wire_open(job->config->run.fleet_timeout, &wire, err));
    if (wire.size < 2) {
        *alone = true;
        wire.close(wire.context, true);
        return LAP_OK;
    }
    if (gethostname(c.host, sizeof c.host - 1) != 0 || !c.host[0])
        snprintf(c.host, sizeof c.host, "unknown");
    job->fleet = &c.fleet;
    lap_status status = with_wire(&c, &wire, check, exit_status, err);
    job->fleet = NULL;
    close_crew(&c);
    return status;
}
