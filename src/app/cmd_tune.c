/* `warmlap tune`: finds the best kernels and parameters for devices and writes them to the tune
 * store. The table goes to standard output, progress to standard error. */
#include "app/commands.h"
#include "app/tune_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static lap_status tune(const lap_options *options, lap_device_list *list, const char *store,
                       lap_error *err) {
    size_t *chosen = NULL, count = 0;
    LAP_TRY(lap_device_select(list, options->config->run.device, &chosen, &count, err));
    lap_style style;
    lap_meter meter;
    lap_style_query(STDERR_FILENO, &style);
    lap_meter_init(&meter, stderr, &style);
    lap_app_watch_signals();
    lap_app_tune_job job = {.config = options->config,
                            .list = list,
                            .chosen = chosen,
                            .chosen_count = count,
                            .meter = &meter,
                            .seconds = options->seconds,
                            .store = options->dry_run ? NULL : store};
    lap_text table = {0};
    lap_status status = lap_app_tune(&job, &table, err);
    lap_meter_clear(&meter);
    fputs(lap_text_get(&table), stdout);
    if (options->dry_run)
        puts("nothing was stored (--dry-run)");
    else
        printf("the tune store is %s\n", store);
    lap_text_free(&table);
    free(chosen);
    return status;
}

static lap_status carry_out(const lap_options *options, lap_error *err) {
    char *store = NULL;
    lap_tune_store known;
    lap_device_list *list = NULL;
    LAP_TRY(lap_tune_store_path(options->config->run.tune_store, &store, err));
    /* A store that cannot be read is to be known before the work, not after it. */
    lap_status status = lap_tune_store_load(store, &known, err);
    if (status == LAP_OK) {
        lap_tune_store_free(&known);
        status = lap_device_enumerate(&list, err);
    }
    if (status == LAP_OK) status = tune(options, list, store, err);
    lap_device_list_free(list);
    free(store);
    return status;
}

int cmd_tune(int argc, char **argv) {
    lap_error err = {0};
    lap_options options;
    int status = LAP_EXIT_OK;
    if (lap_options_parse(LAP_COMMAND_TUNE, argc, argv, &options, &err) != LAP_OK)
        return lap_app_complain(&err);
    switch (options.action) {
    case LAP_ACTION_HELP:
        status = lap_app_print_help(LAP_COMMAND_TUNE);
        break;
    case LAP_ACTION_HELP_CONFIG:
        status = lap_app_print_text(lap_config_help_markdown);
        break;
    case LAP_ACTION_DUMP_CONFIG:
        status = lap_app_print_config(options.config);
        break;
    case LAP_ACTION_RUN:
        if (carry_out(&options, &err) != LAP_OK) status = lap_app_complain(&err);
        break;
    }
    lap_options_free(&options);
    return status;
}
