/* A device, one queue on it, and the kernels built for it. */
#include "plan/internal.h"

#include "base/clock.h"
#include <stdlib.h>

lap_status lap_session_open(const lap_device_info *info, lap_session **out, lap_error *err) {
    *out = NULL;
    lap_session *session = calloc(1, sizeof *session);
    if (!session) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a session");
    double start = lap_clock_now();
    lap_status status = lap_device_open(info, &session->device, err);
    if (status == LAP_OK) status = lap_queue_new(session->device, &session->queue, err);
    session->open_s = lap_clock_now() - start;
    if (status == LAP_OK) status = lap_kernel_cache_new(&session->kernels, err);
    if (status != LAP_OK) {
        lap_session_close(session, NULL);
        return status;
    }
    *out = session;
    return LAP_OK;
}

lap_status lap_session_close(lap_session *session, lap_error *err) {
    if (!session) return LAP_OK;
    lap_kernel_cache_free(session->kernels);
    lap_queue_free(session->queue);
    lap_status status = session->device ? lap_device_close(session->device, err) : LAP_OK;
    free(session);
    return status;
}
