/* planner/sweep/sensitivity.c - walks, halves and plans anew. */
#include "planner/sweep/sensitivity.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/plan/profile_edit.h"
#include "core/base/units.h"
#include "planner/alternatives/quantity.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLINGS = 10, NAMED = 3, SIDES = 2, TEXT_BYTES = 512 };

static const double precise = 1e-3;
static const double telling_s = 2; /* for what there is instead of a plan that does not fit */

struct probing {
    const struct ghp_wishes *wishes;
    const struct ghp_plan *plan;
    enum ghp_quantity quantity;
    double deadline_s;       /* of the side */
    char beyond[TEXT_BYTES]; /* what the last probe that the plan lost would have instead */
};

/* ---- one value ---- */

static void note_difference(char *text, size_t *used, const char *fmt, const char *name,
                            struct ghp_split split)
{
    char word[64];

    ghp_split_text(split, word, sizeof word);
    if (*used < TEXT_BYTES)
        *used += (size_t)snprintf(text + *used, TEXT_BYTES - *used, fmt, *used > 0 ? ", " : "",
                                  name, word);
}

/* What another plan does otherwise: its first layers with weights, or else any layers, and its buckets. */
static void describe(const struct ghp_plan *plan, const struct ghp_plan *other, char *text)
{
    const struct ghp_model *model = &plan->model;
    size_t used = 0;
    int named = 0, all = 0;
    char size[32];

    text[0] = '\0';
    for (int pass = 0; pass < 2 && named == 0; ++pass)
        for (int v = 0; v < model->n_layers; ++v) {
            if (ghp_split_same(plan->splits[v], other->splits[v])) continue;
            if (ghp_op_is_weighted(model->layers[v].op) != (pass == 0)) continue;
            if (named < NAMED)
                note_difference(text, &used, "%s%s %s", model->layers[v].name, other->splits[v]);
            ++named;
        }
    for (int v = 0; v < model->n_layers; ++v)
        all += !ghp_split_same(plan->splits[v], other->splits[v]);
    if (all > NAMED && used < TEXT_BYTES)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, " (%d layers in all)", all);
    if (plan->bucket_bytes != other->bucket_bytes && used < TEXT_BYTES)
        snprintf(text + used, TEXT_BYTES - used, "%sbuckets of %s", used > 0 ? "; " : "",
                 ghp_bytes_text((double)other->bucket_bytes, size, sizeof size));
}

/* The plan's own splits and buckets under other wishes. */
static enum ghp_status predict_own(const struct ghp_plan *plan, const struct ghp_wishes *wishes,
                                   struct ghp_prediction *predicted)
{
    struct ghp_lowering how = ghp_plan_lowering(plan, wishes->profile);

    how.extent = wishes->extent;
    return ghp_plan_predict(&how, plan->splits, wishes->profile, predicted);
}

/* Plans anew by these wishes and notes what would be done otherwise. */
static enum ghp_status plan_anew(struct probing *p, const struct ghp_wishes *wishes, double *step_s)
{
    struct ghp_plan other;
    enum ghp_status status = ghp_make_plan(wishes, &other);

    *step_s = INFINITY;
    snprintf(p->beyond, sizeof p->beyond, "no plan that fits the memory is found");
    if (status == GHP_ERR_INFEASIBLE) return GHP_OK;
    if (status != GHP_OK) return status;
    *step_s = other.predicted.step_s;
    describe(p->plan, &other, p->beyond);
    ghp_plan_release(&other);
    return GHP_OK;
}

/* Whether the plan is as good by these wishes as one that is made for them.  Where it does not fit it is not, whatever
 * else there is: that is looked for only where it has to be `told`. */
static enum ghp_status compare(struct probing *p, struct ghp_wishes *wishes, bool told, bool *stays)
{
    double tolerance = fmax(p->plan->certificate.gap, 2 * GHP_BRANCH_SAME), step_s;
    struct ghp_prediction own;
    bool fits;

    GHP_TRY(predict_own(p->plan, wishes, &own));
    fits = wishes->memory_bytes == 0 || own.peak_bytes <= wishes->memory_bytes;
    *stays = false;
    p->beyond[0] = '\0';
    if (!fits && !told) return GHP_OK;
    if (!fits) wishes->time_limit_s = fmin(wishes->time_limit_s, telling_s);
    GHP_TRY(plan_anew(p, wishes, &step_s));
    *stays = fits && own.step_s <= step_s * (1 + tolerance);
    return GHP_OK;
}

/* Whether the plan stays where the quantity has this value. */
static enum ghp_status probe_and_tell(struct probing *p, double value, bool told, bool *stays)
{
    struct ghp_wishes wishes = *p->wishes;
    struct ghp_profile scaled = {0};
    enum ghp_status status;

    wishes.decision_only = true;
    wishes.time_limit_s = fmax(0.01, fmin(wishes.time_limit_s, p->deadline_s - ghp_now_s()));
    if (p->quantity == GHP_QUANTITY_BATCH) {
        wishes.extent.global_batch = llround(value);
        return compare(p, &wishes, told, stays);
    }
    if (p->quantity == GHP_QUANTITY_MEMORY) {
        wishes.memory_bytes = llround(value);
        return compare(p, &wishes, told, stays);
    }
    GHP_TRY(ghp_profile_copy(p->wishes->profile, &scaled));
    wishes.profile = &scaled;
    status = ghp_quantity_scale_profile(&scaled, p->quantity,
                                        value / ghp_quantity_nominal(p->plan, p->quantity));
    if (status == GHP_OK) status = compare(p, &wishes, told, stays);
    ghp_profile_release(&scaled);
    return status;
}

static enum ghp_status probe(struct probing *p, double value, bool *stays)
{
    return probe_and_tell(p, value, false, stays);
}

/* ---- one side ---- */

/* A value that the quantity can have: batches are multiples of the workers. */
static double legal(const struct probing *p, double value)
{
    double workers = p->plan->extent.workers;

    if (p->quantity == GHP_QUANTITY_BATCH) return fmax(1, round(value / workers)) * workers;
    return p->quantity == GHP_QUANTITY_MEMORY ? round(value) : value;
}

/* Whether nothing worth knowing lies between two values. */
static bool is_narrow(const struct probing *p, double a, double b)
{
    double mid = legal(p, sqrt(a * b));

    return fabs(a - b) <= precise * fmin(a, b) || !((mid > a && mid < b) || (mid > b && mid < a));
}

static bool out_of_time(const struct probing *p)
{
    return ghp_now_s() > p->deadline_s;
}

static enum ghp_status take_text(const char *text, char **out)
{
    *out = strdup(text);
    return *out == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* Halves between a value where the plan stays and one where it does not; the text says what it does not stay for. */
static enum ghp_status halve(struct probing *p, double inside, double outside, double *end,
                             char **text)
{
    char note[TEXT_BYTES + 64], lost[TEXT_BYTES]; /* what there is instead at `outside` */
    bool stays;

    snprintf(lost, sizeof lost, "%s", p->beyond);

    while (!is_narrow(p, inside, outside)) {
        double mid = legal(p, sqrt(inside * outside));

        if (out_of_time(p)) {
            *end = inside;
            snprintf(note, sizeof note, "%s, at %.4g; between, the time limit came first",
                     lost[0] != '\0' ? lost : "it does not fit the memory", outside);
            return take_text(note, text);
        }
        GHP_TRY(probe(p, mid, &stays));
        *(stays ? &inside : &outside) = mid;
        if (!stays) snprintf(lost, sizeof lost, "%s", p->beyond);
    }
    *end = inside;
    if (lost[0] != '\0') return take_text(lost, text);
    GHP_TRY(probe_and_tell(p, outside, true, &stays));
    return take_text(p->beyond, text);
}

/* The last value at which the plan stays in one direction and what comes behind it; NAN: it stays all the way. */
static enum ghp_status find_side(struct probing *p, bool up, double *end, char **text)
{
    const double nominal = ghp_quantity_nominal(p->plan, p->quantity);
    double inside = nominal;

    *end = NAN;
    for (int k = 1; k <= DOUBLINGS; ++k) {
        double factor = k < DOUBLINGS ? ldexp(1, k) : GHP_QUANTITY_FACTOR;
        double value = legal(p, up ? nominal * factor : nominal / factor);
        bool stays;

        if (!(up ? value > inside : value < inside)) return GHP_OK; /* one sample a worker */
        if (out_of_time(p)) {
            *end = inside;
            return take_text("not known: the time limit came first", text);
        }
        GHP_TRY(probe(p, value, &stays));
        if (!stays) return halve(p, inside, value, end, text);
        inside = value;
    }
    return GHP_OK;
}

/* ---- memory ---- */

/* Below the plan's arena it does not fit.  Above its limit, if it has one, a plan that needs more may be faster. */
static enum ghp_status find_memory(struct probing *p, struct ghp_sensitivity *s)
{
    double inside = s->nominal, outside = s->nominal;
    bool stays;

    s->low = (double)p->plan->predicted.peak_bytes;
    GHP_TRY(probe_and_tell(p, s->low - 1, true, &stays));
    GHP_TRY(take_text(p->beyond, &s->below));
    if (p->plan->memory_limit_bytes == 0) return GHP_OK;
    GHP_TRY(probe(p, 0, &stays)); /* no limit */
    for (int k = 0; k < DOUBLINGS && !stays; ++k) {
        outside = inside * 2;
        GHP_TRY(probe(p, outside, &stays));
        if (!stays) return halve(p, inside, outside, &s->high, &s->above);
        inside = outside;
        stays = false;
    }
    return GHP_OK;
}

/* ---- the plan ---- */

static enum ghp_status find_one(struct probing *p, double until_s, struct ghp_sensitivity *s)
{
    double now_s = ghp_now_s();

    *s = (struct ghp_sensitivity){.quantity = p->quantity,
                                  .nominal = ghp_quantity_nominal(p->plan, p->quantity),
                                  .low = NAN,
                                  .high = NAN};
    p->deadline_s = until_s;
    if (p->quantity == GHP_QUANTITY_MEMORY) return find_memory(p, s);
    p->deadline_s = now_s + (until_s - now_s) / SIDES;
    GHP_TRY(find_side(p, false, &s->low, &s->below));
    p->deadline_s = until_s;
    return find_side(p, true, &s->high, &s->above);
}

/* The quantities that any plan for these workers depends on: links by whether groups of them cross it. */
static bool matters(const struct ghp_plan *plan, const struct ghp_profile *profile,
                    enum ghp_quantity quantity)
{
    struct ghp_instr all = {.comm = GHP_COMM_ALL_REDUCE,
                            .ranks = {.count = plan->extent.workers, .stride = 1}};
    struct ghp_instr two = {.comm = GHP_COMM_ALL_REDUCE, .ranks = {.count = 2, .stride = 1}};
    struct ghp_instr instrs[] = {all, two};
    struct ghp_program program = {.extent = plan->extent, .instrs = instrs, .n_instrs = 2};

    return plan->extent.workers == 1 ? quantity == GHP_QUANTITY_MEMORY
                                     : ghp_quantity_matters(&program, profile, quantity);
}

enum ghp_status ghp_sensitivity_find(const struct ghp_wishes *wishes, struct ghp_plan *plan)
{
    struct probing p = {.wishes = wishes, .plan = plan};
    double began_s = ghp_now_s(), until_s = began_s + wishes->time_limit_s;
    enum ghp_status status = GHP_OK;
    int left = 0;
    bool shows;

    plan->sensitivity = ghp_alloc(GHP_QUANTITY_COUNT, sizeof *plan->sensitivity);
    if (plan->sensitivity == NULL) return GHP_NO_MEMORY();
    for (int q = 0; q < GHP_QUANTITY_COUNT; ++q)
        left += matters(plan, wishes->profile, (enum ghp_quantity)q);
    shows = ghp_progress_clock("sensitivity", wishes->time_limit_s);
    for (int q = 0; q < GHP_QUANTITY_COUNT && status == GHP_OK; ++q) {
        double now_s = ghp_now_s();

        p.quantity = (enum ghp_quantity)q;
        if (!matters(plan, wishes->profile, p.quantity)) continue;
        ++plan->n_sensitivity; /* owned by the plan from here on */
        status = find_one(&p, now_s + fmax(0, until_s - now_s) / left--,
                          &plan->sensitivity[plan->n_sensitivity - 1]);
    }
    if (shows) ghp_progress_end();
    return status;
}
