/* Text helpers. Number parsing goes through a private "C" locale, so that the program's locale (or
 * one that a driver sets behind our back) never changes what "0.5" means. */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- growing strings ------------------------------------------------------------------------ */

static bool reserve(lap_text *text, size_t more) {
    if (text->failed) return false;
    if (more > SIZE_MAX / 2 - text->length) {
        text->failed = true;
        return false;
    }
    size_t need = text->length + more + 1;
    if (need <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void lap_text_addn(lap_text *text, const char *s, size_t n) {
    if (!reserve(text, n)) return;
    memcpy(text->data + text->length, s, n);
    text->length += n;
    text->data[text->length] = '\0';
}

void lap_text_add(lap_text *text, const char *s) {
    lap_text_addn(text, s, strlen(s));
}

void lap_text_addf(lap_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(text, (size_t)n)) {
        vsnprintf(text->data + text->length, (size_t)n + 1, format, again);
        text->length += (size_t)n;
    }
    va_end(again);
}

void lap_text_free(lap_text *text) {
    free(text->data);
    *text = (lap_text){0};
}

const char *lap_text_get(const lap_text *text) {
    return text->data ? text->data : "";
}

/* ---- numbers -------------------------------------------------------------------------------- */

static bool blank(char c) {
    return c == ' ' || c == '\t';
}

/* Skip blanks; digits must follow (after one optional sign when it is allowed). */
static const char *number_start(const char *s, bool sign) {
    while (blank(*s))
        s++;
    const char *p = s;
    if (sign && (*p == '-' || *p == '+')) p++;
    return isdigit((unsigned char)*p) || *p == '.' ? s : NULL;
}

static bool only_blanks(const char *s) {
    while (blank(*s))
        s++;
    return *s == '\0';
}

bool lap_parse_u64(const char *s, uint64_t *out) {
    if (!s || !(s = number_start(s, false)) || *s == '.') return false;
    char *end;
    errno = 0;
    uintmax_t value = strtoumax(s, &end, 10);
    if (errno || end == s || value > UINT64_MAX || !only_blanks(end)) return false;
    *out = (uint64_t)value;
    return true;
}

bool lap_parse_i64(const char *s, int64_t *out) {
    if (!s || !(s = number_start(s, true))) return false;
    char *end;
    errno = 0;
    intmax_t value = strtoimax(s, &end, 10);
    if (errno || end == s || value > INT64_MAX || value < INT64_MIN || !only_blanks(end))
        return false;
    *out = (int64_t)value;
    return true;
}

bool lap_parse_double(const char *s, double *out) {
    static locale_t c_locale; /* made once, kept; a race makes one too many, nothing worse */
    if (!s || !(s = number_start(s, true))) return false;
    if (strpbrk(s, "xXpP")) return false; /* no hexadecimal floats */
    if (!c_locale) c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) return false;
    char *end;
    errno = 0;
    double value = strtod_l(s, &end, c_locale);
    if (end == s || !isfinite(value) || !only_blanks(end)) return false;
    *out = value;
    return true;
}

void lap_format_double(char *buffer, size_t size, int significant, double value) {
    if (size == 0) return;
    snprintf(buffer, size, "%.*g", significant, value);
    /* Under a comma locale printf writes ','; no other comma can be in a %g number. */
    char *comma = strchr(buffer, ',');
    if (comma) *comma = '.';
}

/* ---- cleaning and matching ------------------------------------------------------------------ */

size_t lap_text_utf8(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    size_t n;
    uint32_t code, least;
    if (s[0] < 0x80) return 1;
    if ((s[0] & 0xE0) == 0xC0) {
        n = 2, code = s[0] & 0x1Fu, least = 0x80;
    } else if ((s[0] & 0xF0) == 0xE0) {
        n = 3, code = s[0] & 0x0Fu, least = 0x800;
    } else if ((s[0] & 0xF8) == 0xF0) {
        n = 4, code = s[0] & 0x07u, least = 0x10000;
    } else {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code < least || code > 0x10FFFF || surrogate ? 0 : n;
}

/* Characters of three bytes that break the line, or that turn the order of what follows around and
 * make a text look like another: LRM, RLM, line and paragraph separator, embeddings, overrides,
 * isolates. */
static bool is_invisible(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    unsigned code = (u[0] & 0x0Fu) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu);
    return code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* Arabic letter mark, or a C1 control character. */
static bool is_control_pair(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    return (u[0] == 0xC2 && u[1] < 0xA0) || (u[0] == 0xD8 && u[1] == 0x9C);
}

size_t lap_text_blank_controls(char *s) {
    size_t in = 0, out = 0;
    while (s[in]) {
        unsigned char c = (unsigned char)s[in];
        size_t n = lap_text_utf8(s + in);
        if (n == 0) {
            s[out++] = '?';
            in++;
        } else if (n == 1 && (c < 0x20 || c == 0x7F)) {
            s[out++] = ' ';
            in++;
        } else if ((n == 2 && is_control_pair(s + in)) || (n == 3 && is_invisible(s + in))) {
            s[out++] = ' ';
            in += n;
        } else {
            memmove(s + out, s + in, n);
            in += n;
            out += n;
        }
    }
    s[out] = '\0';
    return out;
}

char *lap_text_clean(char *s) {
    size_t out = lap_text_blank_controls(s);
    while (out > 0 && s[out - 1] == ' ')
        out--;
    s[out] = '\0';
    size_t lead = strspn(s, " ");
    memmove(s, s + lead, out - lead + 1);
    return s;
}

bool lap_text_contains(const char *haystack, const char *needle) {
    size_t n = strlen(needle);
    for (const char *p = haystack;; p++) {
        size_t i = 0;
        while (i < n && p[i] && tolower((unsigned char)p[i]) == tolower((unsigned char)needle[i]))
            i++;
        if (i == n) return true;
        if (!*p) return false;
    }
}

enum { WORD_MAX = 63 };

/* Levenshtein distance with adjacent transposition; words longer than WORD_MAX are "far". */
static size_t distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > WORD_MAX || m > WORD_MAX) return SIZE_MAX;
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && above2[j - 2] + 1 < best) best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *lap_text_closest(const char *word, const char *const *candidates, size_t count) {
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(word, candidates[i]);
        if (d < best_distance) {
            best_distance = d;
            best = candidates[i];
        }
    }
    size_t allowed = strlen(word) <= 4 ? 1 : strlen(word) <= 8 ? 2 : 3;
    return best_distance <= allowed ? best : NULL;
}
