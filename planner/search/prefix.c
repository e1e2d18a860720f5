/* planner/search/prefix.c - prefixes layer by layer; see prefix.h. */
#include "planner/search/prefix.h"

#include "core/base/clock.h"
#include "planner/search/prefix_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* entries of one table of the frontier, in which nothing is folded; prefixes made for a layer at once, for each prefix
 * that may be continued */
enum { MOST_STATES = 1 << 18, MADE = 3 };

static const double same = 1e-12; /* of the cutoff: paths that differ by less are equal */

struct entry {
    struct ghp_prefix prefix;
    double bound;
    int state; /* of the frontier after its last layer */
    int parent, digit;
};

struct trace { /* how a prefix that was continued was made */
    int parent, digit;
};

struct ghp_prefix_search {
    const struct ghp_instance *in;
    struct ghp_frontier frontier; /* nothing folded: kept node `at` is layer `at` */
    struct ghp_prefix_bound bound;
    struct entry *now, *next; /* sorted by state and then by their paths */
    int n_now, n_next, max_entries;
    struct trace **trace; /* for each layer: of its prefixes that were continued */
    int *choice;
    bool complete;
    double cutoff_s;
    int most;
    int64_t extended;
};

bool ghp_prefix_takes(const struct ghp_dual *dual)
{
    const struct ghp_instance *in = dual->in;
    const struct ghp_coefficient *c = &dual->coefficients.variant[0];

    if (dual->goal.bytes || dual->goal.limit_bytes > 0 || in->n_stages > 1 ||
        in->first_steady >= 0 || in->n_items != in->n_layers + 1 || dual->coefficients.n != 1 ||
        c->reduce_off > 0)
        return false;
    for (int k = 0; k < GHP_WORK_COUNT; k++)
        if (c->on[k] < 1 || c->off[k] > 0) return false;
    for (int i = 0; i < in->first_choice[in->n_layers]; i++)
        if (in->layer[i].start_s > 0) return false;
    return true;
}

enum ghp_status ghp_prefix_open(const struct ghp_instance *in, struct ghp_prefix_search **search)
{
    struct ghp_frontier_graph graph = ghp_instance_graph(in);
    struct ghp_prefix_search *s = ghp_alloc(1, sizeof *s);
    enum ghp_status status;

    *search = s;
    if (s == NULL) return GHP_NO_MEMORY();
    graph.unfolded = true;
    graph.most_states = MOST_STATES;
    s->in = in;
    s->trace = ghp_alloc((size_t)in->n_layers, sizeof *s->trace);
    s->choice = ghp_alloc((size_t)in->n_layers, sizeof *s->choice);
    status = s->trace == NULL || s->choice == NULL ? GHP_NO_MEMORY() : GHP_OK;
    if (status == GHP_OK) status = ghp_frontier_open(&graph, &s->frontier);
    if (status == GHP_OK) status = ghp_prefix_bound_init(in, &s->bound);
    if (status != GHP_OK) {
        ghp_prefix_close(s);
        *search = NULL;
    }
    return status;
}

static void forget_traces(struct ghp_prefix_search *s)
{
    for (int v = 0; s->trace != NULL && v < s->in->n_layers; v++) {
        free(s->trace[v]);
        s->trace[v] = NULL;
    }
}

void ghp_prefix_close(struct ghp_prefix_search *search)
{
    if (search == NULL) return;
    forget_traces(search);
    ghp_frontier_close(&search->frontier);
    ghp_prefix_bound_release(&search->bound);
    free(search->now);
    free(search->next);
    free(search->trace);
    free(search->choice);
    free(search);
}

/* ---- those of one layer ---- */

static int compare(double a, double b)
{
    return a < b ? -1 : a > b;
}

static int by_state(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = x->state - y->state;

    if (order == 0) order = compare(x->prefix.closed, y->prefix.closed);
    if (order == 0) order = compare(x->prefix.open, y->prefix.open);
    if (order == 0) order = compare(x->prefix.all, y->prefix.all);
    if (order == 0) order = compare(x->prefix.reduced, y->prefix.reduced);
    if (order == 0) order = compare(x->parent, y->parent);
    return order != 0 ? order : x->digit - y->digit;
}

static int by_bound(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = compare(x->bound, y->bound);

    return order != 0 ? order : by_state(a, b);
}

/* Whether none of the paths of `a` is longer. */
static bool is_no_longer(const struct ghp_prefix *a, const struct ghp_prefix *b, double tolerance_s)
{
    return a->closed <= b->closed + tolerance_s && a->open <= b->open + tolerance_s &&
           a->all <= b->all + tolerance_s && a->reduced <= b->reduced + tolerance_s &&
           a->metric <= b->metric + tolerance_s;
}

/* Sorts the prefixes made and keeps those that no other one of their state makes needless. Sorted by the closed path,
 * the last one kept has the shortest open path, if these two are all that matters. */
static void drop_longer(struct ghp_prefix_search *s)
{
    const double tolerance_s = same * s->cutoff_s;
    int kept = 0, first = 0;

    qsort(s->next, (size_t)s->n_next, sizeof *s->next, by_state);
    for (int k = 0; k < s->n_next; k++) {
        bool needed = true;

        if (kept > 0 && s->next[kept - 1].state != s->next[k].state) first = kept;
        for (int other = kept - 1; other >= first && other >= kept - 8 && needed; --other)
            needed = !is_no_longer(&s->next[other].prefix, &s->next[k].prefix, tolerance_s);
        if (needed) s->next[kept++] = s->next[k];
    }
    s->n_next = kept;
}

/* Drops the longer ones. If more than `room` are left, keeps only the most promising. */
static void keep_most(struct ghp_prefix_search *s, int room)
{
    drop_longer(s);
    if (s->n_next <= room) return;
    qsort(s->next, (size_t)s->n_next, sizeof *s->next, by_bound);
    s->n_next = s->most;
    s->complete = false;
}

/* The choices of the frontier's nodes in a state before a layer. */
static void read_state(const struct ghp_frontier *f, const struct ghp_frontier_step *step,
                       int state, int *digit)
{
    for (int k = step->n_before - 1; k >= 0; --k) {
        int n = f->n_classes[step->before[k]];

        digit[k] = state % n;
        state /= n;
    }
}

/* What choice j of layer v adds to a state; false: one of the pairs is not in play. */
static bool piece_of(const struct ghp_prefix_search *s, int v, const int *digit, int j,
                     struct ghp_prefix_piece *piece)
{
    const struct ghp_instance *in = s->in;
    const struct ghp_frontier *f = &s->frontier;
    const struct ghp_frontier_step *step = &f->steps[v];
    const int own = f->active[in->first_choice[v] + j], at = f->place[in->first_choice[v] + j];
    const int class = f->classes[in->first_choice[v] + at];
    const struct ghp_layer_cost *p = &in->layer[in->first_choice[v] + own];

    *piece = (struct ghp_prefix_piece){.forward = p->forward_s[0] + p->forward_s[1],
                                       .before = p->before_s[0] + p->before_s[1],
                                       .reduce = p->reduce_s,
                                       .waits = p->reduces,
                                       .loss = v == in->n_layers - 1,
                                       .metric = v == in->n_layers - 1 ? in->metric_s[own] : 0,
                                       .weighted = f->node_cost[in->first_choice[v] + j]};
    piece->backward = piece->before + p->after_s[0] + p->after_s[1];
    for (int k = 0; k < step->n_before; k++)
        for (int e = step->edges_at[k]; e >= 0; e = f->next_edge[e]) {
            int other = f->classes[in->first_choice[step->before[k]] + digit[k]];
            const struct ghp_edge_cost *q =
                &in->edge[in->first_pair[e] + other * in->n_classes[v] + class];

            piece->edges_forward += q->forward_s[0] + q->forward_s[1];
            piece->backward += q->backward_s[0] + q->backward_s[1];
            piece->weighted += f->edge_cost[in->first_pair[e] + digit[k] * f->n_classes[v] + at];
        }
    return piece->weighted < INFINITY;
}

/* Extends the prefixes of one state, first .. end - 1, by choice j of layer v. */
static void extend_each(struct ghp_prefix_search *s, int v, const int *range, int j, int state)
{
    const struct ghp_frontier_step *step = &s->frontier.steps[v];
    struct ghp_prefix_piece piece;
    int digit[GHP_FRONTIER_WIDTH];

    read_state(&s->frontier, step, s->now[range[0]].state, digit);
    if (!piece_of(s, v, digit, j, &piece)) return;
    for (int k = range[0]; k < range[1]; k++) {
        struct entry *made = &s->next[s->n_next];

        made->prefix = ghp_prefix_extend(&s->now[k].prefix, &piece, s->bound.metric_most_s);
        made->bound =
            ghp_prefix_bound_of(&s->bound, &made->prefix, v, step->table + state, s->cutoff_s);
        made->state = state;
        made->parent = k;
        made->digit = j;
        s->extended++;
        if (made->bound < s->cutoff_s && ++s->n_next == s->max_entries)
            keep_most(s, s->max_entries / 2);
    }
}

/* Takes layer v: from s->now to s->next, and these become s->now. */
static enum ghp_status take_layer(struct ghp_prefix_search *s, int v)
{
    const struct ghp_frontier *f = &s->frontier;
    const struct ghp_frontier_step *step = &f->steps[v];
    struct entry *swap = s->now;

    s->n_next = 0;
    for (int range[2] = {0, 0}; range[0] < s->n_now; range[0] = range[1]) {
        int digit[GHP_FRONTIER_WIDTH], after = 0;

        while (range[1] < s->n_now && s->now[range[1]].state == s->now[range[0]].state)
            range[1]++;
        read_state(f, step, s->now[range[0]].state, digit);
        for (int k = 0; k < step->n_before; k++)
            after += step->kept_stride[k] * digit[k];
        for (int j = 0; j < f->n_active[v]; j++)
            extend_each(s, v, range, j,
                        after + (step->stays ? f->place[f->graph.first_choice[v] + j] : 0));
    }
    keep_most(s, s->most);
    if (s->n_next == s->most) drop_longer(s); /* sorted by state again */
    s->trace[v] = ghp_alloc((size_t)s->n_next + 1, sizeof **s->trace);
    if (s->trace[v] == NULL) return GHP_NO_MEMORY();
    for (int k = 0; k < s->n_next; k++)
        s->trace[v][k] = (struct trace){s->next[k].parent, s->next[k].digit};
    s->now = s->next;
    s->n_now = s->n_next;
    s->next = swap;
    return GHP_OK;
}

/* ---- the whole ---- */

/* The best of the whole plans, and its choices. */
static void conclude(struct ghp_prefix_search *s, struct ghp_prefix_result *result)
{
    const struct ghp_instance *in = s->in;
    int best = -1;

    for (int k = 0; k < s->n_now; k++) {
        const struct ghp_prefix *p = &s->now[k].prefix;
        double step_s = fmax(fmax(p->all, p->closed), fmax(p->reduced, p->metric));

        if (!(step_s < result->least_s) || !(step_s < s->cutoff_s)) continue;
        result->least_s = step_s;
        best = k;
    }
    result->complete = s->complete;
    result->extended = s->extended;
    if (best < 0) return;
    for (int v = in->n_layers - 1; v >= 0; --v) {
        s->choice[v] = s->frontier.active[in->first_choice[v] + s->trace[v][best].digit];
        best = s->trace[v][best].parent;
    }
    result->choice = s->choice;
}

static enum ghp_status make_room(struct ghp_prefix_search *s)
{
    int max = MADE * s->most + 1;

    if (max <= s->max_entries) return GHP_OK;
    free(s->now);
    free(s->next);
    s->now = ghp_alloc((size_t)max, sizeof *s->now);
    s->next = ghp_alloc((size_t)max, sizeof *s->next);
    s->max_entries = s->now != NULL && s->next != NULL ? max : 0;
    return s->max_entries > 0 ? GHP_OK : GHP_NO_MEMORY();
}

enum ghp_status ghp_prefix_run(struct ghp_prefix_search *search, const struct ghp_prefix_job *job,
                               struct ghp_prefix_result *result)
{
    struct ghp_prefix_search *s = search;
    bool fits;

    *result = (struct ghp_prefix_result){.least_s = INFINITY};
    GHP_TRY(ghp_frontier_set(&s->frontier, job->domain->choice, &fits));
    if (!fits) return GHP_OK;
    s->most = job->most;
    s->cutoff_s = job->cutoff_s;
    s->complete = true;
    s->extended = 0;
    GHP_TRY(make_room(s));
    GHP_TRY(ghp_prefix_bound_set(&s->bound, job->dual, job->domain, &s->frontier));
    forget_traces(s);
    s->now[0] = (struct entry){
        .prefix = {.open = -INFINITY, .closed = -INFINITY}, .parent = -1, .digit = -1};
    s->n_now = 1;
    for (int v = 0; v < s->in->n_layers; v++) {
        if (s->extended > job->work && s->most > GHP_PREFIX_FEW) s->most = GHP_PREFIX_FEW;
        if (ghp_now_s() > job->deadline_s) return GHP_OK;
        GHP_TRY(take_layer(s, v));
    }
    conclude(s, result);
    return GHP_OK;
}
