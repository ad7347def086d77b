/* Text helpers: strict, locale-independent number parsing, trimming, growing strings, suggestions.
 * Nothing here depends on LC_NUMERIC: "0.5" is one half everywhere and "0,5" is an error.
 */
#ifndef LAP_BASE_TEXT_H
#define LAP_BASE_TEXT_H

#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

/* A growing string. Zero-initialise; free with lap_text_free. After an allocation failure the
 * flag `failed` is set, further appends do nothing, and `data` keeps what was there. */
typedef struct lap_text {
    char *data; /* terminated, or NULL when nothing was appended */
    size_t length, capacity;
    bool failed;
} lap_text;

void lap_text_add(lap_text *text, const char *s);
void lap_text_addn(lap_text *text, const char *s, size_t n);
void lap_text_addf(lap_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lap_text_free(lap_text *text);
/* data, or "" when empty. */
const char *lap_text_get(const lap_text *text);

/* Strict: the whole string (blanks around it allowed) must be the number. False leaves *out alone.
 */
bool lap_parse_u64(const char *s, uint64_t *out);
bool lap_parse_i64(const char *s, int64_t *out);
bool lap_parse_double(const char *s, double *out); /* decimal point '.', finite only */

/* printf of a double that always writes '.' as the decimal point. */
void lap_format_double(char *buffer, size_t size, int significant, double value);

/* In place: control characters (C0, DEL, C1), line separators and what changes the direction of
 * text become blanks, bytes that are not valid UTF-8 become '?'. The new length, never longer. */
size_t lap_text_blank_controls(char *s);
/* The same, and removes blanks at both ends. Returns s. Device names pass through this once, where
 * they enter the program. */
char *lap_text_clean(char *s);

/* Bytes of the valid UTF-8 sequence at s, which is terminated; 0 if the bytes there are not one. */
size_t lap_text_utf8(const char *s);

/* Case-insensitive (ASCII) substring test; an empty needle is found. */
bool lap_text_contains(const char *haystack, const char *needle);

/* The candidate closest to word if it is close enough to be a typing error, else NULL. */
const char *lap_text_closest(const char *word, const char *const *candidates, size_t count);

#endif
