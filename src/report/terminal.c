/* What a stream can show (see terminal.h). Asks the system; writes nothing. */
#include "report/terminal.h"
#include "base/text.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NARROWEST = 40 };

static size_t terminal_width(int fd) {
    struct winsize size;
    uint64_t columns = 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
    const char *text = getenv("COLUMNS");
    if (columns == 0 && text && !lap_parse_u64(text, &columns)) columns = 0;
    if (columns == 0 || columns > LAP_TABLE_WIDTH) return LAP_TABLE_WIDTH;
    return columns < NARROWEST ? NARROWEST : (size_t)columns;
}

void lap_style_query(int fd, lap_style *out) {
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    out->terminal = isatty(fd) == 1;
    bool dumb = !term || strcmp(term, "dumb") == 0;
    out->colour = out->terminal && !dumb && !(no_colour && no_colour[0]);
    out->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    out->width = out->terminal ? terminal_width(fd) : LAP_TABLE_WIDTH;
}
