/* planner/cli/options.c - see options.h. */
#include "planner/cli/options.h"

#include "core/cost/named_machine.h"
#include "core/plan/plan_set.h"
#include "onnx/network.h"

const char *const ghp_plan_strategy_names[] = {
#define STRATEGY_TEXT(id, text, shown) text,
    GHP_STRATEGY_SEARCH_LIST(STRATEGY_TEXT)
#undef STRATEGY_TEXT
        NULL};
const char *const ghp_plan_precision_names[] = {"profile", "float", "double", "tf32", "bf16", NULL};

const char *const ghp_plan_shard_names[] = {"none", "gradients", "step", "micro-batch",
                                            "pass", "auto",      NULL};

#define NAME(id, text) text,
static const char *const solver_names[] = {GHP_SOLVER_LIST(NAME) NULL};
static const char *const pipeline_names[] = {GHP_PIPELINE_MODE_LIST(NAME) NULL};
static const char *const recompute_names[] = {GHP_RECOMPUTE_MODE_LIST(NAME) NULL};
static const char *const load_balance_names[] = {GHP_LOAD_BALANCE_MODE_LIST(NAME) NULL};
#undef NAME
static const char *const former_pipeline_names[] = {"shared", "off", "all", "auto", NULL};

struct ghp_plan_options ghp_plan_chosen = {
    .bucket = "auto", .sync = "auto", .time_limit_s = 30, .max_stages = 3, .max_micro_batches = 64};

const struct ghp_opt ghp_plan_option_table[] = {
    {.kind = GHP_OPT_HEADING, .help = "What to plan"},
    {.name = "profile",
     .letter = 'p',
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.profile,
     .argument = "PROFILE",
     .help = "what the machine was measured to do, from ghp-profile"},
    {.name = "workers",
     .letter = 'n',
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.workers,
     .argument = "N",
     .min = 1,
     .max = 1 << 20,
     .help = "ranks that will train"},
    {.name = "batch",
     .letter = 'b',
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.batch,
     .argument = "B",
     .min = 1,
     .max = 1LL << 40,
     .help = "global batch, a multiple of the workers"},
    {.name = "machine",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.machine,
     .argument = "MACHINE|list",
     .known = ghp_machine_names,
     .help = "a machine file, or one of ghp's named machines (list: print them), in place of the "
             "profile's; links without figures keep the profile's. Without --profile the plan is "
             "made by rule of thumb from the machine's peak figures"},
    {.name = "nodes",
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.nodes,
     .min = 1,
     .max = 1 << 20,
     .help = "equal nodes of --machine; without it what its file says, or without --profile as "
             "many as the workers fill by a GPU each"},
    {.name = "network",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.network,
     .argument = "NETWORK|list",
     .known = ghp_fabric_names,
     .help = "a network file, or one of ghp's named networks (list: print them), between the nodes "
             "of --machine, in place of its own"},
    {.name = "set",
     .kind = GHP_OPT_LIST,
     .target = &ghp_plan_chosen.overrides,
     .argument = "KEY=VALUE",
     .help = "what if: overrides values of the profile or its machine"},
    {.name = "memory",
     .kind = GHP_OPT_BYTES,
     .target = &ghp_plan_chosen.memory_bytes,
     .argument = "SIZE",
     .min = 1,
     .max = 1LL << 60,
     .help = "limit on one worker's arena, such as 4GiB; without it what the "
             "machine has"},
    {.kind = GHP_OPT_HEADING, .help = "A sweep over worker counts, in place of one plan"},
    {.name = "sweep",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.sweep,
     .argument = "workers=1,2,4,...,N",
     .help =
         "predicted scaling, ghp beside data, model and OWT; nodes follow the workers as in the "
         "profile; --time-limit holds for each count"},
    {.name = "batch-per-worker",
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.batch_per_worker,
     .argument = "b",
     .min = 1,
     .max = 1LL << 30,
     .help = "samples of each worker (weak scaling), in place of --batch (strong scaling)"},
    {.name = "elastic",
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.elastic,
     .argument = "F",
     .min = 1,
     .max = GHP_PLAN_SET_MOST - 1,
     .help = "plan for each number of workers from N down to N - F, for the same batch, into one "
             "file that ghp-launch takes; numbers that do not divide the batch are left out"},
    {.kind = GHP_OPT_HEADING, .help = "Which plans"},
    {.name = "strategy",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.strategy,
     .choices = ghp_plan_strategy_names,
     .help = "the best of all plans, or a baseline as a plan of its own"},
    {.name = "force",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.force,
     .argument = "PATTERN=SPLIT,...",
     .help = "fix splits by layer name, such as 'conv*=data,fc1=out:max', or random:SEED for "
             "splits drawn by chance; the rest is optimised"},
    {.name = "groups",
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.groups,
     .argument = "G",
     .min = 1,
     .max = 1 << 20,
     .help = "worker groups; without it as many as the best splits allow"},
    {.name = "bucket-cap",
     .former = "bucket-bytes",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.bucket,
     .argument = "auto|0|SIZE",
     .help =
         "gradients reduced together up to this size; 0: each layer alone; auto: the best tried"},
    {.name = "sync",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.sync,
     .argument = "auto|all|SYNC",
     .help =
         "update of the weights: allreduce: each worker updates all that it holds; sharded: a "
         "optimizer shard of it, with moments for that alone; auto: sharded where --memory needs "
         "it or "
         "it is surely faster (not with --sweep); local:TAU: each worker trains by its own "
         "samples, and takes the mean of all weights every TAU steps; bsp: servers update the "
         "weights by all workers' gradients; asp: by each one's when they come; ssp:S: and a "
         "worker goes on by its own for up to S steps; easgd:TAU, aladdin:PI: workers train "
         "alone, drawn to the servers' weights; gosgd:P: and after a step send theirs to one by "
         "chance, with probability P; ad-psgd: and meet one half-way beside each step; "
         "lsgd:GROUPS,TAU: drawn to whoever had the least loss, in its group and of all; dgd:GRAPH "
         "(ring, torus, complete or edges as 0-1,1-2): each takes the weighted mean of its "
         "neighbours' weights; sgp: and pushes half of its own to the next one of a graph, "
         "sgp-overlap:TAU: beside the step; all: print what each would do, and make the plan "
         "that auto makes"},
    {.name = "shard",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.shard,
     .choices = ghp_plan_shard_names,
     .help = "parameters of each layer that can be, over the workers that hold the same: none; "
             "gradients: gradients and moments alone (ZeRO-2); step, micro-batch, pass: weights "
             "too, which are gathered for use (ZeRO-3, FSDP): once a step, once for both passes of "
             "a micro-batch, or for each pass; auto: what is fastest for each layer"},
    {.name = "servers",
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.servers,
     .argument = "S",
     .min = 1,
     .max = GHP_SYNC_SERVERS_MOST,
     .help = "by --sync bsp: ranks besides the workers that have the weights, each a part"},
    {.name = "straggler",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.straggler,
     .argument = "RANK:FACTOR[,...]",
     .help = "say also what slow workers would do to the plan, to its baselines, and with --sync "
             "all to each synchroniser: FACTOR times the computing of a worker"},
    {.name = "optimizer",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.optimizer,
     .choices = ghp_optimizer_names,
     .help = "that the plan is trained with: sgd, with momentum; adamw: Adam with decoupled weight "
             "decay, which keeps two tensors as large as the weights; lion: the sign of a mean of "
             "gradients, which keeps one"},
    {.name = "clip-norm",
     .kind = GHP_OPT_REAL,
     .target = &ghp_plan_chosen.clip_norm,
     .argument = "X",
     .min = GHP_CLIP_NORM_LEAST,
     .max = GHP_CLIP_NORM_MOST,
     .help = "scale all gradients down to this norm, where theirs together is larger; updates then "
             "wait for all of them"},
    {.name = "lr-scaling",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.scaling,
     .choices = ghp_lr_scaling_names,
     .help = "how learning rates follow the batch: linear: times its n worker batches (workers "
             "times micro-batches); of sgd, lars: of each tensor by its norm and its gradient's, "
             "adascale: times 1 to n, by how far the worker batches' gradients are apart, lena: "
             "the same of each tensor, with a warm-up of its own; of adamw, lamb: of each tensor "
             "by its norm; all but linear wait for all gradients"},
    {.name = "crossovers",
     .kind = GHP_OPT_FLAG,
     .target = &ghp_plan_chosen.crossovers,
     .help = "say also up to how many tokens a step the blocks, and the embedding and output "
             "layer, are better split than by data; makes a plan for each of some 20 batches"},
    {.name = "no-simplify",
     .kind = GHP_OPT_FLAG,
     .target = &ghp_plan_chosen.no_simplify,
     .help =
         "take the fastest plan even where its margin over data parallelism is within the error"},
    {.name = "load-balance",
     .former = "shares",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.load_balance,
     .choices = load_balance_names,
     .help = "of the samples: by-speed gives slower workers fewer where the profile has "
             "the workers' speeds and that is faster (not with --sweep)"},
    {.name = "recompute",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.recompute,
     .choices = recompute_names,
     .help = "auto: where --memory binds, layers may be recomputed in the backward pass instead "
             "of being kept (not with --sweep)"},
    {.kind = GHP_OPT_HEADING, .help = "Stages and micro-batches"},
    {.name = "pipeline",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.pipeline,
     .choices = pipeline_names,
     .former = "roles",
     .synonyms = former_pipeline_names,
     .help = "off: every worker owns every layer; auto: stages of some workers each, and "
             "micro-batches, are searched too"},
    {.name = "max-stages",
     .former = "most-stages",
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.max_stages,
     .argument = "S",
     .min = 1,
     .max = GHP_PARTITION_STAGES,
     .help = "stages of a group that --pipeline auto looks at"},
    {.name = "max-micro-batches",
     .former = "most-micro-batches",
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.max_micro_batches,
     .argument = "U",
     .min = 1,
     .max = GHP_MAX_MICRO_BATCHES,
     .help = "micro-batches of a step that --pipeline auto looks at (powers of two)"},
    {.name = "stages",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.stages,
     .argument = "K,LAYER:K,...",
     .help = "these stages: workers of the first, then each further one's first layer and "
             "workers, such as 3,fc6:1; splits are optimised"},
    {.name = "micro-batches",
     .kind = GHP_OPT_INT,
     .target = &ghp_plan_chosen.micro_batches,
     .argument = "U",
     .min = 1,
     .max = GHP_MAX_MICRO_BATCHES,
     .help = "so many micro-batches a step, with --stages or alone (gradients are accumulated)"},
    {.name = "pipeline-schedule",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.schedule,
     .choices = ghp_pipeline_names,
     .help = "order of the micro-batches in --stages: forward and backward in turn, all forward "
             "first, or in turn with weight gradients deferred (zero bubble H1)"},
    {.kind = GHP_OPT_HEADING, .help = "How"},
    {.name = "precision",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.precision,
     .choices = ghp_plan_precision_names,
     .help = "numbers that the plan must be for; another than the profile's is refused, but by the "
             "analytic model"},
    {.name = "time-limit",
     .kind = GHP_OPT_REAL,
     .target = &ghp_plan_chosen.time_limit_s,
     .argument = "SECONDS",
     .min = 0.01,
     .max = 1e6,
     .help = "after this the best plan so far, with its gap"},
    {.name = "mip-gap",
     .former = "gap",
     .kind = GHP_OPT_REAL,
     .target = &ghp_plan_chosen.gap,
     .argument = "FRACTION",
     .min = 0,
     .max = 0.5,
     .help = "stop at a plan that is at most this fraction slower than the bound; 0: the best"},
    {.name = "strict",
     .kind = GHP_OPT_REAL,
     .target = &ghp_plan_chosen.strict,
     .argument = "SHARE",
     .min = 0,
     .max = 1,
     .help = "no plan unless this share of its predicted seconds was measured"},
    {.name = "analytic",
     .kind = GHP_OPT_FLAG,
     .target = &ghp_plan_chosen.analytic,
     .help = "take a profile that was measured for other networks: by the rates that these reach"},
    {.name = "no-break-even",
     .kind = GHP_OPT_FLAG,
     .target = &ghp_plan_chosen.no_break_even,
     .help = "do not look for the bandwidth, latency, batch and memory at which choices flip"},
    {.name = "solver",
     .kind = GHP_OPT_CHOICE,
     .target = &ghp_plan_chosen.solver,
     .choices = solver_names,
     .help = "branch: bounds by dynamic programming; milp: GLPK; auto: branch where the graph is "
             "narrow enough; heuristic: the plan by rules of thumb, and what it loses"},
    {.kind = GHP_OPT_HEADING, .help = "Output"},
    {.name = "output",
     .letter = 'o',
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.output,
     .writes = "\"ghp.plan/|\"ghp.plans/",
     .argument = "PLAN",
     .help = "plan file for ghp-run; without it only the table is printed"},
    {.name = "write-mps",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.mps,
     .writes = "* certificate: ",
     .argument = "FILE.mps",
     .help = "write the integer program whose optimum the certificate claims, for solvers of "
             "others; ghp-inspect PLAN --check-with runs one"},
    {.name = "wanted",
     .kind = GHP_OPT_TEXT,
     .target = &ghp_plan_chosen.wanted,
     .writes = "\"ghp.wanted/",
     .argument = "FILE",
     .help =
         "write what nobody measured and the choice may change by, for ghp-profile --wanted; an "
         "empty list where nothing can (of one plan). Without --output nothing else is made"},
    GHP_NETWORK_OPTION,
    GHP_BATCH_NORM_OPTION,
    GHP_TUNING_OPTIONS,
    {.name = "json",
     .kind = GHP_OPT_FLAG,
     .target = &ghp_plan_chosen.json,
     .help = "one JSON object in place of the tables"},
};

const int ghp_plan_option_count =
    (int)(sizeof ghp_plan_option_table / sizeof ghp_plan_option_table[0]);
