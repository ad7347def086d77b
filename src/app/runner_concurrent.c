/* Several devices at the same time. Everything around the timed parts (building, verifying,
 * cleaning up) is done by the calling thread, one device after the other; only warm-up and timed
 * runs are on a thread for each device, which touches nothing but its own queue, plan and row. In a
 * fleet this process has one device of the set, the others are elsewhere, and there is no thread.
 */
#include "app/runner_internal.h"
#include "measure/team.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parts of a set: each is a team of its own, so that one that failed in the first is no more
 * waited for in the second. */
enum { PART_LATENCY, PART_RATE };

typedef struct member {
    lap_case_run run;
    const lap_alone *alone;
    bool joined; /* in the part under way */
    lap_team_work work;
    const lap_team *team;
    lap_check_report rate_report;
    float *rate_logits;
    pthread_t thread;
} member;

typedef struct set {
    lap_runner *runner;
    member *members;
    size_t count;
    size_t number;
} set;

static bool interrupted(void *context) {
    const lap_runner *runner = context;
    return runner->interrupted && runner->interrupted(NULL);
}

/* ---- a part: the members that are fit for it, at once --------------------------------------- */

static void *on_thread_latency(void *context) {
    member *m = context;
    lap_case_run *run = &m->run;
    lap_latency_options options = run->latency_options;
    if (!run->runner->team) options.progress = NULL; /* the meter is the main thread's */
    run->status = lap_team_latency(m->team, &m->work, &options, &run->latency, &run->row->latency,
                                   &run->row->concurrent.started_s, &run->err);
    return NULL;
}

static void *on_thread_rate(void *context) {
    member *m = context;
    lap_case_run *run = &m->run;
    const lap_alone *alone = m->alone;
    const lap_config *config = run->runner->config;
    lap_rounds_options options = {.rounds = (size_t)config->run.rounds,
                                  .seconds = config->run.round_seconds,
                                  .batch_s = alone->seconds / (double)alone->batches,
                                  .rewarm_s = run_rewarm_seconds(run->runner),
                                  .batch = alone->batch};
    run->status =
        lap_team_rounds(m->team, &m->work, &options, &run->row->concurrent.rounds, &run->err);
    return NULL;
}

typedef void *(*thread_body)(void *context);
static const thread_body bodies[] = {
    [PART_LATENCY] = on_thread_latency, [PART_RATE] = on_thread_rate};

/* In a fleet: this member alone, on this thread; one that is not fit leaves, so that nobody waits
 * for it. */
static void part_in_fleet(set *s, size_t part) {
    member *m = &s->members[0];
    m->team = s->runner->team->join(s->runner->team->context, s->number, part);
    if (m->joined)
        bodies[part](m);
    else
        m->team->leave(m->team->context);
}

static void cannot(member *m, const char *what) {
    m->run.status = LAP_FAIL(&m->run.err, LAP_E_INTERNAL, "%s", what);
}

static void part_on_threads(set *s, size_t part) {
    size_t joined = 0, at = 0;
    lap_team_threads *team = NULL;
    lap_error err = {0};
    for (size_t i = 0; i < s->count; i++)
        joined += s->members[i].joined;
    if (joined == 0) return;
    bool made = lap_team_threads_new(joined, &team, &err) == LAP_OK;
    for (size_t i = 0; i < s->count; i++) {
        member *m = &s->members[i];
        if (!m->joined) continue;
        if (!made) {
            cannot(m, "no memory for a team");
            m->joined = false;
            continue;
        }
        m->team = lap_team_threads_member(team, at++);
        if (pthread_create(&m->thread, NULL, bodies[part], m) == 0) continue;
        cannot(m, "the system gives no thread for this device");
        m->team->leave(m->team->context);
        m->joined = false;
    }
    for (size_t i = 0; i < s->count; i++)
        if (s->members[i].joined) pthread_join(s->members[i].thread, NULL);
    lap_team_threads_free(team);
}

/* Whoever was timed beside one that failed should know. */
static void note_failures(set *s, size_t part) {
    for (size_t i = 0; i < s->count; i++) {
        const member *failed = &s->members[i];
        if (!failed->joined || failed->run.status == LAP_OK ||
            failed->run.status == LAP_E_INTERRUPTED)
            continue;
        for (size_t k = 0; k < s->count; k++)
            if (k != i && s->members[k].joined && s->members[k].run.status == LAP_OK)
                lap_row_note(s->members[k].run.row, "%s failed while the %s was measured beside it",
                             failed->run.c->device->selector,
                             part == PART_LATENCY ? "latency" : "throughput");
    }
}

static void run_part(set *s, size_t part) {
    if (s->runner->team)
        part_in_fleet(s, part);
    else
        part_on_threads(s, part);
    note_failures(s, part);
}

static void set_work(member *m) {
    m->work = (lap_team_work){.workload = run_workload(&m->run),
                              .timing = &m->run.timing,
                              .interrupted = interrupted,
                              .context = m->run.runner};
}

/* ---- latency -------------------------------------------------------------------------------- */

static void latency(set *s) {
    for (size_t i = 0; i < s->count; i++) {
        member *m = &s->members[i];
        if (m->run.c->latency) run_stage(&m->run, run_latency_prepare);
        m->joined = m->run.c->latency && m->run.status == LAP_OK;
        if (m->joined) set_work(m);
    }
    run_part(s, PART_LATENCY);
    for (size_t i = 0; i < s->count; i++) {
        member *m = &s->members[i];
        if (m->joined) m->run.status = run_latency_end(&m->run, m->run.status, &m->run.err);
        run_finish_plan(&m->run);
    }
}

/* ---- throughput ----------------------------------------------------------------------------- */

static bool has_rate(const member *m) {
    return m->run.c->throughput && m->alone->batch > 0;
}

/* A verified plan of the batch that was best for the device alone. */
static lap_status rate_plan(member *m, lap_error *err) {
    lap_case_run *run = &m->run;
    uint64_t batch = m->alone->batch;
    LAP_TRY(run_make_plan(run, batch, NULL, &run->plan, err));
    LAP_TRY(lap_timing_open(run->session->queue, &run->timing, err));
    if (run->runner->config->verify.mode == LAP_VERIFY_OFF) return LAP_OK;
    m->rate_report.mode = run->report.mode;
    return lap_check_logits(run->plan, run->runner->net, &run->runner->expected, batch,
                            run->c->precision, &m->rate_logits, &m->rate_report, err);
}

static lap_status still_right(member *m, lap_error *err) {
    lap_case_run *run = &m->run;
    if (!m->rate_logits) return LAP_OK;
    return lap_check_unchanged(run->plan, run->runner->net, m->alone->batch, m->rate_logits,
                               &m->rate_report, err);
}

static void wrong(member *m) {
    lap_row_verified *v = &m->run.row->verified;
    if (m->run.status != LAP_E_VERIFY) return;
    lap_error_prefix(&m->run.err, "batch %llu: ", (unsigned long long)m->alone->batch);
    v->passed = false;
    snprintf(v->first_wrong, sizeof v->first_wrong, "%s", m->rate_report.first_wrong);
}

/* The row's throughput is the mean over the rounds; there was no search of its own. */
static void keep_rate(member *m) {
    const lap_rounds *r = &m->run.row->concurrent.rounds;
    lap_throughput *t = &m->run.row->throughput;
    double sum = 0;
    if (r->n == 0) return;
    for (size_t i = 0; i < r->n; i++)
        sum += r->together[i];
    *t = (lap_throughput){.has = true,
                          .best_batch = r->batch,
                          .batch = r->batch,
                          .batches = r->batches * r->n,
                          .batches_planned = r->batches * r->n,
                          .seconds = lap_some(r->seconds),
                          .images_per_s = lap_some(sum / (double)r->n)};
    snprintf(t->search, sizeof t->search, "none");
    snprintf(t->ended, sizeof t->ended, "the best batch of the row alone was taken");
}

static void throughput(set *s) {
    for (size_t i = 0; i < s->count; i++) {
        member *m = &s->members[i];
        m->joined = false;
        if (m->run.status != LAP_OK || !has_rate(m)) continue;
        m->run.status = rate_plan(m, &m->run.err);
        m->joined = m->run.status == LAP_OK;
        if (m->joined) set_work(m);
    }
    run_part(s, PART_RATE);
    for (size_t i = 0; i < s->count; i++) {
        member *m = &s->members[i];
        if (m->joined && (m->run.status == LAP_OK || m->run.status == LAP_E_INTERRUPTED)) {
            lap_error detail = {0};
            lap_status status = still_right(m, &detail);
            if (status != LAP_OK) {
                m->run.status = status;
                m->run.err = detail;
            }
        }
        wrong(m);
        if (m->joined) keep_rate(m);
        run_finish_plan(&m->run);
        free(m->rate_logits);
        m->rate_logits = NULL;
    }
}

/* ---- a set ---------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void lap_runner_count_names(const char **names, size_t count, char *out, size_t size) {
    lap_text text = {0};
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count;) {
        size_t n = 1;
        while (i + n < count && strcmp(names[i], names[i + n]) == 0)
            n++;
        lap_text_addf(&text, "%s%zu x %s", i ? " + " : "", n, names[i]);
        i += n;
    }
    snprintf(out, size, "%s", lap_text_get(&text));
    lap_text_free(&text);
}

/* A case that its device cannot do alone is not tried beside others. */
static lap_status alone_first(member *m, lap_error *err) {
    const lap_alone *alone = m->alone;
    if (interrupted(m->run.runner))
        return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted before this row was begun");
    if (alone->status == LAP_ROW_OK) return LAP_OK;
    lap_status cause = alone->cause != LAP_OK ? alone->cause : LAP_E_INTERRUPTED;
    return LAP_FAIL(err, cause, "alone: %s", alone->reason);
}

void lap_alone_of(const lap_row *row, lap_alone *out) {
    const lap_throughput *t = &row->throughput;
    *out = (lap_alone){.status = row->status, .cause = row->cause};
    snprintf(out->reason, sizeof out->reason, "%s",
             row->reason ? row->reason : lap_status_name(row->cause));
    if (!t->images_per_s.has || !t->seconds.has || t->batch == 0 || t->batches == 0) return;
    out->batch = t->batch;
    out->batches = t->batches;
    out->seconds = t->seconds.value;
}

static void name_the_others(set *s) {
    const char *names[256] = {0};
    char devices[sizeof s->members[0].run.row->concurrent.devices];
    size_t fit = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->members[i].run.status == LAP_OK && fit < sizeof names / sizeof *names)
            names[fit++] = s->members[i].run.c->device->name;
    lap_runner_count_names(names, fit, devices, sizeof devices);
    const lap_runner_team *team = s->runner->team;
    for (size_t i = 0; i < s->count; i++) {
        member *m = &s->members[i];
        lap_concurrent *c = &m->run.row->concurrent;
        if (m->run.status != LAP_OK) continue;
        if (!team && fit < 2) {
            lap_status cause = interrupted(s->runner) ? LAP_E_INTERRUPTED : LAP_E_UNSUPPORTED;
            m->run.status =
                LAP_FAIL(&m->run.err, cause, "no other device of this set could be made ready");
            continue;
        }
        c->others = team ? team->others : fit - 1;
        snprintf(c->devices, sizeof c->devices, "%s", team ? team->devices : devices);
    }
}

static void work_on_set(set *s) {
    for (size_t i = 0; i < s->count; i++) {
        member *m = &s->members[i];
        m->run.status = alone_first(m, &m->run.err);
        run_stage(&m->run, run_setup);
        if (m->run.status != LAP_OK) run_release(&m->run, NULL);
    }
    name_the_others(s);
    lap_meter_step(s->runner->meter, "%zu devices at once, batch %llu: latency and throughput",
                   s->runner->team ? s->runner->team->others + 1 : s->count,
                   (unsigned long long)s->members[0].run.c->batch);
    latency(s);
    for (size_t i = 0; i < s->count; i++)
        run_tell_so_far(&s->members[i].run);
    throughput(s);
    for (size_t i = 0; i < s->count; i++) {
        lap_case_run *run = &s->members[i].run;
        run_close(run);
        run_tell(s->runner, LAP_ROW_FINISHED, run->c, run->row);
    }
}

static void without_memory(set *s, const lap_run_case *c, lap_row *row) {
    lap_error err = {0};
    lap_runner_describe(c, row);
    lap_row_fail(row, LAP_FAIL(&err, LAP_E_NOMEM, "no memory for the set"), &err);
    lap_row_finish(row);
    run_tell(s->runner, LAP_ROW_FINISHED, c, row);
}

void lap_runner_sets(lap_runner *runner, const lap_run_case *cases, lap_row *rows, size_t count,
                     const lap_alone *alone) {
    size_t last = 0;
    for (size_t i = 0; i < count; i++)
        if (cases[i].set > last) last = cases[i].set;
    for (size_t number = 1; number <= last && !run_leaves(runner); number++) {
        set s = {.runner = runner, .number = number};
        for (size_t i = 0; i < count; i++)
            s.count += cases[i].set == number;
        if (s.count == 0) continue;
        s.members = calloc(s.count, sizeof *s.members);
        size_t at = 0;
        for (size_t i = 0; i < count; i++) {
            if (cases[i].set != number) continue;
            if (!s.members) {
                without_memory(&s, &cases[i], &rows[i]);
                continue;
            }
            member *m = &s.members[at++];
            run_init(&m->run, runner, &cases[i], &rows[i]);
            m->alone = &alone[cases[i].alone];
        }
        if (s.members) work_on_set(&s);
        free(s.members);
    }
}
