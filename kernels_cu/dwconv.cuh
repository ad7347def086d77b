/* What the depthwise kernels that write means share; VC is the channels of a work-item. */
#define DEVICE_FENCE() __threadfence()
#define BLOCKS ((CS / VC + CX - 1) / CX) /* of channels */
#define BANDS ((P + ROWS - 1) / ROWS)
#define STRIPS ((Q + TQ - 1) / TQ) /* tiles side by side */
#define GROUP (CX * LINES)
#define FLAG_RELU 1
/* A division that is correctly rounded whatever the language's own is; infinity and NaN pass. */
#define MEAN(s)                                                                                    \
    (fabsf((s)*inverse) <= 3.4e38f ? fmaf(fmaf(-((s)*inverse), count, (s)), inverse, (s)*inverse)  \
                                   : (s)*inverse)
