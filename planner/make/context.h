/* planner/make/context.h - what all steps of a plan's build read and none changes: request, model, the model's costs,
 * and what the request leaves open.
 *
 * Called by planner/make/make.h alone. Tested  tests/planner/make/test_make.c */
#ifndef GHP_PLANNER_MAKE_CONTEXT_H
#define GHP_PLANNER_MAKE_CONTEXT_H

#include "planner/make/request.h"

struct ghp_plan_context {
    const struct ghp_plan_request *request;
    const struct ghp_model *model; /* borrowed */
    bool *nchw16c; /* one a layer: whether outputs lie blocked; NULL: nobody says; owned */
    struct ghp_lowering lowering;  /* without stages; the bucket size that is searched with */
    struct ghp_instance *instance; /* costs; owned. Searches add memory spans when they need them */
    struct ghp_domain domain;      /* what the request leaves open, its strategy aside */
    double began_s;                /* on ghp_now_s's clock */
};

/* Lowers and costs every piece of the model's plans. A context stays where it is: its instance points into it.
 *
 * nchw16c   one a layer, or NULL: the formats that are best for data parallelism (planner/labelling/memory_format.h)
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (force, groups); errors of lowering and costing; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_plan_context_init(const struct ghp_plan_request *request,
                                      const struct ghp_model *model, const bool *nchw16c,
                                      struct ghp_plan_context *context);
void ghp_plan_context_release(struct ghp_plan_context *context);

/* When this fraction of the time limit has gone, on ghp_now_s's clock. */
double ghp_plan_context_deadline(const struct ghp_plan_context *context, double fraction);

/* Whether the time limit has gone: nothing more is tried then, and what is there is finished. */
bool ghp_plan_context_is_late(const struct ghp_plan_context *context);

/* A search over stages and micro-batches till that fraction of the time limit, for plans faster than best_s. */
struct ghp_partition_job ghp_plan_context_partition_job(const struct ghp_plan_context *context,
                                                        double fraction, double best_s);

#endif
