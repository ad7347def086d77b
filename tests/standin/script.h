/* The script of the stand-ins for drivers: what they are to answer, in a text file that the
 * environment variable LAP_STANDIN_SCRIPT names. One file serves all of them; each reads it when it
 * is first called, and again when the variable names another. Without one they are sound drivers
 * with one device. What the script gets wrong ends the program with the line and the reason.
 *
 *   # A comment. Sections and their keys: the table in script.c.
 *   [platform]                    an OpenCL platform, as many as wanted ...
 *   error = -6                    clGetDeviceIDs gives this code for it
 *   [platform]
 *   [device]                      ... and a device of the platform above
 *   name = "Iris\0"               quoted text knows \0 \n \t \" \\ \xHH, and is taken to the byte
 *   memory = 1048576
 *   [cuda]
 *   capability = 12.9
 *   fail clFinish 3 -36           anywhere: the third call of this function gives this code;
 *   fail clFinish 3+ -36          that one and all later ones
 *   delay cudaLaunchKernel 20     each call takes 20 ms longer
 *
 * Calls are counted from the reading on, in each stand-in for itself.
 */
#ifndef LAP_TESTS_STANDIN_SCRIPT_H
#define LAP_TESTS_STANDIN_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A preloaded stand-in must not lend its script to another one. */
#pragma GCC visibility push(hidden)

enum { SCRIPT_PLATFORMS = 8, SCRIPT_DEVICES = 8, SCRIPT_NUMBERS = 16, SCRIPT_CALLS = 64 };

typedef struct script_text {
    size_t length;
    char bytes[1024]; /* and a NUL behind them that is not counted */
} script_text;

typedef struct script_numbers {
    size_t count;
    int64_t at[SCRIPT_NUMBERS];
} script_numbers;

typedef enum script_stamps {
    STAMPS_SOUND,
    STAMPS_ZERO,
    STAMPS_EQUAL,
    STAMPS_REVERSED, /* end = start - 1 */
    STAMPS_MISSING   /* CL_PROFILING_INFO_NOT_AVAILABLE */
} script_stamps;

typedef struct script_device {
    script_text name;
    int64_t type;              /* 0 gpu, 1 cpu, 2 accelerator */
    script_numbers uuid, pci;  /* 16 bytes; domain, bus, device, function; or none */
    int64_t memory, max_alloc; /* bytes; max_alloc 0: as much as memory */
    int64_t group;             /* the largest, of the device ... */
    int64_t kernel_group;      /* ... and of any kernel; 0: the same */
} script_device;

typedef struct script_platform {
    script_text name; /* empty: "Fake" and its number */
    int64_t error;
    size_t device_count;
    script_device devices[SCRIPT_DEVICES];
} script_platform;

typedef struct script_call {
    char name[64];
    uint64_t first, last; /* which calls fail */
    int64_t code;
    int64_t delay_ms;
} script_call;

typedef struct script {
    size_t platform_count;
    script_platform platforms[SCRIPT_PLATFORMS];
    struct {
        int64_t stamps;  /* script_stamps, of all devices */
        int64_t slow_by; /* stamps count so many times too slowly */
    } opencl;
    struct {
        int64_t devices, count_error, driver, memory;
        script_numbers capability;
        script_text name;
    } cuda;
    struct {
        script_numbers version, archs;
        int64_t log_lines; /* of a source with "#error planted" */
    } nvrtc;
    struct {
        int64_t reasons;     /* why clocks are held back, besides idleness: NVML's bits */
        int64_t own_process; /* the own one is among those listed */
        int64_t part;        /* the GPU is known as a part of one (MIG) */
    } nvml;
    size_t call_count;
    script_call calls[SCRIPT_CALLS]; /* lines of fail and delay */
} script;

/* The functions that a stand-in counts, each stand-in's own: up to NULL, all with one prefix. A
 * script must not name others with that prefix. */
extern const char *const script_functions[];

/* What holds now. */
const script *script_get(void);
/* Every function of a stand-in begins with it: counts the call, waits if it is to be delayed, and
 * gives the code with which it is to fail, or 0. */
int script_enter(const char *function);

/* A sound time stamp, of an end or a start, becomes what OpenCL's user is to see; false: nothing.
 */
bool script_stamp(bool end, uint64_t *stamp);

/* The reading alone: false, the line and the reason. */
bool script_parse(const char *text, script *out, int *line, char *why, size_t size);

#pragma GCC visibility pop

#endif
