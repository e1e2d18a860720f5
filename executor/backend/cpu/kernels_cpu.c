/* executor/backend/cpu/kernels_cpu.c - finds, prepares and runs ghp's CPU kernels. */
#include "executor/backend/cpu/kernels_cpu.h"

const struct ghp_cpu_kernel *ghp_cpu_kernel_find(enum ghp_op op, enum ghp_pass pass)
{
    for (const struct ghp_cpu_kernel *const *table = ghp_cpu_kernel_tables; *table != NULL; table++)
        for (const struct ghp_cpu_kernel *cpu_kernel = *table; cpu_kernel->name != NULL;
             cpu_kernel++)
            if (cpu_kernel->op == op && cpu_kernel->pass == pass) return cpu_kernel;
    return NULL;
}

/* Threads cost more than they give below this much work. */
enum { UPDATE_GRAIN = 64 }; /* elements: parts begin on cache lines of their own */
enum { ALONE_ELEMENTS = 1 << 14, ALONE_BYTES = 4 * ALONE_ELEMENTS, ALONE_FLOPS = 1 << 18 };

static int parts_for(const struct ghp_local *local, enum ghp_pass pass, int threads)
{
    bool little =
        ghp_local_bytes(local, pass, 4) < ALONE_BYTES && ghp_local_flops(local, pass) < ALONE_FLOPS;
    return little ? 1 : threads;
}

static int64_t scratch_of(const struct ghp_cpu_kernel *cpu_kernel, const struct ghp_kernel *kernel)
{
    if (cpu_kernel->scratch_bytes == NULL) return 0;
    return cpu_kernel->scratch_bytes(&kernel->local, kernel->parts,
                                     kernel->backend->config.element_bytes);
}

enum ghp_status ghp_cpu_kernel_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                       enum ghp_pass pass, struct ghp_kernel **kernel)
{
    const struct ghp_cpu_kernel *cpu_kernel = ghp_cpu_kernel_find(local->op, pass);
    if (cpu_kernel == NULL)
        return GHP_FAIL(GHP_ERR_INPUT, "'%s' has no pass '%s'; ask for one that the operation has",
                        ghp_op_name(local->op), ghp_pass_name(pass));
    return ghp_cpu_kernel_prepare_by(backend, local, cpu_kernel, kernel);
}

enum ghp_status ghp_cpu_kernel_prepare_by(struct ghp_backend *backend,
                                          const struct ghp_local *local,
                                          const struct ghp_cpu_kernel *cpu_kernel,
                                          struct ghp_kernel **kernel)
{
    enum ghp_pass pass = cpu_kernel->pass;
    struct ghp_kernel *made = ghp_alloc(1, sizeof *made);
    if (made == NULL) return GHP_NO_MEMORY();
    *made = (struct ghp_kernel){.backend = backend,
                                .local = *local,
                                .pass = pass,
                                .cpu_kernel = cpu_kernel,
                                .parts = parts_for(local, pass, backend->config.threads),
                                .algorithm = cpu_kernel->name};
    made->scratch_bytes = scratch_of(cpu_kernel, made);
    *kernel = made;
    return GHP_OK;
}

struct job { /* what the parts of one run share */
    const struct ghp_kernel *kernel;
    const struct ghp_kernel_arguments *args;
    ghp_cpu_kernel_fn *run;
};

static void run_part(void *context, struct ghp_part part)
{
    const struct job *job = context;
    job->run(&job->kernel->local, job->args, part);
}

static enum ghp_cpu_precision precision_of(int element_bytes)
{
    return element_bytes == 2 ? GHP_PRECISION_BF16 : GHP_PRECISION_FLOAT;
}

void ghp_cpu_kernel_run(const struct ghp_kernel *kernel, const struct ghp_kernel_arguments *args)
{
    const struct ghp_cpu_kernel_stages *stages =
        &kernel->cpu_kernel->stages[precision_of(kernel->backend->config.element_bytes)];
    struct ghp_part whole = {0, kernel->parts};
    struct job job = {kernel, args, stages->run};
    if (stages->before != NULL) stages->before(&kernel->local, args, whole);
    ghp_parallel(kernel->parts, run_part, &job);
    if (stages->after != NULL) stages->after(&kernel->local, args, whole);
}

struct update_job { /* weights and all that belongs to them are float */
    const struct ghp_update *update;
    const struct ghp_update_kernel *kernel;
};

static void update_part(void *context, struct ghp_part part)
{
    const struct update_job *job = context;
    struct ghp_range at = ghp_part_range(part, job->update->elements, UPDATE_GRAIN);
    ghp_update_judge(job->update,
                     (double)(job->update->directed ? job->kernel->move_float
                                                    : job->kernel->run_float)(job->update, at));
}

bool ghp_cpu_kernel_has_update(const struct ghp_optimizer *optimizer)
{
    return ghp_update_kernel_find(ghp_cpu_updates, optimizer) != NULL;
}

enum ghp_status ghp_cpu_kernel_update(struct ghp_backend *backend, const struct ghp_update *update)
{
    struct update_job job = {update, ghp_update_kernel_find(ghp_cpu_updates, update->optimizer)};
    GHP_ASSERT(job.kernel != NULL);
    ghp_parallel(update->elements < ALONE_ELEMENTS ? 1 : backend->config.threads, update_part,
                 &job);
    return GHP_OK;
}

enum ghp_status ghp_cpu_kernel_direct(struct ghp_backend *backend, const struct ghp_update *update,
                                      const struct ghp_direction_squares *squares)
{
    (void)backend;
    ghp_update_kernel_find(ghp_cpu_updates, update->optimizer)->direct_float(update, squares);
    return GHP_OK;
}

struct square_job {
    const struct ghp_squares *of;
    double *parts; /* a sum each */
};

/* Several chains of sums, in one order whatever the vectors: lanes, then these from the first to the last. */
static void square_part(void *context, struct ghp_part part)
{
    enum { LANES = 16 };
    const struct square_job *job = context;
    const float *x = job->of->of;
    struct ghp_range at = ghp_part_range(part, job->of->extent.n, UPDATE_GRAIN);
    double lanes[LANES] = {0}, sum = 0;
    int64_t i = at.first;
    for (; i + LANES <= at.end; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += (double)x[i + lane] * x[i + lane];
    for (; i < at.end; i++)
        sum += (double)x[i] * x[i];
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    job->parts[part.index] = sum;
}

enum ghp_status ghp_cpu_kernel_square(struct ghp_backend *backend, const struct ghp_square_sum *sum)
{
    int most = backend->config.threads < GHP_NORM_PARTS ? backend->config.threads : GHP_NORM_PARTS;
    *sum->sum = 0;
    for (int t = 0; t < sum->n; t++) {
        struct square_job job = {&sum->tensors[t], sum->scratch};
        int parts = job.of->extent.n < ALONE_ELEMENTS ? 1 : most;
        ghp_parallel(parts, square_part, &job);
        for (int part = 0; part < parts; part++)
            *sum->sum += job.parts[part];
    }
    return GHP_OK;
}

static void accumulate_part(void *context, struct ghp_part part)
{
    const struct ghp_masked_sum *sum = context;
    ghp_cpu_kernel_accumulate_part(sum, ghp_part_range(part, sum->extent.n, 16));
}

enum ghp_status ghp_cpu_kernel_accumulate_masked(struct ghp_backend *backend,
                                                 const struct ghp_masked_sum *sum)
{
    struct ghp_masked_sum job = *sum;
    ghp_parallel(sum->extent.n < ALONE_ELEMENTS ? 1 : backend->config.threads, accumulate_part,
                 &job);
    return GHP_OK;
}

enum ghp_status ghp_cpu_kernel_accumulate(struct ghp_backend *backend, void *to, const void *from,
                                          struct ghp_buffer_extent extent)
{
    return ghp_cpu_kernel_accumulate_masked(backend,
                                            &(struct ghp_masked_sum){to, from, NULL, extent});
}
