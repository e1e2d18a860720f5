/* planner/search/branch.c - over domains: depth first, the more promising child first. If the way down has come near
 * the best plan and leaves nothing to gain, the search continues at the node of the least bound. */
#include "planner/search/branch_private.h"

#include "core/base/array.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "core/base/log.h"
#include "planner/search/prefix.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOT_ROUNDS = 300,
    NODE_ROUNDS = 12,
    CROSSED = 4,
    LONGEST_RUN = 32,
    MOST_TRIED = 256,
    FIXING_TIMES = 3,
    LIST_MOST = 2000,
    PREFIXES = 4000,
    PREFIXES_MORE = 8, /* times as many */
    PREFIX_WORK = 1000000,
    WIDE_STATES = 2000000, /* of a sweep: from there on a part of the root is searched first */
    WAITING_MOST = 4096    /* nodes; beyond, the newest is taken, so that they get no more */
};

static const double list_combinations = 1e6; /* above, listing a node's plans is not tried */
static const double narrow_fraction = 0.4;   /* of the time, for the part of a wide root */
static const double near = 0.5; /* of the greatest distance to the cutoff: nodes so near it wait */

struct node {
    unsigned char *packed; /* its domain; owned */
    double bound;          /* relative */
};

struct search {
    const struct ghp_branch_job *job;
    struct ghp_branch_result *result;
    struct ghp_dual dual;
    struct ghp_prefix_search *prefixes; /* NULL: plans are not judged so */
    int64_t prefix_again;               /* from this node on it is tried again */
    int prefix_failed;
    struct node *stack;
    int n_stack, max_stack;
    struct ghp_domain domain;   /* of the node that is visited */
    struct ghp_hash_table seen; /* plans evaluated, so that each is evaluated once */
    double cutoff;              /* relative */
    int *child;                 /* a plan made of two others; n_layers */
    double *narrow_weight;      /* scratch: GHP_DUAL_CONSTRAINTS */
    bool enough;                /* a plan as good as asked for is there */
    double deadline_s;          /* of what is searched now */
    bool late;                  /* that is over */
};

/* ---- plans ---- */

static void set_cutoff(struct search *s)
{
    double same = fmax(GHP_BRANCH_SAME, s->job->limits.gap);

    s->cutoff = s->result->value / s->job->goal.scale * (1 - same);
    s->enough = s->result->value <= s->job->limits.enough;
}

static enum ghp_status evaluate(struct search *s, const int *choice)
{
    struct ghp_branch_result *r = s->result;
    uint64_t hash = s->job->hash != NULL ? s->job->hash(choice, s->job->in->n_layers)
                                         : ghp_hash(choice, s->seen.item_bytes, GHP_HASH_SEED);
    size_t n = s->seen.n, index;
    double value;

    GHP_TRY(ghp_hash_table_put(&s->seen, hash, choice, &index));
    if (index < n) return GHP_OK;
    r->plans++;
    GHP_TRY(s->job->objective.evaluate(s->job->objective.context, choice, &value));
    if (!(value < r->value)) return GHP_OK;
    r->value = value;
    memcpy(r->choice, choice, (size_t)s->job->in->n_layers * sizeof *choice);
    set_cutoff(s);
    return GHP_OK;
}

static void show_progress(const struct search *s)
{
    ghp_progress_tick("%" PRId64 " plans, %" PRId64 " nodes", s->result->plans, s->result->nodes);
}

static bool is_late(struct search *s)
{
    s->late = ghp_now_s() > s->deadline_s;
    return s->late;
}

/* The dual met a plan: if its constraints promise more than the best one, the objective is asked. */
static enum ghp_status on_found(void *context, const int *choice,
                                const struct ghp_accumulated_cost *accumulated, double *cutoff)
{
    struct search *s = context;
    struct ghp_constraint constraint;
    bool fits = true;

    if (s->job->goal.limit_bytes > 0)
        fits = ghp_constraint_fullest(s->job->in, accumulated, &constraint) <=
               s->job->goal.limit_bytes;
    if (fits && ghp_dual_value(&s->dual, accumulated, &constraint) < s->cutoff)
        GHP_TRY(evaluate(s, choice));
    show_progress(s);
    *cutoff = s->enough || is_late(s) ? -INFINITY : s->cutoff;
    return GHP_OK;
}

/* A plan made of two others, judged by its constraints: *least, if it promises more. */
static bool promises_more(struct search *s, double *least)
{
    struct ghp_accumulated_cost *mean = &s->dual.mean;
    struct ghp_constraint constraint;
    double value;

    if (!ghp_domain_has(s->job->domain, s->child)) return false;
    ghp_accumulated_cost_set(s->job->in, s->child, mean);
    value = ghp_dual_value(&s->dual, mean, &constraint);
    if (!(value < *least)) return false;
    if (s->job->goal.limit_bytes > 0 &&
        ghp_constraint_fullest(s->job->in, mean, &constraint) > s->job->goal.limit_bytes)
        return false;
    *least = value;
    return true;
}

/* If blocks repeat, the mean plan mixes plans that treat all blocks alike, while better plans treat some blocks in one
 * way and some in the other. Among the plans that are `a` in a run of layers and `b` elsewhere, evaluates the one whose
 * constraints promise most.
 *
 * length   layers of the run, which may begin anywhere; 0: it begins with the first layer and ends anywhere. In a deep
 *          network about MOST_TRIED of the layers are tried */
static enum ghp_status cross(struct search *s, const int *a, const int *b, int length)
{
    const int n = s->job->in->n_layers;
    const int stride = 1 + n / MOST_TRIED;
    const size_t one = sizeof *a;
    double least = s->cutoff;
    int first = 0, end = 0;
    bool changed = false;

    memcpy(s->child, b, (size_t)n * one);
    for (int v = 0; v + (length > 0 ? length : 1) <= n; v++) {
        if (length == 0) {
            changed = changed || s->child[v] != a[v];
            s->child[v] = a[v];
            if (!changed || v % stride > 0) continue;
            changed = false;
            if (promises_more(s, &least)) end = v + 1;
            continue;
        }
        if (a[v] == b[v] || v % stride > 0) continue; /* the run may as well begin later */
        memcpy(s->child + v, a + v, (size_t)length * one);
        if (promises_more(s, &least)) first = v, end = v + length;
        memcpy(s->child + v, b + v, (size_t)length * one);
    }
    if (end == 0) return GHP_OK;
    memcpy(s->child, b, (size_t)n * one);
    memcpy(s->child + first, a + first, (size_t)(end - first) * one);
    return evaluate(s, s->child);
}

/* The last plans of the dual with each other and with the best. */
static enum ghp_status cross_plans(struct search *s)
{
    const size_t layers = (size_t)s->job->in->n_layers;
    int n = s->dual.n_columns < CROSSED ? s->dual.n_columns : CROSSED;
    const int *plan[CROSSED + 1];

    for (int k = 0; k < n; k++)
        plan[k] = &s->dual.choice[(size_t)(s->dual.n_columns - 1 - k) * layers];
    plan[n] = s->result->choice;
    for (int a = 0; a <= n; a++)
        for (int b = 0; b <= n && !s->enough && !is_late(s); b++)
            if (a != b) GHP_TRY(cross(s, plan[a], plan[b], 0));
    for (int length = 1; length <= LONGEST_RUN; length *= 2)
        for (int a = 0; a < n && !s->enough && !is_late(s); a++)
            GHP_TRY(cross(s, plan[a], plan[n], length));
    return GHP_OK;
}

/* ---- nodes ---- */

static enum ghp_status push(struct search *s, const struct ghp_domain *domain, double bound)
{
    GHP_TRY_ROOM(s->stack, s->n_stack, s->max_stack);
    GHP_TRY(ghp_domain_pack(domain, &s->stack[s->n_stack].packed));
    s->stack[s->n_stack++].bound = bound;
    return GHP_OK;
}

static enum ghp_status split_node(struct search *s, struct ghp_domain *domain, double bound)
{
    int choice = 0, layer = ghp_branch_pick(&s->dual, domain, &choice);

    if (layer < 0) return GHP_OK; /* one plan only, and the sweep evaluated it */
    ghp_domain_drop(domain, layer, choice);
    GHP_TRY(push(s, domain, bound));
    ghp_domain_fix(domain, layer, choice);
    return push(s, domain, bound);
}

/* Keeps the choices of a layer that reduce (or those that do not); whether any is left. */
static bool keep_reducing(struct ghp_domain *domain, int layer, bool reducing)
{
    const struct ghp_instance *in = domain->instance;

    for (int i = 0; i < in->n_choices[layer]; i++)
        if (in->layer[in->first_choice[layer] + i].reduces != reducing)
            ghp_domain_drop(domain, layer, i);
    return ghp_domain_count(domain, layer) > 0;
}

static bool can_reduce(const struct ghp_instance *in, int layer)
{
    for (int i = in->first_choice[layer]; i < in->first_choice[layer + 1]; i++)
        if (in->layer[i].reduces) return true;
    return false;
}

/* Splits the root by the first layer whose update waits for a reduction: in each part the paths that close there need
 * no relaxation. The parts cover the root: layer v is the first for each v, or nobody waits. */
static enum ghp_status split_root(struct search *s, struct ghp_domain *domain, double bound)
{
    struct ghp_domain part;
    int first = s->n_stack;
    bool rest = true;

    for (int v = 0; v < s->job->in->n_layers && rest; v++) {
        enum ghp_status status = GHP_OK;

        if (!can_reduce(s->job->in, v)) continue;
        GHP_TRY(ghp_domain_copy(domain, &part));
        if (keep_reducing(&part, v, true)) status = push(s, &part, bound);
        ghp_domain_release(&part);
        GHP_TRY(status);
        rest = keep_reducing(domain, v, false);
    }
    if (rest) GHP_TRY(push(s, domain, bound));
    for (int a = first, b = s->n_stack - 1; a < b;
         ++a, --b) { /* the first layer's part comes first */
        struct node node = s->stack[a];

        s->stack[a] = s->stack[b];
        s->stack[b] = node;
    }
    return GHP_OK;
}

static bool has_plans(const struct ghp_domain *domain)
{
    for (int v = 0; v < domain->instance->n_layers; v++)
        if (ghp_domain_count(domain, v) == 0) return false;
    return true;
}

/* If few plans of a node are left below the cutoff, evaluates them all. *done: whether that was so. */
static enum ghp_status list_plans(struct search *s, const struct ghp_domain *domain, bool *done)
{
    double combinations = 1;

    for (int v = 0; v < s->job->in->n_layers; v++)
        combinations *= ghp_domain_count(domain, v);
    *done = false;
    if (combinations > list_combinations) return GHP_OK;
    return ghp_dual_list(&s->dual, s->cutoff, LIST_MOST, done);
}

/* Looks for a node's best plan by prefixes; `bound` becomes what is then known. If there were too many, which still
 * gives a good plan, more are allowed the next time, once. After that ever fewer nodes are tried. */
static enum ghp_status try_prefixes(struct search *s, const struct ghp_domain *domain,
                                    double *bound)
{
    const double scale = s->job->goal.scale;
    const int times = s->prefix_failed == 1 ? PREFIXES_MORE : 1;
    struct ghp_prefix_result found;
    struct ghp_prefix_job job = {.dual = &s->dual,
                                 .domain = domain,
                                 .cutoff_s = s->cutoff * scale,
                                 .most = times * PREFIXES,
                                 .work = times * PREFIX_WORK,
                                 .deadline_s = s->deadline_s};

    if (s->prefixes == NULL || s->result->nodes < s->prefix_again) return GHP_OK;
    GHP_TRY(ghp_prefix_run(s->prefixes, &job, &found));
    if (found.choice != NULL) GHP_TRY(evaluate(s, found.choice));
    if (found.complete) {
        *bound = fmax(*bound, fmin(found.least_s, job.cutoff_s) / scale);
        return GHP_OK;
    }
    s->prefix_failed++;
    s->prefix_again = s->result->nodes + 1 + (s->prefix_failed > 2 ? s->result->nodes : 0);
    return GHP_OK;
}

/* Bounds a node, narrows it, and splits what is left.
 *
 * known   a bound that the node has already */
static enum ghp_status visit(struct search *s, struct ghp_domain *domain, double known, bool root)
{
    double bound = -INFINITY, cutoff;
    int removed = 1;
    bool done;

    s->result->nodes++;
    for (int round = 0; round < FIXING_TIMES && removed > 0; round++) {
        int before = 0;

        cutoff = s->cutoff;
        GHP_TRY(
            ghp_dual_bound(&s->dual, domain, &cutoff, root ? ROOT_ROUNDS : NODE_ROUNDS, &bound));
        s->result->wide = bound == -INFINITY && root && !s->enough;
        known = fmax(known, bound);
        if (bound >= s->cutoff || s->enough || s->result->wide) return GHP_OK;
        if (round == 0 && !s->late && (s->result->nodes & (s->result->nodes - 1)) == 0)
            GHP_TRY(cross_plans(s)); /* ever more rarely */
        if (bound >= s->cutoff || s->enough) return GHP_OK;
        GHP_TRY(ghp_dual_reduced_cost_fixing(&s->dual, domain, s->cutoff, &removed));
        if (!has_plans(domain)) return GHP_OK;
        for (int v = 0; v < s->job->in->n_layers; v++)
            before += s->dual.frontier.n_active[v];
        if (removed * 8 < before) break;
    }
    GHP_TRY(list_plans(s, domain, &done));
    if (!done && !s->late && !s->enough) GHP_TRY(try_prefixes(s, domain, &known));
    if (s->late) return push(s, domain, known); /* not looked at to the end */
    if (done || s->enough || known >= s->cutoff) return GHP_OK;
    return root ? split_root(s, domain, known) : split_node(s, domain, known);
}

/* States that a sweep over a domain looks at; 0: too many for tables. */
static enum ghp_status count_states(struct search *s, const struct ghp_domain *domain, double *n)
{
    struct ghp_frontier *f = &s->dual.frontier;
    bool fits;

    *n = 0;
    GHP_TRY(ghp_frontier_set(f, domain->choice, &fits));
    for (int at = 0; at < f->n_kept && fits; at++)
        *n += (double)f->steps[at].n_states_before * f->n_classes[f->kept[at]];
    return GHP_OK;
}

/* Searches the nodes above `base` till the deadline, then forgets them. */
static enum ghp_status try_nodes(struct search *s, int base)
{
    enum ghp_status status = GHP_OK;

    while (s->n_stack > base && status == GHP_OK) {
        struct node node = s->stack[--s->n_stack];

        if (!is_late(s) && !s->enough && node.bound < s->cutoff) {
            ghp_domain_unpack(node.packed, &s->domain);
            status = visit(s, &s->domain, node.bound, false);
        }
        free(node.packed);
    }
    return status;
}

/* First searches the part of a wide root whose TP sizes stay inside a node, because sweeps are quick there. The plans
 * found and the weights of its bound then serve the whole. */
static enum ghp_status visit_narrow(struct search *s, const struct ghp_domain *root)
{
    const struct ghp_lowering *lowering = s->job->in->lowering;
    const int workers = lowering->problem.workers, base = s->n_stack;
    const int inside = ghp_machine_workers_per_node(&s->job->in->profile->machine, workers);
    const double now_s = ghp_now_s();
    struct ghp_domain narrow;
    double states, bound = -INFINITY;
    enum ghp_status status;

    GHP_TRY(count_states(s, root, &states));
    if (inside == workers ||
        states < (s->job->limits.wide_states > 0 ? s->job->limits.wide_states : WIDE_STATES))
        return GHP_OK;
    GHP_TRY(ghp_domain_copy(root, &narrow));
    ghp_domain_limit_tp_size(&narrow, inside);
    s->deadline_s = now_s + narrow_fraction * (s->job->limits.deadline_s - now_s);
    status = has_plans(&narrow) ? ghp_domain_init(s->job->in, &s->domain) : GHP_OK;
    if (status == GHP_OK && has_plans(&narrow)) status = visit(s, &narrow, bound, true);
    memcpy(s->narrow_weight, s->dual.weight, GHP_DUAL_CONSTRAINTS * sizeof *s->narrow_weight);
    if (status == GHP_OK) status = try_nodes(s, base);
    memcpy(s->dual.weight, s->narrow_weight, GHP_DUAL_CONSTRAINTS * sizeof *s->narrow_weight);
    s->deadline_s = s->job->limits.deadline_s;
    s->result->wide = false; /* the whole says itself whether it is */
    ghp_domain_release(&s->domain);
    ghp_domain_release(&narrow);
    return status;
}

static enum ghp_status visit_root(struct search *s, const struct ghp_domain *domain)
{
    struct ghp_domain root;
    enum ghp_status status;

    show_progress(s);
    if (s->enough) return push(s, domain, -INFINITY);
    GHP_TRY(visit_narrow(s, domain));
    is_late(s);
    if (s->enough) return push(s, domain, -INFINITY);
    GHP_TRY(ghp_domain_copy(domain, &root));
    status = visit(s, &root, -INFINITY, true);
    ghp_domain_release(&root);
    return status;
}

/* The domain, cut into one root for each choice of the layers from `from` on whose parameters others share: these then
 * have the choice that goes with it, and nothing couples what is left. */
static enum ghp_status visit_roots(struct search *s, const struct ghp_domain *domain, int from)
{
    const struct ghp_instance *in = s->job->in;
    enum ghp_status status = GHP_OK;
    int v = from;

    while (v < in->n_layers && !in->lowering->model->layers[v].shared)
        v++;
    if (v == in->n_layers) return visit_root(s, domain);
    for (int i = 0; i < in->n_choices[v] && status == GHP_OK && !s->result->wide; i++) {
        struct ghp_domain part;

        if (!domain->choice[in->first_choice[v] + i]) continue;
        GHP_TRY(ghp_domain_copy(domain, &part));
        if (ghp_domain_fix_tied(&part, v, i)) status = visit_roots(s, &part, v + 1);
        ghp_domain_release(&part);
    }
    return status;
}

/* Takes the newest node off the stack; if it is so near the cutoff that little can be gained below it, that of the
 * least bound. (Of many equal blocks plans without end are nearly the best; the gap closes elsewhere.) */
static struct node pop(struct search *s)
{
    int least = s->n_stack - 1;
    struct node node = s->stack[least];

    for (int k = least; k >= 0 && s->n_stack <= WAITING_MOST; --k)
        if (s->stack[k].bound < s->stack[least].bound) least = k;
    if (s->cutoff - node.bound < near * (s->cutoff - s->stack[least].bound)) {
        node = s->stack[least];
        memmove(&s->stack[least], &s->stack[least + 1],
                (size_t)(s->n_stack - 1 - least) * sizeof node);
    }
    --s->n_stack;
    return node;
}

static enum ghp_status search_tree(struct search *s)
{
    GHP_TRY(visit_roots(s, s->job->domain, 0));
    if (s->n_stack > 0) GHP_TRY(ghp_domain_init(s->job->in, &s->domain));
    while (s->n_stack > 0 && !s->result->wide) {
        struct node node;
        enum ghp_status status = GHP_OK;

        show_progress(s);
        if (is_late(s) || s->enough) break;
        node = pop(s);
        if (node.bound < s->cutoff) {
            ghp_domain_unpack(node.packed, &s->domain);
            status = visit(s, &s->domain, node.bound, false);
        }
        free(node.packed);
        GHP_TRY(status);
    }
    return GHP_OK;
}

static void conclude(struct search *s)
{
    struct ghp_branch_result *r = s->result;
    double bound = s->cutoff;

    for (int k = 0; k < s->n_stack; k++)
        bound = fmin(bound, s->stack[k].bound);
    r->proven = bound >= s->cutoff && !s->enough && !r->wide;
    r->bound = r->proven && !(s->job->limits.gap > 0) ? r->value : bound * s->job->goal.scale;
}

static enum ghp_status prepare(struct search *s)
{
    struct ghp_branch_result *r = s->result;
    size_t layers = (size_t)s->job->in->n_layers;

    if (r->choice == NULL) {
        *r = (struct ghp_branch_result){.value = INFINITY};
        r->choice = ghp_alloc(layers, sizeof *r->choice);
        if (r->choice == NULL) return GHP_NO_MEMORY();
    }
    s->child = ghp_alloc(layers, sizeof *s->child);
    s->narrow_weight = ghp_alloc(GHP_DUAL_CONSTRAINTS, sizeof *s->narrow_weight);
    if (s->child == NULL || s->narrow_weight == NULL) return GHP_NO_MEMORY();
    s->deadline_s = s->job->limits.deadline_s;
    GHP_TRY(ghp_dual_open(s->job->in, s->job->goal, &s->dual));
    if (ghp_prefix_takes(&s->dual)) GHP_TRY(ghp_prefix_open(s->job->in, &s->prefixes));
    s->dual.found = on_found;
    s->dual.context = s;
    set_cutoff(s);
    for (int p = 0; p < s->job->n_start && !s->enough; p++) {
        const int *choice = s->job->start + (size_t)p * layers;

        if (!ghp_domain_has(s->job->domain, choice)) continue;
        GHP_TRY(evaluate(s, choice));
        GHP_TRY(ghp_dual_add(&s->dual, choice));
    }
    return GHP_OK;
}

enum ghp_status ghp_branch_run(const struct ghp_branch_job *job, struct ghp_branch_result *result)
{
    struct search s = {.job = job,
                       .result = result,
                       .seen = {.item_bytes = (size_t)job->in->n_layers * sizeof *job->start}};
    enum ghp_status status = prepare(&s);

    result->wide = false;
    if (status == GHP_OK) status = search_tree(&s);
    if (status == GHP_OK) conclude(&s);
    for (int k = 0; k < s.n_stack; k++)
        free(s.stack[k].packed);
    ghp_domain_release(&s.domain);
    free(s.stack);
    free(s.child);
    free(s.narrow_weight);
    ghp_hash_table_release(&s.seen);
    ghp_prefix_close(s.prefixes);
    ghp_dual_close(&s.dual);
    return status;
}

void ghp_branch_release(struct ghp_branch_result *result)
{
    if (result == NULL) return;
    free(result->choice);
    memset(result, 0, sizeof *result);
}
