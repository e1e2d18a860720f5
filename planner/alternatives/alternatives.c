/* planner/alternatives/alternatives.c - one row a split, then one search a layer with a part of the time. */
#include "planner/alternatives/alternatives.h"

#include "planner/search/constraints.h"
#include "core/base/clock.h"
#include "core/cost/terms.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Instructions that all trials of single changes may lower and simulate: some tenths of a second. If all splits of all
 * layers would take more, few of each are tried. It is a count and not a time, so that a plan is the same on every
 * machine. */
static const double all_instrs = 3e5, few_instrs = 2e5;
/* The same if a strategy was asked for, so that a second best cannot become the plan: few splits of the layers that
 * promise most, and of no others. */
static const double asked_instrs = 5e4;
enum { LEAST_LAYERS = 8 };

struct promise { /* a split that a layer could have, and a step that it cannot be faster than */
    int choice;
    double least_s;
};

struct second_best {
    const struct ghp_alternatives_job *job;
    const struct ghp_model *model;
    int layer;
    const int *choice;        /* the plan's, n_layers */
    int *trial, *best;        /* scratch; the second best, if step_s is finite */
    struct ghp_split *splits; /* scratch */
    struct ghp_term *terms;   /* scratch */
    struct promise *promises; /* scratch, of one layer's splits */
    struct ghp_coefficients coefficients;
    struct ghp_accumulated_cost load; /* scratch */
    int most;                         /* splits that are tried of a layer, >= 2 */
    struct promise *layers;           /* whose splits are tried, in their order; owned */
    int n_layers;
    struct ghp_program program; /* of the plan, with its timing and its layers' terms */
    struct ghp_timing timing;
    struct ghp_term *own_terms;
    double step_s;             /* of the second best */
    struct ghp_alternative *a; /* filled */
    int left_out;              /* layers not done, or not to the end */
};

static struct ghp_split split_of(const struct second_best *r, int v, int choice)
{
    return r->job->instance->choices[r->job->instance->first_choice[v] + choice];
}

static size_t plan_bytes(const struct second_best *r)
{
    return (size_t)r->job->instance->n_layers * sizeof(int);
}

static bool fits(const struct second_best *r, int64_t peak_bytes)
{
    return r->job->limit_bytes == 0 || peak_bytes <= r->job->limit_bytes;
}

/* Keeps a plan if it is the best yet. */
static void keep(struct second_best *r, const int *choice, double step_s)
{
    if (step_s >= r->step_s) return;
    r->step_s = step_s;
    memcpy(r->best, choice, plan_bytes(r));
}

/* A plan's step with the plan's buckets; INFINITY if it does not fit. */
static enum ghp_status evaluate(const struct second_best *r, const int *choice, double *step_s)
{
    int64_t peak = 0;

    GHP_TRY(ghp_search_evaluate(r->job->instance, choice, r->job->bucket_bytes, step_s,
                                r->job->limit_bytes > 0 ? &peak : NULL));
    if (!fits(r, peak)) *step_s = INFINITY;
    return GHP_OK;
}

/* Keeps a plan if it fits and is the best yet. */
static enum ghp_status weigh(struct second_best *r, const int *choice)
{
    double step_s;

    GHP_TRY(evaluate(r, choice, &step_s));
    keep(r, choice, step_s);
    return GHP_OK;
}

/* ---- every split ---- */

/* The program of a plan, with the plan's buckets, its timing and its layers' terms. */
static enum ghp_status play(struct second_best *r, const int *choice, struct ghp_program *program,
                            struct ghp_timing *timing, struct ghp_term *terms)
{
    const struct ghp_instance *in = r->job->instance;
    struct ghp_lowering lowering = *in->lowering;

    lowering.method.bucket_bytes = r->job->bucket_bytes;
    ghp_instance_splits(in, choice, r->splits);
    GHP_TRY(ghp_lower(&lowering, r->splits, 0, program));
    GHP_TRY(ghp_simulate(program, in->profile, timing));
    memset(terms, 0, (size_t)in->n_layers * sizeof *terms);
    ghp_terms_of(program, timing, in->n_layers, terms);
    return GHP_OK;
}

static struct ghp_choice_cost cost_of(const struct second_best *r, int choice,
                                      const struct ghp_program *program,
                                      const struct ghp_timing *timing, const struct ghp_term *terms)
{
    const struct ghp_term *term = &terms[r->layer];

    return (struct ghp_choice_cost){
        .split = split_of(r, r->layer, choice),
        .step_s = timing->step_s,
        .forward_s = term->forward_s,
        .backward_s = term->backward_s,
        .reshard_s = ghp_terms_around(program, timing, r->model, r->layer),
        .reduce_s = term->reduce_s,
        .exposed_s = term->exposed_s,
        .update_s = term->update_s,
        .peak_bytes = program->peak_bytes,
    };
}

/* The row of a split of the layer, all other layers as planned. */
static enum ghp_status cost_choice(struct second_best *r, int choice, struct ghp_choice_cost *cost)
{
    struct ghp_program program = {0};
    struct ghp_timing timing = {0};
    enum ghp_status status;

    if (choice == r->choice[r->layer]) {
        *cost = cost_of(r, choice, &r->program, &r->timing, r->own_terms);
        return GHP_OK;
    }
    ghp_instance_choose(r->job->instance, r->layer, choice, r->trial);
    status = play(r, r->trial, &program, &timing, r->terms);
    if (status == GHP_OK) *cost = cost_of(r, choice, &program, &timing, r->terms);
    ghp_timing_release(&timing);
    ghp_program_release(&program);
    return status;
}

static int by_promise(const void *a, const void *b)
{
    const struct promise *x = a, *y = b;

    if (x->least_s < y->least_s || x->least_s > y->least_s) return x->least_s < y->least_s ? -1 : 1;
    return x->choice - y->choice;
}

static int by_number(const void *a, const void *b)
{
    const struct promise *x = a, *y = b;

    return x->choice - y->choice;
}

/* The splits to try, in the order of their numbers: all of them, or if these are too many the layer's own and those
 * that promise the shortest steps. */
static int choose_splits(struct second_best *r)
{
    const struct ghp_instance *in = r->job->instance;
    int n = in->n_choices[r->layer];
    bool all = n <= r->most;

    for (int i = 0; i < n; i++) {
        r->promises[i] = (struct promise){.choice = i};
        if (all) continue;
        ghp_instance_choose(in, r->layer, i, r->trial);
        ghp_accumulated_cost_set(in, r->trial, &r->load);
        r->promises[i].least_s =
            i == r->choice[r->layer] ? 0 : ghp_constraint_step_s(in, &r->coefficients, &r->load);
    }
    if (all) return n;
    memcpy(r->trial, r->choice, plan_bytes(r));
    qsort(r->promises, (size_t)n, sizeof *r->promises, by_promise);
    qsort(r->promises, (size_t)r->most, sizeof *r->promises, by_number);
    return r->most;
}

/* Splits of the layer, all other layers as they are. */
static enum ghp_status change_alone(struct second_best *r)
{
    int n;

    memcpy(r->trial, r->choice, plan_bytes(r));
    n = choose_splits(r);
    r->a->choices = ghp_alloc((size_t)n, sizeof *r->a->choices);
    if (r->a->choices == NULL) return GHP_NO_MEMORY();
    for (int k = 0; k < n; k++) {
        struct ghp_choice_cost *cost = &r->a->choices[k];
        int i = r->promises[k].choice;

        if (ghp_now_s() > r->job->end_s) {
            r->left_out++;
            return GHP_OK;
        }
        GHP_TRY(cost_choice(r, i, cost));
        r->a->n_choices = k + 1;
        if (i != r->choice[r->layer] && fits(r, cost->peak_bytes)) keep(r, r->trial, cost->step_s);
    }
    return GHP_OK;
}

/* ---- the best plan without the split ---- */

static enum ghp_status search_others(struct second_best *r, double deadline_s)
{
    struct ghp_domain domain = {0};
    struct ghp_search_job job = {.instance = r->job->instance,
                                 .domain = &domain,
                                 .limit_bytes = r->job->limit_bytes,
                                 .deadline_s = deadline_s,
                                 .start = r->trial,
                                 .n_start = 1};
    struct ghp_search_result result = {0};
    enum ghp_status status;

    GHP_TRY(ghp_domain_init(r->job->instance, &domain));
    ghp_domain_drop(&domain, r->layer, r->choice[r->layer]);
    memcpy(r->trial, isfinite(r->step_s) ? r->best : r->choice, plan_bytes(r));
    status = ghp_search_run(&job, &result);
    if (status == GHP_OK && result.feasible) status = weigh(r, result.kept[0].choice);
    ghp_search_release(&result);
    ghp_domain_release(&domain);
    return status;
}

/* Whether the layer is the one of the second best, or changes with it. */
static bool shares_parameters(const struct second_best *r, int v)
{
    return ghp_model_owner(r->model, v) == ghp_model_owner(r->model, r->layer);
}

/* Takes back the changes of other layers that do not make the second best faster. */
static enum ghp_status drop_idle_changes(struct second_best *r)
{
    for (int v = 0; v < r->job->instance->n_layers; v++) {
        double step_s;

        if (r->best[v] == r->choice[v] || shares_parameters(r, v)) continue;
        if (ghp_now_s() > r->job->deadline_s) return GHP_OK;
        memcpy(r->trial, r->best, plan_bytes(r));
        ghp_instance_choose(r->job->instance, v, r->choice[v], r->trial);
        GHP_TRY(evaluate(r, r->trial, &step_s));
        if (step_s > r->step_s * (1 + GHP_BRANCH_SAME)) continue;
        memcpy(r->best, r->trial, plan_bytes(r));
        r->step_s = step_s;
    }
    return GHP_OK;
}

static enum ghp_status record(struct second_best *r)
{
    int n = 0;

    r->a->layer = r->layer;
    r->a->split = split_of(r, r->layer, r->best[r->layer]);
    r->a->step_s = r->step_s;
    for (int v = 0; v < r->job->instance->n_layers; v++)
        n += v != r->layer && r->best[v] != r->choice[v];
    r->a->changes = ghp_alloc((size_t)n, sizeof *r->a->changes);
    if (r->a->changes == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < r->job->instance->n_layers; v++)
        if (v != r->layer && r->best[v] != r->choice[v])
            r->a->changes[r->a->n_changes++] = (struct ghp_change){v, split_of(r, v, r->best[v])};
    return GHP_OK;
}

/* ---- all layers ---- */

static enum ghp_status find_one(struct second_best *r, int left, struct ghp_alternatives *found)
{
    double now_s = ghp_now_s();

    r->a = &found->of[found->n];
    r->step_s = INFINITY;
    found->n++; /* owned by the list from here on */
    GHP_TRY(change_alone(r));
    if (now_s < r->job->deadline_s && !(r->job->quick && r->most < INT_MAX)) {
        GHP_TRY(search_others(r, now_s + (r->job->deadline_s - now_s) / left));
        if (isfinite(r->step_s)) GHP_TRY(drop_idle_changes(r));
    }
    if (isfinite(r->step_s)) return record(r);
    --found->n; /* no other split fits the memory */
    ghp_alternative_release(r->a);
    return GHP_OK;
}

/* How many splits of each layer the budget allows for. */
static void set_most(struct second_best *r, int layers)
{
    double all = 0, most = few_instrs / ((double)layers * r->program.n_instrs);

    for (int v = 0; v < r->model->n_layers; v++)
        all += ghp_layer_tells_splits(&r->model->layers[v])
                   ? (double)r->job->instance->n_choices[v] * r->program.n_instrs
                   : 0;
    r->most = all <= all_instrs ? INT_MAX : most < 2 ? 2 : (int)most;
}

/* A step that no other split of the layer, all other layers as they are, can be faster than by the constraints. */
static double promise_of(struct second_best *r, int v)
{
    const struct ghp_instance *in = r->job->instance;
    double least_s = INFINITY;

    memcpy(r->trial, r->choice, plan_bytes(r));
    for (int i = 0; i < in->n_choices[v]; i++) {
        if (i == r->choice[v]) continue;
        ghp_instance_choose(in, v, i, r->trial);
        ghp_accumulated_cost_set(in, r->trial, &r->load);
        least_s = fmin(least_s, ghp_constraint_step_s(in, &r->coefficients, &r->load));
    }
    return least_s;
}

/* The layers to try, and how many splits of each. Returns how many others there are. */
static int choose_layers(struct second_best *r)
{
    int all = 0, most;

    for (int v = 0; v < r->model->n_layers; v++)
        if (ghp_layer_tells_splits(&r->model->layers[v]) && r->job->instance->n_choices[v] > 1)
            r->layers[all++].choice = v;
    r->n_layers = all;
    if (all > 0) set_most(r, all);
    if (!r->job->quick || r->most == INT_MAX) return 0;
    r->most = 2;
    most = (int)fmax(LEAST_LAYERS, asked_instrs / r->program.n_instrs);
    if (all <= most) return 0;
    for (int k = 0; k < all; k++)
        r->layers[k].least_s = promise_of(r, r->layers[k].choice);
    qsort(r->layers, (size_t)all, sizeof *r->layers, by_promise);
    qsort(r->layers, (size_t)most, sizeof *r->layers, by_number);
    r->n_layers = most;
    return all - most;
}

static enum ghp_status find_all(struct second_best *r, struct ghp_alternatives *found)
{
    GHP_TRY(play(r, r->choice, &r->program, &r->timing, r->own_terms));
    found->passed_over = choose_layers(r);
    for (int k = 0; k < r->n_layers; k++) {
        if (ghp_now_s() > r->job->end_s) {
            r->left_out++;
            continue;
        }
        r->layer = r->layers[k].choice;
        GHP_TRY(find_one(r, r->n_layers - k, found));
    }
    return GHP_OK;
}

enum ghp_status ghp_alternatives_compute(const struct ghp_alternatives_job *job,
                                         struct ghp_alternatives *alternatives)
{
    const struct ghp_model *model = job->instance->lowering->model;
    size_t layers = (size_t)model->n_layers;
    struct second_best r = {.job = job, .model = model};
    int *choice = ghp_alloc(layers, sizeof *choice);
    enum ghp_status status = ghp_accumulated_cost_init(job->instance, &r.load);
    int widest = 1;

    for (int v = 0; v < model->n_layers; v++)
        if (job->instance->n_choices[v] > widest) widest = job->instance->n_choices[v];
    r.coefficients = ghp_coefficients_of(&job->instance->profile->overlap);
    r.own_terms = ghp_alloc(layers, sizeof *r.own_terms);
    r.promises = ghp_alloc((size_t)widest, sizeof *r.promises);
    r.layers = ghp_alloc(layers, sizeof *r.layers);
    *alternatives = (struct ghp_alternatives){.of = ghp_alloc(layers, sizeof *alternatives->of)};
    r.choice = choice;
    r.trial = ghp_alloc(layers, sizeof *r.trial);
    r.best = ghp_alloc(layers, sizeof *r.best);
    r.splits = ghp_alloc(layers, sizeof *r.splits);
    r.terms = ghp_alloc(layers, sizeof *r.terms);
    if (alternatives->of == NULL || choice == NULL || r.trial == NULL || r.best == NULL ||
        r.splits == NULL || r.terms == NULL || r.own_terms == NULL || r.promises == NULL ||
        r.layers == NULL)
        status = GHP_NO_MEMORY();
    for (int v = 0; v < model->n_layers && status == GHP_OK; v++)
        choice[v] = ghp_instance_find(job->instance, v, job->splits[v]);
    if (status == GHP_OK) status = find_all(&r, alternatives);
    alternatives->left_out = r.left_out;
    free(choice);
    free(r.trial);
    free(r.best);
    free(r.splits);
    free(r.terms);
    free(r.own_terms);
    free(r.promises);
    free(r.layers);
    ghp_timing_release(&r.timing);
    ghp_program_release(&r.program);
    ghp_accumulated_cost_release(&r.load);
    if (status != GHP_OK) ghp_alternatives_release(alternatives);
    return status;
}

void ghp_alternatives_release(struct ghp_alternatives *alternatives)
{
    for (int i = 0; i < alternatives->n; i++)
        ghp_alternative_release(&alternatives->of[i]);
    free(alternatives->of);
    *alternatives = (struct ghp_alternatives){0};
}
