/* One entry for each kind of text or file that comes from strangers. libFuzzer calls it with what
 * it makes up (LAP_FUZZ=ON, clang); replay.c calls it with the kept inputs, in every build. */
#ifndef LAP_TEST_FUZZ_H
#define LAP_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The path of a file that holds data; for readers that open one themselves. Valid until the next
 * call. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* A property that must hold for every input; aborts with it when it does not. */
#define FUZZ_HOLDS(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) fuzz_broken(#condition, __FILE__, __LINE__);                             \
    } while (0)
_Noreturn void fuzz_broken(const char *condition, const char *file, int line);

#endif
