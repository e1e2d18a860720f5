/* planner/search/constraints.c - rows without stages: what they charge off their path, their values, the largest of them; search/constraints.h has the sums. */
#include "planner/search/constraints_private.h"

#include <math.h>

/* ---- charges ---- */

static double clamp01(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

struct ghp_charges ghp_charges_of(const struct ghp_overlap *overlap)
{
    const double compute = overlap->compute, comm = ghp_overlap_least_comm(overlap),
                 link = overlap->link;
    const double hidden[GHP_WORK_COUNT] = {clamp01(comm * (1 - 1 / compute)), clamp01(link - 1)};
    const double *least = hidden[0] < hidden[1] ? &hidden[0] : &hidden[1];
    struct ghp_charge c = {.on = {1, 1},
                           .off = {clamp01(compute * (1 - 1 / comm)), clamp01(link - 1)}};
    struct ghp_charges charges = {.n = 1};

    c.reduce_off = *least;
    charges.variant[0] = c;
    if (hidden[GHP_WORK_LINK] < hidden[GHP_WORK_COMPUTE]) {
        c.reduce_off = hidden[GHP_WORK_COMPUTE];
        c.on[GHP_WORK_LINK] = 1 - (hidden[GHP_WORK_COMPUTE] - hidden[GHP_WORK_LINK]);
        if (c.off[GHP_WORK_LINK] > c.on[GHP_WORK_LINK]) c.off[GHP_WORK_LINK] = c.on[GHP_WORK_LINK];
        charges.variant[charges.n++] = c;
    }
    return charges;
}

struct ghp_charges ghp_instance_charges(const struct ghp_instance *in)
{
    static const struct ghp_charge path = {.on = {1, 1}};

    if (in->n_stages == 1) return ghp_charges_of(&in->profile->overlap);
    return (struct ghp_charges){.n = 1, .variant = {path}};
}

/* ---- rows ---- */

double ghp_row_value(const struct ghp_charges *charges, const struct ghp_row *row,
                     const struct ghp_instance *in, const struct ghp_load *load)
{
    const struct ghp_charge *c;
    double on, sum = 0;

    if (row->variant < 0) return load->live[row->point] + load->receive[row->receiver];
    if (in->n_stages > 1) return ghp_stage_row_value(row, in, load);
    c = &charges->variant[row->variant];
    for (int k = 0; k < GHP_WORK_COUNT; ++k) {
        on = row->from_slot <= row->to_slot
                 ? load->work[k][row->to_slot + 1] - load->work[k][row->from_slot]
                 : 0;
        sum += c->off[k] * load->work[k][in->n_slots] + (c->on[k] - c->off[k]) * on;
    }
    on = row->from_item <= row->to_item
             ? load->reduce[row->to_item + 1] - load->reduce[row->from_item]
             : 0;
    sum += c->reduce_off * load->reduce[in->n_items] + (1 - c->reduce_off) * on;
    if (row->waiter >= 0) sum -= row->discount * load->idle[row->waiter];
    return sum;
}

static struct ghp_row path_row(const struct ghp_instance *in, const struct ghp_charge *c,
                               int variant, int source, int waiter)
{
    struct ghp_row row = {.variant = variant,
                          .from_slot = in->wait_slot[waiter],
                          .to_slot = in->ready_slot[source],
                          .from_item = source,
                          .to_item = waiter,
                          .waiter = waiter};

    row.discount = (1 - c->reduce_off) * ghp_rows_most_between(in, source, waiter);
    return row;
}

/* The longest path that ends in a wait: a reduction starts when its layer's gradient is there and the reduction
 * before it is over. */
static double longest_wait(const struct ghp_instance *in, const struct ghp_charge *c,
                           const struct ghp_load *load, int *source, int *waiter)
{
    double longest = -INFINITY, finish = -INFINITY;
    int start = 0;

    for (int i = 0; i < in->n_items; ++i) {
        double ready = 0, begin = 0, length;

        for (int k = 0; k < GHP_WORK_COUNT; ++k) {
            ready += (c->on[k] - c->off[k]) * load->work[k][in->ready_slot[i] + 1];
            begin += (c->on[k] - c->off[k]) * load->work[k][in->wait_slot[i]];
        }
        if (finish < ready) {
            finish = ready;
            start = i;
        }
        finish += (1 - c->reduce_off) * (load->reduce[i + 1] - load->reduce[i]);
        if (load->idle[i] > 0.999) continue;
        length = finish - begin;
        if (load->idle[i] > 0)
            length -= (1 - c->reduce_off) * ghp_rows_most_between(in, start, i) * load->idle[i];
        if (length <= longest) continue;
        longest = length;
        *source = start;
        *waiter = i;
    }
    return longest;
}

double ghp_row_longest(const struct ghp_instance *in, const struct ghp_charges *charges,
                       int variant, const struct ghp_load *load, struct ghp_row *row)
{
    const struct ghp_charge *c = &charges->variant[variant];
    struct ghp_row candidates[3] = {
        {.variant = variant,
         .from_slot = 0,
         .to_slot = in->n_slots - 1,
         .from_item = 0,
         .to_item = -1,
         .waiter = -1},
        {.variant = variant,
         .from_slot = 0,
         .to_slot = -1,
         .from_item = 0,
         .to_item = in->n_items - 1,
         .waiter = -1},
    };
    int n = 2, source = 0, waiter = 0;
    double longest = -INFINITY;

    if (in->n_stages > 1) return ghp_stage_row_longest(in, load, row);
    if (longest_wait(in, c, load, &source, &waiter) > -INFINITY)
        candidates[n++] = path_row(in, c, variant, source, waiter);
    for (int k = 0; k < n; ++k) {
        double value = ghp_row_value(charges, &candidates[k], in, load);

        if (value <= longest) continue;
        longest = value;
        *row = candidates[k];
    }
    return longest;
}

double ghp_row_step_s(const struct ghp_instance *in, const struct ghp_charges *charges,
                      const struct ghp_load *load)
{
    struct ghp_row row;
    double longest = 0;

    for (int v = 0; v < charges->n; ++v)
        longest = fmax(longest, ghp_row_longest(in, charges, v, load, &row));
    return longest;
}

double ghp_row_fullest(const struct ghp_instance *in, const struct ghp_load *load,
                       struct ghp_row *row)
{
    *row = (struct ghp_row){
        .variant = -1, .from_slot = 0, .to_slot = -1, .from_item = 0, .to_item = -1, .waiter = -1};
    if (in->n_stages > 1) return ghp_stage_row_fullest(in, load, row);
    for (int p = 1; p < in->n_points; ++p)
        if (load->live[p] > load->live[row->point]) row->point = p;
    for (int v = 1; v < in->n_layers; ++v)
        if (load->receive[v] > load->receive[row->receiver]) row->receiver = v;
    return load->live[row->point] + load->receive[row->receiver];
}

bool ghp_row_same(const struct ghp_row *a, const struct ghp_row *b)
{
    return a->variant == b->variant && a->point == b->point && a->receiver == b->receiver &&
           a->from_slot == b->from_slot && a->to_slot == b->to_slot &&
           a->from_item == b->from_item && a->to_item == b->to_item && a->base == b->base &&
           a->turn == b->turn && a->hops == b->hops;
}
