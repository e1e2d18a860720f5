/* onnx/huggingface/recognise.c - see recognise.h. */
#include "onnx/huggingface/recognise.h"

#include "core/base/json_lines.h"
#include "core/base/log.h"
#include "core/model/lora.h"
#include "core/model/model_private.h"
#include "onnx/huggingface/family.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
        .attention_dropout = heads->heads.dropout,
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
static enum ghp_status compare(const struct ghp_model *model, struct ghp_hf_recognised *r,
                               bool *same)
{
    struct ghp_hf_named named = {.name = model->name, .positions = positions_of(model, &r->config)};

    GHP_TRY(ghp_hf_network_make(&r->config, &named, &r->network));
    GHP_TRY(is_same(&r->network, model, same));
    if (!*same) ghp_hf_network_release(&r->network);
    return GHP_OK;
}

static enum ghp_status recognise(const struct ghp_model *model, struct ghp_hf_recognised *r)
{
    bool same = false;

    r->config = guess(model);
    if (r->config.heads > 0 && r->config.blocks > 0) GHP_TRY(compare(model, r, &same));
    if (same) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the network '%s' is neither a gpt2 nor a llama as transformers has "
                    "them; if it came from a folder, put that back where it was planned, else "
                    "write it as ONNX",
                    model->name);
}

/* ---- other files of the folder that it came from ---- */

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

/* Opens the folder, if it is this network's: then `same`, the config is the folder's, whose context may be longer than
 * a sample. If each position has weights, it is only if the folder has those. */
static enum ghp_status open_origin(const char *folder, const char *path,
                                   const struct ghp_model *model, struct ghp_hf_recognised *r,
                                   bool *same)
{
    int64_t positions;

    GHP_TRY(ghp_hf_origin_open(path, &r->origin));
    GHP_TRY(check_apart(folder, &r->origin));
    r->config = r->origin.config;
    positions = positions_of(model, &r->config);
    if (ghp_hf_has_position_table(r->config.family) && !ghp_hf_origin_has_weights(&r->origin))
        r->config.context = positions;
    if (positions <= r->config.context) GHP_TRY(compare(model, r, same));
    if (*same) return GHP_OK;
    ghp_warn("'%s' is another network than '%s' now: the new folder has none of its token ids, "
             "generation config and tokenizer; put the network back and export again",
             path, model->name);
    ghp_hf_origin_release(&r->origin);
    return GHP_OK;
}

enum ghp_status ghp_hf_recognise(const char *folder, const struct ghp_model *model,
                                 const char *origin, struct ghp_hf_recognised *r)
{
    struct ghp_model base;
    enum ghp_status status = GHP_OK;
    bool same = false;

    memset(r, 0, sizeof *r);
    GHP_TRY(ghp_model_without_lora(model, &base));
    if (origin != NULL) status = open_origin(folder, origin, &base, r, &same);
    if (status == GHP_OK && !same) status = recognise(&base, r);
    ghp_model_release(&base);
    if (status != GHP_OK) ghp_hf_recognised_release(r);
    return status;
}

void ghp_hf_recognised_release(struct ghp_hf_recognised *r)
{
    ghp_hf_origin_release(&r->origin);
    ghp_hf_network_release(&r->network);
}
