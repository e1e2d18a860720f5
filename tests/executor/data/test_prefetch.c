/* ghp-test: np=2 np_full=1 timeout=120
 *
 * Samples that are made ahead are those that are made when they are loaded, to the bit: however far the thread came,
 * whether hints came true or not, with several micro-batches, over an epoch's end and an evaluation, and in a
 * training that begins in the midst. The program's buffer for them counts in its memory. */
#include "executor/train/evaluate.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#include <string.h>
#include <time.h>

enum { IMAGES = 6, FIRST = 2, BATCH = 12, ROUNDS = 300, STEPS = 7 };

static struct ghp_transport *transport;

/* ---- the thread alone ---- */

static struct ghp_supply supply_of(struct ghp_data *data, int64_t *samples, int64_t first)
{
    for (int64_t i = 0; i < BATCH; i++)
        samples[i] = (first + 7 * i) % ghp_data_count(data, GHP_DATA_TRAIN);
    return (struct ghp_supply){.data = data, .samples = samples, .n = BATCH};
}

static void pause_for(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Rounds of hints and takes, with more or less time between; every third hint does not come true, every seventh take
 * has none. */
static void check_thread(void)
{
    struct ghp_shape shape = ghp_shape_image(3, 24, 20);
    struct ghp_data_request request = {.spec = "synthetic",
                                       .seed = 3,
                                       .global_batch = BATCH,
                                       .shape = shape,
                                       .sample_labels = 1,
                                       .classes = 5};
    int64_t bytes = ghp_shape_elements(shape) * (int64_t)sizeof(float);
    struct ghp_load load = {.first_image = FIRST,
                            .images = IMAGES,
                            .channels = 3,
                            .image_bytes = bytes,
                            .element_bytes = 4,
                            .threads = 2};
    int64_t now[BATCH], other[BATCH], half_made = 0, none_made = 0, all_made = 0;
    unsigned char *place = calloc(IMAGES, (size_t)bytes), *taken = calloc(IMAGES, (size_t)bytes),
                  *made = calloc(IMAGES, (size_t)bytes);
    struct ghp_data *data = NULL;
    struct ghp_prefetch *ahead = NULL;

    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(ghp_prefetch_open(&load, place, &ahead), GHP_OK);
    for (int round = 0; round < check_cases(ROUNDS); round++) {
        struct ghp_supply s = supply_of(data, now, 31 * round);
        int64_t before = ghp_prefetch_counted(ahead).made, ours;

        if (round % 7 != 0) {
            struct ghp_supply wrong = supply_of(data, other, 31 * round + 1);

            ghp_prefetch_hint(ahead, round % 3 == 0 ? &wrong : &s);
            if (round % 5 == 0) ghp_prefetch_hint(ahead, round % 3 == 0 ? &wrong : &s);
        }
        pause_for(round % 4 == 0 ? 1000000 : 3000 * (round % 11));
        CHECK_STATUS(ghp_prefetch_take(ahead, &s, taken), GHP_OK);
        CHECK_STATUS(ghp_samples_images(&load, &s, (struct ghp_range){0, IMAGES}, made), GHP_OK);
        CHECK(memcmp(taken, made, IMAGES * (size_t)bytes) == 0);
        ours = ghp_prefetch_counted(ahead).made - before;
        CHECK(ours == 0 || (round % 7 != 0 && round % 3 != 0));
        *(ours == 0 ? &none_made : ours == IMAGES ? &all_made : &half_made) += 1;
    }
    CHECK_EQ(ghp_prefetch_counted(ahead).taken, (int64_t)check_cases(ROUNDS) * IMAGES);
    fprintf(stderr, "of %d loads: all made ahead %lld, some %lld, none %lld\n", check_cases(ROUNDS),
            (long long)all_made, (long long)half_made, (long long)none_made);
    now[FIRST] = ghp_data_count(data, GHP_DATA_TRAIN);
    ghp_prefetch_hint(ahead, &(struct ghp_supply){.data = data, .samples = now, .n = BATCH});
    CHECK_STATUS(ghp_prefetch_take(
                     ahead, &(struct ghp_supply){.data = data, .samples = now, .n = BATCH}, taken),
                 GHP_ERR_INTERNAL);
    ghp_prefetch_close(ahead);
    ghp_prefetch_close(NULL);
    ghp_data_close(data);
    free(place);
    free(taken);
    free(made);
}

/* That the thread makes samples at all: what was hinted is there when nobody hurries. */
static void check_made(void)
{
    struct ghp_shape shape = ghp_shape_image(1, 8, 8);
    struct ghp_data_request request = {.spec = "synthetic",
                                       .seed = 3,
                                       .global_batch = BATCH,
                                       .shape = shape,
                                       .sample_labels = 1,
                                       .classes = 5};
    struct ghp_load load = {.first_image = FIRST,
                            .images = IMAGES,
                            .channels = 1,
                            .image_bytes = 64 * (int64_t)sizeof(float),
                            .element_bytes = 4,
                            .threads = 1};
    float place[IMAGES * 64] = {0}, taken[IMAGES * 64];
    int64_t samples[BATCH];
    struct ghp_data *data = NULL;
    struct ghp_prefetch *ahead = NULL;
    struct ghp_supply s;

    CHECK_STATUS(ghp_data_open(&request, &data), GHP_OK);
    CHECK_STATUS(ghp_prefetch_open(&load, place, &ahead), GHP_OK);
    s = supply_of(data, samples, 0);
    for (int tries = 0; tries < 20 && ghp_prefetch_counted(ahead).made == 0; tries++) {
        ghp_prefetch_hint(ahead, &s);
        pause_for(100000000);
        CHECK_STATUS(ghp_prefetch_take(ahead, &s, taken), GHP_OK);
    }
    CHECK(ghp_prefetch_counted(ahead).made > 0);
    ghp_prefetch_close(ahead);
    ghp_data_close(data);
}

/* ---- in a training ---- */

static uint64_t train(struct bench *b, const struct ghp_split *splits, int64_t first,
                      bool evaluates)
{
    struct ghp_rank_plan rank_plan = bench_rank_plan(b, splits);
    struct ghp_worker *worker = NULL;
    struct ghp_evaluation evaluation;
    uint64_t hash;
    bool ahead = b->rank_plan.lowering.prefetch;

    CHECK_STATUS(bench_worker(b, splits, &worker), GHP_OK);
    CHECK_EQ(ghp_worker_wants_hints(worker), ahead);
    CHECK_EQ(ghp_worker_arena(worker)->bytes, ghp_worker_program(worker)->peak_bytes);
    for (int64_t t = first; t < first + STEPS; t++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, t);
        /* the one after step first + 2 does not come true */
        struct ghp_step next =
            ghp_training_config_step(&b->training_config, t == first + 2 ? t : t + 1);

        ghp_worker_hint(worker, &next);
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
        if (!evaluates || t != first + 4) continue;
        CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
        CHECK_STATUS(ghp_evaluate(worker,
                                  (struct ghp_evaluation_request){.data = b->data,
                                                                  .set = GHP_DATA_TEST,
                                                                  .rank_plan = &rank_plan},
                                  &evaluation),
                     GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    CHECK_EQ(ghp_worker_prefetched(worker).taken,
             ahead ? STEPS * ghp_worker_program(worker)->instrs[0].local.n : 0);
    hash = bench_fingerprint(worker);
    ghp_worker_close(worker);
    return hash;
}

static int64_t buffer_bytes(struct bench *b, const struct ghp_split *splits, bool ahead,
                            int64_t *peak)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct ghp_worker *worker = NULL;
    int64_t bytes = 0;

    rank_plan.splits = splits;
    rank_plan.lowering.prefetch = ahead;
    CHECK_STATUS(ghp_rank_plan_open(&b->exec, &rank_plan, &worker), GHP_OK);
    for (int i = 0; i < ghp_worker_program(worker)->n_buffers; i++)
        if (ghp_worker_program(worker)->buffers[i].buffer_kind == GHP_BUFFER_PREFETCH)
            bytes += ghp_worker_program(worker)->buffers[i].bytes;
    *peak = ghp_worker_program(worker)->peak_bytes;
    ghp_worker_close(worker);
    return bytes;
}

static void check_training(const char *path, bool small)
{
    struct bench b;
    int64_t plain, with, bytes;

    CHECK_STATUS(bench_open_by(&b, transport, path,
                               (struct bench_numbers){.ops = ghp_backend_find("reference"),
                                                      .element_bytes = 4,
                                                      .batch = 8}),
                 GHP_OK);
    for (int kind = CASE_DATA; kind < CASE_COUNT; kind += small ? 1 : CASE_MIXED - CASE_DATA) {
        struct ghp_split *splits =
            case_splits(&b.model, b.rank_plan.lowering.problem, (enum case_kind)kind, 5,
                        b.rank_plan.lowering.problem.workers);
        int64_t end =
            ghp_order_steps(&b.training_config.order) - 3; /* an epoch ends in the midst */

        b.rank_plan.lowering.prefetch = false;
        uint64_t first = train(&b, splits, 0, kind == CASE_DATA && small),
                 last = train(&b, splits, end, false);
        b.rank_plan.lowering.prefetch = true;
        CHECK(train(&b, splits, 0, kind == CASE_DATA && small) == first);
        CHECK(train(&b, splits, end, false) == last);
        CHECK(first != last);
        CHECK_EQ(buffer_bytes(&b, splits, false, &plain), 0);
        bytes = buffer_bytes(&b, splits, true, &with);
        CHECK(bytes > 0);
        CHECK_EQ(with, plain + bytes);
        free(splits);
    }
    bench_close(&b);
}

CHECK_TEST(prefetch)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    check_thread();
    check_made();
    check_training(GHP_SOURCE_DIR "/models/lenet5.json", true);
    check_training(GHP_SOURCE_DIR "/models/small-resnet.json", false);
    ghp_transport_end(transport);
    return check_end();
}
