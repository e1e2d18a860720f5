/* executor/backend/cuda/native.c - finds and prepares the passes that ghp's own kernels run, and what several of them
 * do. */
#include "executor/backend/cuda/native.h"

#include <string.h>

enum ghp_status ghp_cuda_native_copy(const struct ghp_cuda_kernel *kernel, const void *from,
                                     void *to, int64_t elements)
{
    struct ghp_backend *backend = kernel->base.backend;
    struct ghp_copy copy = {to, from, elements * backend->config.element_bytes, GHP_COPY_ON_DEVICE};

    return ghp_cuda_device.copy(backend, GHP_DEVICE_STREAM_COMPUTE, &copy);
}

enum ghp_status ghp_cuda_native_sum(const struct ghp_cuda_kernel *kernel, struct ghp_sum_job job,
                                    const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;

    job.rows = ghp_cuda_native_rows(l);
    job.c = l->c;
    job.scratch = args->at.scratch;
    return ghp_cuda_native_status(ghp_launch_sum(ghp_cuda_launch(kernel->base.backend), &job),
                                  kernel);
}

int64_t ghp_cuda_native_sum_scratch(const struct ghp_local *l)
{
    return ghp_sum_scratch(ghp_cuda_native_rows(l), l->c);
}

static const struct ghp_cuda_native *find(enum ghp_op op, enum ghp_pass pass)
{
    for (const struct ghp_cuda_native *const *table = ghp_cuda_native_tables; *table != NULL;
         table++)
        for (const struct ghp_cuda_native *own = *table; own->run != NULL; own++)
            if (own->op == op && own->pass == pass) return own;
    return NULL;
}

const struct ghp_cuda_row *ghp_cuda_native_row(enum ghp_op op, enum ghp_pass pass)
{
    for (const struct ghp_cuda_row *const *table = ghp_cuda_row_tables; *table != NULL; table++)
        for (const struct ghp_cuda_row *row = *table; row->launch != NULL; row++)
            if (row->op == op && row->pass == pass) return row;
    return NULL;
}

bool ghp_cuda_native_has(enum ghp_op op, enum ghp_pass pass)
{
    return find(op, pass) != NULL || ghp_cuda_native_row(op, pass) != NULL;
}

static enum ghp_status run_row(struct ghp_cuda_kernel *kernel,
                               const struct ghp_kernel_arguments *args)
{
    struct ghp_launch launch = ghp_cuda_launch(kernel->base.backend);

    launch.adds = kernel->fused.add;
    launch.gradient = kernel->fused.gradient;
    return ghp_cuda_native_status(kernel->row->launch(launch, &kernel->base.local, args), kernel);
}

bool ghp_cuda_native_takes(enum ghp_op op, enum ghp_pass pass, struct ghp_kernel_spec fused)
{
    static const struct taker {
        enum ghp_op op;
        enum ghp_pass pass;
        struct ghp_kernel_spec most;
    } takers[] = {{GHP_OP_BATCH_NORM, GHP_PASS_STATS, {0}}, /* given sums */
                  {GHP_OP_BATCH_NORM, GHP_PASS_FORWARD, {.relu = true, .stats = true, .add = true}},
                  {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_STATS, {.relu = true}},
                  {GHP_OP_BATCH_NORM, GHP_PASS_BACKWARD_DATA, {.relu = true, .stats = true}},
                  {GHP_OP_LAYER_NORM, GHP_PASS_FORWARD, {.bias = true, .add = true}},
                  {GHP_OP_RMS_NORM, GHP_PASS_FORWARD, {.add = true}},
                  {GHP_OP_ADD, GHP_PASS_FORWARD, {.relu = true}},
                  {GHP_OP_MAX_POOL, GHP_PASS_FORWARD, {.relu = true}},
                  {GHP_OP_SOFTMAX_CE, GHP_PASS_FORWARD, {.gradient = true}}};

    for (size_t i = 0; i < sizeof takers / sizeof takers[0]; i++) {
        const struct ghp_kernel_spec *t = &takers[i].most;

        if (takers[i].op != op || takers[i].pass != pass) continue;
        /* shared statistics are not there any more if the addition's other half is */
        return (t->bias || !fused.bias) && (t->relu || !fused.relu) && (t->stats || !fused.stats) &&
               (t->gradient || !fused.gradient) &&
               (!fused.add || (t->add && fused.stats == t->stats));
    }
    return false;
}

enum ghp_status ghp_cuda_native_prepare(struct ghp_cuda_kernel *kernel)
{
    const struct ghp_local *l = &kernel->base.local;
    const struct ghp_cuda_native *own = find(l->op, kernel->base.pass);
    const struct ghp_cuda_row *row = ghp_cuda_native_row(l->op, kernel->base.pass);

    memcpy(kernel->algorithm, "own", sizeof("own"));
    if (row != NULL) {
        kernel->row = row;
        kernel->run = run_row;
        kernel->base.scratch_bytes = row->scratch_bytes != NULL ? row->scratch_bytes(l) : 0;
        return GHP_OK;
    }
    if (own == NULL)
        return GHP_FAIL(GHP_ERR_INTERNAL,
                        "the cuda backend has no kernel for '%s' (%s); report this",
                        ghp_op_name(l->op), ghp_pass_name(kernel->base.pass));
    kernel->run = own->run;
    kernel->base.scratch_bytes = own->scratch_bytes != NULL ? own->scratch_bytes(l) : 0;
    return own->make != NULL ? own->make(kernel) : GHP_OK;
}
