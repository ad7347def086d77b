/* Builds a network's ops and tensors from a model's table for one image size. Knows no model but by
 * the list below; names in a table are resolved once, here. */
#include "net/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Per side; keeps every product of a shape within 64 bits before the 31-bit check below. */
enum { SIDE_MIN = 32, SIDE_MAX = 1 << 20, IMAGE_CHANNELS = 3 };

/* Parallel: the names are what the user writes. */
const char *const lap_net_model_names[] = {"resnet18", "resnet34", "resnet50", "efficientnet_b0",
                                           NULL};
static const struct {
    const char *title;
    const lap_model *model;
} models[] = {
    {"ResNet-18", &lap_model_resnet18},
    {"ResNet-34", &lap_model_resnet34},
    {"ResNet-50", &lap_model_resnet50},
    {"EfficientNet-B0", &lap_model_efficientnet_b0},
};
enum { MODEL_COUNT = sizeof models / sizeof models[0] };
_Static_assert(sizeof lap_net_model_names / sizeof lap_net_model_names[0] == MODEL_COUNT + 1,
               "one name a model");

const char *const *lap_net_models(void) {
    return lap_net_model_names;
}

const char *lap_net_title(const char *model) {
    for (int i = 0; i < MODEL_COUNT; i++)
        if (strcmp(model, lap_net_model_names[i]) == 0) return models[i].title;
    return model;
}

static lap_status find_model(const char *name, int *out, lap_error *err) {
    char known[256] = "";
    for (int i = 0; i < MODEL_COUNT; i++) {
        if (strcmp(name, lap_net_model_names[i]) == 0) {
            *out = i;
            return LAP_OK;
        }
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", lap_net_model_names[i]);
    }
    return LAP_FAIL(err, LAP_E_CONFIG, "unknown model \"%s\": known models: %s", name, known);
}

/* Tensor written by the row called name (row i writes tensor i + 1), 0 for the image. */
static int tensor_of(const lap_model *model, int before, const char *name) {
    if (!name) return 0;
    for (int i = 0; i < before; i++)
        if (strcmp(model->rows[i].name, name) == 0) return i + 1;
    return -1;
}

static lap_tensor tensor(int c, int h, int w) {
    int cs = (c + LAP_CHANNEL_ALIGN - 1) / LAP_CHANNEL_ALIGN * LAP_CHANNEL_ALIGN;
    return (lap_tensor){c, h, w, cs};
}

static int windows(int size, int window, int stride, int pad) {
    int room = size + 2 * pad - window;
    return room < 0 ? 0 : room / stride + 1;
}

static void shape_op(const lap_model_row *row, lap_op *op) {
    int channels = row->channels ? row->channels : op->in.c;
    bool whole = row->kind == LAP_OP_AVGPOOL || row->kind == LAP_OP_FC;
    op->r = whole ? op->in.h : row->window;
    op->s = whole ? op->in.w : row->window;
    op->stride = whole ? 1 : row->stride;
    op->pad = whole ? 0 : row->pad;
    op->out = tensor(channels, windows(op->in.h, op->r, op->stride, op->pad),
                     windows(op->in.w, op->s, op->stride, op->pad));
}

/* Row i of the table as op i. A table that contradicts itself is the program's own fault. */
static lap_status make_op(const lap_model *model, int i, lap_net *net, lap_error *err) {
    const lap_model_row *row = &model->rows[i];
    lap_op *op = &net->ops[i];
    op->kind = row->kind;
    snprintf(op->name, sizeof op->name, "%s", row->name);
    snprintf(op->bn, sizeof op->bn, "%s", row->bn ? row->bn : "");
    op->act = row->act;
    op->input = tensor_of(model, i, row->input);
    op->output = i + 1;
    op->residual = row->residual ? tensor_of(model, i, row->residual) : -1;
    if (op->input < 0 || (row->residual && op->residual < 0))
        return LAP_FAIL(err, LAP_E_INTERNAL, "%s: %s reads \"%s\", which no earlier row writes",
                        net->model, row->name, op->input < 0 ? row->input : row->residual);
    op->in = net->tensors[op->input];
    shape_op(row, op);
    if (row->kind == LAP_OP_FC && (op->r != 1 || op->s != 1))
        return LAP_FAIL(err, LAP_E_INTERNAL, "%s: %s reads %dx%d pixels: expected 1x1", net->model,
                        row->name, op->in.h, op->in.w);
    lap_tensor second = row->kind == LAP_OP_SCALE ? tensor(op->out.c, 1, 1) : op->out;
    if (op->residual >= 0 && memcmp(&net->tensors[op->residual], &second, sizeof second) != 0)
        return LAP_FAIL(err, LAP_E_INTERNAL, "%s: %s and \"%s\" do not fit together", net->model,
                        row->name, row->residual);
    if (row->kind == LAP_OP_DWCONV && op->out.c != op->in.c)
        return LAP_FAIL(err, LAP_E_INTERNAL, "%s: %s cannot change the number of channels",
                        net->model, row->name);
    net->tensors[op->output] = op->out;
    return LAP_OK;
}

/* Offsets inside one image must fit 31 bits: kernels compute them in int. */
static lap_status check_sizes(const lap_net *net, lap_error *err) {
    for (int i = 0; i < net->tensor_count; i++) {
        uint64_t stored = lap_tensor_stored(&net->tensors[i]);
        if (stored == 0 || stored > INT32_MAX)
            return LAP_FAIL(err, LAP_E_CONFIG,
                            "%s with %dx%d images: %s would hold %llu values per image: expected "
                            "1 to %d",
                            net->model, net->height, net->width,
                            i ? net->ops[i - 1].name : "the input", (unsigned long long)stored,
                            INT32_MAX);
    }
    return LAP_OK;
}

static lap_status fill_net(const lap_model *model, lap_net *net, lap_error *err) {
    net->ops = calloc((size_t)model->row_count, sizeof *net->ops);
    net->tensors = calloc((size_t)model->row_count + 1, sizeof *net->tensors);
    if (!net->ops || !net->tensors)
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for %d ops", net->model, model->row_count);
    net->op_count = model->row_count;
    net->tensor_count = model->row_count + 1;
    net->tensors[0] = tensor(IMAGE_CHANNELS, net->height, net->width);
    for (int i = 0; i < model->row_count; i++)
        LAP_TRY(make_op(model, i, net, err));
    net->classes = net->ops[net->op_count - 1].out.c;
    return check_sizes(net, err);
}

lap_status lap_net_build(const char *model, int height, int width, lap_net **out, lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_net_build: out is NULL");
    *out = NULL;
    if (!model) return LAP_FAIL(err, LAP_E_ARG, "lap_net_build: model is NULL");
    int found;
    LAP_TRY(find_model(model, &found, err));
    if (height < SIDE_MIN || height > SIDE_MAX || width < SIDE_MIN || width > SIDE_MAX)
        return LAP_FAIL(err, LAP_E_CONFIG, "%s %d: expected %d to %d",
                        height < SIDE_MIN || height > SIDE_MAX ? "height" : "width",
                        height < SIDE_MIN || height > SIDE_MAX ? height : width, SIDE_MIN,
                        SIDE_MAX);
    lap_net *net = calloc(1, sizeof *net);
    if (!net) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for the network", model);
    net->model = lap_net_model_names[found];
    net->height = height;
    net->width = width;
    lap_status status = fill_net(models[found].model, net, err);
    if (status != LAP_OK) {
        lap_net_free(net);
        return status;
    }
    *out = net;
    return LAP_OK;
}

void lap_net_free(lap_net *net) {
    if (!net) return;
    free(net->ops);
    free(net->tensors);
    free(net);
}
