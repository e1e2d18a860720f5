/* executor/backend/cuda/engine.c - the engines that can run a graph, as cuDNN's heuristics list them or by name: see
 * cuda/graph.h. */
#include "executor/backend/cuda/graph_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIGS = 64, KNOBS = 32, NOTES = 16 };

/* ---- names ---- */

bool ghp_engine_text(const struct ghp_engine *e, char *text, size_t n)
{
    size_t used = (size_t)snprintf(text, n, "eng%lld", (long long)e->id);

    for (int i = 0; i < e->n_knobs && used < n; i++)
        used += (size_t)snprintf(text + used, n - used, "%s%lld=%lld", i == 0 ? " " : ",",
                                 (long long)e->types[i], (long long)e->values[i]);
    return used < n;
}

bool ghp_engine_parse(const char *text, struct ghp_engine *e)
{
    char *end = NULL;

    *e = (struct ghp_engine){0};
    if (strncmp(text, "eng", 3) != 0) return false;
    e->id = strtoll(text + 3, &end, 10);
    if (end == text + 3 || e->id < 0) return false;
    while (*end != '\0') {
        const char *at = end + 1;

        if (*end != (e->n_knobs == 0 ? ' ' : ',') || e->n_knobs == KNOBS) return false;
        e->types[e->n_knobs] = strtoll(at, &end, 10);
        if (end == at || *end != '=') return false;
        at = end + 1;
        e->values[e->n_knobs++] = strtoll(at, &end, 10);
        if (end == at) return false;
    }
    return true;
}

static enum ghp_status read_knobs(const struct ghp_cudnn *cudnn, cudnnBackendDescriptor_t config,
                                  struct ghp_engine *e)
{
    cudnnBackendDescriptor_t choices[KNOBS] = {NULL};
    enum ghp_status status = GHP_OK;
    int64_t n = 0, one;

    for (int i = 0; i < KNOBS; i++)
        GHP_TRY_GOTO(status,
                     GHP_CUDNN(cudnn, cudnnBackendCreateDescriptor(
                                          CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &choices[i])),
                     done);
    GHP_TRY_GOTO(status,
                 GHP_CUDNN(cudnn, cudnnBackendGetAttribute(
                                      config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS, &n, choices)),
                 done);
    for (int64_t i = 0; i < n && i < KNOBS; i++) {
        cudnnBackendKnobType_t type;

        GHP_TRY_GOTO(
            status,
            GHP_CUDNN(cudnn, cudnnBackendGetAttribute(choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                                      CUDNN_TYPE_KNOB_TYPE, 1, &one, &type)),
            done);
        e->types[i] = (int64_t)type;
        GHP_TRY_GOTO(
            status,
            GHP_CUDNN(cudnn, cudnnBackendGetAttribute(choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                                      CUDNN_TYPE_INT64, 1, &one, &e->values[i])),
            done);
        e->n_knobs = (int)i + 1;
    }
done:
    for (int i = 0; i < KNOBS; i++)
        if (choices[i] != NULL) cudnn->cudnnBackendDestroyDescriptor(choices[i]);
    return status;
}

struct note_set {
    bool has[CUDNN_NUMERICAL_NOTE_TYPE_COUNT + 8]; /* of this and later versions */
};

/* Engine, knobs and numerical notes of a configuration. */
static enum ghp_status read_config(const struct ghp_cudnn *cudnn, cudnnBackendDescriptor_t config,
                                   struct ghp_engine *e, struct note_set *set)
{
    cudnnBackendNumericalNote_t notes[NOTES];
    cudnnBackendDescriptor_t engine = NULL;
    enum ghp_status status = GHP_OK;
    int64_t n = 0, one;

    *e = (struct ghp_engine){0};
    *set = (struct note_set){{false}};
    GHP_TRY(
        GHP_CUDNN(cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine)));
    GHP_TRY_GOTO(
        status,
        GHP_CUDNN(cudnn, cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine)),
        done);
    GHP_TRY_GOTO(status,
                 GHP_CUDNN(cudnn, cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                                           CUDNN_TYPE_INT64, 1, &one, &e->id)),
                 done);
    GHP_TRY_GOTO(
        status,
        GHP_CUDNN(cudnn, cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                  CUDNN_TYPE_NUMERICAL_NOTE, NOTES, &n, notes)),
        done);
    for (int64_t i = 0; i < n && i < NOTES; i++)
        if ((size_t)notes[i] < sizeof set->has / sizeof set->has[0]) set->has[notes[i]] = true;
    status = read_knobs(cudnn, config, e);
done:
    cudnn->cudnnBackendDestroyDescriptor(engine);
    return status;
}

static bool allowed(const struct ghp_graph *g, const struct ghp_graph_rules *rules,
                    const struct note_set *notes)
{
    const bool *has = notes->has;
    bool transforms = has[CUDNN_NUMERICAL_NOTE_FFT] || has[CUDNN_NUMERICAL_NOTE_WINOGRAD];
    /* large tiles lose two digits more */
    bool coarse = has[CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6] ||
                  has[CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13];
    bool rounds =
        has[CUDNN_NUMERICAL_NOTE_TENSOR_CORE] || has[CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS];

    if (!g->request.bf16 && !rules->tensor_cores && rounds) return false;
    if (rules->repeatable && (transforms || has[CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC]))
        return false;
    return !coarse && !has[CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION];
}

/* ---- plans ---- */

/* Makes the plan of a configuration. plan->plan stays NULL if the engine says that it cannot. */
static enum ghp_status make_plan(const struct ghp_graph *g, cudnnBackendDescriptor_t config,
                                 struct ghp_graph_plan *plan)
{
    bool here = g->target.handle != NULL;
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config},
        here ? (struct ghp_cudnn_attribute){CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                            &g->target.handle}
             : (struct ghp_cudnn_attribute){CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                            &g->target.properties}};
    cudnnBackendDescriptor_t made = NULL;
    int64_t one;

    plan->plan = NULL;
    GHP_TRY(GHP_CUDNN(
        g->cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &made)));
    if (ghp_cudnn_fill(g->cudnn, made, attributes, GHP_COUNT_OF(attributes)) != GHP_OK ||
        g->cudnn->cudnnBackendGetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, &one,
                                           &plan->workspace_bytes) != CUDNN_STATUS_SUCCESS) {
        g->cudnn->cudnnBackendDestroyDescriptor(made);
        return GHP_OK;
    }
    plan->plan = made;
    return GHP_OK;
}

void ghp_graph_plan_release(const struct ghp_cudnn *cudnn, struct ghp_graph_plan *plan)
{
    if (plan->plan != NULL) cudnn->cudnnBackendDestroyDescriptor(plan->plan);
    plan->plan = NULL;
}

static bool is_listed(const struct ghp_graph_plans *plans, const char *name)
{
    for (int i = 0; i < plans->n; i++)
        if (strcmp(plans->items[i].name, name) == 0) return true;
    return false;
}

static enum ghp_status try_config(const struct ghp_graph *g, const struct ghp_graph_rules *rules,
                                  cudnnBackendDescriptor_t config, struct ghp_graph_plans *plans)
{
    struct ghp_graph_plan plan = {0};
    struct ghp_engine engine;
    struct note_set notes;

    GHP_TRY(read_config(g->cudnn, config, &engine, &notes));
    if (!allowed(g, rules, &notes)) return GHP_OK;
    /* what has no name could not be asked for again */
    if (!ghp_engine_text(&engine, plan.name, sizeof plan.name) || is_listed(plans, plan.name))
        return GHP_OK;
    GHP_TRY(make_plan(g, config, &plan));
    if (plan.plan == NULL) return GHP_OK;
    if (plan.workspace_bytes > rules->most_workspace_bytes)
        ghp_graph_plan_release(g->cudnn, &plan);
    else
        plans->items[plans->n++] = plan;
    return GHP_OK;
}

/* One way of cuDNN to order its engines. */
static enum ghp_status ask(const struct ghp_graph *g, cudnnBackendHeurMode_t mode,
                           cudnnBackendDescriptor_t *heuristics)
{
    struct ghp_cudnn_attribute attributes[4] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->graph},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode}};
    int n = 2;

    if (g->target.properties != NULL)
        attributes[n++] =
            (struct ghp_cudnn_attribute){CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->target.properties};
    if (g->request.multiprocessors > 0)
        attributes[n++] =
            (struct ghp_cudnn_attribute){CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET, CUDNN_TYPE_INT32, 1,
                                         &g->request.multiprocessors};
    GHP_TRY(GHP_CUDNN(
        g->cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, heuristics)));
    return ghp_cudnn_fill(g->cudnn, *heuristics, attributes, n);
}

static enum ghp_status list_mode(const struct ghp_graph *g, const struct ghp_graph_rules *rules,
                                 cudnnBackendHeurMode_t mode, int most,
                                 struct ghp_graph_plans *plans)
{
    cudnnBackendDescriptor_t heuristics = NULL, configs[CONFIGS] = {NULL};
    enum ghp_status status = ask(g, mode, &heuristics);
    int64_t n = 0;

    if (status != GHP_OK) { /* no engine of this kind for such a graph */
        status = GHP_OK;
        goto done;
    }
    for (int i = 0; i < CONFIGS; i++)
        GHP_TRY_GOTO(status,
                     GHP_CUDNN(g->cudnn, cudnnBackendCreateDescriptor(
                                             CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i])),
                     done);
    GHP_TRY_GOTO(status,
                 GHP_CUDNN(g->cudnn, cudnnBackendGetAttribute(
                                         heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, &n, configs)),
                 done);
    for (int64_t i = 0; i < n && i < CONFIGS && plans->n < most; i++)
        GHP_TRY_GOTO(status, try_config(g, rules, configs[i], plans), done);
done:
    for (int i = 0; i < CONFIGS; i++)
        if (configs[i] != NULL) g->cudnn->cudnnBackendDestroyDescriptor(configs[i]);
    if (heuristics != NULL) g->cudnn->cudnnBackendDestroyDescriptor(heuristics);
    return status;
}

/* The graph for all of the GPU: not every engine can be told of a part. */
static struct ghp_graph on_all(const struct ghp_graph *g)
{
    struct ghp_graph whole = *g;

    whole.request.multiprocessors = 0;
    return whole;
}

enum ghp_status ghp_graph_list(const struct ghp_graph *g, const struct ghp_graph_rules *rules,
                               int most, struct ghp_graph_plans *plans)
{
    static const struct {
        cudnnBackendHeurMode_t mode;
        int most; /* candidates, with those before */
    } asked[] = {{CUDNN_HEUR_MODE_A, 5},
                 {CUDNN_HEUR_MODE_B, GHP_GRAPH_CANDIDATES},
                 {CUDNN_HEUR_MODE_A, GHP_GRAPH_CANDIDATES},
                 {CUDNN_HEUR_MODE_FALLBACK, GHP_GRAPH_CANDIDATES}};
    enum ghp_status status = GHP_OK; /* of the last way that failed, if none has a plan */

    GHP_ASSERT(most >= 1 && most <= GHP_GRAPH_CANDIDATES);
    plans->n = 0;
    for (int i = 0; i < GHP_COUNT_OF(asked) && plans->n < most; i++) {
        int until = asked[i].most < most ? asked[i].most : most;
        enum ghp_status here = list_mode(g, rules, asked[i].mode, until, plans);

        if (here != GHP_OK) status = here;
    }
    if (plans->n > 0) return GHP_OK;
    if (g->request.multiprocessors > 0) {
        const struct ghp_graph whole = on_all(g);

        return ghp_graph_list(&whole, rules, most, plans);
    }
    return status;
}

/* ---- a plan by its name ---- */

struct parts { /* of a configuration, owned while it is made */
    cudnnBackendDescriptor_t engine, config, knobs[KNOBS];
};

static enum ghp_status make_knob(const struct ghp_graph *g, const struct ghp_engine *e, int i,
                                 cudnnBackendDescriptor_t *knob)
{
    cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)e->types[i];
    const struct ghp_cudnn_attribute attributes[] = {
        {CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type},
        {CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &e->values[i]}};

    GHP_TRY(GHP_CUDNN(g->cudnn,
                      cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, knob)));
    return ghp_cudnn_fill(g->cudnn, *knob, attributes, GHP_COUNT_OF(attributes));
}

static enum ghp_status make_engine(const struct ghp_graph *g, const struct ghp_engine *e,
                                   cudnnBackendDescriptor_t *engine)
{
    struct ghp_cudnn_attribute attributes[4] = {
        {CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->graph},
        {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &e->id}};
    int n = 2;

    if (g->target.properties != NULL)
        attributes[n++] = (struct ghp_cudnn_attribute){
            CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->target.properties};
    if (g->request.multiprocessors > 0)
        attributes[n++] = (struct ghp_cudnn_attribute){
            CUDNN_ATTR_ENGINE_SM_COUNT_TARGET, CUDNN_TYPE_INT32, 1, &g->request.multiprocessors};
    GHP_TRY(
        GHP_CUDNN(g->cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, engine)));
    return ghp_cudnn_fill(g->cudnn, *engine, attributes, n);
}

static enum ghp_status make_config(const struct ghp_graph *g, const struct ghp_engine *e,
                                   struct parts *p)
{
    GHP_TRY(make_engine(g, e, &p->engine));
    for (int i = 0; i < e->n_knobs; i++)
        GHP_TRY(make_knob(g, e, i, &p->knobs[i]));
    GHP_TRY(GHP_CUDNN(
        g->cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &p->config)));
    {
        const struct ghp_cudnn_attribute attributes[] = {
            {CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->engine},
            {CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, e->n_knobs,
             p->knobs}};

        return ghp_cudnn_fill(g->cudnn, p->config, attributes, e->n_knobs > 0 ? 2 : 1);
    }
}

enum ghp_status ghp_graph_find(const struct ghp_graph *g, const char *name,
                               struct ghp_graph_plan *plan)
{
    struct parts p = {NULL, NULL, {NULL}};
    struct ghp_engine engine;
    enum ghp_status status;

    *plan = (struct ghp_graph_plan){0};
    if (!ghp_engine_parse(name, &engine))
        return GHP_FAIL(GHP_ERR_BACKEND, "'%s' names no engine of cuDNN; profile again", name);
    status = make_config(g, &engine, &p);
    if (status == GHP_OK) status = make_plan(g, p.config, plan);
    if (status == GHP_OK && plan->plan == NULL)
        status =
            GHP_FAIL(GHP_ERR_BACKEND, "cuDNN's '%s' is not available here; profile again", name);
    if (status == GHP_OK) snprintf(plan->name, sizeof plan->name, "%s", name);
    if (p.config != NULL) g->cudnn->cudnnBackendDestroyDescriptor(p.config);
    for (int i = 0; i < KNOBS; i++)
        if (p.knobs[i] != NULL) g->cudnn->cudnnBackendDestroyDescriptor(p.knobs[i]);
    if (p.engine != NULL) g->cudnn->cudnnBackendDestroyDescriptor(p.engine);
    if (status != GHP_OK && g->request.multiprocessors > 0) {
        const struct ghp_graph whole = on_all(g);

        return ghp_graph_find(&whole, name, plan);
    }
    return status;
}
