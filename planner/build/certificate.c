/* planner/build/certificate.c - what is proven of a plan: step, bound, gap, and how far the search got, in words.
 *
 * The three numbers are of one search. What is tried on top of it (bucket sizes, unequal shares, layers recomputed)
 * makes the plan faster than the certificate's step, and is not in its bound: that bounds plans without. */
#include "planner/build/build_private.h"

#include "core/base/clock.h"
#include "core/base/log.h"

#include <math.h>
#include <stdio.h>

struct ghp_proven ghp_build_proof(const struct ghp_build_context *m)
{
    const struct ghp_search_result *r = &m->own;
    struct ghp_proven p = {.step_s = r->feasible ? r->kept[0].step_s : INFINITY,
                           .bound_s = r->bound_s,
                           .proven = r->proven};

    if (m->trial != GHP_TRIAL_NONE) return m->before_trial;
    if (m->staged) p.step_s = m->outer.step_s;
    if (!m->searches_outer) return p;
    if (!r->feasible) p.bound_s = INFINITY;
    p.bound_s = fmin(p.bound_s, m->outer.bound_s);
    p.proven = p.proven && m->outer.proven;
    if (m->staged && p.proven && !(m->request->gap > 0)) p.bound_s = p.step_s;
    return p;
}

/* Whether a bucket size was tried on top of the search. */
static bool is_tuned(const struct ghp_build_context *m)
{
    return m->plan->bucket_bytes != m->how.bucket_bytes;
}

/* One step, one bound, one gap, of one and the same search. */
static void set_numbers(struct ghp_certificate *c, double step_s, double bound_s)
{
    c->step_s = step_s;
    c->bound_s = fmin(bound_s, step_s);
    c->gap = (c->step_s - c->bound_s) / c->step_s;
    if (c->gap > 2 * GHP_BRANCH_SAME) return;
    c->bound_s = c->step_s;
    c->gap = 0;
}

/* How far the search got, by the gap that is left. */
static enum ghp_proof proof_of(const struct ghp_build_context *m, const struct ghp_proven *p)
{
    static const double rounding = 1e-12;

    if (!isfinite(p->step_s)) return GHP_PROOF_NOTHING_FITS;
    if (m->plan->certificate.gap > m->request->gap + rounding) return GHP_PROOF_TIME_LIMIT;
    return m->request->gap > 0 ? GHP_PROOF_WITHIN_GAP : GHP_PROOF_OPTIMAL;
}

enum ghp_status ghp_build_certify(struct ghp_build_context *m)
{
    struct ghp_certificate *c = &m->plan->certificate;
    struct ghp_proven p = ghp_build_proof(m);
    bool searched = !is_tuned(m) && m->plan->shares == NULL && m->plan->recompute == NULL;

    if (!isfinite(p.step_s)) /* found by trial alone: no bound is known */
        set_numbers(c, m->plan->predicted.step_s, 0);
    else /* a plan of the search's own kind may be faster than those it met, before the time limit came */
        set_numbers(c, searched ? fmin(p.step_s, m->plan->predicted.step_s) : p.step_s, p.bound_s);
    c->proof = proof_of(m, &p);
    c->trial = m->trial == GHP_TRIAL_NONE && is_tuned(m) ? GHP_TRIAL_BUCKETS : m->trial;
    c->plans = m->own.plans + m->outer.plans;
    c->nodes = m->own.nodes + m->outer.nodes;
    c->seconds = ghp_now_s() - m->began_s;
    return GHP_OK;
}

enum ghp_status ghp_build_note_shared(struct ghp_build_context *m)
{
    struct ghp_certificate *c = &m->plan->certificate;
    char text[256];

    if (!m->outer.found || m->outer.step_s >= m->plan->predicted.step_s) return GHP_OK;
    set_numbers(c, fmin(c->step_s, m->outer.step_s), c->bound_s);
    if (c->preferred != NULL) return GHP_OK;
    snprintf(text, sizeof text,
             "one stage: simpler, and the margin of %.3g ms by stages or micro-batches is "
             "within the prediction's error",
             1e3 * (m->plan->predicted.step_s - m->outer.step_s));
    return ghp_build_set_text(&c->preferred, text);
}
