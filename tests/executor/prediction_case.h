/* tests/executor/prediction_case.h - a program with a price and a step timer: a model by data parallelism, priced by
 * the analytic models. */
#ifndef GHP_TESTS_EXECUTOR_PREDICTION_CASE_H
#define GHP_TESTS_EXECUTOR_PREDICTION_CASE_H

#include "core/program/lower/lower.h"
#include "executor/report/prediction_error.h"

struct prediction_case {
    struct ghp_model model;
    struct ghp_profile profile;
    struct ghp_split *splits;
    struct ghp_program program;
    struct ghp_step_timer *timer; /* of no step yet */
};

/* Opens it for a model by its file, and for `workers` workers of one core each over a link, with these slowdowns, batch
 * 8. */
void prediction_case_open(const char *path, int workers, struct ghp_link link,
                          struct ghp_overlap overlap, struct prediction_case *c);

/* Its residuals as far as the watch has seen; the caller releases them. */
struct ghp_prediction_errors prediction_case_prediction_errors(const struct prediction_case *c);

void prediction_case_close(struct prediction_case *c);

#endif
