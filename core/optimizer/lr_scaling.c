/* core/optimizer/lr_scaling.c - see optimizer/lr_scaling.h. */
#include "core/optimizer/lr_scaling.h"

#include <math.h>
#include <stdlib.h>

static const double trust = 0.001; /* of lars */
static const double little = 1e-6; /* beside norms that may be 0 */
static const double batches_of_mean =
    1000; /* worker batches over which adascale and lena average */

static const struct ghp_lr_scaling linear = {
    .name = "linear", .purpose = "rates times the worker batches of a global batch"};
static const struct ghp_lr_scaling lars = {.name = "lars",
                                           .purpose = "each tensor's rate by its norm over its "
                                                      "gradient's",
                                           .optimizer = &ghp_optimizer_sgd,
                                           .weights = true};
static const struct ghp_lr_scaling lamb = {.name = "lamb",
                                           .purpose = "each tensor's rate by its norm over that of "
                                                      "Adam's direction",
                                           .optimizer = &ghp_optimizer_adamw,
                                           .weights = true,
                                           .directions = true};
static const struct ghp_lr_scaling adascale = {
    .name = "adascale",
    .purpose = "rates times what the worker batches' gradients have apart",
    .optimizer = &ghp_optimizer_sgd,
    .batches = true};
static const struct ghp_lr_scaling lena = {.name = "lena",
                                           .purpose = "each tensor's rate times what the worker "
                                                      "batches' gradients have apart in it, after "
                                                      "a warm-up of its own",
                                           .optimizer = &ghp_optimizer_sgd,
                                           .batches = true};

static const struct ghp_lr_scaling *const all[] = {NULL, &linear, &lars, &lamb, &adascale, &lena};
enum { N_SCALINGS = sizeof all / sizeof all[0] };

const char *const ghp_lr_scaling_names[N_SCALINGS + 1] = {"none",     "linear", "lars", "lamb",
                                                          "adascale", "lena",   NULL};

const struct ghp_lr_scaling *ghp_lr_scaling_at(int index)
{
    GHP_ASSERT(index >= 0 && index < N_SCALINGS);
    return all[index];
}

enum ghp_status ghp_lr_scaling_check(const struct ghp_lr_scaling *scaling,
                                     const struct ghp_optimizer *optimizer, bool clips)
{
    if (scaling == NULL) return GHP_OK;
    if (optimizer == NULL) optimizer = &ghp_optimizer_sgd;
    if (scaling->optimizer != NULL && scaling->optimizer != optimizer)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "--lr-scaling %s is defined for the optimizer %s, and the plan is for %s; "
                        "use --optimizer %s, or another --lr-scaling",
                        scaling->name, scaling->optimizer->name, optimizer->name,
                        scaling->optimizer->name);
    if (clips && ghp_lr_scaling_takes_norms(scaling))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "--lr-scaling %s reads norms of gradients that --clip-norm would change; "
                        "leave one of them out",
                        scaling->name);
    return GHP_OK;
}

enum ghp_status ghp_lr_scaling_open(int tensors, struct ghp_lr_scaling_state *state)
{
    *state = (struct ghp_lr_scaling_state){
        .tensors = tensors,
        .values = ghp_alloc((size_t)tensors * GHP_LR_SCALING_VALUES + 1, sizeof *state->values),
        .factors = ghp_alloc((size_t)tensors + 1, sizeof *state->factors)};
    return state->values == NULL || state->factors == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

void ghp_lr_scaling_close(struct ghp_lr_scaling_state *state)
{
    free(state->values);
    free(state->factors);
    *state = (struct ghp_lr_scaling_state){0};
}

/* ---- by the weights ---- */

static void advance_by_weights(const struct ghp_lr_scaling *scaling,
                               struct ghp_lr_scaling_state *state, double decay,
                               const struct ghp_lr_scaling_norms *norms)
{
    for (int j = 0; j < state->tensors; j++) {
        double w = sqrt(norms->others[j]), g = sqrt(norms->gradients[j]), ratio = 1;

        if (w > 0 && g > 0) ratio = scaling->directions ? w / g : w / (g + decay * w);
        state->factors[j] = scaling->directions ? ratio : trust * ratio;
    }
}

/* ---- by the worker batches ---- */

/* At most n; *cut: it was more. */
static double ratio_of(double top, double bottom, double n, bool *cut)
{
    double s = (top + little) / (bottom + little);

    *cut = s > n;
    return *cut ? n : s;
}

static void advance_by_batches(const struct ghp_lr_scaling *scaling,
                               struct ghp_lr_scaling_state *state, int batches, double ramp,
                               const struct ghp_lr_scaling_norms *norms)
{
    double *top = state->values, *bottom = top + state->tensors, *gain = bottom + state->tensors;
    double n = batches, share = fmin(n / batches_of_mean, 1), tops = 0, bottoms = 0, whole;
    bool cut;

    for (int j = 0; j < state->tensors; j++) {
        top[j] = share * norms->others[j] / n + (1 - share) * top[j];
        bottom[j] = share * norms->gradients[j] + (1 - share) * bottom[j];
        tops += top[j];
        bottoms += bottom[j];
    }
    whole = ratio_of(tops, bottoms, n, &cut);
    for (int j = 0; j < state->tensors; j++) {
        double s = ratio_of(top[j], bottom[j], n, &cut);

        state->factors[j] = whole;
        if (scaling == &lena) state->factors[j] = gain[j] < ramp ? s * gain[j] / ramp : s;
        gain[j] += scaling == &lena && !cut ? s : whole;
    }
}

void ghp_lr_scaling_advance(const struct ghp_lr_scaling *scaling,
                            struct ghp_lr_scaling_state *state, int batches,
                            const struct ghp_hyperparameters *hyperparameters,
                            const struct ghp_lr_scaling_norms *norms)
{
    if (scaling->batches)
        advance_by_batches(scaling, state, batches, hyperparameters->ramp, norms);
    else
        advance_by_weights(scaling, state, hyperparameters->weight_decay, norms);
}
