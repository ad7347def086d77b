/* Escaping for documents (see escape.h). Knows characters, not what they stand for. */
#include "report/escape.h"

#include <string.h>

typedef struct replacement {
    char character;
    const char *text;
} replacement;

/* The replacements end with one of '\0'. */
static void add_replaced(lap_text *out, const char *text, const replacement *table) {
    lap_text clean = {0};
    lap_text_add(&clean, text);
    if (clean.data) lap_text_clean(clean.data);
    for (const char *s = lap_text_get(&clean); *s; s++) {
        const replacement *r = table;
        while (r->character && r->character != *s)
            r++;
        if (r->character)
            lap_text_add(out, r->text);
        else
            lap_text_addn(out, s, 1);
    }
    if (clean.failed) out->failed = true;
    lap_text_free(&clean);
}

void lap_escape_markdown(lap_text *out, const char *text) {
    static const replacement table[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\\', "\\\\"}, {'`', "\\`"}, {'*', "\\*"},
        {'_', "\\_"},   {'{', "\\{"},  {'}', "\\}"},  {'[', "\\["},   {']', "\\]"}, {'|', "\\|"},
        {'#', "\\#"},   {'~', "\\~"},  {'!', "\\!"},  {'$', "\\$"},   {'\0', NULL}};
    add_replaced(out, text, table);
}

void lap_escape_html(lap_text *out, const char *text) {
    static const replacement table[] = {{'&', "&amp;"},  {'<', "&lt;"},   {'>', "&gt;"},
                                        {'"', "&quot;"}, {'\'', "&#39;"}, {'\0', NULL}};
    add_replaced(out, text, table);
}

/* '-' is followed by an empty group, so that two of them stay two. */
void lap_escape_latex(lap_text *out, const char *text) {
    static const replacement table[] = {{'\\', "\\textbackslash{}"},
                                        {'{', "\\{"},
                                        {'}', "\\}"},
                                        {'$', "\\$"},
                                        {'&', "\\&"},
                                        {'#', "\\#"},
                                        {'%', "\\%"},
                                        {'_', "\\_"},
                                        {'^', "\\textasciicircum{}"},
                                        {'~', "\\textasciitilde{}"},
                                        {'<', "\\textless{}"},
                                        {'>', "\\textgreater{}"},
                                        {'|', "\\textbar{}"},
                                        {'`', "\\textasciigrave{}"},
                                        {'-', "-{}"},
                                        /* a bracket after \\ would be its argument */
                                        {'[', "{[}"},
                                        {']', "{]}"},
                                        {'*', "{*}"},
                                        {'\0', NULL}};
    add_replaced(out, text, table);
}

/* What spreadsheets take for a formula. A number is none, whatever its sign. */
static bool is_formula(const char *text) {
    double number;
    return text[0] && strchr("=+-@", text[0]) && text[1] && !lap_parse_double(text, &number);
}

void lap_escape_csv(lap_text *out, const char *text) {
    lap_text clean = {0};
    if (!text) return;
    lap_text_add(&clean, is_formula(text) ? "'" : "");
    lap_text_add(&clean, text);
    if (clean.data) clean.length = lap_text_blank_controls(clean.data);
    const char *s = lap_text_get(&clean);
    size_t n = clean.length;
    bool quotes = s[strcspn(s, ",\"")] || (n > 0 && (s[0] == ' ' || s[n - 1] == ' '));
    lap_text_add(out, quotes ? "\"" : "");
    for (; *s; s++)
        lap_text_addn(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    lap_text_add(out, quotes ? "\"" : "");
    if (clean.failed) out->failed = true;
    lap_text_free(&clean);
}
