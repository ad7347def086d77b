/* The contract between kernels_cl and kernels_cu, and between them and the rows: a stem that exists
 * in both has the same entries, arguments and defines; a row's roles are its kernel's arguments.
 * Reads the embedded texts; compiles nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "kernel/kernel.h"
#include "kernel/tools.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES 8
#define MAX_NAMES 64

typedef struct entry {
    char name[64];
    int arg_count;
    char args[16][96]; /* normalised: "const float*in" */
} entry;

typedef struct source {
    entry entries[MAX_ENTRIES];
    int entry_count;
    char defines[MAX_NAMES][32]; /* of the #ifndef blocks, sorted */
    int define_count;
} source;

/* Comments become blanks. */
static char *without_comments(const char *text) {
    char *copy = malloc(strlen(text) + 1), *to = copy;
    assert_non_null(copy);
    for (const char *s = text; *s;) {
        if (s[0] == '/' && s[1] == '*') {
            const char *end = strstr(s + 2, "*/");
            assert_non_null(end);
            s = end + 2;
            *to++ = ' ';
        } else if (s[0] == '/' && s[1] == '/') {
            while (*s && *s != '\n')
                s++;
        } else {
            *to++ = *s++;
        }
    }
    *to = '\0';
    return copy;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* One argument without qualifiers that differ between the languages; blanks only between words. */
static void normalise(const char *from, size_t length, char *to, size_t size) {
    static const char *const dropped[] = {"__global", "restrict", "__restrict__"};
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        if (!is_word(from[i])) {
            if (!isspace((unsigned char)from[i]) && used + 1 < size) to[used++] = from[i];
            i++;
            continue;
        }
        size_t word = i;
        while (i < length && is_word(from[i]))
            i++;
        bool drop = false;
        for (size_t d = 0; d < sizeof dropped / sizeof dropped[0]; d++)
            drop |= strlen(dropped[d]) == i - word && !strncmp(dropped[d], from + word, i - word);
        if (drop) continue;
        if (used && is_word(to[used - 1]) && used + 1 < size) to[used++] = ' ';
        for (; word < i && used + 1 < size; word++)
            to[used++] = from[word];
    }
    to[used] = '\0';
}

/* The parenthesis that closes the one at open. */
static const char *closing(const char *open) {
    int depth = 0;
    for (const char *s = open; *s; s++) {
        if (*s == '(') depth++;
        if (*s == ')' && --depth == 0) return s;
    }
    fail_msg("unbalanced parenthesis: %.60s", open);
    return NULL;
}

/* s is behind the kernel keyword: skips attributes and void, reads name and arguments. */
static void parse_entry(const char *s, entry *e) {
    for (;;) {
        while (isspace((unsigned char)*s))
            s++;
        const char *word = s;
        while (is_word(*s))
            s++;
        assert_true(s > word);
        size_t length = (size_t)(s - word);
        while (isspace((unsigned char)*s))
            s++;
        if (length == 4 && strncmp(word, "void", 4) == 0) continue;
        assert_int_equal(*s, '(');
        const char *end = closing(s);
        if (strncmp(word, "__attribute__", 13) == 0 ||
            strncmp(word, "__launch_bounds__", 17) == 0) {
            s = end + 1;
            continue;
        }
        assert_true(length < sizeof e->name);
        memcpy(e->name, word, length);
        e->name[length] = '\0';
        for (const char *arg = s + 1; arg < end; e->arg_count++) {
            const char *comma = memchr(arg, ',', (size_t)(end - arg));
            if (!comma) comma = end;
            assert_true(e->arg_count < 16);
            normalise(arg, (size_t)(comma - arg), e->args[e->arg_count], sizeof e->args[0]);
            if (strcmp(e->args[e->arg_count], "void") == 0) return; /* no arguments at all */
            arg = comma + 1;
        }
        return;
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static void parse_defines(const char *text, source *out) {
    for (const char *s = text; (s = strstr(s, "#ifndef ")); s++) {
        char name[32], defined[32];
        if (sscanf(s, "#ifndef %31s\n#define %31s", name, defined) != 2) continue;
        if (strcmp(name, defined) != 0) continue;
        assert_true(out->define_count < MAX_NAMES);
        strcpy(out->defines[out->define_count++], name);
    }
    qsort(out->defines, (size_t)out->define_count, sizeof out->defines[0], by_name);
}

static source parse(const char *language, const char *text) {
    source out = {0};
    const char *keyword = strcmp(language, "cl") == 0 ? "__kernel" : "__global__";
    char *plain = without_comments(text);
    for (const char *s = plain; (s = strstr(s, keyword));) {
        s += strlen(keyword);
        assert_true(out.entry_count < MAX_ENTRIES);
        parse_entry(s, &out.entries[out.entry_count++]);
    }
    parse_defines(plain, &out);
    free(plain);
    return out;
}

static const entry *find_entry(const source *s, const char *name) {
    for (int i = 0; i < s->entry_count; i++)
        if (strcmp(s->entries[i].name, name) == 0) return &s->entries[i];
    return NULL;
}

static bool has_define(const source *s, const char *name) {
    for (int i = 0; i < s->define_count; i++)
        if (strcmp(s->defines[i], name) == 0) return true;
    return false;
}

static void pairs_agree(void **state) {
    (void)state;
    const char *language, *stem, *text;
    int pairs = 0;
    for (size_t i = 0; lap_kernel_source_at(i, &language, &stem, &text); i++) {
        const char *other = lap_kernel_source("cu", stem);
        if (strcmp(language, "cl") != 0 || !other) continue;
        source a = parse("cl", text), b = parse("cu", other);
        pairs++;
        if (a.entry_count != b.entry_count)
            fail_msg("%s: %d entries in cl, %d in cu", stem, a.entry_count, b.entry_count);
        for (int e = 0; e < a.entry_count; e++) {
            const entry *x = &a.entries[e], *y = find_entry(&b, x->name);
            if (!y) fail_msg("%s: entry %s is missing in cu", stem, x->name);
            if (x->arg_count != y->arg_count)
                fail_msg("%s: %d arguments in cl, %d in cu", x->name, x->arg_count, y->arg_count);
            for (int k = 0; k < x->arg_count; k++)
                if (strcmp(x->args[k], y->args[k]) != 0)
                    fail_msg("%s, argument %d: '%s' in cl, '%s' in cu", x->name, k, x->args[k],
                             y->args[k]);
        }
        for (int d = 0; d < a.define_count; d++)
            if (!has_define(&b, a.defines[d]))
                fail_msg("%s: cl documents %s, cu does not", stem, a.defines[d]);
        for (int d = 0; d < b.define_count; d++)
            if (!has_define(&a, b.defines[d]))
                fail_msg("%s: cu documents %s, cl does not", stem, b.defines[d]);
    }
    assert_true(pairs >= 4); /* the naive ones at least, or the parser found nothing */
}

static void sources_keep_the_rules(void **state) {
    (void)state;
    const char *language, *stem, *text;
    for (size_t i = 0; lap_kernel_source_at(i, &language, &stem, &text); i++) {
        source s = parse(language, text);
        if (strncmp(text, "/*", 2) != 0) fail_msg("%s.%s: no opening comment", stem, language);
        if (s.entry_count < 1) fail_msg("%s.%s: no kernel", stem, language);
        if (!has_define(&s, "PRECISION")) fail_msg("%s.%s: no PRECISION block", stem, language);
        if (strstr(text, "fast_math") || strstr(text, "native_"))
            fail_msg("%s.%s: relaxed arithmetic", stem, language);
        for (int e = 0; e < s.entry_count; e++)
            for (int k = 0; k < s.entries[e].arg_count; k++) {
                const char *arg = s.entries[e].args[k];
                bool scalar = strchr(arg, '*') == NULL;
                if (scalar && strncmp(arg, "const int ", 10) != 0)
                    fail_msg("%s.%s: '%s' is neither a pointer nor const int", stem, language, arg);
                if (strstr(arg, "size_t") || strstr(arg, "ptrdiff_t") || strstr(arg, "bool"))
                    fail_msg("%s.%s: '%s' has no fixed size", stem, language, arg);
            }
    }
}

static void check_roles(const char *where, const lap_stage *stage, const entry *e) {
    if (e->arg_count != stage->role_count)
        fail_msg("%s: %d roles, %d arguments", where, stage->role_count, e->arg_count);
    for (int i = 0; i < e->arg_count; i++) {
        lap_role role = stage->roles[i];
        const char *arg = e->args[i];
        bool scalar = role == LAP_ROLE_N || role == LAP_ROLE_FLAGS || role == LAP_ROLE_FIRST ||
                      role == LAP_ROLE_COUNT;
        bool written = role == LAP_ROLE_OUT || role == LAP_ROLE_OUT2 || role == LAP_ROLE_SCRATCH ||
                       role == LAP_ROLE_MEMORY || role == LAP_ROLE_SYNC;
        if (scalar != (strchr(arg, '*') == NULL))
            fail_msg("%s, argument %d: '%s' does not fit role %d", where, i, arg, (int)role);
        if (written && role != LAP_ROLE_SCRATCH && strncmp(arg, "const ", 6) == 0)
            fail_msg("%s, argument %d: '%s' cannot be written", where, i, arg);
        if (!written && strncmp(arg, "const ", 6) != 0)
            fail_msg("%s, argument %d: '%s' should be const", where, i, arg);
    }
}

static void rows_match_sources(void **state) {
    (void)state;
    static const char *const languages[] = {"cl", "cu"};
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count * 2; i++) {
        const lap_kernel_row *row = rows[i / 2];
        const char *language = languages[i % 2];
        if (row->only && strcmp(row->only, language) != 0) continue;
        for (int t = 0; !row->chain && t < row->tunable_count; t++) {
            bool known = false;
            for (int s = 0; s < row->stage_count; s++) {
                if (row->stages[s].kind != LAP_STAGE_KERNEL) continue;
                const char *text = lap_kernel_source(language, row->stages[s].stem);
                if (!text) fail_msg("%s: no %s.%s", row->id, row->stages[s].stem, language);
                source parsed = parse(language, text);
                known |= has_define(&parsed, row->tunables[t].name);
            }
            if (!known) fail_msg("%s: no kernel uses %s", row->id, row->tunables[t].name);
        }
        for (int s = 0; s < row->stage_count; s++) {
            const lap_stage *stage = &row->stages[s];
            char where[160];
            snprintf(where, sizeof where, "%s, stage %d in %s", row->id, s, language);
            if (stage->kind == LAP_STAGE_GEMM) {
                assert_true(row->needs_gemm && stage->role_count == 3 && stage->gemm);
                continue;
            }
            assert_non_null(stage->grid);
            const char *text = lap_kernel_source(language, stage->stem);
            if (!text) fail_msg("%s: no %s.%s", where, stage->stem, language);
            source parsed = parse(language, text);
            const entry *e = find_entry(&parsed, stage->entry);
            if (!e) fail_msg("%s: no entry %s", where, stage->entry);
            check_roles(where, stage, e);
        }
    }
}

/* A tool's entries are those of its sources, no more and no fewer. */
static void tools_match_sources(void **state) {
    (void)state;
    static const char *const languages[] = {"cl", "cu"};
    const lap_tool *tool;
    size_t i = 0;
    for (; (tool = lap_tool_at(i)); i++)
        for (int l = 0; l < 2; l++) {
            if (tool->only && strcmp(tool->only, languages[l]) != 0) continue;
            const char *text = lap_kernel_source(languages[l], tool->stem);
            if (!text) fail_msg("no %s.%s", tool->stem, languages[l]);
            source parsed = parse(languages[l], text);
            int entries = 0;
            for (; entries < 4 && tool->entries[entries]; entries++)
                if (!find_entry(&parsed, tool->entries[entries]))
                    fail_msg("%s.%s: no entry %s", tool->stem, languages[l],
                             tool->entries[entries]);
            assert_int_equal(entries, parsed.entry_count);
            for (int v = 0; v < 3 && tool->variants[v]; v++)
                for (size_t d = 0; d < tool->variant_counts[v]; d++)
                    if (!has_define(&parsed, tool->variants[v][d].name))
                        fail_msg("%s.%s does not document %s", tool->stem, languages[l],
                                 tool->variants[v][d].name);
        }
    assert_true(i >= 3);
}

static bool is_tool(const char *stem, const char *language) {
    const lap_tool *tool;
    for (size_t i = 0; (tool = lap_tool_at(i)); i++)
        if (strcmp(tool->stem, stem) == 0 && (!tool->only || !strcmp(tool->only, language)))
            return true;
    return false;
}

/* The other way round: no source that no row and no tool uses. */
static void every_source_is_used(void **state) {
    (void)state;
    const char *language, *stem, *text;
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; lap_kernel_source_at(i, &language, &stem, &text); i++) {
        bool used = is_tool(stem, language);
        for (size_t r = 0; r < count; r++)
            for (int s = 0; s < rows[r]->stage_count; s++) {
                const char *wanted = rows[r]->stages[s].stem;
                used |= wanted && strcmp(wanted, stem) == 0 &&
                        (!rows[r]->only || strcmp(rows[r]->only, language) == 0);
            }
        used |= strcmp(stem, "nop") == 0; /* the launch floor's, which is no row */
        if (!used) fail_msg("%s.%s: no row and no tool uses it", stem, language);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_agree),          cmocka_unit_test(sources_keep_the_rules),
        cmocka_unit_test(rows_match_sources),   cmocka_unit_test(tools_match_sources),
        cmocka_unit_test(every_source_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
