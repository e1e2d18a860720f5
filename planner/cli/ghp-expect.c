/* planner/cli/ghp-expect.c - the tool: what a training step should take, and whether a measured one is normal. */
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/base/table.h"
#include "core/base/units.h"
#include "core/cost/named_machine.h"
#include "core/cost/profile_peak.h"
#include "onnx/network.h"
#include "planner/expect/expect.h"
#include "planner/make/trust.h"
#include "planner/search/milp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MOST = 16, CHANGES_SHOWN = 3 };

static const char *const precisions[] = {"float", "double", "tf32", "bf16", NULL};
static const char *machine_name, *profile_path, *network_name, *nodes_text, *measured_text;
static int64_t batch, micro_batches = 1;
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
    {.name = "network",
     .kind = GHP_OPT_TEXT,
     .target = &network_name,
     .argument = "NETWORK|list",
     .known = ghp_fabric_names,
     .help = "a network file, or one of ghp's named networks, between the nodes"},
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
     .help = "numbers that it computes in"},
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

static const struct ghp_exit_code exit_codes[] = {{3, "no plan fits (--plan ghp)"}, {0, NULL}};

static const struct ghp_tool tool = {
    .exit_codes = exit_codes,
    .name = "ghp-expect",
    .purpose = "says what a training step should take on a machine, and whether yours is normal",
    .usage = "ghp-expect MODEL --machine MACHINE [--nodes H] --batch B [...]\n"
             "       ghp-expect MODEL --profile PROFILE [--nodes H] --batch B [...]\n"
             "       ghp-expect --machine list",
    .example = "ghp-expect gpt2-124m --machine a100-sxm-40-8 --nodes 1,2 \\\n"
               "             --network eth-10 --batch 128 --precision bf16",
    .common =
        "machine profile nodes network batch micro-batches precision plan tensor pipeline shard "
        "recompute measured json",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
    .libraries = say_libraries,
};

/* What is asked, read; and what is answered. */
struct question {
    struct ghp_model model;
    struct ghp_machine machine;
    struct ghp_profile profile; /* zeroed without --profile */
    struct ghp_setup setup;     /* with the first number of nodes */
    int nodes[NODES_MOST], n_nodes;
    double measured_s; /* 0: nothing was measured */
};
struct answer {
    struct ghp_expected expected;
    struct ghp_expect_change changes[GHP_EXPECT_CHANGES];
    int n_changes;
    double second_node_Bps; /* below 0: the batch does not come out on two nodes */
};

/* ---- reading ---- */

static enum ghp_status read_nodes(struct question *q)
{
    const char *at = nodes_text;

    if (nodes_text == NULL) {
        q->nodes[q->n_nodes++] = profile_path != NULL ? q->machine.nodes : 1;
        return GHP_OK;
    }
    while (q->n_nodes < NODES_MOST) {
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

/* Seconds of a step by "1.9s", "190ms", "412 samples/s", "51k tokens/s". */
static enum ghp_status read_measured(struct question *q)
{
    static const struct {
        const char *unit;
        double seconds; /* of one; 0: a rate */
    } units[] = {{"s", 1}, {"ms", 1e-3}, {"samples/s", 0}, {"images/s", 0}, {"tokens/s", 0}};
    double samples = (double)q->setup.batch, tokens = (double)ghp_model_tokens(&q->model), value;
    char *unit = NULL;

    if (measured_text == NULL) return GHP_OK;
    value = strtod(measured_text, &unit);
    if (unit != measured_text && (*unit == 'k' || *unit == 'M'))
        value *= *unit++ == 'k' ? 1e3 : 1e6;
    while (*unit == ' ')
        unit++;
    for (size_t i = 0; i < sizeof units / sizeof units[0] && value > 0 && isfinite(value); i++) {
        if (strcmp(unit, units[i].unit) != 0) continue;
        if (unit[0] == 't' && !(tokens > 0))
            return GHP_FAIL(GHP_ERR_USAGE,
                            "network '%s' has no tokens; give --measured in samples/s",
                            q->model.name);
        q->measured_s = units[i].seconds > 0 ? value * units[i].seconds
                                             : samples * (unit[0] == 't' ? tokens : 1) / value;
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
static enum ghp_status open_profile(struct question *q)
{
    GHP_TRY(ghp_profile_load(profile_path, &q->profile));
    GHP_TRY(ghp_machine_copy(&q->profile.machine, &q->machine));
    if (q->profile.workers == 0)
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "profile '%s' has given rates, and no workers were measured; name the machine "
            "by --machine, or plan by it with ghp-plan --profile %s --workers N",
            profile_path, profile_path);
    if (precision != 0)
        GHP_TRY(ghp_trust_precision(&q->profile, profile_path, ghp_precision_of(precision)));
    GHP_TRY(ghp_profile_check_model(&q->profile, &q->model));
    return GHP_OK;
}

static enum ghp_status read_question(const char *path, struct question *q)
{
    bool measured = profile_path != NULL;

    GHP_TRY(ghp_network_load(path, &q->model));
    GHP_TRY(measured ? open_profile(q) : ghp_machine_open(machine_name, &q->machine));
    if (network_name != NULL) GHP_TRY(ghp_fabric_open(network_name, &q->machine.inter));
    GHP_TRY(read_nodes(q));
    q->setup = (struct ghp_setup){.model = &q->model,
                                  .machine = &q->machine,
                                  .profile = measured ? &q->profile : NULL,
                                  .nodes = q->nodes[0],
                                  .batch = batch,
                                  .micro_batches = (int)micro_batches,
                                  .precision = measured ? ghp_profile_precision(&q->profile)
                                                        : ghp_precision_of(precision),
                                  .way = (enum ghp_expect_way)way,
                                  .degrees = {(int)tensor, (int)pipeline, recompute},
                                  .sharding = (enum ghp_param_sharding)sharding};
    GHP_TRY(read_measured(q));
    if (q->n_nodes > 1 && (q->measured_s > 0 || json))
        return GHP_FAIL(GHP_ERR_USAGE, "--%s is of one number of nodes; give --nodes %d",
                        json ? "json" : "measured", q->nodes[0]);
    for (int i = 0; i < q->n_nodes && measured; i++)
        if (q->nodes[i] > 1 && !(q->machine.inter.bandwidth_Bps > 0))
            return GHP_FAIL(
                GHP_ERR_USAGE,
                "profile '%s' was measured on one node; add --network NETWORK, one that "
                "--network list shows",
                profile_path);
    if (!measured) return GHP_OK;
    return ghp_trust_profile(&q->profile, profile_path, &q->model,
                             (struct ghp_problem){ghp_setup_workers(&q->setup), q->setup.batch});
}

/* ---- answers ---- */

static double rate_of(const struct question *q, double step_s)
{
    return (double)q->setup.batch / step_s;
}

/* Tensor parallelism exchanges on the stream that computes, so a plan with it is judged by its parts. */
static const char *binds_parts(const struct ghp_expected *e)
{
    if (e->links_s > e->idle_s && e->links_s > 0.5 * e->at.step_s)
        return "the links: most of the step waits for them";
    if (e->idle_s > e->links_s && e->idle_s > 0.1 * e->at.step_s)
        return "computing, then stages that wait for each other: more micro-batches shorten that";
    if (e->links_s > 0.1 * e->at.step_s) return "computing, then the links";
    return "computing: it hides what goes over the links";
}

static const char *binds(const struct ghp_expected *e)
{
    const struct ghp_prediction *at = &e->at;

    if (!isnan(e->links_s)) return binds_parts(e);
    if (at->exposed_s > 0.5 * at->step_s)
        return "the links: computing waits for gradients most of the step";
    if (at->exposed_s > 0.1 * at->step_s) return "computing, then the links that gradients go over";
    return "computing: it hides the reductions";
}

static void print_measured(const struct question *q, const struct ghp_expected *e)
{
    printf("measured    %.1f ms, %.2f of the expected step: ", 1e3 * q->measured_s,
           q->measured_s / e->at.step_s);
    if (q->measured_s <= e->range.high_s) {
        puts(q->measured_s < e->range.low_s
                 ? "below the range; check batch, precision and recomputation"
                 : "normal, within the range");
        return;
    }
    printf("slower than the range; %.1f ms are not explained\n",
           1e3 * (q->measured_s - e->at.step_s));
    printf(
        "look for    loading of samples (time steps of one and the same batch), another precision "
        "than %s,\n"
        "            attention without flash kernels, images not channels-last, a slow worker%s\n",
        ghp_precision_name(q->setup.precision),
        q->setup.nodes > 1
            ? ",\n            links slower than their name (time an all-reduce alone)"
            : "");
}

/* "data, tensor 4, pipeline 2, shard pass, recompute". */
enum { PLAN_TEXT_SIZE = 128 };
static const char *format_plan(char text[PLAN_TEXT_SIZE])
{
    size_t used = (size_t)snprintf(text, PLAN_TEXT_SIZE, "%s", ghp_expect_ways[way]);

    if (tensor > 1)
        used += (size_t)snprintf(text + used, PLAN_TEXT_SIZE - used, ", tensor %d", (int)tensor);
    if (pipeline > 1)
        used +=
            (size_t)snprintf(text + used, PLAN_TEXT_SIZE - used, ", pipeline %d", (int)pipeline);
    if (sharding > 0)
        used += (size_t)snprintf(text + used, PLAN_TEXT_SIZE - used, ", shard %s",
                                 ghp_param_sharding_names[sharding]);
    if (recompute) used += (size_t)snprintf(text + used, PLAN_TEXT_SIZE - used, ", recompute");
    if (micro_batches > 1)
        snprintf(text + used, PLAN_TEXT_SIZE - used, ", %d micro-batches", (int)micro_batches);
    return text;
}

static const char *place(void)
{
    return profile_path != NULL ? profile_path : machine_name;
}

/* The source of the figures. */
enum { SOURCE_TEXT_SIZE = 256 };
static const char *format_source(const struct question *q, char text[SOURCE_TEXT_SIZE])
{
    if (profile_path == NULL) return ghp_peak_sentence();
    snprintf(text, SOURCE_TEXT_SIZE,
             "measured with %d workers on %d node(s), %s; what was not measured is by fitted rates",
             q->profile.workers, q->profile.machine.nodes,
             q->profile.created != NULL ? q->profile.created : "at a time not known");
    return text;
}

static void print_answer(const struct question *q, const struct answer *a)
{
    const struct ghp_expected *e = &a->expected;
    int64_t tokens = ghp_model_tokens(&q->model);
    char memory[32], plan[PLAN_TEXT_SIZE], source[SOURCE_TEXT_SIZE];

    printf("# %s on %d node(s) of %s, %d workers, batch %lld, %s, plan %s\n# %s\n", q->model.name,
           q->setup.nodes, place(), ghp_setup_workers(&q->setup), (long long)q->setup.batch,
           ghp_precision_name(q->setup.precision), format_plan(plan), format_source(q, source));
    printf("step        %.1f ms; with 90 %% it is %.1f to %.1f ms, as %s were\n",
           1e3 * e->at.step_s, 1e3 * e->range.low_s, 1e3 * e->range.high_s,
           profile_path != NULL ? "plans in the lab" : "published trainings");
    printf("rate        %.1f samples/s", rate_of(q, e->at.step_s));
    if (tokens > 0) printf(", %.0f tokens/s", rate_of(q, e->at.step_s) * (double)tokens);
    if (!isnan(e->utilisation))
        printf("\nutilised    %.1f %% of the peak FLOPs (MFU)", 100 * e->utilisation);
    printf("\nbinds       %s\n", binds(e));
    if (isnan(e->links_s))
        printf(
            "parts       computing %.1f ms, reductions %.1f ms of which %.1f ms are waited for\n",
            1e3 * e->at.compute_s, 1e3 * e->at.comm_s, 1e3 * e->at.exposed_s);
    else
        printf("parts       computing %.1f ms, the links add %.1f ms, stages wait %.1f ms\n",
               1e3 * e->computing_s, 1e3 * e->links_s, 1e3 * e->idle_s);
    printf("memory      %s a worker, without kernels' scratch%s\n",
           ghp_bytes_format((double)e->at.peak_bytes, memory, sizeof memory),
           ghp_expect_fits(&q->setup, &e->at)
               ? ""
               : ": more than it has, so this cannot run without recomputation or smaller parts");
    if (isinf(a->second_node_Bps))
        puts("two nodes   are not faster than one with this batch, at any rate of the link");
    else if (a->second_node_Bps >= 0)
        printf(a->second_node_Bps < 1.25e11
                   ? "two nodes   are faster than one with this batch from %.3g Gbit/s on\n"
                   : "two nodes   are faster than one with this batch from %.0f Gbit/s on\n",
               8e-9 * a->second_node_Bps);
    if (q->measured_s > 0) print_measured(q, e);
    for (int i = 0; i < a->n_changes && i < CHANGES_SHOWN; i++)
        printf("%s%s: %.1f ms less for %lld samples\n", i == 0 ? "faster by   " : "            ",
               a->changes[i].text, 1e3 * a->changes[i].gain_s, (long long)q->setup.batch);
}

static enum ghp_status print_json(const struct question *q, const struct answer *a)
{
    const struct ghp_expected *e = &a->expected;
    json_t *changes = json_array(), *root = json_object();
    bool failed = changes == NULL || root == NULL;
    char *text;

    for (int i = 0; i < a->n_changes && !failed; i++)
        failed |=
            json_array_append_new(changes, json_pack("{s:s, s:f}", "change", a->changes[i].text,
                                                     "gain_s", a->changes[i].gain_s)) != 0;
    ghp_json_put(root, "model", json_string(q->model.name), &failed);
    ghp_json_put(root, profile_path != NULL ? "profile" : "machine", json_string(place()), &failed);
    ghp_json_put(root, "nodes", json_integer(q->setup.nodes), &failed);
    ghp_json_put(root, "workers", json_integer(ghp_setup_workers(&q->setup)), &failed);
    ghp_json_put(root, "global_batch", json_integer(q->setup.batch), &failed);
    ghp_json_put(root, "micro_batches", json_integer(micro_batches), &failed);
    ghp_json_put(root, "precision", json_string(ghp_precision_name(q->setup.precision)), &failed);
    ghp_json_put(root, "plan", json_string(ghp_expect_ways[way]), &failed);
    ghp_json_put(root, "tensor", json_integer(tensor), &failed);
    ghp_json_put(root, "pipeline", json_integer(pipeline), &failed);
    ghp_json_put(root, "shard", json_string(ghp_param_sharding_names[sharding]), &failed);
    ghp_json_put(root, "recompute", json_boolean(recompute), &failed);
    ghp_json_put(root, "step_s", json_real(e->at.step_s), &failed);
    ghp_json_put(root, "low_s", json_real(e->range.low_s), &failed);
    ghp_json_put(root, "high_s", json_real(e->range.high_s), &failed);
    ghp_json_put(root, "compute_s", json_real(e->at.compute_s), &failed);
    ghp_json_put(root, "comm_s", json_real(e->at.comm_s), &failed);
    ghp_json_put(root, "exposed_s", json_real(e->at.exposed_s), &failed);
    if (!isnan(e->links_s)) ghp_json_put(root, "links_s", json_real(e->links_s), &failed);
    if (!isnan(e->idle_s)) ghp_json_put(root, "idle_s", json_real(e->idle_s), &failed);
    if (!isnan(e->utilisation))
        ghp_json_put(root, "flop_utilisation", json_real(e->utilisation), &failed);
    ghp_json_put(root, "peak_bytes", json_integer(e->at.peak_bytes), &failed);
    if (a->second_node_Bps >= 0 && isfinite(a->second_node_Bps))
        ghp_json_put(root, "second_node_from_Bps", json_real(a->second_node_Bps), &failed);
    if (q->measured_s > 0) ghp_json_put(root, "measured_s", json_real(q->measured_s), &failed);
    ghp_json_put(root, "changes", changes, &failed);
    text = failed ? NULL : json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    if (text == NULL) return GHP_NO_MEMORY();
    puts(text);
    free(text);
    return GHP_OK;
}

static enum ghp_status answer_one(const struct question *q)
{
    struct answer a = {.second_node_Bps = -1};
    struct ghp_setup two = q->setup;

    two.nodes = 2;
    GHP_TRY(ghp_expect_step(&q->setup, &a.expected));
    a.n_changes = ghp_expect_changes(&q->setup, &a.expected, a.changes);
    if (q->setup.batch % (ghp_setup_workers(&two) * q->setup.micro_batches) == 0 &&
        tensor * pipeline == 1)
        GHP_TRY(ghp_expect_second_node(&q->setup, &a.second_node_Bps));
    if (json) return print_json(q, &a);
    print_answer(q, &a);
    return GHP_OK;
}

static enum ghp_status print_table(struct question *q)
{
    static const char *const names[][2] = {{"nodes", ""},   {"workers", ""}, {"step", "ms"},
                                           {"from", "ms"},  {"to", "ms"},    {"samples/s", "1/s"},
                                           {"waits", "ms"}, {"MFU", "%"}};
    struct ghp_table *t = ghp_table_open();
    enum ghp_status status = GHP_OK;
    char plan[PLAN_TEXT_SIZE], source[SOURCE_TEXT_SIZE];

    ghp_table_note(t, "%s on nodes of %s, batch %lld, %s, plan %s", q->model.name, place(),
                   (long long)q->setup.batch, ghp_precision_name(q->setup.precision),
                   format_plan(plan));
    ghp_table_note(t, "%s", format_source(q, source));
    for (size_t c = 0; c < sizeof names / sizeof names[0]; c++)
        ghp_table_column(t, names[c][0], names[c][1], 'r');
    for (int i = 0; i < q->n_nodes && status == GHP_OK; i++) {
        struct ghp_expected e;

        q->setup.nodes = q->nodes[i];
        status = ghp_expect_step(&q->setup, &e);
        if (status != GHP_OK) break;
        ghp_table_row(t);
        ghp_table_cell(t, "%d", q->nodes[i]);
        ghp_table_cell(t, "%d", ghp_setup_workers(&q->setup));
        ghp_table_cell(t, "%.1f", 1e3 * e.at.step_s);
        ghp_table_cell(t, "%.1f", 1e3 * e.range.low_s);
        ghp_table_cell(t, "%.1f", 1e3 * e.range.high_s);
        ghp_table_cell(t, "%.1f", rate_of(q, e.at.step_s));
        ghp_table_cell(t, "%.1f", 1e3 * e.at.exposed_s);
        if (isnan(e.utilisation))
            ghp_table_cell(t, "-");
        else
            ghp_table_cell(t, "%.1f", 100 * e.utilisation);
    }
    if (status == GHP_OK) status = ghp_table_print(t, stdout);
    ghp_table_close(t);
    return status;
}

static enum ghp_status expect(const char *path)
{
    struct question q = {0};
    enum ghp_status status = read_question(path, &q);

    if (status == GHP_OK) status = q.n_nodes > 1 ? print_table(&q) : answer_one(&q);
    ghp_model_release(&q.model);
    ghp_machine_release(&q.machine);
    ghp_profile_release(&q.profile);
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
