/* planner/search/dual.c - column generation for the bound of dual.h; its linear program is dual_private.h's. */
#include "planner/search/dual_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double most_penalty = 1e7;

enum ghp_status ghp_dual_open(const struct ghp_instance *in, struct ghp_goal goal,
                              struct ghp_dual *dual)
{
    const struct ghp_frontier_graph graph = ghp_instance_graph(in);
    enum ghp_status status;

    *dual = (struct ghp_dual){.in = in, .goal = goal, .penalty = 4};
    dual->coefficients = ghp_instance_coefficients(in);
    dual->choice = ghp_alloc((size_t)GHP_DUAL_COLUMNS * (size_t)in->n_layers, sizeof *dual->choice);
    dual->excluded = ghp_alloc(GHP_DUAL_COLUMNS, sizeof *dual->excluded);
    dual->accumulated = ghp_alloc(GHP_DUAL_COLUMNS, sizeof *dual->accumulated);
    dual->constraints = ghp_alloc(GHP_DUAL_CONSTRAINTS, sizeof *dual->constraints);
    dual->weight = ghp_alloc(GHP_DUAL_CONSTRAINTS, sizeof *dual->weight);
    dual->trial = ghp_alloc(GHP_DUAL_CONSTRAINTS, sizeof *dual->trial);
    dual->plan = ghp_alloc((size_t)in->n_layers, sizeof *dual->plan);
    dual->mean_part = ghp_alloc((size_t)in->first_choice[in->n_layers], sizeof *dual->mean_part);
    status = ghp_frontier_open(&graph, &dual->frontier);
    if (status == GHP_OK) status = ghp_weights_init(in, &dual->weights);
    if (status == GHP_OK) status = ghp_accumulated_cost_init(in, &dual->mean);
    if (status == GHP_OK &&
        (dual->choice == NULL || dual->excluded == NULL || dual->accumulated == NULL ||
         dual->constraints == NULL || dual->weight == NULL || dual->trial == NULL ||
         dual->plan == NULL || dual->mean_part == NULL))
        status = GHP_NO_MEMORY();
    if (status != GHP_OK) ghp_dual_close(dual);
    return status;
}

void ghp_dual_close(struct ghp_dual *dual)
{
    if (dual == NULL) return;
    for (int p = 0; p < dual->n_columns; p++)
        ghp_accumulated_cost_release(&dual->accumulated[p]);
    ghp_frontier_close(&dual->frontier);
    ghp_weights_release(&dual->weights);
    ghp_accumulated_cost_release(&dual->mean);
    free(dual->choice);
    free(dual->excluded);
    free(dual->accumulated);
    free(dual->constraints);
    free(dual->weight);
    free(dual->trial);
    free(dual->plan);
    free(dual->mean_part);
    memset(dual, 0, sizeof *dual);
}

/* ---- constraints and columns ---- */

double ghp_dual_value(struct ghp_dual *dual, const struct ghp_accumulated_cost *accumulated,
                      struct ghp_constraint *constraint)
{
    double longest = -INFINITY;
    struct ghp_constraint candidate;

    if (dual->goal.bytes)
        return ghp_constraint_fullest(dual->in, accumulated, constraint) / dual->goal.scale;
    for (int v = 0; v < dual->coefficients.n; v++) {
        double value =
            ghp_constraint_longest(dual->in, &dual->coefficients, v, accumulated, &candidate);

        if (value <= longest) continue;
        longest = value;
        *constraint = candidate;
    }
    return longest / dual->goal.scale;
}

/* Drops the older half of the plans. */
static void forget_columns(struct ghp_dual *dual)
{
    int half = dual->n_columns / 2, n = dual->n_columns - half;
    size_t layers = (size_t)dual->in->n_layers;

    for (int p = 0; p < half; p++)
        ghp_accumulated_cost_release(&dual->accumulated[p]);
    memmove(dual->accumulated, dual->accumulated + half, (size_t)n * sizeof *dual->accumulated);
    memmove(dual->choice, dual->choice + (size_t)half * layers,
            (size_t)n * layers * sizeof *dual->choice);
    memmove(dual->excluded, dual->excluded + half, (size_t)n * sizeof *dual->excluded);
    dual->n_columns = n;
}

enum ghp_status ghp_dual_add(struct ghp_dual *dual, const int *choice)
{
    size_t layers = (size_t)dual->in->n_layers;
    struct ghp_constraint constraint;

    if (dual->n_columns == GHP_DUAL_COLUMNS) forget_columns(dual);
    struct ghp_accumulated_cost *accumulated = &dual->accumulated[dual->n_columns];
    GHP_TRY(ghp_accumulated_cost_init(dual->in, accumulated));
    ghp_accumulated_cost_set(dual->in, choice, accumulated);
    memcpy(&dual->choice[(size_t)dual->n_columns * layers], choice, layers * sizeof *choice);
    dual->excluded[dual->n_columns++] = 0;
    ghp_dual_value(dual, accumulated, &constraint);
    ghp_dual_add_constraint(dual, &constraint);
    if (dual->goal.limit_bytes > 0 &&
        ghp_constraint_fullest(dual->in, accumulated, &constraint) > dual->goal.limit_bytes)
        ghp_dual_add_constraint(dual, &constraint);
    return GHP_OK;
}

/* ---- bounds ---- */

/* The least plan under the given relative weights: dual->plan, and its bound. */
static double sweep(struct ghp_dual *dual, const struct ghp_domain *domain, const double *weight,
                    double *absolute, bool marginals)
{
    double constant = 0, least;

    for (int k = 0; k < dual->n_constraints; k++) {
        absolute[k] = weight[k] / ghp_dual_unit(dual, k);
        if (ghp_dual_is_limit(dual, k)) constant += weight[k];
    }
    ghp_weights_set(dual->in, &dual->coefficients, dual->constraints, absolute, dual->n_constraints,
                    &dual->weights);
    ghp_weights_to_frontier(&dual->weights, domain, &dual->frontier);
    least = marginals ? ghp_frontier_marginals(&dual->frontier)
                      : ghp_frontier_solve(&dual->frontier, dual->plan);
    return least - constant;
}

/* Weights before anything is known: all on one constraint that a plan of the domain may meet. */
static void first_weights(struct ghp_dual *dual)
{
    struct ghp_constraint all = {.variant = 0,
                                 .from_slot = 0,
                                 .to_slot = dual->in->n_slots - 1,
                                 .from_item = 0,
                                 .to_item = -1,
                                 .waiting_update = -1};
    double sum = 0;

    for (int k = 0; k < dual->n_constraints; k++)
        if (!ghp_dual_is_limit(dual, k)) sum += dual->weight[k];
    if (sum > 0.5) return;
    if (dual->goal.bytes)
        all = (struct ghp_constraint){
            .variant = -1, .to_slot = -1, .to_item = -1, .waiting_update = -1};
    dual->weight[ghp_dual_add_constraint(dual, &all)] = 1;
}

/* How much of the mean plan each choice has. */
static void note_parts(const struct ghp_master *m)
{
    struct ghp_dual *dual = m->dual;
    const struct ghp_instance *in = dual->in;

    memset(dual->mean_part, 0, (size_t)in->first_choice[in->n_layers] * sizeof *dual->mean_part);
    for (int c = 0; c < m->n_columns; c++) {
        const int *choice = &dual->choice[(size_t)m->columns[c] * (size_t)in->n_layers];
        double w = ghp_master_weight(m, c);

        for (int v = 0; v < in->n_layers && w > 0; v++)
            dual->mean_part[in->first_choice[v] + choice[v]] += w;
    }
}

/* What one call of ghp_dual_bound carries from round to round. */
struct rounds {
    const struct ghp_domain *domain;
    double *absolute, *best_weight, *mixed;
    double best;
};

static enum ghp_status run_rounds(struct ghp_dual *dual, struct ghp_master *m, struct rounds *r,
                                  double *cutoff, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        bool smooth = round > 0 && round + 1 < rounds && m->z - r->best > 1e-3;

        for (int k = 0; k < dual->n_constraints; k++)
            r->mixed[k] = round == 0 ? dual->weight[k]
                          : smooth   ? (dual->trial[k] + r->best_weight[k]) / 2
                                     : dual->trial[k];
        double value = sweep(dual, r->domain, r->mixed, r->absolute, false);
        if (value > r->best) {
            r->best = value;
            memcpy(r->best_weight, r->mixed, (size_t)dual->n_constraints * sizeof *r->mixed);
            memset(r->best_weight + dual->n_constraints, 0,
                   (size_t)(GHP_DUAL_CONSTRAINTS - dual->n_constraints) * sizeof *r->mixed);
        }
        if (!(value < INFINITY) || r->best >= *cutoff) return GHP_OK;
        GHP_TRY(ghp_dual_add(dual, dual->plan));
        if (dual->found != NULL)
            GHP_TRY(dual->found(dual->context, dual->plan, &dual->accumulated[dual->n_columns - 1],
                                cutoff));
        if (r->best >= *cutoff) return GHP_OK;
        if (m->n_columns == GHP_DUAL_USED) ghp_master_thin(m);
        if (m->n_columns == GHP_DUAL_USED) return GHP_OK;
        ghp_master_add(m, dual->n_columns - 1);
        if (!ghp_master_solve(m)) return GHP_OK;
        if (m->z - r->best > 1e-7 * fabs(m->z) &&
            !(*cutoff < INFINITY && m->z - r->best < 1e-3 * (*cutoff - m->z)))
            continue;
        if (!(ghp_master_over(m) > 1e-9) || dual->penalty >= most_penalty) return GHP_OK;
        dual->penalty *= 4;
        if (!ghp_master_solve(m)) return GHP_OK;
    }
    return GHP_OK;
}

enum ghp_status ghp_dual_bound(struct ghp_dual *dual, const struct ghp_domain *domain,
                               double *cutoff, int rounds, double *bound)
{
    struct ghp_master m = {0};
    struct rounds r = {.domain = domain, .best = -INFINITY};
    enum ghp_status status;
    bool fits;

    *bound = -INFINITY;
    GHP_TRY(ghp_frontier_set(&dual->frontier, domain->choice, &fits));
    if (!fits) return GHP_OK;
    first_weights(dual);
    r.absolute = ghp_alloc(3 * GHP_DUAL_CONSTRAINTS, sizeof *r.absolute);
    if (r.absolute == NULL) return GHP_NO_MEMORY();
    r.best_weight = r.absolute + GHP_DUAL_CONSTRAINTS;
    r.mixed = r.best_weight + GHP_DUAL_CONSTRAINTS;
    GHP_TRY_GOTO(status, ghp_master_open(dual, domain, &m), done);
    m.z = INFINITY;
    GHP_TRY_GOTO(status, run_rounds(dual, &m, &r, cutoff, rounds), done);
    if (r.best > -INFINITY)
        memcpy(dual->weight, r.best_weight, (size_t)dual->n_constraints * sizeof *dual->weight);
    *bound = r.best;
done:
    if (m.lp != NULL) note_parts(&m);
    ghp_master_close(&m);
    free(r.absolute);
    return status;
}

enum ghp_status ghp_dual_reduced_cost_fixing(struct ghp_dual *dual, struct ghp_domain *domain,
                                             double cutoff, int *removed)
{
    const struct ghp_instance *in = dual->in;
    const struct ghp_frontier *f = &dual->frontier;
    double constant = 0;
    bool fits;

    *removed = 0;
    GHP_TRY(ghp_frontier_set(&dual->frontier, domain->choice, &fits));
    if (!fits) return GHP_OK;
    sweep(dual, domain, dual->weight, dual->trial, true);
    for (int k = 0; k < dual->n_constraints; k++)
        if (ghp_dual_is_limit(dual, k)) constant += dual->weight[k];
    for (int v = 0; v < in->n_layers; v++)
        for (int k = 0; k < f->n_active[v]; k++) {
            if (f->node_least[in->first_choice[v] + k] - constant < cutoff) continue;
            ghp_domain_drop(domain, v, f->active[in->first_choice[v] + k]);
            ++*removed;
        }
    for (int e = 0; e < in->n_edges; e++) {
        int from = in->edges[e].from, to = in->edges[e].to;

        for (int a = 0; a < f->n_classes[from]; a++)
            for (int b = 0; b < f->n_classes[to]; b++)
                if (f->edge_least[in->first_pair[e] + a * f->n_classes[to] + b] - constant >=
                    cutoff)
                    domain->pair[in->first_pair[e] +
                                 f->classes[in->first_choice[from] + a] * in->n_classes[to] +
                                 f->classes[in->first_choice[to] + b]] = 0;
    }
    return GHP_OK;
}

struct listing {
    struct ghp_dual *dual;
    double constant;
};

static enum ghp_status on_listed(void *context, const int *choice, double *below)
{
    struct listing *l = context;
    double cutoff = *below - l->constant;

    ghp_accumulated_cost_set(l->dual->in, choice, &l->dual->mean);
    GHP_TRY(l->dual->found(l->dual->context, choice, &l->dual->mean, &cutoff));
    *below = cutoff + l->constant;
    return GHP_OK;
}

static enum ghp_status on_counted(void *context, const int *choice, double *below)
{
    (void)context;
    (void)choice;
    (void)below;
    return GHP_OK;
}

enum ghp_status ghp_dual_list(struct ghp_dual *dual, double cutoff, int most, bool *all)
{
    struct listing l = {.dual = dual};
    struct ghp_frontier_visitor counter = {.visit = on_counted};
    struct ghp_frontier_visitor visitor = {.visit = on_listed, .context = &l};

    for (int k = 0; k < dual->n_constraints; k++)
        if (ghp_dual_is_limit(dual, k)) l.constant += dual->weight[k];
    GHP_TRY(ghp_frontier_list(&dual->frontier, cutoff + l.constant, most, &counter, all));
    if (!*all) return GHP_OK; /* looking at each would be in vain */
    return ghp_frontier_list(&dual->frontier, cutoff + l.constant, most, &visitor, all);
}
