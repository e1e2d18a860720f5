/* planner/dual.c - column generation for the bound of dual.h; the linear program is GLPK's.
 *
 *     minimise z + penalty * over
 *     z >= sum of w_p value_k(p)            every time row k     (dual: the row's weight)
 *     1 + over >= sum of w_p bytes_k(p)     every memory row k   (dual: the price of memory)
 *     sum of w_p = 1, w >= 0, over >= 0 */
#include "planner/dual.h"

#include <glpk.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_Z = 1, COLUMN_OVER = 2, FIRST_PLAN = 3 };

static const double most_penalty = 1e7;

enum ghp_status ghp_dual_open(const struct ghp_instance *in, struct ghp_goal goal,
                              struct ghp_dual *dual)
{
    enum ghp_status status;

    *dual = (struct ghp_dual){.in = in, .goal = goal, .penalty = 4};
    dual->charges = ghp_instance_charges(in);
    dual->choice = ghp_alloc((size_t)GHP_DUAL_COLUMNS * (size_t)in->n_layers, sizeof *dual->choice);
    dual->loads = ghp_alloc(GHP_DUAL_COLUMNS, sizeof *dual->loads);
    dual->rows = ghp_alloc(GHP_DUAL_ROWS, sizeof *dual->rows);
    dual->weight = ghp_alloc(GHP_DUAL_ROWS, sizeof *dual->weight);
    dual->trial = ghp_alloc(GHP_DUAL_ROWS, sizeof *dual->trial);
    dual->plan = ghp_alloc((size_t)in->n_layers, sizeof *dual->plan);
    dual->share = ghp_alloc((size_t)in->first_choice[in->n_layers], sizeof *dual->share);
    status = ghp_frontier_open(in, &dual->frontier);
    if (status == GHP_OK) status = ghp_weights_init(in, &dual->weights);
    if (status == GHP_OK) status = ghp_load_init(in, &dual->mean);
    if (status == GHP_OK &&
        (dual->choice == NULL || dual->loads == NULL || dual->rows == NULL ||
         dual->weight == NULL || dual->trial == NULL || dual->plan == NULL || dual->share == NULL))
        status = GHP_NO_MEMORY();
    if (status != GHP_OK) ghp_dual_close(dual);
    return status;
}

void ghp_dual_close(struct ghp_dual *dual)
{
    if (dual == NULL) return;
    for (int p = 0; p < dual->n_columns; ++p)
        ghp_load_release(&dual->loads[p]);
    ghp_frontier_close(&dual->frontier);
    ghp_weights_release(&dual->weights);
    ghp_load_release(&dual->mean);
    free(dual->choice);
    free(dual->loads);
    free(dual->rows);
    free(dual->weight);
    free(dual->trial);
    free(dual->plan);
    free(dual->share);
    memset(dual, 0, sizeof *dual);
}

/* ---- rows and columns ---- */

static bool is_limit(const struct ghp_dual *dual, int row)
{
    return !dual->goal.bytes && dual->rows[row].variant < 0;
}

static double unit_of(const struct ghp_dual *dual, int row)
{
    return is_limit(dual, row) ? dual->goal.limit_bytes : dual->goal.scale;
}

static double value_of(const struct ghp_dual *dual, int row, const struct ghp_load *load)
{
    return ghp_row_value(&dual->charges, &dual->rows[row], dual->in, load) / unit_of(dual, row);
}

/* The row's index, added where it is new; -1 where there is no room (the bound is then only weaker). */
static int find_row(struct ghp_dual *dual, const struct ghp_row *row)
{
    for (int k = 0; k < dual->n_rows; ++k)
        if (ghp_row_same(&dual->rows[k], row)) return k;
    if (dual->n_rows == GHP_DUAL_ROWS) return -1;
    dual->rows[dual->n_rows] = *row;
    dual->weight[dual->n_rows] = 0;
    return dual->n_rows++;
}

double ghp_dual_value(struct ghp_dual *dual, const struct ghp_load *load, struct ghp_row *row)
{
    double longest = -INFINITY;
    struct ghp_row candidate;

    if (dual->goal.bytes) return ghp_row_fullest(dual->in, load, row) / dual->goal.scale;
    for (int v = 0; v < dual->charges.n; ++v) {
        double value = ghp_row_longest(dual->in, &dual->charges, v, load, &candidate);

        if (value <= longest) continue;
        longest = value;
        *row = candidate;
    }
    return longest / dual->goal.scale;
}

/* Drops the older half of the plans. */
static void forget_columns(struct ghp_dual *dual)
{
    int half = dual->n_columns / 2, n = dual->n_columns - half;
    size_t layers = (size_t)dual->in->n_layers;

    for (int p = 0; p < half; ++p)
        ghp_load_release(&dual->loads[p]);
    memmove(dual->loads, dual->loads + half, (size_t)n * sizeof *dual->loads);
    memmove(dual->choice, dual->choice + (size_t)half * layers,
            (size_t)n * layers * sizeof *dual->choice);
    dual->n_columns = n;
}

enum ghp_status ghp_dual_add(struct ghp_dual *dual, const int *choice)
{
    size_t layers = (size_t)dual->in->n_layers;
    struct ghp_row row;

    if (dual->n_columns == GHP_DUAL_COLUMNS) forget_columns(dual);
    struct ghp_load *load = &dual->loads[dual->n_columns];
    GHP_TRY(ghp_load_init(dual->in, load));
    ghp_load_set(dual->in, choice, load);
    memcpy(&dual->choice[(size_t)dual->n_columns * layers], choice, layers * sizeof *choice);
    ++dual->n_columns;
    ghp_dual_value(dual, load, &row);
    find_row(dual, &row);
    if (dual->goal.limit_bytes > 0 &&
        ghp_row_fullest(dual->in, load, &row) > dual->goal.limit_bytes)
        find_row(dual, &row);
    return GHP_OK;
}

/* ---- the linear program of one bound ---- */

struct master {
    struct ghp_dual *dual;
    glp_prob *lp;
    int *rows; /* rows[r - 2]: the dual's row in LP row r; row 1 is the sum of w */
    int n_rows;
    int columns[GHP_DUAL_USED]; /* the dual's column in LP column FIRST_PLAN + c */
    int n_columns;
    int *index; /* scratch of one LP row or column */
    double *entry;
    double z; /* its optimum */
};

static bool master_has_row(const struct master *m, int row)
{
    for (int r = 0; r < m->n_rows; ++r)
        if (m->rows[r] == row) return true;
    return false;
}

/* Writes row k as  z - sum of w value >= 0,  or  over - sum of w bytes >= -1. */
static void master_add_row(struct master *m, int row)
{
    bool limit = is_limit(m->dual, row);
    int r = glp_add_rows(m->lp, 1), n = 0;

    m->rows[m->n_rows++] = row;
    m->index[++n] = limit ? COLUMN_OVER : COLUMN_Z;
    m->entry[n] = 1;
    for (int c = 0; c < m->n_columns; ++c) {
        m->index[++n] = FIRST_PLAN + c;
        m->entry[n] = -value_of(m->dual, row, &m->dual->loads[m->columns[c]]);
    }
    glp_set_row_bnds(m->lp, r, GLP_LO, limit ? -1 : 0, 0);
    glp_set_mat_row(m->lp, r, n, m->index, m->entry);
}

static void master_add_column(struct master *m, int column)
{
    int c = glp_add_cols(m->lp, 1), n = 0;

    m->columns[m->n_columns++] = column;
    m->index[++n] = 1;
    m->entry[n] = 1;
    for (int r = 0; r < m->n_rows; ++r) {
        m->index[++n] = r + 2;
        m->entry[n] = -value_of(m->dual, m->rows[r], &m->dual->loads[column]);
    }
    glp_set_col_bnds(m->lp, c, GLP_LO, 0, 0);
    glp_set_mat_col(m->lp, c, n, m->index, m->entry);
}

static enum ghp_status master_open(struct ghp_dual *dual, const struct ghp_domain *domain,
                                   struct master *m)
{
    int most = GHP_DUAL_ROWS > GHP_DUAL_USED ? GHP_DUAL_ROWS : GHP_DUAL_USED;

    *m = (struct master){.dual = dual};
    m->rows = ghp_alloc(GHP_DUAL_ROWS, sizeof *m->rows);
    m->index = ghp_alloc((size_t)most + 4, sizeof *m->index);
    m->entry = ghp_alloc((size_t)most + 4, sizeof *m->entry);
    if (m->rows == NULL || m->index == NULL || m->entry == NULL) return GHP_NO_MEMORY();
    glp_term_out(GLP_OFF);
    m->lp = glp_create_prob();
    glp_add_rows(m->lp, 1);
    glp_set_row_bnds(m->lp, 1, GLP_FX, 1, 1);
    glp_add_cols(m->lp, 2);
    glp_set_col_bnds(m->lp, COLUMN_Z, GLP_FR, 0, 0);
    glp_set_col_bnds(m->lp, COLUMN_OVER, GLP_LO, 0, 0);
    glp_set_obj_coef(m->lp, COLUMN_Z, 1);
    for (int k = 0; k < dual->n_rows; ++k)
        if (dual->weight[k] > 0) master_add_row(m, k);
    for (int p = dual->n_columns - 1; p >= 0 && m->n_columns < GHP_DUAL_USED / 2; --p)
        if (ghp_domain_has(domain, &dual->choice[(size_t)p * (size_t)dual->in->n_layers]))
            master_add_column(m, p);
    return GHP_OK;
}

static void master_close(struct master *m)
{
    if (m->lp != NULL) glp_delete_prob(m->lp);
    free(m->rows);
    free(m->index);
    free(m->entry);
}

/* Takes out the plans that the optimum does not use, to make room. */
static void master_thin(struct master *m)
{
    int out[GHP_DUAL_USED + 1], n = 0, kept = 0;

    for (int c = 0; c < m->n_columns; ++c) {
        if (glp_get_col_stat(m->lp, FIRST_PLAN + c) == GLP_BS)
            m->columns[kept++] = m->columns[c];
        else
            out[++n] = FIRST_PLAN + c;
    }
    if (n > 0) glp_del_cols(m->lp, n, out);
    m->n_columns = kept;
}

static bool master_optimise(struct master *m)
{
    glp_smcp how;

    glp_init_smcp(&how);
    how.msg_lev = GLP_MSG_OFF;
    how.meth = GLP_DUALP;
    glp_set_obj_coef(m->lp, COLUMN_OVER, m->dual->penalty);
    if (glp_simplex(m->lp, &how) != 0 || glp_get_status(m->lp) != GLP_OPT) {
        glp_std_basis(m->lp);
        how.meth = GLP_PRIMAL;
        if (glp_simplex(m->lp, &how) != 0 || glp_get_status(m->lp) != GLP_OPT) return false;
    }
    m->z = glp_get_obj_val(m->lp);
    return true;
}

/* Adds the rows that the optimum's mean plan breaks; whether there were any. */
static bool master_separate(struct master *m)
{
    struct ghp_dual *dual = m->dual;
    double z = glp_get_col_prim(m->lp, COLUMN_Z), over = glp_get_col_prim(m->lp, COLUMN_OVER);
    struct ghp_row rows[GHP_ROW_VARIANTS + 1];
    double value[GHP_ROW_VARIANTS + 1];
    int n = 0, k;
    bool added = false;

    ghp_load_clear(dual->in, &dual->mean);
    for (int c = 0; c < m->n_columns; ++c) {
        double w = glp_get_col_prim(m->lp, FIRST_PLAN + c);

        if (w > 0) ghp_load_add(dual->in, &dual->mean, &dual->loads[m->columns[c]], w);
    }
    for (int v = 0; v < dual->charges.n && !dual->goal.bytes; ++v, ++n)
        value[n] =
            ghp_row_longest(dual->in, &dual->charges, v, &dual->mean, &rows[n]) / dual->goal.scale -
            z;
    if (dual->goal.bytes) {
        value[n] = ghp_row_fullest(dual->in, &dual->mean, &rows[n]) / dual->goal.scale - z;
        ++n;
    } else if (dual->goal.limit_bytes > 0) {
        value[n] =
            ghp_row_fullest(dual->in, &dual->mean, &rows[n]) / dual->goal.limit_bytes - 1 - over;
        ++n;
    }
    for (int r = 0; r < n; ++r) {
        if (value[r] < 1e-9 || (k = find_row(dual, &rows[r])) < 0 || master_has_row(m, k)) continue;
        master_add_row(m, k);
        added = true;
    }
    return added;
}

/* Optimum over all rows; its duals in trial[] (time rows sum to one). */
static bool master_solve(struct master *m)
{
    struct ghp_dual *dual = m->dual;
    double sum = 0;

    for (int round = 0; round < 50; ++round) {
        if (!master_optimise(m)) return false;
        if (!master_separate(m)) break;
    }
    for (int k = 0; k < dual->n_rows; ++k)
        dual->trial[k] = 0;
    for (int r = 0; r < m->n_rows; ++r) {
        double d = fmax(0, glp_get_row_dual(m->lp, r + 2));

        dual->trial[m->rows[r]] = d;
        if (!is_limit(dual, m->rows[r])) sum += d;
    }
    if (!(sum > 1e-6)) return false;
    for (int k = 0; k < dual->n_rows; ++k)
        if (!is_limit(dual, k)) dual->trial[k] /= sum;
    return true;
}

/* ---- bounds ---- */

/* The least plan under the given relative weights: dual->plan, and its bound. */
static double sweep(struct ghp_dual *dual, const struct ghp_domain *domain, const double *weight,
                    double *absolute, bool marginals)
{
    double constant = 0, least;

    for (int k = 0; k < dual->n_rows; ++k) {
        absolute[k] = weight[k] / unit_of(dual, k);
        if (is_limit(dual, k)) constant += weight[k];
    }
    ghp_weights_set(dual->in, &dual->charges, dual->rows, absolute, dual->n_rows, &dual->weights);
    ghp_weights_charge(&dual->weights, domain, &dual->frontier);
    least = marginals ? ghp_frontier_marginals(&dual->frontier)
                      : ghp_frontier_solve(&dual->frontier, dual->plan);
    return least - constant;
}

/* Weights before anything is known: all on one row that a plan of the domain may meet. */
static void first_weights(struct ghp_dual *dual)
{
    struct ghp_row all = {.variant = 0,
                          .from_slot = 0,
                          .to_slot = dual->in->n_slots - 1,
                          .from_item = 0,
                          .to_item = -1,
                          .waiter = -1};
    double sum = 0;

    for (int k = 0; k < dual->n_rows; ++k)
        if (!is_limit(dual, k)) sum += dual->weight[k];
    if (sum > 0.5) return;
    if (dual->goal.bytes)
        all = (struct ghp_row){.variant = -1, .to_slot = -1, .to_item = -1, .waiter = -1};
    dual->weight[find_row(dual, &all)] = 1;
}

/* How much of the mean plan each choice has. */
static void note_shares(const struct master *m)
{
    struct ghp_dual *dual = m->dual;
    const struct ghp_instance *in = dual->in;

    memset(dual->share, 0, (size_t)in->first_choice[in->n_layers] * sizeof *dual->share);
    for (int c = 0; c < m->n_columns; ++c) {
        const int *choice = &dual->choice[(size_t)m->columns[c] * (size_t)in->n_layers];
        double w = glp_get_col_prim(m->lp, FIRST_PLAN + c);

        for (int v = 0; v < in->n_layers && w > 0; ++v)
            dual->share[in->first_choice[v] + choice[v]] += w;
    }
}

/* What one call of ghp_dual_bound carries from round to round. */
struct rounds {
    const struct ghp_domain *domain;
    double *absolute, *best_weight, *mixed;
    double best;
};

static enum ghp_status run_rounds(struct ghp_dual *dual, struct master *m, struct rounds *r,
                                  double *cutoff, int rounds)
{
    for (int round = 0; round < rounds; ++round) {
        bool smooth = round > 0 && round + 1 < rounds && m->z - r->best > 1e-3;

        for (int k = 0; k < dual->n_rows; ++k)
            r->mixed[k] = round == 0 ? dual->weight[k]
                          : smooth   ? (dual->trial[k] + r->best_weight[k]) / 2
                                     : dual->trial[k];
        double value = sweep(dual, r->domain, r->mixed, r->absolute, false);
        if (value > r->best) {
            r->best = value;
            memcpy(r->best_weight, r->mixed, (size_t)dual->n_rows * sizeof *r->mixed);
            memset(r->best_weight + dual->n_rows, 0,
                   (size_t)(GHP_DUAL_ROWS - dual->n_rows) * sizeof *r->mixed);
        }
        if (!(value < INFINITY) || r->best >= *cutoff) return GHP_OK;
        GHP_TRY(ghp_dual_add(dual, dual->plan));
        if (dual->found != NULL)
            GHP_TRY(
                dual->found(dual->context, dual->plan, &dual->loads[dual->n_columns - 1], cutoff));
        if (r->best >= *cutoff) return GHP_OK;
        if (m->n_columns == GHP_DUAL_USED) master_thin(m);
        if (m->n_columns == GHP_DUAL_USED) return GHP_OK;
        master_add_column(m, dual->n_columns - 1);
        if (!master_solve(m)) return GHP_OK;
        if (m->z - r->best > 1e-7 * fabs(m->z) &&
            !(*cutoff < INFINITY && m->z - r->best < 1e-3 * (*cutoff - m->z)))
            continue;
        if (!(glp_get_col_prim(m->lp, COLUMN_OVER) > 1e-9) || dual->penalty >= most_penalty)
            return GHP_OK;
        dual->penalty *= 4;
        if (!master_solve(m)) return GHP_OK;
    }
    return GHP_OK;
}

enum ghp_status ghp_dual_bound(struct ghp_dual *dual, const struct ghp_domain *domain,
                               double *cutoff, int rounds, double *bound)
{
    struct master m = {0};
    struct rounds r = {.domain = domain, .best = -INFINITY};
    enum ghp_status status;
    bool fits;

    *bound = -INFINITY;
    GHP_TRY(ghp_frontier_set(&dual->frontier, domain, &fits));
    if (!fits) return GHP_OK;
    first_weights(dual);
    r.absolute = ghp_alloc(3 * GHP_DUAL_ROWS, sizeof *r.absolute);
    if (r.absolute == NULL) return GHP_NO_MEMORY();
    r.best_weight = r.absolute + GHP_DUAL_ROWS;
    r.mixed = r.best_weight + GHP_DUAL_ROWS;
    GHP_TRY_GOTO(status, master_open(dual, domain, &m), done);
    m.z = INFINITY;
    GHP_TRY_GOTO(status, run_rounds(dual, &m, &r, cutoff, rounds), done);
    if (r.best > -INFINITY)
        memcpy(dual->weight, r.best_weight, (size_t)dual->n_rows * sizeof *dual->weight);
    *bound = r.best;
done:
    if (m.lp != NULL) note_shares(&m);
    master_close(&m);
    free(r.absolute);
    return status;
}

enum ghp_status ghp_dual_narrow(struct ghp_dual *dual, struct ghp_domain *domain, double cutoff,
                                int *removed)
{
    const struct ghp_instance *in = dual->in;
    const struct ghp_frontier *f = &dual->frontier;
    double constant = 0;
    bool fits;

    *removed = 0;
    GHP_TRY(ghp_frontier_set(&dual->frontier, domain, &fits));
    if (!fits) return GHP_OK;
    sweep(dual, domain, dual->weight, dual->trial, true);
    for (int k = 0; k < dual->n_rows; ++k)
        if (is_limit(dual, k)) constant += dual->weight[k];
    for (int v = 0; v < in->n_layers; ++v)
        for (int k = 0; k < f->n_active[v]; ++k) {
            if (f->node_least[in->first_choice[v] + k] - constant < cutoff) continue;
            ghp_domain_drop(domain, v, f->active[in->first_choice[v] + k]);
            ++*removed;
        }
    for (int e = 0; e < in->n_edges; ++e) {
        int from = in->edges[e].from, to = in->edges[e].to;

        for (int a = 0; a < f->n_active[from]; ++a)
            for (int b = 0; b < f->n_active[to]; ++b)
                if (f->edge_least[in->first_pair[e] + a * f->n_active[to] + b] - constant >= cutoff)
                    domain->pair[in->first_pair[e] +
                                 f->active[in->first_choice[from] + a] * in->n_choices[to] +
                                 f->active[in->first_choice[to] + b]] = 0;
    }
    return GHP_OK;
}

struct listing {
    struct ghp_dual *dual;
    double constant;
};

static enum ghp_status on_listed(void *context, const int *choice, double *below)
{
    struct listing *l = context;
    double cutoff = *below - l->constant;

    ghp_load_set(l->dual->in, choice, &l->dual->mean);
    GHP_TRY(l->dual->found(l->dual->context, choice, &l->dual->mean, &cutoff));
    *below = cutoff + l->constant;
    return GHP_OK;
}

enum ghp_status ghp_dual_list(struct ghp_dual *dual, double cutoff, int most, bool *all)
{
    struct listing l = {.dual = dual};
    struct ghp_frontier_visitor visitor = {.visit = on_listed, .context = &l};

    for (int k = 0; k < dual->n_rows; ++k)
        if (is_limit(dual, k)) l.constant += dual->weight[k];
    return ghp_frontier_list(&dual->frontier, cutoff + l.constant, most, &visitor, all);
}
