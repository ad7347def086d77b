/* For shell tests: reads a result document strictly. FILE may be "-".
 *   json_check FILE
 *       fails unless FILE is one JSON value (no duplicate keys, nan or inf)
 *   json_check FILE PATH
 *       prints the value at PATH ("rows.0.status"; "rows.#" counts them)
 *   json_check FILE --keys
 *       fails unless the document has exactly the keys listed below */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every object of schema warmlap/1 and its keys, in the order of the document; "rows" means each
 * element. First what the schema promises to everybody, after ';' what came to it since. */
static const struct {
    const char *object, *keys;
} schema[] = {
    {"", "schema tool host config rows ; started devices resumed finished run_id sets fleet"},
    {"tool", "name version libraries"},
    {"host", "cpu os kernel ; cores memory_bytes"},
    {"config", "run network latency throughput verify output"},
    {"rows",
     "status reason backend platform device network height width batch precision kernels verified "
     "cold latency spans fps throughput work flops_per_s ; cause selector modes layers notes "
     "timer telemetry verdict cache flush_bytes copies ceilings layer_sum pipeline streams "
     "concurrent rank host_name"},
    {"rows.device",
     "name type driver toolchain uuid pci ; vendor api memory_bytes units clock_mhz"},
    {"rows.kernels", "layer kernel params ; choice"},
    {"rows.verified",
     "logits_rel_l2 limit exact_layers ; passed mode real_layers first_wrong rerun_same"},
    {"rows.cold",
     "weights_s reference_s open_s build_s build_cached build_compiled upload_s first_s"},
    {"rows.latency",
     "n mean_s std_s min_s p50_s p90_s p95_s p99_s max_s samples_s ; clock clock_reason planned "
     "warmup_n warmup_s bad_stamps impossible_spans interrupted mad_s mean_ci_s p50_ci_s "
     "autocorrelation mean_ci_widening p50_ci_widening outliers_low outliers_high starred drift "
     "split comparable "
     "passes_per_sample passes_reason stop ended noise_target relative_noise order blocks timed_s "
     "burn_in_s warmup_steady warmup_first_ratio"},
    {"rows.latency.drift", "rho p relative"},
    {"rows.latency.split", "share low_s high_s upper_part"},
    {"rows.timer",
     "claimed_s measured_s host_s empty_device_s empty_wall_s empty_submit_s bad_stamps"},
    {"devices", "selector name timer"},
    {"rows.telemetry", "source samples seconds clock_min_mhz clock_mean_mhz clock_max_mhz "
                       "memory_clock_mhz temperature_c power_w energy_per_image_j throttled_share "
                       "throttle_reasons persistence ecc other_processes series"},
    {"rows.telemetry.series", "at_s clock_mhz power_w temperature_c"},
    {"rows.verdict", "word reason advice"},
    {"rows.spans",
     "submit_s wall_s device_s ; submit_mean_s submit_std_s wall_mean_s wall_std_s device_mean_s "
     "device_std_s submit_samples_s wall_samples_s device_samples_s at_samples_s"},
    {"rows.throughput",
     "batch images_per_s curve ; search batches seconds flops_per_s best_batch ended "
     "largest_batch largest_known knee_batch latency_limit_s search_s"},
    {"rows.throughput.curve", "batch images_per_s status ; reason batch_s over_limit"},
    {"rows.work", "macs flops fvcore_flops"},
    {"rows.layers", "name kind kernel macs flops bytes device_s flops_per_s bytes_per_s ; "
                    "intensity roofline_share bound"},
    {"rows.copies", "upload_pageable upload_pinned download_pageable download_pinned reason"},
    {"rows.copies.upload_pageable", "bytes n p50_s std_s bytes_per_s"},
    {"rows.ceilings", "flops_per_s memory_bytes_per_s cache_bytes_per_s memory_copy_bytes "
                      "cache_copy_bytes stored reason"},
    {"rows.layer_sum", "sum_s pass_s whole_s difference_s"},
    {"rows.pipeline", "batch batches images_per_s serial_images_per_s compute_images_per_s pinned "
                      "reason"},
    {"rows.streams", "streams batch batches images_per_s latency_mean_s latency_p50_s "
                     "latency_p99_s latency_max_s status reason"},
    {"rows.concurrent",
     "others set alone_row devices batch batches alone_images_per_s images_per_s"},
    {"sets", "network height width precision batch members_planned members_rated members_timed "
             "rounds images_per_s images_per_s_ci alone_images_per_s alone_images_per_s_ci scaling "
             "scaling_ci fps fps_ci alone_fps alone_fps_ci fps_scaling fps_scaling_ci slowest "
             "slowest_images_per_s fastest_images_per_s spread start_skew_s members"},
    {"sets.members", "row alone_row rank host_name selector device ok reason mean_s alone_mean_s "
                     "slowdown slowdown_ci fps fps_ci alone_fps alone_fps_ci images_per_s "
                     "images_per_s_ci alone_images_per_s alone_images_per_s_ci scaling scaling_ci"},
    {"fleet", "ranks_planned ranks_ok launcher timeout_s devices ranks"},
    {"fleet.ranks", "rank host_name pid local_rank selector device status reason version "
                    "cpu cores os kernel memory_bytes started rows first_row"},
};

static int mistakes;

static bool listed(const char *keys, const char *key) {
    size_t n = strlen(key);
    for (const char *at = keys; (at = strstr(at, key)); at += n)
        if ((at == keys || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) return true;
    return false;
}

static void check_object(const char *name, json_t *object, const char *keys) {
    const char *key;
    json_t *value;
    size_t count = 0;
    json_object_foreach(object, key, value) {
        if (listed(keys, key)) continue;
        fprintf(stderr, "'%s' has a key that is not listed: '%s'\n", name, key);
        mistakes++;
    }
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", keys);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        if (strcmp(word, ";") == 0) continue;
        count++;
        if (json_object_get(object, word)) continue;
        fprintf(stderr, "'%s' lacks the key '%s'\n", name, word);
        mistakes++;
    }
    if (count != json_object_size(object)) mistakes++;
}

/* Checks every object at the dotted path below value; arrays are gone through. */
static void check_path(const char *name, const char *path, json_t *value, const char *keys) {
    if (json_is_null(value)) return; /* what does not exist is null, and so is all below it */
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            check_path(name, path, json_array_get(value, i), keys);
    } else if (*path) {
        char key[64];
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        check_path(name, path + n + (path[n] == '.'), json_object_get(value, key), keys);
    } else if (json_is_object(value)) {
        check_object(name, value, keys);
    } else {
        fprintf(stderr, "'%s' is neither an object nor null\n", name);
        mistakes++;
    }
}

/* A reference of the caller's, or NULL. */
static json_t *find(json_t *value, const char *path) {
    while (value && *path) {
        char key[64];
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        if (strcmp(key, "#") == 0) return json_integer((json_int_t)json_array_size(value));
        value = json_is_array(value) ? json_array_get(value, strtoul(key, NULL, 10))
                                     : json_object_get(value, key);
        path += n + (path[n] == '.');
    }
    return json_incref(value);
}

static bool print(json_t *document, const char *path) {
    json_t *value = find(document, path);
    if (!value) return false;
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    puts(text ? text : json_string_value(value));
    free(text);
    json_decref(value);
    return true;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    json_error_t error;
    json_t *document = strcmp(argv[1], "-") == 0
                           ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &error)
                           : json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error);
    if (!document) {
        fprintf(stderr, "%s: line %d: %s\n", argv[1], error.line, error.text);
        return 1;
    }
    bool right = true;
    if (argc > 2 && strcmp(argv[2], "--keys") == 0) {
        for (size_t i = 0; i < sizeof schema / sizeof *schema; i++)
            check_path(schema[i].object, schema[i].object, document, schema[i].keys);
        right = mistakes == 0;
    } else if (argc > 2) {
        right = print(document, argv[2]);
    }
    json_decref(document);
    return right ? 0 : 1;
}
