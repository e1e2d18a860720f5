/* executor/cuda_graph.c - see cuda_graph.h. */
#include "executor/cuda_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DESCRIPTORS = 16, CONFIGS = 64, KNOBS = 32, NOTES = 16 };

struct ghp_graph {
    const struct ghp_cudnn *cudnn;
    struct ghp_graph_target target;
    struct ghp_graph_request request;
    cudnnBackendDescriptor_t graph; /* the last of owned */
    int n_owned;
    cudnnBackendDescriptor_t owned[DESCRIPTORS];
};

/* ---- descriptors ---- */

static enum ghp_status make(struct ghp_graph *g, cudnnBackendDescriptorType_t type,
                            cudnnBackendDescriptor_t *made)
{
    GHP_ASSERT(g->n_owned < DESCRIPTORS);
    GHP_TRY(GHP_CUDNN(g->cudnn, cudnnBackendCreateDescriptor(type, made)));
    g->owned[g->n_owned++] = *made;
    return GHP_OK;
}

struct attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t n;
    const void *values;
};

/* Sets all of them, and finalizes. */
static enum ghp_status fill(const struct ghp_cudnn *cudnn, cudnnBackendDescriptor_t descriptor,
                            const struct attribute *attributes, int n)
{
    for (int i = 0; i < n; i++) {
        const struct attribute *a = &attributes[i];

        GHP_TRY(GHP_CUDNN(cudnn,
                          cudnnBackendSetAttribute(descriptor, a->name, a->type, a->n, a->values)));
    }
    return GHP_CUDNN(cudnn, cudnnBackendFinalize(descriptor));
}

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct tensor {
    int64_t id;
    int64_t dims[4]; /* n, c, h, w; of weights k, c, r, s */
};

/* Channels innermost, whatever the tensor is. */
static enum ghp_status make_tensor(struct ghp_graph *g, const struct tensor *t,
                                   cudnnBackendDescriptor_t *made)
{
    int64_t c = t->dims[1], h = t->dims[2], w = t->dims[3], alignment = 16;
    int64_t strides[4] = {c * h * w, 1, w * c, c};
    cudnnDataType_t type = g->request.bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    const struct attribute attributes[] = {
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t->id},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t->dims},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment}};

    GHP_TRY(make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, made));
    return fill(g->cudnn, *made, attributes, COUNT(attributes));
}

static enum ghp_status make_convolution(struct ghp_graph *g, cudnnBackendDescriptor_t *made)
{
    const struct ghp_window *w = &g->request.local.window;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t spatial = 2, strides[2] = {w->stride_h, w->stride_w},
            dilations[2] = {w->dilation_h, w->dilation_w}, before[2] = {w->pad_top, w->pad_left},
            after[2] = {w->pad_bottom, w->pad_right};
    const struct attribute attributes[] = {
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after}};

    GHP_TRY(make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, made));
    return fill(g->cudnn, *made, attributes, COUNT(attributes));
}

/* How cuDNN names the three passes and their operands. */
struct naming {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

static struct naming naming_of(enum ghp_pass pass)
{
    static const struct naming forward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    static const struct naming data = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    static const struct naming weight = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

    return pass == GHP_PASS_FORWARD ? forward : pass == GHP_PASS_BACKWARD_DATA ? data : weight;
}

static enum ghp_status make_conv_operation(struct ghp_graph *g, cudnnBackendDescriptor_t *operation)
{
    const struct ghp_local *l = &g->request.local;
    struct naming names = naming_of(g->request.pass);
    const struct tensor tx = {GHP_GRAPH_X, {l->n, l->c, l->h, l->w}};
    const struct tensor tw = {GHP_GRAPH_W,
                              {l->k, l->c / l->window.groups, l->window.r, l->window.s}};
    const struct tensor ty = {GHP_GRAPH_Y, {l->n, l->k, l->p, l->q}};
    cudnnBackendDescriptor_t x, w, y, convolution;
    float one = 1, zero = 0;

    GHP_TRY(make_tensor(g, &tx, &x));
    GHP_TRY(make_tensor(g, &tw, &w));
    GHP_TRY(make_tensor(g, &ty, &y));
    GHP_TRY(make_convolution(g, &convolution));
    {
        const struct attribute attributes[] = {
            {names.x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
            {names.w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w},
            {names.y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
            {names.convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &convolution},
            {names.alpha, CUDNN_TYPE_FLOAT, 1, &one},
            {names.beta, CUDNN_TYPE_FLOAT, 1, &zero}};

        GHP_TRY(make(g, names.type, operation));
        return fill(g->cudnn, *operation, attributes, COUNT(attributes));
    }
}

static enum ghp_status build(struct ghp_graph *g)
{
    cudnnBackendDescriptor_t operation;

    GHP_TRY(make_conv_operation(g, &operation));
    GHP_TRY(make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &g->graph));
    {
        const struct attribute attributes[] = {
            {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation},
            {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->target.handle}};

        return fill(g->cudnn, g->graph, attributes, g->target.handle != NULL ? 2 : 1);
    }
}

enum ghp_status ghp_graph_open(const struct ghp_cudnn *cudnn, struct ghp_graph_target target,
                               const struct ghp_graph_request *request, struct ghp_graph **graph)
{
    struct ghp_graph *g = ghp_alloc(1, sizeof *g);
    enum ghp_status status;

    *graph = NULL;
    if (g == NULL) return GHP_NO_MEMORY();
    g->cudnn = cudnn;
    g->target = target;
    g->request = *request;
    status = build(g);
    if (status == GHP_OK)
        *graph = g;
    else
        ghp_graph_close(g);
    return status;
}

void ghp_graph_close(struct ghp_graph *g)
{
    if (g == NULL) return;
    while (g->n_owned > 0)
        g->cudnn->cudnnBackendDestroyDescriptor(g->owned[--g->n_owned]);
    free(g);
}

/* ---- engines ---- */

void ghp_engine_text(const struct ghp_engine *e, char *text, size_t n)
{
    size_t used = (size_t)snprintf(text, n, "eng%lld", (long long)e->id);

    for (int i = 0; i < e->n_knobs && used < n; i++)
        used += (size_t)snprintf(text + used, n - used, "%s%lld=%lld", i == 0 ? " " : ",",
                                 (long long)e->types[i], (long long)e->values[i]);
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

/* Of a configuration; plan->plan stays NULL where the engine says that it cannot. */
static enum ghp_status make_plan(const struct ghp_graph *g, cudnnBackendDescriptor_t config,
                                 struct ghp_graph_plan *plan)
{
    bool here = g->target.handle != NULL;
    const struct attribute attributes[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config},
        here ? (struct attribute){CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                  &g->target.handle}
             : (struct attribute){CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->target.properties}};
    cudnnBackendDescriptor_t made = NULL;
    int64_t one;

    plan->plan = NULL;
    GHP_TRY(GHP_CUDNN(
        g->cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &made)));
    if (fill(g->cudnn, made, attributes, COUNT(attributes)) != GHP_OK ||
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
    ghp_engine_text(&engine, plan.name, sizeof plan.name);
    if (is_listed(plans, plan.name)) return GHP_OK;
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
    const struct attribute attributes[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->graph},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
        {CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &g->target.properties}};

    GHP_TRY(GHP_CUDNN(
        g->cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, heuristics)));
    return fill(g->cudnn, *heuristics, attributes, g->target.properties != NULL ? 3 : 2);
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

enum ghp_status ghp_graph_list(const struct ghp_graph *g, const struct ghp_graph_rules *rules,
                               int most, struct ghp_graph_plans *plans)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};

    GHP_ASSERT(most >= 1 && most <= GHP_GRAPH_CANDIDATES);
    plans->n = 0;
    for (int i = 0; i < COUNT(modes) && plans->n < most; i++) {
        enum ghp_status status = list_mode(g, rules, modes[i], most, plans);

        if (status == GHP_OK) continue;
        while (plans->n > 0)
            ghp_graph_plan_release(g->cudnn, &plans->items[--plans->n]);
        return status;
    }
    return GHP_OK;
}

/* ---- a plan by its name ---- */

struct pieces { /* of a configuration, owned while it is made */
    cudnnBackendDescriptor_t engine, config, knobs[KNOBS];
};

static enum ghp_status make_knob(const struct ghp_graph *g, const struct ghp_engine *e, int i,
                                 cudnnBackendDescriptor_t *knob)
{
    cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)e->types[i];
    const struct attribute attributes[] = {
        {CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type},
        {CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &e->values[i]}};

    GHP_TRY(GHP_CUDNN(g->cudnn,
                      cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, knob)));
    return fill(g->cudnn, *knob, attributes, COUNT(attributes));
}

static enum ghp_status make_engine(const struct ghp_graph *g, const struct ghp_engine *e,
                                   cudnnBackendDescriptor_t *engine)
{
    const struct attribute attributes[] = {
        {CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->graph},
        {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &e->id},
        {CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->target.properties}};

    GHP_TRY(
        GHP_CUDNN(g->cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, engine)));
    return fill(g->cudnn, *engine, attributes, g->target.properties != NULL ? 3 : 2);
}

static enum ghp_status make_config(const struct ghp_graph *g, const struct ghp_engine *e,
                                   struct pieces *p)
{
    GHP_TRY(make_engine(g, e, &p->engine));
    for (int i = 0; i < e->n_knobs; i++)
        GHP_TRY(make_knob(g, e, i, &p->knobs[i]));
    GHP_TRY(GHP_CUDNN(
        g->cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &p->config)));
    {
        const struct attribute attributes[] = {
            {CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->engine},
            {CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, e->n_knobs,
             p->knobs}};

        return fill(g->cudnn, p->config, attributes, e->n_knobs > 0 ? 2 : 1);
    }
}

enum ghp_status ghp_graph_find(const struct ghp_graph *g, const char *name,
                               struct ghp_graph_plan *plan)
{
    struct pieces p = {NULL, NULL, {NULL}};
    struct ghp_engine engine;
    enum ghp_status status;

    *plan = (struct ghp_graph_plan){0};
    if (!ghp_engine_parse(name, &engine))
        return GHP_FAIL(GHP_ERR_BACKEND, "'%s' names no engine of cuDNN; profile again", name);
    status = make_config(g, &engine, &p);
    if (status == GHP_OK) status = make_plan(g, p.config, plan);
    if (status == GHP_OK && plan->plan == NULL)
        status =
            GHP_FAIL(GHP_ERR_BACKEND, "cuDNN's '%s' is not to be had here; profile again", name);
    if (status == GHP_OK) snprintf(plan->name, sizeof plan->name, "%s", name);
    if (p.config != NULL) g->cudnn->cudnnBackendDestroyDescriptor(p.config);
    for (int i = 0; i < KNOBS; i++)
        if (p.knobs[i] != NULL) g->cudnn->cudnnBackendDestroyDescriptor(p.knobs[i]);
    if (p.engine != NULL) g->cudnn->cudnnBackendDestroyDescriptor(p.engine);
    return status;
}

/* ---- running ---- */

enum ghp_status ghp_graph_run(const struct ghp_graph *g, const struct ghp_graph_plan *plan,
                              const struct ghp_graph_tensors *t)
{
    int64_t ids[3] = {GHP_GRAPH_X, GHP_GRAPH_W, GHP_GRAPH_Y};
    const void *at[3] = {t->x, t->w, t->y};
    const struct attribute attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, at},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &t->workspace}};
    cudnnBackendDescriptor_t pack = NULL;
    enum ghp_status status;

    GHP_TRY(GHP_CUDNN(g->cudnn,
                      cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack)));
    status = fill(g->cudnn, pack, attributes, COUNT(attributes));
    if (status == GHP_OK)
        status = GHP_CUDNN(g->cudnn, cudnnBackendExecute(g->target.handle, plan->plan, pack));
    g->cudnn->cudnnBackendDestroyDescriptor(pack);
    return status;
}

enum ghp_status ghp_graph_properties(const struct ghp_cudnn *cudnn, const char *json,
                                     cudnnBackendDescriptor_t *properties)
{
    const struct attribute attributes[] = {{CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                            CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1, json}};

    GHP_TRY(GHP_CUDNN(
        cudnn, cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, properties)));
    return fill(cudnn, *properties, attributes, 1);
}
