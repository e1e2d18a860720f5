/* core/model/attributes.h - the keys of a layer of models/NAME.json other than name, op and inputs: one table for each
 * operation.
 *
 * Reading, writing and the check of keys follow the table. If a table cannot describe a key, two functions in the
 * operation's file read and write it.
 *
 * Tested  tests/core/model/test_model.c */
#ifndef GHP_CORE_MODEL_ATTRIBUTES_H
#define GHP_CORE_MODEL_ATTRIBUTES_H

#include "core/base/json.h"
#include "core/model/model.h"

#include <stddef.h>

enum ghp_attribute_kind {
    GHP_ATTRIBUTE_INT,    /* int64_t */
    GHP_ATTRIBUTE_REAL,   /* double */
    GHP_ATTRIBUTE_BOOL,   /* bool */
    GHP_ATTRIBUTE_CHOICE, /* int or enum: index of the text in `choices` */
    GHP_ATTRIBUTE_SIZES, /* 2 or 4 int64_t: [height, width], or [top, left, bottom, right]; one number is all of them */
    GHP_ATTRIBUTE_LIST,  /* int64_t [GHP_MAX_VIEW], and an int: how many there are */
    GHP_ATTRIBUTE_REALS, /* 2 to GHP_MAX_INPUTS doubles, and an int: how many; 0: there is no key */
    GHP_ATTRIBUTE_LOSSES, /* `read` and `write` alone know: struct ghp_loss_part [GHP_MAX_INPUTS] */
    GHP_ATTRIBUTE_OTHER   /* `read` and `write` alone know; without `write` it is never written */
};

struct ghp_json_object; /* an object being written */
struct ghp_op_facts;

struct ghp_attribute {
    const char *key; /* NULL ends a table */
    enum ghp_attribute_kind kind;
    bool required;
    double least, most; /* of each number */
    double usual;       /* what is not written: the value if the key is left out */
    /* Offsets in struct ghp_layer: of SIZES one each, of arrays the array and the count. */
    size_t at[4];
    size_t usual_at;            /* SIZES: `usual` is what is there already; 0: `usual` */
    const char *const *choices; /* NULL-terminated */
    const char *pattern;        /* OTHER: of a text, a regular expression; NULL: true or false */
    const struct ghp_attribute *const
        *brings; /* CHOICE: the further attributes of each; NULL: none */
    /* In place of what the kind says; NULL: as it says. */
    enum ghp_status (*read)(const struct ghp_node *at, const struct ghp_attribute *attribute,
                            struct ghp_layer *layer);
    void (*write)(const struct ghp_layer *layer, const struct ghp_attribute *attribute,
                  struct ghp_json_object at);
};

/* The key of operations with parameters that says whether these keep their first values. */
#define GHP_ATTRIBUTE_FIXED                                                                        \
    {                                                                                              \
        .key = "fixed", .kind = GHP_ATTRIBUTE_BOOL, .at = { offsetof(struct ghp_layer, fixed) }    \
    }

/* How many output channels there are, and the standard deviation of the first weights. */
#define GHP_ATTRIBUTE_CHANNELS(name)                                                               \
    {                                                                                              \
        .key = name, .kind = GHP_ATTRIBUTE_INT, .required = true, .least = 1,                      \
        .most = GHP_MODEL_CHANNELS, .at = {                                                        \
            offsetof(struct ghp_layer, out.c)                                                      \
        }                                                                                          \
    }
#define GHP_ATTRIBUTE_DEVIATION                                                                    \
    {                                                                                              \
        .key = "deviation", .kind = GHP_ATTRIBUTE_REAL, .least = 1e-9, .most = 1e3, .usual = 0.02, \
        .at = {                                                                                    \
            offsetof(struct ghp_layer, deviation)                                                  \
        }                                                                                          \
    }

/* What each of a loss's outputs counts, and whether each has labels of its own. */
#define GHP_ATTRIBUTES_OUTPUTS                                                                     \
    {.key = "output_weights",                                                                      \
     .kind = GHP_ATTRIBUTE_REALS,                                                                  \
     .most = 1e6,                                                                                  \
     .at = {offsetof(struct ghp_layer, loss.weights), offsetof(struct ghp_layer, loss.outputs)}},  \
    {                                                                                              \
        .key = "own_labels", .kind = GHP_ATTRIBUTE_BOOL, .at = {                                   \
            offsetof(struct ghp_layer, loss.own_labels)                                            \
        }                                                                                          \
    }

/* What a norm adds to the variance. */
#define GHP_ATTRIBUTE_EPSILON(value)                                                               \
    {                                                                                              \
        .key = "epsilon", .kind = GHP_ATTRIBUTE_REAL, .least = 1e-12, .most = 1, .usual = value,   \
        .at = {                                                                                    \
            offsetof(struct ghp_layer, norm.epsilon)                                               \
        }                                                                                          \
    }

/* An object being written; without memory `whole` turns false, and what is written then is thrown away. */
struct ghp_json_object {
    json_t *json;
    bool *whole;
};

/* Puts a value under a key; takes it over. */
void ghp_attribute_put(struct ghp_json_object at, const char *key, json_t *value);

/* The key as its kind says, without `read`; the layer keeps what it has if the key is left out.
 *
 * at   the layer's object
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT, GHP_ERR_INPUT with line and column
 * Local */
enum ghp_status ghp_attribute_read(const struct ghp_node *at, const struct ghp_attribute *attribute,
                                   struct ghp_layer *layer);

/* The keys of the layer's operation, whose facts these are, but for its name, op and inputs, which are there.
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT, GHP_ERR_INPUT with line and column
 * Local */
enum ghp_status ghp_attributes_read(const struct ghp_node *at, const struct ghp_op_facts *facts,
                                    struct ghp_layer *layer);
/* Refuses keys that the operation does not take. Returns GHP_OK; GHP_ERR_FORMAT. */
enum ghp_status ghp_attributes_check_keys(const struct ghp_node *at,
                                          const struct ghp_op_facts *facts);
/* All that differ from their defaults. */
void ghp_attributes_write(const struct ghp_layer *layer, const struct ghp_op_facts *facts,
                          struct ghp_json_object at);

/* Whether all that an operation's table says of GHP_ATTRIBUTES is the same, bit by bit: then its kernels are.
 * OTHER attributes are sizes, or no kernel's concern. Tested  tests/core/model/test_ops.c */
bool ghp_attributes_equal(const struct ghp_op_facts *facts, const struct ghp_attributes *x,
                          const struct ghp_attributes *y);

#endif
