/* onnx/huggingface/network.c - see network.h. */
#include "onnx/huggingface/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sizes that a config names. */
enum size { NONE, WIDTH, INNER, QUERIES, KEYS, VOCABULARY, CONTEXT, SIZES };

struct row { /* a layer */
    const char *name, *op;
    const char *inputs[3]; /* layers of the same table; "@": what the table's part begins with */
    enum size out, in;     /* of its weight, [out][in]; in NONE: [out]; both NONE: it has none */
    const char *
        file; /* module of the file, where it has another name than the layer; rows of one behind the other
                              are one tensor */
};

/* ---- the families ---- */

static const struct row gpt2_begin[] = {
    {"wte", "embedding", {"@"}, VOCABULARY, WIDTH, NULL},
    {"wpe", "position_embedding", {"wte"}, CONTEXT, WIDTH, NULL},
    {NULL, NULL, {NULL}, NONE, NONE, NULL}};

static const struct row gpt2_block[] = {
    {"ln_1", "layer_norm", {"@"}, WIDTH, NONE, NULL},
    {"attn.q", "linear", {"ln_1"}, QUERIES, WIDTH, "attn.c_attn"},
    {"attn.k", "linear", {"ln_1"}, KEYS, WIDTH, "attn.c_attn"},
    {"attn.v", "linear", {"ln_1"}, KEYS, WIDTH, "attn.c_attn"},
    {"attn.heads", "attention", {"attn.q", "attn.k", "attn.v"}, NONE, NONE, NULL},
    {"attn.c_proj", "linear", {"attn.heads"}, WIDTH, QUERIES, NULL},
    {"add_1", "add", {"@", "attn.c_proj"}, NONE, NONE, NULL},
    {"ln_2", "layer_norm", {"add_1"}, WIDTH, NONE, NULL},
    {"mlp.c_fc", "linear", {"ln_2"}, INNER, WIDTH, NULL},
    {"mlp.act", "gelu", {"mlp.c_fc"}, NONE, NONE, NULL},
    {"mlp.c_proj", "linear", {"mlp.act"}, WIDTH, INNER, NULL},
    {"add_2", "add", {"add_1", "mlp.c_proj"}, NONE, NONE, NULL},
    {NULL, NULL, {NULL}, NONE, NONE, NULL}};

static const struct row gpt2_end[] = {
    {"ln_f", "layer_norm", {"@"}, WIDTH, NONE, NULL},
    {"lm_head", "linear", {"ln_f"}, VOCABULARY, WIDTH, NULL},
    {"loss", "softmax_cross_entropy", {"lm_head"}, NONE, NONE, NULL},
    {NULL, NULL, {NULL}, NONE, NONE, NULL}};

static const struct row llama_begin[] = {
    {"embed_tokens", "embedding", {"@"}, VOCABULARY, WIDTH, NULL},
    {NULL, NULL, {NULL}, NONE, NONE, NULL}};

static const struct row llama_block[] = {
    {"input_layernorm", "rms_norm", {"@"}, WIDTH, NONE, NULL},
    {"self_attn.q_proj", "linear", {"input_layernorm"}, QUERIES, WIDTH, NULL},
    {"self_attn.k_proj", "linear", {"input_layernorm"}, KEYS, WIDTH, NULL},
    {"self_attn.v_proj", "linear", {"input_layernorm"}, KEYS, WIDTH, NULL},
    {"self_attn.q_rotary", "rotary", {"self_attn.q_proj"}, NONE, NONE, NULL},
    {"self_attn.k_rotary", "rotary", {"self_attn.k_proj"}, NONE, NONE, NULL},
    {"self_attn.heads",
     "attention",
     {"self_attn.q_rotary", "self_attn.k_rotary", "self_attn.v_proj"},
     NONE,
     NONE,
     NULL},
    {"self_attn.o_proj", "linear", {"self_attn.heads"}, WIDTH, QUERIES, NULL},
    {"add_1", "add", {"@", "self_attn.o_proj"}, NONE, NONE, NULL},
    {"post_attention_layernorm", "rms_norm", {"add_1"}, WIDTH, NONE, NULL},
    {"mlp.gate_proj", "linear", {"post_attention_layernorm"}, INNER, WIDTH, NULL},
    {"mlp.up_proj", "linear", {"post_attention_layernorm"}, INNER, WIDTH, NULL},
    {"mlp.act", "silu", {"mlp.gate_proj"}, NONE, NONE, NULL},
    {"mlp.gated", "mul", {"mlp.act", "mlp.up_proj"}, NONE, NONE, NULL},
    {"mlp.down_proj", "linear", {"mlp.gated"}, WIDTH, INNER, NULL},
    {"add_2", "add", {"add_1", "mlp.down_proj"}, NONE, NONE, NULL},
    {NULL, NULL, {NULL}, NONE, NONE, NULL}};

static const struct row llama_end[] = {
    {"norm", "rms_norm", {"@"}, WIDTH, NONE, NULL},
    {"lm_head", "linear", {"norm"}, VOCABULARY, WIDTH, NULL},
    {"loss", "softmax_cross_entropy", {"lm_head"}, NONE, NONE, NULL},
    {NULL, NULL, {NULL}, NONE, NONE, NULL}};

static const struct family {
    const char *prefix;
    const struct row *begin, *block, *end;
    const char *block_name; /* of block i: this and i */
    bool transposed;        /* weights of blocks are [in][out] in files */
    bool bias;              /* norms and the linear layers of blocks have one */
} families[GHP_HF_FAMILIES] = {
    [GHP_HF_GPT2] = {"transformer.", gpt2_begin, gpt2_block, gpt2_end, "h", true, true},
    [GHP_HF_LLAMA] = {"model.", llama_begin, llama_block, llama_end, "layers", false, false}};

const char *ghp_hf_prefix(enum ghp_hf_family family)
{
    return families[family].prefix;
}

const char *ghp_hf_embedding(enum ghp_hf_family family)
{
    return families[family].begin[0].name;
}

/* ---- making one ---- */

struct maker {
    const struct ghp_hf_config *config;
    int64_t positions; /* of a sample: rows of the context that it has */
    const struct family *family;
    struct ghp_hf_network *network;
    json_t *layers;
    int max_tensors;
    char block[32];           /* what stands in front of names: "", "h.0." */
    char stream[GHP_HF_NAME]; /* the layer that "@" is */
    bool failed;
};

static int64_t size_of(const struct ghp_hf_config *c, enum size size)
{
    const int64_t sizes[SIZES] = {[WIDTH] = c->width,
                                  [INNER] = c->inner,
                                  [QUERIES] = c->heads * c->head_width,
                                  [KEYS] = c->kv_heads * c->head_width,
                                  [VOCABULARY] = c->vocabulary,
                                  [CONTEXT] = c->context};

    return sizes[size];
}

static bool is(const struct row *row, const char *op)
{
    return strcmp(row->op, op) == 0;
}

static bool is_norm(const struct row *row)
{
    return row->out != NONE && row->in == NONE;
}

/* The output layer, which is no part of a block. */
static bool is_head(const struct row *row)
{
    return is(row, "linear") && row->out == VOCABULARY;
}

/* An output layer that uses the embedding's weights. */
static bool is_tied(const struct maker *m, const struct row *row)
{
    return is_head(row) && m->config->tied;
}

static bool has_bias(const struct maker *m, const struct row *row)
{
    return m->family->bias && (is_norm(row) || (is(row, "linear") && !is_head(row)));
}

/* Of the first weights, where none are read. A gpt2 begins with smaller ones in the layers that end a branch of a
 * block, so that the sum of all branches is no larger with more blocks. */
static double deviation(const struct ghp_hf_config *c, const struct row *row)
{
    bool ends_branch = c->family == GHP_HF_GPT2 && strstr(row->name, "c_proj") != NULL;

    return ends_branch ? c->deviation / sqrt(2.0 * (double)c->blocks) : c->deviation;
}

/* Whether files have its weight as [in][out]. */
static bool is_transposed(const struct maker *m, const struct row *row)
{
    return m->family->transposed && has_bias(m, row) && row->in != NONE;
}

/* The keys of a layer's operation. */
static void put_attributes(struct maker *m, const struct row *row, json_t *layer)
{
    const struct ghp_hf_config *c = m->config;
    bool *failed = &m->failed;

    if (is(row, "linear"))
        ghp_json_put(layer, "features", json_integer(size_of(c, row->out)), failed);
    if (is(row, "embedding")) ghp_json_put(layer, "channels", json_integer(c->width), failed);
    if (is_tied(m, row))
        ghp_json_put(layer, "tied", json_string(m->family->begin[0].name), failed);
    else if (row->in != NONE)
        ghp_json_put(layer, "deviation", json_real(deviation(c, row)), failed);
    if (is_transposed(m, row)) ghp_json_put(layer, "transposed", json_true(), failed);
    if (is_norm(row)) ghp_json_put(layer, "epsilon", json_real(c->epsilon), failed);
    if (is(row, "gelu") && !c->by_erf)
        ghp_json_put(layer, "approximate", json_string("tanh"), failed);
    if (is(row, "attention")) {
        ghp_json_put(layer, "heads", json_integer(c->heads), failed);
        ghp_json_put(layer, "kv_heads", json_integer(c->kv_heads), failed);
    }
    if (is(row, "rotary")) {
        ghp_json_put(layer, "base", json_real(c->theta), failed);
        ghp_json_put(layer, "head_size", json_integer(c->head_width), failed);
    }
    if ((is(row, "linear") || is(row, "layer_norm")) && !has_bias(m, row))
        ghp_json_put(layer, "bias", json_false(), failed);
}

static void name_of(const struct maker *m, const char *name, char out[GHP_HF_NAME])
{
    snprintf(out, GHP_HF_NAME, "%s%s", m->block, name);
}

static void add_layer(struct maker *m, const struct row *row)
{
    json_t *layer = json_object(), *inputs = json_array();
    char name[GHP_HF_NAME];

    name_of(m, row->name, name);
    ghp_json_put(layer, "name", json_string(name), &m->failed);
    ghp_json_put(layer, "op", json_string(row->op), &m->failed);
    put_attributes(m, row, layer);
    for (int i = 0; i < 3 && row->inputs[i] != NULL; i++) {
        bool stream = row->inputs[i][0] == '@';

        name_of(m, row->inputs[i], name);
        ghp_json_append(inputs, json_string(stream ? m->stream : name), &m->failed);
    }
    ghp_json_put(layer, "inputs", inputs, &m->failed);
    ghp_json_append(m->layers, layer, &m->failed);
}

static struct ghp_hf_part *add_part(const struct maker *m, struct ghp_hf_tensor *t,
                                    const struct row *row, const char *name)
{
    struct ghp_hf_part *part = &t->parts[t->n_parts++];

    GHP_ASSERT(t->n_parts <= GHP_HF_PARTS);
    part->rows = row->out == CONTEXT ? m->positions : size_of(m->config, row->out);
    snprintf(part->param, sizeof part->param, "%s%.40s.%s", m->block, row->name, name);
    return part;
}

/* A tensor of the file for a parameter of the row, or a further part of the one that the row before began. */
static void add_tensor(struct maker *m, const struct row *row, const char *part)
{
    const char *module = row->file != NULL ? row->file : row->name;
    bool weight = strcmp(part, "weight") == 0;
    int64_t rows = size_of(m->config, row->out);
    struct ghp_hf_tensor *t = NULL;
    char name[GHP_HF_NAME];

    snprintf(name, sizeof name, "%s%.40s.%s", m->block, module, part);
    for (int i = 0; i < m->network->n_tensors && row->file != NULL; i++)
        if (strcmp(m->network->tensors[i].name, name) == 0) t = &m->network->tensors[i];
    if (t == NULL) {
        GHP_ASSERT(m->network->n_tensors < m->max_tensors);
        t = &m->network->tensors[m->network->n_tensors++];
        snprintf(t->name, sizeof t->name, "%s", name);
        t->prefixed = !is_head(row);
        t->transposed = weight && is_transposed(m, row);
        t->n_dims = weight && row->in != NONE ? 2 : 1;
        t->dims[t->transposed] = 0;
        if (t->n_dims == 2) t->dims[!t->transposed] = size_of(m->config, row->in);
    }
    t->dims[t->transposed] += rows;
    add_part(m, t, row, part)->first = t->dims[t->transposed] - rows;
}

static void add_rows(struct maker *m, const struct row *rows)
{
    for (const struct row *row = rows; row->name != NULL; row++) {
        add_layer(m, row);
        if (row->out == NONE || is_tied(m, row)) continue;
        add_tensor(m, row, "weight");
        if (has_bias(m, row)) add_tensor(m, row, "bias");
    }
}

/* What the next table begins with: the last layer so far. */
static void pass_on(struct maker *m, const struct row *rows)
{
    while (rows[1].name != NULL)
        rows++;
    name_of(m, rows->name, m->stream);
}

static void add_all(struct maker *m)
{
    snprintf(m->stream, sizeof m->stream, "input");
    add_rows(m, m->family->begin);
    pass_on(m, m->family->begin);
    for (int64_t i = 0; i < m->config->blocks; i++) {
        snprintf(m->block, sizeof m->block, "%s.%lld.", m->family->block_name, (long long)i);
        add_rows(m, m->family->block);
        pass_on(m, m->family->block);
    }
    m->block[0] = '\0';
    add_rows(m, m->family->end);
}

enum ghp_status ghp_hf_network_make(const struct ghp_hf_config *config,
                                    const struct ghp_hf_named *named,
                                    struct ghp_hf_network *network)
{
    struct maker m = {.config = config,
                      .positions = named->positions,
                      .family = &families[config->family],
                      .network = network,
                      .layers = json_array(),
                      /* of a block at most two tensors a row */
                      .max_tensors = 32 * ((int)config->blocks + 1)};

    *network = (struct ghp_hf_network){0};
    network->tensors = ghp_alloc((size_t)m.max_tensors, sizeof *network->tensors);
    network->model = json_pack("{s:s, s:s, s:{s:I, s:I}}", "format", "ghp.model/1", "name",
                               named->name, "input", "positions", (json_int_t)named->positions,
                               "vocabulary", (json_int_t)config->vocabulary);
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
