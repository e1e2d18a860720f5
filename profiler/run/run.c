/* profiler/run/run.c - the measuring run: in which order, saved how often. */
#include "profiler/run/run_private.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/units.h"

#include "executor/compare/host_load.h"
#include "profiler/measure/comm.h"
#include "profiler/measure/speed_probe.h"
#include "profiler/run/participants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    HOST_BYTES = 256,
    ROUNDS = 3,      /* through everything: what drifts with time then touches all alike */
    MOST_ROUNDS = 5, /* if other programs disturb */
    ROUND_SAMPLES = 2,
    /* if what to measure was named: what is not calm after the first round has a second one */
    NAMED_ROUNDS = 2,
    NAMED_SAMPLES = 3
};
static const double calm = 0.03; /* of the spread */
/* of a sample's length: what waits for a plan is to be short */
static const double named_sample = 0.5;
/* of the cores, and of a fixed job's seconds: less is chance */
static const double least_foreign = 0.03, least_drift = 0.1;
static const double budget_overrun = 1.1; /* of the budget: more is explained */
/* of the time left: what collectives may take of a round; of the budget: rates, from when on some are derived */
static const double comm_fraction = 0.35, rates_fraction = 0.5;

/* Rates and slowdowns may take a part of the budget only, and if what to measure is named a plan waits. */
static double effort_of(const struct ghp_profiling_request *request)
{
    double least = 0.1, usual_s = 120; /* of the budget, from which on nothing is spared */

    if (request->only != NULL) usual_s = fmax(usual_s, 2.5 * request->budget_s);
    return fmin(1, fmax(least, request->budget_s / usual_s));
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

/* Rank 0's file, with analytic models as far as they are known. */
static enum ghp_status save(void *context)
{
    struct ghp_profiling *run = context;

    GHP_TRY(stamp(run->profile));
    GHP_TRY(ghp_profile_finalize(run->profile));
    ghp_measure_fit_analytic(&run->worklist, run->profile);
    ghp_measure_fit_links(run->profile, run->m.size);
    GHP_TRY(ghp_profile_finalize(run->profile));
    GHP_TRY(ghp_cache_keep(&run->cache, &run->m, &run->worklist, run->profile));
    return ghp_profile_save(run->request->output, run->profile);
}

static enum ghp_status finish(struct ghp_profiling *run)
{
    double unused = 0;
    enum ghp_status status = GHP_OK;

    if (run->m.rank == 0) {
        double start_s = ghp_now_s();

        status = save(run);
        if (status == GHP_OK)
            status = ghp_measure_fill(&run->m, &run->worklist, run->profile, &run->result->ops);
        if (status == GHP_OK) status = ghp_profile_save(run->request->output, run->profile);
        run->filling_s = ghp_now_s() - start_s;
    }
    return ghp_measure_max(&run->m, status, &unused);
}

/* Collectives, then operations, each as far as the time goes.
 *
 * again    the rounds before were disturbed: what has no spread that tells of it is measured once more */
static enum ghp_status measure_round(struct ghp_profiling *run, int round, bool again)
{
    double end_s = run->start_s + run->request->budget_s, now_s = ghp_now_s();
    bool named = run->request->only != NULL;
    int samples = named ? NAMED_SAMPLES : ROUND_SAMPLES;
    struct ghp_comm_limits comm_limits = {.samples = samples,
                                          .deadline_s = now_s + comm_fraction * (end_s - now_s),
                                          .memory_bytes = run->memory_bytes};
    struct ghp_ops_limits ops_limits = {.samples = samples,
                                        .calm = named ? calm : 0,
                                        .alone = !named,
                                        .deadline_s = end_s,
                                        .memory_bytes = run->memory_bytes,
                                        .estimate = &run->estimate,
                                        .trials = named ? &run->trials : NULL,
                                        .save = save,
                                        .context = run};

    if (!named || round == 0 || again)
        GHP_TRY(ghp_measure_comms(&run->m, &run->worklist, comm_limits, run->profile));
    return ghp_measure_ops(&run->m, &run->worklist, &ops_limits, run->profile);
}

static void count_all(struct ghp_profiling *run)
{
    struct ghp_profiling_result *result = run->result;

    for (int i = 0; i < run->worklist.n_ops; i++) {
        result->ops.kept += run->worklist.ops[i].kept;
        result->ops.measured += run->worklist.ops[i].variants[0].samples.n > 0;
    }
    for (int i = 0; i < run->worklist.n_comms; i++) {
        result->comms_kept += run->worklist.comms[i].kept;
        result->comms_measured += run->worklist.comms[i].samples.n > 0;
    }
    result->comms_left = run->worklist.n_comms - result->comms_kept - result->comms_measured;
}

/* Notes the speed probe of the rounds that measured the operations, unless an earlier file has one. */
static void note_speed_probe(struct ghp_profile *profile,
                             const struct ghp_samples samples[GHP_SPEED_PROBE_JOBS])
{
    if (profile->speed_probe.compute_s > 0) return;
    profile->speed_probe =
        (struct ghp_speed_probe){.compute_s = ghp_samples_summary(&samples[0]).seconds,
                                 .memory_s = ghp_samples_summary(&samples[1]).seconds};
}

/* How much the machine's own speed changed: what the fixed jobs took, but for samples far off, of which means are freed
 * too. */
static double drift_of(const struct ghp_samples samples[GHP_SPEED_PROBE_JOBS])
{
    double drift = 0;

    for (int job = 0; job < GHP_SPEED_PROBE_JOBS; job++)
        drift = fmax(drift, ghp_samples_summary(&samples[job]).drift);
    return drift;
}

/* What is beyond chance is the profile's, and said. */
static void note_disturbed(struct ghp_profiling *run, double foreign, double drift)
{
    if (foreign > least_foreign)
        snprintf(run->result->disturbed, sizeof run->result->disturbed,
                 "other programs took %.0f %% of the cores; measure again when they rest",
                 100 * foreign);
    else if (drift > least_drift)
        snprintf(run->result->disturbed, sizeof run->result->disturbed,
                 "fixed jobs took up to %.0f %% more or less than in their middle; the machine's "
                 "speed changed",
                 100 * drift);
    else
        return;
    run->profile->disturbed = fmax(foreign > least_foreign ? foreign : 0,
                                   fmax(drift > least_drift ? drift : 0, run->profile->disturbed));
}

/* Measures everything in rounds. While other programs have taken their part of all rounds there are further ones, up
 * to a few, so that samples that are far off become few among many. */
static enum ghp_status measure_rounds(struct ghp_profiling *run, struct ghp_host_load *load,
                                      struct ghp_samples speed_probe[GHP_SPEED_PROBE_JOBS])
{
    double end_s = run->start_s + run->request->budget_s, foreign = 0;
    int rounds = run->request->only != NULL ? NAMED_ROUNDS : ROUNDS;
    struct ghp_cpu_use all = {0};

    for (int i = 0; i < rounds; i++) {
        struct ghp_cpu_use use = {0};
        double on;

        GHP_TRY(ghp_host_load_begin(load));
        GHP_TRY(ghp_measure_speed_probe(&run->m, speed_probe));
        GHP_TRY(measure_round(run, i, foreign > least_foreign));
        GHP_TRY(ghp_host_load_use(load, &use));
        all.foreign_s += use.foreign_s;
        all.capacity_s += use.capacity_s;
        /* the same on all ranks, and their clocks are asked below */
        foreign = ghp_cpu_fraction(all);
        on = foreign > least_foreign && ghp_now_s() < end_s;
        GHP_TRY(ghp_measure_max(&run->m, GHP_OK, &on));
        if (on > 0 && i == rounds - 1 && rounds < MOST_ROUNDS) rounds++;
    }
    note_disturbed(run, foreign, drift_of(speed_probe));
    return GHP_OK;
}

/* What is measured, why, and how long it may take. */
static void say_what(const struct ghp_profiling *run)
{
    const struct ghp_worklist *list = &run->worklist;
    int ops = 0, comms = 0;
    char budget[32];

    for (int i = 0; i < list->n_ops; i++)
        ops += !list->ops[i].kept && !list->ops[i].left;
    for (int i = 0; i < list->n_comms; i++)
        comms += !list->comms[i].kept && !list->comms[i].left;
    if (ops + comms == 0) return;
    ghp_progress_say(
        "measuring %d operation%s and %d collective%s that plans for %s%s can ask for, "
        "the most valuable first, in %s at most (--budget)",
        ops, ghp_plural(ops), comms, ghp_plural(comms), run->request->models[0].name,
        run->request->n_models > 1 ? " and others" : "",
        ghp_seconds_format(run->request->budget_s, budget, sizeof budget));
}

static enum ghp_status measure_all(struct ghp_profiling *run)
{
    struct ghp_samples speed_probe[GHP_SPEED_PROBE_JOBS] = {{0}};
    struct ghp_host_load *load = NULL;
    enum ghp_status status;

    say_what(run);
    GHP_TRY(ghp_profiling_rates(run));
    run->rates_s = ghp_now_s() - run->start_s;
    GHP_TRY(ghp_host_load_open(run->m.transport->control, run->m.world, run->m.size, &load));
    status = measure_rounds(run, load, speed_probe);
    ghp_host_load_close(load);
    GHP_TRY(status);
    note_speed_probe(run->profile, speed_probe);
    GHP_TRY(ghp_profiling_note_concurrent(run));
    count_all(run);
    return finish(run);
}

/* A budget that did not hold is explained. */
static void note_overrun(struct ghp_profiling *run)
{
    struct ghp_profiling_result *result = run->result;
    double budget_s = run->request->budget_s;

    if (result->seconds <= budget_overrun * budget_s) return;
    snprintf(
        result->overrun, sizeof result->overrun,
        "%.3g s were asked for, %.3g s taken: %.3g s till rates and slowdowns were known, %.3g "
        "s for what was left to the analytic models, at most %.3g s for one operation%s%s",
        budget_s, result->seconds, run->rates_s, run->filling_s, run->estimate.longest_s,
        run->estimate.longest_s > 0 ? ", " : "", run->estimate.longest);
}

static enum ghp_status prepare(struct ghp_profiling *run)
{
    double unused = 0;
    int nodes = 1;
    enum ghp_status status = ghp_profiling_check(run);

    GHP_TRY(ghp_measure_max(&run->m, status, &unused));
    GHP_TRY(ghp_participants_nodes(&run->m, &nodes, &run->ranks_per_node));
    run->result->nodes = nodes;
    status = ghp_profiling_blank(run, nodes);
    if (status == GHP_OK) status = ghp_profiling_settle(run);
    /* cores may be shared by some ranks only, but all must count alike */
    GHP_TRY(ghp_measure_max(&run->m, status, &run->m.sample_s));
    run->result->oversubscribed = run->m.shares_cores = run->m.sample_s > run->request->sample_s;
    GHP_TRY(ghp_measure_max(&run->m, ghp_profiling_open_device_transport(run), &unused));
    return ghp_profiling_collect(run);
}

enum ghp_status ghp_profiling_agree(struct ghp_transport *transport, enum ghp_status status)
{
    struct ghp_measure m;
    double unused = 0;

    GHP_TRY(ghp_participants_ranks(transport, &m));
    return ghp_measure_max(&m, status, &unused);
}

enum ghp_status ghp_profiling_reporter(struct ghp_transport *transport, bool *speaks)
{
    struct ghp_measure m;
    bool own = !ghp_measure_is_echo();
    double first = 0, mine = 0;

    GHP_TRY(ghp_participants_ranks(transport, &m));
    mine = own ? m.size - m.rank : 0;
    first = mine;
    GHP_TRY(ghp_measure_max(&m, GHP_OK, &first));
    *speaks = own && !(mine < first);
    return GHP_OK;
}

enum ghp_status ghp_profiling_run(const struct ghp_profiling_request *request,
                                  struct ghp_transport *transport,
                                  struct ghp_profiling_result *result)
{
    struct ghp_profiling run = {.request = request, .result = result, .start_s = ghp_now_s()};
    enum ghp_status status = GHP_OK;

    memset(result, 0, sizeof *result);
    run.profile = &result->profile;
    GHP_TRY(ghp_participants_ranks(transport, &run.m));
    run.m.effort = effort_of(request);
    run.m.rates_until_s = run.start_s + rates_fraction * request->budget_s;
    result->ranks = run.m.size;
    result->workers = request->workers > 0 ? request->workers : run.m.size;
    GHP_TRY_GOTO(status, prepare(&run), done);
    if (request->only != NULL) run.m.sample_s *= named_sample;
    status = measure_all(&run);
done:
    result->seconds = ghp_now_s() - run.start_s;
    note_overrun(&run);
    if (run.m.collectives != NULL) {
        run.m.collectives->failed = status != GHP_OK;
        run.m.collectives->ops->close(run.m.collectives);
    }
    if (run.m.backend != NULL) run.m.backend_ops->close(run.m.backend);
    ghp_cache_close(&run.cache);
    ghp_trials_release(&run.trials);
    ghp_worklist_release(&run.worklist);
    ghp_speeds_release(&run.speeds);
    if (status != GHP_OK) ghp_profile_release(&result->profile);
    return status;
}
