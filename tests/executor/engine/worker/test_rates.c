/* ghp-test: np=3 np_full=1 timeout=120
 *
 * Learning rates by norms against loops in double written here by their formulas, which are fed by one worker alone
 * that makes each worker batch's gradients by itself: under splits by data and mixed ones, with an all-reduce and a
 * sharded update, and in micro-batches; in double within 1e-10 of each weight's own size or 1. A formula that forgets a
 * worker batch, or a reduction that is dropped, differs by more. A training continues from a checkpoint to the same
 * bits, with what its rates have learnt; another scaling's checkpoint is refused. */
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <math.h>

enum { STEPS = 4, MOST_TENSORS = 32 };
static const double limit = 1e-10;

static struct ghp_transport *transport;
static int workers;
static char folder[BENCH_FOLDER];

/* ---- by hand ---- */

struct hand {
    const char *name;
    int n, batches;
    bool forgets; /* the last worker batch, in the sum of squares */
    double *m[MOST_TENSORS], *v[MOST_TENSORS];
    double top[MOST_TENSORS], bottom[MOST_TENSORS], gain[MOST_TENSORS];
    double own[MOST_TENSORS]; /* of the step: sum of the batches' squares */
};

static double square_of(const double *x, int64_t n)
{
    double sum = 0;

    for (int64_t e = 0; e < n; e++)
        sum += x[e] * x[e];
    return sum;
}

/* The mean of all worker batches' gradients, and their squares, by a worker with a batch of its own. */
static void gradients_by_hand(struct bench *b, struct ghp_worker *alone, int t, struct hand *hand,
                              struct ghp_snapshot *mean)
{
    struct ghp_snapshot one = {0};
    struct ghp_step step = ghp_training_config_step(&b->training_config, t);
    int64_t batch = step.valid / hand->batches;

    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &one), GHP_OK);
    memset(hand->own, 0, sizeof hand->own);
    step.valid = batch;
    for (int i = 0; i < hand->batches; i++, step.samples += batch) {
        step.index = (uint64_t)i;
        for (int j = 0; j < one.list.n_trained; j++)
            CHECK_STATUS(ghp_parameters_scatter(alone, &one.list.items[j], GHP_BUFFER_WEIGHT,
                                                mean->weights[j]),
                         GHP_OK);
        CHECK_STATUS(ghp_worker_step(alone, &step), GHP_OK);
        CHECK_STATUS(ghp_worker_settle(alone), GHP_OK);
        CHECK_STATUS(ghp_snapshot_gradients(&one, alone), GHP_OK);
        CHECK_STATUS(ghp_worker_flush(alone), GHP_OK);
        for (int j = 0; j < one.list.n_trained; j++) {
            int64_t n = one.list.items[j].param->elements;

            if (!hand->forgets || i + 1 < hand->batches)
                hand->own[j] += square_of(one.gradients[j], n);
            for (int64_t e = 0; e < n; e++)
                mean->gradients[j][e] =
                    (i == 0 ? 0 : mean->gradients[j][e]) + one.gradients[j][e] / hand->batches;
        }
    }
    ghp_snapshot_release(&one);
}

/* adascale's of all tensors, lena's of each. */
static void rates_by_hand(struct hand *hand, const struct ghp_snapshot *s, double ramp,
                          double *factors)
{
    double a = fmin(hand->batches / 1000.0, 1), n = hand->batches, top = 0, bottom = 0, whole;

    for (int j = 0; j < hand->n; j++) {
        double g = square_of(s->gradients[j], s->list.items[j].param->elements);

        hand->top[j] = a * hand->own[j] / n + (1 - a) * hand->top[j];
        hand->bottom[j] = a * g + (1 - a) * hand->bottom[j];
        top += hand->top[j];
        bottom += hand->bottom[j];
    }
    whole = fmin((top + 1e-6) / (bottom + 1e-6), n);
    for (int j = 0; j < hand->n; j++) {
        double ratio = (hand->top[j] + 1e-6) / (hand->bottom[j] + 1e-6);

        factors[j] = whole;
        if (strcmp(hand->name, "adascale") == 0) continue;
        factors[j] = fmin(ratio, n) * (hand->gain[j] < ramp ? hand->gain[j] / ramp : 1);
        hand->gain[j] += ratio > n ? whole : ratio;
    }
}

static void sgd_by_hand(const struct ghp_hyperparameters *h, double factor, bool inside, double g,
                        double *w, double *m)
{
    double rate = h->learning_rate * factor, d = g + h->weight_decay * *w;

    *m = h->momentum * *m + (inside ? rate * d : d);
    *w -= inside ? *m : rate * *m;
}

static double lars_factor(double decay, double w, double g)
{
    return w > 0 && g > 0 ? 0.001 * w / (g + decay * w) : 0.001;
}

static void lamb_by_hand(const struct ghp_hyperparameters *h, int t, bool decays, int64_t n,
                         double *at[4])
{
    double *g = at[0], *w = at[1], *m = at[2], *v = at[3], squares = 0, size, ratio = 1;

    size = sqrt(square_of(w, n));
    for (int64_t e = 0; e < n; e++) {
        m[e] = h->beta1 * m[e] + (1 - h->beta1) * g[e];
        v[e] = h->beta2 * v[e] + (1 - h->beta2) * g[e] * g[e];
        g[e] = m[e] / (1 - pow(h->beta1, t)) / (sqrt(v[e] / (1 - pow(h->beta2, t))) + h->epsilon) +
               (decays ? h->weight_decay : 0) * w[e];
        squares += g[e] * g[e];
    }
    if (size > 0 && squares > 0) ratio = size / sqrt(squares);
    for (int64_t e = 0; e < n; e++)
        w[e] -= h->learning_rate * ratio * g[e];
}

/* s: weights and gradients before; weights after. */
static void hand_step(struct hand *hand, const struct ghp_step *step, int t, struct ghp_snapshot *s)
{
    const struct ghp_hyperparameters *h = &step->hyperparameters;
    bool lars = strcmp(hand->name, "lars") == 0;
    double factors[MOST_TENSORS] = {0};

    if (strcmp(hand->name, "lena") == 0 || strcmp(hand->name, "adascale") == 0)
        rates_by_hand(hand, s, h->ramp, factors);
    for (int j = 0; j < hand->n; j++) {
        const struct ghp_param *param = s->list.items[j].param;
        double *at[4] = {s->gradients[j], s->weights[j], hand->m[j], hand->v[j]};

        if (lars)
            factors[j] = lars_factor(h->weight_decay, sqrt(square_of(at[1], param->elements)),
                                     sqrt(square_of(at[0], param->elements)));
        if (strcmp(hand->name, "lamb") == 0)
            lamb_by_hand(h, t + 1, param->n_dims >= 2, param->elements, at);
        else
            for (int64_t e = 0; e < param->elements; e++)
                sgd_by_hand(h, factors[j], lars, at[0][e], &at[1][e], &at[2][e]);
    }
}

/* The greatest difference of a weight over its size or 1. */
static double difference_of(const struct ghp_snapshot *a, const struct ghp_snapshot *b)
{
    double most = 0;

    for (int j = 0; j < a->list.n_trained; j++)
        for (int64_t e = 0; e < a->list.items[j].param->elements; e++) {
            double difference =
                fabs(a->weights[j][e] - b->weights[j][e]) / fmax(1, fabs(a->weights[j][e]));

            if (!(difference <= most)) most = difference;
        }
    return most;
}

/* ---- trainings ---- */

struct run { /* how workers train */
    const char *what;
    const struct ghp_split *splits;
    struct ghp_sync sync;
    const struct ghp_staging *staging;
    enum ghp_fault fault;
};

static bool open_worker(struct bench *b, const struct run *run, struct ghp_worker **worker)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;

    rank_plan.splits = run->splits;
    rank_plan.lowering.method.sync = run->sync;
    rank_plan.lowering.staging = run->staging;
    rank_plan.run.fault = run->fault;
    rank_plan.lowering.method.optimizer = b->training_config.optimizer;
    return CHECK_STATUS(bench_open_worker(b, &rank_plan, worker), GHP_OK);
}

/* One worker with a worker batch, whose updates nobody reads. */
static bool open_alone(struct bench *b, const struct ghp_split *data, int batches,
                       struct ghp_worker **worker)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct run run = {.splits = data};
    bool opened;

    b->rank_plan.lowering.problem =
        (struct ghp_problem){1, b->rank_plan.lowering.problem.global_batch / batches};
    b->rank_plan.rank = 0;
    b->rank_plan.lowering.method.scaling = NULL;
    opened = open_worker(b, &run, worker);
    b->rank_plan = rank_plan;
    return opened;
}

/* The difference of a training from the one by hand, after its last step. */
static double train(struct bench *b, struct run run, bool forgets)
{
    struct ghp_worker *worker = NULL, *alone = NULL;
    struct ghp_snapshot now = {0}, by_hand = {0};
    struct ghp_split *data = case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1);
    struct hand hand = {.name = b->rank_plan.lowering.method.scaling->name,
                        .batches = workers * ghp_staging_micro_batches(run.staging),
                        .forgets = forgets};
    double difference = 0;

    b->training_config.batches = hand.batches;
    if (!open_worker(b, &run, &worker) || !open_alone(b, data, hand.batches, &alone)) return 1;
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &now), GHP_OK);
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &by_hand), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&by_hand, worker), GHP_OK);
    hand.n = by_hand.list.n_trained;
    CHECK(hand.n <= MOST_TENSORS);
    for (int j = 0; j < hand.n; j++) {
        hand.m[j] = ghp_alloc((size_t)by_hand.list.items[j].param->elements, sizeof(double));
        hand.v[j] = ghp_alloc((size_t)by_hand.list.items[j].param->elements, sizeof(double));
    }
    for (int t = 0; t < STEPS && difference <= limit; t++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, t);

        gradients_by_hand(b, alone, t, &hand, &by_hand);
        hand_step(&hand, &step, t, &by_hand);
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
        CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
        CHECK_STATUS(ghp_snapshot_weights(&now, worker), GHP_OK);
        difference = difference_of(&by_hand, &now);
    }
    for (int j = 0; j < hand.n; j++) {
        free(hand.m[j]);
        free(hand.v[j]);
    }
    ghp_snapshot_release(&now);
    ghp_snapshot_release(&by_hand);
    ghp_worker_close(worker);
    ghp_worker_close(alone);
    free(data);
    return difference;
}

static void check_same(struct bench *b, struct run run)
{
    double difference = train(b, run, false);

    if (!CHECK(difference <= limit))
        fprintf(stderr, "%s, %s, %s: difference %.3g\n", b->rank_plan.lowering.method.scaling->name,
                run.what, ghp_sync_ops_of(run.sync)->name, difference);
}

static const struct ghp_lr_scaling *named(const char *name)
{
    for (int i = 1; ghp_lr_scaling_names[i] != NULL; i++)
        if (strcmp(ghp_lr_scaling_names[i], name) == 0) return ghp_lr_scaling_at(i);
    return NULL;
}

static void choose(struct bench *b, const char *name)
{
    b->rank_plan.lowering.method.scaling = named(name);
    b->training_config.optimizer = b->rank_plan.lowering.method.scaling->optimizer != NULL
                                       ? b->rank_plan.lowering.method.scaling->optimizer
                                       : &ghp_optimizer_sgd;
    b->training_config.hyperparameters = ghp_optimizer_usual(b->training_config.optimizer);
    b->training_config.hyperparameters.weight_decay = 0.1;
    b->training_config.schedule = (struct ghp_lr_schedule){
        .base = strcmp(name, "lars") == 0 ? 10 : 0.01, .steps = STEPS, .warmup_steps = 2};
}

static void check_scalings(struct bench *b)
{
    static const char *const names[] = {"lars", "lamb", "adascale", "lena"};
    struct ghp_split *data = case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0,
                                         workers),
                     *mixed = case_splits(&b->model, b->rank_plan.lowering.problem, CASE_MIXED, 3,
                                          workers);
    struct ghp_staging parts = {.micro_batches = 2};
    struct run run = {.what = "data", .splits = data};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        choose(b, names[i]);
        check_same(b, run);
        check_same(b, (struct run){.what = "data", .splits = data, .sync = ghp_sync_at(1)});
        check_same(b, (struct run){.what = "micro-batches", .splits = data, .staging = &parts});
        if (b->rank_plan.lowering.method.scaling->rule->weights)
            check_same(
                b, (struct run){.what = "mixed splits", .splits = mixed, .sync = ghp_sync_at(1)});
        if (b->rank_plan.lowering.method.scaling->rule->batches && workers > 1)
            CHECK(train(b, run, true) > limit);
    }
    run.fault = GHP_FAULT_DROP_REDUCTION;
    if (workers > 1) CHECK(train(b, run, false) > limit);
    free(mixed);
    free(data);
}

/* ---- checkpoints ---- */

static void check_resume(struct bench *b, struct ghp_comm *world)
{
    struct ghp_split *data = case_splits(&b->model, b->rank_plan.lowering.problem, CASE_DATA, 0, 1);
    struct run run = {.splits = data};
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_checkpoint checkpoint;
    struct ghp_worker *worker = NULL;
    uint64_t whole = 0;

    choose(b, "lena");
    b->training_config.batches = workers;
    if (open_worker(b, &run, &worker)) {
        CHECK_STATUS(bench_steps(b, worker, 0, 2), GHP_OK);
        CHECK_STATUS(ghp_checkpoint_save(&kept, worker, (struct ghp_checkpoint){.step = 2}),
                     GHP_OK);
        CHECK_STATUS(bench_steps(b, worker, 2, STEPS), GHP_OK);
        whole = bench_fingerprint(worker);
        ghp_worker_close(worker);
    }
    if (open_worker(b, &run, &worker)) {
        CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
        CHECK_STATUS(bench_steps(b, worker, 2, STEPS), GHP_OK);
        CHECK(bench_fingerprint(worker) == whole);
        ghp_worker_close(worker);
    }
    if (workers > 1 &&
        open_worker(b, &run, &worker)) { /* what was learnt decides: without it the rates differ */
        CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
        ghp_worker_rates(worker)->values[0] *= 2;
        CHECK_STATUS(bench_steps(b, worker, 2, STEPS), GHP_OK);
        CHECK(bench_fingerprint(worker) != whole);
        ghp_worker_close(worker);
    }
    b->rank_plan.lowering.method.scaling = NULL;
    if (open_worker(b, &run, &worker)) {
        CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_ERR_INPUT);
        CHECK(strstr(ghp_status_message(), "--lr-scaling lena") != NULL);
        ghp_worker_close(worker);
    }
    CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
    free(data);
}

CHECK_TEST(rates)
{
    struct bench b;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    CHECK_STATUS(bench_open(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", "reference", 8),
                 GHP_OK);
    check_scalings(&b);
    bench_make_folder(transport, workers, "lr_scaling", folder);
    check_resume(&b, bench_workers(transport, workers));
    bench_close(&b);
    bench_remove_folder(transport, workers, folder);
    ghp_transport_end(transport);
    return check_end();
}
