/* Progress for people waiting (see progress.h). Writes to its stream only; never measures. */
#include "report/progress.h"
#include "base/clock.h"
#include "report/format.h"

#include <stdarg.h>
#include <string.h>

/* Redraws a second at most: drawing must not disturb what is being timed. */
static const double REDRAW_S = 0.1;

enum { BAR_WIDTH = 24 };

void lap_meter_init(lap_meter *meter, FILE *stream, const lap_style *style) {
    memset(meter, 0, sizeof *meter);
    meter->stream = stream;
    if (style) meter->style = *style;
    if (meter->style.width == 0) meter->style.width = LAP_TABLE_WIDTH;
}

void lap_meter_clear(lap_meter *meter) {
    if (!meter->stream || !meter->drawn) return;
    fputs("\r\033[K", meter->stream);
    fflush(meter->stream);
    meter->drawn = false;
}

/* A whole line, cut to the width on a terminal so that a redraw can erase it. */
static void put_cut(lap_meter *meter, const char *text, size_t width) {
    char line[1024];
    char cut[sizeof line + 4];
    snprintf(line, sizeof line, "%s", text);
    lap_line_clean(line, meter->style.utf8);
    lap_line_cut(line, width, meter->style.utf8, cut, sizeof cut);
    fputs(cut, meter->stream);
}

static void draw(lap_meter *meter, const char *what, size_t done, size_t total) {
    char bar[BAR_WIDTH + 1], tail[64], text[sizeof meter->step + 128];
    size_t filled = total ? (size_t)((double)done / (double)total * BAR_WIDTH) : 0;
    if (filled > BAR_WIDTH) filled = BAR_WIDTH;
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', filled);
    bar[BAR_WIDTH] = '\0';
    if (total)
        snprintf(tail, sizeof tail, " [%s] %zu/%zu", bar, done, total);
    else
        snprintf(tail, sizeof tail, " %zu", done);
    snprintf(text, sizeof text, "%s%s%.100s", meter->step, what && what[0] ? ": " : "",
             what ? what : "");
    size_t used = strlen(tail) + 1; /* the last column stays free: some terminals wrap there */
    size_t room = meter->style.width > used ? meter->style.width - used : 0;
    fputs("\r\033[K", meter->stream);
    put_cut(meter, text, room);
    fputs(tail, meter->stream);
    fflush(meter->stream);
    meter->drawn = true;
    meter->last_drawn_s = lap_clock_now();
}

void lap_meter_step(lap_meter *meter, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(meter->step, sizeof meter->step, format, args);
    va_end(args);
    meter->step_started_s = lap_clock_now();
    if (meter->watch) meter->watch(meter->watch_context, meter->step);
    if (!meter->stream) return;
    if (meter->style.terminal) {
        draw(meter, "", 0, 0);
        return;
    }
    put_cut(meter, meter->step, sizeof meter->step);
    fputc('\n', meter->stream);
    fflush(meter->stream);
}

void lap_meter_progress(void *context, const char *what, size_t done, size_t total) {
    lap_meter *meter = context;
    if (meter->watch) meter->watch(meter->watch_context, NULL);
    if (!meter->stream || !meter->style.terminal) return;
    /* The end of a step is always drawn: a bar left at 99 % looks like a hang. */
    bool last = total > 0 && done >= total;
    if (!last && meter->drawn && lap_clock_now() - meter->last_drawn_s < REDRAW_S) return;
    draw(meter, what, done, total);
}

void lap_meter_say(lap_meter *meter, const char *format, ...) {
    if (!meter->stream) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    lap_meter_clear(meter);
    put_cut(meter, text, sizeof text);
    fputc('\n', meter->stream);
    fflush(meter->stream);
}
