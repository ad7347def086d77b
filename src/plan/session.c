/* A device, one queue on it, and the kernels built for it. */
#include "plan/internal.h"

#include "base/clock.h"
#include "kernel/probe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What a probe found missing, as against a device that failed. */
static bool is_lacking(lap_status status) {
    switch (status) {
    case LAP_E_BUILD:
    case LAP_E_LAUNCH:
    case LAP_E_OOM:
    case LAP_E_UNSUPPORTED:
    case LAP_E_VERIFY:
        return true;
    default:
        return false;
    }
}

static lap_status pass_on(const lap_error *detail, lap_error *err) {
    if (err) *err = *detail;
    return detail->status;
}

/* More local memory than the driver lists, which kernels for GPUs use. */
static lap_status probe_local(lap_session *session, lap_error *err) {
    const lap_device_info *info = lap_device_get_info(session->device);
    bool declared = strcmp(info->language, "cl") == 0; /* CUDA asks for it, and it is documented */
    if (session->probed & LAP_FEATURE_LARGE_LOCAL || !declared) return LAP_OK;
    lap_error detail = {0};
    lap_status status = lap_probe_local(session->queue, &detail);
    if (status == LAP_OK)
        session->features |= LAP_FEATURE_LARGE_LOCAL;
    else if (!is_lacking(status))
        return pass_on(&detail, err); /* else kernels make do with what is listed */
    session->probed |= LAP_FEATURE_LARGE_LOCAL;
    return LAP_OK;
}

/* Hopper's matrix instructions, which OpenCL's compiler does not know; CUDA's has them by name. */
static lap_status probe_wgmma(lap_session *session, lap_precision precision, lap_error *err) {
    const lap_device_info *info = lap_device_get_info(session->device);
    if (strcmp(info->language, "cl") != 0 || precision == LAP_FP32X3) return LAP_OK;
    if (info->cc_major != 9 || info->cc_minor != 0) return LAP_OK;
    lap_error detail = {0};
    lap_status status = lap_probe_wgmma(session->queue, precision, &detail);
    if (status == LAP_OK)
        session->features |= LAP_FEATURE_WGMMA(precision);
    else if (!is_lacking(status))
        return pass_on(&detail, err); /* else mma.sync does it */
    return LAP_OK;
}

lap_status lap_session_probe(lap_session *session, lap_precision precision, lap_error *err) {
    unsigned bit = 1u << precision;
    if (session->probed & bit) return LAP_OK;
    if (precision == LAP_FP32) return probe_local(session, err);
    lap_precision made_of = precision == LAP_FP32X3 ? LAP_FP16 : precision;
    lap_error detail = {0};
    lap_status status = lap_probe_mma(session->queue, made_of, &detail);
    bool lacks = status == LAP_E_BUILD || status == LAP_E_UNSUPPORTED || status == LAP_E_VERIFY;
    if (status != LAP_OK && !lacks) return pass_on(&detail, err);
    if (status == LAP_OK) {
        LAP_TRY(probe_local(session, err));
        LAP_TRY(probe_wgmma(session, precision, err));
        session->features |= LAP_FEATURE_MMA(precision);
    } else {
        lap_error_text(&detail, session->lacking[precision], sizeof session->lacking[precision]);
    }
    session->probed |= bit;
    return LAP_OK;
}

lap_status lap_session_probe_matrix(lap_session *session, lap_precision precision, lap_error *err) {
    const lap_device_info *info = lap_device_get_info(session->device);
    unsigned bits = 0;
    for (int form = 1; form <= LAP_MATRIX_FORMS; form++)
        bits |= LAP_FEATURE_MATRIX(form, precision);
    if (precision != LAP_FP16 && precision != LAP_BF16) return LAP_OK;
    if (session->probed & bits) return LAP_OK;
    char *lacking = session->lacking[precision];
    size_t size = sizeof session->lacking[precision];
    for (int form = 1; form <= LAP_MATRIX_FORMS; form++) {
        lap_error detail = {0};
        char text[200];
        if (!lap_probe_matrix_of(info, form)) continue;
        lap_status status = lap_probe_matrix(session->queue, precision, form, &detail);
        if (status == LAP_OK) {
            session->features |= LAP_FEATURE_MATRIX(form, precision);
            lacking[0] = '\0';
            break;
        }
        if (!is_lacking(status)) return pass_on(&detail, err);
        lap_error_text(&detail, text, sizeof text);
        size_t used = strlen(lacking);
        snprintf(lacking + used, size - used, "; conv_matrix, form %d: %s", form, text);
    }
    session->probed |= bits;
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
