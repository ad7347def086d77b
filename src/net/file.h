/* Files read and written whole: regular files only, bounded, errors that name the path. Private to
 * src/net. */
#ifndef LAP_NET_FILE_H
#define LAP_NET_FILE_H

#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Open a non-empty regular file for reading. Anything else (directory, device, pipe) is LAP_E_IO;
 * an empty file is LAP_E_FORMAT. *fd is -1 on failure; the caller closes it. */
lap_status lap_file_open(const char *path, int *fd, uint64_t *size, lap_error *err);

/* Read exactly n bytes at offset; a file that has become shorter is LAP_E_IO. */
lap_status lap_file_read(int fd, const char *path, uint64_t offset, void *out, size_t n,
                         lap_error *err);

/* A file that is being written: it takes the place of what is at path when it is finished. */
typedef struct lap_new_file {
    FILE *stream;
    const char *path;              /* for messages; borrowed */
    char *target, temporary[4096]; /* the place; "" for what is no regular file: written at once */
    bool force;
} lap_new_file;

/* Begin a file; an existing one is LAP_E_IO unless force. lap_file_finish is needed on LAP_OK. */
lap_status lap_file_create(const char *path, bool force, lap_new_file *out, lap_error *err);

/* Close it and put it in place. status is how writing went so far; when that or anything here
 * failed, what was at path is still there. Returns the first failure. */
lap_status lap_file_finish(lap_new_file *file, lap_status status, lap_error *err);

/* fwrite with the errors named. */
lap_status lap_file_write(lap_new_file *file, const void *data, size_t n, lap_error *err);

/* Little-endian scalars on any host. */
uint16_t lap_load_u16(const unsigned char *p);
uint32_t lap_load_u32(const unsigned char *p);
uint64_t lap_load_u64(const unsigned char *p);
float lap_load_f32(const unsigned char *p);
void lap_store_u64(unsigned char *p, uint64_t value);
void lap_store_f32(unsigned char *p, float value);

#endif
