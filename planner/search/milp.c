/* planner/search/milp.c - the program of milp.h, built once, with constraints added as solutions break them.
 *
 *     minimise t
 *     sum of s over a layer's choices = 1
 *     sum of pairs with one class at one end = sum of its s         both ends of every edge
 *     a choice's s = the s of the tied layer's choice that goes with it
 *     t >= sum of coefficient * s + sum of coefficient * pair                every time constraint met so far
 *     sum of bytes * s + sum of bytes * pair <= limit              every memory constraint met so far
 *     sum of s over one plan <= layers - 1                         every plan met
 *     t <= best true value found                                   so "no solution" is the proof */
#include "planner/search/milp.h"

#include "core/base/clock.h"
#include "core/base/log.h"

#include <glpk.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct milp {
    const struct ghp_branch_job *job;
    struct ghp_branch_result *result;
    struct ghp_coefficients coefficients;
    /* active choices, and the cost arrays that constraints are written from */
    struct ghp_frontier lists;
    struct ghp_weights weights;
    struct ghp_accumulated_cost accumulated;
    glp_prob *lp;
    int *node_column; /* first_choice[v] + k: column of the k-th choice in play */
    int *pair_column; /* first_pair[e] + a * n_classes + b; 0: not in play */
    int *index;       /* scratch of one constraint */
    double *entry;
    int *choice;
    double unit; /* seconds or bytes that are 1 in the program */
};

enum outcome { SOLVED, NO_SOLUTION, OUT_OF_TIME };

static double limit_of(const struct milp *m)
{
    return m->job->goal.limit_bytes;
}

/* ---- building ---- */

static int add_binary(struct milp *m)
{
    int c = glp_add_cols(m->lp, 1);

    glp_set_col_kind(m->lp, c, GLP_BV);
    return c;
}

static void add_constraint(struct milp *m, int kind, double low, double high, int n)
{
    int r = glp_add_rows(m->lp, 1);

    glp_set_row_bnds(m->lp, r, kind, low, high);
    glp_set_mat_row(m->lp, r, n, m->index, m->entry);
}

static void add_layer(struct milp *m, int v)
{
    const struct ghp_instance *in = m->job->in;
    int n = m->lists.n_active[v];

    for (int k = 0; k < n; k++) {
        m->index[k + 1] = m->node_column[in->first_choice[v] + k] = add_binary(m);
        m->entry[k + 1] = 1;
    }
    add_constraint(m, GLP_FX, 1, 1, n);
}

/* Pairs of an edge that share class c at one end sum to its choices. */
static void tie_end(struct milp *m, int e, bool from_end, int c)
{
    const struct ghp_instance *in = m->job->in;
    int from = in->edges[e].from, to = in->edges[e].to, n_to = m->lists.n_classes[to], n = 0;
    int others = from_end ? n_to : m->lists.n_classes[from], end = from_end ? from : to;

    for (int k = 0; k < m->lists.n_active[end]; k++) {
        if (m->lists.place[in->first_choice[end] + k] != c) continue;
        m->index[++n] = m->node_column[in->first_choice[end] + k];
        m->entry[n] = -1;
    }
    for (int o = 0; o < others; o++) {
        int column = m->pair_column[in->first_pair[e] + (from_end ? c * n_to + o : o * n_to + c)];

        if (column == 0) continue;
        m->index[++n] = column;
        m->entry[n] = 1;
    }
    add_constraint(m, GLP_FX, 0, 0, n);
}

static void add_edge(struct milp *m, int e)
{
    const struct ghp_instance *in = m->job->in;
    int from = in->edges[e].from, to = in->edges[e].to;
    const int *a_class = &m->lists.classes[in->first_choice[from]],
              *b_class = &m->lists.classes[in->first_choice[to]];
    int at = in->first_pair[e];

    for (int a = 0; a < m->lists.n_classes[from]; a++)
        for (int b = 0; b < m->lists.n_classes[to]; ++b, at++) {
            bool in_play =
                m->job->domain
                    ->pair[in->first_pair[e] + a_class[a] * in->n_classes[to] + b_class[b]];

            m->pair_column[at] = in_play ? add_binary(m) : 0;
        }
    for (int a = 0; a < m->lists.n_classes[from]; a++)
        tie_end(m, e, true, a);
    for (int b = 0; b < m->lists.n_classes[to]; b++)
        tie_end(m, e, false, b);
}

/* A tied layer takes the choices that go with its owner's, whose others are taken by none. */
static void couple(struct milp *m, int owner, int tied)
{
    const struct ghp_instance *in = m->job->in;

    for (int a = 0; a < m->lists.n_active[owner]; a++) {
        int wanted = ghp_instance_tied_choice(in, owner,
                                              m->lists.active[in->first_choice[owner] + a], tied),
            n = 0;

        m->index[++n] = m->node_column[in->first_choice[owner] + a];
        m->entry[n] = 1;
        for (int b = 0; b < m->lists.n_active[tied]; b++) {
            if (m->lists.active[in->first_choice[tied] + b] != wanted) continue;
            m->index[++n] = m->node_column[in->first_choice[tied] + b];
            m->entry[n] = -1;
        }
        add_constraint(m, GLP_FX, 0, 0, n);
    }
}

static void append_coefficient(struct milp *m, int column, double coefficient, double sign,
                               double unit, int *n)
{
    if (column == 0 || coefficient == 0) return;
    m->index[++*n] = column;
    m->entry[*n] = sign * coefficient / unit;
}

/* Writes a constraint of the instance as a constraint of the program. */
static void add_instance_constraint(struct milp *m, const struct ghp_constraint *constraint)
{
    const struct ghp_instance *in = m->job->in;
    const bool limits = constraint->variant < 0 && !m->job->goal.bytes;
    const double unit = limits ? limit_of(m) : m->unit, one = 1;
    int n = 0;

    ghp_weights_set(in, &m->coefficients, constraint, &one, 1, &m->weights);
    ghp_weights_to_frontier(&m->weights, m->job->domain, &m->lists);
    if (!limits) {
        m->index[++n] = 1;
        m->entry[n] = -1;
    }
    for (int v = 0; v < in->n_layers; v++)
        for (int k = 0; k < m->lists.n_active[v]; k++)
            append_coefficient(m, m->node_column[in->first_choice[v] + k],
                               m->lists.node_cost[in->first_choice[v] + k], 1, unit, &n);
    for (int e = 0; e < in->n_edges; e++) {
        int pairs = m->lists.n_classes[in->edges[e].from] * m->lists.n_classes[in->edges[e].to];

        for (int k = 0; k < pairs; k++)
            append_coefficient(m, m->pair_column[in->first_pair[e] + k],
                               m->lists.edge_cost[in->first_pair[e] + k], 1, unit, &n);
    }
    add_constraint(m, GLP_UP, 0, limits ? 1 : 0, n);
}

static void forbid_plan(struct milp *m, const int *choice)
{
    const struct ghp_instance *in = m->job->in;
    int n = 0;

    for (int v = 0; v < in->n_layers; v++)
        for (int k = 0; k < m->lists.n_active[v]; k++) {
            if (m->lists.active[in->first_choice[v] + k] != choice[v]) continue;
            m->index[++n] = m->node_column[in->first_choice[v] + k];
            m->entry[n] = 1;
        }
    add_constraint(m, GLP_UP, 0, in->n_layers - 1, n);
}

static enum ghp_status build(struct milp *m)
{
    const struct ghp_instance *in = m->job->in;
    size_t choices = (size_t)in->first_choice[in->n_layers],
           pairs = (size_t)in->first_pair[in->n_edges];
    const struct ghp_frontier_graph graph = ghp_instance_graph(in);
    bool fits;

    m->coefficients = ghp_instance_coefficients(in);
    m->unit = m->job->goal.scale;
    GHP_TRY(ghp_frontier_open(&graph, &m->lists));
    GHP_TRY(
        ghp_frontier_set(&m->lists, m->job->domain->choice, &fits)); /* only its lists are used */
    GHP_TRY(ghp_weights_init(in, &m->weights));
    GHP_TRY(ghp_accumulated_cost_init(in, &m->accumulated));
    m->node_column = ghp_alloc(choices, sizeof *m->node_column);
    m->pair_column = ghp_alloc(pairs, sizeof *m->pair_column);
    m->index = ghp_alloc(choices + pairs + 2, sizeof *m->index);
    m->entry = ghp_alloc(choices + pairs + 2, sizeof *m->entry);
    m->choice = ghp_alloc((size_t)in->n_layers, sizeof *m->choice);
    if (m->node_column == NULL || m->pair_column == NULL || m->index == NULL || m->entry == NULL ||
        m->choice == NULL)
        return GHP_NO_MEMORY();
    glp_term_out(GLP_OFF);
    m->lp = glp_create_prob();
    glp_add_cols(m->lp, 1);
    glp_set_col_bnds(m->lp, 1, GLP_LO, 0, 0);
    glp_set_obj_coef(m->lp, 1, 1);
    for (int v = 0; v < in->n_layers; v++)
        add_layer(m, v);
    for (int e = 0; e < in->n_edges; e++)
        add_edge(m, e);
    for (int v = 0; v < in->n_layers; v++)
        if (in->lowering->model->layers[v].tied > 0)
            couple(m, ghp_model_owner(in->lowering->model, v), v);
    return GHP_OK;
}

/* ---- solving ---- */

static double cutoff_of(const struct milp *m)
{
    return m->result->value / m->unit * (1 - fmax(GHP_BRANCH_SAME, m->job->limits.gap));
}

/* Adds the constraints that the plan in m->choice (and m->load) is longest on, and those limits that it breaks. */
static double add_its_constraints(struct milp *m, bool *fits)
{
    const struct ghp_instance *in = m->job->in;
    struct ghp_constraint constraint;
    double longest = 0;

    *fits = true;
    if (m->job->goal.bytes) {
        longest = ghp_constraint_fullest(in, &m->accumulated, &constraint);
        add_instance_constraint(m, &constraint);
        return longest;
    }
    for (int v = 0; v < m->coefficients.n; v++) {
        longest = fmax(
            longest, ghp_constraint_longest(in, &m->coefficients, v, &m->accumulated, &constraint));
        add_instance_constraint(m, &constraint);
    }
    if (limit_of(m) > 0 && ghp_constraint_fullest(in, &m->accumulated, &constraint) > limit_of(m)) {
        add_instance_constraint(m, &constraint);
        *fits = false;
    }
    return longest;
}

/* GLPK calls this often while it searches; it is only watched. */
static void watch(glp_tree *tree, void *context)
{
    const struct milp *m = context;

    (void)tree;
    ghp_progress_tick("%" PRId64 " plans", m->result->plans);
}

static double left_of(const struct milp *m)
{
    return m->job->limits.deadline_s - ghp_now_s();
}

static int milliseconds(double left_s)
{
    return left_s < 1e6 ? (int)(1000 * left_s) + 1 : INT32_MAX;
}

/* Whether the linear program at the root can be solved before the deadline, as branch and cut will do again: GLPK's
 * own limit is not looked at while it does. */
static bool root_in_time(struct milp *m)
{
    double left_s = left_of(m);
    glp_smcp params;

    if (left_s <= 0) return false;
    glp_init_smcp(&params);
    params.msg_lev = GLP_MSG_OFF;
    params.presolve = GLP_ON;
    params.tm_lim = milliseconds(left_s);
    return glp_simplex(m->lp, &params) != GLP_ETMLIM && left_of(m) > left_s / 2;
}

static enum ghp_status solve(struct milp *m, enum outcome *outcome, double *t)
{
    glp_iocp params;
    int code;

    *outcome = OUT_OF_TIME;
    glp_init_iocp(&params);
    params.msg_lev = GLP_MSG_OFF;
    params.presolve = GLP_ON;
    params.cb_func = watch;
    params.cb_info = m;
    if (m->result->value < INFINITY)
        glp_set_col_bnds(m->lp, 1, GLP_DB, 0, fmax(cutoff_of(m), 1e-300));
    if (!root_in_time(m)) return GHP_OK;
    params.tm_lim = milliseconds(left_of(m));
    code = glp_intopt(m->lp, &params);
    m->result->nodes++;
    if (code == GLP_ETMLIM) return GHP_OK;
    if (code == GLP_ENOPFS || code == GLP_ENODFS ||
        (code == 0 && glp_mip_status(m->lp) == GLP_NOFEAS)) {
        *outcome = NO_SOLUTION;
        return GHP_OK;
    }
    if (code != 0 || glp_mip_status(m->lp) != GLP_OPT)
        return GHP_FAIL(GHP_ERR_INTERNAL,
                        "GLPK ended with code %d; give --solver branch, or fewer workers", code);
    *outcome = SOLVED;
    *t = glp_mip_obj_val(m->lp);
    return GHP_OK;
}

static void read_solution(struct milp *m)
{
    const struct ghp_instance *in = m->job->in;

    for (int v = 0; v < in->n_layers; v++) {
        int best = 0;

        for (int k = 1; k < m->lists.n_active[v]; k++)
            if (glp_mip_col_val(m->lp, m->node_column[in->first_choice[v] + k]) >
                glp_mip_col_val(m->lp, m->node_column[in->first_choice[v] + best]))
                best = k;
        m->choice[v] = m->lists.active[in->first_choice[v] + best];
    }
}

static enum ghp_status evaluate(struct milp *m, const int *choice)
{
    struct ghp_branch_result *r = m->result;
    double value;

    r->plans++;
    GHP_TRY(m->job->objective.evaluate(m->job->objective.context, choice, &value));
    if (!(value < r->value)) return GHP_OK;
    r->value = value;
    memcpy(r->choice, choice, (size_t)m->job->in->n_layers * sizeof *choice);
    return GHP_OK;
}

static enum ghp_status evaluate_starts(struct milp *m)
{
    const struct ghp_instance *in = m->job->in;
    bool fits;

    for (int p = 0; p < m->job->n_start; p++) {
        const int *choice = m->job->start + (size_t)p * (size_t)in->n_layers;

        if (!ghp_domain_has(m->job->domain, choice)) continue;
        GHP_TRY(evaluate(m, choice));
        ghp_accumulated_cost_set(in, choice, &m->accumulated);
        add_its_constraints(m, &fits);
    }
    return GHP_OK;
}

/* Solves, evaluates and forbids until nothing better is left. */
static enum ghp_status enumerate(struct milp *m)
{
    struct ghp_branch_result *r = m->result;
    enum outcome outcome = SOLVED;
    double t = 0, bound = 0;
    bool fits;

    r->proven = false;
    for (;;) {
        GHP_TRY(solve(m, &outcome, &t));
        if (outcome != SOLVED || (r->value < INFINITY && t >= cutoff_of(m))) break;
        bound = fmax(bound, t);
        read_solution(m);
        ghp_accumulated_cost_set(m->job->in, m->choice, &m->accumulated);
        double value = add_its_constraints(m, &fits) / m->unit;
        if (fits && value < cutoff_of(m)) GHP_TRY(evaluate(m, m->choice));
        forbid_plan(m, m->choice); /* its constraints alone may leave it within GLPK's tolerance */
    }
    r->proven = outcome != OUT_OF_TIME;
    r->bound = !r->proven               ? bound * m->unit
               : m->job->limits.gap > 0 ? cutoff_of(m) * m->unit
                                        : r->value;
    return GHP_OK;
}

enum ghp_status ghp_milp_run(const struct ghp_branch_job *job, struct ghp_branch_result *result)
{
    struct milp m = {.job = job, .result = result};
    enum ghp_status status;

    if (result->choice == NULL) {
        *result = (struct ghp_branch_result){.value = INFINITY};
        result->choice = ghp_alloc((size_t)job->in->n_layers, sizeof *result->choice);
        if (result->choice == NULL) return GHP_NO_MEMORY();
    }
    result->wide = false;
    GHP_TRY_GOTO(status, build(&m), done);
    GHP_TRY_GOTO(status, evaluate_starts(&m), done);
    GHP_TRY_GOTO(status, enumerate(&m), done);
done:
    if (m.lp != NULL) glp_delete_prob(m.lp);
    ghp_frontier_close(&m.lists);
    ghp_weights_release(&m.weights);
    ghp_accumulated_cost_release(&m.accumulated);
    free(m.node_column);
    free(m.pair_column);
    free(m.index);
    free(m.entry);
    free(m.choice);
    return status;
}

const char *ghp_milp_library(void)
{
    return glp_version();
}
