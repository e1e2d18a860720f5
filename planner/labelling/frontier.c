/* planner/labelling/frontier.c - the tables of frontier.h.
 *
 * State index of a table: mixed radix over the frontier's nodes, the newest with stride 1. Leaving nodes are
 * minimised away as soon as their last consumer is taken. */
#include "planner/labelling/frontier_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- open and close ---- */

enum ghp_status ghp_frontier_open(const struct ghp_frontier_graph *graph, struct ghp_frontier *f)
{
    size_t nodes = (size_t)graph->n_nodes, edges = (size_t)graph->n_edges;
    size_t choices = (size_t)graph->first_choice[nodes], pairs = (size_t)graph->first_pair[edges];
    int most = 1;

    for (int v = 0; v < graph->n_nodes; v++)
        if (graph->n_choices[v] > most) most = graph->n_choices[v];
    *f = (struct ghp_frontier){.graph = *graph};
    if (f->graph.most_states == 0) f->graph.most_states = GHP_FRONTIER_MOST;
    f->n_active = ghp_alloc(nodes, sizeof *f->n_active);
    f->active = ghp_alloc(4 * choices + nodes, sizeof *f->active);
    f->next_edge = ghp_alloc(2 * (edges + nodes), sizeof *f->next_edge);
    f->folds = ghp_alloc(nodes, sizeof *f->folds);
    f->kept = ghp_alloc(4 * nodes + 1, sizeof *f->kept);
    f->node_cost = ghp_alloc(4 * choices, sizeof *f->node_cost);
    f->edge_cost = ghp_alloc(2 * pairs, sizeof *f->edge_cost);
    f->steps = ghp_alloc(nodes, sizeof *f->steps);
    f->row = ghp_alloc((size_t)most, sizeof *f->row);
    if (f->n_active == NULL || f->active == NULL || f->next_edge == NULL || f->folds == NULL ||
        f->kept == NULL || f->node_cost == NULL || f->edge_cost == NULL || f->steps == NULL ||
        f->row == NULL) {
        ghp_frontier_close(f);
        return GHP_NO_MEMORY();
    }
    f->in_edges = f->next_edge + edges + nodes;
    f->last = f->kept + nodes;
    f->digit = f->last + nodes;
    f->first_in = f->digit + nodes;
    f->classes = f->active + choices;
    f->place = f->classes + choices;
    f->cheapest = f->place + choices;
    f->n_classes = f->cheapest + choices;
    f->node_least = f->node_cost + choices;
    f->class_cost = f->node_least + choices;
    f->class_least = f->class_cost + choices;
    f->edge_least = f->edge_cost + pairs;
    return ghp_frontier_find_folds(f);
}

void ghp_frontier_close(struct ghp_frontier *f)
{
    if (f == NULL) return;
    free(f->n_active);
    free(f->active);
    free(f->next_edge);
    free(f->folds);
    free(f->kept);
    free(f->fold_cost);
    free(f->node_cost);
    free(f->edge_cost);
    free(f->steps);
    free(f->row);
    free(f->value);
    free(f->origin);
    free(f->cost_to_go);
    memset(f, 0, sizeof *f);
}

/* ---- tables ---- */

/* Finds the in-edges of node v from each node of the frontier before it. */
static void hang_edges(struct ghp_frontier *f, struct ghp_frontier_step *s, int v)
{
    for (int k = 0; k < s->n_before; k++) {
        s->edges_at[k] = -1;
        for (int i = f->first_in[v]; i < f->first_in[v + 1]; i++) {
            int e = f->in_edges[i];

            if (ghp_frontier_edge(f, e).from != s->before[k]) continue;
            f->next_edge[e] = s->edges_at[k];
            s->edges_at[k] = e;
        }
    }
}

/* The frontier after the kept node `at`: strides in the table after, and the list before the next node. */
static bool advance_frontier(struct ghp_frontier *f, int at)
{
    struct ghp_frontier_step *s = &f->steps[at];
    struct ghp_frontier_step *next = at + 1 < f->n_kept ? &f->steps[at + 1] : NULL;
    int v = f->kept[at];
    int64_t stride = 1;
    int kept = 0;

    s->stays = f->last[v] > v;
    if (s->stays) stride = f->n_classes[v];
    for (int k = s->n_before - 1; k >= 0; --k) {
        bool stays = f->last[s->before[k]] > v;

        s->kept_stride[k] = stays ? (int)stride : 0;
        if (stays) stride *= f->n_classes[s->before[k]];
        if (stride > f->graph.most_states) return false;
    }
    s->n_states_after = (int)stride;
    if (next == NULL) return true;
    for (int k = 0; k < s->n_before; k++)
        if (s->kept_stride[k] > 0) next->before[kept++] = s->before[k];
    if (s->stays) next->before[kept++] = v;
    next->n_before = kept;
    next->n_states_before = s->n_states_after;
    return kept < GHP_FRONTIER_WIDTH;
}

static bool lay_out(struct ghp_frontier *f, int64_t *total)
{
    f->steps[0].n_before = 0;
    f->steps[0].n_states_before = 1;
    *total = 0;
    for (int at = 0; at < f->n_kept; at++) {
        struct ghp_frontier_step *s = &f->steps[at];
        int v = f->kept[at];

        if (!advance_frontier(f, at)) return false;
        if ((int64_t)s->n_states_before * f->n_classes[v] > f->graph.most_states) return false;
        hang_edges(f, s, v);
        s->table = *total;
        *total += s->n_states_after;
        if (*total > 8 * (int64_t)f->graph.most_states) return false;
    }
    return true;
}

/* Tables of the folds. */
static enum ghp_status make_fold_room(struct ghp_frontier *f)
{
    int64_t total = 0;

    for (int k = 0; k < f->n_folds; k++) {
        struct ghp_frontier_fold *fold = &f->folds[k];

        fold->table = total;
        total += (int64_t)f->n_classes[fold->from] * f->n_classes[fold->to];
    }
    if (total > f->fold_room) {
        free(f->fold_cost);
        f->fold_room = 0;
        f->fold_cost = ghp_alloc(2 * (size_t)total, sizeof *f->fold_cost);
        if (f->fold_cost == NULL) return GHP_NO_MEMORY();
        f->fold_room = total;
    }
    if (f->fold_cost != NULL) f->fold_least = f->fold_cost + f->fold_room;
    return GHP_OK;
}

static enum ghp_status make_room(struct ghp_frontier *f, int64_t total)
{
    GHP_TRY(make_fold_room(f));
    if (total <= f->room) return GHP_OK;
    free(f->value);
    free(f->origin);
    free(f->cost_to_go);
    f->value = ghp_alloc((size_t)total, sizeof *f->value);
    f->origin = ghp_alloc((size_t)total, sizeof *f->origin);
    f->cost_to_go = ghp_alloc((size_t)total, sizeof *f->cost_to_go);
    f->room = f->value != NULL && f->origin != NULL && f->cost_to_go != NULL ? total : 0;
    return f->room > 0 ? GHP_OK : GHP_NO_MEMORY();
}

/* The choices of a node that are in play, and their classes. */
static void list_choices(struct ghp_frontier *f, int v, const unsigned char *in_play)
{
    const int first = f->graph.first_choice[v];
    int n = 0, n_classes = 0;

    for (int i = 0; i < f->graph.n_choices[v]; i++) {
        int class = f->graph.class_of != NULL ? f->graph.class_of[first + i] : i;

        if (in_play != NULL && !in_play[first + i]) continue;
        if (n_classes == 0 || f->classes[first + n_classes - 1] != class)
            f->classes[first + n_classes++] = class;
        f->place[first + n] = n_classes - 1;
        f->active[first + n++] = i;
    }
    f->n_active[v] = n;
    f->n_classes[v] = n_classes;
}

enum ghp_status ghp_frontier_set(struct ghp_frontier *f, const unsigned char *in_play, bool *fits)
{
    int64_t total;

    for (int v = 0; v < f->graph.n_nodes; v++)
        list_choices(f, v, in_play);
    *fits = lay_out(f, &total);
    return *fits ? make_room(f, total) : GHP_OK;
}

/* An odometer over the states before a step. */
struct walk {
    const struct ghp_frontier *f;
    const struct ghp_frontier_step *s;
    int digit[GHP_FRONTIER_WIDTH];
    int after; /* contribution of the kept nodes to the state after */
};

static void walk_next(struct walk *w)
{
    for (int k = w->s->n_before - 1; k >= 0; --k) {
        w->after += w->s->kept_stride[k];
        if (++w->digit[k] < w->f->n_classes[w->s->before[k]]) return;
        w->after -= w->digit[k] * w->s->kept_stride[k];
        w->digit[k] = 0;
    }
}

/* row[j] = cost of the node's choice j and of its in-edges, given the walk's state. */
static void cost_row(const struct walk *w, int v)
{
    const struct ghp_frontier *f = w->f;
    const int n = f->n_classes[v];
    double *restrict row = f->row;

    memcpy(row, &f->class_cost[f->graph.first_choice[v]], (size_t)n * sizeof *row);
    for (int k = 0; k < w->s->n_before; k++)
        for (int e = w->s->edges_at[k]; e >= 0; e = f->next_edge[e]) {
            const double *restrict cost = ghp_frontier_cost(f, e) + w->digit[k] * n;

            for (int j = 0; j < n; j++)
                row[j] += cost[j];
        }
}

/* Takes one state's sums `before + row` into the states after it: one a choice if the node stays in the frontier,
 * all into one if it leaves. `from` is the first origin. */
static void keep_each(double *restrict value, int *restrict origin, const double *restrict row,
                      double before, int from, int n)
{
    for (int j = 0; j < n; j++) {
        double sum = before + row[j];
        bool less = sum < value[j];

        value[j] = less ? sum : value[j];
        origin[j] = less ? from + j : origin[j];
    }
}

static void keep_least(double *value, int *origin, const double *row, double before, int from,
                       int n)
{
    for (int j = 0; j < n; j++) {
        double sum = before + row[j];

        if (!(sum < *value)) continue;
        *value = sum;
        *origin = from + j;
    }
}

static void take_node(struct ghp_frontier *f, int at, const double *before)
{
    const struct ghp_frontier_step *s = &f->steps[at];
    const int v = f->kept[at];
    double *value = &f->value[s->table];
    int *origin = &f->origin[s->table];
    struct walk w = {.f = f, .s = s};
    const int n = f->n_classes[v];

    for (int k = 0; k < s->n_states_after; k++)
        value[k] = INFINITY;
    memset(origin, 0xff, (size_t)s->n_states_after * sizeof *origin);
    for (int state = 0; state < s->n_states_before; ++state, walk_next(&w)) {
        if (!(before[state] < INFINITY)) continue;
        cost_row(&w, v);
        (s->stays ? keep_each : keep_least)(&value[w.after], &origin[w.after], f->row,
                                            before[state], state * n, n);
    }
}

/* Each class costs what the cheapest of its choices does; of equal ones the first is taken. */
static void cost_classes(struct ghp_frontier *f, int v)
{
    const int first = f->graph.first_choice[v];

    for (int c = 0; c < f->n_classes[v]; c++)
        f->class_cost[first + c] = INFINITY, f->cheapest[first + c] = -1;
    for (int k = 0; k < f->n_active[v]; k++) {
        int c = first + f->place[first + k];

        if (f->cheapest[c] >= 0 && !(f->node_cost[first + k] < f->class_cost[c])) continue;
        f->class_cost[c] = f->node_cost[first + k];
        f->cheapest[c] = k;
    }
}

static double forward_sweep(struct ghp_frontier *f)
{
    static const double nothing = 0;
    const double *before = &nothing;

    for (int v = 0; v < f->graph.n_nodes; v++)
        if (f->n_classes[v] == 0) return INFINITY;
    for (int v = 0; v < f->graph.n_nodes; v++)
        cost_classes(f, v);
    ghp_frontier_cost_folds(f);
    for (int at = 0; at < f->n_kept; at++) {
        take_node(f, at, before);
        before = &f->value[f->steps[at].table];
    }
    return before[0];
}

double ghp_frontier_solve(struct ghp_frontier *f, int *choice)
{
    double least = forward_sweep(f);
    int state = 0;

    if (choice == NULL || !(least < INFINITY)) return least;
    for (int at = f->n_kept - 1; at >= 0; --at) {
        int origin = f->origin[f->steps[at].table + state], v = f->kept[at];

        f->digit[v] = origin % f->n_classes[v];
        choice[v] = ghp_frontier_cheapest(f, v);
        state = origin / f->n_classes[v];
    }
    ghp_frontier_unfold(f, choice);
    return least;
}

static void lower_to(double *restrict least, const double *restrict row, double more, int n)
{
    for (int j = 0; j < n; j++) {
        double sum = more + row[j];

        least[j] = sum < least[j] ? sum : least[j];
    }
}

/* One node of the backward sweep: the least sum of the rest before each state, from the same after it. The last
 * argument receives it. It is NULL for the first node, before which there is nothing. */
static void untake_node(struct ghp_frontier *f, int at, double *behind)
{
    static const double nothing = 0;
    const struct ghp_frontier_step *s = &f->steps[at];
    const double *before = at > 0 ? &f->value[f->steps[at - 1].table] : &nothing;
    const int v = f->kept[at];
    const double *cost_to_go = &f->cost_to_go[s->table];
    struct walk w = {.f = f, .s = s};
    const int n = f->n_classes[v];

    for (int state = 0; state < s->n_states_before; ++state, walk_next(&w)) {
        double least = INFINITY;

        if (before[state] < INFINITY) {
            cost_row(&w, v);
            for (int j = 0; j < n; j++) {
                f->row[j] += cost_to_go[w.after + (s->stays ? j : 0)];
                least = f->row[j] < least ? f->row[j] : least;
            }
            lower_to(&f->class_least[f->graph.first_choice[v]], f->row, before[state], n);
            for (int k = 0; k < s->n_before; k++)
                for (int e = s->edges_at[k]; e >= 0; e = f->next_edge[e])
                    lower_to(ghp_frontier_least(f, e) + w.digit[k] * n, f->row, before[state], n);
        }
        if (behind != NULL) behind[state] = least;
    }
}

/* A choice is dearer than its class by what it costs more itself. */
static void least_of_choices(struct ghp_frontier *f, int v)
{
    const int first = f->graph.first_choice[v];

    for (int k = 0; k < f->n_active[v]; k++) {
        int c = first + f->place[first + k];

        if (f->class_least[c] < INFINITY)
            f->node_least[first + k] =
                f->class_least[c] + (f->node_cost[first + k] - f->class_cost[c]);
    }
}

double ghp_frontier_marginals(struct ghp_frontier *f)
{
    const struct ghp_frontier_graph *graph = &f->graph;
    double least = forward_sweep(f);

    for (int i = 0; i < graph->first_choice[graph->n_nodes]; i++)
        f->node_least[i] = f->class_least[i] = INFINITY;
    for (int i = 0; i < graph->first_pair[graph->n_edges]; i++)
        f->edge_least[i] = INFINITY;
    for (int64_t i = 0; i < f->fold_room; i++)
        f->fold_least[i] = INFINITY;
    if (!(least < INFINITY)) return least;
    f->cost_to_go[f->steps[f->n_kept - 1].table] = 0;
    for (int at = f->n_kept - 1; at >= 0; --at)
        untake_node(f, at, at > 0 ? &f->cost_to_go[f->steps[at - 1].table] : NULL);
    ghp_frontier_unfold_marginals(f);
    for (int v = 0; v < graph->n_nodes; v++)
        least_of_choices(f, v);
    return least;
}

/* ---- listing ---- */

struct list {
    const struct ghp_frontier *f;
    const struct ghp_frontier_visitor *visitor;
    double below;
    int left; /* visits */
    bool all;
    int *digit;  /* a node: its class, counted among those in play */
    int *choice; /* its choice, in the node's own numbering */
};

/* Sum of the cost of a node's k-th choice and of its in-edges, the earlier nodes' classes given. */
static double cost_here(const struct list *l, int at, int k_own)
{
    const struct ghp_frontier *f = l->f;
    const struct ghp_frontier_step *s = &f->steps[at];
    const int v = f->kept[at], j = f->place[f->graph.first_choice[v] + k_own];
    double sum = f->node_cost[f->graph.first_choice[v] + k_own];

    for (int k = 0; k < s->n_before; k++)
        for (int e = s->edges_at[k]; e >= 0; e = f->next_edge[e])
            sum += ghp_frontier_cost(f, e)[l->digit[s->before[k]] * f->n_classes[v] + j];
    return sum;
}

/* Takes a folded node and those folded before it, `sum` so far with the least of each fold. */
static enum ghp_status list_folded(struct list *l, int number, double sum)
{
    const struct ghp_frontier *f = l->f;
    const struct ghp_frontier_fold *fold = &f->folds[number];
    int a, b;

    if (number < 0) {
        if (l->left-- == 0) l->all = false;
        return l->all ? l->visitor->visit(l->visitor->context, l->choice, &l->below) : GHP_OK;
    }
    a = l->digit[fold->from];
    b = l->digit[fold->to];
    for (int k = 0; k < f->n_active[fold->node] && l->all; k++) {
        int own = f->graph.first_choice[fold->node] + k, j = f->place[own];
        double dearer = f->node_cost[own] - f->class_cost[f->graph.first_choice[fold->node] + j];
        double here = sum + dearer +
                      (ghp_frontier_through(f, fold, a, j, b) -
                       f->fold_cost[fold->table + a * f->n_classes[fold->to] + b]);

        if (!(here < l->below)) continue;
        l->digit[fold->node] = j;
        l->choice[fold->node] = f->active[own];
        GHP_TRY(list_folded(l, number - 1, here));
    }
    return GHP_OK;
}

/* Takes the kept node `at` and those after it, `sum` so far. */
static enum ghp_status list_from(struct list *l, int at, double sum)
{
    const struct ghp_frontier *f = l->f;
    const struct ghp_frontier_step *s = &f->steps[at];
    int after = 0, v;

    if (at == f->n_kept) return list_folded(l, f->n_folds - 1, sum);
    v = f->kept[at];
    for (int k = 0; k < s->n_before; k++)
        after += s->kept_stride[k] * l->digit[s->before[k]];
    for (int k = 0; k < f->n_active[v] && l->all; k++) {
        int own = f->graph.first_choice[v] + k, j = f->place[own];
        double here = sum + cost_here(l, at, k);

        if (!(here + f->cost_to_go[s->table + after + (s->stays ? j : 0)] < l->below)) continue;
        l->digit[v] = j;
        l->choice[v] = f->active[own];
        GHP_TRY(list_from(l, at + 1, here));
    }
    return GHP_OK;
}

enum ghp_status ghp_frontier_list(struct ghp_frontier *f, double below, int most,
                                  const struct ghp_frontier_visitor *visitor, bool *all)
{
    size_t nodes = (size_t)f->graph.n_nodes;
    struct list l = {.f = f, .visitor = visitor, .below = below, .left = most, .all = true};
    enum ghp_status status;

    l.digit = ghp_alloc(2 * nodes, sizeof *l.digit);
    if (l.digit == NULL) return GHP_NO_MEMORY();
    l.choice = l.digit + nodes;
    status = list_from(&l, 0, 0);
    *all = l.all;
    free(l.digit);
    return status;
}
