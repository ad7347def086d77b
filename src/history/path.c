/* Where the user's history is (see history.h). */
#include "history/history.h"

#include <stdlib.h>

lap_status lap_history_path(const char *given, char **out, lap_error *err) {
    lap_text text = {0};
    const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    *out = NULL;
    if (given)
        lap_text_add(&text, given);
    else if (xdg && xdg[0] == '/')
        lap_text_addf(&text, "%s/warmlap/history.sqlite", xdg);
    else if (home && home[0] == '/')
        lap_text_addf(&text, "%s/.local/share/warmlap/history.sqlite", home);
    else
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "no place for the history: neither XDG_DATA_HOME nor HOME is an absolute "
                        "path; name a file with --database");
    if (text.failed) {
        lap_text_free(&text);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the history's path");
    }
    *out = text.data;
    return LAP_OK;
}
