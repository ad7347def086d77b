/* The naive rows: last in the list, no parameters, every device. They must stay plain: other rows
 * are judged against them.
 */
#include "kernel/rows.h"

#define LOCAL 64

static uint64_t stored_out(const lap_case *c) {
    return lap_tensor_stored(&c->op->out);
}

static bool grid_output(const lap_case *c, lap_grid *grid) {
    return lap_row_grid_linear(c, stored_out(c), LOCAL, grid);
}

const lap_kernel_row lap_row_conv_naive = {
    .id = "conv_naive",
    .about = "one work-item per output element",
    .kind = LAP_OP_CONV,
    .precisions = LAP_ROW_PLAIN,
    .naive = true,
    .smooth = true,
    .stages = {LAP_ROW_STAGE_KERNEL("conv_naive", grid_output, 7, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_RESIDUAL, LAP_ROLE_OUT, LAP_ROLE_N,
                                    LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = lap_row_accepts_plain,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
    .packed_bytes = lap_pack_krsc_bytes,
    .pack = lap_pack_krsc,
};

const lap_kernel_row lap_row_maxpool_naive = {
    .id = "maxpool_naive",
    .about = "one work-item per output element",
    .kind = LAP_OP_MAXPOOL,
    .precisions = LAP_ROW_PLAIN,
    .naive = true,
    .stages = {LAP_ROW_STAGE_KERNEL("maxpool_naive", grid_output, 3, LAP_ROLE_IN, LAP_ROLE_OUT,
                                    LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = lap_row_accepts_plain,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
};

const lap_kernel_row lap_row_avgpool_naive = {
    .id = "avgpool_naive",
    .about = "one work-item per channel",
    .kind = LAP_OP_AVGPOOL,
    .precisions = LAP_ROW_PLAIN,
    .naive = true,
    .stages = {LAP_ROW_STAGE_KERNEL("avgpool_naive", grid_output, 3, LAP_ROLE_IN, LAP_ROLE_OUT,
                                    LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = lap_row_accepts_plain,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
};

const lap_kernel_row lap_row_fc_naive = {
    .id = "fc_naive",
    .about = "one work-item per output element",
    .kind = LAP_OP_FC,
    .precisions = LAP_ROW_PLAIN,
    .naive = true,
    .stages = {LAP_ROW_STAGE_KERNEL("fc_naive", grid_output, 5, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = lap_row_accepts_plain,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
    .packed_bytes = lap_pack_krsc_bytes,
    .pack = lap_pack_krsc,
};

const lap_kernel_row lap_row_dwconv_naive = {
    .id = "dwconv_naive",
    .about = "one work-item per output element",
    .kind = LAP_OP_DWCONV,
    .precisions = LAP_ROW_PLAIN,
    .naive = true,
    .smooth = true,
    .stages = {LAP_ROW_STAGE_KERNEL("dwconv_naive", grid_output, 6, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N, LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = lap_row_accepts_plain,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
    .packed_bytes = lap_pack_rsc_bytes,
    .pack = lap_pack_rsc,
};

const lap_kernel_row lap_row_scale_naive = {
    .id = "scale_naive",
    .about = "one work-item per output element",
    .kind = LAP_OP_SCALE,
    .precisions = LAP_ROW_PLAIN,
    .naive = true,
    .stages = {LAP_ROW_STAGE_KERNEL("scale_naive", grid_output, 4, LAP_ROLE_IN, LAP_ROLE_IN2,
                                    LAP_ROLE_OUT, LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = lap_row_accepts_plain,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
};
