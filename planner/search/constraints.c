/* planner/search/constraints.c - constraints without stages: their coefficients off their path, their values, the
 * largest of them; search/constraints.h has the sums. */
#include "planner/search/constraints_private.h"

#include <math.h>

/* ---- coefficients ---- */

static double clamp01(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

struct ghp_coefficients ghp_coefficients_of(const struct ghp_overlap *overlap)
{
    const double compute = overlap->compute, comm = ghp_overlap_least_comm(overlap),
                 link = overlap->link;
    const double hidden[GHP_WORK_COUNT] = {clamp01(comm * (1 - 1 / compute)), clamp01(link - 1)};
    const double *least = hidden[0] < hidden[1] ? &hidden[0] : &hidden[1];
    struct ghp_coefficient c = {.on = {1, 1},
                                .off = {clamp01(compute * (1 - 1 / comm)), clamp01(link - 1)}};
    struct ghp_coefficients coefficients = {.n = 1};

    c.reduce_off = *least;
    coefficients.variant[0] = c;
    if (hidden[GHP_WORK_LINK] < hidden[GHP_WORK_COMPUTE]) {
        c.reduce_off = hidden[GHP_WORK_COMPUTE];
        c.on[GHP_WORK_LINK] = 1 - (hidden[GHP_WORK_COMPUTE] - hidden[GHP_WORK_LINK]);
        if (c.off[GHP_WORK_LINK] > c.on[GHP_WORK_LINK]) c.off[GHP_WORK_LINK] = c.on[GHP_WORK_LINK];
        coefficients.variant[coefficients.n++] = c;
    }
    return coefficients;
}

struct ghp_coefficients ghp_instance_coefficients(const struct ghp_instance *in)
{
    static const struct ghp_coefficient path = {.on = {1, 1}};

    if (in->n_stages == 1) return ghp_coefficients_of(&in->profile->overlap);
    return (struct ghp_coefficients){.n = 1, .variant = {path}};
}

/* ---- constraints ---- */

double ghp_constraint_value(const struct ghp_coefficients *coefficients,
                            const struct ghp_constraint *constraint, const struct ghp_instance *in,
                            const struct ghp_accumulated_cost *accumulated)
{
    const struct ghp_coefficient *c;
    double on, sum = 0;

    if (constraint->variant < 0)
        return accumulated->live[constraint->point] + accumulated->receive[constraint->receiver];
    if (in->n_stages > 1) return ghp_stage_constraint_value(constraint, in, accumulated);
    c = &coefficients->variant[constraint->variant];
    for (int k = 0; k < GHP_WORK_COUNT; k++) {
        on = constraint->from_slot <= constraint->to_slot
                 ? accumulated->work[k][constraint->to_slot + 1] -
                       accumulated->work[k][constraint->from_slot]
                 : 0;
        sum += c->off[k] * accumulated->work[k][in->n_slots] + (c->on[k] - c->off[k]) * on;
    }
    on = ghp_constraints_reduced(in, constraint, accumulated);
    sum += c->reduce_off * accumulated->reduce[in->n_items] + (1 - c->reduce_off) * on;
    if (constraint->waiting_update >= 0)
        sum -= constraint->relaxation * accumulated->slack[constraint->waiting_update];
    return sum;
}

static struct ghp_constraint path_constraint(const struct ghp_instance *in,
                                             const struct ghp_coefficient *c, int variant,
                                             int source, int waiting_update)
{
    struct ghp_constraint constraint = {.variant = variant,
                                        .from_slot = in->wait_slot[waiting_update],
                                        .to_slot = in->ready_slot[source],
                                        .from_item = source,
                                        .to_item = waiting_update,
                                        .waiting_update = waiting_update};

    constraint.relaxation =
        (1 - c->reduce_off) * ghp_constraints_most_between(in, source, waiting_update);
    return constraint;
}

/* The longest path that ends in a wait: a reduction starts when its layer's gradient is there and the reduction
 * before it is over. */
static double longest_wait(const struct ghp_instance *in, const struct ghp_coefficient *c,
                           const struct ghp_accumulated_cost *accumulated, int *source,
                           int *waiting_update)
{
    double longest = -INFINITY, finish = -INFINITY, reduced = -INFINITY;
    int start = 0, last = 0; /* the path's, and that of the path to the last reduction */

    for (int i = 0; i < in->n_items; i++) {
        double ready = 0, begin = 0, length;

        if (i == in->first_use) {
            finish = reduced;
            start = last;
        }
        for (int k = 0; k < GHP_WORK_COUNT; k++) {
            ready += (c->on[k] - c->off[k]) * accumulated->work[k][in->ready_slot[i] + 1];
            begin += (c->on[k] - c->off[k]) * accumulated->work[k][in->wait_slot[i]];
        }
        if (finish < ready) {
            finish = ready;
            start = i;
        }
        finish += (1 - c->reduce_off) * (accumulated->reduce[i + 1] - accumulated->reduce[i]);
        if (i == in->n_layers) {
            reduced = finish;
            last = start;
        }
        if (accumulated->slack[i] > 0.999) continue;
        length = finish - begin;
        if (accumulated->slack[i] > 0)
            length -= (1 - c->reduce_off) * ghp_constraints_most_between(in, start, i) *
                      accumulated->slack[i];
        if (length <= longest) continue;
        longest = length;
        *source = start;
        *waiting_update = i;
    }
    return longest;
}

double ghp_constraint_longest(const struct ghp_instance *in,
                              const struct ghp_coefficients *coefficients, int variant,
                              const struct ghp_accumulated_cost *accumulated,
                              struct ghp_constraint *constraint)
{
    const struct ghp_coefficient *c = &coefficients->variant[variant];
    struct ghp_constraint candidates[3] = {
        {.variant = variant,
         .from_slot = 0,
         .to_slot = in->n_slots - 1,
         .from_item = 0,
         .to_item = -1,
         .waiting_update = -1},
        {.variant = variant,
         .from_slot = 0,
         .to_slot = -1,
         .from_item = 0,
         .to_item = in->n_items - 1,
         .waiting_update = -1},
    };
    int n = 2, source = 0, waiting_update = 0;
    double longest = -INFINITY;

    if (in->n_stages > 1) return ghp_stage_constraint_longest(in, accumulated, constraint);
    if (longest_wait(in, c, accumulated, &source, &waiting_update) > -INFINITY)
        candidates[n++] = path_constraint(in, c, variant, source, waiting_update);
    for (int k = 0; k < n; k++) {
        double value = ghp_constraint_value(coefficients, &candidates[k], in, accumulated);

        if (value <= longest) continue;
        longest = value;
        *constraint = candidates[k];
    }
    return longest;
}

double ghp_constraint_step_s(const struct ghp_instance *in,
                             const struct ghp_coefficients *coefficients,
                             const struct ghp_accumulated_cost *accumulated)
{
    struct ghp_constraint constraint;
    double longest = 0;

    for (int v = 0; v < coefficients->n; v++)
        longest =
            fmax(longest, ghp_constraint_longest(in, coefficients, v, accumulated, &constraint));
    return longest;
}

double ghp_constraint_fullest(const struct ghp_instance *in,
                              const struct ghp_accumulated_cost *accumulated,
                              struct ghp_constraint *constraint)
{
    *constraint = (struct ghp_constraint){.variant = -1,
                                          .from_slot = 0,
                                          .to_slot = -1,
                                          .from_item = 0,
                                          .to_item = -1,
                                          .waiting_update = -1};
    if (in->n_stages > 1) return ghp_stage_constraint_fullest(in, accumulated, constraint);
    for (int p = 1; p < in->n_points; p++)
        if (accumulated->live[p] > accumulated->live[constraint->point]) constraint->point = p;
    for (int v = 1; v < in->n_layers; v++)
        if (accumulated->receive[v] > accumulated->receive[constraint->receiver])
            constraint->receiver = v;
    return accumulated->live[constraint->point] + accumulated->receive[constraint->receiver];
}

bool ghp_constraint_same(const struct ghp_constraint *a, const struct ghp_constraint *b)
{
    return a->variant == b->variant && a->point == b->point && a->receiver == b->receiver &&
           a->from_slot == b->from_slot && a->to_slot == b->to_slot &&
           a->from_item == b->from_item && a->to_item == b->to_item && a->base == b->base &&
           a->turn_stage == b->turn_stage && a->p2p_transfers == b->p2p_transfers &&
           a->all_chunks == b->all_chunks;
}
