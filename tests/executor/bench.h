/* tests/executor/bench.h - everything that a training in a test needs, and what one worker alone makes of it. */
#ifndef GHP_TESTS_EXECUTOR_BENCH_H
#define GHP_TESTS_EXECUTOR_BENCH_H

#include "executor/train/verify/verify.h"

/* Steps of a training, and the seed of everything. With this seed no activation of the first step lies within rounding
 * of relu's kink: where one does, its gradient is there or not by the last bit, and float runs truly differ. */
enum { BENCH_STEPS = 4, BENCH_SEED = 6 };

struct bench {
    struct ghp_model model;
    struct ghp_backend *backend;
    struct ghp_data *data;
    struct ghp_training_config training_config;
    struct ghp_snapshot alone; /* of BENCH_STEPS steps; only after bench_train_alone */
    struct ghp_exec_context exec;
    struct ghp_rank_plan rank_plan; /* without splits */
};

/* Opens a model of the source tree on a backend; the global batch is 2 N^2. Failures are failed checks of the
 * caller's. */
enum ghp_status bench_open(struct bench *bench, struct ghp_transport *transport,
                           const char *model_path, const char *backend, int element_bytes);
/* The same on a backend that is not part of the build, with another global batch, or by the quickest algorithms. */
struct bench_numbers {
    const struct ghp_backend_ops *ops;
    int element_bytes;
    int64_t batch; /* 0: 2 N^2 */
    bool fast;     /* numerics; else exact */
};
enum ghp_status bench_open_by(struct bench *bench, struct ghp_transport *transport,
                              const char *model_path, struct bench_numbers numbers);
/* Cuts the test set to its first `samples` samples. */
void bench_shorten_test_set(struct bench *bench, int64_t samples);
/* One label is ignored: the first that the first step's workers, by data, do not have equally often. */
void bench_ignore(struct bench *bench);
void bench_close(struct bench *bench);
enum ghp_status bench_train_alone(struct bench *bench);

/* An allocated worker with fresh weights: by any work, or by the bench's with these splits. */
enum ghp_status bench_open_worker(struct bench *bench, const struct ghp_rank_plan *rank_plan,
                                  struct ghp_worker **worker);
enum ghp_status bench_worker(struct bench *bench, const struct ghp_split *splits,
                             struct ghp_worker **worker);
/* The bench's work with these splits. */
struct ghp_rank_plan bench_rank_plan(const struct bench *bench, const struct ghp_split *splits);

/* Steps first .. last - 1, flushed. */
enum ghp_status bench_steps(struct bench *bench, struct ghp_worker *worker, int64_t first,
                            int64_t last);

/* The first n of all workers, of whom the others may do something else. */
struct ghp_comm *bench_workers(struct ghp_transport *transport, int n);
/* The sum of what each of n workers says. No one continues before all have said theirs. */
double bench_sum(struct ghp_transport *transport, int n, double mine);

/* A folder of their own for a test's checkpoints; and its end, with the checkpoints in it, when all have come there.
 * Nothing else is left in it, and at least one checkpoint. */
enum { BENCH_FOLDER = 64 };
void bench_make_folder(struct ghp_transport *transport, int n, const char *test,
                       char folder[BENCH_FOLDER]);
void bench_remove_folder(struct ghp_transport *transport, int n, const char *folder);

/* Whether a worker's training has the weights that one process makes that trains all replicas of `like` in turn, and in
 * worker 0 its gradients. */
bool bench_trains_like_reference(struct bench *bench, struct ghp_worker *worker,
                                 const struct ghp_rank_plan *like, int64_t steps);

/* The fingerprint of all workers' own weights and moments. */
uint64_t bench_fingerprint_replicas(struct ghp_worker *worker);
/* The fingerprint of all weights and moments, which gathered copies of each tensor must have too. */
uint64_t bench_fingerprint(struct ghp_worker *worker);

#endif
