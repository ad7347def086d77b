/* Comparisons in Markdown, HTML and LaTeX (see render.h): one walk, three sets of marks. */
#include "compare/render.h"
#include "compare/words.h"
#include "report/escape.h"

#include <string.h>

typedef struct markup {
    lap_escape *escape;
    const char *begin, *end;                 /* of the document */
    const char *above, *above_end;           /* of the line above the table */
    const char *row, *cell, *next, *row_end; /* of a table row */
    const char *head_cell, *head_next;       /* the same for its header */
    const char *plus_minus;                  /* NULL: as it is */
    const char *title, *title_end;           /* of a topic */
    const char *list, *item, *item_end, *list_end;
    const char *paragraph, *paragraph_end;
} markup;

static void add_escaped(lap_text *out, const markup *m, const char *text) {
    /* "±" is written by us, between two numbers; where the format has a command for it, use that.
     */
    const char *at = m->plus_minus ? strstr(text, "±") : NULL;
    if (!at) {
        m->escape(out, text);
        return;
    }
    lap_text part = {0};
    while ((at = strstr(text, "±"))) {
        part.length = 0;
        lap_text_addn(&part, text, (size_t)(at - text));
        /* Escaping trims: the blanks around are put back. */
        m->escape(out, lap_text_get(&part));
        lap_text_addf(out, "%s%s", at > text && at[-1] == ' ' ? " " : "", m->plus_minus);
        text = at + strlen("±");
        if (*text == ' ') lap_text_add(out, " ");
    }
    m->escape(out, text);
    if (part.failed) out->failed = true;
    lap_text_free(&part);
}

static void add_row(lap_text *out, const markup *m, const lap_comparison *c,
                    const lap_selection *columns, const lap_line *line) {
    lap_text cell = {0};
    lap_text_add(out, m->row);
    for (size_t i = 0; i < columns->count; i++) {
        cell.length = 0;
        if (cell.data) cell.data[0] = '\0';
        columns->columns[i]->cell(&cell, c, line, true);
        lap_text_add(out, i ? m->next : m->cell);
        add_escaped(out, m, cell.length ? cell.data : "-");
    }
    lap_text_add(out, m->row_end);
    if (cell.failed) out->failed = true;
    lap_text_free(&cell);
}

static void add_header(lap_text *out, const markup *m, const lap_selection *columns) {
    lap_text_add(out, m->row);
    for (size_t i = 0; i < columns->count; i++) {
        lap_text_add(out, i ? m->head_next : m->head_cell);
        add_escaped(out, m, columns->columns[i]->header);
    }
}

typedef struct listing {
    lap_text *out;
    const markup *m;
    lap_topic topic;
    bool any;
} listing;

static void add_item(void *context, const char *text) {
    listing *l = context;
    if (!l->any) {
        lap_text_add(l->out, l->m->title);
        add_escaped(l->out, l->m, lap_topic_title(l->topic));
        lap_text_add(l->out, l->m->title_end);
        lap_text_add(l->out, l->m->list);
    }
    l->any = true;
    lap_text_add(l->out, l->m->item);
    add_escaped(l->out, l->m, text);
    lap_text_add(l->out, l->m->item_end);
}

static void add_paragraph(lap_text *out, const markup *m, const lap_text *text) {
    if (text->failed) out->failed = true;
    if (!text->length) return;
    lap_text_add(out, m->paragraph);
    add_escaped(out, m, lap_text_get(text));
    lap_text_add(out, m->paragraph_end);
}

/* The case that all rows share, in front of the table. */
static void begin(const lap_comparison *c, const markup *m, const lap_selection *columns,
                  lap_text *out) {
    lap_text shared = {0};
    lap_text_add(out, m->begin);
    if (c->line_count) lap_words_case(&shared, c, columns);
    if (shared.length || shared.failed) {
        lap_text_add(out, m->above);
        add_escaped(out, m, lap_text_get(&shared));
        lap_text_add(out, m->above_end);
    }
    if (shared.failed) out->failed = true;
    lap_text_free(&shared);
}

static lap_status finish(const lap_comparison *c, const markup *m, const lap_selection *columns,
                         lap_text *out, lap_error *err) {
    lap_text legend = {0};
    lap_words_legend(&legend, c, columns, true);
    add_paragraph(out, m, &legend);
    lap_text_free(&legend);
    for (int topic = 0; topic < LAP_TOPICS; topic++) {
        listing l = {out, m, (lap_topic)topic, false};
        if (!lap_words_each(c, (lap_topic)topic, true, add_item, &l)) out->failed = true;
        if (l.any) lap_text_add(out, m->list_end);
    }
    lap_text summary = {0};
    lap_words_summary(&summary, c);
    add_paragraph(out, m, &summary);
    lap_text_add(out, m->end);
    lap_text_free(&summary);
    return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the document") : LAP_OK;
}

/* ---- Markdown ------------------------------------------------------------------------------- */

lap_status lap_compare_markdown(const lap_comparison *c, const lap_selection *columns,
                                lap_text *out, lap_error *err) {
    static const markup m = {.escape = lap_escape_markdown,
                             .begin = "",
                             .end = "",
                             .above = "",
                             .above_end = "\n\n",
                             .row = "|",
                             .cell = " ",
                             .next = " | ",
                             .row_end = " |\n",
                             .head_cell = " ",
                             .head_next = " | ",
                             .title = "\n**",
                             .title_end = "**\n\n",
                             .list = "",
                             .item = "- ",
                             .item_end = "\n",
                             .list_end = "",
                             .paragraph = "\n",
                             .paragraph_end = "\n"};
    begin(c, &m, columns, out);
    add_header(out, &m, columns);
    lap_text_add(out, " |\n|");
    for (size_t i = 0; i < columns->count; i++)
        lap_text_add(out, columns->columns[i]->right ? "--:|" : "---|");
    lap_text_add(out, "\n");
    for (size_t i = 0; i < c->line_count; i++)
        add_row(out, &m, c, columns, &c->lines[i]);
    return finish(c, &m, columns, out, err);
}

/* ---- HTML ----------------------------------------------------------------------------------- */

lap_status lap_compare_html(const lap_comparison *c, const lap_selection *columns, lap_text *out,
                            lap_error *err) {
    static const markup m = {
        .escape = lap_escape_html,
        .begin = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width\">\n"
                 "<title>warmlap: comparison</title>\n<style>\n"
                 ":root { color-scheme: light dark; }\n"
                 "body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 75em; "
                 "padding: 0 1em; }\n"
                 "table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n"
                 "th, td { border-bottom: 1px solid #8888; padding: .25em .7em; text-align: left; "
                 "overflow-wrap: anywhere; }\n"
                 "</style>\n</head>\n<body>\n<h1>Comparison</h1>\n",
        .end = "</body>\n</html>\n",
        .above = "<p>",
        .above_end = "</p>\n",
        .row = "<tr>",
        .cell = "<td>",
        .next = "</td><td>",
        .row_end = "</td></tr>\n",
        .head_cell = "<th scope=\"col\">",
        .head_next = "</th><th scope=\"col\">",
        .title = "<h2>",
        .title_end = "</h2>\n",
        .list = "<ul>\n",
        .item = "<li>",
        .item_end = "</li>\n",
        .list_end = "</ul>\n",
        .paragraph = "<p>",
        .paragraph_end = "</p>\n"};
    begin(c, &m, columns, out);
    lap_text_add(out, "<table>\n<thead>\n");
    add_header(out, &m, columns);
    lap_text_add(out, "</th></tr>\n</thead>\n<tbody>\n");
    for (size_t i = 0; i < c->line_count; i++)
        add_row(out, &m, c, columns, &c->lines[i]);
    lap_text_add(out, "</tbody>\n</table>\n");
    return finish(c, &m, columns, out, err);
}

/* ---- LaTeX ---------------------------------------------------------------------------------- */

lap_status lap_compare_latex(const lap_comparison *c, const lap_selection *columns, lap_text *out,
                             lap_error *err) {
    static const markup m = {.escape = lap_escape_latex,
                             .begin = "",
                             .end = "",
                             .above = "\\noindent ",
                             .above_end = "\n\n\\medskip\\noindent\n",
                             .row = "",
                             .cell = "",
                             .next = " & ",
                             .row_end = " \\\\\n",
                             .head_cell = "",
                             .head_next = " & ",
                             .plus_minus = "$\\pm$",
                             .title = "\n\\paragraph{",
                             .title_end = "}\n",
                             .list = "\\begin{itemize}\n",
                             .item = "\\item ",
                             .item_end = "\n",
                             .list_end = "\\end{itemize}\n",
                             .paragraph = "\n\\noindent ",
                             .paragraph_end = "\n"};
    begin(c, &m, columns, out);
    lap_text_add(out, "\\begin{tabular}{");
    for (size_t i = 0; i < columns->count; i++)
        lap_text_add(out, columns->columns[i]->right ? "r" : "l");
    lap_text_add(out, "}\n\\hline\n");
    add_header(out, &m, columns);
    lap_text_add(out, " \\\\\n\\hline\n");
    for (size_t i = 0; i < c->line_count; i++)
        add_row(out, &m, c, columns, &c->lines[i]);
    lap_text_add(out, "\\hline\n\\end{tabular}\n");
    return finish(c, &m, columns, out, err);
}
