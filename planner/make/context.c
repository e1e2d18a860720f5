/* planner/make/context.c - see make/context.h. */
#include "planner/make/context.h"

#include "core/base/clock.h"
#include "core/base/units.h"
#include "planner/make/formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Those given, or the best for data parallelism; NULL if nobody has a choice. */
static enum ghp_status set_formats(const bool *given, struct ghp_plan_context *s)
{
    size_t layers = (size_t)s->model->n_layers;

    if (given == NULL)
        return ghp_formats_decide(&s->lowering, NULL, s->request->profile, &s->nchw16c);
    s->nchw16c = ghp_alloc(layers, sizeof *s->nchw16c);
    if (s->nchw16c == NULL) return GHP_NO_MEMORY();
    memcpy(s->nchw16c, given, layers * sizeof *s->nchw16c);
    return GHP_OK;
}

/* Whether every layer has a split, which a batch of fewer samples than workers may leave it none of. */
static enum ghp_status check_choices(const struct ghp_plan_context *s)
{
    const struct ghp_problem problem = s->lowering.problem;
    int sharers = ghp_problem_sharers(problem);

    for (int v = 0; v < s->model->n_layers && sharers > 1; v++)
        if (s->instance->n_choices[v] == 0)
            return GHP_FAIL(GHP_ERR_INFEASIBLE,
                            "cannot plan '%s': with a batch of %" PRId64
                            ", %d workers share each sample, and layer '%s' has no split over %d; "
                            "use a batch of %d, or %" PRId64 " worker%s",
                            s->model->name, problem.global_batch, sharers, s->model->layers[v].name,
                            sharers, problem.workers, problem.global_batch,
                            ghp_plural(problem.global_batch));
    return GHP_OK;
}

static enum ghp_status fill(const bool *nchw16c, struct ghp_plan_context *s)
{
    const struct ghp_plan_request *w = s->request;
    int workers = w->problem.workers;

    s->lowering = ghp_lowering_of(s->model, w->problem, w->profile);
    s->lowering.method = w->method;
    s->lowering.shardings = w->shardings;
    if (w->method.bucket_bytes == GHP_BUCKET_AUTO) s->lowering.method.bucket_bytes = 0;
    GHP_TRY(set_formats(nchw16c, s));
    s->lowering.nchw16c = s->nchw16c;
    s->instance = ghp_alloc(1, sizeof *s->instance);
    if (s->instance == NULL) return GHP_NO_MEMORY();
    GHP_TRY(ghp_instance_init(&s->lowering, w->profile,
                              w->groups > 0 ? workers / w->groups : workers, s->instance));
    if (!ghp_request_has_stages(w)) GHP_TRY(check_choices(s));
    GHP_TRY(ghp_domain_init(s->instance, &s->domain));
    return w->force != NULL && !ghp_request_has_stages(w) ? ghp_force_restrict(w->force, &s->domain)
                                                          : GHP_OK;
}

enum ghp_status ghp_plan_context_init(const struct ghp_plan_request *request,
                                      const struct ghp_model *model, const bool *nchw16c,
                                      struct ghp_plan_context *context)
{
    enum ghp_status status;

    *context =
        (struct ghp_plan_context){.request = request, .model = model, .began_s = ghp_now_s()};
    status = fill(nchw16c, context);
    if (status != GHP_OK) ghp_plan_context_release(context);
    return status;
}

void ghp_plan_context_release(struct ghp_plan_context *context)
{
    ghp_domain_release(&context->domain);
    if (context->instance != NULL) ghp_instance_release(context->instance);
    free(context->instance);
    free(context->nchw16c);
    *context = (struct ghp_plan_context){0};
}

double ghp_plan_context_deadline(const struct ghp_plan_context *context, double fraction)
{
    return context->began_s + fraction * context->request->time_limit_s;
}

bool ghp_plan_context_is_late(const struct ghp_plan_context *context)
{
    return ghp_now_s() > ghp_plan_context_deadline(context, 1);
}

struct ghp_partition_job ghp_plan_context_partition_job(const struct ghp_plan_context *context,
                                                        double fraction, double best_s)
{
    const struct ghp_plan_request *w = context->request;

    return (struct ghp_partition_job){.lowering = &context->lowering,
                                      .profile = w->profile,
                                      .space = w->space,
                                      .limit_bytes = w->memory_bytes,
                                      .deadline_s = ghp_plan_context_deadline(context, fraction),
                                      .gap = w->gap,
                                      .solver = w->solver,
                                      .best_s = best_s};
}
