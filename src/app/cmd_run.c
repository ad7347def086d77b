/* `warmlap run` and `warmlap verify`: plan the cases, work on each, render what came out. Results
 * go to standard output and the files asked for, everything else to standard error. */
#include "app/commands.h"
#include "app/outputs.h"
#include "app/run_fleet.h"
#include "app/run_job.h"
#include "app/run_sets.h"
#include "fleet/fleet.h"
#include "report/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- planning ------------------------------------------------------------------------------- */

/* The batches of a group; throughput is searched once per group and stands in its first row. */
static size_t add_batches(const lap_job *j, size_t at, lap_run_case base) {
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

static size_t add_cases(const lap_job *j) {
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

lap_status lap_job_plan(lap_job *j, size_t *count, lap_error *err) {
    LAP_TRY(lap_device_enumerate(&j->list, err));
    LAP_TRY(lap_device_select(j->list, j->config->run.device, &j->chosen, &j->chosen_count, err));
    if (j->fleet) { /* this rank's own, of those of its host */
        j->chosen[0] = j->chosen[j->fleet->local_rank % j->chosen_count];
        j->chosen_count = 1;
    }
    size_t lone = *count = add_cases(j);
    if (j->options->logits && lone != 1)
        return LAP_FAIL(
            err, LAP_E_CONFIG,
            "--logits %.200s: %zu rows are to be verified, and the file holds the logits "
            "of one; expected one device, model, size, precision and batch (--device "
            "SEL, --set network:precision=fp32, --set latency:batch=1, ...), and a file "
            "for each row",
            j->options->logits, lone);
    bool concurrent = j->command == LAP_COMMAND_RUN && j->config->run.concurrent;
    j->cases = calloc(concurrent || j->fleet ? 2 * lone : lone, sizeof *j->cases);
    if (!j->cases) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu rows", *count);
    add_cases(j);
    for (size_t i = 0; j->fleet && i < lone; i++) {
        j->cases[*count] = j->cases[i];
        j->cases[*count].set = i + 1;
        j->cases[(*count)++].alone = i;
    }
    if (!concurrent) return LAP_OK;
    LAP_TRY(lap_app_add_sets(j->cases, lone, count, err));
    if (*count > lone) return LAP_OK;
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "[run] concurrent = yes: device = %s selects %zu route%s to one device; "
                    "expected two devices or more (--device all, or their selectors)",
                    j->config->run.device, j->chosen_count, j->chosen_count == 1 ? "" : "s");
}

/* The user's own store may be missing, as it is before the first tuning; one that is named may not:
 * nothing tuned would be run. */
static lap_status check_store(const lap_job *j, lap_error *err) {
    const char *store = j->config->run.tune_store;
    if (j->config->run.kernels != LAP_KERNELS_TUNED || j->options->tune || !*store ||
        access(store, F_OK) == 0)
        return LAP_OK;
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "[run] tune_store (%.300s): there is no '%.400s'; expected a tune store "
                    "(`warmlap tune --store FILE` makes one, as does `run --tune`)",
                    lap_config_origin(j->config, "run", "tune_store"), store);
}

/* Everything that can be known to be wrong before hours of measuring. */
static lap_status check_inputs(const lap_job *j, lap_error *err) {
    const lap_config *config = j->config;
    LAP_TRY(lap_outputs_check(j->options, LAP_DOCUMENTS, j->documents.resuming, err));
    LAP_TRY(check_store(j, err));
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

/* ---- the command ---------------------------------------------------------------------------- */

/* A run that is taken up again keeps its id and date, and says when that was. */
static void begin_documents(lap_job *j) {
    lap_documents *d = &j->documents;
    const lap_document *before = j->options->resumed;
    d->config = j->config;
    lap_host_info_read("", &d->host);
    lap_report_time(d->started);
    lap_report_run_id(d->run_id);
    if (!before) return;
    const char *id = json_string_value(json_object_get(before->json, "run_id"));
    if (id) snprintf(d->run_id, sizeof d->run_id, "%.39s", id);
    d->resuming = lap_output_same(j->config->output.json, before->path);
    json_t *list = json_object_get(before->json, "resumed");
    for (size_t i = 0; i < json_array_size(list) && d->resumed_count + 1 < LAP_RESUMED_MOST; i++) {
        const char *time = json_string_value(json_array_get(list, i));
        if (time) snprintf(d->resumed[d->resumed_count++], sizeof d->resumed[0], "%.31s", time);
    }
    snprintf(d->resumed[d->resumed_count++], sizeof d->resumed[0], "%s", d->started);
    snprintf(d->started, sizeof d->started, "%.31s", before->started);
}

static lap_status carry_out(lap_job *j, int *exit_status, lap_error *err) {
    bool fleet = j->command == LAP_COMMAND_RUN && lap_app_fleet_wanted(j->config);
    if (j->options->resumed && (fleet || j->config->run.concurrent))
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "--resume: rows at the same time cannot be taken up again one by one; "
                        "expected a run without concurrent and without a fleet");
    if (fleet) {
        bool alone;
        lap_status status = lap_app_run_fleet(j, check_inputs, &alone, exit_status, err);
        if (status != LAP_OK && *exit_status == LAP_EXIT_OK)
            *exit_status = lap_app_exit_status(status);
        if (status != LAP_OK || !alone) return status;
    }
    begin_documents(j);
    LAP_TRY(check_inputs(j, err));
    LAP_TRY(lap_job_run(j, err));
    lap_row *rows = lap_job_rows(j);
    if (!rows) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu rows", j->count);
    *exit_status =
        lap_app_interrupted(NULL) ? LAP_EXIT_INTERRUPTED : lap_rows_exit_status(rows, j->count);
    lap_style style;
    lap_style_query(STDOUT_FILENO, &style);
    lap_status status = lap_documents_finish(&j->documents, rows, j->count, &style, err);
    free(rows);
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

/* A command that would do nothing of what it is for is a mistake. */
static lap_status check_purpose(lap_command which, const lap_config *config, lap_error *err) {
    if (which != LAP_COMMAND_VERIFY || config->verify.mode != LAP_VERIFY_OFF) return LAP_OK;
    return LAP_FAIL(err, LAP_E_ARG,
                    "warmlap verify with [verify] mode = off (%s) would verify nothing; expected "
                    "full or quick",
                    lap_config_origin(config, "verify", "mode"));
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
        lap_job j = {.command = which, .options = &options, .config = options.config};
        /* A row that failed says so itself; what is complained about here is everything else. */
        if (check_purpose(which, options.config, &err) != LAP_OK ||
            carry_out(&j, &status, &err) != LAP_OK) {
            int failure = lap_app_complain(&err);
            if (status == LAP_EXIT_OK) status = failure;
        }
        lap_job_free(&j);
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
