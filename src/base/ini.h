/* Strict INI files. iniparser reads the values; a scan of our own goes first, because iniparser
 * hides line numbers and forgives what would silently change a measurement. Knows no keys.
 *
 * What is accepted, and nothing else:
 *   [section]            letters, digits, '_' and '-'; a comment may follow
 *   key = value          the key is letters, digits and '_'; blanks around '=' are optional
 *   ; comment, # comment on lines of their own, and after a value or a section
 *   key = "a;b"          quotes (" or ') keep ';', '#' and blanks; they surround the whole value
 * Sections and keys are not case-sensitive and are reported in lower case; values keep theirs. A
 * section may be opened twice, a key may be given once. UTF-8 with or without a byte order mark, LF
 * or CRLF line ends, the last line with or without one. A line has at most LAP_INI_LINE_MAX bytes
 * and is not continued by a backslash at its end.
 */
#ifndef LAP_BASE_INI_H
#define LAP_BASE_INI_H

#include "base/status.h"

#define LAP_INI_BYTES_MAX (1024u * 1024u) /* of a file */
#define LAP_INI_LINE_MAX 1000u            /* below iniparser's ASCIILINESZ of 1024 */
#define LAP_INI_ENTRIES_MAX 1024u         /* sections and keys of a file */

typedef struct lap_ini_entry {
    char *section; /* lower case */
    char *key;     /* lower case; NULL when the entry is a section's header */
    char *value;   /* without quotes, comment and outer blanks; NULL for a header */
    int line;      /* from 1 */
} lap_ini_entry;

typedef struct lap_ini {
    char *name;             /* the file, cleaned for messages */
    lap_ini_entry *entries; /* in file order */
    size_t count;
} lap_ini;

/* Read a regular file. LAP_E_CONFIG with "NAME:LINE: what, and what would be right" for anything
 * that is not accepted, LAP_E_NOMEM, LAP_E_INTERNAL. Not safe for threads (iniparser's error
 * callback is global). Free with lap_ini_free. */
lap_status lap_ini_load(const char *path, lap_ini **out, lap_error *err);
/* The same for bytes in memory; name is used in messages. */
lap_status lap_ini_parse(const char *name, const void *bytes, size_t size, lap_ini **out,
                         lap_error *err);
void lap_ini_free(lap_ini *ini);

#endif
