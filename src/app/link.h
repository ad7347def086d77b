/* What a worker process tells its parent: messages through a pipe, and a counter in shared memory
 * that says that it is alive. Both sides are the same program, one a fork of the other. */
#ifndef LAP_APP_LINK_H
#define LAP_APP_LINK_H

#include "base/text.h"
#include "measure/result.h"
#include <pthread.h>

typedef enum lap_link_kind {
    LAP_LINK_LIBRARY = 1, /* "name\0version\0" */
    LAP_LINK_PLANNED,     /* row `index` as planned: a packed row */
    LAP_LINK_READY,       /* every row is planned; index: how many there are */
    LAP_LINK_BEGUN,       /* row `index` is being worked on */
    LAP_LINK_STEP,        /* what is being done: text */
    LAP_LINK_SO_FAR,      /* row `index` as it is by now: a packed row */
    LAP_LINK_DONE,        /* row `index` is finished: a packed row */
    LAP_LINK_LOST,        /* a device is lost to this process: what is left is for another one */
    LAP_LINK_FAILED       /* nothing can be done: a lap_error */
} lap_link_kind;

typedef struct lap_link {
    int fd; /* to write, to read */
    pthread_mutex_t lock;
    lap_text pending; /* read, */
    size_t taken;     /* of which so many bytes are done with */
} lap_link;

typedef struct lap_message {
    lap_link_kind kind;
    size_t index, size;
    const char *bytes; /* until the next call */
} lap_message;

/* Worker: from any thread. A parent that is gone is no error here: the kernel ends this process. */
void lap_link_send(lap_link *link, lap_link_kind kind, size_t index, const void *bytes,
                   size_t size);
void lap_link_send_row(lap_link *link, lap_link_kind kind, size_t index, const lap_row *row);

/* Parent: read what there is, without waiting on a descriptor that does not. 1: something; 0:
 * nothing at present; -1: the end. */
int lap_link_read(lap_link *link);
/* The next whole message of what was read; false if there is none. */
bool lap_link_take(lap_link *link, lap_message *out);

#endif
