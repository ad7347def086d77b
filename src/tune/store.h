/* The tune store: which kernel and parameters were found best, for which step on which device.
 *
 * A text file. Line 1 is "warmlap-tune/1"; each other line is an entry of TAB-separated fields:
 *   device, uuid ("-" unknown), driver, toolchain, step (lap_tune_signature), precision, batch (a
 *   power of two), kernel (row id), source hash, parameters ("-" for none), seconds of the default,
 *   seconds of the entry
 * The first seven are its key; a key stands once. Reading is strict: anything else is LAP_E_FORMAT
 * with file and line, another version is refused by name. Writing replaces the file as a whole,
 * under a lock (FILE.lock), after reading what others wrote meanwhile.
 */
#ifndef LAP_TUNE_STORE_H
#define LAP_TUNE_STORE_H

#include "plan/plan.h"
#include "tune/space.h"

typedef struct lap_tune_entry {
    char device[LAP_DEVICE_NAME], uuid[40], driver[128], toolchain[256];
    char step[LAP_TUNE_TEXT], precision[16];
    uint64_t batch;
    char kernel[48];
    uint64_t source;
    char params[LAP_TUNE_TEXT]; /* "" for none */
    double default_s, tuned_s;
} lap_tune_entry;

typedef struct lap_tune_store {
    lap_tune_entry *entries;
    size_t count, capacity;
} lap_tune_store;

/* given, or where the user's store is when given is "": malloc'ed. LAP_E_CONFIG when neither
 * XDG_DATA_HOME nor HOME says. */
lap_status lap_tune_store_path(const char *given, char **out, lap_error *err);

/* A file that does not exist is an empty store. */
lap_status lap_tune_store_load(const char *path, lap_tune_store *out, lap_error *err);
lap_status lap_tune_store_parse(const char *name, const char *text, size_t size,
                                lap_tune_store *out, lap_error *err);
void lap_tune_store_free(lap_tune_store *store);

/* The key fields, kernel and source hash of the entry; times and params are the caller's. */
void lap_tune_entry_fill(lap_tune_entry *entry, const lap_case *c, const lap_candidate *candidate);

/* Add entries to the file, replacing those of the same key. Folders are made where missing. */
lap_status lap_tune_store_merge(const char *path, const lap_tune_entry *entries, size_t count,
                                lap_error *err);

/* A lap_chooser; context is the lap_tune_store. Gives an entry only if its kernel's source is still
 * what was tuned and the parameters are valid for the case. */
const lap_kernel_row *lap_tune_store_choose(void *store, lap_case *c);

#endif
