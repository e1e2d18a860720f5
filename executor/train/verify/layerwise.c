/* executor/train/verify/layerwise.c - see layerwise.h. */
#include "executor/train/verify/layerwise.h"

#include "core/base/log.h"
#include "executor/platform/random.h"
#include "executor/state/parameters.h"
#include "executor/state/shard.h"
#include "executor/train/verify/alone.h"

#include <math.h>
#include <stdlib.h>

const char *const ghp_verdict_names[GHP_VERDICT_COUNT] = {
#define GHP_VERDICT_NAME(id, text) text,
    GHP_VERDICT_LIST(GHP_VERDICT_NAME)
#undef GHP_VERDICT_NAME
};

struct check { /* on rank 0 all of it; else the plan's two traces */
    const struct ghp_layerwise_request *request;
    struct ghp_step_trace before, plan; /* weights and moments before a step; the step */
    struct ghp_step_trace own;          /* what one worker makes of the plan's tensors */
    struct ghp_alone alone;
    double *noise;         /* of each item: sum of squares over all noisy passes */
    int pass;              /* 0: exact, else noisy */
    double parameter_unit; /* in the last place, of parameters */
};

/* ---- one worker on the plan's tensors ---- */

/* The plan's value; in a noisy pass off by up to a unit in the last place. */
static double forced(const struct check *c, const struct ghp_step_trace *trace, int item, int64_t i)
{
    const struct ghp_traced *of = &trace->items[item];
    double value = ghp_traced_get(trace, of, i), unit = c->parameter_unit;
    uint64_t drawn;

    if (c->pass == 0) return value;
    if (of->entry < 0) unit = c->request->unit;
    if (of->kind == GHP_TRACED_OUTPUT && trace->model->layers[of->layer].out.vocabulary > 0)
        return value;
    drawn = ghp_random_u64((uint64_t)c->pass, (uint64_t)item, (uint64_t)i);
    return value * (1 + unit * ((double)(drawn >> 11) / 4503599627370496.0 - 1));
}

/* What one worker has made, at element i of an item that it shows. */
static void note(struct check *c, int item, int64_t i, double value)
{
    struct ghp_traced *own = &c->own.items[item];

    if (c->pass == 0) {
        ghp_traced_set(&c->own, own, i, value);
    } else {
        double off = value - ghp_traced_get(&c->own, own, i);

        c->noise[item] += off * off;
    }
}

/* Keeps or compares what one worker has, and continues with what the plan had. */
static enum ghp_status see(void *context, const struct ghp_observed *o)
{
    struct check *c = context;
    int item = (o->gradient ? c->own.of_gradient : c->own.of_output)[o->layer];
    struct ghp_traced *own = &c->own.items[item];

    if (c->plan.items[item].values == NULL) return GHP_OK;
    if (c->pass == 0) GHP_TRY(ghp_traced_allocate(&c->own, own));
    GHP_ASSERT_EQ(ghp_observed_elements(o), own->elements);
    for (int64_t i = 0; i < own->elements; i++) {
        note(c, item, i, ghp_observed_get(o, i));
        ghp_observed_set(o, i, forced(c, &c->plan, item, i));
    }
    return GHP_OK;
}

/* A parameter's item of `trace` into the one worker. */
static enum ghp_status load_item(struct check *c, struct ghp_step_trace *trace, int item,
                                 bool exactly)
{
    const struct ghp_traced *of = &trace->items[item];
    int pass = c->pass;
    struct ghp_traced noisy = *of;
    enum ghp_status status;

    noisy.values = NULL;
    GHP_TRY(ghp_traced_allocate(trace, &noisy));
    if (exactly) c->pass = 0;
    for (int64_t i = 0; i < of->elements; i++)
        ghp_traced_set(trace, &noisy, i, forced(c, trace, item, i));
    c->pass = pass;
    status = ghp_parameters_scatter(c->alone.worker, &trace->list.items[of->entry],
                                    ghp_traced_buffer_kind(trace, of), noisy.values);
    free(noisy.values);
    return status;
}

/* Weights, statistics and moments as the plan had them before the step. */
static enum ghp_status load_before(struct check *c)
{
    for (int i = 0; i < c->before.n; i++) {
        const struct ghp_traced *item = &c->before.items[i];
        bool weight = item->kind == GHP_TRACED_WEIGHT;

        if (weight || item->kind == GHP_TRACED_MOMENT)
            GHP_TRY(
                load_item(c, &c->before, i, !weight || c->before.list.items[item->entry].is_state));
    }
    return GHP_OK;
}

/* Keeps or compares one worker's gradients of parameters, or what its update left. */
static enum ghp_status read_parameters(struct check *c, bool updated)
{
    for (int i = 0; i < c->own.n; i++) {
        struct ghp_traced *own = &c->own.items[i], here = *own;
        enum ghp_status status;

        if (own->entry < 0 || (own->kind != GHP_TRACED_WEIGHT_GRADIENT) != updated) continue;
        here.values = NULL;
        GHP_TRY(ghp_traced_allocate(&c->own, &here));
        if (c->pass == 0) GHP_TRY(ghp_traced_allocate(&c->own, own));
        status = ghp_parameters_gather(c->alone.worker, &c->own.list.items[own->entry],
                                       ghp_traced_buffer_kind(&c->own, own), here.values);
        for (int64_t e = 0; status == GHP_OK && e < own->elements; e++)
            note(c, i, e, ghp_traced_get(&c->own, &here, e));
        free(here.values);
        GHP_TRY(status);
    }
    return GHP_OK;
}

/* The step by one worker; its update takes the plan's gradients. */
static enum ghp_status take_step(struct check *c, int64_t step)
{
    struct ghp_observer observer = {.see = see, .context = c};
    struct ghp_step of = ghp_training_config_step(c->request->training_config, step);
    enum ghp_status status;

    GHP_TRY(load_before(c));
    ghp_worker_observe(c->alone.worker, &observer);
    status = ghp_worker_step(c->alone.worker, &of);
    ghp_worker_observe(c->alone.worker, NULL);
    GHP_TRY(status);
    GHP_TRY(ghp_worker_settle(c->alone.worker));
    GHP_TRY(read_parameters(c, false));
    for (int i = 0; i < c->plan.n; i++)
        if (c->plan.items[i].kind == GHP_TRACED_WEIGHT_GRADIENT)
            GHP_TRY(load_item(c, &c->plan, i, false));
    GHP_TRY(ghp_worker_flush(c->alone.worker));
    return read_parameters(c, true);
}

/* ---- comparing ---- */

/* The rank with a value of a layer's tensor: sample, channel, row and column. */
static bool holds_value(const struct check *c, const struct ghp_traced *item,
                        const struct ghp_placement *placement, const int64_t *index)
{
    const struct ghp_program *program = ghp_worker_program(c->request->worker);
    struct ghp_layouts layouts = ghp_split_layouts(program->splits[item->layer]);
    struct ghp_region at =
        ghp_placement_region(placement, item->kind == GHP_TRACED_OUTPUT ? layouts.y : layouts.dy,
                             program->model->layers[item->layer].out);
    int64_t sample = index[0] % placement->micro_batch - at.first_sample,
            channel = index[1] - at.first_channel, position = index[2] - at.first_position;

    return sample >= 0 && sample < at.samples && channel >= 0 && channel < at.channels &&
           position >= 0 && position < at.positions;
}

/* The same of element e of a parameter. */
static bool holds_parameter(const struct check *c, const struct ghp_traced *item,
                            const struct ghp_placement *placement, int64_t e)
{
    const struct ghp_program *program = ghp_worker_program(c->request->worker);
    const struct ghp_tensor *t = &c->plan.list.items[item->entry];
    const struct ghp_op_facts *facts = ghp_op_of(program->model->layers[item->layer].op);
    struct ghp_local local =
        ghp_local_of(program->model, item->layer, program->splits[item->layer], placement->problem);
    struct ghp_shard shard =
        ghp_shard_of(&(t->is_state ? facts->states : facts->params)[t->slot], &local,
                     program->splits[item->layer], placement->number, t->param);

    return shard.tp_size == 1 || e % shard.apart / shard.run == shard.member;
}

static int rank_of(const struct check *c, const struct ghp_traced *item, int64_t e,
                   const int64_t *index)
{
    const struct ghp_program *program = ghp_worker_program(c->request->worker);

    for (int rank = 0; rank < program->problem.workers; rank++) {
        struct ghp_placement placement =
            ghp_placement_of(program->staging, program->model->n_layers, program->problem, rank);

        if (!ghp_placement_owns(&placement, item->layer)) continue;
        if (item->entry < 0 ? holds_value(c, item, &placement, index)
                            : holds_parameter(c, item, &placement, e))
            return rank;
    }
    return -1;
}

/* Finds the place of value e. In a layer's tensor, which lies [n][h][w][c], that is sample, channel, row, column. */
static void locate(const struct check *c, const struct ghp_traced *item, int64_t e,
                   struct ghp_finding *f)
{
    if (item->entry < 0) {
        struct ghp_shape s = c->plan.model->layers[item->layer].out;
        const int64_t at[] = {e / s.c / s.w / s.h, e % s.c, e / s.c / s.w % s.h, e / s.c % s.w};

        f->n_index = s.axes == GHP_AXES_IMAGE ? 4 : s.axes == GHP_AXES_SEQUENCE ? 3 : 2;
        for (int d = 0; d < 4; d++)
            f->index[d] = at[d];
    } else {
        const struct ghp_param *param = c->plan.list.items[item->entry].param;
        int64_t left = e;

        f->n_index = param->n_dims;
        for (int d = param->n_dims - 1; d >= 0; d--) {
            f->index[d] = left % param->dims[d];
            left /= param->dims[d];
        }
    }
    f->rank = rank_of(c, item, e, f->index);
}

/* The first value that is off by half of the greatest difference or more, or is not a number. */
static int64_t first_off(const struct check *c, int i, double most)
{
    int64_t e = 0;

    while (e + 1 < c->plan.items[i].elements &&
           fabs(ghp_traced_get(&c->plan, &c->plan.items[i], e) -
                ghp_traced_get(&c->own, &c->own.items[i], e)) < most / 2)
        e++;
    return e;
}

static struct ghp_finding compare_item(const struct check *c, int i, int64_t step)
{
    const struct ghp_traced *plan = &c->plan.items[i], *own = &c->own.items[i];
    struct ghp_finding f = {.step = step + 1, .kind = plan->kind, .name = plan->name};
    double off = 0, size = 0, most = 0,
           unit = plan->entry < 0 ? c->request->unit : c->parameter_unit;
    int64_t at;

    for (int64_t e = 0; e < plan->elements; e++) {
        double value = ghp_traced_get(&c->own, own, e),
               d = fabs(ghp_traced_get(&c->plan, plan, e) - value);

        off += d * d;
        size += value * value;
        if (d > most) most = d;
    }
    f.noise = sqrt(c->noise[i] / GHP_LAYERWISE_NOISES + unit * unit / 12 * size);
    f.difference = sqrt(off);
    f.ratio = f.difference == 0 ? 0 : f.difference / f.noise;
    if (!isfinite(f.difference)) f.ratio = INFINITY;
    if (size > 0) f.noise /= sqrt(size);
    if (size > 0) f.difference /= sqrt(size);
    if (f.ratio == 0) return f;
    at = first_off(c, i, most);
    f.plan = ghp_traced_get(&c->plan, plan, at);
    f.alone = ghp_traced_get(&c->own, own, at);
    locate(c, plan, at, &f);
    return f;
}

static enum ghp_verdict verdict_of(const struct ghp_finding *f)
{
    return f->ratio >= GHP_DEFECT_RATIO     ? GHP_VERDICT_DEFECT
           : f->ratio <= GHP_ROUNDING_RATIO ? GHP_VERDICT_ROUNDING
                                            : GHP_VERDICT_UNKNOWN;
}

/* Up to the first defect; else what is furthest off. */
static void compare(const struct check *c, int64_t step, struct ghp_layerwise *r)
{
    for (int i = 0; i < c->plan.n && r->verdict != GHP_VERDICT_DEFECT; i++) {
        struct ghp_finding f;

        if (c->plan.items[i].values == NULL || c->own.items[i].values == NULL) continue;
        f = compare_item(c, i, step);
        r->tensors++;
        if (r->found && f.ratio <= r->finding.ratio && verdict_of(&f) != GHP_VERDICT_DEFECT)
            continue;
        r->finding = f;
        r->verdict = verdict_of(&f);
        r->found = true;
    }
}

/* ---- steps ---- */

/* One worker's passes over a step of which the plan's tensors are here. Rank 0 alone. */
static enum ghp_status check_step(struct check *c, int64_t step, struct ghp_layerwise *r)
{
    ghp_step_trace_begin(&c->own);
    for (int i = 0; i < c->own.n; i++)
        c->noise[i] = 0;
    for (c->pass = 0; c->pass <= GHP_LAYERWISE_NOISES; c->pass++)
        GHP_TRY(take_step(c, step));
    r->steps[r->n_steps++] = step + 1;
    compare(c, step, r);
    return GHP_OK;
}

/* The step by the plan, and all its tensors on rank 0. */
static enum ghp_status trace_step(struct check *c, const struct ghp_step *step)
{
    struct ghp_worker *worker = c->request->worker;
    enum ghp_status status;

    GHP_TRY(ghp_worker_flush(worker));
    ghp_step_trace_begin(&c->before);
    ghp_step_trace_begin(&c->plan);
    GHP_TRY(ghp_step_trace_gather_parameters(&c->before, worker, true));
    ghp_worker_observe(worker, &c->plan.observer);
    status = ghp_worker_step(worker, step);
    ghp_worker_observe(worker, NULL);
    GHP_TRY(status);
    GHP_TRY(ghp_worker_settle(worker));
    GHP_TRY(ghp_step_trace_gather(&c->plan, worker, c->request->world));
    GHP_TRY(ghp_step_trace_gather_parameters(&c->plan, worker, false));
    GHP_TRY(ghp_worker_flush(worker));
    return ghp_step_trace_gather_parameters(&c->plan, worker, true);
}

static enum ghp_status run_steps(struct check *c, struct ghp_layerwise *r)
{
    const struct ghp_layerwise_request *request = c->request;
    struct ghp_control *control = ghp_worker_exec_context(request->worker)->transport->control;
    bool ends = false;

    for (int64_t t = 0; t < request->steps && !ends; t++) {
        struct ghp_step step = ghp_training_config_step(request->training_config, t);
        const struct ghp_control_message *messages;
        struct ghp_control_message mine = {0};
        enum ghp_status status = GHP_OK;

        if (t >= GHP_LAYERWISE_STEPS - 1 && t < request->steps - 1) {
            GHP_TRY(ghp_worker_step(request->worker, &step));
            continue;
        }
        GHP_TRY(trace_step(c, &step));
        if (control->rank == 0) {
            control->ops->alone(control, true);
            status = check_step(c, t, r);
            control->ops->alone(control, false);
        }
        GHP_TRY(status);
        mine.value = r->verdict == GHP_VERDICT_DEFECT;
        request->world->label = "comparing a step layer by layer";
        GHP_TRY(control->ops->tell(control, request->world, mine, &messages));
        ends = messages[0].value != 0;
        ghp_progress_step(t + 1, "%s", "");
    }
    return GHP_OK;
}

static enum ghp_status open(struct check *c)
{
    const struct ghp_layerwise_request *request = c->request;
    const struct ghp_exec_context *exec = ghp_worker_exec_context(request->worker);
    const struct ghp_program *program = ghp_worker_program(request->worker);
    bool first = exec->transport->control->rank == 0;

    c->parameter_unit = ghp_precision_unit(
        (struct ghp_precision){ghp_parameter_bytes(program->element_bytes), false});
    GHP_TRY(ghp_worker_flush(request->worker));
    GHP_TRY(ghp_init_weights(request->worker, &request->training_config->init));
    GHP_TRY(ghp_step_trace_init(request->worker, first, &c->before));
    GHP_TRY(ghp_step_trace_init(request->worker, first, &c->plan));
    if (!first) return GHP_OK;
    GHP_TRY(ghp_step_trace_init(request->worker, true, &c->own));
    c->noise = ghp_alloc((size_t)c->own.n, sizeof *c->noise);
    if (c->noise == NULL) return GHP_NO_MEMORY();
    return ghp_alone_open(exec, request->rank_plan, &request->training_config->init, &c->alone);
}

enum ghp_status ghp_layerwise_run(const struct ghp_layerwise_request *request,
                                  struct ghp_layerwise *r)
{
    struct check c = {.request = request};
    enum ghp_status status;

    *r = (struct ghp_layerwise){.verdict = GHP_VERDICT_UNKNOWN};
    if (ghp_worker_has_replicas(request->worker))
        r->why = "workers' weights differ between averages, so one worker cannot follow them layer "
                 "by layer; give --backend reference --precision double";
    if (r->why != NULL) return GHP_OK;
    r->verdict = GHP_VERDICT_ROUNDING;
    ghp_progress_begin("layer by layer", 0, request->steps);
    status = open(&c);
    if (status == GHP_OK) status = run_steps(&c, r);
    ghp_progress_end();
    ghp_alone_close(&c.alone);
    free(c.noise);
    ghp_step_trace_release(&c.own);
    ghp_step_trace_release(&c.plan);
    ghp_step_trace_release(&c.before);
    return status;
}
