/* core/model/op/sequence/rotary.c - each head's channels in pairs, turned by angles in proportion to the position.
 *
 * Of the channels that turn, i of the first half and of the second half are a pair, turned at position p by p times
 * ghp_rotary_angle (core/model/rotary.h). The gradient is turned back. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Left out: all of a head. */
static enum ghp_status read_turned(const struct ghp_node *at, const struct ghp_attribute *attribute,
                                   struct ghp_layer *layer)
{
    layer->heads.turned = layer->heads.size;
    layer->heads.amplitude = 1;
    return ghp_attribute_read(at, attribute, layer);
}

static void write_turned(const struct ghp_layer *layer, const struct ghp_attribute *attribute,
                         struct ghp_json_object at)
{
    if (layer->heads.turned != layer->heads.size)
        ghp_attribute_put(at, attribute->key, json_integer(layer->heads.turned));
}

#define REAL(name, field, ...)                                                                     \
    {                                                                                              \
        .key = name, .kind = GHP_ATTRIBUTE_REAL, .most = 1e6,                                      \
        .at = {offsetof(struct ghp_layer, heads.field)}, __VA_ARGS__                               \
    }
#define FACTOR REAL("factor", factor, .required = true, .least = 1)
#define ORIGINAL                                                                                   \
    {                                                                                              \
        .key = "original_positions", .kind = GHP_ATTRIBUTE_INT, .required = true, .least = 1,      \
        .most = GHP_MODEL_CHANNELS, .at = {                                                        \
            offsetof(struct ghp_layer, heads.original)                                             \
        }                                                                                          \
    }

static const char *const scalings[] = {
#define SCALING_NAME(id, text) text,
    GHP_ROTARY_LIST(SCALING_NAME)
#undef SCALING_NAME
        NULL};

const char *ghp_rotary_name(enum ghp_rotary scaling)
{
    return scalings[scaling];
}

static const struct ghp_attribute linear[] = {FACTOR, {0}};
static const struct ghp_attribute llama3[] = {
    FACTOR,
    REAL("low_freq_factor", slow, .least = 1e-6, .usual = 1),
    REAL("high_freq_factor", fast, .least = 1e-6, .usual = 4),
    ORIGINAL,
    {0}};
static const struct ghp_attribute yarn[] = {FACTOR,
                                            REAL("beta_slow", slow, .least = 1e-6, .usual = 1),
                                            REAL("beta_fast", fast, .least = 1e-6, .usual = 32),
                                            REAL("amplitude", amplitude, .least = 1e-6, .usual = 1),
                                            {.key = "truncate",
                                             .kind = GHP_ATTRIBUTE_BOOL,
                                             .usual = 1,
                                             .at = {offsetof(struct ghp_layer, heads.truncate)}},
                                            ORIGINAL,
                                            {0}};
static const struct ghp_attribute *const brings[GHP_ROTARY_COUNT] = {
    [GHP_ROTARY_LINEAR] = linear, [GHP_ROTARY_LLAMA3] = llama3, [GHP_ROTARY_YARN] = yarn};

static const struct ghp_attribute attributes[] = {
    {.key = "head_size",
     .kind = GHP_ATTRIBUTE_INT,
     .required = true,
     .least = 2,
     .most = GHP_MODEL_CHANNELS,
     .at = {offsetof(struct ghp_layer, heads.size)}},
    {.key = "base",
     .kind = GHP_ATTRIBUTE_REAL,
     .least = 1,
     .most = 1e12,
     .usual = 10000,
     .at = {offsetof(struct ghp_layer, heads.base)}},
    {.key = "rotary_size",
     .kind = GHP_ATTRIBUTE_INT,
     .least = 2,
     .most = GHP_MODEL_CHANNELS,
     .at = {offsetof(struct ghp_layer, heads.turned)},
     .read = read_turned,
     .write = write_turned},
    {.key = "scaling",
     .kind = GHP_ATTRIBUTE_CHOICE,
     .at = {offsetof(struct ghp_layer, heads.scaling)},
     .choices = scalings,
     .brings = brings},
    {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    int64_t size = layer->heads.size;

    (void)model;
    layer->out = layer->in;
    if (size == layer->heads.turned && size % 2 != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (rotary) pairs the channels of heads of %" PRId64
                        "; use an even head_size",
                        layer->name, size);
    if (layer->heads.turned % 2 != 0 || layer->heads.turned > size)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (rotary) turns pairs of %" PRId64
                        " channels of heads of %" PRId64
                        "; use an even rotary_size of at most head_size",
                        layer->name, layer->heads.turned, size);
    if (layer->heads.scaling > GHP_ROTARY_LINEAR && !(layer->heads.slow < layer->heads.fast))
        return ghp_model_fail(layer, "scales slow turns and fast ones, but the bound of slow ones "
                                     "is not below that of fast ones; exchange the two");
    if (layer->in.c % size != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (rotary) has %" PRId64
                        " channels, which do not divide into heads of %" PRId64
                        "; use a head_size that divides them",
                        layer->name, layer->in.c, size);
    return GHP_OK;
}

static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    if (kind == GHP_SPLIT_CHANNEL) return layer->in.c / layer->heads.size;
    return kind == GHP_SPLIT_FULL ? 1 : 0;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " size%" PRId64, local->heads.size);
    if (local->heads.turned != local->heads.size)
        snprintf(text + strlen(text), n - strlen(text), " turned%" PRId64, local->heads.turned);
}

const struct ghp_op_facts ghp_op_facts_rotary = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES(SEQUENCE),
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .in_place = ghp_in_place_always,
    .divides = divides,
    .by_position = true,
    .key = key,
};
