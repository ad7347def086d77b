/* The probes: matrix instructions (kernels_<language>/probe_mma, kernels_cl/probe_wgmma, on one
 * group) and unlisted local memory (kernels_cl/probe_local). They keep nothing; the caller
 * remembers the answers. */
#include "kernel/probe.h"

#include "kernel/rows.h"
#include "kernel/tools.h"

#include <stdlib.h>

/* One product: A is rows x depth, B is depth x columns, both stored with depth in rows of
 * row_bytes, A first and then B by columns. */
typedef struct product {
    const char *stem, *what;
    int rows, columns, row_bytes;
    uint32_t threads;
} product;

static const product of_warp = {"probe_mma", "matrix", 16, 8, 32, 32};
static const product of_warpgroup = {"probe_wgmma", "warpgroup matrix", 64, 64, 128, 128};

enum { MOST_BYTES = (64 + 64) * 128, MOST_RESULTS = 64 * 64 };

typedef struct operands {
    unsigned char bytes[MOST_BYTES];
    float wanted[MOST_RESULTS], got[MOST_RESULTS];
} operands;

static size_t operand_bytes(const product *p) {
    return (size_t)(p->rows + p->columns) * (size_t)p->row_bytes;
}

static size_t result_bytes(const product *p) {
    return (size_t)p->rows * (size_t)p->columns * sizeof(float);
}

/* Small integers, exact in every precision, no two rows or columns alike. */
static float element(int line, int depth) {
    return (float)((line * 7 + depth * 3 + line * depth) % 9 - 4);
}

static void fill(const product *p, lap_precision precision, operands *o) {
    int depth = p->row_bytes / (int)lap_element_bytes(precision);
    for (int line = 0; line < p->rows + p->columns; line++)
        for (int k = 0; k < depth; k++)
            lap_element_put(precision, o->bytes + line * p->row_bytes, (size_t)k, element(line, k));
    for (int row = 0; row < p->rows; row++)
        for (int column = 0; column < p->columns; column++) {
            float sum = 0;
            for (int k = 0; k < depth; k++)
                sum += element(row, k) * element(p->rows + column, k);
            o->wanted[row * p->columns + column] = sum;
        }
}

static lap_status compare(const product *p, const operands *o, lap_precision precision,
                          lap_error *err) {
    for (int i = 0; i < p->rows * p->columns; i++)
        if (!(o->got[i] == o->wanted[i]))
            return LAP_FAIL(err, LAP_E_VERIFY,
                            "a test product of %s %s instructions gave %g at row %d, column "
                            "%d, expected %g",
                            lap_precision_name(precision), p->what, (double)o->got[i],
                            i / p->columns, i % p->columns, (double)o->wanted[i]);
    return LAP_OK;
}

static lap_status run(const product *p, lap_queue *queue, lap_kernel *kernel, lap_buffer *in,
                      lap_buffer *out, lap_precision precision, operands *o, lap_error *err) {
    lap_arg args[] = {{.kind = LAP_ARG_BUFFER, .buffer = in},
                      {.kind = LAP_ARG_BUFFER, .buffer = out}};
    lap_launch launch = {.kernel = kernel,
                         .groups = {1, 1, 1},
                         .local = {p->threads, 1, 1},
                         .args = args,
                         .arg_count = 2};
    size_t results = result_bytes(p);
    fill(p, precision, o);
    LAP_TRY(lap_buffer_write(queue, in, 0, o->bytes, operand_bytes(p), err));
    LAP_TRY(lap_buffer_fill(queue, out, 0, results, 0xFFFFFFFFu, err)); /* NaN */
    LAP_TRY(lap_enqueue(queue, &launch, err));
    LAP_TRY(lap_buffer_read(queue, out, 0, o->got, results, err));
    return compare(p, o, precision, err);
}

static lap_status try_product(const product *p, lap_queue *queue, lap_precision precision,
                              lap_error *err) {
    lap_device *device = lap_queue_device(queue);
    lap_define defines[] = {{"PRECISION", precision}};
    lap_kernel *kernel = NULL;
    lap_buffer *in = NULL, *out = NULL;
    LAP_TRY(lap_tool_build(device, p->stem, p->stem, defines, 1, &kernel, err));
    operands *o = malloc(sizeof *o);
    lap_status status = o ? LAP_OK : LAP_FAIL(err, LAP_E_NOMEM, "no memory for a probe's operands");
    if (status == LAP_OK) status = lap_buffer_new(device, operand_bytes(p), &in, err);
    if (status == LAP_OK) status = lap_buffer_new(device, result_bytes(p), &out, err);
    if (status == LAP_OK) status = run(p, queue, kernel, in, out, precision, o, err);
    lap_buffer_free(out);
    lap_buffer_free(in);
    free(o);
    lap_kernel_free(kernel);
    return status;
}

lap_status lap_probe_mma(lap_queue *queue, lap_precision precision, lap_error *err) {
    const lap_device_info *info = lap_device_get_info(lap_queue_device(queue));
    /* The instructions are NVIDIA's; another vendor's compiler may do anything with them. */
    if (info->cc_major == 0)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "no %s matrix instructions are known for this device (mma.sync is of "
                        "NVIDIA GPUs)",
                        lap_precision_name(precision));
    return try_product(&of_warp, queue, precision, err);
}

lap_status lap_probe_wgmma(lap_queue *queue, lap_precision precision, lap_error *err) {
    const lap_device_info *info = lap_device_get_info(lap_queue_device(queue));
    if (info->cc_major != 9 || info->cc_minor != 0)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "warpgroup matrix instructions are those of compute capability 9.0");
    return try_product(&of_warpgroup, queue, precision, err);
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
