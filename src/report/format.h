/* Texts of single values, shared by the renderers. Every number is written with '.' whatever the
 * locale, and an absent value is written as `absent`, never as nan, inf or 0.
 */
#ifndef LAP_REPORT_FORMAT_H
#define LAP_REPORT_FORMAT_H

#include "base/text.h"
#include "measure/result.h"

/* One row as people read it. */
typedef struct lap_cells {
    char route[64];               /* "cuda:0"; "cuda:0 +1" beside one other device */
    char device[LAP_DEVICE_NAME]; /* "NVIDIA H200" */
    char network[32];             /* "resnet18" */
    char size[32];                /* "224x224" */
    char precision[16];           /* "fp32" */
    char batch[24];               /* "1" */
    char latency_ms[48];          /* "0.250 ± 0.002": median and standard deviation */
    char fps[24];                 /* "4000" */
    char throughput[48];          /* "12000 @ 256" */
    char flops_per_s[24];         /* "14.5T" */
    char verified[32];            /* "2.1e-07", "yes", "no" */
    char verdict[16];             /* "stable", "-" without latency */
    char status[16];              /* "ok" */
} lap_cells;

void lap_cells_fill(const lap_row *row, bool utf8, lap_cells *out);

/* A row's name among those of its report: "cuda:0 batch 1", and network, size and precision where
 * the rows differ in them: "cuda:0 resnet18 224x224 fp16 batch 1". */
void lap_format_row(char *buffer, size_t size, const lap_row *rows, size_t count,
                    const lap_row *row);

/* One layer as people read it; "-" for what is absent. */
typedef struct lap_layer_cells {
    char macs[24], flops[24], bytes[24];   /* "116M" */
    char time_ms[24];                      /* "0.123" */
    char flops_per_s[24], bytes_per_s[24]; /* "42.2T" */
    char intensity[24];                    /* FLOPs per byte */
    char share[24];                        /* of the roofline: "66%" */
    char bound[16];                        /* "compute" */
} lap_layer_cells;

void lap_layer_cells_fill(const lap_layer *layer, lap_layer_cells *out);
/* The network as a line below its layers: its work and the row's own latency. */
lap_layer lap_layer_total(const lap_row *row);

/* Significant digits of a real in documents for programs: enough for nanoseconds in hours, few
 * enough not to show binary fractions. */
enum { LAP_REAL_DIGITS = 12 };

/* Fixed decimals, locale-proof. */
void lap_format_fixed(char *buffer, size_t size, int decimals, double value);
/* Seconds as milliseconds, without the unit; decimals by magnitude: "0.250", "12.35", "1234". */
void lap_format_ms(char *buffer, size_t size, double seconds);
/* Decimals that lap_format_ms gives a value: for writing its deviation alike. */
int lap_ms_decimals(double seconds);
/* A rate for people, or whatever else is told to about three digits, but whole from 100 on:
 * "0.520", "23.1", "4000"; with group: "12,000". */
void lap_format_rate(char *buffer, size_t size, double rate, bool group);
/* With an SI prefix and three significant digits: "14.5T", "232G", "0.5". */
void lap_format_si(char *buffer, size_t size, double value);

/* "00112233-4455-6677-8899-aabbccddeeff" and "0000:17:00.0"; "" when the device has none. */
void lap_format_uuid(char *buffer, size_t size, const lap_device_info *device);
void lap_format_pci(char *buffer, size_t size, const lap_device_info *device);

/* "CUDA" of "CUDA 13.0"; the backend's name when the device tells no API. */
void lap_format_api(char *buffer, size_t size, const lap_device_info *device);

/* The row's reason, or its status where memory was too short for one; "" for an ok row. */
const char *lap_row_reason(const lap_row *row);

/* "latency,throughput" */
void lap_format_modes(char *buffer, size_t size, unsigned modes, const char *separator);

/* ---- width on a terminal -------------------------------------------------------------------- */

/* Make text safe for one line of a terminal: control characters become blanks, bad bytes and, when
 * utf8 is false, everything beyond ASCII '?'. In place; never longer. */
void lap_line_clean(char *text, bool utf8);
/* Columns that text takes (cleaned text). */
size_t lap_line_width(const char *text);
/* Cut to at most width columns, with a mark at the end where something was cut. buffer holds the
 * result; it needs strlen(text) + 4 bytes at most. */
void lap_line_cut(const char *text, size_t width, bool utf8, char *buffer, size_t size);
/* Append text in lines of at most width columns, all but the first indented. Ends with a newline.
 * Words longer than a line are broken. */
void lap_line_wrap(lap_text *out, const char *text, size_t indent, size_t width);

#endif
