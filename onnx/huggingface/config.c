/* onnx/huggingface/config.c - see config.h. */
#include "onnx/huggingface/config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The most that a size may be: as many as channels of a layer may be (core/model). */
enum { MOST = 1 << 24, MOST_BLOCKS = 4096 };

/* ---- keys ---- */

enum kind {
    SIZE,     /* int64_t, >= 1; absent or null: `usual`, or where that is 0 left to the family */
    REAL,     /* double, > 0; absent: `usual` */
    FLAG,     /* bool; absent: `usual` */
    REQUIRED, /* SIZE that must be there */
    MUST /* only this value computes what ghp does: `text`, a number, or null; absent is right, too */
};

struct key {
    const char *name; /* NULL ends a list */
    enum kind kind;
    size_t at; /* in struct ghp_hf_config */
    double usual;
    const char *text; /* MUST: JSON */
};

#define AT(field) offsetof(struct ghp_hf_config, field)

static const struct key gpt2_keys[] = {{"vocab_size", REQUIRED, AT(vocabulary), 0, NULL},
                                       {"n_positions", REQUIRED, AT(context), 0, NULL},
                                       {"n_embd", REQUIRED, AT(width), 0, NULL},
                                       {"n_layer", REQUIRED, AT(blocks), 0, NULL},
                                       {"n_head", REQUIRED, AT(heads), 0, NULL},
                                       {"n_inner", SIZE, AT(inner), 0, NULL},
                                       {"layer_norm_epsilon", REAL, AT(epsilon), 1e-5, NULL},
                                       {"initializer_range", REAL, AT(deviation), 0.02, NULL},
                                       {"tie_word_embeddings", FLAG, AT(tied), 1, NULL},
                                       {"scale_attn_weights", MUST, 0, 0, "true"},
                                       {"scale_attn_by_inverse_layer_idx", MUST, 0, 0, "false"},
                                       {"add_cross_attention", MUST, 0, 0, "false"},
                                       {NULL, SIZE, 0, 0, NULL}};

static const struct key llama_keys[] = {{"vocab_size", REQUIRED, AT(vocabulary), 0, NULL},
                                        {"max_position_embeddings", REQUIRED, AT(context), 0, NULL},
                                        {"hidden_size", REQUIRED, AT(width), 0, NULL},
                                        {"intermediate_size", REQUIRED, AT(inner), 0, NULL},
                                        {"num_hidden_layers", REQUIRED, AT(blocks), 0, NULL},
                                        {"num_attention_heads", REQUIRED, AT(heads), 0, NULL},
                                        {"num_key_value_heads", SIZE, AT(kv_heads), 0, NULL},
                                        {"head_dim", SIZE, AT(head_width), 0, NULL},
                                        {"rms_norm_eps", REAL, AT(epsilon), 1e-6, NULL},
                                        {"rope_theta", REAL, AT(theta), 10000, NULL},
                                        {"initializer_range", REAL, AT(deviation), 0.02, NULL},
                                        {"tie_word_embeddings", FLAG, AT(tied), 0, NULL},
                                        {"hidden_act", MUST, 0, 0, "\"silu\""},
                                        {"attention_bias", MUST, 0, 0, "false"},
                                        {"mlp_bias", MUST, 0, 0, "false"},
                                        {"rope_scaling", MUST, 0, 0, "null"},
                                        {"partial_rotary_factor", MUST, 0, 0, "1.0"},
                                        {"sliding_window", MUST, 0, 0, "null"},
                                        {NULL, SIZE, 0, 0, NULL}};

static const struct family {
    const char *name, *architecture;
    const struct key *keys;
    const char *own[16]; /* keys that the family's functions read, and those that change nothing */
} families[GHP_HF_FAMILIES] = {
    [GHP_HF_GPT2] = {"gpt2",
                     "GPT2LMHeadModel",
                     gpt2_keys,
                     {"activation_function", "n_ctx", "embd_pdrop", "attn_pdrop", "resid_pdrop",
                      "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
                      "summary_proj_to_labels", "summary_type", "summary_use_proj", NULL}},
    [GHP_HF_LLAMA] = {"llama",
                      "LlamaForCausalLM",
                      llama_keys,
                      {"rope_parameters", "attention_dropout", "pretraining_tp", NULL}}};

/* Keys of every family that another value than this one would change the network by. */
static const struct key common_keys[] = {{"is_encoder_decoder", MUST, 0, 0, "false"},
                                         {"is_causal", MUST, 0, 0, "true"},
                                         {"use_bidirectional_attention", MUST, 0, 0, "false"},
                                         {"quantization_config", MUST, 0, 0, "null"},
                                         {"auto_map", MUST, 0, 0, "null"},
                                         {"pruned_heads", MUST, 0, 0, "{}"},
                                         {NULL, SIZE, 0, 0, NULL}};

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

static bool listed(const char *name, const char *const *list)
{
    for (; *list != NULL; list++)
        if (matches(name, *list)) return true;
    return false;
}

static bool has_key(const struct key *keys, const char *name)
{
    for (; keys->name != NULL; keys++)
        if (strcmp(keys->name, name) == 0) return true;
    return false;
}

/* null, {} and [] ask for nothing. */
static bool is_empty(const json_t *value)
{
    return json_is_null(value) || (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

static enum ghp_status check_keys(const struct ghp_node *root, const struct family *family)
{
    const char *name;
    json_t *value;

    json_object_foreach(root->value, name, value)
    {
        struct ghp_node at;

        if (has_key(family->keys, name) || has_key(common_keys, name)) continue;
        if (listed(name, family->own) || listed(name, harmless) || is_empty(value)) continue;
        GHP_TRY(ghp_json_get(root, name, &at));
        return ghp_json_fail(&at, GHP_ERR_FORMAT,
                             "ghp does not know this key of a %s; remove it if it does not change "
                             "what the network computes",
                             family->name);
    }
    return GHP_OK;
}

/* Whether a key is there and not null. */
static bool has(const struct ghp_node *root, const char *name)
{
    return ghp_json_has(root, name) && !json_is_null(json_object_get(root->value, name));
}

static bool equal(const json_t *value, const json_t *right)
{
    return json_is_number(value) && json_is_number(right)
               ? json_number_value(value) == json_number_value(right)
               : json_equal(value, right);
}

static enum ghp_status check_must(const struct ghp_node *root, const struct key *key)
{
    struct ghp_node at;
    json_t *right;
    bool same;
    char *got;
    enum ghp_status status;

    if (!has(root, key->name)) return GHP_OK;
    GHP_TRY(ghp_json_get(root, key->name, &at));
    right = ghp_json_value_of(key->text);
    if (right == NULL) return GHP_NO_MEMORY();
    same = equal(at.value, right);
    json_decref(right);
    if (same) return GHP_OK;
    got = ghp_json_line_of(at.value);
    if (got == NULL) return GHP_NO_MEMORY();
    status = ghp_json_fail(&at, GHP_ERR_INPUT, "ghp has no %.64s; it takes %s alone", got,
                           key->text);
    free(got);
    return status;
}

static enum ghp_status read_key(const struct ghp_node *root, const struct key *key,
                                struct ghp_hf_config *config)
{
    void *field = (char *)config + key->at;

    switch (key->kind) {
    case REQUIRED: return ghp_json_int(root, key->name, 1, MOST, field);
    case SIZE:
        *(int64_t *)field = (int64_t)key->usual;
        return has(root, key->name) ? ghp_json_int(root, key->name, 1, MOST, field) : GHP_OK;
    case REAL:
        *(double *)field = key->usual;
        return ghp_json_opt_real(root, key->name, 1e-12, 1e12, field);
    case FLAG: *(bool *)field = key->usual > 0; return ghp_json_opt_bool(root, key->name, field);
    default: return check_must(root, key);
    }
}

/* ---- what is of one family ---- */

static enum ghp_status read_dropout(const struct ghp_node *root, struct ghp_hf_config *config)
{
    static const char *const keys[] = {"embd_pdrop", "attn_pdrop", "resid_pdrop",
                                       "attention_dropout"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        double ratio = 0;

        GHP_TRY(ghp_json_opt_real(root, keys[i], 0, 1, &ratio));
        if (ratio > config->dropout) config->dropout = ratio;
    }
    return GHP_OK;
}

/* "gelu_new" and "gelu_pytorch_tanh" are one function. */
static enum ghp_status read_activation(const struct ghp_node *root, struct ghp_hf_config *config)
{
    static const char *const known[] = {"gelu_new", "gelu_pytorch_tanh", "gelu", NULL};
    int chosen = 0;

    GHP_TRY(ghp_json_opt_choice(root, "activation_function", known, &chosen));
    config->by_erf = chosen == 2;
    return GHP_OK;
}

/* Newer files have theta in an object of its own. */
static enum ghp_status read_rope(const struct ghp_node *root, struct ghp_hf_config *config)
{
    static const char *const keys[] = {"rope_theta", "rope_type", "partial_rotary_factor", NULL};
    const struct key type = {"rope_type", MUST, 0, 0, "\"default\""},
                     part = {"partial_rotary_factor", MUST, 0, 0, "1.0"};
    struct ghp_node at;

    if (!has(root, "rope_parameters")) return GHP_OK;
    GHP_TRY(ghp_json_get(root, "rope_parameters", &at));
    GHP_TRY(check_must(&at, &type));
    GHP_TRY(check_must(&at, &part));
    GHP_TRY(ghp_json_only_keys(&at, keys));
    return ghp_json_opt_real(&at, "rope_theta", 1e-12, 1e12, &config->theta);
}

static enum ghp_status complete(const struct ghp_node *root, struct ghp_hf_config *config)
{
    if (config->kv_heads == 0) config->kv_heads = config->heads;
    if (config->inner == 0) config->inner = 4 * config->width;
    if (config->blocks > MOST_BLOCKS)
        return ghp_json_fail(root, GHP_ERR_INPUT, "%lld blocks are too many; ghp takes %d",
                             (long long)config->blocks, MOST_BLOCKS);
    if (config->heads % config->kv_heads != 0)
        return ghp_json_fail(root, GHP_ERR_INPUT,
                             "%lld heads do not share %lld heads of keys and values evenly; the "
                             "second must divide the first",
                             (long long)config->heads, (long long)config->kv_heads);
    if (config->head_width == 0 && config->width % config->heads != 0)
        return ghp_json_fail(root, GHP_ERR_INPUT,
                             "%lld channels are not a multiple of %lld heads; give another number "
                             "of heads",
                             (long long)config->width, (long long)config->heads);
    if (config->head_width == 0) config->head_width = config->width / config->heads;
    return GHP_OK;
}

/* ---- files ---- */

static enum ghp_status read_config(const struct ghp_node *root, struct ghp_hf_config *config)
{
    const char *names[GHP_HF_FAMILIES + 1] = {NULL};
    const struct family *family;
    int chosen = 0;

    for (int i = 0; i < GHP_HF_FAMILIES; i++)
        names[i] = families[i].name;
    GHP_TRY(ghp_json_choice(root, "model_type", names, &chosen));
    family = &families[chosen];
    config->family = (enum ghp_hf_family)chosen;
    for (const struct key *key = family->keys; key->name != NULL; key++)
        GHP_TRY(read_key(root, key, config));
    for (const struct key *key = common_keys; key->name != NULL; key++)
        GHP_TRY(check_must(root, key));
    if (config->family == GHP_HF_GPT2)
        GHP_TRY(read_activation(root, config));
    else
        GHP_TRY(read_rope(root, config));
    GHP_TRY(read_dropout(root, config));
    GHP_TRY(check_keys(root, family));
    return complete(root, config);
}

enum ghp_status ghp_hf_config_load(const char *folder, struct ghp_hf_config *config)
{
    enum ghp_status status;
    struct ghp_json doc = {0};
    struct ghp_node root;
    char path[PATH_MAX];

    *config = (struct ghp_hf_config){0};
    snprintf(path, sizeof path, "%s/config.json", folder);
    GHP_TRY(ghp_json_load(path, NULL, &doc));
    root = ghp_json_root(&doc);
    status = read_config(&root, config);
    ghp_json_release(&doc);
    return status;
}

const struct ghp_hf_config *ghp_hf_config_find(const char *name)
{
#define GPT2(depth, number, channels)                                                              \
    {                                                                                              \
        .family = GHP_HF_GPT2, .vocabulary = 50257, .context = 1024, .width = channels,            \
        .inner = 4 * channels, .blocks = depth, .heads = number, .kv_heads = number,               \
        .head_width = channels / number, .epsilon = 1e-5, .deviation = 0.02, .tied = true          \
    }
    static const struct {
        const char *name;
        struct ghp_hf_config config;
    } known[] = {{"gpt2-124m", GPT2(12, 12, 768)},
                 {"gpt2-355m", GPT2(24, 16, 1024)},
                 {"gpt2-774m", GPT2(36, 20, 1280)},
                 {"gpt2-1558m", GPT2(48, 25, 1600)}};
#undef GPT2

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0) return &known[i].config;
    return NULL;
}

json_t *ghp_hf_config_json(const struct ghp_hf_config *config, const json_t *origin)
{
    const struct family *family = &families[config->family];
    bool failed = false;
    json_t *root = origin != NULL ? json_deep_copy(origin) : json_object();

    if (root == NULL) return NULL;
    json_object_del(root, "torch_dtype"); /* the older name of dtype */
    ghp_json_put(root, "architectures", json_pack("[s]", family->architecture), &failed);
    ghp_json_put(root, "model_type", json_string(family->name), &failed);
    ghp_json_put(root, "dtype", json_string("float32"), &failed);
    for (const struct key *key = family->keys; key->name != NULL; key++) {
        const void *field = (const char *)config + key->at;

        if (key->kind == SIZE || key->kind == REQUIRED)
            ghp_json_put(root, key->name, json_integer(*(const int64_t *)field), &failed);
        else if (key->kind == REAL)
            ghp_json_put(root, key->name, json_real(*(const double *)field), &failed);
        else if (key->kind == FLAG)
            ghp_json_put(root, key->name, json_boolean(*(const bool *)field), &failed);
    }
    if (config->family == GHP_HF_GPT2)
        ghp_json_put(root, "activation_function", json_string(config->by_erf ? "gelu" : "gelu_new"),
                     &failed);
    else
        ghp_json_put(root, "rope_parameters",
                     json_pack("{s:f, s:s}", "rope_theta", config->theta, "rope_type", "default"),
                     &failed);
    if (!failed) return root;
    json_decref(root);
    return NULL;
}
