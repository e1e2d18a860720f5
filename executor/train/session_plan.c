/* executor/train/session_plan.c - see session_plan.h. */
#include "executor/train/session_plan.h"

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/units.h"
#include "core/program/lower/lower.h"
#include "executor/mixing/mixer.h"
#include "executor/platform/limits.h"

#include <stdio.h>
#include <string.h>

static bool is_comparable(const struct ghp_setup *s, const struct ghp_profile *profile)
{
    return ghp_precision_same(ghp_profile_precision(profile), s->precision) &&
           strcmp(profile->backend, s->exec.backend_ops->name) == 0 &&
           strcmp(profile->numerics, s->exact ? "exact" : "fast") == 0;
}

/* The program of a stage as a worker of it lowers it; `own` if that is this one. */
static enum ghp_status hash_stage(const struct ghp_rank_plan *rank_plan, int stage,
                                  const struct ghp_program *own, uint64_t *hash)
{
    int rank =
        ghp_stage_representative(rank_plan->lowering.staging, stage, rank_plan->lowering.problem);
    struct ghp_program other = {0};

    if (rank != own->rank)
        GHP_TRY(ghp_lower(&rank_plan->lowering, rank_plan->splits, rank, &other));
    *hash = ghp_program_hash(rank != own->rank ? &other : own, *hash);
    ghp_program_release(&other);
    return GHP_OK;
}

/* Names what is run: this worker's own program, and of other stages what their representatives lower. */
static enum ghp_status hash_programs(struct ghp_session_plan *e)
{
    const struct ghp_rank_plan *rank_plan = &e->rank_plan;
    struct ghp_program server = {0};

    e->program_hash = GHP_HASH_SEED;
    for (int k = 0; k < ghp_staging_stages(rank_plan->lowering.staging); k++)
        GHP_TRY(hash_stage(rank_plan, k, ghp_worker_program(e->worker), &e->program_hash));
    if (rank_plan->lowering.method.sync.servers == 0) return GHP_OK;
    GHP_TRY(ghp_lower_server(&rank_plan->lowering, rank_plan->splits, 0, &server));
    if (server.n_instrs > 0) e->program_hash = ghp_program_hash(&server, e->program_hash);
    ghp_program_release(&server);
    return GHP_OK;
}

/* What was costed is what runs. Another precision, or another backend than the one that the plan's memory formats are
 * for, was asked for by options. */
static enum ghp_status check_program(const struct ghp_setup *s, struct ghp_session_plan *e)
{
    const struct ghp_profile *profile = &e->plan.profile;
    uint64_t said = e->plan.predicted.program_hash;
    char priced[17], lowered[17];

    GHP_TRY(hash_programs(e));
    if (said == 0 || said == e->program_hash ||
        !ghp_precision_same(ghp_profile_precision(profile), s->precision) ||
        (e->plan.nchw16c != NULL && !e->comparable))
        return GHP_OK;
    ghp_hash_text(said, priced);
    ghp_hash_text(e->program_hash, lowered);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' was costed as program %s, but this build would run program %s; make the "
                    "plan again with its ghp-plan",
                    e->path, priced, lowered);
}

void ghp_session_plan_describe(const struct ghp_setup *s, struct ghp_session_plan *e)
{
    const struct ghp_plan *plan = &e->plan;

    e->comparable = is_comparable(s, &plan->profile);
    e->rank_plan = (struct ghp_rank_plan){
        .lowering = ghp_plan_lowering(plan, &plan->profile),
        .splits = plan->splits,
        .rank = s->rank,
        .run = {.seed = (uint64_t)s->options->seed,
                .fault = (enum ghp_fault)s->options->fault,
                .class_weights = s->class_weights,
                .blends = ghp_data_blends(s->training_config.data),
                .groups = plan->groups,
                .threads = s->threads,
                .emulated_step_s =
                    s->emulation.step_s * ghp_stragglers_factor(&s->emulation.slow, s->rank),
                .paced_by = &plan->profile,
                .mixing = &ghp_host_mixer,
                .reduces_late = s->options->overlap == GHP_OVERLAP_OFF,
                .profile = e->comparable ? &plan->profile : NULL}};
    e->rank_plan.lowering.element_bytes = s->element_bytes;
    e->rank_plan.lowering.scratch = (struct ghp_scratch_source){0};
    if (!e->comparable) e->rank_plan.lowering.nchw16c = NULL;
}

/* ", measured with 2 threads a worker, and these have 1"; "" if the numbers are equal, or not known. */
static const char *other_threads(const struct ghp_setup *s, const struct ghp_session_plan *e,
                                 char *text, size_t bytes)
{
    int measured = e->plan.profile.threads;

    *text = '\0';
    if (e->comparable && measured > 0 && measured != s->threads)
        snprintf(text, bytes, ", measured with %d thread%s a worker, and these have %d", measured,
                 ghp_plural(measured), s->threads);
    return text;
}

enum ghp_status ghp_session_plan_open(struct ghp_setup *s, struct ghp_session_plan *e)
{
    char threads[96];

    ghp_session_plan_describe(s, e);
    if (*other_threads(s, e, threads, sizeof threads) != '\0')
        ghp_note("'%s' was%s: its times are of others; profile with --threads %d and plan again",
                 e->path, threads + 1, s->threads);
    GHP_TRY(ghp_setup_agree(s, ghp_rank_plan_open(&s->exec, &e->rank_plan, &e->worker),
                            "preparing kernels"));
    GHP_TRY(ghp_setup_agree(s, check_program(s, e), "checking the program"));
    GHP_TRY(ghp_worker_connect(e->worker));
    return ghp_setup_agree(s, GHP_OK, "connecting");
}

/* A container's limit of memory is hard: who oversteps it is killed without a word. */
static enum ghp_status check_limit(const struct ghp_setup *s, const struct ghp_session_plan *e)
{
    int64_t bytes = ghp_worker_program(e->worker)->peak_bytes;
    struct ghp_limits limits;
    char need[32], have[32], each[32];

    ghp_limits_read("", &limits);
    if (limits.memory_left_bytes < 0 || ghp_exec_context_device(&s->exec).ops != NULL ||
        bytes <= limits.memory_left_bytes / s->here)
        return GHP_OK;
    ghp_bytes_format((double)bytes, need, sizeof need);
    ghp_bytes_format((double)limits.memory_left_bytes, have, sizeof have);
    ghp_bytes_format((double)(limits.memory_left_bytes / s->here), each, sizeof each);
    return GHP_FAIL(GHP_ERR_NO_MEMORY,
                    "'%s' needs %s a worker, and %s leaves %s for %d worker(s) of this node; plan "
                    "with --memory below %s, or raise the limit",
                    e->path, need, limits.memory_by, have, s->here, each);
}

/* Kernels may ask for more scratch than was planned, but not for more than the plan's limit. */
static enum ghp_status check_planned(const struct ghp_setup *s, const struct ghp_session_plan *e)
{
    int64_t bytes = ghp_worker_program(e->worker)->peak_bytes, most = e->plan.memory_limit_bytes;
    char need[32], limit[32], threads[96];

    if (!e->comparable || most == 0 || bytes <= most) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "'%s' needs %s a worker with the scratch of the kernels here, but its limit is "
                    "%s%s; plan with a larger --memory, or profile this machine again with "
                    "--threads %d and plan again",
                    e->path, ghp_bytes_format((double)bytes, need, sizeof need),
                    ghp_bytes_format((double)most, limit, sizeof limit),
                    other_threads(s, e, threads, sizeof threads), s->threads);
}

enum ghp_status ghp_session_plan_allocate(struct ghp_setup *s, struct ghp_session_plan *e)
{
    enum ghp_status status;

    status = check_planned(s, e);
    if (status == GHP_OK) status = check_limit(s, e);
    GHP_TRY(ghp_setup_agree(s, status, "counting memory"));
    status = ghp_worker_allocate(e->worker);

    GHP_TRY(ghp_setup_agree(s, status, "allocating"));
    GHP_TRY(ghp_setup_agree(s, ghp_worker_register_memory(e->worker), "registering memory"));
    return ghp_setup_agree(s, ghp_init_weights(e->worker, &s->training_config.init),
                           "making the first weights");
}

void ghp_session_plan_close(struct ghp_session_plan *e)
{
    ghp_worker_close(e->worker);
    e->worker = NULL;
}
