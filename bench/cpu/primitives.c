/* bench/cpu/primitives.c - ghp-primitives: the floor of a training step on one worker's cores.
 *
 * For each pass of each convolution and linear layer, every primitive that oneDNN offers - algorithm, layout,
 * implementation - is timed alone, on tensors that lie as it likes best, without reorders, biases or anything between;
 * the best of each, summed over the network, is the floor. The optimizer's update of as many weights and the FMA peak
 * of the cores are shown with it. It knows oneDNN only through executor/backend/onednn/onednn.h and nothing of how ghp
 * chooses.
 *
 * A sample's time is wall clock, or (--clock cpu) the process' own time over its threads: on a machine that others use
 * at the same time the latter says what the work costs, though not what their traffic in caches and memory does to
 * it. */
#include "bench/cpu/primitives.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/base/table.h"
#include "core/program/lower/lower.h"
#include "executor/backend/backend.h"
#include "onnx/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *model_path;
static int64_t batch = 8, threads = 1, repeats = 5;
static int clock_choice;
static bool as_json;
static const char *const clocks[] = {"wall", "cpu", NULL};

static const struct ghp_opt options[] = {
    {.name = "model", .kind = GHP_OPT_TEXT, .target = &model_path, .help = "the network"},
    {.name = "batch",
     .kind = GHP_OPT_INT,
     .target = &batch,
     .min = 1,
     .max = 1 << 20,
     .help = "samples of a step"},
    {.name = "threads",
     .kind = GHP_OPT_INT,
     .target = &threads,
     .min = 1,
     .max = 1024,
     .help = "OpenMP threads"},
    {.name = "repeats",
     .kind = GHP_OPT_INT,
     .target = &repeats,
     .min = 1,
     .max = GHP_PRIMITIVE_REPEATS,
     .help = "samples of each primitive; their median counts"},
    {.name = "clock",
     .kind = GHP_OPT_CHOICE,
     .target = &clock_choice,
     .choices = clocks,
     .help = "wall clock, or the process' own time"},
    {.name = "json", .kind = GHP_OPT_FLAG, .target = &as_json, .help = "print one JSON object"},
};

static const struct ghp_tool tool = {
    .name = "ghp-primitives",
    .purpose = "times every primitive that oneDNN offers for a network, alone, and sums the best",
    .usage = "ghp-primitives --model MODEL [options]",
    .example = "build/bin/ghp-primitives --model models/lenet5.json --batch 64",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
};

struct row { /* a distinct pass of the network */
    char key[GHP_KEY_BYTES];
    struct ghp_local local;
    enum ghp_pass pass;
    int count;
    struct ghp_primitive best;
};

struct floor {
    int n;
    struct row *rows;
    double primitives_s, update_s, flops, peak_flops_per_s;
    int64_t weights;
};

static void add_row(struct floor *f, const struct ghp_instr *instr)
{
    char key[GHP_KEY_BYTES];
    ghp_local_key(&instr->local, key);
    for (int i = 0; i < f->n; i++)
        if (f->rows[i].pass == instr->pass && strcmp(f->rows[i].key, key) == 0) {
            f->rows[i].count++;
            return;
        }
    struct row *row = &f->rows[f->n++];
    *row = (struct row){.local = instr->local, .pass = instr->pass, .count = 1};
    memcpy(row->key, key, sizeof key);
}

/* The convolutions and linear layers of the one worker's program. */
static enum ghp_status collect(const struct ghp_model *model, struct floor *f)
{
    struct ghp_lowering lowering = {.model = model, .problem = {1, batch}, .element_bytes = 4};
    struct ghp_split *splits = ghp_alloc((size_t)model->n_layers, sizeof *splits);
    struct ghp_program program = {0};
    if (splits == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < model->n_layers; i++)
        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    enum ghp_status status = ghp_lower(&lowering, splits, 0, &program);
    free(splits);
    GHP_TRY(status);
    f->rows = ghp_alloc((size_t)program.n_instrs + 1, sizeof *f->rows);
    for (int i = 0; f->rows != NULL && i < program.n_instrs; i++) {
        const struct ghp_instr *instr = &program.instrs[i];
        if (instr->kind == GHP_INSTR_COMPUTE &&
            (instr->local.op == GHP_OP_CONV2D || instr->local.op == GHP_OP_LINEAR))
            add_row(f, instr);
    }
    for (int i = 0; i < program.n_buffers; i++)
        if (program.buffers[i].buffer_kind == GHP_BUFFER_WEIGHT)
            f->weights += program.buffers[i].elements;
    ghp_program_release(&program);
    return f->rows == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

static enum ghp_status measure(struct floor *f)
{
    const struct ghp_primitive_timing timing = {
        .threads = (int)threads, .repeats = (int)repeats, .cpu = clock_choice == 1};
    enum ghp_status status = GHP_OK;
    ghp_progress_begin("passes", 0, f->n);
    for (int i = 0; i < f->n && status == GHP_OK; i++) {
        struct row *row = &f->rows[i];
        ghp_progress_step(i, "%s", row->key);
        status = ghp_primitive_best(&row->local, row->pass, timing, &row->best);
        f->primitives_s += row->count * row->best.seconds;
        f->flops += row->count * (double)ghp_local_flops(&row->local, row->pass);
    }
    ghp_progress_end();
    GHP_TRY(status);
    GHP_TRY(ghp_primitive_update(f->weights, timing, &f->update_s));
    f->peak_flops_per_s = ghp_primitive_peak(timing);
    return GHP_OK;
}

static json_t *row_json(const struct row *row)
{
    return json_pack("{s:s, s:s, s:i, s:f, s:f, s:s, s:i}", "key", row->key, "pass",
                     ghp_pass_name(row->pass), "count", row->count, "seconds", row->best.seconds,
                     "spread", row->best.spread, "way", row->best.name, "ways", row->best.variants);
}

static enum ghp_status print_json(const struct floor *f, const struct ghp_model *model)
{
    json_t *rows = json_array();
    for (int i = 0; i < f->n; i++)
        json_array_append_new(rows, row_json(&f->rows[i]));
    json_t *root = json_pack("{s:s, s:s, s:s, s:I, s:i, s:s, s:i, s:f, s:f, s:f, s:f, s:o}",
                             "format", "ghp.primitives/1", "onednn", ghp_primitive_library(),
                             "model", model->name, "batch", (json_int_t)batch, "threads",
                             (int)threads, "clock", clocks[clock_choice], "repeats", (int)repeats,
                             "primitives_s", f->primitives_s, "update_s", f->update_s, "flops",
                             f->flops, "peak_flops_per_s", f->peak_flops_per_s, "passes", rows);
    return ghp_json_print(root, stdout);
}

static enum ghp_status print_table(const struct floor *f, const struct ghp_model *model)
{
    struct ghp_table *t = ghp_table_open();
    ghp_table_note(
        t, "%s, batch %lld, %d thread(s), oneDNN %s, %s clock: the quickest of each pass",
        model->name, (long long)batch, (int)threads, ghp_primitive_library(), clocks[clock_choice]);
    ghp_table_note(
        t, "primitives %.2f ms, update %.2f ms; %.1f GFLOP at a peak of %.1f GFLOP/s: %.2f ms",
        1e3 * f->primitives_s, 1e3 * f->update_s, 1e-9 * f->flops, 1e-9 * f->peak_flops_per_s,
        1e3 * f->flops / f->peak_flops_per_s);
    ghp_table_column(t, "pass", "", 'l');
    ghp_table_column(t, "times", "", 'r');
    ghp_table_column(t, "each", "ms", 'r');
    ghp_table_column(t, "spread", "%", 'r');
    ghp_table_column(t, "of peak", "%", 'r');
    ghp_table_column(t, "way", "", 'l');
    ghp_table_column(t, "operation", "", 'l');
    for (int i = 0; i < f->n; i++) {
        const struct row *row = &f->rows[i];
        double flops_per_s = (double)ghp_local_flops(&row->local, row->pass) / row->best.seconds;
        ghp_table_row(t);
        ghp_table_cell(t, "%s", ghp_pass_name(row->pass));
        ghp_table_cell(t, "%d", row->count);
        ghp_table_cell(t, "%.3f", 1e3 * row->best.seconds);
        ghp_table_cell(t, "%.1f", 100 * row->best.spread);
        ghp_table_cell(t, "%.0f", 100 * flops_per_s / f->peak_flops_per_s);
        ghp_table_cell(t, "%s", row->best.name);
        ghp_table_cell(t, "%s", row->key);
    }
    enum ghp_status status = ghp_table_print(t, stdout);
    ghp_table_close(t);
    return status;
}

static enum ghp_status run(void)
{
    struct ghp_model model = {0};
    struct floor f = {0};
    enum ghp_status status = GHP_OK;
    if (model_path == NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "no network given; give one with --model MODEL");
    GHP_TRY(ghp_network_load(model_path, &model));
    GHP_TRY_GOTO(status, collect(&model, &f), done);
    GHP_TRY_GOTO(status, measure(&f), done);
    status = as_json ? print_json(&f, &model) : print_table(&f, &model);
done:
    free(f.rows);
    ghp_model_release(&model);
    return status;
}

int main(int argc, char **argv)
{
    enum ghp_status status = ghp_opts_parse(&tool, argc, argv, NULL, 0, NULL);

    if (status == GHP_OK && !ghp_opts_done()) status = run();
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
