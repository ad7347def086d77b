/* Device buffers between guard words. */
#include "plan/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

lap_status plan_buffer_new(lap_queue *queue, uint64_t bytes, const char *label, plan_buffer *out,
                           lap_error *err) {
    *out = (plan_buffer){0};
    snprintf(out->label, sizeof out->label, "%s", label);
    lap_device *device = lap_queue_device(queue);
    const lap_device_info *info = lap_device_get_info(device);
    if (info->base_align_bytes > PLAN_GUARD_BYTES || PLAN_GUARD_BYTES % info->base_align_bytes)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "buffer alignment of %u bytes: at most %u, and a divisor of it, is handled",
                        info->base_align_bytes, PLAN_GUARD_BYTES);
    if (bytes == 0 || bytes > SIZE_MAX - 2 * PLAN_GUARD_BYTES)
        return LAP_FAIL(err, LAP_E_OOM, "%s: %" PRIu64 " bytes cannot be allocated", label, bytes);
    out->bytes = ((size_t)bytes + 3) / 4 * 4;
    lap_status status = lap_buffer_new(device, out->bytes + 2 * PLAN_GUARD_BYTES, &out->whole, err);
    if (status == LAP_OK)
        status = lap_buffer_view(out->whole, PLAN_GUARD_BYTES, out->bytes, &out->data, err);
    if (status == LAP_OK)
        status = lap_buffer_fill(queue, out->whole, 0, PLAN_GUARD_BYTES, PLAN_GUARD_WORD, err);
    if (status == LAP_OK)
        status = lap_buffer_fill(queue, out->whole, PLAN_GUARD_BYTES + out->bytes, PLAN_GUARD_BYTES,
                                 PLAN_GUARD_WORD, err);
    if (status != LAP_OK) {
        lap_error_prefix(err, "%s (%zu bytes): ", label, out->bytes);
        plan_buffer_free(out);
    }
    return status;
}

void plan_buffer_free(plan_buffer *buffer) {
    lap_buffer_free(buffer->data);
    lap_buffer_free(buffer->whole);
    *buffer = (plan_buffer){0};
}

lap_status plan_buffer_check(lap_queue *queue, const plan_buffer *buffer, lap_error *err) {
    enum { WORDS = PLAN_GUARD_BYTES / 4 };
    uint32_t words[WORDS];
    for (int end = 0; end < 2; end++) {
        size_t offset = end ? PLAN_GUARD_BYTES + buffer->bytes : 0;
        LAP_TRY(lap_buffer_read(queue, buffer->whole, offset, words, sizeof words, err));
        for (size_t i = 0; i < WORDS; i++) {
            if (words[i] == PLAN_GUARD_WORD) continue;
            size_t distance = end ? 4 * i : PLAN_GUARD_BYTES - 4 * i;
            return LAP_FAIL(err, LAP_E_VERIFY, "something wrote outside %s, %zu bytes %s its %s",
                            buffer->label, distance, end ? "after" : "before",
                            end ? "end" : "start");
        }
    }
    return LAP_OK;
}
