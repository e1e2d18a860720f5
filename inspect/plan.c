/* inspect/plan.c - tables of one plan: splits, predictions compared with the baselines, phases, memory, certificate. */
#include "inspect/inspect.h"

#include "core/base/embed.h"
#include "core/base/hash.h"
#include "core/base/units.h"
#include "core/cost/profile_peak.h"
#include "core/plan/staging_text.h"
#include "core/sharding/schedule.h"
#include "core/plan/range.h"
#include "inspect/simulation.h"
#include "core/plan/what_if.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1.0 / 1048576)

/* One row a stage; nothing for a plan without any. */
static void put_stages(struct ghp_display *report, const struct ghp_plan *plan,
                       const struct ghp_simulation *p)
{
    static const struct ghp_column columns[] = {{"stage", "stage", "", 'i', 0, 0},
                                                {"first_layer", "from", "layer", 't', 0, 0},
                                                {"workers", "workers", "a group", 'i', 0, 0},
                                                {"share", "share", "samples", 'i', 0, 0},
                                                {"in_flight", "in flight", "micro-b.", 'i', 0, 0},
                                                {"compute_s", "compute", "ms", 'r', 1e3, 3},
                                                {"comm_s", "reduce", "ms", 'r', 1e3, 3},
                                                {"transfer_s", "transfer", "ms", 'r', 1e3, 3},
                                                {"exposed_s", "exposed", "ms", 'r', 1e3, 3},
                                                {"peak_bytes", "memory", "MiB", 'b', MIB, 2},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet;
    char text[512];

    if (ghp_staging_trivial(&plan->staging)) return;
    sheet = ghp_sheet_open(report, "stages", columns);
    if (ghp_staging_format(&plan->staging, &plan->model, text, sizeof text)[0] != '\0')
        ghp_sheet_note(sheet, "stages of a group: %s", text);
    if (ghp_shares_format(plan, text, sizeof text)[0] != '\0') ghp_sheet_note(sheet, "%s", text);
    if (plan->recompute != NULL)
        ghp_sheet_note(sheet, "some layers are recomputed in the backward pass; the plan's key "
                              "`recompute` names them");
    ghp_sheet_note(sheet, "share: of a micro-batch, of the worker with most samples; exposed: "
                          "waiting for reductions and for other stages");
    for (int i = 0; i < p->programs.n; i++) {
        const struct ghp_program *program = &p->programs.of[i];
        const struct ghp_timing *timing = &p->timings[i];
        const struct ghp_placement *placement = &program->placement;

        ghp_sheet_row(sheet);
        ghp_sheet_int(sheet, i);
        ghp_sheet_text(sheet, plan->model.layers[ghp_placement_first(placement)].name);
        ghp_sheet_int(sheet, p->programs.n > 1 ? plan->staging.stage[i].workers : plan->group_size);
        ghp_sheet_int(sheet,
                      ghp_part_of(placement->problem.global_batch, placement->problem.workers));
        ghp_sheet_int(sheet, ghp_stage_in_flight(&plan->staging, i));
        ghp_sheet_real(sheet, timing->compute_s);
        ghp_sheet_real(sheet, timing->comm_s);
        ghp_sheet_real(sheet, timing->transfer_s);
        ghp_sheet_real(sheet, timing->phase_s[GHP_PHASE_EXPOSED]);
        ghp_sheet_int(sheet, program->peak_bytes);
    }
    ghp_display_sheet(report, sheet);
}

/* The layers whose outputs lie blocked, runs of them as "first .. last". */
static const char *nchw16c_text(const struct ghp_plan *plan, char *text, size_t size)
{
    const struct ghp_model *model = &plan->model;
    size_t used = 0;

    snprintf(text, size, "none");
    for (int v = 0; v < model->n_layers && used < size; v++) {
        int first = v, n;

        if (!plan->nchw16c[v]) continue;
        while (v + 1 < model->n_layers && plan->nchw16c[v + 1])
            v++;
        n = snprintf(text + used, size - used, "%s%s%s%s", used > 0 ? ", " : "",
                     model->layers[first].name, first < v ? " .. " : "",
                     first < v ? model->layers[v].name : "");
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

static const char *staleness_text(int steps, char text[24])
{
    if (steps < 0) return "without bound";
    snprintf(text, 24, "%d", steps);
    return text;
}

/* Nothing of one that mixes: its name says it. */
static const char *period_text(struct ghp_sync sync, char text[48])
{
    if (ghp_sync_ops_of(sync)->mixing != NULL) return "";
    snprintf(text, 48, "combines every %d step(s), ", ghp_sync_period(sync));
    return text;
}

/* Which layers differ from others: those that stay, and those whose outputs lie in blocks. */
static void put_layers(struct ghp_sheet *sheet, const struct ghp_plan *plan)
{
    char layers[512];

    ghp_inspect_fixed(sheet, &plan->model);
    if (plan->nchw16c != NULL)
        ghp_sheet_note(sheet, "outputs stored in blocks of channels: %s",
                       nchw16c_text(plan, layers, sizeof layers));
}

static const char *samples_text(struct ghp_problem problem, char *text, size_t size)
{
    int sharers = ghp_problem_sharers(problem);

    if (sharers > 1)
        snprintf(text, size, "a sample for each %d workers", sharers);
    else
        snprintf(text, size, "%lld sample%s a worker",
                 (long long)(problem.global_batch / problem.workers),
                 ghp_plural(problem.global_batch / problem.workers));
    return text;
}

/* What the plan is for, and where its workers are. */
static void put_notes(struct ghp_sheet *sheet, const struct ghp_plan *plan)
{
    const struct ghp_machine *machine = &plan->profile.machine;
    struct ghp_place place = ghp_machine_place(machine, plan->problem.workers, 0);
    char sync[GHP_SYNC_TEXT_BYTES], stale[24], period[48], samples[64];

    ghp_sheet_note(sheet, "plan of %s (%s): %d worker%s = %d group%s of %d, global batch %lld, %s",
                   plan->model.name, ghp_strategy_name(plan->strategy), plan->problem.workers,
                   ghp_plural(plan->problem.workers), plan->groups, ghp_plural(plan->groups),
                   plan->group_size, (long long)plan->problem.global_batch,
                   samples_text(plan->problem, samples, sizeof samples));
    ghp_sheet_note(sheet, "profile %s (%s, %s), hash %016llx; model hash %016llx",
                   plan->profile_path != NULL ? plan->profile_path : "(not named)",
                   plan->profile.backend, plan->profile.numerics,
                   (unsigned long long)plan->profile_hash, (unsigned long long)plan->model.hash);
    if (ghp_profile_is_peak(&plan->profile)) ghp_sheet_note(sheet, "%s", ghp_peak_sentence());
    if (plan->predicted.program_hash != 0)
        ghp_sheet_note(sheet, "program hash %016llx",
                       (unsigned long long)plan->predicted.program_hash);
    if (plan->method.sync.ops != NULL) {
        ghp_sync_format(plan->method.sync, sync);
        ghp_sheet_note(sheet, "synchroniser %s: %s; %sstaleness %s, %s", sync,
                       plan->method.sync.ops->purpose, period_text(plan->method.sync, period),
                       staleness_text(ghp_sync_staleness(plan->method.sync), stale),
                       ghp_sync_equality_text(plan->method.sync.ops->equality));
    }
    if (plan->method.sync.servers > 0)
        ghp_sheet_note(sheet, "%d server%s, %.2f MiB each: start %d ranks",
                       plan->method.sync.servers, ghp_plural(plan->method.sync.servers),
                       (double)plan->predicted.server_bytes * MIB,
                       plan->problem.workers + plan->method.sync.servers);
    if (plan->method.shard_within > 0)
        ghp_sheet_note(sheet,
                       "parameters are sharded within groups of %d workers, and each group has all",
                       plan->method.shard_within);
    if (plan->method.reduces_bf16) ghp_sheet_note(sheet, "gradients travel in bfloat16");
    if (ghp_method_clips(&plan->method))
        ghp_sheet_note(sheet, "gradients are clipped to the norm %g", plan->method.clip_norm);
    if (plan->method.scaling != NULL)
        ghp_sheet_note(sheet, "learning rates by %s: %s", plan->method.scaling->name,
                       plan->method.scaling->purpose);
    if (ghp_optimizer_index(plan->method.optimizer) != GHP_OPTIMIZER_INDEX_sgd)
        ghp_sheet_note(sheet, "optimizer %s: %s", plan->method.optimizer->name,
                       plan->method.optimizer->purpose);
    ghp_sheet_note(sheet, "placed %d on a node, %d core%s each%s",
                   ghp_machine_workers_per_node(machine, plan->problem.workers), place.n_cores,
                   ghp_plural(place.n_cores),
                   place.oversubscribed ? ", cores shared with others" : "");
    if (plan->profile.threads > 0 && plan->profile.threads != place.n_cores)
        ghp_sheet_note(sheet,
                       "measured with %d thread%s a worker, and these have %d core%s; profile with "
                       "--threads %d, and plan again",
                       plan->profile.threads, ghp_plural(plan->profile.threads), place.n_cores,
                       ghp_plural(place.n_cores), place.n_cores);
    if (plan->what_if.n > 0) {
        char overrides[1024];

        ghp_sheet_note(sheet, "what if: %s",
                       ghp_overrides_format(&plan->what_if, overrides, sizeof overrides));
    }
    put_layers(sheet, plan);
}

/* One row for each run of consecutive layers with the same split, in one stage. */
static void put_splits(struct ghp_display *report, const struct ghp_plan *plan)
{
    static const struct ghp_column columns[] = {{"layers", "layers", "", 't', 0, 0},
                                                {"count", "count", "", 'i', 0, 0},
                                                {"split", "split", "", 't', 0, 0},
                                                {"weights", "weights", "scalars", 'i', 0, 0},
                                                {"input_layout", "input", "layout", 't', 0, 0},
                                                {"output_layout", "output", "layout", 't', 0, 0},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    const struct ghp_model *model = &plan->model;
    struct ghp_sheet *sheet = ghp_sheet_open(report, "splits", columns);

    put_notes(sheet, plan);
    for (int first = 0, last; first < model->n_layers; first = last + 1) {
        struct ghp_layouts layouts = ghp_split_layouts(plan->splits[first]);
        char names[256], split[64], in[64], out[64];
        int64_t weights = 0;

        for (last = first;
             last + 1 < model->n_layers &&
             ghp_stage_of(&plan->staging, last + 1) == ghp_stage_of(&plan->staging, first) &&
             ghp_split_same(plan->splits[last + 1], plan->splits[first]);)
            last++;
        for (int i = first; i <= last; i++)
            weights += ghp_layer_weights(&model->layers[i]);
        snprintf(names, sizeof names, "%s%s%s", model->layers[first].name,
                 first < last ? " .. " : "", first < last ? model->layers[last].name : "");
        ghp_split_format(plan->splits[first], split, sizeof split);
        ghp_layout_format(layouts.x, in, sizeof in);
        ghp_layout_format(layouts.y, out, sizeof out);
        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, names);
        ghp_sheet_int(sheet, last - first + 1);
        ghp_sheet_text(sheet, split);
        ghp_sheet_int(sheet, weights);
        ghp_sheet_text(sheet, first == 0 ? "" : in);
        ghp_sheet_text(sheet, out);
    }
    ghp_display_sheet(report, sheet);
}

static void put_prediction(struct ghp_sheet *sheet, const char *strategy,
                           const struct ghp_prediction *p, const struct ghp_plan *plan)
{
    struct ghp_step_range range = ghp_prediction_range(p, &plan->profile);
    double best_s = plan->predicted.step_s;

    ghp_sheet_row(sheet);
    ghp_sheet_text(sheet, strategy);
    ghp_sheet_real(sheet, p->step_s);
    ghp_sheet_real(sheet, p->error_s > 0 ? p->error_s : NAN);
    ghp_sheet_real(sheet, range.low_s);
    ghp_sheet_real(sheet, range.high_s);
    ghp_sheet_real(sheet, best_s > 0 ? p->step_s / best_s : NAN);
    ghp_sheet_real(sheet, p->compute_s);
    ghp_sheet_real(sheet, p->reshard_s);
    ghp_sheet_real(sheet, p->comm_s);
    ghp_sheet_real(sheet, p->exposed_s);
    ghp_sheet_int(sheet, p->peak_bytes);
    ghp_sheet_int(sheet, p->sent_bytes);
    ghp_sheet_real(sheet, p->measured_share);
}

static void put_baselines(struct ghp_display *report, const struct ghp_plan *plan)
{
    static const struct ghp_column columns[] = {
        {"strategy", "strategy", "", 't', 0, 0},
        {"predicted_step_s", "predicted", "ms", 'r', 1e3, 3},
        {"error_s", "+-", "ms", 'r', 1e3, 3},
        {"low_s", "from", "ms", 'r', 1e3, 3},
        {"high_s", "to", "ms", 'r', 1e3, 3},
        {"by_plan", "by plan", "x", 'r', 0, 3},
        {"compute_s", "compute", "ms", 'r', 1e3, 3},
        {"reshard_s", "reshards", "ms", 'r', 1e3, 3},
        {"comm_s", "reduce", "ms", 'r', 1e3, 3},
        {"exposed_s", "exposed", "ms", 'r', 1e3, 3},
        {"peak_bytes", "memory", "MiB", 'b', MIB, 2},
        {"sent_bytes", "sent", "MiB", 'b', MIB, 3},
        {"measured_share", "measured", "%", 'r', 100, 1},
        {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "strategies", columns);
    char name[GHP_BASELINE_TEXT_SIZE];

    ghp_sheet_note(sheet, "a step; from, to: with 90 %%; compute: the compute stream alone, "
                          "reshards included; reshards: of the step; reduce: the communication "
                          "stream alone; exposed: waiting for it; memory and sent: a worker");
    for (int i = 0; i < plan->n_baselines; i++)
        if (!plan->baselines[i].feasible)
            ghp_sheet_note(
                sheet, "%s is not feasible: %s", ghp_strategy_name(plan->baselines[i].strategy),
                plan->baselines[i].reason != NULL ? plan->baselines[i].reason : "no reason given");
    for (int i = 0; i < plan->n_baselines; i++)
        if (plan->baselines[i].sync.ops != NULL || plan->baselines[i].recompute != NULL ||
            plan->baselines[i].sharding != NULL)
            ghp_sheet_note(sheet, "%s", ghp_baseline_format(plan, &plan->baselines[i], name));
    put_prediction(sheet, ghp_baseline_format(plan, NULL, name), &plan->predicted, plan);
    for (int i = 0; i < plan->n_baselines; i++)
        if (plan->baselines[i].feasible)
            put_prediction(sheet,
                           plan->baselines[i].local_statistics ? "data, local statistics"
                           : plan->baselines[i].sharding != NULL
                               ? ghp_baseline_format(plan, &plan->baselines[i], name)
                               : ghp_strategy_name(plan->baselines[i].strategy),
                           &plan->baselines[i].predicted, plan);
    ghp_display_sheet(report, sheet);
}

/* stage   whose phases they are, -1: there is one */
static void put_phases(struct ghp_display *report, const struct ghp_timing *timing, int stage)
{
    static const struct ghp_column columns[] = {{"phase", "phase", "", 't', 0, 0},
                                                {"predicted_s", "predicted", "ms", 'r', 1e3, 3},
                                                {"share", "share", "%", 'r', 100, 1},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    struct ghp_sheet *sheet = ghp_sheet_open(report, "phases", columns);

    ghp_sheet_note(sheet,
                   "the step's phases; they sum to %.3f ms (everything after everything: %.3f ms)",
                   timing->step_s * 1e3, timing->serial_s * 1e3);
    if (stage >= 0) ghp_sheet_note(sheet, "of stage %d, which computes longest", stage);
    for (int i = 0; i < GHP_PHASE_COUNT; i++) {
        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, ghp_phase_name((enum ghp_phase)i));
        ghp_sheet_real(sheet, timing->phase_s[i]);
        ghp_sheet_real(sheet, timing->step_s > 0 ? timing->phase_s[i] / timing->step_s : NAN);
    }
    ghp_display_sheet(report, sheet);
}

/* What lives where memory is fullest, by role. */
static enum ghp_status put_memory(struct ghp_display *report, const struct ghp_plan *plan,
                                  const struct ghp_program *program)
{
    static const struct ghp_column columns[] = {{"role", "what", "", 't', 0, 0},
                                                {"bytes", "memory", "MiB", 'b', MIB, 3},
                                                {"share", "share", "%", 'r', 100, 1},
                                                {NULL, NULL, NULL, 0, 0, 0}};
    int64_t *live = ghp_alloc((size_t)program->n_points, sizeof *live),
            kind_bytes[GHP_BUFFER_KIND_COUNT + 1] = {0};
    double peak = (double)(program->peak_bytes > 0 ? program->peak_bytes : 1);
    struct ghp_sheet *sheet;
    int fullest = 0;
    char limit[32];

    if (live == NULL) return GHP_NO_MEMORY();
    ghp_program_live(program, live);
    for (int i = 1; i < program->n_points; i++)
        if (live[i] > live[fullest]) fullest = i;
    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];

        if (b->storage == i && b->first_point <= fullest && b->last_point >= fullest)
            kind_bytes[b->buffer_kind] += b->bytes;
    }
    kind_bytes[GHP_BUFFER_KIND_COUNT] = program->peak_bytes - program->live_bytes;
    free(live);
    sheet = ghp_sheet_open(report, "memory", columns);
    ghp_sheet_note(sheet, "a worker's memory where it is fullest: %.3f MiB in all%s%s",
                   (double)program->peak_bytes * MIB,
                   plan->memory_limit_bytes > 0 ? ", limit " : "",
                   plan->memory_limit_bytes > 0
                       ? ghp_bytes_format((double)plan->memory_limit_bytes, limit, sizeof limit)
                       : "");
    for (int i = 0; i <= GHP_BUFFER_KIND_COUNT; i++) {
        if (kind_bytes[i] == 0) continue;
        ghp_sheet_row(sheet);
        ghp_sheet_text(sheet, i < GHP_BUFFER_KIND_COUNT
                                  ? ghp_buffer_kind_name((enum ghp_buffer_kind)i)
                                  : "gaps between");
        ghp_sheet_int(sheet, kind_bytes[i]);
        ghp_sheet_real(sheet, (double)kind_bytes[i] / peak);
    }
    ghp_display_sheet(report, sheet);
    return GHP_OK;
}

static void put_certificate(struct ghp_display *report, const struct ghp_plan *plan)
{
    const struct ghp_certificate *c = &plan->certificate;
    char status[GHP_CERTIFICATE_STATUS_SIZE], sentence[GHP_CERTIFICATE_SENTENCE_SIZE];

    ghp_certificate_status(c->proof, c->trial, status);
    ghp_certificate_sentence(c, sentence);
    ghp_display_real(report, "predicted_step_s", plan->predicted.step_s);
    ghp_display_int(report, "peak_bytes", plan->predicted.peak_bytes);
    ghp_display_int(report, "sent_bytes", plan->predicted.sent_bytes);
    ghp_display_real(report, "gap", c->gap);
    ghp_display_real(report, "best_step_s", c->step_s);
    ghp_display_real(report, "bound_s", c->bound_s);
    ghp_display_text(report, "status", status);
    ghp_display_text(report, "preferred", c->preferred);
    ghp_display_text(report, "strategy", ghp_strategy_name(plan->strategy));
    ghp_display_int(report, "workers", plan->problem.workers);
    ghp_display_int(report, "groups", plan->groups);
    ghp_display_int(report, "group_size", plan->group_size);
    ghp_display_int(report, "global_batch", plan->problem.global_batch);
    if (c->step_s > 0)
        ghp_display_line(report,
                         "certificate: %s (%lld plans simulated, %lld search nodes, %.3f s)",
                         sentence, (long long)c->plans, (long long)c->nodes, c->seconds);
    else
        ghp_display_line(report, "certificate: %s", sentence);
    if (c->preferred != NULL) ghp_display_line(report, "preferred: %s", c->preferred);
    if (c->sync == NULL) return;
    ghp_display_text(report, "sync", c->sync);
    ghp_display_line(report, "%s", c->sync);
}

/* The stage whose worker needs most memory. */
static int fullest_of(const struct ghp_programs *programs)
{
    int most = 0;

    for (int i = 1; i < programs->n; i++)
        if (programs->of[i].peak_bytes > programs->of[most].peak_bytes) most = i;
    return most;
}

enum ghp_status ghp_inspect_plan(struct ghp_display *report, const struct ghp_plan *plan)
{
    struct ghp_simulation p;
    enum ghp_status status;

    GHP_TRY(ghp_simulation_init(plan, &p));
    put_splits(report, plan);
    put_stages(report, plan, &p);
    put_baselines(report, plan);
    put_phases(report, &p.timings[p.busiest], p.programs.n > 1 ? p.busiest : -1);
    status = put_memory(report, plan, &p.programs.of[fullest_of(&p.programs)]);
    put_certificate(report, plan);
    ghp_simulation_release(&p);
    return status;
}

/* Loads from `path`, else from the folder of `plan_path`. */
static enum ghp_status load_near(const char *plan_path, const char *path,
                                 struct ghp_profile *profile)
{
    const char *slash = strrchr(plan_path, '/'), *name = strrchr(path, '/');
    enum ghp_status status = ghp_profile_load(path, profile);
    char near[4096], first[1024];

    if (status != GHP_ERR_IO || path[0] == '/') return status;
    snprintf(first, sizeof first, "%s", ghp_status_message());
    snprintf(near, sizeof near, "%.*s%s", slash != NULL ? (int)(slash - plan_path) + 1 : 0,
             plan_path, path);
    status = ghp_profile_load(near, profile);
    if (status != GHP_ERR_IO) return status;
    snprintf(near, sizeof near, "%.*s%s", slash != NULL ? (int)(slash - plan_path) + 1 : 0,
             plan_path, name != NULL ? name + 1 : path);
    status = ghp_profile_load(near, profile);
    return status == GHP_ERR_IO
               ? GHP_FAIL(status, "%s; or name the plan's profile with --profile", first)
               : status;
}

/* A plan by rule of thumb was made from no file, and carries all that its profile says. */
static enum ghp_status take_own(const struct ghp_plan *plan, struct ghp_profile *profile)
{
    struct ghp_json doc = {.root = ghp_profile_json(&plan->profile)};
    struct ghp_node root = ghp_json_root(&doc);
    enum ghp_status status = doc.root != NULL ? ghp_profile_read(&root, profile) : GHP_NO_MEMORY();

    json_decref(doc.root);
    return status;
}

enum ghp_status ghp_inspect_find_profile(const struct ghp_plan *plan, const char *plan_path,
                                         const char *path, struct ghp_profile *profile)
{
    enum ghp_status status;
    char said[17], found[17];

    *profile = (struct ghp_profile){0};
    if (path == NULL && ghp_profile_is_peak(&plan->profile)) return take_own(plan, profile);
    if (path == NULL && plan->profile_path == NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan names no profile; name the one it was made with by --profile");
    if (path != NULL)
        GHP_TRY(ghp_profile_load(path, profile));
    else
        GHP_TRY(load_near(plan_path, plan->profile_path, profile));
    status = ghp_what_if_repeat(plan, profile);
    ghp_hash_text(plan->profile_hash, said);
    ghp_hash_text(profile->hash, found);
    if (status == GHP_OK && profile->hash == plan->profile_hash) return GHP_OK;
    ghp_profile_release(profile);
    if (status != GHP_OK) return status;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "the plan was made for another profile (hash %s, not %s); name the right one with "
        "--profile, or make the plan again with ghp-plan",
        said, found);
}

enum ghp_status ghp_inspect_verify(struct ghp_display *report, const struct ghp_plan *plan,
                                   const char *path, const char *profile_path)
{
    char text[GHP_CERTIFICATE_SENTENCE_SIZE];
    struct ghp_profile profile;
    enum ghp_status status;

    GHP_TRY(ghp_inspect_find_profile(plan, path, profile_path, &profile));
    status = ghp_plan_verify(plan, &profile);
    ghp_profile_release(&profile);
    if (status != GHP_OK) return status;
    ghp_display_bool(report, "sound", true);
    ghp_display_real(report, "predicted_step_s", plan->predicted.step_s);
    ghp_display_int(report, "peak_bytes", plan->predicted.peak_bytes);
    ghp_display_real(report, "gap", plan->certificate.gap);
    ghp_display_line(report, "sound: step %.6f ms, memory %lld bytes a worker",
                     plan->predicted.step_s * 1e3, (long long)plan->predicted.peak_bytes);
    ghp_display_line(report, "certificate: %s", ghp_certificate_sentence(&plan->certificate, text));
    return GHP_OK;
}
