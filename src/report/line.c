/* Text on a terminal line: cleaning, width, cutting, wrapping. UTF-8 throughout; widths come from
 * wcwidth, so they follow LC_CTYPE. */
#include "report/format.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

/* One character of cleaned text: its bytes and code point. */
static size_t decode(const char *s, wchar_t *code) {
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80 ? 1 : u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3 : 4;
    uint32_t c = n == 1 ? u[0] : u[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (!u[i]) return i; /* cut off; cleaned text has no such place */
        c = c << 6 | (u[i] & 0x3Fu);
    }
    *code = (wchar_t)c;
    return n;
}

static size_t code_width(wchar_t code) {
    int width = wcwidth(code);
    return width < 0 ? 1 : (size_t)width;
}

void lap_line_clean(char *text, bool utf8) {
    lap_text_clean(text);
    char *out = text;
    for (const char *in = text; *in;) {
        wchar_t code = L'?';
        size_t n = decode(in, &code);
        if (n > 1 && (!utf8 || wcwidth(code) < 0)) {
            *out++ = '?';
        } else {
            memmove(out, in, n);
            out += n;
        }
        in += n;
    }
    *out = '\0';
}

size_t lap_line_width(const char *text) {
    size_t width = 0;
    while (*text) {
        wchar_t code = L'?';
        text += decode(text, &code);
        width += code_width(code);
    }
    return width;
}

/* Bytes of text that take at most width columns. */
static size_t prefix_bytes(const char *text, size_t width) {
    size_t bytes = 0, used = 0;
    while (text[bytes]) {
        wchar_t code = L'?';
        size_t n = decode(text + bytes, &code);
        used += code_width(code);
        if (used > width) break;
        bytes += n;
    }
    return bytes;
}

void lap_line_cut(const char *text, size_t width, bool utf8, char *buffer, size_t size) {
    if (lap_line_width(text) <= width) {
        snprintf(buffer, size, "%s", text);
        return;
    }
    const char *mark = utf8 ? "…" : "~";
    size_t n = width > 0 ? prefix_bytes(text, width - 1) : 0;
    snprintf(buffer, size, "%.*s%s", (int)n, text, width > 0 ? mark : "");
}

/* Bytes of the next line: up to a blank where there is one, else as much as fits. */
static size_t line_bytes(const char *text, size_t width) {
    size_t n = prefix_bytes(text, width);
    if (n == 0 && *text) { /* a character wider than the line */
        wchar_t code;
        return decode(text, &code);
    }
    if (!text[n] || text[n] == ' ') return n;
    for (size_t i = n; i > 0; i--)
        if (text[i] == ' ') return i;
    return n;
}

void lap_line_wrap(lap_text *out, const char *text, size_t indent, size_t width) {
    size_t start = 0;
    text += strspn(text, " ");
    do {
        size_t n = line_bytes(text, width > start + 8 ? width - start : 8);
        lap_text_addn(out, text, n);
        lap_text_add(out, "\n");
        text += n;
        text += strspn(text, " ");
        if (*text) lap_text_addf(out, "%*s", (int)indent, "");
        start = indent;
    } while (*text);
}
