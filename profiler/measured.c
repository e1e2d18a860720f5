/* profiler/measured.c - the measuring run: who, where, what, in which order, saved how often. */
#include "profiler/measured.h"
#include "core/log.h"
#include "executor/opbench.h"
#include "profiler/measure_comm.h"
#include "profiler/measure_overlap.h"
#include "profiler/measure_pace.h"
#include "profiler/measure_rates.h"
#include "profiler/measure_speed.h"
#include "profiler/muster.h"
#include "profiler/resume.h"
#include "profiler/topology.h"

#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    HOST_BYTES = 256,
    ROUNDS = 3, /* through everything: what drifts with time then touches all alike */
    ROUND_SAMPLES = 2
};
static const double comm_share = 0.35; /* of the time left: what collectives may take of a round */
/* of a node's or a device's memory: what measuring may take */
static const double memory_share = 0.5;

/* Everything of one run. */
struct run {
    const struct ghp_measured_request *request;
    struct ghp_measured_result *result;
    struct ghp_measure m;
    struct ghp_agenda agenda;
    struct ghp_profile *profile; /* in result */
    int ranks_per_node;
    int sharing;          /* ranks of one device */
    int64_t memory_bytes; /* what measuring may take of this rank's memory */
    double start_s;
    struct ghp_speeds speeds; /* of the workers */
};

/* The folder is looked at before hours are spent on what goes there. */
static enum ghp_status check_output(const char *path)
{
    char copy[PATH_MAX];
    const char *folder = NULL;

    if (strlen(path) >= sizeof copy)
        return GHP_FAIL(GHP_ERR_IO, "cannot write '%s': the name is too long; shorten it", path);
    memcpy(copy, path, strlen(path) + 1);
    folder = dirname(copy);
    if (access(folder, F_OK) != 0)
        return GHP_FAIL(GHP_ERR_IO,
                        "cannot write '%s': there is no folder '%s'; make it, or give "
                        "another -o",
                        path, folder);
    if (access(folder, W_OK) != 0)
        return GHP_FAIL(GHP_ERR_IO, "cannot write '%s': folder '%s' is read-only; give another -o",
                        path, folder);
    return GHP_OK;
}

static enum ghp_status check_request(const struct run *run)
{
    const struct ghp_measured_request *request = run->request;
    int workers = run->result->workers;

    if (run->m.size > workers)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "cannot measure with %d ranks for %d workers: ranks that no plan uses would "
            "disturb; use mpirun -n %d, or --workers %d",
            run->m.size, workers, workers, run->m.size);
    for (int i = 0; i < request->n_batches; ++i) {
        struct ghp_extent extent = {.workers = workers, .global_batch = request->batches[i]};

        GHP_TRY(ghp_extent_check(extent));
    }
    if (!ghp_backend_has(request->backend_ops, request->precision))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "backend '%s' cannot compute in %s; use --backend %s, or "
                        "--precision float",
                        request->backend_ops->name, ghp_precision_name(request->precision),
                        request->precision.element_bytes == 8 ? "reference" : "cuda");
    return run->m.rank == 0 ? check_output(request->output) : GHP_OK;
}

/* Provenance: when and where. */
static enum ghp_status stamp(struct ghp_profile *profile)
{
    char when[32] = "", host[HOST_BYTES] = "";
    time_t now = time(NULL);
    struct tm utc;

    if (gmtime_r(&now, &utc) != NULL) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    free(profile->created);
    free(profile->host);
    profile->created = strdup(when);
    profile->host = strdup(host);
    return profile->created != NULL && profile->host != NULL ? GHP_OK : GHP_NO_MEMORY();
}

/* The profile before anything is measured. */
static enum ghp_status blank(struct run *run, int nodes)
{
    const struct ghp_measured_request *request = run->request;
    struct ghp_profile *profile = run->profile;

    GHP_TRY(ghp_profile_init(profile, request->backend_ops->name, request->exact ? "exact" : "fast",
                             request->precision.element_bytes));
    profile->tf32 = request->precision.tf32;
    ghp_machine_release(&profile->machine);
    GHP_TRY(ghp_topology_read(NULL, nodes, &profile->machine));
    if (request->memory_bytes > 0) profile->machine.memory_bytes = request->memory_bytes;
    profile->machine.intra = request->intra;
    profile->machine.inter = request->inter;
    profile->workers = run->m.size;
    return ghp_profile_seal(profile);
}

/* The devices as their own library sees them, which knows more than hwloc. */
static enum ghp_status note_gpus(struct ghp_gpus *gpus, const struct ghp_device_about *about,
                                 int64_t memory_bytes)
{
    free(gpus->name);
    gpus->name = strdup(about->name);
    gpus->count = about->count;
    gpus->memory_bytes = memory_bytes;
    return gpus->name != NULL ? GHP_OK : GHP_NO_MEMORY();
}

/* A device's own memory and cache count there. */
static enum ghp_status note_device(struct run *run)
{
    struct ghp_device device = ghp_measure_device(&run->m);
    struct ghp_device_memory memory = {0};
    struct ghp_device_about about = {0};

    run->memory_bytes =
        (int64_t)(memory_share * (double)run->profile->machine.memory_bytes) / run->ranks_per_node;
    if (device.ops == NULL) return GHP_OK;
    device.ops->about(device.backend, &about);
    GHP_TRY(device.ops->memory(device.backend, &memory));
    run->sharing = (run->ranks_per_node + about.count - 1) / about.count;
    run->m.cache_bytes = about.cache_bytes;
    run->memory_bytes = (int64_t)(memory_share * (double)memory.free_bytes) / run->sharing;
    return note_gpus(&run->profile->machine.gpus, &about, memory.total_bytes);
}

/* Who carries tensors: decided by all together, after every backend is open. */
static enum ghp_status open_carrier(struct run *run)
{
    struct ghp_team team = {.backend_ops = run->m.backend_ops,
                            .backend = run->m.backend,
                            .transport_ops = run->m.transport_ops,
                            .transport = run->m.transport};
    enum ghp_status status =
        ghp_carrier_open(&team, run->request->carrier, run->request->watchdog_s);

    run->m.carrier_ops = team.carrier_ops;
    run->m.carrier = team.carrier;
    return status;
}

/* What a worker takes of a device beside its arena: the driver's, the libraries' and the communicators' memory. */
static enum ghp_status note_beside(struct run *run)
{
    struct ghp_device device = ghp_measure_device(&run->m);
    struct ghp_device_memory memory = {0};
    double beside = 0;
    enum ghp_status status;

    if (device.ops == NULL) return GHP_OK;
    status = device.ops->memory(device.backend, &memory);
    beside = (double)(memory.total_bytes - memory.free_bytes) / run->sharing;
    GHP_TRY(ghp_measure_max(&run->m, status, &beside));
    run->profile->beside_bytes = (int64_t)beside;
    return GHP_OK;
}

/* Binds this rank as a training worker is bound, and opens the backend with the threads it would have. */
static enum ghp_status settle(struct run *run)
{
    struct ghp_crew crew = {
        .workers = run->m.size, .rank = run->m.rank, .here = run->ranks_per_node};
    struct ghp_backend_config config = {.element_bytes = run->request->precision.element_bytes,
                                        .tf32 = run->request->precision.tf32,
                                        .threads = run->request->threads,
                                        .exact = run->request->exact,
                                        .seat = run->m.rank % run->ranks_per_node};
    struct ghp_binding binding = {0};

    GHP_TRY(ghp_binding_set(&run->profile->machine, crew, run->request->bind, &binding));
    if (config.threads == 0) config.threads = binding.n_cores;
    run->result->threads = config.threads;
    snprintf(run->result->binding, sizeof run->result->binding, "%s", binding.text);
    run->m.backend_ops = run->request->backend_ops;
    run->m.element_bytes = config.element_bytes;
    run->m.cache_bytes = ghp_topology_cache_bytes();
    run->m.sample_s = run->request->sample_s * (binding.oversubscribed ? 2 : 1);
    run->m.transport_ops->sum_in_rank_order(run->m.transport, run->request->exact);
    GHP_TRY(run->m.backend_ops->open(&config, &run->m.backend));
    return note_device(run);
}

/* ---- what is known, and what is to be measured ---- */

/* An earlier file's measurements on rank 0 in the place of the blank profile; whether there are any, to all. */
static enum ghp_status take_earlier(struct run *run, bool *taken)
{
    const struct ghp_measured_request *request = run->request;
    enum ghp_status status = GHP_OK;
    bool resumed = false;

    *taken = false;
    if (run->m.rank == 0 && !request->fresh)
        status = ghp_resume_load(request->output, run->profile, &resumed);
    if (status == GHP_OK && run->m.rank == 0 && !resumed && request->like != NULL)
        status = ghp_resume_like(request->like, run->profile);
    if (status == GHP_OK && resumed) ghp_note("continuing '%s'", request->output);
    *taken = resumed || request->like != NULL;
    return ghp_measure_share(&run->m, status, taken, (int64_t)sizeof *taken);
}

/* Whether the workers are equally fast: where each has a place of its own, and all are there. */
static enum ghp_status measure_speeds(struct run *run)
{
    const struct ghp_measure *m = &run->m;

    if (run->request->alike || m->shares_cores || m->size < 2 || m->size != run->result->workers)
        return GHP_OK;
    return ghp_measure_speed(m, &run->profile->speeds);
}

/* The profile's speeds, perhaps an earlier file's, to all: what it has and gets is the slowest worker's by these. */
static enum ghp_status share_speeds(struct run *run)
{
    struct ghp_measure *m = &run->m;
    const struct ghp_speeds *own = &run->profile->speeds;
    int n = own->n;
    double *of;

    GHP_TRY(ghp_measure_share(m, GHP_OK, &n, (int64_t)sizeof n));
    if (n != m->size) return GHP_OK;
    of = ghp_alloc((size_t)n, sizeof *of);
    if (of != NULL && m->rank == 0) memcpy(of, own->of, (size_t)n * sizeof *of);
    run->speeds = (struct ghp_speeds){.n = of != NULL ? n : 0, .of = of};
    GHP_TRY(
        ghp_measure_share(m, of != NULL ? GHP_OK : GHP_NO_MEMORY(), of, n * (int64_t)sizeof *of));
    m->speed = of[m->rank];
    for (int r = 0; r < n; ++r)
        m->fastest = fmax(m->fastest, of[r]);
    return GHP_OK;
}

/* What rank 0's profile has, to all. */
static enum ghp_status share_kept(struct run *run)
{
    struct ghp_agenda *agenda = &run->agenda;
    size_t n = (size_t)agenda->n_ops + (size_t)agenda->n_comms + 1;
    unsigned char *flags = ghp_alloc(n, 1);
    enum ghp_status status = flags != NULL ? GHP_OK : GHP_NO_MEMORY();

    if (run->m.rank == 0) ghp_resume_mark(run->profile, agenda);
    for (int i = 0; i < agenda->n_ops && status == GHP_OK; ++i)
        flags[i] = agenda->ops[i].kept;
    for (int i = 0; i < agenda->n_comms && status == GHP_OK; ++i)
        flags[agenda->n_ops + i] = agenda->comms[i].kept;
    status = ghp_measure_share(&run->m, status, flags, (int64_t)n);
    for (int i = 0; i < agenda->n_ops && status == GHP_OK; ++i)
        agenda->ops[i].kept = flags[i] != 0;
    for (int i = 0; i < agenda->n_comms && status == GHP_OK; ++i)
        agenda->comms[i].kept = flags[agenda->n_ops + i] != 0;
    free(flags);
    return status;
}

/* An earlier file first: its entries are by its workers' speeds, so the agenda must be by these too. */
static enum ghp_status collect(struct run *run)
{
    const struct ghp_measured_request *request = run->request;
    struct ghp_agenda_request wanted = {.models = request->models,
                                        .n_models = request->n_models,
                                        .batches = request->batches,
                                        .n_batches = request->n_batches,
                                        .workers = run->result->workers,
                                        .ranks = run->m.size,
                                        .element_bytes = request->precision.element_bytes,
                                        .bucket_bytes = request->bucket_bytes,
                                        .speeds = &run->speeds};
    double unused = 0;
    bool taken;

    GHP_TRY(take_earlier(run, &taken));
    if (!taken) GHP_TRY(ghp_measure_max(&run->m, measure_speeds(run), &unused));
    GHP_TRY(share_speeds(run));
    GHP_TRY(ghp_measure_max(&run->m, ghp_agenda_collect(&wanted, &run->agenda), &unused));
    return share_kept(run);
}

static enum ghp_status task_run(void *context, int64_t repeats)
{
    return ghp_opbench_run(context, (int)fmin((double)repeats, INT_MAX));
}

static bool beside_reductions(const struct ghp_agenda_op *op)
{
    return op->value == GHP_VALUE_DATA && op->pass != GHP_PASS_FORWARD && op->flops > 0;
}

/* What is computed while gradients are reduced: backward operations of pure data parallelism, drawn by their share of
 * the work.  Returns how many; 0: the models have none. */
static int typical(const struct ghp_agenda *agenda, const struct ghp_agenda_op **ops)
{
    double all = 0, passed = 0, drawn = 0.5;
    int n = 0;

    for (int i = 0; i < agenda->n_ops; ++i)
        if (beside_reductions(&agenda->ops[i])) all += agenda->ops[i].flops;
    for (int i = 0; i < agenda->n_ops; ++i) {
        if (!beside_reductions(&agenda->ops[i])) continue;
        passed += agenda->ops[i].flops;
        if (n == GHP_OVERLAP_TASKS || passed < all * drawn / GHP_OVERLAP_TASKS) continue;
        ops[n++] = &agenda->ops[i];
        while (passed >= all * drawn / GHP_OVERLAP_TASKS)
            drawn += 1;
    }
    return n;
}
static enum ghp_status measure_overlap(struct run *run)
{
    const struct ghp_agenda_op *ops[GHP_OVERLAP_TASKS];
    struct ghp_opbench *benches[GHP_OVERLAP_TASKS] = {NULL};
    struct ghp_task tasks[GHP_OVERLAP_TASKS];
    int n = typical(&run->agenda, ops);
    double unused = 0;
    enum ghp_status status = GHP_OK;

    if (n == 0) return GHP_OK;
    for (int i = 0; i < n && status == GHP_OK; ++i) {
        struct ghp_opbench_task task = ghp_measure_op_task(&run->m, ops[i]);

        status = ghp_opbench_open(run->m.backend_ops, run->m.backend, &task, &benches[i]);
        tasks[i] = (struct ghp_task){
            .run = task_run, .context = benches[i], .clock = ghp_measure_clock(&run->m)};
    }
    GHP_TRY_GOTO(status, ghp_measure_max(&run->m, status, &unused), done);
    status = ghp_measure_overlap(&run->m, tasks, n, &run->profile->overlap);
done:
    for (int i = 0; i < n; ++i)
        ghp_opbench_close(benches[i]);
    return status;
}

/* Rates and slowdowns, unless the earlier file has them. */
static enum ghp_status measure_rates(struct run *run)
{
    const struct ghp_profile *old = run->profile;
    unsigned char known[2] = {old->update.source == GHP_SOURCE_MEASURED &&
                                  old->update.bandwidth_Bps > 0,
                              old->overlap.compute >= 1};
    int64_t samples = run->request->batches[0] / run->result->workers;

    GHP_TRY(ghp_measure_share(&run->m, GHP_OK, known, 2));
    if (!known[0])
        GHP_TRY(ghp_measure_rates(&run->m, &run->request->models[0], samples, run->profile));
    return known[0] && known[1] ? GHP_OK : measure_overlap(run);
}

/* Rank 0's file, with laws as far as they are known. */
static enum ghp_status save(void *context)
{
    struct run *run = context;

    GHP_TRY(stamp(run->profile));
    GHP_TRY(ghp_profile_seal(run->profile));
    ghp_measure_fit_law(&run->agenda, run->profile);
    ghp_measure_fit_links(run->profile, run->m.size);
    GHP_TRY(ghp_profile_seal(run->profile));
    return ghp_profile_save(run->request->output, run->profile);
}

static enum ghp_status finish(struct run *run)
{
    double unused = 0;
    enum ghp_status status = GHP_OK;

    if (run->m.rank == 0) {
        status = save(run);
        if (status == GHP_OK)
            status = ghp_measure_fill(&run->m, &run->agenda, run->profile, &run->result->ops);
        if (status == GHP_OK) status = ghp_profile_save(run->request->output, run->profile);
    }
    return ghp_measure_max(&run->m, status, &unused);
}

/* Collectives, then operations, each as far as the time goes. */
static enum ghp_status measure_round(struct run *run)
{
    double end_s = run->start_s + run->request->budget_s, now_s = ghp_measure_now_s();
    struct ghp_comm_limits comm_limits = {.samples = ROUND_SAMPLES,
                                          .deadline_s = now_s + comm_share * (end_s - now_s),
                                          .memory_bytes = run->memory_bytes};
    struct ghp_ops_limits ops_limits = {.samples = ROUND_SAMPLES,
                                        .deadline_s = end_s,
                                        .memory_bytes = run->memory_bytes,
                                        .save = save,
                                        .context = run};

    GHP_TRY(ghp_measure_comms(&run->m, &run->agenda, comm_limits, run->profile));
    return ghp_measure_ops(&run->m, &run->agenda, &ops_limits, run->profile);
}

static void count_all(struct run *run)
{
    struct ghp_measured_result *result = run->result;

    for (int i = 0; i < run->agenda.n_ops; ++i) {
        result->ops.kept += run->agenda.ops[i].kept;
        result->ops.measured += run->agenda.ops[i].samples.n > 0;
    }
    for (int i = 0; i < run->agenda.n_comms; ++i) {
        result->comms_kept += run->agenda.comms[i].kept;
        result->comms_measured += run->agenda.comms[i].samples.n > 0;
    }
    result->comms_left = run->agenda.n_comms - result->comms_kept - result->comms_measured;
}

/* Of the rounds that measured the operations, perhaps an earlier file's. */
static void note_pace(struct ghp_profile *profile, const struct ghp_samples samples[GHP_PACE_JOBS])
{
    if (profile->pace.compute_s > 0) return;
    profile->pace = (struct ghp_pace){.compute_s = ghp_measure_summary(&samples[0]).seconds,
                                      .memory_s = ghp_measure_summary(&samples[1]).seconds};
}

static enum ghp_status measure_all(struct run *run)
{
    struct ghp_samples pace[GHP_PACE_JOBS] = {{0}};

    GHP_TRY(measure_rates(run));
    for (int i = 0; i < ROUNDS; ++i) {
        GHP_TRY(ghp_measure_pace(&run->m, pace));
        GHP_TRY(measure_round(run));
    }
    note_pace(run->profile, pace);
    GHP_TRY(note_beside(run));
    count_all(run);
    return finish(run);
}

static enum ghp_status prepare(struct run *run)
{
    double unused = 0;
    int nodes = 1;
    enum ghp_status status = check_request(run);

    GHP_TRY(ghp_measure_max(&run->m, status, &unused));
    GHP_TRY(ghp_muster_nodes(&run->m, &nodes, &run->ranks_per_node));
    run->result->nodes = nodes;
    status = blank(run, nodes);
    if (status == GHP_OK) status = settle(run);
    /* cores may be shared by some ranks only, but all must count alike */
    GHP_TRY(ghp_measure_max(&run->m, status, &run->m.sample_s));
    run->result->oversubscribed = run->m.shares_cores = run->m.sample_s > run->request->sample_s;
    GHP_TRY(ghp_measure_max(&run->m, open_carrier(run), &unused));
    return collect(run);
}

enum ghp_status ghp_measured_agree(const struct ghp_transport_ops *transport_ops,
                                   struct ghp_transport *transport, enum ghp_status status)
{
    struct ghp_measure m;
    double unused = 0;

    GHP_TRY(ghp_muster_ranks(transport_ops, transport, &m));
    return ghp_measure_max(&m, status, &unused);
}

enum ghp_status ghp_measured_spokesman(const struct ghp_transport_ops *transport_ops,
                                       struct ghp_transport *transport, bool *speaks)
{
    struct ghp_measure m;
    bool own = !ghp_measure_is_echo();
    double first = 0, mine = 0;

    GHP_TRY(ghp_muster_ranks(transport_ops, transport, &m));
    mine = own ? m.size - m.rank : 0;
    first = mine;
    GHP_TRY(ghp_measure_max(&m, GHP_OK, &first));
    *speaks = own && !(mine < first);
    return GHP_OK;
}

enum ghp_status ghp_measured_run(const struct ghp_measured_request *request,
                                 const struct ghp_transport_ops *transport_ops,
                                 struct ghp_transport *transport,
                                 struct ghp_measured_result *result)
{
    struct run run = {.request = request, .result = result, .start_s = ghp_measure_now_s()};
    enum ghp_status status = GHP_OK;

    memset(result, 0, sizeof *result);
    run.profile = &result->profile;
    GHP_TRY(ghp_muster_ranks(transport_ops, transport, &run.m));
    result->ranks = run.m.size;
    result->workers = request->workers > 0 ? request->workers : run.m.size;
    GHP_TRY_GOTO(status, prepare(&run), done);
    status = measure_all(&run);
done:
    result->seconds = ghp_measure_now_s() - run.start_s;
    if (run.m.carrier_ops != NULL) run.m.carrier_ops->close(run.m.carrier);
    if (run.m.backend != NULL) run.m.backend_ops->close(run.m.backend);
    ghp_agenda_release(&run.agenda);
    ghp_speeds_release(&run.speeds);
    if (status != GHP_OK) ghp_profile_release(&result->profile);
    return status;
}
