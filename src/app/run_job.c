/* Working on the rows of a run (see run_job.h): here, or in worker processes one after the other,
 * until every row is done or has failed. */
#include "app/run_job.h"

#include "app/commands.h"
#include "app/resume.h"
#include "app/supervise.h"
#include "app/tune_cases.h"
#include "device/build_cache.h"
#include "fleet/fleet.h"
#include "measure/row_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char not_finished[] = "not finished when this was written";

/* Workers in a row that died between rows, before the next row is given up. */
enum { IDLE_DEATHS = 2 };

void lap_job_free(lap_job *job) {
    for (size_t i = 0; job->rows && i < job->count; i++) {
        lap_row_free(&job->rows[i].row);
        lap_row_free(&job->rows[i].so_far);
    }
    free(job->rows);
    free(job->cases);
    free(job->alone);
    free(job->chosen);
    lap_device_list_free(job->list);
    *job = (lap_job){0};
}

lap_row *lap_job_rows(const lap_job *job) {
    lap_row *rows = calloc(job->count ? job->count : 1, sizeof *rows);
    for (size_t i = 0; rows && i < job->count; i++)
        rows[i] = job->rows[i].row;
    return rows;
}

/* ---- what is known of the rows -------------------------------------------------------------- */

/* Another planned row; takes it over. */
static bool add_row(lap_job *job, lap_row *row) {
    lap_job_row *rows = realloc(job->rows, (job->count + 1) * sizeof *rows);
    if (!rows) return false;
    job->rows = rows;
    rows[job->count] = (lap_job_row){.row = *row};
    lap_row_skip(&rows[job->count++].row, not_finished);
    return true;
}

static void set_row(lap_row *to, lap_row *from) {
    lap_row_free(to);
    *to = *from;
}

/* A first worker is started before the rows are known: it does them all. */
static bool to_do(const lap_job *job, size_t index) {
    return job->rows[index].todo || job->attempt == 0;
}

static bool all_done(const lap_job *job) {
    for (size_t i = 0; i < job->count; i++)
        if (job->rows[i].progress != LAP_ROW_DONE) return false;
    return job->planned;
}

/* The result files, with every row as it is by now. Their failure costs no row; it is said once,
 * and again at the end. */
static void write_documents(lap_job *job) {
    lap_error err = {0};
    lap_row *rows = lap_job_rows(job);
    if (!rows) return;
    if (lap_documents_update(&job->documents, rows, job->count, &err) != LAP_OK && !job->warned) {
        lap_meter_clear(&job->meter);
        fprintf(stderr, "%swarmlap: %s; the rows go on\n", isatty(STDERR_FILENO) ? "\r\033[K" : "",
                err.message);
        job->warned = true;
    }
    free(rows);
}

static void finish_row(lap_job *job, size_t index, lap_row *row) {
    lap_job_row *r = &job->rows[index];
    set_row(&r->row, row);
    lap_row_free(&r->so_far);
    r->has_so_far = r->suspect = false;
    r->progress = LAP_ROW_DONE;
    job->finished = all_done(job);
    write_documents(job);
}

/* ---- the work ------------------------------------------------------------------------------- */

static bool same_case(const lap_row *a, const lap_row *b) {
    return strcmp(a->device.selector, b->device.selector) == 0 &&
           strcmp(a->device.name, b->device.name) == 0 &&
           strcmp(a->device.driver, b->device.driver) == 0 && strcmp(a->network, b->network) == 0 &&
           a->height == b->height && a->width == b->width && a->batch == b->batch &&
           strcmp(a->precision, b->precision) == 0 && a->modes == b->modes &&
           a->concurrent.set == b->concurrent.set;
}

static bool set_is_finished(const lap_job *job, const lap_document *before, size_t set) {
    for (size_t i = 0; set > 0 && i < job->count; i++)
        if (job->rows[i].row.concurrent.set == set &&
            strcmp(before->rows[i].status, lap_row_status_name(LAP_ROW_SKIPPED)) == 0)
            return false;
    return true;
}

/* Rows that are finished in the file which is taken up again. Worker and parent both do this, with
 * the same outcome. */
static lap_status match_resumed(lap_job *job, lap_error *err) {
    const lap_document *before = job->options->resumed;
    if (!before) return LAP_OK;
    if (before->row_count != job->count)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "--resume %.400s: %zu rows there, %zu here: not the same run", before->path,
                        before->row_count, job->count);
    for (size_t i = 0; i < job->count; i++) {
        lap_row row;
        bool finished;
        LAP_TRY(lap_resume_row(before, i, &job->rows[i].row, &finished, &row, err));
        if (!finished) continue;
        size_t set = job->rows[i].row.concurrent.set;
        if (set != row.concurrent.set || !set_is_finished(job, before, set)) {
            lap_row_free(&row); /* devices at the same time are nothing without each other */
            continue;
        }
        set_row(&job->rows[i].row, &row);
        job->rows[i].progress = LAP_ROW_DONE;
    }
    return LAP_OK;
}

/* Plan, or make sure that the plan is still the one that is known. */
static lap_status plan(lap_job *job, lap_error *err) {
    size_t count;
    LAP_TRY(lap_job_plan(job, &count, err));
    bool known = job->planned;
    if (known && count != job->count)
        return LAP_FAIL(err, LAP_E_DEVICE,
                        "%zu rows are planned now, and %zu were before: devices "
                        "have gone or come",
                        count, job->count);
    for (size_t i = 0; i < count; i++) {
        lap_row row;
        lap_runner_describe(&job->cases[i], &row);
        if (known && !same_case(&row, &job->rows[i].row))
            return LAP_FAIL(err, LAP_E_DEVICE, "row %zu is on %s (%s) now, and was on %s (%s)",
                            i + 1, row.device.selector, row.device.name,
                            job->rows[i].row.device.selector, job->rows[i].row.device.name);
        if (!known && !add_row(job, &row))
            return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu rows", count);
    }
    job->planned = true;
    return known ? LAP_OK : match_resumed(job, err);
}

/* What kernels = tuned goes by; tuned first where --tune asks for it. */
static lap_status load_tuned(lap_job *job, lap_tune_store *out, lap_error *err) {
    char *path;
    if (job->config->run.kernels != LAP_KERNELS_TUNED) return LAP_OK;
    LAP_TRY(lap_tune_store_path(job->config->run.tune_store, &path, err));
    lap_status status = LAP_OK;
    if (job->options->tune && job->attempt == 0) {
        lap_app_tune_job tune = {.config = job->config,
                                 .list = job->list,
                                 .chosen = job->chosen,
                                 .chosen_count = job->chosen_count,
                                 .meter = &job->meter,
                                 .seconds = job->options->seconds,
                                 .store = path};
        lap_text ignored = {0};
        status = lap_app_tune(&tune, &ignored, err);
        lap_text_free(&ignored);
    }
    if (status == LAP_OK || status == LAP_E_INTERRUPTED)
        status = lap_tune_store_load(path, out, err);
    free(path);
    return status;
}

/* The rows to do, next to each other; where[i] is the place of row i in the plan. */
typedef struct batch {
    lap_job *job;
    lap_run_case *cases;
    lap_row *rows;
    size_t *where, lone, count;
} batch;

static lap_status gather(lap_job *job, batch *b, lap_error *err) {
    *b = (batch){.job = job,
                 .cases = calloc(job->count + 1, sizeof *b->cases),
                 .rows = calloc(job->count + 1, sizeof *b->rows),
                 .where = calloc(job->count + 1, sizeof *b->where)};
    if (!b->cases || !b->rows || !b->where)
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu rows", job->count);
    job->alone = calloc(job->count + 1, sizeof *job->alone);
    if (!job->alone) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu rows", job->count);
    for (size_t i = 0; i < job->count; i++) {
        lap_alone_of(&job->rows[i].row, &job->alone[i]);
        if (job->rows[i].progress != LAP_ROW_PENDING || !to_do(job, i)) continue;
        b->lone += job->cases[i].set == 0; /* these come first */
        b->where[b->count] = i;
        b->cases[b->count++] = job->cases[i];
    }
    return LAP_OK;
}

static void on_event(void *context, lap_runner_event event, const lap_run_case *c, lap_row *row) {
    batch *b = context;
    size_t i = (size_t)(c - b->cases), index = b->where[i];
    lap_link *link = b->job->link;
    static const lap_link_kind kinds[] = {LAP_LINK_BEGUN, LAP_LINK_SO_FAR, LAP_LINK_DONE};
    if (link && event == LAP_ROW_BEGUN) lap_link_send(link, kinds[event], index, NULL, 0);
    if (link && event != LAP_ROW_BEGUN) lap_link_send_row(link, kinds[event], index, row);
    if (event != LAP_ROW_FINISHED) return;
    lap_alone_of(row, &b->job->alone[index]);
    if (link)
        lap_row_free(row);
    else
        finish_row(b->job, index, row);
    lap_row_init(row); /* moved away */
}

static void on_step(void *context, const char *step) {
    lap_job *job = context;
    lap_app_beat();
    if (job->fleet) lap_fleet_beat(job->fleet);
    if (step && job->link) lap_link_send(job->link, LAP_LINK_STEP, 0, step, strlen(step) + 1);
}

/* Only the first worker writes them, unless it did not get that far. */
static const char *logits_path(const lap_job *job) {
    const char *path = job->options->logits;
    return path && job->attempt > 0 && access(path, F_OK) == 0 ? NULL : path;
}

static const lap_team *join_part(void *context, size_t set, size_t part) {
    (void)set; /* every rank asks for the same parts in the same order */
    (void)part;
    return lap_fleet_team(context);
}

/* Alone means alone on this host: its ranks take turns, hosts do not wait for each other. */
static lap_status fleet_rows(lap_job *job, lap_runner *runner, batch *b, lap_error *err) {
    const lap_team *team = lap_fleet_team(job->fleet);
    lap_team_work work = {.interrupted = lap_app_interrupted};
    for (size_t turn = 0; turn < team->turns; turn++) {
        lap_status status = lap_team_meet(team, &work, false, err);
        if (status == LAP_E_INTERRUPTED) {
            team->leave(team->context);
            lap_runner_cases(runner, b->cases, b->rows, b->lone); /* says so in every row */
            return LAP_OK;
        }
        LAP_TRY(status);
        if (turn == team->turn) lap_runner_cases(runner, b->cases, b->rows, b->lone);
    }
    return LAP_OK;
}

static lap_status work_on_rows(lap_job *job, lap_error *err) {
    lap_tune_store tuned = {0};
    lap_build_cache *cache = NULL;
    batch b = {0};
    lap_status status = load_tuned(job, &tuned, err);
    if (status == LAP_OK && job->config->run.cache)
        status = lap_build_cache_open(NULL, 0, &cache, err);
    if (status == LAP_OK) status = gather(job, &b, err);
    if (status == LAP_OK) {
        lap_runner_team others = {.context = job->fleet, .join = join_part};
        if (job->fleet) {
            others.others = job->fleet->others;
            others.devices = job->fleet->devices;
        }
        lap_runner runner = {.config = job->config,
                             .team = job->fleet ? &others : NULL,
                             .cache = cache,
                             .tuned = &tuned,
                             .meter = &job->meter,
                             .interrupted = lap_app_interrupted,
                             .event = on_event,
                             .event_context = &b,
                             .logits_path = logits_path(job),
                             .leave_when_lost = job->link != NULL};
        if (job->fleet)
            status = fleet_rows(job, &runner, &b, err);
        else
            lap_runner_cases(&runner, b.cases, b.rows, b.lone);
        if (status == LAP_OK)
            lap_runner_sets(&runner, b.cases + b.lone, b.rows + b.lone, b.count - b.lone,
                            job->alone);
        lap_meter_clear(&job->meter);
        if (job->link && runner.lost) lap_link_send(job->link, LAP_LINK_LOST, 0, NULL, 0);
        lap_runner_free(&runner);
    }
    free(b.cases);
    free(b.rows);
    free(b.where);
    lap_build_cache_close(cache);
    lap_tune_store_free(&tuned);
    return status;
}

static void open_meter(lap_job *job) {
    lap_style style;
    lap_style_query(STDERR_FILENO, &style);
    lap_meter_init(&job->meter, job->fleet && job->fleet->rank > 0 ? NULL : stderr, &style);
    job->meter.watch = on_step;
    job->meter.watch_context = job;
}

static void name_libraries(lap_job *job) {
    const char *name, *version;
    for (size_t i = 0; lap_app_library(i, &name, &version); i++)
        lap_documents_library(&job->documents, name, version);
}

/* ---- here ----------------------------------------------------------------------------------- */

static lap_status run_here(lap_job *job, lap_error *err) {
    open_meter(job);
    LAP_TRY(plan(job, err));
    if (job->fleet) {
        const lap_device_info *device = job->cases[0].device;
        LAP_TRY(lap_fleet_ready(job->fleet, device->selector, device->name, "", err));
        job->fleet_ready = true;
    }
    name_libraries(job);
    lap_app_watch_signals();
    write_documents(job);
    return work_on_rows(job, err);
}

/* ---- in a worker ---------------------------------------------------------------------------- */

static void tell_plan(lap_job *job, bool known) {
    const char *name, *version;
    for (size_t i = 0; lap_app_library(i, &name, &version); i++) {
        lap_text text = {0};
        lap_text_addn(&text, name, strlen(name) + 1);
        lap_text_addn(&text, version, strlen(version) + 1);
        if (!text.failed) lap_link_send(job->link, LAP_LINK_LIBRARY, 0, text.data, text.length);
        lap_text_free(&text);
    }
    for (size_t i = 0; !known && i < job->count; i++) {
        lap_row row;
        lap_runner_describe(&job->cases[i], &row);
        lap_link_send_row(job->link, LAP_LINK_PLANNED, i, &row);
        lap_row_free(&row);
    }
    lap_link_send(job->link, LAP_LINK_READY, job->count, NULL, 0);
}

static int work(void *context, lap_link *link) {
    lap_job *job = context;
    bool known = job->planned;
    lap_error err = {0};
    job->link = link;
    open_meter(job);
    lap_status status = plan(job, &err);
    if (status == LAP_OK) {
        tell_plan(job, known);
        status = work_on_rows(job, &err);
    }
    if (status != LAP_OK) lap_link_send(link, LAP_LINK_FAILED, 0, &err, sizeof err);
    lap_job_free(job);
    return 0;
}

/* ---- beside workers ------------------------------------------------------------------------- */

static void take_library(lap_job *job, const lap_message *m) {
    const char *end = memchr(m->bytes, '\0', m->size);
    if (!end || m->bytes[m->size - 1] || job->attempt > 0) return;
    lap_documents_library(&job->documents, m->bytes, end + 1);
}

static void take_planned(lap_job *job, const lap_message *m) {
    lap_row row;
    if (job->planned || m->index != job->count || !lap_row_unpack(m->bytes, m->size, &row)) return;
    if (!add_row(job, &row)) lap_row_free(&row);
}

static void take_row(lap_job *job, const lap_message *m) {
    lap_row row;
    lap_job_row *r = &job->rows[m->index];
    if (!lap_row_unpack(m->bytes, m->size, &row)) return;
    if (m->kind == LAP_LINK_DONE) {
        finish_row(job, m->index, &row);
        return;
    }
    set_row(&r->so_far, &row);
    r->has_so_far = true;
}

static void take(void *context, const lap_message *m) {
    lap_job *job = context;
    bool about_row =
        m->kind == LAP_LINK_BEGUN || m->kind == LAP_LINK_SO_FAR || m->kind == LAP_LINK_DONE;
    if (about_row && m->index >= job->count) return;
    switch (m->kind) {
    case LAP_LINK_LIBRARY:
        take_library(job, m);
        break;
    case LAP_LINK_PLANNED:
        take_planned(job, m);
        break;
    case LAP_LINK_READY:
        /* Rows that did not fit into memory here would be lost: the plan is then not known. */
        if (!job->planned && job->count == m->index)
            job->planned = match_resumed(job, &job->failure) == LAP_OK;
        job->finished = all_done(job);
        write_documents(job);
        break;
    case LAP_LINK_BEGUN:
        job->rows[m->index].progress = LAP_ROW_RUNNING;
        break;
    case LAP_LINK_STEP:
        snprintf(job->step, sizeof job->step, "%.*s", (int)m->size, m->bytes);
        break;
    case LAP_LINK_SO_FAR:
    case LAP_LINK_DONE:
        take_row(job, m);
        break;
    case LAP_LINK_LOST:
        job->lost = job->finished = true;
        break;
    case LAP_LINK_FAILED:
        if (m->size == sizeof job->failure) memcpy(&job->failure, m->bytes, m->size);
        break;
    }
}

/* A row whose process did not bring it to an end: what it has is kept. */
static void give_up(lap_job *job, size_t index, lap_status cause, const lap_error *why) {
    lap_job_row *r = &job->rows[index];
    lap_row row = r->has_so_far ? r->so_far : r->row;
    if (r->has_so_far) {
        lap_row_init(&r->so_far);
        r->has_so_far = false;
    } else {
        lap_row_init(&r->row);
        free(row.reason);
        row.reason = NULL;
        row.status = LAP_ROW_OK;
    }
    lap_row_fail(&row, cause, why);
    lap_row_finish(&row);
    finish_row(job, index, &row);
}

static void describe_death(const lap_job *job, const lap_worker_outcome *outcome, lap_error *why) {
    char limit[96] = "";
    if (outcome->end == LAP_WORKER_HUNG)
        snprintf(limit, sizeof limit,
                 "watchdog ([run] watchdog = %g): ", job->config->run.watchdog);
    LAP_FAIL(why, LAP_E_DEVICE, "%sthe process that worked on this row %s, in: %s", limit,
             outcome->text[0] ? outcome->text : "ended without its result",
             job->step[0] ? job->step : "opening the devices");
}

/* After a death: the row that was worked on has failed; of several, each is tried again alone,
 * since any of them may have caused it. Rows at the same time are nothing alone: all have failed.
 */
static void blame(lap_job *job, const lap_worker_outcome *outcome, unsigned *idle) {
    size_t running = 0, last = 0;
    lap_error why = {0};
    describe_death(job, outcome, &why);
    for (size_t i = 0; i < job->count; i++) {
        if (job->rows[i].progress != LAP_ROW_RUNNING) continue;
        running++;
        last = i;
    }
    if (running == 1) give_up(job, last, LAP_E_DEVICE, &why);
    for (size_t i = 0; running > 1 && i < job->count; i++)
        if (job->rows[i].progress == LAP_ROW_RUNNING && job->rows[i].row.concurrent.set > 0)
            give_up(job, i, LAP_E_DEVICE, &why);
    for (size_t i = 0; running > 1 && i < job->count; i++) {
        if (job->rows[i].progress != LAP_ROW_RUNNING) continue;
        job->rows[i].progress = LAP_ROW_PENDING;
        job->rows[i].suspect = true;
    }
    *idle = running ? 0 : *idle + 1;
    if (*idle <= IDLE_DEATHS) return;
    for (size_t i = 0; i < job->count; i++) {
        if (job->rows[i].progress != LAP_ROW_PENDING) continue;
        give_up(job, i, LAP_E_DEVICE, &why);
        return;
    }
}

/* The next worker's rows: one that may be dangerous by itself, else all that are left. */
static void choose(lap_job *job) {
    size_t suspect = job->count;
    for (size_t i = job->count; i-- > 0;)
        if (job->rows[i].progress == LAP_ROW_PENDING && job->rows[i].suspect) suspect = i;
    for (size_t i = 0; i < job->count; i++)
        job->rows[i].todo =
            suspect < job->count ? i == suspect : job->rows[i].progress == LAP_ROW_PENDING;
}

static void give_up_rest(lap_job *job, const lap_error *why) {
    for (size_t i = 0; i < job->count; i++)
        if (job->rows[i].progress != LAP_ROW_DONE) give_up(job, i, why->status, why);
}

/* The user does not want to wait for the worker. */
static void leave(lap_job *job) {
    lap_error why = {0};
    LAP_FAIL(&why, LAP_E_INTERRUPTED, "interrupted twice: left at once");
    give_up_rest(job, &why);
}

/* The worker's device is lost, and its row has failed. Rows that took turns with that one and were
 * put off are worked on alone, by workers of their own. */
static void put_off(lap_job *job) {
    for (size_t i = 0; i < job->count; i++) {
        if (job->rows[i].progress != LAP_ROW_RUNNING) continue;
        job->rows[i].progress = LAP_ROW_PENDING;
        job->rows[i].suspect = true;
    }
}

/* Of the rows that this worker was for. */
static bool unfinished(const lap_job *job) {
    for (size_t i = 0; i < job->count; i++)
        if (to_do(job, i) && job->rows[i].progress != LAP_ROW_DONE) return true;
    return false;
}

/* Whether another worker is needed. */
static lap_status judge(lap_job *job, const lap_worker_outcome *outcome, unsigned *idle,
                        bool *again, lap_error *err) {
    *again = false;
    if (outcome->end == LAP_WORKER_LEFT) {
        leave(job);
        return LAP_OK;
    }
    if (job->failure.status != LAP_OK && job->planned && job->attempt > 0) {
        give_up_rest(job, &job->failure); /* such as devices that have gone: what was done stands */
        return LAP_OK;
    }
    if (job->failure.status != LAP_OK) {
        if (err) *err = job->failure;
        return job->failure.status;
    }
    if (all_done(job)) {
        if (outcome->end == LAP_WORKER_ENDED) return LAP_OK;
        lap_meter_clear(&job->meter);
        fprintf(stderr,
                "warmlap: every row is done, but then the process that worked on them %s while "
                "it closed the devices\n",
                outcome->text);
        return LAP_OK;
    }
    if (!job->planned)
        return LAP_FAIL(err, LAP_E_DEVICE, "the process that opens the devices %s",
                        outcome->text[0] ? outcome->text : "ended without a word");
    if (job->lost)
        put_off(job);
    else if (unfinished(job))
        blame(job, outcome, idle);
    *again = !all_done(job);
    return LAP_OK;
}

static lap_status run_in_workers(lap_job *job, lap_error *err) {
    unsigned idle = 0;
    lap_app_watch_signals_for_worker();
    lap_supervision s = {.work = work,
                         .take = take,
                         .context = job,
                         .silence_s = job->config->run.watchdog,
                         .finished = &job->finished};
    for (bool again = true; again; job->attempt++) {
        lap_worker_outcome outcome;
        choose(job);
        job->step[0] = '\0';
        job->lost = false;
        job->finished = all_done(job);
        LAP_TRY(lap_supervise(&s, &outcome, err));
        LAP_TRY(judge(job, &outcome, &idle, &again, err));
    }
    return LAP_OK;
}

lap_status lap_job_run(lap_job *job, lap_error *err) {
    job->finished = all_done(job);
    return job->config->run.isolate && !job->fleet ? run_in_workers(job, err) : run_here(job, err);
}
