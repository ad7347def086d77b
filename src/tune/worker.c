/* The working side of tuning (see worker.h). Decides nothing: measures and checks what it is asked
 * to. */
#include "tune/worker.h"

#include "base/text.h"
#include "device/build_cache.h"
#include "tune/step.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { CANDIDATES_MOST = 8, WORDS_MOST = 16, LINE_MOST = 8192 };

typedef struct worker {
    FILE *answers;
    lap_net *net;
    lap_precision precision;
    uint64_t batch;
    lap_build_cache *cache;
    lap_session *session;
    lap_timing timing;
    lap_tune_step step; /* of the last request */
    lap_step_ref ref;
} worker;

/* ---- answers -------------------------------------------------------------------------------- */

static void say(worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(worker *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(w->answers, format, args);
    va_end(args);
    fputc('\n', w->answers);
    fflush(w->answers);
}

/* The error in one line. */
static const char *why(const lap_error *err) {
    static char text[1024];
    if (lap_error_text(err, text, sizeof text) == 0)
        snprintf(text, sizeof text, "%s", lap_status_name(err->status));
    lap_text_clean(text);
    return text;
}

/* ---- requests ------------------------------------------------------------------------------- */

static void say_time(worker *w, size_t index, const lap_bench *b) {
    char best[40], median[40];
    lap_format_double(best, sizeof best, 9, b->best_s);
    lap_format_double(median, sizeof median, 9, b->median_s);
    say(w, "time %zu %s %s", index, best, median);
}

static lap_status list_steps(worker *w, lap_error *err) {
    lap_plan *plan = NULL;
    lap_plan_options options = {.batch = w->batch, .precision = w->precision};
    LAP_TRY(lap_plan_new(w->session, w->net, &options, NULL, NULL, &plan, err));
    say(w, "features %u", w->session->features);
    for (int i = 0; i < lap_plan_step_count(plan); i++) {
        const lap_op *partner = lap_plan_partner(plan, i);
        lap_candidate chosen = {lap_plan_row(plan, i), *lap_plan_params(plan, i)};
        char word[LAP_TUNE_TEXT + 64];
        lap_candidate_text(&chosen, word, sizeof word);
        say(w, "step %d %d %d %s", lap_plan_op_index(plan, lap_plan_op(plan, i)),
            partner ? lap_plan_op_index(plan, partner) : -1, (int)lap_plan_fusion(plan, i), word);
    }
    lap_plan_free(plan);
    say(w, "gemm %d", lap_device_has_gemm(w->session->device));
    say(w, "done");
    return LAP_OK;
}

/* A device that faulted is of no more use; other failures concern the candidate alone. */
static bool fatal(lap_status status) {
    return status == LAP_E_DEVICE || status == LAP_E_NOMEM || status == LAP_E_INTERNAL;
}

/* Opens benches; good[i] says which are. *memory: there was not enough for all at once. */
static lap_status open_benches(worker *w, const lap_candidate *candidates, size_t count,
                               double sample_s, lap_bench *benches, bool *good, bool *memory,
                               lap_error *err) {
    for (size_t i = 0; i < count; i++) {
        benches[i] = (lap_bench){.forced = {&w->step, &candidates[i]}};
        say(w, "at %zu", i);
        lap_status status = lap_bench_open(&benches[i], w->session, &w->timing, w->precision,
                                           w->batch, sample_s, err);
        good[i] = status == LAP_OK;
        if (status == LAP_E_OOM && i > 0) {
            *memory = true;
            return LAP_OK;
        }
        if (status != LAP_OK) say(w, "bad %zu %s", i, why(err));
        if (fatal(status)) return status;
    }
    return LAP_OK;
}

static lap_status time_benches(worker *w, lap_bench *benches, const bool *good, size_t count,
                               int rounds, lap_error *err) {
    lap_bench packed[CANDIDATES_MOST];
    size_t from[CANDIDATES_MOST], n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!good[i]) continue;
        from[n] = i;
        packed[n++] = benches[i];
    }
    LAP_TRY(lap_bench_time(packed, n, w->session, &w->timing, rounds, err));
    for (size_t i = 0; i < n; i++)
        say_time(w, from[i], &packed[i]);
    return LAP_OK;
}

static lap_status time_request(worker *w, const lap_candidate *candidates, size_t count,
                               double sample_s, int rounds, lap_error *err) {
    lap_bench benches[CANDIDATES_MOST] = {0};
    bool good[CANDIDATES_MOST] = {false}, memory = false;
    lap_status status = open_benches(w, candidates, count, sample_s, benches, good, &memory, err);
    if (status == LAP_OK && memory) say(w, "memory");
    if (status == LAP_OK && !memory) status = time_benches(w, benches, good, count, rounds, err);
    for (size_t i = 0; i < count; i++)
        if (good[i]) lap_bench_close(&benches[i]);
    if (status == LAP_OK) say(w, "done");
    return status;
}

static lap_status check_request(worker *w, const lap_candidate *candidate, lap_error *err) {
    lap_forced forced = {&w->step, candidate};
    lap_plan_options options = lap_tune_step_options(&forced, w->precision, w->batch);
    lap_check_report report;
    lap_status status = lap_check_step(w->session, w->step.net, w->step.weights, &options,
                                       w->step.images, w->step.index, &report, err);
    if (status == LAP_OK)
        say(w, "right");
    else
        say(w, "wrong %s", why(err));
    return fatal(status) ? status : LAP_OK;
}

/* ---- reading requests ----------------------------------------------------------------------- */

static bool whole(const char *word, int64_t least, int64_t most, int *out) {
    int64_t value;
    if (!lap_parse_i64(word, &value) || value < least || value > most) return false;
    *out = (int)value;
    return true;
}

/* Make the step that the first three words name, unless it is the one at hand. */
static lap_status take_step(worker *w, char *const *words, lap_error *err) {
    lap_step_ref ref = {0};
    int fusion;
    int last = w->net->op_count - 1;
    if (!whole(words[0], 0, last, &ref.op) || !whole(words[1], -1, last, &ref.partner) ||
        !whole(words[2], LAP_FUSE_NONE, LAP_FUSE_COUNT - 1, &fusion))
        return LAP_FAIL(err, LAP_E_INTERNAL, "a request for the step %s %s %s", words[0], words[1],
                        words[2]);
    ref.fusion = (lap_fusion)fusion;
    if (w->step.net && memcmp(&ref, &w->ref, sizeof ref) == 0) return LAP_OK;
    lap_tune_step_free(&w->step);
    w->ref = ref;
    return lap_tune_step_new(w->net, &ref, &w->step, err);
}

static lap_status handle(worker *w, char *line, lap_error *err) {
    char *words[WORDS_MOST], *rest = NULL;
    size_t count = 0;
    for (char *p = strtok_r(line, " \n", &rest); p && count < WORDS_MOST;
         p = strtok_r(NULL, " \n", &rest))
        words[count++] = p;
    if (count == 1 && strcmp(words[0], "list") == 0) return list_steps(w, err);
    bool timing = count > 6 && strcmp(words[0], "time") == 0;
    bool check = count == 5 && strcmp(words[0], "check") == 0;
    size_t first = timing ? 6 : 4;
    lap_candidate candidates[CANDIDATES_MOST];
    double sample_s = 0;
    int rounds = 0;
    if ((!timing && !check) || count - first > CANDIDATES_MOST ||
        (timing && (!lap_parse_double(words[4], &sample_s) || !whole(words[5], 1, 64, &rounds))))
        return LAP_FAIL(err, LAP_E_INTERNAL, "a request that makes no sense");
    for (size_t i = first; i < count; i++)
        if (!lap_candidate_parse(words[i], &candidates[i - first]))
            return LAP_FAIL(err, LAP_E_INTERNAL, "a request for the candidate %s", words[i]);
    LAP_TRY(take_step(w, words + 1, err));
    return timing ? time_request(w, candidates, count - first, sample_s, rounds, err)
                  : check_request(w, &candidates[0], err);
}

/* ---- the process ---------------------------------------------------------------------------- */

static lap_status open_device(worker *w, const char *selector, bool use_cache, lap_error *err) {
    lap_device_list *list = NULL;
    size_t *indices = NULL, count = 0;
    LAP_TRY(lap_device_enumerate(&list, err));
    lap_status status = lap_device_select(list, selector, &indices, &count, err);
    if (status == LAP_OK && use_cache) status = lap_build_cache_open(NULL, 0, &w->cache, err);
    if (status == LAP_OK) status = lap_session_open(&list->devices[indices[0]], &w->session, err);
    free(indices);
    lap_device_list_free(list);
    LAP_TRY(status);
    lap_device_use_cache(w->session->device, w->cache);
    return lap_timing_open(w->session->queue, &w->timing, err);
}

static lap_status set_up(worker *w, int argc, char **argv, lap_error *err) {
    int height, width, batch;
    if (argc != 8 || !whole(argv[3], 1, 65535, &height) || !whole(argv[4], 1, 65535, &width) ||
        !lap_precision_parse(argv[5], &w->precision) || !whole(argv[6], 1, INT32_MAX, &batch))
        return LAP_FAIL(err, LAP_E_ARG, "%s is started by `warmlap tune`, not by hand",
                        LAP_TUNE_WORKER);
    w->batch = (uint64_t)batch;
    LAP_TRY(lap_net_build(argv[2], height, width, &w->net, err));
    return open_device(w, argv[1], strcmp(argv[7], "yes") == 0, err);
}

int lap_tune_worker(int argc, char **argv) {
    /* What drivers print must not get between the answers, nor may this outlive its parent. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    worker w = {.answers = fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "w")};
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (!w.answers) return 1;
    lap_error err = {0};
    lap_status status = set_up(&w, argc, argv, &err);
    static char line[LINE_MOST];
    while (status == LAP_OK && fgets(line, sizeof line, stdin)) {
        lap_error_clear(&err);
        status = handle(&w, line, &err);
    }
    if (status != LAP_OK) say(&w, "fail %s", why(&err));
    lap_tune_step_free(&w.step);
    lap_timing_close(&w.timing);
    if (w.session) lap_session_close(w.session, NULL);
    lap_build_cache_close(w.cache);
    lap_net_free(w.net);
    fclose(w.answers);
    return status == LAP_OK ? 0 : 1;
}
