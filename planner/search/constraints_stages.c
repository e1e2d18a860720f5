/* planner/search/constraints_stages.c - constraints with stages: paths from a base through later stages and back,
 * sends, and the fullest points. */
#include "planner/search/constraints_private.h"

#include <math.h>

/* The first slot that belongs to a layer in the forward pass (its in-edges'), and the last in the backward pass. */
static int entry_slot(const struct ghp_instance *in, int layer)
{
    const struct ghp_layer *l = &in->lowering->model->layers[layer];

    return l->n_inputs > 0 ? in->edge_slot[2 * l->first_edge]
                           : in->wait_slot[in->n_layers - 1 - layer];
}

static int exit_slot(const struct ghp_instance *in, int layer)
{
    const struct ghp_layer *l = &in->lowering->model->layers[layer];

    return l->n_inputs > 0 ? in->edge_slot[2 * (l->first_edge + l->n_inputs - 1) + 1]
                           : in->ready_slot[in->n_layers - 1 - layer] + 1;
}

/* Whether the path is all that the base computes, whatever the order: with its tail, which no longer way has. */
static bool is_own_work(const struct ghp_instance *in, const struct ghp_constraint *constraint)
{
    return in->first_tail >= 0 && constraint->base == constraint->turn_stage &&
           constraint->waiting_update < 0;
}

/* All that a stage with several chunks computes. */
static struct ghp_cover chunks_of(const struct ghp_instance *in, int base)
{
    struct ghp_cover c = {0};

    for (int i = base % in->n_owners; i < in->n_stages; i += in->n_owners) {
        int first = in->route[i].first_layer;

        c.range[c.n++] =
            (struct ghp_slot_range){entry_slot(in, first), ghp_constraints_forward_end(in, i)};
        c.range[c.n++] =
            (struct ghp_slot_range){ghp_constraints_backward_begin(in, i), exit_slot(in, first)};
        c.range[c.n++] = (struct ghp_slot_range){in->first_steady + i, in->first_steady + i};
    }
    return c;
}

struct ghp_cover ghp_cover_of(const struct ghp_instance *in,
                              const struct ghp_constraint *constraint)
{
    struct ghp_cover c = {0};
    int from = constraint->from_slot, to = constraint->to_slot;

    if (constraint->all_chunks) return chunks_of(in, constraint->base);
    for (int stage = constraint->base;; stage = in->route[stage].next) {
        const struct ghp_route *route = &in->route[stage];

        c.range[c.n++] = (struct ghp_slot_range){from, ghp_constraints_forward_end(in, stage)};
        c.range[c.n++] = (struct ghp_slot_range){ghp_constraints_backward_begin(in, stage), to};
        if (stage == constraint->turn_stage) {
            c.range[c.n++] =
                (struct ghp_slot_range){in->first_steady + stage, in->first_steady + stage};
            if (is_own_work(in, constraint))
                c.range[c.n++] =
                    (struct ghp_slot_range){in->first_tail + stage, in->first_tail + stage};
            return c;
        }
        c.p2p_transfer[c.n_p2p_transfers++] = route->p2p_transfer;
        /* from its arrival on */
        from = in->edge_slot[2 * in->p2p_transfer[route->p2p_transfer].edge];
        to = in->edge_slot[2 * in->p2p_transfer[route->p2p_transfer].edge + 1];
    }
}

static double work_in(const struct ghp_accumulated_cost *accumulated, struct ghp_slot_range r)
{
    if (r.first > r.last) return 0;
    return accumulated->work[0][r.last + 1] - accumulated->work[0][r.first] +
           accumulated->work[1][r.last + 1] - accumulated->work[1][r.first];
}

static double p2p_transfer_in(const struct ghp_accumulated_cost *accumulated, int p2p_transfer)
{
    return accumulated->p2p_transfer[2 * p2p_transfer] +
           accumulated->p2p_transfer[2 * p2p_transfer + 1];
}

/* Seconds that a stage's worker sends in a step: its tensors to later stages, gradients to earlier ones. */
static double sent_by(const struct ghp_instance *in, const struct ghp_accumulated_cost *accumulated,
                      int stage)
{
    double sum = 0;

    for (int h = 0; h < in->n_p2p_transfers; h++) {
        if (in->p2p_transfer[h].from == stage) sum += accumulated->p2p_transfer[2 * h];
        if (in->p2p_transfer[h].to == stage) sum += accumulated->p2p_transfer[2 * h + 1];
    }
    return in->micro_batches * sum;
}

double ghp_stage_constraint_value(const struct ghp_constraint *constraint,
                                  const struct ghp_instance *in,
                                  const struct ghp_accumulated_cost *accumulated)
{
    double sum = 0;
    struct ghp_cover c;

    if (constraint->p2p_transfers) return sent_by(in, accumulated, constraint->base);
    sum = ghp_constraints_reduced(in, constraint, accumulated);
    if (constraint->from_slot > constraint->to_slot) return sum; /* reductions alone */
    c = ghp_cover_of(in, constraint);
    for (int k = 0; k < c.n; k++)
        sum += work_in(accumulated, c.range[k]);
    for (int k = 0; k < c.n_p2p_transfers; k++)
        sum += p2p_transfer_in(accumulated, c.p2p_transfer[k]);
    if (constraint->waiting_update >= 0)
        sum -= constraint->relaxation * accumulated->slack[constraint->waiting_update];
    return sum;
}

/* The longest way from the end of a stage's first forward part to the start of its last backward part. */
struct excursion {
    double seconds[GHP_MAX_CHUNKS];
    int turn_stage[GHP_MAX_CHUNKS];
};

static struct excursion excursions(const struct ghp_instance *in,
                                   const struct ghp_accumulated_cost *accumulated)
{
    struct excursion x;

    for (int i = in->n_stages - 1; i >= 0; --i) {
        const struct ghp_route *route = &in->route[i];
        double through;
        int edge;

        x.seconds[i] = work_in(accumulated,
                               (struct ghp_slot_range){in->first_steady + i, in->first_steady + i});
        x.turn_stage[i] = i;
        if (route->next < 0) continue;
        edge = in->p2p_transfer[route->p2p_transfer].edge;
        through = p2p_transfer_in(accumulated, route->p2p_transfer) + x.seconds[route->next] +
                  work_in(accumulated,
                          (struct ghp_slot_range){in->edge_slot[2 * edge],
                                                  ghp_constraints_forward_end(in, route->next)}) +
                  work_in(accumulated,
                          (struct ghp_slot_range){ghp_constraints_backward_begin(in, route->next),
                                                  in->edge_slot[2 * edge + 1]});
        if (through <= x.seconds[i]) continue;
        x.seconds[i] = through;
        x.turn_stage[i] = x.turn_stage[route->next];
    }
    return x;
}

/* The longest path of a base that ends in a wait. */
static double longest_wait_in(const struct ghp_instance *in,
                              const struct ghp_accumulated_cost *accumulated, int base,
                              struct ghp_constraint *constraint)
{
    int first = in->n_layers - in->route[base].end_layer,
        end = in->n_layers - in->route[base].first_layer, start = first;
    int begin = entry_slot(in, in->route[base].first_layer);
    double longest = -INFINITY, finish = -INFINITY;
    double forward =
        work_in(accumulated, (struct ghp_slot_range){begin, ghp_constraints_forward_end(in, base)});

    for (int i = first; i < end; i++) {
        double ready =
            work_in(accumulated, (struct ghp_slot_range){ghp_constraints_backward_begin(in, base),
                                                         in->ready_slot[i]});
        double before = work_in(accumulated, (struct ghp_slot_range){begin, in->wait_slot[i] - 1}),
               length;

        if (finish < ready) {
            finish = ready;
            start = i;
        }
        finish += accumulated->reduce[i + 1] - accumulated->reduce[i];
        if (accumulated->slack[i] > 0.999) continue;
        length = finish + forward - before;
        if (accumulated->slack[i] > 0)
            length -= ghp_constraints_most_between(in, start, i) * accumulated->slack[i];
        if (length <= longest) continue;
        longest = length;
        constraint->from_slot = in->wait_slot[i];
        constraint->to_slot = in->ready_slot[start];
        constraint->from_item = start;
        constraint->to_item = constraint->waiting_update = i;
        constraint->relaxation = ghp_constraints_most_between(in, start, i);
    }
    return longest;
}

double ghp_stage_constraint_longest(const struct ghp_instance *in,
                                    const struct ghp_accumulated_cost *accumulated,
                                    struct ghp_constraint *constraint)
{
    struct excursion x = excursions(in, accumulated);
    double longest = -INFINITY;

    for (int i = 0; i < in->n_stages; i++) {
        const struct ghp_route *route = &in->route[i];
        struct ghp_constraint candidate[5];

        for (int k = 0; k < 5; k++)
            candidate[k] = (struct ghp_constraint){.from_slot = entry_slot(in, route->first_layer),
                                                   .to_slot = exit_slot(in, route->first_layer),
                                                   .from_item = 0,
                                                   .to_item = -1,
                                                   .waiting_update = -1,
                                                   .base = i,
                                                   .turn_stage = x.turn_stage[i]};
        candidate[1].from_slot = 0;
        candidate[1].to_slot = -1;
        candidate[1].turn_stage = i;
        candidate[1].from_item = in->n_layers - route->end_layer;
        candidate[1].to_item = in->n_layers - route->first_layer - 1;
        candidate[2].p2p_transfers = true;
        candidate[2].turn_stage = i;
        candidate[3].turn_stage = i; /* all its own work */
        candidate[3].all_chunks = in->n_stages > in->n_owners;
        bool waits = longest_wait_in(in, accumulated, i, &candidate[4]) > -INFINITY;
        for (int k = 0; k < (waits ? 5 : 4); k++) {
            double value = ghp_stage_constraint_value(&candidate[k], in, accumulated);

            if (value <= longest) continue;
            longest = value;
            *constraint = candidate[k];
        }
    }
    return longest;
}

double ghp_stage_constraint_fullest(const struct ghp_instance *in,
                                    const struct ghp_accumulated_cost *accumulated,
                                    struct ghp_constraint *constraint)
{
    double most = -INFINITY;

    for (int i = 0; i < in->n_stages; i++) {
        const struct ghp_route *route = &in->route[i];
        struct ghp_constraint r = *constraint;
        int shift = in->first_steady >= 0 ? in->n_stages : 0;
        int forward = entry_slot(in, route->first_layer) / 2,
            end = ghp_constraints_forward_end(in, i) / 2;
        int back = (ghp_constraints_backward_begin(in, i) - shift) / 2,
            back_end = (exit_slot(in, route->first_layer) - shift) / 2;

        r.point = forward;
        r.receiver = route->first_layer;
        for (int p = forward; p <= end; p++)
            if (accumulated->live[p] > accumulated->live[r.point]) r.point = p;
        for (int p = back; p <= back_end; p++)
            if (accumulated->live[p] > accumulated->live[r.point]) r.point = p;
        for (int v = route->first_layer; v < route->end_layer; v++)
            if (accumulated->receive[v] > accumulated->receive[r.receiver]) r.receiver = v;
        if (accumulated->live[r.point] + accumulated->receive[r.receiver] <= most) continue;
        most = accumulated->live[r.point] + accumulated->receive[r.receiver];
        *constraint = r;
    }
    return most;
}
