/* `warmlap spans`: what the three spans of one measurement say, on an elementwise workload, without
 * and with warm-up side by side. Each side has a session of its own, so that one cannot warm up the
 * other. */
#include "app/commands.h"
#include "base/text.h"
#include "measure/protocol.h"
#include "plan/plan.h"
#include "report/lessons.h"
#include "report/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "Usage: warmlap spans [--size AxBxC] [--repeats N] [--warmup N] [--device SEL]\n"
    "                     [--json FILE] [--force]\n"
    "\n"
    "Times mul, add, sin and cos over two float tensors and prints, for every repeat,\n"
    "the spans B-A (submission), C-A (wall) and E-D (device), without and with\n"
    "warm-up side by side, and what each span is fit for. The results are verified.\n"
    "\n"
    "  --size AxBxC   of the tensors (default 512x512x512, three of 512 MiB on the\n"
    "                 device)\n"
    "  --repeats N    timed repeats, 1 to 100000 (default 10)\n"
    "  --warmup N     runs before the warm side's repeats, 0 to 100000 (default 5);\n"
    "                 the cold side has none\n"
    "  --device SEL   devices to use (default auto), see `warmlap devices`\n"
    "  --json FILE    write the spans as JSON; - is standard output\n"
    "  --force        overwrite a result file that exists already\n"
    "  --help         this text\n"
    "\n"
    "Exit status: 0 ok, 1 a row failed or the result could not be written, 2 usage,\n"
    "3 no matching device, 4 wrong results, 130 interrupted.\n";

typedef struct options {
    uint64_t size[3], repeats, warmup;
    const char *device, *json;
    bool force, help;
} options;

static lap_status parse_size(const char *text, uint64_t size[3], lap_error *err) {
    char copy[96], *part = copy;
    bool ok = snprintf(copy, sizeof copy, "%s", text) < (int)sizeof copy;
    uint64_t product = 1;
    for (int i = 0; ok && i < 3; i++) {
        char *next = i < 2 ? strchr(part, 'x') : NULL;
        ok = i == 2 || next;
        if (next) *next = '\0';
        ok = ok && lap_parse_u64(part, &size[i]) && size[i] >= 1 && size[i] <= 0x7FFFFFFCu;
        if (ok) product *= size[i];
        ok = ok && product <= 0x7FFFFFFCu;
        part = next ? next + 1 : part;
    }
    if (ok) return LAP_OK;
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "--size \"%s\": expected three sizes such as 512x512x512, with at most "
                    "2147483644 elements in all",
                    text);
}

static lap_status parse_count(const char *name, const char *text, uint64_t least, uint64_t *out,
                              lap_error *err) {
    if (lap_parse_u64(text, out) && *out >= least && *out <= 100000) return LAP_OK;
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "%s \"%s\": expected a whole number from %" PRIu64 " to 100000", name, text,
                    least);
}

static lap_status parse_one(int argc, char **argv, int *i, options *to, lap_error *err) {
    static const char *const known[] = {"--size", "--repeats", "--warmup", "--device",
                                        "--json", "--force",   "--help"};
    const char *word = argv[*i], *value;
    if ((value = lap_app_option_value(argc, argv, i, "--size")))
        return parse_size(value, to->size, err);
    if ((value = lap_app_option_value(argc, argv, i, "--repeats")))
        return parse_count("--repeats", value, 1, &to->repeats, err);
    if ((value = lap_app_option_value(argc, argv, i, "--warmup")))
        return parse_count("--warmup", value, 0, &to->warmup, err);
    if (strcmp(word, "--force") == 0) {
        to->force = true;
        return LAP_OK;
    }
    const char **text = NULL;
    if ((value = lap_app_option_value(argc, argv, i, "--device")))
        text = &to->device;
    else if ((value = lap_app_option_value(argc, argv, i, "--json")))
        text = &to->json;
    /* `--device ''`, which chooses nothing, is not a lack of an argument: choosing says more. */
    bool given = argv[*i] != word || strchr(word, '=');
    if (text && (*value || (text == &to->device && given))) {
        *text = value;
        return LAP_OK;
    }
    if (text) return LAP_FAIL(err, LAP_E_CONFIG, "%s needs an argument (see --help)", word);
    const char *near = lap_text_closest(word, known, sizeof known / sizeof known[0]);
    return LAP_FAIL(err, LAP_E_CONFIG, "spans: unknown argument \"%s\"%s%s%s (see --help)", word,
                    near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static lap_status parse(int argc, char **argv, options *to, lap_error *err) {
    *to = (options){.size = {512, 512, 512}, .repeats = 10, .warmup = 5, .device = "auto"};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            to->help = true;
            return LAP_OK;
        }
        LAP_TRY(parse_one(argc, argv, &i, to, err));
    }
    return LAP_OK;
}

/* ---- measuring ------------------------------------------------------------------------------ */

static lap_status side(const options *how, lap_queue *queue, uint64_t warmup, lap_latency *out,
                       lap_elementwise_report *check, lap_error *err) {
    lap_elementwise *work;
    lap_timing timing = {0};
    LAP_TRY(lap_elementwise_open(queue, how->size[0] * how->size[1] * how->size[2], &work, err));
    lap_latency_options latency = {.warmup_count = (size_t)warmup,
                                   .repetitions = (size_t)how->repeats,
                                   .interrupted = lap_app_interrupted};
    lap_workload workload = {.run = lap_elementwise_run, .context = work};
    lap_status status = lap_timing_open(queue, &timing, err);
    if (status == LAP_OK) status = lap_measure_latency(&workload, &timing, &latency, out, err);
    /* Afterwards, since it would warm up the device: times of wrong results are taken back. */
    if (status == LAP_OK) status = lap_elementwise_check(work, check, err);
    if (status != LAP_OK) lap_latency_free(out);
    lap_timing_close(&timing);
    lap_elementwise_close(work);
    return status;
}

static lap_status in_session(const options *how, const lap_device_info *device, uint64_t warmup,
                             lap_latency *out, lap_elementwise_report *check, lap_error *err) {
    lap_session *session;
    LAP_TRY(lap_session_open(device, &session, err));
    lap_status status = side(how, session->queue, warmup, out, check, err);
    lap_error closing = {0};
    lap_status closed = lap_session_close(session, &closing);
    if (status != LAP_OK || closed == LAP_OK) return status;
    if (err) *err = closing;
    return closed;
}

static void measure(const options *how, const lap_device_info *device, lap_spans_row *row) {
    lap_row_init(&row->head);
    row->head.device = *device;
    memcpy(row->size, how->size, sizeof row->size);
    row->warmup = how->warmup;
    lap_error err = {0};
    lap_elementwise_report first;
    lap_status status = in_session(how, device, 0, &row->cold, &first, &err);
    if (status == LAP_OK)
        status = in_session(how, device, how->warmup, &row->warm, &row->check, &err);
    if (row->warm.clock_reason[0])
        lap_row_note(&row->head, "device spans are not to be trusted: %s", row->warm.clock_reason);
    if (status == LAP_OK) return;
    if (status == LAP_E_VERIFY) { /* a wrong result has no speed */
        lap_latency_free(&row->cold);
        lap_latency_free(&row->warm);
    }
    lap_row_fail(&row->head, status, &err);
}

/* ---- the command ---------------------------------------------------------------------------- */

static lap_status print(const options *how, const lap_spans_row *rows, size_t count,
                        lap_error *err) {
    lap_text text = {0};
    lap_style style;
    lap_style_query(STDOUT_FILENO, &style);
    lap_status status = LAP_OK;
    if (how->json) {
        lap_host_info host;
        char started[32];
        lap_host_info_read("", &host);
        lap_report_time(started);
        lap_report report = {.host = &host, .started = started};
        status = lap_spans_json(&report, rows, count, &text, err);
        if (status == LAP_OK)
            status = lap_output_save(how->json, lap_text_get(&text), text.length, how->force, err);
        lap_text_free(&text);
        if (status != LAP_OK || strcmp(how->json, "-") == 0) return status;
    }
    for (size_t i = 0; i < count && status == LAP_OK; i++) {
        if (i) lap_text_add(&text, "\n");
        status = lap_spans_text(&rows[i], &style, &text, err);
    }
    if (status == LAP_OK) fputs(lap_text_get(&text), stdout);
    lap_text_free(&text);
    return status;
}

static lap_status carry_out(const options *how, int *exit_status, lap_error *err) {
    lap_device_list *list = NULL;
    size_t *chosen = NULL, count = 0;
    if (how->json) LAP_TRY(lap_output_check(how->json, how->force, err));
    LAP_TRY(lap_device_enumerate(&list, err));
    lap_status status = lap_device_select(list, how->device, &chosen, &count, err);
    lap_spans_row *rows = calloc(count ? count : 1, sizeof *rows);
    if (status == LAP_OK && !rows) status = LAP_FAIL(err, LAP_E_NOMEM, "no memory for the rows");
    lap_app_watch_signals();
    for (size_t i = 0; status == LAP_OK && i < count; i++) {
        measure(how, &list->devices[chosen[i]], &rows[i]);
        int one = lap_rows_exit_status(&rows[i].head, 1);
        if (one > *exit_status) *exit_status = one;
    }
    if (lap_app_interrupted(NULL)) *exit_status = LAP_EXIT_INTERRUPTED;
    if (status == LAP_OK) {
        status = print(how, rows, count, err);
        /* The command line was fine; what failed is the run. */
        if (status != LAP_OK && *exit_status == LAP_EXIT_OK) *exit_status = LAP_EXIT_FAILED;
    }
    for (size_t i = 0; rows && i < count; i++) {
        lap_row_free(&rows[i].head);
        lap_latency_free(&rows[i].cold);
        lap_latency_free(&rows[i].warm);
    }
    free(rows);
    free(chosen);
    lap_device_list_free(list);
    return status;
}

int cmd_spans(int argc, char **argv) {
    options how;
    lap_error err = {0};
    int exit_status = LAP_EXIT_OK;
    if (parse(argc, argv, &how, &err) != LAP_OK) return lap_app_complain(&err);
    if (how.help) {
        fputs(usage, stdout);
        return LAP_EXIT_OK;
    }
    if (carry_out(&how, &exit_status, &err) == LAP_OK) return exit_status;
    int failure = lap_app_complain(&err);
    return exit_status != LAP_EXIT_OK ? exit_status : failure;
}
