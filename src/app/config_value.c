/* One value: from text to number, word or list, strictly, or the reason why not. Stores nothing. */
#include "app/config_keys.h"

#include "kernel/kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what is expected ----------------------------------------------------------------------- */

static void add_real(lap_text *text, double value) {
    char buffer[32];
    lap_format_double(buffer, sizeof buffer, 6, value);
    lap_text_add(text, buffer);
}

static void add_choices(lap_text *text, const char *const *choices) {
    for (size_t i = 0; choices[i]; i++)
        lap_text_addf(text, "%s%s", i == 0 ? "" : choices[i + 1] ? ", " : " or ", choices[i]);
}

void lap_key_expected(const lap_key *key, lap_text *text) {
    switch (key->type) {
    case LAP_KEY_TEXT:
        lap_text_add(text, "a device selector");
        break;
    case LAP_KEY_SOURCE:
        lap_text_addf(text, "synthetic:SEED (a whole number) or a file name that ends in %s",
                      key->suffix);
        break;
    case LAP_KEY_PATH:
        lap_text_add(text, key->stored ? "a file name, or nothing"
                                       : "a file name, - for standard output, or nothing");
        break;
    case LAP_KEY_ROWS:
        lap_text_add(text, "names of kernels, separated by commas, or nothing");
        break;
    case LAP_KEY_CHOICE:
        add_choices(text, key->choices);
        break;
    case LAP_KEY_CHOICES:
        lap_text_add(text, "a comma-separated list of ");
        add_choices(text, key->choices);
        break;
    case LAP_KEY_COUNT:
        lap_text_addf(text, "a whole number from %" PRIu64 " to %" PRIu64, key->least, key->most);
        break;
    case LAP_KEY_COUNTS:
        lap_text_addf(text, "a comma-separated list of whole numbers from %" PRIu64 " to %" PRIu64,
                      key->least, key->most);
        break;
    case LAP_KEY_AMOUNT:
        lap_text_addf(text, "a whole number from %" PRIu64 " to %" PRIu64, key->least, key->most);
        if (key->real_most > 0) {
            lap_text_add(text, ", or seconds from ");
            add_real(text, key->real_least);
            lap_text_add(text, " to ");
            add_real(text, key->real_most);
            lap_text_add(text, " such as 2s");
        }
        if (key->automatic) lap_text_add(text, ", or auto");
        break;
    case LAP_KEY_REAL:
        lap_text_add(text, "a number from ");
        add_real(text, key->real_least);
        lap_text_add(text, " to ");
        add_real(text, key->real_most);
        break;
    case LAP_KEY_BOOL:
        lap_text_add(text, "yes or no");
        break;
    }
}

static bool refuse(const lap_key *key, lap_text *why, const char *hint) {
    lap_text_add(why, "expected ");
    lap_key_expected(key, why);
    lap_text_add(why, hint);
    return false;
}

/* ---- single values -------------------------------------------------------------------------- */

static bool parse_count(const lap_key *key, const char *text, uint64_t *out, lap_text *why) {
    uint64_t value;
    if (lap_parse_u64(text, &value) && value >= key->least && value <= key->most) {
        *out = value;
        return true;
    }
    double real; /* a number, only not written as a whole one in range: say how to write it */
    bool odd = lap_parse_double(text, &real) && strpbrk(text, ".eE");
    return refuse(key, why, odd ? ", written out in digits" : "");
}

static bool parse_real(const lap_key *key, const char *text, double *out, lap_text *why) {
    double value;
    if (lap_parse_double(text, &value) && value >= key->real_least && value <= key->real_most) {
        *out = value;
        return true;
    }
    return refuse(key, why,
                  strchr(text, ',') ? "; the decimal sign is a point (0.5, not 0,5)" : "");
}

static bool parse_amount(const lap_key *key, const char *text, lap_config_amount *out,
                         lap_text *why) {
    size_t n = strlen(text);
    *out = (lap_config_amount){0};
    if (key->automatic && !strcmp(text, "auto")) {
        out->automatic = true;
        return true;
    }
    if (n == 0 || text[n - 1] != 's' || !(key->real_most > 0))
        return parse_count(key, text, &out->count, why);
    char number[64];
    if (n >= sizeof number) return refuse(key, why, "");
    memcpy(number, text, n - 1);
    number[n - 1] = '\0';
    return parse_real(key, number, &out->seconds, why);
}

static bool find_choice(const lap_key *key, const char *text, uint64_t *out) {
    for (size_t i = 0; key->choices[i]; i++) {
        if (strcmp(key->choices[i], text) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

static bool parse_choice(const lap_key *key, const char *text, uint64_t *out, lap_text *why) {
    if (find_choice(key, text, out)) return true;
    size_t count = 0;
    while (key->choices[count])
        count++;
    refuse(key, why, "");
    const char *closest = lap_text_closest(text, key->choices, count);
    if (closest) lap_text_addf(why, "; did you mean %s?", closest);
    return false;
}

static bool parse_source(const lap_key *key, const char *text, lap_text *why) {
    const char *prefix = "synthetic";
    uint64_t seed;
    size_t n = strlen(text), suffix = strlen(key->suffix);
    if (n > suffix && !strcmp(text + n - suffix, key->suffix)) return true;
    /* No blanks around the seed: this text is read again where the data is made. */
    if (!strncmp(text, prefix, strlen(prefix)) && text[strlen(prefix)] == ':' &&
        !strpbrk(text, " \t") && lap_parse_u64(text + strlen(prefix) + 1, &seed))
        return true;
    return refuse(key, why, "");
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* The next entry without its blanks; false at an entry too long for any value. */
static bool next_entry(const char **text, char *entry, size_t size) {
    size_t n = strcspn(*text, ",");
    const char *start = *text, *end = *text + n;
    *text = *end ? end + 1 : NULL;
    while (start < end && (*start == ' ' || *start == '\t'))
        start++;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if ((size_t)(end - start) >= size) return false;
    memcpy(entry, start, (size_t)(end - start));
    entry[end - start] = '\0';
    return true;
}

static bool parse_list(const lap_key *key, const char *text, lap_config_list *out, lap_text *why) {
    bool choices = key->type == LAP_KEY_CHOICES;
    *out = (lap_config_list){0};
    while (text) {
        char entry[64];
        uint64_t value;
        if (!next_entry(&text, entry, sizeof entry)) return refuse(key, why, "");
        if (!*entry) return refuse(key, why, "; an entry is empty");
        if (!choices && strpbrk(entry, " \t"))
            return refuse(key, why, "; entries are separated by commas");
        if (!(choices ? parse_choice(key, entry, &value, why)
                      : parse_count(key, entry, &value, why)))
            return false;
        for (size_t i = 0; i < out->count && (choices || key->distinct); i++) {
            if (out->values[i] != value) continue;
            refuse(key, why, "");
            lap_text_addf(why, ", each once; %s stands there twice", entry);
            return false;
        }
        if (out->count == LAP_CONFIG_LIST_MAX) {
            refuse(key, why, "");
            lap_text_addf(why, ", at most %d entries", LAP_CONFIG_LIST_MAX);
            return false;
        }
        out->values[out->count++] = value;
    }
    return true;
}

static bool parse_rows(const lap_key *key, const char *text, lap_text *why) {
    while (text && *text) {
        char entry[64];
        if (!next_entry(&text, entry, sizeof entry)) return refuse(key, why, "");
        if (lap_kernel_find(entry)) continue;
        const char *ids[LAP_CONFIG_VALUE_MAX / 4];
        size_t count, used = 0;
        const lap_kernel_row *const *rows = lap_kernel_rows(&count);
        for (; used < count && used < sizeof ids / sizeof *ids; used++)
            ids[used] = rows[used]->id;
        const char *closest = lap_text_closest(entry, ids, used);
        refuse(key, why, "");
        lap_text_addf(why, "; there is no kernel '%s'", entry);
        if (closest) lap_text_addf(why, "; did you mean %s?", closest);
        return false;
    }
    return true;
}

bool lap_key_parse(const lap_key *key, const char *text, lap_key_value *out, lap_text *why) {
    switch (key->type) {
    case LAP_KEY_TEXT: /* what chooses among the devices knows them, and says what there is */
        return true;
    case LAP_KEY_SOURCE:
        return parse_source(key, text, why);
    case LAP_KEY_PATH:
        return true;
    case LAP_KEY_ROWS:
        return parse_rows(key, text, why);
    case LAP_KEY_CHOICE:
        return parse_choice(key, text, &out->count, why);
    case LAP_KEY_CHOICES:
    case LAP_KEY_COUNTS:
        return parse_list(key, text, &out->list, why);
    case LAP_KEY_COUNT:
        return parse_count(key, text, &out->count, why);
    case LAP_KEY_AMOUNT:
        return parse_amount(key, text, &out->amount, why);
    case LAP_KEY_REAL:
        return parse_real(key, text, &out->real, why);
    case LAP_KEY_BOOL:
        out->flag = !strcmp(text, "yes");
        return out->flag || !strcmp(text, "no") ? true : refuse(key, why, "");
    }
    return refuse(key, why, "");
}
