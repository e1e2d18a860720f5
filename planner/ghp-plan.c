/* planner/ghp-plan.c - the tool: reads a model and a profile, makes a plan, prints it beside the baselines.
 *
 * Only options, files and exit codes; the making is planner/make.h. */
#include "core/log.h"
#include "core/opts.h"
#include "core/units.h"
#include "planner/make.h"
#include "planner/milp.h"
#include "planner/summary.h"

#include <stdlib.h>
#include <string.h>

static const char *const strategy_names[] = {
#define STRATEGY_TEXT(id, text) text,
    GHP_STRATEGY_LIST(STRATEGY_TEXT)
#undef STRATEGY_TEXT
        NULL};
static const char *const precision_names[] = {"profile", "float", "double", NULL};
static const char *const solver_names[] = {"auto", "branch", "milp", NULL};

/* What the command line sets; defaults are what is here. */
static struct {
    const char *profile, *machine, *force, *bucket, *output;
    int64_t workers, batch, memory_bytes, groups;
    int strategy, precision, solver;
    double time_limit_s, gap;
    bool no_simplify, json;
} set = {.bucket = "auto", .time_limit_s = 30};

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
     .help = "another machine than the profile's: its nodes and links"},
    {.name = "memory",
     .kind = GHP_OPT_BYTES,
     .target = &set.memory_bytes,
     .argument = "SIZE",
     .min = 1,
     .max = 1LL << 60,
     .help = "limit on one worker's arena, such as 4GiB; without it none"},
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
     .help = "fix splits by layer name, such as 'conv*=data,fc1=out:max'; the rest is optimised"},
    {.name = "groups",
     .kind = GHP_OPT_INT,
     .target = &set.groups,
     .argument = "G",
     .min = 1,
     .max = 1 << 20,
     .help = "worker groups; without it as many as the best splits allow"},
    {.name = "bucket-bytes",
     .kind = GHP_OPT_TEXT,
     .target = &set.bucket,
     .argument = "auto|0|SIZE",
     .help =
         "gradients reduced together up to this size; 0: each layer alone; auto: the best tried"},
    {.name = "no-simplify",
     .kind = GHP_OPT_FLAG,
     .target = &set.no_simplify,
     .help =
         "take the fastest plan even where its margin over data parallelism is within the error"},
    {.kind = GHP_OPT_HEADING, .help = "How"},
    {.name = "precision",
     .kind = GHP_OPT_CHOICE,
     .target = &set.precision,
     .choices = precision_names,
     .help =
         "numbers that the plan must be for; another than the profile's is refused, but by law"},
    {.name = "time-limit",
     .kind = GHP_OPT_REAL,
     .target = &set.time_limit_s,
     .argument = "SECONDS",
     .min = 0.01,
     .max = 1e6,
     .help = "after this the best plan so far, with its gap"},
    {.name = "gap",
     .kind = GHP_OPT_REAL,
     .target = &set.gap,
     .argument = "FRACTION",
     .min = 0,
     .max = 0.5,
     .help = "stop at a plan that is at most this fraction slower than the bound; 0: the best"},
    {.name = "solver",
     .kind = GHP_OPT_CHOICE,
     .target = &set.solver,
     .choices = solver_names,
     .help = "branch: bounds by dynamic programming; milp: GLPK; auto: branch where the graph is "
             "narrow enough"},
    {.kind = GHP_OPT_HEADING, .help = "Output"},
    {.name = "output",
     .letter = 'o',
     .kind = GHP_OPT_TEXT,
     .target = &set.output,
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

static const struct ghp_tool tool = {
    .name = "ghp-plan",
    .purpose = "chooses worker groups and a split of every layer, by a profile, and proves how "
               "good they are",
    .usage = "ghp-plan MODEL --profile PROFILE --workers N --batch B [-o PLAN]",
    .example = "ghp-plan models/vgg16.json --profile vgg16.profile.json --workers 16 --batch 1024 "
               "-o vgg16.plan.json",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
    .libraries = say_libraries,
};

static void add_option(const char *name, const char *value, void *object)
{
    if (value != NULL) json_object_set_new(object, name, json_string(value));
}

static enum ghp_status check_options(int n_positional)
{
    if (n_positional != 1)
        return GHP_FAIL(GHP_ERR_USAGE, "no model given; name one, such as models/vgg16.json");
    if (set.profile == NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "no profile given; add --profile PROFILE, made by ghp-profile");
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
                        "cannot read --bucket-bytes '%s'; give auto, 0, or a size such as 4MiB",
                        set.bucket);
    return GHP_OK;
}

/* Replaces the profile's machine, and its width of numbers where it has no measurements of another one. */
static enum ghp_status adapt_profile(struct ghp_profile *profile)
{
    int element_bytes = set.precision == 2 ? 8 : set.precision == 1 ? 4 : profile->element_bytes;

    if (set.machine != NULL) {
        struct ghp_machine machine = {0};

        GHP_TRY(ghp_machine_load(set.machine, &machine));
        ghp_machine_release(&profile->machine);
        profile->machine = machine;
    }
    if (element_bytes != profile->element_bytes && (profile->n_ops > 0 || profile->n_comms > 0))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "profile '%s' was measured with %d-byte numbers; measure one with "
                        "ghp-profile --precision %s",
                        set.profile, profile->element_bytes, precision_names[set.precision]);
    if (set.machine == NULL && element_bytes == profile->element_bytes) return GHP_OK;
    profile->element_bytes = element_bytes;
    return ghp_profile_seal(profile);
}

static enum ghp_status print_result(const struct ghp_plan *plan)
{
    json_t *config;

    if (!set.json) return ghp_summary_print(plan, stdout);
    config = json_object();
    ghp_opts_each(&tool, add_option, config);
    return ghp_summary_json(plan, config, stdout);
}

static enum ghp_status make_plan(const char *model_path)
{
    struct ghp_profile profile = {0};
    struct ghp_plan plan = {0};
    struct ghp_wishes wishes = {.model_path = model_path,
                                .profile_path = set.profile,
                                .profile = &profile,
                                .extent = {.workers = (int)set.workers, .global_batch = set.batch},
                                .strategy = (enum ghp_strategy)set.strategy,
                                .force = set.force,
                                .groups = (int)set.groups,
                                .memory_bytes = set.memory_bytes,
                                .time_limit_s = set.time_limit_s,
                                .gap = set.gap,
                                .simplify = !set.no_simplify,
                                .solver = (enum ghp_solver)set.solver};
    enum ghp_status status;

    GHP_TRY(read_bucket(&wishes.bucket_bytes));
    GHP_TRY_GOTO(status, ghp_profile_load(set.profile, &profile), done);
    GHP_TRY_GOTO(status, adapt_profile(&profile), done);
    GHP_TRY_GOTO(status, ghp_make_plan(&wishes, &plan), done);
    if (set.output != NULL) GHP_TRY_GOTO(status, ghp_plan_save(set.output, &plan), done);
    GHP_TRY_GOTO(status, print_result(&plan), done);
done:
    ghp_plan_release(&plan);
    ghp_profile_release(&profile);
    return status;
}

int main(int argc, char **argv)
{
    const char *positional[1] = {NULL};
    int n_positional = 0;
    enum ghp_status status = ghp_opts_parse(&tool, argc, argv, positional, 1, &n_positional);

    ghp_log_open(tool.name, true);
    if (status == GHP_OK && ghp_opts_done()) return 0;
    if (status == GHP_OK) status = check_options(n_positional);
    if (status == GHP_OK) status = make_plan(positional[0]);
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
