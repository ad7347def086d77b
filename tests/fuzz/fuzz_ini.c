/* A configuration file: read, checked, shown, and read again as the same. */
#include "fuzz.h"

#include "app/config.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static lap_config *defaults; /* a file with an error changes nothing */
    lap_error err = {0};
    if (!defaults) FUZZ_HOLDS(lap_config_new(&defaults, &err) == LAP_OK);
    lap_config *config = NULL;
    FUZZ_HOLDS(lap_config_new(&config, &err) == LAP_OK);
    lap_status status = lap_config_load_text(config, "fuzz.ini", data, size, &err);
    if (status != LAP_OK) {
        FUZZ_HOLDS(status == LAP_E_CONFIG && err.message[0]);
        for (size_t i = 0; i < LAP_CONFIG_KEY_MAX; i++)
            FUZZ_HOLDS(!config->text[i] || strcmp(config->text[i], defaults->text[i]) == 0);
    } else if (lap_config_check(config, &err) == LAP_OK) {
        lap_text shown = {0};
        lap_config_dump(config, &shown);
        lap_config *again = NULL;
        FUZZ_HOLDS(lap_config_new(&again, &err) == LAP_OK);
        FUZZ_HOLDS(lap_config_load_text(again, "again.ini", lap_text_get(&shown), shown.length,
                                        &err) == LAP_OK);
        for (size_t i = 0; i < LAP_CONFIG_KEY_MAX; i++)
            FUZZ_HOLDS(!config->text[i] || strcmp(config->text[i], again->text[i]) == 0);
        lap_config_free(again);
        lap_text_free(&shown);
    }
    lap_config_free(config);
    return 0;
}
