/* planner/build/certificate.c - what is proven of a plan: step, bound, gap, and how far the search got, in words. */
#include "planner/build/build_private.h"

#include "core/base/log.h"

#include <math.h>
#include <stdio.h>

/* What is proven, over all that was searched. */
struct proof {
    double bound_s, own_s; /* own_s: of the plan, before buckets were tuned */
    bool closed;
    int64_t plans, nodes;
};

static struct proof proof_of(const struct ghp_making *m)
{
    const struct ghp_search_result *r = &m->own;
    struct proof p = {.bound_s = r->bound_s,
                      .closed = r->closed,
                      .plans = r->plans + m->outer.plans,
                      .nodes = r->nodes + m->outer.nodes};

    p.own_s = m->staged ? m->outer.step_s : r->kept[0].step_s;
    if (!m->searches_outer || m->trial != GHP_TRIAL_NONE) return p;
    if (!r->feasible) p.bound_s = INFINITY;
    p.bound_s = fmin(p.bound_s, m->outer.bound_s);
    if (m->staged && m->outer.closed && p.closed && !(m->wishes->gap > 0)) p.bound_s = p.own_s;
    p.closed = p.closed && m->outer.closed;
    return p;
}

/* How far the search got, in words. */
static void status_text(const struct ghp_making *m, const struct proof *p, char *text, size_t n)
{
    const bool tuned = m->plan->bucket_bytes != m->how.bucket_bytes;
    const char *reached = !p->closed           ? "time limit"
                          : m->wishes->gap > 0 ? "within the gap"
                                               : "optimal";

    if (m->trial == GHP_TRIAL_UNEVEN)
        snprintf(text, n, "shares by the workers' speeds, by trial; with equal shares %s", reached);
    else if (m->trial == GHP_TRIAL_REMADE)
        snprintf(text, n, "layers made again by trial; with all layers kept %s",
                 m->kept_fits ? reached : "nothing fits");
    else if (tuned && p->closed)
        snprintf(text, n, "%s with each layer reduced alone; bucket size by trial", reached);
    else if (tuned)
        snprintf(text, n, "%s, gap %.2g with each layer reduced alone; bucket size by trial",
                 reached, (p->own_s - p->bound_s) / p->own_s);
    else
        snprintf(text, n, "%s", reached);
}

enum ghp_status ghp_making_certify(struct ghp_making *m, double fastest_s)
{
    struct ghp_certificate *c = &m->plan->certificate;
    struct proof p = proof_of(m);
    char status[128];

    c->step_s = fastest_s;
    c->bound_s = fmin(p.bound_s, fastest_s);
    c->gap = fmax(0, (c->step_s - c->bound_s) / c->step_s);
    if (c->gap <= 2 * GHP_BRANCH_SAME) {
        c->bound_s = c->step_s;
        c->gap = 0;
    }
    status_text(m, &p, status, sizeof status);
    c->plans = p.plans;
    c->nodes = p.nodes;
    c->seconds = ghp_now_s() - m->began_s;
    return ghp_making_text(&c->status, status);
}

enum ghp_status ghp_making_note_shared(struct ghp_making *m)
{
    struct ghp_certificate *c = &m->plan->certificate;
    char text[256];

    if (!m->outer.found || m->outer.step_s >= m->plan->predicted.step_s) return GHP_OK;
    c->step_s = m->outer.step_s;
    c->bound_s = fmin(c->bound_s, c->step_s);
    c->gap = (c->step_s - c->bound_s) / c->step_s;
    if (c->preferred != NULL) return GHP_OK;
    snprintf(text, sizeof text,
             "shared roles: simpler, and the margin of %.3g ms by stages or micro-batches is "
             "within the prediction's error",
             1e3 * (m->plan->predicted.step_s - c->step_s));
    return ghp_making_text(&c->preferred, text);
}
