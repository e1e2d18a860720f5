/* tests/executor/mixing/mix_run.h - a training of workers whose weights mix, with servers or without, and what was
 * found in it. */
#ifndef GHP_TESTS_EXECUTOR_MIXING_MIX_RUN_H
#define GHP_TESTS_EXECUTOR_MIXING_MIX_RUN_H

#include "executor/mixing/mixer.h"
#include "tests/executor/bench.h"

struct mix_run { /* how workers train, and what was found */
    const char *sync;
    int workers, servers;
    int64_t steps; /* of each; or, where they end together, of all over N */
    bool together;
    bool in_turn;  /* the last worker begins when the others have done all of theirs */
    bool like_one; /* found: whether the weights are those of b->alone */
    double weight; /* found: the weights' sum, each times another number */
    double slow_s; /* of a step of the last worker, of the others a tenth; 0: what it takes */
    enum ghp_fault fault;
    /* found: of the first server; of this worker */
    struct ghp_mix_server_count served;
    struct ghp_mix_count mixed;
    int64_t own_steps, weight_bytes;
    double sum[2], moved; /* of all workers' weights and X, before and after steps at rate 0 */
    double apart;         /* X from the workers' mean, over the norm */
    bool gossips, by_sum_weight;
    double sum_weights[2]; /* of all: with messages under way, and without */
    uint64_t hash;
};

/* Trains, or serves, or looks on, as this rank's place says. */
void mix_train(struct bench *b, struct mix_run *run);

/* The sum over the first workers. None of them continues before all have said theirs. */
double mix_sum(const struct bench *b, int workers, double mine);
/* The sum of a worker's weights, each times another number, so that no change of two hides in it. */
double mix_weigh(struct ghp_worker *worker);
/* A worker of the plan; NULL, with a failed check: it cannot be opened. */
struct ghp_worker *mix_open_worker(struct bench *b, const struct ghp_rank_plan *rank_plan);

static inline bool mix_is_worker(const struct bench *b, const struct mix_run *run)
{
    return b->rank_plan.rank < run->workers;
}

/* Whether this rank is the first server. */
static inline bool mix_is_server(const struct bench *b, const struct mix_run *run)
{
    return b->rank_plan.rank == run->workers;
}

#endif
