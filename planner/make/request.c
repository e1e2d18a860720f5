/* planner/make/request.c - what a request comes to. */
#include "planner/make/request.h"

#include "core/model/vocabulary.h"
#include "core/plan/method_io.h"
#include "onnx/network.h"

enum ghp_status ghp_request_check(const struct ghp_plan_request *w)
{
    int workers = w->problem.workers;

    GHP_TRY(ghp_problem_check(w->problem));
    if (w->groups > 0 && workers % w->groups != 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot make %d groups of %d workers; give --groups a divisor of %d",
                        w->groups, workers, workers);
    return ghp_method_check_within(w->method.shard_within, workers);
}

enum ghp_status ghp_request_open_model(const struct ghp_plan_request *request,
                                       struct ghp_model *model)
{
    struct ghp_problem problem = request->problem;
    enum ghp_status status;

    if (request->model == NULL)
        GHP_TRY(ghp_network_load(request->model_path, model));
    else
        GHP_TRY(ghp_model_parse(request->model->text, request->model_path, model));
    status = ghp_model_set_vocabulary(model, request->profile->vocabulary_multiple);
    if (status == GHP_OK)
        status = ghp_model_check_sizes(model, problem.global_batch, problem.workers);
    if (status != GHP_OK) ghp_model_release(model);
    return status;
}

bool ghp_request_has_stages(const struct ghp_plan_request *w)
{
    return w->stages != NULL || w->micro_batches > 1;
}

bool ghp_request_is_given(const struct ghp_plan_request *w)
{
    return w->force != NULL || w->stages != NULL || w->micro_batches > 0 ||
           w->solver == GHP_SOLVER_HEURISTIC;
}

bool ghp_request_is_free(const struct ghp_plan_request *w)
{
    return w->strategy == GHP_STRATEGY_AUTO && w->force == NULL;
}

bool ghp_request_may_try(const struct ghp_plan_request *w)
{
    return w->solver != GHP_SOLVER_HEURISTIC && w->force == NULL && w->groups == 0 &&
           !w->profile->on_device;
}

bool ghp_request_may_recompute(const struct ghp_plan_request *w)
{
    return w->memory_bytes > 0 && w->recompute == GHP_RECOMPUTE_MODE_AUTO && ghp_request_may_try(w);
}

bool ghp_request_may_recompute_given(const struct ghp_plan_request *w)
{
    return w->memory_bytes > 0 && w->recompute == GHP_RECOMPUTE_MODE_AUTO &&
           w->solver != GHP_SOLVER_HEURISTIC && !w->profile->on_device;
}
