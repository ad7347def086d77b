/* Private to src/app/config*.c: the table of all keys, and how one value is read.
 * The table is the only place that knows a key's range, default and help text. */
#ifndef LAP_APP_CONFIG_KEYS_H
#define LAP_APP_CONFIG_KEYS_H

#include "app/config.h"

typedef enum lap_key_type {
    LAP_KEY_TEXT = 0, /* const char * */
    LAP_KEY_SOURCE,   /* const char *: "synthetic:SEED" or a path that ends in `suffix` */
    LAP_KEY_PATH,     /* const char *: a path, "-" or "" */
    LAP_KEY_ROWS,     /* const char *: ids of kernel rows, or "" */
    LAP_KEY_CHOICE,   /* an enum: index of a word of `choices` */
    LAP_KEY_CHOICES,  /* lap_config_list of such indices, without repeats */
    LAP_KEY_COUNT,    /* uint64_t from least to most */
    LAP_KEY_COUNTS,   /* lap_config_list of them */
    LAP_KEY_AMOUNT,   /* lap_config_amount: count from least to most, or "2s", or "auto" */
    LAP_KEY_REAL,     /* double from real_least to real_most */
    LAP_KEY_BOOL      /* bool: yes or no */
} lap_key_type;

typedef struct lap_key {
    const char *section, *name;
    lap_key_type type;
    size_t offset;                /* of the field in lap_config */
    const char *fallback;         /* the built-in default, as it would stand in a file */
    const char *help;             /* one or more sentences, plain text */
    uint64_t least, most;         /* COUNT, COUNTS, AMOUNT */
    double real_least, real_most; /* REAL; AMOUNT's seconds, none when real_most is 0 */
    const char *const *choices;   /* CHOICE, CHOICES: NULL-terminated */
    const char *suffix;           /* SOURCE */
    bool distinct;                /* COUNTS: the same number twice is an error */
    bool automatic;               /* AMOUNT: "auto" is allowed */
    bool stored;                  /* PATH: a file to keep, "-" is no stream */
} lap_key;

typedef struct lap_section {
    const char *name, *help;
} lap_section;

extern const lap_key lap_keys[];
extern const size_t lap_key_count; /* at most LAP_CONFIG_KEY_MAX */
extern const lap_section lap_sections[];
extern const size_t lap_section_count;

/* A value read but not yet stored; the field that the key's type names is set. */
typedef struct lap_key_value {
    uint64_t count; /* COUNT; CHOICE's index */
    lap_config_list list;
    lap_config_amount amount;
    double real;
    bool flag;
} lap_key_value;

/* False: why says what is expected ("expected a whole number from 1 to 1000000"). */
bool lap_key_parse(const lap_key *key, const char *text, lap_key_value *out, lap_text *why);
/* What the key takes, as a phrase: "a whole number from 1 to 1000000". Appends. */
void lap_key_expected(const lap_key *key, lap_text *text);

#endif
