/* planner/search/accumulated_cost.c - accumulated costs: a plan's work as prefix sums. */
#include "planner/search/constraints_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t accumulated_entries(const struct ghp_instance *in)
{
    return 2 * ((size_t)in->n_slots + 1) + (size_t)in->n_items + 1 + (size_t)in->n_items +
           (size_t)in->n_points + (size_t)in->n_layers + 2 * (size_t)in->n_p2p_transfers;
}

enum ghp_status ghp_accumulated_cost_init(const struct ghp_instance *in,
                                          struct ghp_accumulated_cost *accumulated)
{
    double *block = ghp_alloc(accumulated_entries(in), sizeof *block);

    *accumulated = (struct ghp_accumulated_cost){0};
    if (block == NULL) return GHP_NO_MEMORY();
    accumulated->work[0] = block;
    accumulated->work[1] = accumulated->work[0] + in->n_slots + 1;
    accumulated->reduce = accumulated->work[1] + in->n_slots + 1;
    accumulated->slack = accumulated->reduce + in->n_items + 1;
    accumulated->live = accumulated->slack + in->n_items;
    accumulated->receive = accumulated->live + in->n_points;
    accumulated->p2p_transfer = accumulated->receive + in->n_layers;
    return GHP_OK;
}

void ghp_accumulated_cost_release(struct ghp_accumulated_cost *accumulated)
{
    if (accumulated == NULL) return;
    free(accumulated->work[0]);
    memset(accumulated, 0, sizeof *accumulated);
}

void ghp_accumulated_cost_clear(const struct ghp_instance *in,
                                struct ghp_accumulated_cost *accumulated)
{
    memset(accumulated->work[0], 0, accumulated_entries(in) * sizeof *accumulated->work[0]);
}

void ghp_accumulated_cost_add(const struct ghp_instance *in,
                              struct ghp_accumulated_cost *accumulated,
                              const struct ghp_accumulated_cost *part, double weight)
{
    double *to = accumulated->work[0];
    const double *from = part->work[0];

    for (size_t k = 0, n = accumulated_entries(in); k < n; k++)
        to[k] += weight * from[k];
}

/* Adds spans as differences over points; the sums follow in ghp_accumulated_cost_set. */
static void add_spans(const struct ghp_instance *in, const struct ghp_spans *spans, int index,
                      double *live)
{
    for (int k = spans->first[index]; k < spans->first[index + 1]; k++) {
        live[spans->span[k].first] += (double)spans->span[k].bytes;
        if (spans->span[k].last + 1 < in->n_points)
            live[spans->span[k].last + 1] -= (double)spans->span[k].bytes;
    }
}

static void add_layer(const struct ghp_instance *in, int v, int flat,
                      struct ghp_accumulated_cost *accumulated)
{
    const struct ghp_layer_cost *p = &in->layer[flat];
    int item = in->n_layers - 1 - v;
    int forward = in->wait_slot[item], backward = in->ready_slot[item];

    for (int k = 0; k < GHP_WORK_COUNT; k++) {
        accumulated->work[k][forward + 1] += p->forward_s[k];
        accumulated->work[k][backward + 1] = p->before_s[k];
        accumulated->work[k][backward + 2] = p->after_s[k];
        if (in->first_steady >= 0)
            accumulated->work[k][in->first_steady + in->stage[v] + 1] += p->steady_s[k];
        if (in->first_tail >= 0)
            accumulated->work[k][in->first_tail + in->stage[v] + 1] += p->tail_s[k];
    }
    accumulated->reduce[item + 1] = p->reduce_s;
    accumulated->slack[item] = p->reduces ? 0 : 1;
    accumulated->work[GHP_WORK_COMPUTE][in->start_slot[in->stage[v]] + 1] += p->start_s;
    for (int i = in->n_layers + 1 + v; i < in->n_items; i += in->n_layers) {
        double gather_s = i == ghp_instance_gather_item(in, v, flat) ? p->gather_s : 0;

        accumulated->reduce[i + 1] = gather_s;
        accumulated->slack[i] = gather_s > 0 ? 0 : 1;
    }
    if (!in->has_memory) return;
    add_spans(in, &in->layer_spans, flat, accumulated->live);
    accumulated->receive[v] = (double)in->receive_bytes[flat];
}

/* Each value becomes the sum up to it. */
static void add_up(double *value, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++) {
        sum += value[i];
        value[i] = sum;
    }
}

/* The same for two arrays at once, since each sum has to wait for its last addition. */
static void add_up_both(double *restrict a, double *restrict b, int n)
{
    double sum_a = 0, sum_b = 0;

    for (int i = 0; i < n; i++) {
        sum_a += a[i];
        sum_b += b[i];
        a[i] = sum_a;
        b[i] = sum_b;
    }
}

static void add_p2p_transfer(const struct ghp_instance *in, int e, const int *choice,
                             struct ghp_accumulated_cost *accumulated)
{
    const struct ghp_p2p_transfer_cost *p =
        ghp_constraints_p2p_transfer_cost(in, e, ghp_instance_pair(in, e, choice));
    int h = in->p2p_transfer_of[e];

    accumulated->p2p_transfer[2 * h] = p->forward_s;
    accumulated->p2p_transfer[2 * h + 1] = p->backward_s;
}

void ghp_accumulated_cost_set(const struct ghp_instance *in, const int *choice,
                              struct ghp_accumulated_cost *accumulated)
{
    double metric_s = in->metric_s[choice[in->n_layers - 1]];

    ghp_accumulated_cost_clear(in, accumulated);
    for (int v = 0; v < in->n_layers; v++)
        add_layer(in, v, in->first_choice[v] + choice[v], accumulated);
    for (int e = 0; e < in->n_edges; e++) {
        int pair = ghp_instance_pair(in, e, choice);
        const struct ghp_edge_cost *p = &in->edge[pair];

        for (int k = 0; k < GHP_WORK_COUNT; k++) {
            accumulated->work[k][in->edge_slot[2 * e] + 1] += p->forward_s[k];
            accumulated->work[k][in->edge_slot[2 * e + 1] + 1] = p->backward_s[k];
            if (in->first_steady >= 0)
                accumulated->work[k][in->first_steady + in->stage[in->edges[e].to] + 1] +=
                    (in->micro_batches - 1) * (p->forward_s[k] + p->backward_s[k]);
        }
        if (in->p2p_transfer_of[e] >= 0) add_p2p_transfer(in, e, choice, accumulated);
        if (in->has_memory) add_spans(in, &in->edge_spans, pair, accumulated->live);
    }
    accumulated->reduce[in->n_layers + 1] = metric_s;
    accumulated->slack[in->n_layers] = metric_s > 0 ? 0 : 1;
    add_up_both(accumulated->work[0], accumulated->work[1], in->n_slots + 1);
    add_up(accumulated->reduce, in->n_items + 1);
    if (in->has_memory) add_up(accumulated->live, in->n_points);
}

double ghp_constraints_most_between(const struct ghp_instance *in, int from_item, int to_item)
{
    double sum = 0;
    int aside[2];

    ghp_instance_aside(in, from_item, to_item, aside);
    for (int i = from_item; i <= to_item; i++)
        if (i < in->n_layers)
            sum += in->most_reduce_s[in->n_layers - 1 - i];
        else if (i > in->n_layers && (i < aside[0] || i >= aside[1]))
            sum += in->most_gather_s[(i - 1) % in->n_layers];
    if (from_item <= in->n_layers && to_item >= in->n_layers) {
        double most = 0;

        for (int i = 0; i < in->n_choices[in->n_layers - 1]; i++)
            most = fmax(most, in->metric_s[i]);
        sum += most;
    }
    return sum;
}

double ghp_constraints_reduced(const struct ghp_instance *in,
                               const struct ghp_constraint *constraint,
                               const struct ghp_accumulated_cost *accumulated)
{
    const double *before = accumulated->reduce;
    int aside[2];

    if (constraint->from_item > constraint->to_item) return 0;
    if (constraint->waiting_update < 0) /* all that the stream does */
        return before[constraint->to_item + 1] - before[constraint->from_item];
    ghp_instance_aside(in, constraint->from_item, constraint->to_item, aside);
    return before[aside[0]] - before[constraint->from_item] + before[constraint->to_item + 1] -
           before[aside[1]];
}
