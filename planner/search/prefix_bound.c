/* planner/search/prefix_bound.c - see prefix_bound.h. */
#include "planner/search/prefix_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How much more a constraint counts that turns at the first layer than one that turns at the last, as a power of e. The
 * dual's own weights come last, so that the frontier keeps their costs. */
static const double leans[GHP_PREFIX_LEANS] = {-6, -2, -0.6, -0.15, 0.15, 0.6, 2, 6, 0};
enum { OWN = GHP_PREFIX_LEANS - 1 };

static double metric_most(const struct ghp_instance *in)
{
    int last = in->n_layers - 1;
    double metric_s = 0, forward_s = 0;

    for (int i = 0; i < in->n_choices[last]; i++) {
        const struct ghp_layer_cost *p = &in->layer[in->first_choice[last] + i];

        metric_s = fmax(metric_s, in->metric_s[i]);
        forward_s = fmax(forward_s, p->forward_s[0] + p->forward_s[1]);
    }
    return metric_s + forward_s;
}

enum ghp_status ghp_prefix_bound_init(const struct ghp_instance *in, struct ghp_prefix_bound *bound)
{
    size_t one = (size_t)GHP_PREFIX_LEANS * (size_t)in->n_layers;
    enum ghp_status status;

    *bound = (struct ghp_prefix_bound){.in = in, .metric_most_s = metric_most(in)};
    status = ghp_weights_init(in, &bound->weights);
    bound->weight = ghp_alloc(GHP_DUAL_CONSTRAINTS, sizeof *bound->weight);
    bound->block = ghp_alloc(4 * one, sizeof *bound->block);
    if (bound->weight == NULL || bound->block == NULL) status = GHP_NO_MEMORY();
    if (status != GHP_OK) {
        ghp_prefix_bound_release(bound);
        return status;
    }
    bound->open = bound->block;
    bound->closed = bound->open + one;
    bound->metric_open = bound->closed + one;
    bound->metric_closed = bound->metric_open + one;
    return GHP_OK;
}

void ghp_prefix_bound_release(struct ghp_prefix_bound *bound)
{
    ghp_weights_release(&bound->weights);
    free(bound->weight);
    free(bound->block);
    free(bound->to_go);
    *bound = (struct ghp_prefix_bound){0};
}

/* ---- weights ---- */

/* The layer where a constraint's path turns; all computation turns before the first, all reductions after the last. */
static int turn_of(const struct ghp_instance *in, const struct ghp_constraint *c)
{
    if (c->waiting_update >= 0) return in->n_layers - 1 - c->from_item;
    return c->to_slot >= c->from_slot ? -1 : in->n_layers;
}

/* The dual's weights, leaning; seconds, and one in sum. */
static void lean(struct ghp_prefix_bound *b, const struct ghp_dual *dual, double by)
{
    double sum = 0;

    for (int k = 0; k < dual->n_constraints; k++) {
        double turn = (double)turn_of(b->in, &dual->constraints[k]) / b->in->n_layers;

        b->weight[k] = dual->weight[k] > 0 ? dual->weight[k] * exp(by * turn) : 0;
        sum += b->weight[k];
    }
    for (int k = 0; k < dual->n_constraints; k++)
        b->weight[k] /= sum;
}

/* How much of the weights is on paths that are open, or closed, after each layer. */
static void note_phases(struct ghp_prefix_bound *b, const struct ghp_dual *dual, int t)
{
    const int n = b->in->n_layers;
    double *open = b->open + t * n, *closed = b->closed + t * n;
    double *metric_open = b->metric_open + t * n, *metric_closed = b->metric_closed + t * n;

    memset(open, 0, (size_t)n * sizeof *open);
    memset(closed, 0, (size_t)n * sizeof *closed);
    memset(metric_open, 0, (size_t)n * sizeof *metric_open);
    memset(metric_closed, 0, (size_t)n * sizeof *metric_closed);
    b->all[t] = b->reduced[t] = 0;
    for (int k = 0; k < dual->n_constraints; k++) {
        const struct ghp_constraint *c = &dual->constraints[k];
        int turn = turn_of(b->in, c);

        if (!(b->weight[k] > 0)) continue;
        if (c->waiting_update < 0) {
            *(turn < 0 ? &b->all[t] : &b->reduced[t]) += b->weight[k];
            continue;
        }
        for (int v = 0; v < n; v++)
            if (c->waiting_update == n)
                (v < turn ? metric_open : metric_closed)[v] += b->weight[k];
            else
                (v < turn ? open : closed)[v] += b->weight[k];
    }
}

enum ghp_status ghp_prefix_bound_set(struct ghp_prefix_bound *bound, const struct ghp_dual *dual,
                                     const struct ghp_domain *domain, struct ghp_frontier *frontier)
{
    const struct ghp_frontier_step *last = &frontier->steps[frontier->n_kept - 1];
    int64_t total = last->table + last->n_states_after;

    if (total > bound->room) {
        free(bound->to_go);
        bound->room = 0;
        bound->to_go = ghp_alloc((size_t)total * GHP_PREFIX_LEANS, sizeof *bound->to_go);
        if (bound->to_go == NULL) return GHP_NO_MEMORY();
        bound->room = total;
    }
    for (int t = 0; t < GHP_PREFIX_LEANS; t++) {
        lean(bound, dual, leans[t]);
        note_phases(bound, dual, t);
        ghp_weights_set(bound->in, &dual->coefficients, dual->constraints, bound->weight,
                        dual->n_constraints, &bound->weights);
        ghp_weights_to_frontier(&bound->weights, domain, frontier);
        ghp_frontier_marginals(frontier);
        memcpy(bound->to_go + t * bound->room, frontier->cost_to_go,
               (size_t)total * sizeof *bound->to_go);
    }
    return GHP_OK;
}

/* ---- prefixes ---- */

struct ghp_prefix ghp_prefix_extend(const struct ghp_prefix *prefix,
                                    const struct ghp_prefix_piece *piece, double metric_most_s)
{
    const double forward = piece->edges_forward + piece->forward;
    const double begun = piece->waits ? piece->forward + piece->reduce : -INFINITY;
    struct ghp_prefix p;

    p.all = prefix->all + forward + piece->backward;
    p.reduced = prefix->reduced + piece->reduce;
    p.open = fmax(prefix->open + forward + piece->reduce, begun);
    p.closed = fmax(prefix->closed + forward + piece->backward, p.open + piece->before);
    p.metric = fmax(prefix->metric + piece->backward, p.reduced + piece->before);
    if (piece->loss) { /* what the metrics add depends on this choice, which no state remembers */
        p.reduced += piece->metric;
        p.metric = piece->metric > 0 ? p.metric + piece->forward + piece->metric : -INFINITY;
    }
    p.weighted = prefix->weighted + piece->weighted;
    /* computation lengthens both alike; and an open path grows by reductions and more */
    if (p.all <= p.closed) p.all = -INFINITY;
    if (p.reduced + metric_most_s <= p.open && p.metric + metric_most_s <= p.closed)
        p.reduced = p.metric = -INFINITY;
    return p;
}

double ghp_prefix_bound_of(const struct ghp_prefix_bound *b, const struct ghp_prefix *p, int v,
                           int64_t state, double enough)
{
    const double most = b->metric_most_s;
    double bound = p->weighted + b->to_go[OWN * b->room + state];
    double all, reduced, metric;

    if (bound >= enough || !(p->open > -INFINITY)) return bound;
    all = fmax(p->all, p->closed);
    reduced = fmax(p->reduced, p->open - most);
    metric = fmax(p->metric, p->closed - most);
    for (int t = OWN; t >= 0 && bound < enough; --t) {
        const int at = t * b->in->n_layers + v;

        bound = fmax(bound, b->to_go[t * b->room + state] + b->open[at] * p->open +
                                b->closed[at] * p->closed + b->metric_open[at] * reduced +
                                b->metric_closed[at] * metric + b->all[t] * all +
                                b->reduced[t] * reduced);
    }
    return bound;
}
