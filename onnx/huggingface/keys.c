/* onnx/huggingface/keys.c - see config_private.h. */
#include "onnx/huggingface/config_private.h"

#include <string.h>

#define AT(field) offsetof(struct ghp_hf_config, field)
#define KEY(name, kind, field, usual)                                                              \
    {                                                                                              \
        name, GHP_HF_##kind, AT(field), usual, NULL                                                \
    }
#define MUST(name, value)                                                                          \
    {                                                                                              \
        name, GHP_HF_MUST, 0, 0, value                                                             \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, GHP_HF_SIZE, 0, 0, NULL                                                              \
    }

static const struct ghp_hf_key gpt2_keys[] = {
    KEY("vocab_size", REQUIRED, vocabulary, 0),
    KEY("n_positions", REQUIRED, context, 0),
    KEY("n_embd", REQUIRED, width, 0),
    KEY("n_layer", REQUIRED, blocks, 0),
    KEY("n_head", REQUIRED, heads, 0),
    KEY("n_inner", SIZE, inner, 0),
    KEY("layer_norm_epsilon", REAL, epsilon, 1e-5),
    KEY("activation_function", ACTIVATION, activation, GHP_HF_GELU_TANH),
    KEY("initializer_range", REAL, deviation, 0.02),
    KEY("tie_word_embeddings", FLAG, tied, 1),
    KEY("embd_pdrop", RATIO, embedding_dropout, 0),
    KEY("resid_pdrop", RATIO, residual_dropout, 0),
    KEY("attn_pdrop", RATIO, attention_dropout, 0),
    MUST("scale_attn_weights", "true"),
    MUST("scale_attn_by_inverse_layer_idx", "false"),
    MUST("add_cross_attention", "false"),
    END};

/* Families after llama name alike what they have alike; what is usual may differ, and is read again after these. */
static const struct ghp_hf_key decoder_keys[] = {
    KEY("vocab_size", REQUIRED, vocabulary, 0),
    KEY("max_position_embeddings", REQUIRED, context, 0),
    KEY("hidden_size", REQUIRED, width, 0),
    KEY("intermediate_size", REQUIRED, inner, 0),
    KEY("num_hidden_layers", REQUIRED, blocks, 0),
    KEY("num_attention_heads", REQUIRED, heads, 0),
    KEY("num_key_value_heads", SIZE, kv_heads, 0),
    KEY("rms_norm_eps", REAL, epsilon, 1e-6),
    KEY("rope_theta", REAL, rotary.base, 10000),
    KEY("partial_rotary_factor", REAL, rotary_part, 1),
    KEY("initializer_range", REAL, deviation, 0.02),
    KEY("tie_word_embeddings", FLAG, tied, 0),
    KEY("hidden_act", ACTIVATION, activation, GHP_HF_SILU),
    KEY("attention_dropout", RATIO, attention_dropout, 0),
    END};

static const struct ghp_hf_key llama_keys[] = {
    KEY("head_dim", SIZE, head_width, 0), KEY("attention_bias", FLAG, attention_bias, 0),
    KEY("mlp_bias", FLAG, mlp_bias, 0), MUST("sliding_window", "null"), END};

static const struct ghp_hf_key mistral_keys[] = {
    KEY("head_dim", SIZE, head_width, 0), KEY("num_key_value_heads", SIZE, kv_heads, 8),
    KEY("sliding_window", OPTIONAL_SIZE, window, 4096), END};

static const struct ghp_hf_key qwen2_keys[] = {KEY("sliding_window", OPTIONAL_SIZE, window, 4096),
                                               END};

static const struct ghp_hf_key olmo2_keys[] = {KEY("rms_norm_eps", REAL, epsilon, 1e-5),
                                               KEY("attention_bias", FLAG, attention_bias, 0), END};

static const struct ghp_hf_key phi3_keys[] = {KEY("rms_norm_eps", REAL, epsilon, 1e-5),
                                              KEY("sliding_window", OPTIONAL_SIZE, window, 0),
                                              KEY("embd_pdrop", RATIO, embedding_dropout, 0),
                                              KEY("resid_pdrop", RATIO, residual_dropout, 0), END};

static const struct ghp_hf_key opt_keys[] = {
    KEY("vocab_size", REQUIRED, vocabulary, 0),
    KEY("max_position_embeddings", REQUIRED, context, 0),
    KEY("hidden_size", REQUIRED, width, 0),
    KEY("ffn_dim", REQUIRED, inner, 0),
    KEY("num_hidden_layers", REQUIRED, blocks, 0),
    KEY("num_attention_heads", REQUIRED, heads, 0),
    KEY("activation_function", ACTIVATION, activation, GHP_HF_RELU),
    KEY("init_std", REAL, deviation, 0.02),
    KEY("tie_word_embeddings", FLAG, tied, 1),
    KEY("enable_bias", FLAG, attention_bias, 1),
    KEY("dropout", RATIO, embedding_dropout, 0),
    KEY("dropout", RATIO, residual_dropout, 0),
    KEY("attention_dropout", RATIO, attention_dropout, 0),
    MUST("layerdrop", "0"),
    MUST("do_layer_norm_before", "true"),
    MUST("_remove_final_layer_norm", "false"),
    MUST("layer_norm_elementwise_affine", "true"),
    END};

static const struct ghp_hf_key gpt_neox_keys[] = {
    KEY("layer_norm_eps", REAL, epsilon, 1e-5),
    KEY("hidden_act", ACTIVATION, activation, GHP_HF_GELU),
    KEY("attention_bias", FLAG, attention_bias, 1),
    KEY("rotary_emb_base", REAL, rotary.base, 10000),
    KEY("rotary_pct", REAL, rotary_part, 0.25),
    KEY("hidden_dropout", RATIO, embedding_dropout, 0),
    KEY("hidden_dropout", RATIO, residual_dropout, 0),
    MUST("use_parallel_residual", "true"),
    MUST("num_key_value_heads", "null"),
    END};

static const struct ghp_hf_key qwen3_keys[] = {
    KEY("head_dim", SIZE, head_width, 128), KEY("attention_bias", FLAG, attention_bias, 0),
    KEY("sliding_window", OPTIONAL_SIZE, window, 4096), END};

#define GEMMA(kv)                                                                                  \
    KEY("head_dim", SIZE, head_width, 256), KEY("num_key_value_heads", SIZE, kv_heads, kv),        \
        KEY("attention_bias", FLAG, attention_bias, 0), KEY("tie_word_embeddings", FLAG, tied, 1)

static const struct ghp_hf_key gemma_keys[] = {
    GEMMA(16), KEY("hidden_act", ACTIVATION, activation, GHP_HF_GELU_TANH), END};

static const struct ghp_hf_key gemma2_keys[] = {
    GEMMA(4),
    KEY("hidden_activation", ACTIVATION, activation, GHP_HF_GELU_TANH),
    KEY("query_pre_attn_scalar", REAL, query_scalar, 256),
    KEY("attn_logit_softcapping", OPTIONAL_REAL, attention_softcap, 50),
    KEY("final_logit_softcapping", OPTIONAL_REAL, logits_softcap, 30),
    KEY("sliding_window", OPTIONAL_SIZE, window, 4096),
    END};

static const struct ghp_hf_key vit_keys[] = {
    KEY("hidden_size", REQUIRED, width, 0),
    KEY("intermediate_size", REQUIRED, inner, 0),
    KEY("num_hidden_layers", REQUIRED, blocks, 0),
    KEY("num_attention_heads", REQUIRED, heads, 0),
    KEY("image_size", SIZE, image, 224),
    KEY("patch_size", SIZE, patch, 16),
    KEY("num_channels", SIZE, channels, 3),
    KEY("layer_norm_eps", REAL, epsilon, 1e-12),
    KEY("initializer_range", REAL, deviation, 0.02),
    KEY("hidden_act", ACTIVATION, activation, GHP_HF_GELU),
    KEY("qkv_bias", FLAG, attention_bias, 1),
    KEY("hidden_dropout_prob", RATIO, embedding_dropout, 0),
    KEY("hidden_dropout_prob", RATIO, residual_dropout, 0),
    KEY("attention_probs_dropout_prob", RATIO, attention_dropout, 0),
    END};

static const struct ghp_hf_key bert_keys[] = {
    KEY("vocab_size", REQUIRED, vocabulary, 0),
    KEY("max_position_embeddings", REQUIRED, context, 0),
    KEY("hidden_size", REQUIRED, width, 0),
    KEY("intermediate_size", REQUIRED, inner, 0),
    KEY("num_hidden_layers", REQUIRED, blocks, 0),
    KEY("num_attention_heads", REQUIRED, heads, 0),
    KEY("type_vocab_size", SIZE, types, 2),
    KEY("layer_norm_eps", REAL, epsilon, 1e-12),
    KEY("initializer_range", REAL, deviation, 0.02),
    KEY("tie_word_embeddings", FLAG, tied, 1),
    KEY("hidden_act", ACTIVATION, activation, GHP_HF_GELU),
    KEY("hidden_dropout_prob", RATIO, embedding_dropout, 0),
    KEY("hidden_dropout_prob", RATIO, residual_dropout, 0),
    KEY("attention_probs_dropout_prob", RATIO, attention_dropout, 0),
    MUST("position_embedding_type", "\"absolute\""),
    MUST("is_decoder", "false"),
    MUST("add_cross_attention", "false"),
    END};

static const struct ghp_hf_key distilbert_keys[] = {
    KEY("vocab_size", REQUIRED, vocabulary, 0),
    KEY("max_position_embeddings", REQUIRED, context, 0),
    KEY("dim", REQUIRED, width, 0),
    KEY("hidden_dim", REQUIRED, inner, 0),
    KEY("n_layers", REQUIRED, blocks, 0),
    KEY("n_heads", REQUIRED, heads, 0),
    KEY("initializer_range", REAL, deviation, 0.02),
    KEY("tie_word_embeddings", FLAG, tied, 1),
    KEY("activation", ACTIVATION, activation, GHP_HF_GELU),
    KEY("dropout", RATIO, embedding_dropout, 0),
    KEY("dropout", RATIO, residual_dropout, 0),
    KEY("attention_dropout", RATIO, attention_dropout, 0),
    MUST("sinusoidal_pos_embds", "false"),
    END};

const struct ghp_hf_family_keys ghp_hf_family_keys[GHP_HF_FAMILIES] = {
    [GHP_HF_GPT2] = {"gpt2",
                     "GPT2LMHeadModel",
                     NULL,
                     gpt2_keys,
                     {"n_ctx", "reorder_and_upcast_attn", "summary_activation",
                      "summary_first_dropout", "summary_proj_to_labels", "summary_type",
                      "summary_use_proj", NULL}},
    [GHP_HF_OPT] = {"opt", "OPTForCausalLM", NULL, opt_keys, {"word_embed_proj_dim", NULL}},
#define DECODER(name, class, keys, ...)                                                            \
    {                                                                                              \
        name, class "ForCausalLM", decoder_keys, keys,                                             \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
    [GHP_HF_LLAMA] = DECODER("llama", "Llama", llama_keys, "pretraining_tp", NULL),
    [GHP_HF_MISTRAL] = DECODER("mistral", "Mistral", mistral_keys, NULL),
    [GHP_HF_QWEN2] = DECODER("qwen2", "Qwen2", qwen2_keys, NULL),
    [GHP_HF_OLMO2] = DECODER("olmo2", "Olmo2", olmo2_keys, NULL),
    [GHP_HF_PHI3] = DECODER("phi3", "Phi3", phi3_keys, "original_max_position_embeddings", NULL),
    [GHP_HF_GPT_NEOX] = DECODER("gpt_neox", "GPTNeoX", gpt_neox_keys, NULL),
    [GHP_HF_QWEN3] = DECODER("qwen3", "Qwen3", qwen3_keys, NULL),
    /* transformers reads hidden_act alone */
    [GHP_HF_GEMMA] = DECODER("gemma", "Gemma", gemma_keys, "hidden_activation", NULL),
    [GHP_HF_GEMMA2] = DECODER("gemma2", "Gemma2", gemma2_keys, NULL),
#undef DECODER
    /* a decoder of patches and a pooler, which are other tasks' */
    [GHP_HF_VIT] = {"vit",
                    "ViTForImageClassification",
                    NULL,
                    vit_keys,
                    {"encoder_stride", "pooler_act", "pooler_output_size", "tie_word_embeddings",
                     NULL}},
    [GHP_HF_BERT] = {"bert", "BertForMaskedLM", NULL, bert_keys, {"pooler_*", NULL}},
    [GHP_HF_ROBERTA] = {"roberta", "RobertaForMaskedLM", NULL, bert_keys, {NULL}},
    [GHP_HF_DISTILBERT] = {"distilbert",
                           "DistilBertForMaskedLM",
                           NULL,
                           distilbert_keys,
                           {"qa_dropout", "seq_classif_dropout", NULL}}};

const char *const ghp_hf_shared_names[] = {"rope_scaling",       "rope_parameters",   "layer_types",
                                           "use_sliding_window", "max_window_layers", NULL};

/* "gelu_new" and "gelu_pytorch_tanh" are one function. */
const char *const ghp_hf_activation_names[GHP_HF_ACTIVATIONS + 2] = {
    [GHP_HF_SILU] = "silu",
    [GHP_HF_GELU] = "gelu",
    [GHP_HF_GELU_TANH] = "gelu_pytorch_tanh",
    [GHP_HF_RELU] = "relu",
    [GHP_HF_ACTIVATIONS] = "gelu_new"};

const struct ghp_hf_key ghp_hf_common_keys[] = {MUST("is_encoder_decoder", "false"),
                                                MUST("is_causal", "true"),
                                                MUST("use_bidirectional_attention", "false"),
                                                MUST("quantization_config", "null"),
                                                MUST("auto_map", "null"),
                                                MUST("pruned_heads", "{}"),
                                                END};

/* Keys of every family that change nothing; '*' stands for any letters. They say where the file comes from, which
 * classes and numbers read it, what calls return, how text is generated, or what a classifier on top has. */
static const char *const harmless[] = {
    /* origin and classes */
    "_*", "architectures", "model_type", "name", "name_or_path", "is_*_config", "*_version",
    "*version*", "unsloth_*", "tokenizer_*", "*_class", "prefix", "finetuning_task",
    "task_specific_params", "license", "tags", "language", "*_date",
    /* numbers and how they are computed */
    "dtype", "torch_dtype", "torchscript", "use_bfloat16", "tf_*", "use_cache", "*_cache",
    "cache_*", "attn_implementation", "*gradient_checkpointing*", "chunk_size_feed_forward",
    "*_memory",
    /* what calls return */
    "output_*", "return_*", "use_return_dict", "remove_invalid_values",
    /* what is not this network: other tasks' outputs, an encoder */
    "num_labels", "id2label", "label2id", "problem_type", "is_decoder", "classifier_*",
    "cross_attention_hidden_size", "tie_encoder_decoder",
    /* tokens and generation */
    "*_token_id", "*_token_ids", "*_token", "*_tokens", "bad_words_ids", "force_words_ids",
    "max_length", "min_length", "model_max_length", "max_new_tokens", "min_new_tokens", "do_sample",
    "early_stopping", "num_beams", "num_beam_groups", "num_return_sequences", "temperature",
    "top_k", "top_p", "min_p", "typical_p", "*_penalty", "*_ngram_size", "generation_*",
    "*_schedule", NULL};

/* Whether a name is the pattern's: each '*' of it stands for any letters. */
static bool matches(const char *name, const char *pattern)
{
    if (*pattern == '\0') return *name == '\0';
    if (*pattern != '*') return *name == *pattern && matches(name + 1, pattern + 1);
    return matches(name, pattern + 1) || (*name != '\0' && matches(name + 1, pattern));
}

bool ghp_hf_key_is_listed(const char *name, const char *const *list)
{
    for (; *list != NULL; list++)
        if (matches(name, *list)) return true;
    return false;
}

bool ghp_hf_key_is_harmless(const char *name)
{
    return ghp_hf_key_is_listed(name, harmless);
}

bool ghp_hf_key_is_in(const char *name, const struct ghp_hf_key *keys)
{
    for (; keys != NULL && keys->name != NULL; keys++)
        if (strcmp(keys->name, name) == 0) return true;
    return false;
}
