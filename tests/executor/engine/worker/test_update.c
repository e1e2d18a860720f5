/* ghp-test: np=2 np_full=1,4 timeout=300
 *
 * Every optimizer against double loops written here by its formula, fed with the gradients that the workers reduced:
 * ten steps under splits by data and mixed ones, with an all-reduce and a sharded update, in two stages and in
 * micro-batches, with gradients as they are and clipped; in double within 1e-10, in float within 1e-5 of each weight's
 * own size or 1. The norm is the one of all gradients. A training continues from a checkpoint with all moments under
 * other splits and by one worker; another optimizer's checkpoint is refused. */
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <float.h>
#include <math.h>

enum { STEPS = 10 };

static struct ghp_transport *transport;
static int workers;
static char folder[BENCH_FOLDER];

/* ---- by hand ---- */

struct hand { /* all parameters, and two more tensors for each */
    int n;
    double **w, **m, **v;
    double norm, least_scale; /* of the last step's gradients; of all steps */
};

static double **copies_of(double *const *values, const struct ghp_tensors_list *list)
{
    double **copies = ghp_alloc((size_t)list->n_trained, sizeof *copies);

    for (int i = 0; i < list->n_trained; i++) {
        size_t n = (size_t)list->items[i].param->elements;

        copies[i] = ghp_alloc(n, sizeof **copies);
        if (values != NULL) memcpy(copies[i], values[i], n * sizeof **copies);
    }
    return copies;
}

static void hand_open(const struct ghp_snapshot *first, struct hand *hand)
{
    *hand = (struct hand){.n = first->list.n_trained, .least_scale = 1};
    hand->w = copies_of(first->weights, &first->list);
    hand->m = copies_of(NULL, &first->list);
    hand->v = copies_of(NULL, &first->list);
}

static void hand_close(struct hand *hand)
{
    for (int i = 0; i < hand->n; i++) {
        free(hand->w[i]);
        free(hand->m[i]);
        free(hand->v[i]);
    }
    free(hand->w);
    free(hand->m);
    free(hand->v);
}

struct element { /* of a parameter: what the gradient `g` of step t, from 1, moves */
    double *w, *m, *v;
    int t;
    bool is_matrix; /* of two or more dimensions */
};

static void sgd_by_hand(const struct ghp_hyperparameters *h, double g, const struct element *at)
{
    double *w = at->w, *m = at->m;

    *m = h->momentum * *m + g + h->weight_decay * *w;
    *w -= h->learning_rate * *m;
}

static void adamw_by_hand(const struct ghp_hyperparameters *h, double g, const struct element *at)
{
    double *w = at->w, *m = at->m, *v = at->v, mean, square;

    if (at->is_matrix) *w -= h->learning_rate * h->weight_decay * *w;
    *m = h->beta1 * *m + (1 - h->beta1) * g;
    *v = h->beta2 * *v + (1 - h->beta2) * g * g;
    mean = *m / (1 - pow(h->beta1, at->t));
    square = *v / (1 - pow(h->beta2, at->t));
    *w -= h->learning_rate * mean / (sqrt(square) + h->epsilon);
}

/* Relative, of a mean of gradients in the training's precision: two roundings a step, of ten. */
static double rounding;

/* v is what is undecided of the weight: a mean that cancels has either sign, by its rounding. */
static void lion_by_hand(const struct ghp_hyperparameters *h, double g, const struct element *at)
{
    double *w = at->w, *m = at->m, kept = h->beta1 * *m, added = (1 - h->beta1) * g;
    double mean = kept + added;

    if (fabs(mean) < rounding * (fabs(kept) + fabs(added))) *at->v += 2 * h->learning_rate;

    if (at->is_matrix) *w -= h->learning_rate * h->weight_decay * *w;
    *w -= h->learning_rate * ((mean > 0) - (mean < 0));
    *m = h->beta2 * *m + (1 - h->beta2) * g;
}

static void (*const by_hand[GHP_OPTIMIZERS])(const struct ghp_hyperparameters *h, double g,
                                             const struct element *at) = {
#define BY_HAND(name) name##_by_hand,
    GHP_OPTIMIZER_LIST(BY_HAND)
#undef BY_HAND
};

static double norm_by_hand(const struct ghp_snapshot *gradients)
{
    double sum = 0;

    for (int i = 0; i < gradients->list.n_trained; i++)
        for (int64_t e = 0; e < gradients->list.items[i].param->elements; e++)
            sum += gradients->gradients[i][e] * gradients->gradients[i][e];
    return sqrt(sum);
}

static void hand_step(struct hand *hand, const struct ghp_training_config *config, int t,
                      const struct ghp_snapshot *gradients)
{
    struct ghp_hyperparameters h = config->hyperparameters;

    double scale = 1;

    hand->norm = norm_by_hand(gradients);
    if (h.clip_norm > 0) scale = fmin(1, h.clip_norm / (hand->norm + 1e-6));
    hand->least_scale = fmin(hand->least_scale, scale);
    h.learning_rate = ghp_lr_schedule_rate(config->schedule, t);
    for (int i = 0; i < hand->n; i++) {
        const struct ghp_param *param = gradients->list.items[i].param;

        for (int64_t e = 0; e < param->elements; e++) {
            const struct element at = {&hand->w[i][e], &hand->m[i][e], &hand->v[i][e], t + 1,
                                       param->n_dims >= 2};

            by_hand[ghp_optimizer_index(config->optimizer)](&h, scale * gradients->gradients[i][e],
                                                            &at);
        }
    }
}

/* The greatest difference of a weight over its size or 1, beyond what is undecided of it. */
static double hand_difference(const struct hand *hand, const struct ghp_snapshot *plan,
                              const struct ghp_optimizer *optimizer)
{
    bool undecided = by_hand[ghp_optimizer_index(optimizer)] == lion_by_hand;
    double most = 0;

    for (int i = 0; i < hand->n; i++)
        for (int64_t e = 0; e < plan->list.items[i].param->elements; e++) {
            double difference =
                fabs(hand->w[i][e] - plan->weights[i][e]) / fmax(1, fabs(hand->w[i][e]));

            if (undecided) difference -= hand->v[i][e];
            if (!(difference <= most)) most = difference;
        }
    return most;
}

/* ---- trainings ---- */

struct run { /* how a worker trains */
    const char *what;
    const struct ghp_split *splits;
    const struct ghp_staging *staging;
    struct ghp_sync sync;
};

static bool open_worker(struct bench *b, struct run run, struct ghp_worker **worker)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;

    rank_plan.splits = run.splits;
    rank_plan.lowering.staging = run.staging;
    rank_plan.lowering.method.sync = run.sync;
    rank_plan.lowering.method.optimizer = b->training_config.optimizer;
    rank_plan.lowering.method.clip_norm = b->training_config.hyperparameters.clip_norm;
    return CHECK_STATUS(bench_open_worker(b, &rank_plan, worker), GHP_OK);
}

/* The workers' norm of the last step's gradients. */
static void check_norm(const struct bench *b, struct ghp_worker *worker, const struct hand *hand)
{
    struct ghp_result result;
    double limit = b->rank_plan.lowering.element_bytes == 8 ? 1e-12 : 1e-5;

    if (!(b->training_config.hyperparameters.clip_norm > 0)) return;
    CHECK(ghp_worker_result(worker, &result));
    CHECK_NEAR(result.gradient_norm / hand->norm, 1, limit);
}

static void check_training(struct bench *b, struct run run)
{
    struct ghp_worker *worker = NULL;
    struct ghp_snapshot now = {0};
    struct hand hand;
    double limit = b->rank_plan.lowering.element_bytes == 8 ? 1e-10 : 1e-5, difference = 0;

    rounding = 20 * (b->rank_plan.lowering.element_bytes == 8 ? DBL_EPSILON : FLT_EPSILON);
    if (!open_worker(b, run, &worker)) return;
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &now), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&now, worker), GHP_OK);
    hand_open(&now, &hand);
    for (int t = 0; t < STEPS && difference <= limit; t++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, t);

        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
        CHECK_STATUS(ghp_worker_settle(worker), GHP_OK);
        CHECK_STATUS(ghp_snapshot_gradients(&now, worker), GHP_OK);
        hand_step(&hand, &b->training_config, t, &now);
        check_norm(b, worker, &hand);
        CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
        CHECK_STATUS(ghp_snapshot_weights(&now, worker), GHP_OK);
        difference = hand_difference(&hand, &now, b->training_config.optimizer);
        if (!CHECK(difference <= limit))
            fprintf(stderr, "%s by %s, %s, step %d: difference %.3g\n",
                    b->training_config.optimizer->name, run.what, ghp_sync_ops_of(run.sync)->name,
                    t, difference);
    }
    if (b->training_config.hyperparameters.clip_norm > 0) CHECK(hand.least_scale < 0.9);
    hand_close(&hand);
    ghp_snapshot_release(&now);
    ghp_worker_close(worker);
}

static void check_syncs(struct bench *b, struct run run)
{
    for (int i = 0; i < GHP_SYNC_PLAIN; i++) {
        run.sync = ghp_sync_at(i);
        check_training(b, run);
    }
}

/* Micro-batches in one stage; and two stages. */
static void check_stages(struct bench *b, const struct ghp_split *data)
{
    struct ghp_staging s = {.micro_batches = 2};
    int middle = 1;

    check_syncs(b, (struct run){.what = "micro-batches", .splits = data, .staging = &s});
    while (middle < b->model.n_layers / 2 || !ghp_stage_may_start(&b->model, middle))
        middle++;
    s.n = 2;
    s.stage[0].workers = workers / 2;
    s.stage[1].workers = workers - workers / 2;
    s.stage[1].first_layer = middle;
    if (workers % 2 == 0)
        check_syncs(b, (struct run){.what = "two stages", .splits = data, .staging = &s});
}

static void choose(struct bench *b, const struct ghp_optimizer *optimizer)
{
    b->training_config.optimizer = optimizer;
    b->training_config.hyperparameters = ghp_optimizer_usual(optimizer);
    b->training_config.hyperparameters.weight_decay = 0.1; /* one that shows */
    b->training_config.schedule =
        (struct ghp_lr_schedule){.base = 0.01, .steps = STEPS, .warmup_steps = 2};
}

static void check_numbers(const char *model, const char *backend, int element_bytes)
{
    struct bench b;
    struct ghp_split *data, *mixed;
    bool norms = strstr(model, "resnet") != NULL; /* over the global batch, so no micro-batches */

    if (!CHECK_STATUS(bench_open(&b, transport, model, backend, element_bytes), GHP_OK)) return;
    data = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, workers);
    mixed = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_MIXED, 3, workers);
    for (int i = 0; i < 2 * GHP_OPTIMIZERS; i++) {
        /* AdamW, clipped, stands for the others in short tests, and where four workers share cores */
        bool stands = ghp_optimizer_at(i / 2) == &ghp_optimizer_adamw && i % 2 == 1;

        if (element_bytes == 4 && !stands && (workers > 2 || !check_full())) continue;
        choose(&b, ghp_optimizer_at(i / 2));
        b.training_config.hyperparameters.clip_norm = i % 2 == 0 ? 0 : 0.5;
        check_syncs(&b, (struct run){.what = "data", .splits = data});
        check_syncs(&b, (struct run){.what = "mixed splits", .splits = mixed});
        if (!norms && (stands || (workers == 2 && check_full()))) check_stages(&b, data);
    }
    free(mixed);
    free(data);
    bench_close(&b);
}

/* ---- checkpoints ---- */

/* Weights and moments come back under `after`, perhaps of one worker alone, and train on to the same. */
static void check_resume(struct bench *b, struct run before, struct run after, bool alone)
{
    struct ghp_worker *worker = NULL;
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_problem problem = b->rank_plan.lowering.problem;
    uint64_t saved;

    if (!open_worker(b, before, &worker)) return;
    CHECK_STATUS(bench_steps(b, worker, 0, 3), GHP_OK);
    saved = bench_fingerprint(worker);
    CHECK_STATUS(ghp_checkpoint_save(&kept, worker, (struct ghp_checkpoint){.step = 3}), GHP_OK);
    ghp_worker_close(worker);
    if (alone) b->rank_plan.lowering.problem.workers = 1;
    if (alone) b->rank_plan.rank = 0;
    if (open_worker(b, after, &worker)) {
        CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
        CHECK_EQ(checkpoint.step, 3);
        CHECK(bench_fingerprint(worker) == saved);
        ghp_worker_close(worker);
    }
    b->rank_plan.lowering.problem = problem;
    b->rank_plan.rank = transport->control->rank;
}

static void check_checkpoints(struct ghp_comm *world)
{
    struct bench b;
    struct ghp_split *data, *mixed;
    struct ghp_worker *worker = NULL;
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_checkpoint checkpoint;

    CHECK_STATUS(bench_open(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", "reference", 8),
                 GHP_OK);
    choose(&b, &ghp_optimizer_adamw);
    data = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    mixed = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_MIXED, 4, workers);
    for (int i = 0; i < 4; i++) {
        struct run before = {.splits = i % 2 == 0 ? mixed : data, .sync = ghp_sync_at(i / 2)},
                   after = {.splits = i % 2 == 0 ? data : mixed, .sync = ghp_sync_at(1 - i / 2)};

        check_resume(&b, before, after, false);
        CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
        after = (struct run){.splits = data};
        check_resume(&b, before, after, true);
        CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
    }
    choose(&b, &ghp_optimizer_sgd);
    if (open_worker(&b, (struct run){.splits = data}, &worker)) {
        CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_ERR_INPUT);
        CHECK(strstr(ghp_status_message(), "by the optimizer 'adamw'") != NULL);
        ghp_worker_close(worker);
    }
    free(mixed);
    free(data);
    bench_close(&b);
}

static bool has_all_but_adamw(const struct ghp_optimizer *optimizer)
{
    return optimizer != &ghp_optimizer_adamw;
}

/* A backend that lacks the plan's update refuses the plan, and another plan not. */
static void check_missing(void)
{
    struct ghp_backend_ops ops;
    struct bench b;
    struct ghp_worker *worker = NULL;

    CHECK_STATUS(bench_open(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", "reference", 8),
                 GHP_OK);
    ops = *b.exec.backend_ops;
    ops.has_update = has_all_but_adamw;
    b.exec.backend_ops = &ops;
    b.rank_plan.splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    b.rank_plan.lowering.method.optimizer = &ghp_optimizer_adamw;
    CHECK_STATUS(bench_open_worker(&b, &b.rank_plan, &worker), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "no update by the optimizer 'adamw'") != NULL);
    b.rank_plan.lowering.method.optimizer = NULL;
    CHECK_STATUS(bench_open_worker(&b, &b.rank_plan, &worker), GHP_OK);
    ghp_worker_close(worker);
    b.exec.backend_ops = &ghp_backend_reference;
    free((void *)(uintptr_t)b.rank_plan.splits);
    bench_close(&b);
}

/* What two stages have copies of is kept once, and both get it back. */
static void check_copies(struct ghp_comm *world)
{
    struct ghp_staging s = {
        .n = 2,
        .micro_batches = 2,
        .stage = {{.workers = workers / 2}, {.first_layer = 3, .workers = workers / 2}}};
    struct bench b;
    struct ghp_split *data;

    if (workers % 2 != 0) return;
    CHECK_STATUS(
        bench_open(&b, transport, GHP_SOURCE_DIR "/tests/executor/tied.json", "reference", 8),
        GHP_OK);
    choose(&b, &ghp_optimizer_adamw);
    data = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    for (int i = 0; i < 2; i++) {
        struct run staged = {.splits = data, .staging = &s}, plain = {.splits = data};

        check_resume(&b, i == 0 ? staged : plain, i == 0 ? plain : staged, false);
        CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
    }
    free(data);
    bench_close(&b);
}

CHECK_TEST(update)
{
    struct ghp_comm *world;

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    world = bench_workers(transport, workers);
    check_numbers(GHP_SOURCE_DIR "/models/lenet5.json", "reference", 8);
    check_numbers(GHP_SOURCE_DIR "/models/lenet5.json", "onednn", 4);
    check_numbers(GHP_SOURCE_DIR "/tests/executor/tied.json", "reference", 8);
    if (check_full()) {
        check_numbers(GHP_SOURCE_DIR "/tests/executor/tokens.json", "reference", 8);
        if (workers <= 2) check_numbers(GHP_SOURCE_DIR "/models/small-resnet.json", "reference", 8);
    }
    bench_make_folder(transport, workers, "optimizer", folder);
    check_missing();
    check_copies(world);
    check_checkpoints(world);
    bench_remove_folder(transport, workers, folder);
    ghp_transport_end(transport);
    return check_end();
}
