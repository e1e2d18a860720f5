/* executor/backend/onednn/kernel.c - builds a kernel around one primitive: memories, reorders, scratch. */
#include "executor/backend/onednn/backend_onednn_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ghp_onednn_add_name(struct ghp_algorithms *names, const char *name)
{
    for (int i = 0; i < names->n; i++)
        if (strcmp(names->names[i], name) == 0) return;
    GHP_ASSERT(names->n < GHP_MAX_ALGORITHMS);
    snprintf(names->names[names->n++], GHP_ALGORITHM_BYTES, "%s", name);
}

enum ghp_status ghp_onednn_kernel_open(struct ghp_backend *backend, const struct ghp_local *local,
                                       enum ghp_pass pass, struct ghp_onednn_kernel **kernel)
{
    struct ghp_onednn_kernel *made = ghp_alloc(1, sizeof *made);
    if (made == NULL) return GHP_NO_MEMORY();
    made->base = (struct ghp_kernel){.backend = backend,
                                     .local = *local,
                                     .pass = pass,
                                     .parts = backend->config.threads,
                                     .algorithm = made->name};
    *kernel = made;
    return GHP_OK;
}

void ghp_onednn_kernel_close(struct ghp_onednn_kernel *kernel)
{
    if (kernel == NULL) return;
    for (int i = 0; i < kernel->n_steps; i++)
        dnnl_primitive_destroy(kernel->steps[i].primitive);
    for (int i = 0; i < kernel->n_memories; i++)
        dnnl_memory_destroy(kernel->memories[i].memory);
    free(kernel);
}

/* A memory without data, bound at each run. In scratch it lies after what is there already. */
static enum ghp_status add_memory(struct ghp_onednn_kernel *kernel, ghp_onednn_layout_view layout,
                                  enum ghp_onednn_where where, dnnl_memory_t *memory)
{
    const struct ghp_onednn *library = kernel->base.backend->library;
    struct ghp_onednn_memory *made = &kernel->memories[kernel->n_memories];
    GHP_ASSERT(kernel->n_memories < GHP_ONEDNN_MEMORIES);
    GHP_TRY(
        GHP_ONEDNN(dnnl_memory_create(&made->memory, layout, library->engine, DNNL_MEMORY_NONE)));
    kernel->n_memories++;
    made->where = where;
    *memory = made->memory;
    if (where != GHP_ONEDNN_SCRATCH) return GHP_OK;
    made->offset = kernel->base.scratch_bytes;
    kernel->base.scratch_bytes += ghp_align((int64_t)dnnl_memory_desc_get_size(layout));
    return GHP_OK;
}

static int64_t pad_bytes_of(const_dnnl_primitive_desc_t described)
{
    ghp_onednn_layout_view pad =
        dnnl_primitive_desc_query_md(described, dnnl_query_scratchpad_md, 0);
    return pad == NULL ? 0 : ghp_align((int64_t)dnnl_memory_desc_get_size(pad));
}

/* A step's scratchpad, at the start of scratch for every step. */
static enum ghp_status add_pad(struct ghp_onednn_kernel *kernel,
                               const_dnnl_primitive_desc_t described, struct ghp_onednn_step *step)
{
    const struct ghp_onednn *library = kernel->base.backend->library;
    int64_t bytes = pad_bytes_of(described);
    if (bytes == 0) return GHP_OK;
    GHP_ASSERT(bytes <= kernel->pad_bytes && kernel->n_memories < GHP_ONEDNN_MEMORIES);
    struct ghp_onednn_memory *made = &kernel->memories[kernel->n_memories];
    GHP_TRY(GHP_ONEDNN(dnnl_memory_create(
        &made->memory, dnnl_primitive_desc_query_md(described, dnnl_query_scratchpad_md, 0),
        library->engine, DNNL_MEMORY_NONE)));
    kernel->n_memories++;
    made->where = GHP_ONEDNN_SCRATCH;
    step->args[step->n_args++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, made->memory};
    return GHP_OK;
}

/* Appends a primitive; the caller adds its arguments. */
static enum ghp_status add_step(struct ghp_onednn_kernel *kernel,
                                const_dnnl_primitive_desc_t described,
                                struct ghp_onednn_step **step)
{
    GHP_ASSERT(kernel->n_steps < GHP_ONEDNN_STEPS);
    struct ghp_onednn_step *made = &kernel->steps[kernel->n_steps];
    GHP_TRY(GHP_ONEDNN(dnnl_primitive_create(&made->primitive, described)));
    kernel->n_steps++;
    *step = made;
    return add_pad(kernel, described, made);
}

struct reorder {                     /* between a tensor as it lies and as the primitive wants it */
    dnnl_primitive_desc_t described; /* NULL: none is needed */
    dnnl_memory_t plain, wanted;
};

static enum ghp_status describe_reorder(const struct ghp_onednn *library,
                                        const struct ghp_onednn_operand *operand,
                                        ghp_onednn_layout_view wanted,
                                        dnnl_primitive_desc_t *described)
{
    dnnl_primitive_attr_t attributes = NULL;
    ghp_onednn_layout_view from = operand->written ? wanted : operand->plain;
    ghp_onednn_layout_view to = operand->written ? operand->plain : wanted;
    GHP_TRY(ghp_onednn_attributes(&attributes));
    enum ghp_status status = GHP_ONEDNN(dnnl_reorder_primitive_desc_create(
        described, from, library->engine, to, library->engine, attributes));
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

static enum ghp_status add_reorder(struct ghp_onednn_kernel *kernel, const struct reorder *reorder,
                                   bool written)
{
    struct ghp_onednn_step *step = NULL;
    if (reorder->described == NULL) return GHP_OK;
    GHP_TRY(add_step(kernel, reorder->described, &step));
    step->args[step->n_args++] =
        (dnnl_exec_arg_t){DNNL_ARG_FROM, written ? reorder->wanted : reorder->plain};
    step->args[step->n_args++] =
        (dnnl_exec_arg_t){DNNL_ARG_TO, written ? reorder->plain : reorder->wanted};
    return GHP_OK;
}

static enum ghp_status add_operand(struct ghp_onednn_kernel *kernel,
                                   const struct ghp_onednn_operand *operand,
                                   ghp_onednn_layout_view wanted, struct reorder *reorder)
{
    if (operand->plain == NULL) return GHP_OK;
    GHP_TRY(add_memory(kernel, operand->plain, operand->where, &reorder->plain));
    reorder->wanted = reorder->plain;
    if (reorder->described == NULL) return GHP_OK;
    return add_memory(kernel, wanted, GHP_ONEDNN_SCRATCH, &reorder->wanted);
}

static enum ghp_status add_steps(struct ghp_onednn_kernel *kernel,
                                 const_dnnl_primitive_desc_t described,
                                 const struct ghp_onednn_operand *operands,
                                 const struct reorder *reorders)
{
    for (int i = 0; i < GHP_ONEDNN_OPERANDS; i++)
        if (!operands[i].written) GHP_TRY(add_reorder(kernel, &reorders[i], false));
    struct ghp_onednn_step *main_step = NULL;
    GHP_TRY(add_step(kernel, described, &main_step));
    for (int i = 0; i < GHP_ONEDNN_OPERANDS; i++)
        if (operands[i].plain != NULL)
            main_step->args[main_step->n_args++] =
                (dnnl_exec_arg_t){operands[i].argument, reorders[i].wanted};
    for (int i = 0; i < GHP_ONEDNN_OPERANDS; i++)
        if (operands[i].written) GHP_TRY(add_reorder(kernel, &reorders[i], true));
    return GHP_OK;
}

void ghp_onednn_operands_close(struct ghp_onednn_operand operands[GHP_ONEDNN_OPERANDS])
{
    for (int i = 0; i < GHP_ONEDNN_OPERANDS; i++)
        ghp_onednn_layout_close(operands[i].plain);
}

/* As the primitive wants it; a bias has but one layout. */
static ghp_onednn_layout_view wanted_of(const_dnnl_primitive_desc_t described,
                                        const struct ghp_onednn_operand *operand)
{
    if (operand->plain == NULL || operand->where == GHP_ONEDNN_BIAS) return operand->plain;
    return dnnl_primitive_desc_query_md(described, operand->query, 0);
}

/* Whether activations are reordered. */
static bool moves_activations(const_dnnl_primitive_desc_t described,
                              const struct ghp_onednn_operand *operands)
{
    for (int i = 0; i < GHP_ONEDNN_OPERANDS; i++)
        if (operands[i].plain != NULL && operands[i].where != GHP_ONEDNN_W &&
            operands[i].where != GHP_ONEDNN_DW &&
            !dnnl_memory_desc_equal(wanted_of(described, &operands[i]), operands[i].plain))
            return true;
    return false;
}

void ghp_onednn_kernel_name(const_dnnl_primitive_desc_t described,
                            const struct ghp_onednn_operand *operands,
                            char name[GHP_ALGORITHM_BYTES])
{
    snprintf(name, GHP_ALGORITHM_BYTES, "%.48s%s", ghp_onednn_implementation(described),
             moves_activations(described, operands) ? "+reorder" : "");
}

enum ghp_status ghp_onednn_kernel_fill(struct ghp_onednn_kernel *kernel,
                                       const_dnnl_primitive_desc_t described,
                                       const struct ghp_onednn_operand *operands)
{
    const struct ghp_onednn *library = kernel->base.backend->library;
    struct reorder reorders[GHP_ONEDNN_OPERANDS] = {{0}};
    ghp_onednn_layout_view wanted[GHP_ONEDNN_OPERANDS];
    enum ghp_status status = GHP_OK;
    kernel->pad_bytes = pad_bytes_of(described);
    for (int i = 0; i < GHP_ONEDNN_OPERANDS; i++) {
        wanted[i] = wanted_of(described, &operands[i]);
        if (operands[i].plain == NULL || dnnl_memory_desc_equal(wanted[i], operands[i].plain))
            continue;
        GHP_TRY_GOTO(status,
                     describe_reorder(library, &operands[i], wanted[i], &reorders[i].described),
                     done);
        int64_t pad = pad_bytes_of(reorders[i].described);
        if (pad > kernel->pad_bytes) kernel->pad_bytes = pad;
    }
    kernel->base.scratch_bytes = kernel->pad_bytes;
    for (int i = 0; i < GHP_ONEDNN_OPERANDS; i++)
        GHP_TRY_GOTO(status, add_operand(kernel, &operands[i], wanted[i], &reorders[i]), done);
    GHP_TRY_GOTO(status, add_steps(kernel, described, operands, reorders), done);
    ghp_onednn_kernel_name(described, operands, kernel->name);
done:
    for (int i = 0; i < GHP_ONEDNN_OPERANDS; i++)
        if (reorders[i].described != NULL) dnnl_primitive_desc_destroy(reorders[i].described);
    return status;
}
