/* core/model/op/norm/lrn.c - local response normalisation across channels: y = x / (k + alpha / size sum x^2)^beta. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "core/model/precision.h"

#include <inttypes.h>
#include <stdio.h>

#define AT(field) offsetof(struct ghp_layer, norm.field)

/* The channel that is normed is in the middle. */
static enum ghp_status read_size(const struct ghp_node *at, const struct ghp_attribute *attribute,
                                 struct ghp_layer *layer)
{
    long long size;
    struct ghp_node where;

    GHP_TRY(ghp_attribute_read(at, attribute, layer));
    size = layer->norm.size;
    if (size % 2 != 0) return GHP_OK;
    GHP_TRY(ghp_json_get(at, attribute->key, &where));
    return ghp_json_fail(&where, GHP_ERR_INPUT,
                         "the window of %lld channels has no middle; use %lld or %lld", size,
                         size - 1, size + 1);
}

static const struct ghp_attribute attributes[] = {
    {.key = "size",
     .kind = GHP_ATTRIBUTE_INT,
     .required = true,
     .least = 1,
     .most = GHP_MODEL_SIZE,
     .at = {AT(size)},
     .read = read_size},
    {.key = "alpha", .kind = GHP_ATTRIBUTE_REAL, .most = 1e6, .usual = 1e-4, .at = {AT(alpha)}},
    {.key = "beta", .kind = GHP_ATTRIBUTE_REAL, .most = 100, .usual = 0.75, .at = {AT(beta)}},
    {.key = "k",
     .kind = GHP_ATTRIBUTE_REAL,
     .least = 1e-12,
     .most = 1e6,
     .usual = 1,
     .at = {AT(k)}},
    {0}};

/* k + alpha / size sum x^2 of each output; no less exact than weights. */
static int64_t saved_bytes(const struct ghp_local *local, int element_bytes)
{
    return local->n * local->k * local->p * local->q * ghp_parameter_bytes(element_bytes);
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " size%" PRId64, local->norm.size);
}

const struct ghp_op_facts ghp_op_facts_lrn = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_IMAGES,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y | GHP_AT_SAVED},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY | GHP_AT_SAVED, GHP_AT_DX}},
    .saved_bytes = {saved_bytes},
    .divides = ghp_divides_samples,
    .key = key,
};
