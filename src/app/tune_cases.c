/* Which cases are tuned, what of it is stored, and the table of it (see tune_cases.h). */
#include "app/tune_cases.h"

#include "app/commands.h"
#include "tune/search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The same for every device and API: a comparison of two must not be one of tuning budgets. */
enum { CANDIDATES = 48 };
static const double SILENCE_S = 30;

static lap_status store_outcomes(const lap_tuning *tuning, const char *path, lap_error *err) {
    lap_tune_entry *entries = calloc(tuning->count + 1, sizeof *entries);
    if (!entries) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the tune store");
    size_t count = 0;
    for (size_t i = 0; i < tuning->count; i++) {
        const lap_tune_outcome *o = &tuning->outcomes[i];
        if (!(o->best_s > 0)) continue; /* nothing was measured: nothing is known */
        lap_tune_entry_fill(&entries[count], &o->c, &o->best);
        entries[count].default_s = o->standard_s;
        entries[count++].tuned_s = o->best_s;
    }
    lap_status status = count ? lap_tune_store_merge(path, entries, count, err) : LAP_OK;
    free(entries);
    return status;
}

static void add_outcome(lap_text *table, const lap_tune_outcome *o) {
    char params[LAP_TUNE_TEXT];
    lap_kernel_params_text(o->best.row, &o->best.params, params, sizeof params);
    if (o->best_s > 0)
        lap_text_addf(table, "  %-26s %10.1f %10.1f %6.2f  %s%s%s%s\n", o->name,
                      o->standard_s * 1e6, o->best_s * 1e6, o->standard_s / o->best_s,
                      o->best.row->id, *params ? " " : "", params,
                      lap_candidate_same(&o->best, &o->standard) ? " (default)" : "");
    else
        lap_text_addf(table, "  %-26s %10s %10s %6s  %s (default)\n", o->name, "-", "-", "-",
                      o->standard.row->id);
    lap_text_addf(table, "  %26s %zu of %zu tried, %zu unfit, %zu failed, %zu wrong%s%s\n", "",
                  o->tried, o->space, o->unfit, o->failed, o->wrong, *o->note ? ": " : "", o->note);
}

static void add_table(lap_text *table, const lap_tune_job *job, const lap_tuning *tuning) {
    double standard = 0, best = 0;
    lap_text_addf(table, "%s (%s), %s %dx%d, %s, batch %" PRIu64 "\n", job->device->selector,
                  job->device->name, job->model, job->height, job->width,
                  lap_precision_name(job->precision), lap_tune_bucket(job->batch));
    lap_text_addf(table, "  %-26s %10s %10s %6s  %s\n", "step", "default us", "tuned us", "ratio",
                  "kernel");
    for (size_t i = 0; i < tuning->count; i++) {
        const lap_tune_outcome *o = &tuning->outcomes[i];
        add_outcome(table, o);
        standard += (double)o->steps * o->standard_s;
        best += (double)o->steps * o->best_s;
    }
    if (best > 0)
        lap_text_addf(table, "  %-26s %10.1f %10.1f %6.2f  each step as often as it occurs\n\n",
                      "sum", standard * 1e6, best * 1e6, standard / best);
}

static lap_status tune_case(const lap_app_tune_job *job, const lap_tune_job *one, lap_text *table,
                            lap_error *err) {
    lap_tuning tuning;
    lap_meter_step(job->meter, "%s batch %" PRIu64 ": tuning", one->device->selector,
                   lap_tune_bucket(one->batch));
    lap_status status = lap_tune(one, &tuning, err);
    if (tuning.count > 0) {
        lap_meter_clear(job->meter);
        add_table(table, one, &tuning);
        lap_status stored = job->store ? store_outcomes(&tuning, job->store, err) : LAP_OK;
        if (stored != LAP_OK) status = stored;
    }
    if (status != LAP_OK && status != LAP_E_INTERRUPTED)
        lap_text_addf(table, "%s, %s, batch %" PRIu64 ": not tuned: %s\n", one->device->selector,
                      lap_precision_name(one->precision), lap_tune_bucket(one->batch),
                      err->message);
    lap_tuning_free(&tuning);
    return status;
}

/* Two batches of one bucket are one case. */
static bool repeated(const lap_config_list *batches, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (lap_tune_bucket(batches->values[i]) == lap_tune_bucket(batches->values[index]))
            return true;
    return false;
}

static lap_status tune_batches(const lap_app_tune_job *job, lap_tune_job one, lap_text *table,
                               lap_error *err) {
    const lap_config *config = job->config;
    lap_status worst = LAP_OK;
    for (size_t b = 0; b < config->latency.batch.count; b++) {
        if (repeated(&config->latency.batch, b)) continue;
        one.batch = config->latency.batch.values[b];
        lap_error detail = {0};
        lap_status status = tune_case(job, &one, table, &detail);
        if (status != LAP_OK && worst == LAP_OK) {
            worst = status;
            if (err) *err = detail;
        }
        if (status == LAP_E_INTERRUPTED) return status;
    }
    return worst;
}

lap_status lap_app_tune(const lap_app_tune_job *job, lap_text *table, lap_error *err) {
    const lap_config *config = job->config;
    lap_status worst = LAP_OK;
    for (size_t m = 0; m < config->network.model.count; m++)
        for (size_t s = 0; s < lap_config_size_count(config); s++)
            for (size_t d = 0; d < job->chosen_count; d++)
                for (size_t p = 0; p < config->network.precision.count; p++) {
                    lap_tune_job one = {.device = &job->list->devices[job->chosen[d]],
                                        .model = lap_config_model(config->network.model.values[m]),
                                        .precision =
                                            (lap_precision)config->network.precision.values[p],
                                        .use_cache = config->run.cache,
                                        .seconds = job->seconds,
                                        .candidates = CANDIDATES,
                                        .limit_s = SILENCE_S,
                                        .seed = config->run.seed,
                                        .interrupted = lap_app_interrupted,
                                        .progress = lap_meter_progress,
                                        .progress_context = job->meter};
                    lap_config_size(config, s, &one.height, &one.width);
                    lap_error detail = {0};
                    lap_status status = tune_batches(job, one, table, &detail);
                    if (status != LAP_OK && worst == LAP_OK) {
                        worst = status;
                        if (err) *err = detail;
                    }
                    if (status == LAP_E_INTERRUPTED) return status;
                }
    return worst;
}
