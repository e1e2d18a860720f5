/* executor/engine/ring.c - see engine/ring.h. */
#include "executor/engine/ring.h"

#include "core/model/element.h"
#include "core/program/ring.h"

#include <math.h>

enum ghp_status ghp_ring_check(struct ghp_device device, const char *layer, int blocks)
{
    if (ghp_device_is_host(device)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' has the split ring:%d, which GPUs cannot run; plan with --force "
                    "'%s=position:%d'",
                    layer, blocks, layer, blocks);
}

/* ---- the sum of two blocks ---- */

/* By the logarithms of their sums: both outputs are means, weighted by these sums. */
static void merge(const struct ghp_ring_job *job, const struct ghp_tensors *sum,
                  const struct ghp_tensors *more)
{
    const struct ghp_local *local = &job->instr->local;
    int64_t heads = local->heads.n, size = local->heads.size, rows = local->n * heads * local->h;
    int bytes = job->element_bytes, saved_bytes = ghp_parameter_bytes(bytes);

    for (int64_t i = 0; i < rows; i++) {
        int64_t n = i / local->h / heads, head = i / local->h % heads, row = i % local->h;
        int64_t at = ((n * local->h + row) * heads + head) * size;
        double ours = ghp_element_get(sum->saved, i, saved_bytes),
               theirs = ghp_element_get(more->saved, i, saved_bytes);
        double most = fmax(ours, theirs), all = exp(ours - most) + exp(theirs - most);
        double keep = exp(ours - most) / all, take = exp(theirs - most) / all;

        for (int64_t c = at; c < at + size; c++)
            ghp_element_set(sum->y, c, bytes,
                            keep * ghp_element_get(sum->y, c, bytes) +
                                take * ghp_element_get(more->y, c, bytes));
        ghp_element_set(sum->saved, i, saved_bytes, most + log(all));
    }
}

/* ---- one block ---- */

static void *ring_at(const struct ghp_ring_job *job, int block, enum ghp_ring_tensor tensor)
{
    return (char *)job->ring + ghp_ring_offset(job->instr, block, tensor, job->element_bytes);
}

static void *made_at(const struct ghp_ring_job *job, const struct ghp_kernel_arguments *args, int i)
{
    return (char *)args->at.scratch + ghp_ring_block_offset(job->instr, i, job->element_bytes);
}

static enum ghp_status forward_block(const struct ghp_ring_job *job,
                                     const struct ghp_kernel_arguments *args)
{
    struct ghp_kernel_arguments of = *args;
    int block = job->instr->block;

    if (block == 0) return job->ops->run(job->kernel, args);
    of.at.x[1] = ring_at(job, block, GHP_RING_KEYS);
    of.at.x[2] = ring_at(job, block, GHP_RING_VALUES);
    of.at.y = made_at(job, args, 0);
    of.at.saved = made_at(job, args, 1);
    of.at.scratch = made_at(job, args, 3);
    GHP_TRY(job->ops->run(job->kernel, &of));
    merge(job, &args->at, &of.at);
    return GHP_OK;
}

static enum ghp_status add(const struct ghp_ring_job *job, void *to, const void *from,
                           int64_t bytes)
{
    const struct ghp_buffer_extent extent = {bytes / job->element_bytes, job->element_bytes};

    return job->ops->accumulate(job->backend, to, from, extent);
}

static enum ghp_status backward_block(const struct ghp_ring_job *job,
                                      const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *local = &job->instr->local;
    struct ghp_kernel_arguments of = *args;
    int block = job->instr->block, bytes = job->element_bytes;
    void *dkeys = ring_at(job, block, GHP_RING_DKEYS);
    void *dvalues = ring_at(job, block, GHP_RING_DVALUES);

    of.at.dx[1] = block == 0 ? dkeys : made_at(job, args, 1);
    of.at.dx[2] = block == 0 ? dvalues : made_at(job, args, 2);
    if (block == 0) return job->ops->run(job->kernel, &of);
    of.at.x[1] = ring_at(job, block, GHP_RING_KEYS);
    of.at.x[2] = ring_at(job, block, GHP_RING_VALUES);
    if (args->at.dx[0] != NULL) of.at.dx[0] = made_at(job, args, 0);
    of.at.scratch = made_at(job, args, 3);
    GHP_TRY(job->ops->run(job->kernel, &of));
    if (args->at.dx[0] != NULL)
        GHP_TRY(
            add(job, args->at.dx[0], of.at.dx[0], local->n * local->h * local->slice[0] * bytes));
    GHP_TRY(add(job, dkeys, of.at.dx[1], ghp_ring_tensor_bytes(job->instr, GHP_RING_DKEYS, bytes)));
    return add(job, dvalues, of.at.dx[2],
               ghp_ring_tensor_bytes(job->instr, GHP_RING_DVALUES, bytes));
}

enum ghp_status ghp_ring_compute(const struct ghp_ring_job *job,
                                 const struct ghp_kernel_arguments *args)
{
    if (job->causal && job->instr->block > job->member) return GHP_OK; /* all of it comes later */
    return job->instr->backward ? backward_block(job, args) : forward_block(job, args);
}

/* ---- on the way ---- */

static enum ghp_status pass_on(const struct ghp_ring_job *job, enum ghp_ring_tensor tensor,
                               const void *from, void *to)
{
    return job->comm->ops->shift(job->comm, from, to,
                                 ghp_ring_tensor_bytes(job->instr, tensor, job->element_bytes));
}

enum ghp_status ghp_ring_shift(const struct ghp_ring_job *job, const struct ghp_tensors *at)
{
    const struct ghp_instr *instr = job->instr;
    int block = instr->block;
    bool returns = block == instr->blocks;

    for (int i = 0; i < 2 && !returns; i++) {
        enum ghp_ring_tensor tensor = i == 0 ? GHP_RING_KEYS : GHP_RING_VALUES;

        GHP_TRY(pass_on(job, tensor, block == 1 ? at->x[1 + i] : ring_at(job, block - 1, tensor),
                        ring_at(job, block, tensor)));
    }
    for (int i = 0; i < 2 && instr->backward; i++) {
        enum ghp_ring_tensor tensor = i == 0 ? GHP_RING_DKEYS : GHP_RING_DVALUES;
        void *to = returns ? at->dx[1 + i] : NULL;

        GHP_TRY(pass_on(job, tensor, ring_at(job, block - 1, tensor),
                        to != NULL ? to : ring_at(job, block, tensor)));
    }
    return GHP_OK;
}
