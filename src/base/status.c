/* Status names and error records. Formats text; never prints, never allocates. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

const char *lap_status_name(lap_status status) {
    switch (status) {
    case LAP_OK:
        return "ok";
    case LAP_E_ARG:
        return "bad argument";
    case LAP_E_NOMEM:
        return "out of host memory";
    case LAP_E_OOM:
        return "out of device memory";
    case LAP_E_IO:
        return "input or output failed";
    case LAP_E_FORMAT:
        return "bad file content";
    case LAP_E_CONFIG:
        return "bad configuration";
    case LAP_E_NODEVICE:
        return "no such device";
    case LAP_E_UNSUPPORTED:
        return "unsupported";
    case LAP_E_BUILD:
        return "kernel build failed";
    case LAP_E_LAUNCH:
        return "launch failed";
    case LAP_E_DEVICE:
        return "device fault";
    case LAP_E_TIMER:
        return "timer fault";
    case LAP_E_VERIFY:
        return "wrong result";
    case LAP_E_INTERRUPTED:
        return "interrupted";
    case LAP_E_INTERNAL:
        return "internal error";
    }
    return "unknown status";
}

void lap_error_clear(lap_error *err) {
    if (err) memset(err, 0, sizeof *err);
}

static void copy_text(char *to, size_t size, const char *from) {
    snprintf(to, size, "%s", from ? from : "");
}

static void fill(lap_error *err, lap_status status, const char *file, int line, const char *format,
                 va_list args) {
    if (!err) return;
    /* The arguments may point into err itself (a caller re-wrapping its own message). */
    char text[sizeof err->message];
    vsnprintf(text, sizeof text, format, args);
    lap_error_clear(err);
    err->status = status;
    err->file = file;
    err->line = line;
    memcpy(err->message, text, sizeof text);
}

lap_status lap_fail_at(lap_error *err, lap_status status, const char *file, int line,
                       const char *format, ...) {
    va_list args;
    va_start(args, format);
    fill(err, status, file, line, format, args);
    va_end(args);
    return status;
}

lap_status lap_fail_native_at(lap_error *err, lap_status status, const char *file, int line,
                              const char *call, long native, const char *native_name,
                              const char *format, ...) {
    va_list args;
    va_start(args, format);
    fill(err, status, file, line, format, args);
    va_end(args);
    if (err) {
        err->native = native;
        copy_text(err->native_name, sizeof err->native_name, native_name);
        copy_text(err->call, sizeof err->call, call);
    }
    return status;
}

void lap_error_prefix(lap_error *err, const char *format, ...) {
    if (!err) return;
    char head[256];
    va_list args;
    va_start(args, format);
    vsnprintf(head, sizeof head, format, args);
    va_end(args);
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    /* A message too long for the record loses its end, not its start. */
    size_t n = strlen(head);
    memcpy(err->message, head, n);
    snprintf(err->message + n, sizeof err->message - n, "%s", old);
}

size_t lap_error_text(const lap_error *err, char *buffer, size_t size) {
    if (size == 0) return 0;
    size_t n = 0;
    const char *message = err->message[0] ? err->message : lap_status_name(err->status);
    for (const char *p = message; *p && n + 1 < size; p++) {
        if (*p != '\n') {
            buffer[n++] = *p;
        } else if (p[1] && n + 2 < size) {
            buffer[n++] = ';';
            buffer[n++] = ' ';
        }
    }
    buffer[n] = '\0';
    if (err->call[0] && n + 1 < size) {
        int more = snprintf(buffer + n, size - n, " [%s: %s (%ld)]", err->call,
                            err->native_name[0] ? err->native_name : "error", err->native);
        n = more < 0 ? n : ((size_t)more < size - n ? n + (size_t)more : size - 1);
    }
    return n;
}
