/* Private to src/device: what the public opaque objects are made of, and the two steps around every
 * backend call. Backends never see these; they get and return bare handles. */
#ifndef LAP_DEVICE_OBJECTS_H
#define LAP_DEVICE_OBJECTS_H

#include "device/device_ops.h"

struct lap_device {
    const lap_device_ops *ops;
    void *handle;
    lap_device_info info;
    const char *lost; /* the call that first reported LAP_E_DEVICE; NULL while healthy */
    uint64_t next_queue_id;
    lap_build_cache *cache; /* NULL for none */
    uint64_t build_cached, build_compiled;
    size_t queues, buffers, pinned, kernels, events, graphs; /* alive now */
};

struct lap_queue {
    lap_device *device;
    void *handle;
    uint64_t id;       /* never reused, unlike the address: events remember it */
    uint64_t commands; /* given to the backend so far */
    uint64_t marks;    /* events recorded so far */
    bool capturing;
    bool unstamped; /* the newest command is a launch that was to have no time stamp */
};

struct lap_buffer {
    lap_device *device;
    void *handle;
    size_t bytes;
    lap_buffer *parent; /* NULL for a buffer of its own */
    size_t views;       /* alive on this buffer */
    bool freed;         /* by its owner, but views still need it */
};

struct lap_pinned {
    lap_device *device;
    void *handle, *data;
};

struct lap_kernel {
    lap_device *device;
    void *handle;
    lap_kernel_info info;
    char stem[48];
};

struct lap_event {
    lap_device *device;
    void *handle;
    bool recorded;
    bool unstamped;                    /* the command before it has no time stamp */
    uint64_t queue_id, commands, mark; /* the queue's counts when it was recorded */
};

struct lap_graph {
    lap_device *device;
    void *handle;
};

/* Before a fallible backend call: fails when the device is lost or a fault is due. */
lap_status lap_call_enter(lap_device *device, const char *call, lap_error *err);
/* After it: remembers a lost device. Returns status. */
lap_status lap_call_leave(lap_device *device, const char *call, lap_status status);

/* Count one fallible call; the planted status when it is the one to fail. */
lap_status lap_fault_check(const char *call, lap_error *err);
/* LAP_E_CONFIG when LAP_FAULT in the environment cannot be read, at any time after the first use.
 */
lap_status lap_fault_config(lap_error *err);

/* LAP_E_ARG when the queue records a graph and the call is not one a graph can hold. */
lap_status lap_queue_check_idle(const lap_queue *queue, const char *call, lap_error *err);

#endif
