/* ghp-test: np=2 np_full=1,4 timeout=120
 *
 * A training that stops half-way under one plan and continues under another ends where an uninterrupted one does; a
 * checkpoint of another model is refused by the first tensor that differs. A newest checkpoint that is damaged, cut or
 * gone gives way to the one before it; one that cannot be written costs nothing but itself, on every worker. What a
 * thread writes during the training is to the byte what is written between steps, of the step at which it was
 * gathered. */
#include "core/base/file.h"
#include "executor/state/checkpoint.h"
#include "executor/state/parameters.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct ghp_transport *transport;
static struct ghp_comm *world;
static char folder[BENCH_FOLDER];

static bool is_first(void)
{
    return transport->control->rank == 0;
}

static void together(void)
{
    CHECK_STATUS(ghp_control_barrier(transport->control, world), GHP_OK);
}

static void check_resume(void)
{
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct bench b;
    struct ghp_split *before, *after;
    struct ghp_worker *worker = NULL;
    struct ghp_snapshot resumed = {0};
    struct ghp_checkpoint checkpoint = {0};
    struct ghp_verification v = {0};
    struct ghp_step step;

    CHECK_STATUS(
        bench_open(&b, transport, GHP_SOURCE_DIR "/models/small-resnet.json", "reference", 8),
        GHP_OK);
    CHECK_STATUS(bench_train_alone(&b), GHP_OK);
    before = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_MIXED, 2,
                         b.rank_plan.lowering.problem.workers);
    after = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_OUT, 0,
                        b.rank_plan.lowering.problem.workers);
    CHECK_STATUS(bench_worker(&b, before, &worker), GHP_OK);
    step = ghp_training_config_step(&b.training_config, 0);
    CHECK_STATUS(ghp_snapshot_init(&b.model, true, &resumed), GHP_OK);
    CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
    CHECK_STATUS(ghp_worker_settle(worker), GHP_OK);
    CHECK_STATUS(ghp_snapshot_gradients(&resumed, worker), GHP_OK);
    CHECK_STATUS(bench_steps(&b, worker, 1, 2), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_save(&kept, worker,
                                     (struct ghp_checkpoint){
                                         .step = 2,
                                         .seed = UINT64_MAX,
                                         .global_batch = b.rank_plan.lowering.problem.global_batch,
                                         .samples = b.training_config.order.n,
                                         .owes_evaluation = true}),
                 GHP_OK);
    ghp_worker_close(worker);

    CHECK_STATUS(bench_worker(&b, after, &worker), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_OK);
    CHECK_EQ(checkpoint.step, 2);
    CHECK(checkpoint.seed == UINT64_MAX);
    CHECK_EQ(checkpoint.global_batch, b.rank_plan.lowering.problem.global_batch);
    CHECK_EQ(checkpoint.samples, b.training_config.order.n);
    CHECK(checkpoint.owes_evaluation);
    CHECK_STATUS(bench_steps(&b, worker, 2, BENCH_STEPS), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&resumed, worker), GHP_OK);
    CHECK_STATUS(ghp_verify_compare(&resumed, &b.alone, (struct ghp_precision){8, false}, &v),
                 GHP_OK);
    CHECK(v.passed);
    ghp_verification_release(&v);
    ghp_snapshot_release(&resumed);
    ghp_worker_close(worker);
    free(after);
    free(before);
    bench_close(&b);
}

static void check_other_model(void)
{
    struct ghp_checkpoint_folder kept = {.path = folder}, nowhere = {.path = "/nowhere"},
                                 no_folder = {.path = "/dev/null/here"};
    struct bench b;
    struct ghp_split *splits;
    struct ghp_worker *worker = NULL;
    struct ghp_checkpoint checkpoint;

    CHECK_STATUS(bench_open(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", "reference", 4),
                 GHP_OK);
    splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    CHECK_STATUS(bench_worker(&b, splits, &worker), GHP_OK);
    CHECK_STATUS(ghp_checkpoint_load(&kept, worker, &checkpoint), GHP_ERR_INPUT);
    CHECK_MESSAGE("conv1.weight");
    CHECK_STATUS(ghp_checkpoint_load(&nowhere, worker, &checkpoint), GHP_ERR_IO);
    CHECK_MESSAGE("there is no checkpoint in '/nowhere'");
    CHECK_STATUS(ghp_checkpoint_save(&no_folder, worker, (struct ghp_checkpoint){.step = 1}),
                 GHP_ERR_IO);
    CHECK_MESSAGE("/dev/null/here");
    ghp_worker_close(worker);
    free(splits);
    bench_close(&b);
}

/* ---- damage ---- */

enum damage { FLIP, SHORTEN, REMOVE };

static void path_of(const char *name, char path[96])
{
    snprintf(path, 96, "%s/%s", folder, name);
}

/* By rank 0, while the others wait. */
static void damage_file(const char *name, enum damage damage)
{
    char path[96];
    FILE *file;
    int byte;

    path_of(name, path);
    together();
    if (is_first() && damage == FLIP) {
        file = fopen(path, "r+b");
        CHECK(file != NULL && fseek(file, -1000, SEEK_END) == 0);
        byte = fgetc(file);
        CHECK(fseek(file, -1, SEEK_CUR) == 0 && fputc(byte ^ 4, file) != EOF && fclose(file) == 0);
    } else if (is_first() && damage == SHORTEN) {
        CHECK(truncate(path, 5000) == 0);
    } else if (is_first()) {
        CHECK(unlink(path) == 0);
    }
    together();
}

struct damaged { /* a worker with weights of its own after each step */
    struct bench bench;
    struct ghp_worker *worker;
    struct ghp_split *splits;
    uint64_t after[4]; /* steps */
};

static enum ghp_status save(struct damaged *d, struct ghp_checkpoint_folder *kept, int64_t step)
{
    return ghp_checkpoint_save(kept, d->worker, (struct ghp_checkpoint){.step = step});
}

/* Reads the checkpoint of step `step`, and has the weights of that step. */
static void loads(struct damaged *d, struct ghp_checkpoint_folder *kept, int64_t step)
{
    struct ghp_checkpoint read = {0};

    CHECK_STATUS(ghp_checkpoint_load(kept, d->worker, &read), GHP_OK);
    CHECK_EQ(read.step, step);
    CHECK(bench_fingerprint(d->worker) == d->after[step]);
}

/* Saves after steps 1 and 2, damages the newer one, and continues from the older one. */
static void check_one_damaged(struct damaged *d, enum damage damage)
{
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct ghp_checkpoint read;

    loads(d, &kept, 1);
    kept = (struct ghp_checkpoint_folder){.path = folder};
    CHECK_STATUS(save(d, &kept, 1), GHP_OK);
    CHECK_STATUS(bench_steps(&d->bench, d->worker, 1, 2), GHP_OK);
    CHECK_STATUS(save(d, &kept, 2), GHP_OK);
    loads(d, &kept, 2);
    damage_file("checkpoint.safetensors", damage);
    loads(d, &kept, 1);
    /* the damaged one does not take the good one's place */
    CHECK_STATUS(bench_steps(&d->bench, d->worker, 1, 3), GHP_OK);
    CHECK_STATUS(save(d, &kept, 3), GHP_OK);
    loads(d, &kept, 3);
    damage_file("checkpoint.safetensors", damage);
    loads(d, &kept, 1);
    damage_file("checkpoint.previous.safetensors", damage);
    CHECK(ghp_checkpoint_load(&kept, d->worker, &read) != GHP_OK);
    CHECK_MESSAGE(damage != REMOVE ? "checkpoint.safetensors" : "there is no checkpoint in");
    if (damage != REMOVE) CHECK_MESSAGE("checkpoint.previous.safetensors");
}

/* Rank 0 cannot write: the others learn of it, and what was there stays. */
static void check_unwritten(struct damaged *d, struct ghp_checkpoint_folder *kept)
{
    struct rlimit before, small = {.rlim_cur = 20000};
    bool root = geteuid() == 0;

    loads(d, kept, 2);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    small.rlim_max = before.rlim_max;
    if (is_first()) CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (int attempt = 0; attempt < 2; attempt++) {
        CHECK_STATUS(save(d, kept, 3), GHP_ERR_IO);
        CHECK_MESSAGE("File too large");
    }
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    loads(d, kept, 2);

    if (is_first()) CHECK(chmod(folder, 0555) == 0 && (!root || seteuid(65534) == 0));
    CHECK_STATUS(save(d, kept, 3), GHP_ERR_IO);
    CHECK_MESSAGE("Permission denied");
    if (is_first()) CHECK((!root || seteuid(0) == 0) && chmod(folder, 0755) == 0);
    loads(d, kept, 2);
    CHECK_STATUS(bench_steps(&d->bench, d->worker, 2, 3), GHP_OK);
    CHECK_STATUS(save(d, kept, 3), GHP_OK);
    loads(d, kept, 3);
}

static uint64_t file_hash(const char *name)
{
    uint64_t hash = 0;
    char path[96], *text;
    size_t n;

    path_of(name, path);
    if (!CHECK_STATUS(ghp_file_read(path, &text, &n), GHP_OK)) return 0;
    hash = ghp_hash(text, n, GHP_HASH_SEED);
    free(text);
    return hash;
}

/* Waits for what is being written, of that step. */
static void finishes(struct ghp_checkpoint_folder *kept, int64_t step, enum ghp_status status)
{
    int64_t found = step;

    CHECK(ghp_checkpoint_under_way(kept) == is_first());
    if (is_first()) CHECK_STATUS(ghp_checkpoint_finish(kept, &found), status);
    CHECK_EQ(found, step);
    CHECK(!ghp_checkpoint_under_way(kept));
    CHECK_STATUS(ghp_checkpoint_finish(kept, &found), GHP_OK);
}

/* The weights of step 3, written during the steps 3 to 5 and between steps: one file. A failure on the thread is told,
 * and the next save works. */
static void check_concurrent(struct damaged *d)
{
    struct ghp_checkpoint_folder kept = {.path = folder}, between = {.path = folder};
    struct rlimit before, small = {.rlim_cur = 20000};
    struct ghp_profile profile = {.copy = {.bandwidth_Bps = 1e9}};
    struct ghp_checkpoint_prediction predicted;
    uint64_t want;

    loads(d, &kept, 3);
    CHECK_STATUS(save(d, &between, 3), GHP_OK);
    together();
    want = file_hash("checkpoint.safetensors");
    together();
    kept.concurrent = true;
    CHECK_STATUS(save(d, &kept, 3), GHP_OK);
    CHECK_STATUS(bench_steps(&d->bench, d->worker, 3, 5), GHP_OK);
    finishes(&kept, 3, GHP_OK);
    together();
    CHECK(file_hash("checkpoint.safetensors") == want);
    CHECK(file_hash("checkpoint.previous.safetensors") == want);
    CHECK_STATUS(ghp_checkpoint_predict(d->worker, &profile, &predicted), GHP_OK);
    if (is_first()) CHECK_EQ(predicted.image_bytes, kept.cost.image_bytes);
    CHECK_EQ(predicted.image_bytes, kept.cost.bytes);
    /* all have all of it: one copy */
    CHECK(fabs(predicted.gather_s * 1e9 / (double)kept.cost.bytes - 1) < 1e-6);
    CHECK(predicted.core_s > predicted.gather_s);

    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    small.rlim_max = before.rlim_max;
    if (is_first()) CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_STATUS(save(d, &kept, 5), GHP_OK);
    finishes(&kept, 5, GHP_ERR_IO);
    if (is_first()) CHECK_MESSAGE("File too large");
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    loads(d, &kept, 3);
    CHECK_STATUS(save(d, &kept, 3), GHP_OK);
    finishes(&kept, 3, GHP_OK);
    loads(d, &kept, 3);
    ghp_checkpoint_release(&kept);
}

static void check_damage(void)
{
    struct ghp_checkpoint_folder kept = {.path = folder};
    struct damaged d = {.worker = NULL};

    CHECK_STATUS(
        bench_open(&d.bench, transport, GHP_SOURCE_DIR "/models/lenet5.json", "reference", 4),
        GHP_OK);
    d.splits = case_splits(&d.bench.model, d.bench.rank_plan.lowering.problem, CASE_DATA, 0,
                           d.bench.rank_plan.lowering.problem.workers);
    CHECK_STATUS(bench_worker(&d.bench, d.splits, &d.worker), GHP_OK);
    for (int step = 1; step <= 3; step++) {
        CHECK_STATUS(bench_steps(&d.bench, d.worker, step - 1, step), GHP_OK);
        d.after[step] = bench_fingerprint(d.worker);
        if (step < 3) CHECK_STATUS(save(&d, &kept, step), GHP_OK);
    }
    check_unwritten(&d, &kept);
    check_concurrent(&d);
    for (int damage = FLIP; damage <= REMOVE; damage++) {
        kept = (struct ghp_checkpoint_folder){.path = folder};
        ghp_worker_close(d.worker);
        CHECK_STATUS(bench_worker(&d.bench, d.splits, &d.worker), GHP_OK);
        CHECK_STATUS(bench_steps(&d.bench, d.worker, 0, 1), GHP_OK);
        CHECK_STATUS(save(&d, &kept, 1), GHP_OK);
        check_one_damaged(&d, (enum damage)damage);
    }
    ghp_worker_close(d.worker);
    free(d.splits);
    bench_close(&d.bench);
}

/* What a killed run leaves half-written is gone when the next one starts; other files stay. */
static void check_leftovers(void)
{
    char path[512], host[256] = "", names[2][320] = {"", "checkpoint.safetensors.tmp-x"};

    CHECK(gethostname(host, sizeof host - 1) == 0);
    /* more than Linux counts processes to */
    snprintf(names[0], sizeof names[0], "checkpoint.safetensors.tmp-%s-2000000000", host);
    for (int i = 0; i < 2; i++) {
        FILE *file;

        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        file = fopen(path, "w");
        CHECK(file != NULL && fputs("half", file) >= 0 && fclose(file) == 0);
    }
    CHECK_STATUS(ghp_checkpoint_prepare(folder), GHP_OK);
    CHECK(unlink(path) == 0);
    snprintf(path, sizeof path, "%s/%s", folder, names[0]);
    CHECK(access(path, F_OK) != 0);
    CHECK_STATUS(ghp_checkpoint_prepare("/dev/null/here"), GHP_ERR_IO);
}

CHECK_TEST(checkpoint)
{
    char path[96];

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    world = bench_workers(transport, transport->control->size);
    bench_make_folder(transport, transport->control->size, "checkpoint", folder);
    if (is_first()) check_leftovers();
    together();
    check_damage();
    check_resume();
    check_other_model();
    together();
    if (transport->control->rank == 0) {
        snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
        CHECK(unlink(path) == 0);
        CHECK(rmdir(folder) == 0); /* nothing else was left there */
    }
    ghp_transport_end(transport);
    return check_end();
}
