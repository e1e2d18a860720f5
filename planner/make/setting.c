/* planner/make/setting.c - see make/setting.h. */
#include "planner/make/setting.h"

#include "core/base/clock.h"
#include "planner/make/formats.h"

#include <stdlib.h>
#include <string.h>

/* Those given, or the best for data parallelism; NULL where nobody has a choice. */
static enum ghp_status set_formats(const bool *given, struct ghp_setting *s)
{
    size_t layers = (size_t)s->model->n_layers;

    if (given == NULL)
        return ghp_formats_decide(&s->lowering, NULL, s->request->profile, &s->nchw16c);
    s->nchw16c = ghp_alloc(layers, sizeof *s->nchw16c);
    if (s->nchw16c == NULL) return GHP_NO_MEMORY();
    memcpy(s->nchw16c, given, layers * sizeof *s->nchw16c);
    return GHP_OK;
}

static enum ghp_status fill(const bool *nchw16c, struct ghp_setting *s)
{
    const struct ghp_plan_request *w = s->request;
    int workers = w->problem.workers;

    s->lowering = ghp_lowering_of(s->model, w->problem, w->profile);
    s->lowering.method = w->method;
    if (w->method.bucket_bytes == GHP_BUCKET_AUTO) s->lowering.method.bucket_bytes = 0;
    GHP_TRY(set_formats(nchw16c, s));
    s->lowering.nchw16c = s->nchw16c;
    s->instance = ghp_alloc(1, sizeof *s->instance);
    if (s->instance == NULL) return GHP_NO_MEMORY();
    GHP_TRY(ghp_instance_init(&s->lowering, w->profile,
                              w->groups > 0 ? workers / w->groups : workers, s->instance));
    GHP_TRY(ghp_domain_init(s->instance, &s->domain));
    return w->force != NULL && !ghp_request_has_stages(w) ? ghp_force_restrict(w->force, &s->domain)
                                                          : GHP_OK;
}

enum ghp_status ghp_setting_init(const struct ghp_plan_request *request,
                                 const struct ghp_model *model, const bool *nchw16c,
                                 struct ghp_setting *setting)
{
    enum ghp_status status;

    *setting = (struct ghp_setting){.request = request, .model = model, .began_s = ghp_now_s()};
    status = fill(nchw16c, setting);
    if (status != GHP_OK) ghp_setting_release(setting);
    return status;
}

void ghp_setting_release(struct ghp_setting *setting)
{
    ghp_domain_release(&setting->domain);
    if (setting->instance != NULL) ghp_instance_release(setting->instance);
    free(setting->instance);
    free(setting->nchw16c);
    *setting = (struct ghp_setting){0};
}

double ghp_setting_deadline(const struct ghp_setting *setting, double share)
{
    return setting->began_s + share * setting->request->time_limit_s;
}

bool ghp_setting_is_late(const struct ghp_setting *setting)
{
    return ghp_now_s() > ghp_setting_deadline(setting, 1);
}

struct ghp_partition_job ghp_setting_partition_job(const struct ghp_setting *setting, double share,
                                                   double best_s)
{
    const struct ghp_plan_request *w = setting->request;

    return (struct ghp_partition_job){.lowering = &setting->lowering,
                                      .profile = w->profile,
                                      .space = w->space,
                                      .limit_bytes = w->memory_bytes,
                                      .deadline_s = ghp_setting_deadline(setting, share),
                                      .gap = w->gap,
                                      .solver = w->solver,
                                      .best_s = best_s};
}
