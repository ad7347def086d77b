/* The configuration of `warmlap run` and `warmlap verify`: every value, and where it came from.
 *
 * One const table (config_keys.c) names each key with its section, type, range, default and help
 * text; parsing, --dump-config, docs/CONFIGURATION.md and the JSON form are all driven by it.
 * Order: built-in defaults, then each FILE.ini as given, then each --set; the later wins. This
 * layer opens no device and no output; it only says what was asked for. Nothing depends on the
 * locale.
 *
 * Ownership: lap_config_new makes it, lap_config_free frees it with all its text; every const
 * char * inside lives as long as the config and changes when the key is set again.
 * Errors are LAP_E_CONFIG with file and line in the message ("FILE:LINE: [latency] repetitions =
 * abc: expected a whole number from 1 to 1000000"), or LAP_E_NOMEM.
 */
#ifndef LAP_APP_CONFIG_H
#define LAP_APP_CONFIG_H

#include "base/status.h"
#include "base/text.h"
#include "measure/throughput.h"
#include "report/report.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define LAP_CONFIG_LIST_MAX 64   /* entries of one list */
#define LAP_CONFIG_VALUE_MAX 900 /* bytes of one value */
#define LAP_CONFIG_KEY_MAX 64

typedef enum lap_run_mode {
    LAP_RUN_LATENCY = 0,
    LAP_RUN_THROUGHPUT,
    LAP_RUN_MODE_COUNT
} lap_run_mode;
typedef enum lap_kernels {
    LAP_KERNELS_DEFAULT = 0,
    LAP_KERNELS_UNFUSED,
    LAP_KERNELS_NAIVE,
    LAP_KERNELS_TUNED
} lap_kernels;
typedef enum lap_cache_mode { LAP_CACHE_HOT = 0, LAP_CACHE_COLD } lap_cache_mode;
typedef enum lap_verify_mode {
    LAP_VERIFY_FULL = 0,
    LAP_VERIFY_QUICK,
    LAP_VERIFY_OFF
} lap_verify_mode;

/* Numbers, or the values of an enum. count is at least 1. */
typedef struct lap_config_list {
    size_t count;
    uint64_t values[LAP_CONFIG_LIST_MAX];
} lap_config_list;

/* In which order rows are timed. */
typedef enum lap_order {
    LAP_ORDER_AUTO = 0, /* interleaved when there are several devices */
    LAP_ORDER_INTERLEAVED,
    LAP_ORDER_SEQUENTIAL
} lap_order;
/* Whether the processes of an MPI launcher are one fleet. */
typedef enum lap_fleet_mode { LAP_FLEET_AUTO = 0, LAP_FLEET_YES, LAP_FLEET_NO } lap_fleet_mode;
typedef enum lap_stop { LAP_STOP_FIXED = 0, LAP_STOP_RELATIVE_NOISE } lap_stop;

/* A number of runs, or (seconds > 0) a time, or whatever is needed: count is then 0. */
typedef struct lap_config_amount {
    uint64_t count;
    double seconds;
    bool automatic;
} lap_config_amount;

typedef struct lap_config {
    struct {
        const char *device;    /* selector; lap_device_select says what is wrong with it */
        lap_config_list modes; /* lap_run_mode, without repeats */
        uint64_t seed;
        lap_kernels kernels;
        lap_order order;
        bool telemetry;
        const char *prefer;     /* ids of kernel rows, separated by commas; "" for none */
        const char *exclude;    /* ids of kernel rows, separated by commas; "" for none */
        const char *tune_store; /* "" for the user's own */
        bool overlap;           /* kernels of a pass may be started while the one before ends */
        bool cache;             /* built kernels are kept on disk */
        bool isolate;           /* rows are worked on in a process of its own */
        double watchdog;        /* seconds of silence that end a row; 0: none */
        bool concurrent;        /* also all devices at the same time */
        uint64_t rounds;        /* of rates alone and at the same time */
        double round_seconds;   /* of each timed part */
        lap_fleet_mode fleet;
        double fleet_timeout; /* seconds of silence after which a rank is left behind */
    } run;
    struct {
        lap_config_list model;         /* indices for lap_config_model */
        lap_config_list height, width; /* pairs: use lap_config_size */
        lap_config_list precision;     /* lap_precision (net/op.h), without repeats */
        const char *weights;           /* "synthetic:SEED" or a .safetensors path */
        const char *input;             /* "synthetic:SEED" or a .npy path */
    } network;
    struct {
        lap_config_list batch;    /* without repeats */
        lap_config_amount warmup; /* may be 0 runs */
        double burn_in;           /* seconds */
        lap_stop stop;
        uint64_t repetitions; /* stop = fixed */
        double noise_target;  /* the rest: stop = relative_noise */
        uint64_t min_samples, max_samples;
        lap_config_amount passes; /* of one sample; no seconds */
        double max_seconds;
        lap_cache_mode cache;
        bool copies;
    } latency;
    struct {
        lap_search search;
        uint64_t max_batch;
        uint64_t batches;
        double memory_fraction;
        double max_seconds;
        double latency_limit_ms; /* 0: none */
        double search_cost;      /* 0: no limit */
        lap_config_list streams; /* without repeats */
        bool pipeline;
    } throughput;
    struct {
        lap_verify_mode mode;
        uint64_t images; /* distinct input images */
    } verify;
    struct {
        const char *json, *csv, *markdown; /* "" for none, "-" for stdout (at most one) */
        bool samples, layers, force;
    } output;
    /* Per key of the table, in its order: the text in effect and where it came from ("built-in
     * default", "FILE:LINE", "--set", "--device", …). */
    char *text[LAP_CONFIG_KEY_MAX];
    char *origin[LAP_CONFIG_KEY_MAX];
} lap_config;

/* The built-in defaults. */
lap_status lap_config_new(lap_config **out, lap_error *err);
void lap_config_free(lap_config *config);

/* Merge a file. A bare name without '/' that does not exist in the current directory is looked up,
 * also with ".ini" added, among the shipped files (lap_config_find). A file with an error changes
 * nothing. */
lap_status lap_config_load(lap_config *config, const char *path, lap_error *err);
/* The same for bytes in memory; name is used in messages. */
lap_status lap_config_load_text(lap_config *config, const char *name, const void *bytes,
                                size_t size, lap_error *err);
/* "section:key=value", as --set takes it; origin is "--set" or the option it stands for. */
lap_status lap_config_set(lap_config *config, const char *assignment, const char *origin,
                          lap_error *err);
/* One key, already split. */
lap_status lap_config_set_key(lap_config *config, const char *section, const char *key,
                              const char *value, const char *origin, lap_error *err);
/* Rules between keys: call once after the last change. */
lap_status lap_config_check(const lap_config *config, lap_error *err);

/* Path that `warmlap run NAME` opens; malloc'ed, free() it. LAP_E_CONFIG says where it looked. */
lap_status lap_config_find(const char *name, char **out, lap_error *err);

/* Image sizes: height i goes with width i, a list of one goes with every entry of the other. */
size_t lap_config_size_count(const lap_config *config);
void lap_config_size(const lap_config *config, size_t index, int *height, int *width);
bool lap_config_has_mode(const lap_config *config, lap_run_mode mode);

/* Names of enum values as they are written in a file. Never NULL. */
const char *lap_config_model(uint64_t index);
const char *lap_kernels_name(lap_kernels kernels);
const char *lap_cache_mode_name(lap_cache_mode mode);
const char *lap_verify_mode_name(lap_verify_mode mode);

/* Where a key's value came from; NULL for an unknown key. */
const char *lap_config_origin(const lap_config *config, const char *section, const char *key);

/* Every effective value for a report; out has room for LAP_CONFIG_KEY_MAX. Borrowed from config.
 * Returns the count. */
size_t lap_config_settings(const lap_config *config, lap_report_setting *out);

/* INI text of every effective value with its origin as a comment; loading it gives the same
 * configuration. Appends; check text->failed. */
void lap_config_dump(const lap_config *config, lap_text *text);
/* {"run":{"device":"auto",…},…,"origins":{"latency:batch":"my.ini:3",…}} (origins lists only what
 * is not a built-in default). NULL when out of memory. The caller owns the reference. */
json_t *lap_config_json(const lap_config *config);
/* The reference of all keys as Markdown: docs/CONFIGURATION.md. */
void lap_config_help_markdown(lap_text *text);
/* The same for a terminal, one line or two a key. */
void lap_config_help_text(lap_text *text);

#endif
