/* profiler/validate/validation.c - chooses, prices and measures collectives that a profile does not have. */
#include "core/base/array.h"
#include "profiler/validate/validation.h"
#include "core/base/clock.h"
#include "executor/platform/launch.h"
#include "profiler/measure/comm.h"
#include "profiler/run/participants.h"
#include "profiler/run/topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALLEST = 1024, /* [bytes]; below, a message costs the latency whatever its size */
    GROUP_STEP = 4,  /* sizes of groups without a table: powers of it times */
    GROUP_START = 2 * SMALLEST,
    ROUNDS = 3,
    ROUND_SAMPLES = 2
};
/* its multiples, cut to fractions, lie apart from each other */
static const double golden = 0.6180339887498949;
static const double least_gap = 1.1;       /* between sizes that are tried between, as a ratio */
static const double memory_fraction = 0.5; /* of a node's memory: what the buffers may take */

/* ---- what to try ---- */

static enum ghp_status add_trial(struct ghp_validation *validation,
                                 const struct ghp_worklist_comm *comm, bool in_table)
{
    GHP_TRY_ROOM(validation->trials, validation->n, validation->max);
    validation->trials[validation->n++] = (struct ghp_validation_trial){
        .comm = *comm, .costed = {[GHP_VALIDATION_SIZE] = in_table, [GHP_VALIDATION_GROUP] = true}};
    return GHP_OK;
}

/* The number of bytes nearest to `wanted` that the collective can move; `odd`: an odd number of its units. An
 * all-reduce moves any number of elements, the others as many for each rank. */
static int64_t fitting(const struct ghp_worklist_comm *comm, int element_bytes, double wanted,
                       bool odd)
{
    int64_t unit =
        comm->op == GHP_COMM_ALL_REDUCE ? element_bytes : (int64_t)element_bytes * comm->count;
    int64_t n = llround(wanted / (double)unit);

    if (odd && n % 2 == 0) n++;
    return n * unit;
}

/* Two sizes between a and b, the second at `part` of the way on the axis of logarithms. There are none if a and b are
 * next to each other on purpose, before and after a jump. */
static enum ghp_status add_gap(struct ghp_validation *validation, struct ghp_worklist_comm comm,
                               int element_bytes, const int64_t gap[2], double part)
{
    double a = (double)gap[0], b = (double)gap[1];
    int64_t sizes[] = {fitting(&comm, element_bytes, sqrt(a * b), false),
                       fitting(&comm, element_bytes, a * pow(b / a, part), true)};

    if (b < least_gap * a) return GHP_OK;
    for (int i = 0; i < 2; i++) {
        if (sizes[i] <= gap[0] || sizes[i] >= gap[1] || sizes[i] < SMALLEST) continue;
        if (i == 1 && sizes[1] == sizes[0]) continue;
        comm.bytes = sizes[i];
        GHP_TRY(add_trial(validation, &comm, true));
    }
    return GHP_OK;
}

static bool same_table(const struct ghp_comm_entry *a, const struct ghp_comm_entry *b)
{
    return a->op == b->op && a->count == b->count && a->stride == b->stride;
}

/* Everything between the entries from `first` to before `end`, which are one table. */
static enum ghp_status add_table(const struct ghp_profile *profile, int first, int end,
                                 struct ghp_validation *validation)
{
    const struct ghp_comm_entry *e = profile->comms;
    struct ghp_worklist_comm comm = {.op = e[first].op,
                                     .count = e[first].count,
                                     .stride = e[first].stride,
                                     .bytes = e[first].bytes};

    if (end - first == 1)
        return add_trial(validation, &comm, false); /* its own size, but without it */
    for (int i = first; i + 1 < end; i++) {
        double fraction = fmod(golden * (i - first + 1), 1);
        const int64_t gap[2] = {e[i].bytes, e[i + 1].bytes};

        GHP_TRY(add_gap(validation, comm, profile->element_bytes, gap, 0.15 + 0.7 * fraction));
    }
    return GHP_OK;
}

static bool has_table(const struct ghp_profile *profile, enum ghp_comm_op op, int count, int stride)
{
    const struct ghp_comm_entry like = {.op = op, .count = count, .stride = stride};

    for (int i = 0; i < profile->n_comms; i++)
        if (same_table(&profile->comms[i], &like)) return true;
    return false;
}

/* Groups of `op` that fit into the ranks and have no table, up to the largest size of the operation. */
static enum ghp_status add_groups(const struct ghp_profile *profile, int ranks, enum ghp_comm_op op,
                                  struct ghp_validation *validation)
{
    int64_t largest = 0;

    for (int i = 0; i < profile->n_comms; i++)
        if (profile->comms[i].op == op && profile->comms[i].bytes > largest)
            largest = profile->comms[i].bytes;
    for (int count = 2; count <= ranks; count++)
        for (int stride = 1; count * stride <= ranks; stride++) {
            struct ghp_worklist_comm comm = {.op = op, .count = count, .stride = stride};

            if (has_table(profile, op, count, stride)) continue;
            for (int64_t bytes = GROUP_START; bytes <= largest; bytes *= GROUP_STEP) {
                comm.bytes = fitting(&comm, profile->element_bytes, (double)bytes, false);
                GHP_TRY(add_trial(validation, &comm, false));
            }
        }
    return GHP_OK;
}

/* Source   Fisher and Yates; the numbers by a linear congruence (Knuth's multiplier for 64 bits) */
static void shuffle(struct ghp_validation *validation)
{
    uint64_t state = 1;

    for (int i = validation->n - 1; i > 0; --i) {
        struct ghp_validation_trial last = validation->trials[i];
        int j;

        state = state * 6364136223846793005u + 1442695040888963407u;
        j = (int)((state >> 33) % (uint64_t)(i + 1));
        validation->trials[i] = validation->trials[j];
        validation->trials[j] = last;
    }
}

enum ghp_status ghp_validation_collect(const struct ghp_profile *profile, int ranks,
                                       struct ghp_validation *validation)
{
    int first = 0;

    *validation = (struct ghp_validation){0};
    GHP_ASSERT(profile->finalized);
    for (int i = 1; i <= profile->n_comms; i++) {
        const struct ghp_comm_entry *e = &profile->comms[first];

        if (i < profile->n_comms && same_table(e, &profile->comms[i])) continue;
        if ((int64_t)e->count * e->stride <= ranks)
            GHP_TRY(add_table(profile, first, i, validation));
        if (i == profile->n_comms || profile->comms[i].op != e->op)
            GHP_TRY(add_groups(profile, ranks, e->op, validation));
        first = i;
    }
    shuffle(validation);
    return GHP_OK;
}

void ghp_validation_release(struct ghp_validation *validation)
{
    free(validation->trials);
    *validation = (struct ghp_validation){0};
}

/* ---- prices ---- */

/* The profile's collectives without one table; links fitted to what is left. */
static enum ghp_status copy_without(const struct ghp_profile *profile,
                                    const struct ghp_worklist_comm *table, struct ghp_profile *copy)
{
    enum ghp_status status =
        ghp_profile_init(copy, profile->backend, profile->numerics, profile->element_bytes);

    GHP_TRY(status);
    ghp_machine_release(&copy->machine);
    GHP_TRY_GOTO(status, ghp_machine_copy(&profile->machine, &copy->machine), done);
    copy->workers = profile->workers;
    for (int i = 0; i < profile->n_comms; i++) {
        const struct ghp_comm_entry *e = &profile->comms[i];

        if (e->op == table->op && e->count == table->count && e->stride == table->stride) continue;
        GHP_TRY_GOTO(status, ghp_profile_add_comm(copy, e), done);
    }
    ghp_measure_fit_links(copy, copy->workers);
    status = ghp_profile_finalize(copy);
done:
    if (status != GHP_OK) ghp_profile_release(copy);
    return status;
}

static enum ghp_status predict(const struct ghp_profile *profile,
                               struct ghp_validation_trial *trial, enum ghp_validation_kind kind)
{
    struct ghp_ranks ranks = {.count = trial->comm.count, .stride = trial->comm.stride};
    struct ghp_cost cost = {0};

    GHP_TRY(ghp_profile_comm(profile, trial->comm.op, trial->comm.bytes, ranks, profile->workers,
                             &cost));
    trial->predicted_s[kind] = cost.seconds;
    return GHP_OK;
}

/* Prices the trials of trial `first`'s table by the profile without that table. */
static enum ghp_status predict_without(const struct ghp_profile *profile,
                                       struct ghp_validation *validation, int first)
{
    const struct ghp_worklist_comm table = validation->trials[first].comm;
    struct ghp_profile without = {0};
    enum ghp_status status = copy_without(profile, &table, &without);

    GHP_TRY(status);
    for (int i = first; i < validation->n && status == GHP_OK; i++) {
        const struct ghp_worklist_comm *comm = &validation->trials[i].comm;

        if (comm->op == table.op && comm->count == table.count && comm->stride == table.stride)
            status = predict(&without, &validation->trials[i], GHP_VALIDATION_GROUP);
    }
    ghp_profile_release(&without);
    return status;
}

enum ghp_status ghp_validation_predict(const struct ghp_profile *profile,
                                       struct ghp_validation *validation)
{
    for (int i = 0; i < validation->n; i++) {
        struct ghp_validation_trial *trial = &validation->trials[i];

        if (trial->costed[GHP_VALIDATION_SIZE])
            GHP_TRY(predict(profile, trial, GHP_VALIDATION_SIZE));
        if (!(trial->predicted_s[GHP_VALIDATION_GROUP] >
              0)) /* not yet by an earlier one of its table */
            GHP_TRY(predict_without(profile, validation, i));
    }
    return GHP_OK;
}

/* ---- measuring ---- */

/* One run. */
struct run {
    const struct ghp_validation_request *request;
    struct ghp_validation_result *result;
    struct ghp_measure m;
    int ranks_per_node;
    int64_t memory_bytes; /* for this rank's buffers */
    bool exact;           /* the profile's numerics; rank 0 */
};

/* The profile must be of these very ranks and nodes: others are another machine. */
static enum ghp_status check_profile(const struct run *run, const struct ghp_profile *profile)
{
    const char *path = run->request->profile_path;

    if (profile->n_comms == 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot try '%s': it has no measured collectives; give a "
                        "profile that two ranks or more have measured",
                        path);
    if (profile->on_device)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot try '%s': its collectives are between GPUs; give a "
                        "profile of processors",
                        path);
    if (profile->workers != run->m.size)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot try '%s': it was measured with %d ranks, not %d; use %s -n %d",
                        path, profile->workers, run->m.size, ghp_launched_by(), profile->workers);
    if (profile->machine.nodes != run->result->nodes)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "cannot try '%s': it was measured on %d node(s), not %d; start "
                        "the ranks where it was measured",
                        path, profile->machine.nodes, run->result->nodes);
    return GHP_OK;
}

/* Rank 0's reading of the profile: what to try, at which price. */
static enum ghp_status choose(struct run *run)
{
    struct ghp_profile profile = {0};
    enum ghp_status status = ghp_profile_load(run->request->profile_path, &profile);

    GHP_TRY(status);
    GHP_TRY_GOTO(status, check_profile(run, &profile), done);
    run->m.element_bytes = profile.element_bytes;
    run->exact = strcmp(profile.numerics, "exact") == 0;
    GHP_TRY_GOTO(status, ghp_validation_collect(&profile, run->m.size, &run->result->validation),
                 done);
    status = ghp_validation_predict(&profile, &run->result->validation);
done:
    ghp_profile_release(&profile);
    return status;
}

/* Rank 0's trials, to all. */
static enum ghp_status broadcast(struct run *run, enum ghp_status status)
{
    struct ghp_validation *validation = &run->result->validation;
    int32_t head[3] = {validation->n, run->m.element_bytes, run->exact};

    GHP_TRY(ghp_measure_broadcast(&run->m, status, head, (int64_t)sizeof head));
    run->m.element_bytes = head[1];
    run->m.transport->host->in_rank_order = head[2] != 0;
    if (run->m.rank != 0 && head[0] > 0) {
        validation->trials = ghp_alloc((size_t)head[0], sizeof *validation->trials);
        validation->n = validation->max = validation->trials != NULL ? head[0] : 0;
        if (validation->trials == NULL) status = GHP_NO_MEMORY();
    }
    if (head[0] == 0) return GHP_OK;
    return ghp_measure_broadcast(&run->m, status, validation->trials,
                                 (int64_t)head[0] * (int64_t)sizeof *validation->trials);
}

/* Binds this rank as for a profile. */
static enum ghp_status settle(struct run *run)
{
    struct ghp_binding_request request = {.workers = run->m.size,
                                          .rank = run->m.rank,
                                          .here = run->ranks_per_node,
                                          .processors = run->m.transport->control->processors};
    struct ghp_machine machine = {0};
    struct ghp_binding binding = {0};
    enum ghp_status status = ghp_topology_read_here(
        ghp_launched_allotted() ? run->m.transport->control->processors : NULL, run->result->nodes,
        &machine);

    GHP_TRY(status);
    status = ghp_binding_set(&machine, request, run->request->bind, &binding);
    run->memory_bytes =
        (int64_t)(memory_fraction * (double)machine.memory_bytes / run->ranks_per_node);
    run->m.sample_s = run->request->sample_s * (binding.oversubscribed ? 2 : 1);
    ghp_machine_release(&machine);
    return status;
}

static enum ghp_status measure(struct run *run)
{
    struct ghp_validation *validation = &run->result->validation;
    struct ghp_worklist worklist = {.n_comms = validation->n,
                                    .comms =
                                        ghp_alloc((size_t)validation->n, sizeof *worklist.comms)};
    struct ghp_profile scratch = {0};
    double start_s = ghp_now_s(), unused = 0;
    enum ghp_status status = worklist.comms != NULL ? GHP_OK : GHP_NO_MEMORY();

    for (int i = 0; i < validation->n && status == GHP_OK; i++)
        worklist.comms[i] = validation->trials[i].comm;
    if (status == GHP_OK) status = ghp_profile_init(&scratch, "", "", run->m.element_bytes);
    GHP_TRY_GOTO(status, ghp_measure_max(&run->m, status, &unused), done);
    for (int round = 1; round <= ROUNDS; round++) {
        struct ghp_comm_limits limits = {.samples = ROUND_SAMPLES,
                                         .deadline_s =
                                             start_s + run->request->budget_s * round / ROUNDS,
                                         .memory_bytes = run->memory_bytes};

        GHP_TRY_GOTO(status, ghp_measure_comms(&run->m, &worklist, limits, &scratch), done);
    }
    for (int i = 0; i < validation->n; i++)
        validation->trials[i].comm = worklist.comms[i];
done:
    ghp_profile_release(&scratch);
    ghp_worklist_release(&worklist);
    return status;
}

enum ghp_status ghp_validation_run(const struct ghp_validation_request *request,
                                   struct ghp_transport *transport,
                                   struct ghp_validation_result *result)
{
    struct run run = {.request = request, .result = result};
    double start_s = ghp_now_s();
    enum ghp_status status = GHP_OK;

    *result = (struct ghp_validation_result){0};
    GHP_TRY(ghp_participants_ranks(transport, &run.m));
    result->ranks = run.m.size;
    GHP_TRY(ghp_participants_nodes(&run.m, &result->nodes, &run.ranks_per_node));
    status = run.m.rank == 0 ? choose(&run) : GHP_OK;
    GHP_TRY_GOTO(status, broadcast(&run, status), done);
    status = settle(&run);
    GHP_TRY_GOTO(status, ghp_measure_max(&run.m, status, &run.m.sample_s), done);
    result->oversubscribed = run.m.shares_cores = run.m.sample_s > request->sample_s;
    if (result->validation.n > 0) status = measure(&run);
done:
    result->seconds = ghp_now_s() - start_s;
    if (status != GHP_OK) ghp_validation_release(&result->validation);
    return status;
}
