/* Sizes beyond 32 bits, on a made-up device of 80 GB whose large buffers hold nothing: no byte
 * count or offset wraps, and what does not fit is refused with an error that says how much was
 * asked. */
#include "fixture.h"
#include "tiny.h"

#define GIB (UINT64_C(1) << 30)

static lap_net *net; /* resnet18 at 224x224 */
static lap_weights *weights;
static float *image;

static lap_session *begin(void) {
    start();
    fake.devices[0].memory_bytes = 80 * GIB;
    fake.devices[0].max_alloc_bytes = 80 * GIB;
    fake.pretend_bytes = 64u << 20;
    return open_session();
}

/* The stem's output, 112 x 112 x 64, is the largest tensor. */
static uint64_t stem_bytes(uint64_t batch) {
    return UINT64_C(112) * 112 * 64 * 4 * batch;
}

/* 65536 images: the stem's bytes are a multiple of 2^32, so that 32 bits of them are zero. */
static void test_bytes(void **state) {
    (void)state;
    assert_true(stem_bytes(65536) % (UINT64_C(1) << 32) == 0);
    const uint64_t batches[] = {1, 1337, 1338, 65536, 1048576, INT32_MAX};
    lap_session *session = begin();
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        lap_error err = {0};
        lap_plan *plan;
        lap_plan_options options = {.batch = batches[i], .naive = true, .no_reuse = true};
        MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
        uint64_t want = 0;
        for (int t = 0; t < net->tensor_count; t++)
            want += lap_tensor_stored(&net->tensors[t]) * 4 * batches[i] + 2 * PLAN_GUARD_BYTES;
        assert_true(want > stem_bytes(batches[i]));
        assert_true(lap_plan_activation_bytes(plan) == want);
        assert_true(plan_tensor_bytes(plan, 1) == stem_bytes(batches[i]));
        lap_plan_free(plan);
    }
    close_session(session);
}

/* 8192 images: more than 4 GiB of input alone, and 80 GB hold it all. */
static void test_large_plan(void **state) {
    (void)state;
    const uint64_t batch = 8192;
    lap_session *session = begin();
    lap_error err = {0};
    lap_plan *plan =
        ready_plan(session, net, weights, (lap_plan_options){.batch = batch, .naive = true});
    assert_true(UINT64_C(224) * 224 * 4 * 4 * (batch - 1) > 4 * GIB);
    assert_true(fake.largest_buffer == stem_bytes(batch) + 2 * PLAN_GUARD_BYTES);
    assert_true(fake.used_bytes[0] ==
                lap_plan_weight_bytes(plan) + lap_plan_activation_bytes(plan));
    fake.furthest_write = 0;
    MUST(lap_plan_set_input(plan, image, 1, &err));
    assert_true(fake.furthest_write == UINT64_C(224) * 224 * 4 * 4 * batch);
    MUST(lap_plan_run(plan, &err));
    /* The last image of the stem's output lies beyond 4 GiB. */
    float *pixels = calloc((size_t)lap_tensor_logical(&net->tensors[1]), sizeof *pixels);
    assert_non_null(pixels);
    fake.furthest_write = 0;
    MUST(lap_plan_tensor_write(plan, 1, batch - 1, 1, pixels, &err));
    assert_true(fake.furthest_write == stem_bytes(batch));
    MUST(lap_plan_tensor_read(plan, 1, batch - 1, 1, pixels, &err));
    free(pixels);
    lap_plan_free(plan);
    close_session(session);
}

static void refused(uint64_t batch, const char *text) {
    lap_session *session = open_session();
    lap_error err = {0};
    lap_plan *plan;
    lap_plan_options options = {.batch = batch, .naive = true};
    MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
    MUST(lap_plan_upload(plan, weights, &err));
    assert_int_equal(lap_plan_bind(plan, &err), LAP_E_OOM);
    if (!strstr(err.message, text)) fail_msg("expected '%s', got '%s'", text, err.message);
    assert_int_equal(lap_plan_run(plan, &err), LAP_E_ARG);
    lap_plan_free(plan);
    close_session(session);
}

static void test_refused(void **state) {
    (void)state;
    lap_session_close(begin(), NULL);
    refused(65536, "conv1 output (210453397504 bytes)");
    /* Room for all, but not in one piece. */
    fake.devices[0].max_alloc_bytes = 4 * GIB;
    refused(2048, "conv1 output (6576668672 bytes)");
    /* Alone each would fit. */
    fake.devices[0].max_alloc_bytes = 80 * GIB;
    fake.devices[0].memory_bytes = 10 * GIB;
    refused(2048, "bytes): fake: no room for");
}

static int set_up(void **state) {
    (void)state;
    image = calloc(3 * 224 * 224, sizeof *image);
    return image && lap_net_build("resnet18", 224, 224, &net, NULL) == LAP_OK &&
                   lap_weights_load(net, "synthetic:1", &weights, NULL) == LAP_OK
               ? 0
               : -1;
}

static int tear_down(void **state) {
    (void)state;
    lap_weights_free(weights);
    lap_net_free(net);
    free(image);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_large_plan),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
