/* profiler/worklist/time_estimate.c - see worklist/time_estimate.h. */
#include "profiler/worklist/time_estimate.h"

#include <math.h>
#include <stdio.h>

enum { COLD_RUNS = 1, TRIED = 5, TRIED_RUNS = 4 }; /* of a visit; what is wrong here is learnt */
static const double flops_per_s = 1e10, bytes_per_s = 1e9; /* before anything is known */

static double run_s(const struct ghp_time_estimate *f, const struct ghp_worklist_op *op)
{
    if (op->variants[0].samples.n > 0) return ghp_samples_summary(&op->variants[0].samples).seconds;
    if (op->flops > 0) return op->flops / (f->flop_s > 0 ? f->flops / f->flop_s : flops_per_s);
    return op->bytes / (f->byte_s > 0 ? f->bytes / f->byte_s : bytes_per_s);
}

int ghp_time_estimate_variants(const struct ghp_worklist_op *op)
{
    return op->variants[0].samples.n > 0 || op->named || op->value == GHP_VALUE_DATA
               ? op->n_variants
               : 1;
}

enum ghp_visit ghp_time_estimate_kind(const struct ghp_worklist_op *op, bool chooses)
{
    if (op->variants[0].samples.n > 0)
        return chooses && op->variants[op->n_variants - 1].samples.n == 0 ? GHP_VISIT_MEMORY_FORMATS
                                                                          : GHP_VISIT_AGAIN;
    return chooses && op->flops > 0 ? GHP_VISIT_AUTOTUNING : GHP_VISIT_FIRST;
}

static double samples_s(const struct ghp_time_estimate *f, const struct ghp_worklist_op *op,
                        enum ghp_visit kind, struct ghp_visit_plan visit_plan)
{
    bool later = kind == GHP_VISIT_AGAIN || kind == GHP_VISIT_MEMORY_FORMATS;
    int others = later || op->named || op->value == GHP_VALUE_DATA ? op->n_variants - 1 : 0;
    int runs = COLD_RUNS + visit_plan.samples + others * 2 * COLD_RUNS;
    int tried = kind == GHP_VISIT_AUTOTUNING       ? 1 + others
                : kind == GHP_VISIT_MEMORY_FORMATS ? others
                                                   : 0;
    int trials = tried * TRIED * TRIED_RUNS;
    double once_s = run_s(f, op);

    return runs * fmax(once_s, visit_plan.sample_s) +
           trials * fmax(once_s, GHP_AUTOTUNING_FRACTION * visit_plan.sample_s);
}

double ghp_time_estimate_s(const struct ghp_time_estimate *f, const struct ghp_worklist_op *op,
                           struct ghp_visit_plan visit_plan)
{
    enum ghp_visit kind = ghp_time_estimate_kind(op, visit_plan.chooses);
    double expected_s = samples_s(f, op, kind, visit_plan);

    if (!(f->visits[kind].samples_s > 0)) return expected_s;
    return expected_s * f->visits[kind].wall_s / f->visits[kind].samples_s;
}

void ghp_time_estimate_note(struct ghp_time_estimate *f, const struct ghp_worklist_op *op,
                            enum ghp_visit kind, struct ghp_visit_plan visit_plan, double wall_s)
{
    double seconds = ghp_samples_summary(&op->variants[0].samples).seconds;

    f->visits[kind].wall_s += wall_s;
    f->visits[kind].samples_s += samples_s(f, op, kind, visit_plan);
    if (wall_s > f->longest_s) {
        f->longest_s = wall_s;
        snprintf(f->longest, sizeof f->longest, "'%s' (%s)", op->key, ghp_pass_name(op->pass));
    }
    if (op->flops > 0) {
        f->flops += op->flops;
        f->flop_s += seconds;
    } else {
        f->bytes += op->bytes;
        f->byte_s += seconds;
    }
}

double ghp_time_estimate_scratch_s(const struct ghp_time_estimate *f, int n)
{
    return f->scratches > 0 ? n * f->scratch_s / f->scratches : 0;
}
