/* onnx/huggingface/save.c - a network as a folder: its config, and its weights joined again, with what was trained next
 * to them added. */
#include "core/model/lora.h"
#include "onnx/huggingface/family.h"
#include "onnx/huggingface/huggingface.h"
#include "onnx/huggingface/recognise.h"
#include "onnx/huggingface/shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct saving {
    const struct ghp_model *model;
    const struct ghp_hf_source *source;
    const struct ghp_hf_network *network;
    const struct ghp_hf_origin *origin; /* zeroed: none */
};

/* ---- writing ---- */

static const struct ghp_param *param_of(const struct ghp_model *model, const char *name,
                                        const struct ghp_layer **layer)
{
    for (int i = 0; i < model->n_layers; i++)
        for (int j = 0; j < model->layers[i].n_params; j++)
            if (strcmp(model->layers[i].params[j].name, name) == 0) {
                *layer = &model->layers[i];
                return &model->layers[i].params[j];
            }
    return NULL;
}

/* Adds scale B A to a weight, [rows][in]. */
static enum ghp_status add_product(const struct saving *s, const struct ghp_lora_parts *parts,
                                   int64_t in, float *weight)
{
    const struct ghp_param *a = &parts->a->params[0], *b = &parts->b->params[0];
    int64_t rank = a->dims[0], rows = b->dims[0];
    float *left = ghp_alloc((size_t)b->elements, sizeof *left),
          *right = ghp_alloc((size_t)a->elements, sizeof *right);
    enum ghp_status status = left != NULL && right != NULL ? GHP_OK : GHP_NO_MEMORY();

    if (status == GHP_OK) status = s->source->read(s->source->context, a, right);
    if (status == GHP_OK) status = s->source->read(s->source->context, b, left);
    for (int64_t i = 0; i < rows * in && status == GHP_OK; i++) {
        double sum = 0;

        for (int64_t k = 0; k < rank; k++)
            sum += (double)left[i / in * rank + k] * (double)right[k * in + i % in];
        weight[i] = (float)((double)weight[i] + parts->scale * sum);
    }
    free(left);
    free(right);
    return status;
}

static enum ghp_status read_part(const struct saving *s, const char *name, int64_t in, float *part)
{
    const struct ghp_layer *layer = NULL;
    const struct ghp_param *param = param_of(s->model, name, &layer);
    struct ghp_lora_parts parts;

    GHP_ASSERT(param != NULL);
    GHP_TRY(s->source->read(s->source->context, param, part));
    if (param->n_dims != 2 || !ghp_lora_of(s->model, layer, &parts)) return GHP_OK;
    return add_product(s, &parts, in, part);
}

/* The tensor's values in the order of the file: [out][in], or [in][out].
 *
 * part   room for its largest part */
static enum ghp_status join(const struct saving *s, const struct ghp_hf_tensor *t, float *part,
                            float *whole)
{
    int64_t in = t->n_dims == 2 ? t->dims[!t->transposed] : 1, out = t->dims[t->transposed];

    for (int i = 0; i < t->n_parts; i++) {
        int64_t rows = t->parts[i].rows;

        GHP_TRY(read_part(s, t->parts[i].param, in, part));
        for (int64_t r = 0; r < rows; r++) {
            int64_t row = ghp_hf_row_at(&t->parts[i], r);

            for (int64_t c = 0; c < in; c++)
                whole[t->transposed ? c * out + row : row * in + c] = part[r * in + c];
        }
    }
    return GHP_OK;
}

static int64_t elements_of(const struct ghp_hf_tensor *t)
{
    return t->dims[0] * (t->n_dims == 2 ? t->dims[1] : 1);
}

/* Positions that no sample had are those of the folder that the network came from, or zeros. */
static enum ghp_status fill(const struct saving *s, int tensor, float *part, float *whole)
{
    const struct ghp_hf_tensor *t = &s->network->tensors[tensor];
    int64_t rows = 0;

    for (int i = 0; i < t->n_parts; i++)
        rows += t->parts[i].rows;
    if (rows < t->dims[t->transposed] && ghp_hf_origin_has_weights(s->origin))
        GHP_TRY(ghp_hf_origin_read(s->origin, tensor, whole));
    else
        memset(whole, 0, (size_t)elements_of(t) * sizeof *whole);
    return join(s, t, part, whole);
}

struct joining { /* what the next tensor is made of */
    const struct saving *saving;
    float *part, *whole; /* room for the largest one */
};

static enum ghp_status read_tensor(void *context, int i, const float **values)
{
    const struct joining *j = context;

    *values = j->whole;
    return fill(j->saving, i, j->part, j->whole);
}

static enum ghp_status write_tensors(const char *folder, const struct saving *s,
                                     struct ghp_safetensor *entries)
{
    struct joining joining = {.saving = s};
    struct ghp_hf_shards shards = {.n = s->network->n_tensors,
                                   .tensors = entries,
                                   .max_bytes = s->source->max_shard,
                                   .read = read_tensor,
                                   .context = &joining};
    enum ghp_status status = GHP_OK;
    int64_t most = 1;

    for (int i = 0; i < s->network->n_tensors; i++)
        if (elements_of(&s->network->tensors[i]) > most)
            most = elements_of(&s->network->tensors[i]);
    joining.part = ghp_alloc((size_t)most, sizeof *joining.part);
    joining.whole = ghp_alloc((size_t)most, sizeof *joining.whole);
    if (joining.part == NULL || joining.whole == NULL) status = GHP_NO_MEMORY();
    if (status == GHP_OK) status = ghp_hf_shards_write(folder, &shards);
    free(joining.part);
    free(joining.whole);
    return status;
}

static enum ghp_status save_weights(const char *folder, const struct saving *s,
                                    enum ghp_hf_family family)
{
    int n = s->network->n_tensors;
    struct ghp_safetensor *entries = ghp_alloc((size_t)n, sizeof *entries);
    char(*names)[2 * GHP_HF_NAME] = ghp_alloc((size_t)n, sizeof *names);
    enum ghp_status status = entries != NULL && names != NULL ? GHP_OK : GHP_NO_MEMORY();

    for (int i = 0; i < n && status == GHP_OK; i++) {
        const struct ghp_hf_tensor *t = &s->network->tensors[i];

        snprintf(names[i], sizeof names[i], "%s%s", t->prefixed ? ghp_hf_prefix(family) : "",
                 t->name);
        entries[i] = (struct ghp_safetensor){.name = names[i], .element_bytes = (int)sizeof(float)};
        entries[i].n_dims = ghp_hf_tensor_shape(t, entries[i].dims);
    }
    if (status == GHP_OK) status = write_tensors(folder, s, entries);
    free(entries);
    free(names);
    return status;
}

/* Without the folder that it came from, nobody knows the ids of tokens: transformers' own would be another
 * network's. */
static enum ghp_status save_config(const char *path, const struct ghp_hf_config *config,
                                   const json_t *origin, bool named)
{
    json_t *root = ghp_hf_config_json(config, origin);
    bool failed = root == NULL;
    enum ghp_status status;

    if (!failed && !named) ghp_json_put(root, "bos_token_id", json_null(), &failed);
    if (!failed && !named) ghp_json_put(root, "eos_token_id", json_null(), &failed);
    status = failed ? GHP_NO_MEMORY() : ghp_json_save(path, root);
    json_decref(root);
    return status;
}

static enum ghp_status save(const char *folder, const struct saving *s,
                            const struct ghp_hf_config *config)
{
    char path[PATH_MAX];

    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return GHP_FAIL(GHP_ERR_IO, "cannot make the folder '%s': %s; choose another place", folder,
                        strerror(errno));
    GHP_TRY(save_weights(folder, s, config->family));
    snprintf(path, sizeof path, "%s/config.json", folder);
    GHP_TRY(save_config(path, config, s->origin->document, s->origin->place.path[0] != '\0'));
    return ghp_hf_origin_copy(s->origin, folder);
}

enum ghp_status ghp_hf_save(const char *folder, const struct ghp_model *model, const char *origin,
                            const struct ghp_hf_source *source)
{
    struct ghp_hf_recognised r;
    struct saving saving = {
        .model = model, .source = source, .network = &r.network, .origin = &r.origin};
    enum ghp_status status;

    GHP_TRY(ghp_hf_recognise(folder, model, origin, &r));
    status = save(folder, &saving, &r.config);
    ghp_hf_recognised_release(&r);
    return status;
}
