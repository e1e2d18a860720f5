/* tests/executor/mixing/mix_run.c - see mix_run.h. */
#include "tests/executor/mixing/mix_run.h"

#include "executor/state/parameters.h"
#include "executor/train/others.h"
#include "tests/check.h"
#include "tests/executor/cases.h"

#include <math.h>
#include <stdlib.h>

static bool serves(struct bench *b, struct mix_run *run, const struct ghp_rank_plan *rank_plan)
{
    struct ghp_mix_server *server = NULL;
    struct ghp_server_programs programs;
    int number = b->rank_plan.rank - run->workers;

    if (number < 0) return false;
    if (number >= run->servers) return true;
    if (!CHECK_STATUS(ghp_rank_plan_lower_server(&b->exec, rank_plan, number, &programs), GHP_OK) ||
        !CHECK_STATUS(ghp_mix_server_open(&b->exec, &programs, rank_plan->run.fault, &server),
                      GHP_OK))
        return true;
    CHECK_EQ(ghp_mix_server_arena(server)->bytes, ghp_mix_server_program(server)->peak_bytes);
    CHECK_STATUS(ghp_mix_server_connect(server), GHP_OK);
    CHECK_STATUS(ghp_mix_server_run(server), GHP_OK);
    run->served = ghp_mix_server_counted(server);
    ghp_mix_server_close(server);
    return true;
}

/* ---- sums over all workers ---- */

double mix_sum(const struct bench *b, int workers, double mine)
{
    return bench_sum(b->exec.transport, workers, mine);
}

static const double *weights_of(struct ghp_worker *worker, int64_t *n)
{
    const struct ghp_program *program = ghp_worker_program(worker);

    *n = program->buckets[0].bytes / (int64_t)sizeof(double);
    return ghp_arena_at(ghp_worker_arena(worker), program, program->buckets[0].weights);
}

double mix_weigh(struct ghp_worker *worker)
{
    int64_t n;
    const double *x = weights_of(worker, &n);
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i] * (1 + (double)(i % 17));
    return sum;
}

/* The workers' own and the servers'. */
static double weigh_all(const struct bench *b, struct ghp_worker *worker, int workers, double *of_x)
{
    double own = mix_sum(b, workers, mix_weigh(worker));

    CHECK_STATUS(ghp_worker_take_mean(worker), GHP_OK);
    *of_x = mix_weigh(worker);
    CHECK_STATUS(ghp_worker_return_mean(worker), GHP_OK);
    mix_sum(b, workers, 0); /* no one continues before all have read */
    return own;
}

/* ---- without servers ---- */

/* All workers' weights, each times its part of the sum, when nothing is under way. */
static double weigh_settled(const struct bench *b, struct ghp_worker *worker, int workers,
                            bool by_sum_weight)
{
    double sum;

    CHECK_STATUS(ghp_worker_take_mean(worker), GHP_OK);
    CHECK_STATUS(ghp_worker_return_mean(worker), GHP_OK);
    sum = mix_weigh(worker) * (by_sum_weight ? ghp_worker_mixed(worker).sum_weight : 1);
    return mix_sum(b, workers, sum);
}

/* Steps at rate 0: weights change by mixes alone. */
static void still_steps(struct bench *b, int64_t first, int64_t end, struct ghp_worker *worker)
{
    for (int64_t k = first; k < end; k++) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, k);

        step.hyperparameters = (struct ghp_hyperparameters){.learning_rate = 0};
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
}

static void note_gossip(struct bench *b, struct mix_run *run, struct ghp_worker *worker)
{
    bool by_sum_weight = run->by_sum_weight;
    double before = mix_weigh(worker);

    run->mixed = ghp_worker_mixed(worker);
    run->sum_weights[0] =
        mix_sum(b, run->workers,
                run->mixed.sum_weight + run->mixed.sent_sum_weight - run->mixed.taken_sum_weight);
    run->sum[0] = weigh_settled(b, worker, run->workers, by_sum_weight);
    run->sum_weights[1] = mix_sum(b, run->workers, ghp_worker_mixed(worker).sum_weight);
    still_steps(b, run->steps, 2 * run->steps, worker);
    run->sum[1] = weigh_settled(b, worker, run->workers, by_sum_weight);
    run->moved = fabs(mix_weigh(worker) - before) / fabs(before);
    run->mixed = ghp_worker_mixed(worker);
}

/* ---- training ---- */

static void steps_together(struct bench *b, struct mix_run *run, struct ghp_worker *worker)
{
    struct ghp_others *others = NULL;
    int64_t k = 0;

    if (!CHECK_STATUS(ghp_others_open(&b->exec, run->workers, &others), GHP_OK)) return;
    while (ghp_others_all(others).steps < run->steps * run->workers) {
        struct ghp_step step = ghp_training_config_step(&b->training_config, k++);

        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
        ghp_others_mine(others)->steps++;
        CHECK_STATUS(ghp_others_tell(others), GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    CHECK_STATUS(ghp_others_meet(others), GHP_OK);
    CHECK(ghp_others_all(others).steps >= run->steps * run->workers);
    CHECK_NEAR(mix_sum(b, run->workers, (double)k), (double)ghp_others_all(others).steps, 0);
    ghp_others_close(others);
    run->own_steps = k;
}

static void note_sums(struct bench *b, struct mix_run *run, struct ghp_worker *worker)
{
    const struct ghp_hyperparameters none = {.learning_rate = 0};
    struct ghp_training_config still = b->training_config;
    double x[2], own[2];

    own[0] = weigh_all(b, worker, run->workers, &x[0]);
    run->apart = fabs(x[0] - own[0] / run->workers) / fabs(x[0]);
    still.hyperparameters = none;
    still.schedule.base = 0;
    for (int64_t k = 0; k < 4; k++) {
        struct ghp_step step = ghp_training_config_step(&still, run->own_steps + k);

        step.hyperparameters = none;
        CHECK_STATUS(ghp_worker_step(worker, &step), GHP_OK);
    }
    CHECK_STATUS(ghp_worker_flush(worker), GHP_OK);
    own[1] = weigh_all(b, worker, run->workers, &x[1]);
    run->moved = fabs(x[1] - x[0]) / fabs(x[0]);
    for (int i = 0; i < 2; i++)
        run->sum[i] = own[i] + x[i];
}

/* So that others are surely ahead of the last worker, if nobody holds them. */
static void steps_in_turn(struct bench *b, const struct mix_run *run, struct ghp_worker *worker)
{
    bool last = b->rank_plan.rank == run->workers - 1;

    if (last) mix_sum(b, run->workers, 0);
    CHECK_STATUS(bench_steps(b, worker, 0, run->steps), GHP_OK);
    if (!last) mix_sum(b, run->workers, 0);
}

/* The weights against one worker's at the global batch. */
static bool weights_pass(struct bench *b, struct ghp_worker *worker)
{
    struct ghp_snapshot mixed = {0};
    struct ghp_verification v = {0};
    bool passed;

    CHECK_STATUS(ghp_snapshot_init(&b->model, true, &mixed), GHP_OK);
    CHECK_STATUS(ghp_snapshot_weights(&mixed, worker), GHP_OK);
    for (int i = 0; i < mixed.list.n_trained; i++)
        memcpy(mixed.gradients[i], b->alone.gradients[i],
               (size_t)mixed.list.items[i].param->elements * sizeof(double));
    CHECK_STATUS(
        ghp_verify_compare(&mixed, &b->alone,
                           (struct ghp_precision){b->rank_plan.lowering.element_bytes, false}, &v),
        GHP_OK);
    passed = v.passed;
    ghp_verification_release(&v);
    ghp_snapshot_release(&mixed);
    return passed;
}

struct ghp_worker *mix_open_worker(struct bench *b, const struct ghp_rank_plan *rank_plan)
{
    struct ghp_worker *worker;

    return CHECK_STATUS(bench_open_worker(b, rank_plan, &worker), GHP_OK) ? worker : NULL;
}

void mix_train(struct bench *b, struct mix_run *run)
{
    struct ghp_rank_plan rank_plan = b->rank_plan;
    struct ghp_worker *worker;
    struct ghp_split *splits;

    rank_plan.lowering.problem.workers = rank_plan.run.groups = run->workers;
    splits = case_splits(&b->model, rank_plan.lowering.problem, CASE_DATA, 0, 1);
    rank_plan.splits = splits;
    rank_plan.run.fault = run->fault;
    if (run->slow_s > 0)
        rank_plan.run.emulated_step_s =
            rank_plan.rank == run->workers - 1 ? run->slow_s : run->slow_s / 10;
    if (run->sync != NULL)
        CHECK_STATUS(ghp_sync_parse(run->sync, &rank_plan.lowering.method.sync), GHP_OK);
    if (run->servers > 0) rank_plan.lowering.method.sync.servers = run->servers;
    rank_plan.run.mixing = &ghp_host_mixer;
    if (serves(b, run, &rank_plan)) {
        free(splits);
        return;
    }
    worker = mix_open_worker(b, &rank_plan);
    if (worker != NULL) {
        CHECK_EQ(ghp_worker_arena(worker)->bytes, ghp_worker_program(worker)->peak_bytes);
        run->own_steps = run->steps;
        if (run->together)
            steps_together(b, run, worker);
        else if (run->in_turn)
            steps_in_turn(b, run, worker);
        else
            CHECK_STATUS(bench_steps(b, worker, 0, run->steps), GHP_OK);
        if (run->sync != NULL && rank_plan.lowering.element_bytes == 8)
            run->weight = mix_weigh(worker);
        if (run->like_one) run->like_one = weights_pass(b, worker);
        run->mixed = ghp_worker_mixed(worker);
        run->weight_bytes = ghp_worker_program(worker)->buckets[0].bytes;
        if (run->gossips)
            note_gossip(b, run, worker);
        else if (run->sync != NULL && rank_plan.lowering.element_bytes == 8)
            note_sums(b, run, worker);
        if (run->workers == 1) run->hash = bench_fingerprint(worker);
    }
    ghp_worker_close(worker);
    free(splits);
}
