/* One case, in order: open, build, upload, first inference, verify, warm up, measure, verify again,
 * layers, throughput. The first failure ends the row; what was measured before it stays, unless
 * verification failed. */
#include "app/case_options.h"
#include "app/runner_internal.h"

#include "base/clock.h"
#include "device/build_cache.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lap_runner_free(lap_runner *runner) {
    lap_expected_free(&runner->expected);
    lap_weights_free(runner->weights);
    lap_net_free(runner->net);
    runner->weights = NULL;
    runner->net = NULL;
}

void lap_runner_describe(const lap_run_case *c, lap_row *row) {
    lap_row_init(row);
    row->device = *c->device;
    snprintf(row->network, sizeof row->network, "%s", c->model);
    row->height = c->height;
    row->width = c->width;
    row->batch = c->batch;
    snprintf(row->precision, sizeof row->precision, "%s", lap_precision_name(c->precision));
    row->modes = (c->latency ? LAP_MODE_LATENCY : 0u) | (c->throughput ? LAP_MODE_THROUGHPUT : 0u) |
                 LAP_MODE_VERIFY;
    row->concurrent.set = c->set;
    row->concurrent.alone_row = c->alone;
}

static lap_status load_all(lap_runner *runner, const lap_run_case *c, lap_error *err) {
    const lap_config *config = runner->config;
    LAP_TRY(lap_net_build(c->model, c->height, c->width, &runner->net, err));
    double begun = lap_clock_now();
    lap_meter_step(runner->meter, "%s %dx%d: weights", c->model, c->height, c->width);
    LAP_TRY(lap_weights_load(runner->net, config->network.weights, &runner->weights, err));
    runner->weights_s = lap_some(lap_clock_now() - begun);
    const lap_tensor *in = &runner->net->tensors[0];
    lap_input *input = NULL;
    LAP_TRY(lap_input_open(config->network.input, in->c, in->h, in->w, &input, err));
    begun = lap_clock_now();
    lap_meter_step(runner->meter, "%s %dx%d: reference in double precision", c->model, c->height,
                   c->width);
    lap_status status =
        lap_expected_new(runner->net, runner->weights, input, config->verify.images,
                         config->verify.mode == LAP_VERIFY_OFF, lap_meter_progress, runner->meter,
                         &(lap_interrupt){runner->interrupted, NULL}, &runner->expected, err);
    lap_input_free(input);
    runner->reference_s = lap_some(lap_clock_now() - begun);
    return status;
}

/* The network, its weights and reference logits: kept while model and size stay the same, all of
 * them or none. */
lap_status run_prepare(lap_runner *runner, const lap_run_case *c, lap_error *err) {
    const lap_net *net = runner->net;
    if (net && strcmp(net->model, c->model) == 0 && net->height == c->height &&
        net->width == c->width)
        return LAP_OK;
    lap_runner_free(runner);
    lap_status status = load_all(runner, c, err);
    if (status != LAP_OK) lap_runner_free(runner);
    return status;
}

static const char *choice_name(const lap_case_run *run, int step) {
    lap_kernels kernels = run->runner->config->run.kernels;
    if (kernels == LAP_KERNELS_TUNED && !lap_plan_chosen(run->plan, step))
        kernels = LAP_KERNELS_DEFAULT;
    return lap_kernels_name(kernels);
}

static lap_status note_kernels(lap_case_run *run, lap_error *err) {
    bool ok = true;
    int tuned = 0;
    for (int i = 0; i < lap_plan_step_count(run->plan) && ok; i++) {
        const lap_kernel_row *kernel = lap_plan_row(run->plan, i);
        char params[192];
        lap_kernel_params_text(kernel, lap_plan_params(run->plan, i), params, sizeof params);
        ok = lap_row_add_kernel(run->row, lap_plan_step_name(run->plan, i), kernel->id, params,
                                choice_name(run, i));
        tuned += lap_plan_chosen(run->plan, i);
        const char *fallback = lap_plan_fallback(run->plan, i);
        if (ok && *fallback && lap_plan_build_id(run->plan, i) == i)
            ok = lap_row_note(run->row, "%s: kernels passed over: %s",
                              lap_plan_step_name(run->plan, i), fallback);
    }
    int steps = lap_plan_step_count(run->plan);
    if (ok && run->options.chooser && tuned < steps)
        ok = lap_row_note(run->row,
                          "tuned: the store has kernels for %d of %d steps on this device, driver "
                          "and batch; the others are defaults",
                          tuned, steps);
    return ok ? LAP_OK : LAP_FAIL(err, LAP_E_NOMEM, "no memory for the row");
}

static lap_status run_plan(void *context, lap_error *err) {
    return lap_plan_run(context, err);
}

lap_status run_open(lap_case_run *run, lap_error *err) {
    LAP_TRY(lap_session_open(run->c->device, &run->session, err));
    lap_device_use_cache(run->session->device, run->runner->cache);
    return LAP_OK;
}

static void note_builds(lap_case_run *run) {
    uint64_t cached, compiled;
    lap_device_build_counts(run->session->device, &cached, &compiled);
    run->row->cold.build_cached = lap_some((double)cached);
    run->row->cold.build_compiled = lap_some((double)compiled);
    const char *problem = lap_build_cache_problem(run->runner->cache);
    if (!*problem || run->runner->cache_problem_told) return;
    lap_row_note(run->row, "%s", problem);
    run->runner->cache_problem_told = true; /* it concerns all rows alike */
}

/* Open, build, upload, bind, first inference: the cold costs. */
static lap_status start(lap_case_run *run, lap_error *err) {
    lap_runner *runner = run->runner;
    lap_meter_step(runner->meter, "%s: building kernels", run->label);
    LAP_TRY(run_open(run, err));
    run->row->cold.open_s = lap_some(run->session->open_s);
    double t0 = lap_clock_now();
    LAP_TRY(lap_plan_new(run->session, runner->net, &run->options, lap_meter_progress,
                         runner->meter, &run->plan, err));
    double t1 = lap_clock_now();
    run->row->cold.build_s = lap_some(t1 - t0);
    note_builds(run);
    LAP_TRY(note_kernels(run, err));
    LAP_TRY(run_fits(run, run->plan, run->c->batch, err));
    t1 = lap_clock_now();
    LAP_TRY(lap_plan_upload(run->plan, runner->weights, err));
    run->row->cold.upload_s = lap_some(lap_clock_now() - t1);
    LAP_TRY(lap_plan_bind(run->plan, err));
    LAP_TRY(lap_plan_set_input(run->plan, runner->expected.images, runner->expected.count, err));
    LAP_TRY(lap_timing_open(run->session->queue, &run->timing, err));
    lap_workload workload = {run_plan, run->plan};
    double first;
    LAP_TRY(lap_measure_once(&workload, &run->timing, &first, err));
    run->row->cold.first_s = lap_some(first);
    return LAP_OK;
}

static void copy_report(lap_case_run *run) {
    const lap_check_report *report = &run->report;
    lap_row_verified *v = &run->row->verified;
    v->has = report->mode != LAP_CHECK_OFF;
    v->passed = report->passed;
    snprintf(v->mode, sizeof v->mode, "%s", lap_verify_mode_name(run->runner->config->verify.mode));
    if (report->has_logits) v->logits_rel_l2 = lap_some(report->logits_rel_l2);
    if (report->limit > 0) v->limit = lap_some(report->limit);
    v->exact_layers = report->exact_layers;
    v->real_layers = report->real_layers;
    snprintf(v->first_wrong, sizeof v->first_wrong, "%s", report->first_wrong);
}

static lap_check_mode check_mode(const lap_config *config) {
    switch (config->verify.mode) {
    case LAP_VERIFY_FULL:
        return LAP_CHECK_FULL;
    case LAP_VERIFY_QUICK:
        return LAP_CHECK_QUICK;
    case LAP_VERIFY_OFF:
        break;
    }
    return LAP_CHECK_OFF;
}

static lap_status verify(lap_case_run *run, lap_error *err) {
    lap_runner *runner = run->runner;
    run->report.mode = check_mode(runner->config);
    if (run->report.mode == LAP_CHECK_OFF) {
        lap_row_note(run->row, "not verified: [verify] mode = off");
        return LAP_OK;
    }
    lap_meter_step(runner->meter, "%s: verifying", run->label);
    lap_status status = lap_check_layers(run->session, runner->net, runner->weights, &run->options,
                                         runner->expected.images, run->report.mode,
                                         lap_meter_progress, runner->meter, &run->report, err);
    if (status == LAP_OK)
        status = lap_check_logits(run->plan, runner->net, &runner->expected, run->c->batch,
                                  run->c->precision, &run->logits, &run->report, err);
    return status;
}

static lap_status write_logits(lap_case_run *run, lap_error *err) {
    lap_runner *runner = run->runner;
    if (!runner->logits_path || !run->logits) return LAP_OK;
    uint64_t shape[] = {run->c->batch, (uint64_t)runner->net->classes};
    const char *path = runner->logits_path;
    runner->logits_path = NULL; /* the first verified row's only */
    return lap_npy_write(path, run->logits, shape, 2, runner->config->output.force, err);
}

/* The launch floor of the route, asked once for each device. A build that fails costs the floor,
 * not the row. */
static lap_status find_floor(lap_case_run *run, lap_error *err) {
    lap_runner *runner = run->runner;
    const char *selector = run->c->device->selector;
    for (size_t i = 0; i < runner->floor_count; i++)
        if (strcmp(runner->floors[i].selector, selector) == 0) {
            run->row->floor = runner->floors[i].floor;
            return LAP_OK;
        }
    lap_error detail = {0};
    lap_status status =
        lap_floor_of_queue(run->session->queue, &run->timing, &run->row->floor, &detail);
    if (status == LAP_E_BUILD || status == LAP_E_UNSUPPORTED) {
        char text[512];
        lap_error_text(&detail, text, sizeof text);
        lap_row_note(run->row, "no launch floor: %s", text);
        return LAP_OK;
    }
    if (status != LAP_OK) {
        if (err) *err = detail;
        return status;
    }
    if (runner->floor_count < sizeof runner->floors / sizeof *runner->floors) {
        snprintf(runner->floors[runner->floor_count].selector,
                 sizeof runner->floors[runner->floor_count].selector, "%s", selector);
        runner->floors[runner->floor_count++].floor = run->row->floor;
    }
    return LAP_OK;
}

/* Rows that take turns stand idle in between: untimed runs before each block but the first. */
#define REWARM_SECONDS 0.05

double run_rewarm_seconds(const lap_runner *runner) {
    return runner->rewarm_s > 0 ? runner->rewarm_s : REWARM_SECONDS;
}

lap_workload run_workload(lap_case_run *run) {
    return (lap_workload){run_plan, run->plan};
}

lap_status run_latency_prepare(lap_case_run *run, lap_error *err) {
    lap_runner *runner = run->runner;
    LAP_TRY(find_floor(run, err));
    if (runner->config->run.telemetry)
        LAP_TRY(lap_telemetry_start(run->c->device, "", &run->telemetry, err));
    lap_latency_options *options = &run->latency_options;
    *options =
        lap_case_latency_options(runner->config, &run->row->floor, run_rewarm_seconds(runner));
    options->telemetry = run->telemetry;
    options->interrupted = runner->interrupted;
    options->progress = lap_meter_progress;
    options->context = runner->meter;
    return run_cache_open(run, options, err);
}

lap_status run_latency_begin(lap_case_run *run, lap_error *err) {
    lap_meter_step(run->runner->meter, "%s: latency", run->label);
    LAP_TRY(run_latency_prepare(run, err));
    lap_workload workload = run_workload(run);
    return lap_latency_begin(&run->latency, &workload, &run->timing, &run->latency_options,
                             &run->row->latency, err);
}

lap_status run_latency_block(lap_case_run *run, size_t samples, bool *done, lap_error *err) {
    return lap_latency_block(&run->latency, samples, done, err);
}

lap_status run_latency_end(lap_case_run *run, lap_status status, lap_error *err) {
    lap_runner *runner = run->runner;
    lap_telemetry_stop(run->telemetry, &run->row->telemetry);
    run->telemetry = NULL;
    if (run->latency.out) status = lap_latency_end(&run->latency, status, err);
    run_cache_close(run);
    if (!run->logits || !run->row->latency.has)
        return status; /* verification is off, or no times */
    lap_error detail = {0};
    lap_status check = lap_check_unchanged(run->plan, runner->net, run->c->batch, run->logits,
                                           &run->report, &detail);
    run->row->verified.rerun_same = check == LAP_OK;
    copy_report(run);
    if (check == LAP_OK) return status; /* an interrupted run keeps what it has, verified */
    /* Times whose results could not be verified are none, whatever the reason. */
    lap_latency_free(&run->row->latency);
    if (err) *err = detail;
    return check;
}

lap_status run_latency(lap_case_run *run, lap_error *err) {
    if (!run->c->latency) return LAP_OK;
    bool done = false;
    lap_status status = run_latency_begin(run, err);
    while (status == LAP_OK && !done)
        status = run_latency_block(run, SIZE_MAX, &done, err);
    return run_latency_end(run, status, err);
}

/* The layer table. Running every layer in turn is a pass too: the logits must still be the same. */
static lap_status layers(lap_case_run *run, lap_error *err) {
    lap_row *row = run->row;
    lap_status status = run_layers(run, err);
    if (status == LAP_OK && run->logits)
        status = lap_check_unchanged(run->plan, run->runner->net, run->c->batch, run->logits,
                                     &run->report, err);
    for (size_t i = 0; status != LAP_OK && i < row->layer_count; i++)
        row->layers[i].device_s = lap_none();
    if (status != LAP_OK) row->layer_sum = (lap_layer_sum){0};
    return status;
}

void run_finish_plan(lap_case_run *run) {
    lap_timing_close(&run->timing);
    lap_plan_free(run->plan);
    run->plan = NULL;
}

lap_status run_setup(lap_case_run *run, lap_error *err) {
    lap_runner *runner = run->runner;
    runner->weights_s = runner->reference_s = lap_none();
    LAP_TRY(run_prepare(runner, run->c, err));
    run->row->cold.weights_s = runner->weights_s;
    run->row->cold.reference_s = runner->reference_s;
    run->row->work = (lap_row_work){lap_net_macs(runner->net), lap_net_flops(runner->net),
                                    lap_net_fvcore(runner->net)};
    LAP_TRY(start(run, err));
    bool captured;
    LAP_TRY(lap_plan_capture(run->plan, &captured, err));
    lap_status status = verify(run, err);
    if (status != LAP_E_INTERRUPTED) copy_report(run); /* half a check is none */
    LAP_TRY(status);
    return write_logits(run, err);
}

lap_status run_rest(lap_case_run *run, lap_error *err) {
    if (run->c->latency && run->runner->config->latency.copies) LAP_TRY(run_copies(run, err));
    if (run->runner->config->output.layers) {
        lap_status status = layers(run, err);
        copy_report(run);
        LAP_TRY(status);
    }
    run_finish_plan(run);
    return LAP_OK;
}

lap_status run_throughput_if(lap_case_run *run, lap_error *err) {
    if (!run->c->throughput) return LAP_OK;
    LAP_TRY(run_throughput(run, err));
    if (run->runner->config->throughput.pipeline) LAP_TRY(run_pipeline(run, err));
    return run_streams(run, err);
}

void run_init(lap_case_run *run, lap_runner *runner, const lap_run_case *c, lap_row *row) {
    lap_runner_describe(c, row);
    *run = (lap_case_run){.runner = runner,
                          .c = c,
                          .row = row,
                          .options = {.batch = c->batch,
                                      .precision = c->precision,
                                      .naive = runner->config->run.kernels == LAP_KERNELS_NAIVE,
                                      .unfused = runner->config->run.kernels == LAP_KERNELS_UNFUSED,
                                      .prefer = runner->config->run.prefer,
                                      .exclude = runner->config->run.exclude,
                                      .overlap = runner->config->run.overlap,
                                      .interrupt = {runner->interrupted, NULL}}};
    if (runner->config->run.kernels == LAP_KERNELS_TUNED && runner->tuned) {
        run->options.chooser = lap_tune_store_choose;
        run->options.chooser_context = runner->tuned;
    }
    snprintf(run->label, sizeof run->label, "%s batch %" PRIu64, c->device->selector, c->batch);
    run_tell(runner, LAP_ROW_BEGUN, c, row);
}

bool run_leaves(const lap_runner *runner) {
    bool stopped = runner->interrupted && runner->interrupted(NULL);
    return runner->leave_when_lost && runner->lost && !stopped; /* then all are skipped here */
}

void run_tell(const lap_runner *runner, lap_runner_event event, const lap_run_case *c,
              lap_row *row) {
    if (runner->event) runner->event(runner->event_context, event, c, row);
}

void run_tell_so_far(const lap_case_run *run) {
    if (run->status == LAP_OK) run_tell(run->runner, LAP_ROW_SO_FAR, run->c, run->row);
}

void run_stage(lap_case_run *run, lap_case_stage stage) {
    if (run->status == LAP_OK) run->status = stage(run, &run->err);
}

lap_status run_release(lap_case_run *run, lap_error *err) {
    run_cache_close(run);
    if (run->telemetry) lap_telemetry_stop(run->telemetry, &run->row->telemetry);
    run->telemetry = NULL;
    run_finish_plan(run);
    free(run->logits);
    run->logits = NULL;
    lap_session *session = run->session;
    run->session = NULL;
    return lap_session_close(session, err);
}

void run_close(lap_case_run *run) {
    lap_error closing = {0};
    lap_status closed = run_release(run, &closing);
    if (run->status != LAP_OK) lap_row_fail(run->row, run->status, &run->err);
    if (closed != LAP_OK) lap_row_fail(run->row, closed, &closing);
    run->runner->lost |= run->row->cause == LAP_E_DEVICE;
    lap_row_finish(run->row);
}

void lap_runner_case(lap_runner *runner, const lap_run_case *c, lap_row *row) {
    lap_case_run run;
    run_init(&run, runner, c, row);
    run_stage(&run, run_setup);
    run_stage(&run, run_latency);
    run_tell_so_far(&run);
    run_stage(&run, run_rest);
    run_tell_so_far(&run);
    run_stage(&run, run_throughput_if);
    run_close(&run);
}
