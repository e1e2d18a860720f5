/* Configs: what they say, what is usual where they say nothing, what they say that ghp does not compute, and the
 * networks that are known by name. */
#include "onnx/huggingface/config.h"
#include "tests/check.h"
#include "tests/onnx/huggingface/folder.h"

/* The config with `more` ("\"key\": value, ") in front of its keys. */
static enum ghp_status load(const char *text, const char *more, struct ghp_hf_config *config)
{
    char whole[2048];

    snprintf(whole, sizeof whole, "{%s%s", more, text + 1);
    folder_write_config(whole);
    return ghp_hf_config_load(folder_path(), config);
}

static void check_refused(const char *text, const char *more, enum ghp_status status,
                          const char *message)
{
    struct ghp_hf_config config;

    CHECK_STATUS(load(text, more, &config), status);
    CHECK_MESSAGE(message);
}

static void check_values(void)
{
    struct ghp_hf_config c;

    CHECK_STATUS(load(gpt2_config, "", &c), GHP_OK);
    CHECK_EQ(c.family, GHP_HF_GPT2);
    CHECK(c.vocabulary == 7 && c.context == 5 && c.width == 4 && c.blocks == 2 && c.heads == 2);
    CHECK(c.inner == 16 && c.kv_heads == 2 && c.head_width == 2); /* not said */
    CHECK(c.tied && c.activation == GHP_HF_GELU_TANH && c.epsilon == 1e-5 &&
          c.attention_dropout == 0);
    CHECK_STATUS(load(gpt2_config, "\"tie_word_embeddings\": false, \"attn_pdrop\": 0.1, ", &c),
                 GHP_OK);
    CHECK(!c.tied && c.attention_dropout == 0.1);
    CHECK_STATUS(load(llama_config, "", &c), GHP_OK);
    CHECK_EQ(c.family, GHP_HF_LLAMA);
    CHECK(c.vocabulary == 7 && c.context == 5 && c.width == 4 && c.inner == 6 && c.blocks == 2);
    CHECK(c.heads == 2 && c.kv_heads == 1 && c.head_width == 2 && !c.tied);
    CHECK(c.epsilon == 1e-6 && c.rotary.base == 500);
    CHECK_STATUS(load(llama_config, "\"head_dim\": 8, \"rope_scaling\": null, ", &c), GHP_OK);
    CHECK_EQ(c.head_width, 8);
}

/* What only some families have: windows of some blocks, and images. */
static void check_families(void)
{
    static const char
        qwen3[] = "{\"model_type\": \"qwen3\", \"vocab_size\": 7, \"max_position_embeddings\": 5, "
                  "\"hidden_size\": 4, \"intermediate_size\": 6, \"num_hidden_layers\": 2, "
                  "\"num_attention_heads\": 2}",
        vit[] = "{\"model_type\": \"vit\", \"hidden_size\": 4, \"intermediate_size\": 6, "
                "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"image_size\": 9, "
                "\"patch_size\": 2}";
    static const char sliding[] = "\"use_sliding_window\": true, \"sliding_window\": 3, ";
    struct ghp_hf_config c;
    char more[256];

    CHECK_STATUS(load(qwen3, "\"sliding_window\": 3, ", &c), GHP_OK);
    CHECK(c.window == 0 && c.head_width == 128);
    snprintf(more, sizeof more, "%s\"max_window_layers\": 1, \"pad_token_id\": 0, ", sliding);
    CHECK_STATUS(load(qwen3, more, &c), GHP_OK);
    CHECK(c.window == 3 && !c.windowed[0] && c.windowed[1]);
    snprintf(
        more, sizeof more,
        "%s\"layer_types\": [\"sliding_attention\", \"full_attention\"], \"pad_token_id\": -1, ",
        sliding);
    CHECK_STATUS(load(qwen3, more, &c), GHP_OK);
    CHECK(c.windowed[0] && !c.windowed[1]);
    snprintf(more, sizeof more, "%s\"layer_types\": [\"full_attention\"], ", sliding);
    check_refused(qwen3, more, GHP_ERR_INPUT, "has 1 kinds of 2 blocks; give one a block");
    CHECK_STATUS(load(vit, "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}, ", &c),
                 GHP_OK);
    CHECK(c.labels == 3 && c.context == 17 && c.channels == 3 && c.attention_bias);
    CHECK_STATUS(load(vit, "\"num_labels\": 10, ", &c), GHP_OK);
    CHECK_EQ(c.labels, 10);
    check_refused(vit, "\"num_channels\": 0, ", GHP_ERR_INPUT, "num_channels");
}

/* Encoders say words or labels, as their class does. */
static void check_encoders(void)
{
    static const char
        bert[] = "{\"model_type\": \"bert\", \"vocab_size\": 7, \"max_position_embeddings\": 5, "
                 "\"hidden_size\": 4, \"intermediate_size\": 6, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 2, \"hidden_dropout_prob\": 0.25}",
        roberta[] = "{\"model_type\": \"roberta\", \"vocab_size\": 7, "
                    "\"max_position_embeddings\": 5, \"hidden_size\": 4, "
                    "\"intermediate_size\": 6, \"num_hidden_layers\": 2, "
                    "\"num_attention_heads\": 2, \"architectures\": [\"RobertaForMaskedLM\"]}";
    static const char classifies[] = "\"architectures\": [\"BertForSequenceClassification\"], ";
    struct ghp_hf_config c;
    char more[256];

    CHECK_STATUS(load(bert, "\"architectures\": [\"BertForMaskedLM\"], ", &c), GHP_OK);
    CHECK(c.labels == 0 && c.vocabulary == 7 && c.types == 2 && c.tied && c.context == 5);
    CHECK_STATUS(load(bert, classifies, &c), GHP_OK);
    CHECK(c.labels == 2 && c.classifier_dropout == 0.25);
    snprintf(more, sizeof more, "%s\"num_labels\": 3, \"classifier_dropout\": 0, ", classifies);
    CHECK_STATUS(load(bert, more, &c), GHP_OK);
    CHECK(c.labels == 3 && c.classifier_dropout == 0);
    CHECK_STATUS(load(roberta, "", &c), GHP_OK);
    CHECK(c.context == 3 && c.unused_positions == 2);
    check_refused(bert, "", GHP_ERR_INPUT, "'architectures' says nothing");
    check_refused(bert, "\"is_decoder\": true, ", GHP_ERR_INPUT, "'is_decoder'");
    check_refused(roberta, "\"pad_token_id\": 4, ", GHP_ERR_INPUT, "5 positions are too few");
}

static void check_refusals(void)
{
    static const struct {
        const char *more, *message;
    } gpt2[] = {{"\"scale_attn_by_inverse_layer_idx\": true, ",
                 "'scale_attn_by_inverse_layer_idx': ghp has no true; it takes false alone"},
                {"\"scale_attn_weights\": false, ", "'scale_attn_weights'"},
                {"\"add_cross_attention\": true, ", "'add_cross_attention'"}},
      llama[] = {
          {"\"sliding_window\": 4096, ", "'sliding_window': ghp has no 4096"},
          {"\"partial_rotary_factor\": 0.5, ",
           "no llama with partial_rotary_factor 0.5; it takes 1"},
          {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0.5}, ", "'rope_scaling.factor'"},
          {"\"head_dim\": 0, ", "'head_dim'"}};

    for (size_t i = 0; i < sizeof gpt2 / sizeof gpt2[0]; i++)
        check_refused(gpt2_config, gpt2[i].more, GHP_ERR_INPUT, gpt2[i].message);
    for (size_t i = 0; i < sizeof llama / sizeof llama[0]; i++)
        check_refused(llama_config, llama[i].more, GHP_ERR_INPUT, llama[i].message);
    check_refused(gpt2_config, "\"use_holography\": true, ", GHP_ERR_FORMAT,
                  "'use_holography': ghp does not know this key of a gpt2");
    check_refused("{\"model_type\": \"electra\"}", "", GHP_ERR_FORMAT, "model_type");
    check_refused("{\"model_type\": \"gpt2\"}", "", GHP_ERR_FORMAT, "vocab_size");
    check_refused(
        "{\"model_type\": \"gpt2\", \"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, "
        "\"n_layer\": 2, \"n_head\": 3}",
        "", GHP_ERR_INPUT, "4 channels are not a multiple of 3 heads");
    check_refused(
        "{\"model_type\": \"gpt2\", \"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, "
        "\"n_layer\": 2, \"n_head\": 2, \"activation_function\": \"quick_gelu\"}",
        "", GHP_ERR_FORMAT, "activation_function");
    check_refused("{\"model_type\": \"llama\", \"vocab_size\": 7, \"max_position_embeddings\": 5, "
                  "\"hidden_size\": 4, \"intermediate_size\": 6, \"num_hidden_layers\": 2, "
                  "\"num_attention_heads\": 2, \"rope_parameters\": {\"rope_type\": \"dynamic\"}}",
                  "", GHP_ERR_FORMAT, "'rope_parameters.rope_type': unknown name 'dynamic'");
    check_refused(
        "{\"model_type\": \"gpt_neox\", \"vocab_size\": 7, \"max_position_embeddings\": 5, "
        "\"hidden_size\": 4, \"intermediate_size\": 6, \"num_hidden_layers\": 2, "
        "\"num_attention_heads\": 2, \"rotary_pct\": 1.5}",
        "", GHP_ERR_INPUT, "turn 1.5 of a head's channels; give");
}

/* What transformers writes of every network, and others add: none of it changes what is computed. */
static void check_harmless(void)
{
    static const char *const keys[] = {"\"_num_labels\": 2",
                                       "\"output_attentions\": true",
                                       "\"output_hidden_states\": false",
                                       "\"is_llama_config\": true",
                                       "\"tokenizer_class\": \"LlamaTokenizer\"",
                                       "\"return_dict\": true",
                                       "\"torchscript\": false",
                                       "\"use_bfloat16\": false",
                                       "\"pruned_heads\": {}",
                                       "\"is_decoder\": false",
                                       "\"is_encoder_decoder\": false",
                                       "\"max_length\": 20",
                                       "\"do_sample\": false",
                                       "\"num_beams\": 1",
                                       "\"temperature\": 1.0",
                                       "\"repetition_penalty\": 1.0",
                                       "\"decoder_start_token_id\": null",
                                       "\"prefix\": null",
                                       "\"no_repeat_ngram_size\": 0",
                                       "\"chunk_size_feed_forward\": 0",
                                       "\"problem_type\": null",
                                       "\"_attn_implementation\": \"sdpa\"",
                                       "\"unsloth_version\": \"2025.3\"",
                                       "\"tf_legacy_loss\": false",
                                       "\"suppress_tokens\": [1]",
                                       "\"use_holography\": null",
                                       "\"quantization_config\": null",
                                       "\"transformers.js_config\": {}",
                                       "\"rope_interleaved\": null",
                                       "\"_name_or_path\": \"x\""};
    struct ghp_hf_config c;
    char more[128];

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        snprintf(more, sizeof more, "%s, ", keys[i]);
        CHECK_STATUS(load(gpt2_config, more, &c), GHP_OK);
        CHECK_STATUS(load(llama_config, more, &c), GHP_OK);
    }
    check_refused(gpt2_config, "\"is_encoder_decoder\": true, ", GHP_ERR_INPUT,
                  "'is_encoder_decoder': ghp has no true");
    check_refused(llama_config, "\"quantization_config\": {\"bits\": 4}, ", GHP_ERR_INPUT,
                  "'quantization_config'");
    check_refused(llama_config, "\"auto_map\": {\"AutoModel\": \"m.M\"}, ", GHP_ERR_INPUT,
                  "'auto_map'");
    check_refused(gpt2_config, "\"pruned_heads\": {\"0\": [1]}, ", GHP_ERR_INPUT, "'pruned_heads'");
    check_refused(llama_config, "\"use_qk_norm\": true, ", GHP_ERR_FORMAT, "'use_qk_norm'");
    check_refused(llama_config, "\"logit_scale\": 2, ", GHP_ERR_FORMAT, "'logit_scale'");
}

static void check_same(const struct ghp_hf_config *a, const struct ghp_hf_config *b)
{
    CHECK(a->family == b->family && a->vocabulary == b->vocabulary && a->context == b->context);
    CHECK(a->width == b->width && a->inner == b->inner && a->blocks == b->blocks);
    CHECK(a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_width == b->head_width);
    CHECK(a->epsilon == b->epsilon && a->rotary.base == b->rotary.base);
    CHECK(a->tied == b->tied && a->activation == b->activation);
}

/* What is written reads back. */
static void check_written(const struct ghp_hf_config *config)
{
    struct ghp_hf_config back;
    char *text = NULL;
    json_t *root = ghp_hf_config_json(config, NULL);

    CHECK(root != NULL);
    CHECK_STATUS(ghp_json_text_of(root, &text), GHP_OK);
    folder_write_config(text);
    if (CHECK_STATUS(ghp_hf_config_load(folder_path(), &back), GHP_OK)) check_same(config, &back);
    free(text);
    json_decref(root);
}

CHECK_TEST(config)
{
    struct ghp_hf_config c;

    check_values();
    check_families();
    check_encoders();
    check_refusals();
    check_harmless();
    CHECK(ghp_hf_config_find("gpt2-9m") == NULL);
    if (CHECK(ghp_hf_config_find("gpt2-1558m") != NULL)) {
        CHECK_EQ(ghp_hf_config_find("gpt2-1558m")->head_width, 64);
        check_written(ghp_hf_config_find("gpt2-1558m"));
    }
    CHECK_STATUS(load(gpt2_config, "\"tie_word_embeddings\": false, ", &c), GHP_OK);
    c.activation = GHP_HF_GELU;
    check_written(&c);
    CHECK_STATUS(load(llama_config, "\"head_dim\": 8, ", &c), GHP_OK);
    check_written(&c);
    folder_remove();
    return check_end();
}
