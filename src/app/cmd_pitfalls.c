/* `warmlap pitfalls`: the common mistakes of timing beside the right way, on each chosen device.
 * The network is verified like in every other command; the runs without warm-up come before that.
 */
#include "app/commands.h"
#include "app/options.h"
#include "app/outputs.h"
#include "app/runner_internal.h"
#include "report/lessons.h"
#include "report/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct job {
    const lap_options *options;
    const lap_config *config;
    lap_device_list *list;
    size_t *chosen, count;
    lap_pitfalls_row *rows;
    lap_style style;
    lap_meter meter;
    lap_runner runner;
} job;

static lap_run_case case_of(const job *j, size_t index) {
    const lap_config *config = j->config;
    lap_run_case c = {.device = &j->list->devices[j->chosen[index]],
                      .model = lap_config_model(config->network.model.values[0]),
                      .precision = (lap_precision)config->network.precision.values[0],
                      .batch = config->latency.batch.values[0],
                      .latency = true};
    lap_config_size(config, 0, &c.height, &c.width);
    return c;
}

/* The logits before and after, so that no wrong result gets a time. */
static lap_status verified(lap_case_run *run, const lap_pitfalls_job *work, lap_pitfalls *out,
                           lap_error *err) {
    lap_runner *runner = run->runner;
    lap_row_verified *v = &run->row->verified;
    bool verify = runner->config->verify.mode != LAP_VERIFY_OFF;
    run->report.mode = LAP_CHECK_QUICK;
    if (verify) {
        v->has = true;
        LAP_TRY(lap_check_logits(run->plan, runner->net, &runner->expected, run->c->batch,
                                 run->c->precision, &run->logits, &run->report, err));
    } else {
        lap_row_note(run->row, "not verified: [verify] mode = off");
    }
    LAP_TRY(lap_pitfalls_measure(work, out, err));
    if (verify)
        LAP_TRY(lap_check_unchanged(run->plan, runner->net, run->c->batch, run->logits,
                                    &run->report, err));
    v->passed = verify;
    return LAP_OK;
}

static lap_status work_on(lap_case_run *run, lap_pitfalls *out, lap_error *err) {
    lap_runner *runner = run->runner;
    const lap_config *config = runner->config;
    LAP_TRY(run_prepare(runner, run->c, err));
    lap_meter_step(runner->meter, "%s: building kernels", run->label);
    LAP_TRY(run_make_plan(run, run->c->batch, NULL, &run->plan, err));
    LAP_TRY(lap_timing_open(run->session->queue, &run->timing, err));
    void *packed = malloc(lap_plan_input_bytes(run->plan));
    if (!packed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the input");
    lap_status status = lap_plan_pack_input(run->plan, runner->expected.images,
                                            runner->expected.count, packed, err);
    lap_pitfalls_job work = {.plan = run->plan,
                             .packed = packed,
                             .timing = &run->timing,
                             .repetitions = (size_t)config->latency.repetitions,
                             .warmup_count = (size_t)config->latency.warmup.count,
                             .warmup_seconds = config->latency.warmup.seconds,
                             .max_seconds = config->latency.max_seconds,
                             .interrupted = lap_app_interrupted};
    lap_meter_step(runner->meter, "%s: pitfalls", run->label);
    if (status == LAP_OK) status = lap_pitfalls_cold(&work, out, err);
    if (status == LAP_OK) status = verified(run, &work, out, err);
    free(packed);
    return status;
}

static void measure(job *j, size_t index) {
    lap_run_case c = case_of(j, index);
    lap_pitfalls_row *row = &j->rows[index];
    lap_runner_describe(&c, &row->head);
    const lap_kernels kernels = j->config->run.kernels;
    lap_case_run run = {.runner = &j->runner,
                        .c = &c,
                        .row = &row->head,
                        .options = {.batch = c.batch,
                                    .precision = c.precision,
                                    .naive = kernels == LAP_KERNELS_NAIVE,
                                    .unfused = kernels == LAP_KERNELS_UNFUSED,
                                    .interrupt = {j->runner.interrupted, NULL}}};
    snprintf(run.label, sizeof run.label, "%s", c.device->selector);
    lap_error err = {0}, closing = {0};
    lap_status status = work_on(&run, &row->pitfalls, &err);
    lap_timing_close(&run.timing);
    lap_plan_free(run.plan);
    free(run.logits);
    if (status == LAP_E_INTERRUPTED) row->head.verified.has = false; /* half a check is none */
    if (status != LAP_OK) {
        lap_pitfalls_free(&row->pitfalls); /* half of a comparison is none */
        lap_row_fail(&row->head, status, &err);
    }
    status = lap_session_close(run.session, &closing);
    if (status != LAP_OK) lap_row_fail(&row->head, status, &closing);
}

static lap_status write_json(const job *j, const char *path, lap_error *err) {
    lap_text text = {0};
    lap_host_info host;
    char started[32];
    lap_report_setting settings[LAP_CONFIG_KEY_MAX];
    lap_host_info_read("", &host);
    lap_report_time(started);
    lap_report report = {.host = &host,
                         .settings = settings,
                         .setting_count = lap_config_settings(j->config, settings),
                         .started = started,
                         .samples = j->config->output.samples};
    lap_status status = lap_pitfalls_json(&report, j->rows, j->count, &text, err);
    if (status == LAP_OK)
        status =
            lap_output_save(path, lap_text_get(&text), text.length, j->config->output.force, err);
    lap_text_free(&text);
    return status;
}

static lap_status print(const job *j, lap_error *err) {
    const char *path = j->config->output.json;
    if (*path) LAP_TRY(write_json(j, path, err));
    if (strcmp(path, "-") == 0) return LAP_OK;
    lap_text text = {0};
    lap_status status = LAP_OK;
    for (size_t i = 0; i < j->count && status == LAP_OK; i++) {
        if (i) lap_text_add(&text, "\n");
        status = lap_pitfalls_text(&j->rows[i], &j->style, &text, err);
    }
    if (status == LAP_OK) fputs(lap_text_get(&text), stdout);
    lap_text_free(&text);
    return status;
}

static lap_status carry_out(job *j, int *exit_status, lap_error *err) {
    const lap_config *config = j->config;
    LAP_TRY(lap_outputs_check(j->options, 1, false, err));
    LAP_TRY(lap_device_enumerate(&j->list, err));
    LAP_TRY(lap_device_select(j->list, config->run.device, &j->chosen, &j->count, err));
    j->rows = calloc(j->count ? j->count : 1, sizeof *j->rows);
    if (!j->rows) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu rows", j->count);
    lap_style_query(STDERR_FILENO, &j->style);
    lap_meter_init(&j->meter, stderr, &j->style);
    lap_style_query(STDOUT_FILENO, &j->style);
    lap_app_watch_signals();
    j->runner =
        (lap_runner){.config = config, .meter = &j->meter, .interrupted = lap_app_interrupted};
    for (size_t i = 0; i < j->count; i++) {
        measure(j, i);
        int one = lap_rows_exit_status(&j->rows[i].head, 1);
        if (one > *exit_status) *exit_status = one;
    }
    lap_meter_clear(&j->meter);
    if (lap_app_interrupted(NULL)) *exit_status = LAP_EXIT_INTERRUPTED;
    lap_status status = print(j, err);
    /* The configuration was fine; what failed is the run. */
    if (status != LAP_OK && *exit_status == LAP_EXIT_OK) *exit_status = LAP_EXIT_FAILED;
    return status;
}

static void job_free(job *j) {
    for (size_t i = 0; j->rows && i < j->count; i++) {
        lap_row_free(&j->rows[i].head);
        lap_pitfalls_free(&j->rows[i].pitfalls);
    }
    free(j->rows);
    free(j->chosen);
    lap_runner_free(&j->runner);
    lap_device_list_free(j->list);
}

int cmd_pitfalls(int argc, char **argv) {
    lap_error err = {0};
    lap_options options;
    if (lap_options_parse(LAP_COMMAND_PITFALLS, argc, argv, &options, &err) != LAP_OK)
        return lap_app_complain(&err);
    int status = LAP_EXIT_OK;
    if (options.action == LAP_ACTION_HELP) {
        status = lap_app_print_help(LAP_COMMAND_PITFALLS);
    } else if (options.action == LAP_ACTION_HELP_CONFIG) {
        status = lap_app_print_text(lap_config_help_markdown);
    } else if (options.action == LAP_ACTION_DUMP_CONFIG) {
        status = lap_app_print_config(options.config);
    } else {
        job j = {.options = &options, .config = options.config};
        if (carry_out(&j, &status, &err) != LAP_OK) {
            int failure = lap_app_complain(&err);
            if (status == LAP_EXIT_OK) status = failure;
        }
        job_free(&j);
    }
    lap_options_free(&options);
    return status;
}
