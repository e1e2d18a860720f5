/* tests/executor/onnx_pass.c - see onnx_pass.h. */
#include "tests/executor/onnx_pass.h"

#include "executor/backend/backend.h"
#include "onnx/read/constant.h"
#include "tests/check.h"

static const struct ghp_backend_ops *const ops = &ghp_backend_reference;

struct pass {
    const struct onnx_pass *of;
    struct ghp_backend *backend;
    float **y; /* per layer, NHWC */
};

/* Samples as the input layer wants them: channels innermost. */
static void load(struct pass *pass)
{
    const struct ghp_layer *layer = &pass->of->import->model.layers[0];
    int64_t c = layer->out.c, pixels = layer->out.h * layer->out.w, each = c * pixels;

    if (layer->out.axes == GHP_AXES_SEQUENCE) { /* positions and channels, as in memory */
        memcpy(pass->y[0], pass->of->samples, (size_t)(pass->of->batch * each) * sizeof(float));
        return;
    }
    for (int64_t n = 0; n < pass->of->batch; n++)
        for (int64_t at = 0; at < each; at++)
            pass->y[0][(n * pixels + at % pixels) * c + at / pixels] =
                pass->of->samples[n * each + at];
}

static float *weight(const struct ghp_onnx_import *import, int layer, int slot)
{
    for (int i = 0; i < import->n_sources; i++) {
        const struct ghp_onnx_source *s = &import->sources[i];
        float *values;

        if (s->layer != layer || s->slot != slot) continue;
        values = ghp_alloc((size_t)ghp_onnx_elements(&s->array), sizeof *values);
        CHECK_STATUS(ghp_onnx_floats(&s->array, s->scale, values), GHP_OK);
        return values;
    }
    return NULL;
}

static void run_pass(struct ghp_backend *backend, const struct ghp_local *local, enum ghp_pass kind,
                     struct ghp_kernel_arguments *args)
{
    struct ghp_kernel *kernel = NULL;

    CHECK_STATUS(ops->prepare(backend, local, kind, &kernel), GHP_OK);
    args->at.scratch = ghp_alloc((size_t)ops->scratch_bytes(kernel) + 64, 1);
    CHECK_STATUS(ops->run(kernel, args), GHP_OK);
    free(args->at.scratch);
    ops->release(kernel);
}

static void run_layer(struct pass *pass, int i)
{
    const struct ghp_model *model = &pass->of->import->model;
    const struct ghp_layer *layer = &model->layers[i];
    int owner = ghp_model_owner(model, i); /* of its parameters */
    struct ghp_problem problem = {1, pass->of->batch};
    struct ghp_local local =
        ghp_local_of(model, i, (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1}, problem);
    double metrics[GHP_METRIC_COUNT] = {0};
    struct ghp_kernel_arguments args = {.training = pass->of->training,
                                        .stat_count = pass->of->batch * local.h * local.w,
                                        .global_channels = local.c,
                                        .at = {.y = pass->y[i], .metrics = metrics}};

    for (int k = 0; k < layer->n_inputs; k++)
        args.at.x[k] = pass->y[layer->inputs[k]];
    for (int k = 0; k < model->layers[owner].n_params; k++)
        args.at.w[k] = weight(pass->of->import, owner, k);
    for (int k = 0; k < model->layers[owner].n_states; k++)
        args.at.state[k] = weight(pass->of->import, owner, GHP_MAX_PARAMS + k);
    args.at.saved = ghp_alloc((size_t)ghp_local_saved_bytes(&local, 4), 1);
    args.at.stats = ghp_alloc((size_t)(2 * local.c), sizeof(double));
    args.at.labels = ghp_alloc((size_t)local.n, sizeof(int32_t));
    if (pass->of->training && ghp_local_has_pass(&local, GHP_PASS_STATS))
        run_pass(pass->backend, &local, GHP_PASS_STATS, &args);
    run_pass(pass->backend, &local, GHP_PASS_FORWARD, &args);
    for (int k = 0; k < GHP_MAX_PARAMS; k++)
        free(args.at.w[k]);
    for (int k = 0; k < GHP_MAX_STATES; k++)
        free(args.at.state[k]);
    free(args.at.saved);
    free(args.at.stats);
    free((void *)(uintptr_t)args.at.labels);
}

float *onnx_pass_run(const struct onnx_pass *of)
{
    const struct ghp_model *model = &of->import->model;
    struct pass pass = {.of = of};
    int last = of->import->output.layer;
    float *out;

    CHECK_STATUS(
        ops->open(&(struct ghp_backend_config){.element_bytes = 4, .threads = 1}, &pass.backend),
        GHP_OK);
    pass.y = ghp_alloc((size_t)model->n_layers, sizeof *pass.y);
    for (int i = 0; i < model->n_layers; i++)
        pass.y[i] = ghp_alloc((size_t)(of->batch * ghp_shape_elements(model->layers[i].out)),
                              sizeof(float));
    load(&pass);
    for (int i = 1; i < model->n_layers; i++)
        run_layer(&pass, i);
    out = pass.y[last];
    for (int i = 0; i < model->n_layers; i++)
        if (i != last) free(pass.y[i]);
    free(pass.y);
    ops->close(pass.backend);
    return out;
}
