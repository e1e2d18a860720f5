/* core/onnx.c - ONNX files as models, and their tensors under ghp's names. */
#include "core/onnx.h"

#include "core/onnx_import.h"

#include <stdlib.h>
#include <string.h>

bool ghp_onnx_names(const char *path)
{
    size_t n = strlen(path);

    return n > 5 && strcmp(path + n - 5, ".onnx") == 0;
}

/* The text is what the plan embeds and hashes; reading it back checks it like any other description. */
static enum ghp_status make_model(const struct ghp_onnx_import *import, struct ghp_model *model)
{
    char *text = NULL;
    enum ghp_status status;

    GHP_TRY(ghp_model_write(&import->model, &text));
    status = ghp_model_parse(text, import->file->path, model);
    free(text);
    return status;
}

enum ghp_status ghp_onnx_load(const char *path, struct ghp_model *model)
{
    const struct ghp_onnx_options options = {0};
    struct ghp_onnx_import import = {0};
    struct ghp_onnx_file file;
    enum ghp_status status;

    *model = (struct ghp_model){0};
    GHP_TRY(ghp_onnx_file_open(path, &file));
    status = ghp_onnx_import(&file, &options, &import);
    if (status == GHP_OK) status = make_model(&import, model);
    ghp_onnx_import_release(&import);
    ghp_onnx_file_close(&file);
    return status;
}

static enum ghp_status hand_over(const struct ghp_onnx_import *import, int i,
                                 ghp_onnx_weight_fn *take, void *context)
{
    const struct ghp_onnx_source *source = &import->sources[i];
    const struct ghp_layer *layer = &import->model.layers[source->layer];
    const struct ghp_param *param = source->slot < GHP_MAX_PARAMS
                                        ? &layer->params[source->slot]
                                        : &layer->states[source->slot - GHP_MAX_PARAMS];
    struct ghp_onnx_weight weight = {
        .name = param->name, .n_dims = param->n_dims, .elements = param->elements};
    float *values = ghp_alloc((size_t)param->elements, sizeof *values);
    enum ghp_status status;

    if (values == NULL) return GHP_NO_MEMORY();
    memcpy(weight.dims, param->dims, sizeof weight.dims);
    weight.values = values;
    status = ghp_onnx_floats(&source->array, source->scale, values);
    if (status == GHP_OK) status = take(context, &weight);
    free(values);
    return status;
}

enum ghp_status ghp_onnx_each_tensor(const char *path, ghp_onnx_weight_fn *take, void *context)
{
    const struct ghp_onnx_options options = {0};
    struct ghp_onnx_import import = {0};
    struct ghp_onnx_file file;
    enum ghp_status status;

    GHP_TRY(ghp_onnx_file_open(path, &file));
    status = ghp_onnx_import(&file, &options, &import);
    for (int i = 0; status == GHP_OK && i < import.n_sources; ++i)
        status = hand_over(&import, i, take, context);
    ghp_onnx_import_release(&import);
    ghp_onnx_file_close(&file);
    return status;
}
