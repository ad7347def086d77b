/* What the numbers belong to: machines, devices, configuration; and the method in short. */
#include "page/canvas.h"

#include <jansson.h>
#include <string.h>

/* ---- environment ---------------------------------------------------------------------------- */

static void add_memory(canvas *c, uint64_t bytes) {
    canvas_fixed(c, 1, bytes ? lap_some((double)bytes / (double)(1u << 30)) : lap_none());
}

static void add_hosts(canvas *c) {
    static const char *const headers[] = {"File",   "Started",     "warmlap", "Processor", "System",
                                          "Kernel", "#Memory GiB", "#Rows",   NULL};
    const lap_comparison *all = c->input->comparison;
    canvas_table(c, "Files", headers, true);
    for (size_t i = 0; i < all->document_count; i++) {
        const lap_document *d = all->documents[i];
        canvas_row(c);
        canvas_cell(c, d->path);
        canvas_cell(c, d->started);
        canvas_cell(c, d->version);
        canvas_cell(c, d->cpu);
        canvas_cell(c, d->os);
        canvas_cell(c, d->kernel);
        add_memory(c, d->memory_bytes);
        if (c->details[i])
            canvas_cellf(c, "%zu", d->row_count);
        else
            canvas_cell(c, "the same run as an earlier file");
    }
    for (size_t i = 0; i < c->input->spans_count; i++) {
        const lap_spans_document *d = c->input->spans[i];
        canvas_row(c);
        canvas_cell(c, d->path);
        canvas_cell(c, d->started);
        canvas_cell(c, d->version);
        canvas_cell(c, d->cpu);
        canvas_cell(c, d->os);
        canvas_cell(c, d->kernel);
        canvas_cellf(c, "-");
        canvas_cellf(c, "%zu", d->row_count);
    }
    canvas_table_end(c);
}

static void add_devices(canvas *c) {
    static const char *const headers[] = {"Device", "Route",     "Type",   "API",         "Driver",
                                          "PCI",    "Toolchain", "#Units", "#Memory GiB", NULL};
    canvas_table(c, "Devices", headers, true);
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        const lap_record *r = d->record;
        if (canvas_seen(c, d)) continue;
        canvas_row(c);
        canvas_cell(c, r->device);
        canvas_cell(c, r->selector);
        canvas_cell(c, r->type);
        canvas_cell(c, r->api);
        canvas_cell(c, r->driver);
        canvas_cell(c, r->pci);
        canvas_cell(c, d->toolchain);
        canvas_count(c, d->units);
        add_memory(c, d->memory_bytes);
    }
    canvas_table_end(c);
}

static void add_costs(canvas *c) {
    static const char *const headers[] = {"Device and route", "Case",      "#Batch",
                                          "#Open ms",         "#Build ms", "#Upload ms",
                                          "#First pass ms",   "Verified",  NULL};
    canvas_table(c, "Costs that are paid once and are in no latency", headers, true);
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        const lap_record *r = d->record;
        lap_text name = {0};
        canvas_case(&name, r, false);
        canvas_row(c);
        canvas_label_cell(c, r);
        canvas_cell(c, lap_text_get(&name));
        canvas_count(c, r->batch);
        canvas_ms(c, d->open_s);
        canvas_ms(c, d->build_s);
        canvas_ms(c, d->upload_s);
        canvas_ms(c, d->first_s);
        canvas_cell(c, r->proof == LAP_PROOF_PASSED   ? "yes"
                       : r->proof == LAP_PROOF_FAILED ? "wrong"
                                                      : "no");
        lap_text_free(&name);
    }
    canvas_table_end(c);
}

/* The rows' own remarks on themselves. */
static void add_notes(canvas *c) {
    canvas_walk at = {0};
    const lap_detail *d;
    bool any = false;
    while ((d = canvas_next(c, &at))) {
        size_t i;
        json_t *note;
        json_array_foreach(d->notes, i, note) {
            lap_text line = {0};
            canvas_label(c, &line, d->record);
            lap_text_addf(&line, ", batch %llu: %s", (unsigned long long)d->record->batch,
                          json_string_value(note));
            if (!any) {
                canvas_heading(c, "Notes of the rows");
                lap_text_add(&c->html, "<ul>\n");
            }
            any = true;
            canvas_item(c, lap_text_get(&line));
            lap_text_free(&line);
        }
    }
    if (any) lap_text_add(&c->html, "</ul>\n");
}

void section_environment(canvas *c) {
    canvas_section(c, "environment", "Environment", NULL);
    add_hosts(c);
    canvas_walk at = {0};
    if (canvas_next(c, &at)) {
        add_devices(c);
        add_costs(c);
        add_notes(c);
    }
    canvas_section_end(c);
}

/* ---- configuration -------------------------------------------------------------------------- */

static void add_settings(canvas *c, json_t *config) {
    static const char *const headers[] = {"Section", "Key", "Value", NULL};
    const char *section, *key;
    json_t *keys, *value;
    canvas_table(c, NULL, headers, true);
    json_object_foreach(config, section, keys) {
        json_object_foreach(keys, key, value) {
            canvas_row(c);
            canvas_cell(c, section);
            canvas_cell(c, key);
            canvas_cell(c, json_is_string(value) ? json_string_value(value) : "");
        }
    }
    canvas_table_end(c);
}

void section_configuration(canvas *c) {
    const lap_comparison *all = c->input->comparison;
    bool any = false;
    for (size_t i = 0; i < all->document_count; i++) {
        json_t *config = json_object_get(all->documents[i]->json, "config");
        if (!c->details[i] || json_object_size(config) == 0) continue;
        if (!any)
            canvas_section(c, "configuration", "Configuration",
                           "Every value in effect, defaults included.");
        any = true;
        lap_text_add(&c->html, "<details><summary>");
        canvas_plain(c, all->documents[i]->path);
        lap_text_add(&c->html, "</summary>\n");
        add_settings(c, config);
        lap_text_add(&c->html, "</details>\n");
    }
    if (any) canvas_section_end(c);
}

/* ---- method --------------------------------------------------------------------------------- */

void section_method(canvas *c) {
    static const char *const points[] = {
        "Wrong results have no time. Before a row is timed, every kernel must reproduce integer "
        "inputs bit for bit and real inputs within a bound for each element, and the logits must "
        "agree with a reference in double precision; after the timed runs they must be the same "
        "bits. With quick verification each distinct kernel is checked once; a row that was not "
        "verified at all says so.",
        "One repetition: host clock, event, the network is enqueued, event, host clock, wait, host "
        "clock. Device span: between the events. Wall span: until the wait returns. Submission "
        "span: until the enqueueing returns. Latency is the device span unless the device's clock "
        "contradicts the host's.",
        "Inputs and weights are resident; copies, building and the first pass are outside and "
        "reported apart. The warm-up that the configuration asks for comes before, untimed.",
        "Every sample counts; none is dropped as an outlier. Quantiles interpolate between closest "
        "ranks (definition 7). Intervals of means are Student's at 95 %, widened where "
        "neighbouring "
        "samples resemble each other.",
        "Two rows are compared where network, image size, batch, precision class, clock, weights "
        "and verification agree. The interval of a ratio is built on its logarithm; what differs "
        "from run to run but not within one is outside it.",
        "Throughput: batches back to back at the batch size with the most images per second, "
        "each size verified before its speed counts.",
        "Ceilings of the roofline are measured by kernels that do nothing else and whose results "
        "are checked; FLOPs are those of a direct convolution.",
    };
    canvas_section(c, "method", "The method in short", NULL);
    lap_text_add(&c->html, "<ul>\n");
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        canvas_item(c, points[i]);
    lap_text_add(&c->html, "</ul>\n");
    canvas_paragraph(c, "note", "docs/METHOD.md and docs/COMPARE.md of warmlap have the rest.");
    canvas_section_end(c);
}
