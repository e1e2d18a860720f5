/* planner/cli/ghp-plan.c - the tool: reads a model and a profile, makes a plan, prints it together with the baselines.
 *
 * Only options, files and exit codes; plans are made by planner/make/make.h. */
#include "core/base/log.h"
#include "core/base/units.h"
#include "core/cost/named_machine.h"
#include "core/cost/profile_peak.h"
#include "inspect/inspect.h"
#include "planner/search/milp.h"
#include "inspect/summary.h"
#include "onnx/network.h"
#include "planner/make/trust.h"
#include "planner/make/elastic.h"
#include "planner/make/write_mps.h"
#include "planner/make/sync_choice.h"
#include "planner/make/missing_find.h"
#include "planner/cli/options.h"
#include "planner/sweep/crossover.h"
#include "planner/sweep/sweep.h"
#include "core/plan/what_if.h"

#include <string.h>
#include <unistd.h>

static void say_libraries(ghp_opts_say *say)
{
    say("GLPK", ghp_milp_library());
}

static const struct ghp_exit_code exit_codes[] = {
    {3, "no plan fits what was asked (memory, --strict, --force)"}, {0, NULL}};

static struct ghp_tool tool = {
    .exit_codes = exit_codes,
    .name = "ghp-plan",
    .purpose = "chooses how to split every layer over the workers, and proves how good that is",
    .usage = "ghp-plan MODEL --profile PROFILE --workers N --batch B [-o PLAN]\n"
             "       ghp-plan MODEL --profile PROFILE --workers N --batch B --elastic F -o X\n"
             "       ghp-plan MODEL --profile PROFILE --sweep workers=1,2,...,N --batch B\n"
             "       ghp-plan MODEL --machine MACHINE [--nodes H] --workers N --batch B\n"
             "       ghp-plan --machine list",
    .example = "ghp-plan models/vgg16.json --profile vgg16.profile.json --workers 16 \\\n"
               "             --batch 1024 -o vgg16.plan.json",
    .common = "profile workers batch machine nodes set memory elastic sync shard optimizer "
              "pipeline micro-batches precision output json",
    .opts = ghp_plan_option_table,
    .libraries = say_libraries,
};

struct config { /* the options as an object */
    json_t *object;
    bool failed;
};

static void add_option(const char *name, const char *value, void *context)
{
    struct config *config = context;

    if (value != NULL) ghp_json_put(config->object, name, json_string(value), &config->failed);
}

static enum ghp_status config_object(json_t **object)
{
    struct config config = {.object = json_object()};

    ghp_opts_each(&tool, add_option, &config);
    *object = config.object;
    if (!config.failed && config.object != NULL) return GHP_OK;
    json_decref(config.object);
    *object = NULL;
    return GHP_NO_MEMORY();
}

/* Stages are searched, or given, or neither. */
static enum ghp_status check_stages(void)
{
    bool given = ghp_plan_chosen.stages != NULL || ghp_plan_chosen.micro_batches > 0;
    bool sums = ghp_plan_chosen.strategy == GHP_STRATEGY_DATA && ghp_plan_chosen.stages == NULL;

    if (given && ghp_plan_chosen.pipeline == GHP_PIPELINE_MODE_AUTO)
        return GHP_FAIL(GHP_ERR_USAGE, "--pipeline auto looks for stages and micro-batches; leave "
                                       "--stages and --micro-batches out, or --pipeline");
    if (((given && !sums) || ghp_plan_chosen.pipeline == GHP_PIPELINE_MODE_AUTO) &&
        ghp_plan_chosen.strategy != GHP_STRATEGY_AUTO)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--strategy %s has no stages%s; leave it out, or --pipeline, --stages and "
                        "--micro-batches",
                        ghp_plan_strategy_names[ghp_plan_chosen.strategy],
                        ghp_plan_chosen.strategy == GHP_STRATEGY_DATA ? ""
                                                                      : " and no micro-batches");
    if (ghp_plan_chosen.solver == GHP_SOLVER_HEURISTIC && (given || ghp_plan_chosen.force != NULL))
        return GHP_FAIL(GHP_ERR_USAGE, "--solver heuristic decides stages and splits by its rules; "
                                       "leave --stages, --micro-batches and --force out");
    if (ghp_plan_chosen.pipeline == GHP_PIPELINE_MODE_AUTO && ghp_plan_chosen.force != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "--force fixes splits of one staging; give that by --stages "
                                       "instead of --pipeline auto");
    return GHP_OK;
}

/* What a sweep leaves no room for, and what is for sweeps only. */
static enum ghp_status check_sweep(void)
{
    if (ghp_plan_chosen.sweep == NULL) {
        if (ghp_plan_chosen.batch_per_worker > 0)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "--batch-per-worker is for sweeps; add --sweep workers=1,2,4,...,N");
        return GHP_OK;
    }
    if (ghp_plan_chosen.workers > 0 || ghp_plan_chosen.output != NULL ||
        ghp_plan_chosen.groups > 0 || ghp_plan_chosen.strategy != GHP_STRATEGY_AUTO ||
        ghp_plan_chosen.pipeline == GHP_PIPELINE_MODE_AUTO || ghp_plan_chosen.stages != NULL ||
        ghp_plan_chosen.micro_batches > 0 || ghp_plan_chosen.solver == GHP_SOLVER_HEURISTIC)
        return GHP_FAIL(GHP_ERR_USAGE, "--sweep makes many plans and writes none; leave --workers, "
                                       "--output, --groups, --strategy, --pipeline, --stages, "
                                       "--micro-batches and --solver heuristic out");
    if ((ghp_plan_chosen.batch > 0) == (ghp_plan_chosen.batch_per_worker > 0))
        return GHP_FAIL(GHP_ERR_USAGE, "a sweep needs one batch: give --batch B (of all workers) "
                                       "or --batch-per-worker b");
    return GHP_OK;
}

/* Plans of one file, for one training. */
static enum ghp_status check_elastic(void)
{
    struct ghp_sync sync = {0};

    if (ghp_plan_chosen.elastic == 0) return GHP_OK;
    if (ghp_plan_chosen.output == NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "--elastic makes a file of plans; name it with -o PLANS");
    if (ghp_plan_chosen.sweep != NULL || ghp_plan_chosen.crossovers || ghp_plan_chosen.json ||
        ghp_plan_chosen.straggler != NULL || ghp_plan_chosen.stages != NULL ||
        strcmp(ghp_plan_chosen.sync, "all") == 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--elastic plans for several numbers of workers; leave --sweep, "
                        "--crossovers, --json, --straggler, --stages and --sync all out");
    if (ghp_sync_parse(ghp_plan_chosen.sync, &sync) == GHP_OK && ghp_sync_wants_data(sync))
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "a run with --sync %s can only resume on the same number of ranks; leave --elastic out",
            ghp_plan_chosen.sync);
    return GHP_OK;
}

static enum ghp_status check_machine(void)
{
    if (ghp_plan_chosen.machine == NULL &&
        (ghp_plan_chosen.nodes > 0 || ghp_plan_chosen.network != NULL))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--%s is of a --machine; add one, or override the profile's by --set %s",
                        ghp_plan_chosen.nodes > 0 ? "nodes" : "network",
                        ghp_plan_chosen.nodes > 0 ? "nodes=H" : "inter.bandwidth_Bps=X");
    if (ghp_plan_chosen.profile == NULL && ghp_plan_chosen.strict > 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--strict wants what was measured, and --machine without --profile has no "
                        "measurement; add --profile PROFILE, made by ghp-profile");
    return GHP_OK;
}

static enum ghp_status check_options(const char *const *files, int n_files)
{
    if (n_files < 1)
        return GHP_FAIL(GHP_ERR_USAGE, "no model given; name one, such as models/vgg16.json");
    if (n_files > 1)
        return GHP_FAIL(GHP_ERR_USAGE, "one argument too many: '%s'; name one model", files[1]);
    if (ghp_plan_chosen.profile == NULL && ghp_plan_chosen.machine == NULL)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "no profile given; add --profile PROFILE, made by ghp-profile, or --machine "
            "MACHINE, one that --machine list shows");
    GHP_TRY(check_machine());
    GHP_TRY(check_stages());
    if (ghp_plan_chosen.crossovers &&
        (ghp_plan_chosen.json || ghp_plan_chosen.sweep != NULL || ghp_plan_chosen.force != NULL ||
         ghp_plan_chosen.stages != NULL || ghp_plan_chosen.strategy != GHP_STRATEGY_AUTO))
        return GHP_FAIL(GHP_ERR_USAGE, "--crossovers asks for the best plan of each batch, in "
                                       "text; leave --json, --sweep, --force, --stages and "
                                       "--strategy out");
    if ((ghp_plan_chosen.straggler != NULL || strcmp(ghp_plan_chosen.sync, "all") == 0) &&
        (ghp_plan_chosen.sweep != NULL || ghp_plan_chosen.crossovers))
        return GHP_FAIL(GHP_ERR_USAGE, "--sync all and --straggler are of one number of workers "
                                       "and one batch; leave --sweep and --crossovers out");
    if (ghp_plan_chosen.shard_within > 0 && ghp_plan_chosen.shard == GHP_SHARDING_NONE &&
        strcmp(ghp_plan_chosen.sync, "sharded") != 0)
        return GHP_FAIL(GHP_ERR_USAGE, "--shard-within says how far parameters are sharded; add "
                                       "--shard auto, or --sync sharded for moments alone");
    if (ghp_plan_chosen.shard_within > 0 && ghp_plan_chosen.sweep != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--shard-within is of one number of workers; leave --sweep out");
    if (ghp_plan_chosen.reduce_precision > 0 && (ghp_plan_chosen.shard != GHP_SHARDING_NONE ||
                                                 (strcmp(ghp_plan_chosen.sync, "auto") != 0 &&
                                                  strcmp(ghp_plan_chosen.sync, "allreduce") != 0)))
        return GHP_FAIL(GHP_ERR_USAGE, "--reduce-precision bf16 is of gradients that are summed by "
                                       "all-reduce; give --sync allreduce, and leave --shard out");
    GHP_TRY(check_sweep());
    if (ghp_plan_chosen.wanted != NULL &&
        (ghp_plan_chosen.sweep != NULL || ghp_plan_chosen.elastic > 0))
        return GHP_FAIL(GHP_ERR_USAGE, "--wanted is of one plan; leave --sweep and --elastic out");
    if (ghp_plan_chosen.mps != NULL &&
        (ghp_plan_chosen.sweep != NULL || ghp_plan_chosen.elastic > 0 ||
         ghp_plan_chosen.stages != NULL || ghp_plan_chosen.micro_batches > 0 ||
         ghp_plan_chosen.pipeline == GHP_PIPELINE_MODE_AUTO))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--write-mps is of one plan without stages and micro-batches; leave "
                        "--sweep, --elastic, --pipeline, --stages and --micro-batches out");
    GHP_TRY(check_elastic());
    if (ghp_plan_chosen.sweep != NULL) return GHP_OK;
    if (ghp_plan_chosen.workers == 0)
        return GHP_FAIL(GHP_ERR_USAGE, "no worker count given; add --workers N");
    if (ghp_plan_chosen.batch == 0)
        return GHP_FAIL(GHP_ERR_USAGE, "no batch given; add --batch B, a multiple or a divisor of "
                                       "the workers");
    if (ghp_plan_chosen.force != NULL && ghp_plan_chosen.strategy != GHP_STRATEGY_AUTO)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--force and --strategy %s both fix splits; give one of them",
                        ghp_plan_strategy_names[ghp_plan_chosen.strategy]);
    if (ghp_plan_chosen.straggler == NULL) return GHP_OK;
    GHP_TRY(ghp_stragglers_parse(ghp_plan_chosen.straggler, &ghp_plan_chosen.stragglers));
    return ghp_stragglers_check(&ghp_plan_chosen.stragglers, (int)ghp_plan_chosen.workers);
}

static enum ghp_status read_bucket(int64_t *bytes)
{
    *bytes = GHP_BUCKET_AUTO;
    if (strcmp(ghp_plan_chosen.bucket, "auto") == 0) return GHP_OK;
    if (ghp_bytes_parse(ghp_plan_chosen.bucket, bytes) != GHP_OK)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read --bucket-cap '%s'; give auto, 0, or a size such as 4MiB",
                        ghp_plan_chosen.bucket);
    return GHP_OK;
}

/* Reads --sync. *sync stays zeroed if ghp is to choose the synchroniser. */
static enum ghp_status read_sync(struct ghp_sync *sync)
{
    bool open =
        strcmp(ghp_plan_chosen.sync, "auto") == 0 || strcmp(ghp_plan_chosen.sync, "all") == 0;

    *sync = (struct ghp_sync){0};
    if (ghp_plan_chosen.reduce_precision > 0) return ghp_sync_parse("allreduce", sync);
    if (!open && ghp_sync_parse(ghp_plan_chosen.sync, sync) != GHP_OK)
        return GHP_FAIL(GHP_ERR_USAGE, "--sync: %s", ghp_status_message());
    if (ghp_plan_chosen.servers > 0 && sync->servers == 0)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "--servers was given, and by --sync %s there are none; give --sync bsp or asp, or "
            "leave it out",
            ghp_plan_chosen.sync);
    if (sync->servers > 0 && ghp_plan_chosen.servers > ghp_plan_chosen.workers)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--servers %lld is more than the %lld worker(s); give at most as many",
                        (long long)ghp_plan_chosen.servers, (long long)ghp_plan_chosen.workers);
    if (ghp_plan_chosen.servers > 0) sync->servers = (int)ghp_plan_chosen.servers;
    if (ghp_plan_chosen.sweep == NULL || !ghp_sync_wants_data(*sync)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--sync %s is planned for one number of workers at a time; leave --sweep out",
                    ghp_plan_chosen.sync);
}

/* The limit as given, by --memory or --set memory_bytes, or of the GPUs that were measured; and what the machine
 * has. */
static void set_memory(struct ghp_plan_request *request, const struct ghp_what_if *what_if,
                       const struct ghp_profile *profile)
{
    int workers = request->problem.workers;

    request->worker_bytes = ghp_profile_memory_per_worker(profile, workers);
    if (request->memory_bytes == 0)
        request->memory_bytes = ghp_profile_device_limit(profile, workers);
    if (request->memory_bytes == 0) request->memory_bytes = ghp_what_if_memory(what_if, profile);
}

/* --precision; without it, of a machine that nobody measured, float. */
static struct ghp_precision wanted_precision(void)
{
    return ghp_precision_of(ghp_plan_chosen.precision > 0 ? ghp_plan_chosen.precision - 1 : 0);
}

static enum ghp_status load_profile(struct ghp_profile *profile)
{
    GHP_TRY(ghp_profile_load(ghp_plan_chosen.profile, profile));
    if (ghp_plan_chosen.precision == 0) return GHP_OK;
    return ghp_trust_precision(profile, ghp_plan_chosen.profile, wanted_precision());
}

/* --machine with its --nodes and --network; nothing to release on failure. */
static enum ghp_status open_machine(int workers, struct ghp_machine *machine)
{
    enum ghp_status status;

    GHP_TRY(ghp_machine_open(ghp_plan_chosen.machine, machine));
    if (ghp_plan_chosen.nodes > 0)
        machine->nodes = (int)ghp_plan_chosen.nodes;
    else if (ghp_plan_chosen.profile == NULL && ghp_peak_nodes(machine, workers) > machine->nodes)
        machine->nodes = ghp_peak_nodes(machine, workers);
    if (ghp_plan_chosen.network == NULL) return GHP_OK;
    machine->gpus.cards = 0; /* of another network */
    status = ghp_fabric_open(ghp_plan_chosen.network, &machine->inter);
    if (status != GHP_OK) ghp_machine_release(machine);
    return status;
}

static enum ghp_status open_profile(struct ghp_plan_request *request, struct ghp_profile *profile,
                                    struct ghp_overrides *overrides)
{
    struct ghp_what_if what_if = {.machine_name = ghp_plan_chosen.machine,
                                  .set = ghp_plan_chosen.overrides.item,
                                  .n_set = ghp_plan_chosen.overrides.n,
                                  .workers = request->problem.workers};
    struct ghp_machine machine = {0};
    enum ghp_status status = GHP_OK;

    if (ghp_plan_chosen.machine != NULL) GHP_TRY(open_machine(what_if.workers, &machine));
    if (ghp_plan_chosen.profile != NULL) {
        status = load_profile(profile);
        if (ghp_plan_chosen.machine != NULL) what_if.machine = &machine;
    } else {
        status = ghp_profile_peak(&machine, what_if.workers, wanted_precision(), profile);
    }
    if (status != GHP_OK) {
        ghp_machine_release(&machine);
        return status;
    }
    if (ghp_plan_chosen.sweep != NULL && ghp_plan_chosen.profile != NULL)
        what_if.workers_per_node =
            ghp_what_if_workers_per_node(profile, what_if.machine, what_if.workers);
    if (what_if.machine != NULL || what_if.n_set > 0 || what_if.workers_per_node > 0) {
        status = ghp_what_if_apply(&what_if, profile, overrides);
        request->what_if = overrides;
    }
    ghp_machine_release(&machine);
    if (status == GHP_OK) set_memory(request, &what_if, profile);
    return status;
}

static enum ghp_status print_schemes(const struct ghp_schemes *schemes, json_t *config)
{
    if (ghp_plan_chosen.json) return ghp_schemes_json(schemes, config, stdout);
    return ghp_schemes_print(schemes, ghp_plan_chosen.output, stdout);
}

/* Says if nothing is sharded although a kind was asked for: a plan without replicas may be the fastest. */
static void tell_unsharded(const struct ghp_plan_request *request, const struct ghp_plan *plan)
{
    bool sharded = request->shardings == 0 || (request->shardings & 1u << GHP_SHARDING_NONE) != 0;

    for (int v = 0; v < plan->model.n_layers && !sharded; v++)
        sharded = plan->splits[v].sharding != GHP_SHARDING_NONE;
    if (!sharded)
        fputs("# not sharded: no two workers of this plan hold the same parameters; --strategy "
              "data shards them\n",
              stdout);
}

/* The plan; or how it does among others. */
static enum ghp_status print_result(const struct ghp_plan_request *request,
                                    const struct ghp_plan *plan)
{
    struct ghp_schemes_job job = {.request = request,
                                  .plan = plan,
                                  .all = strcmp(ghp_plan_chosen.sync, "all") == 0,
                                  .stragglers = ghp_plan_chosen.stragglers};
    struct ghp_schemes schemes = {0};
    bool alone = !job.all && ghp_plan_chosen.straggler == NULL;
    json_t *config = NULL;
    enum ghp_status status;

    if (!ghp_plan_chosen.json && !job.all) {
        GHP_TRY(ghp_summary_print(plan, stdout));
        tell_unsharded(request, plan);
    }
    if (!ghp_plan_chosen.json && alone) return GHP_OK;
    if (!alone) GHP_TRY(ghp_schemes_find(&job, &schemes));
    status = ghp_plan_chosen.json ? config_object(&config) : GHP_OK;
    if (status == GHP_OK)
        status = alone ? ghp_summary_json(plan, config, stdout) : print_schemes(&schemes, config);
    ghp_schemes_release(&schemes);
    return status;
}

/* What --shard offers each layer; 0: none. */
static unsigned read_shardings(void)
{
    if (ghp_plan_chosen.shard == GHP_SHARDING_NONE) return 0;
    return ghp_plan_chosen.shard < GHP_SHARDING_COUNT ? 1u << ghp_plan_chosen.shard
                                                      : (1u << GHP_SHARDING_COUNT) - 1;
}

static struct ghp_plan_request read_request(const char *model_path)
{
    /* data parallelism whose gradients are added up over parts of the batch */
    bool sums = ghp_plan_chosen.strategy == GHP_STRATEGY_DATA && ghp_plan_chosen.micro_batches > 1;

    return (struct ghp_plan_request){
        .model_path = model_path,
        .profile_path =
            ghp_plan_chosen.profile != NULL ? ghp_plan_chosen.profile : ghp_plan_chosen.machine,
        .problem = {.workers = (int)ghp_plan_chosen.workers, .global_batch = ghp_plan_chosen.batch},
        .strategy = sums ? GHP_STRATEGY_AUTO : (enum ghp_strategy)ghp_plan_chosen.strategy,
        .force = sums ? "*=data" : ghp_plan_chosen.force,
        .groups = (int)ghp_plan_chosen.groups,
        .memory_bytes = ghp_plan_chosen.memory_bytes,
        .shardings = read_shardings(),
        .time_limit_s = ghp_plan_chosen.time_limit_s,
        .gap = ghp_plan_chosen.gap,
        .simplify = !ghp_plan_chosen.no_simplify,
        .break_even = !ghp_plan_chosen.no_break_even,
        .solver = (enum ghp_solver)ghp_plan_chosen.solver,
        .pipeline_mode = (enum ghp_pipeline_mode)ghp_plan_chosen.pipeline,
        .method = {.shard_within = (int)ghp_plan_chosen.shard_within,
                   .reduces_bf16 = ghp_plan_chosen.reduce_precision > 0,
                   .optimizer = ghp_optimizer_at(ghp_plan_chosen.optimizer),
                   .clip_norm = ghp_plan_chosen.clip_norm,
                   .scaling = ghp_lr_scaling_at(ghp_plan_chosen.scaling)},
        .recompute = ghp_plan_chosen.sweep != NULL
                         ? GHP_RECOMPUTE_MODE_NEVER
                         : (enum ghp_recompute_mode)ghp_plan_chosen.recompute,
        .load_balance = ghp_plan_chosen.sweep != NULL
                            ? GHP_LOAD_BALANCE_MODE_EQUAL
                            : (enum ghp_load_balance_mode)ghp_plan_chosen.load_balance,
        .space = {.max_stages = (int)ghp_plan_chosen.max_stages,
                  .max_micro_batches = (int)ghp_plan_chosen.max_micro_batches,
                  .groups = (int)ghp_plan_chosen.groups},
        .stages = ghp_plan_chosen.stages,
        .micro_batches = (int)ghp_plan_chosen.micro_batches,
        .pipeline = (enum ghp_pipeline)ghp_plan_chosen.schedule};
}

static enum ghp_status make_sweep(const char *model_path)
{
    struct ghp_plan_request request = read_request(model_path);
    struct ghp_sweep_range range;
    struct ghp_sweep_job job = {.request = &request,
                                .range = &range,
                                .batch = ghp_plan_chosen.batch > 0
                                             ? ghp_plan_chosen.batch
                                             : ghp_plan_chosen.batch_per_worker,
                                .weak = ghp_plan_chosen.batch == 0,
                                .open = open_profile};
    struct ghp_sweep sweep = {0};
    json_t *config = NULL;
    enum ghp_status status;

    GHP_TRY(read_bucket(&request.method.bucket_bytes));
    GHP_TRY(read_sync(&request.method.sync));
    GHP_TRY(ghp_sweep_parse(ghp_plan_chosen.sweep, &range));
    GHP_TRY(ghp_sweep_run(&job, &sweep));
    if (ghp_plan_chosen.json) {
        status = config_object(&config);
        if (status == GHP_OK) status = ghp_sweep_json(&sweep, config, stdout);
    } else
        status = ghp_sweep_print(&sweep, stdout);
    ghp_sweep_release(&sweep);
    return status;
}

/* Writes the list of missing measurements. It is called last, because it changes the profile. */
static enum ghp_status write_missing(const struct ghp_plan_request *request,
                                     struct ghp_profile *profile)
{
    struct ghp_missing missing;
    enum ghp_status status = ghp_missing_find(request, profile, &missing);

    if (status == GHP_OK) status = ghp_missing_save(ghp_plan_chosen.wanted, &missing);
    ghp_missing_release(&missing);
    return status;
}

static enum ghp_status make_plan(const char *model_path)
{
    struct ghp_profile profile = {0};
    struct ghp_overrides overrides = {0};
    struct ghp_plan plan = {0};
    struct ghp_plan_request request = read_request(model_path);
    struct ghp_crossovers crossovers;
    enum ghp_status status;

    request.profile = &profile;
    GHP_TRY(read_bucket(&request.method.bucket_bytes));
    GHP_TRY(read_sync(&request.method.sync));
    GHP_TRY_GOTO(status, open_profile(&request, &profile, &overrides), done);
    if (ghp_plan_chosen.wanted != NULL && ghp_plan_chosen.output == NULL &&
        ghp_plan_chosen.mps == NULL) {
        status = write_missing(&request, &profile);
        goto done;
    }
    GHP_TRY_GOTO(status, ghp_plan_make_synced(&request, &plan), done);
    if (!ghp_plan_chosen.analytic)
        GHP_TRY_GOTO(
            status, ghp_trust_profile(&profile, ghp_plan_chosen.profile, &plan.model, plan.problem),
            done);
    GHP_TRY_GOTO(status, ghp_trust_plan(&plan, ghp_plan_chosen.strict), done);
    if (ghp_plan_chosen.output != NULL)
        GHP_TRY_GOTO(status, ghp_plan_save(ghp_plan_chosen.output, &plan), done);
    if (ghp_plan_chosen.mps != NULL)
        GHP_TRY_GOTO(status, ghp_plan_write_mps(&request, &plan, ghp_plan_chosen.mps), done);
    GHP_TRY_GOTO(status, print_result(&request, &plan), done);
    if (ghp_plan_chosen.crossovers) {
        GHP_TRY_GOTO(status, ghp_crossovers_find(&request, &crossovers), done);
        GHP_TRY_GOTO(status, ghp_crossovers_print(&crossovers, stdout), done);
    }
    if (ghp_plan_chosen.wanted != NULL) status = write_missing(&request, &profile);
done:
    ghp_plan_release(&plan);
    ghp_overrides_release(&overrides);
    ghp_profile_release(&profile);
    return status;
}

static enum ghp_status make_set(const char *model_path)
{
    struct ghp_plan_request request = read_request(model_path);
    struct ghp_elastic_job job = {
        .request = &request, .fewer = (int)ghp_plan_chosen.elastic, .open = open_profile};
    struct ghp_plan_set set = {0};
    struct ghp_display display;
    enum ghp_status status;

    GHP_TRY(read_bucket(&request.method.bucket_bytes));
    GHP_TRY(read_sync(&request.method.sync));
    GHP_TRY(ghp_elastic_make(&job, &set));
    status = ghp_plan_set_save(ghp_plan_chosen.output, &set);
    if (status == GHP_OK) {
        ghp_display_begin(&display, false);
        ghp_inspect_plan_set(&display, &set);
        status = ghp_display_end(&display);
    }
    ghp_plan_set_release(&set);
    return status;
}

/* A plan does not depend on the weights, and --init may give others: this is a warning, unless there was no memory to
 * look at them. */
static enum ghp_status try_weights(const char *model_path)
{
    enum ghp_status status = ghp_network_check_weights(model_path);

    if (status == GHP_OK || status == GHP_ERR_NO_MEMORY) return status;
    if (access(model_path, R_OK) != 0) return GHP_OK; /* loading the network reports it */
    ghp_warn("%s; the plan does not depend on it, but ghp-run refuses to train these weights: mend "
             "them, or give ghp-run --init FILE or --init random",
             ghp_status_message());
    return GHP_OK;
}

/* What the options ask for. */
static enum ghp_status make(const char *model_path)
{
    GHP_TRY(try_weights(model_path));
    if (ghp_plan_chosen.sweep != NULL) return make_sweep(model_path);
    return ghp_plan_chosen.elastic > 0 ? make_set(model_path) : make_plan(model_path);
}

static bool is_list(const char *name)
{
    return name != NULL && strcmp(name, "list") == 0;
}

/* Whether --machine or --network asks for what there is. */
static bool wants_list(void)
{
    return is_list(ghp_plan_chosen.machine) || is_list(ghp_plan_chosen.network);
}

static enum ghp_status print_lists(void)
{
    if (is_list(ghp_plan_chosen.machine)) GHP_TRY(ghp_machines_print(stdout));
    return is_list(ghp_plan_chosen.network) ? ghp_fabrics_print(stdout) : GHP_OK;
}

int main(int argc, char **argv)
{
    const char *files[2] = {NULL};
    int n_files = 0;
    bool lists;
    enum ghp_status status;

    tool.n_opts = ghp_plan_option_count;
    tool.notes = ghp_what_if_help();
    status = ghp_opts_parse(&tool, argc, argv, files, 2, &n_files);
    ghp_log_open(tool.name, true);
    if (status == GHP_OK && ghp_opts_done()) return 0;
    lists = status == GHP_OK && wants_list();
    if (lists) status = print_lists();
    if (status == GHP_OK && !lists) status = check_options(files, n_files);
    if (status == GHP_OK && !lists) status = make(files[0]);
    if (status == GHP_OK) status = ghp_opts_printed();
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
