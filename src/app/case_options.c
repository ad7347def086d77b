/* See case_options.h. */
#include "app/case_options.h"

lap_latency_options lap_case_latency_options(const lap_config *config, const lap_floor *floor,
                                             double rewarm_s) {
    bool cold = config->latency.cache == LAP_CACHE_COLD;
    bool noise = config->latency.stop == LAP_STOP_RELATIVE_NOISE;
    bool no_warmup = !config->latency.warmup.automatic && config->latency.warmup.count == 0 &&
                     !(config->latency.warmup.seconds > 0);
    return (lap_latency_options){
        .burn_in_seconds = config->latency.burn_in,
        .warmup_auto = config->latency.warmup.automatic,
        .warmup_count = (size_t)config->latency.warmup.count,
        .warmup_seconds = config->latency.warmup.seconds,
        .repetitions = (size_t)(noise ? config->latency.max_samples : config->latency.repetitions),
        .noise_target = noise ? config->latency.noise_target : 0,
        .min_samples = (size_t)config->latency.min_samples,
        .max_seconds = config->latency.max_seconds,
        .passes = cold ? 1 : (size_t)config->latency.passes.count, /* the second would be hot */
        /* The calibration would be a warm-up. */
        .passes_auto = config->latency.passes.automatic && !no_warmup && !cold,
        .rewarm_seconds = rewarm_s,
        .tick_s = lap_floor_resolution(floor),
        .overhead_s = floor->wall_s};
}

lap_throughput_options lap_case_throughput_options(const lap_config *config) {
    return (lap_throughput_options){.search = config->throughput.search,
                                    .max_batch = config->throughput.max_batch,
                                    .batches = config->throughput.batches,
                                    .max_seconds = config->throughput.max_seconds,
                                    .latency_limit_s = config->throughput.latency_limit_ms * 1e-3,
                                    .search_cost = config->throughput.search_cost};
}
