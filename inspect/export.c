/* inspect/export.c - a model, or the model of a plan, as an ONNX file or a folder of transformers, with the
 * weights of a checkpoint. */
#include "inspect/inspect.h"

#include "core/base/log.h"
#include "core/model/orientation.h"
#include "onnx/huggingface/huggingface.h"
#include "onnx/network.h"
#include "onnx/onnx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct weights { /* of a checkpoint */
    struct ghp_safetensors *file;
    bool oriented; /* as their module has them (model/orientation.h) */
};

/* Opens the checkpoint; the caller closes it after GHP_OK. */
static enum ghp_status open_weights(const char *checkpoint, const struct ghp_model *model,
                                    struct weights *weights)
{
    enum ghp_status status;

    GHP_TRY(ghp_safetensors_open(checkpoint, &weights->file));
    status = ghp_file_orientation(checkpoint, weights->file, model, &weights->oriented);
    if (status != GHP_OK) ghp_safetensors_close(weights->file);
    return status;
}

static enum ghp_status read_weight(void *context, const struct ghp_param *param, float *values)
{
    const struct weights *weights = context;
    const struct ghp_safetensor *tensor = ghp_safetensors_find(weights->file, param->name);
    int64_t elements = 1;

    if (tensor == NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the checkpoint has no tensor '%s'; give one of this network", param->name);
    for (int i = 0; i < tensor->n_dims; i++)
        elements *= tensor->dims[i];
    if (elements != param->elements)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has %" PRId64 " values in the checkpoint and %" PRId64
                        " in the network; give a checkpoint of this network",
                        param->name, elements, param->elements);
    GHP_TRY(ghp_safetensors_read(weights->file, tensor, (int)sizeof *values, values));
    return weights->oriented ? ghp_param_from_file(param, (int)sizeof *values, values) : GHP_OK;
}

/* What was exported where, or the failure, which names the checkpoint if it is about that. */
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
    struct weights of_file = {0};
    struct ghp_onnx_weights weights = {.context = &of_file, .read = read_weight};
    enum ghp_status status = GHP_OK;

    if (checkpoint != NULL) GHP_TRY(open_weights(checkpoint, model, &of_file));
    status = ghp_onnx_save(path, model, checkpoint != NULL ? &weights : NULL);
    ghp_safetensors_close(of_file.file);
    return end(report, status, model, path, checkpoint);
}

enum ghp_status ghp_inspect_export_hf(struct ghp_display *report, const struct ghp_model *model,
                                      const char *origin, const struct ghp_inspect_hf *hf)
{
    struct weights of_file = {0};
    struct ghp_hf_source source = {
        .context = &of_file, .read = read_weight, .max_shard = hf->max_shard};
    enum ghp_status status;

    GHP_TRY(open_weights(hf->checkpoint, model, &of_file));
    status = hf->folder != NULL ? ghp_hf_save(hf->folder, model, origin, &source)
                                : ghp_hf_save_adapter(hf->adapter, model, origin, &source);
    ghp_safetensors_close(of_file.file);
    return end(report, status, model, hf->folder != NULL ? hf->folder : hf->adapter,
               hf->checkpoint);
}

/* What the plan was made of, if that is a folder or a known name; the caller frees it. */
static enum ghp_status find_origin(const struct ghp_plan *plan, const char *plan_path,
                                   char **origin)
{
    enum ghp_status status = ghp_network_find(plan->model_path, plan_path, origin);

    if (status == GHP_ERR_IO)
        ghp_warn("'%s', the network of the plan, is neither there nor next to the plan: if it is a "
                 "folder of transformers, the new one has none of its token ids, generation "
                 "config, tokenizer and context; put it there and export again",
                 plan->model_path);
    else if (status != GHP_OK)
        return status;
    if (*origin == NULL && plan->model_path != NULL && ghp_hf_names(plan->model_path)) {
        *origin = strdup(plan->model_path);
        return *origin != NULL ? GHP_OK : GHP_NO_MEMORY();
    }
    if (*origin == NULL || ghp_hf_names(*origin)) return GHP_OK;
    free(*origin);
    *origin = NULL;
    return GHP_OK;
}

enum ghp_status ghp_inspect_export_hf_plan(struct ghp_display *report, const struct ghp_plan *plan,
                                           const char *plan_path, const struct ghp_inspect_hf *hf)
{
    char *origin = NULL;
    enum ghp_status status = find_origin(plan, plan_path, &origin);

    if (status == GHP_OK) status = ghp_inspect_export_hf(report, &plan->model, origin, hf);
    free(origin);
    return status;
}
