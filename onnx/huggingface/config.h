/* onnx/huggingface/config.h - reads the config.json of a network of transformers, for the supported families.
 *
 * A key that changes what the network computes is read. If its value is not supported, it is refused by name. Keys
 * that match a pattern (tokens, generation, versions, classes) and empty keys change nothing. Any other key is
 * refused, since it might change what the network computes. The keys are in keys.c. */
#ifndef GHP_ONNX_HUGGINGFACE_CONFIG_H
#define GHP_ONNX_HUGGINGFACE_CONFIG_H

#include "core/base/json.h"
#include "core/model/model.h"

enum ghp_hf_family {
    GHP_HF_GPT2,
    GHP_HF_LLAMA,
    GHP_HF_MISTRAL,
    GHP_HF_QWEN2,
    GHP_HF_OLMO2,
    GHP_HF_PHI3,
    GHP_HF_OPT,
    GHP_HF_GPT_NEOX,
    GHP_HF_QWEN3,
    GHP_HF_GEMMA,
    GHP_HF_GEMMA2,
    GHP_HF_VIT,
    GHP_HF_BERT,
    GHP_HF_ROBERTA,
    GHP_HF_DISTILBERT,
    GHP_HF_FAMILIES
};

enum ghp_hf_activation {
    GHP_HF_SILU,
    GHP_HF_GELU,
    GHP_HF_GELU_TANH,
    GHP_HF_RELU,
    GHP_HF_ACTIVATIONS
};

enum { GHP_HF_BLOCKS = 4096 };

struct ghp_hf_config {
    enum ghp_hf_family family;
    int64_t vocabulary;             /* of tokens; 0: it reads images */
    int64_t labels;                 /* classes of a classifier; 0: the network predicts tokens */
    int64_t types;                  /* of tokens, as encoders have them */
    int64_t pad_token;              /* of encoders, which do not look at it; -1: none */
    int64_t unused_positions;       /* rows of a roberta's table of positions before the first */
    int64_t context;                /* most positions that it was made for */
    int64_t image, patch, channels; /* of images, square; channels 0: it reads tokens */
    /* Positions that a position sees, itself among them, in blocks that are windowed; 0: all before it. */
    int64_t window;
    bool windowed[GHP_HF_BLOCKS];
    int64_t width; /* channels of a position */
    int64_t inner; /* of the layer between two linear ones */
    int64_t blocks, heads;
    int64_t kv_heads;                         /* of keys and values; divides heads */
    int64_t head_width;                       /* channels of a head */
    double epsilon;                           /* of the norms */
    double rotary_part;                       /* of a head's channels, which turn by the position */
    struct ghp_heads rotary;                  /* its base and scaling */
    double query_scalar;                      /* scores are divided by its root; 0: head_width */
    double attention_softcap, logits_softcap; /* 0: none */
    enum ghp_hf_activation activation;
    bool attention_bias, mlp_bias;
    bool tied; /* the output layer's weights are the embedding's */
    /* config.json says tied, but the weights have an output layer of their own: it is not tied */
    bool own_head;
    double deviation; /* of the first weights */
    /* Probabilities of dropout. ghp trains without that of attention. */
    double embedding_dropout, residual_dropout, attention_dropout, classifier_dropout;
};

/* Reads FOLDER/config.json.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_INPUT naming the key, with line and column
 * Tested    tests/onnx/huggingface/test_config.c */
enum ghp_status ghp_hf_config_load(const char *folder, struct ghp_hf_config *config);

/* The config of a network that is known by its name (gpt2-124m and its larger ones), or NULL. */
const struct ghp_hf_config *ghp_hf_config_find(const char *name);

/* The same as a document that transformers reads, owned by the caller; NULL without memory. Scaled rotary positions are
 * the origin's; without one they are not scaled.
 *
 * origin   a config.json of this network, whose other keys the document has too, or NULL */
json_t *ghp_hf_config_json(const struct ghp_hf_config *config, const json_t *origin);

#endif
