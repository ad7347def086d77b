/* What is true of every row that a planted fault was in, on any device. */
#ifndef FAULT_CHECKS_H
#define FAULT_CHECKS_H

#include "case_fixture.h"

static inline bool mentions(const lap_row *row, const char *text) {
    for (size_t i = 0; i < row->note_count; i++)
        if (strstr(row->notes[i], text)) return true;
    for (size_t i = 0; i < row->throughput.curve_count; i++)
        if (strstr(row->throughput.curve[i].reason, text)) return true;
    return false;
}

/* A layer without a time says that its stamps were no good. */
static inline bool has_bad_stamps(const lap_row *row) {
    for (size_t i = 0; i < row->layer_count; i++)
        if (!row->layers[i].device_s.has) return true;
    return row->latency.bad_stamps + row->latency.untimed_bad + row->floor.bad_stamps > 0;
}

/* What is true of every row, whatever happened. */
static inline void check_numbers(const lap_row *row) {
    const lap_latency *l = &row->latency;
    if (l->has) {
        assert_true(row->verified.passed && row->verified.rerun_same);
        assert_int_equal(l->n, 2);
        assert_true(l->stats.mean.has && isfinite(l->stats.mean.value) && l->stats.mean.value > 0);
    } else {
        assert_false(row->fps.has || row->flops_per_s.has);
    }
    if (row->fps.has) assert_true(isfinite(row->fps.value) && row->fps.value > 0);
    const lap_throughput *t = &row->throughput;
    for (size_t i = 0; i < t->curve_count; i++) {
        assert_int_equal(t->curve[i].images_per_s.has, t->curve[i].status == LAP_OK);
        assert_int_equal(t->curve[i].reason[0] == '\0', t->curve[i].status == LAP_OK);
    }
    if (t->images_per_s.has) {
        assert_int_equal(row->status, LAP_ROW_OK);
        assert_true(isfinite(t->images_per_s.value) && t->images_per_s.value > 0);
    } else {
        assert_int_not_equal(row->status, LAP_ROW_OK);
    }
    for (size_t i = 0; i < row->layer_count; i++)
        if (row->status != LAP_ROW_OK && row->layer_count < TINY_OPS)
            assert_false(row->layers[i].device_s.has);
}

#endif
