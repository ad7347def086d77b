/* Parsing of queries (see query.h). Knows no database. */
#include "history/query.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[LAP_TERMS] = {"device", "driver", "route", "network", "precision",
                                             "size",   "batch",  "host",  "version", "run",
                                             "since",  "until",  "last"};

const char *lap_term_name(lap_term term) {
    return names[term];
}

static lap_status unknown(const char *word, lap_error *err) {
    char shown[64];
    snprintf(shown, sizeof shown, "%.60s", word);
    lap_text_clean(shown);
    const char *closest = lap_text_closest(word, names, LAP_TERMS);
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "query: '%s' is no term%s%s%s expected device=, driver=, route=, network=, "
                    "precision=, size=, batch=, host=, version=, run=, since=, until=, last=, "
                    "latest or all, separated by commas",
                    shown, closest ? "; did you mean " : ";", closest ? closest : "",
                    closest ? "=?" : "");
}

static lap_status wrong(const char *name, const char *value, const char *expected, lap_error *err) {
    char shown[64];
    snprintf(shown, sizeof shown, "%.60s", value);
    return LAP_FAIL(err, LAP_E_CONFIG, "query: %s=%s: expected %s", name, lap_text_clean(shown),
                    expected);
}

static lap_status take_count(lap_term term, const char *value, uint64_t *out, lap_error *err) {
    if (lap_parse_u64(value, out) && *out >= 1 && *out <= 1u << 30) return LAP_OK;
    return wrong(names[term], value, "a whole number from 1 up", err);
}

static lap_status take_size(lap_query *q, const char *value, lap_error *err) {
    char copy[48], *x;
    snprintf(copy, sizeof copy, "%.40s", value);
    x = strchr(copy, 'x');
    if (x) {
        *x = '\0';
        if (lap_parse_u64(copy, &q->height) && lap_parse_u64(x + 1, &q->width)) return LAP_OK;
    }
    return wrong("size", value, "height x width, as in 224x224", err);
}

static int two_digits(const char *s) {
    return 10 * (s[0] - '0') + s[1] - '0';
}

/* Is there such a day? The year is four digits. */
static bool day_exists(const char *date, int month, int day) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = 100 * two_digits(date) + two_digits(date + 2);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

/* "2026", "2026-03-01T12": a date as far as it is given, to a whole number of its parts: of
 * "2026-1" nobody could say which months it means. */
static lap_status check_date(lap_term term, const char *value, lap_error *err) {
    static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
    size_t n = 0;
    for (; value[n] && form[n]; n++)
        if (form[n] == 'd' ? value[n] < '0' || value[n] > '9' : value[n] != form[n]) break;
    bool good =
        !value[n] && (n == 4 || n == 7 || n == 10 || n == 13 || n == 16 || n == 19 || n == 20);
    int month = good && n >= 7 ? two_digits(value + 5) : 1;
    good = good && month >= 1 && month <= 12;
    if (good && n >= 10) good = day_exists(value, month, two_digits(value + 8));
    if (good && n >= 13) good = two_digits(value + 11) <= 23;
    if (good && n >= 16) good = two_digits(value + 14) <= 59;
    if (good && n >= 19) good = two_digits(value + 17) <= 60; /* a leap second */
    if (good) return LAP_OK;
    return wrong(names[term], value,
                 "a date or its beginning, as in 2026, 2026-03, 2026-03-01 or 2026-03-01T12:00:00Z "
                 "(UTC)",
                 err);
}

static lap_status take(lap_query *q, lap_term term, const char *value, lap_error *err) {
    if (q->values[term])
        return LAP_FAIL(err, LAP_E_CONFIG, "query: %s= is given twice", names[term]);
    if (!*value) return wrong(names[term], value, "a value", err);
    q->values[term] = value;
    switch (term) {
    case LAP_TERM_BATCH:
        return take_count(term, value, &q->batch, err);
    case LAP_TERM_LAST:
        return take_count(term, value, &q->last, err);
    case LAP_TERM_SIZE:
        return take_size(q, value, err);
    case LAP_TERM_SINCE:
    case LAP_TERM_UNTIL:
        return check_date(term, value, err);
    default:
        return LAP_OK;
    }
}

static lap_status take_word(lap_query *q, char *word, lap_error *err) {
    if (strcmp(word, "all") == 0 || !*word) return LAP_OK;
    if (strcmp(word, "latest") == 0) return take(q, LAP_TERM_LAST, "1", err);
    char *equals = strchr(word, '=');
    if (!equals) return unknown(word, err);
    *equals = '\0';
    for (int t = 0; t < LAP_TERMS; t++)
        if (strcmp(word, names[t]) == 0) return take(q, (lap_term)t, equals + 1, err);
    return unknown(word, err);
}

lap_status lap_query_parse(const char *text, lap_query *out, lap_error *err) {
    *out = (lap_query){0};
    out->copy = strdup(text);
    if (!out->copy) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the query");
    lap_status status = LAP_OK;
    for (char *word = out->copy, *next; word && status == LAP_OK; word = next) {
        next = strchr(word, ',');
        if (next) *next++ = '\0';
        word += strspn(word, " ");
        status = take_word(out, word, err);
    }
    if (status != LAP_OK) lap_query_free(out);
    return status;
}

lap_status lap_query_add(lap_query *query, const char *term, const char *value, lap_error *err) {
    for (int t = 0; t < LAP_TERMS; t++)
        if (strcmp(term, names[t]) == 0) return take(query, (lap_term)t, value, err);
    return unknown(term, err);
}

void lap_query_free(lap_query *query) {
    free(query->copy);
    *query = (lap_query){0};
}
