/* Messages between a worker and its parent (see link.h). */
#include "app/link.h"
#include "measure/row_pack.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

/* Without padding: whatever the stack held would be sent in it. */
typedef struct head {
    size_t kind, index, size;
} head;

static bool put(int fd, const void *bytes, size_t size) {
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

void lap_link_send(lap_link *link, lap_link_kind kind, size_t index, const void *bytes,
                   size_t size) {
    head h = {.kind = kind, .index = index, .size = size};
    pthread_mutex_lock(&link->lock);
    if (put(link->fd, &h, sizeof h) && size) (void)put(link->fd, bytes, size);
    pthread_mutex_unlock(&link->lock);
}

void lap_link_send_row(lap_link *link, lap_link_kind kind, size_t index, const lap_row *row) {
    lap_text packed = {0};
    /* Without memory the row is not sent: the parent then says that its process ended early. */
    if (lap_row_pack(row, &packed)) lap_link_send(link, kind, index, packed.data, packed.length);
    lap_text_free(&packed);
}

int lap_link_read(lap_link *link) {
    char chunk[CHUNK];
    lap_text *pending = &link->pending;
    if (link->taken) {
        pending->length -= link->taken;
        memmove(pending->data, pending->data + link->taken, pending->length);
        link->taken = 0;
    }
    ssize_t n;
    while ((n = read(link->fd, chunk, sizeof chunk)) < 0 && errno == EINTR)
        continue;
    if (n <= 0) return n < 0 && errno == EAGAIN ? 0 : -1;
    lap_text_addn(pending, chunk, (size_t)n);
    return pending->failed ? -1 : 1;
}

bool lap_link_take(lap_link *link, lap_message *out) {
    head h;
    size_t left = link->pending.length - link->taken;
    const char *at = link->pending.data + link->taken;
    if (left < sizeof h) return false;
    memcpy(&h, at, sizeof h);
    if (left - sizeof h < h.size) return false;
    *out = (lap_message){(lap_link_kind)h.kind, h.index, h.size, at + sizeof h};
    link->taken += sizeof h + h.size;
    return true;
}
