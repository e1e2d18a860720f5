/* core/plan/labelling.c - see labelling.h. */
#include "core/plan/labelling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A thing that left the frontier: its best label for each way to label those that stayed. */
struct leaver {
    int thing, n_rest;
    int rest[GHP_LABELLING_FRONTIER + 1];
    bool *best; /* 2^n_rest, bit i of the index: label of rest[i] */
};

struct solving {
    const struct ghp_labelling *graph;
    int *
        last; /* of each thing: the latest thing that it is paired with, itself where none is later */
    int n_front; /* the frontier, in the order in which its things came */
    int front[GHP_LABELLING_FRONTIER + 1];
    double *cost, *next; /* 2^(GHP_LABELLING_FRONTIER + 1) */
    int n_leavers;
    struct leaver *leavers; /* one a thing */
};

static int place_of(const struct solving *s, int thing)
{
    int i = 0;

    while (s->front[i] != thing)
        ++i;
    return i;
}

/* What a pair costs where its later thing has just become the frontier's last. */
static double pair_cost(const struct solving *s, const struct ghp_label_pair *pair, size_t state)
{
    return pair->cost[state >> place_of(s, pair->a) & 1][state >> place_of(s, pair->b) & 1];
}

static void swap_costs(struct solving *s)
{
    double *cost = s->cost;

    s->cost = s->next;
    s->next = cost;
}

/* Takes the next thing into the frontier, with its own costs and those of its pairs with what is there. */
static enum ghp_status meet(struct solving *s, int thing)
{
    const struct ghp_labelling *graph = s->graph;
    size_t states = (size_t)1 << s->n_front;

    if (s->n_front > GHP_LABELLING_FRONTIER)
        return GHP_FAIL(GHP_ERR_INFEASIBLE, "more than %d things are tied at once",
                        GHP_LABELLING_FRONTIER);
    for (int l = 0; l < 2; ++l)
        for (size_t state = 0; state < states; ++state)
            s->next[state + (size_t)l * states] = s->cost[state] + graph->own[thing][l];
    s->front[s->n_front++] = thing;
    swap_costs(s);
    for (int i = 0; i < graph->n_pairs; ++i) {
        const struct ghp_label_pair *pair = &graph->pairs[i];

        if ((pair->a > pair->b ? pair->a : pair->b) != thing) continue;
        for (size_t state = 0; state < 2 * states; ++state)
            s->cost[state] += pair_cost(s, pair, state);
    }
    return GHP_OK;
}

/* Settles the frontier's thing at a place for each way to label the others. */
static enum ghp_status leave(struct solving *s, int place)
{
    struct leaver *leaver = &s->leavers[s->n_leavers];
    size_t low = ((size_t)1 << place) - 1, states = (size_t)1 << (s->n_front - 1);

    *leaver = (struct leaver){.thing = s->front[place], .n_rest = s->n_front - 1};
    leaver->best = ghp_alloc(states, sizeof *leaver->best);
    if (leaver->best == NULL) return GHP_NO_MEMORY();
    ++s->n_leavers;
    for (size_t state = 0; state < states; ++state) {
        size_t zero = (state & low) | (state & ~low) << 1, one = zero | (low + 1);

        leaver->best[state] = s->cost[one] < s->cost[zero];
        s->next[state] = leaver->best[state] ? s->cost[one] : s->cost[zero];
    }
    memmove(&s->front[place], &s->front[place + 1],
            (size_t)(s->n_front - place - 1) * sizeof *s->front);
    --s->n_front;
    memcpy(leaver->rest, s->front, (size_t)s->n_front * sizeof *s->front);
    swap_costs(s);
    return GHP_OK;
}

static enum ghp_status walk(struct solving *s)
{
    s->cost[0] = 0;
    for (int thing = 0; thing < s->graph->n; ++thing) {
        GHP_TRY(meet(s, thing));
        for (int place = s->n_front - 1; place >= 0; --place)
            if (s->last[s->front[place]] <= thing) GHP_TRY(leave(s, place));
    }
    return GHP_OK;
}

/* The last that left knows its label; the others' follow from those that left later. */
static void trace(const struct solving *s, bool *label)
{
    for (int i = s->n_leavers - 1; i >= 0; --i) {
        const struct leaver *leaver = &s->leavers[i];
        size_t state = 0;

        for (int k = 0; k < leaver->n_rest; ++k)
            state |= (size_t)label[leaver->rest[k]] << k;
        label[leaver->thing] = leaver->best[state];
    }
}

static void note_last(const struct ghp_labelling *graph, int *last)
{
    for (int v = 0; v < graph->n; ++v)
        last[v] = v;
    for (int i = 0; i < graph->n_pairs; ++i) {
        const struct ghp_label_pair *pair = &graph->pairs[i];

        if (last[pair->a] < pair->b) last[pair->a] = pair->b;
        if (last[pair->b] < pair->a) last[pair->b] = pair->a;
    }
}

enum ghp_status ghp_labelling_solve(const struct ghp_labelling *graph, bool *label, double *cost)
{
    size_t n = (size_t)graph->n + 1, states = (size_t)1 << (GHP_LABELLING_FRONTIER + 1);
    struct solving s = {.graph = graph,
                        .last = ghp_alloc(n, sizeof *s.last),
                        .cost = ghp_alloc(states, sizeof *s.cost),
                        .next = ghp_alloc(states, sizeof *s.next),
                        .leavers = ghp_alloc(n, sizeof *s.leavers)};
    enum ghp_status status = GHP_OK;

    if (s.last == NULL || s.cost == NULL || s.next == NULL || s.leavers == NULL)
        status = GHP_NO_MEMORY();
    if (status == GHP_OK) {
        note_last(graph, s.last);
        status = walk(&s);
    }
    if (status == GHP_OK) {
        *cost = s.cost[0];
        trace(&s, label);
    }
    for (int i = 0; i < s.n_leavers; ++i)
        free(s.leavers[i].best);
    free(s.leavers);
    free(s.next);
    free(s.cost);
    free(s.last);
    return status;
}

double ghp_labelling_cost(const struct ghp_labelling *graph, const bool *label)
{
    double cost = 0;

    for (int v = 0; v < graph->n; ++v)
        cost += graph->own[v][label[v]];
    for (int i = 0; i < graph->n_pairs; ++i) {
        const struct ghp_label_pair *pair = &graph->pairs[i];

        cost += pair->cost[label[pair->a]][label[pair->b]];
    }
    return cost;
}
