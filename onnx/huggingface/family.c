/* onnx/huggingface/family.c - the layers of each family; see family.h. */
#include "onnx/huggingface/family.h"

#include <string.h>

#define LAYER(name, op, ...)                                                                       \
    {                                                                                              \
        name, op, {__VA_ARGS__}, GHP_HF_NONE, GHP_HF_NONE, GHP_HF_BARE, NULL                       \
    }
#define TABLE(name, op, from, out)                                                                 \
    {                                                                                              \
        name, op, {from}, out, GHP_HF_WIDTH, GHP_HF_BARE, NULL                                     \
    }
#define NORM(name, op, from)                                                                       \
    {                                                                                              \
        name, op, {from}, GHP_HF_WIDTH, GHP_HF_NONE, GHP_HF_BARE, NULL                             \
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
        NULL, NULL, {NULL}, GHP_HF_NONE, GHP_HF_NONE, GHP_HF_BARE, NULL                            \
    }

/* ---- the families ---- */

static const struct ghp_hf_row gpt2_begin[] = {
    TABLE("wte", "embedding", "@", GHP_HF_VOCABULARY),
    TABLE("wpe", "position_embedding", "wte", GHP_HF_CONTEXT),
    LAYER("drop", "embedding_dropout", "wpe"), END};

static const struct ghp_hf_row gpt2_block[] = {
    NORM("ln_1", "layer_norm", "@"),
    FUSED("attn.q", "ln_1", GHP_HF_QUERIES, GHP_HF_WIDTH, GHP_HF_BIASED, "attn.c_attn"),
    FUSED("attn.k", "ln_1", GHP_HF_KEYS, GHP_HF_WIDTH, GHP_HF_BIASED, "attn.c_attn"),
    FUSED("attn.v", "ln_1", GHP_HF_KEYS, GHP_HF_WIDTH, GHP_HF_BIASED, "attn.c_attn"),
    LAYER("attn.heads", "attention", "attn.q", "attn.k", "attn.v"),
    LINEAR("attn.c_proj", "attn.heads", GHP_HF_WIDTH, GHP_HF_QUERIES, GHP_HF_BIASED),
    LAYER("attn.resid_dropout", "residual_dropout", "attn.c_proj"),
    LAYER("add_1", "add", "@", "attn.resid_dropout"),
    NORM("ln_2", "layer_norm", "add_1"),
    LINEAR("mlp.c_fc", "ln_2", GHP_HF_INNER, GHP_HF_WIDTH, GHP_HF_BIASED),
    LAYER("mlp.act", "act", "mlp.c_fc"),
    LINEAR("mlp.c_proj", "mlp.act", GHP_HF_WIDTH, GHP_HF_INNER, GHP_HF_BIASED),
    LAYER("mlp.dropout", "residual_dropout", "mlp.c_proj"),
    LAYER("add_2", "add", "add_1", "mlp.dropout"),
    END};

static const struct ghp_hf_row gpt2_end[] = {
    NORM("ln_f", "layer_norm", "@"),
    LINEAR("lm_head", "ln_f", GHP_HF_VOCABULARY, GHP_HF_WIDTH, GHP_HF_BARE),
    LAYER("loss", "softmax_cross_entropy", "lm_head"), END};

static const struct ghp_hf_row llama_begin[] = {
    TABLE("embed_tokens", "embedding", "@", GHP_HF_VOCABULARY),
    LAYER("embed_dropout", "embedding_dropout", "embed_tokens"), END};

#define ROTARY_HEADS(q, k)                                                                         \
    LAYER("self_attn.q_rotary", "rotary", q), LAYER("self_attn.k_rotary", "rotary", k),            \
        LAYER("self_attn.heads", "attention", "self_attn.q_rotary", "self_attn.k_rotary",          \
              "self_attn.v_proj"),                                                                 \
        LINEAR("self_attn.o_proj", "self_attn.heads", GHP_HF_WIDTH, GHP_HF_QUERIES,                \
               GHP_HF_ATTENTION_BIAS)

#define LLAMA_QKV(from)                                                                            \
    LINEAR("self_attn.q_proj", from, GHP_HF_QUERIES, GHP_HF_WIDTH, GHP_HF_QKV_BIAS),               \
        LINEAR("self_attn.k_proj", from, GHP_HF_KEYS, GHP_HF_WIDTH, GHP_HF_QKV_BIAS),              \
        LINEAR("self_attn.v_proj", from, GHP_HF_KEYS, GHP_HF_WIDTH, GHP_HF_QKV_BIAS)

#define GATED                                                                                      \
    LAYER("mlp.act", "act", "mlp.gate_proj"), LAYER("mlp.gated", "mul", "mlp.act", "mlp.up_proj"), \
        LINEAR("mlp.down_proj", "mlp.gated", GHP_HF_WIDTH, GHP_HF_INNER, GHP_HF_MLP_BIAS)

#define LLAMA_MLP(from)                                                                            \
    LINEAR("mlp.gate_proj", from, GHP_HF_INNER, GHP_HF_WIDTH, GHP_HF_MLP_BIAS),                    \
        LINEAR("mlp.up_proj", from, GHP_HF_INNER, GHP_HF_WIDTH, GHP_HF_MLP_BIAS), GATED

static const struct ghp_hf_row llama_block[] = {
    NORM("input_layernorm", "rms_norm", "@"),
    LLAMA_QKV("input_layernorm"),
    ROTARY_HEADS("self_attn.q_proj", "self_attn.k_proj"),
    LAYER("add_1", "add", "@", "self_attn.o_proj"),
    NORM("post_attention_layernorm", "rms_norm", "add_1"),
    LLAMA_MLP("post_attention_layernorm"),
    LAYER("add_2", "add", "add_1", "mlp.down_proj"),
    END};

/* Norms of queries and keys, and after each branch in place of before it. */
static const struct ghp_hf_row olmo2_block[] = {
    LLAMA_QKV("@"),
    {"self_attn.q_norm",
     "rms_norm",
     {"self_attn.q_proj"},
     GHP_HF_QUERIES,
     GHP_HF_NONE,
     GHP_HF_BARE,
     NULL},
    {"self_attn.k_norm",
     "rms_norm",
     {"self_attn.k_proj"},
     GHP_HF_KEYS,
     GHP_HF_NONE,
     GHP_HF_BARE,
     NULL},
    ROTARY_HEADS("self_attn.q_norm", "self_attn.k_norm"),
    NORM("post_attention_layernorm", "rms_norm", "self_attn.o_proj"),
    LAYER("add_1", "add", "@", "post_attention_layernorm"),
    LLAMA_MLP("add_1"),
    NORM("post_feedforward_layernorm", "rms_norm", "mlp.down_proj"),
    LAYER("add_2", "add", "add_1", "post_feedforward_layernorm"),
    END};

/* Each head of queries and keys has a norm, all with the same weights. */
static const struct ghp_hf_row qwen3_block[] = {
    NORM("input_layernorm", "rms_norm", "@"),
    LLAMA_QKV("input_layernorm"),
    {"self_attn.q_norm",
     "rms_norm",
     {"self_attn.q_proj"},
     GHP_HF_HEAD,
     GHP_HF_NONE,
     GHP_HF_BARE,
     NULL},
    {"self_attn.k_norm",
     "rms_norm",
     {"self_attn.k_proj"},
     GHP_HF_HEAD,
     GHP_HF_NONE,
     GHP_HF_BARE,
     NULL},
    ROTARY_HEADS("self_attn.q_norm", "self_attn.k_norm"),
    LAYER("add_1", "add", "@", "self_attn.o_proj"),
    NORM("post_attention_layernorm", "rms_norm", "add_1"),
    LLAMA_MLP("post_attention_layernorm"),
    LAYER("add_2", "add", "add_1", "mlp.down_proj"),
    END};

static const struct ghp_hf_row gemma_begin[] = {
    TABLE("embed_tokens", "embedding", "@", GHP_HF_VOCABULARY),
    LAYER("embed_scale", "scale", "embed_tokens"), END};

/* Norms before and after each branch. */
static const struct ghp_hf_row gemma2_block[] = {
    NORM("input_layernorm", "rms_norm", "@"),
    LLAMA_QKV("input_layernorm"),
    ROTARY_HEADS("self_attn.q_proj", "self_attn.k_proj"),
    NORM("post_attention_layernorm", "rms_norm", "self_attn.o_proj"),
    LAYER("add_1", "add", "@", "post_attention_layernorm"),
    NORM("pre_feedforward_layernorm", "rms_norm", "add_1"),
    LLAMA_MLP("pre_feedforward_layernorm"),
    NORM("post_feedforward_layernorm", "rms_norm", "mlp.down_proj"),
    LAYER("add_2", "add", "add_1", "post_feedforward_layernorm"),
    END};

static const struct ghp_hf_row gemma2_end[] = {
    NORM("norm", "rms_norm", "@"),
    LINEAR("lm_head", "norm", GHP_HF_VOCABULARY, GHP_HF_WIDTH, GHP_HF_BARE),
    LAYER("cap.input", "cap_input", "lm_head"),
    LAYER("cap.tanh", "cap_tanh", "cap.input"),
    LAYER("cap.logits", "cap_logits", "cap.tanh"),
    LAYER("loss", "softmax_cross_entropy", "cap.logits"),
    END};

static const struct ghp_hf_row phi3_block[] = {
    NORM("input_layernorm", "rms_norm", "@"),
    FUSED("self_attn.q_proj", "input_layernorm", GHP_HF_QUERIES, GHP_HF_WIDTH, GHP_HF_BARE,
          "self_attn.qkv_proj"),
    FUSED("self_attn.k_proj", "input_layernorm", GHP_HF_KEYS, GHP_HF_WIDTH, GHP_HF_BARE,
          "self_attn.qkv_proj"),
    FUSED("self_attn.v_proj", "input_layernorm", GHP_HF_KEYS, GHP_HF_WIDTH, GHP_HF_BARE,
          "self_attn.qkv_proj"),
    ROTARY_HEADS("self_attn.q_proj", "self_attn.k_proj"),
    LAYER("resid_attn_dropout", "residual_dropout", "self_attn.o_proj"),
    LAYER("add_1", "add", "@", "resid_attn_dropout"),
    NORM("post_attention_layernorm", "rms_norm", "add_1"),
    FUSED("mlp.gate_proj", "post_attention_layernorm", GHP_HF_INNER, GHP_HF_WIDTH, GHP_HF_BARE,
          "mlp.gate_up_proj"),
    FUSED("mlp.up_proj", "post_attention_layernorm", GHP_HF_INNER, GHP_HF_WIDTH, GHP_HF_BARE,
          "mlp.gate_up_proj"),
    GATED,
    LAYER("resid_mlp_dropout", "residual_dropout", "mlp.down_proj"),
    LAYER("add_2", "add", "add_1", "resid_mlp_dropout"),
    END};

static const struct ghp_hf_row llama_end[] = {
    NORM("norm", "rms_norm", "@"),
    LINEAR("lm_head", "norm", GHP_HF_VOCABULARY, GHP_HF_WIDTH, GHP_HF_BARE),
    LAYER("loss", "softmax_cross_entropy", "lm_head"), END};

static const struct ghp_hf_row opt_begin[] = {
    TABLE("embed_tokens", "embedding", "@", GHP_HF_VOCABULARY),
    TABLE("embed_positions", "position_embedding", "embed_tokens", GHP_HF_CONTEXT), END};

static const struct ghp_hf_row opt_block[] = {
    NORM("self_attn_layer_norm", "layer_norm", "@"),
    LLAMA_QKV("self_attn_layer_norm"),
    LAYER("self_attn.heads", "attention", "self_attn.q_proj", "self_attn.k_proj",
          "self_attn.v_proj"),
    LINEAR("self_attn.out_proj", "self_attn.heads", GHP_HF_WIDTH, GHP_HF_QUERIES,
           GHP_HF_ATTENTION_BIAS),
    LAYER("self_attn.dropout", "residual_dropout", "self_attn.out_proj"),
    LAYER("add_1", "add", "@", "self_attn.dropout"),
    NORM("final_layer_norm", "layer_norm", "add_1"),
    LINEAR("fc1", "final_layer_norm", GHP_HF_INNER, GHP_HF_WIDTH, GHP_HF_ATTENTION_BIAS),
    LAYER("act", "act", "fc1"),
    LINEAR("fc2", "act", GHP_HF_WIDTH, GHP_HF_INNER, GHP_HF_ATTENTION_BIAS),
    LAYER("dropout", "residual_dropout", "fc2"),
    LAYER("add_2", "add", "add_1", "dropout"),
    END};

static const struct ghp_hf_row opt_end[] = {
    NORM("final_layer_norm", "layer_norm", "@"),
    LINEAR("lm_head", "final_layer_norm", GHP_HF_VOCABULARY, GHP_HF_WIDTH, GHP_HF_BARE),
    LAYER("loss", "softmax_cross_entropy", "lm_head"), END};

static const struct ghp_hf_row gpt_neox_begin[] = {
    TABLE("embed_in", "embedding", "@", GHP_HF_VOCABULARY),
    LAYER("emb_dropout", "embedding_dropout", "embed_in"), END};

#define NEOX_QKV(name, out)                                                                        \
    FUSED(name, "input_layernorm", out, GHP_HF_WIDTH, GHP_HF_ATTENTION_BIAS,                       \
          "attention.query_key_value")

/* Both branches of a block read what it begins with. */
static const struct ghp_hf_row gpt_neox_block[] = {
    NORM("input_layernorm", "layer_norm", "@"),
    NEOX_QKV("attention.q", GHP_HF_QUERIES),
    NEOX_QKV("attention.k", GHP_HF_KEYS),
    NEOX_QKV("attention.v", GHP_HF_KEYS),
    LAYER("attention.q_rotary", "rotary", "attention.q"),
    LAYER("attention.k_rotary", "rotary", "attention.k"),
    LAYER("attention.heads", "attention", "attention.q_rotary", "attention.k_rotary",
          "attention.v"),
    LINEAR("attention.dense", "attention.heads", GHP_HF_WIDTH, GHP_HF_QUERIES,
           GHP_HF_ATTENTION_BIAS),
    LAYER("post_attention_dropout", "residual_dropout", "attention.dense"),
    NORM("post_attention_layernorm", "layer_norm", "@"),
    LINEAR("mlp.dense_h_to_4h", "post_attention_layernorm", GHP_HF_INNER, GHP_HF_WIDTH,
           GHP_HF_BIASED),
    LAYER("mlp.act", "act", "mlp.dense_h_to_4h"),
    LINEAR("mlp.dense_4h_to_h", "mlp.act", GHP_HF_WIDTH, GHP_HF_INNER, GHP_HF_BIASED),
    LAYER("post_mlp_dropout", "residual_dropout", "mlp.dense_4h_to_h"),
    LAYER("add_1", "add", "@", "post_attention_dropout"),
    LAYER("add_2", "add", "add_1", "post_mlp_dropout"),
    END};

static const struct ghp_hf_row gpt_neox_end[] = {
    NORM("final_layer_norm", "layer_norm", "@"),
    LINEAR("embed_out", "final_layer_norm", GHP_HF_VOCABULARY, GHP_HF_WIDTH, GHP_HF_BARE),
    LAYER("loss", "softmax_cross_entropy", "embed_out"), END};

static const struct ghp_hf_row vit_begin[] = {
    {"embeddings.patch_embeddings.projection",
     "conv2d",
     {"@"},
     GHP_HF_WIDTH,
     GHP_HF_PATCH,
     GHP_HF_BIASED,
     NULL},
    LAYER("embeddings.patches", "patches", "embeddings.patch_embeddings.projection"),
    TABLE("embeddings.cls_token", "prepend", "embeddings.patches", GHP_HF_ONE),
    TABLE("embeddings.position_embeddings", "position_embedding", "embeddings.cls_token",
          GHP_HF_CONTEXT),
    LAYER("embeddings.dropout", "embedding_dropout", "embeddings.position_embeddings"),
    END};

#define VIT_QKV(name)                                                                              \
    LINEAR("attention.attention." name, "layernorm_before", GHP_HF_QUERIES, GHP_HF_WIDTH,          \
           GHP_HF_QKV_BIAS)

static const struct ghp_hf_row vit_block[] = {
    NORM("layernorm_before", "layer_norm", "@"),
    VIT_QKV("query"),
    VIT_QKV("key"),
    VIT_QKV("value"),
    LAYER("attention.heads", "attention", "attention.attention.query", "attention.attention.key",
          "attention.attention.value"),
    LINEAR("attention.output.dense", "attention.heads", GHP_HF_WIDTH, GHP_HF_QUERIES,
           GHP_HF_BIASED),
    LAYER("attention.output.dropout", "residual_dropout", "attention.output.dense"),
    LAYER("add_1", "add", "@", "attention.output.dropout"),
    NORM("layernorm_after", "layer_norm", "add_1"),
    LINEAR("intermediate.dense", "layernorm_after", GHP_HF_INNER, GHP_HF_WIDTH, GHP_HF_BIASED),
    LAYER("intermediate.act", "act", "intermediate.dense"),
    LINEAR("output.dense", "intermediate.act", GHP_HF_WIDTH, GHP_HF_INNER, GHP_HF_BIASED),
    LAYER("output.dropout", "residual_dropout", "output.dense"),
    LAYER("add_2", "add", "add_1", "output.dropout"),
    END};

static const struct ghp_hf_row vit_end[] = {
    NORM("layernorm", "layer_norm", "@"), LAYER("first", "first", "layernorm"),
    LINEAR("classifier", "first", GHP_HF_LABELS, GHP_HF_WIDTH, GHP_HF_BIASED),
    LAYER("loss", "softmax_cross_entropy", "classifier"), END};

/* ---- encoders: norms stand after the sum with each branch ---- */

#define FIRST_TYPE(name, from)                                                                     \
    {                                                                                              \
        name, "bias", {from}, GHP_HF_TYPES, GHP_HF_WIDTH, GHP_HF_BARE, NULL                        \
    }

/* Every token is of the first type, whose vector is a bias. */
static const struct ghp_hf_row bert_begin[] = {
    TABLE("embeddings.word_embeddings", "embedding", "@", GHP_HF_VOCABULARY),
    FIRST_TYPE("embeddings.token_type_embeddings", "embeddings.word_embeddings"),
    TABLE("embeddings.position_embeddings", "position_embedding",
          "embeddings.token_type_embeddings", GHP_HF_CONTEXT),
    NORM("embeddings.LayerNorm", "layer_norm", "embeddings.position_embeddings"),
    LAYER("embeddings.dropout", "embedding_dropout", "embeddings.LayerNorm"),
    END};

static const struct ghp_hf_row distilbert_begin[] = {
    TABLE("embeddings.word_embeddings", "embedding", "@", GHP_HF_VOCABULARY),
    TABLE("embeddings.position_embeddings", "position_embedding", "embeddings.word_embeddings",
          GHP_HF_CONTEXT),
    NORM("embeddings.LayerNorm", "layer_norm", "embeddings.position_embeddings"),
    LAYER("embeddings.dropout", "embedding_dropout", "embeddings.LayerNorm"), END};

#define ATTEND(query, key, value, out)                                                             \
    LINEAR(query, "@", GHP_HF_QUERIES, GHP_HF_WIDTH, GHP_HF_BIASED),                               \
        LINEAR(key, "@", GHP_HF_KEYS, GHP_HF_WIDTH, GHP_HF_BIASED),                                \
        LINEAR(value, "@", GHP_HF_KEYS, GHP_HF_WIDTH, GHP_HF_BIASED),                              \
        LAYER("attention.heads", "attention", query, key, value),                                  \
        LINEAR(out, "attention.heads", GHP_HF_WIDTH, GHP_HF_QUERIES, GHP_HF_BIASED)

/* add_1, `norm`, two linear layers, add_2 */
#define FEED(branch, norm, inner, outer)                                                           \
    LAYER("add_1", "add", "@", branch), NORM(norm, "layer_norm", "add_1"),                         \
        LINEAR(inner, norm, GHP_HF_INNER, GHP_HF_WIDTH, GHP_HF_BIASED),                            \
        LAYER("act", "act", inner),                                                                \
        LINEAR(outer, "act", GHP_HF_WIDTH, GHP_HF_INNER, GHP_HF_BIASED),                           \
        LAYER("dropout", "residual_dropout", outer), LAYER("add_2", "add", norm, "dropout")

static const struct ghp_hf_row bert_block[] = {
    ATTEND("attention.self.query", "attention.self.key", "attention.self.value",
           "attention.output.dense"),
    LAYER("attention.dropout", "residual_dropout", "attention.output.dense"),
    FEED("attention.dropout", "attention.output.LayerNorm", "intermediate.dense", "output.dense"),
    NORM("output.LayerNorm", "layer_norm", "add_2"), END};

static const struct ghp_hf_row distilbert_block[] = {
    ATTEND("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
    FEED("attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2"),
    NORM("output_layer_norm", "layer_norm", "add_2"), END};

/* A layer, then the vocabulary, by the embedding's weights. */
#define SAY(dense, act, norm, head)                                                                \
    LINEAR(dense, "@", GHP_HF_WIDTH, GHP_HF_WIDTH, GHP_HF_BIASED), LAYER("head.act", act, dense),  \
        NORM(norm, "layer_norm", "head.act"), head

static const struct ghp_hf_row bert_end[] = {
    SAY("cls.predictions.transform.dense", "act", "cls.predictions.transform.LayerNorm",
        LINEAR("cls.predictions.decoder", "cls.predictions.transform.LayerNorm", GHP_HF_VOCABULARY,
               GHP_HF_WIDTH, GHP_HF_BIASED_ABOVE)),
    LAYER("loss", "softmax_cross_entropy", "cls.predictions.decoder"), END};

static const struct ghp_hf_row roberta_end[] = {
    SAY("lm_head.dense", "gelu", "lm_head.layer_norm",
        LINEAR("lm_head.decoder", "lm_head.layer_norm", GHP_HF_VOCABULARY, GHP_HF_WIDTH,
               GHP_HF_BIASED_ABOVE)),
    LAYER("loss", "softmax_cross_entropy", "lm_head.decoder"), END};

static const struct ghp_hf_row distilbert_end[] = {
    SAY("vocab_transform", "act", "vocab_layer_norm",
        LINEAR("vocab_projector", "vocab_layer_norm", GHP_HF_VOCABULARY, GHP_HF_WIDTH,
               GHP_HF_BIASED)),
    LAYER("loss", "softmax_cross_entropy", "vocab_projector"), END};

/* What the first position says of the sample. */
#define CLASSIFY(name, from)                                                                       \
    LAYER("dropout", "classifier_dropout", from),                                                  \
        LINEAR(name, "dropout", GHP_HF_LABELS, GHP_HF_WIDTH, GHP_HF_BIASED),                       \
        LAYER("loss", "softmax_cross_entropy", name), END

static const struct ghp_hf_row bert_classifier[] = {
    LAYER("first", "first", "@"),
    LINEAR("pooler.dense", "first", GHP_HF_WIDTH, GHP_HF_WIDTH, GHP_HF_BIASED),
    LAYER("pooler.activation", "tanh", "pooler.dense"),
    CLASSIFY("classifier", "pooler.activation")};

static const struct ghp_hf_row roberta_classifier[] = {
    LAYER("first", "first", "@"), LAYER("first.dropout", "classifier_dropout", "first"),
    LINEAR("classifier.dense", "first.dropout", GHP_HF_WIDTH, GHP_HF_WIDTH, GHP_HF_BIASED),
    LAYER("classifier.tanh", "tanh", "classifier.dense"),
    CLASSIFY("classifier.out_proj", "classifier.tanh")};

static const struct ghp_hf_row distilbert_classifier[] = {
    LAYER("first", "first", "@"),
    LINEAR("pre_classifier", "first", GHP_HF_WIDTH, GHP_HF_WIDTH, GHP_HF_BIASED),
    LAYER("relu", "relu", "pre_classifier"), CLASSIFY("classifier", "relu")};

const struct ghp_hf_tables ghp_hf_tables[GHP_HF_FAMILIES] = {
#define FAMILY(prefix, table, middle, last, ...)                                                   \
    {                                                                                              \
        prefix, table##_begin, middle##_block, last##_end, NULL, "layers",                         \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
    [GHP_HF_GPT2] = {"transformer.",
                     gpt2_begin,
                     gpt2_block,
                     gpt2_end,
                     NULL,
                     "h",
                     {.transposed = true, .qkv_bias = true}},
    [GHP_HF_VIT] = {"vit.",
                    vit_begin,
                    vit_block,
                    vit_end,
                    NULL,
                    "encoder.layer",
                    {.sees_all = true, .bare_tables = true}},
    [GHP_HF_LLAMA] = FAMILY("model.", llama, llama, llama, .unused_positions = 0),
    [GHP_HF_MISTRAL] = FAMILY("model.", llama, llama, llama, .unused_positions = 0),
    [GHP_HF_QWEN2] = FAMILY("model.", llama, llama, llama, .qkv_bias = true),
    [GHP_HF_OLMO2] = FAMILY("model.", llama, olmo2, llama, .unused_positions = 0),
    [GHP_HF_PHI3] = FAMILY("model.", llama, phi3, llama, .unused_positions = 0),
    [GHP_HF_OPT] = FAMILY("model.decoder.", opt, opt, opt, .unused_positions = 2),
    [GHP_HF_GPT_NEOX] = FAMILY("gpt_neox.", gpt_neox, gpt_neox, gpt_neox, .by_head = true),
    [GHP_HF_QWEN3] = FAMILY("model.", llama, qwen3, llama, .unused_positions = 0),
    [GHP_HF_GEMMA] = FAMILY("model.", gemma, llama, llama, .norm_offset = true),
    [GHP_HF_GEMMA2] = FAMILY("model.", gemma, gemma2, gemma2, .norm_offset = true),
#undef FAMILY
#define ENCODER(begin, name, blocks)                                                               \
    {                                                                                              \
#name ".", begin##_begin, begin##_block, name##_end, name##_classifier, blocks,            \
        {                                                                                          \
            .sees_all = true                                                                       \
        }                                                                                          \
    }
    [GHP_HF_BERT] = ENCODER(bert, bert, "encoder.layer"),
    [GHP_HF_ROBERTA] = ENCODER(bert, roberta, "encoder.layer"),
    [GHP_HF_DISTILBERT] = ENCODER(distilbert, distilbert, "transformer.layer")};
#undef ENCODER

const char *ghp_hf_prefix(enum ghp_hf_family family)
{
    return ghp_hf_tables[family].prefix;
}

const char *ghp_hf_embedding(enum ghp_hf_family family)
{
    return ghp_hf_tables[family].begin[0].name;
}

const char *ghp_hf_head(enum ghp_hf_family family)
{
    const struct ghp_hf_row *row = ghp_hf_tables[family].end;

    while (row->out != GHP_HF_VOCABULARY && row->out != GHP_HF_LABELS)
        row++;
    return row->name;
}

bool ghp_hf_is_outside(const char *module)
{
    static const char *const outside[] = {"lm_head", "embed_out", "classifier",
                                          "cls.",    "vocab_",    "pre_classifier"};

    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        if (strncmp(module, outside[i], strlen(outside[i])) == 0) return true;
    return false;
}

bool ghp_hf_has_position_table(enum ghp_hf_family family)
{
    for (const struct ghp_hf_row *row = ghp_hf_tables[family].begin; row->name != NULL; row++)
        if (row->out == GHP_HF_CONTEXT) return true;
    return false;
}
