/* planner/alternatives/break_even.c - two programs, one quantity turned up and down, and where their steps cross. */
#include "planner/alternatives/break_even.h"

#include "planner/alternatives/quantity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* 2^10 is the first power beyond the factor looked within; the last step ends at the factor */
    DOUBLINGS = 10,
    TRIALS = 100, /* more than halving needs from a factor of two to the last bit */
    BATCHES = 64, /* batches remembered of the plan itself */
    /* work in instructions simulated; measured on one core of a server: 70 ns each */
    LINK_TRIALS = 30,      /* a quantity: the walk both ways and closing in */
    LOWER_WORK = 10,       /* lowering an instruction, by simulating one */
    COST_WORK = 40,        /* looking up its measured cost */
    BUDGET_WORK = 5000000, /* a plan: some tenths of a second */
    ASKED_WORK = 1500000   /* of one whose strategy was asked for */
};

/* second-best choices slower by more than this fraction are left out */
static const double within = 0.5;
static const double same_step = 1e-9; /* relative; as GHP_BRANCH_SAME */
static const double same_value = 1e-9;
/* of a step: what two simulated periods may differ by rounding */
static const double zero_step = 1e-12;
static const double neighbour = 1e-7; /* of the bracket: where a zero's neighbour is looked at */

/* A program with costs, of which those of collectives follow a scaled profile. */
struct costed {
    struct ghp_program program;
    struct ghp_profile profile;   /* what it asks for; scaled */
    struct ghp_comm_entry *comms; /* as they were */
    struct ghp_machine machine;   /* as it was; borrows */
    struct ghp_cost *costs;       /* one an instruction */
};

struct pair { /* the plan and one second best */
    const struct ghp_profile *whole;
    const struct ghp_plan *plan;
    const struct ghp_split *second_best;
    struct costed a, b;
    double grid[GHP_QUANTITY_COUNT]
               [2 * DOUBLINGS]; /* the plan's steps on the walks, NAN: not yet */
    int64_t batch[BATCHES];     /* and at batches */
    double batch_step_s[BATCHES];
    int n_batches;
};

/* ---- costing ---- */

static void costed_release(struct costed *p)
{
    ghp_program_release(&p->program);
    ghp_profile_release(&p->profile);
    free(p->comms);
    free(p->costs);
    *p = (struct costed){0};
}

static enum ghp_status update_costs(struct costed *p, bool all)
{
    const struct ghp_contention contention = ghp_contention_of(&p->program);

    for (int i = 0; i < p->program.n_instrs; i++) {
        const struct ghp_instr *instr = &p->program.instrs[i];

        if (!all && instr->comm == GHP_COMM_NONE) continue;
        GHP_TRY(ghp_profile_cost(&p->profile, instr, p->program.problem.workers, &p->costs[i]));
        p->costs[i].seconds = ghp_cost_contended(instr, &p->costs[i], contention);
    }
    return GHP_OK;
}

static enum ghp_status costed_init(const struct pair *pair, const struct ghp_split *splits,
                                   struct costed *p)
{
    struct ghp_lowering lowering = ghp_plan_lowering(pair->plan, pair->whole);
    enum ghp_status status;
    size_t comms;

    *p = (struct costed){0};
    GHP_TRY(ghp_lower(&lowering, splits, 0, &p->program));
    GHP_TRY_GOTO(status, ghp_profile_subset(pair->whole, &p->program, &p->profile), out);
    comms = (size_t)p->profile.n_comms;
    p->machine = p->profile.machine;
    p->comms = ghp_alloc(comms, sizeof *p->comms);
    p->costs = ghp_alloc((size_t)p->program.n_instrs, sizeof *p->costs);
    GHP_TRY_GOTO(status, p->comms == NULL || p->costs == NULL ? GHP_NO_MEMORY() : GHP_OK, out);
    if (comms > 0) memcpy(p->comms, p->profile.comms, comms * sizeof *p->comms);
    status = update_costs(p, true);
out:
    if (status != GHP_OK) costed_release(p);
    return status;
}

/* Seconds of a step with one quantity scaled. */
static enum ghp_status step_at(struct costed *p, enum ghp_quantity quantity, double factor,
                               double *step_s)
{
    struct ghp_timing timing;

    p->profile.machine = p->machine;
    if (p->profile.n_comms > 0)
        memcpy(p->profile.comms, p->comms, (size_t)p->profile.n_comms * sizeof *p->comms);
    GHP_TRY(ghp_quantity_scale_profile(&p->profile, quantity, factor));
    GHP_TRY(update_costs(p, false));
    GHP_TRY(ghp_simulate_with_costs(&p->program, &p->profile, p->costs, &timing));
    *step_s = timing.step_s;
    ghp_timing_release(&timing);
    return GHP_OK;
}

/* ---- links ---- */

/* The factor of the walk's step k, 1 .. DOUBLINGS, up or down. */
static double walk_factor(int k, bool up)
{
    double factor = k < DOUBLINGS ? ldexp(1, k) : GHP_QUANTITY_FACTOR;

    return up ? factor : 1 / factor;
}

/* How much slower the second best is. */
static enum ghp_status difference(struct pair *p, enum ghp_quantity quantity, double factor,
                                  double *slower_s)
{
    double a, b;

    GHP_TRY(step_at(&p->a, quantity, factor, &a));
    GHP_TRY(step_at(&p->b, quantity, factor, &b));
    *slower_s = b - a;
    return GHP_OK;
}

/* The same at a step of the walk, which all second-best choices share. */
static enum ghp_status walk_difference(struct pair *p, enum ghp_quantity quantity, int k, bool up,
                                       double *slower_s)
{
    double *a = &p->grid[quantity][(up ? DOUBLINGS : 0) + k - 1], b;

    if (isnan(*a)) GHP_TRY(step_at(&p->a, quantity, walk_factor(k, up), a));
    GHP_TRY(step_at(&p->b, quantity, walk_factor(k, up), &b));
    *slower_s = b - *a;
    return GHP_OK;
}

/* Whether the difference has become zero, or changed its sign. */
static bool turned(const struct pair *p, double from, double to)
{
    double zero_s = zero_step * p->plan->predicted.step_s;

    return from > 0 ? to <= zero_s : to >= -zero_s;
}

static bool is_inverse(enum ghp_quantity quantity)
{
    return quantity == GHP_QUANTITY_INTER_BANDWIDTH || quantity == GHP_QUANTITY_INTRA_BANDWIDTH;
}

/* A bracket of the turn; x is the factor, or one over it if that is what seconds are piecewise linear in. */
struct bracket {
    double x[2], f[2]; /* [0] before the turn, [1] after it */
};

static enum ghp_status set_end(struct pair *p, enum ghp_quantity quantity, double x,
                               struct bracket *b)
{
    double found;
    int end;

    GHP_TRY(difference(p, quantity, is_inverse(quantity) ? 1 / x : x, &found));
    end = turned(p, b->f[0], found);
    b->x[end] = x;
    b->f[end] = found;
    return GHP_OK;
}

/* Whether the far end is zero, and so may lie anywhere on a stretch where both are equally fast. */
static bool is_flat(const struct pair *p, const struct bracket *b)
{
    return fabs(b->f[1]) <= zero_step * p->plan->predicted.step_s;
}

/* Closes in on the turn, which becomes the far end. The next point is where the line through both ends is zero; every
 * third time, and on flat stretches, it is the middle. A zero without another zero next to it is the turn. */
static enum ghp_status close_in(struct pair *p, enum ghp_quantity quantity, struct bracket *b)
{
    for (int k = 0; k < TRIALS && fabs(b->x[1] - b->x[0]) > same_value * fabs(b->x[0]); k++) {
        double width = b->x[1] - b->x[0], hit;
        bool halve = k % 3 == 2 || is_flat(p, b);

        GHP_TRY(set_end(p, quantity,
                        b->x[0] + width * (halve ? 0.5 : b->f[0] / (b->f[0] - b->f[1])), b));
        if (halve || !is_flat(p, b)) continue;
        hit = b->x[1];
        GHP_TRY(set_end(p, quantity, hit + neighbour * (b->x[0] - hit), b));
        if (b->x[1] == hit) return GHP_OK;
    }
    return GHP_OK;
}

/* The nearest factor in one direction at which both are equally fast, NAN: none. */
static enum ghp_status walk(struct pair *p, enum ghp_quantity quantity, bool up, double slower_s,
                            double *factor)
{
    struct bracket b = {{1, 1}, {slower_s, slower_s}};

    *factor = NAN;
    for (int k = 1; k <= DOUBLINGS; k++) {
        double at = walk_factor(k, up);

        b.x[1] = is_inverse(quantity) ? 1 / at : at;
        GHP_TRY(walk_difference(p, quantity, k, up, &b.f[1]));
        if (turned(p, slower_s, b.f[1])) {
            GHP_TRY(close_in(p, quantity, &b));
            *factor = is_inverse(quantity) ? 1 / b.x[1] : b.x[1];
            return GHP_OK;
        }
        b.x[0] = b.x[1];
        b.f[0] = b.f[1];
    }
    return GHP_OK;
}

/* ---- batch ---- */

/* Seconds of a step of these splits at another batch; NAN: they cannot have it, as ghost batches do not fit, or nobody
 * could count it. */
static enum ghp_status step_of_batch(const struct pair *p, const struct ghp_split *splits,
                                     int64_t batch, double *step_s)
{
    struct ghp_lowering lowering = ghp_plan_lowering(p->plan, p->whole);
    struct ghp_program program;
    struct ghp_timing timing;
    enum ghp_status status;

    lowering.problem.global_batch = batch;
    lowering.unplaced = true;
    *step_s = NAN;
    if (ghp_model_check_sizes(lowering.model, batch, lowering.problem.workers) != GHP_OK)
        return GHP_OK;
    for (int v = 0; v < lowering.model->n_layers; v++)
        if (ghp_split_check(&lowering.model->layers[v], splits[v], lowering.problem) != GHP_OK)
            return GHP_OK;
    GHP_TRY(ghp_lower(&lowering, splits, 0, &program));
    status = ghp_simulate(&program, p->whole, &timing);
    if (status == GHP_OK) *step_s = timing.step_s;
    if (status == GHP_OK) ghp_timing_release(&timing);
    ghp_program_release(&program);
    return status;
}

static enum ghp_status batch_difference(struct pair *p, int64_t batch, double *slower_s)
{
    double a = 0, b;
    int k = 0;

    while (k < p->n_batches && p->batch[k] != batch)
        k++;
    if (k < p->n_batches)
        a = p->batch_step_s[k];
    else
        GHP_TRY(step_of_batch(p, p->plan->splits, batch, &a));
    if (k == p->n_batches && k < BATCHES) {
        p->batch[k] = batch;
        p->batch_step_s[p->n_batches++] = a;
    }
    GHP_TRY(step_of_batch(p, p->second_best, batch, &b));
    *slower_s = b - a;
    return GHP_OK;
}

/* The multiple of the workers in step k of the walk; 0: there is none. */
static int64_t walk_batch(const struct pair *p, int k, bool up)
{
    int64_t workers = p->plan->problem.workers;
    int64_t samples = p->plan->problem.global_batch / workers; /* a worker */
    int64_t factor = k < DOUBLINGS ? (int64_t)1 << k : GHP_QUANTITY_FACTOR;

    if (up) return workers * samples * factor;
    return workers * ((samples + factor - 1) / factor);
}

/* The nearest batch in one direction at which the second best is at least as fast, NAN: none. */
static enum ghp_status walk_batches(struct pair *p, bool up, double slower_s, double *value)
{
    int64_t workers = p->plan->problem.workers, near = p->plan->problem.global_batch;

    *value = NAN;
    if (near < workers) return GHP_OK; /* splits of one TP size, which other batches do not share */
    for (int k = 1; k <= DOUBLINGS; k++) {
        int64_t far = walk_batch(p, k, up);
        double found;

        if (far == near) return GHP_OK; /* one sample a worker */
        GHP_TRY(batch_difference(p, far, &found));
        if (!turned(p, slower_s, found)) {
            near = far;
            continue;
        }
        while (llabs(far - near) > workers) {
            int64_t mid = (far / workers + near / workers) / 2 * workers;

            GHP_TRY(batch_difference(p, mid, &found));
            *(turned(p, slower_s, found) ? &far : &near) = mid;
        }
        *value = (double)far;
        return GHP_OK;
    }
    return GHP_OK;
}

/* ---- one layer ---- */

static bool matters(const struct pair *p, enum ghp_quantity quantity)
{
    return ghp_quantity_matters(&p->a.program, p->whole, quantity) ||
           ghp_quantity_matters(&p->b.program, p->whole, quantity);
}

/* A value without a cost is beyond what is known: none. */
static enum ghp_status none_if_missing(enum ghp_status status, double *value)
{
    if (status != GHP_ERR_MISSING) return status;
    *value = NAN;
    return GHP_OK;
}

static enum ghp_status find_quantity(struct pair *p, enum ghp_quantity quantity, double slower_s,
                                     struct ghp_break_even *b)
{
    double *side[2] = {&b->low, &b->high};

    *b = (struct ghp_break_even){quantity, ghp_quantity_nominal(p->plan, quantity), NAN, NAN};
    if (quantity == GHP_QUANTITY_MEMORY) {
        if (p->b.program.peak_bytes < p->a.program.peak_bytes)
            b->low = (double)p->a.program.peak_bytes;
        return GHP_OK;
    }
    if (fabs(slower_s) <= same_step * p->plan->predicted.step_s) { /* equal as it is */
        b->low = b->high = b->nominal;
        return GHP_OK;
    }
    for (int up = 0; up < 2; up++) {
        if (quantity == GHP_QUANTITY_BATCH) {
            GHP_TRY(none_if_missing(walk_batches(p, up, slower_s, side[up]), side[up]));
            continue;
        }
        GHP_TRY(none_if_missing(walk(p, quantity, up, slower_s, side[up]), side[up]));
        *side[up] *= b->nominal;
    }
    return GHP_OK;
}

static enum ghp_status find_layer(struct pair *p, const struct ghp_alternative *alternative,
                                  struct ghp_break_even_layer *found)
{
    double slower_s;

    GHP_TRY(costed_init(p, p->second_best, &p->b));
    slower_s = alternative->step_s - p->plan->predicted.step_s;
    for (int q = 0; q < GHP_QUANTITY_COUNT; q++) {
        if (q == GHP_QUANTITY_COMPUTE || !matters(p, (enum ghp_quantity)q)) continue;
        GHP_TRY(find_quantity(p, (enum ghp_quantity)q, slower_s, &found->of[found->n]));
        found->n++;
    }
    costed_release(&p->b);
    return GHP_OK;
}

/* ---- the plan ---- */

/* What one layer may take. */
static double layer_work(const struct pair *p)
{
    double batch = LOWER_WORK + (p->whole->n_ops > 0 ? COST_WORK : 1), links = 0;

    for (int q = 0; q <= GHP_QUANTITY_INTRA_LATENCY; q++)
        links += ghp_quantity_matters(&p->a.program, p->whole, (enum ghp_quantity)q);
    return LINK_TRIALS * (links + batch) * p->a.program.n_instrs;
}

/* The alternative with the fastest second best that has no values yet, -1: none is near enough. */
static int nearest(const struct ghp_plan *plan, const struct ghp_break_evens *found)
{
    int best = -1;

    for (int i = 0; i < plan->n_alternatives; i++) {
        double step_s = plan->alternatives[i].step_s;

        if (found->layers[i].n > 0 || step_s > (1 + within) * plan->predicted.step_s) continue;
        if (best < 0 || step_s < plan->alternatives[best].step_s) best = i;
    }
    return best;
}

static enum ghp_status note(const struct ghp_plan *plan, int done, bool timed_out, char **search)
{
    char text[192];

    snprintf(text, sizeof text,
             "%d of %d layers: those whose second-best is slower by no more than %.0f %%%s", done,
             plan->n_alternatives, 100 * within,
             timed_out ? ", nearest first; the others would take longer than the budget" : "");
    *search = strdup(text);
    return *search == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

enum ghp_status ghp_break_even_compute(const struct ghp_profile *profile,
                                       const struct ghp_plan *plan, struct ghp_break_evens *found)
{
    size_t layers = (size_t)plan->model.n_layers;
    struct ghp_split *second_best = ghp_alloc(layers, sizeof *second_best);
    struct pair p = {.whole = profile, .plan = plan, .second_best = second_best};
    enum ghp_status status;
    double work = 0, budget = plan->strategy == GHP_STRATEGY_AUTO ? BUDGET_WORK : ASKED_WORK;
    int done = 0, next = -1;

    *found = (struct ghp_break_evens){0};
    if (second_best == NULL) return GHP_NO_MEMORY();
    for (int q = 0; q < GHP_QUANTITY_COUNT; q++)
        for (int k = 0; k < 2 * DOUBLINGS; k++)
            p.grid[q][k] = NAN;
    found->layers = ghp_alloc((size_t)plan->n_alternatives, sizeof *found->layers);
    GHP_TRY_GOTO(status, found->layers == NULL ? GHP_NO_MEMORY() : GHP_OK, out);
    GHP_TRY_GOTO(status, costed_init(&p, plan->splits, &p.a), out);
    while ((next = nearest(plan, found)) >= 0 && work + layer_work(&p) <= budget) {
        const struct ghp_alternative *alternative = &plan->alternatives[next];

        ghp_alternative_splits(alternative, plan->splits, layers, second_best);
        GHP_TRY_GOTO(status, find_layer(&p, alternative, &found->layers[next]), out);
        work += layer_work(&p);
        done++;
    }
    status = note(plan, done, next >= 0, &found->search);
out:
    costed_release(&p.a);
    costed_release(&p.b);
    free(second_best);
    if (status != GHP_OK) ghp_break_even_release(found);
    return status;
}

void ghp_break_even_release(struct ghp_break_evens *found)
{
    free(found->layers);
    free(found->search);
    *found = (struct ghp_break_evens){0};
}
