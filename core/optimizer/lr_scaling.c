/* core/optimizer/lr_scaling.c - see optimizer/lr_scaling.h. */
#include "core/optimizer/lr_scaling.h"

static const struct ghp_rate_rule by_weights = {.weights = true},
                                  by_directions = {.weights = true, .directions = true},
                                  by_batches = {.batches = true},
                                  by_batches_of_each = {.batches = true, .ramps = true};

static const struct ghp_lr_scaling linear = {
    .name = "linear", .purpose = "rates times the worker batches of a global batch"};
static const struct ghp_lr_scaling lars = {.name = "lars",
                                           .purpose = "each tensor's rate by its norm over its "
                                                      "gradient's",
                                           .optimizer = &ghp_optimizer_sgd,
                                           .rule = &by_weights};
static const struct ghp_lr_scaling lamb = {.name = "lamb",
                                           .purpose = "each tensor's rate by its norm over that of "
                                                      "Adam's direction",
                                           .optimizer = &ghp_optimizer_adamw,
                                           .rule = &by_directions};
static const struct ghp_lr_scaling adascale = {
    .name = "adascale",
    .purpose = "rates times what the worker batches' gradients have apart",
    .optimizer = &ghp_optimizer_sgd,
    .rule = &by_batches};
static const struct ghp_lr_scaling lena = {.name = "lena",
                                           .purpose = "each tensor's rate times what the worker "
                                                      "batches' gradients have apart in it, after "
                                                      "a warm-up of its own",
                                           .optimizer = &ghp_optimizer_sgd,
                                           .rule = &by_batches_of_each};

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
