/* The page as a whole (see page.h): head, policy, sections, data, scripts. */
#include "page/page.h"
#include "page/canvas.h"
#include "report/escape.h"

#include <stdlib.h>
#include <string.h>

/* ---- the policy ----------------------------------------------------------------------------- */

static unsigned nibble(char digit) {
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* A hash as content security policies have it: 'sha256-BASE64'. */
static void add_hash(lap_text *out, const char *hex) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    lap_text_add(out, " 'sha256-");
    unsigned bits = 0, held = 0;
    for (; *hex; hex++) {
        bits = (bits << 4 | nibble(*hex)) & 0xFFF;
        held += 4;
        if (held < 6) continue;
        held -= 6;
        lap_text_addn(out, &digits[bits >> held & 63], 1);
    }
    if (held > 0) lap_text_addn(out, &digits[bits << (6 - held) & 63], 1);
    lap_text_add(out, "='");
}

static void add_policy(lap_text *out, const canvas *c) {
    const lap_page_assets *a = c->input->assets;
    lap_text_add(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                      "connect-src 'none'; base-uri 'none'; form-action 'none'; script-src");
    if (c->drawn) add_hash(out, a->chart.sha256);
    add_hash(out, a->script.sha256);
    lap_text_add(out, "; style-src");
    add_hash(out, a->style.sha256);
    lap_text_add(out, "\">\n");
}

/* ---- data ----------------------------------------------------------------------------------- */

/* JSON that can stand in a script element: these characters are in texts only, where an escape
 * means the same. */
static void add_data(lap_text *out, const char *json) {
    for (const char *s = json; *s; s++) {
        if (*s == '<' || *s == '>' || *s == '&')
            lap_text_addf(out, "\\u%04x", (unsigned)*s);
        else if (strncmp(s, "\xE2\x80\xA8", 3) == 0 || strncmp(s, "\xE2\x80\xA9", 3) == 0) {
            lap_text_add(out, s[2] == '\xA8' ? "\\u2028" : "\\u2029");
            s += 2;
        } else
            lap_text_addn(out, s, 1);
    }
}

static void add_charts(canvas *c, lap_text *out) {
    char *json = json_dumps(c->charts, JSON_COMPACT | JSON_REAL_PRECISION(7));
    if (!json) c->json.failed = true;
    lap_text_add(out, "<script type=\"application/json\" id=\"data\">");
    if (json) add_data(out, json);
    lap_text_add(out, "</script>\n");
    free(json);
}

static void add_script(lap_text *out, const lap_page_asset *asset) {
    lap_text_add(out, "<script>");
    lap_text_addn(out, asset->text, asset->length);
    lap_text_add(out, "</script>\n");
}

/* ---- the page ------------------------------------------------------------------------------- */

static void add_head(lap_text *out, const canvas *c) {
    const lap_page_input *in = c->input;
    lap_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    add_policy(out, c);
    lap_text_add(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=\"color-scheme\" content=\"light dark\">\n"
                      "<meta name=\"generator\" content=\"warmlap " LAP_VERSION "\">\n<title>");
    lap_escape_html(out, in->title);
    lap_text_add(out, "</title>\n<style>");
    lap_text_addn(out, in->assets->style.text, in->assets->style.length);
    lap_text_add(out, "</style>\n</head>\n<body>\n");
}

typedef struct part {
    const char *id, *name;
    void (*add)(canvas *c);
} part;

static const part parts[] = {
    {"summary", "Summary", section_summary},
    {"speed", "Speed", section_speed},
    {"latency", "Latency", section_latency},
    {"throughput", "Throughput", section_throughput},
    {"layers", "Layers", section_layers},
    {"spans", "Three spans", section_spans},
    {"sensors", "Clocks and power", section_sensors},
    {"environment", "Environment", section_environment},
    {"configuration", "Configuration", section_configuration},
    {"method", "Method", section_method},
};
enum { PARTS = sizeof parts / sizeof *parts };

/* Sections without content leave themselves out, and so does their entry. */
static void add_parts(canvas *c, lap_text *navigation) {
    for (int i = 0; i < PARTS; i++) {
        size_t before = c->html.length;
        parts[i].add(c);
        if (c->html.length > before)
            lap_text_addf(navigation, "<a href=\"#%s\">%s</a>\n", parts[i].id, parts[i].name);
    }
}

static void add_note(lap_text *out, const canvas *c) {
    if (c->drawn) {
        lap_text_add(out, "<noscript><p class=\"note\">Scripts are off: the charts are not drawn; "
                          "every number is in the tables.</p></noscript>\n");
        return;
    }
    lap_text_add(out, "<p class=\"note\">");
    lap_text_add(out, c->input->assets->chart.length
                          ? "This report was made without charts; every number is in the tables."
                          : "There are no charts: the program was built without Chart.js (Debian's "
                            "libjs-chart.js). Every number is in the tables.");
    lap_text_add(out, "</p>\n");
}

static void add_all(canvas *c, lap_text *out) {
    lap_text navigation = {0};
    add_parts(c, &navigation);
    add_head(out, c);
    lap_text_add(out, "<header><h1>");
    lap_escape_html(out, c->input->title);
    lap_text_add(out, "</h1>\n<nav aria-label=\"Sections\">\n");
    lap_text_add(out, lap_text_get(&navigation));
    lap_text_add(out, "</nav></header>\n<main>\n");
    add_note(out, c);
    lap_text_add(out, lap_text_get(&c->html));
    lap_text_add(out, "</main>\n<footer><p>Made by warmlap " LAP_VERSION
                      ". This page holds all its data and loads nothing.</p></footer>\n");
    if (c->drawn) {
        add_charts(c, out);
        add_script(out, &c->input->assets->chart);
    }
    add_script(out, &c->input->assets->script);
    lap_text_add(out, "</body>\n</html>\n");
    if (navigation.failed) out->failed = true;
    lap_text_free(&navigation);
}

static lap_status read_details(const lap_comparison *all, lap_detail **details, lap_error *err) {
    for (size_t i = 0; i < all->document_count; i++)
        if (all->duplicate_of[i] == i)
            LAP_TRY(lap_details_read(all->documents[i], &details[i], err));
    return LAP_OK;
}

lap_status lap_page_render(const lap_page_input *input, lap_text *out, lap_error *err) {
    const lap_comparison *all = input->comparison;
    lap_detail **details = calloc(all->document_count + 1, sizeof *details);
    canvas c = {.input = input,
                .details = details,
                .charts = json_array(),
                .drawn = input->charts && input->assets->chart.length > 0};
    lap_status status = details && c.charts ? read_details(all, details, err)
                                            : LAP_FAIL(err, LAP_E_NOMEM, "no memory for the page");
    if (status == LAP_OK) {
        add_all(&c, out);
        if (c.json.failed || c.html.failed || out->failed)
            status = LAP_FAIL(err, LAP_E_NOMEM, "no memory for the page");
    }
    for (size_t i = 0; details && i < all->document_count; i++)
        lap_details_free(details[i], details[i] ? all->documents[i]->row_count : 0);
    free(details);
    json_decref(c.charts);
    lap_text_free(&c.html);
    return status;
}
