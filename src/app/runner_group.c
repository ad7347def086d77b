/* Several cases at once: all are prepared and verified, then their timed blocks take turns in an
 * order drawn from the seed, so that drift of the machine hits all alike; then each is finished. A
 * case that fails does so alone; one that does not fit beside the others, or that another one took
 * the device from, is worked on again by itself. Nothing but order is decided here. */
#include "app/runner_internal.h"

#include "base/rng.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A row's samples come in about so many blocks of at most so many samples. */
enum { BLOCKS = 10, MOST_IN_BLOCK = 50 };

typedef struct group {
    lap_runner *runner;
    lap_case_run *runs;
    bool *begun, *done; /* latency begun; no more blocks needed */
    bool *alone;        /* to be worked on again by itself */
    size_t *order;
    size_t count;
} group;

static bool interrupted(const lap_runner *runner) {
    return runner->interrupted && runner->interrupted(NULL);
}

/* ---- what goes together --------------------------------------------------------------------- */

static bool same_network(const lap_run_case *a, const lap_run_case *b) {
    return strcmp(a->model, b->model) == 0 && a->height == b->height && a->width == b->width;
}

static bool several_devices(const lap_run_case *cases, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (strcmp(cases[i].device->selector, cases[0].device->selector) != 0) return true;
    return false;
}

static bool to_interleave(const lap_runner *runner, const lap_run_case *cases, size_t count) {
    size_t timed = 0;
    for (size_t i = 0; i < count; i++)
        timed += cases[i].latency;
    if (timed < 2 || runner->config->run.order == LAP_ORDER_SEQUENTIAL) return false;
    return runner->config->run.order == LAP_ORDER_INTERLEAVED || several_devices(cases, count);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* Whether a case before this one lost the same device. */
static bool lost_before(const group *g, size_t index) {
    const char *selector = g->runs[index].c->device->selector;
    for (size_t i = 0; i < g->count; i++) {
        const lap_case_run *other = &g->runs[i];
        if (i == index || strcmp(other->c->device->selector, selector) != 0) continue;
        if (!g->alone[i] && (other->status == LAP_E_DEVICE || other->status == LAP_E_LAUNCH))
            return true;
    }
    return false;
}

static bool others_open(const group *g, size_t index) {
    for (size_t i = 0; i < g->count; i++)
        if (i != index && g->runs[i].session) return true;
    return false;
}

/* After a stage: a case that has failed gives back what it holds, now, so that the others have
 * room; or is put off. */
static void settle(group *g, size_t i) {
    lap_case_run *run = &g->runs[i];
    if (run->status == LAP_OK || g->alone[i]) return;
    bool no_room = (run->status == LAP_E_OOM || run->status == LAP_E_NOMEM) && others_open(g, i);
    bool not_its_own = run->status == LAP_E_DEVICE && lost_before(g, i);
    if (!no_room && !not_its_own) {
        run_release(run, NULL); /* what fails now does so because of the failure before */
        return;
    }
    g->alone[i] = true;
    run_release(run, NULL);
    lap_row_free(run->row);
}

/* ---- turns ---------------------------------------------------------------------------------- */

static size_t block_size(const lap_case_run *run) {
    const lap_config *config = run->runner->config;
    bool noise = config->latency.stop == LAP_STOP_RELATIVE_NOISE;
    uint64_t samples = noise ? config->latency.min_samples : config->latency.repetitions;
    uint64_t size = (samples + BLOCKS - 1) / BLOCKS;
    return size > MOST_IN_BLOCK ? MOST_IN_BLOCK : (size_t)size;
}

/* A permutation that depends on seed and round only. */
static void draw_order(group *g, uint64_t round) {
    uint64_t seed = g->runner->config->run.seed, stream = lap_rng_stream("order");
    for (size_t i = 0; i < g->count; i++)
        g->order[i] = i;
    for (size_t i = g->count; i > 1; i--) {
        uint32_t words[4];
        lap_rng_block(seed, stream, round * g->count + i, words);
        size_t other = words[0] % i, kept = g->order[i - 1];
        g->order[i - 1] = g->order[other];
        g->order[other] = kept;
    }
}

static void begin_all(group *g) {
    for (size_t i = 0; i < g->count; i++) {
        lap_case_run *run = &g->runs[i];
        if (run->status != LAP_OK || !run->c->latency) continue;
        g->begun[i] = true;
        run->status = run_latency_begin(run, &run->err);
        run->row->latency.interleaved = true;
    }
}

static bool one_round(group *g, uint64_t round) {
    bool any = false;
    draw_order(g, round);
    for (size_t k = 0; k < g->count; k++) {
        size_t i = g->order[k];
        lap_case_run *run = &g->runs[i];
        if (!g->begun[i] || g->done[i] || run->status != LAP_OK) continue;
        run->status = run_latency_block(run, block_size(run), &g->done[i], &run->err);
        any |= run->status == LAP_OK && !g->done[i];
    }
    return any;
}

static void end_all(group *g) {
    for (size_t i = 0; i < g->count; i++) {
        lap_case_run *run = &g->runs[i];
        if (g->begun[i]) run->status = run_latency_end(run, run->status, &run->err);
        run_tell_so_far(run);
        settle(g, i);
    }
}

/* ---- the group ------------------------------------------------------------------------------ */

static void time_together(group *g, const lap_run_case *cases, lap_row *rows) {
    for (size_t i = 0; i < g->count; i++)
        run_init(&g->runs[i], g->runner, &cases[i], &rows[i]);
    for (size_t i = 0; i < g->count; i++) {
        if (interrupted(g->runner))
            g->runs[i].status = LAP_FAIL(&g->runs[i].err, LAP_E_INTERRUPTED,
                                         "interrupted before this row was begun");
        run_stage(&g->runs[i], run_setup);
        settle(g, i);
    }
    begin_all(g);
    for (uint64_t round = 0; one_round(g, round); round++)
        continue;
    end_all(g);
    for (size_t i = 0; i < g->count; i++) {
        run_stage(&g->runs[i], run_rest);
        run_tell_so_far(&g->runs[i]);
        settle(g, i);
    }
    /* The batch search wants all of the memory: by now every plan is gone. */
    for (size_t i = 0; i < g->count; i++) {
        run_stage(&g->runs[i], run_throughput_if);
        if (g->alone[i]) continue;
        run_close(&g->runs[i]);
        run_tell(g->runner, LAP_ROW_FINISHED, &cases[i], &rows[i]);
    }
}

static void skip(lap_runner *runner, const lap_run_case *c, lap_row *row) {
    lap_runner_describe(c, row);
    lap_row_skip(row, "interrupted before this row was begun");
    lap_row_finish(row);
    run_tell(runner, LAP_ROW_FINISHED, c, row);
}

static void time_alone(group *g, const lap_run_case *cases, lap_row *rows) {
    for (size_t i = 0; i < g->count && !run_leaves(g->runner); i++) {
        if (!g->alone[i]) continue;
        char why[600];
        lap_error_text(&g->runs[i].err, why, sizeof why);
        if (interrupted(g->runner)) {
            skip(g->runner, &cases[i], &rows[i]);
            continue;
        }
        lap_runner_case(g->runner, &cases[i], &rows[i]);
        lap_row_note(&rows[i], "order: sequential, because beside the other rows: %s", why);
        run_tell(g->runner, LAP_ROW_FINISHED, &cases[i], &rows[i]);
    }
}

static bool group_new(group *g, lap_runner *runner, size_t count) {
    *g = (group){.runner = runner, .count = count};
    g->runs = calloc(count, sizeof *g->runs);
    g->begun = calloc(3 * count, sizeof *g->begun);
    g->order = calloc(count, sizeof *g->order);
    if (!g->runs || !g->begun || !g->order) return false;
    g->done = g->begun + count;
    g->alone = g->begun + 2 * count;
    return true;
}

static void group_free(group *g) {
    free(g->runs);
    free(g->begun);
    free(g->order);
}

static void one_by_one(lap_runner *runner, const lap_run_case *cases, lap_row *rows, size_t count) {
    for (size_t i = 0; i < count && !run_leaves(runner); i++) {
        if (interrupted(runner)) {
            skip(runner, &cases[i], &rows[i]);
            continue;
        }
        lap_runner_case(runner, &cases[i], &rows[i]);
        run_tell(runner, LAP_ROW_FINISHED, &cases[i], &rows[i]);
    }
}

void lap_runner_cases(lap_runner *runner, const lap_run_case *cases, lap_row *rows, size_t count) {
    for (size_t at = 0; at < count && !run_leaves(runner);) {
        size_t n = 1;
        while (at + n < count && same_network(&cases[at], &cases[at + n]))
            n++;
        group g = {0};
        if (to_interleave(runner, &cases[at], n) && group_new(&g, runner, n)) {
            time_together(&g, &cases[at], &rows[at]);
            time_alone(&g, &cases[at], &rows[at]);
        } else {
            one_by_one(runner, &cases[at], &rows[at], n);
        }
        group_free(&g);
        at += n;
    }
}
