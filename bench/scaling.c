/* bench/scaling.c - costs of the published plan kinds, the search over group sizes, and the fits. */
#include "bench/scaling.h"

#include "core/plan/plan.h"
#include "planner/make/make.h"
#include "onnx/network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NODES_MOST = 1 << 20, /* of the machine: no two workers share one */
    GRID = 13,            /* starting values of each free parameter */
    PATH_BYTES = 4096
};

static const double most_batch_half = 8, least_bandwidth_fraction = 1.0 / 16;
static const double finest = 1e-5; /* of a parameter's range: where the fit's steps end */

static enum ghp_status path_of(const char *folder, const char *network, char path[PATH_BYTES])
{
    int n = snprintf(path, PATH_BYTES, "%s/%s.json", folder, network);

    if (n < PATH_BYTES) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE, "the folder's name '%s' is too long; use a shorter one", folder);
}

enum ghp_status ghp_scaling_open(const char *folder, struct ghp_scaling_case *cases, int n)
{
    char path[PATH_BYTES];

    for (int k = 0; k < n; k++) {
        GHP_TRY(path_of(folder, cases[k].network, path));
        GHP_TRY(ghp_network_load(path, &cases[k].model));
    }
    return GHP_OK;
}

void ghp_scaling_close(struct ghp_scaling_case *cases, int n)
{
    for (int k = 0; k < n; k++)
        ghp_model_release(&cases[k].model);
}

/* ---- costs ---- */

/* The analytic model of a node as a profile; released by the caller, zeroed on failure. */
static enum ghp_status profile_of(const struct ghp_scaling_node *node, struct ghp_profile *profile)
{
    enum ghp_status status;

    GHP_TRY(ghp_profile_init(profile, "analytic", "fast", 4));
    profile->analytic.flops_per_s = node->flops_per_s;
    profile->analytic.batch_half = node->batch_half;
    profile->machine.nodes = NODES_MOST;
    profile->machine.inter = (struct ghp_link){node->latency_s, node->bandwidth_Bps, 0};
    profile->machine.intra = profile->machine.inter;
    status = ghp_profile_finalize(profile);
    if (status != GHP_OK) ghp_profile_release(profile);
    return status;
}

/* Nodes in a group of a linear layer of `features` outputs: N / sqrt(N B / features), to the nearest power of two.
 * Source docs/results/closed-forms.md */
static int rule_tp_size(const struct ghp_scaling_case *item, int64_t features)
{
    double groups = sqrt((double)item->nodes * (double)item->batch / (double)features);
    int exponent = (int)lround(fmax(0, log2(groups)));
    int tp_size = exponent < 30 ? item->nodes >> exponent : 0;

    return tp_size > 0 ? tp_size : 1;
}

/* Splits of a plan kind: data before the first linear layer; linear layers `out`, the last one `in`, so that only a sum
 * follows it; between them by channel; the loss by data. `tp_size` is that of the kinds with one group size. */
static void set_splits(const struct ghp_scaling_case *item, enum ghp_scaling_kind kind, int tp_size,
                       struct ghp_split *splits)
{
    const struct ghp_model *model = &item->model;
    int last = -1, now = 0;

    for (int v = 0; v < model->n_layers; v++)
        if (model->layers[v].op == GHP_OP_LINEAR) last = v;
    for (int v = 0; v < model->n_layers; v++) {
        bool linear = model->layers[v].op == GHP_OP_LINEAR;

        if (linear)
            now = kind == GHP_SCALING_RULE ? rule_tp_size(item, model->layers[v].out.c) : tp_size;
        splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
        if (now < 2 || v > last) continue;
        splits[v].tp_size = now;
        splits[v].kind = !linear ? GHP_SPLIT_CHANNEL : v == last ? GHP_SPLIT_IN : GHP_SPLIT_OUT;
        if (v == last) now = 0;
    }
}

static bool fits(const struct ghp_scaling_case *item, const struct ghp_split *splits,
                 struct ghp_problem problem)
{
    for (int v = 0; v < item->model.n_layers; v++)
        if (ghp_split_check(&item->model.layers[v], splits[v], problem) != GHP_OK) return false;
    return true;
}

/* Seconds of a step on `workers` nodes; INFINITY if the network cannot be split so. */
static enum ghp_status cost(const struct ghp_scaling_case *item, const struct ghp_profile *profile,
                            struct ghp_split *splits, int workers, double *step_s)
{
    const struct ghp_lowering lowering = {.model = &item->model,
                                          .problem = {workers, item->batch},
                                          .element_bytes = profile->element_bytes};
    struct ghp_prediction predicted;

    *step_s = INFINITY;
    if (!fits(item, splits, lowering.problem)) return GHP_OK;
    GHP_TRY(ghp_plan_predict(&lowering, splits, profile, &predicted));
    *step_s = predicted.step_s;
    return GHP_OK;
}

struct costed {
    double step_s;
    int tp_size; /* of the first linear layer */
};

/* The fastest plan of the kind on all nodes. */
static enum ghp_status cost_kind(const struct ghp_scaling_case *item, const struct ghp_profile *p,
                                 enum ghp_scaling_kind kind, struct ghp_split *splits,
                                 struct costed *best)
{
    int first = kind == GHP_SCALING_BEST ? 1 : item->nodes, tp_size_of_first = 1;

    *best = (struct costed){.step_s = INFINITY};
    for (int tp_size = first; tp_size <= item->nodes; tp_size *= 2) {
        double step_s;

        set_splits(item, kind, tp_size, splits);
        for (int v = item->model.n_layers - 1; v >= 0; --v)
            if (item->model.layers[v].op == GHP_OP_LINEAR) tp_size_of_first = splits[v].tp_size;
        GHP_TRY(cost(item, p, splits, item->nodes, &step_s));
        if (step_s < best->step_s) *best = (struct costed){step_s, tp_size_of_first};
    }
    return GHP_OK;
}

enum ghp_status ghp_scaling_speedup(const struct ghp_scaling_case *item,
                                    const struct ghp_scaling_node *node, enum ghp_scaling_kind kind,
                                    double *speedup, int *tp_size)
{
    struct ghp_split *splits = ghp_alloc((size_t)item->model.n_layers, sizeof *splits);
    struct ghp_profile profile = {0};
    struct costed best = {0};
    double one_s = 0;
    enum ghp_status status;

    if (splits == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, profile_of(node, &profile), done);
    set_splits(item, GHP_SCALING_BEST, 1, splits);
    GHP_TRY_GOTO(status, cost(item, &profile, splits, 1, &one_s), done);
    GHP_TRY_GOTO(status, cost_kind(item, &profile, kind, splits, &best), done);
    *speedup = one_s / best.step_s;
    if (tp_size != NULL) *tp_size = best.tp_size;
done:
    ghp_profile_release(&profile);
    free(splits);
    return status;
}

/* ---- fits ---- */

/* What one fit carries: `at` are the free parameters as fractions of their ranges. */
struct fitting {
    const struct ghp_scaling_case *cases;
    int n;
    struct ghp_scaling_fit *fit;
    struct ghp_scaling_node given;
    double at[GHP_SCALING_PARAMETERS];
    double least; /* sum of squares there */
};

static struct ghp_scaling_node node_at(const struct fitting *f, const double *at)
{
    struct ghp_scaling_node node = f->given;

    node.batch_half = at[0] * most_batch_half;
    if (f->fit->n_free > 1)
        node.bandwidth_Bps *= least_bandwidth_fraction + at[1] * (1 - least_bandwidth_fraction);
    return node;
}

/* Keeps the parameters where their sum of squares is the least yet. */
static enum ghp_status try_at(struct fitting *f, const double *at, bool *better)
{
    const struct ghp_scaling_node node = node_at(f, at);
    double sum = 0;

    for (int k = 0; k < f->n; k++) {
        double speedup, error;

        if (f->fit->left_out & 1u << k) continue;
        GHP_TRY(ghp_scaling_speedup(&f->cases[k], &node, f->fit->kind, &speedup, NULL));
        error = speedup / f->cases[k].published - 1;
        sum += error * error;
    }
    *better = sum < f->least;
    if (!*better) return GHP_OK;
    f->least = sum;
    memcpy(f->at, at, sizeof f->at);
    return GHP_OK;
}

static enum ghp_status search_grid(struct fitting *f)
{
    const int second = f->fit->n_free > 1 ? GRID : 1;
    bool better;

    f->least = INFINITY;
    for (int i = 0; i < GRID; i++)
        for (int j = 0; j < second; j++) {
            const double at[GHP_SCALING_PARAMETERS] = {(double)i / (GRID - 1),
                                                       1 - (double)j / (GRID - 1)};

            GHP_TRY(try_at(f, at, &better));
        }
    return GHP_OK;
}

/* One round of steps along each axis and diagonal; whether any was better. */
static enum ghp_status step_around(struct fitting *f, double step, bool *better)
{
    double centre[GHP_SCALING_PARAMETERS];

    *better = false;
    memcpy(centre, f->at, sizeof centre);
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
            const double at[GHP_SCALING_PARAMETERS] = {fmin(1, fmax(0, centre[0] + i * step)),
                                                       fmin(1, fmax(0, centre[1] + j * step))};
            bool here;

            if ((i == 0 && j == 0) || (j != 0 && f->fit->n_free < 2)) continue;
            GHP_TRY(try_at(f, at, &here));
            *better |= here;
        }
    return GHP_OK;
}

enum ghp_status ghp_scaling_fit(const struct ghp_scaling_case *cases, int n,
                                struct ghp_scaling_fit *fit)
{
    struct fitting f = {.cases = cases, .n = n, .fit = fit, .given = fit->node};
    double step = 1.0 / (GRID - 1);

    GHP_ASSERT(n <= GHP_SCALING_MOST && fit->n_free >= 1 && fit->n_free <= GHP_SCALING_PARAMETERS);
    GHP_TRY(search_grid(&f));
    while (step > finest) {
        bool better;

        GHP_TRY(step_around(&f, step, &better));
        if (!better) step /= 2;
    }
    fit->node = node_at(&f, f.at);
    for (int k = 0; k < n; k++)
        GHP_TRY(ghp_scaling_speedup(&cases[k], &fit->node, fit->kind, &fit->speedup[k],
                                    &fit->tp_size[k]));
    return GHP_OK;
}

/* ---- ghp's own plan ---- */

enum ghp_status ghp_scaling_own(const struct ghp_scaling_case *item, const char *folder,
                                const struct ghp_scaling_node *node, const char *force,
                                double *speedup, double *gap)
{
    struct ghp_split *splits = ghp_alloc((size_t)item->model.n_layers, sizeof *splits);
    struct ghp_profile profile = {0};
    struct ghp_plan plan = {0};
    char path[PATH_BYTES];
    double one_s = 0;
    struct ghp_plan_request request = {.model_path = path,
                                       .profile_path = "",
                                       .profile = &profile,
                                       .problem = {item->nodes, item->batch},
                                       .force = force,
                                       .method.bucket_bytes = GHP_BUCKET_AUTO,
                                       .time_limit_s = 30,
                                       .gap = *gap,
                                       .solver = GHP_SOLVER_AUTO};
    enum ghp_status status;

    if (splits == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, path_of(folder, item->network, path), done);
    GHP_TRY_GOTO(status, profile_of(node, &profile), done);
    set_splits(item, GHP_SCALING_BEST, 1, splits);
    GHP_TRY_GOTO(status, cost(item, &profile, splits, 1, &one_s), done);
    GHP_TRY_GOTO(status, ghp_plan_make(&request, &plan), done);
    *speedup = one_s / plan.predicted.step_s;
    *gap = plan.certificate.gap;
done:
    ghp_plan_release(&plan);
    ghp_profile_release(&profile);
    free(splits);
    return status;
}
