/* The probe of AMD's and Intel's matrix instructions: small convolutions through the very rows that
 * would use them, compared with plain loops. It keeps nothing. */
#include "kernel/probe.h"

#include "base/half.h"
#include "kernel/rows.h"

#include <stdlib.h>
#include <string.h>

#define IMAGES 2
#define HEIGHT 5
#define WIDTH 7
#define CHANNELS 20 /* not whole steps of depth */
#define OUTPUTS 34  /* not whole tiles, and a stride with padding */
#define CHANNELS2 24

typedef struct trial {
    const lap_kernel_row *row;
    lap_op op, partner;
    lap_case c;
    float x[IMAGES * HEIGHT * WIDTH * CHANNELS];
    float x2[IMAGES * 2 * HEIGHT * 2 * WIDTH * CHANNELS2];
    float w[OUTPUTS * CHANNELS * 9], w2[OUTPUTS * CHANNELS2];
    float residual[IMAGES * HEIGHT * WIDTH * OUTPUTS], bias[OUTPUTS + 2];
} trial;

static size_t stride_of(size_t channels) {
    return (channels + LAP_CHANNEL_ALIGN - 1) / LAP_CHANNEL_ALIGN * LAP_CHANNEL_ALIGN;
}

/* Integers of -most to most, whose sums are exact before they are stored. */
static void fill(float *to, size_t count, int most, unsigned seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1103515245u + 12345u;
        to[i] = (float)((int)(seed >> 16) % (2 * most + 1) - most);
    }
}

static void describe(trial *t, bool down) {
    size_t ks = stride_of(OUTPUTS);
    t->op = (lap_op){.kind = LAP_OP_CONV,
                     .name = "probe",
                     .act = LAP_ACT_RELU,
                     .residual = 1,
                     .in = {CHANNELS, HEIGHT, WIDTH, (int)stride_of(CHANNELS)},
                     .out = {OUTPUTS, HEIGHT, WIDTH, (int)ks},
                     .r = 3,
                     .s = 3,
                     .stride = 1,
                     .pad = 1};
    t->partner = t->op;
    t->partner.in = (lap_tensor){CHANNELS2, 2 * HEIGHT, 2 * WIDTH, (int)stride_of(CHANNELS2)};
    t->partner.r = t->partner.s = 1;
    t->partner.pad = 0;
    t->partner.stride = 2;
    t->row = down ? &lap_row_conv_matrix_down : &lap_row_conv_matrix;
    fill(t->x, sizeof t->x / sizeof t->x[0], 3, 1);
    fill(t->x2, sizeof t->x2 / sizeof t->x2[0], 3, 2);
    fill(t->w, sizeof t->w / sizeof t->w[0], 1, 3);
    fill(t->w2, sizeof t->w2 / sizeof t->w2[0], 1, 4);
    fill(t->residual, sizeof t->residual / sizeof t->residual[0], 7, 5);
    fill(t->bias, OUTPUTS, 7, 6);
}

static float stored(lap_precision precision, float value) {
    return precision == LAP_FP16 ? lap_half_to_float(lap_half_from_float(value))
                                 : lap_bf16_to_float(lap_bf16_from_float(value));
}

/* Output channel k of a pixel, in plain loops. */
static float expected(const trial *t, int image, int y, int x, int k) {
    float sum = t->bias[k];
    for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) {
            int h = y + r - 1, w = x + s - 1;
            if (h < 0 || h >= HEIGHT || w < 0 || w >= WIDTH) continue;
            for (int c = 0; c < CHANNELS; c++)
                sum += t->x[((image * HEIGHT + h) * WIDTH + w) * CHANNELS + c] *
                       t->w[(k * CHANNELS + c) * 9 + r * 3 + s];
        }
    if (t->c.partner)
        for (int c = 0; c < CHANNELS2; c++)
            sum += t->x2[((image * 2 * HEIGHT + 2 * y) * 2 * WIDTH + 2 * x) * CHANNELS2 + c] *
                   t->w2[k * CHANNELS2 + c];
    else
        sum += t->residual[((image * HEIGHT + y) * WIDTH + x) * OUTPUTS + k];
    return stored(t->c.precision, sum < 0 ? 0 : sum);
}

static lap_status compare(const trial *t, const uint16_t *got, lap_error *err) {
    int ks = t->op.out.cs;
    for (int i = 0; i < IMAGES * HEIGHT * WIDTH * ks; i++) {
        int k = i % ks, pixel = i / ks;
        float want = 0, is = t->c.precision == LAP_FP16 ? lap_half_to_float(got[i])
                                                        : lap_bf16_to_float(got[i]);
        if (k < OUTPUTS)
            want = expected(t, pixel / (HEIGHT * WIDTH), pixel / WIDTH % HEIGHT, pixel % WIDTH, k);
        if (!(is == want))
            return LAP_FAIL(err, LAP_E_VERIFY,
                            "a test convolution through %s in %s gave %g at pixel %d, channel %d, "
                            "expected %g",
                            t->row->id, lap_precision_name(t->c.precision), (double)is, pixel, k,
                            (double)want);
    }
    return LAP_OK;
}

/* The buffers of a launch, by role. */
typedef struct operands {
    lap_buffer *of[LAP_ROLE_FLAGS + 1];
} operands;

static lap_status send(lap_queue *queue, const void *data, size_t bytes, lap_buffer **to,
                       lap_error *err) {
    LAP_TRY(lap_buffer_new(lap_queue_device(queue), bytes, to, err));
    return lap_buffer_write(queue, *to, 0, data, bytes, err);
}

/* Pixels of so many channels with a stride, in the precision's storage. */
static lap_status send_pixels(lap_queue *queue, const trial *t, const float *data, size_t pixels,
                              size_t channels, lap_buffer **to, lap_error *err) {
    size_t cs = stride_of(channels);
    uint16_t *all = calloc(pixels * cs, sizeof *all);
    if (!all) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a probe's operands");
    for (size_t i = 0; i < pixels * channels; i++)
        lap_element_put(t->c.precision, all, i / channels * cs + i % channels, data[i]);
    lap_status status = send(queue, all, pixels * cs * sizeof *all, to, err);
    free(all);
    return status;
}

static lap_status send_weights(lap_queue *queue, trial *t, lap_buffer **to, lap_error *err) {
    lap_op_weights w = {.w = t->w, .bias = t->bias, .k = OUTPUTS};
    lap_op_weights w2 = {.w = t->w2, .bias = t->bias, .k = OUTPUTS};
    size_t bytes = t->row->packed_bytes(&t->c);
    void *packed = malloc(bytes);
    if (!packed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a probe's weights");
    if (t->c.partner)
        t->row->pack_fused(&t->c, &w, &w2, packed);
    else
        t->row->pack(&t->c, &w, packed);
    lap_status status = send(queue, packed, bytes, to, err);
    free(packed);
    return status;
}

static lap_status send_all(lap_queue *queue, trial *t, operands *o, lap_error *err) {
    size_t pixels = IMAGES * HEIGHT * WIDTH, out = pixels * (size_t)t->op.out.cs * 2;
    LAP_TRY(send_pixels(queue, t, t->x, pixels, CHANNELS, &o->of[LAP_ROLE_IN], err));
    if (t->c.partner)
        LAP_TRY(send_pixels(queue, t, t->x2, 4 * pixels, CHANNELS2, &o->of[LAP_ROLE_IN2], err));
    else
        LAP_TRY(
            send_pixels(queue, t, t->residual, pixels, OUTPUTS, &o->of[LAP_ROLE_RESIDUAL], err));
    LAP_TRY(send_weights(queue, t, &o->of[LAP_ROLE_WEIGHTS], err));
    LAP_TRY(send(queue, t->bias, sizeof t->bias, &o->of[LAP_ROLE_BIAS], err));
    LAP_TRY(lap_buffer_new(lap_queue_device(queue), out, &o->of[LAP_ROLE_OUT], err));
    return lap_buffer_fill(queue, o->of[LAP_ROLE_OUT], 0, out, 0xFFFFFFFFu, err); /* NaN */
}

static lap_status launch(lap_queue *queue, const trial *t, lap_kernel *kernel, const operands *o,
                         lap_error *err) {
    const lap_stage *stage = &t->row->stages[0];
    uint16_t got[IMAGES * HEIGHT * WIDTH * (OUTPUTS + 2)];
    lap_arg args[LAP_MAX_ROLES] = {0};
    int flags = LAP_FLAG_RELU | (t->c.partner ? 0 : LAP_FLAG_RESIDUAL);
    for (int i = 0; i < stage->role_count; i++) {
        lap_role role = stage->roles[i];
        args[i] = (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = o->of[role]};
        if (role == LAP_ROLE_N) args[i] = (lap_arg){.kind = LAP_ARG_I32, .i32 = IMAGES};
        if (role == LAP_ROLE_FLAGS) args[i] = (lap_arg){.kind = LAP_ARG_I32, .i32 = flags};
    }
    lap_grid grid = {0};
    if (!stage->grid(&t->c, &grid))
        return LAP_FAIL(err, LAP_E_INTERNAL, "a probe's convolution does not fit its grid");
    uint64_t items = (uint64_t)grid.local[0] * grid.local[1] * grid.local[2];
    if (items > lap_kernel_get_info(kernel)->max_group_size)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "a test kernel takes groups of at most %u",
                        lap_kernel_get_info(kernel)->max_group_size);
    lap_launch l = {.kernel = kernel, .args = args, .arg_count = (size_t)stage->role_count};
    memcpy(l.groups, grid.groups, sizeof l.groups);
    memcpy(l.local, grid.local, sizeof l.local);
    LAP_TRY(lap_enqueue(queue, &l, err));
    LAP_TRY(lap_queue_finish(queue, err));
    LAP_TRY(lap_buffer_read(queue, o->of[LAP_ROLE_OUT], 0, got, sizeof got, err));
    return compare(t, got, err);
}

static lap_status run(lap_queue *queue, trial *t, lap_error *err) {
    lap_device *device = lap_queue_device(queue);
    const lap_stage *stage = &t->row->stages[0];
    lap_define defines[LAP_MAX_DEFINES];
    size_t count = lap_kernel_defines(t->row, &t->c, defines);
    lap_build build = {stage->stem, lap_kernel_source("cl", stage->stem), stage->entry, defines,
                       count};
    lap_kernel *kernel = NULL;
    operands o = {0};
    LAP_TRY(lap_kernel_build(device, &build, &kernel, err));
    lap_status status = send_all(queue, t, &o, err);
    if (status == LAP_OK) status = launch(queue, t, kernel, &o, err);
    for (size_t i = 0; i < sizeof o.of / sizeof o.of[0]; i++)
        lap_buffer_free(o.of[i]);
    lap_kernel_free(kernel);
    return status;
}

bool lap_probe_matrix_of(const lap_device_info *device, int form) {
    return lap_row_matrix_vendor(device, form);
}

lap_status lap_probe_matrix(lap_queue *queue, lap_precision precision, int form, lap_error *err) {
    const lap_device_info *info = lap_device_get_info(lap_queue_device(queue));
    if (!lap_probe_matrix_of(info, form))
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "another vendor's instructions");
    trial *t = calloc(1, sizeof *t);
    if (!t) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a probe");
    lap_status status = LAP_OK;
    for (int down = 0; down < 2 && status == LAP_OK; down++) {
        describe(t, down);
        t->c = (lap_case){.op = &t->op,
                          .fusion = t->row->fusion,
                          .partner = down ? &t->partner : NULL,
                          .device = info,
                          .precision = precision,
                          .features = LAP_FEATURE_MATRIX(form, precision),
                          .n = IMAGES};
        if (!t->row->accepts(&t->c))
            status = LAP_FAIL(err, LAP_E_UNSUPPORTED, "no group of %s fits the device", t->row->id);
        if (status != LAP_OK) break;
        t->row->defaults(&t->c, &t->c.params);
        status = run(queue, t, err);
    }
    free(t);
    return status;
}
