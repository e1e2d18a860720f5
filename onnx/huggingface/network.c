/* onnx/huggingface/network.c - see network.h. */
#include "onnx/huggingface/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sizes that a config names. */
enum size { NONE, WIDTH, INNER, QUERIES, KEYS, VOCABULARY, CONTEXT, SIZES };

enum bias { BARE, BIASED, QKV_BIAS, ATTENTION_BIAS, MLP_BIAS }; /* the last three: by the config */

struct row { /* a layer */
    const char *name;
    const char
        *op; /* "act": the config's activation; "..._dropout": dropout by the config, or none */
    const char *inputs[3]; /* layers of the same table; "@": what the table's part begins with */
    enum size out, in;     /* of its weight, [out][in]; in NONE: [out]; both NONE: it has none */
    enum bias bias;
    /* Module of the file, if it has another name than the layer; rows of one module that follow each other are one
     * tensor. */
    const char *file;
};

#define LAYER(name, op, ...)                                                                       \
    {                                                                                              \
        name, op, {__VA_ARGS__}, NONE, NONE, BARE, NULL                                            \
    }
#define TABLE(name, op, from, out)                                                                 \
    {                                                                                              \
        name, op, {from}, out, WIDTH, BARE, NULL                                                   \
    }
#define NORM(name, op, from)                                                                       \
    {                                                                                              \
        name, op, {from}, WIDTH, NONE, BARE, NULL                                                  \
    }
#define LINEAR(name, from, out, in, bias)                                                          \
    {                                                                                              \
        name, "linear", {from}, out, in, bias, NULL                                                \
    }
#define FUSED(name, from, out, in, bias, file)                                                     \
    {                                                                                              \
        name, "linear", {from}, out, in, bias, file                                                \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, {NULL}, NONE, NONE, BARE, NULL                                                 \
    }

/* ---- the families ---- */

static const struct row gpt2_begin[] = {TABLE("wte", "embedding", "@", VOCABULARY),
                                        TABLE("wpe", "position_embedding", "wte", CONTEXT),
                                        LAYER("drop", "embedding_dropout", "wpe"), END};

static const struct row gpt2_block[] = {
    NORM("ln_1", "layer_norm", "@"),
    FUSED("attn.q", "ln_1", QUERIES, WIDTH, BIASED, "attn.c_attn"),
    FUSED("attn.k", "ln_1", KEYS, WIDTH, BIASED, "attn.c_attn"),
    FUSED("attn.v", "ln_1", KEYS, WIDTH, BIASED, "attn.c_attn"),
    LAYER("attn.heads", "attention", "attn.q", "attn.k", "attn.v"),
    LINEAR("attn.c_proj", "attn.heads", WIDTH, QUERIES, BIASED),
    LAYER("attn.resid_dropout", "residual_dropout", "attn.c_proj"),
    LAYER("add_1", "add", "@", "attn.resid_dropout"),
    NORM("ln_2", "layer_norm", "add_1"),
    LINEAR("mlp.c_fc", "ln_2", INNER, WIDTH, BIASED),
    LAYER("mlp.act", "act", "mlp.c_fc"),
    LINEAR("mlp.c_proj", "mlp.act", WIDTH, INNER, BIASED),
    LAYER("mlp.dropout", "residual_dropout", "mlp.c_proj"),
    LAYER("add_2", "add", "add_1", "mlp.dropout"),
    END};

static const struct row gpt2_end[] = {NORM("ln_f", "layer_norm", "@"),
                                      LINEAR("lm_head", "ln_f", VOCABULARY, WIDTH, BARE),
                                      LAYER("loss", "softmax_cross_entropy", "lm_head"), END};

static const struct row llama_begin[] = {
    TABLE("embed_tokens", "embedding", "@", VOCABULARY),
    LAYER("embed_dropout", "embedding_dropout", "embed_tokens"), END};

#define ROTARY_HEADS(q, k)                                                                         \
    LAYER("self_attn.q_rotary", "rotary", q), LAYER("self_attn.k_rotary", "rotary", k),            \
        LAYER("self_attn.heads", "attention", "self_attn.q_rotary", "self_attn.k_rotary",          \
              "self_attn.v_proj"),                                                                 \
        LINEAR("self_attn.o_proj", "self_attn.heads", WIDTH, QUERIES, ATTENTION_BIAS)

#define LLAMA_QKV(from)                                                                            \
    LINEAR("self_attn.q_proj", from, QUERIES, WIDTH, QKV_BIAS),                                    \
        LINEAR("self_attn.k_proj", from, KEYS, WIDTH, QKV_BIAS),                                   \
        LINEAR("self_attn.v_proj", from, KEYS, WIDTH, QKV_BIAS)

#define GATED                                                                                      \
    LAYER("mlp.act", "act", "mlp.gate_proj"), LAYER("mlp.gated", "mul", "mlp.act", "mlp.up_proj"), \
        LINEAR("mlp.down_proj", "mlp.gated", WIDTH, INNER, MLP_BIAS)

#define LLAMA_MLP(from)                                                                            \
    LINEAR("mlp.gate_proj", from, INNER, WIDTH, MLP_BIAS),                                         \
        LINEAR("mlp.up_proj", from, INNER, WIDTH, MLP_BIAS), GATED

static const struct row llama_block[] = {NORM("input_layernorm", "rms_norm", "@"),
                                         LLAMA_QKV("input_layernorm"),
                                         ROTARY_HEADS("self_attn.q_proj", "self_attn.k_proj"),
                                         LAYER("add_1", "add", "@", "self_attn.o_proj"),
                                         NORM("post_attention_layernorm", "rms_norm", "add_1"),
                                         LLAMA_MLP("post_attention_layernorm"),
                                         LAYER("add_2", "add", "add_1", "mlp.down_proj"),
                                         END};

/* Norms of queries and keys, and after each branch in place of before it. */
static const struct row olmo2_block[] = {
    LLAMA_QKV("@"),
    {"self_attn.q_norm", "rms_norm", {"self_attn.q_proj"}, QUERIES, NONE, BARE, NULL},
    {"self_attn.k_norm", "rms_norm", {"self_attn.k_proj"}, KEYS, NONE, BARE, NULL},
    ROTARY_HEADS("self_attn.q_norm", "self_attn.k_norm"),
    NORM("post_attention_layernorm", "rms_norm", "self_attn.o_proj"),
    LAYER("add_1", "add", "@", "post_attention_layernorm"),
    LLAMA_MLP("add_1"),
    NORM("post_feedforward_layernorm", "rms_norm", "mlp.down_proj"),
    LAYER("add_2", "add", "add_1", "post_feedforward_layernorm"),
    END};

static const struct row phi3_block[] = {
    NORM("input_layernorm", "rms_norm", "@"),
    FUSED("self_attn.q_proj", "input_layernorm", QUERIES, WIDTH, BARE, "self_attn.qkv_proj"),
    FUSED("self_attn.k_proj", "input_layernorm", KEYS, WIDTH, BARE, "self_attn.qkv_proj"),
    FUSED("self_attn.v_proj", "input_layernorm", KEYS, WIDTH, BARE, "self_attn.qkv_proj"),
    ROTARY_HEADS("self_attn.q_proj", "self_attn.k_proj"),
    LAYER("resid_attn_dropout", "residual_dropout", "self_attn.o_proj"),
    LAYER("add_1", "add", "@", "resid_attn_dropout"),
    NORM("post_attention_layernorm", "rms_norm", "add_1"),
    FUSED("mlp.gate_proj", "post_attention_layernorm", INNER, WIDTH, BARE, "mlp.gate_up_proj"),
    FUSED("mlp.up_proj", "post_attention_layernorm", INNER, WIDTH, BARE, "mlp.gate_up_proj"),
    GATED,
    LAYER("resid_mlp_dropout", "residual_dropout", "mlp.down_proj"),
    LAYER("add_2", "add", "add_1", "resid_mlp_dropout"),
    END};

static const struct row llama_end[] = {NORM("norm", "rms_norm", "@"),
                                       LINEAR("lm_head", "norm", VOCABULARY, WIDTH, BARE),
                                       LAYER("loss", "softmax_cross_entropy", "lm_head"), END};

static const struct row opt_begin[] = {
    TABLE("embed_tokens", "embedding", "@", VOCABULARY),
    TABLE("embed_positions", "position_embedding", "embed_tokens", CONTEXT), END};

static const struct row opt_block[] = {
    NORM("self_attn_layer_norm", "layer_norm", "@"),
    LLAMA_QKV("self_attn_layer_norm"),
    LAYER("self_attn.heads", "attention", "self_attn.q_proj", "self_attn.k_proj",
          "self_attn.v_proj"),
    LINEAR("self_attn.out_proj", "self_attn.heads", WIDTH, QUERIES, ATTENTION_BIAS),
    LAYER("self_attn.dropout", "residual_dropout", "self_attn.out_proj"),
    LAYER("add_1", "add", "@", "self_attn.dropout"),
    NORM("final_layer_norm", "layer_norm", "add_1"),
    LINEAR("fc1", "final_layer_norm", INNER, WIDTH, ATTENTION_BIAS),
    LAYER("act", "act", "fc1"),
    LINEAR("fc2", "act", WIDTH, INNER, ATTENTION_BIAS),
    LAYER("dropout", "residual_dropout", "fc2"),
    LAYER("add_2", "add", "add_1", "dropout"),
    END};

static const struct row opt_end[] = {NORM("final_layer_norm", "layer_norm", "@"),
                                     LINEAR("lm_head", "final_layer_norm", VOCABULARY, WIDTH, BARE),
                                     LAYER("loss", "softmax_cross_entropy", "lm_head"), END};

static const struct row gpt_neox_begin[] = {TABLE("embed_in", "embedding", "@", VOCABULARY),
                                            LAYER("emb_dropout", "embedding_dropout", "embed_in"),
                                            END};

#define NEOX_QKV(name, out)                                                                        \
    FUSED(name, "input_layernorm", out, WIDTH, ATTENTION_BIAS, "attention.query_key_value")

/* Both branches of a block read what it begins with. */
static const struct row gpt_neox_block[] = {
    NORM("input_layernorm", "layer_norm", "@"),
    NEOX_QKV("attention.q", QUERIES),
    NEOX_QKV("attention.k", KEYS),
    NEOX_QKV("attention.v", KEYS),
    LAYER("attention.q_rotary", "rotary", "attention.q"),
    LAYER("attention.k_rotary", "rotary", "attention.k"),
    LAYER("attention.heads", "attention", "attention.q_rotary", "attention.k_rotary",
          "attention.v"),
    LINEAR("attention.dense", "attention.heads", WIDTH, QUERIES, ATTENTION_BIAS),
    LAYER("post_attention_dropout", "residual_dropout", "attention.dense"),
    NORM("post_attention_layernorm", "layer_norm", "@"),
    LINEAR("mlp.dense_h_to_4h", "post_attention_layernorm", INNER, WIDTH, BIASED),
    LAYER("mlp.act", "act", "mlp.dense_h_to_4h"),
    LINEAR("mlp.dense_4h_to_h", "mlp.act", WIDTH, INNER, BIASED),
    LAYER("post_mlp_dropout", "residual_dropout", "mlp.dense_4h_to_h"),
    LAYER("add_1", "add", "@", "post_attention_dropout"),
    LAYER("add_2", "add", "add_1", "post_mlp_dropout"),
    END};

static const struct row gpt_neox_end[] = {
    NORM("final_layer_norm", "layer_norm", "@"),
    LINEAR("embed_out", "final_layer_norm", VOCABULARY, WIDTH, BARE),
    LAYER("loss", "softmax_cross_entropy", "embed_out"), END};

static const struct family {
    const char *prefix;
    const struct row *begin, *block, *end;
    const char *block_name; /* of block i: this and i */
    struct {
        bool transposed;          /* weights of blocks are [in][out] in files */
        bool qkv_bias;            /* always */
        bool by_head;             /* fused rows take turns, a head each */
        int64_t unused_positions; /* rows of the table of positions before the first */
    } has;
} families[GHP_HF_FAMILIES] = {
#define FAMILY(prefix, table, middle, last, ...)                                                   \
    {                                                                                              \
        prefix, table##_begin, middle##_block, last##_end, "layers",                               \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
    [GHP_HF_GPT2] = {"transformer.", gpt2_begin, gpt2_block, gpt2_end, "h", {true, true, false, 0}},
    [GHP_HF_LLAMA] = FAMILY("model.", llama, llama, llama, false, false, false, 0),
    [GHP_HF_MISTRAL] = FAMILY("model.", llama, llama, llama, false, false, false, 0),
    [GHP_HF_QWEN2] = FAMILY("model.", llama, llama, llama, false, true, false, 0),
    [GHP_HF_OLMO2] = FAMILY("model.", llama, olmo2, llama, false, false, false, 0),
    [GHP_HF_PHI3] = FAMILY("model.", llama, phi3, llama, false, false, false, 0),
    [GHP_HF_OPT] = FAMILY("model.decoder.", opt, opt, opt, false, false, false, 2),
    [GHP_HF_GPT_NEOX] = FAMILY("gpt_neox.", gpt_neox, gpt_neox, gpt_neox, false, false, true, 0)};
#undef FAMILY

const char *ghp_hf_prefix(enum ghp_hf_family family)
{
    return families[family].prefix;
}

const char *ghp_hf_embedding(enum ghp_hf_family family)
{
    return families[family].begin[0].name;
}

const char *ghp_hf_head(enum ghp_hf_family family)
{
    return families[family].end[1].name;
}

bool ghp_hf_has_position_table(enum ghp_hf_family family)
{
    return families[family].begin[1].out == CONTEXT;
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
    switch (row->bias) {
    case BIASED: return true;
    case QKV_BIAS: return m->config->attention_bias || m->family->has.qkv_bias;
    case ATTENTION_BIAS: return m->config->attention_bias;
    case MLP_BIAS: return m->config->mlp_bias;
    default: return is(row, "layer_norm");
    }
}

/* The probability of a row of dropout. */
static double ratio_of(const struct ghp_hf_config *c, const struct row *row)
{
    return is(row, "embedding_dropout") ? c->embedding_dropout : c->residual_dropout;
}

static bool is_dropout(const struct row *row)
{
    return is(row, "embedding_dropout") || is(row, "residual_dropout");
}

/* Whether the network has this layer; those that read another one read its input. */
static bool is_there(const struct ghp_hf_config *c, const struct row *row)
{
    return !is_dropout(row) || ratio_of(c, row) > 0;
}

/* The operation's name. */
static const char *op_of(const struct ghp_hf_config *c, const struct row *row)
{
    static const char *const functions[GHP_HF_ACTIVATIONS] = {[GHP_HF_SILU] = "silu",
                                                              [GHP_HF_GELU] = "gelu",
                                                              [GHP_HF_GELU_TANH] = "gelu",
                                                              [GHP_HF_RELU] = "relu"};

    if (is_dropout(row)) return "dropout";
    return is(row, "act") ? functions[c->activation] : row->op;
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
    return m->family->has.transposed && has_bias(m, row) && row->in != NONE;
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
    if (is_dropout(row)) ghp_json_put(layer, "ratio", json_real(ratio_of(c, row)), failed);
    if (is(row, "act") && c->activation == GHP_HF_GELU_TANH)
        ghp_json_put(layer, "approximate", json_string("tanh"), failed);
    if (is(row, "attention")) {
        ghp_json_put(layer, "heads", json_integer(c->heads), failed);
        ghp_json_put(layer, "kv_heads", json_integer(c->kv_heads), failed);
    }
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
static void add_input(struct maker *m, const struct row *rows, const char *input, json_t *inputs)
{
    const struct row *row = rows;
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

static void add_layer(struct maker *m, const struct row *rows, const struct row *row)
{
    json_t *layer = json_object(), *inputs = json_array();
    char name[GHP_HF_NAME];

    name_of(m, row->name, name);
    ghp_json_put(layer, "name", json_string(name), &m->failed);
    ghp_json_put(layer, "op", json_string(op_of(m->config, row)), &m->failed);
    put_attributes(m, row, layer);
    for (int i = 0; i < 3 && row->inputs[i] != NULL; i++)
        add_input(m, rows, row->inputs[i], inputs);
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

/* Says where a part's rows are: all behind `first`, or a head at a time in turn with the other two. */
static void place_part(const struct maker *m, const struct row *row, struct ghp_hf_part *part,
                       int64_t first)
{
    bool by_head = m->family->has.by_head && row->file != NULL;

    part->run = by_head ? m->config->head_width : part->rows;
    part->step = by_head ? GHP_HF_PARTS * part->run : 0;
    part->first = by_head ? first / part->rows * part->run : first;
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
        if (row->out == CONTEXT) t->dims[0] = m->family->has.unused_positions;
    }
    t->dims[t->transposed] += rows;
    place_part(m, row, add_part(m, t, row, part), t->dims[t->transposed] - rows);
}

static void add_rows(struct maker *m, const struct row *rows)
{
    for (const struct row *row = rows; row->name != NULL; row++) {
        if (!is_there(m->config, row)) continue;
        add_layer(m, rows, row);
        if (row->out == NONE || is_tied(m, row)) continue;
        add_tensor(m, row, "weight");
        if (has_bias(m, row)) add_tensor(m, row, "bias");
    }
}

/* What the next table begins with: the last layer so far. */
static void pass_on(struct maker *m, const struct row *rows)
{
    const struct row *last = rows;

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
