/* What people read about a comparison: numbers with their uncertainty, names, sentences. Texts are
 * raw: whoever puts them into a document escapes them. Computes nothing but the direction in which
 * a ratio is told. */
#ifndef LAP_COMPARE_WORDS_H
#define LAP_COMPARE_WORDS_H

#include "compare/columns.h"

/* "1.43 ± 0.01": the deviation with one significant digit, the ratio to the same place;
 * "1.43" without an interval. Appends nothing when there is no estimate. */
void lap_words_estimate(lap_text *out, const lap_estimate *e, bool utf8);

/* "A runs resnet18 (224x224, fp32, batch 1) 1.43 ± 0.01 times faster than B." Only for lines that
 * were compared. A and B say what tells them from every other line: API, precision where theirs
 * differ, what the axis tells apart, file and selector where needed. */
void lap_words_sentence(lap_text *out, const lap_comparison *c, const lap_line *line, bool utf8);

/* "NVIDIA H200, resnet18 224x224 fp32, CUDA against OpenCL: throughput 1.01 times higher, batch-1
 * latency 1.67 ± 0.03 times shorter, launch floor 2.1 times shorter."; "… CUDA in fp32x3 against
 * OpenCL in fp32 …". */
void lap_words_pair(lap_text *out, const lap_comparison *c, const lap_api_pair *pair, bool utf8);

/* What is told beneath the table. */
typedef enum lap_topic {
    LAP_TOPIC_SPEED = 0, /* a sentence for each line that was compared */
    LAP_TOPIC_APIS,      /* a line for each device through two APIs */
    LAP_TOPIC_REMARKS,   /* why lines are set apart, duplicates, doubts */
    LAP_TOPICS
} lap_topic;

const char *lap_topic_title(lap_topic topic);

typedef void lap_words_visit(void *context, const char *text);
/* Every text of a topic, in order. False on a lack of memory. */
bool lap_words_each(const lap_comparison *c, lap_topic topic, bool utf8, lap_words_visit *visit,
                    void *context);

/* "resnet18 224x224 fp32": of these what all lines share and no column shows; may be nothing. */
void lap_words_case(lap_text *out, const lap_comparison *c, const lap_selection *columns);

/* What the shown columns mean: which average, what stands behind each "±". May be nothing. */
void lap_words_legend(lap_text *out, const lap_comparison *c, const lap_selection *columns,
                      bool utf8);

/* "3 same, 1 faster, 0 slower, 0 unclear, 2 set apart." and, with a gate, what it says. */
void lap_words_summary(lap_text *out, const lap_comparison *c);

const char *lap_gate_name(lap_gate gate); /* "passed", "slower", … */

#endif
