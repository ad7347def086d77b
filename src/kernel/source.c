/* Finds embedded kernel texts. */
#include "kernel/source.h"
#include "kernel/kernel.h"

#include <string.h>

const char *lap_kernel_source(const char *language, const char *stem) {
    for (const lap_source_entry *e = lap_source_table; e->language; e++)
        if (strcmp(e->language, language) == 0 && strcmp(e->stem, stem) == 0) return e->text;
    return NULL;
}

bool lap_kernel_source_at(size_t index, const char **language, const char **stem,
                          const char **text) {
    for (size_t i = 0; lap_source_table[i].language; i++) {
        if (i != index) continue;
        *language = lap_source_table[i].language;
        *stem = lap_source_table[i].stem;
        *text = lap_source_table[i].text;
        return true;
    }
    return false;
}
