/* core/model/op/norm/batch_norm.c - each channel normed over samples and pixels; running statistics for evaluation. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "core/model/precision.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct ghp_layer, norm.field)

/* "global", "local", or "local:S": of each S samples. */
static enum ghp_status read_statistics(const struct ghp_node *at,
                                       const struct ghp_attribute *attribute,
                                       struct ghp_layer *layer)
{
    struct ghp_norm *norm = &layer->norm;
    char *text = NULL, *end = NULL;
    struct ghp_node where;
    long long samples = 0;
    bool sound;

    GHP_TRY(ghp_json_opt_text(at, attribute->key, &text));
    if (text == NULL) return GHP_OK;
    norm->local_stats = strcmp(text, "local") == 0;
    sound = norm->local_stats || strcmp(text, "global") == 0;
    if (strncmp(text, "local:", 6) == 0 && text[6] >= '1' && text[6] <= '9') {
        samples = strtoll(text + 6, &end, 10);
        sound = *end == '\0' && samples <= GHP_MODEL_SIZE;
    }
    norm->ghost_batch = (int64_t)samples;
    free(text);
    if (sound) return GHP_OK;
    GHP_TRY(ghp_json_get(at, attribute->key, &where));
    return ghp_json_fail(&where, GHP_ERR_FORMAT,
                         "unknown statistics; use one of global, local, local:S (S samples, 1 to "
                         "%d)",
                         (int)GHP_MODEL_SIZE);
}

static void write_statistics(const struct ghp_layer *layer, const struct ghp_attribute *attribute,
                             struct ghp_json_object at)
{
    const struct ghp_norm *n = &layer->norm;

    if (n->local_stats) ghp_attribute_put(at, attribute->key, json_string("local"));
    if (n->ghost_batch > 0)
        ghp_attribute_put(at, attribute->key,
                          json_sprintf("local:%" JSON_INTEGER_FORMAT, (json_int_t)n->ghost_batch));
}

static const struct ghp_attribute attributes[] = {
    GHP_ATTRIBUTE_EPSILON(1e-5),
    {.key = "momentum", .kind = GHP_ATTRIBUTE_REAL, .most = 1, .usual = 0.1, .at = {AT(momentum)}},
    GHP_ATTRIBUTE_FIXED,
    {.key = "statistics",
     .kind = GHP_ATTRIBUTE_OTHER,
     .pattern = "^(global|local(:[1-9][0-9]*)?)$",
     .read = read_statistics,
     .write = write_statistics},
    {0}};

/* A worker that holds several ghost batches runs one after the other. */
static void localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                     struct ghp_local *local)
{
    int64_t ghost_batch = layer->norm.ghost_batch;

    (void)model;
    (void)parts;
    if (ghost_batch == 0 || local->n <= ghost_batch) return;
    local->repeat = (int)(local->n / ghost_batch);
    local->n = ghost_batch;
}

/* Mean and inverse deviation of each ghost batch; no less exact than weights. */
static int64_t saved_bytes(const struct ghp_local *local, int element_bytes)
{
    return 2 * local->c * (local->repeat > 1 ? local->repeat : 1) *
           ghp_parameter_bytes(element_bytes);
}

/* Two sums of each channel, of each ghost batch. */
static int64_t stats_numbers(const struct ghp_local *local)
{
    return 2 * local->c * (local->repeat > 1 ? local->repeat : 1);
}

const struct ghp_op_facts ghp_op_facts_batch_norm = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .params = {{"weight", GHP_INIT_ONE, {GHP_DIM_CHANNEL}},
               {"bias", GHP_INIT_ZERO, {GHP_DIM_CHANNEL}}},
    .states = {{"running_mean", GHP_INIT_ZERO, {GHP_DIM_CHANNEL}},
               {"running_var", GHP_INIT_ONE, {GHP_DIM_CHANNEL}}},
    .passes = {[GHP_PASS_STATS] = {GHP_AT_X | GHP_AT_STATE, GHP_AT_STATS},
               [GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W | GHP_AT_STATE | GHP_AT_STATS,
                                     GHP_AT_Y | GHP_AT_SAVED | GHP_AT_STATE},
               [GHP_PASS_BACKWARD_STATS] = {GHP_AT_X | GHP_AT_DY | GHP_AT_W | GHP_AT_SAVED,
                                            GHP_AT_STATS},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_STATS, GHP_AT_DW},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY | GHP_AT_W | GHP_AT_SAVED |
                                               GHP_AT_STATS,
                                           GHP_AT_DX}},
    .saved_bytes = {saved_bytes},
    .stats_numbers = stats_numbers,
    .localize = localize,
    .has_batch_statistics = true,
    .runs_once = true,
    .fuses = GHP_FUSES_STATS | GHP_FUSES_ADD | GHP_FUSES_RELU,
};
