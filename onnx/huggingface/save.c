/* onnx/huggingface/save.c - a network as a folder: its config read off its layers, and its weights joined again.
 *
 * Whether a network is of a family is not asked layer by layer: the config that its sizes suggest is made into a
 * network again, and the two must be the same. */
#include "core/base/json_lines.h"
#include "core/base/log.h"
#include "core/model/model_private.h"
#include "onnx/huggingface/family.h"
#include "onnx/huggingface/huggingface.h"
#include "onnx/huggingface/origin.h"
#include "onnx/huggingface/shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct saving {
    const struct ghp_model *model;
    const struct ghp_hf_source *source;
    const struct ghp_hf_network *network;
    struct ghp_hf_origin *origin; /* zeroed: none */
};

/* ---- which network it is ---- */

/* A layer of that name, or one of no sizes. */
static const struct ghp_layer *layer_of(const struct ghp_model *model, const char *name)
{
    static const struct ghp_layer none;
    int i = ghp_model_find(model, name);

    return i >= 0 ? &model->layers[i] : &none;
}

static int64_t count_blocks(const struct ghp_model *model, const char *format)
{
    char name[GHP_HF_NAME];
    int64_t n = 0;

    do
        snprintf(name, sizeof name, format, (long long)n++);
    while (ghp_model_find(model, name) >= 0);
    return n - 1;
}

/* What the layers' sizes suggest; nonsense for a network of no family. */
static struct ghp_hf_config guess(const struct ghp_model *model)
{
    bool gpt2 = ghp_model_find(model, "wpe") >= 0;
    const struct ghp_layer *embedding = layer_of(model, gpt2 ? "wte" : "embed_tokens"),
                           *heads = layer_of(model,
                                             gpt2 ? "h.0.attn.heads" : "layers.0.self_attn.heads"),
                           *inner = layer_of(model, gpt2 ? "h.0.mlp.c_fc" : "layers.0.mlp.up_proj"),
                           *norm = layer_of(model, gpt2 ? "ln_f" : "norm");
    struct ghp_hf_config config = {
        .family = gpt2 ? GHP_HF_GPT2 : GHP_HF_LLAMA,
        .vocabulary = layer_of(model, "lm_head")->out.c,
        .context = gpt2 ? layer_of(model, "wpe")->params[0].dims[0] : model->layers[0].out.h,
        .width = embedding->out.c,
        .inner = inner->out.c,
        .blocks = count_blocks(model, gpt2 ? "h.%lld.ln_1" : "layers.%lld.input_layernorm"),
        .heads = heads->heads.n,
        .kv_heads = heads->heads.n_kv,
        .epsilon = norm->norm.epsilon,
        .deviation = 0.02, /* of no account: the weights are there */
        .rotary_part = 1,
        .rotary.base = layer_of(model, "layers.0.self_attn.q_rotary")->heads.base,
        .tied = layer_of(model, "lm_head")->tied > 0};

    if (gpt2)
        config.activation = layer_of(model, "h.0.mlp.act")->norm.gelu == GHP_GELU_ERF
                                ? GHP_HF_GELU
                                : GHP_HF_GELU_TANH;

    if (config.heads > 0) config.head_width = heads->out.c / config.heads;
    config.rotary.turned = config.head_width;
    return config;
}

/* Whether the description is the model's, as it would be written, whatever the model says of how files hold it. */
static enum ghp_status is_same(const struct ghp_hf_network *network, const struct ghp_model *model,
                               bool *same)
{
    struct ghp_model other = {0};
    char *text = NULL, *a = NULL, *b = NULL;
    enum ghp_status status;

    *same = false;
    GHP_TRY(ghp_json_compact(network->model, &text));
    status = ghp_model_parse(text, "network", &other);
    free(text);
    if (status == GHP_ERR_NO_MEMORY) return status;
    if (status != GHP_OK) return GHP_OK; /* a nonsense */
    for (int i = 0; i < model->n_layers && i < other.n_layers; i++) {
        other.layers[i].deviation = model->layers[i].deviation;
        other.layers[i].transposed = model->layers[i].transposed; /* older networks do not say */
    }
    status = ghp_model_write(&other, &a);
    if (status == GHP_OK) status = ghp_model_write(model, &b);
    *same = status == GHP_OK && strcmp(a, b) == 0;
    free(a);
    free(b);
    ghp_model_release(&other);
    return status;
}

/* Positions of a sample: of tokens, or of an image's patches. */
static int64_t positions_of(const struct ghp_model *model, const struct ghp_hf_config *config)
{
    return config->channels > 0 ? config->context : model->layers[0].out.h;
}

/* Makes the config's network for samples as the model has them. same: whether it is the model. */
static enum ghp_status compare(const struct ghp_model *model, const struct ghp_hf_config *config,
                               struct ghp_hf_network *network, bool *same)
{
    struct ghp_hf_named named = {.name = model->name, .positions = positions_of(model, config)};

    GHP_TRY(ghp_hf_network_make(config, &named, network));
    GHP_TRY(is_same(network, model, same));
    if (!*same) ghp_hf_network_release(network);
    return GHP_OK;
}

static enum ghp_status recognise(const struct ghp_model *model, struct ghp_hf_config *config,
                                 struct ghp_hf_network *network)
{
    bool same = false;

    *config = guess(model);
    if (config->heads > 0 && config->blocks > 0) GHP_TRY(compare(model, config, network, &same));
    if (same) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the network '%s' is no gpt2 and no llama, layer by layer, as transformers has "
                    "them; if it came from a folder, put that back where it was planned, else "
                    "write it as ONNX",
                    model->name);
}

/* ---- what the folder that it came from has besides ---- */

/* What is written into a folder for good must not be what it was made of. */
static enum ghp_status check_apart(const char *folder, const struct ghp_hf_origin *origin)
{
    struct stat a, b;

    if (stat(folder, &a) != 0 || stat(origin->place.path, &b) != 0) return GHP_OK;
    if (a.st_dev != b.st_dev || a.st_ino != b.st_ino) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "cannot write over '%s', the folder that the network came from; choose another "
                    "folder",
                    folder);
}

/* Opens the folder, if it is this network's: then `same`, the config is the folder's, whose context may be longer than a
 * sample. If each position has weights, it is only if the folder has those. */
static enum ghp_status open_origin(const char *folder, const char *path, struct saving *s,
                                   struct ghp_hf_config *config, struct ghp_hf_network *network,
                                   bool *same)
{
    int64_t positions;

    GHP_TRY(ghp_hf_origin_open(path, s->origin));
    GHP_TRY(check_apart(folder, s->origin));
    *config = s->origin->config;
    positions = positions_of(s->model, config);
    if (ghp_hf_has_position_table(config->family) && !ghp_hf_origin_has_weights(s->origin))
        config->context = positions;
    if (positions <= config->context) GHP_TRY(compare(s->model, config, network, same));
    if (*same) return GHP_OK;
    ghp_warn("'%s' is another network than '%s' now: the new folder has none of its token ids, "
             "generation config and tokenizer; put the network back and export again",
             path, s->model->name);
    ghp_hf_origin_release(s->origin);
    return GHP_OK;
}

/* ---- writing ---- */

static const struct ghp_param *param_of(const struct ghp_model *model, const char *name)
{
    for (int i = 0; i < model->n_layers; i++)
        for (int j = 0; j < model->layers[i].n_params; j++)
            if (strcmp(model->layers[i].params[j].name, name) == 0)
                return &model->layers[i].params[j];
    return NULL;
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
        const struct ghp_param *param = param_of(s->model, t->parts[i].param);

        GHP_ASSERT(param != NULL && param->elements == rows * in);
        GHP_TRY(s->source->read(s->source->context, param, part));
        for (int64_t r = 0; r < rows; r++) {
            int64_t row = ghp_hf_row(&t->parts[i], r);

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

/* Without the folder that it came from, nobody knows the ids of tokens: transformers' own would be another network's. */
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
    struct ghp_hf_network network = {0};
    struct ghp_hf_origin from = {0};
    struct saving saving = {.model = model, .source = source, .network = &network, .origin = &from};
    struct ghp_hf_config config;
    enum ghp_status status = GHP_OK;
    bool same = false;

    if (origin != NULL) status = open_origin(folder, origin, &saving, &config, &network, &same);
    if (status == GHP_OK && !same) status = recognise(model, &config, &network);
    if (status == GHP_OK) status = save(folder, &saving, &config);
    ghp_hf_origin_release(&from);
    ghp_hf_network_release(&network);
    return status;
}
