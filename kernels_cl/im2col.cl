/* Unfolds the input for a convolution by matrix product: row (image, p, q) of the matrix holds the
 * window of that output pixel as [R][S][C], zeros where it lies outside the image. One work-item
 * writes one element; the second grid dimension walks over the images. */
#ifndef C
#define C 3 /* input channels */
#endif
#ifndef CS
#define CS 4 /* input channel stride, >= C */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef P
#define P 8 /* output height */
#endif
#ifndef Q
#define Q 8 /* output width */
#endif
#ifndef R
#define R 3 /* window height */
#endif
#ifndef S
#define S 3 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window, both directions */
#endif
#ifndef PAD
#define PAD 1 /* border on every side */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#define ROW (R * S * C)

__kernel void im2col(__global const float *in, __global float *matrix, const int n) {
    const uint e = (uint)get_global_id(0);
    const int pixel = (int)(e / ROW);
    if (pixel >= P * Q) return;
    const int column = (int)(e % ROW);
    const int c = column % C, s = column / C % S, r = column / (C * S);
    const int h = pixel / Q * STRIDE - PAD + r, w = pixel % Q * STRIDE - PAD + s;
    const int inside = h >= 0 && h < H && w >= 0 && w < W;
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        const long from = (long)image * (H * W * CS) + (h * W + w) * CS + c;
        matrix[(long)image * P * Q * ROW + e] = inside ? in[from] : 0.0f;
    }
}
