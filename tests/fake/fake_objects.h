/* Private to the fake backend: its objects, and running what is enqueued. */
#ifndef FAKE_OBJECTS_H
#define FAKE_OBJECTS_H

#include "fake_backend.h"

#define FAKE_MAX_DEFINES 64

typedef struct fake_device {
    size_t index;
    bool lost;
    struct fake_queue *queues; /* all on this device */
} fake_device;

typedef struct fake_kernel {
    fake_device *device;
    char stem[48];
    fake_kernel_fn fn;
    lap_define defines[FAKE_MAX_DEFINES];
    size_t define_count;
} fake_kernel;

typedef struct fake_buffer {
    fake_device *device;
    struct fake_buffer *parent;
    unsigned char *data; /* RED_ZONE bytes lie before and behind a buffer of its own */
    size_t bytes;
    bool lazy;    /* granted though there is no room: whoever touches it fails */
    bool pretend; /* holds nothing (fake_script.pretend_bytes) */
} fake_buffer;

typedef struct command {
    enum { RUN, GEMM, FILL, WRITE, READ } kind;
    fake_kernel *kernel;
    lap_raw_launch launch;
    lap_raw_gemm gemm;
    fake_buffer *buffer;
    size_t offset, bytes;
    uint32_t pattern;
    const void *from; /* WRITE */
    void *to;         /* READ */
} command;

typedef struct commands {
    command *items;
    size_t count, capacity;
} commands;

typedef struct fake_queue {
    fake_device *device;
    struct fake_queue *next;
    uint64_t id;
    commands pending; /* deferred, not yet run */
    commands *graph;  /* being recorded, or NULL */
    double clock;     /* end of the last command enqueued */
    double unslept;   /* device time not yet waited for */
    lap_status late;  /* to be reported by the next wait */
} fake_queue;

typedef struct fake_pinned {
    fake_device *device;
    void *data;
} fake_pinned;

typedef struct fake_event {
    fake_device *device;
    uint64_t queue_id; /* the queue may be gone: not a pointer */
    double clock;
} fake_event;

/* What fake_alive returns. */
extern size_t fake_object_count;

/* NULL when nothing is registered for the pair. */
fake_kernel_fn fake_find_kernel(const char *stem, const char *entry);

/* LAP_E_DEVICE once the device has faulted. */
lap_status fake_healthy(const fake_device *device, const char *call, lap_error *err);
/* LAP_E_OOM for a buffer that was only promised; NULL is fine. */
lap_status fake_touch(const fake_buffer *buffer, const char *call, lap_error *err);
/* Record into a graph, keep for later or run now, as the queue's state says. */
lap_status fake_submit(fake_queue *queue, const command *c, lap_error *err);
/* What every wait does: run what is left and report what happened since the last one. */
lap_status fake_settle(fake_queue *queue, const char *call, lap_error *err);
/* Run what is left on one queue; on all queues of a device. */
void fake_drain(fake_queue *queue);
void fake_drain_all(fake_device *device);
/* Device time of a copy between host and device. */
double fake_copy_cost(size_t bytes);
void fake_advance(fake_queue *queue, double seconds);

#endif
