/* planner/search/branch_pick.c - which layer a node is split by; see branch_private.h. */
#include "planner/search/branch_private.h"

#include <math.h>

static const double alike = 0.9; /* of the most divided layer's: layers divided as much as it */

/* How much of the mean plan a layer has of other choices than the one that it has most of. */
static double divided(const struct ghp_dual *dual, const struct ghp_domain *domain, int v,
                      int *choice)
{
    const struct ghp_instance *in = dual->in;
    const double *part = &dual->mean_part[in->first_choice[v]];
    int top = -1;

    for (int i = 0; i < in->n_choices[v]; i++)
        if (domain->choice[in->first_choice[v] + i] && (top < 0 || part[i] > part[top])) top = i;
    *choice = top;
    return ghp_domain_count(domain, v) < 2 ? 0 : 1 - part[top];
}

/* The layer to split, and the choice it has most of: of those that the mean plan divides most the one in the middle;
 * -1: the mean is one plan. (A mean of plans that treat all of a row of equal blocks alike pays for no change between
 * them. On both ways from its middle it does.) */
static int pick_divided(const struct ghp_dual *dual, const struct ghp_domain *domain, int *choice)
{
    const int n = dual->in->n_layers;
    double most = 1e-6;
    int left = 0;

    for (int v = 0; v < n; v++)
        most = fmax(most, divided(dual, domain, v, choice));
    for (int v = 0; v < n; v++)
        left += divided(dual, domain, v, choice) >= alike * most;
    left /= 2;
    for (int v = 0; v < n; v++)
        if (divided(dual, domain, v, choice) >= alike * most && left-- == 0) return v;
    return -1;
}

/* The layer whose second choice is dearest, and its first; -1: every layer has one choice. */
static int pick_decided(const struct ghp_dual *dual, const struct ghp_domain *domain, int *choice)
{
    const struct ghp_instance *in = dual->in;
    const struct ghp_frontier *f = &dual->frontier;
    double dearest = -INFINITY;
    int layer = -1;

    for (int v = 0; v < in->n_layers; v++) {
        const double *least = &f->node_least[in->first_choice[v]];
        const int *active = &f->active[in->first_choice[v]];
        int top = -1, next = -1;

        for (int k = 0; k < f->n_active[v]; k++) {
            if (!domain->choice[in->first_choice[v] + active[k]]) continue;
            if (top < 0 || least[k] < least[top]) {
                next = top;
                top = k;
            } else if (next < 0 || least[k] < least[next]) {
                next = k;
            }
        }
        if (next < 0 || least[next] <= dearest) continue;
        dearest = least[next];
        layer = v;
        *choice = active[top];
    }
    return layer;
}

int ghp_branch_pick(const struct ghp_dual *dual, const struct ghp_domain *domain, int *choice)
{
    int layer = pick_divided(dual, domain, choice);

    return layer >= 0 ? layer : pick_decided(dual, domain, choice);
}
