/* onnx/huggingface/network.c - see network.h. */
#include "onnx/huggingface/network.h"

#include "onnx/huggingface/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct maker {
    const struct ghp_hf_config *config;
    int64_t positions; /* of a sample: rows of the context that it has */
    const struct ghp_hf_tables *family;
    struct ghp_hf_network *network;
    json_t *layers;
    int max_tensors;
    int64_t number;           /* of the block */
    char block[32];           /* what stands in front of names: "", "h.0." */
    char stream[GHP_HF_NAME]; /* the layer that "@" is */
    bool failed;
};

static int64_t size_of(const struct ghp_hf_config *c, enum ghp_hf_size size)
{
    const int64_t sizes[GHP_HF_SIZES] = {[GHP_HF_WIDTH] = c->width,
                                         [GHP_HF_INNER] = c->inner,
                                         [GHP_HF_QUERIES] = c->heads * c->head_width,
                                         [GHP_HF_KEYS] = c->kv_heads * c->head_width,
                                         [GHP_HF_HEAD] = c->head_width,
                                         [GHP_HF_VOCABULARY] = c->vocabulary,
                                         [GHP_HF_LABELS] = c->labels,
                                         [GHP_HF_TYPES] = c->types,
                                         [GHP_HF_CONTEXT] = c->context,
                                         [GHP_HF_PATCH] = c->channels * c->patch * c->patch,
                                         [GHP_HF_ONE] = 1};

    return sizes[size];
}

static bool is(const struct ghp_hf_row *row, const char *op)
{
    return strcmp(row->op, op) == 0;
}

static bool is_norm(const struct ghp_hf_row *row)
{
    return row->out != GHP_HF_NONE && row->in == GHP_HF_NONE;
}

/* An output layer that uses the embedding's weights. */
static bool is_tied(const struct maker *m, const struct ghp_hf_row *row)
{
    return is(row, "linear") && row->out == GHP_HF_VOCABULARY && m->config->tied;
}

static bool has_bias(const struct maker *m, const struct ghp_hf_row *row)
{
    switch (row->bias) {
    case GHP_HF_BIASED:
    case GHP_HF_BIASED_ABOVE: return true;
    case GHP_HF_QKV_BIAS: return m->config->attention_bias || m->family->has.qkv_bias;
    case GHP_HF_ATTENTION_BIAS: return m->config->attention_bias;
    case GHP_HF_MLP_BIAS: return m->config->mlp_bias;
    default: return is(row, "layer_norm");
    }
}

/* The probability of a row of dropout. */
static double ratio_of(const struct ghp_hf_config *c, const struct ghp_hf_row *row)
{
    if (is(row, "classifier_dropout")) return c->classifier_dropout;
    return is(row, "embedding_dropout") ? c->embedding_dropout : c->residual_dropout;
}

static bool is_dropout(const struct ghp_hf_row *row)
{
    return is(row, "embedding_dropout") || is(row, "residual_dropout") ||
           is(row, "classifier_dropout");
}

/* Whether the network has this layer; those that read another one read its input. */
static bool is_there(const struct ghp_hf_config *c, const struct ghp_hf_row *row)
{
    if (strncmp(row->op, "cap_", 4) == 0) return c->logits_softcap > 0;
    return !is_dropout(row) || ratio_of(c, row) > 0;
}

/* The function of a row that is an activation, except for "act", and what it multiplies by; NULL: it is not one. */
static const char *function_of(const struct ghp_hf_config *c, const struct ghp_hf_row *row,
                               double *factor)
{
    *factor = 1;
    if (is(row, "cap_tanh") || is(row, "tanh")) return "tanh";
    if (is(row, "scale"))
        *factor = sqrt((double)c->width);
    else if (is(row, "cap_input"))
        *factor = 1 / c->logits_softcap;
    else if (is(row, "cap_logits"))
        *factor = c->logits_softcap;
    else
        return NULL;
    return "affine";
}

/* The operation's name. */
static const char *op_of(const struct ghp_hf_config *c, const struct ghp_hf_row *row)
{
    static const char *const functions[GHP_HF_ACTIVATIONS] = {[GHP_HF_SILU] = "silu",
                                                              [GHP_HF_GELU] = "gelu",
                                                              [GHP_HF_GELU_TANH] = "gelu",
                                                              [GHP_HF_RELU] = "relu"};

    double factor;

    if (is_dropout(row)) return "dropout";
    if (function_of(c, row, &factor) != NULL) return "activation";
    if (is(row, "patches") || is(row, "first")) return "view";
    return is(row, "act") ? functions[c->activation] : row->op;
}

/* The deviation of the first weights, if none are read. A gpt2 begins with smaller ones in the layers that end a branch
 * of a block, so that the sum of all branches does not grow with the number of blocks. */
static double deviation(const struct ghp_hf_config *c, const struct ghp_hf_row *row)
{
    bool ends_branch = c->family == GHP_HF_GPT2 && strstr(row->name, "c_proj") != NULL;

    return ends_branch ? c->deviation / sqrt(2.0 * (double)c->blocks) : c->deviation;
}

/* Whether files have its weight as [in][out]. */
static bool is_transposed(const struct maker *m, const struct ghp_hf_row *row)
{
    return m->family->has.transposed && has_bias(m, row) && row->in != GHP_HF_NONE;
}

static void put_rotary(const struct ghp_heads *r, json_t *layer, bool *failed)
{
    bool llama3 = r->scaling == GHP_ROTARY_LLAMA3;

    ghp_json_put(layer, "base", json_real(r->base), failed);
    ghp_json_put(layer, "rotary_size", json_integer(r->turned), failed);
    ghp_json_put(layer, "scaling", json_string(ghp_rotary_name(r->scaling)), failed);
    if (r->scaling == GHP_ROTARY_UNSCALED) return;
    ghp_json_put(layer, "factor", json_real(r->factor), failed);
    if (r->scaling == GHP_ROTARY_LINEAR) return;
    ghp_json_put(layer, llama3 ? "low_freq_factor" : "beta_slow", json_real(r->slow), failed);
    ghp_json_put(layer, llama3 ? "high_freq_factor" : "beta_fast", json_real(r->fast), failed);
    ghp_json_put(layer, "original_positions", json_integer(r->original), failed);
    if (llama3) return;
    ghp_json_put(layer, "amplitude", json_real(r->amplitude), failed);
    ghp_json_put(layer, "truncate", json_boolean(r->truncate), failed);
}

static void put_norm(struct maker *m, const struct ghp_hf_row *row, json_t *layer)
{
    const struct ghp_hf_config *c = m->config;

    ghp_json_put(layer, "epsilon", json_real(c->epsilon), &m->failed);
    if (m->family->has.norm_offset) ghp_json_put(layer, "offset", json_real(1), &m->failed);
    if (row->out == GHP_HF_HEAD)
        ghp_json_put(layer, "head_size", json_integer(c->head_width), &m->failed);
}

/* Whether attention leaves out positions of padding. */
static bool hides_padding(const struct ghp_hf_config *c)
{
    return c->family >= GHP_HF_BERT && c->pad_token >= 0;
}

static void put_attention(struct maker *m, json_t *layer)
{
    const struct ghp_hf_config *c = m->config;
    bool *failed = &m->failed;

    ghp_json_put(layer, "heads", json_integer(c->heads), failed);
    ghp_json_put(layer, "kv_heads", json_integer(c->kv_heads), failed);
    if (m->family->has.sees_all) ghp_json_put(layer, "causal", json_false(), failed);
    if (hides_padding(c)) ghp_json_put(layer, "pad_token", json_integer(c->pad_token), failed);
    if (c->windowed[m->number] && c->window < m->positions)
        ghp_json_put(layer, "window", json_integer(c->window), failed);
    if (c->query_scalar > 0 && c->query_scalar != (double)c->head_width)
        ghp_json_put(layer, "scale", json_real(1 / sqrt(c->query_scalar)), failed);
    if (c->attention_softcap > 0)
        ghp_json_put(layer, "softcap", json_real(c->attention_softcap), failed);
    if (c->attention_dropout > 0)
        ghp_json_put(layer, "dropout", json_real(c->attention_dropout), failed);
}

/* Patches as a sequence, or the channels of its first position. */
static void put_view(struct maker *m, const struct ghp_hf_row *row, json_t *layer)
{
    const struct ghp_hf_config *c = m->config;
    json_int_t width = c->width, patches = m->positions - 1;
    bool *failed = &m->failed, all = is(row, "patches");

    ghp_json_put(layer, "channels", json_integer(width), failed);
    if (all) ghp_json_put(layer, "height", json_integer(patches), failed);
    ghp_json_put(layer, "sizes", all ? json_pack("[I,I]", width, patches) : json_pack("[I]", width),
                 failed);
    ghp_json_put(layer, "strides",
                 all ? json_pack("[I,i]", patches, 1) : json_pack("[I]", (json_int_t)m->positions),
                 failed);
    if (all) ghp_json_put(layer, "sequence", json_true(), failed);
}

static void put_patches(struct maker *m, json_t *layer)
{
    const struct ghp_hf_config *c = m->config;

    ghp_json_put(layer, "channels", json_integer(c->width), &m->failed);
    ghp_json_put(layer, "kernel", json_integer(c->patch), &m->failed);
    ghp_json_put(layer, "stride", json_integer(c->patch), &m->failed);
}

/* The keys of a layer's operation. */
static void put_attributes(struct maker *m, const struct ghp_hf_row *row, json_t *layer)
{
    const struct ghp_hf_config *c = m->config;
    double factor;
    const char *function = function_of(c, row, &factor);
    bool *failed = &m->failed;

    if (is(row, "linear"))
        ghp_json_put(layer, "features", json_integer(size_of(c, row->out)), failed);
    if (is(row, "embedding")) ghp_json_put(layer, "channels", json_integer(c->width), failed);
    if (is_tied(m, row))
        ghp_json_put(layer, "tied", json_string(m->family->begin[0].name), failed);
    else if (row->in != GHP_HF_NONE && !is(row, "conv2d") && !is(row, "bias"))
        ghp_json_put(layer, "deviation", json_real(deviation(c, row)), failed);
    if (is_transposed(m, row)) ghp_json_put(layer, "transposed", json_true(), failed);
    if (is_norm(row)) put_norm(m, row, layer);
    if (function != NULL) ghp_json_put(layer, "function", json_string(function), failed);
    if (function != NULL && factor != 1) ghp_json_put(layer, "alpha", json_real(factor), failed);
    if (is_dropout(row)) ghp_json_put(layer, "ratio", json_real(ratio_of(c, row)), failed);
    if (is(row, "act") && c->activation == GHP_HF_GELU_TANH)
        ghp_json_put(layer, "approximate", json_string("tanh"), failed);
    if (is(row, "attention")) put_attention(m, layer);
    if (is(row, "conv2d")) put_patches(m, layer);
    if (is(row, "patches") || is(row, "first")) put_view(m, row, layer);
    if (is(row, "rotary")) {
        ghp_json_put(layer, "head_size", json_integer(c->head_width), failed);
        put_rotary(&c->rotary, layer, failed);
    }
    if ((is(row, "linear") || is(row, "layer_norm")) && !has_bias(m, row))
        ghp_json_put(layer, "bias", json_false(), failed);
}

static void name_of(const struct maker *m, const char *name, char out[GHP_HF_NAME])
{
    snprintf(out, GHP_HF_NAME, "%s%s", m->block, name);
}

/* Appends what the row's input i is: the layer of that name in `rows`, or of one that is not there its input. */
static void add_input(struct maker *m, const struct ghp_hf_row *rows, const char *input,
                      json_t *inputs)
{
    const struct ghp_hf_row *row = rows;
    char name[GHP_HF_NAME];

    if (input[0] == '@') {
        ghp_json_append(inputs, json_string(m->stream), &m->failed);
        return;
    }
    while (strcmp(row->name, input) != 0)
        row++;
    if (!is_there(m->config, row)) {
        add_input(m, rows, row->inputs[0], inputs);
        return;
    }
    name_of(m, input, name);
    ghp_json_append(inputs, json_string(name), &m->failed);
}

static void add_layer(struct maker *m, const struct ghp_hf_row *rows, const struct ghp_hf_row *row)
{
    json_t *layer = json_object(), *inputs = json_array();
    char name[GHP_HF_NAME];

    name_of(m, row->name, name);
    ghp_json_put(layer, "name", json_string(name), &m->failed);
    ghp_json_put(layer, "op", json_string(op_of(m->config, row)), &m->failed);
    put_attributes(m, row, layer);
    for (int i = 0; i < 3 && row->inputs[i] != NULL; i++)
        add_input(m, rows, row->inputs[i], inputs);
    if (is(row, "attention") && hides_padding(m->config))
        ghp_json_append(inputs, json_string("input"), &m->failed);
    ghp_json_put(layer, "inputs", inputs, &m->failed);
    ghp_json_append(m->layers, layer, &m->failed);
}

static struct ghp_hf_part *add_part(const struct maker *m, struct ghp_hf_tensor *t,
                                    const struct ghp_hf_row *row, const char *name)
{
    struct ghp_hf_part *part = &t->parts[t->n_parts++];

    GHP_ASSERT(t->n_parts <= GHP_HF_PARTS);
    part->rows = size_of(m->config, row->out);
    if (row->out == GHP_HF_CONTEXT) part->rows = m->positions;
    if (row->out == GHP_HF_TYPES) part->rows = 1;
    snprintf(part->param, sizeof part->param, "%s%.40s.%s", m->block, row->name, name);
    return part;
}

/* Sets where a part's rows are: all together from `first` on, or one head at a time in turn with the other two
 * parts. */
static void place_part(const struct maker *m, const struct ghp_hf_row *row,
                       struct ghp_hf_part *part, int64_t first)
{
    bool by_head = m->family->has.by_head && row->file != NULL;

    part->run = by_head ? m->config->head_width : part->rows;
    part->step = by_head ? GHP_HF_PARTS * part->run : 0;
    part->first = by_head ? first / part->rows * part->run : first;
}

/* Whether files have it as [1][rows][channels], without a name for its only parameter. */
static bool is_bare(const struct maker *m, const struct ghp_hf_row *row)
{
    return m->family->has.bare_tables && (row->out == GHP_HF_CONTEXT || row->out == GHP_HF_ONE);
}

/* What the file calls it. */
static void name_tensor(const struct maker *m, const struct ghp_hf_row *row, const char *part,
                        char name[GHP_HF_NAME])
{
    const char *module = row->file != NULL ? row->file : row->name;
    bool above = row->bias == GHP_HF_BIASED_ABOVE && strcmp(part, "bias") == 0;
    size_t n = above ? (size_t)(strrchr(module, '.') - module) : strlen(module);

    snprintf(name, GHP_HF_NAME, "%s%.*s%s%s", m->block, (int)(n < 40 ? n : 40), module,
             is_bare(m, row) ? "" : ".", is_bare(m, row) ? "" : part);
}

/* A tensor of the file for a parameter of the row, or a further part of the one that the row before began. */
static void add_tensor(struct maker *m, const struct ghp_hf_row *row, const char *part)
{
    bool weight = strcmp(part, "weight") == 0;
    int64_t rows = size_of(m->config, row->out);
    struct ghp_hf_tensor *t = NULL;
    char name[GHP_HF_NAME];

    name_tensor(m, row, part, name);
    for (int i = 0; i < m->network->n_tensors && row->file != NULL; i++)
        if (strcmp(m->network->tensors[i].name, name) == 0) t = &m->network->tensors[i];
    if (t == NULL) {
        GHP_ASSERT(m->network->n_tensors < m->max_tensors);
        t = &m->network->tensors[m->network->n_tensors++];
        snprintf(t->name, sizeof t->name, "%s", name);
        t->prefixed = !ghp_hf_is_outside(row->name);
        t->window = weight && is(row, "conv2d") ? m->config->patch : 0;
        t->one_first = is_bare(m, row);
        t->one_row = is(row, "bias");
        t->transposed = weight && is_transposed(m, row);
        t->n_dims = weight && row->in != GHP_HF_NONE ? 2 : 1;
        t->dims[t->transposed] = 0;
        if (t->n_dims == 2) t->dims[!t->transposed] = size_of(m->config, row->in);
        if (row->out == GHP_HF_CONTEXT)
            t->dims[0] = m->family->has.unused_positions + m->config->unused_positions;
    }
    t->dims[t->transposed] += rows;
    place_part(m, row, add_part(m, t, row, is(row, "bias") ? "bias" : part),
               t->dims[t->transposed] - rows);
}

static void add_rows(struct maker *m, const struct ghp_hf_row *rows)
{
    for (const struct ghp_hf_row *row = rows; row->name != NULL; row++) {
        if (!is_there(m->config, row)) continue;
        add_layer(m, rows, row);
        if (row->out == GHP_HF_NONE) continue;
        if (!is_tied(m, row)) add_tensor(m, row, "weight");
        if (has_bias(m, row)) add_tensor(m, row, "bias");
    }
}

/* What the next table begins with: the last layer so far. */
static void pass_on(struct maker *m, const struct ghp_hf_row *rows)
{
    const struct ghp_hf_row *last = rows;

    for (; rows->name != NULL; rows++)
        if (is_there(m->config, rows)) last = rows;
    name_of(m, last->name, m->stream);
}

static void add_all(struct maker *m)
{
    snprintf(m->stream, sizeof m->stream, "input");
    add_rows(m, m->family->begin);
    pass_on(m, m->family->begin);
    for (int64_t i = 0; i < m->config->blocks; i++) {
        m->number = i;
        snprintf(m->block, sizeof m->block, "%s.%lld.", m->family->block_name, (long long)i);
        add_rows(m, m->family->block);
        pass_on(m, m->family->block);
    }
    m->block[0] = '\0';
    add_rows(m, m->config->labels > 0 && m->family->classifier != NULL ? m->family->classifier
                                                                       : m->family->end);
}

int ghp_hf_tensor_shape(const struct ghp_hf_tensor *t, int64_t shape[GHP_MAX_DIMS])
{
    int n = 0;

    memset(shape, 0, GHP_MAX_DIMS * sizeof *shape);
    if (t->one_first) shape[n++] = 1;
    for (int i = 0; i < t->n_dims; i++)
        shape[n++] = t->dims[i];
    if (t->window == 0) return n;
    shape[n - 1] /= t->window * t->window;
    shape[n++] = t->window;
    shape[n++] = t->window;
    return n;
}

/* What the network reads. */
static json_t *input_of(const struct ghp_hf_config *c, int64_t positions)
{
    if (c->channels == 0)
        return json_pack("{s:I, s:I}", "positions", (json_int_t)positions, "vocabulary",
                         (json_int_t)c->vocabulary);
    return json_pack("{s:I, s:I, s:I}", "channels", (json_int_t)c->channels, "height",
                     (json_int_t)c->image, "width", (json_int_t)c->image);
}

enum ghp_status ghp_hf_network_make(const struct ghp_hf_config *config,
                                    const struct ghp_hf_named *named,
                                    struct ghp_hf_network *network)
{
    struct maker m = {.config = config,
                      .positions = named->positions,
                      .family = &ghp_hf_tables[config->family],
                      .network = network,
                      .layers = json_array(),
                      /* of a block at most two tensors a row */
                      .max_tensors = 32 * ((int)config->blocks + 1)};

    *network = (struct ghp_hf_network){0};
    network->tensors = ghp_alloc((size_t)m.max_tensors, sizeof *network->tensors);
    network->model = json_pack("{s:s, s:s, s:o}", "format", "ghp.model/1", "name", named->name,
                               "input", input_of(config, named->positions));
    if (network->tensors != NULL) add_all(&m);
    ghp_json_put(network->model, "layers", m.layers, &m.failed);
    if (!m.failed && network->tensors != NULL) return GHP_OK;
    ghp_hf_network_release(network);
    return GHP_NO_MEMORY();
}

void ghp_hf_network_release(struct ghp_hf_network *network)
{
    json_decref(network->model);
    free(network->tensors);
    *network = (struct ghp_hf_network){0};
}
