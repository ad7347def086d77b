/* Sums over devices at work at the same time (see sets.h). */
#include "measure/sets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double Z_95 = 1.959963984540054;

/* ---- one member ----------------------------------------------------------------------------- */

/* Mean of n independent values with Student's interval. */
static lap_margin mean_of(const double *x, size_t n) {
    lap_margin out = {0};
    double sum = 0, squares = 0;
    if (n == 0) return out;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    double mean = sum / (double)n;
    out.value = lap_some(mean);
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    if (n >= 2)
        out.half = lap_some(lap_student_95(n - 1) * sqrt(squares / (double)(n - 1) / (double)n));
    return out;
}

/* The mean of a[i] / b[i]: what both share cancels. */
static lap_margin ratio_of(const double *a, const double *b, size_t n) {
    double ratios[LAP_ROUNDS_MOST];
    for (size_t i = 0; i < n; i++) {
        if (!(b[i] > 0)) return (lap_margin){0};
        ratios[i] = a[i] / b[i];
    }
    return mean_of(ratios, n);
}

static lap_margin rate_of(uint64_t batch, lap_optional mean_s, lap_optional error, size_t n) {
    lap_margin out = {lap_ratio(lap_some((double)batch), mean_s), lap_none()};
    double t = n >= 2 ? lap_student_95(n - 1) : Z_95;
    if (out.value.has && error.has) out.half = lap_some(t * error.value * out.value.value);
    return out;
}

static double relative(lap_margin m) {
    return m.value.has && m.half.has && m.value.value > 0 ? m.half.value / m.value.value : 0;
}

/* a / b of independent values. */
static lap_margin quotient(lap_margin a, lap_margin b) {
    lap_margin out = {lap_ratio(a.value, b.value), lap_none()};
    if (out.value.has && a.half.has && b.half.has)
        out.half = lap_some(out.value.value * hypot(relative(a), relative(b)));
    return out;
}

static void derive_member(lap_set_member *m, uint64_t batch) {
    const lap_rounds *r = &m->rounds;
    m->rate = mean_of(r->together, r->n);
    m->alone_rate = mean_of(r->alone, r->n);
    m->scaling = ratio_of(r->together, r->alone, r->n);
    m->fps = rate_of(batch, m->mean_s, m->mean_error, m->mean_n);
    m->alone_fps = rate_of(batch, m->alone_mean_s, m->alone_mean_error, m->alone_mean_n);
    m->slowdown = quotient(m->alone_fps, m->fps);
    if (m->ok) return;
    /* A row that failed has no place in a sum, whatever it measured before. */
    m->rate = m->scaling = m->fps = m->slowdown = (lap_margin){0};
}

/* ---- the sum -------------------------------------------------------------------------------- */

static bool rated(const lap_set_member *m) {
    return m->ok && m->rounds.n > 0;
}

/* Round by round, so that the interval is that of sums and not of members. */
static void add_rounds(lap_set *set) {
    double together[LAP_ROUNDS_MOST] = {0}, alone[LAP_ROUNDS_MOST] = {0};
    set->rated = set->rounds = 0;
    for (size_t i = 0; i < set->count; i++) {
        const lap_set_member *m = &set->members[i];
        if (!rated(m)) continue;
        if (set->rated == 0 || m->rounds.n < set->rounds) set->rounds = m->rounds.n;
        set->rated++;
        for (size_t k = 0; k < m->rounds.n; k++) {
            together[k] += m->rounds.together[k];
            alone[k] += m->rounds.alone[k];
        }
    }
    set->rate = mean_of(together, set->rounds);
    set->alone_rate = mean_of(alone, set->rounds);
    set->scaling = ratio_of(together, alone, set->rounds);
}

static lap_margin sum(lap_margin a, lap_margin b, bool first) {
    if (first) return b;
    lap_margin out = {lap_some(a.value.value + b.value.value), lap_none()};
    if (a.half.has && b.half.has) out.half = lap_some(hypot(a.half.value, b.half.value));
    return out;
}

static void add_latencies(lap_set *set) {
    bool all_alone = true;
    set->timed = 0;
    set->fps = set->alone_fps = set->fps_scaling = (lap_margin){0};
    for (size_t i = 0; i < set->count; i++) {
        const lap_set_member *m = &set->members[i];
        if (!m->fps.value.has) continue;
        all_alone = all_alone && m->alone_fps.value.has;
        set->fps = sum(set->fps, m->fps, set->timed == 0);
        if (all_alone) set->alone_fps = sum(set->alone_fps, m->alone_fps, set->timed == 0);
        set->timed++;
    }
    if (!all_alone) set->alone_fps = (lap_margin){0};
    set->fps_scaling = quotient(set->fps, set->alone_fps);
}

static lap_optional speed(const lap_set *set, const lap_set_member *m) {
    return set->rated > 0 ? m->rate.value : m->fps.value;
}

static void find_extremes(lap_set *set) {
    double total = 0, squares = 0;
    size_t n = 0;
    set->slowest = LAP_SET_NOBODY;
    set->slowest_rate = set->fastest_rate = set->spread = lap_none();
    for (size_t i = 0; i < set->count; i++) {
        lap_optional v = speed(set, &set->members[i]);
        if (!v.has) continue;
        total += v.value;
        n++;
        if (!set->slowest_rate.has || v.value < set->slowest_rate.value) {
            set->slowest = (long)i;
            set->slowest_rate = v;
        }
        if (!set->fastest_rate.has || v.value > set->fastest_rate.value) set->fastest_rate = v;
    }
    if (n < 2) return;
    double mean = total / (double)n;
    for (size_t i = 0; i < set->count; i++) {
        lap_optional v = speed(set, &set->members[i]);
        if (v.has) squares += (v.value - mean) * (v.value - mean);
    }
    set->spread = lap_ratio(lap_some(sqrt(squares / (double)(n - 1))), lap_some(mean));
}

static void find_skew(lap_set *set) {
    double first = 0, last = 0;
    size_t n = 0;
    for (size_t i = 0; i < set->count; i++) {
        double at = set->members[i].started_s;
        if (!(at > 0)) continue;
        if (n == 0 || at < first) first = at;
        if (n == 0 || at > last) last = at;
        n++;
    }
    /* Clocks of different hosts have different origins. */
    set->skew_s = n >= 2 && !set->fleet ? lap_some(last - first) : lap_none();
}

void lap_set_derive(lap_set *set) {
    for (size_t i = 0; i < set->count; i++)
        derive_member(&set->members[i], set->batch);
    add_rounds(set);
    add_latencies(set);
    find_extremes(set);
    find_skew(set);
}

bool lap_set_same(const lap_set *a, const lap_set *b) {
    return strcmp(a->network, b->network) == 0 && strcmp(a->precision, b->precision) == 0 &&
           a->height == b->height && a->width == b->width && a->batch == b->batch;
}

/* ---- from rows ------------------------------------------------------------------------------ */

static void fill_member(const lap_row *rows, size_t index, lap_set_member *m) {
    const lap_row *row = &rows[index], *alone = &rows[row->concurrent.alone_row];
    *m = (lap_set_member){.row = index,
                          .alone = row->concurrent.alone_row,
                          .ok = row->status == LAP_ROW_OK,
                          .started_s = row->concurrent.started_s,
                          .rounds = row->concurrent.rounds};
    snprintf(m->selector, sizeof m->selector, "%s", row->device.selector);
    snprintf(m->device, sizeof m->device, "%s", row->device.name);
    if (!m->ok)
        snprintf(m->reason, sizeof m->reason, "%s",
                 row->reason ? row->reason : lap_row_status_name(row->status));
    if (row->latency.has) {
        m->mean_s = row->latency.stats.mean;
        m->mean_error = lap_relative_error(&row->latency.stats);
        m->mean_n = row->latency.stats.n;
    }
    if (alone->latency.has) {
        m->alone_mean_s = alone->latency.stats.mean;
        m->alone_mean_error = lap_relative_error(&alone->latency.stats);
        m->alone_mean_n = alone->latency.stats.n;
    }
}

static lap_set *set_number(lap_set *sets, size_t number, const lap_row *row) {
    lap_set *set = &sets[number - 1];
    if (set->count > 0) return set;
    snprintf(set->network, sizeof set->network, "%s", row->network);
    snprintf(set->precision, sizeof set->precision, "%s", row->precision);
    set->height = row->height;
    set->width = row->width;
    set->batch = row->batch;
    return set;
}

lap_status lap_sets_of_rows(const lap_row *rows, size_t count, lap_set **out, size_t *set_count,
                            lap_error *err) {
    size_t most = 0;
    *out = NULL;
    *set_count = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].concurrent.set > most) most = rows[i].concurrent.set;
    if (most == 0) return LAP_OK;
    lap_set *sets = calloc(most, sizeof *sets);
    bool enough = sets != NULL;
    for (size_t s = 1; enough && s <= most; s++) {
        size_t members = 0;
        for (size_t i = 0; i < count; i++)
            members += rows[i].concurrent.set == s;
        sets[s - 1].members = calloc(members ? members : 1, sizeof *sets[0].members);
        enough = sets[s - 1].members != NULL;
    }
    if (!enough) {
        lap_sets_free(sets, most);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the sums of %zu rows", count);
    }
    for (size_t i = 0; i < count; i++) {
        if (rows[i].concurrent.set == 0) continue;
        lap_set *set = set_number(sets, rows[i].concurrent.set, &rows[i]);
        fill_member(rows, i, &set->members[set->count++]);
    }
    for (size_t s = 0; s < most; s++)
        lap_set_derive(&sets[s]);
    *out = sets;
    *set_count = most;
    return LAP_OK;
}

void lap_sets_free(lap_set *sets, size_t count) {
    for (size_t i = 0; sets && i < count; i++)
        free(sets[i].members);
    free(sets);
}
