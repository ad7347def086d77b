/* The CUDA backend's operation table. No library GEMM: the hand-written kernels are the subject. */
#include "cuda_backend.h"

extern const lap_device_ops lap_cuda_ops;
const lap_device_ops lap_cuda_ops = {
    .name = "cuda",
    .version = lap_cuda_version,
    .enumerate = lap_cuda_enumerate,
    .open = lap_cuda_open,
    .close = lap_cuda_close,
    .memory = lap_cuda_memory,
    .queue_new = lap_cuda_queue_new,
    .queue_free = lap_cuda_queue_free,
    .queue_finish = lap_cuda_queue_finish,
    .queue_flush = lap_cuda_queue_flush,
    .buffer_new = lap_cuda_buffer_new,
    .buffer_view = lap_cuda_buffer_view,
    .buffer_free = lap_cuda_buffer_free,
    .buffer_write = lap_cuda_buffer_write,
    .buffer_read = lap_cuda_buffer_read,
    .buffer_fill = lap_cuda_buffer_fill,
    .kernel_build = lap_cuda_kernel_build,
    .kernel_free = lap_cuda_kernel_free,
    .enqueue = lap_cuda_enqueue,
    .event_new = lap_cuda_event_new,
    .event_free = lap_cuda_event_free,
    .event_record = lap_cuda_event_record,
    .event_wait = lap_cuda_event_wait,
    .event_elapsed = lap_cuda_event_elapsed,
    .graph_begin = lap_cuda_graph_begin,
    .graph_end = lap_cuda_graph_end,
    .graph_launch = lap_cuda_graph_launch,
    .graph_free = lap_cuda_graph_free,
};
