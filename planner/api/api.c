/* planner/api/api.c - the functions of ghp.h, each a few calls of the rooms below.
 *
 * A handle is the struct of the same name, as first member of what else has to be kept of it. */
#include "planner/api/ghp.h"

#include "inspect/inspect.h"
#include "onnx/network.h"
#include "planner/make/sync_choice.h"
#include "planner/make/trust.h"
#include "planner/search/dual.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double usual_time_limit_s = 25;
enum { MOST_WORKERS = 1 << 20 };

struct open_model {
    struct ghp_model model;
    char path[]; /* as given */
};

struct open_profile {
    struct ghp_profile profile;
    char path[];
};

/* Numbers are read and written with a decimal point, whatever the caller's locale has. Returns the caller's, of this
 * thread. */
static locale_t enter(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); /* a constant of the C library's */
}

/* Gives the caller its locale back. */
static int leave(locale_t callers, enum ghp_status status)
{
    uselocale(callers);
    return ghp_status_exit_code(status);
}

const char *ghp_version(void)
{
    return GHP_VERSION;
}

const char *ghp_error(void)
{
    return ghp_status_message();
}

/* ---- files ---- */

int ghp_model_open(const char *path, struct ghp_model **model)
{
    const locale_t callers = enter();
    size_t bytes = strlen(path) + 1;
    struct open_model *opened = ghp_alloc(1, sizeof *opened + bytes);
    enum ghp_status status;

    *model = NULL;
    if (opened == NULL) return leave(callers, GHP_NO_MEMORY());
    memcpy(opened->path, path, bytes);
    status = ghp_network_load(path, &opened->model);
    if (status == GHP_OK)
        *model = &opened->model;
    else
        free(opened);
    return leave(callers, status);
}

void ghp_model_close(struct ghp_model *model)
{
    if (model != NULL) ghp_model_release(model);
    free(model);
}

int ghp_profile_open(const char *path, struct ghp_profile **profile)
{
    const locale_t callers = enter();
    size_t bytes = strlen(path) + 1;
    struct open_profile *opened = ghp_alloc(1, sizeof *opened + bytes);
    enum ghp_status status;

    *profile = NULL;
    if (opened == NULL) return leave(callers, GHP_NO_MEMORY());
    memcpy(opened->path, path, bytes);
    status = ghp_profile_load(path, &opened->profile);
    if (status == GHP_OK)
        *profile = &opened->profile;
    else
        free(opened);
    return leave(callers, status);
}

void ghp_profile_close(struct ghp_profile *profile)
{
    if (profile != NULL) ghp_profile_release(profile);
    free(profile);
}

int ghp_plan_open(const char *path, struct ghp_plan **plan)
{
    const locale_t callers = enter();
    struct ghp_plan *opened = ghp_alloc(1, sizeof *opened);
    enum ghp_status status = opened != NULL ? ghp_plan_load(path, opened) : GHP_NO_MEMORY();

    *plan = NULL;
    if (status == GHP_OK)
        *plan = opened;
    else
        free(opened);
    return leave(callers, status);
}

int ghp_plan_store(const struct ghp_plan *plan, const char *path)
{
    const locale_t callers = enter();

    return leave(callers, ghp_plan_save(path, plan));
}

void ghp_plan_close(struct ghp_plan *plan)
{
    if (plan != NULL) ghp_plan_release(plan);
    free(plan);
}

/* ---- planning ---- */

static enum ghp_status read_strategy(const char *name, enum ghp_strategy *strategy)
{
    static const char *const names[] = {
#define STRATEGY_TEXT(id, text, shown) text,
        GHP_STRATEGY_SEARCH_LIST(STRATEGY_TEXT)
#undef STRATEGY_TEXT
    };

    *strategy = GHP_STRATEGY_AUTO;
    if (name == NULL) return GHP_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *strategy = (enum ghp_strategy)i;
        return GHP_OK;
    }
    return GHP_FAIL(GHP_ERR_USAGE, "there is no strategy '%s'; give auto, data, model or owt",
                    name);
}

static enum ghp_status check(const struct ghp_planning *wanted, enum ghp_strategy strategy)
{
    if (wanted->workers < 1 || wanted->workers > MOST_WORKERS)
        return GHP_FAIL(GHP_ERR_USAGE, "cannot plan for %d workers; give 1 to %d", wanted->workers,
                        (int)MOST_WORKERS);
    if (wanted->batch < 1)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot plan for a batch of %lld; give a multiple of the "
                        "workers",
                        (long long)wanted->batch);
    if (wanted->memory_bytes < 0 || !(wanted->time_limit_s >= 0))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "the memory or the time limit is less than 0; give 0 for none");
    if (wanted->force != NULL && strategy != GHP_STRATEGY_AUTO)
        return GHP_FAIL(GHP_ERR_USAGE, "force and strategy '%s' both fix splits; give one of them",
                        wanted->strategy);
    return GHP_OK;
}

static enum ghp_status compute(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    bool used_before = ghp_solver_begin();
    enum ghp_status status = ghp_plan_make_synced(request, plan);

    ghp_solver_end(used_before);
    if (status != GHP_OK) return status;
    status =
        ghp_trust_profile(request->profile, request->profile_path, &plan->model, plan->problem);
    if (status != GHP_OK) ghp_plan_release(plan);
    return status;
}

int ghp_plan_compute(const struct ghp_model *model, const struct ghp_profile *profile,
                     const struct ghp_planning *wanted, struct ghp_plan **plan)
{
    const locale_t callers = enter();
    struct ghp_plan_request request = {
        .model_path = ((const struct open_model *)model)->path,
        .model = model,
        .profile_path = ((const struct open_profile *)profile)->path,
        .profile = profile,
        .problem = {.workers = wanted->workers, .global_batch = wanted->batch},
        .force = wanted->force,
        .memory_bytes = wanted->memory_bytes,
        .method.bucket_bytes = GHP_BUCKET_AUTO,
        .time_limit_s = wanted->time_limit_s > 0 ? wanted->time_limit_s : usual_time_limit_s,
        .simplify = true,
        .break_even = true};
    struct ghp_plan *made;
    enum ghp_status status = read_strategy(wanted->strategy, &request.strategy);

    *plan = NULL;
    if (status == GHP_OK) status = check(wanted, request.strategy);
    if (status != GHP_OK) return leave(callers, status);
    if (request.memory_bytes == 0)
        request.memory_bytes = ghp_profile_device_limit(profile, wanted->workers);
    request.worker_bytes = ghp_profile_memory_per_worker(profile, wanted->workers);
    made = ghp_alloc(1, sizeof *made);
    status = made != NULL ? compute(&request, made) : GHP_NO_MEMORY();
    if (status == GHP_OK)
        *plan = made;
    else
        free(made);
    return leave(callers, status);
}

/* ---- what a plan says ---- */

int ghp_plan_cost(const struct ghp_plan *plan, const struct ghp_profile *profile,
                  struct ghp_step_cost *cost)
{
    const locale_t callers = enter();
    struct ghp_prediction predicted = plan->predicted;
    enum ghp_status status = GHP_OK;

    *cost = (struct ghp_step_cost){0};
    if (profile != NULL) {
        struct ghp_lowering lowering = ghp_plan_lowering(plan, profile);

        status = ghp_plan_predict(&lowering, plan->splits, profile, &predicted);
    }
    if (status != GHP_OK) return leave(callers, status);
    *cost = (struct ghp_step_cost){.step_s = predicted.step_s,
                                   .error_s = predicted.error_s,
                                   .compute_s = predicted.compute_s,
                                   .comm_s = predicted.comm_s,
                                   .exposed_s = predicted.exposed_s,
                                   .measured_share = predicted.measured_share,
                                   .peak_bytes = predicted.peak_bytes,
                                   .sent_bytes = predicted.sent_bytes};
    return leave(callers, GHP_OK);
}

int ghp_plan_explain(const struct ghp_plan *plan, const char *layer, char **text)
{
    const locale_t callers = enter();
    struct ghp_display display;
    enum ghp_status status, ended;
    size_t n = 0;
    FILE *out;

    *text = NULL;
    out = open_memstream(text, &n);
    if (out == NULL) return leave(callers, GHP_NO_MEMORY());
    ghp_display_begin(&display, false);
    display.out = out;
    status = ghp_inspect_explain(&display, plan, layer);
    ended = status == GHP_OK ? ghp_display_end(&display) : GHP_OK;
    if (fclose(out) != 0 && status == GHP_OK && ended == GHP_OK) ended = GHP_NO_MEMORY();
    if (status == GHP_OK) status = ended;
    if (status == GHP_OK) return leave(callers, GHP_OK);
    free(*text);
    *text = NULL;
    return leave(callers, status);
}

int ghp_plan_layers(const struct ghp_plan *plan)
{
    return plan->model.n_layers;
}

const char *ghp_plan_layer(const struct ghp_plan *plan, int layer)
{
    return plan->model.layers[layer].name;
}

char *ghp_plan_split(const struct ghp_plan *plan, int layer, char *text, size_t n)
{
    ghp_split_format(plan->splits[layer], text, n);
    return text;
}
