/* What the plan's tests share: a session on the fake device, and plans that must succeed. */
#ifndef PLAN_FIXTURE_H
#define PLAN_FIXTURE_H

#include "fake_backend.h"
#include "plan/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MUST(expression)                                                                           \
    do {                                                                                           \
        if ((expression) != LAP_OK) fail_msg("%s: %s", #expression, err.message);                  \
    } while (0)

static inline void start(void) {
    fake_reset();
    lap_registry_add(&fake_ops);
}

static inline lap_session *open_session(void) {
    lap_session *session;
    lap_error err = {0};
    MUST(lap_session_open(&fake.devices[0], &session, &err));
    return session;
}

/* Everything is given back, and no kernel wrote past a buffer's allocation. */
static inline void close_session(lap_session *session) {
    lap_error err = {0};
    MUST(lap_session_close(session, &err));
    assert_int_equal(fake_alive(), 0);
    assert_int_equal(fake.used_bytes[0], 0);
    assert_int_equal(fake.red_zone_hits, 0);
}

static inline lap_plan *ready_plan(lap_session *session, const lap_net *net,
                                   const lap_weights *weights, lap_plan_options options) {
    lap_plan *plan;
    lap_error err = {0};
    MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
    MUST(lap_plan_upload(plan, weights, &err));
    MUST(lap_plan_bind(plan, &err));
    return plan;
}

#endif
