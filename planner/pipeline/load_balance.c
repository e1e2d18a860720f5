/* planner/pipeline/load_balance.c - see pipeline/load_balance.h. */
#include "planner/pipeline/load_balance.h"

#include "core/base/clock.h"
#include "core/cost/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double worth = 0.01;  /* of a step: what shares must gain over those in proportion */
static const double narrow = 1e-4; /* of a step: where the bisection ends */
/* Libraries' kernels cut a batch into blocks: over a prime number of samples some take twice as long and more, which
 * interpolated costs do not show. So shares are multiples of up to MOST_QUANTUM samples, if that is a small part of the
 * least share. */
enum { MOST_QUANTUM = 4, QUANTA = 8 };
/* of the time that is left: what one block size's splits may take */
static const double time_fraction = 0.5;

struct balance {
    const struct ghp_partition_job *job;
    const double *speed;
    int workers, block;
    const struct ghp_split *splits;
    int64_t *trial;  /* samples of each worker in the program that is simulated, */
    int64_t *filled; /* and within the step that is tried */
    int *like;       /* a block: the first block that is as fast */
    /* such a first block: seconds by samples of a worker, NAN: not simulated yet */
    double **step_s;
    int64_t units;   /* samples of one worker of each block together */
    int64_t most;    /* samples that a worker may have: all others have one at least */
    int64_t quantum; /* a power of two, divides units: of shares that are levelled */
};

/* ---- one worker ---- */

/* The step of one rank by its own program; one block takes what the others leave. */
static enum ghp_status simulate_rank(const struct balance *b, int rank, int64_t samples,
                                     double *step_s)
{
    struct ghp_staging staging = {.shares = b->trial, .speeds = b->speed};
    struct ghp_lowering lowering = *b->job->lowering;
    struct ghp_program program = {0};
    struct ghp_timing timing = {0};
    enum ghp_status status;

    for (int r = 0; r < b->workers; r++) {
        int own = rank / b->block, block = r / b->block, rest = own == 0 ? 1 : 0;

        b->trial[r] = block == own ? samples : block == rest ? b->most + 1 - samples : 1;
    }
    lowering.staging = &staging;
    GHP_TRY(ghp_lower(&lowering, b->splits, rank, &program));
    status = ghp_simulate(&program, b->job->profile, &timing);
    *step_s = timing.step_s;
    ghp_timing_release(&timing);
    ghp_program_release(&program);
    return status;
}

/* The slowest member of a block: the one it is as fast as. */
static int slowest_of(const struct balance *b, int block)
{
    int rank = block * b->block;

    for (int k = 1; k < b->block; k++)
        if (b->speed[block * b->block + k] < b->speed[rank]) rank = block * b->block + k;
    return rank;
}

/* The step of a block, with `samples` samples for each of its workers. */
static enum ghp_status step_of(const struct balance *b, int block, int64_t samples, double *step_s)
{
    double *known = &b->step_s[b->like[block]][samples];

    GHP_ASSERT(samples >= 1 && samples <= b->most);
    if (isnan(*known)) GHP_TRY(simulate_rank(b, slowest_of(b, block), samples, known));
    *step_s = *known;
    return GHP_OK;
}

/* ---- all of them ---- */

static int blocks_of(const struct balance *b)
{
    return b->workers / b->block;
}

static void balance_close(struct balance *b)
{
    for (int k = 0; b->step_s != NULL && k < blocks_of(b); k++)
        free(b->step_s[k]);
    free(b->step_s);
    free(b->like);
    free(b->trial);
}

static int64_t quantum_of(int64_t units, const int64_t *shares, int workers)
{
    int64_t least = units, quantum = 1;

    for (int r = 0; r < workers; r++)
        if (shares[r] < least) least = shares[r];
    while (quantum < MOST_QUANTUM && units % (2 * quantum) == 0 && 2 * quantum * QUANTA <= least)
        quantum *= 2;
    return quantum;
}

/* shares: in proportion to the speeds */
static enum ghp_status balance_open(const struct ghp_partition_job *job, const double *speed,
                                    int block, const int64_t *shares, struct balance *b)
{
    int blocks;

    *b = (struct balance){.job = job,
                          .speed = speed,
                          .workers = job->lowering->problem.workers,
                          .block = block,
                          .units = job->lowering->problem.global_batch / block};
    blocks = blocks_of(b);
    b->most = b->units - (blocks - 1);
    b->quantum = quantum_of(b->units, shares, b->workers);
    b->trial = ghp_alloc(2 * (size_t)b->workers, sizeof *b->trial);
    b->like = ghp_alloc((size_t)blocks, sizeof *b->like);
    b->step_s = ghp_alloc((size_t)blocks, sizeof *b->step_s);
    if (b->trial == NULL || b->like == NULL || b->step_s == NULL) return GHP_NO_MEMORY();
    b->filled = b->trial + b->workers;
    for (int k = 0; k < blocks; k++) {
        double own = ghp_speeds_block(speed, block, k);

        while (b->like[k] < k && (ghp_speeds_block(speed, block, b->like[k]) < own ||
                                  ghp_speeds_block(speed, block, b->like[k]) > own))
            b->like[k]++;
        if (b->like[k] < k) continue;
        b->step_s[k] = ghp_alloc((size_t)b->most + 1, sizeof **b->step_s);
        if (b->step_s[k] == NULL) return GHP_NO_MEMORY();
        for (int64_t n = 0; n <= b->most; n++)
            b->step_s[k][n] = NAN;
    }
    return GHP_OK;
}

static enum ghp_status worst_of(const struct balance *b, const int64_t *shares, double *worst_s)
{
    *worst_s = 0;
    for (int k = 0; k < blocks_of(b); k++) {
        double step_s;

        GHP_TRY(step_of(b, k, shares[k * b->block], &step_s));
        *worst_s = fmax(*worst_s, step_s);
    }
    return GHP_OK;
}

/* The most samples, in quanta, with which a block stays within a step; 0: not even one. */
static enum ghp_status most_within(const struct balance *b, int block, double step_s,
                                   int64_t *samples)
{
    int64_t low = 0, high = b->most + 1; /* low is within, high is not */

    while (high - low > 1) {
        int64_t mid = low + (high - low) / 2;
        double own_s;

        GHP_TRY(step_of(b, block, mid, &own_s));
        *(own_s <= step_s ? &low : &high) = mid;
    }
    *samples = low - low % b->quantum;
    return GHP_OK;
}

/* What all together can do within a step; *room: beyond the samples that there are, below 0: too little. */
static enum ghp_status fill(const struct balance *b, double step_s, int64_t *room)
{
    *room = -b->units;
    for (int k = 0; k < blocks_of(b); k++) {
        int64_t samples;

        GHP_TRY(most_within(b, k, step_s, &samples));
        *room += samples;
        for (int i = 0; i < b->block; i++)
            b->filled[k * b->block + i] = samples;
        if (samples > 0) continue;
        *room = -1;
        return GHP_OK;
    }
    return GHP_OK;
}

/* Takes away what is too much, where the step is longest. */
static enum ghp_status trim(const struct balance *b, int64_t surplus)
{
    for (; surplus > 0; surplus -= b->quantum) {
        double longest_s = -1;
        int best = 0;

        for (int k = 0; k < blocks_of(b); k++) {
            double step_s;

            if (b->filled[k * b->block] <= b->quantum) continue;
            GHP_TRY(step_of(b, k, b->filled[k * b->block], &step_s));
            if (step_s <= longest_s) continue;
            longest_s = step_s;
            best = k;
        }
        for (int i = 0; i < b->block; i++)
            b->filled[best * b->block + i] -= b->quantum;
    }
    return GHP_OK;
}

/* From shares that are there to those whose worst step is least, if that is worth it. */
static enum ghp_status level(const struct balance *b, int64_t *shares, double *worst_s)
{
    double high_s = *worst_s, low_s = 0, level_s;
    int64_t room;

    while (high_s - low_s > narrow * high_s && ghp_now_s() < b->job->deadline_s) {
        double mid_s = (low_s + high_s) / 2;

        GHP_TRY(fill(b, mid_s, &room));
        *(room >= 0 ? &high_s : &low_s) = mid_s;
    }
    GHP_TRY(fill(b, high_s, &room));
    if (room < 0) return GHP_OK; /* steps that fall with samples: the shares stay */
    GHP_TRY(trim(b, room));
    GHP_TRY(worst_of(b, b->filled, &level_s));
    if (level_s > *worst_s * (1 - worth)) return GHP_OK;
    memcpy(shares, b->filled, (size_t)b->workers * sizeof *shares);
    *worst_s = level_s;
    return GHP_OK;
}

/* ---- one block size ---- */

/* Splits for the shares of one block size: searched, or all by data if no TP size is left. */
static enum ghp_status find_splits(const struct ghp_partition_job *job, int block,
                                   const struct ghp_staging *staging, struct ghp_partition *a)
{
    int layers = job->lowering->model->n_layers;
    struct ghp_partition_job own = *job;

    *a = (struct ghp_partition){.found = true, .staging = *staging, .plans = 1};
    if (block == 1) {
        a->splits = ghp_alloc((size_t)layers, sizeof *a->splits);
        if (a->splits == NULL) return GHP_NO_MEMORY();
        for (int v = 0; v < layers; v++)
            a->splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
        return GHP_OK;
    }
    own.deadline_s = ghp_now_s() + time_fraction * (job->deadline_s - ghp_now_s());
    return ghp_partition_one(&own, staging, NULL, a);
}

/* Whether the splits stay within blocks. With few samples, blocks may get equal shares, and splits may then reach over
 * several of them; that is not a plan of this block size. */
static bool within_blocks(const struct ghp_partition *a, int layers, int block)
{
    for (int v = 0; v < layers; v++)
        if (block % a->splits[v].tp_size != 0) return false;
    return true;
}

static enum ghp_status peak_of(const struct ghp_partition_job *job, const struct ghp_partition *a,
                               int64_t *bytes)
{
    struct ghp_lowering lowering = *job->lowering;
    struct ghp_programs programs;

    lowering.staging = &a->staging;
    GHP_TRY(ghp_lower_all(&lowering, a->splits, &programs));
    *bytes = ghp_programs_peak_bytes(&programs);
    ghp_programs_release(&programs);
    return GHP_OK;
}

/* Shares, splits and shares again; a->shares has room. */
static enum ghp_status plan_blocks(const struct ghp_partition_job *job, const double *speed,
                                   int block, int64_t *shares, struct ghp_partition *a)
{
    const struct ghp_problem problem = job->lowering->problem;
    struct ghp_staging staging = {.shares = shares, .speeds = speed};
    struct balance b = {0};
    enum ghp_status status;

    ghp_speeds_deal(speed, problem.workers, block, problem.global_batch, shares);
    *a = (struct ghp_partition){0};
    if (ghp_staging_check(&staging, job->lowering->model, problem) != GHP_OK) return GHP_OK;
    GHP_TRY(find_splits(job, block, &staging, a));
    a->found = a->found && within_blocks(a, job->lowering->model->n_layers, block);
    if (!a->found) return GHP_OK;
    GHP_TRY_GOTO(status, balance_open(job, speed, block, shares, &b), done);
    b.splits = a->splits;
    GHP_TRY_GOTO(status, worst_of(&b, shares, &a->step_s), done);
    GHP_TRY_GOTO(status, level(&b, shares, &a->step_s), done);
    status = peak_of(job, a, &a->peak_bytes);
done:
    balance_close(&b);
    return status;
}

static bool is_better(const struct ghp_partition_job *job, const struct ghp_partition *a,
                      const struct ghp_partition *best)
{
    double than_s = best->found ? best->step_s : job->best_s;

    if (!a->found || (job->limit_bytes > 0 && a->peak_bytes > job->limit_bytes)) return false;
    return a->step_s < than_s * (1 - GHP_BRANCH_SAME);
}

enum ghp_status ghp_load_balance_compute(const struct ghp_partition_job *job, const double *speed,
                                         struct ghp_partition *best)
{
    const struct ghp_problem problem = job->lowering->problem;
    enum ghp_status status = GHP_OK;

    *best = (struct ghp_partition){.bound_s = INFINITY};
    for (int block = 1; block < problem.workers && status == GHP_OK; block++) {
        struct ghp_partition a = {0};
        int64_t *shares;

        if (problem.workers % block != 0 || !ghp_speeds_differ(speed, problem.workers, block))
            continue;
        if (ghp_now_s() > job->deadline_s) break;
        shares = ghp_alloc((size_t)problem.workers, sizeof *shares);
        if (shares == NULL) status = GHP_NO_MEMORY();
        if (status == GHP_OK) status = plan_blocks(job, speed, block, shares, &a);
        best->plans += a.plans;
        best->nodes += a.nodes;
        if (status == GHP_OK && is_better(job, &a, best)) {
            a.plans = best->plans;
            a.nodes = best->nodes;
            a.bound_s = INFINITY;
            a.shares = shares;
            ghp_partition_release(best);
            *best = a;
            continue;
        }
        free(shares);
        ghp_partition_release(&a);
    }
    if (status != GHP_OK) ghp_partition_release(best);
    return status;
}
