/* executor/engine/kernel_formats.c - see engine/kernel_formats.h. */
#include "executor/engine/kernel_formats.h"

bool ghp_memory_format_weights(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                               const struct ghp_local *local)
{
    return ops->can_block != NULL && ops->blocks_weights(backend, local);
}

const char *ghp_memory_format_algorithm(const struct ghp_op_entry *entry,
                                        struct ghp_memory_format memory_formats)
{
    const struct ghp_op_memory_format *in =
        entry == NULL ? NULL
                      : ghp_op_entry_in(
                            entry, (struct ghp_nchw16c){true, memory_formats.x, memory_formats.y});
    return in != NULL ? in->algorithm : entry != NULL ? entry->algorithm : NULL;
}

struct ghp_memory_format ghp_memory_format_likely(const struct ghp_backend_ops *ops,
                                                  const struct ghp_backend *backend,
                                                  const struct ghp_local *local)
{
    if (ops->can_block == NULL || !ghp_op_of(local->op)->chooses_format)
        return (struct ghp_memory_format){0};
    bool can = ops->can_block(backend, local);
    return (struct ghp_memory_format){
        .x = can && local->h * local->w > 1 && ghp_whole_blocks(local->c),
        .y = can && local->p * local->q > 1 && ghp_whole_blocks(local->k),
        .w = ghp_memory_format_weights(ops, backend, local)};
}

struct ghp_memory_format ghp_memory_format_variant(struct ghp_memory_format likely, int i)
{
    bool fused = (i & 4) != 0;
    return (struct ghp_memory_format){.x = likely.x && (i & 1) != 0,
                                      .y = likely.y && (i & 2) != 0,
                                      .w = likely.w,
                                      .bias = fused,
                                      .relu = fused};
}

struct ghp_memory_format ghp_memory_format_with(struct ghp_memory_format memory_formats,
                                                struct ghp_epilogue fused)
{
    memory_formats.bias = fused.bias >= 0;
    memory_formats.relu = fused.relu >= 0;
    memory_formats.stats = fused.stats >= 0;
    memory_formats.add = fused.add >= 0;
    return memory_formats;
}

bool ghp_memory_format_fuses(const struct ghp_backend_ops *ops, const struct ghp_backend *backend,
                             enum ghp_op op, enum ghp_pass pass)
{
    return ops->fuses != NULL && ops->fuses(backend, op, pass);
}

static enum ghp_status prepare(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                               const struct ghp_opbench_task *task, const char *algorithm,
                               struct ghp_memory_format memory_formats, struct ghp_kernel **kernel)
{
    if (ops->prepare_nchw16c != NULL)
        return ops->prepare_nchw16c(backend, &task->local, task->pass, algorithm, memory_formats,
                                    kernel);
    if (ops->prepare_as != NULL && algorithm != NULL)
        return ops->prepare_as(backend, &task->local, task->pass, algorithm, kernel);
    return ops->prepare(backend, &task->local, task->pass, kernel);
}

enum ghp_status ghp_memory_format_scratch(const struct ghp_backend_ops *ops,
                                          struct ghp_backend *backend,
                                          const struct ghp_opbench_task *task,
                                          const struct ghp_op_entry *entry, int64_t *bytes)
{
    struct ghp_memory_format likely = ghp_memory_format_likely(ops, backend, &task->local);
    bool fuses = ghp_memory_format_fuses(ops, backend, task->local.op, task->pass);
    *bytes = 0;
    for (int i = 0; i < GHP_MEMORY_FORMAT_MAX; i++) {
        struct ghp_memory_format memory_formats = ghp_memory_format_variant(likely, i);
        struct ghp_kernel *kernel = NULL;
        bool known = (memory_formats.x ? 1 : 0) + (memory_formats.y ? 2 : 0) != (i & 3);
        if (ghp_memory_format_fused(memory_formats) && !fuses) break;
        if (known) continue; /* with blocks where there can be none: as an earlier one */
        GHP_TRY(prepare(ops, backend, task, ghp_memory_format_algorithm(entry, memory_formats),
                        memory_formats, &kernel));
        if (kernel == NULL) continue;
        int64_t own = ops->scratch_bytes(kernel);
        if (own > *bytes) *bytes = own;
        ops->release(kernel);
    }
    return GHP_OK;
}
