/* Which precisions a device can run, by asking the list of kernels. */
#include "app/precisions.h"

#include "kernel/kernel.h"

/* Listing opens no device, so what a test kernel would find (src/kernel/probe.h) is guessed from
 * the compute capability here; a run finds out for itself and says unsupported where this was
 * wrong. */
static unsigned likely_features(const lap_device_info *info) {
    return info->cc_major >= 8 ? LAP_FEATURE_MMA(LAP_FP32X3) | LAP_FEATURE_MMA(LAP_TF32) |
                                     LAP_FEATURE_MMA(LAP_FP16) | LAP_FEATURE_MMA(LAP_BF16)
                               : 0;
}

static bool runs(const lap_device_info *info, const lap_net *net, lap_precision precision) {
    for (int i = 0; i < net->op_count; i++) {
        lap_case c = {.op = &net->ops[i],
                      .device = info,
                      .precision = precision,
                      .n = 1,
                      .features = likely_features(info)};
        if (!lap_kernel_choose(&c, false, false)) return false;
    }
    return true;
}

unsigned lap_device_precisions(const lap_device_info *info) {
    lap_net *net;
    if (lap_net_build(lap_net_model_names[0], 224, 224, &net, NULL) != LAP_OK) return 0;
    unsigned mask = 0;
    for (int p = 0; p < LAP_PRECISION_COUNT; p++) {
        if (runs(info, net, (lap_precision)p)) mask |= 1u << p;
    }
    lap_net_free(net);
    return mask;
}
