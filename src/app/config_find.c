/* Where `warmlap run NAME` finds its file: as given, else among the shipped ones. Opens nothing. */
#include "app/config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 3, PLACE_SIZE = 4096 };

/* Folders of shipped files: next to the running program's prefix (an installation may have been
 * moved), where the build expects the installation, the source tree. */
static size_t places(char out[PLACES][PLACE_SIZE]) {
    size_t count = 0;
    ssize_t n = readlink("/proc/self/exe", out[0], PLACE_SIZE - 1);
    if (n > 0) {
        out[0][n] = '\0';
        for (int up = 0; up < 2; up++) {
            char *slash = strrchr(out[0], '/');
            if (slash) *slash = '\0';
        }
        const char *tail = "/share/warmlap/conf";
        size_t used = strlen(out[0]);
        if (used + strlen(tail) < PLACE_SIZE) {
            memcpy(out[0] + used, tail, strlen(tail) + 1);
            count = 1;
        }
    }
    snprintf(out[count++], PLACE_SIZE, "%s", LAP_CONF_DIR);
    snprintf(out[count++], PLACE_SIZE, "%s", LAP_CONF_SOURCE_DIR);
    return count;
}

static bool is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Names of the shipped files without ".ini", sorted, from the first folder that has any. */
static void list_shipped(char where[PLACES][PLACE_SIZE], size_t count, lap_text *text) {
    for (size_t i = 0; i < count && text->length == 0; i++) {
        struct dirent **entries;
        int n = scandir(where[i], &entries, NULL, alphasort);
        for (int j = 0; j < n; j++) {
            const char *name = entries[j]->d_name;
            size_t length = strlen(name);
            if (length > 4 && !strcmp(name + length - 4, ".ini"))
                lap_text_addf(text, "%s%.*s", text->length ? ", " : "", (int)(length - 4), name);
            free(entries[j]);
        }
        if (n >= 0) free(entries);
    }
}

static lap_status not_found(const char *name, char where[PLACES][PLACE_SIZE], size_t count,
                            lap_error *err) {
    char shown[256];
    snprintf(shown, sizeof shown, "%s", name);
    lap_text_clean(shown);
    lap_text shipped = {0}, looked = {0};
    list_shipped(where, count, &shipped);
    for (size_t i = 0; i < count; i++)
        lap_text_addf(&looked, ", %.200s", where[i]);
    lap_status status =
        LAP_FAIL(err, LAP_E_CONFIG,
                 "%s: no such configuration file; looked in the current folder%s. Expected a path, "
                 "or the name of a shipped file: %s",
                 shown, lap_text_get(&looked),
                 shipped.length ? lap_text_get(&shipped) : "(none is installed)");
    lap_text_free(&shipped);
    lap_text_free(&looked);
    return status;
}

lap_status lap_config_find(const char *name, char **out, lap_error *err) {
    if (!name || !out) return LAP_FAIL(err, LAP_E_ARG, "lap_config_find: NULL argument");
    *out = NULL;
    if (!*name) return LAP_FAIL(err, LAP_E_CONFIG, "an empty file name; expected FILE.ini");
    char where[PLACES][PLACE_SIZE];
    size_t count = places(where);
    lap_text path = {0};
    struct stat st;
    bool found = strchr(name, '/') || lstat(name, &st) == 0;
    if (found) lap_text_add(&path, name);
    for (size_t i = 0; i < 2 * count && !found; i++) {
        lap_text_free(&path);
        lap_text_addf(&path, "%s/%s%s", where[i / 2], name, i % 2 ? ".ini" : "");
        found = path.data && is_file(path.data);
    }
    lap_status status = LAP_OK;
    if (path.failed)
        status = LAP_FAIL(err, LAP_E_NOMEM, "no memory for a file name");
    else if (!found)
        status = not_found(name, where, count, err);
    if (status == LAP_OK)
        *out = path.data;
    else
        lap_text_free(&path);
    return status;
}
