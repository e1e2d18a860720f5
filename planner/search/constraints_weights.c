/* planner/search/constraints_weights.c - weights: the prices that a mix of rows charges, and what choices cost by them. */
#include "planner/search/constraints_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t weight_entries(const struct ghp_instance *in)
{
    return 2 * ((size_t)in->n_slots + 1) + 2 * ((size_t)in->n_items + 1) + (size_t)in->n_points +
           2 + (size_t)in->n_layers + 2 * (size_t)in->n_hops;
}

enum ghp_status ghp_weights_init(const struct ghp_instance *in, struct ghp_weights *w)
{
    double *block = ghp_alloc(weight_entries(in), sizeof *block);

    *w = (struct ghp_weights){0};
    if (block == NULL) return GHP_NO_MEMORY();
    w->work[0] = block;
    w->work[1] = w->work[0] + in->n_slots + 1;
    w->reduce = w->work[1] + in->n_slots + 1;
    w->idle = w->reduce + in->n_items + 1;
    w->live = w->idle + in->n_items + 1;
    w->receive = w->live + in->n_points + 2;
    w->hop = w->receive + in->n_layers;
    return GHP_OK;
}

void ghp_weights_release(struct ghp_weights *w)
{
    if (w == NULL) return;
    free(w->work[0]);
    memset(w, 0, sizeof *w);
}

static void weigh_row(const struct ghp_charge *c, const struct ghp_row *row, double weight,
                      struct ghp_weights *w)
{
    if (row->from_slot <= row->to_slot)
        for (int k = 0; k < GHP_WORK_COUNT; ++k) {
            w->work[k][row->from_slot] += weight * (c->on[k] - c->off[k]);
            w->work[k][row->to_slot + 1] -= weight * (c->on[k] - c->off[k]);
        }
    if (row->from_item <= row->to_item) {
        w->reduce[row->from_item] += weight * (1 - c->reduce_off);
        w->reduce[row->to_item + 1] -= weight * (1 - c->reduce_off);
    }
    if (row->waiter >= 0) w->idle[row->waiter] += weight * row->discount;
    for (int k = 0; k < GHP_WORK_COUNT; ++k)
        w->work[k][0] += weight * c->off[k];
    w->reduce[0] += weight * c->reduce_off;
}

static void weigh_range(struct ghp_slot_range r, double weight, struct ghp_weights *w)
{
    for (int k = 0; k < GHP_WORK_COUNT && r.first <= r.last; ++k) {
        w->work[k][r.first] += weight;
        w->work[k][r.last + 1] -= weight;
    }
}

static void weigh_stage_row(const struct ghp_instance *in, const struct ghp_row *row, double weight,
                            struct ghp_weights *w)
{
    struct ghp_cover c;

    for (int h = 0; row->hops && h < in->n_hops; ++h) {
        if (in->hop[h].from == row->base) w->hop[2 * h] += weight * in->micro_batches;
        if (in->hop[h].to == row->base) w->hop[2 * h + 1] += weight * in->micro_batches;
    }
    if (row->from_item <= row->to_item) {
        w->reduce[row->from_item] += weight;
        w->reduce[row->to_item + 1] -= weight;
    }
    if (row->waiter >= 0) w->idle[row->waiter] += weight * row->discount;
    if (row->hops || row->from_slot > row->to_slot) return;
    c = ghp_cover_of(in, row);
    for (int k = 0; k < c.n; ++k)
        weigh_range(c.range[k], weight, w);
    for (int k = 0; k < c.n_hops; ++k)
        w->hop[2 * c.hop[k]] += weight, w->hop[2 * c.hop[k] + 1] += weight;
}

void ghp_weights_set(const struct ghp_instance *in, const struct ghp_charges *charges,
                     const struct ghp_row *rows, const double *weight, int n, struct ghp_weights *w)
{
    memset(w->work[0], 0, weight_entries(in) * sizeof *w->work[0]);
    for (int k = 0; k < n; ++k) {
        if (rows[k].variant >= 0 && in->n_stages > 1) {
            weigh_stage_row(in, &rows[k], weight[k], w);
            continue;
        }
        if (rows[k].variant >= 0) {
            weigh_row(&charges->variant[rows[k].variant], &rows[k], weight[k], w);
            continue;
        }
        w->live[rows[k].point + 1] += weight[k];
        w->receive[rows[k].receiver] += weight[k];
    }
    for (int k = 0; k < GHP_WORK_COUNT; ++k)
        for (int s = 1; s < in->n_slots; ++s)
            w->work[k][s] += w->work[k][s - 1];
    for (int i = 1; i < in->n_items; ++i)
        w->reduce[i] += w->reduce[i - 1];
    for (int p = 1; p <= in->n_points; ++p)
        w->live[p] += w->live[p - 1];
}

static double spans_cost(const struct ghp_spans *spans, int index, const double *live)
{
    double sum = 0;

    for (int k = spans->first[index]; k < spans->first[index + 1]; ++k)
        sum += (double)spans->span[k].bytes *
               (live[spans->span[k].last + 1] - live[spans->span[k].first]);
    return sum;
}

static double layer_cost(const struct ghp_weights *w, const struct ghp_instance *in, int v, int i)
{
    const struct ghp_layer_price *p = &in->layer[in->first_choice[v] + i];
    int item = in->n_layers - 1 - v;
    int forward = in->wait_slot[item], backward = in->ready_slot[item];
    double sum = p->reduces ? w->reduce[item] * p->reduce_s : -w->idle[item];

    for (int k = 0; k < GHP_WORK_COUNT; ++k)
        sum += w->work[k][forward] * p->forward_s[k] + w->work[k][backward] * p->before_s[k] +
               w->work[k][backward + 1] * p->after_s[k];
    for (int k = 0; in->first_middle >= 0 && k < GHP_WORK_COUNT; ++k)
        sum += w->work[k][in->first_middle + in->stage[v]] * p->middle_s[k];
    if (v == in->n_layers - 1) {
        double metric_s = in->metric_s[i];

        sum += metric_s > 0 ? w->reduce[in->n_items - 1] * metric_s : -w->idle[in->n_items - 1];
    }
    if (in->has_memory)
        sum += spans_cost(&in->layer_spans, in->first_choice[v] + i, w->live) +
               w->receive[v] * (double)in->receive_bytes[in->first_choice[v] + i];
    return sum;
}

static void charge_edge(const struct ghp_weights *w, const struct ghp_domain *domain, int e,
                        struct ghp_frontier *f)
{
    const struct ghp_instance *in = domain->instance;
    int from = in->edges[e].from, to = in->edges[e].to, n_to = in->n_choices[to];
    int forward = in->edge_slot[2 * e], backward = in->edge_slot[2 * e + 1];
    double wf[2] = {w->work[0][forward], w->work[1][forward]};
    double wb[2] = {w->work[0][backward], w->work[1][backward]};
    double *cost = &f->edge_cost[in->first_pair[e]];

    for (int k = 0; in->first_middle >= 0 && k < GHP_WORK_COUNT; ++k) {
        double middle = (in->micro_batches - 1) * w->work[k][in->first_middle + in->stage[to]];

        wf[k] += middle;
        wb[k] += middle;
    }
    for (int a = 0; a < f->n_active[from]; ++a)
        for (int b = 0; b < f->n_active[to]; ++b, ++cost) {
            int pair = in->first_pair[e] + f->active[in->first_choice[from] + a] * n_to +
                       f->active[in->first_choice[to] + b];
            const struct ghp_edge_price *p = &in->edge[pair];

            *cost = wf[0] * p->forward_s[0] + wf[1] * p->forward_s[1] + wb[0] * p->backward_s[0] +
                    wb[1] * p->backward_s[1];
            if (in->has_memory) *cost += spans_cost(&in->edge_spans, pair, w->live);
            if (in->hop_of[e] >= 0) {
                const struct ghp_hop_price *h = ghp_rows_hop_price(in, e, pair);

                *cost += w->hop[2 * in->hop_of[e]] * h->forward_s +
                         w->hop[2 * in->hop_of[e] + 1] * h->backward_s;
            }
            if (!domain->pair[pair]) *cost = INFINITY;
        }
}

void ghp_weights_charge(const struct ghp_weights *w, const struct ghp_domain *domain,
                        struct ghp_frontier *frontier)
{
    const struct ghp_instance *in = domain->instance;

    for (int v = 0; v < in->n_layers; ++v)
        for (int k = 0; k < frontier->n_active[v]; ++k)
            frontier->node_cost[in->first_choice[v] + k] =
                layer_cost(w, in, v, frontier->active[in->first_choice[v] + k]);
    for (int e = 0; e < in->n_edges; ++e)
        charge_edge(w, domain, e, frontier);
}
