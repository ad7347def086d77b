/* `warmlap run` and `warmlap verify`: plan the cases, work on each, render what came out. Results
 * go to standard output and the files asked for, everything else to standard error. */
#include "app/commands.h"
#include "app/options.h"
#include "app/runner.h"
#include "app/tune_cases.h"
#include "device/build_cache.h"
#include "report/output.h"
#include "report/report.h"
#include "report/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- planning ------------------------------------------------------------------------------- */

typedef struct job {
    lap_command command;
    const lap_options *options;
    const lap_config *config;
    lap_device_list *list;
    size_t *chosen;
    size_t chosen_count;
    lap_run_case *cases;
    lap_row *rows;
    size_t count;
    lap_style style;
    lap_meter meter;
    lap_host_info host;
    char started[32];
} job;

static void job_free(job *j) {
    for (size_t i = 0; j->rows && i < j->count; i++)
        lap_row_free(&j->rows[i]);
    free(j->rows);
    free(j->cases);
    free(j->chosen);
    lap_device_list_free(j->list);
}

/* The batches of a group; throughput is searched once per group and stands in its first row. */
static size_t add_batches(const job *j, size_t at, lap_run_case base) {
    const lap_config *config = j->config;
    bool timing = j->command == LAP_COMMAND_RUN;
    bool latency = timing && lap_config_has_mode(config, LAP_RUN_LATENCY);
    bool throughput = timing && lap_config_has_mode(config, LAP_RUN_THROUGHPUT);
    /* Without latency there is nothing to repeat for every batch. */
    size_t batches = latency || !timing ? config->latency.batch.count : 1;
    for (size_t b = 0; b < batches; b++) {
        base.batch = config->latency.batch.values[b];
        base.latency = latency;
        base.throughput = throughput && b == 0;
        if (j->cases) j->cases[at] = base;
        at++;
    }
    return at;
}

static size_t add_cases(const job *j) {
    const lap_config *config = j->config;
    size_t at = 0;
    for (size_t m = 0; m < config->network.model.count; m++)
        for (size_t s = 0; s < lap_config_size_count(config); s++)
            for (size_t d = 0; d < j->chosen_count; d++)
                for (size_t p = 0; p < config->network.precision.count; p++) {
                    lap_run_case base = {.device = &j->list->devices[j->chosen[d]],
                                         .model = lap_config_model(config->network.model.values[m]),
                                         .precision =
                                             (lap_precision)config->network.precision.values[p]};
                    lap_config_size(config, s, &base.height, &base.width);
                    at = add_batches(j, at, base);
                }
    return at;
}

static lap_status plan_cases(job *j, lap_error *err) {
    j->count = add_cases(j);
    j->cases = calloc(j->count, sizeof *j->cases);
    j->rows = calloc(j->count, sizeof *j->rows);
    if (!j->cases || !j->rows)
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu rows", j->count);
    add_cases(j);
    return LAP_OK;
}

/* Everything that can be known to be wrong before hours of measuring. */
static lap_status check_inputs(const job *j, lap_error *err) {
    const lap_config *config = j->config;
    const char *paths[] = {config->output.json, config->output.csv, config->output.markdown,
                           j->options->logits ? j->options->logits : ""};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (*paths[i]) LAP_TRY(lap_output_check(paths[i], config->output.force, err));
    for (size_t m = 0; m < config->network.model.count; m++)
        for (size_t s = 0; s < lap_config_size_count(config); s++) {
            int height, width;
            lap_config_size(config, s, &height, &width);
            lap_net *net = NULL;
            LAP_TRY(lap_net_build(lap_config_model(config->network.model.values[m]), height, width,
                                  &net, err));
            lap_weights *weights = NULL;
            lap_input *input = NULL;
            const lap_tensor *in = &net->tensors[0];
            /* Generated weights cannot be wrong, and take a while. */
            lap_status status = LAP_OK;
            if (strncmp(config->network.weights, "synthetic:", 10) != 0)
                status = lap_weights_load(net, config->network.weights, &weights, err);
            if (status == LAP_OK)
                status = lap_input_open(config->network.input, in->c, in->h, in->w, &input, err);
            lap_input_free(input);
            lap_weights_free(weights);
            lap_net_free(net);
            LAP_TRY(status);
        }
    return LAP_OK;
}

/* ---- results -------------------------------------------------------------------------------- */

static lap_status render(const job *j, const lap_report *report, lap_error *err) {
    const lap_config *config = j->config;
    typedef lap_status (*renderer)(const lap_report *, lap_text *, lap_error *);
    const struct {
        const char *path;
        renderer render;
    } documents[] = {{config->output.json, lap_report_json},
                     {config->output.csv, lap_report_csv},
                     {config->output.markdown, lap_report_markdown}};
    bool stdout_taken = false;
    lap_status worst = LAP_OK;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        const char *path = documents[i].path;
        if (!*path) continue;
        stdout_taken |= strcmp(path, "-") == 0;
        lap_text text = {0};
        lap_error detail = {0};
        lap_status status = documents[i].render(report, &text, &detail);
        if (status == LAP_OK)
            status = lap_output_save(path, lap_text_get(&text), text.length, config->output.force,
                                     &detail);
        lap_text_free(&text);
        /* One document that cannot be written must not cost the others. */
        if (status != LAP_OK && worst == LAP_OK) {
            worst = status;
            if (err) *err = detail;
        }
    }
    if (stdout_taken) return worst;
    lap_text text = {0};
    lap_status status = lap_report_table(report, &j->style, &text, worst == LAP_OK ? err : NULL);
    if (status == LAP_OK) lap_text_add(&text, "\n");
    for (size_t i = 0; status == LAP_OK && i < report->row_count; i++)
        status = lap_report_extras(&report->rows[i], &j->style, &text, err);
    for (size_t i = 0; status == LAP_OK && config->output.layers && i < report->row_count; i++)
        status = lap_report_layers(&report->rows[i], &j->style, &text, err);
    if (status == LAP_OK) fputs(lap_text_get(&text), stdout);
    lap_text_free(&text);
    return worst != LAP_OK ? worst : status;
}

enum { MAX_LIBRARIES = 8 };

static lap_status report_rows(const job *j, lap_error *err) {
    lap_report_library libraries[MAX_LIBRARIES];
    char versions[MAX_LIBRARIES][256];
    size_t count = 0;
    const char *name, *version;
    for (; count < MAX_LIBRARIES && lap_app_library(count, &name, &version); count++) {
        snprintf(versions[count], sizeof versions[count], "%s", version);
        libraries[count] = (lap_report_library){name, versions[count]};
    }
    lap_report_setting settings[LAP_CONFIG_KEY_MAX];
    lap_report report = {.host = &j->host,
                         .settings = settings,
                         .setting_count = lap_config_settings(j->config, settings),
                         .libraries = libraries,
                         .library_count = count,
                         .started = j->started,
                         .rows = j->rows,
                         .row_count = j->count,
                         .samples = j->config->output.samples};
    return render(j, &report, err);
}

/* ---- the command ---------------------------------------------------------------------------- */

/* What kernels = tuned goes by; tuned first where --tune asks for it. */
static lap_status load_tuned(job *j, lap_tune_store *out, lap_error *err) {
    char *path;
    if (j->config->run.kernels != LAP_KERNELS_TUNED) return LAP_OK;
    LAP_TRY(lap_tune_store_path(j->config->run.tune_store, &path, err));
    lap_status status = LAP_OK;
    if (j->options->tune) {
        lap_app_tune_job tune = {.config = j->config,
                                 .list = j->list,
                                 .chosen = j->chosen,
                                 .chosen_count = j->chosen_count,
                                 .meter = &j->meter,
                                 .seconds = j->options->seconds,
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

static lap_status work_on_cases(job *j, lap_error *err) {
    lap_tune_store tuned = {0};
    LAP_TRY(load_tuned(j, &tuned, err));
    lap_build_cache *cache = NULL;
    if (j->config->run.cache) {
        lap_status status = lap_build_cache_open(NULL, 0, &cache, err);
        if (status != LAP_OK) {
            lap_tune_store_free(&tuned);
            return status;
        }
    }
    lap_runner runner = {.config = j->config,
                         .cache = cache,
                         .tuned = &tuned,
                         .meter = &j->meter,
                         .interrupted = lap_app_interrupted,
                         .logits_path = j->options->logits};
    lap_runner_cases(&runner, j->cases, j->rows, j->count);
    lap_meter_clear(&j->meter);
    lap_runner_free(&runner);
    lap_build_cache_close(cache);
    lap_tune_store_free(&tuned);
    return LAP_OK;
}

static lap_status carry_out(job *j, int *exit_status, lap_error *err) {
    LAP_TRY(check_inputs(j, err));
    LAP_TRY(lap_device_enumerate(&j->list, err));
    LAP_TRY(lap_device_select(j->list, j->config->run.device, &j->chosen, &j->chosen_count, err));
    LAP_TRY(plan_cases(j, err));
    lap_style_query(STDERR_FILENO, &j->style);
    lap_meter_init(&j->meter, stderr, &j->style);
    lap_style_query(STDOUT_FILENO, &j->style);
    lap_host_info_read("", &j->host);
    lap_report_time(j->started);
    lap_app_watch_signals();
    LAP_TRY(work_on_cases(j, err));
    *exit_status =
        lap_app_interrupted(NULL) ? LAP_EXIT_INTERRUPTED : lap_rows_exit_status(j->rows, j->count);
    lap_status status = report_rows(j, err);
    /* The configuration was fine; what failed is the run. */
    if (status != LAP_OK && *exit_status == LAP_EXIT_OK) *exit_status = LAP_EXIT_FAILED;
    return status;
}

int lap_app_print_text(void (*write)(lap_text *)) {
    lap_text text = {0};
    write(&text);
    fputs(lap_text_get(&text), stdout);
    bool failed = text.failed;
    lap_text_free(&text);
    return failed ? LAP_EXIT_FAILED : LAP_EXIT_OK;
}

int lap_app_print_help(lap_command command) {
    lap_text text = {0};
    lap_options_help(command, &text);
    fputs(lap_text_get(&text), stdout);
    lap_text_free(&text);
    return LAP_EXIT_OK;
}

int lap_app_print_config(const lap_config *config) {
    lap_text text = {0};
    lap_config_dump(config, &text);
    fputs(lap_text_get(&text), stdout);
    lap_text_free(&text);
    return LAP_EXIT_OK;
}

static int command(lap_command which, int argc, char **argv) {
    lap_error err = {0};
    lap_options options;
    if (lap_options_parse(which, argc, argv, &options, &err) != LAP_OK)
        return lap_app_complain(&err);
    int status = LAP_EXIT_OK;
    switch (options.action) {
    case LAP_ACTION_HELP:
        status = lap_app_print_help(which);
        break;
    case LAP_ACTION_HELP_CONFIG:
        status = lap_app_print_text(lap_config_help_markdown);
        break;
    case LAP_ACTION_DUMP_CONFIG:
        status = lap_app_print_config(options.config);
        break;
    case LAP_ACTION_RUN: {
        job j = {.command = which, .options = &options, .config = options.config};
        /* A row that failed says so itself; what is complained about here is everything else. */
        if (carry_out(&j, &status, &err) != LAP_OK) {
            int failure = lap_app_complain(&err);
            if (status == LAP_EXIT_OK) status = failure;
        }
        job_free(&j);
    }
    }
    lap_options_free(&options);
    return status;
}

int cmd_run(int argc, char **argv) {
    return command(LAP_COMMAND_RUN, argc, argv);
}

int cmd_verify(int argc, char **argv) {
    return command(LAP_COMMAND_VERIFY, argc, argv);
}
