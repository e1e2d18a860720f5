/* executor/launcher/ghp-train.c - the tool for the whole way: from a network to its training, by the other tools.
 *
 * ghp-profile measures what data parallelism needs, which every plan is compared with. Then ghp-plan names what the
 * choice may still change by, and ghp-profile measures that, until there is nothing more. ghp-plan makes the plan, and
 * ghp-run trains by it. It decides nothing itself, and each command that it starts can be given by hand. */
#include "core/base/clock.h"
#include "core/base/folder.h"
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/base/text.h"
#include "core/cost/missing.h"
#include "executor/launcher/command.h"
#include "executor/launcher/tool_path.h"
#include "onnx/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Options of ghp-plan as they were given; NULL: not. The last one is ghp-profile's too. */
enum { CLIP, MICRO_BATCHES, MEMORY, SYNC, SHARD, RECOMPUTE, PIPELINE, BATCH_NORM, PLAN_OPTIONS };
static const char *const plan_options[PLAN_OPTIONS] = {
    "--clip-norm", "--micro-batches", "--memory",   "--sync",
    "--shard",     "--recompute",     "--pipeline", "--batch-norm"};

enum { PATH_BYTES = 4096, MOST_TURNS = 8, NO_PLAN = 3 };
static const double least_budget_s = 2; /* of one turn: less than this measures nothing */

static struct {
    const char *folder, *mpirun, *backend, *precision, *optimizer, *cache, *threads, *bind, *gap;
    int64_t workers, batch;
    const char *plan[PLAN_OPTIONS];
    double budget_s;
    bool plan_only, folded_batch_norm;
} chosen = {.mpirun = GHP_MPIRUN " " GHP_MPI_SHARES, .budget_s = 120, .gap = "0.0005"};

static const struct ghp_opt options[] = {
    {.name = "workers",
     .letter = 'n',
     .kind = GHP_OPT_INT,
     .target = &chosen.workers,
     .argument = "N",
     .min = 1,
     .max = 1 << 20,
     .help = "ranks that train; needed"},
    {.name = "batch",
     .letter = 'b',
     .kind = GHP_OPT_INT,
     .target = &chosen.batch,
     .argument = "B",
     .min = 1,
     .max = 1LL << 40,
     .help = "global batch, a multiple or a divisor of the workers; needed"},
    {.name = "folder",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.folder,
     .argument = "DIR",
     .help = "where profile.json, wanted.json and plan.json go; without it ghp-MODEL-nN-bB"},
    {.name = "mip-gap",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.gap,
     .argument = "FRACTION",
     .help = "stop at a plan that is at most this fraction slower than the bound; 0: the best "
             "plan, however long that takes to prove"},
    {.name = "budget",
     .kind = GHP_OPT_REAL,
     .target = &chosen.budget_s,
     .argument = "SECONDS",
     .min = 1,
     .max = 1e7,
     .help = "upper limit for all measuring; usually less is used"},
    {.name = "backend",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.backend,
     .argument = "NAME",
     .help = "onednn, reference or cuda"},
    {.name = "precision",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.precision,
     .argument = "NAME",
     .help = "numbers that it computes in: float, double, tf32 or bf16"},
    {.name = "threads",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.threads,
     .argument = "T",
     .help = "threads per worker"},
    {.name = "bind",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.bind,
     .argument = "NAME",
     .help = "whether workers are bound to cores, as ghp-run takes it"},
    {.name = "optimizer",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.optimizer,
     .argument = "NAME",
     .help = "sgd, adamw or lion"},
    {.name = "clip-norm",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.plan[CLIP],
     .argument = "X",
     .help = "scale all gradients down if their common norm is larger"},
    {.name = "micro-batches",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.plan[MICRO_BATCHES],
     .argument = "U",
     .help = "parts of the batch over which gradients are accumulated"},
    {.name = "memory",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.plan[MEMORY],
     .argument = "SIZE",
     .help = "limit on one worker's memory, such as 4GiB"},
    {.name = "sync",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.plan[SYNC],
     .argument = "auto|SYNC",
     .help = "how workers combine their updates; see docs/reference/synchronisers.md"},
    {.name = "shard",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.plan[SHARD],
     .argument = "NAME",
     .help = "shard parameters (ZeRO-2, ZeRO-3, FSDP), as ghp-plan takes it"},
    {.name = "recompute",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.plan[RECOMPUTE],
     .argument = "NAME",
     .help = "whether layers may be recomputed, as ghp-plan takes it"},
    {.name = "pipeline",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.plan[PIPELINE],
     .argument = "NAME",
     .help = "whether pipeline stages are searched, as ghp-plan takes it"},
    {.name = "batch-norm",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.plan[BATCH_NORM],
     .argument = "local|global|S",
     .help = "samples of a batch norm's statistics: each worker's, the whole batch, or each S"},
    {.name = "cache",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.cache,
     .argument = "FOLDER|none",
     .help = "where measurements are kept for other networks and runs"},
    {.name = "mpirun",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.mpirun,
     .argument = "COMMAND",
     .help = "launcher with its options, split at spaces (no quoting); -n N is appended"},
    {.name = "folded-batch-norm",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.folded_batch_norm,
     .help = "take an ONNX file whose batch norms PyTorch's exporter folded away"},
    GHP_TUNING_OPTIONS,
    {.name = "plan-only",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.plan_only,
     .help = "make the plan, and do not train"},
};

static const struct ghp_opts_hint hints[] = {
    {NULL,
     "options of the training, such as --epochs and --lr, follow '--' (ghp-run --help has them); "
     "others: see 'ghp-train --help'"}};

static const struct ghp_exit_code exit_codes[] = {
    {3, "no plan fits into the memory"},
    {GHP_EXIT_STOPPED, "ended early by a signal, with a checkpoint if --checkpoint was given"},
    {GHP_EXIT_DIVERGED, "the training diverged: a weight or the loss is not finite"},
    {0, NULL}};

static const struct ghp_tool tool = {
    .name = "ghp-train",
    .hints = hints,
    .purpose = "measures, plans and trains a network with one command",
    .usage = "ghp-train MODEL --workers N --batch B [options] -- [ghp-run's options]",
    .example = "ghp-train models/vgg-a-32.json --workers 2 --batch 64 -- --steps 100",
    .common = "workers batch folder budget backend precision threads optimizer micro-batches "
              "memory sync shard mpirun plan-only",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
    .exit_codes = exit_codes,
    .notes =
        "Only what could change the choice of the plan is measured, and nothing twice. The exit "
        "code is that of the tool that failed, or ghp-run's. The first signal ends the training in "
        "order, with a checkpoint if ghp-run has --checkpoint; a second one ends it at once, except "
        "SIGTERM again.",
};

/* One way through. */
struct way {
    const char *model;
    int n_run; /* ghp-run's options */
    char **run;
    char folder[PATH_BYTES - 32];
    bool made_folder; /* it was not there before */
    char profile[PATH_BYTES], missing[PATH_BYTES], plan[PATH_BYTES];
    char tried[PATH_BYTES];   /* a profile of formulas, for the check alone */
    char earlier[PATH_BYTES]; /* the profile that was there, while a new one is made */
    char *mpirun;             /* cut into words */
    const char *tool;         /* the last that was run */
    bool on_hosts;            /* by mpirun, on hosts that --mpirun names */
    double measuring_s, planning_s;
};

/* Adds the options for where workers compute. */
static void add_place(struct ghp_command *command)
{
    ghp_command_add_option(command, "--threads", chosen.threads);
    ghp_command_add_option(command, "--bind", chosen.bind);
}

static void add_ranks(struct ghp_command *command, struct way *way)
{
    size_t at = 0, n = strlen(chosen.mpirun);

    for (; at < n; at += strlen(way->mpirun + at) + 1)
        if (way->mpirun[at] != '\0') ghp_command_add(command, way->mpirun + at);
    snprintf(command->numbers[0], sizeof command->numbers[0], "%lld", (long long)chosen.workers);
    snprintf(command->numbers[1], sizeof command->numbers[1], "%lld", (long long)chosen.batch);
    ghp_command_add_option(command, "-n", command->numbers[0]);
    way->on_hosts = strstr(chosen.mpirun, "host") != NULL;
}

/* ---- the tools ---- */

static void add_tuning(struct ghp_command *command)
{
    const struct ghp_freeze *freeze = &ghp_network_freeze;

    for (int i = 0; i < freeze->patterns.n; i++)
        ghp_command_add_option(command, "--freeze", freeze->patterns.item[i]);
    for (int i = 0; i < freeze->except.n; i++)
        ghp_command_add_option(command, "--freeze-except", freeze->except.item[i]);
    ghp_command_add_option(command, "--lora", ghp_network_lora.rank);
    for (int i = 0; i < ghp_network_lora.targets.n; i++)
        ghp_command_add_option(command, "--lora-targets", ghp_network_lora.targets.item[i]);
}

static enum ghp_status profile(struct way *way, const char *only, double budget_s, int *code)
{
    struct ghp_command command = {.n = 0};
    char path[GHP_TOOL_PATH_BYTES];

    way->tool = "ghp-profile";
    ghp_tool_path(way->tool, path);
    add_ranks(&command, way);
    ghp_command_add(&command, path);
    ghp_command_add_option(&command, "--model", way->model);
    ghp_command_add_option(&command, "--workers", command.numbers[0]);
    ghp_command_add_option(&command, "--batch", command.numbers[1]);
    snprintf(command.numbers[2], sizeof command.numbers[2], "%.3g", budget_s);
    ghp_command_add_option(&command, "--budget", command.numbers[2]);
    ghp_command_add_option(&command, "--wanted", only);
    ghp_command_add_option(&command, "--backend", chosen.backend);
    ghp_command_add_option(&command, "--precision", chosen.precision);
    ghp_command_add_option(&command, "--cache", chosen.cache);
    add_place(&command);
    if (chosen.folded_batch_norm) ghp_command_add(&command, "--folded-batch-norm");
    ghp_command_add_option(&command, "--batch-norm", chosen.plan[BATCH_NORM]);
    add_tuning(&command);
    ghp_command_add_option(&command, "--output", way->profile);
    return ghp_command_run(&command, code);
}

/* The command of a plan by this profile, without its output. path   room for the tool's, as long as the command is */
static void add_plan(struct ghp_command *command, struct way *way, const char *profile, char *path)
{
    way->tool = "ghp-plan";
    way->on_hosts = false;
    ghp_tool_path(way->tool, path);
    ghp_command_add(command, path);
    ghp_command_add(command, way->model);
    snprintf(command->numbers[0], sizeof command->numbers[0], "%lld", (long long)chosen.workers);
    snprintf(command->numbers[1], sizeof command->numbers[1], "%lld", (long long)chosen.batch);
    ghp_command_add_option(command, "--workers", command->numbers[0]);
    ghp_command_add_option(command, "--batch", command->numbers[1]);
    ghp_command_add_option(command, "--profile", profile);
    ghp_command_add_option(command, "--optimizer", chosen.optimizer);
    if (chosen.folded_batch_norm) ghp_command_add(command, "--folded-batch-norm");
    add_tuning(command);
    for (int i = 0; i < PLAN_OPTIONS; i++)
        ghp_command_add_option(command, plan_options[i], chosen.plan[i]);
}

/* The list of what the choice hangs on, or the plan. */
static enum ghp_status plan(struct way *way, bool list, int *code)
{
    struct ghp_command command = {.n = 0};
    char path[GHP_TOOL_PATH_BYTES];

    add_plan(&command, way, way->profile, path);
    ghp_command_add_option(&command, "--mip-gap", chosen.gap); /* of a list it is 0.01 at least */
    ghp_command_add_option(&command, list ? "--wanted" : "--output",
                           list ? way->missing : way->plan);
    return ghp_command_run(&command, code);
}

static enum ghp_status train(struct way *way, int *code)
{
    struct ghp_command command = {.result = true};
    char path[GHP_TOOL_PATH_BYTES];

    way->tool = "ghp-run";
    ghp_tool_path(way->tool, path);
    add_ranks(&command, way);
    ghp_command_add(&command, path);
    ghp_command_add(&command, way->plan);
    add_place(&command);
    for (int i = 0; i < way->n_run; i++)
        ghp_command_add(&command, way->run[i]);
    return ghp_command_run(&command, code);
}

/* ---- before anything is measured ---- */

/* Refuses another optimizer than the plan's among ghp-run's options. */
static enum ghp_status check_optimizer(const struct way *way)
{
    static const char option[] = "--optimizer";
    const char *planned = chosen.optimizer != NULL ? chosen.optimizer : "sgd", *given;

    for (int i = 0; i < way->n_run; i++) {
        if (!ghp_text_begins(way->run[i], option)) continue;
        given = way->run[i] + strlen(option);
        if (*given == '=')
            given++;
        else if (*given == '\0' && i + 1 < way->n_run)
            given = way->run[i + 1];
        else
            continue;
        if (strcmp(given, planned) != 0 && strcmp(given, "plan") != 0)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "the plan counts the optimizer's memory; give --optimizer %s before "
                            "'--', not after it",
                            given);
    }
    return GHP_OK;
}

/* Whether ghp-run takes its options, and the first weights, which it looks at without a plan. */
static enum ghp_status check_run(struct way *way, int *code)
{
    struct ghp_command command = {.quiet = true};
    char path[GHP_TOOL_PATH_BYTES];

    way->tool = "ghp-run";
    ghp_tool_path(way->tool, path);
    ghp_command_add(&command, path);
    ghp_command_add(&command, "--dry-run");
    ghp_command_add_option(&command, "--model", way->model);
    for (int i = 0; i < way->n_run; i++)
        ghp_command_add(&command, way->run[i]);
    return ghp_command_run(&command, code);
}

/* Whether ghp-plan takes its options, tried by a profile of formulas. That no such plan fits is not known before the
 * machine is measured. */
static enum ghp_status check_plan(struct way *way, int *code)
{
    struct ghp_command profile = {.quiet = true}, command = {.quiet = true};
    char path[GHP_TOOL_PATH_BYTES], plan_path[GHP_TOOL_PATH_BYTES];
    enum ghp_status status;

    way->tool = "ghp-profile";
    ghp_tool_path(way->tool, path);
    ghp_command_add(&profile, path);
    ghp_command_add_option(&profile, "--analytic", "F=1e11,bandwidth=1e9,latency=1e-5");
    ghp_command_add_option(&profile, "--model", way->model);
    ghp_command_add_option(&profile, "--output", way->tried);
    GHP_TRY(ghp_command_run(&profile, code));
    if (*code != 0) return GHP_OK;
    add_plan(&command, way, way->tried, plan_path);
    ghp_command_add_option(&command, "--strategy", "data");
    ghp_command_add_option(&command, "--time-limit", "1");
    status = ghp_command_run(&command, code);
    unlink(way->tried);
    if (*code == NO_PLAN) *code = 0;
    return status;
}

/* Whether the network can be read as the tools will be told to; they say its warnings themselves. */
static enum ghp_status check_network(const struct way *way)
{
    struct ghp_model model;
    enum ghp_status status;

    ghp_network_takes_folded_norms = chosen.folded_batch_norm;
    ghp_network_batch_norm = chosen.plan[BATCH_NORM];
    ghp_log_open(tool.name, false);
    status = ghp_network_load(way->model, &model);
    ghp_log_open(tool.name, true);
    if (status == GHP_OK) ghp_model_release(&model);
    return status;
}

/* Leaves the folder as it was found if anything is refused. */
static enum ghp_status check(struct way *way, int *code)
{
    bool given = chosen.optimizer != NULL;
    enum ghp_status status = GHP_OK;

    for (int i = 0; i < PLAN_OPTIONS; i++)
        given = given || chosen.plan[i] != NULL;
    GHP_TRY(check_network(way));
    if (!chosen.plan_only) GHP_TRY(check_run(way, code));
    if (*code != 0) return GHP_OK;
    GHP_TRY(check_optimizer(way));
    GHP_TRY(ghp_folder_make(way->folder, &way->made_folder));
    if (given) status = check_plan(way, code);
    if ((status != GHP_OK || *code != 0) && way->made_folder) rmdir(way->folder);
    return status;
}

/* ---- the way ---- */

static enum ghp_status timed_profile(struct way *way, const char *only, double budget_s, int *code)
{
    double began_s = ghp_now_s();
    enum ghp_status status = profile(way, only, budget_s, code);

    way->measuring_s += ghp_now_s() - began_s;
    return status;
}

static enum ghp_status timed_plan(struct way *way, bool list, int *code)
{
    double began_s = ghp_now_s();
    enum ghp_status status = plan(way, list, code);

    way->planning_s += ghp_now_s() - began_s;
    return status;
}

/* How many measurements the choice still hangs on. */
static enum ghp_status count_missing(const struct way *way, int *n)
{
    struct ghp_missing missing;

    GHP_TRY(ghp_missing_load(way->missing, &missing));
    *n = missing.n;
    ghp_missing_release(&missing);
    return GHP_OK;
}

/* Measures and plans in turns until the choice hangs on nothing that can be measured in time. */
static enum ghp_status take_turns(struct way *way, int *code)
{
    static const char one[] = "operation or collective", several[] = "operations and collectives";
    double began_s = ghp_now_s(), left_s = chosen.budget_s;
    int n = 0, before = 0, turns = 0;

    ghp_note("measuring what data parallelism takes, which all plans are compared with");
    GHP_TRY(timed_profile(way, "data", left_s, code));
    for (; turns < MOST_TURNS && *code == 0; turns++) {
        GHP_TRY(timed_plan(way, true, code));
        if (*code != 0) return GHP_OK;
        before = n;
        GHP_TRY(count_missing(way, &n));
        left_s = chosen.budget_s - (ghp_now_s() - began_s);
        if (n == 0 || n == before || left_s < least_budget_s) break;
        ghp_note("measuring %d %s that may change the choice, in at most %.0f s", n,
                 n == 1 ? one : several, left_s);
        GHP_TRY(timed_profile(way, way->missing, left_s, code));
    }
    if (*code == 0) GHP_TRY(timed_plan(way, false, code));
    if (*code == 0 && n > 0)
        ghp_note("%d %s that may change the choice %s not measured; give a larger --budget", n,
                 n == 1 ? one : several, n == 1 ? "is" : "are");
    if (*code == 0)
        ghp_note(
            "'%s' is made in %.3g s: %.3g s of measuring, in %d turn%s, and %.3g s of planning",
            way->plan, ghp_now_s() - began_s, way->measuring_s, turns + 1, turns == 0 ? "" : "s",
            way->planning_s);
    return GHP_OK;
}

/* Begins with no profile: what an earlier one says is in the cache, and may be another machine's. It comes back if
 * there is no new plan. */
static enum ghp_status prepare(struct way *way, int *code)
{
    bool had_one;
    enum ghp_status status;

    ghp_command_pass_signals();
    had_one = rename(way->profile, way->earlier) == 0;
    status = take_turns(way, code);
    if (status == GHP_OK && *code == 0)
        unlink(way->earlier);
    else if (had_one)
        rename(way->earlier, way->profile);
    return status;
}

/* The model's name without folder and ending. */
static void name_folder(const char *model, char *name, size_t n)
{
    const char *slash = strrchr(model, '/'), *base = slash != NULL ? slash + 1 : model;
    const char *dot = strrchr(base, '.');
    int length = (int)(dot != NULL && dot > base ? (size_t)(dot - base) : strlen(base));

    if (length > 200) length = 200;
    snprintf(name, n, "ghp-%.*s-n%lld-b%lld", length, base, (long long)chosen.workers,
             (long long)chosen.batch);
}

static enum ghp_status begin(struct way *way, int n_models)
{
    if (n_models != 1 || chosen.workers == 0 || chosen.batch == 0)
        return GHP_FAIL(GHP_ERR_USAGE, "one model, --workers and --batch are needed; usage: %s",
                        tool.usage);
    GHP_TRY(ghp_problem_check(
        (struct ghp_problem){.workers = (int)chosen.workers, .global_batch = chosen.batch}));
    if (chosen.folder != NULL && strlen(chosen.folder) >= sizeof way->folder)
        return GHP_FAIL(GHP_ERR_USAGE, "the name in --folder is too long; shorten it");
    if (chosen.folder != NULL)
        snprintf(way->folder, sizeof way->folder, "%s", chosen.folder);
    else
        name_folder(way->model, way->folder, sizeof way->folder);
    snprintf(way->tried, sizeof way->tried, "%s/tried.json", way->folder);
    snprintf(way->profile, sizeof way->profile, "%s/profile.json", way->folder);
    snprintf(way->earlier, sizeof way->earlier, "%s/earlier.json", way->folder);
    snprintf(way->missing, sizeof way->missing, "%s/wanted.json", way->folder);
    snprintf(way->plan, sizeof way->plan, "%s/plan.json", way->folder);
    way->mpirun = strdup(chosen.mpirun);
    if (way->mpirun == NULL) return GHP_NO_MEMORY();
    for (char *at = way->mpirun; *at != '\0'; at++)
        if (*at == ' ') *at = '\0';
    return GHP_OK;
}

/* What has failed, or that a signal ended the training. mpirun has spoken since, or alone. */
static void say_end(const struct way *way, int *code)
{
    bool in_order = *code == GHP_EXIT_STOPPED;
    bool failed = *code == 1 || *code > GHP_EXIT_DIVERGED;
    char name[GHP_PROGRAM_TEXT];

    if (!ghp_command_was_stopped()) {
        if (failed && way->on_hosts)
            ghp_note("if %s says that it cannot reach a host, try the hosts by '%s -n %lld "
                     "hostname'",
                     ghp_command_program(chosen.mpirun, name), chosen.mpirun,
                     (long long)chosen.workers);
        ghp_note("%s ended with exit code %d; what to do is said above", way->tool, *code);
        return;
    }
    *code = GHP_EXIT_STOPPED;
    ghp_note(strcmp(way->tool, "ghp-run") != 0 ? "ended by a signal, before the training began"
             : in_order ? "ended by a signal; ghp-run says above what it kept"
                        : "ended by a signal, before ghp-run could end in order");
}

int main(int argc, char **argv)
{
    struct way way = {.n_run = 0};
    const char *models[2] = {NULL};
    int own = 1, n_models = 0, code = 0;
    enum ghp_status status;

    ghp_log_open(tool.name, true);
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    way.run = own < argc ? argv + own + 1 : NULL;
    way.n_run = own < argc ? argc - own - 1 : 0;
    status = ghp_opts_parse(&tool, own, argv, models, 2, &n_models);
    if (status == GHP_OK && ghp_opts_done()) return 0;
    way.model = models[0];
    if (status == GHP_OK) status = begin(&way, n_models);
    if (status == GHP_OK) status = check(&way, &code);
    if (status == GHP_OK && code == 0) status = prepare(&way, &code);
    if (status == GHP_OK && code == 0 && !chosen.plan_only) status = train(&way, &code);
    free(way.mpirun);
    if (status == GHP_OK && code != 0) say_end(&way, &code);
    if (status == GHP_OK) status = ghp_opts_printed();
    if (status == GHP_OK) return code;
    fprintf(stderr, "ghp-train: %s\n", ghp_status_message());
    return ghp_status_exit_code(status);
}
