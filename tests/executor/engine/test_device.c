/* ghp-test: np=2 np_full=1,4 timeout=300
 *
 * Training on a device: the same bits as in host memory, with each transport, with steps enqueued one by one and played
 * from graphs, with hints that come true and hints that do not, through evaluations and checkpoints, with batch norms
 * over the whole batch and over ghost batches, with products of one tensor at once, with parameters sharded, in stages
 * and micro-batches by both schedules; on a device whose memory nobody but itself can touch (tests/executor/locked.h), so
 * a stray access anywhere would end the test. */
#include "executor/state/checkpoint.h"
#include "executor/train/evaluate.h"
#include "executor/backend/operands.h"
#include "executor/state/parameters.h"
#include "executor/transport/device/staged.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"
#include "tests/executor/locked.h"
#include "tests/executor/op_case.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 7 };

static struct ghp_transport *transport;
static int workers, rank;

enum mode { STAGED, QUEUED, QUEUED_NO_GRAPH, MODE_COUNT };
static const char *const mode_names[] = {"staged", "queued", "queued without graphs"};

/* The same on both; evaluations take three batches, of which the last is not full. */
static void open_benches(const char *model, int element_bytes, struct bench *host,
                         struct bench *device)
{
    const struct bench_numbers numbers = {.ops = &locked_backend, .element_bytes = element_bytes};

    CHECK_STATUS(bench_open(host, transport, model, "reference", element_bytes), GHP_OK);
    CHECK_STATUS(bench_open_by(device, transport, model, numbers), GHP_OK);
    bench_shorten_test_set(host, 2 * host->rank_plan.lowering.problem.global_batch + 1);
    bench_shorten_test_set(device, 2 * host->rank_plan.lowering.problem.global_batch + 1);
}

struct carriers { /* of a device */
    struct ghp_collectives *staged, *queued;
};

static void carriers_open(const struct bench *b, struct carriers *c)
{
    struct ghp_device device = ghp_exec_context_device(&b->exec);

    CHECK_STATUS(ghp_staged_open(transport->host, device, &c->staged), GHP_OK);
    CHECK_STATUS(locked_collectives_open(c->staged, device, &c->queued), GHP_OK);
}

static void carriers_close(struct carriers *c)
{
    c->queued->ops->close(c->queued);
    c->staged->ops->close(c->staged);
}

static void choose_mode(struct bench *b, const struct carriers *c, enum mode mode)
{
    b->exec.collectives = mode == STAGED ? c->staged : c->queued;
    b->rank_plan.run.no_graph = mode == QUEUED_NO_GRAPH;
}

static uint64_t fingerprint(struct ghp_worker *worker, const struct ghp_model *model)
{
    struct ghp_tensors_list list = {0};
    int different = 0;

    CHECK_STATUS(ghp_tensors_list_init(model, &list), GHP_OK);
    CHECK_STATUS(ghp_parameters_compare(worker, &list, &different), GHP_OK);
    CHECK_EQ(different, -1);
    ghp_tensors_release(&list);
    return bench_fingerprint(worker);
}

struct trained { /* what a training leaves */
    uint64_t hash;
    double losses[STEPS];
    struct ghp_evaluation evaluation;
};

static void note_loss(struct ghp_worker *worker, struct trained *t, int *n)
{
    struct ghp_result result;

    if (!ghp_worker_result(worker, &result) || (int)result.step != *n) return;
    t->losses[(*n)++] = result.loss;
}

/* Seven steps with an evaluation in their midst, as executor/train/train.c would. */
static void train(struct bench *b, const struct ghp_split *splits, bool hints, struct trained *t)
{
    struct ghp_rank_plan rank_plan = bench_rank_plan(b, splits);
    struct ghp_worker *worker = NULL;
    int n = 0;

    memset(t, 0, sizeof *t);
    CHECK_STATUS(bench_worker(b, splits, &worker), GHP_OK);
    CHECK_EQ(ghp_worker_arena(worker)->bytes, ghp_worker_program(worker)->peak_bytes);
    for (int i = 0; i < STEPS; i++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, i);

        if (hints && i + 1 < STEPS) {
            struct ghp_step next =
                ghp_training_config_step(&b->training_config, i == 2 ? i + 2 : i + 1);

            ghp_worker_hint(worker, &next); /* what is said before step 2 does not come true */
        }
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
        note_loss(worker, t, &n);
        if (i == 4) {
            CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
            note_loss(worker, t, &n);
            CHECK_STATUS(ghp_evaluate(worker,
                                      (struct ghp_evaluation_request){.data = b->data,
                                                                      .set = GHP_DATA_TEST,
                                                                      .rank_plan = &rank_plan},
                                      &t->evaluation),
                         GHP_OK);
        }
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    note_loss(worker, t, &n);
    CHECK_EQ(n, STEPS);
    CHECK_EQ(ghp_step_timer_steps(ghp_worker_step_timer(worker)), STEPS);
    CHECK(ghp_step_timer_step_s(ghp_worker_step_timer(worker)) > 0);
    t->hash = fingerprint(worker, &b->model);
    ghp_worker_close(worker);
}

static void compare(const struct trained *got, const struct trained *right, const char *what)
{
    bool same = got->hash == right->hash && got->evaluation.loss == right->evaluation.loss &&
                got->evaluation.accuracy == right->evaluation.accuracy;

    for (int i = 0; i < STEPS; i++)
        same = same && got->losses[i] == right->losses[i];
    if (!CHECK(same))
        fprintf(stderr, "  by %s: loss %.17g and %.17g, evaluation %.17g and %.17g\n", what,
                got->losses[STEPS - 1], right->losses[STEPS - 1], got->evaluation.loss,
                right->evaluation.loss);
}

/* `there`: the splits on the device, which may be sharded. */
static void check_case(struct bench *host, struct bench *device, const struct carriers *carriers,
                       const struct ghp_split *splits, const struct ghp_split *there)
{
    struct trained right, got;

    train(host, splits, false, &right);
    for (int mode = 0; mode < MODE_COUNT; mode++)
        for (int hints = 0; hints < 2; hints++) {
            bool told = workers == 1 || hints == (mode == QUEUED); /* more workers: one of both */
            int64_t before = locked_plays();

            if (!told) continue;
            choose_mode(device, carriers, (enum mode)mode);
            train(device, there, hints == 1, &got);
            compare(&got, &right, mode_names[mode]);
            /* two of seven steps are the first after fresh weights or a flush: not steady */
            if (mode == QUEUED) CHECK_EQ(locked_plays() - before, STEPS - 2);
            if (mode == QUEUED_NO_GRAPH) CHECK_EQ(locked_plays() - before, 0);
        }
}

/* Sets the samples that each batch norm is over; 0: the global batch. */
static void norm_over(struct bench *b, int ghost_batch)
{
    for (int l = 0; l < b->model.n_layers; l++)
        if (b->model.layers[l].op == GHP_OP_BATCH_NORM)
            b->model.layers[l].norm.ghost_batch = ghost_batch;
}

/* Nothing of them stays locked. */
static void close_all(struct carriers *carriers, struct bench *device, struct bench *host)
{
    carriers_close(carriers);
    bench_close(device);
    bench_close(host);
    CHECK_EQ(locked_bytes(), 0);
}

/* In each kind of plan from `first` on, every `stride`-th. */
static void check_model(const char *model, int element_bytes, int ghost_batch, int first,
                        int stride)
{
    struct bench host, device;
    struct carriers carriers;

    open_benches(model, element_bytes, &host, &device);
    norm_over(&host, ghost_batch);
    norm_over(&device, ghost_batch);
    carriers_open(&device, &carriers);
    for (int kind = first; kind <= CASE_MIXED; kind += stride) {
        struct ghp_problem problem = host.rank_plan.lowering.problem;
        struct ghp_split *splits =
            case_splits(&host.model, problem, (enum case_kind)kind, 5, workers);
        struct ghp_split *there =
            case_splits(&host.model, problem, (enum case_kind)kind, 5, workers);

        /* sharded updates and parameters give the host's all-reduced bits */
        device.rank_plan.lowering.method.sync = ghp_sync_at(kind % 2);
        if (kind % 2 == 0)
            case_shard(&host.model, problem,
                       kind == CASE_DATA ? GHP_SHARDING_PASS : GHP_SHARDING_COUNT, 3, there);
        check_case(&host, &device, &carriers, splits, there);
        free(there);
        free(splits);
    }
    close_all(&carriers, &device, &host);
}

/* Slices of positions are cut, exchanged and joined on a device as in host memory. */
static void check_sequence(const char *model)
{
    struct bench host, device;
    struct carriers carriers;
    struct ghp_split *splits;

    open_benches(model, 8, &host, &device);
    carriers_open(&device, &carriers);
    splits = case_sequence_splits(&host.model, host.rank_plan.lowering.problem, workers);
    check_case(&host, &device, &carriers, splits, splits);
    free(splits);
    close_all(&carriers, &device, &host);
}

/* Micro-batches; from two workers on two stages, from four on of two workers each. */
static struct ghp_staging staging_of(const struct ghp_model *model)
{
    struct ghp_staging s = {.micro_batches = workers == 3 ? 3 : 2};
    int middle = model->n_layers / 2;

    if (workers == 1) return s;
    while (!ghp_stage_may_start(model, middle))
        middle++;
    s.n = 2;
    s.stage[0].workers = workers / 2;
    s.stage[1] = (struct ghp_stage){.first_layer = middle, .workers = workers - s.stage[0].workers};
    return s;
}

static void check_staged(const char *model, int element_bytes)
{
    struct bench host, device;
    struct carriers carriers;
    struct trained right, got;
    struct ghp_staging staging;
    struct ghp_split *splits;

    open_benches(model, element_bytes, &host, &device);
    norm_over(&host, workers % 2 == 0 ? 2 : 1); /* what a worker's samples of a micro-batch take */
    norm_over(&device, workers % 2 == 0 ? 2 : 1);
    carriers_open(&device, &carriers);
    staging = staging_of(&host.model);
    host.rank_plan.lowering.staging = device.rank_plan.lowering.staging = &staging;
    CHECK_STATUS(ghp_staging_check(&staging, &host.model, host.rank_plan.lowering.problem), GHP_OK);
    splits = case_staged_splits(&host.model, &staging, host.rank_plan.lowering.problem, 1);
    if (CHECK(splits != NULL)) train(&host, splits, false, &right);
    for (int pipeline = 0; splits != NULL && pipeline < GHP_PIPELINE_INTERLEAVED; pipeline++) {
        int64_t before = locked_plays();

        staging.pipeline = (enum ghp_pipeline)pipeline;
        choose_mode(&device, &carriers, pipeline == 0 ? STAGED : QUEUED);
        train(&device, splits, true, &got);
        compare(&got, &right, ghp_pipeline_names[pipeline]);
        CHECK((locked_plays() > before) == (staging.n < 2)); /* stages wait for each other */
    }
    free(splits);
    close_all(&carriers, &device, &host);
}

/* A device without graphs: the training does without them. */
static void check_no_tapes(const char *model)
{
    struct bench host, device;
    struct carriers carriers;
    struct trained right, got;
    struct ghp_split *splits;
    int64_t before = locked_plays();

    open_benches(model, 8, &host, &device);
    carriers_open(&device, &carriers);
    splits = case_splits(&host.model, host.rank_plan.lowering.problem, CASE_DATA, 0, workers);
    train(&host, splits, false, &right);
    choose_mode(&device, &carriers, QUEUED);
    setenv("LOCKED_NO_TAPE", "1", 1);
    train(&device, splits, true, &got);
    unsetenv("LOCKED_NO_TAPE");
    compare(&got, &right, "refused graphs");
    CHECK_EQ(locked_plays(), before);
    free(splits);
    carriers_close(&carriers);
    bench_close(&device);
    bench_close(&host);
}

/* From a device to host memory and back. */
static void check_checkpoint(const char *model)
{
    /* each rank writes rank 0's alone, and reads it */
    struct ghp_checkpoint_folder kept = {.path = check_folder()};
    struct ghp_checkpoint point = {.step = 3, .seed = 1, .global_batch = 1, .samples = 1}, read;
    struct ghp_worker *on_device = NULL, *on_host = NULL;
    struct bench host, device;
    struct carriers carriers;
    struct ghp_split *splits;

    open_benches(model, 8, &host, &device);
    carriers_open(&device, &carriers);
    choose_mode(&device, &carriers, STAGED);
    splits = case_splits(&host.model, host.rank_plan.lowering.problem, CASE_IN, 0, workers);
    CHECK_STATUS(bench_worker(&device, splits, &on_device), GHP_OK);
    CHECK_STATUS(bench_steps(&device, on_device, 0, 3), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_save(&kept, on_device, point), GHP_OK);
    if (workers == 1) {
        CHECK_STATUS(bench_worker(&host, splits, &on_host), GHP_OK);
        CHECK_STATUS(ghp_checkpoint_load(&kept, on_host, &read), GHP_OK);
        CHECK_EQ(read.step, 3);
        CHECK(fingerprint(on_host, &host.model) == fingerprint(on_device, &device.model));
        CHECK_STATUS(bench_steps(&device, on_device, 3, 5), GHP_OK);
        CHECK_STATUS(ghp_checkpoint_load(&kept, on_device, &read), GHP_OK);
        CHECK(fingerprint(on_host, &host.model) == fingerprint(on_device, &device.model));
    }
    ghp_worker_close(on_host);
    ghp_worker_close(on_device);
    free(splits);
    carriers_close(&carriers);
    bench_close(&device);
    bench_close(&host);
}

/* Every operation's tensors there and back. */
static void check_opsets(void)
{
    struct ghp_backend_config config = {.element_bytes = 4, .threads = 1, .exact = true};
    struct ghp_backend *backend = NULL, *reference = NULL;
    struct ghp_device device;
    int n;
    const struct ghp_local *cases = op_case_all(&n);

    CHECK_STATUS(locked_backend.open(&config, &backend), GHP_OK);
    CHECK_STATUS(ghp_backend_reference.open(&config, &reference), GHP_OK);
    device = ghp_backend_device(&locked_backend, backend);
    for (int i = 0; i < n; i++) {
        struct ghp_operand_set there, here, right;

        CHECK_STATUS(ghp_operand_set_init_on(device, &cases[i], 4, GHP_OPERAND_SET_ALL, &there),
                     GHP_OK);
        CHECK_STATUS(ghp_operand_set_init(&cases[i], 4, GHP_OPERAND_SET_ALL, &here), GHP_OK);
        CHECK_STATUS(ghp_operand_set_init(&cases[i], 4, GHP_OPERAND_SET_ALL, &right), GHP_OK);
        for (int pass = 0; pass < GHP_PASS_COUNT; pass++) {
            static const enum ghp_pass order[] = {GHP_PASS_STATS, GHP_PASS_FORWARD,
                                                  GHP_PASS_BACKWARD_STATS, GHP_PASS_BACKWARD_WEIGHT,
                                                  GHP_PASS_BACKWARD_DATA};

            if (!ghp_local_has_pass(&cases[i], order[pass])) continue;
            CHECK_STATUS(ghp_operand_set_run(&there, &locked_backend, backend, order[pass]),
                         GHP_OK);
            CHECK_STATUS(
                ghp_operand_set_run(&right, &ghp_backend_reference, reference, order[pass]),
                GHP_OK);
        }
        memset(here.memory, 0xff, (size_t)here.bytes);
        CHECK_STATUS(ghp_operand_set_fetch(&there, &here), GHP_OK);
        if (!CHECK(memcmp(here.memory, right.memory, (size_t)here.bytes) == 0))
            fprintf(stderr, "  in %s\n", op_case_text(&cases[i], GHP_PASS_FORWARD));
        ghp_operand_set_release(&there);
        ghp_operand_set_release(&here);
        ghp_operand_set_release(&right);
    }
    ghp_backend_reference.close(reference);
    locked_backend.close(backend);
}

/* The lock is one: a child that reads device memory is killed. */
static void check_lock(void)
{
    struct ghp_backend_config config = {.element_bytes = 4, .threads = 1, .exact = true};
    struct ghp_backend *backend = NULL;
    void *memory = NULL;
    int status = 0;
    pid_t child;

    CHECK_STATUS(locked_backend.open(&config, &backend), GHP_OK);
    CHECK_STATUS(ghp_device_allocate(ghp_backend_device(&locked_backend, backend), 100, &memory),
                 GHP_OK);
    child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile char *)memory == 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
          WTERMSIG(status) == SIGSEGV);
    ghp_device_release(ghp_backend_device(&locked_backend, backend), memory);
    locked_backend.close(backend);
}

CHECK_TEST(device)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    workers = transport->control->size;
    rank = transport->control->rank;
    if (workers == 1) {
        check_lock();
        check_opsets();
    }
    if (workers == 1 && check_full()) { /* whatever the plan, alone it is one */
        check_model(GHP_SOURCE_DIR "/models/lenet5.json", 4, 0, CASE_DATA, CASE_MIXED + 1);
        check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 8, 0, CASE_DATA, CASE_MIXED + 1);
    } else if (workers > 1 && !check_full()) { /* all kinds on the small one */
        check_model(GHP_SOURCE_DIR "/models/lenet5.json", 4, 0, CASE_DATA, 1);
    } else if (workers >
               1) { /* all kinds between them with two workers; more share cores and are slow */
        int step = workers == 2 ? 2 : 4;

        check_model(GHP_SOURCE_DIR "/models/lenet5.json", 4, 0, CASE_DATA, step);
        check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 8, 0, CASE_DATA + 1, step);
    }
    if (workers <= 2) /* whole ghost batches */
        check_model(GHP_SOURCE_DIR "/models/small-resnet.json", 8, 2, CASE_DATA, CASE_MIXED + 1);
    if (workers <= 2) /* products of one tensor */
        check_model(GHP_SOURCE_DIR "/models/llama-nano.json", 8, 0, CASE_DATA, CASE_MIXED + 1);
    if (workers > 1) check_sequence(GHP_SOURCE_DIR "/tests/executor/sequence.json");
    check_staged(GHP_SOURCE_DIR "/models/lenet5.json", 4);
    check_staged(GHP_SOURCE_DIR "/tests/executor/sequence.json", 8);
    if (check_full()) check_staged(GHP_SOURCE_DIR "/models/small-resnet.json", 8);
    check_no_tapes(GHP_SOURCE_DIR "/models/small-resnet.json");
    check_checkpoint(GHP_SOURCE_DIR "/models/small-resnet.json");
    ghp_transport_end(transport);
    return check_end();
}
