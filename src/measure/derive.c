/* What follows from a row's measurements: rates and remarks. Computes once, so that renderers need
 * not; measures nothing. */
#include "measure/result.h"

#include <stdio.h>
#include <string.h>

/* Per unit (multiprocessor, compute unit, core) and clock. A multiprocessor of NVIDIA does 128 fp32
 * FMA; other vendors' units are smaller or, on phones, larger, so their bound is wide. Tensor cores
 * reach 4096 fp16 FMA. Winograd does the work of up to 4 direct multiplications with one. */
enum { FP32_NVIDIA = 2 * 128, FP32_OTHER = 2 * 1024, NARROW = 2 * 4096, WINOGRAD = 4 };

double lap_flops_ceiling(const lap_device_info *device, const char *precision) {
    /* No single device computes this much; used when the API tells neither units nor clock. */
    const double absurd = 1e17;
    if (device->units == 0 || device->clock_mhz == 0) return absurd;
    int each = strcmp(precision, "fp32") != 0 ? NARROW
               : device->cc_major > 0         ? FP32_NVIDIA
                                              : FP32_OTHER;
    /* Some APIs tell the base clock: allow a boost of 2, but not where the maximum is told. */
    double boost = device->cc_major > 0 ? 1.2 : 2.0;
    double hz = (double)device->clock_mhz * 1e6 * boost;
    double ceiling = (double)device->units * hz * each * WINOGRAD;
    return ceiling < absurd ? ceiling : absurd;
}

static void note_warm_up(lap_row *row) {
    const lap_latency *l = &row->latency;
    if (!l->warmup_auto) return;
    char first[64] = "";
    if (l->warmup_first_ratio.has)
        snprintf(first, sizeof first, "; the first run took %.2f x the steady time",
                 l->warmup_first_ratio.value);
    if (l->warmup_steady)
        lap_row_note(row, "warm-up: steady after %zu runs (%.2f s)%s", l->warmup_n, l->warmup_s,
                     first);
    else
        lap_row_note(row, "warm-up: never steady in %zu runs (%.2f s)%s", l->warmup_n, l->warmup_s,
                     first);
}

/* The samples are looked at now and then: they may reach the target just before they are enough. */
static void note_noise(lap_row *row) {
    const lap_latency *l = &row->latency;
    if (!(l->noise_target > 0) || !l->has) return;
    if (!l->noise.has)
        lap_row_note(row, "noise target missed: no standard error (n = %zu), wanted %.3g %%",
                     l->stats.n, l->noise_target * 100);
    else if (l->noise.value > l->noise_target)
        lap_row_note(row, "noise target missed: standard error %.3g %% of the mean, wanted %.3g %%",
                     l->noise.value * 100, l->noise_target * 100);
}

static void note_end(lap_row *row) {
    const lap_latency *l = &row->latency;
    if (row->copies.has && row->copies.reason[0])
        lap_row_note(row, "no pinned copies: %s", row->copies.reason);
    if (l->interrupted)
        lap_row_note(row, "interrupted after %zu of %zu repetitions", l->n, l->planned);
    else if (l->time_limit)
        lap_row_note(row, "max_seconds ended it after %zu of %zu repetitions", l->n, l->planned);
    note_noise(row);
    if (l->passes > 1 && l->passes_reason[0])
        lap_row_note(row, "%zu passes make one sample: %s", l->passes, l->passes_reason);
}

static void note_latency(lap_row *row) {
    const lap_latency *l = &row->latency;
    size_t bad = l->untimed_bad + row->floor.bad_stamps;
    if (bad > 0) lap_row_note(row, "%zu bad device time stamps before the timed runs", bad);
    if (l->clock_reason[0])
        lap_row_note(row, "clock: wall, because %s; not comparable with rows timed by events",
                     l->clock_reason);
    note_warm_up(row);
    note_end(row);
    if (!l->has) return;
    size_t n = l->stats.n;
    if (!l->stats.std.has) lap_row_note(row, "no standard deviation: n = %zu", n);
    if (!l->stats.p90.has)
        lap_row_note(row, "no p90, p95, p99: n < %d (n = %zu)", LAP_MIN_N_P90, n);
    else if (!l->stats.p95.has)
        lap_row_note(row, "no p95, p99: n < %d (n = %zu)", LAP_MIN_N_P95, n);
    else if (!l->stats.p99.has)
        lap_row_note(row, "no p99: n < %d (n = %zu)", LAP_MIN_N_P99, n);
}

/* The verdict, where it is not a good one. */
static void note_verdict(lap_row *row) {
    lap_verdict_decide(row);
    if (row->verdict == LAP_VERDICT_NONE || row->verdict == LAP_VERDICT_STABLE) return;
    lap_row_note(row, "%s: %s; %s", lap_verdict_name(row->verdict), row->verdict_reason,
                 row->verdict_advice);
}

/* Energy of the timed blocks over all images computed in them. */
static void derive_energy(lap_row *row) {
    const lap_latency *l = &row->latency;
    row->energy_j = lap_none();
    if (!l->has) return;
    double images = (double)l->n * (double)l->passes * (double)row->batch;
    row->energy_j = lap_ratio(row->telemetry.energy_j, lap_some(images));
}

/* The search and the final measurement time the same thing; where they differ much, something else
 * used the device or the host in one of them. */
static void note_disagreement(lap_row *row) {
    const lap_throughput *t = &row->throughput;
    for (size_t i = 0; i < t->curve_count && t->images_per_s.has; i++) {
        const lap_curve_point *p = &t->curve[i];
        if (p->batch != t->batch || !p->images_per_s.has) continue;
        double ratio = t->images_per_s.value / p->images_per_s.value;
        if (ratio > 0.75 && ratio < 1 / 0.75) continue;
        lap_row_note(
            row,
            "throughput: the search saw %.3g images/s at batch %llu, the measurement %.3g: "
            "they should agree; was the machine busy with something else?",
            p->images_per_s.value, (unsigned long long)p->batch, t->images_per_s.value);
    }
}

static void note_others(lap_row *row) {
    const lap_concurrent *c = &row->concurrent;
    if (c->others > 0)
        lap_row_note(row, "concurrent with %zu other%s", c->others, c->others == 1 ? "" : "s");
}

/* NULL where no batch is over the limit. */
static const lap_curve_point *quickest_over_limit(const lap_throughput *t) {
    const lap_curve_point *quickest = NULL;
    for (size_t i = 0; i < t->curve_count; i++) {
        const lap_curve_point *p = &t->curve[i];
        if (!p->over_limit || !p->batch_s.has) continue;
        if (!quickest || p->batch_s.value < quickest->batch_s.value) quickest = p;
    }
    return quickest;
}

static void note_throughput(lap_row *row) {
    const lap_throughput *t = &row->throughput;
    if (!t->has) return;
    const lap_curve_point *quickest = quickest_over_limit(t);
    if (t->best_batch == 0 && quickest)
        lap_row_note(row,
                     "no throughput: no batch is within latency_limit_ms = %g; batch %llu takes "
                     "%.4g ms",
                     t->latency_limit_s.value * 1e3, (unsigned long long)quickest->batch,
                     quickest->batch_s.value * 1e3);
    else if (t->best_batch == 0)
        lap_row_note(row, "batch search: no batch size worked (%s)", t->ended);
    if (t->batches > 0 && t->batches < t->batches_planned)
        lap_row_note(row, "throughput: max_seconds left time for %llu of %llu batches",
                     (unsigned long long)t->batches, (unsigned long long)t->batches_planned);
    if (t->batch != t->best_batch && t->batch != 0)
        lap_row_note(row, "throughput: batch %llu was best in the search, but did not fit again",
                     (unsigned long long)t->best_batch);
}

static void check_ceiling(lap_row *row, const char *what, lap_optional flops_per_s) {
    double ceiling = lap_flops_ceiling(&row->device, row->precision);
    if (!flops_per_s.has || flops_per_s.value <= ceiling) return;
    lap_row_note(row,
                 "%s: %.3g FLOP/s is above what such a device can do (%.3g FLOP/s): the work was "
                 "not done or the clock is wrong",
                 what, flops_per_s.value, ceiling);
}

static lap_precision precision_of(const lap_row *row) {
    for (int p = 0; p < LAP_PRECISION_COUNT; p++)
        if (strcmp(lap_precision_name((lap_precision)p), row->precision) == 0)
            return (lap_precision)p;
    return LAP_FP32;
}

static void derive_roof(lap_row *row, lap_layer *layer, double batch) {
    lap_roof roof =
        lap_ceilings_roof(&row->ceilings, precision_of(row),
                          (uint64_t)((double)layer->flops * batch), layer->bytes, layer->device_s);
    layer->intensity = roof.intensity;
    layer->share = roof.share;
    layer->bound = roof.bound;
}

static void derive_sum(lap_row *row) {
    lap_layer_sum *sum = &row->layer_sum;
    if (row->layer_count == 0) return;
    if (row->latency.has) sum->whole_s = row->latency.stats.p50;
    sum->difference_s = lap_none();
    if (sum->sum_s.has && sum->whole_s.has)
        sum->difference_s = lap_some(sum->sum_s.value - sum->whole_s.value);
    if (row->ceilings.reason[0]) lap_row_note(row, "ceilings: %s", row->ceilings.reason);
}

static void derive_layers(lap_row *row, double batch) {
    for (size_t i = 0; i < row->layer_count; i++) {
        lap_layer *layer = &row->layers[i];
        layer->flops_per_s = lap_ratio(lap_some((double)layer->flops * batch), layer->device_s);
        layer->bytes_per_s = lap_ratio(lap_some((double)layer->bytes), layer->device_s);
        if (layer->flops == 0) layer->flops_per_s = lap_none(); /* pools: no rate, not 0 */
        check_ceiling(row, layer->name, layer->flops_per_s);
        derive_roof(row, layer, batch);
    }
    derive_sum(row);
}

void lap_row_finish(lap_row *row) {
    double batch = (double)row->batch, flops = (double)row->work.flops;
    row->fps = row->flops_per_s = lap_none();
    if (row->latency.has && row->cause != LAP_E_VERIFY) {
        row->fps = lap_ratio(lap_some(batch), row->latency.stats.mean);
        row->flops_per_s = lap_ratio(lap_some(flops * batch), row->latency.stats.mean);
        if (!row->fps.has) lap_row_note(row, "no rates: the mean latency is not above zero");
        check_ceiling(row, "latency", row->flops_per_s);
    }
    const lap_optional rate = row->throughput.images_per_s;
    row->throughput.flops_per_s = rate.has ? lap_some(rate.value * flops) : lap_none();
    check_ceiling(row, "throughput", row->throughput.flops_per_s);
    derive_layers(row, batch);
    derive_energy(row);
    note_others(row);
    note_latency(row);
    note_verdict(row);
    note_throughput(row);
    note_disagreement(row);
}
