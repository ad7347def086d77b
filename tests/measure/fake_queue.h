/* What the tests of measuring code on the fake device share: an opened device and queue. */
#ifndef LAP_TESTS_MEASURE_FAKE_QUEUE_H
#define LAP_TESTS_MEASURE_FAKE_QUEUE_H

#include "fake_backend.h"
#include "near.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

static lap_error must_error; /* of MUST, for calls that are to succeed */

#define MUST(expression)                                                                           \
    do {                                                                                           \
        if ((expression) != LAP_OK) fail_msg("%s: %s", #expression, must_error.message);           \
    } while (0)

static inline lap_session *begin_session(void) {
    lap_session *session;
    MUST(lap_session_open(&fake.devices[0], &session, &must_error));
    return session;
}

static inline void end_session(lap_session *session) {
    MUST(lap_session_close(session, &must_error));
    assert_int_equal(fake_alive(), 0);
}

/* The fake backend with the tools' kernels, and small enough memory to be quick. */
static inline void fresh_fake(void) {
    lap_device_fault_arm(0, LAP_OK);
    fake_reset();
    fake_register_tools();
    fake.devices[0].memory_bytes = 64 << 20;
    fake.devices[0].max_alloc_bytes = 0;
    fake.devices[0].cache_bytes = 64 << 10;
    lap_registry_add(NULL);
    lap_registry_add(&fake_ops);
}

#endif
