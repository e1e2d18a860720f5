/* planner/cli/ghp-expect.c - the tool: what a training step should take, and whether a measured one is normal. */
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/cost/named_machine.h"
#include "core/cost/profile_peak.h"
#include "onnx/network.h"
#include "planner/expect/answer.h"
#include "planner/make/trust.h"
#include "planner/search/milp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const precisions[] = {"float", "double", "tf32", "bf16", "fp16", NULL};
static const char *const other_precisions[] = {"fp32", "float", "fp64", "double",
                                               "half", "fp16",  NULL};
static const char *const other_shardings[] = {
    "zero1", "--plan sharded", "zero2", "gradients", "zero3", "pass", "fsdp", "pass", NULL};
enum { FP16 = GHP_PRECISIONS }; /* its place in the names above */
static const char *machine_name, *profile_path, *network_name, *nodes_text, *measured_text;
static int64_t batch, micro_batches = 1, gpus;
static int64_t tensor = 1, pipeline = 1;
static int precision, way, sharding;
static bool recompute;
static bool json;

static const struct ghp_opt options[] = {
    {.kind = GHP_OPT_HEADING, .help = "What trains where"},
    {.name = "machine",
     .kind = GHP_OPT_TEXT,
     .target = &machine_name,
     .argument = "MACHINE|list",
     .known = ghp_machine_names,
     .help = "a machine file, or one of ghp's named machines (list: print them)"},
    {.name = "profile",
     .kind = GHP_OPT_TEXT,
     .target = &profile_path,
     .argument = "PROFILE",
     .help =
         "what ghp-profile measured, in place of a machine; a node has the workers that it had"},
    {.name = "nodes",
     .kind = GHP_OPT_TEXT,
     .target = &nodes_text,
     .argument = "H[,H...]",
     .help = "nodes of that machine; several numbers give a table [1, or those of the profile]"},
    {.name = "gpus",
     .kind = GHP_OPT_INT,
     .target = &gpus,
     .argument = "G",
     .min = 1,
     .max = 1 << 16,
     .help = "GPUs of each node that train [all]"},
    {.name = "network",
     .kind = GHP_OPT_TEXT,
     .target = &network_name,
     .argument = "NETWORK|list",
     .known = ghp_fabric_names,
     .help = "between the nodes: a network file, one of ghp's named networks, or a rate such as "
             "2.5Gbit/s"},
    {.name = "batch",
     .letter = 'b',
     .kind = GHP_OPT_INT,
     .target = &batch,
     .argument = "B",
     .min = 1,
     .max = 1LL << 40,
     .help = "samples of one step, of all workers together"},
    {.name = "micro-batches",
     .kind = GHP_OPT_INT,
     .target = &micro_batches,
     .argument = "U",
     .min = 1,
     .max = GHP_MAX_MICRO_BATCHES,
     .help = "parts of the batch over which gradients are added up"},
    {.name = "precision",
     .kind = GHP_OPT_CHOICE,
     .target = &precision,
     .choices = precisions,
     .synonyms = other_precisions,
     .help = "numbers that it computes in; ghp itself trains in all but fp16"},
    {.name = "plan",
     .kind = GHP_OPT_CHOICE,
     .target = &way,
     .choices = ghp_expect_ways,
     .help = "data parallelism, the same with a sharded update, or the plan that ghp-plan finds"},
    {.name = "tensor",
     .kind = GHP_OPT_INT,
     .target = &tensor,
     .argument = "T",
     .min = 1,
     .max = 1 << 20,
     .help = "workers that divide each layer, Megatron-LM's tensor parallelism"},
    {.name = "pipeline",
     .kind = GHP_OPT_INT,
     .target = &pipeline,
     .argument = "P",
     .min = 1,
     .max = GHP_MAX_STAGES,
     .help = "stages of as many blocks of a transformer each"},
    {.name = "shard",
     .kind = GHP_OPT_CHOICE,
     .target = &sharding,
     .choices = ghp_param_sharding_names,
     .synonyms = other_shardings,
     .help =
         "what of the parameters is sharded, as ghp-plan takes it; pass is FSDP, gradients ZeRO-2"},
    {.name = "recompute",
     .kind = GHP_OPT_FLAG,
     .target = &recompute,
     .help = "compute each block of a transformer again in the backward pass"},
    GHP_NETWORK_OPTION,
    GHP_BATCH_NORM_OPTION,
    GHP_TUNING_OPTIONS,
    {.kind = GHP_OPT_HEADING, .help = "What was measured, and output"},
    {.name = "measured",
     .kind = GHP_OPT_TEXT,
     .target = &measured_text,
     .argument = "RATE",
     .help = "a step as you measured it: 1.9s, 190ms, '412 samples/s' or '51k tokens/s'"},
    {.name = "json", .kind = GHP_OPT_FLAG, .target = &json, .help = "print JSON"},
};

static void say_libraries(ghp_opts_say *say)
{
    say("GLPK", ghp_milp_library());
}

static const struct ghp_opts_hint hints[] = {
    {"workers", "they are a machine's GPUs: give --gpus G of each node, and --nodes H"},
    {NULL, NULL}};

static const struct ghp_exit_code exit_codes[] = {{3, "no plan fits (--plan ghp)"}, {0, NULL}};

static const struct ghp_tool tool = {
    .exit_codes = exit_codes,
    .hints = hints,
    .name = "ghp-expect",
    .purpose = "says what a training step should take on a machine, and whether yours is normal",
    .usage = "ghp-expect MODEL --machine MACHINE [--nodes H] --batch B [...]\n"
             "       ghp-expect MODEL --profile PROFILE [--nodes H] --batch B [...]\n"
             "       ghp-expect --machine list",
    .example = "ghp-expect gpt2-124m --machine a100-sxm-40-8 --nodes 1,2 \\\n"
               "             --network eth-10 --batch 128 --precision bf16",
    .common = "machine profile nodes gpus network batch micro-batches precision plan tensor "
              "pipeline shard recompute measured json",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
    .libraries = say_libraries,
};

/* What is asked, read. */
struct reading {
    struct ghp_model model;
    struct ghp_machine machine;
    struct ghp_profile profile; /* zeroed without --profile */
    struct ghp_expect_question question;
};

/* ---- reading ---- */

static enum ghp_status read_nodes(int own, struct ghp_expect_question *q)
{
    const char *at = nodes_text;

    if (nodes_text == NULL) {
        q->nodes[q->n_nodes++] = own;
        return GHP_OK;
    }
    while (q->n_nodes < GHP_QUESTION_NODES) {
        char *end = NULL;
        long n = strtol(at, &end, 10);

        if (end == at || n < 1 || n > 1 << 16 || (*end != ',' && *end != '\0')) break;
        q->nodes[q->n_nodes++] = (int)n;
        if (*end == '\0') return GHP_OK;
        at = end + 1;
    }
    return GHP_FAIL(GHP_ERR_USAGE,
                    "cannot read --nodes '%s'; give numbers of nodes such as 4, or 1,2,4",
                    nodes_text);
}

/* Seconds of a step by "1.9s", "190ms", "412 samples/s", "51k tokens/s", or as progress bars have it "1.9s/it". */
static enum ghp_status read_measured(struct ghp_expect_question *q)
{
    static const struct {
        const char *unit;
        double seconds; /* of one; 0: a rate */
        char of;        /* which is of steps, samples or tokens */
    } units[] = {{"s", 1, 0},         {"ms", 1e-3, 0},       {"s/it", 1, 0},
                 {"s/step", 1, 0},    {"ms/step", 1e-3, 0},  {"it/s", 0, 's'},
                 {"steps/s", 0, 's'}, {"samples/s", 0, 'x'}, {"images/s", 0, 'x'},
                 {"img/s", 0, 'x'},   {"tokens/s", 0, 't'},  {"tok/s", 0, 't'}};
    static const double least = 1e-9, most = 1e15;
    double samples = (double)q->setup.batch, tokens = (double)ghp_model_tokens(q->setup.model),
           value, times = 1;
    char *unit = NULL;

    if (measured_text == NULL) return GHP_OK;
    value = strtod(measured_text, &unit);
    if (unit != measured_text && (*unit == 'k' || *unit == 'M')) times = *unit++ == 'k' ? 1e3 : 1e6;
    while (*unit == ' ')
        unit++;
    value *= times;
    for (size_t i = 0; i < sizeof units / sizeof units[0] && value > least && value < most; i++) {
        if (strcmp(unit, units[i].unit) != 0 || (units[i].seconds > 0 && times > 1)) continue;
        if (units[i].of == 't' && !(tokens > 0))
            return GHP_FAIL(GHP_ERR_USAGE,
                            "network '%s' has no tokens; give --measured in samples/s",
                            q->setup.model->name);
        q->measured_s = units[i].seconds > 0 ? value * units[i].seconds
                        : units[i].of == 's' ? 1 / value
                                             : samples * (units[i].of == 't' ? tokens : 1) / value;
        return GHP_OK;
    }
    return GHP_FAIL(
        GHP_ERR_USAGE,
        "cannot read --measured '%s'; give it like 1.9s, 190ms, '412 samples/s' or '51k tokens/s'",
        measured_text);
}

static enum ghp_status check(const char *const *files, int n_files)
{
    if (n_files < 1)
        return GHP_FAIL(GHP_ERR_USAGE, "no model given; name one, such as models/vgg16.json");
    if (n_files > 1)
        return GHP_FAIL(GHP_ERR_USAGE, "one argument too many: '%s'; name one model", files[1]);
    if (machine_name != NULL && profile_path != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "--profile is of a machine of its own; leave --machine out");
    if (machine_name == NULL && profile_path == NULL)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "no machine given; add --machine MACHINE, one that --machine list shows, or "
            "--profile PROFILE");
    if (profile_path != NULL && (gpus > 0 || precision == FP16))
        return GHP_FAIL(GHP_ERR_USAGE, "--profile has its own workers, and ghp does not train in "
                                       "fp16; leave --gpus and --precision fp16 out");
    if (batch == 0)
        return GHP_FAIL(GHP_ERR_USAGE, "no batch given; add --batch B, a multiple of the workers");
    if (way == GHP_EXPECT_OWN && (tensor > 1 || pipeline > 1 || sharding > 0 || recompute))
        return GHP_FAIL(GHP_ERR_USAGE, "--plan ghp chooses what is divided; leave --tensor, "
                                       "--pipeline, --shard and --recompute out");
    if (way == GHP_EXPECT_OWN && micro_batches > 1)
        return GHP_FAIL(GHP_ERR_USAGE, "--plan ghp is of whole batches; leave --micro-batches out");
    return GHP_OK;
}

/* The profile, and its machine. */
static enum ghp_status open_profile(struct reading *r)
{
    GHP_TRY(ghp_profile_load(profile_path, &r->profile));
    GHP_TRY(ghp_machine_copy(&r->profile.machine, &r->machine));
    if (r->profile.workers == 0)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "profile '%s' has given rates, and no workers were measured; name the machine "
            "by --machine, or plan by it with ghp-plan --profile %s --workers N",
            profile_path, profile_path);
    if (precision != 0)
        GHP_TRY(ghp_trust_precision(&r->profile, profile_path, ghp_precision_of(precision)));
    GHP_TRY(ghp_profile_check_model(&r->profile, &r->model));
    return GHP_OK;
}

/* Whether the profile says something of the network and of the link between as many nodes. */
static enum ghp_status check_profile(const struct reading *r)
{
    const struct ghp_expect_question *q = &r->question;

    for (int i = 0; i < q->n_nodes; i++)
        if (q->nodes[i] > 1 && !(r->machine.inter.bandwidth_Bps > 0))
            return GHP_FAIL(
                GHP_ERR_USAGE,
                "profile '%s' was measured on one node; add --network NETWORK, one that "
                "--network list shows",
                profile_path);
    return ghp_trust_profile(&r->profile, profile_path, &r->model,
                             (struct ghp_problem){ghp_setup_workers(&q->setup), q->setup.batch});
}

/* By rule of thumb a step in fp16 is one in bf16, at the machine's figure for fp16. */
static struct ghp_precision computed_in(void)
{
    return precision == FP16 ? (struct ghp_precision){.element_bytes = 2}
                             : ghp_precision_of(precision);
}

/* The machine, of which the GPUs and the precision that are asked for must be part. */
static enum ghp_status open_machine(struct ghp_machine *machine)
{
    int half = ghp_precision_index((struct ghp_precision){.element_bytes = 2});
    struct ghp_peak *peak = &machine->peak;

    GHP_TRY(ghp_machine_open(machine_name, machine));
    if (gpus > machine->gpus.count)
        return GHP_FAIL(GHP_ERR_USAGE,
                        machine->gpus.count > 0
                            ? "a node of machine '%s' has %d GPUs; give --gpus as many or fewer"
                            : "machine '%s' has %d GPUs; leave --gpus out",
                        machine_name, machine->gpus.count);
    if (precision == FP16) ghp_peak_take_fp16(peak);
    if (precision == FP16 && !(peak->flops_per_s[half] > 0))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "machine '%s' computes in neither fp16 nor bf16; leave --precision out",
                        machine_name);
    if (precision == half && !(peak->flops_per_s[half] > 0) && peak->fp16_flops_per_s > 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "machine '%s' computes in fp16, and not in bf16; give --precision fp16",
                        machine_name);
    return GHP_OK;
}

static enum ghp_status read_question(const char *path, struct reading *r)
{
    bool measured = profile_path != NULL;
    struct ghp_expect_question *q = &r->question;

    GHP_TRY(ghp_network_load(path, &r->model));
    GHP_TRY(measured ? open_profile(r) : open_machine(&r->machine));
    if (network_name != NULL) {
        GHP_TRY(ghp_fabric_open(network_name, &r->machine.inter));
        r->machine.gpus.cards = 0; /* of another network */
    }
    GHP_TRY(read_nodes(measured ? r->machine.nodes : 1, q));
    q->place = measured ? profile_path : machine_name;
    q->setup = (struct ghp_expect_setup){.model = &r->model,
                                         .machine = &r->machine,
                                         .profile = measured ? &r->profile : NULL,
                                         .nodes = q->nodes[0],
                                         .gpus = (int)gpus,
                                         .batch = batch,
                                         .micro_batches = (int)micro_batches,
                                         .precision = measured ? ghp_profile_precision(&r->profile)
                                                               : computed_in(),
                                         .fp16 = precision == FP16,
                                         .way = (enum ghp_expect_way)way,
                                         .degrees = {(int)tensor, (int)pipeline, recompute},
                                         .sharding = (enum ghp_param_sharding)sharding};
    GHP_TRY(read_measured(q));
    if (q->n_nodes > 1 && q->measured_s > 0)
        return GHP_FAIL(GHP_ERR_USAGE, "--measured is of one number of nodes; give --nodes %d",
                        q->nodes[0]);
    return measured ? check_profile(r) : GHP_OK;
}

static enum ghp_status expect(const char *path)
{
    struct reading r = {0};
    enum ghp_status status = read_question(path, &r);

    if (status == GHP_OK) status = ghp_question_answer(&r.question, json);
    ghp_model_release(&r.model);
    ghp_machine_release(&r.machine);
    ghp_profile_release(&r.profile);
    return status;
}

static bool is_list(const char *name)
{
    return name != NULL && strcmp(name, "list") == 0;
}

int main(int argc, char **argv)
{
    const char *files[2] = {NULL};
    int n_files = 0;
    enum ghp_status status = ghp_opts_parse(&tool, argc, argv, files, 2, &n_files);

    ghp_log_open(tool.name, true);
    if (status == GHP_OK && ghp_opts_done()) return 0;
    if (status == GHP_OK && (is_list(machine_name) || is_list(network_name))) {
        status = is_list(machine_name) ? ghp_machines_print(stdout) : ghp_fabrics_print(stdout);
    } else if (status == GHP_OK) {
        status = check(files, n_files);
        if (status == GHP_OK) status = expect(files[0]);
    }
    if (status == GHP_OK) status = ghp_opts_printed();
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
