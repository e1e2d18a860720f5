/* onnx/huggingface/adapter_read.c - see adapter.h. */
#include "core/base/json.h"
#include "core/base/log.h"
#include "onnx/huggingface/adapter.h"
#include "onnx/huggingface/family.h"
#include "onnx/huggingface/huggingface.h"
#include "onnx/huggingface/place.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void config_path(const char *folder, char path[PATH_MAX + 32])
{
    snprintf(path, PATH_MAX + 32, "%s/adapter_config.json", folder);
}

bool ghp_hf_is_adapter(const char *path)
{
    char config[PATH_MAX + 32];
    struct ghp_hf_place place;

    ghp_hf_place_find(path, &place); /* which has no config.json */
    config_path(place.path, config);
    return place.path[0] != '\0' && access(config, F_OK) == 0;
}

/* Keys that change what is computed, and ask for nothing if they are false or empty. */
static enum ghp_status check_keys(const char *path, const json_t *root)
{
    static const char *const keys[] = {
        "use_dora",  "use_rslora",      "rank_pattern",           "alpha_pattern",
        "lora_bias", "modules_to_save", "trainable_token_indices"};
    const char *type = json_string_value(json_object_get(root, "peft_type"));
    const char *bias = json_string_value(json_object_get(root, "bias"));

    if (type == NULL || strcmp(type, "LORA") != 0)
        return GHP_FAIL(GHP_ERR_INPUT, "'%s' is of peft_type '%s'; give one of LORA", path,
                        type != NULL ? type : "");
    if (bias != NULL && strcmp(bias, "none") != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has trained biases ('%s'); merge the adapter with PEFT, and give "
                        "the network's folder",
                        path, bias);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(root, keys[i]);

        if (value == NULL || json_is_null(value) || json_is_false(value)) continue;
        if (!json_is_true(value) && json_object_size(value) + json_array_size(value) == 0) continue;
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' has '%s', which ghp does not train with; merge the adapter with "
                        "PEFT, and give the network's folder",
                        path, keys[i]);
    }
    if (json_number_value(json_object_get(root, "lora_dropout")) > 0)
        ghp_warn("%s: ghp trains without its lora_dropout", path);
    return GHP_OK;
}

static enum ghp_status read_config(struct ghp_hf_adapter *a, int64_t positions)
{
    char path[PATH_MAX + 32], end[32] = "";
    const char *base;
    struct ghp_json doc;
    const json_t *root;
    enum ghp_status status;

    config_path(a->folder, path);
    GHP_TRY(ghp_json_load(path, NULL, &doc));
    root = ghp_json_root(&doc).value;
    a->rank = json_integer_value(json_object_get(root, "r"));
    a->alpha = json_number_value(json_object_get(root, "lora_alpha"));
    base = json_string_value(json_object_get(root, "base_model_name_or_path"));
    if (positions > 0) snprintf(end, sizeof end, "@%lld", (long long)positions);
    snprintf(a->base, sizeof a->base, "%.*s%s", PATH_MAX - 40, base != NULL ? base : "", end);
    status = check_keys(path, root);
    if (status == GHP_OK && !ghp_hf_is_folder(a->base))
        status =
            GHP_FAIL(GHP_ERR_INPUT,
                     "'%s' has base_model_name_or_path '%s', which is not a folder of a network; "
                     "write the folder's path there",
                     path, base != NULL ? base : "");
    ghp_json_release(&doc);
    return status;
}

enum ghp_status ghp_hf_adapter_open(const char *path, struct ghp_hf_adapter *a)
{
    struct ghp_hf_place place;
    char tensors[PATH_MAX + 32];
    enum ghp_status status;

    *a = (struct ghp_hf_adapter){0};
    ghp_hf_place_find(path, &place);
    snprintf(a->folder, sizeof a->folder, "%s", place.path);
    snprintf(tensors, sizeof tensors, "%s/adapter_model.safetensors", a->folder);
    status = read_config(a, place.positions);
    if (status == GHP_OK) status = ghp_safetensors_open(tensors, &a->file);
    if (status == GHP_OK) {
        a->params = ghp_alloc((size_t)ghp_safetensors_count(a->file) + 1, sizeof *a->params);
        if (a->params == NULL) status = GHP_NO_MEMORY();
    }
    if (status != GHP_OK) ghp_hf_adapter_release(a);
    return status;
}

void ghp_hf_adapter_release(struct ghp_hf_adapter *a)
{
    ghp_safetensors_close(a->file);
    free(a->params);
    *a = (struct ghp_hf_adapter){0};
}

/* The parameter whose weight the module "a.b" of the file has alone, or NULL. */
static const char *find_weight(const struct ghp_hf_network *network, const char *module, size_t n)
{
    for (int i = 0; i < network->n_tensors; i++) {
        const struct ghp_hf_tensor *t = &network->tensors[i];

        if (t->n_parts == 1 && t->n_dims == 2 && strncmp(t->name, module, n) == 0 &&
            strcmp(t->name + n, ".weight") == 0)
            return t->parts[0].param;
    }
    return NULL;
}

enum ghp_status ghp_hf_adapter_name(struct ghp_hf_adapter *a, const struct ghp_hf_network *network,
                                    enum ghp_hf_family family)
{
    const char *prefix = ghp_hf_prefix(family);

    for (int i = 0; i < ghp_safetensors_count(a->file); i++) {
        const char *name = ghp_safetensors_item(a->file, i)->name, *module = name, *part, *param;

        if (strncmp(module, GHP_HF_WRAPPER, strlen(GHP_HF_WRAPPER)) == 0)
            module += strlen(GHP_HF_WRAPPER);
        if (strncmp(module, prefix, strlen(prefix)) == 0) module += strlen(prefix);
        part = strstr(module, ".lora_");
        param = part != NULL ? find_weight(network, module, (size_t)(part - module)) : NULL;
        if (param == NULL)
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "'%s': tensor '%s' is not of a linear layer that is a matrix of its own "
                "in '%s'; merge the adapter with PEFT, and give the network's folder",
                a->folder, name, a->base);
        snprintf(a->params[i], sizeof a->params[i], "%.*s%s",
                 (int)(strlen(param) - strlen(".weight")), param, part);
    }
    return GHP_OK;
}
