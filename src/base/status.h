/* Status codes and the error record every fallible function fills.
 *
 * Rules: a fallible function returns lap_status; its outputs go through pointers and are NULL or 0
 * on failure. The caller owns the lap_error (NULL is allowed: the detail is then lost, the status
 * is not). Library code never prints and never exits.
 */
#ifndef LAP_BASE_STATUS_H
#define LAP_BASE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

typedef enum lap_status {
    LAP_OK = 0,
    LAP_E_ARG,         /* a caller's mistake: NULL, zero size, wrong object */
    LAP_E_NOMEM,       /* host memory */
    LAP_E_OOM,         /* device memory, at allocation or (lazily) at launch */
    LAP_E_IO,          /* a file could not be opened, read or written */
    LAP_E_FORMAT,      /* a file's content is not what its format allows */
    LAP_E_CONFIG,      /* configuration or command line: exit status 2 */
    LAP_E_NODEVICE,    /* no device matches: exit status 3 */
    LAP_E_UNSUPPORTED, /* the device, backend or build cannot do this */
    LAP_E_BUILD,       /* a kernel did not compile or load */
    LAP_E_LAUNCH,      /* a command was refused */
    LAP_E_DEVICE,      /* the device or its context is lost or faulted; later calls fail too */
    LAP_E_TIMER,       /* a time stamp is missing, zero or reversed */
    LAP_E_VERIFY,      /* a result is wrong: exit status 4 */
    LAP_E_INTERRUPTED, /* the user asked to stop: exit status 130 */
    LAP_E_INTERNAL     /* a broken invariant of the program itself */
} lap_status;

typedef struct lap_error {
    lap_status status;
    long native;          /* the API's own code; 0 when the error is not an API's */
    char native_name[48]; /* "CL_OUT_OF_RESOURCES", "cudaErrorMemoryAllocation"; "" if none */
    char call[64];        /* the API call that failed, "" if none */
    const char *file;     /* where it was noticed; static text */
    int line;
    char message[1536]; /* one or more lines, no trailing newline */
} lap_error;

/* Short stable word for a status: "ok", "out of device memory", … Never NULL. */
const char *lap_status_name(lap_status status);

void lap_error_clear(lap_error *err);

/* Fill err (may be NULL) and return status. Use through the macros below. */
lap_status lap_fail_at(lap_error *err, lap_status status, const char *file, int line,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));
lap_status lap_fail_native_at(lap_error *err, lap_status status, const char *file, int line,
                              const char *call, long native, const char *native_name,
                              const char *format, ...) __attribute__((format(printf, 8, 9)));

/* Put context in front of err's message: "layer1.0.conv1: " + message. Status stays. */
void lap_error_prefix(lap_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One line for people: message, then the native code, name and call when there are any.
 * Newlines become "; ". Always terminated. Returns the length written. */
size_t lap_error_text(const lap_error *err, char *buffer, size_t size);

#ifdef __clang_analyzer__ /* which does not see that the function returns what it is given */
#define LAP_FAIL(err, status, ...)                                                                 \
    ((void)lap_fail_at((err), (status), __FILE__, __LINE__, __VA_ARGS__), (status))
#else
#define LAP_FAIL(err, status, ...) lap_fail_at((err), (status), __FILE__, __LINE__, __VA_ARGS__)
#endif
#define LAP_FAIL_NATIVE(err, status, call, native, name, ...)                                      \
    lap_fail_native_at((err), (status), __FILE__, __LINE__, (call), (long)(native), (name),        \
                       __VA_ARGS__)
#define LAP_TRY(expression)                                                                        \
    do {                                                                                           \
        lap_status lap_try_status_ = (expression);                                                 \
        if (lap_try_status_ != LAP_OK) return lap_try_status_;                                     \
    } while (0)

#endif
