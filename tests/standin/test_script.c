/* The reader of the stand-ins' script: what it takes, and that it names the line of what it does
 * not take. */
#include "script.h"

#include "script_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

const char *const script_functions[] = {"cudaMalloc", "cudaFree", NULL};

static script out;

static void parse(const char *text) {
    char why[256];
    int line;
    if (!script_parse(text, &out, &line, why, sizeof why)) fail_msg("%d: %s", line, why);
}

static void test_defaults(void **state) {
    (void)state;
    parse("");
    assert_int_equal(out.platform_count, 1);
    assert_int_equal(out.platforms[0].device_count, 1);
    assert_memory_equal(out.platforms[0].devices[0].name.bytes, "Fake device\0", 12);
    assert_int_equal(out.platforms[0].devices[0].name.length, 12);
    assert_int_equal(out.cuda.devices, 1);
    assert_string_equal(out.cuda.name.bytes, "Stand-in GPU");
    assert_int_equal(out.nvrtc.archs.count, 5);
    assert_int_equal(out.call_count, 0);
}

static void test_everything(void **state) {
    (void)state;
    parse("# of all\n\n"
          "[platform]\nname = First one\n"
          "\t[platform] \n  error=-6\n"
          "[device]\nname = \" A\\0\\n\\t\\\"\\\\\\xC2\\xae \"\ntype = accelerator\n"
          "uuid = 000102030405060708090a0b0c0d0eFF\npci = 1:3f:1c.7\n"
          "memory = 85899345920\nmax_alloc = 0x10\ngroup = 64\nkernel_group = 1\n"
          "[device]\n"
          "[opencl]\nstamps = reversed\nslow_by = 42\n"
          "fail cudaMalloc 3 2\nfail cudaMalloc 5+ -36\ndelay cudaFree 20\nfail clFinish 1 -5\n"
          "[cuda]\ndevices = 0\ncount_error = 100\ndriver = 12040\nmemory = 1\n"
          "capability = 12.9\nname = a # b\n"
          "[nvrtc]\nversion = 11.8\narchs = 75, 80\nlog_lines = 0\n"
          "[nvml]\nreasons = 0x4c\nown_process = no\npart = yes");
    assert_int_equal(out.platform_count, 2);
    assert_string_equal(out.platforms[0].name.bytes, "First one");
    assert_int_equal(out.platforms[0].device_count, 0);
    assert_int_equal(out.platforms[1].error, -6);
    assert_int_equal(out.platforms[1].device_count, 2);
    const script_device *d = out.platforms[1].devices;
    assert_int_equal(d->name.length, 10);
    assert_memory_equal(d->name.bytes, " A\0\n\t\"\\\xC2\xAE ", 11);
    assert_int_equal(d->type, 2);
    assert_int_equal(d->uuid.at[15], 0xff);
    assert_int_equal(d->pci.at[2], 0x1c);
    assert_int_equal(d->memory, 85899345920);
    assert_int_equal(d->max_alloc, 16);
    assert_int_equal(d->kernel_group, 1);
    assert_int_equal(d[1].uuid.count, 0);
    assert_int_equal(out.opencl.stamps, STAMPS_REVERSED);
    assert_int_equal(out.opencl.slow_by, 42);
    assert_int_equal(out.cuda.count_error, 100);
    assert_int_equal(out.cuda.capability.at[1], 9);
    assert_string_equal(out.cuda.name.bytes, "a # b");
    assert_int_equal(out.nvrtc.archs.count, 2);
    assert_int_equal(out.nvrtc.archs.at[1], 80);
    assert_int_equal(out.nvml.reasons, 0x4c);
    assert_true(out.nvml.part && !out.nvml.own_process);
    assert_int_equal(out.call_count, 4);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *why;
    } bad[] = {
        {"\n[cuda]\ndevicse = 1\n", 3, "unknown key devicse in [cuda]"},
        {"devices = 1", 1, "devices before any section"},
        {"[cuda]\n[device]\n", 2, "needs a [platform]"},
        {"[gpu]", 1, "unknown section [gpu]"},
        {"[cuda", 1, "unknown section"},
        {"[]", 1, "unknown section"},
        {"[cuda]\n[nvml]\n[cuda]\n", 3, "second time"},
        {"[cuda]\ndriver = 1\ndriver = 1\n", 3, "driver for the second time"},
        {"[cuda]\ndriver\n", 2, "neither"},
        {"[cuda]\ndriver =\n", 2, "no value"},
        {"[cuda]\ndriver = 1x\n", 2, "no such number"},
        {"[cuda]\ndriver = -1\n", 2, "no such number"},
        {"[cuda]\ndriver = 99999999999999999999\n", 2, "no such number"},
        {"[cuda]\ncapability = 9\n", 2, "no x.y"},
        {"[nvrtc]\narchs = 75;80\n", 2, "expected ','"},
        {"[nvrtc]\narchs = 75,\n", 2, "no list"},
        {"[opencl]\nstamps = never\n", 2, "none of: sound"},
        {"[platform]\nname = \"a\n", 2, "quote"},
        {"[platform]\nname = \"a\" b\n", 2, "quote"},
        {"[platform]\nname = \"\\q\"\n", 2, "unknown escape"},
        {"[platform]\n[device]\nuuid = 00\n", 3, "32"},
        {"[platform]\n[device]\npci = 1:2:3\n", 3, "PCI"},
        {"fail cudaMallco 1 2\n", 1, "cudaMallco"},
        {"fail malloc 1 2\n", 1, "malloc"},
        {"fail cudaMalloc 0 2\n", 1, "no count"},
        {"fail cudaMalloc 1- 2\n", 1, "no count"},
        {"fail cudaMalloc 1 0\n", 1, "no code"},
        {"fail cudaMalloc 1 x\n", 1, "no code"},
        {"fail cudaMalloc 1\n", 1, "expected fail"},
        {"fail cudaMalloc 1 2 3\n", 1, "expected fail"},
        {"delay cudaMalloc 1+\n", 1, "no count"},
        {"delay cudaMalloc\n", 1, "expected delay"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char why[256] = "";
        int line = 0;
        if (script_parse(bad[i].text, &out, &line, why, sizeof why))
            fail_msg("accepted: %s", bad[i].text);
        assert_int_equal(line, bad[i].line);
        if (!strstr(why, bad[i].why)) fail_msg("%s: %s", bad[i].text, why);
    }
}

static void test_calls(void **state) {
    (void)state;
    script_file("fail cudaMalloc 2 7\nfail cudaMalloc 4+ 8\n");
    static const int codes[] = {0, 7, 0, 8, 8};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(script_enter("cudaMalloc"), codes[i]);
        assert_int_equal(script_enter("cudaFree"), 0);
    }
    script_file("fail cudaMalloc 1 9\ndelay cudaFree 30\n"); /* another one: counted anew */
    assert_int_equal(script_enter("cudaMalloc"), 9);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    assert_int_equal(script_enter("cudaFree"), 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    assert_true((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 29);
    script_none();
    assert_int_equal(script_enter("cudaMalloc"), 0);
}

/* What a script gets wrong ends the program, with a message. */
static void expect_abort(const char *path, const char *message) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        if (path) setenv("LAP_STANDIN_SCRIPT", path, 1);
        script_get();
        _exit(0);
    }
    close(ends[1]);
    char said[1024];
    ssize_t n = read(ends[0], said, sizeof said - 1);
    said[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    if (!strstr(said, message)) fail_msg("%s is not in: %s", message, said);
}

static void test_abort(void **state) {
    (void)state;
    script_file("[cuda]\n\nnmae = x\n");
    expect_abort(NULL, ".txt:3: unknown key nmae in [cuda]\n");
    script_none();
    expect_abort("/nonexistent/script", "/nonexistent/script:0: No such file");
}

static void test_stamps(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        uint64_t start, end;
    } expected[] = {{"zero", 0, 0}, {"equal", 5000, 5000}, {"reversed", 5000, 4999}};
    for (size_t i = 0; i < 3; i++) {
        script_file("[opencl]\nstamps = %s\n", expected[i].mode);
        uint64_t start = 1000, end = 3500;
        assert_true(script_stamp(false, &start) && script_stamp(true, &end));
        assert_int_equal(start, expected[i].start);
        assert_int_equal(end, expected[i].end);
    }
    script_file("[opencl]\nstamps = missing\n");
    uint64_t stamp = 84;
    assert_false(script_stamp(false, &stamp));
    script_file("[opencl]\nslow_by = 42\n");
    stamp = 84;
    assert_true(script_stamp(false, &stamp));
    assert_int_equal(stamp, 2);
    script_none();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_everything),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_calls),
        cmocka_unit_test(test_abort),    cmocka_unit_test(test_stamps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
