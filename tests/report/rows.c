/* Rows for renderer tests (see rows.h). Numbers are made up and easy to recognise. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

static void set_case(lap_row *row, const char *selector, const char *name, uint64_t batch) {
    lap_row_init(row);
    snprintf(row->device.backend, sizeof row->device.backend, "cuda");
    snprintf(row->device.selector, sizeof row->device.selector, "%s", selector);
    snprintf(row->device.platform, sizeof row->device.platform, "NVIDIA CUDA");
    snprintf(row->device.name, sizeof row->device.name, "%s", name);
    snprintf(row->device.api, sizeof row->device.api, "CUDA 13.0");
    snprintf(row->network, sizeof row->network, "resnet18");
    snprintf(row->precision, sizeof row->precision, "fp32");
    row->height = row->width = 224;
    row->batch = batch;
    row->modes = LAP_MODE_LATENCY | LAP_MODE_THROUGHPUT | LAP_MODE_VERIFY;
    row->work = (lap_row_work){1814073344, 3628146688, 1819065856};
}

void sample_rows_latency(lap_row *row, size_t n, double seconds, double d) {
    lap_latency *l = &row->latency;
    l->samples = calloc(n, sizeof *l->samples);
    double *x = calloc(n, sizeof *x);
    assert_true(l->samples && x);
    for (size_t i = 0; i < n; i++) {
        x[i] = seconds + (i % 2 ? d : -d);
        l->samples[i] = (lap_sample){lap_some(x[i]), x[i] * 2, x[i] / 2, (double)i};
    }
    l->has = true;
    l->n = l->planned = n;
    l->passes = 1;
    l->comparable = true;
    l->warmup_n = 3;
    assert_int_equal(lap_stats_compute(x, n, &l->device, NULL), LAP_OK);
    for (size_t i = 0; i < n; i++)
        x[i] = l->samples[i].wall_s;
    assert_int_equal(lap_stats_compute(x, n, &l->wall, NULL), LAP_OK);
    for (size_t i = 0; i < n; i++)
        x[i] = l->samples[i].submit_s;
    assert_int_equal(lap_stats_compute(x, n, &l->submit, NULL), LAP_OK);
    l->stats = l->device;
    free(x);
}

static void set_throughput(lap_row *row) {
    lap_throughput *t = &row->throughput;
    t->has = true;
    snprintf(t->search, sizeof t->search, "doubling");
    snprintf(t->ended, sizeof t->ended, "batch 512: out of device memory");
    t->curve = calloc(2, sizeof *t->curve);
    assert_non_null(t->curve);
    t->curve_count = t->curve_capacity = 2;
    t->curve[0] = (lap_curve_point){.batch = 256, .images_per_s = lap_some(11990)};
    t->curve[1] = (lap_curve_point){.batch = 512, .status = LAP_E_OOM, .reason = "too much"};
    t->best_batch = t->batch = 256;
    t->batches = t->batches_planned = 100;
    t->seconds = lap_some(256 * 100 / 12000.0);
    t->images_per_s = lap_some(12000);
}

static void good_row(lap_row *row) {
    set_case(row, "cuda:0", "NVIDIA H200", 1);
    row->device.has_uuid = row->device.has_pci = true;
    for (int i = 0; i < 16; i++)
        row->device.uuid[i] = (uint8_t)(i * 17);
    row->device.pci_bus = 0x17;
    snprintf(row->device.driver, sizeof row->device.driver, "580.95.05");
    sample_rows_latency(row, 100, 250e-6, 2e-6);
    set_throughput(row);
    row->verified = (lap_row_verified){.has = true,
                                       .passed = true,
                                       .mode = "full",
                                       .logits_rel_l2 = lap_some(2.1e-7),
                                       .limit = lap_some(3e-6),
                                       .exact_layers = 24,
                                       .real_layers = 24,
                                       .rerun_same = true};
    row->floor = (lap_floor){.has = true,
                             .claimed_s = lap_some(5e-7),
                             .measured_s = lap_some(32e-9),
                             .host_s = lap_some(2e-8),
                             .device_s = lap_some(2e-6),
                             .wall_s = lap_some(1e-5),
                             .submit_s = lap_some(4e-6)};
    row->telemetry = (lap_telemetry_summary){.has = true,
                                             .source = "NVML 580.95.05",
                                             .samples = 3,
                                             .seconds = 0.1,
                                             .clock_min_mhz = lap_some(1980),
                                             .energy_j = lap_some(70),
                                             .throttled_share = lap_some(1),
                                             .reasons = "power cap",
                                             .ecc = lap_some(1)};
    row->cold = (lap_row_cold){.open_s = lap_some(0.5),
                               .build_s = lap_some(1.25),
                               .upload_s = lap_some(0.03),
                               .first_s = lap_some(0.004),
                               .build_cached = lap_some(12),
                               .build_compiled = lap_some(2)};
    assert_true(lap_row_add_kernel(row, "conv1", "conv_igemm", "BM=64 BN=64", "default"));
    lap_layer layer = {.name = "conv1",
                       .kind = "conv",
                       .kernel = "conv_igemm",
                       .macs = 118013952,
                       .flops = 236027904,
                       .bytes = 3848960,
                       .device_s = lap_some(2e-5)};
    assert_true(lap_row_add_layer(row, &layer));
}

/* Full-length names of what breaks tables, JSON, CSV, Markdown and HTML. */
static void hostile_row(lap_row *row) {
    static const char pattern[] = "A,b;\"c\" | `x` <b>& \\ ® 漢字 \t";
    char name[LAP_DEVICE_NAME];
    size_t n = 0;
    while (n + sizeof pattern <= sizeof name) {
        memcpy(name + n, pattern, sizeof pattern - 1);
        n += sizeof pattern - 1;
    }
    memset(name + n, 'z', sizeof name - 1 - n);
    name[sizeof name - 1] = '\0';
    set_case(row, "opencl:0:0", name, 18446744073709551615u);
    snprintf(row->device.platform, sizeof row->device.platform, "a,b;\"c\"");
    snprintf(row->network, sizeof row->network, "net|`work`\n<i>");
    row->height = row->width = 2147483647;
    sample_rows_latency(row, 2, 123456.789, 1000);
    row->verified = (lap_row_verified){.has = true, .passed = true};
    assert_true(lap_row_note(row, "line one\nline \"two\", | and `three` \xff."));
}

sample_rows *sample_rows_new(void) {
    sample_rows *s = calloc(1, sizeof *s);
    assert_non_null(s);
    good_row(&s->rows[0]);
    hostile_row(&s->rows[1]);
    set_case(&s->rows[2], "cuda:0", "NVIDIA H200", 64);
    lap_error err = {0};
    lap_fail_native_at(
        &err, LAP_E_LAUNCH, "x.c", 1, "cudaLaunchKernel", 701, "cudaErrorLaunchOutOfResources",
        "layer1.0.conv1: refused, \"quoted\"\n%s",
        "a second line that goes on for much longer than one hundred columns so that "
        "it has to be wrapped somewhere in the table");
    lap_row_fail(&s->rows[2], LAP_E_LAUNCH, &err);
    set_case(&s->rows[3], "opencl:1:0", "Zero timer", 1);
    sample_rows_latency(&s->rows[3], 1, 0, 0);
    set_case(&s->rows[4], "opencl:2:0", "Old GPU", 1);
    LAP_FAIL(&err, LAP_E_UNSUPPORTED, "no <fp64> | on `this`");
    lap_row_fail(&s->rows[4], LAP_E_UNSUPPORTED, &err);
    for (int i = 0; i < ROW_COUNT; i++)
        lap_row_finish(&s->rows[i]);
    snprintf(s->host.cpu, sizeof s->host.cpu, "A \"CPU\"");
    s->host.memory_bytes = 1024;
    s->settings[0] = (lap_report_setting){"run", "device", "all"};
    s->settings[1] = (lap_report_setting){"latency", "batch", "1, 8"};
    s->settings[2] = (lap_report_setting){"run", "seed", "a,b;\"c\""};
    s->libraries[0] = (lap_report_library){"jansson", "2.14"};
    s->report = (lap_report){.host = &s->host,
                             .settings = s->settings,
                             .setting_count = 3,
                             .libraries = s->libraries,
                             .library_count = 1,
                             .started = "2026-03-01T12:00:00Z",
                             .rows = s->rows,
                             .row_count = ROW_COUNT,
                             .samples = true};
    return s;
}

void sample_rows_free(sample_rows *s) {
    for (int i = 0; i < ROW_COUNT; i++)
        lap_row_free(&s->rows[i]);
    free(s);
}
