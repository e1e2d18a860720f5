/* ghp-test: np=3 np_full=4 timeout=300
 *
 * Sharded parameters in plans drawn by chance train like one worker: each layer has any sharding that it can take, any
 * split, in one or two stages, in micro-batches by 1f1b, fill-drain and interleaved, with layers recomputed, samples
 * read ahead, late reductions, of four workers within groups of two, clipped gradients, and learning rates by norms; in
 * double on the reference backend, some in float on
 * oneDNN. The arena takes what the program says, and no worker's copy of a parameter differs. */
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

enum { CASES = 40, BATCH = 24, MOST_LAYERS = 512 };

static struct ghp_transport *transport;
static int workers;

struct tally {
    int plans, staged, interleaved, scaled, layers;
};

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static unsigned draw(unsigned *state, unsigned n)
{
    return next_random(state) % n;
}

/* Whether a worker batch's own gradients can be had: no layer shares weights, or has statistics of some samples. */
static bool gives_batches(const struct ghp_model *model)
{
    for (int l = 0; l < model->n_layers; l++)
        if (model->layers[l].tied > 0 || model->layers[l].op == GHP_OP_BATCH_NORM) return false;
    return true;
}

/* An optimizer, clipped or not, or learning rates by norms. Returns whether stages and splits can go with it. */
static bool draw_method(struct bench *b, unsigned *state)
{
    struct ghp_hyperparameters *h = &b->training_config.hyperparameters;
    struct ghp_method *method = &b->rank_plan.lowering.method;
    const struct ghp_optimizer *optimizer = &ghp_optimizer_sgd;
    const struct ghp_lr_scaling *scaling = NULL;

    if (draw(state, 3) == 0) scaling = ghp_lr_scaling_at(2 + (int)draw(state, 4));
    if (ghp_lr_scaling_takes_batches(scaling) && !gives_batches(&b->model)) scaling = NULL;
    if (scaling != NULL && scaling->optimizer != NULL)
        optimizer = scaling->optimizer;
    else if (scaling == NULL && draw(state, 2) == 0)
        optimizer = &ghp_optimizer_adamw;
    if (optimizer == &ghp_optimizer_adamw) {
        *h = ghp_optimizer_usual(optimizer);
        h->epsilon = 1e-3; /* or a gradient that is rounding alone moves weights as far as any */
        b->training_config.schedule.base = 0.001;
    }
    if (scaling == NULL && draw(state, 3) == 0) method->clip_norm = h->clip_norm = 0.1;
    b->training_config.optimizer = method->optimizer = optimizer;
    method->scaling = scaling;
    method->bucket_bytes = draw(state, 2) == 0 ? 0 : 2000 << draw(state, 5);
    return !ghp_lr_scaling_takes_norms(scaling);
}

/* All workers as one stage, or two stages. */
static bool draw_staging(const struct bench *b, bool stages, unsigned *state, struct ghp_staging *s)
{
    int counts[3] = {0}, micro_batches = 1 << draw(state, 3);

    if (stages && draw(state, 2) == 0) {
        counts[0] = 1 + (int)draw(state, (unsigned)workers - 1);
        counts[1] = workers - counts[0];
    }
    if (counts[1] > 0 && draw(state, 3) == 0) {
        *s = case_interleaved(&b->model, counts, 2 + (int)draw(state, 2),
                              2 * (1 + (int)draw(state, 3)), draw(state, 1000));
    } else {
        *s = case_staging(&b->model, counts, micro_batches, draw(state, 1000));
        s->pipeline = draw(state, 2) == 0 ? GHP_PIPELINE_1F1B : GHP_PIPELINE_FILL_DRAIN;
    }
    return case_staging_fits(&b->model, b->rank_plan.lowering.problem, s);
}

static void say(const struct bench *b, unsigned seed, const struct ghp_staging *s,
                const struct ghp_split *splits, const struct ghp_verification *v)
{
    char text[GHP_SPLIT_TEXT_BYTES];

    if (transport->control->rank != 0) return;
    fprintf(stderr, "seed %u: %s, %d micro-batches (%s), %d stages: e_w %.3g, e_g %.3g\n", seed,
            b->model.name, s->micro_batches, ghp_pipeline_names[s->pipeline], s->n,
            v->weight_difference, v->gradient_difference);
    for (int l = 0; l < b->model.n_layers; l++) {
        ghp_split_format(splits[l], text, sizeof text);
        fprintf(stderr, "%s %s, ", b->model.layers[l].name, text);
    }
    fprintf(stderr, "\n");
}

/* Trains by the plan, and compares with one worker. */
static void check_train(struct bench *b, unsigned seed, const struct ghp_staging *s,
                        const struct ghp_split *splits)
{
    struct ghp_rank_plan *rank_plan = &b->rank_plan;
    struct ghp_worker *worker = NULL;
    struct ghp_snapshot plan = {0};
    struct ghp_verification v = {0};
    int different = 0;

    rank_plan->splits = splits;
    rank_plan->lowering.staging = ghp_staging_or_none(s);
    CHECK_STATUS(bench_train_alone(b), GHP_OK);
    if (!CHECK_STATUS(bench_open_worker(b, rank_plan, &worker), GHP_OK)) {
        say(b, seed, s, splits, &v);
        return;
    }
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    CHECK_STATUS(ghp_verify_train(worker, &b->training_config, BENCH_STEPS, &plan), GHP_OK);
    CHECK_STATUS(
        ghp_verify_compare(&plan, &b->alone,
                           (struct ghp_precision){rank_plan->lowering.element_bytes, false}, &v),
        GHP_OK);
    if (!CHECK(v.passed)) say(b, seed, s, splits, &v);
    CHECK_STATUS(ghp_parameters_compare(worker, &plan.list, &different), GHP_OK);
    CHECK_EQ(different, -1);
    bench_fingerprint(worker);
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    ghp_worker_close(worker);
}

static bool check_plan(struct bench *b, unsigned seed, unsigned *state, struct tally *tally)
{
    struct ghp_problem whole = b->rank_plan.lowering.problem;
    bool recomputed[MOST_LAYERS] = {false}, free_choice = draw_method(b, state);
    struct ghp_split *splits;
    struct ghp_staging s;

    if (!draw_staging(b, free_choice, state, &s)) return false;
    splits = case_staged_splits(&b->model, &s, whole, free_choice ? draw(state, 1000) : 0);
    if (splits == NULL) return false;
    case_shard_staged(&b->model, &s, whole, draw(state, 1000), splits);
    if (draw(state, 2) == 0) {
        case_recomputed(&b->model, draw(state, 1000), recomputed);
        s.recompute = recomputed;
    }
    b->rank_plan.lowering.prefetch = draw(state, 2) == 0;
    b->rank_plan.run.reduces_late = s.n == 0 && draw(state, 3) == 0;
    b->rank_plan.lowering.method.shard_within = workers == 4 && draw(state, 2) == 0 ? 2 : 0;
    check_train(b, seed, &s, splits);
    tally->plans++;
    tally->staged += s.n > 1;
    tally->interleaved += s.n > 1 && s.pipeline == GHP_PIPELINE_INTERLEAVED;
    tally->scaled += !free_choice;
    for (int l = 0; l < b->model.n_layers; l++)
        tally->layers += splits[l].sharding != GHP_SHARDING_NONE;
    free(splits);
    return true;
}

/* Returns whether the case could be: ghost batches may not come out, or stages. */
static bool check_case(unsigned seed, struct tally *tally)
{
    static const char *const models[] = {GHP_SOURCE_DIR "/tests/executor/tied.json",
                                         GHP_SOURCE_DIR "/models/lenet5.json",
                                         GHP_SOURCE_DIR "/tests/executor/sequence.json",
                                         GHP_SOURCE_DIR "/tests/executor/gated.json",
                                         GHP_SOURCE_DIR "/models/small-resnet.json",
                                         GHP_SOURCE_DIR "/tests/executor/tokens.json"};
    unsigned state = seed * 2654435761u + 11u;
    const char *path = models[draw(&state, sizeof models / sizeof models[0])];
    bool quick = draw(&state, 4) == 0;
    struct bench_numbers numbers = {.ops = quick ? &ghp_backend_onednn : &ghp_backend_reference,
                                    .element_bytes = quick ? 4 : 8,
                                    .batch = BATCH};
    struct bench b;
    bool could;

    if (!CHECK_STATUS(bench_open_by(&b, transport, path, numbers), GHP_OK)) return false;
    for (int l = 0; l < b.model.n_layers; l++)
        if (b.model.layers[l].op == GHP_OP_BATCH_NORM) b.model.layers[l].norm.ghost_batch = 2;
    CHECK(b.model.n_layers <= MOST_LAYERS);
    could = check_plan(&b, seed, &state, tally);
    bench_close(&b);
    return could;
}

CHECK_TEST(drawn_shardings)
{
    unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    struct tally tally = {0};

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    for (; tally.plans < (argc > 1 ? 1 : check_cases(CASES)); seed++)
        if (!check_case(seed, &tally) && argc > 1) break;
    if (transport->control->rank == 0)
        printf("%d plans, %d in stages, %d of these interleaved, %d with rates by norms; "
               "%d layers sharded\n",
               tally.plans, tally.staged, tally.interleaved, tally.scaled, tally.layers);
    ghp_transport_end(transport);
    return check_end();
}
