/* Rows on the matrix instructions of AMD and Intel GPUs (conv_matrix, OpenCL): convolution, and
 * convolution with the block's 1x1 residual convolution. They run where a session has seen a small
 * convolution of theirs come out right (probe.h). Nobody has measured them: the estimate that
 * chooses tiles is arithmetic, not fitted to times.
 *
 * Geometry computed here mirrors the macros of kernels_cl/conv_matrix.cl.
 */
#include "kernel/rows.h"

#include <string.h>

enum { FORM, WM, WN, GM, GN, TEAMS, MATRIX_TUNABLES };

#define STEP 16          /* channels that an instruction sums over */
#define LOCAL_MOST 32768 /* bytes of local memory, which every device has */
#define WAVES_A_UNIT 4   /* that a unit computes for at a time */

static const struct form {
    int wave, rows, columns;
    int sums; /* of a work-item at most: they and two steps of operands are in registers */
} forms[LAP_MATRIX_FORMS + 1] = {
    {0}, {64, 16, 16, 64}, {32, 16, 16, 32}, {8, 8, 8, 64}, {16, 8, 16, 64}};

typedef struct matrix {
    struct form form;
    uint64_t rows; /* output pixels */
    uint64_t tiles_m, tiles_n, steps, turns;
    uint64_t threads, local_bytes;
} matrix;

/* ---- what the instructions are -------------------------------------------------------------- */

unsigned lap_row_matrix_features(lap_precision precision) {
    if (precision != LAP_FP16 && precision != LAP_BF16) return 0;
    unsigned mask = LAP_FEATURE_MMA(precision);
    for (int form = 1; form <= LAP_MATRIX_FORMS; form++)
        mask |= LAP_FEATURE_MATRIX(form, precision);
    return mask;
}

bool lap_row_matrix_vendor(const lap_device_info *device, int form) {
    if (strcmp(device->language, "cl") != 0 || device->type != LAP_DEVICE_GPU) return false;
    const char *vendor = device->vendor;
    if (form == 1 || form == 2) return strstr(vendor, "AMD") || strstr(vendor, "Advanced Micro");
    return strstr(vendor, "Intel") != NULL;
}

/* The form that was seen to work in c's precision; 0: none. */
static int form_of(const lap_case *c) {
    if (c->precision != LAP_FP16 && c->precision != LAP_BF16) return 0;
    for (int form = 1; form <= LAP_MATRIX_FORMS; form++)
        if (c->features & LAP_FEATURE_MATRIX(form, c->precision) &&
            lap_row_matrix_vendor(c->device, form))
            return form;
    return 0;
}

/* ---- what a parameter vector means ---------------------------------------------------------- */

static uint64_t steps_of(const lap_op *op) {
    return (uint64_t)op->r * (uint64_t)op->s * lap_row_ceil_div((uint64_t)op->in.cs, STEP);
}

static uint64_t all_steps(const lap_case *c) {
    return steps_of(c->op) + (c->partner ? steps_of(c->partner) : 0);
}

static matrix matrix_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    matrix g = {.form = forms[v[FORM]]};
    uint64_t teams = (uint64_t)v[TEAMS], gm = (uint64_t)v[GM], gn = (uint64_t)v[GN];
    uint64_t wm = (uint64_t)v[WM], wn = (uint64_t)v[WN];
    g.rows = c->n * (uint64_t)op->out.h * (uint64_t)op->out.w;
    g.tiles_m = lap_row_ceil_div((uint64_t)op->out.cs, gm * wm);
    g.tiles_n = lap_row_ceil_div(g.rows, gn * wn);
    g.steps = all_steps(c);
    g.turns = lap_row_ceil_div(g.steps, teams);
    g.threads = gm * gn * teams * (uint64_t)g.form.wave;
    g.local_bytes = (teams - 1) * gm * gn * wm * wn * sizeof(float);
    return g;
}

static bool matrix_valid(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    for (int i = 0; i < MATRIX_TUNABLES; i++)
        if (v[i] <= 0) return false;
    if (v[FORM] != form_of(c)) return false;
    matrix g = matrix_of(c);
    if (v[WM] % g.form.rows || v[WN] % g.form.columns) return false;
    if (v[WM] * v[WN] > g.form.sums * g.form.wave) return false;
    if (g.local_bytes > LOCAL_MOST || !lap_row_group_fits(c->device, g.threads, g.local_bytes))
        return false;
    if ((uint64_t)v[TEAMS] > g.steps) return false;
    /* Offsets inside the images that a tile touches are 32-bit. */
    uint64_t images = (uint64_t)v[WN] / ((uint64_t)op->out.h * (uint64_t)op->out.w) + 2;
    if (images * lap_tensor_stored(&op->in) > INT32_MAX) return false;
    if (c->partner && images * lap_tensor_stored(&c->partner->in) > INT32_MAX) return false;
    /* A tile twice as high as there are channels does half its work for nothing. */
    return v[GM] * v[WM] <= 16 || v[GM] * v[WM] < 2 * op->out.cs;
}

/* ---- default parameters --------------------------------------------------------------------- */

static const int tiles[][2] = {{64, 64}, {64, 32}, {32, 64}, {32, 32},
                               {32, 16}, {16, 32}, {16, 16}};
static const int groups[][2] = {{2, 2}, {2, 1}, {1, 2}, {1, 1}};
static const int teams[] = {1, 2, 4, 8};

/* Only ratios matter. A turn is as many products as a tile has fragments, or the loads of its
 * operands, and something for the way; the teams' sums cost once. */
static double matrix_clocks(const lap_case *c) {
    const int *v = c->params.value;
    matrix g = matrix_of(c);
    double units = c->device->units ? c->device->units : LAP_ROW_UNITS_UNKNOWN;
    double mi = (double)v[WM] / g.form.rows, ni = (double)v[WN] / g.form.columns;
    double turn = 32 * mi * ni + 16 * (mi + ni) + 40;
    double tile = turn * (double)g.turns + 500 + 20 * mi * ni * v[TEAMS];
    uint64_t waves = g.tiles_m * g.tiles_n * (uint64_t)v[GM] * (uint64_t)v[GN] * (uint64_t)v[TEAMS];
    double full = (double)waves / (units * WAVES_A_UNIT);
    return tile * (full < 1 ? 1 : full) + (v[GM] * v[GN] > 1 ? 0 : 1); /* neighbours share caches */
}

static bool find_defaults(const lap_case *c, lap_params *params) {
    lap_case trial = *c;
    double best = -1;
    size_t tile_count = sizeof tiles / sizeof tiles[0],
           group_count = sizeof groups / sizeof groups[0];
    for (size_t i = 0; i < tile_count * group_count * sizeof teams / sizeof teams[0]; i++) {
        const int *tile = tiles[i % tile_count], *group = groups[i / tile_count % group_count];
        trial.params = (lap_params){.value = {[FORM] = form_of(c),
                                              [WM] = tile[0],
                                              [WN] = tile[1],
                                              [GM] = group[0],
                                              [GN] = group[1],
                                              [TEAMS] = teams[i / tile_count / group_count]}};
        if (!matrix_valid(&trial)) continue;
        double clocks = matrix_clocks(&trial);
        if (best >= 0 && clocks >= best) continue;
        best = clocks;
        *params = trial.params;
    }
    return best >= 0;
}

static void matrix_defaults(const lap_case *c, lap_params *params) {
    *params = (lap_params){{0}};
    find_defaults(c, params);
}

/* ---- the rows' other functions -------------------------------------------------------------- */

static bool matrix_accepts(const lap_case *c) {
    const lap_op *op = c->op;
    if (form_of(c) == 0 || op->in.cs < STEP || op->r > 15 || op->s > 15) return false;
    if (c->partner && c->partner->r * c->partner->s != 1) return false;
    lap_params params;
    return find_defaults(c, &params);
}

static bool matrix_grid(const lap_case *c, lap_grid *grid) {
    matrix g = matrix_of(c);
    if (c->n == 0 || g.tiles_n > INT32_MAX || g.tiles_m * g.tiles_n > INT32_MAX) return false;
    *grid = (lap_grid){.groups = {(uint32_t)(g.tiles_m * g.tiles_n), 1, 1},
                       .local = {(uint32_t)g.threads, 1, 1}};
    return true;
}

static uint64_t fragments_of(const lap_case *c) {
    return lap_row_ceil_div((uint64_t)c->op->out.cs, (uint64_t)forms[c->params.value[FORM]].rows);
}

static size_t matrix_packed_bytes(const lap_case *c) {
    uint64_t rows = (uint64_t)forms[c->params.value[FORM]].rows;
    return (size_t)(fragments_of(c) * all_steps(c) * rows * STEP) * lap_element_bytes(c->precision);
}

/* Place in a fragment of a channel's weight of a depth. */
static size_t place_of(int form, size_t row, size_t depth) {
    if (form == 1) return (depth / 4 * 16 + row) * 4 + depth % 4;
    if (form == 2) row = row % 8 * 2 + row / 8; /* sums of every second row are one work-item's */
    return row * STEP + depth;
}

/* Weights of one op, from the first of its steps on. */
static void put(const lap_case *c, const lap_op *op, const float *w, uint64_t first, void *out) {
    int form = c->params.value[FORM];
    size_t rows = (size_t)forms[form].rows, steps = (size_t)all_steps(c);
    size_t taps = (size_t)op->r * (size_t)op->s, c_count = (size_t)op->in.c;
    size_t chunks = (size_t)lap_row_ceil_div((uint64_t)op->in.cs, STEP);
    for (size_t k = 0; k < (size_t)op->out.c; k++)
        for (size_t channel = 0; channel < c_count; channel++)
            for (size_t tap = 0; tap < taps; tap++) {
                size_t step = (size_t)first + tap * chunks + channel / STEP;
                size_t at = (k / rows * steps + step) * rows * STEP;
                at += place_of(form, k % rows, channel % STEP);
                lap_element_put(c->precision, out, at, w[(k * c_count + channel) * taps + tap]);
            }
}

static void matrix_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    memset(out, 0, matrix_packed_bytes(c));
    put(c, c->op, weights->w, 0, out);
}

static void matrix_pack_fused(const lap_case *c, const lap_op_weights *weights,
                              const lap_op_weights *partner, void *out) {
    matrix_pack(c, weights, out);
    put(c, c->partner, partner->w, steps_of(c->op), out);
}

#define MATRIX_COMMON                                                                              \
    .kind = LAP_OP_CONV, .only = "cl", .precisions = LAP_ROW_SHORT, .smooth = true,                \
    .tunables = {[FORM] = {"FORM", LAP_MATRIX_FORMS, {1, 2, 3, 4}},                                \
                 [WM] = {"WM", 3, {16, 32, 64}},                                                   \
                 [WN] = {"WN", 3, {16, 32, 64}},                                                   \
                 [GM] = {"GM", 3, {1, 2, 4}},                                                      \
                 [GN] = {"GN", 3, {1, 2, 4}},                                                      \
                 [TEAMS] = {"TEAMS", 4, {1, 2, 4, 8}}},                                            \
    .tunable_count = MATRIX_TUNABLES,                                                              \
    .stages = {LAP_ROW_STAGE_KERNEL("conv_matrix", matrix_grid, 8, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,  \
                                    LAP_ROLE_BIAS, LAP_ROLE_RESIDUAL, LAP_ROLE_OUT, LAP_ROLE_IN2,  \
                                    LAP_ROLE_N, LAP_ROLE_FLAGS)},                                  \
    .stage_count = 1, .accepts = matrix_accepts, .defaults = matrix_defaults,                      \
    .valid = matrix_valid, .packed_bytes = matrix_packed_bytes

const lap_kernel_row lap_row_conv_matrix = {
    .id = "conv_matrix",
    .about = "implicit matrix product on AMD's or Intel's matrix instructions",
    .pack = matrix_pack,
    MATRIX_COMMON,
};

const lap_kernel_row lap_row_conv_matrix_down = {
    .id = "conv_matrix_down",
    .about = "conv_matrix, with the 1x1 convolution that makes its residual as more depth",
    .fusion = LAP_FUSE_DOWNSAMPLE,
    .pack_fused = matrix_pack_fused,
    MATRIX_COMMON,
};
