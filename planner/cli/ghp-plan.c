/* planner/cli/ghp-plan.c - the tool: reads a model and a profile, makes a plan, prints it beside the baselines.
 *
 * Only options, files and exit codes; the build is planner/build/build.h. */
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/base/units.h"
#include "inspect/inspect.h"
#include "planner/search/milp.h"
#include "inspect/summary.h"
#include "planner/build/sync_choice.h"
#include "planner/sweep/crossover.h"
#include "planner/sweep/sweep.h"
#include "core/plan/what_if.h"

#include <stdlib.h>
#include <string.h>

static const char *const strategy_names[] = {
#define STRATEGY_TEXT(id, text, shown) text,
    GHP_STRATEGY_SEARCH_LIST(STRATEGY_TEXT)
#undef STRATEGY_TEXT
        NULL};
static const char *const precision_names[] = {"profile", "float", "double", "tf32", "bf16", NULL};

#define NAME(id, text) text,
static const char *const solver_names[] = {GHP_SOLVER_LIST(NAME) NULL};
static const char *const pipeline_names[] = {GHP_PIPELINE_MODE_LIST(NAME) NULL};
static const char *const recompute_names[] = {GHP_RECOMPUTE_MODE_LIST(NAME) NULL};
static const char *const load_balance_names[] = {GHP_LOAD_BALANCE_MODE_LIST(NAME) NULL};
#undef NAME
static const char *const former_pipeline_names[] = {"shared", "off", "all", "auto", NULL};

/* What the command line sets; defaults are what is here. */
static struct {
    const char *profile, *machine, *force, *bucket, *output, *sweep, *svg, *stages, *sync;
    int64_t workers, batch, batch_per_worker, memory_bytes, groups;
    int64_t micro_batches, max_stages, max_micro_batches;
    int strategy, precision, solver, pipeline, schedule, load_balance, recompute, optimizer;
    double time_limit_s, gap, clip_norm;
    bool no_simplify, no_break_even, crossovers, json;
    struct ghp_opt_list overrides;
} set = {
    .bucket = "auto", .sync = "auto", .time_limit_s = 30, .max_stages = 3, .max_micro_batches = 64};

static const struct ghp_opt options[] = {
    {.kind = GHP_OPT_HEADING, .help = "What to plan"},
    {.name = "profile",
     .letter = 'p',
     .kind = GHP_OPT_TEXT,
     .target = &set.profile,
     .argument = "PROFILE",
     .help = "what the machine was measured to do, from ghp-profile"},
    {.name = "workers",
     .letter = 'n',
     .kind = GHP_OPT_INT,
     .target = &set.workers,
     .argument = "N",
     .min = 1,
     .max = 1 << 20,
     .help = "ranks that will train"},
    {.name = "batch",
     .letter = 'b',
     .kind = GHP_OPT_INT,
     .target = &set.batch,
     .argument = "B",
     .min = 1,
     .max = 1LL << 40,
     .help = "global batch, a multiple of the workers"},
    {.name = "machine",
     .kind = GHP_OPT_TEXT,
     .target = &set.machine,
     .argument = "MACHINE",
     .help = "another machine than the profile's; links without figures keep the profile's"},
    {.name = "set",
     .kind = GHP_OPT_LIST,
     .target = &set.overrides,
     .argument = "KEY=VALUE",
     .help = "what if: overrides values of the profile or its machine (may be repeated)"},
    {.name = "memory",
     .kind = GHP_OPT_BYTES,
     .target = &set.memory_bytes,
     .argument = "SIZE",
     .min = 1,
     .max = 1LL << 60,
     .help = "limit on one worker's arena, such as 4GiB; without it none"},
    {.kind = GHP_OPT_HEADING, .help = "A sweep over worker counts, in place of one plan"},
    {.name = "sweep",
     .kind = GHP_OPT_TEXT,
     .target = &set.sweep,
     .argument = "workers=1,2,4,...,N",
     .help =
         "predicted scaling, ghp beside data, model and OWT; nodes follow the workers as in the "
         "profile; --time-limit holds for each count"},
    {.name = "batch-per-worker",
     .kind = GHP_OPT_INT,
     .target = &set.batch_per_worker,
     .argument = "b",
     .min = 1,
     .max = 1LL << 30,
     .help = "samples of each worker (weak scaling), in place of --batch (strong scaling)"},
    {.name = "svg",
     .kind = GHP_OPT_TEXT,
     .target = &set.svg,
     .writes = "<svg",
     .argument = "FILE",
     .help = "draw the sweep's speed-ups"},
    {.kind = GHP_OPT_HEADING, .help = "Which plans"},
    {.name = "strategy",
     .kind = GHP_OPT_CHOICE,
     .target = &set.strategy,
     .choices = strategy_names,
     .help = "the best of all plans, or a baseline as a plan of its own"},
    {.name = "force",
     .kind = GHP_OPT_TEXT,
     .target = &set.force,
     .argument = "PATTERN=SPLIT,...",
     .help = "fix splits by layer name, such as 'conv*=data,fc1=out:max', or random:SEED for "
             "splits drawn by chance; the rest is optimised"},
    {.name = "groups",
     .kind = GHP_OPT_INT,
     .target = &set.groups,
     .argument = "G",
     .min = 1,
     .max = 1 << 20,
     .help = "worker groups; without it as many as the best splits allow"},
    {.name = "bucket-cap",
     .former = "bucket-bytes",
     .kind = GHP_OPT_TEXT,
     .target = &set.bucket,
     .argument = "auto|0|SIZE",
     .help =
         "gradients reduced together up to this size; 0: each layer alone; auto: the best tried"},
    {.name = "sync",
     .kind = GHP_OPT_TEXT,
     .target = &set.sync,
     .argument = "auto|allreduce|sharded|local:TAU",
     .help = "update of the weights: allreduce: each worker updates all that it holds; sharded: a "
             "strip of it, with moments for that alone; auto: sharded where --memory needs it or "
             "it is surely faster (not with --sweep); local:TAU: each worker trains by its own "
             "samples, and takes the mean of all weights every TAU steps"},
    {.name = "optimizer",
     .kind = GHP_OPT_CHOICE,
     .target = &set.optimizer,
     .choices = ghp_optimizer_names,
     .help = "that the plan is trained with: sgd, with momentum; adamw: Adam with decoupled weight "
             "decay, which keeps two tensors as large as the weights"},
    {.name = "clip-norm",
     .kind = GHP_OPT_REAL,
     .target = &set.clip_norm,
     .argument = "X",
     .min = GHP_CLIP_NORM_LEAST,
     .max = GHP_CLIP_NORM_MOST,
     .help = "scale all gradients down to this norm, where theirs together is larger; updates then "
             "wait for all of them"},
    {.name = "crossovers",
     .kind = GHP_OPT_FLAG,
     .target = &set.crossovers,
     .help = "say also up to how many tokens a step the blocks, and the embedding and output "
             "layer, are better split than by data; makes a plan for each of some 20 batches"},
    {.name = "no-simplify",
     .kind = GHP_OPT_FLAG,
     .target = &set.no_simplify,
     .help =
         "take the fastest plan even where its margin over data parallelism is within the error"},
    {.name = "load-balance",
     .former = "shares",
     .kind = GHP_OPT_CHOICE,
     .target = &set.load_balance,
     .choices = load_balance_names,
     .help = "of the samples: by-speed gives slower workers fewer where the profile has "
             "the workers' speeds and that is faster (not with --sweep)"},
    {.name = "recompute",
     .kind = GHP_OPT_CHOICE,
     .target = &set.recompute,
     .choices = recompute_names,
     .help = "auto: where --memory binds, layers may be recomputed in the backward pass instead "
             "of being kept (not with --sweep)"},
    {.kind = GHP_OPT_HEADING, .help = "Stages and micro-batches"},
    {.name = "pipeline",
     .kind = GHP_OPT_CHOICE,
     .target = &set.pipeline,
     .choices = pipeline_names,
     .former = "roles",
     .synonyms = former_pipeline_names,
     .help = "off: every worker owns every layer; auto: stages of some workers each, and "
             "micro-batches, are searched too"},
    {.name = "max-stages",
     .former = "most-stages",
     .kind = GHP_OPT_INT,
     .target = &set.max_stages,
     .argument = "S",
     .min = 1,
     .max = GHP_PARTITION_STAGES,
     .help = "stages of a group that --pipeline auto looks at"},
    {.name = "max-micro-batches",
     .former = "most-micro-batches",
     .kind = GHP_OPT_INT,
     .target = &set.max_micro_batches,
     .argument = "U",
     .min = 1,
     .max = GHP_MAX_MICRO_BATCHES,
     .help = "micro-batches of a step that --pipeline auto looks at (powers of two)"},
    {.name = "stages",
     .kind = GHP_OPT_TEXT,
     .target = &set.stages,
     .argument = "K,LAYER:K,...",
     .help = "these stages: workers of the first, then each further one's first layer and "
             "workers, such as 3,fc6:1; splits are optimised"},
    {.name = "micro-batches",
     .kind = GHP_OPT_INT,
     .target = &set.micro_batches,
     .argument = "U",
     .min = 1,
     .max = GHP_MAX_MICRO_BATCHES,
     .help = "so many micro-batches a step, with --stages or alone (gradients are accumulated)"},
    {.name = "pipeline-schedule",
     .kind = GHP_OPT_CHOICE,
     .target = &set.schedule,
     .choices = ghp_pipeline_names,
     .help = "order of the micro-batches in --stages: forward and backward in turn, or all "
             "forward first"},
    {.kind = GHP_OPT_HEADING, .help = "How"},
    {.name = "precision",
     .kind = GHP_OPT_CHOICE,
     .target = &set.precision,
     .choices = precision_names,
     .help = "numbers that the plan must be for; another than the profile's is refused, but by the "
             "analytic model"},
    {.name = "time-limit",
     .kind = GHP_OPT_REAL,
     .target = &set.time_limit_s,
     .argument = "SECONDS",
     .min = 0.01,
     .max = 1e6,
     .help = "after this the best plan so far, with its gap"},
    {.name = "mip-gap",
     .former = "gap",
     .kind = GHP_OPT_REAL,
     .target = &set.gap,
     .argument = "FRACTION",
     .min = 0,
     .max = 0.5,
     .help = "stop at a plan that is at most this fraction slower than the bound; 0: the best"},
    {.name = "no-break-even",
     .kind = GHP_OPT_FLAG,
     .target = &set.no_break_even,
     .help = "do not look for the bandwidth, latency, batch and memory at which choices flip"},
    {.name = "solver",
     .kind = GHP_OPT_CHOICE,
     .target = &set.solver,
     .choices = solver_names,
     .help = "branch: bounds by dynamic programming; milp: GLPK; auto: branch where the graph is "
             "narrow enough; heuristic: the plan by rules of thumb, and what it loses"},
    {.kind = GHP_OPT_HEADING, .help = "Output"},
    {.name = "output",
     .letter = 'o',
     .kind = GHP_OPT_TEXT,
     .target = &set.output,
     .writes = "\"ghp.plan/",
     .argument = "PLAN",
     .help = "plan file for ghp-run; without it only the table is printed"},
    {.name = "json",
     .kind = GHP_OPT_FLAG,
     .target = &set.json,
     .help = "one JSON object in place of the tables"},
};

static void say_libraries(ghp_opts_say *say)
{
    say("GLPK", ghp_milp_library());
}

static struct ghp_tool tool = {
    .name = "ghp-plan",
    .purpose = "chooses worker groups and a split of every layer, by a profile, and proves how "
               "good they are",
    .usage = "ghp-plan MODEL --profile PROFILE --workers N --batch B [-o PLAN]\n"
             "       ghp-plan MODEL --profile PROFILE --sweep workers=1,2,4,...,N --batch B",
    .example = "ghp-plan models/vgg16.json --profile vgg16.profile.json --workers 16 --batch 1024 "
               "-o vgg16.plan.json",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
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
    bool given = set.stages != NULL || set.micro_batches > 0;
    bool sums = set.strategy == GHP_STRATEGY_DATA && set.stages == NULL;

    if (given && set.pipeline == GHP_PIPELINE_MODE_AUTO)
        return GHP_FAIL(GHP_ERR_USAGE, "--pipeline auto looks for stages and micro-batches; leave "
                                       "--stages and --micro-batches out, or --pipeline");
    if (((given && !sums) || set.pipeline == GHP_PIPELINE_MODE_AUTO) &&
        set.strategy != GHP_STRATEGY_AUTO)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--strategy %s has no stages%s; leave it out, or --pipeline, --stages and "
                        "--micro-batches",
                        strategy_names[set.strategy],
                        set.strategy == GHP_STRATEGY_DATA ? "" : " and no micro-batches");
    if (set.solver == GHP_SOLVER_HEURISTIC && (given || set.force != NULL))
        return GHP_FAIL(GHP_ERR_USAGE, "--solver heuristic decides stages and splits by its rules; "
                                       "leave --stages, --micro-batches and --force out");
    if (set.pipeline == GHP_PIPELINE_MODE_AUTO && set.force != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "--force fixes splits of one staging; give that by --stages "
                                       "instead of --pipeline auto");
    return GHP_OK;
}

/* What a sweep leaves no room for, and what is for sweeps only. */
static enum ghp_status check_sweep(void)
{
    if (set.sweep == NULL) {
        if (set.svg != NULL || set.batch_per_worker > 0)
            return GHP_FAIL(GHP_ERR_USAGE, "--%s is for sweeps; add --sweep workers=1,2,4,...,N",
                            set.svg != NULL ? "svg" : "batch-per-worker");
        return GHP_OK;
    }
    if (set.workers > 0 || set.output != NULL || set.groups > 0 ||
        set.strategy != GHP_STRATEGY_AUTO || set.pipeline == GHP_PIPELINE_MODE_AUTO ||
        set.stages != NULL || set.micro_batches > 0 || set.solver == GHP_SOLVER_HEURISTIC)
        return GHP_FAIL(GHP_ERR_USAGE, "--sweep makes many plans and writes none; leave --workers, "
                                       "--output, --groups, --strategy, --pipeline, --stages, "
                                       "--micro-batches and --solver heuristic out");
    if ((set.batch > 0) == (set.batch_per_worker > 0))
        return GHP_FAIL(GHP_ERR_USAGE, "a sweep needs one batch: give --batch B (of all workers) "
                                       "or --batch-per-worker b");
    return GHP_OK;
}

static enum ghp_status check_options(const char *const *files, int n_files)
{
    if (n_files < 1)
        return GHP_FAIL(GHP_ERR_USAGE, "no model given; name one, such as models/vgg16.json");
    if (n_files > 1)
        return GHP_FAIL(GHP_ERR_USAGE, "one argument too many: '%s'; name one model", files[1]);
    if (set.profile == NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "no profile given; add --profile PROFILE, made by ghp-profile");
    GHP_TRY(check_stages());
    if (set.crossovers && (set.json || set.sweep != NULL || set.force != NULL ||
                           set.stages != NULL || set.strategy != GHP_STRATEGY_AUTO))
        return GHP_FAIL(GHP_ERR_USAGE, "--crossovers asks for the best plan of each batch, in "
                                       "text; leave --json, --sweep, --force, --stages and "
                                       "--strategy out");
    GHP_TRY(check_sweep());
    if (set.sweep != NULL) return GHP_OK;
    if (set.workers == 0) return GHP_FAIL(GHP_ERR_USAGE, "no worker count given; add --workers N");
    if (set.batch == 0)
        return GHP_FAIL(GHP_ERR_USAGE, "no batch given; add --batch B, a multiple of the workers");
    if (set.force != NULL && set.strategy != GHP_STRATEGY_AUTO)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--force and --strategy %s both fix splits; give one of them",
                        strategy_names[set.strategy]);
    return GHP_OK;
}

static enum ghp_status read_bucket(int64_t *bytes)
{
    *bytes = GHP_BUCKET_AUTO;
    if (strcmp(set.bucket, "auto") == 0) return GHP_OK;
    if (ghp_bytes_parse(set.bucket, bytes) != GHP_OK)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read --bucket-cap '%s'; give auto, 0, or a size such as 4MiB",
                        set.bucket);
    return GHP_OK;
}

/* Sets the profile's width of numbers where it has no measurements of another one. */
static enum ghp_status set_precision(struct ghp_profile *profile)
{
    struct ghp_precision has = ghp_profile_precision(profile), wanted = has;

    if (set.precision > 0) wanted = ghp_precision_of(set.precision - 1);
    if (ghp_precision_same(has, wanted)) return GHP_OK;
    if (profile->n_ops > 0 || profile->n_comms > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "profile '%s' was measured in %s; measure one with "
                        "ghp-profile --precision %s",
                        set.profile, ghp_precision_name(has), precision_names[set.precision]);
    profile->element_bytes = wanted.element_bytes;
    profile->tf32 = wanted.tf32;
    return ghp_profile_finalize(profile);
}

/* The profile as the options want it, for so many workers. */
/* Zeroed: the one to choose. */
static enum ghp_status read_sync(struct ghp_sync *sync)
{
    *sync = (struct ghp_sync){0};
    if (strcmp(set.sync, "auto") == 0) return GHP_OK;
    if (ghp_sync_parse(set.sync, sync) != GHP_OK)
        return GHP_FAIL(GHP_ERR_USAGE, "--sync: %s", ghp_status_message());
    if (set.sweep == NULL || !ghp_sync_ops_of(*sync)->replicas) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--sync %s is planned for one number of workers at a time; leave --sweep out",
                    set.sync);
}

static enum ghp_status open_profile(struct ghp_plan_request *request, struct ghp_profile *profile,
                                    struct ghp_overrides *overrides)
{
    struct ghp_what_if what_if = {.machine_name = set.machine,
                                  .set = set.overrides.item,
                                  .n_set = set.overrides.n,
                                  .workers = request->problem.workers};
    struct ghp_machine machine = {0};
    enum ghp_status status = GHP_OK;

    GHP_TRY(ghp_profile_load(set.profile, profile));
    GHP_TRY(set_precision(profile));
    if (set.sweep != NULL && set.machine == NULL)
        what_if.workers_per_node = ghp_what_if_workers_per_node(profile);
    if (request->memory_bytes == 0)
        request->memory_bytes = ghp_profile_device_limit(profile, request->problem.workers);
    if (set.machine == NULL && set.overrides.n == 0 && what_if.workers_per_node == 0) return GHP_OK;
    if (set.machine != NULL) {
        GHP_TRY(ghp_machine_load(set.machine, &machine));
        what_if.machine = &machine;
    }
    status = ghp_what_if_apply(&what_if, profile, overrides);
    ghp_machine_release(&machine);
    request->what_if = overrides;
    if (request->memory_bytes == 0) request->memory_bytes = ghp_what_if_memory(&what_if, profile);
    return status;
}

static enum ghp_status print_result(const struct ghp_plan *plan)
{
    json_t *config;

    if (!set.json) return ghp_summary_print(plan, stdout);
    GHP_TRY(config_object(&config));
    return ghp_summary_json(plan, config, stdout);
}

static struct ghp_plan_request read_request(const char *model_path)
{
    /* data parallelism whose gradients are added up over parts of the batch */
    bool sums = set.strategy == GHP_STRATEGY_DATA && set.micro_batches > 1;

    return (struct ghp_plan_request){
        .model_path = model_path,
        .profile_path = set.profile,
        .problem = {.workers = (int)set.workers, .global_batch = set.batch},
        .strategy = sums ? GHP_STRATEGY_AUTO : (enum ghp_strategy)set.strategy,
        .force = sums ? "*=data" : set.force,
        .groups = (int)set.groups,
        .memory_bytes = set.memory_bytes,
        .time_limit_s = set.time_limit_s,
        .gap = set.gap,
        .simplify = !set.no_simplify,
        .break_even = !set.no_break_even,
        .solver = (enum ghp_solver)set.solver,
        .pipeline_mode = (enum ghp_pipeline_mode)set.pipeline,
        .optimizer = ghp_optimizer_at(set.optimizer),
        .clip_norm = set.clip_norm,
        .recompute =
            set.sweep != NULL ? GHP_RECOMPUTE_MODE_NEVER : (enum ghp_recompute_mode)set.recompute,
        .load_balance = set.sweep != NULL ? GHP_LOAD_BALANCE_MODE_EQUAL
                                          : (enum ghp_load_balance_mode)set.load_balance,
        .space = {.max_stages = (int)set.max_stages,
                  .max_micro_batches = (int)set.max_micro_batches,
                  .groups = (int)set.groups},
        .stages = set.stages,
        .micro_batches = (int)set.micro_batches,
        .pipeline = (enum ghp_pipeline)set.schedule};
}

static enum ghp_status make_sweep(const char *model_path)
{
    struct ghp_plan_request request = read_request(model_path);
    struct ghp_sweep_range range;
    struct ghp_sweep_job job = {.request = &request,
                                .range = &range,
                                .batch = set.batch > 0 ? set.batch : set.batch_per_worker,
                                .weak = set.batch == 0,
                                .open = open_profile};
    struct ghp_sweep sweep = {0};
    json_t *config = NULL;
    enum ghp_status status;

    GHP_TRY(read_bucket(&request.bucket_bytes));
    GHP_TRY(read_sync(&request.sync));
    GHP_TRY(ghp_sweep_parse(set.sweep, &range));
    GHP_TRY(ghp_sweep_run(&job, &sweep));
    status = set.svg != NULL ? ghp_sweep_chart(set.svg, &sweep) : GHP_OK;
    if (status == GHP_OK && set.json) {
        status = config_object(&config);
        if (status == GHP_OK) status = ghp_sweep_json(&sweep, config, stdout);
    } else if (status == GHP_OK)
        status = ghp_sweep_print(&sweep, stdout);
    ghp_sweep_release(&sweep);
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
    GHP_TRY(read_bucket(&request.bucket_bytes));
    GHP_TRY(read_sync(&request.sync));
    GHP_TRY_GOTO(status, open_profile(&request, &profile, &overrides), done);
    GHP_TRY_GOTO(status, ghp_plan_make_synced(&request, &plan), done);
    if (set.output != NULL) GHP_TRY_GOTO(status, ghp_plan_save(set.output, &plan), done);
    GHP_TRY_GOTO(status, print_result(&plan), done);
    if (!set.crossovers) goto done;
    GHP_TRY_GOTO(status, ghp_crossovers_find(&request, &crossovers), done);
    GHP_TRY_GOTO(status, ghp_crossovers_print(&crossovers, stdout), done);
done:
    ghp_plan_release(&plan);
    ghp_overrides_release(&overrides);
    ghp_profile_release(&profile);
    return status;
}

int main(int argc, char **argv)
{
    const char *files[2] = {NULL};
    int n_files = 0;
    enum ghp_status status;

    tool.notes = ghp_what_if_help();
    status = ghp_opts_parse(&tool, argc, argv, files, 2, &n_files);
    ghp_log_open(tool.name, true);
    if (status == GHP_OK && ghp_opts_done()) return 0;
    if (status == GHP_OK) status = check_options(files, n_files);
    if (status == GHP_OK) status = set.sweep != NULL ? make_sweep(files[0]) : make_plan(files[0]);
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
