/* tests/executor/bench.c - see bench.h. */
#include "tests/executor/bench.h"

#include "core/base/file.h"
#include "executor/data/data_private.h"
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/cases.h"

#include <unistd.h>

enum ghp_status bench_open(struct bench *b, struct ghp_transport *transport, const char *model_path,
                           const char *backend, int element_bytes)
{
    return bench_open_by(
        b, transport, model_path,
        (struct bench_numbers){.ops = ghp_backend_find(backend), .element_bytes = element_bytes});
}

enum ghp_status bench_open_by(struct bench *b, struct ghp_transport *transport,
                              const char *model_path, struct bench_numbers numbers)
{
    int element_bytes = numbers.element_bytes, workers = transport->control->size;
    struct ghp_backend_config config = {
        .element_bytes = element_bytes, .threads = 1, .exact = !numbers.fast};
    int64_t batch = numbers.batch > 0 ? numbers.batch : 2 * (int64_t)workers * workers;
    struct ghp_data_request request = {
        .spec = "synthetic", .seed = BENCH_SEED, .global_batch = batch};

    *b = (struct bench){0};
    case_model(model_path, &b->model);
    b->exec.backend_ops = numbers.ops;
    GHP_TRY(b->exec.backend_ops->open(&config, &b->backend));
    b->exec.backend = b->backend;
    b->exec.transport = transport;
    request.shape = b->model.layers[0].out;
    request.sample_labels = ghp_model_labels(&b->model);
    request.classes = b->model.classes;
    GHP_TRY(ghp_data_open(&request, &b->data));
    b->training_config = (struct ghp_training_config){
        .init = {.seed = BENCH_SEED},
        .data = b->data,
        .schedule = {.base = 0.05, .steps = BENCH_STEPS, .warmup_steps = 2},
        .optimizer = &ghp_optimizer_sgd,
        .hyperparameters = {.momentum = 0.9, .weight_decay = 1e-4}};
    b->rank_plan =
        (struct ghp_rank_plan){.lowering = {.model = &b->model,
                                            .problem = {.workers = workers, .global_batch = batch},
                                            .element_bytes = element_bytes,
                                            .method.bucket_bytes = 20000},
                               .rank = transport->control->rank,
                               .run = {.seed = BENCH_SEED, .groups = workers}};
    return ghp_order_init(&b->training_config.order, ghp_data_count(b->data, GHP_DATA_TRAIN), batch,
                          BENCH_SEED);
}

void bench_shorten_test_set(struct bench *b, int64_t samples)
{
    GHP_ASSERT(samples <= b->data->count[GHP_DATA_TEST]);
    b->data->count[GHP_DATA_TEST] = samples;
}

/* Labels of the first step that the worker has, by data, and does not ignore. */
static int64_t labels_of(struct bench *b, int worker)
{
    struct ghp_step step = ghp_training_config_step(&b->training_config, 0);
    int64_t each =
                b->rank_plan.lowering.problem.global_batch / b->rank_plan.lowering.problem.workers,
            labels = 0;

    CHECK_STATUS(ghp_data_count_labels(b->data, step.set, step.samples + worker * each, each,
                                       (struct ghp_label_outputs){1, 1, {1}, {10}}, &labels),
                 GHP_OK);
    return labels;
}

void bench_ignore(struct bench *b)
{
    int last = b->rank_plan.lowering.problem.workers - 1;

    b->data->ignores = true;
    for (int label = 0; label < b->model.classes; label++) {
        b->data->ignored_label = label;
        if (last == 0 || labels_of(b, 0) != labels_of(b, last)) return;
    }
    CHECK(false);
}

void bench_close(struct bench *b)
{
    ghp_snapshot_release(&b->alone);
    ghp_order_release(&b->training_config.order);
    ghp_data_close(b->data);
    b->exec.backend_ops->close(b->backend);
    ghp_model_release(&b->model);
}

enum ghp_status bench_train_alone(struct bench *b)
{
    GHP_TRY(ghp_snapshot_init(&b->model, true, &b->alone));
    return ghp_verify_alone(&b->exec, &b->rank_plan, &b->training_config, BENCH_STEPS, &b->alone);
}

enum ghp_status bench_open_worker(struct bench *b, const struct ghp_rank_plan *rank_plan,
                                  struct ghp_worker **worker)
{
    *worker = NULL;
    GHP_TRY(ghp_rank_plan_open(&b->exec, rank_plan, worker));
    GHP_TRY(ghp_worker_connect(*worker));
    GHP_TRY(ghp_worker_allocate(*worker));
    CHECK_EQ(ghp_worker_arena(*worker)->bytes, ghp_worker_program(*worker)->peak_bytes);
    return ghp_init_weights(*worker, &b->training_config.init);
}

struct ghp_rank_plan bench_rank_plan(const struct bench *b, const struct ghp_split *splits)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;

    rank_plan.splits = splits;
    return rank_plan;
}

enum ghp_status bench_worker(struct bench *b, const struct ghp_split *splits,
                             struct ghp_worker **worker)
{
    struct ghp_rank_plan rank_plan = bench_rank_plan(b, splits);

    return bench_open_worker(b, &rank_plan, worker);
}

enum ghp_status bench_steps(struct bench *b, struct ghp_worker *worker, int64_t first, int64_t last)
{
    for (int64_t t = first; t < last; t++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, t);

        GHP_TRY(ghp_worker_step(worker, &step));
    }
    return ghp_worker_flush(worker);
}

bool bench_trains_like_reference(struct bench *b, struct ghp_worker *worker,
                                 const struct ghp_rank_plan *like, int64_t steps)
{
    const struct ghp_precision precision = {b->rank_plan.lowering.element_bytes, false};
    struct ghp_snapshot plan = {0}, reference = {0};
    struct ghp_verification v = {0};
    bool passed;

    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &plan), GHP_OK);
    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &reference), GHP_OK);
    CHECK_STATUS(ghp_verify_train(worker, &b->training_config, steps, &plan), GHP_OK);
    CHECK_STATUS(ghp_verify_alone(&b->exec, like, &b->training_config, steps, &reference), GHP_OK);
    for (int i = 0; i < plan.list.n_trained && b->rank_plan.rank > 0;
         i++) /* of the first replica */
        memcpy(plan.gradients[i], reference.gradients[i],
               (size_t)plan.list.items[i].param->elements * sizeof(double));
    CHECK_STATUS(ghp_verify_compare(&plan, &reference, precision, &v), GHP_OK);
    passed = v.passed;
    ghp_verification_release(&v);
    ghp_snapshot_release(&plan);
    ghp_snapshot_release(&reference);
    return passed;
}

/* Continues the hash with a whole copy. */
static uint64_t hash_copy(struct ghp_worker *worker, const struct ghp_tensor *t,
                          enum ghp_buffer_kind buffer_kind, uint64_t hash)
{
    size_t bytes = (size_t)(t->param->elements *
                            ghp_parameter_bytes(ghp_worker_program(worker)->element_bytes));
    void *whole = ghp_alloc(bytes, 1);

    CHECK_STATUS(ghp_parameters_gather(worker, t, buffer_kind, whole), GHP_OK);
    hash = ghp_hash(whole, bytes, hash);
    free(whole);
    return hash;
}

uint64_t bench_fingerprint_replicas(struct ghp_worker *worker)
{
    struct ghp_tensors_list list = {0};
    uint64_t hash = 0;

    CHECK_STATUS(ghp_tensors_list_init(ghp_worker_program(worker)->model, &list), GHP_OK);
    CHECK_STATUS(ghp_parameters_fingerprint(worker, &list, &hash), GHP_OK);
    ghp_tensors_release(&list);
    return hash;
}

uint64_t bench_fingerprint(struct ghp_worker *worker)
{
    struct ghp_tensors_list list = {0};
    uint64_t hash = bench_fingerprint_replicas(worker), copied = GHP_HASH_SEED;

    CHECK_STATUS(ghp_tensors_list_init(ghp_worker_program(worker)->model, &list), GHP_OK);
    for (int i = 0; i < list.n; i++) {
        const struct ghp_tensor *t = &list.items[i];

        copied = hash_copy(worker, t, ghp_tensor_buffer_kind(t), copied);
    }
    for (int m = 0; m < ghp_worker_program(worker)->optimizer->n_moments; m++)
        for (int i = 0; i < list.n_trained; i++)
            copied = hash_copy(worker, &list.items[i], ghp_moment_kind(m), copied);
    CHECK(hash == copied);
    ghp_tensors_release(&list);
    return hash;
}

struct ghp_comm *bench_workers(struct ghp_transport *transport, int n)
{
    struct ghp_comm *comm = NULL;

    CHECK_STATUS(ghp_collectives_group(transport->host, (struct ghp_ranks){.count = n, .stride = 1},
                                       GHP_STREAM_COMPUTE, &comm),
                 GHP_OK);
    comm->label = "a test";
    return comm;
}

double bench_sum(struct ghp_transport *transport, int n, double mine)
{
    const struct ghp_control_message *messages;
    double sum = 0;

    if (n == 1) return mine;
    CHECK_STATUS(transport->control->ops->tell(transport->control, bench_workers(transport, n),
                                               (struct ghp_control_message){.value = mine},
                                               &messages),
                 GHP_OK);
    for (int i = 0; i < n; i++)
        sum += messages[i].value;
    return sum;
}

void bench_make_folder(struct ghp_transport *transport, int n, const char *test,
                       char folder[BENCH_FOLDER])
{
    struct ghp_comm *comm = bench_workers(transport, n);
    long id = (long)getpid();
    long *ids = ghp_alloc((size_t)n, sizeof *ids);

    CHECK_STATUS(comm->ops->all_gather(comm, &id, ids, (int64_t)sizeof id), GHP_OK);
    snprintf(folder, BENCH_FOLDER, "/tmp/ghp-test-%s-%ld", test, ids[0]);
    free(ids);
    if (transport->control->rank == 0) CHECK_STATUS(ghp_checkpoint_prepare(folder), GHP_OK);
    CHECK_STATUS(ghp_control_barrier(transport->control, comm), GHP_OK);
}

void bench_remove_folder(struct ghp_transport *transport, int n, const char *folder)
{
    char path[2 * BENCH_FOLDER];

    CHECK_STATUS(ghp_control_barrier(transport->control, bench_workers(transport, n)), GHP_OK);
    if (transport->control->rank > 0) return;
    snprintf(path, sizeof path, "%s/checkpoint.previous.safetensors", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}
