/* planner/search/accumulated_cost.c - loads: a plan's work as prefix sums. */
#include "planner/search/constraints_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t load_entries(const struct ghp_instance *in)
{
    return 2 * ((size_t)in->n_slots + 1) + (size_t)in->n_items + 1 + (size_t)in->n_items +
           (size_t)in->n_points + (size_t)in->n_layers + 2 * (size_t)in->n_hops;
}

enum ghp_status ghp_load_init(const struct ghp_instance *in, struct ghp_load *load)
{
    double *block = ghp_alloc(load_entries(in), sizeof *block);

    *load = (struct ghp_load){0};
    if (block == NULL) return GHP_NO_MEMORY();
    load->work[0] = block;
    load->work[1] = load->work[0] + in->n_slots + 1;
    load->reduce = load->work[1] + in->n_slots + 1;
    load->idle = load->reduce + in->n_items + 1;
    load->live = load->idle + in->n_items;
    load->receive = load->live + in->n_points;
    load->hop = load->receive + in->n_layers;
    return GHP_OK;
}

void ghp_load_release(struct ghp_load *load)
{
    if (load == NULL) return;
    free(load->work[0]);
    memset(load, 0, sizeof *load);
}

void ghp_load_clear(const struct ghp_instance *in, struct ghp_load *load)
{
    memset(load->work[0], 0, load_entries(in) * sizeof *load->work[0]);
}

void ghp_load_add(const struct ghp_instance *in, struct ghp_load *load, const struct ghp_load *part,
                  double weight)
{
    double *to = load->work[0];
    const double *from = part->work[0];

    for (size_t k = 0, n = load_entries(in); k < n; ++k)
        to[k] += weight * from[k];
}

/* Adds spans as differences over points; the sums follow in ghp_load_set. */
static void add_spans(const struct ghp_instance *in, const struct ghp_spans *spans, int index,
                      double *live)
{
    for (int k = spans->first[index]; k < spans->first[index + 1]; ++k) {
        live[spans->span[k].first] += (double)spans->span[k].bytes;
        if (spans->span[k].last + 1 < in->n_points)
            live[spans->span[k].last + 1] -= (double)spans->span[k].bytes;
    }
}

static void load_layer(const struct ghp_instance *in, int v, int flat, struct ghp_load *load)
{
    const struct ghp_layer_price *p = &in->layer[flat];
    int item = in->n_layers - 1 - v;
    int forward = in->wait_slot[item], backward = in->ready_slot[item];

    for (int k = 0; k < GHP_WORK_COUNT; ++k) {
        load->work[k][forward + 1] = p->forward_s[k];
        load->work[k][backward + 1] = p->before_s[k];
        load->work[k][backward + 2] = p->after_s[k];
        if (in->first_middle >= 0)
            load->work[k][in->first_middle + in->stage[v] + 1] += p->middle_s[k];
    }
    load->reduce[item + 1] = p->reduce_s;
    load->idle[item] = p->reduces ? 0 : 1;
    if (!in->has_memory) return;
    add_spans(in, &in->layer_spans, flat, load->live);
    load->receive[v] = (double)in->receive_bytes[flat];
}

/* Each value becomes the sum up to it. */
static void add_up(double *value, int n)
{
    double sum = 0;

    for (int i = 0; i < n; ++i) {
        sum += value[i];
        value[i] = sum;
    }
}

/* The same for two arrays at once, since each sum has to wait for its last addition. */
static void add_up_both(double *restrict a, double *restrict b, int n)
{
    double sum_a = 0, sum_b = 0;

    for (int i = 0; i < n; ++i) {
        sum_a += a[i];
        sum_b += b[i];
        a[i] = sum_a;
        b[i] = sum_b;
    }
}

static void load_hop(const struct ghp_instance *in, int e, const int *choice, struct ghp_load *load)
{
    const struct ghp_hop_price *p = ghp_rows_hop_price(in, e, ghp_instance_pair(in, e, choice));
    int h = in->hop_of[e];

    load->hop[2 * h] = p->forward_s;
    load->hop[2 * h + 1] = p->backward_s;
}

void ghp_load_set(const struct ghp_instance *in, const int *choice, struct ghp_load *load)
{
    double metric_s = in->metric_s[choice[in->n_layers - 1]];

    ghp_load_clear(in, load);
    for (int v = 0; v < in->n_layers; ++v)
        load_layer(in, v, in->first_choice[v] + choice[v], load);
    for (int e = 0; e < in->n_edges; ++e) {
        int pair = ghp_instance_pair(in, e, choice);
        const struct ghp_edge_price *p = &in->edge[pair];

        for (int k = 0; k < GHP_WORK_COUNT; ++k) {
            load->work[k][in->edge_slot[2 * e] + 1] = p->forward_s[k];
            load->work[k][in->edge_slot[2 * e + 1] + 1] = p->backward_s[k];
            if (in->first_middle >= 0)
                load->work[k][in->first_middle + in->stage[in->edges[e].to] + 1] +=
                    (in->micro_batches - 1) * (p->forward_s[k] + p->backward_s[k]);
        }
        if (in->hop_of[e] >= 0) load_hop(in, e, choice, load);
        if (in->has_memory) add_spans(in, &in->edge_spans, pair, load->live);
    }
    load->reduce[in->n_items] = metric_s;
    load->idle[in->n_items - 1] = metric_s > 0 ? 0 : 1;
    add_up_both(load->work[0], load->work[1], in->n_slots + 1);
    add_up(load->reduce, in->n_items + 1);
    if (in->has_memory) add_up(load->live, in->n_points);
}

double ghp_rows_most_between(const struct ghp_instance *in, int from_item, int to_item)
{
    double sum = 0;

    for (int i = from_item; i <= to_item; ++i)
        if (i < in->n_layers) sum += in->most_reduce_s[in->n_layers - 1 - i];
    if (to_item == in->n_layers) {
        double most = 0;

        for (int i = 0; i < in->n_choices[in->n_layers - 1]; ++i)
            most = fmax(most, in->metric_s[i]);
        sum += most;
    }
    return sum;
}
