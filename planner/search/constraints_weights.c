/* planner/search/constraints_weights.c - weights: the coefficients of a mix of constraints, and what choices cost
 * by them. */
#include "planner/search/constraints_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t weight_entries(const struct ghp_instance *in)
{
    return 2 * ((size_t)in->n_slots + 1) + 2 * ((size_t)in->n_items + 1) + (size_t)in->n_points +
           2 + (size_t)in->n_layers + 2 * (size_t)in->n_p2p_transfers;
}

enum ghp_status ghp_weights_init(const struct ghp_instance *in, struct ghp_weights *w)
{
    double *block = ghp_alloc(weight_entries(in), sizeof *block);

    *w = (struct ghp_weights){0};
    if (block == NULL) return GHP_NO_MEMORY();
    w->work[0] = block;
    w->work[1] = w->work[0] + in->n_slots + 1;
    w->reduce = w->work[1] + in->n_slots + 1;
    w->slack = w->reduce + in->n_items + 1;
    w->live = w->slack + in->n_items + 1;
    w->receive = w->live + in->n_points + 2;
    w->p2p_transfer = w->receive + in->n_layers;
    return GHP_OK;
}

void ghp_weights_release(struct ghp_weights *w)
{
    if (w == NULL) return;
    free(w->work[0]);
    memset(w, 0, sizeof *w);
}

static void weigh_items(const struct ghp_instance *in, const struct ghp_constraint *constraint,
                        double weight, struct ghp_weights *w)
{
    int aside[2] = {constraint->to_item + 1, constraint->to_item + 1};

    if (constraint->from_item > constraint->to_item) return;
    if (constraint->waiting_update >= 0)
        ghp_instance_aside(in, constraint->from_item, constraint->to_item, aside);
    w->reduce[constraint->from_item] += weight;
    w->reduce[aside[0]] -= weight;
    w->reduce[aside[1]] += weight;
    w->reduce[constraint->to_item + 1] -= weight;
}

static void weigh_constraint(const struct ghp_instance *in, const struct ghp_coefficient *c,
                             const struct ghp_constraint *constraint, double weight,
                             struct ghp_weights *w)
{
    if (constraint->from_slot <= constraint->to_slot)
        for (int k = 0; k < GHP_WORK_COUNT; k++) {
            w->work[k][constraint->from_slot] += weight * (c->on[k] - c->off[k]);
            w->work[k][constraint->to_slot + 1] -= weight * (c->on[k] - c->off[k]);
        }
    weigh_items(in, constraint, weight * (1 - c->reduce_off), w);
    if (constraint->waiting_update >= 0)
        w->slack[constraint->waiting_update] += weight * constraint->relaxation;
    for (int k = 0; k < GHP_WORK_COUNT; k++)
        w->work[k][0] += weight * c->off[k];
    w->reduce[0] += weight * c->reduce_off;
}

static void weigh_range(struct ghp_slot_range r, double weight, struct ghp_weights *w)
{
    for (int k = 0; k < GHP_WORK_COUNT && r.first <= r.last; k++) {
        w->work[k][r.first] += weight;
        w->work[k][r.last + 1] -= weight;
    }
}

static void weigh_stage_constraint(const struct ghp_instance *in,
                                   const struct ghp_constraint *constraint, double weight,
                                   struct ghp_weights *w)
{
    struct ghp_cover c;

    for (int h = 0; constraint->p2p_transfers && h < in->n_p2p_transfers; h++) {
        if (in->p2p_transfer[h].from == constraint->base)
            w->p2p_transfer[2 * h] += weight * in->micro_batches;
        if (in->p2p_transfer[h].to == constraint->base)
            w->p2p_transfer[2 * h + 1] += weight * in->micro_batches;
    }
    weigh_items(in, constraint, weight, w);
    if (constraint->waiting_update >= 0)
        w->slack[constraint->waiting_update] += weight * constraint->relaxation;
    if (constraint->p2p_transfers || constraint->from_slot > constraint->to_slot) return;
    c = ghp_cover_of(in, constraint);
    for (int k = 0; k < c.n; k++)
        weigh_range(c.range[k], weight, w);
    for (int k = 0; k < c.n_p2p_transfers; k++)
        w->p2p_transfer[2 * c.p2p_transfer[k]] += weight,
            w->p2p_transfer[2 * c.p2p_transfer[k] + 1] += weight;
}

void ghp_weights_set(const struct ghp_instance *in, const struct ghp_coefficients *coefficients,
                     const struct ghp_constraint *constraints, const double *weight, int n,
                     struct ghp_weights *w)
{
    memset(w->work[0], 0, weight_entries(in) * sizeof *w->work[0]);
    for (int k = 0; k < n; k++) {
        if (constraints[k].variant >= 0 && in->n_stages > 1) {
            weigh_stage_constraint(in, &constraints[k], weight[k], w);
            continue;
        }
        if (constraints[k].variant >= 0) {
            weigh_constraint(in, &coefficients->variant[constraints[k].variant], &constraints[k],
                             weight[k], w);
            continue;
        }
        w->live[constraints[k].point + 1] += weight[k];
        w->receive[constraints[k].receiver] += weight[k];
    }
    for (int k = 0; k < GHP_WORK_COUNT; k++)
        for (int s = 1; s < in->n_slots; s++)
            w->work[k][s] += w->work[k][s - 1];
    for (int i = 1; i < in->n_items; i++)
        w->reduce[i] += w->reduce[i - 1];
    for (int p = 1; p <= in->n_points; p++)
        w->live[p] += w->live[p - 1];
}

static double spans_cost(const struct ghp_spans *spans, int index, const double *live)
{
    double sum = 0;

    for (int k = spans->first[index]; k < spans->first[index + 1]; k++)
        sum += (double)spans->span[k].bytes *
               (live[spans->span[k].last + 1] - live[spans->span[k].first]);
    return sum;
}

static double layer_cost(const struct ghp_weights *w, const struct ghp_instance *in, int v, int i)
{
    const struct ghp_layer_cost *p = &in->layer[in->first_choice[v] + i];
    int item = in->n_layers - 1 - v;
    int forward = in->wait_slot[item], backward = in->ready_slot[item];
    double sum = p->reduces ? w->reduce[item] * p->reduce_s : -w->slack[item];

    sum += w->work[GHP_WORK_COMPUTE][in->start_slot[in->stage[v]]] * p->start_s;
    for (int g = in->n_layers + 1 + v; g < in->n_items; g += in->n_layers)
        sum += p->gather_s > 0 && g == ghp_instance_gather_item(in, v, in->first_choice[v] + i)
                   ? w->reduce[g] * p->gather_s
                   : -w->slack[g];
    for (int k = 0; k < GHP_WORK_COUNT; k++)
        sum += w->work[k][forward] * p->forward_s[k] + w->work[k][backward] * p->before_s[k] +
               w->work[k][backward + 1] * p->after_s[k];
    for (int k = 0; in->first_steady >= 0 && k < GHP_WORK_COUNT; k++)
        sum += w->work[k][in->first_steady + in->stage[v]] * p->steady_s[k];
    for (int k = 0; in->first_tail >= 0 && k < GHP_WORK_COUNT; k++)
        sum += w->work[k][in->first_tail + in->stage[v]] * p->tail_s[k];
    if (v == in->n_layers - 1) {
        double metric_s = in->metric_s[i];

        sum += metric_s > 0 ? w->reduce[in->n_layers] * metric_s : -w->slack[in->n_layers];
    }
    if (in->has_memory)
        sum += spans_cost(&in->layer_spans, in->first_choice[v] + i, w->live) +
               w->receive[v] * (double)in->receive_bytes[in->first_choice[v] + i];
    return sum;
}

static void coefficient_edge(const struct ghp_weights *w, const struct ghp_domain *domain, int e,
                             struct ghp_frontier *f)
{
    const struct ghp_instance *in = domain->instance;
    int from = in->edges[e].from, to = in->edges[e].to, n_to = in->n_classes[to];
    int forward = in->edge_slot[2 * e], backward = in->edge_slot[2 * e + 1];
    double wf[2] = {w->work[0][forward], w->work[1][forward]};
    double wb[2] = {w->work[0][backward], w->work[1][backward]};
    double *cost = &f->edge_cost[in->first_pair[e]];

    for (int k = 0; in->first_steady >= 0 && k < GHP_WORK_COUNT; k++) {
        double steady = (in->micro_batches - 1) * w->work[k][in->first_steady + in->stage[to]];

        wf[k] += steady;
        wb[k] += steady;
    }
    for (int a = 0; a < f->n_classes[from]; a++)
        for (int b = 0; b < f->n_classes[to]; ++b, cost++) {
            int pair = in->first_pair[e] + f->classes[in->first_choice[from] + a] * n_to +
                       f->classes[in->first_choice[to] + b];
            const struct ghp_edge_cost *p = &in->edge[pair];

            *cost = wf[0] * p->forward_s[0] + wf[1] * p->forward_s[1] + wb[0] * p->backward_s[0] +
                    wb[1] * p->backward_s[1];
            if (in->has_memory) *cost += spans_cost(&in->edge_spans, pair, w->live);
            if (in->p2p_transfer_of[e] >= 0) {
                const struct ghp_p2p_transfer_cost *h =
                    ghp_constraints_p2p_transfer_cost(in, e, pair);

                *cost += w->p2p_transfer[2 * in->p2p_transfer_of[e]] * h->forward_s +
                         w->p2p_transfer[2 * in->p2p_transfer_of[e] + 1] * h->backward_s;
            }
            if (!domain->pair[pair]) *cost = INFINITY;
        }
}

void ghp_weights_to_frontier(const struct ghp_weights *w, const struct ghp_domain *domain,
                             struct ghp_frontier *frontier)
{
    const struct ghp_instance *in = domain->instance;

    for (int v = 0; v < in->n_layers; v++)
        for (int k = 0; k < frontier->n_active[v]; k++)
            frontier->node_cost[in->first_choice[v] + k] =
                layer_cost(w, in, v, frontier->active[in->first_choice[v] + k]);
    for (int e = 0; e < in->n_edges; e++)
        coefficient_edge(w, domain, e, frontier);
}
