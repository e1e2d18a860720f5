/* inspect/cli/ghp-inspect.c - the tool: shows any of ghp's files as tables, checks plans, compares two of them.
 *
 * The kind of a file is what its "format" says. To add a kind: a row in `kinds`. */
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/cost/named_machine.h"
#include "core/model/schema.h"
#include "inspect/check_with.h"
#include "inspect/inspect.h"
#include "inspect/report/report.h"
#include "onnx/huggingface/huggingface.h"
#include "onnx/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILES = 64 };

static struct {
    bool verify, explain, json, layer_schema;
    const char *profile, *export_onnx;
    struct ghp_inspect_hf hf; /* its checkpoint is --export-onnx's too */
    const char *html, *trace, *dot, *torch, *run;
    struct ghp_check_with check;
} set = {.check.time_limit_s = 600};

static const struct ghp_opt options[] = {
    {.name = "verify",
     .kind = GHP_OPT_FLAG,
     .target = &set.verify,
     .help = "recompute a plan's cost, memory and certificate and compare; exit code 1 if they do "
             "not hold"},
    {.name = "check-with",
     .kind = GHP_OPT_TEXT,
     .target = &set.check.solver,
     .argument = "highs|cbc|glpk|PATH",
     .help = "have another solver confirm a plan's certificate, by the integer program that "
             "ghp-plan --write-mps wrote: FILE2, or the plan's file with .mps in place of .json"},
    {.name = "solver-limit",
     .kind = GHP_OPT_REAL,
     .target = &set.check.time_limit_s,
     .argument = "SECONDS",
     .min = 1,
     .max = 1e6,
     .help = "for --check-with"},
    {.name = "explain",
     .kind = GHP_OPT_FLAG,
     .target = &set.explain,
     .help = "a plan's cost terms by layer; with a LAYER its instructions too"},
    {.name = "profile",
     .kind = GHP_OPT_TEXT,
     .target = &set.profile,
     .argument = "PROFILE",
     .help = "the profile to cost a plan with; without it the one that the plan names"},
    {.name = "html",
     .kind = GHP_OPT_TEXT,
     .target = &set.html,
     .writes = "<!DOCTYPE html>",
     .argument = "FILE",
     .help = "write a plan, or a run, as one page with drawings; it needs no network"},
    {.name = "trace",
     .kind = GHP_OPT_TEXT,
     .target = &set.trace,
     .writes = "\"traceEvents\"",
     .argument = "FILE",
     .help = "write a plan's step as trace events, for Perfetto"},
    {.name = "dot",
     .kind = GHP_OPT_TEXT,
     .target = &set.dot,
     .writes = "digraph",
     .argument = "FILE",
     .help = "write a plan's network and splits for Graphviz"},
    {.name = "export-torch",
     .kind = GHP_OPT_TEXT,
     .target = &set.torch,
     .writes = "\"\"\"A plan of ghp",
     .argument = "FILE.py",
     .help = "write a plan as a Python file that divides a PyTorch module by it"},
    {.name = "run",
     .kind = GHP_OPT_TEXT,
     .target = &set.run,
     .argument = "RUN",
     .help = "what ghp-run --run wrote: --html and --trace show it next to the prediction"},
    {.name = "export-onnx",
     .kind = GHP_OPT_TEXT,
     .target = &set.export_onnx,
     .writes = "\022\003ghp:",
     .argument = "FILE.onnx",
     .help = "write the network of a model or plan as ONNX"},
    {.name = "export-hf",
     .kind = GHP_OPT_TEXT,
     .target = &set.hf.folder,
     .writes = "",
     .writes_folder = true,
     .argument = "FOLDER",
     .help = "write the network of a model or plan, which came from such a folder or is a gpt2 or "
             "llama, as a folder of Hugging Face's transformers; wants --weights"},
    {.name = "export-peft",
     .kind = GHP_OPT_TEXT,
     .target = &set.hf.adapter,
     .writes = "",
     .writes_folder = true,
     .argument = "FOLDER",
     .help = "write what ghp-plan --lora added as a folder of the PEFT library; wants --weights"},
    {.name = "max-shard-size",
     .kind = GHP_OPT_BYTES,
     .target = &set.hf.max_shard,
     .min = 1,
     .max = 1e18,
     .argument = "SIZE",
     .help = "with --export-hf: write the weights in several files of at most this size, such as "
             "5GB, with their index; one file without it"},
    {.name = "weights",
     .kind = GHP_OPT_TEXT,
     .target = &set.hf.checkpoint,
     .argument = "CHECKPOINT",
     .help = "with these: the weights, in safetensors; without it ONNX gets ones and zeros"},
    GHP_NETWORK_OPTION,
    {.name = "layer-schema",
     .kind = GHP_OPT_FLAG,
     .target = &set.layer_schema,
     .help = "print the JSON Schema of a model's layers, of all operations; takes no FILE"},
    {.name = "json",
     .kind = GHP_OPT_FLAG,
     .target = &set.json,
     .help = "one JSON object in place of tables"},
};

static const struct ghp_exit_code exit_codes[] = {
    {3, "--check-with: the other solver proves less than the certificate claims"}, {0, NULL}};

static const struct ghp_tool tool = {
    .exit_codes = exit_codes,
    .name = "ghp-inspect",
    .purpose = "shows models, machines, profiles, plans, runs and checkpoints",
    .usage = "ghp-inspect FILE                        any file\n"
             "       ghp-inspect PROFILE MODEL               a profile by the model's layers\n"
             "       ghp-inspect RUN [RUN...]                where the prediction's error sits\n"
             "       ghp-inspect PLAN PLAN2                  what differs, and what that costs\n"
             "       ghp-inspect PLAN --explain [LAYER]      why the plan costs what it costs\n"
             "       ghp-inspect PLAN|RUN --html FILE        a page with drawings\n"
             "       ghp-inspect PLAN --verify               whether the plan holds\n"
             "       ghp-inspect PLAN [MPS] --check-with highs   another solver's word\n"
             "       ghp-inspect MODEL|PLAN --export-onnx FILE.onnx [--weights CHECKPOINT]\n"
             "       ghp-inspect MODEL|PLAN --export-hf FOLDER --weights CHECKPOINT\n"
             "       ghp-inspect MODEL|PLAN --export-peft FOLDER --weights CHECKPOINT\n"
             "       ghp-inspect PLAN --export-torch FILE.py    the plan for a PyTorch module\n"
             "       ghp-inspect --layer-schema",
    .example = "ghp-inspect models/lenet5.json",
    .common = "verify check-with explain profile html trace export-torch run export-onnx export-hf "
              "weights json",
    .opts = options,
    .n_opts = sizeof options / sizeof options[0],
    .notes = "FILE is a model, machine, profile, plan, run or checkpoint. A model may be in ONNX "
             "(FILE.onnx), or a folder of Hugging Face's transformers. A machine may be a name, "
             "such as h100-sxm-8; ghp-plan --machine list has all.",
};

/* The file's "format", copied into text; of a network in another format, a model's. */
static enum ghp_status format_of(const char *path, char *text, size_t n)
{
    enum ghp_status status;
    struct ghp_node root;
    struct ghp_json doc;

    if (ghp_inspect_names_checkpoint(path)) {
        snprintf(text, n, "ghp.checkpoint/1");
        return GHP_OK;
    }
    if (ghp_network_names(path) || ghp_machine_is_named(path)) {
        snprintf(text, n, "%s", ghp_network_names(path) ? "ghp.model/1" : "ghp.machine/2");
        return GHP_OK;
    }
    GHP_TRY(ghp_network_check_name(path));
    GHP_TRY(ghp_json_load(path, NULL, &doc));
    root = ghp_json_root(&doc);
    status = ghp_json_text_n(&root, "format", text, n);
    ghp_json_release(&doc);
    return status;
}

static bool exports(void)
{
    return set.export_onnx != NULL || set.hf.folder != NULL || set.hf.adapter != NULL;
}

static enum ghp_status export_model(struct ghp_display *report, const struct ghp_model *model,
                                    const char *path)
{
    if (set.export_onnx != NULL)
        return ghp_inspect_export(report, model, set.export_onnx, set.hf.checkpoint);
    return ghp_inspect_export_hf(report, model, ghp_hf_names(path) ? path : NULL, &set.hf);
}

static enum ghp_status export_plan(struct ghp_display *report, const struct ghp_plan *plan,
                                   const char *path)
{
    return set.export_onnx != NULL ? export_model(report, &plan->model, path)
                                   : ghp_inspect_export_hf_plan(report, plan, path, &set.hf);
}

static enum ghp_status show_model(struct ghp_display *report, const char *path, const char *path2)
{
    enum ghp_status status = GHP_OK;
    struct ghp_model model;

    (void)path2;
    GHP_TRY(ghp_network_load(path, &model));
    if (exports())
        status = export_model(report, &model, path);
    else
        ghp_inspect_model(report, &model);
    ghp_model_release(&model);
    return status;
}

static enum ghp_status show_machine(struct ghp_display *report, const char *path, const char *path2)
{
    struct ghp_machine machine;

    (void)path2;
    GHP_TRY(ghp_machine_open(path, &machine));
    ghp_inspect_machine(report, &machine);
    ghp_machine_release(&machine);
    return GHP_OK;
}

static enum ghp_status show_profile(struct ghp_display *report, const char *path, const char *path2)
{
    struct ghp_profile profile;
    struct ghp_model model = {0};
    enum ghp_status status = GHP_OK;

    GHP_TRY(ghp_profile_load(path, &profile));
    if (path2 != NULL) status = ghp_network_load(path2, &model);
    if (status == GHP_OK)
        status = ghp_inspect_profile(report, &profile, path2 != NULL ? &model : NULL);
    ghp_model_release(&model);
    ghp_profile_release(&profile);
    return status;
}

/* Both plans' own costs in one profile, if the whole one is not at hand. */
static enum ghp_status merge_costs(const struct ghp_plan *a, const struct ghp_plan *b,
                                   struct ghp_profile *profile)
{
    struct ghp_lowering lowering = ghp_plan_lowering(a, &a->profile);
    struct ghp_programs programs;
    enum ghp_status status;

    GHP_TRY(ghp_lower_all(&lowering, a->splits, &programs));
    status = ghp_profile_subset_of(&a->profile, programs.of, programs.n, profile);
    ghp_programs_release(&programs);
    if (status != GHP_OK) return status;
    if (a->profile_hash == b->profile_hash) {
        for (int i = 0; i < b->profile.n_ops && status == GHP_OK; i++)
            status = ghp_profile_add_op(profile, &b->profile.ops[i]);
        for (int i = 0; i < b->profile.n_comms && status == GHP_OK; i++)
            status = ghp_profile_add_comm(profile, &b->profile.comms[i]);
    }
    if (status == GHP_OK) status = ghp_profile_finalize(profile);
    if (status != GHP_OK) ghp_profile_release(profile);
    return status;
}

static enum ghp_status compare_plans(struct ghp_display *report, const struct ghp_plan *a,
                                     const char *path, const char *path2)
{
    struct ghp_profile profile = {0};
    enum ghp_status status;
    struct ghp_plan b;

    GHP_TRY(ghp_plan_load(path2, &b));
    status = ghp_inspect_find_profile(a, path, set.profile, &profile);
    if (status != GHP_OK && set.profile == NULL) status = merge_costs(a, &b, &profile);
    if (status == GHP_OK) status = ghp_inspect_difference(report, a, &b, &profile);
    ghp_profile_release(&profile);
    ghp_plan_release(&b);
    return status;
}

static bool wants_files(void)
{
    return set.html != NULL || set.trace != NULL || set.dot != NULL || set.torch != NULL;
}

static enum ghp_status write_files(struct ghp_display *display, const struct ghp_plan *plan)
{
    const struct {
        const char *key, *path;
        enum ghp_status (*save)(const struct ghp_report *report, const char *path);
    } files[] = {{"html", set.html, ghp_report_save_html},
                 {"trace", set.trace, ghp_report_save_trace},
                 {"dot", set.dot, ghp_report_save_dot},
                 {"torch", set.torch, ghp_report_save_torch}};
    enum ghp_status status = GHP_OK;
    struct ghp_report report;

    GHP_TRY(ghp_report_init(plan, set.run, &report));
    for (size_t i = 0; i < sizeof files / sizeof files[0] && status == GHP_OK; i++) {
        if (files[i].path == NULL) continue;
        status = files[i].save(&report, files[i].path);
        ghp_display_text(display, files[i].key, files[i].path);
        if (status == GHP_OK) ghp_display_line(display, "wrote %s", files[i].path);
    }
    ghp_report_release(&report);
    return status;
}

/* Checks that --profile names a profile, even if nothing of it is shown. */
static enum ghp_status check_profile(const struct ghp_plan *plan, const char *path)
{
    struct ghp_profile profile;

    GHP_TRY(ghp_inspect_find_profile(plan, path, set.profile, &profile));
    ghp_profile_release(&profile);
    return GHP_OK;
}

static enum ghp_status show_plan(struct ghp_display *report, const char *path, const char *path2)
{
    struct ghp_plan plan;
    enum ghp_status status;

    GHP_TRY(ghp_plan_load(path, &plan));
    if (set.profile != NULL) GHP_TRY_GOTO(status, check_profile(&plan, path), done);
    if (exports())
        status = export_plan(report, &plan, path);
    else if (wants_files())
        status = write_files(report, &plan);
    else if (set.check.solver != NULL)
        status = ghp_inspect_check_with(report, &plan, path, path2, &set.check);
    else if (set.verify)
        status = ghp_inspect_verify(report, &plan, path, set.profile);
    else if (set.explain)
        status = ghp_inspect_explain(report, &plan, path2);
    else if (path2 != NULL)
        status = compare_plans(report, &plan, path, path2);
    else
        status = ghp_inspect_plan(report, &plan);
done:
    ghp_plan_release(&plan);
    return status;
}

static enum ghp_status show_plan_set(struct ghp_display *report, const char *path,
                                     const char *path2)
{
    struct ghp_plan_set plans;

    (void)path2;
    GHP_TRY(ghp_plan_set_load(path, &plans));
    ghp_inspect_plan_set(report, &plans);
    ghp_plan_set_release(&plans);
    return GHP_OK;
}

static enum ghp_status show_run(struct ghp_display *report, const char *path, const char *path2)
{
    (void)path2;
    if (set.html == NULL) return ghp_inspect_run(report, path, "ghp.run/2");
    GHP_TRY(ghp_report_save_run(path, set.html));
    ghp_display_text(report, "html", set.html);
    ghp_display_line(report, "wrote %s", set.html);
    return GHP_OK;
}

static enum ghp_status show_comparison(struct ghp_display *report, const char *path,
                                       const char *path2)
{
    (void)path2;
    return ghp_inspect_run(report, path, "ghp.comparison/2");
}

static enum ghp_status show_checkpoint(struct ghp_display *report, const char *path,
                                       const char *path2)
{
    (void)path2;
    return ghp_inspect_checkpoint(report, path);
}

static const struct kind {
    const char *format;
    enum ghp_status (*show)(struct ghp_display *report, const char *path, const char *path2);
    const char *second; /* format that FILE2 may have, NULL: none */
} kinds[] = {
    {"ghp.model/1", show_model, NULL},
    {"ghp.machine/2", show_machine, NULL},
    {"ghp.profile/2", show_profile, "ghp.model/1"},
    {"ghp.plan/2", show_plan, "ghp.plan/2"},
    {"ghp.plans/1", show_plan_set, NULL},
    {"ghp.run/2", show_run, NULL},
    {"ghp.comparison/2", show_comparison, NULL},
    {"ghp.checkpoint/1", show_checkpoint, NULL},
};

/* Several runs together. */
static enum ghp_status show_runs(struct ghp_display *report, const char *const *paths, int n)
{
    char format[64];

    if (set.verify || set.explain || set.profile != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "--verify, --explain and --profile are about plans; give "
                                       "one plan, or leave them out");
    if (wants_files())
        return GHP_FAIL(GHP_ERR_USAGE, "--html is of one run; give one, or leave it out to compare "
                                       "them as tables");
    for (int i = 0; i < n; i++) {
        GHP_TRY(format_of(paths[i], format, sizeof format));
        if (strcmp(format, "ghp.run/2") != 0)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "only runs are shown together, but %s is of format '%s'; give a "
                            "profile and a model, two plans, or runs",
                            paths[i], format);
    }
    return ghp_inspect_prediction_error(report, paths, n);
}

/* A file of another version: its reader says what to do. */
static enum ghp_status fail_version(const char *path, const char *format)
{
    struct ghp_json doc;
    enum ghp_status status = ghp_json_load(path, format, &doc);

    GHP_ASSERT(status != GHP_OK);
    return status;
}

/* network: whether FILE has one. */
static enum ghp_status check_exports(bool network, const char *path2)
{
    if (!exports() && set.hf.checkpoint != NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "--weights goes with --export-onnx, --export-hf or "
                                       "--export-peft; give it one of them");
    if (set.hf.folder == NULL && set.hf.max_shard > 0)
        return GHP_FAIL(GHP_ERR_USAGE, "--max-shard-size goes with --export-hf; give it that");
    if ((set.hf.folder != NULL && (set.hf.checkpoint == NULL || set.export_onnx != NULL)) ||
        (set.hf.adapter != NULL && (set.hf.checkpoint == NULL || set.export_onnx || set.hf.folder)))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--export-hf and --export-peft write the weights of --weights CHECKPOINT; "
                        "give one of them that, without --export-onnx");
    if (exports() && (path2 != NULL || set.verify || set.explain || !network))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--export-onnx, --export-hf and --export-peft write one model or plan; "
                        "give them alone, without --verify and --explain");
    return GHP_OK;
}

/* A plan has all drawings, a run its page. */
static enum ghp_status check_files(const char *path, const char *format)
{
    bool run = strcmp(format, "ghp.run/2") == 0;

    if (!wants_files() || strcmp(format, "ghp.plan/2") == 0) return GHP_OK;
    if (run && set.trace == NULL && set.dot == NULL && set.torch == NULL && set.run == NULL)
        return GHP_OK;
    if (run)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "a run has --html FILE alone; for the others give its plan, with --run %s",
                        path);
    return GHP_FAIL(
        GHP_ERR_USAGE,
        "--html, --trace, --dot and --export-torch are about plans, but %s is of format '%s'; give "
        "a plan, or a run for --html",
        path, format);
}

/* plan: whether FILE is one. */
static enum ghp_status check_solver(bool plan)
{
    bool alone = !set.verify && !set.explain && !wants_files() && !exports();

    if (set.check.solver == NULL || (plan && alone)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE, "--check-with is about one plan; give a plan alone, without "
                                   "other options that show, write or check one");
}

/* The kind of FILE, and whether the options and FILE2 fit it. */
static enum ghp_status choose(const char *path, const char *path2, const struct kind **kind)
{
    char format[64], second[64] = "";
    bool plan;

    GHP_TRY(format_of(path, format, sizeof format));
    *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].format, format) == 0)
            *kind = &kinds[i];
        else if (ghp_json_is_kind(kinds[i].format, format))
            return fail_version(path, kinds[i].format);
    }
    if (*kind == NULL)
        return GHP_FAIL(
            GHP_ERR_FORMAT,
            "%s: ghp-inspect does not know the format '%s'; give a model, machine, profile, plan "
            "or run file of this version",
            path, format);
    plan = strcmp(format, "ghp.plan/2") == 0;
    GHP_TRY(check_exports(plan || strcmp(format, "ghp.model/1") == 0, path2));
    if (!plan && (set.verify || set.explain || set.profile != NULL))
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "--verify, --explain and --profile are about plans, but %s is of format '%s'; give a "
            "plan",
            path, format);
    GHP_TRY(check_solver(plan));
    GHP_TRY(check_files(path, format));
    if (set.run != NULL && set.html == NULL && set.trace == NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "--run is for --html and --trace; give one of them");
    if (wants_files() && (set.verify || set.explain || path2 != NULL))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--html, --trace, --dot and --export-torch take one plan alone; leave out "
                        "--verify, --explain and the second argument");
    if (set.verify && (set.explain || path2 != NULL))
        return GHP_FAIL(
            GHP_ERR_USAGE,
            "--verify checks one plan alone; leave out --explain and the second argument");
    if (path2 == NULL || set.explain || set.check.solver != NULL) return GHP_OK;
    GHP_TRY(format_of(path2, second, sizeof second));
    if ((*kind)->second == NULL || strcmp((*kind)->second, second) != 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot show '%s' next to '%s'; give a profile and a model, or two plans",
                        format, second);
    return GHP_OK;
}

/* Whether the files are several runs, or more than any other kind may be. */
static enum ghp_status are_runs(const char *const *files, int n, bool *runs)
{
    char format[64] = "";

    *runs = n > 2;
    if (n != 2 || set.explain) return GHP_OK;
    GHP_TRY(format_of(files[0], format, sizeof format));
    if (strcmp(format, "ghp.run/2") != 0) return GHP_OK;
    GHP_TRY(format_of(files[1], format, sizeof format));
    *runs = strcmp(format, "ghp.run/2") == 0;
    return GHP_OK;
}

static enum ghp_status run(const char *const *files, int n)
{
    const struct kind *kind = NULL;
    struct ghp_display report;
    enum ghp_status status, ended;
    char message[1024];
    bool runs;

    GHP_TRY(are_runs(files, n, &runs));
    if (!runs) GHP_TRY(choose(files[0], files[1], &kind));
    ghp_display_begin(&report, set.json);
    if (!runs) ghp_display_text(&report, "summary_of", kind->format);
    status = runs ? show_runs(&report, files, n) : kind->show(&report, files[0], files[1]);
    if (status == GHP_OK) return ghp_display_end(&report);
    snprintf(message, sizeof message, "%s", ghp_status_message());
    report.json = false; /* nothing is printed after a failure */
    ended = ghp_display_end(&report);
    (void)ended;
    return GHP_FAIL(status, "%s", message);
}

static enum ghp_status print_layer_schema(int n_files)
{
    char *text;

    if (n_files > 0)
        return GHP_FAIL(GHP_ERR_USAGE, "--layer-schema is about no file; give it alone");
    GHP_TRY(ghp_layer_schema(&text));
    fputs(text, stdout);
    free(text);
    return GHP_OK;
}

int main(int argc, char **argv)
{
    const char *files[MAX_FILES] = {NULL};
    enum ghp_status status;
    int n = 0;

    ghp_log_open(tool.name, true);
    status = ghp_opts_parse(&tool, argc, argv, files, MAX_FILES, &n);
    if (status == GHP_OK && ghp_opts_done()) return 0;
    if (status == GHP_OK && n < 1 && !set.layer_schema)
        status = GHP_FAIL(GHP_ERR_USAGE,
                          "no file is named; give a model, machine, profile, plan or run file");
    if (status == GHP_OK && set.explain && n == 2 && access(files[0], F_OK) != 0 &&
        access(files[1], F_OK) == 0) {
        const char *layer = files[0]; /* --explain LAYER PLAN */

        files[0] = files[1];
        files[1] = layer;
    }
    if (status == GHP_OK) status = set.layer_schema ? print_layer_schema(n) : run(files, n);
    if (status == GHP_OK) status = ghp_opts_printed();
    if (status != GHP_OK) fprintf(stderr, "ghp-inspect: %s\n", ghp_status_message());
    return ghp_status_exit_code(status);
}
