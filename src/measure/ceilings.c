/* Measures the ceilings (see ceilings.h). Knows the tools' kernels; stores nothing. */
#include "measure/ceilings.h"
#include "kernel/tools.h"
#include "measure/result.h"
#include "measure/timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAUNCHES = 15, GROUP = 256, CHAINS_GPU = 8, CHAINS_CPU = 12, ACCUMULATORS = 8 };
/* Sums of 12 chains of this length are below 2^24: every one is exact. */
enum { MAX_ITERATIONS = 1 << 20, MAX_PASSES = 1 << 12, LINE = 64 };

/* Long against launch overhead and the stamps' resolution. */
static const double TARGET_S = 5e-3;
/* No device moves this much; used where nothing better is known. */
static const double ABSURD_BYTES_PER_S = 1e14;
static const double NEAR_THE_BEST = 0.75, FASTER_THAN_MEMORY = 1.1;

/* A kernel whose work grows with one integer argument. */
typedef struct probe {
    lap_queue *queue;
    lap_timing timing;
    lap_kernel *kernel;
    lap_launch launch;
    lap_arg args[5];
    size_t count_arg;   /* the argument that says how often */
    int32_t most;       /* its limit */
    double work_of_one; /* FLOPs or bytes of one iteration */
    double seconds;     /* of the last launch */
    lap_error stamps;   /* why the wall clock was used, if it was */
} probe;

/* Device span, or the wall span where there is none or it is longer than the wall allows. */
static lap_status launch_once(probe *p, int32_t count, lap_error *err) {
    const lap_timing *t = &p->timing;
    p->args[p->count_arg].i32 = count;
    double start = t->now(t->context), device_s = 0;
    LAP_TRY(t->before(t->context, err));
    LAP_TRY(lap_enqueue(p->queue, &p->launch, err));
    LAP_TRY(t->after(t->context, err));
    LAP_TRY(t->finish(t->context, err));
    p->seconds = t->now(t->context) - start;
    lap_error detail = {0};
    lap_status status = t->elapsed(t->context, &device_s, &detail);
    if (status == LAP_E_TIMER) p->stamps = detail;
    if (status != LAP_OK && status != LAP_E_TIMER) {
        if (err) *err = detail;
        return status;
    }
    bool believable = status == LAP_OK && device_s > 0 && device_s <= p->seconds * 1.05 + 1e-6;
    if (believable) p->seconds = device_s;
    return LAP_OK;
}

/* The best rate of several launches, long enough to trust. */
static lap_status best_rate(probe *p, lap_optional *rate, lap_error *err) {
    int32_t count = p->most < 16 ? p->most : 16;
    LAP_TRY(launch_once(p, count, err)); /* warm */
    for (;;) {
        LAP_TRY(launch_once(p, count, err));
        if (p->seconds >= TARGET_S || count > p->most / 2) break;
        count *= 2;
    }
    double least = INFINITY;
    for (int i = 0; i < LAUNCHES; i++) {
        LAP_TRY(launch_once(p, count, err));
        if (p->seconds < least) least = p->seconds;
    }
    *rate = lap_none();
    if (least > 4 * p->timing.resolution_s && isfinite(least))
        *rate = lap_ratio(lap_some(p->work_of_one * (double)count), lap_some(least));
    return LAP_OK;
}

static void because(lap_ceilings *out, const char *what, const char *why) {
    size_t used = strlen(out->reason);
    if (strstr(out->reason, why)) return; /* once is enough */
    snprintf(out->reason + used, sizeof out->reason - used, "%s%s: %s", used ? "; " : "", what,
             why);
}

/* A rate, or what is known about why there is none. Only a lost device ends everything. */
static lap_status accept(lap_ceilings *out, const char *what, lap_status status,
                         const lap_error *detail, lap_optional rate, double most, lap_optional *to,
                         lap_error *err) {
    char text[160];
    *to = lap_none();
    if (status == LAP_E_DEVICE || status == LAP_E_NOMEM) {
        if (err) *err = *detail;
        return status;
    }
    if (status != LAP_OK) {
        snprintf(text, sizeof text, "%.150s", detail->message);
        because(out, what, text);
    } else if (!rate.has) {
        because(out, what, "the clock shows no time");
    } else if (rate.value > most) {
        snprintf(text, sizeof text, "%.3g a second is more than such a device can do", rate.value);
        because(out, what, text);
    } else {
        *to = rate;
        out->has = true;
    }
    return LAP_OK;
}

static void probe_close(probe *p) {
    lap_kernel_free(p->kernel);
    lap_timing_close(&p->timing);
}

static uint32_t group_size(const lap_device_info *info, const lap_kernel *kernel, uint32_t wanted) {
    if (info->type == LAP_DEVICE_CPU) return 1;
    uint32_t most = lap_kernel_get_info(kernel)->max_group_size;
    return most && most < wanted ? most : wanted;
}

static void set_grid(probe *p, const lap_device_info *info, uint32_t group) {
    uint32_t units = info->units ? info->units : 16;
    uint32_t groups = units * (info->type == LAP_DEVICE_CPU ? 4 : 32);
    p->launch = (lap_launch){
        .kernel = p->kernel, .groups = {groups, 1, 1}, .local = {group, 1, 1}, .args = p->args};
}

/* A rate from the host's clock is too low rather than too high, but that must be known. */
static void tell_clock(lap_ceilings *out, const char *what, const probe *p) {
    char text[160];
    if (p->stamps.status == LAP_OK) return;
    snprintf(text, sizeof text, "host clock: %.140s", p->stamps.message);
    because(out, what, text);
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

/* The first and last floats of a result must all be the same function of the lane. */
static lap_status check_result(probe *p, lap_buffer *out, int lanes, double first, double per_lane,
                               lap_error *err) {
    float seen[16];
    size_t bytes = lap_buffer_bytes(out), part = (size_t)lanes * sizeof *seen;
    for (int end = 0; end < 2; end++) {
        LAP_TRY(lap_buffer_read(p->queue, out, end ? bytes - part : 0, seen, part, err));
        for (int i = 0; i < lanes; i++)
            if (!((double)seen[i] == first + per_lane * i))
                return LAP_FAIL(err, LAP_E_VERIFY, "wrong result: %g instead of %g",
                                (double)seen[i], first + per_lane * i);
    }
    return LAP_OK;
}

static lap_status fma_work(probe *p, lap_optional *rate, lap_error *err) {
    lap_device *device = lap_queue_device(p->queue);
    const lap_device_info *info = lap_device_get_info(device);
    int v = lap_tool_vector(info, 1);
    int chains = info->type == LAP_DEVICE_CPU ? CHAINS_CPU : CHAINS_GPU;
    lap_define defines[] = {{"V", v}, {"CHAINS", chains}};
    LAP_TRY(lap_tool_build(device, "peak_fma", "peak_fma", defines, 2, &p->kernel, err));
    set_grid(p, info, group_size(info, p->kernel, GROUP));
    size_t items = (size_t)p->launch.groups[0] * p->launch.local[0];
    lap_buffer *out;
    LAP_TRY(lap_buffer_new(device, items * (size_t)v * sizeof(float), &out, err));
    p->args[0] = (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = out};
    p->args[1] = p->args[2] = (lap_arg){.kind = LAP_ARG_I32, .i32 = 1};
    p->args[3] = (lap_arg){.kind = LAP_ARG_I32};
    p->launch.arg_count = 4;
    p->count_arg = 3;
    p->most = MAX_ITERATIONS;
    p->work_of_one = 2.0 * chains * v * (double)items;
    lap_status status = best_rate(p, rate, err);
    double n = p->args[3].i32;
    if (status == LAP_OK)
        status = check_result(p, out, v, chains * n + chains * (chains - 1) / 2.0, chains, err);
    lap_buffer_free(out);
    return status;
}

static lap_status mma_work(probe *p, lap_precision precision, lap_optional *rate, lap_error *err) {
    static const int32_t ones[LAP_PRECISION_COUNT] = {
        [LAP_TF32] = 0x3F800000, [LAP_FP16] = 0x3C003C00, [LAP_BF16] = 0x3F803F80};
    lap_device *device = lap_queue_device(p->queue);
    const lap_device_info *info = lap_device_get_info(device);
    int depth = precision == LAP_TF32 ? 8 : 16;
    lap_define define = {"PRECISION", precision};
    if (info->cc_major < 8)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "no matrix instructions known to this program");
    LAP_TRY(lap_tool_build(device, "peak_mma", "peak_mma", &define, 1, &p->kernel, err));
    set_grid(p, info, GROUP);
    size_t items = (size_t)p->launch.groups[0] * p->launch.local[0];
    lap_buffer *out;
    LAP_TRY(lap_buffer_new(device, items * sizeof(float), &out, err));
    p->args[0] = (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = out};
    p->args[1] = (lap_arg){.kind = LAP_ARG_I32, .i32 = ones[precision]};
    p->args[2] = (lap_arg){.kind = LAP_ARG_I32};
    p->launch.arg_count = 3;
    p->count_arg = 2;
    p->most = MAX_ITERATIONS / 16;
    p->work_of_one = 2.0 * 16 * 8 * depth * ACCUMULATORS * (double)items / 32;
    lap_status status = best_rate(p, rate, err);
    if (status == LAP_OK)
        status = check_result(p, out, 1, (double)depth * ACCUMULATORS * p->args[2].i32, 0, err);
    lap_buffer_free(out);
    return status;
}

static lap_status arithmetic(lap_queue *queue, lap_precision precision, lap_ceilings *out,
                             lap_error *err) {
    static const char *const names[LAP_PRECISION_COUNT] = {
        [LAP_FP32] = "fp32", [LAP_TF32] = "tf32", [LAP_FP16] = "fp16", [LAP_BF16] = "bf16"};
    probe p = {.queue = queue};
    lap_error detail = {0};
    lap_optional rate = lap_none();
    lap_status status = lap_timing_open(queue, &p.timing, &detail);
    if (status == LAP_OK)
        status = precision == LAP_FP32 ? fma_work(&p, &rate, &detail)
                                       : mma_work(&p, precision, &rate, &detail);
    tell_clock(out, names[precision], &p);
    probe_close(&p);
    const lap_device_info *info = lap_device_get_info(lap_queue_device(queue));
    return accept(out, names[precision], status, &detail, rate,
                  lap_flops_ceiling(info, names[precision]), &out->flops_per_s[precision], err);
}

/* ---- copies --------------------------------------------------------------------------------- */

static lap_status copy_with(probe *p, lap_buffer *from, lap_buffer *to, lap_optional *rate,
                            lap_error *err) {
    lap_device *device = lap_queue_device(p->queue);
    const lap_device_info *info = lap_device_get_info(device);
    int v = lap_tool_vector(info, 4);
    uint32_t group = group_size(info, p->kernel, GROUP);
    size_t bytes = lap_buffer_bytes(from);
    int32_t n = (int32_t)(bytes / ((size_t)v * sizeof(float)));
    set_grid(p, info, group);
    /* On an H200 groups that end after four vectors copy 4.0 TB/s, few that stay 3.4. */
    if (info->type != LAP_DEVICE_CPU)
        p->launch.groups[0] = ((uint32_t)n + 4 * group - 1) / (4 * group);
    p->args[0] = (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = from};
    p->args[1] = (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = to};
    p->args[2] = (lap_arg){.kind = LAP_ARG_I32, .i32 = n};
    p->args[3] = (lap_arg){.kind = LAP_ARG_I32};
    /* By the golden ratio, so that many passes go by before one begins near where another did: with
     * a third, an H200 copies 16 TB/s, from the units' own caches. Whole lines stay whole. */
    p->args[4] = (lap_arg){.kind = LAP_ARG_I32,
                           .i32 = (int32_t)((double)n * 0.6180339887498949) / LINE * LINE};
    p->launch.arg_count = 5;
    p->count_arg = 3;
    p->most = MAX_PASSES;
    p->work_of_one = 2.0 * (double)bytes;
    LAP_TRY(lap_buffer_fill(p->queue, from, 0, bytes, 0x3F9D70A4u, err));
    LAP_TRY(lap_buffer_fill(p->queue, to, 0, bytes, 0, err));
    LAP_TRY(best_rate(p, rate, err));
    uint32_t seen[2] = {0};
    LAP_TRY(lap_buffer_read(p->queue, to, 0, &seen[0], 4, err));
    LAP_TRY(lap_buffer_read(p->queue, to, bytes - 4, &seen[1], 4, err));
    if (seen[0] != 0x3F9D70A4u || seen[1] != seen[0])
        return LAP_FAIL(err, LAP_E_VERIFY, "wrong result: the copy is not equal to its source");
    return LAP_OK;
}

/* Before the memory is taken: without a kernel there is no use for it. */
static lap_status build_copy(probe *p, lap_error *err) {
    lap_device *device = lap_queue_device(p->queue);
    const lap_device_info *info = lap_device_get_info(device);
    lap_define defines[] = {{"V", lap_tool_vector(info, 4)},
                            {"CHUNKED", info->type == LAP_DEVICE_CPU}};
    return lap_tool_build(device, "stream_copy", "stream_copy", defines, 2, &p->kernel, err);
}

static lap_status copy_of(lap_queue *queue, size_t bytes, const char *what, lap_ceilings *out,
                          lap_optional *rate, lap_error *err) {
    lap_device *device = lap_queue_device(queue);
    probe p = {.queue = queue};
    lap_buffer *from = NULL, *to = NULL;
    lap_status status = lap_timing_open(queue, &p.timing, err);
    if (status == LAP_OK) status = build_copy(&p, err);
    if (status == LAP_OK) status = lap_buffer_new(device, bytes, &from, err);
    if (status == LAP_OK) status = lap_buffer_new(device, bytes, &to, err);
    if (status == LAP_OK) status = copy_with(&p, from, to, rate, err);
    lap_buffer_free(from);
    lap_buffer_free(to);
    tell_clock(out, what, &p);
    probe_close(&p);
    return status;
}

static lap_status memory_copy(lap_queue *queue, lap_ceilings *out, lap_error *err) {
    const lap_device_info *info = lap_device_get_info(lap_queue_device(queue));
    uint64_t bytes = 4 * info->cache_bytes, least = 16ull << 20;
    if (bytes < 64ull << 20) bytes = 64ull << 20;
    if (bytes > 512ull << 20) bytes = 512ull << 20;
    if (info->type != LAP_DEVICE_CPU) bytes = 1ull << 30;
    if (info->memory_bytes && bytes > info->memory_bytes / 8) bytes = info->memory_bytes / 8;
    if (info->max_alloc_bytes && bytes > info->max_alloc_bytes) bytes = info->max_alloc_bytes;
    lap_error detail = {0};
    lap_optional rate = lap_none();
    static const char what[] = "memory bandwidth";
    lap_status status = LAP_E_OOM;
    for (;; bytes /= 2) {
        status = copy_of(queue, (size_t)(bytes &= ~4095ull), what, out, &rate, &detail);
        if (status != LAP_E_OOM || bytes / 2 < least) break;
        char text[160];
        snprintf(text, sizeof text, "with less memory: %.130s", detail.message);
        because(out, what, text);
    }
    out->memory_bytes = 2 * bytes;
    return accept(out, what, status, &detail, rate, ABSURD_BYTES_PER_S, &out->memory_bytes_per_s,
                  err);
}

/* Buffers of 2^19 to 2^26 bytes. What drivers report of a cache is not to be relied on (NVIDIA's
 * OpenCL tells 4 MiB where there are 60), so on a GPU sizes are tried; a CPU's figure is right. */
enum { CACHE_SIZES = 8, LEAST_CACHE_COPY = 1 << 19 };

static int cache_sizes(const lap_device_info *info, uint64_t *bytes) {
    if (info->type == LAP_DEVICE_CPU) {
        bytes[0] = info->cache_bytes / 4 & ~4095ull;
        return bytes[0] > 0;
    }
    int n = 0;
    for (uint64_t b = LEAST_CACHE_COPY; n < CACHE_SIZES; b *= 2) {
        if (info->memory_bytes && b > info->memory_bytes / 8) break;
        if (info->max_alloc_bytes && b > info->max_alloc_bytes) break;
        bytes[n++] = b;
    }
    return n;
}

/* The fastest of all sizes is the ceiling; the largest that comes near it is what counts as cached.
 * A cache that is no faster than the memory is none. */
static void choose_cache(lap_ceilings *out, const uint64_t *bytes, const lap_optional *rates,
                         int count, lap_optional *rate) {
    *rate = lap_none();
    for (int i = 0; i < count; i++)
        if (rates[i].has && !(rate->has && rates[i].value <= rate->value)) *rate = rates[i];
    for (int i = 0; i < count; i++)
        if (rates[i].has && rates[i].value >= NEAR_THE_BEST * rate->value)
            out->cache_bytes = 2 * bytes[i];
}

static lap_status cache_copy(lap_queue *queue, lap_ceilings *out, lap_error *err) {
    const lap_device_info *info = lap_device_get_info(lap_queue_device(queue));
    static const char what[] = "cache bandwidth";
    uint64_t bytes[CACHE_SIZES];
    lap_optional rates[CACHE_SIZES] = {0}, rate = lap_none();
    int count = cache_sizes(info, bytes);
    if (count == 0) {
        because(out, what, "the size of the last-level cache is unknown");
        return LAP_OK;
    }
    lap_error detail = {0};
    lap_status status = LAP_OK;
    for (int i = 0; i < count && status == LAP_OK; i++)
        status = copy_of(queue, (size_t)bytes[i], what, out, &rates[i], &detail);
    if (status == LAP_OK) choose_cache(out, bytes, rates, count, &rate);
    bool faster = !rate.has || !out->memory_bytes_per_s.has ||
                  rate.value > FASTER_THAN_MEMORY * out->memory_bytes_per_s.value;
    if (!faster) {
        because(out, what, "no size is copied faster than the memory copies");
        out->cache_bytes = 0;
        return LAP_OK;
    }
    return accept(out, what, status, &detail, rate, ABSURD_BYTES_PER_S, &out->cache_bytes_per_s,
                  err);
}

lap_status lap_ceilings_measure(lap_queue *queue, lap_ceilings *out, lap_error *err) {
    *out = (lap_ceilings){0};
    LAP_TRY(arithmetic(queue, LAP_FP32, out, err));
    const lap_device_info *info = lap_device_get_info(lap_queue_device(queue));
    for (int p = LAP_TF32; p <= LAP_BF16 && info->cc_major >= 8; p++)
        LAP_TRY(arithmetic(queue, (lap_precision)p, out, err));
    out->flops_per_s[LAP_FP32X3] = lap_ratio(out->flops_per_s[LAP_FP16], lap_some(3));
    LAP_TRY(memory_copy(queue, out, err));
    return cache_copy(queue, out, err);
}

/* ---- the roofline --------------------------------------------------------------------------- */

lap_roof lap_ceilings_roof(const lap_ceilings *ceilings, lap_precision precision, uint64_t flops,
                           uint64_t bytes, lap_optional seconds) {
    lap_roof roof = {.intensity = lap_ratio(lap_some((double)flops), lap_some((double)bytes))};
    bool cached = ceilings->cache_bytes_per_s.has && bytes <= ceilings->cache_bytes;
    lap_optional bandwidth = cached ? ceilings->cache_bytes_per_s : ceilings->memory_bytes_per_s;
    lap_optional moving = lap_ratio(lap_some((double)bytes), bandwidth);
    lap_optional computing = lap_some(0);
    if (flops > 0) computing = lap_ratio(lap_some((double)flops), ceilings->flops_per_s[precision]);
    if (!moving.has || !computing.has) return roof;
    bool compute = computing.value > moving.value;
    roof.share = lap_ratio(compute ? computing : moving, seconds);
    if (roof.share.has && !(roof.share.value > 0)) roof.share = lap_none(); /* no work at all */
    if (roof.share.has) roof.bound = compute ? "compute" : cached ? "cache" : "memory";
    return roof;
}
