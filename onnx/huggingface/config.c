/* onnx/huggingface/config.c - see config.h. */
#include "onnx/huggingface/config.h"

#include "onnx/huggingface/config_private.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The most that a size may be: as many as channels of a layer may be (core/model). */
enum { MOST = 1 << 24 };

/* ---- keys ---- */

/* null, {} and [] ask for nothing. */
static bool is_empty(const json_t *value)
{
    return json_is_null(value) || (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

static enum ghp_status check_keys(const struct ghp_node *root,
                                  const struct ghp_hf_family_keys *family)
{
    const char *name;
    json_t *value;

    json_object_foreach(root->value, name, value)
    {
        struct ghp_node at;

        if (ghp_hf_key_is_in(name, family->shared) || ghp_hf_key_is_in(name, family->keys) ||
            ghp_hf_key_is_in(name, ghp_hf_common_keys) || ghp_hf_key_is_listed(name, family->own) ||
            (family->shared != NULL && ghp_hf_key_is_listed(name, ghp_hf_shared_names)) ||
            ghp_hf_key_is_harmless(name) || is_empty(value))
            continue;
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

static bool is_null(const struct ghp_node *root, const char *name)
{
    return ghp_json_has(root, name) && !has(root, name);
}

static bool equal(const json_t *value, const json_t *right)
{
    return json_is_number(value) && json_is_number(right)
               ? json_number_value(value) == json_number_value(right)
               : json_equal(value, right);
}

static enum ghp_status check_must(const struct ghp_node *root, const struct ghp_hf_key *key)
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
    status =
        ghp_json_fail(&at, GHP_ERR_INPUT, "ghp has no %.64s; it takes %s alone", got, key->text);
    free(got);
    return status;
}

static enum ghp_status read_key(const struct ghp_node *root, const struct ghp_hf_key *key,
                                struct ghp_hf_config *config)
{
    void *field = (char *)config + key->at;
    double ratio = 0;
    int chosen = (int)key->usual;

    switch (key->kind) {
    case GHP_HF_REQUIRED: return ghp_json_int(root, key->name, 1, MOST, field);
    case GHP_HF_SIZE:
        *(int64_t *)field = (int64_t)key->usual;
        return has(root, key->name) ? ghp_json_int(root, key->name, 1, MOST, field) : GHP_OK;
    case GHP_HF_REAL:
        *(double *)field = key->usual;
        return ghp_json_opt_real(root, key->name, 1e-12, 1e12, field);
    case GHP_HF_OPTIONAL_SIZE:
        *(int64_t *)field = is_null(root, key->name) ? 0 : (int64_t)key->usual;
        return has(root, key->name) ? ghp_json_int(root, key->name, 1, MOST, field) : GHP_OK;
    case GHP_HF_OPTIONAL_REAL:
        *(double *)field = is_null(root, key->name) ? 0 : key->usual;
        return has(root, key->name) ? ghp_json_real(root, key->name, 1e-6, 1e6, field) : GHP_OK;
    case GHP_HF_RATIO:
        GHP_TRY(ghp_json_opt_real(root, key->name, 0, 0.999, &ratio));
        if (ratio > *(double *)field) *(double *)field = ratio;
        return GHP_OK;
    case GHP_HF_ACTIVATION:
        GHP_TRY(ghp_json_opt_choice(root, key->name, ghp_hf_activation_names, &chosen));
        if (chosen == GHP_HF_ACTIVATIONS) chosen = GHP_HF_GELU_TANH;
        *(enum ghp_hf_activation *)field = (enum ghp_hf_activation)chosen;
        return GHP_OK;
    case GHP_HF_FLAG:
        *(bool *)field = key->usual > 0;
        return ghp_json_opt_bool(root, key->name, field);
    default: return check_must(root, key);
    }
}

static enum ghp_status read_keys(const struct ghp_node *root, const struct ghp_hf_key *keys,
                                 struct ghp_hf_config *config)
{
    for (; keys != NULL && keys->name != NULL; keys++)
        GHP_TRY(read_key(root, keys, config));
    return GHP_OK;
}

/* ---- what is of some families ---- */

/* Refuses a key of another value than the one that ghp has. */
static enum ghp_status must(const struct ghp_node *at, const char *name, const char *text)
{
    const struct ghp_hf_key key = {name, GHP_HF_MUST, 0, 0, text};

    return check_must(at, &key);
}

/* Reads yarn's scaling, which interpolates pairs between fast and slow turns. */
static enum ghp_status read_yarn(const struct ghp_node *at, struct ghp_heads *r)
{
    double mscale = 0, all = 0, amplitude = 0;

    r->fast = 32;
    r->slow = 1;
    r->truncate = true;
    GHP_TRY(ghp_json_opt_real(at, "beta_fast", 1e-6, 1e6, &r->fast));
    GHP_TRY(ghp_json_opt_real(at, "beta_slow", 1e-6, 1e6, &r->slow));
    GHP_TRY(ghp_json_opt_bool(at, "truncate", &r->truncate));
    GHP_TRY(ghp_json_opt_real(at, "attention_factor", 1e-6, 1e6, &amplitude));
    GHP_TRY(ghp_json_opt_real(at, "mscale", 0, 1e6, &mscale));
    GHP_TRY(ghp_json_opt_real(at, "mscale_all_dim", 0, 1e6, &all));
    r->amplitude = 1 + 0.1 * log(r->factor);
    if (mscale > 0 && all > 0)
        r->amplitude = (1 + 0.1 * mscale * log(r->factor)) / (1 + 0.1 * all * log(r->factor));
    if (amplitude > 0) r->amplitude = amplitude;
    return GHP_OK;
}

static enum ghp_status read_llama3(const struct ghp_node *at, struct ghp_heads *r)
{
    GHP_TRY(ghp_json_real(at, "low_freq_factor", 1e-6, 1e6, &r->slow));
    return ghp_json_real(at, "high_freq_factor", 1e-6, 1e6, &r->fast);
}

/* How angles are scaled. */
static enum ghp_status read_scaling(const struct ghp_node *at, struct ghp_hf_config *config)
{
    static const char *const types[] = {[GHP_ROTARY_UNSCALED] = "default",
                                        [GHP_ROTARY_LINEAR] = "linear",
                                        [GHP_ROTARY_LLAMA3] = "llama3",
                                        [GHP_ROTARY_YARN] = "yarn",
                                        NULL};
    struct ghp_heads *r = &config->rotary;
    int chosen = GHP_ROTARY_UNSCALED;

    GHP_TRY(ghp_json_opt_choice(at, "type", types, &chosen));
    GHP_TRY(ghp_json_opt_choice(at, "rope_type", types, &chosen));
    r->scaling = (enum ghp_rotary)chosen;
    if (chosen == GHP_ROTARY_UNSCALED) return GHP_OK;
    if (config->family == GHP_HF_PHI3)
        return ghp_json_fail(
            at, GHP_ERR_INPUT,
            "ghp has no scaled rotary positions of a phi3, which are its longrope; "
            "it takes the type \"default\" alone");
    r->original = config->context;
    GHP_TRY(ghp_json_real(at, "factor", 1, 1e6, &r->factor));
    GHP_TRY(ghp_json_opt_int(at, "original_max_position_embeddings", 1, MOST, &r->original));
    if (chosen == GHP_ROTARY_LLAMA3) return read_llama3(at, r);
    return chosen == GHP_ROTARY_YARN ? read_yarn(at, r) : GHP_OK;
}

/* Reads rotary positions. Newer files have all of it in an object, rope_parameters; older ones have theta outside and
 * the rest in rope_scaling. */
static enum ghp_status read_rope_object(const struct ghp_node *root, const char *name,
                                        struct ghp_hf_config *config)
{
    static const char *const keys[] = {"rope_theta",
                                       "rope_type",
                                       "type",
                                       "partial_rotary_factor",
                                       "factor",
                                       "low_freq_factor",
                                       "high_freq_factor",
                                       "original_max_position_embeddings",
                                       "beta_fast",
                                       "beta_slow",
                                       "attention_factor",
                                       "mscale",
                                       "mscale_all_dim",
                                       "truncate",
                                       NULL};
    struct ghp_node at;

    if (!has(root, name)) return GHP_OK;
    GHP_TRY(ghp_json_get(root, name, &at));
    GHP_TRY(ghp_json_only_keys(&at, keys));
    GHP_TRY(ghp_json_opt_real(&at, "partial_rotary_factor", 1e-6, 1, &config->rotary_part));
    GHP_TRY(ghp_json_opt_real(&at, "rope_theta", 1e-12, 1e12, &config->rotary.base));
    return read_scaling(&at, config);
}

static enum ghp_status read_rope(const struct ghp_node *root, struct ghp_hf_config *config)
{
    config->rotary.amplitude = 1;
    GHP_TRY(read_rope_object(root, "rope_scaling", config));
    GHP_TRY(read_rope_object(root, "rope_parameters", config));
    if (!(config->rotary_part >= 1e-6 && config->rotary_part <= 1))
        return ghp_json_fail(root, GHP_ERR_INPUT,
                             "rotary positions turn %g of a head's channels; give "
                             "partial_rotary_factor, or rotary_pct, from 1e-6 to 1",
                             config->rotary_part);
    if (config->rotary_part == 1 || config->family == GHP_HF_PHI3 ||
        config->family == GHP_HF_GPT_NEOX)
        return GHP_OK;
    return ghp_json_fail(root, GHP_ERR_INPUT,
                         "ghp has no %s with partial_rotary_factor %g; it takes 1 alone",
                         ghp_hf_family_keys[config->family].name, config->rotary_part);
}

/* Which blocks see a window alone, by the list of their kinds. */
static enum ghp_status read_layer_types(const struct ghp_node *root, struct ghp_hf_config *config)
{
    static const char *const known[] = {"full_attention", "sliding_attention"};
    struct ghp_node at, item;
    size_t n = 0;

    GHP_TRY(ghp_json_array(root, "layer_types", &at, &n));
    if (n != (size_t)config->blocks)
        return ghp_json_fail(&at, GHP_ERR_INPUT, "has %zu kinds of %lld blocks; give one a block",
                             n, (long long)config->blocks);
    for (size_t i = 0; i < n; i++) {
        const char *text;

        GHP_TRY(ghp_json_item(&at, i, &item));
        text = json_string_value(item.value);
        if (text == NULL || (strcmp(text, known[0]) != 0 && strcmp(text, known[1]) != 0))
            return ghp_json_fail(&item, GHP_ERR_INPUT,
                                 "ghp has no such block; it takes '%s' and '%s'", known[0],
                                 known[1]);
        config->windowed[i] = strcmp(text, known[1]) == 0;
    }
    return GHP_OK;
}

/* Reads which blocks have a window: all blocks of a mistral and a phi3, every second one of a gemma2, and those of a
 * qwen from a certain block on. */
static enum ghp_status read_window(const struct ghp_node *root, struct ghp_hf_config *config)
{
    bool qwen = config->family == GHP_HF_QWEN2 || config->family == GHP_HF_QWEN3, on = !qwen;
    int64_t full = qwen ? 28 : 0;

    if (qwen) GHP_TRY(ghp_json_opt_bool(root, "use_sliding_window", &on));
    if (qwen) GHP_TRY(ghp_json_opt_int(root, "max_window_layers", 0, MOST, &full));
    if (!on) config->window = 0;
    if (config->window == 0) return GHP_OK;
    if ((qwen || config->family == GHP_HF_GEMMA2) && has(root, "layer_types"))
        return read_layer_types(root, config);
    for (int64_t i = full; i < config->blocks; i++)
        config->windowed[i] = config->family != GHP_HF_GEMMA2 || i % 2 == 0;
    return GHP_OK;
}

/* The table of opt may be narrower than its blocks. */
static enum ghp_status check_projection(const struct ghp_node *root,
                                        const struct ghp_hf_config *config)
{
    char width[32];

    snprintf(width, sizeof width, "%lld", (long long)config->width);
    return must(root, "word_embed_proj_dim", width);
}

/* Labels have names, or a number; unless either is there they are two. One of them is right of each sample. */
static enum ghp_status read_labels(const struct ghp_node *root, struct ghp_hf_config *config)
{
    size_t named = json_object_size(json_object_get(root->value, "id2label"));

    GHP_TRY(must(root, "problem_type", "\"single_label_classification\""));
    config->labels = named > 0 ? (int64_t)named : 2;
    return named > 0 ? GHP_OK : ghp_json_opt_int(root, "num_labels", 1, MOST, &config->labels);
}

/* "BertForMaskedLM": that of a network that classifies. */
static void classifier_of(enum ghp_hf_family family, char name[64])
{
    const char *end = "ForMaskedLM", *whole = ghp_hf_family_keys[family].architecture;

    snprintf(name, 64, "%.*sForSequenceClassification", (int)(strlen(whole) - strlen(end)), whole);
}

/* What an encoder ends with: the words that were masked, or labels of the sample. */
static enum ghp_status read_task(const struct ghp_node *root, struct ghp_hf_config *config)
{
    const struct ghp_hf_family_keys *family = &ghp_hf_family_keys[config->family];
    const json_t *named = json_object_get(root->value, "architectures");
    const char *first = json_string_value(json_array_get(named, 0));
    char classifier[64];

    classifier_of(config->family, classifier);
    if (first != NULL && strcmp(first, family->architecture) == 0) return GHP_OK;
    if (first == NULL || strcmp(first, classifier) != 0)
        return ghp_json_fail(root, GHP_ERR_INPUT,
                             "'architectures' says %.64s, but of a %s ghp trains %s and %s; load "
                             "it by one of these classes and save it again",
                             first != NULL ? first : "nothing", family->name, family->architecture,
                             classifier);
    config->classifier_dropout = config->residual_dropout;
    if (config->family == GHP_HF_DISTILBERT) config->classifier_dropout = 0;
    if (has(root, "classifier_dropout") && config->family != GHP_HF_DISTILBERT)
        GHP_TRY(ghp_json_real(root, "classifier_dropout", 0, 0.999, &config->classifier_dropout));
    if (has(root, "seq_classif_dropout") && config->family == GHP_HF_DISTILBERT)
        GHP_TRY(ghp_json_real(root, "seq_classif_dropout", 0, 0.999, &config->classifier_dropout));
    return read_labels(root, config);
}

/* The token of padding; a roberta counts positions from the one after it. */
static enum ghp_status read_padding(const struct ghp_node *root, struct ghp_hf_config *config)
{
    bool roberta = config->family == GHP_HF_ROBERTA;

    config->pad_token = roberta ? 1 : 0;
    if (is_null(root, "pad_token_id") && !roberta) config->pad_token = -1;
    if (has(root, "pad_token_id"))
        GHP_TRY(ghp_json_int(root, "pad_token_id", 0, MOST, &config->pad_token));
    if (!roberta) return GHP_OK;
    config->unused_positions = config->pad_token + 1;
    config->context -= config->unused_positions;
    if (config->context > 0) return GHP_OK;
    return ghp_json_fail(root, GHP_ERR_INPUT,
                         "%lld positions are too few, as those of a roberta begin after its "
                         "pad_token_id %lld; give more max_position_embeddings",
                         (long long)(config->context + config->unused_positions),
                         (long long)config->pad_token);
}

static enum ghp_status read_encoder(const struct ghp_node *root, struct ghp_hf_config *config)
{
    if (config->family == GHP_HF_DISTILBERT) config->epsilon = 1e-12;
    GHP_TRY(read_padding(root, config));
    return read_task(root, config);
}

/* One position for each patch, and one for the class. */
static enum ghp_status read_images(const struct ghp_node *root, struct ghp_hf_config *config)
{
    int64_t side = config->image / config->patch;

    if (side == 0)
        return ghp_json_fail(
            root, GHP_ERR_INPUT,
            "patches of %lld pixels do not fit images of %lld; give another patch_size",
            (long long)config->patch, (long long)config->image);
    config->context = side * side + 1;
    return read_labels(root, config);
}

static enum ghp_status complete(const struct ghp_node *root, struct ghp_hf_config *config)
{
    if (config->kv_heads == 0) config->kv_heads = config->heads;
    if (config->inner == 0) config->inner = 4 * config->width;
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
    /* older files of gemma say gelu, and mean its approximation */
    if (config->family == GHP_HF_GEMMA && config->activation == GHP_HF_GELU)
        config->activation = GHP_HF_GELU_TANH;
    config->rotary.turned = (int64_t)((double)config->head_width * config->rotary_part);
    return GHP_OK;
}

/* ---- files ---- */

static enum ghp_status read_config(const struct ghp_node *root, struct ghp_hf_config *config)
{
    const char *names[GHP_HF_FAMILIES + 1] = {NULL};
    const struct ghp_hf_family_keys *family;
    int chosen = 0;

    for (int i = 0; i < GHP_HF_FAMILIES; i++)
        names[i] = ghp_hf_family_keys[i].name;
    GHP_TRY(ghp_json_choice(root, "model_type", names, &chosen));
    family = &ghp_hf_family_keys[chosen];
    config->family = (enum ghp_hf_family)chosen;
    config->epsilon = 1e-5; /* of norms that no key speaks of */
    GHP_TRY(read_keys(root, family->shared, config));
    GHP_TRY(read_keys(root, family->keys, config));
    GHP_TRY(read_keys(root, ghp_hf_common_keys, config));
    if (family->shared != NULL) GHP_TRY(read_rope(root, config));
    if (config->family == GHP_HF_OPT) GHP_TRY(check_projection(root, config));
    if (config->blocks > GHP_HF_BLOCKS)
        return ghp_json_fail(root, GHP_ERR_INPUT, "%lld blocks are too many; ghp takes %d",
                             (long long)config->blocks, GHP_HF_BLOCKS);
    GHP_TRY(read_window(root, config));
    if (config->family == GHP_HF_VIT) GHP_TRY(read_images(root, config));
    if (config->family >= GHP_HF_BERT) GHP_TRY(read_encoder(root, config));
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
        .head_width = channels / number, .epsilon = 1e-5, .activation = GHP_HF_GELU_TANH,          \
        .deviation = 0.02, .tied = true                                                            \
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

/* Writes the keys but those of `later`, which are read again. */
static void put_keys(json_t *root, const struct ghp_hf_key *keys, const struct ghp_hf_key *later,
                     const struct ghp_hf_config *config, bool *failed)
{
    for (const struct ghp_hf_key *key = keys; key != NULL && key->name != NULL; key++) {
        const void *field = (const char *)config + key->at;

        if (ghp_hf_key_is_in(key->name, later)) continue;
        if ((key->kind == GHP_HF_SIZE || key->kind == GHP_HF_REQUIRED) &&
            *(const int64_t *)field > 0)
            ghp_json_put(root, key->name, json_integer(*(const int64_t *)field), failed);
        else if (key->kind == GHP_HF_OPTIONAL_SIZE)
            ghp_json_put(root, key->name,
                         *(const int64_t *)field > 0 ? json_integer(*(const int64_t *)field)
                                                     : json_null(),
                         failed);
        else if (key->kind == GHP_HF_OPTIONAL_REAL)
            ghp_json_put(root, key->name,
                         *(const double *)field > 0 ? json_real(*(const double *)field)
                                                    : json_null(),
                         failed);
        else if (key->kind == GHP_HF_REAL || key->kind == GHP_HF_RATIO)
            ghp_json_put(root, key->name, json_real(*(const double *)field), failed);
        else if (key->kind == GHP_HF_FLAG)
            ghp_json_put(root, key->name, json_boolean(*(const bool *)field), failed);
        else if (key->kind == GHP_HF_ACTIVATION)
            ghp_json_put(
                root, key->name,
                json_string(ghp_hf_activation_names[*(const enum ghp_hf_activation *)field]),
                failed);
    }
}

/* What no key's field has. */
static void put_task(json_t *root, const struct ghp_hf_config *config, bool *failed)
{
    bool short_name = config->family == GHP_HF_DISTILBERT;

    if (config->labels > 0) ghp_json_put(root, "num_labels", json_integer(config->labels), failed);
    if (config->family >= GHP_HF_BERT && config->labels > 0)
        ghp_json_put(root, short_name ? "seq_classif_dropout" : "classifier_dropout",
                     json_real(config->classifier_dropout), failed);
    if (config->family >= GHP_HF_BERT)
        ghp_json_put(root, "pad_token_id",
                     config->pad_token >= 0 ? json_integer(config->pad_token) : json_null(),
                     failed);
    if (config->family != GHP_HF_ROBERTA) return;
    ghp_json_put(root, "max_position_embeddings",
                 json_integer(config->context + config->unused_positions), failed);
}

/* What differs from the origin: numbers are written as floats, the output layer may be one of its own, and the context
 * may be shorter. */
static json_t *change(const struct ghp_hf_config *config, const json_t *origin, bool *failed)
{
    json_t *root = ghp_json_copy(origin);

    if (root == NULL) return NULL;
    json_object_del(root, "torch_dtype"); /* the older name of dtype */
    if (config->own_head) ghp_json_put(root, "tie_word_embeddings", json_false(), failed);
    for (const struct ghp_hf_key *key = ghp_hf_family_keys[config->family].keys; key->name != NULL;
         key++)
        if (key->at == offsetof(struct ghp_hf_config, context))
            ghp_json_put(root, key->name, json_integer(config->context + config->unused_positions),
                         failed);
    return root;
}

json_t *ghp_hf_config_json(const struct ghp_hf_config *config, const json_t *origin)
{
    const struct ghp_hf_family_keys *family = &ghp_hf_family_keys[config->family];
    bool failed = false;
    char classifier[64];
    json_t *root = origin != NULL ? change(config, origin, &failed) : json_object();

    if (root == NULL) return NULL;
    snprintf(classifier, sizeof classifier, "%s", family->architecture);
    if (config->family >= GHP_HF_BERT && config->labels > 0)
        classifier_of(config->family, classifier);
    ghp_json_put(root, "architectures", json_pack("[s]", classifier), &failed);
    ghp_json_put(root, "model_type", json_string(family->name), &failed);
    ghp_json_put(root, "dtype", json_string("float32"), &failed);
    if (origin == NULL) {
        put_keys(root, family->shared, family->keys, config, &failed);
        put_keys(root, family->keys, NULL, config, &failed);
        put_task(root, config, &failed);
        if (family->shared != NULL)
            ghp_json_put(root, "rope_parameters",
                         json_pack("{s:f, s:s, s:f}", "rope_theta", config->rotary.base,
                                   "rope_type", "default", "partial_rotary_factor",
                                   config->rotary_part),
                         &failed);
    }
    if (!failed) return root;
    json_decref(root);
    return NULL;
}
