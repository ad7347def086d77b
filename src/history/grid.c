/* Tables in three forms (see grid.h). */
#include "history/grid.h"
#include "report/escape.h"
#include "report/format.h"
#include "report/json_build.h"

typedef struct cell {
    char *value, *shown; /* value NULL: absent; shown NULL: the value */
    bool number;
} cell;

struct lap_grid {
    const lap_grid_column *columns;
    size_t column_count, row_count, capacity, next;
    cell *cells; /* row by row */
    lap_tone *tones;
    bool hidden[LAP_SHEET_COLUMNS];
    bool failed;
};

lap_grid *lap_grid_new(const lap_grid_column *columns, size_t count) {
    lap_grid *g = calloc(1, sizeof *g);
    if (g) *g = (lap_grid){.columns = columns, .column_count = count};
    return g;
}

void lap_grid_hide(lap_grid *g, size_t column) {
    if (g) g->hidden[column] = true;
}

void lap_grid_row(lap_grid *g, lap_tone tone) {
    if (!g || g->failed) return;
    if (g->row_count == g->capacity) {
        size_t capacity = g->capacity ? 2 * g->capacity : 32;
        cell *cells = realloc(g->cells, capacity * g->column_count * sizeof *cells);
        if (cells) g->cells = cells;
        lap_tone *tones = realloc(g->tones, capacity * sizeof *tones);
        if (tones) g->tones = tones;
        g->failed = !cells || !tones;
        if (g->failed) return;
        g->capacity = capacity;
    }
    memset(&g->cells[g->row_count * g->column_count], 0, g->column_count * sizeof *g->cells);
    g->tones[g->row_count++] = tone;
    g->next = 0;
}

static void put(lap_grid *g, const char *value, const char *shown, bool number) {
    if (!g || g->failed || g->row_count == 0 || g->next == g->column_count) return;
    cell *c = &g->cells[(g->row_count - 1) * g->column_count + g->next++];
    c->number = number;
    if (value) c->value = strdup(value);
    if (shown) c->shown = strdup(shown);
    g->failed = (value && !c->value) || (shown && !c->shown);
}

void lap_grid_text(lap_grid *g, const char *value, const char *shown) {
    put(g, value, shown, false);
}

void lap_grid_real(lap_grid *g, lap_optional value, const char *shown) {
    char text[40];
    lap_format_double(text, sizeof text, LAP_REAL_DIGITS, value.value);
    put(g, value.has ? text : NULL, shown, true);
}

void lap_grid_count(lap_grid *g, uint64_t value, const char *shown) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put(g, value ? text : NULL, shown, true);
}

static lap_status no_memory(lap_error *err) {
    return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table");
}

static const cell *at(const lap_grid *g, size_t row, size_t column) {
    return &g->cells[row * g->column_count + column];
}

lap_status lap_grid_table(const lap_grid *g, const lap_style *style, lap_text *out,
                          lap_error *err) {
    lap_sheet_column columns[LAP_SHEET_COLUMNS];
    const char *texts[LAP_SHEET_COLUMNS];
    if (!g || g->failed) return no_memory(err);
    for (size_t i = 0; i < g->column_count; i++)
        columns[i] = g->columns[i].shown;
    lap_sheet *sheet = lap_sheet_new(columns, g->column_count);
    for (size_t i = 0; i < g->column_count; i++)
        if (g->hidden[i]) lap_sheet_hide(sheet, i);
    for (size_t r = 0; r < g->row_count; r++) {
        for (size_t i = 0; i < g->column_count; i++) {
            const cell *c = at(g, r, i);
            const char *text = c->shown ? c->shown : c->value;
            texts[i] = text && *text ? text : "-";
        }
        lap_sheet_add(sheet, texts, g->tones[r]);
    }
    lap_status status = lap_sheet_print(sheet, style, out, err);
    lap_sheet_free(sheet);
    return status;
}

lap_status lap_grid_csv(const lap_grid *g, lap_text *out, lap_error *err) {
    if (!g || g->failed) return no_memory(err);
    for (size_t i = 0; i < g->column_count; i++)
        lap_text_addf(out, "%s%s", i ? "," : "", g->columns[i].key);
    lap_text_add(out, "\r\n");
    for (size_t r = 0; r < g->row_count; r++) {
        for (size_t i = 0; i < g->column_count; i++) {
            if (i) lap_text_add(out, ",");
            lap_escape_csv(out, at(g, r, i)->value);
        }
        lap_text_add(out, "\r\n");
    }
    return out->failed ? no_memory(err) : LAP_OK;
}

static json_t *value_of(const cell *c) {
    double number;
    uint64_t whole;
    if (!c->value) return json_null();
    if (!c->number) return text_value(c->value);
    if (lap_parse_u64(c->value, &whole)) return json_integer((json_int_t)whole);
    return lap_parse_double(c->value, &number) ? json_real(number) : json_null();
}

lap_status lap_grid_json(const lap_grid *g, lap_text *out, lap_error *err) {
    if (!g || g->failed) return no_memory(err);
    builder b = {false};
    json_t *list = json_array();
    for (size_t r = 0; r < g->row_count; r++) {
        json_t *o = json_object();
        for (size_t i = 0; i < g->column_count; i++)
            set(&b, o, g->columns[i].key, value_of(at(g, r, i)));
        push(&b, list, o);
    }
    char *text =
        b.failed ? NULL : json_dumps(list, JSON_INDENT(1) | JSON_REAL_PRECISION(LAP_REAL_DIGITS));
    json_decref(list);
    if (text) lap_text_add(out, text);
    lap_text_add(out, "\n");
    bool failed = !text || out->failed;
    free(text);
    return failed ? no_memory(err) : LAP_OK;
}

void lap_grid_free(lap_grid *g) {
    if (!g) return;
    for (size_t i = 0; i < g->row_count * g->column_count; i++) {
        free(g->cells[i].value);
        free(g->cells[i].shown);
    }
    free(g->cells);
    free(g->tones);
    free(g);
}
