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

void lap_escape_csv(lap_text *out, const char *text) {
    if (!text) return;
    size_t n = strlen(text);
    bool blank_end = n > 0 && (text[0] == ' ' || text[n - 1] == ' ');
    if (!text[strcspn(text, ",\"\r\n")] && !blank_end) {
        lap_text_add(out, text);
        return;
    }
    lap_text_add(out, "\"");
    for (const char *s = text; *s; s++)
        lap_text_addn(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    lap_text_add(out, "\"");
}
