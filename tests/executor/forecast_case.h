/* tests/executor/forecast_case.h - a program with a price and a stopwatch: a model by data parallelism, priced by laws. */
#ifndef GHP_TESTS_EXECUTOR_FORECAST_CASE_H
#define GHP_TESTS_EXECUTOR_FORECAST_CASE_H

#include "core/program/lower.h"
#include "executor/report/prediction_error.h"

struct forecast_case {
    struct ghp_model model;
    struct ghp_profile profile;
    struct ghp_split *splits;
    struct ghp_program program;
    struct ghp_stopwatch *watch; /* of no step yet */
};

/* Opens it for a model by its file and so many workers of one core each over a link, with these slowdowns, batch 8. */
void forecast_case_open(const char *path, int workers, struct ghp_link link,
                        struct ghp_overlap overlap, struct forecast_case *c);

/* Its residuals as far as the watch has seen; the caller releases them. */
struct ghp_residuals forecast_case_residuals(const struct forecast_case *c);

void forecast_case_close(struct forecast_case *c);

#endif
