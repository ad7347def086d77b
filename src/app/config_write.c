/* Showing the configuration: INI text, JSON, and the reference of all keys. Changes nothing. */
#include "app/config_keys.h"
#include "net/op.h"

#include <inttypes.h>
#include <string.h>

/* ---- INI ------------------------------------------------------------------------------------ */

/* As a file must write it. A value never holds both kinds of quote (config.c refuses it). */
static void add_quoted(lap_text *text, const char *value) {
    size_t n = strlen(value);
    bool plain = n > 0 && !strpbrk(value, ";#\"'") && value[0] != ' ' && value[0] != '\t' &&
                 value[n - 1] != ' ' && value[n - 1] != '\t' && value[n - 1] != '\\';
    const char *quote = plain || n == 0 ? "" : strchr(value, '"') ? "'" : "\"";
    if (n) lap_text_addf(text, " %s%s%s", quote, value, quote);
}

void lap_config_dump(const lap_config *config, lap_text *text) {
    const char *section = "";
    for (size_t i = 0; i < lap_key_count; i++) {
        const lap_key *key = &lap_keys[i];
        if (strcmp(section, key->section) != 0) {
            lap_text_addf(text, "%s[%s]\n", i ? "\n" : "", key->section);
            section = key->section;
        }
        lap_text_addf(text, "; %s\n%s =", config->origin[i], key->name);
        add_quoted(text, config->text[i]);
        lap_text_add(text, "\n");
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* jansson's integers are signed: what does not fit stays exact as a string. */
static json_t *json_u64(uint64_t value) {
    if (value <= INT64_MAX) return json_integer((json_int_t)value);
    return json_sprintf("%" PRIu64, value);
}

static json_t *json_list(const lap_key *key, const lap_config_list *list) {
    json_t *array = json_array();
    for (size_t i = 0; array && i < list->count; i++) {
        uint64_t value = list->values[i];
        json_t *item = key->choices ? json_string(key->choices[value]) : json_u64(value);
        if (json_array_append_new(array, item) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *json_amount(const lap_config_amount *amount) {
    if (amount->automatic) return json_string("auto");
    if (amount->seconds > 0) return json_pack("{s:n, s:f}", "count", "seconds", amount->seconds);
    return json_pack("{s:I, s:n}", "count", (json_int_t)amount->count, "seconds");
}

static json_t *json_value(const lap_config *config, size_t index) {
    const lap_key *key = &lap_keys[index];
    const char *field = (const char *)config + key->offset;
    unsigned choice;
    uint64_t count;
    double real;
    switch (key->type) {
    case LAP_KEY_TEXT:
    case LAP_KEY_SOURCE:
        return json_string(config->text[index]);
    case LAP_KEY_PATH:
    case LAP_KEY_ROWS:
        return *config->text[index] ? json_string(config->text[index]) : json_null();
    case LAP_KEY_CHOICE:
        memcpy(&choice, field, sizeof choice);
        return json_string(key->choices[choice]);
    case LAP_KEY_CHOICES:
    case LAP_KEY_COUNTS:
        return json_list(key, (const lap_config_list *)(const void *)field);
    case LAP_KEY_COUNT:
        memcpy(&count, field, sizeof count);
        return json_u64(count);
    case LAP_KEY_AMOUNT:
        return json_amount((const lap_config_amount *)(const void *)field);
    case LAP_KEY_REAL:
        memcpy(&real, field, sizeof real);
        return json_real(real);
    case LAP_KEY_BOOL:
        return json_boolean(*(const bool *)(const void *)field);
    }
    return NULL;
}

json_t *lap_config_json(const lap_config *config) {
    json_t *root = json_object(), *origins = json_object();
    bool ok = root && origins;
    for (size_t i = 0; i < lap_key_count && ok; i++) {
        const lap_key *key = &lap_keys[i];
        json_t *section = json_object_get(root, key->section);
        if (!section) {
            section = json_object();
            ok = json_object_set_new(root, key->section, section) == 0;
        }
        ok = ok && json_object_set_new(section, key->name, json_value(config, i)) == 0;
        if (ok && strcmp(config->origin[i], "built-in default") != 0) {
            lap_text name = {0};
            lap_text_addf(&name, "%s:%s", key->section, key->name);
            ok = !name.failed &&
                 json_object_set_new(origins, name.data, json_string(config->origin[i])) == 0;
            lap_text_free(&name);
        }
    }
    ok = ok && json_object_set(root, "origins", origins) == 0;
    json_decref(origins);
    if (ok) return root;
    json_decref(root);
    return NULL;
}

/* ---- reference ------------------------------------------------------------------------------ */

static const char introduction[] =
    "# Configuration\n\n"
    "This page is written by `warmlap run --help-config`; a test keeps the two equal.\n\n"
    "`warmlap run FILE.ini ...` reads the files in order, then `--set section:key=value` and the\n"
    "other options; the later wins. Without a file the built-in defaults hold, which are those of\n"
    "`conf/default.ini`. `--dump-config` prints every value in effect and where it came from, as "
    "a\n"
    "file that can be read again.\n\n"
    "A name without `/` that is not in the current folder is looked up among the shipped files,\n"
    "with or without `.ini`: `warmlap run quick`.\n\n"
    "## The files\n\n"
    "- `[section]`, `key = value` (blanks around `=` are optional), `; comment` or `# comment`, "
    "on\n"
    "  a line of its own or after a value. Keys stand in a section.\n"
    "- Sections and keys are not case-sensitive; values are.\n"
    "- Quotes, `\"` or `'`, around a whole value keep `;`, `#` and outer blanks:\n"
    "  `json = \"results/a;b.json\"`. A value cannot hold both kinds.\n"
    "- Lists are separated by commas: `batch = 1, 8, 64` makes a row each.\n"
    "- Numbers are written in digits with a decimal point, whatever the locale: `0.5`; `0,5`,\n"
    "  `10x` and, for a whole number, `1e9` are errors.\n"
    "- UTF-8 with or without a byte order mark, LF or CRLF; lines of at most 1000 bytes, values "
    "of\n"
    "  at most 900, files of at most 1 MiB, regular files only. A backslash at the end does not\n"
    "  continue a line.\n"
    "- A section may be opened twice; a key given twice in one file is an error, as is an unknown\n"
    "  section or key. Every error names the file and the line, and the exit status is 2.\n";

static void add_section_title(lap_text *text, const char *name, const char *format) {
    for (size_t i = 0; i < lap_section_count; i++)
        if (!strcmp(lap_sections[i].name, name)) {
            lap_text_addf(text, format[0] == '#' ? "\n## [%s]\n\n%s\n\n" : "\n[%s] %s\n", name,
                          lap_sections[i].help);
        }
}

/* Help and phrases are plain text; '|' would end a table's cell, '<' start HTML. */
static void add_cell(lap_text *text, const char *s) {
    for (; *s; s++) {
        if (*s == '|') lap_text_add(text, "\\");
        lap_text_addn(text, s, 1);
    }
}

void lap_config_help_markdown(lap_text *text) {
    const char *section = "";
    lap_text_add(text, introduction);
    for (size_t i = 0; i < lap_key_count; i++) {
        const lap_key *key = &lap_keys[i];
        if (strcmp(section, key->section) != 0) {
            section = key->section;
            add_section_title(text, section, "#");
            lap_text_add(text, "| key | default | takes | meaning |\n|---|---|---|---|\n");
        }
        lap_text_addf(text, "| `%s` | ", key->name);
        lap_text_addf(text, *key->fallback ? "`%s` | " : "(none)%s | ", key->fallback);
        lap_text takes = {0};
        lap_key_expected(key, &takes);
        add_cell(text, lap_text_get(&takes));
        lap_text_add(text, " | ");
        add_cell(text, key->help);
        lap_text_add(text, " |\n");
        lap_text_free(&takes);
    }
}

/* Words of s, wrapped at column 98, each line indented. */
static void add_wrapped(lap_text *text, const char *s, const char *indent) {
    size_t column = 0;
    while (*s) {
        size_t n = strcspn(s, " ");
        if (column && column + 1 + n > 98) {
            lap_text_add(text, "\n");
            column = 0;
        }
        lap_text_add(text, column ? " " : indent);
        column += column ? 1 + n : strlen(indent) + n;
        lap_text_addn(text, s, n);
        s += n + strspn(s + n, " ");
    }
    lap_text_add(text, "\n");
}

void lap_config_help_text(lap_text *text) {
    const char *section = "";
    for (size_t i = 0; i < lap_key_count; i++) {
        const lap_key *key = &lap_keys[i];
        if (strcmp(section, key->section) != 0) {
            section = key->section;
            add_section_title(text, section, "");
        }
        lap_text line = {0};
        lap_text_addf(&line, "%s = %s (", key->name, *key->fallback ? key->fallback : "(none)");
        lap_key_expected(key, &line);
        lap_text_add(&line, ")");
        add_wrapped(text, lap_text_get(&line), "  ");
        add_wrapped(text, key->help, "      ");
        lap_text_free(&line);
    }
}

size_t lap_config_settings(const lap_config *config, lap_report_setting *out) {
    for (size_t i = 0; i < lap_key_count; i++)
        out[i] = (lap_report_setting){lap_keys[i].section, lap_keys[i].name, config->text[i]};
    return lap_key_count;
}
