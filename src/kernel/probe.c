/* The probes: matrix instructions (kernels_<language>/probe_mma on one group) and unlisted local
 * memory (kernels_cl/probe_local). They keep nothing; the caller remembers the answers. */
#include "kernel/probe.h"

#include "kernel/rows.h"
#include "kernel/tools.h"

#include <stdlib.h>

/* One product: A is ROWS x depth, B is depth x COLUMNS, both stored with depth in rows of 32 bytes.
 */
#define ROWS 16
#define COLUMNS 8
#define ROW_BYTES 32

typedef struct operands {
    unsigned char bytes[(ROWS + COLUMNS) * ROW_BYTES]; /* A, then B by columns */
    float product[ROWS * COLUMNS];
} operands;

/* Small integers, exact in every precision, no two rows or columns alike. */
static float element(int line, int depth) {
    return (float)((line * 7 + depth * 3 + line * depth) % 9 - 4);
}

static void fill(lap_precision precision, operands *o) {
    int depth = ROW_BYTES / (int)lap_element_bytes(precision);
    for (int line = 0; line < ROWS + COLUMNS; line++)
        for (int k = 0; k < depth; k++)
            lap_element_put(precision, o->bytes + line * ROW_BYTES, (size_t)k, element(line, k));
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) {
            float sum = 0;
            for (int k = 0; k < depth; k++)
                sum += element(row, k) * element(ROWS + column, k);
            o->product[row * COLUMNS + column] = sum;
        }
}

static lap_status compare(const operands *o, const float *got, lap_precision precision,
                          lap_error *err) {
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if (!(got[i] == o->product[i]))
            return LAP_FAIL(err, LAP_E_VERIFY,
                            "a test product of %s matrix instructions gave %g at row %d, column "
                            "%d, expected %g",
                            lap_precision_name(precision), (double)got[i], i / COLUMNS, i % COLUMNS,
                            (double)o->product[i]);
    return LAP_OK;
}

static lap_status run(lap_queue *queue, lap_kernel *kernel, lap_buffer *in, lap_buffer *out,
                      lap_precision precision, lap_error *err) {
    operands o;
    float got[ROWS * COLUMNS];
    fill(precision, &o);
    lap_arg args[] = {{.kind = LAP_ARG_BUFFER, .buffer = in},
                      {.kind = LAP_ARG_BUFFER, .buffer = out}};
    lap_launch launch = {
        .kernel = kernel, .groups = {1, 1, 1}, .local = {32, 1, 1}, .args = args, .arg_count = 2};
    LAP_TRY(lap_buffer_write(queue, in, 0, o.bytes, sizeof o.bytes, err));
    LAP_TRY(lap_buffer_fill(queue, out, 0, sizeof got, 0xFFFFFFFFu, err)); /* NaN */
    LAP_TRY(lap_enqueue(queue, &launch, err));
    LAP_TRY(lap_buffer_read(queue, out, 0, got, sizeof got, err));
    return compare(&o, got, precision, err);
}

lap_status lap_probe_mma(lap_queue *queue, lap_precision precision, lap_error *err) {
    lap_device *device = lap_queue_device(queue);
    const lap_device_info *info = lap_device_get_info(device);
    /* The instructions are NVIDIA's; another vendor's compiler may do anything with them. */
    if (info->cc_major == 0)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "no %s matrix instructions are known for this device (the kernels use "
                        "those of NVIDIA GPUs)",
                        lap_precision_name(precision));
    lap_define defines[] = {{"PRECISION", precision}};
    lap_kernel *kernel = NULL;
    lap_buffer *in = NULL, *out = NULL;
    LAP_TRY(lap_tool_build(device, "probe_mma", "probe_mma", defines, 1, &kernel, err));
    lap_status status = lap_buffer_new(device, (ROWS + COLUMNS) * ROW_BYTES, &in, err);
    if (status == LAP_OK)
        status = lap_buffer_new(device, ROWS * COLUMNS * sizeof(float), &out, err);
    if (status == LAP_OK) status = run(queue, kernel, in, out, precision, err);
    lap_buffer_free(out);
    lap_buffer_free(in);
    lap_kernel_free(kernel);
    return status;
}

/* ---- local memory --------------------------------------------------------------------------- */

#define LOCAL_GROUP 256
#define LOCAL_GROUPS_PER_UNIT 3
#define LOCAL_GROUPS_MOST 1024

static lap_status check_items(const uint32_t *got, uint32_t count, uint64_t bytes, lap_error *err) {
    for (uint32_t i = 0; i < count; i++)
        if (got[i] != i + 1)
            return LAP_FAIL(err, LAP_E_VERIFY,
                            "a test kernel with %llu bytes of local memory did not read back what "
                            "it had written (work-item %u)",
                            (unsigned long long)bytes, i);
    return LAP_OK;
}

static lap_status run_local(lap_queue *queue, lap_kernel *kernel, uint32_t groups, uint64_t bytes,
                            lap_error *err) {
    uint32_t count = groups * LOCAL_GROUP;
    uint32_t *got = calloc(count, sizeof *got);
    lap_buffer *out = NULL;
    if (!got) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a probe's results");
    lap_status status = lap_buffer_new(lap_queue_device(queue), count * sizeof *got, &out, err);
    lap_arg arg = {.kind = LAP_ARG_BUFFER, .buffer = out};
    lap_launch launch = {.kernel = kernel,
                         .groups = {groups, 1, 1},
                         .local = {LOCAL_GROUP, 1, 1},
                         .args = &arg,
                         .arg_count = 1};
    if (status == LAP_OK)
        status = lap_buffer_fill(queue, out, 0, count * sizeof *got, 0xFFFFFFFFu, err);
    if (status == LAP_OK) status = lap_enqueue(queue, &launch, err);
    if (status == LAP_OK) status = lap_queue_finish(queue, err);
    if (status == LAP_OK) status = lap_buffer_read(queue, out, 0, got, count * sizeof *got, err);
    if (status == LAP_OK) status = check_items(got, count, bytes, err);
    lap_buffer_free(out);
    free(got);
    return status;
}

lap_status lap_probe_local(lap_queue *queue, lap_error *err) {
    lap_device *device = lap_queue_device(queue);
    const lap_device_info *info = lap_device_get_info(device);
    if (info->local_optin_bytes <= info->local_bytes)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "this device has no more local memory than listed");
    uint32_t units = info->units ? info->units : LAP_ROW_UNITS_UNKNOWN;
    uint32_t groups = units * LOCAL_GROUPS_PER_UNIT;
    if (groups > LOCAL_GROUPS_MOST) groups = LOCAL_GROUPS_MOST;
    lap_define defines[] = {{"LOCAL_BYTES", (int64_t)info->local_optin_bytes}};
    lap_kernel *kernel = NULL;
    LAP_TRY(lap_tool_build(device, "probe_local", "probe_local", defines, 1, &kernel, err));
    lap_status status = run_local(queue, kernel, groups, info->local_optin_bytes, err);
    lap_kernel_free(kernel);
    return status;
}
