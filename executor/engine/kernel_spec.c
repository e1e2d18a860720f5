/* executor/engine/kernel_spec.c - see engine/kernel_spec.h. */
#include "executor/engine/kernel_spec.h"

bool ghp_backend_blocks_weights(const struct ghp_backend_ops *ops,
                                const struct ghp_backend *backend, const struct ghp_local *local)
{
    return ops->can_block != NULL && ops->blocks_weights(backend, local);
}

const char *ghp_kernel_spec_algorithm(const struct ghp_op_entry *entry, struct ghp_kernel_spec spec)
{
    const struct ghp_op_memory_format *in =
        entry == NULL ? NULL : ghp_op_entry_in(entry, (struct ghp_nchw16c){true, spec.x, spec.y});
    return in != NULL ? in->algorithm : entry != NULL ? entry->algorithm : NULL;
}

struct ghp_kernel_spec ghp_kernel_spec_likely(const struct ghp_backend_ops *ops,
                                              const struct ghp_backend *backend,
                                              const struct ghp_local *local)
{
    if (ops->can_block == NULL || !ghp_op_of(local->op)->chooses_format)
        return (struct ghp_kernel_spec){0};
    bool can = ops->can_block(backend, local);
    return (struct ghp_kernel_spec){
        .x = can && local->h * local->w > 1 && ghp_whole_blocks(local->c),
        .y = can && local->p * local->q > 1 && ghp_whole_blocks(local->k),
        .w = ghp_backend_blocks_weights(ops, backend, local)};
}

struct ghp_kernel_spec ghp_kernel_spec_variant(struct ghp_kernel_spec likely, enum ghp_pass pass,
                                               int i)
{
    bool fused = (i & 4) != 0;
    return (struct ghp_kernel_spec){.x = likely.x && (i & 1) != 0,
                                    .y = likely.y && (i & 2) != 0,
                                    .w = likely.w,
                                    .bias = fused && pass == GHP_PASS_FORWARD,
                                    .relu = fused,
                                    .sums = i == GHP_KERNEL_SPEC_MAX};
}

int ghp_kernel_spec_variants(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                             enum ghp_op op, enum ghp_pass pass)
{
    bool may_sum = pass == GHP_PASS_FORWARD && (ghp_op_of(op)->fuses & GHP_FUSES_SUMS) != 0;
    if (may_sum && ghp_backend_sums(ops, backend)) return GHP_KERNEL_SPEC_MAX + 1;
    return ghp_backend_fuses(ops, backend, op, pass) ? GHP_KERNEL_SPEC_MAX
                                                     : GHP_KERNEL_SPEC_MAX / 2;
}

bool ghp_backend_sums(const struct ghp_backend_ops *ops, const struct ghp_backend *backend)
{
    return ops->sums != NULL && ops->sums(backend);
}

struct ghp_kernel_spec ghp_kernel_spec_with(struct ghp_kernel_spec spec, struct ghp_epilogue fused,
                                            bool sums)
{
    spec.bias = fused.bias >= 0;
    spec.relu = fused.relu >= 0;
    spec.stats = fused.stats >= 0;
    spec.add = fused.add >= 0;
    spec.gradient = fused.gradient >= 0;
    spec.sums = sums && fused.sums >= 0;
    return spec;
}

bool ghp_backend_fuses(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                       enum ghp_op op, enum ghp_pass pass)
{
    return ops->fuses != NULL && ops->fuses(backend, op, pass);
}

static enum ghp_status prepare(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                               const struct ghp_opbench_task *task, const char *algorithm,
                               struct ghp_kernel_spec spec, struct ghp_kernel **kernel)
{
    if (ops->prepare_nchw16c != NULL)
        return ops->prepare_nchw16c(backend, &task->local, task->pass, algorithm, spec, kernel);
    if (ops->prepare_as != NULL && algorithm != NULL)
        return ops->prepare_as(backend, &task->local, task->pass, algorithm, kernel);
    return ops->prepare(backend, &task->local, task->pass, kernel);
}

enum ghp_status ghp_kernel_spec_scratch(const struct ghp_backend_ops *ops,
                                        struct ghp_backend *backend,
                                        const struct ghp_opbench_task *task,
                                        const struct ghp_op_entry *entry, int64_t *bytes)
{
    struct ghp_kernel_spec likely = ghp_kernel_spec_likely(ops, backend, &task->local);
    int n = ghp_kernel_spec_variants(ops, backend, task->local.op, task->pass);
    *bytes = 0;
    for (int i = 0; i < n; i++) {
        struct ghp_kernel_spec spec = ghp_kernel_spec_variant(likely, task->pass, i);
        struct ghp_kernel *kernel = NULL;
        bool known = (spec.x ? 1 : 0) + (spec.y ? 2 : 0) != (i & 3);
        if (known) continue; /* with blocks if there can be none: as an earlier one */
        GHP_TRY(prepare(ops, backend, task, ghp_kernel_spec_algorithm(entry, spec), spec, &kernel));
        if (kernel == NULL) continue;
        int64_t own = ops->scratch_bytes(kernel);
        if (own > *bytes) *bytes = own;
        ops->release(kernel);
    }
    return GHP_OK;
}
