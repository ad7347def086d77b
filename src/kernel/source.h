/* Private to src/kernel: the generated table of kernel texts. */
#ifndef LAP_KERNEL_SOURCE_H
#define LAP_KERNEL_SOURCE_H

typedef struct lap_source_entry {
    const char *language, *stem, *text;
} lap_source_entry;

extern const lap_source_entry lap_source_table[]; /* ends with a NULL language */

#endif
