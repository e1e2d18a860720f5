/* ghp-test: np=2 np_full=1,4 timeout=120
 *
 * A worker's memory is its program's to the byte and lies where the program says; flushing after every step changes no
 * bit, nor do reductions that run late, without a thread; results come for the right step; a profile with other
 * scratch bytes is refused, and one that calls a pass fused where the backend fuses none. Under AddressSanitizer the
 * arena is poisoned outside lifetimes, so the steps here (reference backend) also show that nothing strays. */
#include "executor/engine/kernel_arguments.h"
#include "tests/check.h"
#include "tests/executor/bench.h"
#include "tests/executor/cases.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

static struct ghp_transport *transport;

static uint64_t train(struct bench *b, const struct ghp_split *splits, bool flushes)
{
    struct ghp_worker *worker = NULL;
    struct ghp_result result = {0};
    uint64_t hash;

    CHECK_STATUS(bench_worker(b, splits, &worker), GHP_OK);
    CHECK_EQ(ghp_worker_arena(worker)->bytes, ghp_worker_program(worker)->peak_bytes);
    CHECK_EQ((int64_t)((uintptr_t)ghp_worker_arena(worker)->base % GHP_ALIGN_BYTES), 0);
    for (int t = 0; t < BENCH_STEPS; t++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, t);

        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
        if (t > 0 && !flushes) {
            CHECK(ghp_worker_result(worker, &result));
            CHECK_EQ(result.step, t - 1);
            CHECK_EQ((int64_t)result.samples, b->rank_plan.lowering.problem.global_batch);
        }
        if (flushes) CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK); /* nothing is pending: nothing happens */
    CHECK(ghp_worker_result(worker, &result));
    CHECK_EQ(result.step, BENCH_STEPS - 1);
    CHECK_EQ(ghp_step_timer_steps(ghp_worker_step_timer(worker)), BENCH_STEPS);
    hash = bench_fingerprint(worker);
    ghp_worker_close(worker);
    return hash;
}

static void check_model(const char *path)
{
    struct bench b;

    CHECK_STATUS(bench_open(&b, transport, path, "reference", 8), GHP_OK);
    for (int kind = CASE_DATA; kind < CASE_COUNT; kind++) {
        struct ghp_split *splits =
            case_splits(&b.model, b.rank_plan.lowering.problem, (enum case_kind)kind, 5,
                        b.rank_plan.lowering.problem.workers);

        uint64_t hash = train(&b, splits, false);

        CHECK(hash == train(&b, splits, true));
        b.rank_plan.run.reduces_late = true;
        CHECK(hash == train(&b, splits, false));
        b.rank_plan.run.reduces_late = false;
        free(splits);
    }
    bench_close(&b);
}

/* Opens a worker with one entry of a profile: of a layer's forward pass. */
static void check_profile(int layer, const char *algorithm, int64_t scratch_bytes,
                          const char *refusal)
{
    struct bench b;
    struct ghp_worker *worker = NULL;
    struct ghp_profile profile = {0};
    struct ghp_split *splits;
    char key[GHP_KEY_BYTES], text[16];
    struct ghp_op_entry entry = {.key = key, .algorithm = text, .scratch_bytes = scratch_bytes};
    struct ghp_local local;

    snprintf(text, sizeof text, "%s", algorithm);
    CHECK_STATUS(bench_open(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", "reference", 8),
                 GHP_OK);
    splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    local = ghp_local_of(&b.model, layer, splits[layer], b.rank_plan.lowering.problem);
    ghp_local_key(&local, key);
    CHECK_STATUS(ghp_profile_init(&profile, "reference", "exact", 8), GHP_OK);
    profile.analytic.flops_per_s = 1e9; /* what has no entry */
    CHECK_STATUS(ghp_profile_add_op(&profile, &entry), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    b.rank_plan.splits = splits;
    b.rank_plan.run.profile = &profile;
    CHECK_STATUS(ghp_rank_plan_open(&b.exec, &b.rank_plan, &worker),
                 refusal ? GHP_ERR_INPUT : GHP_OK);
    if (refusal != NULL) CHECK_MESSAGE(refusal);
    if (worker != NULL) CHECK(ghp_worker_program(worker)->peak_bytes > scratch_bytes);
    ghp_worker_close(worker);
    ghp_profile_release(&profile);
    free(splits);
    bench_close(&b);
}

/* Scratch as planned is taken though the backend asks for less; what is called another kernel's work must be that. */
static void check_profiles(void)
{
    check_profile(1, "loop", 1 << 20, NULL);
    check_profile(2, GHP_OP_FUSED, 0, "no such kernel of 'conv2d'");
    check_profile(2, "loop", 0, NULL);
}

static void check_windows(void)
{
    struct ghp_problem problem = {.workers = 8, .global_batch = 32};
    struct ghp_shape shape = ghp_shape_sequence(12, 8);
    struct ghp_region at =
        ghp_region_of((struct ghp_layout){GHP_LAYOUT_CHANNEL, 4}, shape, problem, 6);

    CHECK_EQ(at.samples, 16);
    CHECK_EQ(at.first_sample, 16);
    CHECK_EQ(at.channels, 3);
    CHECK_EQ(at.first_channel, 6);
    at = ghp_region_of((struct ghp_layout){GHP_LAYOUT_SEQUENCE, 4}, shape, problem, 6);
    CHECK_EQ(at.first_sample, 16);
    CHECK_EQ(at.first_position, 4);
    CHECK_EQ(at.positions, 2);
    at = ghp_region_of((struct ghp_layout){GHP_LAYOUT_BATCH, 1}, shape, problem, 6);
    CHECK_EQ(at.first_sample, 24);
    CHECK_EQ(at.samples, 4);
    CHECK_EQ(at.channels, 12);
}

/* That the arena really is poisoned: at each point some buffer is dead, and its memory closed or another's. */
static void check_poison(void)
{
#if defined(__SANITIZE_ADDRESS__)
    struct bench b;
    struct ghp_worker *worker = NULL;
    struct ghp_split *splits;
    struct ghp_arena arena;
    const struct ghp_program *program;

    CHECK_STATUS(bench_open(&b, transport, GHP_SOURCE_DIR "/models/lenet5.json", "reference", 8),
                 GHP_OK);
    splits = case_splits(&b.model, b.rank_plan.lowering.problem, CASE_DATA, 0, 1);
    CHECK_STATUS(bench_worker(&b, splits, &worker), GHP_OK);
    arena = *ghp_worker_arena(worker);
    program = ghp_worker_program(worker);
    ghp_arena_visit(&arena, program, program->n_points - 1);
    CHECK(__asan_region_is_poisoned(arena.base, (size_t)arena.bytes) != NULL);
    ghp_arena_visit(&arena, program, -1);
    CHECK(__asan_region_is_poisoned(arena.base, (size_t)arena.bytes) == NULL);
    ghp_worker_close(worker);
    free(splits);
    bench_close(&b);
#endif
}

CHECK_TEST(worker)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &transport), GHP_OK)) return 1;
    check_windows();
    check_poison();
    check_profiles();
    check_model(GHP_SOURCE_DIR "/models/lenet5.json");
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json");
    ghp_transport_end(transport);
    return check_end();
}
