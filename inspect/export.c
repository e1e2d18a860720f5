/* inspect/export.c - a model, or the model of a plan, as an ONNX file or a folder of transformers, with the
 * weights of a checkpoint. */
#include "inspect/inspect.h"

#include "onnx/huggingface/huggingface.h"
#include "onnx/onnx.h"
#include "core/model/safetensors.h"

#include <inttypes.h>
#include <string.h>

static enum ghp_status read_weight(void *context, const struct ghp_param *param, float *values)
{
    struct ghp_safetensors *file = context;
    const struct ghp_safetensor *tensor = ghp_safetensors_find(file, param->name);
    int64_t elements = 1;

    if (tensor == NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the checkpoint has no tensor '%s'; give one of this network", param->name);
    for (int i = 0; i < tensor->n_dims; ++i)
        elements *= tensor->dims[i];
    if (elements != param->elements)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has %" PRId64 " values in the checkpoint and %" PRId64
                        " in the network; give a checkpoint of this network",
                        param->name, elements, param->elements);
    return ghp_safetensors_read(file, tensor, (int)sizeof *values, values);
}

/* What was exported where, or the failure, which names the checkpoint where it is about that. */
static enum ghp_status end(struct ghp_display *report, enum ghp_status status,
                           const struct ghp_model *model, const char *path, const char *checkpoint)
{
    if (status != GHP_OK && checkpoint != NULL &&
        strstr(ghp_status_message(), "checkpoint") != NULL)
        ghp_status_prefix("%s", checkpoint);
    if (status != GHP_OK) return status;
    ghp_display_text(report, "exported", path);
    ghp_display_text(report, "name", model->name);
    ghp_display_line(report, "exported %s to %s, %s", model->name, path,
                     checkpoint != NULL ? "with the checkpoint's weights" : "without weights");
    return GHP_OK;
}

enum ghp_status ghp_inspect_export(struct ghp_display *report, const struct ghp_model *model,
                                   const char *path, const char *checkpoint)
{
    struct ghp_safetensors *file = NULL;
    struct ghp_onnx_weights weights = {.read = read_weight};
    enum ghp_status status = GHP_OK;

    if (checkpoint != NULL) GHP_TRY(ghp_safetensors_open(checkpoint, &file));
    weights.context = file;
    status = ghp_onnx_save(path, model, checkpoint != NULL ? &weights : NULL);
    ghp_safetensors_close(file);
    return end(report, status, model, path, checkpoint);
}

enum ghp_status ghp_inspect_export_hf(struct ghp_display *report, const struct ghp_model *model,
                                      const char *folder, const char *checkpoint)
{
    struct ghp_safetensors *file = NULL;
    struct ghp_hf_source source = {.read = read_weight};
    enum ghp_status status;

    GHP_TRY(ghp_safetensors_open(checkpoint, &file));
    source.context = file;
    status = ghp_hf_save(folder, model, &source);
    ghp_safetensors_close(file);
    return end(report, status, model, folder, checkpoint);
}
