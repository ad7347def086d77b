/* The header of a .npy file (versions 1.0, 2.0, 3.0). Private to src/net. */
#ifndef LAP_NET_NPY_H
#define LAP_NET_NPY_H

#include "base/status.h"
#include <stdint.h>

enum { LAP_NPY_RANK_MAX = 8 };

typedef struct lap_npy {
    int rank;
    uint64_t shape[LAP_NPY_RANK_MAX];
    uint64_t data; /* file offset of the first value */
} lap_npy;

/* Read and check the header of an open file of size bytes: little-endian float32 in C order whose
 * data fills the rest of the file exactly; anything else is LAP_E_FORMAT. */
lap_status lap_npy_read_header(int fd, const char *path, uint64_t size, lap_npy *out,
                               lap_error *err);

#endif
