/* planner/make/write_mps.c - see write_mps.h. */
#include "planner/make/write_mps.h"

#include "core/plan/integer_program.h"
#include "planner/make/context.h"
#include "planner/search/baselines.h"
#include "planner/search/memory.h"
#include "planner/search/mps.h"

/* Why the longest constraint can be less than the simulated step; NULL: it is the step. */
static const char *why_below(const struct ghp_instance *in, const struct ghp_plan *plan)
{
    const struct ghp_coefficients c = ghp_instance_coefficients(in);

    if (c.n > 1 || c.variant[0].off[0] > 0 || c.variant[0].off[1] > 0 ||
        c.variant[0].reduce_off > 0)
        return "the profile has slowdowns while computation and communication overlap";
    if (!in->alone) return "gradients travel in buckets of a given size";
    if (ghp_sync_ops_of(plan->method.sync)->gathers) return "updates are sharded or averaged";
    return plan->memory_limit_bytes > 0 ? "the memory limit holds for placed buffers, of which it "
                                          "has the live bytes"
                                        : NULL;
}

static enum ghp_status check(const struct ghp_plan *plan)
{
    if (ghp_staging_or_none(&plan->staging) == NULL && plan->certificate.bound_s > 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INFEASIBLE,
                    "this plan has no integer program: it has stages or micro-batches, or was "
                    "found by trial alone; leave --write-mps out");
}

static enum ghp_status write(const struct ghp_plan_context *context, const struct ghp_plan *plan,
                             const char *path)
{
    char head[GHP_INTEGER_PROGRAM_HEAD_SIZE];
    struct ghp_mps_job job = {.domain = &context->domain,
                              .limit_bytes = (double)plan->memory_limit_bytes,
                              .unit_s = ghp_integer_program_unit_s(plan),
                              .head = head};

    if (plan->memory_limit_bytes > 0) GHP_TRY(ghp_memory_init(context->instance));
    ghp_integer_program_format(plan, why_below(context->instance, plan), head);
    return ghp_mps_write(&job, path);
}

enum ghp_status ghp_plan_write_mps(const struct ghp_plan_request *request,
                                   const struct ghp_plan *plan, const char *path)
{
    struct ghp_plan_request searched = *request;
    struct ghp_plan_context context = {0};
    enum ghp_status status;

    GHP_TRY(check(plan));
    searched.method.sync = plan->method.sync;
    GHP_TRY(ghp_plan_context_init(&searched, &plan->model, plan->nchw16c, &context));
    status = ghp_strategy_restrict(
        plan->strategy == GHP_STRATEGY_GIVEN ? GHP_STRATEGY_AUTO : plan->strategy, &context.domain);
    if (status == GHP_OK) status = write(&context, plan, path);
    ghp_plan_context_release(&context);
    return status;
}
