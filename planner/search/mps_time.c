/* planner/search/mps_time.c - the rows of the program of mps.h that say how long a step takes. */
#include "planner/search/mps_private.h"

#include "planner/search/constraints.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- computation ---- */

/* What is done with the seconds of a column's work in a slot. */
typedef void on_work(struct ghp_mps *m, int slot, const double seconds[GHP_WORK_COUNT], int column,
                     const double weight[GHP_WORK_COUNT]);

static void each_work(struct ghp_mps *m, on_work *on, const double weight[GHP_WORK_COUNT])
{
    const struct ghp_instance *in = m->in;

    for (int v = 0; v < in->n_layers; v++) {
        int forward = in->wait_slot[in->n_layers - 1 - v],
            backward = in->ready_slot[in->n_layers - 1 - v];

        for (int i = in->first_choice[v]; i < in->first_choice[v + 1]; i++) {
            const double start_s[GHP_WORK_COUNT] = {in->layer[i].start_s, 0};

            if (m->x[i] < 0) continue;
            on(m, forward, in->layer[i].forward_s, m->x[i], weight);
            on(m, backward, in->layer[i].before_s, m->x[i], weight);
            on(m, backward + 1, in->layer[i].after_s, m->x[i], weight);
            on(m, in->start_slot[in->stage[v]], start_s, m->x[i], weight);
        }
    }
    for (int e = 0; e < in->n_edges; e++)
        for (int k = in->first_pair[e]; k < in->first_pair[e + 1]; k++) {
            if (m->y[k] < 0) continue;
            on(m, in->edge_slot[2 * e], in->edge[k].forward_s, m->y[k], weight);
            on(m, in->edge_slot[2 * e + 1], in->edge[k].backward_s, m->y[k], weight);
        }
}

static void mark_slot(struct ghp_mps *m, int slot, const double seconds[GHP_WORK_COUNT], int column,
                      const double weight[GHP_WORK_COUNT])
{
    (void)column;
    for (int k = 0; k < GHP_WORK_COUNT; k++)
        if (weight[k] * seconds[k] != 0) m->slot_row[slot] = 0;
}

static void put_work(struct ghp_mps *m, int slot, const double seconds[GHP_WORK_COUNT], int column,
                     const double weight[GHP_WORK_COUNT])
{
    for (int k = 0; k < GHP_WORK_COUNT; k++)
        if (weight[k] != 0)
            ghp_mps_put(m, m->slot_row[slot], column, -weight[k] * seconds[k] / m->job->unit_s);
}

static double weigh(const double seconds[GHP_WORK_COUNT], const double weight[GHP_WORK_COUNT])
{
    return weight[0] * seconds[0] + weight[1] * seconds[1];
}

/* The most work before each slot: of every layer and edge the dearest choice in each of its slots. */
static void set_most(struct ghp_mps *m, const double weight[GHP_WORK_COUNT])
{
    const struct ghp_instance *in = m->in;

    memset(m->most_s, 0, ((size_t)in->n_slots + 1) * sizeof *m->most_s);
    for (int v = 0; v < in->n_layers; v++) {
        double most[4] = {0};

        for (int i = in->first_choice[v]; i < in->first_choice[v + 1]; i++) {
            const struct ghp_layer_cost *p = &in->layer[i];
            const double s[] = {weigh(p->forward_s, weight), weigh(p->before_s, weight),
                                weigh(p->after_s, weight), weight[0] * p->start_s};

            for (int k = 0; k < 4 && m->x[i] >= 0; k++)
                most[k] = fmax(most[k], s[k]);
        }
        m->most_s[in->wait_slot[in->n_layers - 1 - v] + 1] += most[0];
        m->most_s[in->ready_slot[in->n_layers - 1 - v] + 1] += most[1];
        m->most_s[in->ready_slot[in->n_layers - 1 - v] + 2] += most[2];
        m->most_s[in->start_slot[in->stage[v]] + 1] += most[3];
    }
    for (int e = 0; e < in->n_edges; e++) {
        double most[2] = {0};

        for (int k = in->first_pair[e]; k < in->first_pair[e + 1]; k++) {
            if (m->y[k] < 0) continue;
            most[0] = fmax(most[0], weigh(in->edge[k].forward_s, weight));
            most[1] = fmax(most[1], weigh(in->edge[k].backward_s, weight));
        }
        m->most_s[in->edge_slot[2 * e] + 1] += most[0];
        m->most_s[in->edge_slot[2 * e + 1] + 1] += most[1];
    }
    for (int s = 0; s < in->n_slots; s++)
        m->most_s[s + 1] += m->most_s[s];
}

/* The times along the computation, by what a second of each kind counts on a path more than off it. */
static void add_times(struct ghp_mps *m, int variant, const double weight[GHP_WORK_COUNT])
{
    for (int s = 0; s < m->in->n_slots; s++)
        m->slot_row[s] = -1;
    each_work(m, mark_slot, weight);
    m->before[0] = -1;
    for (int s = 0; s < m->in->n_slots; s++) {
        m->before[s + 1] = m->before[s];
        if (m->slot_row[s] < 0) continue;
        m->slot_row[s] = ghp_mps_add_row(m, 'E', 0, "slot%d:%d", variant, s);
        m->before[s + 1] = ghp_mps_add_column(m, false, "after%d:%d", variant, s);
        ghp_mps_put(m, m->slot_row[s], m->before[s + 1], 1);
        ghp_mps_put(m, m->slot_row[s], m->before[s], -1);
    }
    each_work(m, put_work, weight);
    set_most(m, weight);
}

/* All work of one kind, if it counts off a path. */
static int add_total(struct ghp_mps *m, int kind)
{
    double weight[GHP_WORK_COUNT] = {0};
    int row = ghp_mps_add_row(m, 'E', 0, "work%d", kind),
        column = ghp_mps_add_column(m, false, "work%d", kind);

    weight[kind] = 1;
    ghp_mps_put(m, row, column, 1);
    for (int s = 0; s < m->in->n_slots; s++)
        m->slot_row[s] = row;
    each_work(m, put_work, weight);
    return column;
}

/* ---- reductions ---- */

/* The layer whose choice decides how long an item lasts. */
static int layer_of(const struct ghp_instance *in, int item)
{
    return item < in->n_layers    ? in->n_layers - 1 - item
           : item == in->n_layers ? in->n_layers - 1
                                  : (item - 1) % in->n_layers;
}

/* Seconds of an item by a flat choice; *waits: whether the update waits for it. */
static double item_s(const struct ghp_instance *in, int item, int flat, bool *waits)
{
    int v = layer_of(in, item);
    double s = item < in->n_layers    ? in->layer[flat].reduce_s
               : item == in->n_layers ? in->metric_s[flat - in->first_choice[v]]
               : item == ghp_instance_gather_item(in, v, flat) ? in->layer[flat].gather_s
                                                               : 0;

    *waits = item < in->n_layers ? in->layer[flat].reduces : s > 0;
    return s;
}

/* The most that an item lasts by any choice in play. */
static double most_s(const struct ghp_mps *m, int item)
{
    int v = layer_of(m->in, item);
    double most = 0;
    bool waits;

    for (int i = m->in->first_choice[v]; i < m->in->first_choice[v + 1]; i++)
        if (m->x[i] >= 0) most = fmax(most, item_s(m->in, item, i, &waits));
    return most;
}

static void put_item(struct ghp_mps *m, int row, int item, double weight)
{
    int v = layer_of(m->in, item);
    bool waits;

    for (int i = m->in->first_choice[v]; i < m->in->first_choice[v + 1]; i++)
        ghp_mps_put(m, row, m->x[i], weight * item_s(m->in, item, i, &waits) / m->job->unit_s);
}

static void add_reductions(struct ghp_mps *m)
{
    int row = ghp_mps_add_row(m, 'E', 0, "reductions");

    m->reductions = ghp_mps_add_column(m, false, "reductions");
    ghp_mps_put(m, row, m->reductions, 1);
    for (int i = 0; i < m->in->n_items; i++)
        put_item(m, row, i, -1);
}

/* step >= what counts off the path + ...; the caller adds the path. */
static int add_step_row(struct ghp_mps *m, const struct ghp_coefficient *c, const char *name, int k)
{
    int row = ghp_mps_add_row(m, 'G', 0, "%s:%d", name, k);

    ghp_mps_put(m, row, m->step, 1);
    for (int kind = 0; kind < GHP_WORK_COUNT; kind++)
        ghp_mps_put(m, row, m->work[kind], -c->off[kind]);
    ghp_mps_put(m, row, m->reductions, -c->reduce_off);
    return row;
}

/* Nobody waits for an item by some choices: its row then allows for all reductions up to it. */
static void put_slack(struct ghp_mps *m, int row, int item, double relaxation)
{
    int v = layer_of(m->in, item);
    bool waits;

    for (int i = m->in->first_choice[v]; i < m->in->first_choice[v + 1]; i++) {
        item_s(m->in, item, i, &waits);
        if (!waits) ghp_mps_put(m, row, m->x[i], relaxation / m->job->unit_s);
    }
}

/* The time at which a reduction is over: after the one before it, and after the column `ready`, each + its own. */
static int add_finish(struct ghp_mps *m, const char *name, int item, int last, int ready,
                      double weight)
{
    int finish = ghp_mps_add_column(m, false, "%s:%d", name, item);
    const int after[] = {last, ready};

    for (int k = 0; k < 2; k++) {
        int row = ghp_mps_add_row(m, 'G', 0, "%s_%s:%d", name, k == 0 ? "queue" : "ready", item);

        ghp_mps_put(m, row, finish, 1);
        ghp_mps_put(m, row, after[k], -1);
        put_item(m, row, item, -weight);
    }
    return finish;
}

/* Waits for items from `first` on, each by a row of its own. */
static void add_waits(struct ghp_mps *m, int variant, const struct ghp_coefficient *c, int first)
{
    const struct ghp_instance *in = m->in;
    const char *name = variant == 0 ? "finish" : "finish_too";
    double relaxation = 0, of_reductions = 0;
    int last = -1, reduction = -1;

    for (int i = 0; i < in->n_items; i++) {
        double most = most_s(m, i);

        if (i == in->first_use) {
            last = reduction;
            relaxation = of_reductions;
        }
        if (most == 0) continue;
        relaxation += (1 - c->reduce_off) * most;
        last = add_finish(m, name, i, last, m->before[in->ready_slot[i] + 1], 1 - c->reduce_off);
        if (i <= in->n_layers) {
            reduction = last;
            of_reductions = relaxation;
        }
        if (i < first) continue;
        int row = add_step_row(m, c, variant == 0 ? "wait" : "wait_too", i);
        ghp_mps_put(m, row, last, -1);
        ghp_mps_put(m, row, m->before[in->wait_slot[i]], 1);
        put_slack(m, row, i, relaxation);
    }
}

/* ---- the first layer that waits ---- */

/* Lists the layers that may wait, and which of them surely do. */
static void add_waiters(struct ghp_mps *m)
{
    const struct ghp_instance *in = m->in;
    int before = -1;
    bool sure = false;

    for (int v = 0; v < in->n_layers; v++) {
        int item = in->n_layers - 1 - v, row;
        bool waits, may_wait = false, may_not = false;

        for (int i = in->first_choice[v]; i < in->first_choice[v + 1]; i++) {
            item_s(in, item, i, &waits);
            may_wait = may_wait || (m->x[i] >= 0 && waits);
            may_not = may_not || (m->x[i] >= 0 && !waits);
        }
        if (!may_wait) continue;
        sure = sure || !may_not;
        m->waiter[m->n_waiters] = v;
        m->idle[m->n_waiters++] = sure ? -1 : ghp_mps_add_column(m, true, "idle%d", v);
        if (sure) continue;
        row = ghp_mps_add_row(m, 'G', 0, "idle%d", v);
        ghp_mps_put(m, row, m->idle[m->n_waiters - 1], -1);
        put_slack(m, row, item, m->job->unit_s);
        if (before >= 0) {
            row = ghp_mps_add_row(m, 'G', 0, "idle_before%d", v);
            ghp_mps_put(m, row, m->idle[m->n_waiters - 1], -1);
            ghp_mps_put(m, row, before, 1);
        }
        before = m->idle[m->n_waiters - 1];
    }
}

static double most_between(const struct ghp_mps *m, int from, int to)
{
    return (m->most_s[to] - m->most_s[from]) / m->job->unit_s;
}

/* A time that is `last` + the work of some slots, which counts unless the waiter is idle. Returns its column. */
static int add_active(struct ghp_mps *m, const char *name, int waiter, int last, int from, int to)
{
    int v = m->waiter[waiter], column = ghp_mps_add_column(m, false, "%s:%d", name, v);
    int row = ghp_mps_add_row(m, 'G', 0, "%s:%d", name, v);

    ghp_mps_put(m, row, column, 1);
    ghp_mps_put(m, row, last, -1);
    ghp_mps_put(m, row, m->before[to], -1);
    ghp_mps_put(m, row, m->before[from], 1);
    ghp_mps_put(m, row, m->idle[waiter], most_between(m, from, to));
    row = ghp_mps_add_row(m, 'G', 0, "%s_least:%d", name, v);
    ghp_mps_put(m, row, column, 1);
    ghp_mps_put(m, row, last, -1);
    return column;
}

/* Paths from the update of the first layer that waits: those of later ones are part of them. Work of the layers before
 * it counts on no such path, and they have no reductions; so one chain, in which that work is left out, stands for the
 * paths of every layer that may be the first. A row for each, which big numbers relax if it does not wait, is as
 * right and bounds far less. */
static void add_first_wait(struct ghp_mps *m, int variant, const struct ghp_coefficient *c)
{
    const struct ghp_instance *in = m->in;
    const char *suffix = variant == 0 ? "" : "_too";
    char forward[16], backward[16], reduce[16];
    int time = -1, finish = -1, row;

    snprintf(forward, sizeof forward, "forward%s", suffix);
    snprintf(backward, sizeof backward, "backward%s", suffix);
    snprintf(reduce, sizeof reduce, "reduced%s", suffix);
    for (int j = 0; j < m->n_waiters; j++) {
        int item = in->n_layers - 1 - m->waiter[j];
        int end = j + 1 < m->n_waiters ? in->wait_slot[in->n_layers - 1 - m->waiter[j + 1]]
                                       : in->ready_slot[item] + 1;

        time = add_active(m, forward, j, time, in->wait_slot[item], end);
    }
    for (int j = m->n_waiters - 1; j >= 0; j--) {
        int item = in->n_layers - 1 - m->waiter[j];

        if (j + 1 < m->n_waiters)
            time = add_active(m, backward, j, time,
                              in->ready_slot[in->n_layers - 1 - m->waiter[j + 1]] + 1,
                              in->ready_slot[item] + 1);
        finish = add_finish(m, reduce, item, finish, time, 1 - c->reduce_off);
    }
    row = add_step_row(m, c, "first_wait", variant);
    ghp_mps_put(m, row, finish, -1);
}

static void add_variant(struct ghp_mps *m, int variant, const struct ghp_coefficient *c)
{
    double weight[GHP_WORK_COUNT];
    int row;

    for (int k = 0; k < GHP_WORK_COUNT; k++)
        weight[k] = c->on[k] - c->off[k];
    add_times(m, variant, weight);
    row = add_step_row(m, c, "computation", variant);
    ghp_mps_put(m, row, m->before[m->in->n_slots], -1);
    row = add_step_row(m, c, "communication", variant);
    ghp_mps_put(m, row, m->reductions, c->reduce_off - 1);
    if (m->in->n_items >
        m->in->n_layers + 1) { /* gathers: no layer's paths are part of another's */
        add_waits(m, variant, c, 0);
        return;
    }
    add_first_wait(m, variant, c);
    if (most_s(m, m->in->n_layers) > 0) add_waits(m, variant, c, m->in->n_layers);
}

void ghp_mps_add_time(struct ghp_mps *m)
{
    struct ghp_coefficients coefficients = ghp_instance_coefficients(m->in);

    add_reductions(m);
    add_waiters(m);
    for (int kind = 0; kind < GHP_WORK_COUNT; kind++) {
        bool counts = false;

        for (int v = 0; v < coefficients.n; v++)
            counts = counts || coefficients.variant[v].off[kind] > 0;
        m->work[kind] = counts ? add_total(m, kind) : -1;
    }
    for (int v = 0; v < coefficients.n; v++)
        add_variant(m, v, &coefficients.variant[v]);
}
