/* core/model/sizes.c - whether what a network takes for a batch can be counted in 64 bits. */
#include "core/base/units.h"
#include "core/model/model.h"
#include "core/model/op.h"

#include <inttypes.h>

/* A layer's tensors are each counted a few times: in two passes, again for recomputation, and as scratch. Below these
 * limits such sums of bytes stay below 2^63. */
#define MOST_SAMPLES (INT64_C(1) << 30)
#define MOST_NUMBERS (INT64_C(1) << 53) /* of all layers' inputs and outputs, for the whole batch */
#define MOST_WEIGHTS (INT64_C(1) << 56) /* of all workers together */
#define MOST_FLOPS (INT64_C(1) << 60)   /* of one layer's forward pass, for the whole batch */
#define MOST_ALL_FLOPS (INT64_C(1) << 62) /* of all layers' forward passes, for one sample */

/* The numbers of one sample in a complete layer's input and output tensors: at most 2^39 in each. */
static int64_t layer_numbers(const struct ghp_model *model, const struct ghp_layer *layer)
{
    int64_t sum = ghp_shape_elements(layer->out);

    for (int i = 0; i < layer->n_inputs; i++)
        sum += ghp_shape_elements(model->layers[layer->inputs[i]].out);
    return sum;
}

static enum ghp_status fail_batch(const struct ghp_model *model, int64_t batch, const char *what,
                                  int64_t most)
{
    if (batch == 1 || most < 1)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "network '%s' %s for one sample; use smaller layers or a shorter sequence",
                        model->name, what);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "a batch of %" PRId64 " samples is too large: network '%s' %s for it; use at "
                    "most %" PRId64 " samples",
                    batch, model->name, what, most);
}

enum ghp_status ghp_model_check_sizes(const struct ghp_model *model, int64_t batch, int64_t workers)
{
    int64_t numbers = 0, weights = 0, flops = 1, all_flops = 0, most = MOST_SAMPLES;

    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[i];
        int64_t of_layer = ghp_layer_flops(layer);

        numbers += layer_numbers(model, layer);
        weights += ghp_layer_weights(layer);
        if (of_layer > flops) flops = of_layer;
        if (numbers > MOST_NUMBERS || weights > MOST_WEIGHTS)
            return fail_batch(model, 1, "has more than 2^53 values", 0);
        if (of_layer > MOST_ALL_FLOPS - all_flops)
            return fail_batch(model, 1, "takes more than 2^62 operations", 0);
        all_flops += of_layer;
    }
    GHP_ASSERT(numbers > 0); /* an input has some */
    if (most > MOST_NUMBERS / numbers) most = MOST_NUMBERS / numbers;
    if (most > MOST_FLOPS / flops) most = MOST_FLOPS / flops;
    if (batch > MOST_SAMPLES)
        return fail_batch(model, batch, "cannot count more than 2^30 samples", most);
    if (!ghp_product_fits(batch, numbers, MOST_NUMBERS))
        return fail_batch(model, batch, "has more than 2^53 values", most);
    if (!ghp_product_fits(batch, flops, MOST_FLOPS))
        return fail_batch(model, batch, "takes more than 2^60 operations in one layer", most);
    if (!ghp_product_fits(workers, weights, MOST_WEIGHTS))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%" PRId64 " workers are too many: network '%s' has more than 2^56 weights "
                        "on them; use at most %" PRId64 " workers",
                        workers, model->name, MOST_WEIGHTS / weights);
    return GHP_OK;
}
