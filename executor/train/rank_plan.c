/* executor/train/rank_plan.c - see train/rank_plan.h. */
#include "executor/train/rank_plan.h"

#include "core/program/lower/lower.h"

/* What needs tensors in host memory. */
static enum ghp_status check_device(const struct ghp_exec_context *exec,
                                    const struct ghp_lowering *lowering)
{
    const struct ghp_method *method = &lowering->method;
    const char *backend = exec->backend_ops->name;

    if (ghp_device_is_host(ghp_exec_context_device(exec)) || lowering->forward_only) return GHP_OK;
    if (ghp_lr_scaling_takes_norms(method->scaling))
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "--lr-scaling %s takes norms in host memory, and backend '%s' has gradients on a "
            "device; plan with --lr-scaling none or linear, or give --backend onednn",
            method->scaling->name, backend);
    if (ghp_sync_replicas(method->sync, lowering->problem.workers) > 1 || method->sync.servers > 0)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "by '%s' weights are averaged or served in host memory, and backend '%s' has them on "
            "a device; plan with --sync allreduce, or give --backend onednn",
            ghp_sync_ops_of(method->sync)->name, backend);
    return GHP_OK;
}

/* What the backend cannot do, which is refused before the first step. */
static enum ghp_status check_backend(const struct ghp_exec_context *exec,
                                     const struct ghp_lowering *lowering)
{
    const struct ghp_optimizer *optimizer =
        ghp_optimizer_at(ghp_optimizer_index(lowering->method.optimizer));

    if (!lowering->forward_only && !ghp_backend_has_update(exec->backend_ops, optimizer))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the backend '%s' has no update by the optimizer '%s' of the plan; give "
                        "--backend reference, or plan with --optimizer sgd",
                        exec->backend_ops->name, optimizer->name);
    return check_device(exec, lowering);
}

enum ghp_status ghp_rank_plan_open(const struct ghp_exec_context *exec,
                                   const struct ghp_rank_plan *rank_plan,
                                   struct ghp_worker **worker)
{
    const struct ghp_exec_context whole = ghp_exec_context_complete(*exec);
    struct ghp_lowering lowering = rank_plan->lowering;
    struct ghp_executable executable = {0};
    enum ghp_status status;

    *worker = NULL;
    GHP_TRY(check_backend(&whole, &lowering));
    ghp_kernels_init(&executable.kernels, exec->backend_ops, exec->backend, rank_plan->run.profile);
    lowering.formats = ghp_kernels_formats(&executable.kernels);
    lowering.scratch = ghp_kernels_scratch(&executable.kernels);
    lowering.bf16_weights = exec->backend_ops->copy_weight != NULL && lowering.element_bytes == 2;
    lowering.joins_products = exec->backend_ops->joins != NULL;
    lowering.prefetch = lowering.prefetch && ghp_device_is_host(ghp_exec_context_device(&whole));
    status = ghp_lower(&lowering, rank_plan->splits, rank_plan->rank, &executable.program);
    if (status == GHP_OK) return ghp_worker_open(&whole, &executable, &rank_plan->run, worker);
    ghp_kernels_release(&executable.kernels);
    return status;
}

enum ghp_status ghp_rank_plan_lower_server(const struct ghp_exec_context *exec,
                                           const struct ghp_rank_plan *rank_plan, int server,
                                           struct ghp_server_programs *programs)
{
    const struct ghp_exec_context whole = ghp_exec_context_complete(*exec);
    enum ghp_status status;

    *programs = (struct ghp_server_programs){0};
    GHP_TRY(check_backend(&whole, &rank_plan->lowering));
    GHP_TRY(ghp_lower_server(&rank_plan->lowering, rank_plan->splits, server, &programs->own));
    status = ghp_lower(&rank_plan->lowering, rank_plan->splits, 0, &programs->layout);
    if (status != GHP_OK) ghp_program_release(&programs->own);
    return status;
}
