/* Graphs: launches captured from a stream, replayed with one call. Capture is thread-local: what
 * other threads do on other devices cannot break it. */
#include "cuda_backend.h"

#include <stdlib.h>

lap_status lap_cuda_graph_begin(void *queue, lap_error *err) {
    lap_cuda_queue *q = queue;
    LAP_TRY(lap_cuda_not_capturing(q, "beginning another graph", err));
    LAP_TRY(lap_cuda_use(q->device, err));
    LAP_TRY(LAP_CUDA(err, cudaStreamBeginCapture(q->stream, cudaStreamCaptureModeThreadLocal),
                     "beginning a graph on cuda:%d", q->device->index));
    q->capturing = true;
    return LAP_OK;
}

lap_status lap_cuda_graph_end(void *queue, void **graph, lap_error *err) {
    *graph = NULL;
    lap_cuda_queue *q = queue;
    int index = q->device->index;
    if (!q->capturing)
        return LAP_FAIL(err, LAP_E_ARG, "cuda:%d: no graph was begun; call lap_graph_begin first",
                        index);
    LAP_TRY(lap_cuda_use(q->device, err));
    /* Whatever happens, the stream is not capturing afterwards. */
    q->capturing = false;
    cudaGraph_t captured = NULL;
    LAP_TRY(LAP_CUDA(err, cudaStreamEndCapture(q->stream, &captured),
                     "ending a graph on cuda:%d (a command that cannot be captured breaks it)",
                     index));
    if (!captured) return LAP_FAIL(err, LAP_E_LAUNCH, "cuda:%d: the capture gave no graph", index);
    lap_cuda_graph *g = calloc(1, sizeof *g);
    lap_status status =
        g ? LAP_CUDA(err, cudaGraphInstantiate(&g->exec, captured, 0),
                     "preparing a graph on cuda:%d", index)
          : LAP_FAIL(err, LAP_E_NOMEM, "cuda:%d: no host memory for a graph", index);
    LAP_CUDA_IGNORE(cudaGraphDestroy(captured)); /* the executable graph keeps what it needs */
    if (status != LAP_OK) {
        free(g);
        return status;
    }
    g->device = q->device;
    *graph = g;
    return LAP_OK;
}

lap_status lap_cuda_graph_launch(void *graph, void *queue, lap_error *err) {
    lap_cuda_graph *g = graph;
    lap_cuda_queue *q = queue;
    LAP_TRY(lap_cuda_not_capturing(q, "launching a graph", err));
    LAP_TRY(lap_cuda_use(q->device, err));
    return LAP_CUDA(err, cudaGraphLaunch(g->exec, q->stream), "launching a graph on cuda:%d",
                    q->device->index);
}

void lap_cuda_graph_free(void *graph) {
    lap_cuda_graph *g = graph;
    if (!g) return;
    (void)lap_cuda_use(g->device, NULL);
    LAP_CUDA_IGNORE(cudaGraphExecDestroy(g->exec));
    free(g);
}
