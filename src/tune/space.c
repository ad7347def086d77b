/* Enumerates parameter vectors (see space.h). Judges nothing but what the rows themselves say. */
#include "tune/space.h"

#include "base/rng.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool lap_candidate_same(const lap_candidate *a, const lap_candidate *b) {
    if (a->row != b->row) return false;
    for (int i = 0; i < a->row->tunable_count; i++)
        if (a->params.value[i] != b->params.value[i]) return false;
    return true;
}

uint64_t lap_tune_bucket(uint64_t batch) {
    uint64_t bucket = 1;
    while (bucket <= batch / 2)
        bucket *= 2;
    return bucket;
}

/* ---- texts ---------------------------------------------------------------------------------- */

static void add_shape(lap_text *text, const lap_tensor *t) {
    lap_text_addf(text, " %dx%dx%d", t->c, t->h, t->w);
}

static void add_op(lap_text *text, const lap_op *op) {
    lap_text_add(text, lap_op_kind_name(op->kind));
    add_shape(text, &op->in);
    add_shape(text, &op->out);
    if (op->kind == LAP_OP_CONV || op->kind == LAP_OP_MAXPOOL || op->kind == LAP_OP_DWCONV)
        lap_text_addf(text, " %dx%d/%d+%d", op->r, op->s, op->stride, op->pad);
    if (op->act > LAP_ACT_RELU) lap_text_addf(text, " %s", lap_activation_name(op->act));
}

void lap_tune_signature(const lap_case *c, char *buffer, size_t size) {
    static const char *const joins[LAP_FUSE_COUNT] = {"",      " then ", " plus ", " then ",
                                                      " and ", " then ", " of ",   " then "};
    lap_text text = {0};
    add_op(&text, c->op);
    if (c->op->residual >= 0 && c->op->kind != LAP_OP_SCALE && c->fusion != LAP_FUSE_DOWNSAMPLE)
        lap_text_add(&text, " add");
    if (c->partner) {
        lap_text_add(&text, joins[c->fusion]);
        add_op(&text, c->partner);
    }
    snprintf(buffer, size, "%s", lap_text_get(&text));
    lap_text_free(&text);
}

uint64_t lap_tune_source_hash(const lap_kernel_row *row, const char *language) {
    uint64_t hash = 0xCBF29CE484222325u;
    bool any = false;
    for (int s = 0; s < row->stage_count; s++) {
        if (row->stages[s].kind != LAP_STAGE_KERNEL) continue;
        const char *text = lap_kernel_source(language, row->stages[s].stem);
        for (; text && *text; text++) {
            hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
            any = true;
        }
    }
    return any ? hash : 0;
}

static int tunable_named(const lap_kernel_row *row, const char *name, size_t length) {
    for (int i = 0; i < row->tunable_count; i++)
        if (strlen(row->tunables[i].name) == length &&
            strncmp(row->tunables[i].name, name, length) == 0)
            return i;
    return -1;
}

bool lap_tune_params_parse(const lap_kernel_row *row, const char *text, lap_params *out) {
    lap_params params = {0};
    unsigned seen = 0;
    int count = 0;
    for (const char *p = text; *p;) {
        size_t word = strcspn(p, " "), name = strcspn(p, "=");
        char number[24];
        int64_t value;
        if (name >= word || word - name - 1 >= sizeof number) return false;
        memcpy(number, p + name + 1, word - name - 1);
        number[word - name - 1] = '\0';
        int index = tunable_named(row, p, name);
        if (index < 0 || seen & 1u << index || number[0] == '\0') return false;
        if (!lap_parse_i64(number, &value) || value < INT32_MIN || value > INT32_MAX) return false;
        params.value[index] = (int)value;
        seen |= 1u << index;
        count++;
        p += word;
        if (*p && *++p == '\0') return false; /* a blank at the end */
    }
    if (count != row->tunable_count) return false;
    *out = params;
    return true;
}

void lap_candidate_text(const lap_candidate *candidate, char *buffer, size_t size) {
    char params[LAP_TUNE_TEXT];
    lap_kernel_params_text(candidate->row, &candidate->params, params, sizeof params);
    for (char *p = params; *p; p++)
        if (*p == ' ') *p = ',';
    snprintf(buffer, size, "%s%s%s", candidate->row->id, *params ? ":" : "", params);
}

bool lap_candidate_parse(const char *word, lap_candidate *out) {
    char id[48], params[LAP_TUNE_TEXT];
    size_t length = strcspn(word, ":");
    if (length >= sizeof id || strlen(word) >= sizeof params) return false;
    memcpy(id, word, length);
    id[length] = '\0';
    snprintf(params, sizeof params, "%s", word[length] ? word + length + 1 : "");
    for (char *p = params; *p; p++)
        if (*p == ',') *p = ' ';
    out->row = lap_kernel_find(id);
    return out->row && lap_tune_params_parse(out->row, params, &out->params);
}

/* ---- enumeration ---------------------------------------------------------------------------- */

typedef struct list {
    lap_candidate *items;
    size_t count, capacity;
} list;

static bool append(list *l, const lap_candidate *item) {
    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? 2 * l->capacity : 64;
        lap_candidate *more = realloc(l->items, capacity * sizeof *more);
        if (!more) return false;
        l->items = more;
        l->capacity = capacity;
    }
    l->items[l->count++] = *item;
    return true;
}

static uint64_t space_size(const lap_kernel_row *row) {
    uint64_t size = 1;
    for (int i = 0; i < row->tunable_count; i++)
        size *= (uint64_t)row->tunables[i].value_count; /* at most 12^12 */
    return size;
}

static lap_candidate vector_at(const lap_kernel_row *row, uint64_t index) {
    lap_candidate c = {.row = row};
    for (int i = 0; i < row->tunable_count; i++) {
        uint64_t values = (uint64_t)row->tunables[i].value_count;
        c.params.value[i] = row->tunables[i].values[index % values];
        index /= values;
    }
    return c;
}

static uint64_t below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t limit) {
    return (uint64_t)(lap_rng_uniform(seed, stream, index) * (double)limit);
}

static bool is_valid(const lap_case *c, const lap_candidate *candidate) {
    lap_case trial = *c;
    trial.params = candidate->params;
    return candidate->row->valid(&trial);
}

/* One row's valid vectors, shuffled. */
static bool add_row(const lap_case *c, const lap_kernel_row *row, uint64_t seed, list *out) {
    uint64_t size = space_size(row), stream = lap_rng_stream(row->id);
    uint64_t taken = size < LAP_SPACE_ROW_MOST ? size : LAP_SPACE_ROW_MOST;
    size_t first = out->count;
    for (uint64_t i = 0; i < taken; i++) {
        uint64_t at = size == taken ? i : below(seed, stream + 1, i, size);
        lap_candidate candidate = vector_at(row, at);
        if (is_valid(c, &candidate) && !append(out, &candidate)) return false;
    }
    for (size_t i = out->count; i > first + 1; i--) {
        size_t j = first + (size_t)below(seed, stream, i, i - first);
        lap_candidate swap = out->items[i - 1];
        out->items[i - 1] = out->items[j];
        out->items[j] = swap;
    }
    return true;
}

enum { ROWS_MOST = 64 };

/* Rows in turn, so that a cut anywhere leaves each its share; ends[r] is where row r's part of
 * `from` ends. */
static bool interleave(const list *from, const size_t *ends, size_t rows, list *out) {
    size_t next[ROWS_MOST];
    for (size_t r = 0; r < rows; r++)
        next[r] = r ? ends[r - 1] : 0;
    for (bool any = true; any;) {
        any = false;
        for (size_t r = 0; r < rows; r++) {
            if (next[r] >= ends[r]) continue;
            if (!append(out, &from->items[next[r]++])) return false;
            any = true;
        }
    }
    return true;
}

lap_status lap_space_new(const lap_case *c, bool has_gemm, uint64_t seed, lap_candidate **out,
                         size_t *count, lap_error *err) {
    size_t row_count, ends[ROWS_MOST], rows = 0;
    const lap_kernel_row *const *all = lap_kernel_rows(&row_count);
    list grouped = {0}, mixed = {0};
    bool ok = true;
    *out = NULL;
    *count = 0;
    for (size_t i = 0; i < row_count && ok && rows < ROWS_MOST; i++) {
        if (all[i]->variant || all[i]->naive || !lap_kernel_can_run(all[i], c, has_gemm)) continue;
        ok = add_row(c, all[i], seed, &grouped);
        ends[rows++] = grouped.count;
    }
    ok = ok && interleave(&grouped, ends, rows, &mixed);
    for (size_t i = 0; i < row_count && ok; i++)
        if (!all[i]->variant && all[i]->naive && lap_kernel_can_run(all[i], c, has_gemm))
            ok = add_row(c, all[i], seed, &mixed);
    free(grouped.items);
    if (!ok) {
        free(mixed.items);
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for its parameter vectors", c->op->name);
    }
    *out = mixed.items;
    *count = mixed.count;
    return LAP_OK;
}

size_t lap_space_neighbours(const lap_case *c, const lap_candidate *from, lap_candidate *out) {
    size_t count = 0;
    for (int i = 0; i < from->row->tunable_count; i++) {
        const lap_tunable *t = &from->row->tunables[i];
        int value = from->params.value[i], lower = -1, upper = -1;
        for (int v = 0; v < t->value_count; v++) { /* lists are not bound to be sorted */
            int x = t->values[v];
            if (x < value && (lower < 0 || x > t->values[lower])) lower = v;
            if (x > value && (upper < 0 || x < t->values[upper])) upper = v;
        }
        for (int side = 0; side < 2; side++) {
            int v = side ? upper : lower;
            if (v < 0) continue;
            out[count] = *from;
            out[count].params.value[i] = t->values[v];
            if (is_valid(c, &out[count])) count++;
        }
    }
    return count;
}
