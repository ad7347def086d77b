/* Shared by the two files of the CUDA runtime's stand-in: handles, state, how a function begins. */
#ifndef LAP_TESTS_CUDART_STANDIN_PRIVATE_H
#define LAP_TESTS_CUDART_STANDIN_PRIVATE_H

#include "cudart_standin.h"
#include "script.h"

#include <stdint.h>

enum { MAX_ARGS = 16, MAX_NAMED = 64 };
#define COMMAND_MS 0.010

typedef struct command {
    enum { COMMAND_KERNEL, COMMAND_SET, COMMAND_COPY } what;
    struct CUkern_st *kernel;
    struct dim3 grid, block;
    size_t shared;
    union {
        void *pointer;
        int32_t i32;
    } values[MAX_ARGS];
    void *to;
    const void *from;
    int value;
    size_t bytes;
} command;

struct CUgraph_st {
    command *commands;
    size_t count;
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
};
struct CUstream_st {
    struct CUgraph_st *capture;
    bool invalid;
    bool launched; /* its last command, in this capture if there is one, is a kernel */
};
struct CUevent_st {
    bool recorded;
    double ms;
};
struct CUkern_st {
    char entry[64];
    int dynamic_limit;
    bool waits; /* its source has the instruction */
    struct CUkern_st *next;
};
struct CUlib_st {
    char *text;
    struct CUkern_st *kernels;
};

typedef struct allocation {
    char *start;
    size_t bytes;
    struct allocation *next;
} allocation;

typedef struct standin_state {
    bool started;
    int pending, sticky, last;
    double now_ms;
    allocation *allocations;
    standin_counts live;
    struct {
        char name[48];
        int calls, fail_at, code;
    } functions[MAX_NAMED];
    struct {
        char entry[64], kinds[MAX_ARGS + 1];
        standin_kernel run;
    } kernels[MAX_NAMED];
} standin_state;

extern standin_state standin_s;

/* Remember the code for cudaGetLastError, and return it. */
cudaError_t standin_result(int code);

/* Count the call; the code it is to fail with, or 0. */
int standin_enter(const char *function);

/* The bytes lie in one live allocation. */
bool standin_inside(const void *pointer, size_t bytes);

#define ENTER()                                                                                    \
    do {                                                                                           \
        int code_ = standin_enter(__func__);                                                       \
        if (code_) return standin_result(code_);                                                   \
    } while (0)

/* For clean-up functions, which free what they are given even on a lost context. */
#define ENTER_FREE() int code_ = standin_enter(__func__)

#endif
