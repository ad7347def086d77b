/* How far a right result may be from the exact one. */
#include "check/step.h"

#include "base/half.h"

#include <math.h>

double check_stored(const check_step *io, double exact) {
    if (io->logits) return exact;
    if (io->precision == LAP_FP16)
        return (double)lap_half_to_float(lap_half_from_float((float)exact));
    if (io->precision == LAP_BF16)
        return (double)lap_bf16_to_float(lap_bf16_from_float((float)exact));
    return exact;
}

double check_roundoff(lap_precision precision) {
    switch (precision) {
    case LAP_TF32:
    case LAP_FP16:
        return ldexp(1, -11);
    case LAP_BF16:
        return ldexp(1, -8);
    case LAP_FP32:
    case LAP_FP32X3:
    case LAP_PRECISION_COUNT:
        break;
    }
    return ldexp(1, -24);
}

static double op_sum_length(const lap_op *op) {
    double window = (double)op->r * (double)op->s;
    switch (op->kind) {
    case LAP_OP_CONV:
    case LAP_OP_DWCONV:
        return window * lap_op_depth(op);
    case LAP_OP_SCALE:
        return 1;
    case LAP_OP_FC:
        return (double)lap_tensor_logical(&op->in);
    case LAP_OP_AVGPOOL:
        return (double)op->in.h * (double)op->in.w;
    case LAP_OP_MAXPOOL:
    case LAP_OP_KIND_COUNT:
        break;
    }
    return 0;
}

/* The longest sum behind one output element. */
static double sum_length(const check_step *io) {
    double length = op_sum_length(io->op) + (io->partner ? op_sum_length(io->partner) : 0);
    return length + (io->means && io->means != io->partner ? op_sum_length(io->means) : 0);
}

double check_bound_factor(const check_step *io) {
    bool wide = io->precision == LAP_FP32 || io->precision == LAP_FP32X3;
    double factor = wide ? 4 * sqrt(sum_length(io)) : 8;
    return factor * (io->error_factor ? io->error_factor : 1) * check_roundoff(io->precision);
}

void check_allow_small(const check_step *io, double *bound, size_t count) {
    if (io->precision != LAP_FP16) return;
    for (size_t i = 0; i < count; i++)
        bound[i] += ldexp(1, -24) / check_bound_factor(io);
}
