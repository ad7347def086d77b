/* A whole backend in host memory, named "fake", for tests: kernels are C functions, time is a
 * number that the test sets, and every way a device can fail can be asked for.
 *
 * Use: fake_reset(); change fake; lap_registry_add(&fake_ops); then the public device interface.
 * All state is global and not locked: one thread at a time. fake_reset() does not free objects that
 * a test leaked; fake_alive() tells of them.
 */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include "device/device_ops.h"

#define FAKE_MAX_DEVICES 8

/* A kernel: pointers[i] is the host address of argument i, NULL for null buffers and integers. */
typedef void (*fake_kernel_fn)(const lap_define *defines, size_t define_count,
                               const lap_raw_launch *launch, void *const *pointers);

/* Make (stem, entry) buildable. A second call for the same pair replaces the function. False when
 * the table is full. The project's naive kernels are there after fake_reset. */
bool fake_register(const char *stem, const char *entry, fake_kernel_fn fn);

/* The value of a define; fallback when it is absent. */
int64_t fake_define(const lap_define *defines, size_t count, const char *name, int64_t fallback);

/* Bad kernels. The output is the last buffer argument that is not null; its size is N*P*Q*KS when
 * the defines tell (N: the first integer argument), else the buffer. */
typedef enum fake_plant_kind {
    FAKE_PLANT_NONE = 0,
    FAKE_PLANT_WRONG,        /* one element in the middle is off by one unit plus 1/8 of it */
    FAKE_PLANT_NAN,          /* one element in the middle is NaN */
    FAKE_PLANT_NOTHING,      /* runs, writes nothing */
    FAKE_PLANT_OUT_OF_BOUNDS /* right result, plus one word right behind the output */
} fake_plant_kind;

/* Applies to launches of the stem from now on; up to 8 stems. FAKE_PLANT_NONE removes it. */
void fake_plant(const char *stem, fake_plant_kind kind);

typedef enum fake_timer {
    FAKE_TIMER_OK = 0,
    FAKE_TIMER_ZERO,     /* elapsed succeeds and says 0 */
    FAKE_TIMER_REVERSED, /* elapsed succeeds and says less than 0 */
    FAKE_TIMER_MISSING   /* elapsed fails with LAP_E_TIMER */
} fake_timer;

typedef struct fake_script {
    /* What enumerate finds. Selector and native[0] are set by fake_reset and stay. */
    size_t device_count;
    lap_device_info devices[FAKE_MAX_DEVICES];
    const char *note;              /* listed for the platform "Fake Platform B"; NULL: none */
    lap_status enumerate_status;   /* LAP_OK, or fail with it after the devices */
    lap_status open_status;        /* LAP_OK, or every open fails with it */
    const char *gemm;              /* name of the GEMM library; NULL: none */
    bool deferred;                 /* commands run at the next wait, not at once */
    bool lazy_memory;              /* too large allocations succeed; using them fails */
    size_t pretend_bytes;          /* larger buffers hold nothing: writes are lost, reads give 0,
                                      launches that use them do not run; 0: none */
    uint32_t kernel_group_limit;   /* largest group of every kernel; 0: the device's limit */
    const char *fail_build_stem;   /* builds of this stem fail with LAP_E_BUILD; NULL: none */
    bool refuse_binaries;          /* no built kernel can be loaded again */
    uint64_t fail_launch;          /* this launch (1-based, since fake_reset) fails; 0: none */
    lap_status fail_launch_status; /* with this; LAP_E_LAUNCH by default */
    bool fail_at_finish;           /* ... not at once, but at the next wait on the queue */
    bool sticky;                   /* ... and then every later call fails with LAP_E_DEVICE */

    /* The device clock, seconds. */
    double launch_s;         /* a kernel or GEMM */
    double command_s;        /* a copy or fill */
    double copy_bytes_per_s; /* on top of command_s, for host copies; 0: they are free */
    double (*cost)(const char *stem, const lap_raw_launch *launch); /* instead of launch_s */
    bool real_time; /* waiting also takes that long on the host clock */
    fake_timer timer;

    /* Filled by the backend. */
    uint64_t builds, loads; /* compiled; made of a binary */
    uint64_t overlaps;      /* launches that may be started early */
    uint64_t launches, gemms, copies, queue_waits, red_zone_hits;
    uint64_t largest_buffer, furthest_write; /* bytes; end of the write furthest into a buffer */
    uint64_t used_bytes[FAKE_MAX_DEVICES], peak_bytes[FAKE_MAX_DEVICES];
} fake_script;

extern fake_script fake;
extern lap_device_ops fake_ops; /* not const: a test may take optional slots away */

/* Back to: one GPU "fake:0" with 1 GiB, the naive kernels, 10 us a launch, 1 us a copy. */
void fake_reset(void);

/* Make the kernels buildable that the program measures devices with (after fake_reset). */
void fake_register_tools(void);

/* Backend objects alive: devices, queues, buffers, kernels, events and graphs. */
size_t fake_alive(void);

/* Private to the two sources: adds the project's naive kernels. */
void fake_register_naive(void);

#endif
