/* planner/search/dual_master.c - see dual_private.h; the linear program is GLPK's. */
#include "planner/search/dual_private.h"

#include <glpk.h>
#include <math.h>
#include <stdlib.h>

int ghp_dual_add_constraint(struct ghp_dual *dual, const struct ghp_constraint *constraint)
{
    for (int k = 0; k < dual->n_constraints; k++)
        if (ghp_constraint_same(&dual->constraints[k], constraint)) return k;
    if (dual->n_constraints == GHP_DUAL_CONSTRAINTS) return -1;
    dual->constraints[dual->n_constraints] = *constraint;
    dual->weight[dual->n_constraints] = 0;
    return dual->n_constraints++;
}

enum { COLUMN_Z = 1, COLUMN_OVER = 2, FIRST_PLAN = 3 };

static double value_of(const struct ghp_dual *dual, int constraint,
                       const struct ghp_accumulated_cost *accumulated)
{
    return ghp_constraint_value(&dual->coefficients, &dual->constraints[constraint], dual->in,
                                accumulated) /
           ghp_dual_unit(dual, constraint);
}

static bool master_has_constraint(const struct ghp_master *m, int constraint)
{
    for (int r = 0; r < m->n_constraints; r++)
        if (m->constraints[r] == constraint) return true;
    return false;
}

/* Writes constraint k as  z - sum of w value >= 0,  or  over - sum of w bytes >= -1. */
static void master_add_constraint(struct ghp_master *m, int constraint)
{
    bool limit = ghp_dual_is_limit(m->dual, constraint);
    int r = glp_add_rows(m->lp, 1), n = 0;

    m->constraints[m->n_constraints++] = constraint;
    m->index[++n] = limit ? COLUMN_OVER : COLUMN_Z;
    m->entry[n] = 1;
    for (int c = 0; c < m->n_columns; c++) {
        m->index[++n] = FIRST_PLAN + c;
        m->entry[n] = -value_of(m->dual, constraint, &m->dual->accumulated[m->columns[c]]);
    }
    glp_set_row_bnds(m->lp, r, GLP_LO, limit ? -1 : 0, 0);
    glp_set_mat_row(m->lp, r, n, m->index, m->entry);
}

void ghp_master_add(struct ghp_master *m, int column)
{
    int c = glp_add_cols(m->lp, 1), n = 0;

    m->columns[m->n_columns++] = column;
    m->index[++n] = 1;
    m->entry[n] = 1;
    for (int r = 0; r < m->n_constraints; r++) {
        m->index[++n] = r + 2;
        m->entry[n] = -value_of(m->dual, m->constraints[r], &m->dual->accumulated[column]);
    }
    glp_set_col_bnds(m->lp, c, GLP_LO, 0, 0);
    glp_set_mat_col(m->lp, c, n, m->index, m->entry);
}

enum ghp_status ghp_master_open(struct ghp_dual *dual, const struct ghp_domain *domain,
                                struct ghp_master *m)
{
    int most = GHP_DUAL_CONSTRAINTS > GHP_DUAL_USED ? GHP_DUAL_CONSTRAINTS : GHP_DUAL_USED;

    *m = (struct ghp_master){.dual = dual};
    m->constraints = ghp_alloc(GHP_DUAL_CONSTRAINTS, sizeof *m->constraints);
    m->index = ghp_alloc((size_t)most + 4, sizeof *m->index);
    m->entry = ghp_alloc((size_t)most + 4, sizeof *m->entry);
    if (m->constraints == NULL || m->index == NULL || m->entry == NULL) return GHP_NO_MEMORY();
    glp_term_out(GLP_OFF);
    m->lp = glp_create_prob();
    glp_add_rows(m->lp, 1);
    glp_set_row_bnds(m->lp, 1, GLP_FX, 1, 1);
    glp_add_cols(m->lp, 2);
    glp_set_col_bnds(m->lp, COLUMN_Z, GLP_FR, 0, 0);
    glp_set_col_bnds(m->lp, COLUMN_OVER, GLP_LO, 0, 0);
    glp_set_obj_coef(m->lp, COLUMN_Z, 1);
    for (int k = 0; k < dual->n_constraints; k++)
        if (dual->weight[k] > 0) master_add_constraint(m, k);
    for (int p = dual->n_columns - 1; p >= 0 && m->n_columns < GHP_DUAL_USED / 2; --p)
        if (ghp_domain_has_still(domain, &dual->choice[(size_t)p * (size_t)dual->in->n_layers],
                                 &dual->excluded[p]))
            ghp_master_add(m, p);
    return GHP_OK;
}

void ghp_master_close(struct ghp_master *m)
{
    if (m->lp != NULL) glp_delete_prob(m->lp);
    free(m->constraints);
    free(m->index);
    free(m->entry);
}

void ghp_master_thin(struct ghp_master *m)
{
    int out[GHP_DUAL_USED + 1], n = 0, kept = 0;

    for (int c = 0; c < m->n_columns; c++) {
        if (glp_get_col_stat(m->lp, FIRST_PLAN + c) == GLP_BS)
            m->columns[kept++] = m->columns[c];
        else
            out[++n] = FIRST_PLAN + c;
    }
    if (n > 0) glp_del_cols(m->lp, n, out);
    m->n_columns = kept;
}

static bool master_optimise(struct ghp_master *m)
{
    glp_smcp params;

    glp_init_smcp(&params);
    params.msg_lev = GLP_MSG_OFF;
    params.meth = GLP_DUALP;
    glp_set_obj_coef(m->lp, COLUMN_OVER, m->dual->penalty);
    if (glp_simplex(m->lp, &params) != 0 || glp_get_status(m->lp) != GLP_OPT) {
        glp_std_basis(m->lp);
        params.meth = GLP_PRIMAL;
        if (glp_simplex(m->lp, &params) != 0 || glp_get_status(m->lp) != GLP_OPT) return false;
    }
    m->z = glp_get_obj_val(m->lp);
    return true;
}

/* Adds the constraints that the optimum's mean plan breaks; whether there were any. */
static bool master_separate(struct ghp_master *m)
{
    struct ghp_dual *dual = m->dual;
    double z = glp_get_col_prim(m->lp, COLUMN_Z), over = glp_get_col_prim(m->lp, COLUMN_OVER);
    struct ghp_constraint constraints[GHP_CONSTRAINT_VARIANTS + 1];
    double value[GHP_CONSTRAINT_VARIANTS + 1];
    int n = 0, k;
    bool added = false;

    ghp_accumulated_cost_clear(dual->in, &dual->mean);
    for (int c = 0; c < m->n_columns; c++) {
        double w = glp_get_col_prim(m->lp, FIRST_PLAN + c);

        if (w > 0)
            ghp_accumulated_cost_add(dual->in, &dual->mean, &dual->accumulated[m->columns[c]], w);
    }
    for (int v = 0; v < dual->coefficients.n && !dual->goal.bytes; ++v, n++)
        value[n] =
            ghp_constraint_longest(dual->in, &dual->coefficients, v, &dual->mean, &constraints[n]) /
                dual->goal.scale -
            z;
    if (dual->goal.bytes) {
        value[n] =
            ghp_constraint_fullest(dual->in, &dual->mean, &constraints[n]) / dual->goal.scale - z;
        n++;
    } else if (dual->goal.limit_bytes > 0) {
        value[n] = ghp_constraint_fullest(dual->in, &dual->mean, &constraints[n]) /
                       dual->goal.limit_bytes -
                   1 - over;
        n++;
    }
    for (int r = 0; r < n; r++) {
        if (value[r] < 1e-9 || (k = ghp_dual_add_constraint(dual, &constraints[r])) < 0 ||
            master_has_constraint(m, k))
            continue;
        master_add_constraint(m, k);
        added = true;
    }
    return added;
}

bool ghp_master_solve(struct ghp_master *m)
{
    struct ghp_dual *dual = m->dual;
    double sum = 0;

    for (int round = 0; round < 50; round++) {
        if (!master_optimise(m)) return false;
        if (!master_separate(m)) break;
    }
    for (int k = 0; k < dual->n_constraints; k++)
        dual->trial[k] = 0;
    for (int r = 0; r < m->n_constraints; r++) {
        double d = fmax(0, glp_get_row_dual(m->lp, r + 2));

        dual->trial[m->constraints[r]] = d;
        if (!ghp_dual_is_limit(dual, m->constraints[r])) sum += d;
    }
    if (!(sum > 1e-6)) return false;
    for (int k = 0; k < dual->n_constraints; k++)
        if (!ghp_dual_is_limit(dual, k)) dual->trial[k] /= sum;
    return true;
}

double ghp_master_weight(const struct ghp_master *m, int c)
{
    return glp_get_col_prim(m->lp, FIRST_PLAN + c);
}

double ghp_master_over(const struct ghp_master *m)
{
    return glp_get_col_prim(m->lp, COLUMN_OVER);
}

bool ghp_solver_begin(void)
{
    return glp_init_env() == 1;
}

void ghp_solver_end(bool used_before)
{
    if (!used_before) glp_free_env();
}
