/* ghp-test: timeout=120
 * tests/core/cost/test_stages.c - programs of stages: random stages, micro-batches, splits, schedules and layers made
 * again give sound programs whose step ends whatever lasts how long; the period is at least each worker's own work, at
 * most everything after everything; memory falls with micro-batches and with layers recomputed. */
#include "core/cost/simulate.h"
#include "tests/check.h"

#include <time.h>

enum { MOST_LAYERS = 512, TIMINGS = 6 };

static unsigned state = 3;

static int draw(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (unsigned)n);
}

struct staged {
    struct ghp_model model;
    struct ghp_staging staging;
    struct ghp_problem whole;
    bool recompute[MOST_LAYERS];
    struct ghp_split splits[MOST_LAYERS];
};

static bool makes_own(const struct ghp_layer *l)
{
    return l->op != GHP_OP_INPUT && l->op != GHP_OP_BATCH_NORM && l->op != GHP_OP_SOFTMAX_CE &&
           !ghp_op_in_place(l);
}

static void draw_splits(struct staged *c)
{
    struct ghp_split choices[GHP_MAX_CHOICES];

    for (int l = 0; l < c->model.n_layers; l++) {
        int stage = ghp_stage_of(&c->staging, l), n;
        struct ghp_placement placement =
            ghp_placement_of(&c->staging, c->model.n_layers, c->whole,
                             ghp_stage_representative(&c->staging, stage, c->whole));

        n = ghp_split_choices(&c->model.layers[l], placement.problem, choices, GHP_MAX_CHOICES);
        do
            c->splits[l] = choices[draw(n)];
        while (!ghp_stage_takes_tp_size(&c->staging, stage, c->whole, c->splits[l].tp_size));
        int owner = ghp_model_owner(&c->model, l);
        if (owner == l) continue;
        if (!ghp_stage_takes_tp_size(&c->staging, stage, c->whole, c->splits[owner].tp_size) ||
            !ghp_stage_partner_takes(&c->model, &c->staging, l, c->splits[owner].tp_size))
            c->splits[owner] = choices[0];
        c->splits[l] = ghp_split_of_tied(c->splits[owner]);
    }
}

/* The first layer after another that a cut may stand before; the number of layers if there is none. */
static int cut_after(const struct ghp_model *model, int layer)
{
    do
        layer++;
    while (layer < model->n_layers && !ghp_stage_may_start(model, layer));
    return layer;
}

/* Two or three stages of two or three chunks. */
static void draw_interleaved(const struct ghp_model *model, struct ghp_staging *s)
{
    int last = 0, chunks;

    s->n = 2 + draw(2);
    s->chunks = 2 + draw(2);
    s->micro_batches = s->n * (1 + draw(3));
    chunks = s->n * s->chunks;
    for (int k = 0; k < chunks; k++) {
        if (k > 0) last = cut_after(model, last + draw(1 + model->n_layers / (2 * chunks)));
        *(k < s->n ? &s->stage[k].first_layer : &s->later_chunk[k - s->n]) = last;
    }
}

/* Returns false if the draw cannot be. */
static bool draw_staging(struct staged *c)
{
    struct ghp_staging *s = &c->staging;
    int group = 0, last = 0;

    *s = (struct ghp_staging){.n = 1 + draw(6),
                              .micro_batches = 1 << draw(4),
                              .pipeline = (enum ghp_pipeline)draw(GHP_PIPELINE_COUNT)};
    for (int i = 0; i < s->n; i++) {
        last += i == 0 ? 0 : 1 + draw(c->model.n_layers / s->n);
        s->stage[i].first_layer = last;
    }
    if (s->pipeline == GHP_PIPELINE_INTERLEAVED) draw_interleaved(&c->model, s);
    for (int i = 0; i < s->n; i++)
        group += s->stage[i].workers = 1 + draw(3);
    c->whole = (struct ghp_problem){.workers = group * (1 + draw(2))};
    c->whole.global_batch = 12LL * s->micro_batches * c->whole.workers;
    for (int l = 0; l < c->model.n_layers; l++)
        c->recompute[l] = makes_own(&c->model.layers[l]) && draw(3) == 0;
    if (draw(2) == 0) s->recompute = c->recompute;
    return ghp_staging_check(s, &c->model, c->whole) == GHP_OK;
}

/* Durations between nothing and long: 0, or even in the logarithm over six decades. */
static double some_seconds(void)
{
    return draw(4) == 0 ? 0 : pow(10, -6 + 6 * draw(1000) / 1000.0);
}

/* Returns false if the step did not end. */
static bool check_timing(const struct ghp_programs *programs)
{
    const struct ghp_profile profile = {.overlap = {.compute = 1, .comm = 1, .link = 1}};
    struct ghp_cost *costs[GHP_MAX_STAGES] = {NULL};
    struct ghp_timing timings[GHP_MAX_STAGES];
    double all_s = 0, first_s = 0;

    for (int k = 0; k < programs->n; k++) {
        int n = programs->of[k].n_instrs;

        costs[k] = calloc((size_t)n, sizeof *costs[k]);
        if (!CHECK(costs[k] != NULL)) exit(1);
        for (int i = 0; i < n; i++) {
            costs[k][i].seconds = some_seconds();
            all_s += costs[k][i].seconds;
        }
    }
    if (CHECK_STATUS(ghp_simulate_all_with_costs(programs, &profile,
                                                 (const struct ghp_cost *const *)costs, timings),
                     GHP_OK))
        for (int k = 0; k < programs->n; k++) {
            double step_s = timings[k].step_s;

            CHECK(step_s >= fmax(timings[k].compute_s, timings[k].comm_s) * (1 - 1e-9));
            CHECK(step_s <= all_s * (1 + 1e-9));
            if (k == 0) first_s = step_s;
            CHECK_NEAR(step_s, first_s, 0);
            ghp_timing_release(&timings[k]);
        }
    for (int k = 0; k < programs->n; k++)
        free(costs[k]);
    return first_s > 0;
}

static void say(const struct staged *c)
{
    const struct ghp_staging *s = &c->staging;

    fprintf(stderr, "%s, %d workers, %d micro-batches (%s), %s, stages", c->model.name,
            c->whole.workers, s->micro_batches, ghp_pipeline_names[s->pipeline],
            s->recompute != NULL ? "some recomputed" : "all kept");
    for (int i = 0; i < s->n; i++)
        fprintf(stderr, " %d from %s", s->stage[i].workers,
                c->model.layers[s->stage[i].first_layer].name);
    for (int k = 0; k < ghp_staging_chunks(s) - ghp_staging_stages(s); k++)
        fprintf(stderr, ", then %s", c->model.layers[s->later_chunk[k]].name);
    fprintf(stderr, "\n");
}

static struct ghp_lowering lowering_of(const struct staged *c)
{
    return (struct ghp_lowering){
        .model = &c->model, .problem = c->whole, .element_bytes = 4, .staging = &c->staging};
}

static void check_model(const char *path, int ghost_batch, int cases)
{
    struct staged *c = calloc(1, sizeof *c);
    int ran = 0, interleaved = 0;

    if (!CHECK(c != NULL) || !CHECK_STATUS(ghp_model_load(path, &c->model), GHP_OK)) exit(1);
    for (int l = 0; l < c->model.n_layers; l++)
        if (c->model.layers[l].op == GHP_OP_BATCH_NORM)
            c->model.layers[l].norm.ghost_batch = ghost_batch;
    while (ran < cases) {
        struct ghp_programs programs;
        struct ghp_lowering lowering;

        if (!draw_staging(c)) continue;
        ran++;
        interleaved += ghp_staging_chunks(&c->staging) > c->staging.n;
        draw_splits(c);
        lowering = lowering_of(c);
        if (!CHECK_STATUS(ghp_lower_all(&lowering, c->splits, &programs), GHP_OK)) continue;
        for (int k = 0; k < programs.n; k++)
            CHECK_STATUS(ghp_program_check(&programs.of[k]), GHP_OK);
        for (int t = 0; t < TIMINGS; t++)
            if (!check_timing(&programs)) say(c);
        ghp_programs_release(&programs);
    }
    if (!CHECK(interleaved >= cases / 20))
        fprintf(stderr, "%s: %d interleaved of %d\n", path, interleaved, ran);
    ghp_model_release(&c->model);
    free(c);
}

/* ---- many micro-batches ---- */

enum { PIPES = 4 };

#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
static const double most_many_s = 60;
#else
/* zb-h1 has half as many steps more; 14 times as long if each send is looked for among all */
static const double most_many_s = 6;
#endif

/* The step of stages whose instructions take from one to ten whole seconds each. */
static double step_of(struct staged *c, int micro_batches)
{
    const struct ghp_profile profile = {.overlap = {.compute = 1, .comm = 1, .link = 1}};
    struct ghp_cost *costs[PIPES] = {NULL};
    struct ghp_timing timings[PIPES];
    struct ghp_programs programs;
    double step_s = 0;

    c->staging.micro_batches = micro_batches;
    c->whole.global_batch = micro_batches;
    struct ghp_lowering lowering = lowering_of(c);
    lowering.unplaced = true;
    if (!CHECK_STATUS(ghp_lower_all(&lowering, c->splits, &programs), GHP_OK)) return 0;
    for (int k = 0; k < programs.n; k++) {
        costs[k] = calloc((size_t)programs.of[k].n_instrs, sizeof *costs[k]);
        if (!CHECK(costs[k] != NULL)) exit(1);
        for (int i = 0; i < programs.of[k].n_instrs; i++)
            costs[k][i].seconds = 1 + programs.of[k].instrs[i].layer % 10;
    }
    if (CHECK_STATUS(ghp_simulate_all_with_costs(&programs, &profile,
                                                 (const struct ghp_cost *const *)costs, timings),
                     GHP_OK)) {
        step_s = timings[0].step_s;
        for (int k = 0; k < programs.n; k++)
            ghp_timing_release(&timings[k]);
    }
    for (int k = 0; k < programs.n; k++)
        free(costs[k]);
    ghp_programs_release(&programs);
    return step_s;
}

/* Each further micro-batch adds the same to the step, and no more than its share to the processor time that the
 * simulation takes. */
static void check_many(void)
{
    static const char *const firsts[PIPES] = {NULL, "conv2", "fc1", "fc2"};
    struct staged *c = calloc(1, sizeof *c);
    double most_s = 0;

    if (!CHECK(c != NULL)) return;
    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/lenet5.json", &c->model), GHP_OK);
    c->whole.workers = c->staging.n = PIPES;
    for (int i = 0; i < PIPES; i++) {
        c->staging.stage[i].workers = 1;
        if (i > 0) c->staging.stage[i].first_layer = ghp_model_find(&c->model, firsts[i]);
    }
    for (int l = 0; l < c->model.n_layers; l++)
        c->splits[l] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    for (int p = 0; p < GHP_PIPELINE_INTERLEAVED; p++) {
        clock_t began = clock();
        double few_s, more_s, many_s;

        c->staging.pipeline = (enum ghp_pipeline)p;
        few_s = step_of(c, GHP_MAX_MICRO_BATCHES / 4);
        more_s = step_of(c, GHP_MAX_MICRO_BATCHES / 2);
        many_s = step_of(c, GHP_MAX_MICRO_BATCHES);
        CHECK(few_s > 0);
        CHECK_NEAR(many_s - more_s, 2 * (more_s - few_s), 0);
        most_s = fmax(most_s, (double)(clock() - began) / CLOCKS_PER_SEC);
    }
    if (!CHECK(most_s <= most_many_s)) fprintf(stderr, "%.2f s\n", most_s);
    ghp_model_release(&c->model);
    free(c);
}

/* Three stages, the middle one with unlike numbers of messages to its two neighbours, wherever the cuts are. */
static void check_cuts(void)
{
    struct staged *c = calloc(1, sizeof *c);
    int ran = 0;

    if (!CHECK(c != NULL)) return;
    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/gpt-nano.json", &c->model), GHP_OK);
    c->whole.workers = c->staging.n = 3;
    for (int i = 0; i < 3; i++)
        c->staging.stage[i].workers = 1;
    for (int l = 0; l < c->model.n_layers; l++)
        c->splits[l] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    for (int a = 1; a < c->model.n_layers; a++)
        for (int b = a + 1; b < c->model.n_layers; b++) {
            c->staging.stage[1].first_layer = a;
            c->staging.stage[2].first_layer = b;
            c->staging.micro_batches = 4;
            c->whole.global_batch = 4;
            if (ghp_staging_check(&c->staging, &c->model, c->whole) != GHP_OK) continue;
            if (!CHECK(step_of(c, 4) > 0)) say(c);
            ran++;
        }
    CHECK(ran > 100);
    ghp_model_release(&c->model);
    free(c);
}

/* ---- numbers ---- */

/* In bfloat16 weights' gradients have four bytes a number, even those of further micro-batches that are added to the
 * sum. */
static void check_gradients(void)
{
    struct staged *c = calloc(1, sizeof *c);
    struct ghp_programs programs;
    int further = 0;

    if (!CHECK(c != NULL)) return;
    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/lenet5.json", &c->model), GHP_OK);
    c->whole = (struct ghp_problem){.workers = 1, .global_batch = 8};
    c->staging.micro_batches = 4;
    for (int l = 0; l < c->model.n_layers; l++)
        c->splits[l] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    struct ghp_lowering lowering = lowering_of(c);
    lowering.element_bytes = 2;
    if (!CHECK_STATUS(ghp_lower_all(&lowering, c->splits, &programs), GHP_OK)) return;
    for (int i = 0; i < programs.of[0].n_instrs; i++) {
        const struct ghp_instr *instr = &programs.of[0].instrs[i];
        const struct ghp_buffer *dw =
            instr->at.dw[0] >= 0 ? &programs.of[0].buffers[instr->at.dw[0]] : NULL;

        if (dw == NULL) continue;
        CHECK(dw->bytes >= 4 * dw->elements);
        if (instr->kind == GHP_INSTR_ACCUMULATE) CHECK_EQ(instr->bytes, 4 * dw->elements);
        further += instr->micro > 0;
    }
    CHECK(further > 0);
    ghp_programs_release(&programs);
    ghp_model_release(&c->model);
    free(c);
}

/* ---- memory ---- */

static int64_t peak_of(const struct staged *c)
{
    struct ghp_lowering lowering = lowering_of(c);
    struct ghp_programs programs;
    int64_t peak;

    if (!CHECK_STATUS(ghp_lower_all(&lowering, c->splits, &programs), GHP_OK)) return 0;
    peak = ghp_programs_peak_bytes(&programs);
    ghp_programs_release(&programs);
    return peak;
}

/* A chain whose activations outweigh its weights. */
static void check_memory(void)
{
    struct staged *c = calloc(1, sizeof *c);
    int64_t plain, few, recomputed, drained;

    if (!CHECK(c != NULL)) return;
    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/lenet5.json", &c->model), GHP_OK);
    c->whole = (struct ghp_problem){.workers = 2, .global_batch = 512};
    for (int l = 0; l < c->model.n_layers; l++)
        c->splits[l] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    plain = peak_of(c);
    c->staging.micro_batches = 8;
    few = peak_of(c);
    CHECK(few < plain / 2);
    c->staging = (struct ghp_staging){.recompute = c->recompute};
    for (int l = 0; l < c->model.n_layers; l++) /* kept: what pools make */
        c->recompute[l] =
            makes_own(&c->model.layers[l]) && c->model.layers[l].op != GHP_OP_MAX_POOL;
    recomputed = peak_of(c);
    CHECK(recomputed < plain);
    c->staging = (struct ghp_staging){.n = 2, .micro_batches = 8};
    c->staging.stage[0].workers = c->staging.stage[1].workers = 1;
    c->staging.stage[1].first_layer = ghp_model_find(&c->model, "fc1");
    few = peak_of(c);
    c->staging.pipeline = GHP_PIPELINE_FILL_DRAIN;
    drained = peak_of(c);
    CHECK(few < drained);
    ghp_model_release(&c->model);
    free(c);
}

CHECK_TEST(stages)
{
    check_model(GHP_SOURCE_DIR "/models/lenet5.json", 0, check_cases(60));
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 1, check_cases(60));
    check_model(GHP_BINARY_DIR "/tests/seeds/model/drawn.json", 0, check_cases(60));
    check_model(GHP_SOURCE_DIR "/tests/executor/tied.json", 0, check_cases(60));
    check_many();
    check_cuts();
    check_gradients();
    check_memory();
    return check_end();
}
