/* Small result documents, and a fresh file for a database. */
#ifndef LAP_TESTS_HISTORY_PAPERS_H
#define LAP_TESTS_HISTORY_PAPERS_H

#include "history/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* run_id NULL: none, as older versions wrote. Two rows: fp32 at batch 1, fp16 at batch 8. */
static inline lap_text small_paper(const char *run_id, const char *started, const char *device,
                                   double mean, bool finished) {
    lap_text t = {0};
    lap_text_add(&t, "{\"schema\":\"warmlap/1\",");
    if (run_id) lap_text_addf(&t, "\"run_id\":\"%s\",", run_id);
    lap_text_addf(&t,
                  "\"started\":\"%s\",\"finished\":%s,\"tool\":{\"version\":\"0.1.0\"},"
                  "\"host\":{\"cpu\":\"Host\"},\"rows\":[",
                  started, finished ? "true" : "false");
    for (int i = 0; i < 2; i++)
        lap_text_addf(
            &t,
            "%s{\"status\":\"ok\",\"backend\":\"cuda\",\"selector\":\"cuda:%d\",\"device\":"
            "{\"name\":\"%s\",\"driver\":\"580.1\"},\"network\":\"resnet18\",\"height\":224,"
            "\"width\":224,\"batch\":%d,\"precision\":\"%s\",\"verified\":{\"passed\":true},"
            "\"latency\":{\"n\":100,\"clock\":\"device\",\"mean_s\":%.9f,\"std_s\":1e-6}}",
            i ? "," : "", i, device, i ? 8 : 1, i ? "fp16" : "fp32", mean * (i + 1));
    lap_text_add(&t, "]}");
    assert_false(t.failed);
    return t;
}

static inline const char *fresh(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, LAP_TEST_TMP "/%s", name);
    unlink(path);
    return path;
}

#endif
