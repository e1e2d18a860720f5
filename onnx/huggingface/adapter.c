/* onnx/huggingface/adapter.c - the matrices of core/model/lora.h as the folder that the PEFT library reads:
 * adapter_config.json and adapter_model.safetensors. */
#include "core/model/lora.h"
#include "core/model/safetensors.h"
#include "onnx/huggingface/adapter.h"
#include "onnx/huggingface/family.h"
#include "onnx/huggingface/huggingface.h"
#include "onnx/huggingface/recognise.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES = 2 * GHP_HF_NAME };

struct item { /* a matrix in the file */
    char name[NAME_BYTES];
    const struct ghp_param *param;
};

struct adapter {
    const struct ghp_model *model;
    const struct ghp_hf_recognised *network; /* NULL: of no family; layers are called as modules */
    struct item *items;
    int n;
    int64_t rank;
    double scale;
    json_t *modules; /* those that are adapted */
    bool failed;
};

/* The module that a layer is in transformers' network, with the family's prefix. */
static enum ghp_status module_of(const struct adapter *a, const struct ghp_layer *layer,
                                 char name[NAME_BYTES])
{
    const struct ghp_hf_network *network = a->network != NULL ? &a->network->network : NULL;

    snprintf(name, NAME_BYTES, "%s", layer->name);
    for (int i = 0; network != NULL && i < network->n_tensors; i++) {
        const struct ghp_hf_tensor *t = &network->tensors[i];
        size_t n = strlen(t->name) - strlen(".weight");

        if (strcmp(t->parts[0].param, layer->params[0].name) == 0 && t->n_parts == 1) {
            snprintf(name, NAME_BYTES, "%s%.*s",
                     t->prefixed ? ghp_hf_prefix(a->network->config.family) : "", (int)n, t->name);
            return GHP_OK;
        }
    }
    if (network == NULL) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' is a part of a larger matrix in transformers' network, which PEFT "
                    "adapts as one; write the whole network with --export-hf",
                    layer->name);
}

static void add_item(struct adapter *a, const char *module, const char *part,
                     const struct ghp_layer *layer)
{
    struct item *item = &a->items[a->n++];

    item->param = &layer->params[0];
    snprintf(item->name, sizeof item->name, GHP_HF_WRAPPER "%.96s.%s.weight", module, part);
}

/* Refuses a network of which more is trained. */
static enum ghp_status check_rest(const struct ghp_model *model)
{
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[i];

        if (layer->n_params > 0 && !layer->fixed && !ghp_lora_has_tensor(layer->params[0].name))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "'%s' is trained too, and --export-peft writes lora_A and lora_B "
                            "alone; write the whole network with --export-hf",
                            layer->params[0].name);
    }
    return GHP_OK;
}

static enum ghp_status list_items(struct adapter *a)
{
    char module[NAME_BYTES];

    for (int i = 0; i < a->model->n_layers; i++) {
        const struct ghp_layer *layer = &a->model->layers[i];
        struct ghp_lora_parts parts;

        if (!ghp_lora_of(a->model, layer, &parts)) continue;
        GHP_TRY(module_of(a, layer, module));
        add_item(a, module, "lora_A", parts.a);
        add_item(a, module, "lora_B", parts.b);
        ghp_json_append(a->modules, json_string(module), &a->failed);
        a->rank = parts.a->out.c;
        a->scale = parts.scale;
    }
    if (a->n > 0) return a->failed ? GHP_NO_MEMORY() : check_rest(a->model);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the network '%s' has no low-rank matrices; plan it with --lora, or write it "
                    "with --export-hf",
                    a->model->name);
}

static enum ghp_status append_all(const struct adapter *a, const struct ghp_hf_source *source,
                                  struct ghp_safetensors_writer *writer)
{
    for (int i = 0; i < a->n; i++) {
        const struct ghp_param *param = a->items[i].param;
        float *values = ghp_alloc((size_t)param->elements, sizeof *values);
        enum ghp_status status = values != NULL ? GHP_OK : GHP_NO_MEMORY();

        if (status == GHP_OK) status = source->read(source->context, param, values);
        if (status == GHP_OK)
            status =
                ghp_safetensors_append(writer, values, param->elements * (int64_t)sizeof *values);
        free(values);
        GHP_TRY(status);
    }
    return GHP_OK;
}

static enum ghp_status save_tensors(const char *folder, const struct adapter *a,
                                    const struct ghp_hf_source *source)
{
    static const struct ghp_metadatum format = {"format", "pt"};
    struct ghp_safetensor *entries = ghp_alloc((size_t)a->n, sizeof *entries);
    struct ghp_safetensors_list list = {
        .n = a->n, .tensors = entries, .n_metadata = 1, .metadata = &format};
    struct ghp_safetensors_writer *writer = NULL;
    char path[PATH_MAX];
    enum ghp_status status;

    if (entries == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < a->n; i++) {
        entries[i] = (struct ghp_safetensor){.name = a->items[i].name,
                                             .element_bytes = (int)sizeof(float),
                                             .n_dims = a->items[i].param->n_dims};
        memcpy(entries[i].dims, a->items[i].param->dims, sizeof entries[i].dims);
    }
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    status = ghp_safetensors_begin(path, &list, &writer);
    if (status == GHP_OK) status = append_all(a, source, writer);
    if (status == GHP_OK)
        status = ghp_safetensors_finish(writer);
    else
        ghp_safetensors_abandon(writer);
    free(entries);
    return status;
}

/* PEFT declares a whole number, and takes any. */
static json_t *alpha_json(double alpha)
{
    double whole = round(alpha);

    return fabs(alpha - whole) <= 1e-9 * alpha ? json_integer((json_int_t)whole) : json_real(alpha);
}

static enum ghp_status save_config(const char *folder, struct adapter *a)
{
    const struct ghp_hf_recognised *r = a->network;
    bool whole = r != NULL && r->origin.document != NULL;
    bool text = r != NULL && r->config.channels == 0;
    char path[PATH_MAX];
    json_t *root = json_pack(
        "{s:s, s:o, s:o, s:I, s:o, s:O, s:s, s:f, s:b, s:b}", "peft_type", "LORA", "task_type",
        text ? json_string("CAUSAL_LM") : json_null(), "base_model_name_or_path",
        whole ? json_string(r->origin.place.path) : json_null(), "r", (json_int_t)a->rank,
        "lora_alpha", alpha_json(a->scale * (double)a->rank), "target_modules", a->modules, "bias",
        "none", "lora_dropout", 0.0, "fan_in_fan_out", 0, "inference_mode", 1);
    enum ghp_status status;

    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    status = root != NULL ? ghp_json_save(path, root) : GHP_NO_MEMORY();
    json_decref(root);
    return status;
}

static enum ghp_status save(const char *folder, struct adapter *a,
                            const struct ghp_hf_source *source)
{
    enum ghp_status status;

    a->items = ghp_alloc(2 * (size_t)a->model->n_layers, sizeof *a->items);
    a->modules = json_array();
    status = a->items != NULL ? list_items(a) : GHP_NO_MEMORY();
    if (status == GHP_OK && mkdir(folder, 0777) != 0 && errno != EEXIST)
        status = GHP_FAIL(GHP_ERR_IO, "cannot make the folder '%s': %s; choose another place",
                          folder, strerror(errno));
    if (status == GHP_OK) status = save_tensors(folder, a, source);
    if (status == GHP_OK) status = save_config(folder, a);
    json_decref(a->modules);
    free(a->items);
    return status;
}

enum ghp_status ghp_hf_save_adapter(const char *folder, const struct ghp_model *model,
                                    const char *origin, const struct ghp_hf_source *source)
{
    struct ghp_hf_recognised r;
    struct adapter adapter = {.model = model, .network = &r};
    enum ghp_status status = ghp_hf_recognise(folder, model, origin, &r);

    if (status == GHP_ERR_INPUT) adapter.network = NULL; /* a module of PyTorch's */
    if (status == GHP_OK || status == GHP_ERR_INPUT) status = save(folder, &adapter, source);
    ghp_hf_recognised_release(&r);
    return status;
}
