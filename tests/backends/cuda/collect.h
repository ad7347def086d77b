/* What the CUDA backend's tests share: a list builder that keeps what it is given, and a device
 * opened over the stand-ins. */
#ifndef LAP_TESTS_CUDA_COLLECT_H
#define LAP_TESTS_CUDA_COLLECT_H

#include "cuda/compile.h"
#include "cuda/cuda_backend.h"
#include "standin/cudart_standin.h"

/* cmocka.h does not include what it needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { COLLECT_MAX = 8 };

struct lap_list_builder {
    lap_device_info devices[COLLECT_MAX];
    size_t count;
    lap_device_note notes[COLLECT_MAX];
    size_t note_count;
};

extern const lap_device_ops lap_cuda_ops;

/* Enumerate; the call itself must succeed. */
void collect(lap_list_builder *builder);

/* The NVRTC stand-in (or another file) from the next use on. */
void use_nvrtc(const char *path);

/* Open cuda:0 and a queue over it; nothing may fail. */
void open_both(void **device, void **queue);
void close_both(void *device, void *queue);

/* Build entry from a source in which it stands; nothing may fail. */
void *build_entry(void *device, const char *entry);

/* No runtime object is alive. */
void assert_nothing_alive(void);

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (!strstr((text), (part))) fail_msg("\"%s\" does not contain \"%s\"", (text), (part));   \
    } while (0)

#define assert_ok(expression) assert_int_equal((expression), LAP_OK)

#endif
