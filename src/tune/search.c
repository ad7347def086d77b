/* The search (see search.h): asks a worker, believes only what is verified. */
#include "tune/search.h"

#include "base/clock.h"
#include "base/text.h"
#include "tune/child.h"
#include "tune/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 4, LEADERS = 4, STEPS_MOST = 256, DEATHS_MOST = 12 };
enum { SHORT_ROUNDS = 5, LONG_ROUNDS = 15, FINAL_ROUNDS = 41 };
static const double SHORT_S = 0.002, LONG_S = 0.005;
static const double NOISE = 0.02; /* a gain below this is none */

typedef enum fate { FRESH = 0, TIMED, UNFIT, FAILED, WRONG } fate;

typedef struct trial {
    lap_candidate candidate;
    fate fate;
    double best_s, median_s, ratio; /* ratio: to the default's median in the same group */
} trial;

typedef struct search {
    const lap_tune_job *job;
    lap_child child;
    char numbers[4][24]; /* texts behind child.args */
    bool has_gemm;
    unsigned features; /* LAP_FEATURE_*, as the worker probed them */
    lap_net *net;
    /* the step at hand */
    lap_tune_outcome *outcome;
    char step[40]; /* "3 -1 0" */
    trial *trials; /* [0] is the default */
    size_t count;
    size_t group;   /* candidates that fit the memory together, the default included */
    int deaths;     /* of workers */
    double ends_at; /* of the step */
} search;

static bool interrupted(const search *s) {
    return s->job->interrupted && s->job->interrupted(s->job->interrupt_context);
}

static lap_status stop_asked(lap_error *err) {
    return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted while tuning");
}

/* ---- talking to the worker ------------------------------------------------------------------ */

static void note(search *s, const lap_candidate *candidate, const char *what) {
    char word[LAP_TUNE_TEXT + 64];
    lap_candidate_text(candidate, word, sizeof word);
    snprintf(s->outcome->note, sizeof s->outcome->note, "%.150s: %.240s", word, what);
}

static void lose(search *s, trial *t, fate how, const char *what) {
    t->fate = how;
    if (how == UNFIT) {
        s->outcome->unfit++;
        return;
    }
    if (how == FAILED) s->outcome->failed++;
    if (how == WRONG) s->outcome->wrong++;
    note(s, &t->candidate, what);
}

/* Errors that the built kernel's own limits, or a compiler's refusal, explain. */
static bool is_unfit(const char *why) {
    return strstr(why, "group") != NULL && strstr(why, "at most") != NULL;
}

static bool ask(search *s, const char *verb, const char *middle, trial *const *group, size_t n) {
    lap_text text = {0};
    lap_text_addf(&text, "%s %s%s", verb, s->step, middle);
    for (size_t i = 0; i < n; i++) {
        char word[LAP_TUNE_TEXT + 64];
        lap_candidate_text(&group[i]->candidate, word, sizeof word);
        lap_text_addf(&text, " %s", word);
    }
    lap_text_add(&text, "\n");
    bool sent = !text.failed && lap_child_send(&s->child, text.data);
    lap_text_free(&text);
    return sent;
}

typedef enum answer { ANSWERED = 0, NO_MEMORY, DIED } answer;

/* "time 2 1.5e-5 1.6e-5" */
static bool read_time(char *text, trial *const *group, size_t n) {
    char *rest = NULL, *index = strtok_r(text, " ", &rest), *best = strtok_r(NULL, " ", &rest),
         *median = strtok_r(NULL, " ", &rest);
    uint64_t i;
    double best_s, median_s;
    if (!index || !best || !median || !lap_parse_u64(index, &i) || i >= n ||
        !lap_parse_double(best, &best_s) || !lap_parse_double(median, &median_s) || !(best_s > 0) ||
        !(median_s > 0))
        return false;
    group[i]->best_s = best_s;
    group[i]->median_s = median_s;
    group[i]->fate = TIMED;
    return true;
}

/* Reads answers until the request is done. *at: the candidate being touched when it died. */
static answer hear(search *s, trial *const *group, size_t n, size_t *at) {
    static char line[4096];
    for (;;) {
        if (lap_child_read(&s->child, s->job->limit_s, line, sizeof line) != LAP_CHILD_LINE)
            return DIED;
        uint64_t index;
        char *space = strchr(line + 4, ' ');
        if (strcmp(line, "done") == 0) return ANSWERED;
        if (strcmp(line, "memory") == 0) {
            if (lap_child_read(&s->child, s->job->limit_s, line, sizeof line) != LAP_CHILD_LINE)
                return DIED;
            return NO_MEMORY; /* the line was "done" */
        }
        if (strncmp(line, "at ", 3) == 0 && lap_parse_u64(line + 3, &index) && index < n)
            *at = (size_t)index;
        if (strncmp(line, "time ", 5) == 0) (void)read_time(line + 5, group, n);
        if (strncmp(line, "bad ", 4) != 0 || !space) continue;
        *space = '\0';
        if (lap_parse_u64(line + 4, &index) && index < n)
            lose(s, group[index], is_unfit(space + 1) ? UNFIT : FAILED, space + 1);
    }
}

/* ---- timing --------------------------------------------------------------------------------- */

static size_t keep(trial **group, size_t n, fate lost_from) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (group[i]->fate < lost_from) group[kept++] = group[i];
    return kept;
}

/* Times the group, restarting the worker after each candidate that takes it down. Trials that are
 * not TIMED afterwards are lost. */
static lap_status time_group(search *s, trial **group, size_t n, double sample_s, int rounds,
                             lap_error *err) {
    char middle[64], seconds[32];
    lap_format_double(seconds, sizeof seconds, 6, sample_s);
    snprintf(middle, sizeof middle, " %s %d", seconds, rounds);
    while (n > 0) {
        if (interrupted(s)) return stop_asked(err);
        LAP_TRY(lap_child_start(&s->child, err));
        size_t at = 0;
        answer got = ask(s, "time", middle, group, n) ? hear(s, group, n, &at) : DIED;
        if (got == ANSWERED) return LAP_OK;
        if (got == NO_MEMORY) {
            if (n <= 1) {
                lose(s, group[0], FAILED, "not enough device memory");
                return LAP_OK;
            }
            s->group = n - 1;
            n = s->group; /* the last ones have to wait */
            continue;
        }
        lap_child_stop(&s->child);
        if (group[at]->fate != FAILED) lose(s, group[at], FAILED, s->child.death);
        if (++s->deaths > DEATHS_MOST)
            return LAP_FAIL(err, LAP_E_DEVICE,
                            "%s: the tuning process died %d times, at last: %.160s",
                            s->outcome->name, s->deaths, s->child.death);
        n = keep(group, n, UNFIT);
    }
    return LAP_OK;
}

static void set_ratios(trial *const *group, size_t n, const trial *standard) {
    for (size_t i = 0; i < n; i++)
        if (group[i]->fate == TIMED) group[i]->ratio = group[i]->median_s / standard->median_s;
}

/* Times trials [first, end) with the default among each few of them. */
static lap_status time_range(search *s, size_t first, size_t end, double share, lap_error *err) {
    double begun = lap_clock_now();
    double until = begun + (s->ends_at - begun) * share;
    for (size_t i = first; i < end;) {
        if (i > first && lap_clock_now() > until) break;
        /* One at first: what a candidate costs differs a thousandfold between compilers. */
        double spent = lap_clock_now() - begun, each = i > first ? spent / (double)(i - first) : 0;
        size_t most =
            i == first || spent + each * (double)(s->group - 1) > until - begun ? 2 : GROUP;
        trial *group[GROUP] = {&s->trials[0]};
        size_t n = 1, from = i;
        for (; i < end && n < s->group && n < most; i++)
            group[n++] = &s->trials[i];
        if (from == i) break; /* not even two fit the memory */
        size_t asked = n;
        LAP_TRY(time_group(s, group, n, SHORT_S, SHORT_ROUNDS, err));
        if (s->group < asked) i = from + s->group - 1; /* the rest did not fit the memory */
        if (s->trials[0].fate != TIMED) return LAP_OK; /* nothing to compare with */
        trial *timed[GROUP];
        size_t count = 0;
        for (size_t t = from; t < i; t++)
            if (s->trials[t].fate == TIMED) timed[count++] = &s->trials[t];
        set_ratios(timed, count, &s->trials[0]);
        s->outcome->tried += i - from;
    }
    return LAP_OK;
}

/* ---- which candidates ----------------------------------------------------------------------- */

static bool known(const search *s, const lap_candidate *candidate) {
    for (size_t i = 0; i < s->count; i++)
        if (lap_candidate_same(&s->trials[i].candidate, candidate)) return true;
    return false;
}

static void add_trial(search *s, const lap_candidate *candidate) {
    if (s->count <= s->job->candidates && !known(s, candidate))
        s->trials[s->count++] = (trial){.candidate = *candidate};
}

static trial *fastest(const search *s) {
    trial *best = NULL;
    for (size_t i = 1; i < s->count; i++) {
        trial *t = &s->trials[i];
        if (t->fate == TIMED && t->ratio > 0 && (!best || t->ratio < best->ratio)) best = t;
    }
    return best;
}

/* Walk from the best to better neighbours until there is none, or the budget is spent. */
static lap_status descend(search *s, lap_error *err) {
    lap_candidate near[2 * LAP_MAX_TUNABLES];
    const trial *from = fastest(s);
    if (!from || from->ratio > 1) from = &s->trials[0];
    while (s->count <= s->job->candidates && lap_clock_now() < s->ends_at) {
        size_t first = s->count;
        size_t n = lap_space_neighbours(&s->outcome->c, &from->candidate, near);
        for (size_t i = 0; i < n; i++)
            add_trial(s, &near[i]);
        if (s->count == first) return LAP_OK;
        LAP_TRY(time_range(s, first, s->count, 0.9, err));
        const trial *best = fastest(s);
        if (!best || best == from || best->ratio >= 1) return LAP_OK;
        from = best;
    }
    return LAP_OK;
}

/* ---- who wins ------------------------------------------------------------------------------- */

static bool among(trial *const *list, size_t n, const trial *t) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == t) return true;
    return false;
}

/* The fastest ones that are faster than the default, best first. */
static size_t leaders(search *s, trial **out, size_t most) {
    size_t n = 0;
    while (n < most) {
        trial *best = NULL;
        for (size_t i = 1; i < s->count; i++) {
            trial *t = &s->trials[i];
            if (t->fate != TIMED || !(t->ratio > 0) || t->ratio >= 1 || among(out, n, t)) continue;
            if (!best || t->ratio < best->ratio) best = t;
        }
        if (!best) break;
        out[n++] = best;
    }
    return n;
}

/* Exact, real and whole-batch checks in the worker. */
static lap_status verify(search *s, trial *t, lap_error *err) {
    static char line[4096];
    if (interrupted(s)) return stop_asked(err);
    LAP_TRY(lap_child_start(&s->child, err));
    trial *one[] = {t};
    /* References of large layers take their time on small hosts. */
    double limit = s->job->limit_s * 10;
    if (!ask(s, "check", "", one, 1) ||
        lap_child_read(&s->child, limit, line, sizeof line) != LAP_CHILD_LINE) {
        lap_child_stop(&s->child);
        s->deaths++;
        lose(s, t, FAILED, s->child.death);
    } else if (strcmp(line, "right") != 0) {
        lose(s, t, WRONG, strncmp(line, "wrong ", 6) == 0 ? line + 6 : line);
    }
    return LAP_OK;
}

static void keep_default(lap_tune_outcome *o, const trial *standard) {
    o->best = o->standard;
    if (standard->fate == TIMED) o->standard_s = o->best_s = standard->median_s;
}

/* The last word: both again, for longer, in turn. */
static lap_status duel(search *s, trial *t, bool *won, lap_error *err) {
    trial *pair[] = {&s->trials[0], t};
    *won = false;
    LAP_TRY(time_group(s, pair, 2, LONG_S, FINAL_ROUNDS, err));
    trial *standard = &s->trials[0];
    if (t->fate != TIMED || standard->fate != TIMED) return LAP_OK;
    lap_tune_outcome *o = s->outcome;
    *won = t->median_s < standard->median_s * (1 - NOISE) && t->best_s < standard->best_s;
    o->standard_s = standard->median_s;
    o->best_s = *won ? t->median_s : standard->median_s;
    o->best = *won ? t->candidate : o->standard;
    return LAP_OK;
}

static int by_ratio(const void *a, const void *b) {
    const trial *x = *(trial *const *)a, *y = *(trial *const *)b;
    return x->ratio < y->ratio ? -1 : x->ratio > y->ratio;
}

static lap_status decide(search *s, lap_error *err) {
    trial *group[LEADERS + 1] = {&s->trials[0]};
    trial **lead = group + 1;
    size_t n = leaders(s, lead, s->group - 1 < LEADERS ? s->group - 1 : LEADERS);
    keep_default(s->outcome, &s->trials[0]);
    if (n == 0) return LAP_OK;
    trial *all[LEADERS + 1];
    memcpy(all, group, sizeof all);
    LAP_TRY(time_group(s, all, n + 1, LONG_S, LONG_ROUNDS, err));
    if (s->trials[0].fate != TIMED) return LAP_OK;
    n = keep(lead, n, UNFIT);
    set_ratios(lead, n, &s->trials[0]);
    qsort(lead, n, sizeof *lead, by_ratio);
    for (size_t i = 0; i < n; i++) {
        bool won;
        if (lead[i]->ratio >= 1) return LAP_OK;
        LAP_TRY(verify(s, lead[i], err));
        if (lead[i]->fate != TIMED) continue;
        return duel(s, lead[i], &won, err);
    }
    return LAP_OK;
}

/* ---- a step --------------------------------------------------------------------------------- */

static lap_status select_trials(search *s, lap_error *err) {
    lap_candidate *space;
    size_t count;
    LAP_TRY(lap_space_new(&s->outcome->c, s->has_gemm, s->job->seed, &space, &count, err));
    s->outcome->space = count;
    s->count = 0;
    add_trial(s, &s->outcome->standard);
    /* The default's neighbours come first: where a compiler is slow there is time for few. */
    lap_candidate near[2 * LAP_MAX_TUNABLES];
    size_t n = lap_space_neighbours(&s->outcome->c, &s->outcome->standard, near);
    for (size_t i = 0; i < n && s->count <= s->job->candidates / 4; i++)
        add_trial(s, &near[i]);
    /* Part of the budget is for the neighbourhood of what is found, unless all fits. */
    size_t most = count <= s->job->candidates ? count : s->job->candidates * 3 / 5 + 1;
    for (size_t i = 0; i < count && s->count <= most; i++)
        add_trial(s, &space[i]);
    free(space);
    return LAP_OK;
}

static lap_status tune_step(search *s, lap_error *err) {
    s->group = GROUP;
    s->deaths = 0;
    LAP_TRY(select_trials(s, err));
    keep_default(s->outcome, &s->trials[0]);
    if (s->count < 2) return LAP_OK; /* no choice */
    LAP_TRY(time_range(s, 1, s->count, 0.5, err));
    if (s->trials[0].fate == TIMED) LAP_TRY(descend(s, err));
    return s->trials[0].fate == TIMED ? decide(s, err) : LAP_OK;
}

/* ---- the list of steps ---------------------------------------------------------------------- */

typedef struct found {
    lap_tune_outcome outcome;
    char step[40], signature[LAP_TUNE_TEXT];
} found;

/* "step OP PARTNER FUSION CANDIDATE" */
static bool read_step(search *s, char *line, found *out) {
    char *rest = NULL, *words[4];
    int64_t numbers[3];
    for (int i = 0; i < 4; i++) {
        words[i] = strtok_r(i ? NULL : line, " ", &rest);
        if (!words[i] || (i < 3 && !lap_parse_i64(words[i], &numbers[i]))) return false;
    }
    int64_t ops = s->net->op_count;
    lap_tune_outcome *o = &out->outcome;
    *o = (lap_tune_outcome){.steps = 1};
    if (numbers[0] < 0 || numbers[0] >= ops || numbers[1] < -1 || numbers[1] >= ops) return false;
    if (numbers[2] < LAP_FUSE_NONE || numbers[2] >= LAP_FUSE_COUNT) return false;
    if (!lap_candidate_parse(words[3], &o->standard)) return false;
    const lap_op *op = &s->net->ops[numbers[0]];
    const lap_op *partner = numbers[1] < 0 ? NULL : &s->net->ops[numbers[1]];
    o->c = (lap_case){.op = op,
                      .fusion = (lap_fusion)numbers[2],
                      .partner = partner,
                      .device = s->job->device,
                      .precision = s->job->precision,
                      .features = s->features,
                      .n = lap_tune_bucket(s->job->batch),
                      .params = o->standard.params};
    snprintf(o->name, sizeof o->name, "%s%s%s", op->name, partner ? "+" : "",
             partner ? partner->name : "");
    snprintf(out->step, sizeof out->step, "%s %s %s", words[0], words[1], words[2]);
    lap_tune_signature(&o->c, out->signature, sizeof out->signature);
    return true;
}

static void add_found(found *steps, size_t *count, const found *one) {
    for (size_t i = 0; i < *count; i++)
        if (strcmp(steps[i].signature, one->signature) == 0) {
            steps[i].outcome.steps++;
            return;
        }
    if (*count < STEPS_MOST) steps[(*count)++] = *one;
}

static lap_status list_steps(search *s, found *steps, size_t *count, lap_error *err) {
    static char line[4096];
    *count = 0;
    LAP_TRY(lap_child_start(&s->child, err));
    /* A child that could not open the device may have ended before this; its reason is read below.
     */
    (void)lap_child_send(&s->child, "list\n");
    for (;;) {
        found one;
        /* Every kernel of the network is compiled meanwhile. */
        if (lap_child_read(&s->child, s->job->limit_s * 20, line, sizeof line) != LAP_CHILD_LINE) {
            lap_child_stop(&s->child);
            return LAP_FAIL(err, LAP_E_DEVICE, "%s: the tuning process %s",
                            s->job->device->selector, s->child.death);
        }
        if (strncmp(line, "fail ", 5) == 0)
            return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s: %.1000s", s->job->device->selector,
                            line + 5);
        uint64_t bits;
        if (strncmp(line, "features ", 9) == 0 && lap_parse_u64(line + 9, &bits))
            s->features = (unsigned)bits;
        if (strncmp(line, "gemm ", 5) == 0) s->has_gemm = line[5] == '1';
        if (strcmp(line, "done") == 0) return LAP_OK;
        if (strncmp(line, "step ", 5) == 0 && read_step(s, line + 5, &one))
            add_found(steps, count, &one);
    }
}

/* ---- all ------------------------------------------------------------------------------------ */

static void set_args(search *s) {
    const lap_tune_job *job = s->job;
    snprintf(s->numbers[0], sizeof s->numbers[0], "%d", job->height);
    snprintf(s->numbers[1], sizeof s->numbers[1], "%d", job->width);
    snprintf(s->numbers[2], sizeof s->numbers[2], "%" PRIu64, lap_tune_bucket(job->batch));
    const char *const args[LAP_CHILD_ARGS] = {LAP_TUNE_WORKER, job->device->selector,
                                              job->model,      s->numbers[0],
                                              s->numbers[1],   lap_precision_name(job->precision),
                                              s->numbers[2],   job->use_cache ? "yes" : "no"};
    memcpy(s->child.args, args, sizeof args);
}

static lap_status tune_steps(search *s, const found *steps, size_t count, lap_tuning *out,
                             lap_error *err) {
    double ends_at = lap_clock_now() + s->job->seconds;
    for (size_t i = 0; i < count; i++) {
        s->outcome = &out->outcomes[out->count];
        *s->outcome = steps[i].outcome;
        memcpy(s->step, steps[i].step, sizeof s->step);
        if (s->job->progress)
            s->job->progress(s->job->progress_context, s->outcome->name, i, count);
        double now = lap_clock_now();
        s->ends_at = now + (ends_at - now) / (double)(count - i);
        if (now < ends_at)
            LAP_TRY(tune_step(s, err));
        else
            snprintf(s->outcome->note, sizeof s->outcome->note, "no time was left for this step");
        if (!s->outcome->best.row) s->outcome->best = s->outcome->standard;
        out->count++;
    }
    return LAP_OK;
}

lap_status lap_tune(const lap_tune_job *job, lap_tuning *out, lap_error *err) {
    *out = (lap_tuning){0};
    if (job->candidates == 0 || !(job->seconds > 0) || !(job->limit_s > 0))
        return LAP_FAIL(err, LAP_E_ARG, "tuning needs candidates, seconds and a time limit");
    search s = {.job = job};
    set_args(&s);
    LAP_TRY(lap_net_build(job->model, job->height, job->width, &out->net, err));
    s.net = out->net;
    s.trials = calloc(job->candidates + 1, sizeof *s.trials);
    found *steps = calloc(STEPS_MOST, sizeof *steps);
    out->outcomes = calloc(STEPS_MOST, sizeof *out->outcomes);
    size_t count = 0;
    lap_status status = s.trials && steps && out->outcomes
                            ? list_steps(&s, steps, &count, err)
                            : LAP_FAIL(err, LAP_E_NOMEM, "no memory for tuning");
    if (status == LAP_OK) status = tune_steps(&s, steps, count, out, err);
    lap_child_stop(&s.child);
    free(steps);
    free(s.trials);
    return status;
}

void lap_tuning_free(lap_tuning *tuning) {
    free(tuning->outcomes);
    lap_net_free(tuning->net);
    *tuning = (lap_tuning){0};
}
