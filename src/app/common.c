/* What the commands share: exit statuses, complaints, versions. */
#include "app/commands.h"
#include "base/text.h"
#include "device/device_ops.h"

#include <iniparser.h>
#include <jansson.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <string.h>

int lap_app_exit_status(lap_status status) {
    switch (status) {
    case LAP_OK:
        return LAP_EXIT_OK;
    case LAP_E_CONFIG:
    case LAP_E_FORMAT:
    case LAP_E_IO:
    case LAP_E_ARG:
        return LAP_EXIT_USAGE;
    case LAP_E_NODEVICE:
        return LAP_EXIT_NO_DEVICE;
    case LAP_E_VERIFY:
        return LAP_EXIT_WRONG;
    case LAP_E_INTERRUPTED:
        return LAP_EXIT_INTERRUPTED;
    default:
        return LAP_EXIT_FAILED;
    }
}

/* Messages quote files and drivers: nothing of that may reach the terminal as a command. */
static void print_clean(FILE *to, const char *text) {
    char copy[sizeof((lap_error *)0)->message];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *line = copy, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = '\0';
        lap_text_blank_controls(line);
        fprintf(to, "%s%s", line, end ? "\n" : "");
    }
}

int lap_app_complain(const lap_error *err) {
    char native[160] = "";
    if (err->call[0])
        snprintf(native, sizeof native, " [%s: %s (%ld)]", err->call,
                 err->native_name[0] ? err->native_name : "error", err->native);
    fputs("warmlap: ", stderr);
    print_clean(stderr, err->message[0] ? err->message : lap_status_name(err->status));
    fprintf(stderr, "%s\n", native);
    return lap_app_exit_status(err->status);
}

enum { FIXED_LIBRARIES = 3 };

bool lap_app_library(size_t index, const char **name, const char **version) {
    static const char *const names[FIXED_LIBRARIES] = {"jansson", "libsmartcols", "iniparser"};
    static char backend[256];
    if (index < FIXED_LIBRARIES) {
        const char *smartcols = NULL;
        scols_get_library_version(&smartcols);
        const char *versions[FIXED_LIBRARIES] = {jansson_version_str(), smartcols,
                                                 LAP_INIPARSER_VERSION};
        *name = names[index];
        *version = versions[index] ? versions[index] : "unknown";
        return true;
    }
    const lap_device_ops *ops = NULL;
    if (index - FIXED_LIBRARIES < lap_registry_count())
        ops = lap_registry_get(index - FIXED_LIBRARIES);
    if (!ops) return false;
    ops->version(backend, sizeof backend);
    *name = ops->name;
    *version = backend;
    return true;
}

const char *lap_app_option_value(int argc, char **argv, int *i, const char *name) {
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n) != 0) return NULL;
    if (argv[*i][n] == '=') return argv[*i] + n + 1;
    if (argv[*i][n] != '\0') return NULL;
    return *i + 1 < argc ? argv[++*i] : "";
}
