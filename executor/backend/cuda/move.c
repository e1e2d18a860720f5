/* executor/backend/cuda/move.c - copies in another order on a GPU: concat, flatten; view and pad by tables. */
#include "executor/backend/cuda/native.h"

#include "core/sharding/index_table.h"

#include <stdlib.h>
#include <string.h>

/* Each input's channels to or from their place in the rows of the whole. */
static enum ghp_status blocks_of_inputs(const struct ghp_cuda_kernel *kernel,
                                        const struct ghp_kernel_arguments *args, bool forward)
{
    const struct ghp_local *l = &kernel->base.local;
    int64_t size = kernel->base.backend->config.element_bytes, whole = l->c * size, at = 0;

    for (int i = 0; i < l->n_inputs; i++) {
        int64_t mine = l->slice[i] * size;
        struct ghp_block_copy blocks = {.rows = ghp_cuda_native_rows(l), .bytes = mine};

        if (forward) {
            blocks.from = args->at.x[i];
            blocks.from_stride = mine;
            blocks.to = (char *)args->at.y + at;
            blocks.to_stride = whole;
        } else {
            blocks.from = (const char *)args->at.dy + at;
            blocks.from_stride = whole;
            blocks.to = args->at.dx[i];
            blocks.to_stride = mine;
        }
        at += mine;
        if (blocks.to == NULL) continue;
        GHP_TRY(ghp_cuda_native_status(ghp_launch_blocks(ghp_cuda_native_stream(kernel), &blocks),
                                       kernel));
    }
    return GHP_OK;
}

static enum ghp_status run_concat(struct ghp_cuda_kernel *kernel,
                                  const struct ghp_kernel_arguments *args)
{
    return blocks_of_inputs(kernel, args, true);
}

static enum ghp_status run_concat_data(struct ghp_cuda_kernel *kernel,
                                       const struct ghp_kernel_arguments *args)
{
    return blocks_of_inputs(kernel, args, false);
}

/* [n][a][b] -> [n][b][a] */
static enum ghp_status transpose(const struct ghp_cuda_kernel *kernel, int64_t a, int64_t b,
                                 const void *from, void *to)
{
    const struct ghp_local *l = &kernel->base.local;

    if (a == 1 || b == 1) return ghp_cuda_native_copy(kernel, from, to, l->n * a * b);
    return ghp_cuda_native_status(ghp_launch_transpose(ghp_cuda_native_stream(kernel),
                                                       kernel->base.backend->config.element_bytes,
                                                       l->n, a, b, from, to),
                                  kernel);
}

static enum ghp_status run_flatten(struct ghp_cuda_kernel *kernel,
                                   const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;

    return transpose(kernel, l->h * l->w, l->c, args->at.x[0], args->at.y);
}

static enum ghp_status run_flatten_data(struct ghp_cuda_kernel *kernel,
                                        const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;

    return transpose(kernel, l->c, l->h * l->w, args->at.dy, args->at.dx[0]);
}

/* ---- tables: view and pad ---- */

struct tables {             /* in device memory, one block */
    int32_t *table;         /* forward: [out] */
    int32_t *starts, *list; /* backward: [in + 1], [out] at most */
};

static int64_t sample_in(const struct ghp_local *l)
{
    return l->c * l->h * l->w;
}

static int64_t sample_out(const struct ghp_local *l)
{
    return l->k * l->p * l->q;
}

/* Which outputs take each input, in ascending order: starts [in + 1], list [out]. */
static void invert(const int32_t *table, int64_t in, int64_t out, int32_t *starts, int32_t *list)
{
    memset(starts, 0, (size_t)(in + 1) * sizeof *starts);
    for (int64_t i = 0; i < out; i++)
        if (table[i] != GHP_INDEX_MAP_NOTHING) starts[table[i] + 1]++;
    for (int64_t i = 0; i < in; i++)
        starts[i + 1] += starts[i];
    for (int64_t i = out - 1; i >= 0; i--) /* from the end: starts become ends, and starts again */
        if (table[i] != GHP_INDEX_MAP_NOTHING) list[--starts[table[i] + 1]] = (int32_t)i;
    memmove(starts, starts + 1, (size_t)in * sizeof *starts);
    starts[in] = 0;
    for (int64_t i = 0; i < out; i++)
        if (table[i] != GHP_INDEX_MAP_NOTHING) starts[in]++;
}

static void release_tables(struct ghp_cuda_kernel *kernel)
{
    struct tables *t = kernel->data;

    if (t == NULL) return;
    ghp_cuda_device.release(kernel->base.backend, t->table);
    free(t);
}

/* Host memory first: forward [out], backward [in + 1] and [out]. */
static enum ghp_status make_tables(struct ghp_cuda_kernel *kernel)
{
    const struct ghp_local *l = &kernel->base.local;
    bool forward = kernel->base.pass == GHP_PASS_FORWARD;
    int64_t in = sample_in(l), out = sample_out(l), n = forward ? out : in + 1 + out;
    int32_t *host = ghp_alloc((size_t)(n + out), sizeof *host);
    struct tables *t = ghp_alloc(1, sizeof *t);
    struct ghp_device device = {&ghp_cuda_device, kernel->base.backend};
    void *memory = NULL;
    enum ghp_status status = host != NULL && t != NULL ? GHP_OK : GHP_NO_MEMORY();

    kernel->data = t;
    kernel->release = release_tables;
    if (status == GHP_OK) {
        ghp_index_map_table(l, 1, host + (forward ? 0 : n));
        if (!forward) invert(host + n, in, out, host, host + in + 1);
        status = ghp_device_allocate(device, n * (int64_t)sizeof *host, &memory);
    }
    if (status == GHP_OK) {
        t->table = t->starts = memory;
        t->list = forward ? NULL : t->starts + in + 1;
        status = ghp_device_write(device, memory, host, n * (int64_t)sizeof *host);
    }
    free(host);
    return status;
}

static enum ghp_status run_gather(struct ghp_cuda_kernel *kernel,
                                  const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct tables *t = kernel->data;
    float nothing = l->op == GHP_OP_PAD ? (float)l->border.value : 0;

    return ghp_cuda_native_status(ghp_launch_gather(ghp_cuda_launch(kernel->base.backend), l->n,
                                                    sample_in(l), sample_out(l), t->table, nothing,
                                                    args->at.x[0], args->at.y),
                                  kernel);
}

static enum ghp_status run_scatter_add(struct ghp_cuda_kernel *kernel,
                                       const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct tables *t = kernel->data;

    return ghp_cuda_native_status(
        ghp_launch_scatter_add(ghp_cuda_launch(kernel->base.backend), l->n, sample_in(l),
                               sample_out(l), t->starts, t->list, args->at.dy, args->at.dx[0]),
        kernel);
}

/* ---- the table ---- */

const struct ghp_cuda_native ghp_cuda_native_move[] = {
    {GHP_OP_CONCAT, GHP_PASS_FORWARD, run_concat, NULL, NULL},
    {GHP_OP_CONCAT, GHP_PASS_BACKWARD_DATA, run_concat_data, NULL, NULL},
    {GHP_OP_FLATTEN, GHP_PASS_FORWARD, run_flatten, NULL, NULL},
    {GHP_OP_FLATTEN, GHP_PASS_BACKWARD_DATA, run_flatten_data, NULL, NULL},
    {GHP_OP_VIEW, GHP_PASS_FORWARD, run_gather, NULL, make_tables},
    {GHP_OP_VIEW, GHP_PASS_BACKWARD_DATA, run_scatter_add, NULL, make_tables},
    {GHP_OP_PAD, GHP_PASS_FORWARD, run_gather, NULL, make_tables},
    {GHP_OP_PAD, GHP_PASS_BACKWARD_DATA, run_scatter_add, NULL, make_tables},
    {.run = NULL},
};
