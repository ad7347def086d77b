/* Device buffers between guard words. */
#include "plan/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static lap_status check_size(lap_queue *queue, uint64_t bytes, const char *label, lap_error *err) {
    const lap_device_info *info = lap_device_get_info(lap_queue_device(queue));
    if (info->base_align_bytes > PLAN_GUARD_BYTES || PLAN_GUARD_BYTES % info->base_align_bytes)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "buffer alignment of %u bytes: at most %u, and a divisor of it, is handled",
                        info->base_align_bytes, PLAN_GUARD_BYTES);
    if (bytes == 0 || bytes > SIZE_MAX - 4 * PLAN_GUARD_BYTES)
        return LAP_FAIL(err, LAP_E_OOM, "%s: %" PRIu64 " bytes cannot be allocated", label, bytes);
    return LAP_OK;
}

/* out->whole, out->offset and out->bytes are set: the view of the middle, and both guards. */
static lap_status guard(lap_queue *queue, plan_buffer *out, lap_error *err) {
    size_t data = out->offset + PLAN_GUARD_BYTES;
    LAP_TRY(lap_buffer_view(out->whole, data, out->bytes, &out->data, err));
    LAP_TRY(
        lap_buffer_fill(queue, out->whole, out->offset, PLAN_GUARD_BYTES, PLAN_GUARD_WORD, err));
    return lap_buffer_fill(queue, out->whole, data + out->bytes, PLAN_GUARD_BYTES, PLAN_GUARD_WORD,
                           err);
}

lap_status plan_buffer_new(lap_queue *queue, uint64_t bytes, const char *label, plan_buffer *out,
                           lap_error *err) {
    *out = (plan_buffer){0};
    snprintf(out->label, sizeof out->label, "%s", label);
    LAP_TRY(check_size(queue, bytes, label, err));
    out->bytes = ((size_t)bytes + 3) / 4 * 4;
    lap_status status = lap_buffer_new(lap_queue_device(queue), out->bytes + 2 * PLAN_GUARD_BYTES,
                                       &out->whole, err);
    if (status == LAP_OK) status = guard(queue, out, err);
    if (status != LAP_OK) {
        lap_error_prefix(err, "%s (%zu bytes): ", label, out->bytes);
        plan_buffer_free(out);
    }
    return status;
}

void plan_buffer_free(plan_buffer *buffer) {
    lap_buffer_free(buffer->data);
    if (!buffer->borrowed) lap_buffer_free(buffer->whole);
    *buffer = (plan_buffer){0};
}

/* Guards begin and end where views may. */
uint64_t plan_arena_room(uint64_t bytes) {
    return (bytes + PLAN_GUARD_BYTES - 1) / PLAN_GUARD_BYTES * PLAN_GUARD_BYTES +
           2 * PLAN_GUARD_BYTES;
}

lap_status plan_arena_new(lap_queue *queue, uint64_t bytes, const char *label, plan_arena *out,
                          lap_error *err) {
    *out = (plan_arena){0};
    LAP_TRY(check_size(queue, bytes, label, err));
    lap_status status = lap_buffer_new(lap_queue_device(queue), (size_t)bytes, &out->whole, err);
    if (status != LAP_OK) lap_error_prefix(err, "%s (%" PRIu64 " bytes): ", label, bytes);
    if (status == LAP_OK) out->bytes = (size_t)bytes;
    return status;
}

void plan_arena_free(plan_arena *arena) {
    lap_buffer_free(arena->whole);
    *arena = (plan_arena){0};
}

lap_status plan_buffer_in(plan_arena *arena, lap_queue *queue, uint64_t bytes, const char *label,
                          plan_buffer *out, lap_error *err) {
    if (!arena->whole) return plan_buffer_new(queue, bytes, label, out, err);
    *out = (plan_buffer){.whole = arena->whole, .offset = arena->used, .borrowed = true};
    snprintf(out->label, sizeof out->label, "%s", label);
    LAP_TRY(check_size(queue, bytes, label, err));
    uint64_t room = plan_arena_room(bytes);
    if (room > arena->bytes - arena->used)
        return LAP_FAIL(err, LAP_E_INTERNAL, "%s: no room in its arena", label);
    arena->used += (size_t)room;
    out->bytes = ((size_t)bytes + 3) / 4 * 4;
    lap_status status = guard(queue, out, err);
    if (status != LAP_OK) plan_buffer_free(out);
    return status;
}

lap_status plan_buffer_check(lap_queue *queue, const plan_buffer *buffer, lap_error *err) {
    enum { WORDS = PLAN_GUARD_BYTES / 4 };
    uint32_t words[WORDS];
    for (int end = 0; end < 2; end++) {
        size_t offset = buffer->offset + (end ? PLAN_GUARD_BYTES + buffer->bytes : 0);
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
