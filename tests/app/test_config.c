/* The configuration: every key, every bad value, the shipped files, the written forms; all of it
 * the same under a locale whose decimal sign is a comma. */
#include "app/config_keys.h"
#include "base/comma_locale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const shipped[] = {"default",
                                      "quick",
                                      "full",
                                      "resnet18-1024x2048",
                                      "latency-10-300",
                                      "survey",
                                      "efficientnet-b0-10-300"};
enum { SHIPPED = sizeof shipped / sizeof *shipped };

static lap_config *fresh(void) {
    lap_config *config;
    lap_error err = {0};
    if (lap_config_new(&config, &err) != LAP_OK) fail_msg("%s", err.message);
    return config;
}

static lap_config *load_text(const char *text) {
    lap_config *config = fresh();
    lap_error err = {0};
    if (lap_config_load_text(config, "t.ini", text, strlen(text), &err) != LAP_OK)
        fail_msg("%s", err.message);
    if (lap_config_check(config, &err) != LAP_OK) fail_msg("%s", err.message);
    return config;
}

/* Same texts of all keys; with trimming nowhere, equal texts are equal values. */
static void assert_same(const lap_config *a, const lap_config *b) {
    size_t keys = 0;
    for (size_t i = 0; i < LAP_CONFIG_KEY_MAX && a->text[i]; i++, keys++)
        assert_string_equal(a->text[i], b->text[i]);
    assert_int_equal(keys, lap_key_count);
}

/* File "[section]\nkey = value" (on line 3, after an empty one) is refused as expected. */
static void refuse(const char *section, const char *pair, const char *what) {
    lap_config *config = fresh(), *untouched = fresh();
    lap_error err = {0};
    char text[2048], start[256];
    snprintf(text, sizeof text, "\n[%s]\n%s\n", section, pair);
    lap_status status = lap_config_load_text(config, "t.ini", text, strlen(text), &err);
    if (status != LAP_E_CONFIG) fail_msg("[%s] %s: status %d", section, pair, status);
    snprintf(start, sizeof start, "t.ini:3: ");
    if (strncmp(err.message, start, strlen(start)) || !strstr(err.message, what))
        fail_msg("[%s] %s: expected '%s', got '%s'", section, pair, what, err.message);
    assert_same(config, untouched);
    lap_config_free(config);
    lap_config_free(untouched);
}

static void test_defaults(void **state) {
    (void)state;
    lap_config *c = fresh();
    lap_error err = {0};
    assert_int_equal(lap_config_check(c, &err), LAP_OK);
    assert_string_equal(c->run.device, "auto");
    assert_true(lap_config_has_mode(c, LAP_RUN_LATENCY));
    assert_true(lap_config_has_mode(c, LAP_RUN_THROUGHPUT));
    assert_int_equal(c->run.seed, 1);
    assert_int_equal(c->run.kernels, LAP_KERNELS_DEFAULT);
    assert_string_equal(c->run.exclude, "");
    assert_string_equal(lap_config_model(c->network.model.values[0]), "resnet18");
    assert_int_equal(c->network.precision.values[0], 0);
    assert_string_equal(c->network.weights, "synthetic:1");
    assert_string_equal(c->network.input, "synthetic:1");
    assert_int_equal(lap_config_size_count(c), 1);
    int h, w;
    lap_config_size(c, 0, &h, &w);
    assert_true(h == 224 && w == 224);
    assert_true(c->latency.batch.count == 1 && c->latency.batch.values[0] == 1);
    assert_true(c->latency.warmup.count == 20 && c->latency.warmup.seconds == 0);
    assert_true(!c->latency.warmup.automatic && c->latency.burn_in == 0);
    assert_int_equal(c->latency.stop, LAP_STOP_FIXED);
    assert_true(c->latency.noise_target == 0.002 && c->latency.passes.automatic);
    assert_true(c->latency.min_samples == 30 && c->latency.max_samples == 10000);
    assert_true(c->run.order == LAP_ORDER_AUTO && c->run.telemetry && c->run.overlap);
    assert_int_equal(c->latency.repetitions, 100);
    assert_true(c->latency.max_seconds == 60 && c->throughput.max_seconds == 60);
    assert_int_equal(c->throughput.search, LAP_SEARCH_DOUBLING);
    assert_int_equal(c->throughput.max_batch, 1024);
    assert_int_equal(c->throughput.batches, 100);
    assert_true(c->throughput.memory_fraction == 0.8);
    assert_int_equal(c->verify.mode, LAP_VERIFY_FULL);
    assert_int_equal(c->verify.images, 2);
    assert_string_equal(c->output.json, "");
    assert_true(c->output.samples && !c->output.layers && !c->output.force);
    assert_string_equal(lap_config_origin(c, "run", "seed"), "built-in default");
    assert_null(lap_config_origin(c, "run", "no_such"));
    lap_config_free(c);
    lap_config_free(NULL);
}

static void test_every_key(void **state) {
    (void)state;
    lap_config *c = load_text("[RUN]\nDevice = cuda:0, name=a\nmodes=throughput\nseed = "
                              "18446744073709551615\nkernels = naive\nexclude = fc_v , "
                              "conv_naive\n[network]\nmodel=resnet18\n"
                              "height = 224,1024 ; two\nwidth = 2048\nprecision = bf16, fp32\n"
                              "weights = \"w;1.safetensors\"\ninput = synthetic:7\n[latency]\n"
                              "batch = 8,1\nwarmup = 0.5s\nrepetitions=1000000\nmax_seconds=1.5\n"
                              "[throughput]\nsearch = binary\nmax_batch=7\nbatches = 3\n"
                              "memory_fraction = 0.05\nmax_seconds = 2\n[verify]\nmode = off\n"
                              "images = 5\n[output]\njson = -\ncsv = a.csv\nmarkdown = b c.md\n"
                              "samples = no\nlayers = yes\nforce = yes\n");
    assert_string_equal(c->run.device, "cuda:0, name=a");
    assert_true(c->run.modes.count == 1 && !lap_config_has_mode(c, LAP_RUN_LATENCY));
    assert_true(c->run.seed == UINT64_MAX && c->run.kernels == LAP_KERNELS_NAIVE);
    assert_string_equal(c->run.exclude, "fc_v , conv_naive");
    assert_int_equal(lap_config_size_count(c), 2);
    int h, w;
    lap_config_size(c, 1, &h, &w);
    assert_true(h == 1024 && w == 2048);
    assert_int_equal(c->network.precision.count, 2);
    assert_int_equal(c->network.precision.values[0], 4);
    assert_string_equal(c->network.weights, "w;1.safetensors");
    assert_string_equal(c->network.input, "synthetic:7");
    assert_true(c->latency.batch.values[0] == 8 && c->latency.batch.values[1] == 1);
    assert_true(c->latency.warmup.count == 0 && c->latency.warmup.seconds == 0.5);
    assert_int_equal(c->latency.repetitions, 1000000);
    assert_true(c->latency.max_seconds == 1.5);
    assert_int_equal(c->throughput.search, LAP_SEARCH_BINARY);
    assert_true(c->throughput.max_batch == 7 && c->throughput.batches == 3);
    assert_true(c->throughput.memory_fraction == 0.05 && c->throughput.max_seconds == 2);
    assert_true(c->verify.mode == LAP_VERIFY_OFF && c->verify.images == 5);
    assert_string_equal(c->output.json, "-");
    assert_string_equal(c->output.csv, "a.csv");
    assert_string_equal(c->output.markdown, "b c.md");
    assert_true(!c->output.samples && c->output.layers && c->output.force);
    assert_string_equal(lap_config_origin(c, "run", "device"), "t.ini:2");
    assert_string_equal(lap_config_origin(c, "output", "force"), "t.ini:34");
    lap_config_free(c);
}

static void test_trust_keys(void **state) {
    (void)state;
    lap_config *c =
        load_text("[run]\norder = interleaved\ntelemetry = no\n[latency]\nwarmup = auto\n"
                  "burn_in = 1.5\nstop = relative_noise\nnoise_target = 0.01\n"
                  "min_samples = 5\nmax_samples = 7\npasses = 3\n");
    assert_true(c->run.order == LAP_ORDER_INTERLEAVED && !c->run.telemetry);
    assert_true(c->latency.warmup.automatic && c->latency.warmup.count == 0);
    assert_true(c->latency.burn_in == 1.5 && c->latency.stop == LAP_STOP_RELATIVE_NOISE);
    assert_true(c->latency.noise_target == 0.01);
    assert_true(c->latency.min_samples == 5 && c->latency.max_samples == 7);
    assert_true(!c->latency.passes.automatic && c->latency.passes.count == 3);
    json_t *o = lap_config_json(c);
    json_t *latency = json_object_get(o, "latency");
    assert_string_equal(json_string_value(json_object_get(latency, "warmup")), "auto");
    json_decref(o);
    lap_config_free(c);
}

static void test_bad_numbers(void **state) {
    (void)state;
    static const char *const bad[] = {"abc", "10x",  "0",   "-1",      "1e2",
                                      "1.0", "1,5",  "8 9", "0x10",    "",
                                      "inf", "nan",  "+-1", "1000001", "99999999999999999999999",
                                      ".",   "1 000"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char pair[128], what[256];
        snprintf(pair, sizeof pair, "repetitions = %s", bad[i]);
        snprintf(what, sizeof what,
                 "[latency] repetitions = %s: expected a whole number from 1 to 1000000", bad[i]);
        refuse("latency", pair, what);
    }
    refuse("latency", "repetitions = 1e9", "written out in digits");
    refuse("latency", "warmup = -1", "a whole number from 0 to 1000000, or seconds from 0.001");
    refuse("latency", "warmup = s", "expected");
    refuse("latency", "warmup = 0s", "expected");
    refuse("latency", "warmup = 2ss", "expected");
    refuse("latency", "warmup = 0,5s", "the decimal sign is a point (0.5, not 0,5)");
    refuse("latency", "warmup = automatic", "such as 2s, or auto");
    refuse("latency", "passes = 2s", "a whole number from 1 to 1000, or auto");
    refuse("latency", "passes = 0", "a whole number from 1 to 1000, or auto");
    refuse("latency", "burn_in = -1", "a number from 0 to 3600");
    refuse("latency", "noise_target = 0", "a number from 1e-06 to 1");
    refuse("latency", "batch = 8 9", "entries are separated by commas");
    refuse("latency", "batch = 8,,9", "an entry is empty");
    refuse("latency", "batch = 8,", "an entry is empty");
    refuse("latency", "batch =", "an entry is empty");
    refuse("latency", "batch = 0", "whole numbers from 1 to 1048576");
    refuse("latency", "batch = 4, 8, 4", "4 stands there twice");
    refuse("throughput", "memory_fraction = 0,05", "the decimal sign is a point");
    refuse("throughput", "memory_fraction = 0", "a number from 0.01 to 1");
    refuse("throughput", "memory_fraction = 1.01", "a number from 0.01 to 1");
    refuse("throughput", "memory_fraction = 80%", "a number from 0.01 to 1");
    refuse("throughput", "memory_fraction = nan", "a number from 0.01 to 1");
    refuse("throughput", "max_seconds = inf", "a number from 0.001 to 86400");
    refuse("network", "height = 31", "whole numbers from 32 to 65535");
    refuse("run", "seed = 18446744073709551616", "whole number from 0 to 18446744073709551615");
    refuse("run", "seed = -1", "whole number from 0");
    lap_text many = {0};
    lap_text_add(&many, "height = 32");
    for (int i = 0; i < LAP_CONFIG_LIST_MAX - 1; i++)
        lap_text_addf(&many, ",%d", 33 + i);
    lap_text full = {0};
    lap_text_addf(&full, "[network]\n%s\n", lap_text_get(&many));
    lap_config *c = load_text(lap_text_get(&full));
    assert_int_equal(lap_config_size_count(c), LAP_CONFIG_LIST_MAX);
    lap_config_free(c);
    lap_text_free(&full);
    lap_text_add(&many, ",1000");
    refuse("network", lap_text_get(&many), "at most 64 entries");
    lap_text_free(&many);
}

static void test_bad_words(void **state) {
    (void)state;
    refuse("latency", "btach = 8", "unknown key btach in [latency]; did you mean batch?");
    refuse("latency", "zzzzzz = 8", "its keys are batch, warmup, burn_in, stop, repetitions, ");
    refuse("latency", "search = binary", "it belongs to [throughput]");
    refuse("throughput", "search = binray",
           "doubling, linear, binary or sweep; did you mean binary?");
    refuse("throughput", "search =", "doubling, linear, binary or sweep");
    refuse("throughput", "search = Binary", "doubling, linear, binary or sweep");
    refuse("run", "modes = latency, latency", "latency stands there twice");
    refuse("run", "modes = latency throughput", "a comma-separated list of");
    refuse("run", "exclude = fc_v, conv_wino", "there is no kernel 'conv_wino'");
    refuse("run", "exclude = avgpool_vv", "did you mean avgpool_v?");
    refuse("network", "model = resnet19", "a comma-separated list of resnet18");
    refuse("network", "precision = fp23", "did you mean fp32?");
    refuse("network", "weights = synthetic", "synthetic:SEED");
    refuse("network", "weights = synthetic:", "synthetic:SEED");
    refuse("network", "weights = synthetic:-1", "synthetic:SEED");
    refuse("network", "weights = synthetic: 1", "synthetic:SEED");
    refuse("network", "weights = synthetic:1x", "synthetic:SEED");
    refuse("network", "weights = a.npy", "ends in .safetensors");
    refuse("network", "input = a.safetensors", "ends in .npy");
    refuse("output", "samples = 1", "yes or no");
    refuse("output", "samples = ja", "yes or no");
    refuse("latency", "batch = \"8\" 9", "after the closing");
    refuse("latency ]\n[latncy", "",
           "unknown section [latncy]; did you mean [latency]? The sections are [run]");
    refuse("latency ]\n[latncy", "batch = 8", "unknown section [latncy]");
}

static void test_all_or_nothing(void **state) {
    (void)state;
    static const char text[] = "[latency]\nrepetitions = 7\nwarmup = 7\n[run]\nseed = x\n";
    lap_config *c = fresh(), *untouched = fresh();
    lap_error err = {0};
    assert_int_equal(lap_config_load_text(c, "t.ini", text, strlen(text), &err), LAP_E_CONFIG);
    assert_non_null(strstr(err.message, "t.ini:5: [run] seed = x: expected"));
    assert_same(c, untouched);
    assert_int_equal(c->latency.repetitions, 100);
    lap_config_free(c);
    lap_config_free(untouched);
}

static void test_between_keys(void **state) {
    (void)state;
    const struct {
        const char *a, *b, *what;
    } cases[] = {
        {"network:height=224,448", "network:width=1,2,3", NULL},
        {"network:height=224,448", "network:width=32,64,96", "height has 2 entries (--set)"},
        {"network:height=224,224", "network:width=448", "the size 224x448 twice"},
        {"network:height=224,448", "network:width=448,224", ""},
        {"output:json=-", "output:markdown=-",
         "json (--set) and markdown (--set) both go to "
         "standard output"},
        {"output:csv=x", "output:markdown=x", "both go to x"},
        {"output:csv=x", "output:markdown=y", ""},
        {"latency:min_samples=50", "latency:max_samples=49", "max_samples = 49 is below"},
        {"latency:min_samples=50", "latency:max_samples=50", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_config *c = fresh();
        lap_error err = {0};
        assert_int_equal(lap_config_set(c, cases[i].a, "--set", &err), LAP_OK);
        lap_status status = lap_config_set(c, cases[i].b, "--set", &err);
        assert_int_equal(status, cases[i].what ? LAP_OK : LAP_E_CONFIG);
        if (cases[i].what) {
            status = lap_config_check(c, &err);
            assert_int_equal(status, *cases[i].what ? LAP_E_CONFIG : LAP_OK);
            if (*cases[i].what && !strstr(err.message, cases[i].what))
                fail_msg("expected '%s', got '%s'", cases[i].what, err.message);
        }
        lap_config_free(c);
    }
}

static void test_set(void **state) {
    (void)state;
    lap_config *c = fresh();
    lap_error err = {0};
    assert_int_equal(lap_config_set(c, " Latency : BATCH =  1, 8 ", "--set", &err), LAP_OK);
    assert_true(c->latency.batch.count == 2 && c->latency.batch.values[1] == 8);
    assert_int_equal(lap_config_set(c, "run:device=name=a:b=c", "--set", &err), LAP_OK);
    assert_string_equal(c->run.device, "name=a:b=c");
    static const char *const bad[] = {"output:json=a\nb",
                                      "output:json=\xFF",
                                      "output:json='\"",
                                      "output:json=\x1B",
                                      "output:json=\xC2\x9B",
                                      ":=",
                                      "a=b:c",
                                      "output:=x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(lap_config_set(c, bad[i], "--set", &err), LAP_E_CONFIG);
        for (const char *p = err.message; *p; p++)
            assert_true((unsigned char)*p >= 0x20); /* safe to show on a terminal */
    }
    char longest[1024] = "output:json=";
    memset(longest + 12, 'x', LAP_CONFIG_VALUE_MAX + 1);
    assert_int_equal(lap_config_set(c, longest, "--set", &err), LAP_E_CONFIG);
    longest[12 + LAP_CONFIG_VALUE_MAX] = '\0';
    assert_int_equal(lap_config_set(c, longest, "--set", &err), LAP_OK);
    lap_config_free(c);
}

/* Dump, load the dump, dump again: the same configuration, whatever the values hold. */
static void round_trip(const lap_config *c) {
    lap_text dump = {0};
    lap_error err = {0};
    lap_config_dump(c, &dump);
    assert_false(dump.failed);
    lap_config *again = fresh();
    if (lap_config_load_text(again, "dump", dump.data, dump.length, &err) != LAP_OK)
        fail_msg("%s\n%s", err.message, dump.data);
    assert_same(c, again);
    lap_config_free(again);
    lap_text_free(&dump);
}

static void test_dump(void **state) {
    (void)state;
    static const char *const values[] = {"",    "a;b", "a # b", "it's", "say \"x\"", "back\\",
                                         "a=b", "'q'", "[x]",   "%s%n", "\xC2\xAE",  "-"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        lap_config *c = fresh();
        lap_error err = {0};
        assert_int_equal(lap_config_set_key(c, "output", "json", values[i], "--json", &err),
                         LAP_OK);
        round_trip(c);
        lap_config_free(c);
    }
    lap_config *c = fresh();
    lap_error err = {0};
    assert_int_equal(lap_config_set_key(c, "output", "json", "  blanks  ", "--json", &err), LAP_OK);
    round_trip(c);
    lap_text dump = {0};
    lap_config_dump(c, &dump);
    assert_non_null(strstr(dump.data, "; --json\njson = \"  blanks  \"\n"));
    assert_non_null(strstr(dump.data, "[run]\n; built-in default\ndevice = auto\n"));
    lap_text_free(&dump);
    lap_config_free(c);
}

static void test_json(void **state) {
    (void)state;
    lap_config *c =
        load_text("[latency]\nbatch=1,8\nwarmup = 2s\n[run]\nseed=18446744073709551615\n"
                  "[throughput]\nmemory_fraction = 0.5\n[output]\ncsv = a\n");
    json_t *j = lap_config_json(c);
    assert_non_null(j);
    json_t *latency = json_object_get(j, "latency");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(latency, "batch"), 1)), 8);
    json_t *warmup = json_object_get(latency, "warmup");
    assert_true(json_is_null(json_object_get(warmup, "count")));
    assert_true(json_real_value(json_object_get(warmup, "seconds")) == 2.0);
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "run"), "seed")),
                        "18446744073709551615");
    json_t *output = json_object_get(j, "output");
    assert_true(json_is_null(json_object_get(output, "json")));
    assert_string_equal(json_string_value(json_object_get(output, "csv")), "a");
    assert_true(json_is_true(json_object_get(output, "samples")));
    json_t *modes = json_object_get(json_object_get(j, "run"), "modes");
    assert_string_equal(json_string_value(json_array_get(modes, 1)), "throughput");
    json_t *origins = json_object_get(j, "origins");
    assert_int_equal(json_object_size(origins), 5);
    assert_string_equal(json_string_value(json_object_get(origins, "latency:warmup")), "t.ini:3");
    size_t keys = 0;
    const char *name;
    json_t *section;
    json_object_foreach(j, name, section) keys += json_object_size(section);
    assert_int_equal(keys, lap_key_count + 5);
    json_decref(j);
    lap_config_free(c);
}

static void test_shipped(void **state) {
    (void)state;
    for (int i = 0; i < SHIPPED; i++) {
        lap_config *c = fresh();
        lap_error err = {0};
        char path[512];
        snprintf(path, sizeof path, LAP_SOURCE_DIR "/conf/%s.ini", shipped[i]);
        if (lap_config_load(c, path, &err) != LAP_OK || lap_config_check(c, &err) != LAP_OK)
            fail_msg("%s", err.message);
        round_trip(c);
        if (i == 0) { /* default.ini: every key is written there, with the built-in value */
            lap_config *defaults = fresh();
            assert_same(c, defaults);
            for (size_t k = 0; k < LAP_CONFIG_KEY_MAX && c->origin[k]; k++)
                assert_non_null(strstr(c->origin[k], "default.ini:"));
            lap_config_free(defaults);
        } else if (!strcmp(shipped[i], "resnet18-1024x2048")) {
            assert_true(c->latency.warmup.count == 100 && c->latency.repetitions == 300);
            int h, w;
            lap_config_size(c, 0, &h, &w);
            assert_true(h == 1024 && w == 2048 && c->throughput.search == LAP_SEARCH_LINEAR);
            assert_true(c->latency.batch.count == 1 && c->latency.batch.values[0] == 1);
            assert_true(c->throughput.search_cost == 0 && c->latency.cache == LAP_CACHE_HOT);
            assert_true(lap_config_has_mode(c, LAP_RUN_LATENCY) &&
                        lap_config_has_mode(c, LAP_RUN_THROUGHPUT));
        } else if (strstr(shipped[i], "-10-300")) {
            bool second = !strcmp(shipped[i], "efficientnet-b0-10-300");
            assert_string_equal(lap_config_model(c->network.model.values[0]),
                                second ? "efficientnet_b0" : "resnet18");
            assert_true(c->latency.batch.count == 1 && c->latency.batch.values[0] == 1);
            assert_true(c->latency.warmup.count == 10 && c->latency.repetitions == 300);
            assert_true(c->throughput.search == LAP_SEARCH_BINARY && c->throughput.batches == 100);
            int h, w;
            lap_config_size(c, 0, &h, &w);
            assert_true(h == 224 && w == 224 && c->throughput.search_cost == 0);
            assert_true(lap_config_has_mode(c, LAP_RUN_LATENCY) &&
                        lap_config_has_mode(c, LAP_RUN_THROUGHPUT));
        }
        lap_config_free(c);
    }
}

static void test_find(void **state) {
    (void)state;
    char here[1024];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(
        mkdir(LAP_TEST_TMP "/find", 0700) == 0 || access(LAP_TEST_TMP "/find", W_OK) == 0, 1);
    assert_int_equal(chdir(LAP_TEST_TMP "/find"), 0);
    unlink("quick");
    lap_error err = {0};
    char *found;
    assert_int_equal(lap_config_find("quick", &found, &err), LAP_OK);
    assert_non_null(strstr(found, "/conf/quick.ini"));
    free(found);
    assert_int_equal(lap_config_find("quick.ini", &found, &err), LAP_OK);
    assert_non_null(strstr(found, "/conf/quick.ini"));
    free(found);
    assert_int_equal(lap_config_find("quik", &found, &err), LAP_E_CONFIG);
    assert_null(found);
    assert_non_null(strstr(err.message, "quik: no such configuration file"));
    for (int i = 0; i < SHIPPED; i++)
        assert_non_null(strstr(err.message, shipped[i]));
    FILE *f = fopen("quick", "w"); /* the current folder goes first */
    assert_non_null(f);
    fclose(f);
    assert_int_equal(lap_config_find("quick", &found, &err), LAP_OK);
    assert_string_equal(found, "quick");
    free(found);
    unlink("quick");
    assert_int_equal(chdir(here), 0);
}

static void test_comma_locale(void **state) {
    comma_locale_or_skip();
    test_defaults(state);
    test_every_key(state);
    test_bad_numbers(state);
    test_dump(state);
    test_json(state);
    test_shipped(state);
    lap_config *c = fresh();
    json_t *j = lap_config_json(c);
    char *text = json_dumps(j, JSON_REAL_PRECISION(6));
    assert_non_null(strstr(text, "\"memory_fraction\": 0.8"));
    free(text);
    json_decref(j);
    lap_config_free(c);
    setlocale(LC_ALL, "C");
}

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Mutated files: an answer always, and whatever is accepted survives a round trip. */
static void test_mutations(void **state) {
    (void)state;
    static const char odd[] = "\"'\\;#[]=\n\r\t ,.0-9aesx\xC3\xBC";
    static const char seed_text[] = "[run]\ndevice=a;b\nmodes = latency\nseed = 12\n[network]\n"
                                    "weights = 'a b.safetensors'\nheight = 32,64\n[latency]\n"
                                    "warmup = 2.5s\nbatch = 1, 8\nmax_seconds = 0.5\n[output]\n"
                                    "json = \"a;b\" # c\ncsv = it's\nlayers=yes\n";
    uint64_t x = 777;
    size_t accepted = 0, refused = 0;
    for (int round = 0; round < 10000; round++) {
        char text[sizeof seed_text];
        memcpy(text, seed_text, sizeof text);
        for (uint64_t n = 1 + next_random(&x) % 2; n > 0; n--)
            text[next_random(&x) % (sizeof text - 1)] = odd[next_random(&x) % (sizeof odd - 1)];
        lap_config *c = fresh();
        lap_error err = {0};
        lap_status status = lap_config_load_text(c, "t.ini", text, strlen(text), &err);
        if (status == LAP_OK) {
            accepted++;
            round_trip(c);
        } else {
            refused++;
            assert_int_equal(status, LAP_E_CONFIG);
            assert_int_equal(strncmp(err.message, "t.ini:", 6), 0);
        }
        lap_config_free(c);
    }
    print_message("10000 mutated files: %zu accepted, %zu refused\n", accepted, refused);
    assert_true(accepted > 500 && refused > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),   cmocka_unit_test(test_every_key),
        cmocka_unit_test(test_trust_keys), cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_bad_words),  cmocka_unit_test(test_between_keys),
        cmocka_unit_test(test_set),        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_json),       cmocka_unit_test(test_shipped),
        cmocka_unit_test(test_find),       cmocka_unit_test(test_comma_locale),
        cmocka_unit_test(test_mutations),  cmocka_unit_test(test_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
