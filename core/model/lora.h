/* core/model/lora.h - low-rank adaptation: linear layers that stay, and the product of two small ones added to each.
 *
 * A linear layer X of weight W becomes W x + ALPHA / RANK B A x, with layers of these names:
 *
 *     X.lora_A (linear, RANK features) -> X.lora_scale (affine; none if ALPHA is RANK) -> X.lora_B (linear)
 *     X.lora_add: X and X.lora_B
 *
 * A begins as PyTorch begins a linear layer, B with zeros, so the network begins as it was. All other parameters stay.
 * The layers are part of the network, as what freeze.h fixes is. Tensors are named as in the PEFT library.
 *
 * Source   Hu et al., LoRA: Low-Rank Adaptation of Large Language Models (2021)
 * Tested   tests/core/model/test_lora.c, tests/tools/networks/test_lora.sh */
#ifndef GHP_CORE_MODEL_LORA_H
#define GHP_CORE_MODEL_LORA_H

#include "core/model/freeze.h"

struct ghp_lora {
    const char *rank; /* "RANK" or "RANK:ALPHA"; NULL: no adaptation */
    /* Patterns of fnmatch for the names of linear layers, or for the last parts of these names. Without patterns:
     * q_proj and v_proj, or query and value. */
    struct ghp_opt_list targets;
};

/* Adapts a network.
 *
 * trained   parameters that are trained all the same, as of struct ghp_freeze
 *
 * Returns   GHP_OK (also without a rank); GHP_ERR_USAGE (no such rank; targets without one); GHP_ERR_INPUT (a pattern
 *           names no linear layer, or the network is adapted already); GHP_ERR_NO_MEMORY. The model is as before then
 * Local */
enum ghp_status ghp_model_lora(struct ghp_model *model, const struct ghp_lora *lora,
                               const struct ghp_opt_list *trained);

/* The network that was adapted, with nothing fixed; of one that was not, itself with nothing fixed.
 *
 * base   released by the caller
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_model_without_lora(const struct ghp_model *model, struct ghp_model *base);

struct ghp_lora_parts { /* of one adapted layer */
    const struct ghp_layer *a, *b;
    double scale;
};

/* Whether a layer is adapted, and by what. */
bool ghp_lora_of(const struct ghp_model *model, const struct ghp_layer *layer,
                 struct ghp_lora_parts *parts);

/* Whether a tensor is of A or B. */
bool ghp_lora_has_tensor(const char *name);

#endif
