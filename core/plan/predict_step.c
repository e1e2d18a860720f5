/* core/plan/predict_step.c - the step of a plan with many micro-batches, by a program with few of them.
 *
 * Between the first micro-batches and the last of one stage, a worker does the same work again and again. If two such
 * micro-batches in a row take equally long and nothing is communicated during them, the second leaves the streams as
 * the first did. A further one in between then adds its own seconds to the step, and nothing else changes. So the step
 * is exact, to rounding. If the condition does not hold, more micro-batches are simulated, in the end all of them. */
#include "core/cost/simulate.h"
#include "core/plan/plan.h"

#include <math.h>

enum { FEWEST = 4 };

static const double same_micro_batch = 1e-12; /* of the step: rounding of sums, not physics */

/* One stage whose micro-batches go forward and backward in turn, and whose steps are all alike. */
static bool may_be_short(const struct ghp_lowering *lowering)
{
    const struct ghp_staging *s = lowering->staging;

    return s != NULL && s->n < 2 && s->shares == NULL && s->pipeline == GHP_PIPELINE_1F1B &&
           (lowering->method.sync.ops == NULL || lowering->method.sync.ops == &ghp_sync_allreduce ||
            lowering->method.sync.ops == &ghp_sync_sharded);
}

/* When the compute stream ends a micro-batch, from the start of the step. */
static double end_of(const struct ghp_program *program, const struct ghp_timing *timing, int micro)
{
    double end_s = 0;

    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].stream == GHP_STREAM_COMPUTE && program->instrs[i].micro == micro)
            end_s = fmax(end_s, timing->instrs[i].finish_s);
    return end_s;
}

/* Whether nothing is communicated between two times of a step. What lasts beyond the end of its step runs at the start
 * of the next one. */
static bool is_quiet(const struct ghp_program *program, const struct ghp_timing *timing,
                     double from_s, double to_s)
{
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr_time *t = &timing->instrs[i];

        if (program->instrs[i].stream == GHP_STREAM_COMPUTE) continue;
        if (t->start_s < to_s || t->finish_s - timing->step_s > from_s) return false;
    }
    return true;
}

/* The step by a program of `few` micro-batches of `all`.
 *
 * step_s   NAN: that says nothing */
static enum ghp_status extend(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                              const struct ghp_profile *profile, int few, double *step_s)
{
    struct ghp_staging staging = *lowering->staging;
    struct ghp_lowering shorter = *lowering;
    int all = staging.micro_batches;
    struct ghp_program program = {0};
    struct ghp_timing timing = {0};
    enum ghp_status status;

    staging.micro_batches = few;
    shorter.staging = &staging;
    shorter.problem.global_batch = lowering->problem.global_batch / all * few;
    shorter.unplaced = true;
    GHP_TRY(ghp_lower(&shorter, splits, 0, &program));
    status = ghp_simulate(&program, profile, &timing);
    if (status == GHP_OK) {
        double from_s = end_of(&program, &timing, few - 4),
               middle_s = end_of(&program, &timing, few - 3);
        double to_s = end_of(&program, &timing, few - 2);
        double own_s = to_s - middle_s;
        bool repeats = fabs(own_s - (middle_s - from_s)) <= same_micro_batch * timing.step_s &&
                       is_quiet(&program, &timing, from_s, to_s);

        *step_s = repeats ? timing.step_s + (all - few) * own_s : NAN;
    }
    ghp_timing_release(&timing);
    ghp_program_release(&program);
    return status;
}

/* The same by the whole program.
 *
 * step_s, peak_bytes   may be NULL */
static enum ghp_status play_all(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                                const struct ghp_profile *profile, double *step_s,
                                int64_t *peak_bytes)
{
    struct ghp_lowering all = *lowering;
    struct ghp_programs programs;
    struct ghp_timing timings[GHP_MAX_STAGES];
    enum ghp_status status = GHP_OK;

    all.unplaced = peak_bytes == NULL;
    GHP_TRY(ghp_lower_all(&all, splits, &programs));
    if (step_s != NULL) {
        status = ghp_simulate_all(&programs, profile, timings);
        if (status == GHP_OK) *step_s = timings[0].step_s;
        for (int k = 0; status == GHP_OK && k < programs.n; k++)
            ghp_timing_release(&timings[k]);
    }
    if (status == GHP_OK && peak_bytes != NULL) *peak_bytes = ghp_programs_peak_bytes(&programs);
    ghp_programs_release(&programs);
    return status;
}

enum ghp_status ghp_plan_predict_step(const struct ghp_lowering *lowering,
                                      const struct ghp_split *splits,
                                      const struct ghp_profile *profile, double *step_s,
                                      int64_t *peak_bytes)
{
    int all = ghp_staging_micro_batches(lowering->staging);
    double found_s = NAN;

    for (int few = FEWEST; may_be_short(lowering) && few < all && step_s != NULL && isnan(found_s);
         few *= 2)
        GHP_TRY(extend(lowering, splits, profile, few, &found_s));
    if (step_s != NULL && !isnan(found_s)) {
        *step_s = found_s;
        if (peak_bytes == NULL) return GHP_OK;
        step_s = NULL;
    }
    return play_all(lowering, splits, profile, step_s, peak_bytes);
}
