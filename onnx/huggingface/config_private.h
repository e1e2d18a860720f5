/* onnx/huggingface/config_private.h - private to huggingface: the keys of each family's config.json. */
#ifndef GHP_ONNX_HUGGINGFACE_CONFIG_PRIVATE_H
#define GHP_ONNX_HUGGINGFACE_CONFIG_PRIVATE_H

#include "onnx/huggingface/config.h"

enum ghp_hf_key_kind {
    GHP_HF_SIZE, /* int64_t, >= 1; absent or null: `usual`, or if that is 0 left to the family */
    GHP_HF_REAL, /* double, > 0; absent: `usual` */
    GHP_HF_FLAG, /* bool; absent: `usual` */
    GHP_HF_ACTIVATION,    /* enum ghp_hf_activation; absent: `usual` */
    GHP_HF_OPTIONAL_SIZE, /* int64_t, >= 1; absent: `usual`; null: 0 */
    GHP_HF_OPTIONAL_REAL, /* double, > 0; absent: `usual`; null: 0 */
    GHP_HF_RATIO,    /* double, 0 to less than 1; absent: 0; the largest of all keys of one field */
    GHP_HF_REQUIRED, /* SIZE that must be there */
    /* The key must have this value (`text`, a number, or null) or be absent: ghp computes no other. */
    GHP_HF_MUST
};

struct ghp_hf_key {
    const char *name; /* NULL ends a list */
    enum ghp_hf_key_kind kind;
    size_t at; /* in struct ghp_hf_config */
    double usual;
    const char *text; /* MUST: JSON */
};

struct ghp_hf_family_keys {
    const char *name, *architecture;
    const struct ghp_hf_key *shared; /* read first, NULL: none */
    const struct ghp_hf_key *keys;
    const char *own[8]; /* further names that are read elsewhere, or change nothing */
};

extern const struct ghp_hf_family_keys ghp_hf_family_keys[GHP_HF_FAMILIES];
/* Keys of every family whose other values would change the network. */
extern const struct ghp_hf_key ghp_hf_common_keys[];
extern const char *const ghp_hf_activation_names[GHP_HF_ACTIVATIONS + 2]; /* ends with NULL */

/* Names of families with `shared` keys that are read elsewhere, or change nothing; ends with NULL. */
extern const char *const ghp_hf_shared_names[];

/* Whether a key of every family changes nothing. */
bool ghp_hf_key_is_harmless(const char *name);
/* Whether a name is in a list that ends with NULL; '*' in the list stands for any letters. */
bool ghp_hf_key_is_listed(const char *name, const char *const *list);
bool ghp_hf_key_is_in(const char *name, const struct ghp_hf_key *keys); /* of NULL: no */

#endif
