/* What a run writes, before it does (see outputs.h). */
#include "app/outputs.h"

#include "report/output.h"
#include "tune/store.h"

#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 4, JSON = 0 };

static lap_status apart_from_files(const lap_options *o, const char *path, lap_error *err) {
    lap_status status = LAP_OK;
    for (int i = 0; i < o->file_count && status == LAP_OK; i++) {
        char *found;
        LAP_TRY(lap_config_find(o->files[i], &found, err));
        status = lap_output_apart(path, found, "the configuration file", err);
        free(found);
    }
    return status;
}

static lap_status apart_from_store(const lap_config *config, const char *path, lap_error *err) {
    char *store = NULL;
    lap_error ignored = {0};
    if (lap_tune_store_path(config->run.tune_store, &store, &ignored) != LAP_OK) return LAP_OK;
    lap_status status = lap_output_apart(path, store, "the tune store", err);
    free(store);
    return status;
}

static lap_status check_one(const lap_options *o, const char *path, bool resuming, lap_error *err) {
    const lap_config *config = o->config;
    LAP_TRY(apart_from_files(o, path, err));
    LAP_TRY(apart_from_store(config, path, err));
    LAP_TRY(lap_output_apart(path, config->network.weights, "the file of weights", err));
    LAP_TRY(lap_output_apart(path, config->network.input, "the file of the input", err));
    if (o->resume && !resuming)
        LAP_TRY(lap_output_apart(path, o->resume, "the file of --resume", err));
    return lap_output_check(path, config->output.force || resuming, err);
}

lap_status lap_outputs_check(const lap_options *o, size_t documents, bool resuming,
                             lap_error *err) {
    static const char *const names[OUTPUTS] = {"--json", "--csv", "--markdown", "--logits"};
    const char *paths[OUTPUTS] = {o->config->output.json, o->config->output.csv,
                                  o->config->output.markdown, o->logits ? o->logits : ""};
    for (size_t i = documents; i < OUTPUTS - 1; i++)
        paths[i] = "";
    for (size_t i = 0; i < OUTPUTS; i++) {
        if (!*paths[i]) continue;
        for (size_t j = 0; j < i; j++)
            if (*paths[j] && lap_output_same(paths[i], paths[j]))
                return LAP_FAIL(err, LAP_E_CONFIG,
                                "%s %.300s and %s %.300s are one file: expected different files",
                                names[j], paths[j], names[i], paths[i]);
        LAP_TRY(check_one(o, paths[i], resuming && i == JSON, err));
    }
    return LAP_OK;
}
