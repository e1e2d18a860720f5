/* onnx/huggingface/family.h - private to huggingface: the layers of each family, in tables. */
#ifndef GHP_ONNX_HUGGINGFACE_FAMILY_H
#define GHP_ONNX_HUGGINGFACE_FAMILY_H

#include "onnx/huggingface/config.h"

/* Sizes that a config names. */
enum ghp_hf_size {
    GHP_HF_NONE,
    GHP_HF_WIDTH,
    GHP_HF_INNER,
    GHP_HF_QUERIES,
    GHP_HF_KEYS,
    GHP_HF_HEAD,
    GHP_HF_VOCABULARY,
    GHP_HF_LABELS,
    GHP_HF_TYPES, /* of tokens: rows of a table, of which the first is a bias */
    GHP_HF_CONTEXT,
    GHP_HF_PATCH, /* numbers of one */
    GHP_HF_ONE,
    GHP_HF_SIZES
};

enum ghp_hf_bias {
    GHP_HF_BARE,
    GHP_HF_BIASED,
    GHP_HF_BIASED_ABOVE, /* the file has it in the module that holds this one */
    GHP_HF_QKV_BIAS,
    GHP_HF_ATTENTION_BIAS,
    GHP_HF_MLP_BIAS
}; /* the last three: as the config says */

struct ghp_hf_row { /* a layer */
    const char *name;
    const char *
        op; /* "act": the config's activation; "..._dropout" and "cap_...": as the config says, or none */
    const char *inputs[3];    /* layers of the same table; "@": what the table's part begins with */
    enum ghp_hf_size out, in; /* of its weight, [out][in]; in NONE: [out]; both NONE: it has none */
    enum ghp_hf_bias bias;
    /* Module of the file, if it has another name than the layer; rows of one module that follow each other are one
     * tensor. */
    const char *file;
};

/* A network of a family: what it begins with, a block, which is there as often as the config says, and what it ends
 * with. */
struct ghp_hf_tables {
    const char *prefix;
    const struct ghp_hf_row *begin, *block, *end;
    /* the end of a network that classifies, if it is another one; or NULL */
    const struct ghp_hf_row *classifier;
    const char *block_name; /* of block i: this and i */
    struct {
        bool transposed;  /* weights of blocks are [in][out] in files */
        bool qkv_bias;    /* always */
        bool norm_offset; /* norms multiply by 1 + weight */
        bool sees_all;    /* attention is not causal */
        /* files have class tokens and positions as [1][positions][channels] of no ".weight" */
        bool bare_tables;
        bool by_head;             /* fused rows take turns, a head each */
        int64_t unused_positions; /* rows of the table of positions before the first */
    } has;
};

extern const struct ghp_hf_tables ghp_hf_tables[GHP_HF_FAMILIES];

const char *ghp_hf_prefix(enum ghp_hf_family family);    /* "transformer." */
const char *ghp_hf_embedding(enum ghp_hf_family family); /* "wte" */
/* The output layer, "lm_head", and whether a module stands next to the network that has the prefix. */
const char *ghp_hf_head(enum ghp_hf_family family);
bool ghp_hf_is_outside(const char *module);
/* Whether it learns a vector for each position of the context. */
bool ghp_hf_has_position_table(enum ghp_hf_family family);

#endif
