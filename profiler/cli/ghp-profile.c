/* profiler/cli/ghp-profile.c - the tool: measures a machine and networks, or writes down an analytic model or a
 * machine.
 *
 * Four ways: measuring and --validate (under mpirun), --analytic and --machine-only (neither starts MPI). An option
 * that the chosen way has no use for is refused. */
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/model/vocabulary.h"
#include "executor/cli/libraries.h"
#include "profiler/worklist/analytic.h"
#include "profiler/validate/validation.h"
#include "profiler/run/cache.h"
#include "profiler/run/run.h"
#include "profiler/cli/show.h"
#include "profiler/cli/way.h"
#include "profiler/run/participants.h"
#include "profiler/run/topology.h"
#include "onnx/network.h"
#include "executor/platform/launch.h"
#include "executor/train/agreement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const backend_names[] = {"onednn", "reference", "cuda", NULL};
static const char *const numerics_names[] = {"fast", "exact", NULL};
static const char *const numerics_synonyms[] = {"deterministic", "exact", NULL};

/* What the command line sets; defaults are what is here. */
static struct {
    struct ghp_opt_list models;
    int64_t workers, threads, nodes, memory_bytes, bucket_bytes;
    const char *batch, *analytic, *hwloc, *held_out, *output, *like, *cache, *wanted, *data;
    int backend, numerics, precision, bind, device_transport, progress;
    double budget_s, sample_s, watchdog_s;
    double intra_latency_s, intra_Bps, inter_latency_s, inter_Bps;
    bool alike, fresh, machine_only, json;
} set = {.bucket_bytes = 32 << 20,
         .budget_s = 600,
         .sample_s = 0.02,
         .watchdog_s = 600,
         .intra_latency_s = 1e-6,
         .intra_Bps = 10e9,
         .inter_latency_s = 20e-6,
         .inter_Bps = 1.25e9};

static const struct ghp_opt options[] = {
    {.kind = GHP_OPT_HEADING, .help = "What to measure"},
    {.name = "model",
     .letter = 'm',
     .kind = GHP_OPT_LIST,
     .target = &set.models,
     .argument = "MODEL",
     .alike = GHP_OPT_SAME_GIVEN,
     .help = "network whose operations and collectives are wanted"},
    {.name = "workers",
     .letter = 'n',
     .kind = GHP_OPT_INT,
     .target = &set.workers,
     .min = 1,
     .max = 1 << 20,
     .help = "most workers of the plans; without it the ranks"},
    {.name = "batch",
     .letter = 'b',
     .kind = GHP_OPT_TEXT,
     .target = &set.batch,
     .argument = "B[,B2]",
     .help = "global batches, each a multiple or a divisor of the workers"},
    {.name = "wanted",
     .kind = GHP_OPT_TEXT,
     .target = &set.wanted,
     .argument = "FILE|data",
     .alike = GHP_OPT_SAME_GIVEN,
     .help = "measure only what this file of ghp-plan --wanted names; data: what data parallelism "
             "needs"},
    {.name = "data",
     .kind = GHP_OPT_TEXT,
     .target = &set.data,
     .argument = "SOURCE",
     .alike = GHP_OPT_SAME_GIVEN,
     .help = "measure loading with these samples, as ghp-run --data takes them; without it with "
             "generated ones"},
    {.kind = GHP_OPT_HEADING, .help = "How to measure"},
    {.name = "backend",
     .kind = GHP_OPT_CHOICE,
     .target = &set.backend,
     .choices = backend_names,
     .help = "library that computes"},
    {.name = "numerics",
     .kind = GHP_OPT_CHOICE,
     .target = &set.numerics,
     .choices = numerics_names,
     .synonyms = numerics_synonyms,
     .help = "algorithms: the quickest, or those that repeat bit for bit"},
    {.name = "precision",
     .kind = GHP_OPT_CHOICE,
     .target = &set.precision,
     .choices = ghp_precision_names,
     .help = "numbers that it computes in; double needs the reference backend, tf32 cuda, bf16 "
             "onednn or cuda"},
    {.name = "transport",
     .kind = GHP_OPT_CHOICE,
     .target = &set.device_transport,
     .choices = ghp_device_transport_names,
     .help = "between GPUs: nccl, or mpi through host memory; auto: nccl if each rank has a GPU of "
             "its own"},
    {.name = "threads",
     .kind = GHP_OPT_INT,
     .target = &set.threads,
     .min = 1,
     .max = 65536,
     .help = "threads of one worker; without it the cores of its place"},
    {.name = "bind",
     .kind = GHP_OPT_CHOICE,
     .target = &set.bind,
     .choices = ghp_bind_names,
     .help = "bind ranks to the cores of their places"},
    {.name = "budget",
     .kind = GHP_OPT_REAL,
     .target = &set.budget_s,
     .min = 1,
     .max = 1e7,
     .argument = "SECONDS",
     .help = "upper limit for measuring; what it does not reach is left to the analytic models"},
    {.name = "sample",
     .kind = GHP_OPT_REAL,
     .target = &set.sample_s,
     .min = 1e-4,
     .max = 100,
     .argument = "SECONDS",
     .help = "least length of one sample; twice that if ranks share cores"},
    {.name = "bucket-cap",
     .former = "bucket",
     .kind = GHP_OPT_BYTES,
     .target = &set.bucket_bytes,
     .min = 1,
     .max = 1LL << 40,
     .help = "reductions are measured up to this size at least"},
    {.name = "like",
     .kind = GHP_OPT_TEXT,
     .target = &set.like,
     .argument = "PROFILE",
     .alike = GHP_OPT_SAME_GIVEN,
     .help = "take operations from a profile of the same processors, ranks and threads; measure "
             "only what crosses links"},
    {.name = "homogeneous",
     .former = "alike",
     .kind = GHP_OPT_FLAG,
     .target = &set.alike,
     .help = "assume equally fast workers. Otherwise slow workers are recorded, and ghp-plan gives "
             "them fewer samples"},
    {.name = "fresh",
     .kind = GHP_OPT_FLAG,
     .target = &set.fresh,
     .help = "measure again, instead of using the output file and kept measurements"},
    {.name = "cache",
     .kind = GHP_OPT_TEXT,
     .target = &set.cache,
     .argument = "FOLDER|none",
     .alike = GHP_OPT_SAME_GIVEN,
     .help = "where this machine's measurements are kept for other networks and runs; without it "
             "$XDG_CACHE_HOME/ghp, or ~/.cache/ghp"},
    {.name = "watchdog",
     .kind = GHP_OPT_REAL,
     .target = &set.watchdog_s,
     .min = 1,
     .max = 1e6,
     .argument = "SECONDS",
     .alike = GHP_OPT_OWN_VALUE,
     .help = "longest wait for another rank"},
    {.kind = GHP_OPT_HEADING, .help = "Trying a profile"},
    {.name = "validate",
     .former = "held-out",
     .kind = GHP_OPT_TEXT,
     .target = &set.held_out,
     .argument = "PROFILE",
     .alike = GHP_OPT_SAME_GIVEN,
     .help = "measure collectives that it does not have, and compare with its costs for them; "
             "writes no file"},
    {.kind = GHP_OPT_HEADING, .help = "Without measuring"},
    {.name = "analytic",
     .kind = GHP_OPT_TEXT,
     .target = &set.analytic,
     .argument = "KEY=VALUE,...",
     .help = "make a profile by the analytic model"},
    {.name = "machine-only",
     .kind = GHP_OPT_FLAG,
     .target = &set.machine_only,
     .help = "make a machine file, no profile"},
    {.name = "hwloc",
     .kind = GHP_OPT_TEXT,
     .target = &set.hwloc,
     .argument = "XML|SYNTHETIC",
     .help = "describe the node, in place of this machine: a file of lstopo, or like 'package:2 "
             "core:8 pu:2'"},
    {.name = "nodes",
     .kind = GHP_OPT_INT,
     .target = &set.nodes,
     .min = 1,
     .max = 1 << 20,
     .help = "number of equal nodes [1]"},
    {.kind = GHP_OPT_HEADING, .help = "The machine, if it is not measured"},
    {.name = "memory",
     .kind = GHP_OPT_BYTES,
     .target = &set.memory_bytes,
     .min = 1,
     .max = 1LL << 60,
     .help = "memory of one node; without it what hwloc says, or 1 TiB"},
    {.name = "intra-latency",
     .kind = GHP_OPT_REAL,
     .target = &set.intra_latency_s,
     .max = 10,
     .argument = "SECONDS",
     .help = "latency between two workers of a node"},
    {.name = "intra-bandwidth",
     .kind = GHP_OPT_REAL,
     .target = &set.intra_Bps,
     .min = 1,
     .max = 1e15,
     .argument = "BYTES/S",
     .help = "bandwidth between two workers of a node"},
    {.name = "inter-latency",
     .kind = GHP_OPT_REAL,
     .target = &set.inter_latency_s,
     .max = 10,
     .argument = "SECONDS",
     .help = "latency between two nodes"},
    {.name = "inter-bandwidth",
     .kind = GHP_OPT_REAL,
     .target = &set.inter_Bps,
     .min = 1,
     .max = 1e15,
     .argument = "BYTES/S",
     .help = "bandwidth of one node's link to the others"},
    {.kind = GHP_OPT_HEADING, .help = "Output"},
    {.name = "output",
     .letter = 'o',
     .kind = GHP_OPT_TEXT,
     .target = &set.output,
     .writes = "",
     .argument = "FILE",
     .alike = GHP_OPT_SAME_GIVEN,
     .help = "profile or machine file; an earlier profile is continued"},
    {.name = "progress",
     .kind = GHP_OPT_CHOICE,
     .target = &set.progress,
     .choices = ghp_progress_names,
     .alike = GHP_OPT_OWN_VALUE,
     .help = "what is measured and how long it may take, on stderr: live on one line, lines every "
             "few seconds, none; auto: live on a terminal, else lines"},
    GHP_NETWORK_OPTION,
    GHP_BATCH_NORM_OPTION,
    GHP_TUNING_OPTIONS,
    {.name = "json",
     .kind = GHP_OPT_FLAG,
     .target = &set.json,
     .alike = GHP_OPT_OWN_VALUE,
     .help = "print the summary as a JSON object"},
};

static struct ghp_precision precision(void)
{
    return ghp_precision_of(set.precision);
}

static const double line_s = 5; /* between two lines about what is measured, under mpirun */

enum { N_OPTIONS = sizeof options / sizeof options[0], MAX_BATCHES = 16 };

static const struct ghp_tool tool = {
    .name = "ghp-profile",
    .purpose = "measures what a machine takes for each part of a network, for ghp-plan",
    .usage = "mpirun -n P ghp-profile --model MODEL --workers N --batch B -o PROFILE\n"
             "       mpirun -n P ghp-profile --validate PROFILE\n"
             "       ghp-profile --analytic KEY=VALUE,... --model MODEL -o PROFILE\n"
             "       ghp-profile --machine-only [--hwloc XML|SYNTHETIC] -o MACHINE",
    .example = "ghp-profile --analytic F=6e12,bandwidth=1.25e9,latency=20e-6 \\\n"
               "             --model models/vgg16.json -o vgg16.profile.json",
    .common = "model workers batch wanted backend precision threads budget homogeneous fresh cache "
              "validate analytic machine-only output json",
    .opts = options,
    .n_opts = N_OPTIONS,
    .libraries = ghp_executor_libraries,
    .notes = "P ranks run at once, P <= N; times hold for as many workers as there were ranks.\n"
             "Keys of --analytic: F [FLOP/s], bandwidth [bytes/s], latency [s], intra_bandwidth, "
             "intra_latency, memory [1TiB a node], memory_bandwidth [0: moving memory is free], "
             "nodes [0: one worker a node], cores, compute_slowdown, comm_slowdown, link_slowdown "
             "[1: overlap costs nothing].",
};

/* ---- reading the command line ---- */

static enum ghp_status parse(int argc, char **argv, int *way)
{
    struct ghp_way_defaults defaults;
    enum ghp_status status = GHP_OK;

    ghp_way_defaults_take(&tool, &defaults);
    status = ghp_opts_read(&tool, argc, argv, NULL, 0, NULL);
    *way = set.machine_only       ? GHP_WAY_MACHINE_ONLY
           : set.analytic != NULL ? GHP_WAY_ANALYTIC
           : set.held_out != NULL ? GHP_WAY_HELD_OUT
                                  : GHP_WAY_MEASURING;
    if (status == GHP_OK && !ghp_opts_done()) status = ghp_way_check(&tool, &defaults, *way);
    ghp_way_defaults_release(&defaults);
    if (status != GHP_OK || ghp_opts_done()) return status;
    if (set.output == NULL && *way != GHP_WAY_HELD_OUT)
        return GHP_FAIL(GHP_ERR_USAGE, "no output file; give -o FILE");
    if (set.output != NULL)
        GHP_TRY(ghp_file_check_replaced(
            set.output, *way == GHP_WAY_MACHINE_ONLY ? "\"ghp.machine/" : "\"ghp.profile/"));
    if (*way == GHP_WAY_MEASURING && (set.models.n == 0 || set.batch == NULL))
        return GHP_FAIL(GHP_ERR_USAGE, "nothing to measure; give --model MODEL and --batch B, or "
                                       "--analytic, or --machine-only");
    return GHP_OK;
}

/* Reads `B[,B2]...`. */
static enum ghp_status read_batches(int64_t *batches, int *n)
{
    const char *at = set.batch;

    *n = 0;
    while (at != NULL && *n < MAX_BATCHES) {
        char *end = NULL;

        errno = 0;
        batches[*n] = strtoll(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || errno == ERANGE || batches[*n] < 1)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "cannot read --batch '%s'; give whole numbers above 0, "
                            "like 64 or 64,128",
                            set.batch);
        *n += 1;
        if (*end == '\0') return GHP_OK;
        at = end + 1;
    }
    if (at == NULL) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE, "too many batches in --batch '%s'; give at most %d", set.batch,
                    MAX_BATCHES);
}

static enum ghp_status load_models(struct ghp_model *models, int64_t vocabulary_multiple)
{
    for (int i = 0; i < set.models.n; i++) {
        GHP_TRY(ghp_network_load(set.models.item[i], &models[i]));
        GHP_TRY(ghp_model_set_vocabulary(&models[i], vocabulary_multiple));
    }
    return GHP_OK;
}

static void release_models(struct ghp_model *models)
{
    for (int i = 0; i < set.models.n; i++)
        ghp_model_release(&models[i]);
}

/* ---- the ways ---- */

static enum ghp_status describe_machine(void)
{
    struct ghp_machine machine = {0};
    int nodes = set.nodes > 0 ? (int)set.nodes : 1;
    bool here = set.hwloc == NULL || set.hwloc[0] == '\0';
    enum ghp_status status = here ? ghp_topology_read_here(NULL, nodes, &machine)
                                  : ghp_topology_read(set.hwloc, nodes, &machine);

    GHP_TRY(status);
    if (here) ghp_limits_note();
    machine.intra = (struct ghp_link){set.intra_latency_s, set.intra_Bps, 0};
    machine.inter = (struct ghp_link){set.inter_latency_s, set.inter_Bps, 0};
    if (set.memory_bytes > 0) machine.memory_bytes = set.memory_bytes;
    status = ghp_machine_save(set.output, &machine);
    if (status == GHP_OK) status = ghp_show_machine(&machine, set.output, set.json);
    ghp_machine_release(&machine);
    return status;
}

static enum ghp_status write_analytic(void)
{
    struct ghp_model models[GHP_OPT_LIST_MAX] = {{0}};
    struct ghp_analytic analytic = {0};
    struct ghp_profile profile = {0};
    int64_t batches[MAX_BATCHES] = {0};
    int n_batches = 0;
    enum ghp_status status = ghp_analytic_parse(set.analytic, &analytic);

    GHP_TRY(status);
    GHP_TRY(read_batches(batches, &n_batches));
    for (int i = 0; i < n_batches && set.workers > 0; i++)
        GHP_TRY(ghp_problem_check((struct ghp_problem){(int)set.workers, batches[i]}));
    GHP_TRY_GOTO(status, load_models(models, 0), done);
    for (int i = 0; i < n_batches * set.models.n; i++)
        GHP_TRY_GOTO(status,
                     ghp_model_check_sizes(&models[i % set.models.n], batches[i / set.models.n],
                                           set.workers > 0 ? set.workers : 1),
                     done);
    GHP_TRY_GOTO(status,
                 ghp_analytic_profile(&analytic, numerics_names[set.numerics],
                                      precision().element_bytes, &profile),
                 done);
    profile.tf32 = precision().tf32;
    GHP_TRY_GOTO(status, ghp_profile_finalize(&profile), done);
    GHP_TRY_GOTO(status, ghp_profile_save(set.output, &profile), done);
    status = ghp_show_analytic(&profile, set.output, set.json);
done:
    ghp_profile_release(&profile);
    release_models(models);
    return status;
}

static char libraries[512]; /* what measurements depend on, one after the other */

static void add_library(const char *name, const char *version)
{
    size_t n = strlen(libraries);

    snprintf(libraries + n, sizeof libraries - n, "%s%s %s", n > 0 ? ", " : "", name, version);
}

/* All ranks, to agree on what they measure. Every one of them has this comm. */
static enum ghp_status find_all(struct ghp_transport *transport, struct ghp_agreeing *all)
{
    struct ghp_measure m;

    GHP_TRY(ghp_participants_ranks(transport, &m));
    *all =
        (struct ghp_agreeing){.control = transport->control, .comm = m.world, .doing = "measure"};
    return GHP_OK;
}

static enum ghp_status agree_on_models(struct ghp_transport *transport,
                                       const struct ghp_model *models)
{
    struct ghp_agreeing all;

    GHP_TRY(find_all(transport, &all));
    return ghp_agree_on_models(all, models, set.models.n);
}

/* Measuring, once the transport is there. */
static enum ghp_status measure(struct ghp_transport *transport)
{
    struct ghp_model models[GHP_OPT_LIST_MAX] = {{0}};
    int64_t batches[MAX_BATCHES] = {0};
    struct ghp_profiling_result result = {0};
    struct ghp_profiling_request request = {
        .models = models,
        .n_models = set.models.n,
        .batches = batches,
        .workers = (int)set.workers,
        .backend_ops = ghp_backend_find(backend_names[set.backend]),
        .exact = set.numerics == 1,
        .precision = precision(),
        .device_transport = (enum ghp_device_transport_choice)set.device_transport,
        .threads = (int)set.threads,
        .bind = (enum ghp_bind_mode)set.bind,
        .sample_s = set.sample_s,
        .budget_s = set.budget_s,
        .alike = set.alike,
        .fresh = set.fresh,
        .like = set.like,
        .output = set.output,
        .libraries = libraries,
        .only = set.wanted,
        .data = set.data,
        .intra = {.latency_s = set.intra_latency_s, .bandwidth_Bps = set.intra_Bps},
        .inter = {.latency_s = set.inter_latency_s, .bandwidth_Bps = set.inter_Bps},
        .memory_bytes = set.memory_bytes,
        .bucket_bytes = set.bucket_bytes,
    };
    char *cache = NULL;
    enum ghp_status status = read_batches(batches, &request.n_batches);

    ghp_executor_libraries(add_library);
    request.vocabulary_multiple = ghp_profiling_vocabulary_multiple(&request);
    if (status == GHP_OK) status = load_models(models, request.vocabulary_multiple);
    if (status == GHP_OK) status = ghp_cache_folder(set.cache, &cache);
    request.cache = cache;
    if (status == GHP_OK && request.backend_ops == NULL)
        status = ghp_backend_fail_unknown(backend_names[set.backend]);
    status = ghp_profiling_agree(transport, status);
    if (status == GHP_OK) status = agree_on_models(transport, models);
    if (status == GHP_OK) status = ghp_profiling_run(&request, transport, &result);
    if (status == GHP_OK) {
        if (transport->control->rank == 0)
            status = ghp_show_measured(&result, set.output, set.json, set.fresh);
        if (status == GHP_OK) status = ghp_opts_printed(); /* on other ranks nothing was */
        status = ghp_profiling_agree(transport, status);
    }
    ghp_profile_release(&result.profile);
    release_models(models);
    free(cache);
    return status;
}

/* Trying a profile, once the transport is there. */
static enum ghp_status try_held_out(struct ghp_transport *transport)
{
    struct ghp_validation_request request = {.profile_path = set.held_out,
                                             .bind = (enum ghp_bind_mode)set.bind,
                                             .sample_s = set.sample_s,
                                             .budget_s = set.budget_s};
    struct ghp_validation_result result = {0};
    enum ghp_status status = ghp_validation_run(&request, transport, &result);

    if (status == GHP_OK) {
        if (transport->control->rank == 0)
            status = set.json ? ghp_json_print(ghp_validation_json(&result, set.held_out), stdout)
                              : ghp_validation_print(&result, set.held_out, stdout);
        if (status == GHP_OK) status = ghp_opts_printed(); /* on other ranks nothing was */
        status = ghp_profiling_agree(transport, status);
    }
    ghp_validation_release(&result.validation);
    return status;
}

static int fail(enum ghp_status status)
{
    fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}

/* All ranks have failed: one of them says why. */
static int fail_together(struct ghp_transport *transport, enum ghp_status status)
{
    bool speaks = false;
    int code = ghp_status_exit_code(status);

    if (status == GHP_ERR_COMM && !ghp_measure_is_echo()) {
        fail(status); /* the others cannot be reached */
        transport->control->ops->abort(transport->control, code);
        return code;
    }
    if (ghp_profiling_reporter(transport, &speaks) != GHP_OK) {
        fail(status);
        transport->control->ops->abort(transport->control, code);
        return code;
    }
    if (speaks) fail(status);
    ghp_transport_end(transport);
    return code;
}

/* What a command line without a mistake asks for, with all ranks. */
static enum ghp_status do_work(struct ghp_transport *transport, int way)
{
    if (!ghp_opts_done())
        return way == GHP_WAY_HELD_OUT ? try_held_out(transport) : measure(transport);
    return transport->control->rank == 0 ? ghp_opts_answer(&tool) : GHP_OK;
}

static enum ghp_status agree_on_command(struct ghp_transport *transport)
{
    struct ghp_agreeing all;

    GHP_TRY(find_all(transport, &all));
    return ghp_agree_on_command(all, &tool, 0);
}

/* status: what this rank found in its command line. */
static int run_together(int argc, char **argv, int way, enum ghp_status status)
{
    struct ghp_transport *transport = NULL;
    enum ghp_status started = ghp_transport_start(&argc, &argv, set.watchdog_s, &transport);

    if (started != GHP_OK) return fail(started);
    ghp_log_open(tool.name, transport->control->rank == 0);
    ghp_progress_open((struct ghp_progress){.look = (enum ghp_progress_look)set.progress,
                                            .every_s = line_s,
                                            .terminal = ghp_launched_terminal()});
    status = ghp_profiling_agree(transport, status);
    if (status == GHP_OK) status = agree_on_command(transport);
    if (status == GHP_OK) status = do_work(transport, way);
    if (status != GHP_OK) return fail_together(transport, status);
    ghp_transport_end(transport);
    return 0;
}

int main(int argc, char **argv)
{
    int way = GHP_WAY_MEASURING;
    enum ghp_status status = parse(argc, argv, &way);
    bool launched = ghp_launched(), ends = status != GHP_OK || ghp_opts_done(),
         measures = way == GHP_WAY_MEASURING || way == GHP_WAY_HELD_OUT;

    if (ends ? launched : measures) return run_together(argc, argv, way, status);
    ghp_log_open(tool.name, true);
    if (status == GHP_OK && !ghp_opts_done()) status = ghp_opts_try_outputs(&tool);
    if (status == GHP_OK)
        status = ghp_opts_done()           ? ghp_opts_answer(&tool)
                 : way == GHP_WAY_ANALYTIC ? write_analytic()
                                           : describe_machine();
    if (status == GHP_OK) status = ghp_opts_printed();
    return status == GHP_OK ? 0 : fail(status);
}
