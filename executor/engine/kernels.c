/* executor/engine/kernels.c - see kernels.h. */
#include "executor/engine/kernels.h"

#include "core/program/memory_format.h"

#include "core/base/array.h"
#include "executor/engine/kernel_spec.h"

#include <stdlib.h>

struct ghp_kernel_entry {
    struct ghp_local local;
    enum ghp_pass pass;
    struct ghp_kernel_spec spec;
    struct ghp_kernel *kernel;
};

void ghp_kernels_init(struct ghp_kernels *kernels, const struct ghp_backend_ops *ops,
                      struct ghp_backend *backend, const struct ghp_profile *profile)
{
    *kernels = (struct ghp_kernels){.ops = ops, .backend = backend, .profile = profile};
}

void ghp_kernels_release(struct ghp_kernels *kernels)
{
    if (kernels == NULL) return;
    for (int i = 0; i < kernels->n; i++)
        kernels->ops->release(kernels->entries[i].kernel);
    free(kernels->entries);
    *kernels = (struct ghp_kernels){0};
}

/* Prepares the kernel by the algorithm that was measured, if the profile has one over as many samples, or about as
 * many. */
static enum ghp_status prepare(struct ghp_kernels *kernels, struct ghp_kernel_entry *entry)
{
    const struct ghp_backend_ops *ops = kernels->ops;
    const struct ghp_op_entry *measured =
        kernels->profile == NULL
            ? NULL
            : ghp_profile_nearest(kernels->profile, &entry->local, entry->pass);
    const char *algorithm = ghp_kernel_spec_algorithm(measured, entry->spec);

    if (ops->prepare_nchw16c != NULL)
        return ops->prepare_nchw16c(kernels->backend, &entry->local, entry->pass, algorithm,
                                    entry->spec, &entry->kernel);
    GHP_ASSERT(!entry->spec.x && !entry->spec.y && !entry->spec.w);
    if (algorithm == NULL || ops->prepare_as == NULL)
        return ops->prepare(kernels->backend, &entry->local, entry->pass, &entry->kernel);
    return ops->prepare_as(kernels->backend, &entry->local, entry->pass, algorithm, &entry->kernel);
}

static bool same_spec(struct ghp_kernel_spec a, struct ghp_kernel_spec b)
{
    return a.x == b.x && a.y == b.y && a.w == b.w && a.bias == b.bias && a.relu == b.relu &&
           a.stats == b.stats && a.add == b.add && a.gradient == b.gradient && a.sums == b.sums;
}

static bool is_entry(const struct ghp_kernel_entry *entry, const struct ghp_kernel_entry *wanted)
{
    return entry->pass == wanted->pass && same_spec(entry->spec, wanted->spec) &&
           ghp_local_equal(&entry->local, &wanted->local);
}

enum ghp_status ghp_kernels_find(struct ghp_kernels *kernels, const struct ghp_local *local,
                                 enum ghp_pass pass, struct ghp_kernel_spec spec,
                                 struct ghp_kernel **kernel)
{
    struct ghp_kernel_entry wanted = {.local = *local, .pass = pass, .spec = spec};
    struct ghp_kernel_entry *entry;

    for (int i = 0; i < kernels->n; i++) {
        if (!is_entry(&kernels->entries[i], &wanted)) continue;
        *kernel = kernels->entries[i].kernel;
        return GHP_OK;
    }
    GHP_TRY_ROOM(kernels->entries, kernels->n, kernels->max);
    entry = &kernels->entries[kernels->n];
    *entry = wanted;
    GHP_TRY(prepare(kernels, entry));
    kernels->n++;
    *kernel = entry->kernel;
    return GHP_OK;
}

/* The most that a kernel asks for in any format, and as much as was planned at least. */
static enum ghp_status scratch_bytes(void *context, const struct ghp_local *local,
                                     enum ghp_pass pass, int64_t *bytes)
{
    struct ghp_kernels *kernels = context;
    struct ghp_kernel *kernel = NULL;
    int64_t profiled = 0;
    struct ghp_kernel_spec likely = ghp_kernel_spec_likely(kernels->ops, kernels->backend, local);
    int n = ghp_kernel_spec_variants(kernels->ops, kernels->backend, local->op, pass);

    *bytes = 0;
    for (int i = 0; i < n; i++) {
        struct ghp_kernel_spec spec = ghp_kernel_spec_variant(likely, pass, i);

        GHP_TRY(ghp_kernels_find(kernels, local, pass, spec, &kernel));
        if (kernel == NULL) continue;
        int64_t own = kernels->ops->scratch_bytes(kernel);

        if (own > *bytes) *bytes = own;
    }
    if (kernels->profile == NULL) return GHP_OK;
    GHP_TRY(ghp_profile_scratch(kernels->profile, local, pass, &profiled));
    if (profiled > *bytes) *bytes = profiled;
    return GHP_OK;
}

struct ghp_scratch_source ghp_kernels_scratch(struct ghp_kernels *kernels)
{
    return (struct ghp_scratch_source){.bytes = scratch_bytes, .context = kernels};
}

static bool can_block(void *context, const struct ghp_local *local)
{
    const struct ghp_kernels *kernels = context;

    return kernels->ops->can_block(kernels->backend, local);
}

struct ghp_format_source ghp_kernels_formats(struct ghp_kernels *kernels)
{
    return (struct ghp_format_source){.can = kernels->ops->can_block != NULL ? can_block : NULL,
                                      .context = kernels};
}

struct ghp_kernel_spec ghp_kernels_spec(const struct ghp_kernels *kernels,
                                        const struct ghp_program *program,
                                        const struct ghp_instr *instr)
{
    const struct ghp_nchw16c sides = ghp_instr_formats(program, instr);

    return (struct ghp_kernel_spec){
        .x = sides.x,
        .y = sides.y,
        .w = ghp_backend_blocks_weights(kernels->ops, kernels->backend, &instr->local)};
}
