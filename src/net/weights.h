/* Network weights on the host: synthetic or from a safetensors file, batch-norm folded once.
 *
 * Folding is done in double: w' = w * g / sqrt(v + 1e-5), b' = beta - m * g / sqrt(v + 1e-5), then
 * rounded once to float. Folded weights are what every kernel, the reference and the checks use.
 */
#ifndef LAP_NET_WEIGHTS_H
#define LAP_NET_WEIGHTS_H

#include "net/op.h"

typedef struct lap_op_weights {
    float *w;       /* [k][c][r][s] (torch's order; c = 1 for DWCONV); NULL for ops without */
    float *bias;    /* [k]; NULL for ops without weights */
    size_t w_count; /* k * c * r * s */
    size_t k;
} lap_op_weights;

typedef struct lap_weights {
    lap_op_weights *ops; /* parallel to net->ops */
    int op_count;
    char source[512]; /* "synthetic:1" or the file's path */
    char hash[17]; /* 64-bit FNV-1a of all folded bits in op order, hexadecimal: identifies the set
                    */
} lap_weights;

/* spec: "synthetic:SEED" or a path to a .safetensors file with torchvision's names.
 * Errors: LAP_E_CONFIG (bad spec), LAP_E_IO, LAP_E_FORMAT (name, shape, dtype, offset: says which).
 */
lap_status lap_weights_load(const lap_net *net, const char *spec, lap_weights **out,
                            lap_error *err);
void lap_weights_free(lap_weights *weights);

/* Write the unfolded synthetic state dict (torchvision's names, F32) as safetensors. Refuses to
 * overwrite an existing file unless force. */
lap_status lap_weights_export(const lap_net *net, uint64_t seed, const char *path, bool force,
                              lap_error *err);

/* Input images, float NCHW, one after the other.
 * spec: "synthetic:SEED" — image i is generated from (SEED, i), every element standard normal (the
 * exact definition is in input.c) — or a path to a .npy (float32, C order, shape [n,3,h,w]); then
 * image i is the file's image i mod n.
 * Writes count images of 3*h*w floats to out. */
typedef struct lap_input lap_input;
lap_status lap_input_open(const char *spec, int channels, int height, int width, lap_input **out,
                          lap_error *err);
lap_status lap_input_image(const lap_input *input, uint64_t index, float *out, lap_error *err);
/* Distinct images: the file's n, or UINT64_MAX for synthetic. */
uint64_t lap_input_distinct(const lap_input *input);
void lap_input_free(lap_input *input);

/* Write a float32 array as .npy (used for logits). Refuses to overwrite unless force. */
lap_status lap_npy_write(const char *path, const float *data, const uint64_t *shape, int rank,
                         bool force, lap_error *err);

#endif
