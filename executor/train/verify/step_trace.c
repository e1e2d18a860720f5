/* executor/train/verify/step_trace.c - see step_trace.h. */
#include "executor/train/verify/step_trace.h"

#include "core/base/array.h"
#include "core/model/element.h"
#include "executor/state/parameters.h"

#include <stdlib.h>

const char *const ghp_traced_texts[GHP_TRACED_COUNT] = {
#define GHP_TRACED_TEXT(id, text) text,
    GHP_TRACED_LIST(GHP_TRACED_TEXT)
#undef GHP_TRACED_TEXT
};

struct ghp_traced_part { /* of an output or gradient, that this worker had */
    int item;
    struct ghp_observed seen; /* its values are below */
    void *values;             /* [n][h][w][c], without padding; as the trace's; owned */
};

/* ---- values ---- */

double ghp_traced_get(const struct ghp_step_trace *trace, const struct ghp_traced *item, int64_t i)
{
    return ghp_element_get(item->values, i, trace->element_bytes);
}

void ghp_traced_set(const struct ghp_step_trace *trace, const struct ghp_traced *item, int64_t i,
                    double value)
{
    ghp_element_set(item->values, i, trace->element_bytes, value);
}

enum ghp_status ghp_traced_allocate(const struct ghp_step_trace *trace, struct ghp_traced *item)
{
    if (item->values == NULL)
        item->values = ghp_alloc((size_t)item->elements, (size_t)trace->element_bytes);
    return item->values != NULL ? GHP_OK : GHP_NO_MEMORY();
}

enum ghp_buffer_kind ghp_traced_buffer_kind(const struct ghp_step_trace *trace,
                                            const struct ghp_traced *item)
{
    if (item->kind == GHP_TRACED_WEIGHT_GRADIENT) return GHP_BUFFER_WEIGHT_GRADIENT;
    if (item->kind == GHP_TRACED_MOMENT) return ghp_moment_kind(item->moment);
    return ghp_tensor_buffer_kind(&trace->list.items[item->entry]);
}

/* ---- the list ---- */

static void add_layer(struct ghp_step_trace *trace, enum ghp_traced_kind kind, int layer)
{
    const struct ghp_layer *l = &trace->model->layers[layer];

    (kind == GHP_TRACED_OUTPUT ? trace->of_output : trace->of_gradient)[layer] = trace->n;
    trace->items[trace->n++] =
        (struct ghp_traced){.kind = kind,
                            .name = l->name,
                            .layer = layer,
                            .entry = -1,
                            .elements = trace->batch * ghp_shape_elements(l->out)};
}

static void add_parameter(struct ghp_step_trace *trace, enum ghp_traced_kind kind, int entry,
                          int moment)
{
    const struct ghp_tensor *t = &trace->list.items[entry];

    trace->items[trace->n++] = (struct ghp_traced){.kind = kind,
                                                   .name = t->param->name,
                                                   .layer = t->layer,
                                                   .entry = entry,
                                                   .moment = moment,
                                                   .elements = t->param->elements};
}

static void list_items(struct ghp_step_trace *trace, int moments)
{
    int layers = trace->model->n_layers;

    for (int l = 0; l < layers; l++)
        add_layer(trace, GHP_TRACED_OUTPUT, l);
    for (int l = layers - 1; l >= 0; l--) {
        add_layer(trace, GHP_TRACED_GRADIENT, l);
        for (int e = 0; e < trace->list.n_trained; e++)
            if (trace->list.items[e].layer == l)
                add_parameter(trace, GHP_TRACED_WEIGHT_GRADIENT, e, 0);
    }
    for (int m = 0; m < moments; m++)
        for (int e = 0; e < trace->list.n_trained; e++)
            add_parameter(trace, GHP_TRACED_MOMENT, e, m);
    for (int e = 0; e < trace->list.n; e++)
        add_parameter(trace, GHP_TRACED_WEIGHT, e, 0);
}

static enum ghp_status record(void *context, const struct ghp_observed *observed);

enum ghp_status ghp_step_trace_init(struct ghp_worker *worker, bool keeps,
                                    struct ghp_step_trace *trace)
{
    const struct ghp_program *program = ghp_worker_program(worker);
    int moments = ghp_worker_program(worker)->optimizer->n_moments;
    size_t layers = (size_t)program->model->n_layers;
    enum ghp_status status;

    *trace = (struct ghp_step_trace){.model = program->model,
                                     .batch = program->problem.global_batch,
                                     .element_bytes = ghp_parameter_bytes(program->element_bytes),
                                     .keeps = keeps,
                                     .observer = {.see = record, .context = trace}};
    GHP_TRY(ghp_tensors_list_init(program->model, &trace->list));
    trace->items = ghp_alloc(2 * layers + (size_t)((2 + moments) * trace->list.n_trained +
                                                   trace->list.n - trace->list.n_trained),
                             sizeof *trace->items);
    trace->of_output = ghp_alloc(layers, sizeof(int));
    trace->of_gradient = ghp_alloc(layers, sizeof(int));
    status = trace->items != NULL && trace->of_output != NULL && trace->of_gradient != NULL
                 ? GHP_OK
                 : GHP_NO_MEMORY();
    if (status == GHP_OK)
        list_items(trace, moments);
    else
        ghp_step_trace_release(trace);
    return status;
}

static void forget_parts(struct ghp_step_trace *trace)
{
    for (int p = 0; p < trace->n_parts; p++)
        free(trace->parts[p].values);
    trace->n_parts = 0;
}

void ghp_step_trace_begin(struct ghp_step_trace *trace)
{
    forget_parts(trace);
    for (int i = 0; i < trace->n; i++) {
        free(trace->items[i].values);
        trace->items[i].values = NULL;
    }
}

void ghp_step_trace_release(struct ghp_step_trace *trace)
{
    ghp_step_trace_begin(trace);
    free(trace->parts);
    free(trace->items);
    free(trace->of_output);
    free(trace->of_gradient);
    ghp_tensors_release(&trace->list);
    *trace = (struct ghp_step_trace){0};
}

/* ---- parts ---- */

static enum ghp_status record(void *context, const struct ghp_observed *observed)
{
    struct ghp_step_trace *trace = context;
    int64_t n = ghp_observed_elements(observed);
    struct ghp_traced_part part = {
        .item = (observed->gradient ? trace->of_gradient : trace->of_output)[observed->layer],
        .seen = *observed};

    GHP_TRY_ROOM(trace->parts, trace->n_parts, trace->max_parts);
    part.values = ghp_alloc((size_t)n + 1, (size_t)trace->element_bytes);
    if (part.values == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < n; i++)
        ghp_element_set(part.values, i, trace->element_bytes, ghp_observed_get(observed, i));
    trace->parts[trace->n_parts++] = part;
    return GHP_OK;
}

/* Whether this worker says what all members of its subgroup say too. */
static bool repeats(const struct ghp_traced_part *part, int number)
{
    return part->seen.layout.kind == GHP_LAYOUT_FULL && number % part->seen.layout.tp_size != 0;
}

/* A part into the whole, to be summed over all workers; returns the elements of the whole that it stands for. */
static int64_t put(const struct ghp_traced_part *part, int element_bytes, int number, double *whole)
{
    const struct ghp_observed *o = &part->seen;
    int64_t n = ghp_observed_elements(o), row = o->at.channels, line = o->shape.w * row;

    if (repeats(part, number)) return 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t channel = i % row + o->at.first_channel, column = i % line / row,
                position = i / line % o->at.positions + o->at.first_position,
                sample = i / line / o->at.positions + o->at.first_sample;

        whole[((sample * o->shape.h + position) * o->shape.w + column) * o->shape.c + channel] =
            ghp_element_get(part->values, i, element_bytes);
    }
    return o->layout.kind == GHP_LAYOUT_PARTIAL && number % o->layout.tp_size != 0 ? 0 : n;
}

static enum ghp_status sum_over(struct ghp_comm *world, double *data, int64_t n)
{
    int64_t scratch_bytes = ghp_receive_bytes(n * (int64_t)sizeof(double), world->ranks.count);
    struct ghp_reduction sum = {.in = data,
                                .out = data,
                                .elements = n,
                                .element_bytes = sizeof(double),
                                .scratch = ghp_alloc((size_t)scratch_bytes, 1),
                                .scratch_bytes = scratch_bytes};
    enum ghp_status status = sum.scratch != NULL ? GHP_OK : GHP_NO_MEMORY();

    if (status == GHP_OK) status = world->ops->all_reduce(world, &sum);
    free(sum.scratch);
    return status;
}

/* Gathers one item from all workers. After its values comes the number of those that any worker has. */
static enum ghp_status gather_item(struct ghp_step_trace *trace, int i, int number,
                                   struct ghp_comm *world)
{
    struct ghp_traced *item = &trace->items[i];
    double *whole = ghp_alloc((size_t)item->elements + 1, sizeof(double));
    enum ghp_status status = whole != NULL ? GHP_OK : GHP_NO_MEMORY();

    for (int p = 0; status == GHP_OK && p < trace->n_parts; p++)
        if (trace->parts[p].item == i)
            whole[item->elements] +=
                (double)put(&trace->parts[p], trace->element_bytes, number, whole);
    if (status == GHP_OK) status = sum_over(world, whole, item->elements + 1);
    if (status == GHP_OK && trace->keeps && whole[item->elements] == (double)item->elements) {
        status = ghp_traced_allocate(trace, item);
        for (int64_t e = 0; status == GHP_OK && e < item->elements; e++)
            ghp_traced_set(trace, item, e, whole[e]);
    }
    free(whole);
    return status;
}

enum ghp_status ghp_step_trace_gather(struct ghp_step_trace *trace, struct ghp_worker *worker,
                                      struct ghp_comm *world)
{
    int number = ghp_worker_placement(worker)->number;
    double *parts = ghp_alloc((size_t)trace->n, sizeof *parts);
    enum ghp_status status = parts != NULL ? GHP_OK : GHP_NO_MEMORY();

    for (int p = 0; status == GHP_OK && p < trace->n_parts; p++)
        parts[trace->parts[p].item]++;
    if (status == GHP_OK) status = sum_over(world, parts, trace->n);
    for (int i = 0; status == GHP_OK && i < trace->n; i++)
        if (parts[i] > 0) status = gather_item(trace, i, number, world);
    free(parts);
    forget_parts(trace);
    return status;
}

/* ---- parameters ---- */

enum ghp_status ghp_step_trace_gather_parameters(struct ghp_step_trace *trace,
                                                 struct ghp_worker *worker, bool updated)
{
    size_t bytes = (size_t)ghp_parameter_bytes(ghp_worker_program(worker)->element_bytes);

    for (int i = 0; i < trace->n; i++) {
        struct ghp_traced *item = &trace->items[i];
        void *whole;
        enum ghp_status status;

        if (item->entry < 0 || (item->kind != GHP_TRACED_WEIGHT_GRADIENT) != updated) continue;
        whole = ghp_alloc((size_t)item->elements, bytes);
        if (whole == NULL) return GHP_NO_MEMORY();
        status = ghp_parameters_gather(worker, &trace->list.items[item->entry],
                                       ghp_traced_buffer_kind(trace, item), whole);
        free(item->values);
        item->values = status == GHP_OK && trace->keeps ? whole : NULL;
        if (item->values == NULL) free(whole);
        GHP_TRY(status);
    }
    return GHP_OK;
}
