/* planner/search/constraints_stages.c - rows with stages: paths from a base through later stages and back, sends, and the fullest points. */
#include "planner/search/constraints_private.h"

#include <math.h>

/* The first slot that belongs to a layer going forward (its in-edges'), and the last going backward. */
static int entry_slot(const struct ghp_instance *in, int layer)
{
    const struct ghp_layer *l = &in->how->model->layers[layer];

    return l->n_inputs > 0 ? in->edge_slot[2 * l->first_edge]
                           : in->wait_slot[in->n_layers - 1 - layer];
}

static int exit_slot(const struct ghp_instance *in, int layer)
{
    const struct ghp_layer *l = &in->how->model->layers[layer];

    return l->n_inputs > 0 ? in->edge_slot[2 * (l->first_edge + l->n_inputs - 1) + 1]
                           : in->ready_slot[in->n_layers - 1 - layer] + 1;
}

struct ghp_cover ghp_cover_of(const struct ghp_instance *in, const struct ghp_row *row)
{
    struct ghp_cover c = {0};
    int from = row->from_slot, to = row->to_slot;

    for (int stage = row->base;; stage = in->route[stage].next) {
        const struct ghp_route *route = &in->route[stage];

        c.range[c.n++] = (struct ghp_slot_range){from, ghp_rows_forward_end(in, stage)};
        c.range[c.n++] = (struct ghp_slot_range){ghp_rows_backward_begin(in, stage), to};
        if (stage == row->turn) {
            c.range[c.n++] =
                (struct ghp_slot_range){in->first_middle + stage, in->first_middle + stage};
            return c;
        }
        c.hop[c.n_hops++] = route->hop;
        from = in->edge_slot[2 * in->hop[route->hop].edge]; /* from its arrival on */
        to = in->edge_slot[2 * in->hop[route->hop].edge + 1];
    }
}

static double work_in(const struct ghp_load *load, struct ghp_slot_range r)
{
    if (r.first > r.last) return 0;
    return load->work[0][r.last + 1] - load->work[0][r.first] + load->work[1][r.last + 1] -
           load->work[1][r.first];
}

static double hop_in(const struct ghp_load *load, int hop)
{
    return load->hop[2 * hop] + load->hop[2 * hop + 1];
}

/* Seconds that a stage's worker sends in a step: its tensors to later stages, gradients to earlier ones. */
static double sent_by(const struct ghp_instance *in, const struct ghp_load *load, int stage)
{
    double sum = 0;

    for (int h = 0; h < in->n_hops; ++h) {
        if (in->hop[h].from == stage) sum += load->hop[2 * h];
        if (in->hop[h].to == stage) sum += load->hop[2 * h + 1];
    }
    return in->micro_batches * sum;
}

static double reduced_in(const struct ghp_load *load, const struct ghp_row *row)
{
    if (row->from_item > row->to_item) return 0;
    return load->reduce[row->to_item + 1] - load->reduce[row->from_item];
}

double ghp_stage_row_value(const struct ghp_row *row, const struct ghp_instance *in,
                           const struct ghp_load *load)
{
    double sum = 0;
    struct ghp_cover c;

    if (row->hops) return sent_by(in, load, row->base);
    sum = reduced_in(load, row);
    if (row->from_slot > row->to_slot) return sum; /* reductions alone */
    c = ghp_cover_of(in, row);
    for (int k = 0; k < c.n; ++k)
        sum += work_in(load, c.range[k]);
    for (int k = 0; k < c.n_hops; ++k)
        sum += hop_in(load, c.hop[k]);
    if (row->waiter >= 0) sum -= row->discount * load->idle[row->waiter];
    return sum;
}

/* The longest way from the end of a stage's first forward part to the start of its last backward part. */
struct excursion {
    double seconds[GHP_MAX_STAGES];
    int turn[GHP_MAX_STAGES];
};

static struct excursion excursions(const struct ghp_instance *in, const struct ghp_load *load)
{
    struct excursion x;

    for (int i = in->n_stages - 1; i >= 0; --i) {
        const struct ghp_route *route = &in->route[i];
        double through;
        int edge;

        x.seconds[i] =
            work_in(load, (struct ghp_slot_range){in->first_middle + i, in->first_middle + i});
        x.turn[i] = i;
        if (route->next < 0) continue;
        edge = in->hop[route->hop].edge;
        through = hop_in(load, route->hop) + x.seconds[route->next] +
                  work_in(load, (struct ghp_slot_range){in->edge_slot[2 * edge],
                                                        ghp_rows_forward_end(in, route->next)}) +
                  work_in(load, (struct ghp_slot_range){ghp_rows_backward_begin(in, route->next),
                                                        in->edge_slot[2 * edge + 1]});
        if (through <= x.seconds[i]) continue;
        x.seconds[i] = through;
        x.turn[i] = x.turn[route->next];
    }
    return x;
}

/* The longest path of a base that ends in a wait. */
static double longest_wait_in(const struct ghp_instance *in, const struct ghp_load *load, int base,
                              struct ghp_row *row)
{
    int first = in->n_layers - in->route[base].end_layer,
        end = in->n_layers - in->route[base].first_layer, start = first;
    int begin = entry_slot(in, in->route[base].first_layer);
    double longest = -INFINITY, finish = -INFINITY;
    double forward = work_in(load, (struct ghp_slot_range){begin, ghp_rows_forward_end(in, base)});

    for (int i = first; i < end; ++i) {
        double ready = work_in(
            load, (struct ghp_slot_range){ghp_rows_backward_begin(in, base), in->ready_slot[i]});
        double before = work_in(load, (struct ghp_slot_range){begin, in->wait_slot[i] - 1}), length;

        if (finish < ready) {
            finish = ready;
            start = i;
        }
        finish += load->reduce[i + 1] - load->reduce[i];
        if (load->idle[i] > 0.999) continue;
        length = finish + forward - before;
        if (load->idle[i] > 0) length -= ghp_rows_most_between(in, start, i) * load->idle[i];
        if (length <= longest) continue;
        longest = length;
        row->from_slot = in->wait_slot[i];
        row->to_slot = in->ready_slot[start];
        row->from_item = start;
        row->to_item = row->waiter = i;
        row->discount = ghp_rows_most_between(in, start, i);
    }
    return longest;
}

double ghp_stage_row_longest(const struct ghp_instance *in, const struct ghp_load *load,
                             struct ghp_row *row)
{
    struct excursion x = excursions(in, load);
    double longest = -INFINITY;

    for (int i = 0; i < in->n_stages; ++i) {
        const struct ghp_route *route = &in->route[i];
        struct ghp_row candidate[4];

        for (int k = 0; k < 4; ++k)
            candidate[k] = (struct ghp_row){.from_slot = entry_slot(in, route->first_layer),
                                            .to_slot = exit_slot(in, route->first_layer),
                                            .from_item = 0,
                                            .to_item = -1,
                                            .waiter = -1,
                                            .base = i,
                                            .turn = x.turn[i]};
        candidate[1].from_slot = 0;
        candidate[1].to_slot = -1;
        candidate[1].turn = i;
        candidate[1].from_item = in->n_layers - route->end_layer;
        candidate[1].to_item = in->n_layers - route->first_layer - 1;
        candidate[2].hops = true;
        candidate[2].turn = i;
        bool waits = longest_wait_in(in, load, i, &candidate[3]) > -INFINITY;
        for (int k = 0; k < (waits ? 4 : 3); ++k) {
            double value = ghp_stage_row_value(&candidate[k], in, load);

            if (value <= longest) continue;
            longest = value;
            *row = candidate[k];
        }
    }
    return longest;
}

double ghp_stage_row_fullest(const struct ghp_instance *in, const struct ghp_load *load,
                             struct ghp_row *row)
{
    double most = -INFINITY;

    for (int i = 0; i < in->n_stages; ++i) {
        const struct ghp_route *route = &in->route[i];
        struct ghp_row r = *row;
        int shift = in->first_middle >= 0 ? in->n_stages : 0;
        int forward = entry_slot(in, route->first_layer) / 2, end = ghp_rows_forward_end(in, i) / 2;
        int back = (ghp_rows_backward_begin(in, i) - shift) / 2,
            back_end = (exit_slot(in, route->first_layer) - shift) / 2;

        r.point = forward;
        r.receiver = route->first_layer;
        for (int p = forward; p <= end; ++p)
            if (load->live[p] > load->live[r.point]) r.point = p;
        for (int p = back; p <= back_end; ++p)
            if (load->live[p] > load->live[r.point]) r.point = p;
        for (int v = route->first_layer; v < route->end_layer; ++v)
            if (load->receive[v] > load->receive[r.receiver]) r.receiver = v;
        if (load->live[r.point] + load->receive[r.receiver] <= most) continue;
        most = load->live[r.point] + load->receive[r.receiver];
        *row = r;
    }
    return most;
}
