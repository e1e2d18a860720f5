/* executor/engine/worker/instr.c - the kinds of instructions that the compute stream runs. */
#include "executor/engine/worker_private.h"

#include "core/model/precision.h"
#include "core/program/fuse.h"
#include "core/program/memory_format.h"
#include "executor/engine/kernel_arguments.h"
#include "executor/engine/reshard.h"
#include "executor/engine/ring.h"

/* The wrong samples: the first one in place of the second. */
static enum ghp_status double_sample(struct ghp_worker *w, const struct ghp_instr *instr)
{
    const struct ghp_shape shape = w->program.model->layers[0].out;
    int64_t bytes =
        ghp_shape_elements(shape) * ghp_shape_element_bytes(shape, w->program.element_bytes);
    char *samples = w->address[instr->at.y];

    return ghp_device_copy(w->arena.device, GHP_DEVICE_STREAM_COMPUTE,
                           (struct ghp_copy){samples + bytes, samples, bytes, GHP_COPY_ON_DEVICE});
}

/* Samples if the input is owned, labels if the loss is. */
static enum ghp_status run_load(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_operands *at = &instr->at;

    (void)previous;
    GHP_TRY(ghp_in_flight_load(w->in_flight, instr->micro, at->y >= 0 ? w->address[at->y] : NULL,
                               at->labels >= 0 ? w->address[at->labels] : NULL));
    return w->run.fault == GHP_FAULT_DOUBLE_SAMPLE && at->y >= 0 && instr->local.n > 1
               ? double_sample(w, instr)
               : GHP_OK;
}

const struct ghp_run_kind ghp_run_kind_load = {.run = run_load, .failpoint = GHP_FAILPOINT_SAMPLES};

/* The wrong bias: added once by each member of the subgroup whose partial sums it should follow. */
static enum ghp_status repeat_bias(struct ghp_worker *w, int i, struct ghp_kernel_arguments *args)
{
    int times = ghp_fault_bias_times(&w->program, ghp_worker_instr(w, i));

    args->at.x[0] = args->at.y;
    for (int again = 1; again < times; again++)
        GHP_TRY(w->exec.backend_ops->run(w->prepared[i].kernel, args));
    return GHP_OK;
}

/* Updates of the step before have found a number that is not finite: the loss says it, to all who sum it. */
static enum ghp_status take_poison(struct ghp_worker *w)
{
    double *loss = (double *)w->address[w->metrics] + GHP_METRIC_LOSS;

    if (w->run.weight_owner != NULL) return GHP_OK;
    return w->exec.backend_ops->accumulate(w->exec.backend, loss,
                                           &ghp_in_flight_not_finite(w->in_flight)->poison,
                                           (struct ghp_buffer_extent){1, sizeof(double)});
}

/* Without a reduction of the metrics they are complete after the loss. */
static enum ghp_status run_loss(struct ghp_worker *w, int i,
                                const struct ghp_kernel_arguments *args)
{
    GHP_TRY(w->exec.backend_ops->run(w->prepared[i].kernel, args));
    if (w->metric_reduce >= 0) return GHP_OK;
    GHP_TRY(take_poison(w));
    return ghp_in_flight_metrics(w->in_flight, ghp_in_flight_half(w->in_flight),
                                 GHP_DEVICE_STREAM_COMPUTE, w->address[w->metrics]);
}

/* The sums of all ghost batches' statistics, at the start of the scratch. */
static enum ghp_status sum_ghost_batches(struct ghp_worker *w, const struct ghp_instr *instr,
                                         struct ghp_kernel_arguments *args)
{
    const struct ghp_buffer_extent sums = {2 * instr->local.c, sizeof(double)};
    double *sum = args->at.scratch;

    GHP_TRY(ghp_device_copy(
        w->arena.device, GHP_DEVICE_STREAM_COMPUTE,
        (struct ghp_copy){sum, args->at.stats, sums.n * sums.bytes, GHP_COPY_ON_DEVICE}));
    for (int g = 1; g < instr->local.repeat; g++)
        GHP_TRY(w->exec.backend_ops->accumulate(w->exec.backend, sum, args->at.stats + g * sums.n,
                                                sums));
    args->at.stats = sum;
    args->at.scratch = (char *)args->at.scratch + ghp_instr_sums_bytes(instr);
    return GHP_OK;
}

static void *moved(const void *at, int64_t bytes)
{
    return at == NULL ? NULL : (char *)(uintptr_t)at + bytes;
}

/* A batch_norm pass over ghost batches: one after the other; their weight gradients come from the sums of all. */
static enum ghp_status run_ghost_batches(struct ghp_worker *w, int i,
                                         const struct ghp_kernel_arguments *all)
{
    const struct ghp_local *local = &ghp_worker_instr(w, i)->local;
    int64_t e = w->program.element_bytes, tensor = ghp_local_in_elements(local) * e;

    for (int g = 0; g < local->repeat; g++) {
        struct ghp_kernel_arguments args = *all;

        for (int x = 0; x < GHP_MAX_INPUTS; x++)
            args.at.x[x] = moved(all->at.x[x], g * tensor);
        args.at.dx[0] = moved(all->at.dx[0], g * tensor);
        args.at.y = moved(all->at.y, g * tensor);
        args.at.dy = moved(all->at.dy, g * tensor);
        args.at.saved = moved(all->at.saved, g * 2 * local->c * ghp_parameter_bytes((int)e));
        args.at.stats = moved(all->at.stats, g * 2 * local->c * (int64_t)sizeof(double));
        args.first_sample += g * local->n;
        args.stats_delta_adds = all->stats_delta_adds || g > 0;
        GHP_TRY(w->exec.backend_ops->run(w->prepared[i].kernel, &args));
    }
    return GHP_OK;
}

static void take_bias(const struct ghp_worker *w, int bias, struct ghp_kernel_arguments *args)
{
    const struct ghp_operands *at = &ghp_worker_instr(w, bias)->at;

    args->at.w[1] = w->address[at->w[0]];
    args->at.w_bf16[1] = at->w_bf16[0] >= 0 ? w->address[at->w_bf16[0]] : NULL;
}

/* Sets the operands of an addition that a norm takes along. A batch norm before the addition gets the sum's place for
 * its result, and what is added to it. A norm after the addition gets what is added, and the sum's place. Backward, the
 * place that is added to is there already. */
static void take_addition(const struct ghp_worker *w, int i, struct ghp_kernel_arguments *args)
{
    const struct ghp_operands *add =
        &ghp_worker_instr(w, ghp_worker_instr(w, i)->fusion.does.add)->at;

    if (ghp_worker_instr(w, i)->backward) {
        args->at.dx[0] = w->address[add->dy];
        return;
    }
    const void *one = w->address[add->x[0]], *other = w->address[add->x[1]];

    if (ghp_worker_instr(w, i)->fusion.does.add < i) {
        args->at.x[0] = one;
        args->at.x[1] = other;
        args->at.dx[0] = w->address[add->y];
        return;
    }
    args->at.x[1] = one == args->at.y ? other : one;
    args->at.y = w->address[add->y];
}

/* Sets what the mask of a convolution's gradient is read from: the output of the ReLU that made its input. */
static void take_mask(const struct ghp_worker *w, int i, struct ghp_kernel_arguments *args)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    if (instr->pass == GHP_PASS_BACKWARD_DATA &&
        (ghp_op_of(instr->local.op)->fuses & GHP_FUSES_MASK) != 0)
        args->at.x[0] = w->address[ghp_worker_instr(w, instr->fusion.does.relu)->at.y];
}

/* Sets where the convolution before a batch norm leaves the sums of its output. An observer may change that: then each
 * pass reads the tensor. */
static void take_sums(const struct ghp_worker *w, int i, struct ghp_kernel_arguments *args)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    bool makes = (ghp_op_of(instr->local.op)->fuses & GHP_FUSES_SUMS) != 0;
    int conv = makes ? i : instr->fusion.does.sums;
    int norm = ghp_worker_instr(w, conv)->fusion.does.sums;

    if (args->training && w->observer == NULL && w->prepared[conv].fuses)
        args->at.sums = w->address[ghp_worker_instr(w, norm)->at.saved];
}

bool ghp_worker_done_by_another(const struct ghp_worker *w, int i)
{
    int by = ghp_worker_instr(w, i)->fusion.by, leader = w->prepared[i].leader;

    return (by >= 0 && w->prepared[by].fuses) ||
           (leader >= 0 && leader != i && w->observer == NULL);
}

/* All gradients of an instruction become zeros. */
static enum ghp_status clear_gradients(struct ghp_worker *w, const struct ghp_instr *instr)
{
    int element_bytes = ghp_parameter_bytes(w->program.element_bytes);

    for (int i = 0; i < GHP_MAX_PARAMS; i++) {
        int buffer = instr->at.dw[i];

        if (buffer < 0) continue;
        GHP_TRY(ghp_device_clear(w->arena.device, GHP_DEVICE_STREAM_COMPUTE, w->address[buffer],
                                 w->program.buffers[buffer].elements * element_bytes));
    }
    return GHP_OK;
}

/* A COMPUTE or a SHIFT of an attention in blocks. */
static struct ghp_ring_job ring_job(const struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    return (struct ghp_ring_job){.instr = instr,
                                 .member = w->program.placement.number % instr->blocks,
                                 .causal = w->program.model->layers[instr->layer].heads.causal,
                                 .element_bytes = w->program.element_bytes,
                                 .ring = w->address[instr->at.ring],
                                 .ops = w->exec.backend_ops,
                                 .backend = w->exec.backend,
                                 .kernel = w->prepared[i].kernel,
                                 .comm = w->prepared[i].comm};
}

static enum ghp_status run_shift(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_ring_job job = ring_job(w, i);
    const struct ghp_tensors at = ghp_kernel_arguments_tensors(instr, w->address);

    (void)previous;
    job.comm->label = w->prepared[i].label;
    return ghp_ring_shift(&job, &at);
}

const struct ghp_run_kind ghp_run_kind_shift = {.run = run_shift,
                                                .failpoint = GHP_FAILPOINT_RESHARD};

static struct ghp_kernel_arguments arguments_of(const struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_prepared_instr *p = &w->prepared[i];
    const struct ghp_epilogue *does = &instr->fusion.does;
    struct ghp_kernel_arguments args =
        ghp_kernel_arguments_of(&w->program, &w->run, instr, &w->step);

    args.at = ghp_kernel_arguments_tensors(instr, w->address);
    args.loss_scale = w->loss_scale;
    if (args.training) args.at.seconds = ghp_in_flight_seconds(w->in_flight, instr->micro);
    args.class_weights = w->class_weights;
    args.mean_weight = w->mean_weight;
    args.output_weights = w->output_weights;
    args.counted_output = w->step.output > 0 ? w->step.output - 1 : 0;
    if (p->fuses && does->bias >= 0) take_bias(w, does->bias, &args);
    if (p->fuses && does->add >= 0) take_addition(w, i, &args);
    if (p->fuses && does->relu >= 0) take_mask(w, i, &args);
    if (does->sums >= 0) take_sums(w, i, &args);
    args.hyperparameters = ghp_in_flight_hyperparameters(w->in_flight);
    return args;
}

/* Products of one tensor, of which i leads. Their scratch may lie in a row. */
static enum ghp_status run_siblings(struct ghp_worker *w, int i)
{
    struct ghp_kernel_arguments args[GHP_MOST_SIBLINGS];
    struct ghp_joint_run run = {.args = args};
    int next = ghp_worker_instr(w, i)->fusion.first;

    for (; next >= 0; next = ghp_worker_instr(w, next)->fusion.next) {
        int scratch = ghp_worker_instr(w, next)->at.scratch;

        args[run.n] = arguments_of(w, next);
        if (args[run.n++].at.scratch == (char *)args[0].at.scratch + run.scratch_bytes &&
            scratch >= 0)
            run.scratch_bytes += w->program.buffers[scratch].bytes;
    }
    return w->exec.backend_ops->run_all(w->prepared[i].kernel, run);
}

static enum ghp_status run_compute(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_prepared_instr *p = &w->prepared[i];
    struct ghp_kernel_arguments args;

    (void)previous;
    ghp_failpoint_reach(ghp_pass_is_backward(instr->pass) ? GHP_FAILPOINT_BACKWARD
                                                          : GHP_FAILPOINT_FORWARD);
    if (ghp_worker_done_by_another(w, i)) return GHP_OK;
    if (p->leader == i && w->observer == NULL) return run_siblings(w, i);
    args = arguments_of(w, i);
    if (instr->at.metrics >= 0) return run_loss(w, i, &args);
    if (instr->blocks > 0) {
        const struct ghp_ring_job job = ring_job(w, i);

        return ghp_ring_compute(&job, &args);
    }
    if (instr->local.repeat > 1 && instr->pass != GHP_PASS_BACKWARD_WEIGHT)
        return run_ghost_batches(w, i, &args);
    if (instr->local.repeat > 1) GHP_TRY(sum_ghost_batches(w, instr, &args));
    GHP_TRY(w->exec.backend_ops->run(p->kernel, &args));
    if (w->run.fault == GHP_FAULT_BIAS_TIMES_K && instr->pass == GHP_PASS_FORWARD)
        GHP_TRY(repeat_bias(w, i, &args));
    if (w->run.fault == GHP_FAULT_NO_BIAS_GRADIENT && instr->pass == GHP_PASS_BACKWARD_WEIGHT &&
        instr->local.op == GHP_OP_BIAS)
        return clear_gradients(w, instr);
    return GHP_OK;
}

const struct ghp_run_kind ghp_run_kind_compute = {.run = run_compute};

/* The member of a subgroup whose part this worker keeps: its own, or by the fault the next one's. */
static int keeper_of(const struct ghp_worker *w, const struct ghp_instr *instr)
{
    int number = w->program.placement.number, m = instr->step.tp_size;

    if (w->run.fault != GHP_FAULT_WRONG_PART || !ghp_fault_is_slice(instr)) return number;
    return number / m * m + (number % m + 1) % m;
}

static enum ghp_status run_reshard(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_prepared_instr *p = &w->prepared[i];
    const struct ghp_operands *at = &instr->at;
    const struct ghp_model *model = w->program.model;
    struct ghp_shape shape = model->layers[model->edges[instr->edge].from].out;
    struct ghp_reshard_job reshard = {.instr = instr,
                                      .problem = w->program.placement.problem,
                                      .rank = keeper_of(w, instr),
                                      .element_bytes =
                                          ghp_shape_element_bytes(shape, w->program.element_bytes),
                                      .comm = p->comm,
                                      .x = w->address[at->x[0]],
                                      .y = w->address[at->y],
                                      .nchw16c = ghp_instr_formats(&w->program, instr),
                                      .device = w->arena.device};

    (void)previous;
    if (p->comm != NULL) ghp_failpoint_reach(GHP_FAILPOINT_RESHARD);
    if (at->scratch >= 0) reshard.scratch = w->address[at->scratch];
    if (at->saved >= 0) {
        reshard.receive = w->address[at->saved];
        reshard.receive_bytes = w->program.buffers[at->saved].bytes;
    }
    if (p->comm != NULL) p->comm->label = p->label;
    return ghp_reshard_run(&reshard);
}

const struct ghp_run_kind ghp_run_kind_reshard = {.run = run_reshard};

/* A further gradient of a tensor, or a further micro-batch's gradients of a layer's weights. */
static enum ghp_status run_accumulate(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_operands *at = &instr->at;
    const struct ghp_buffer_extent tensor = {ghp_local_in_elements(&instr->local),
                                             w->program.element_bytes};

    (void)previous;
    if (ghp_worker_done_by_another(w, i)) return GHP_OK;
    if (w->prepared[i].fuses)
        return w->exec.backend_ops->accumulate_masked(
            w->exec.backend,
            &(struct ghp_masked_sum){w->address[at->dy], w->address[at->x[0]],
                                     w->address[ghp_worker_instr(w, instr->fusion.does.relu)->at.y],
                                     tensor});
    if (instr->edge >= 0) return ghp_worker_accumulate(w, at->dy, at->x[0], tensor);
    for (int p = 0; p < GHP_MAX_PARAMS; p++)
        if (at->dw[p] >= 0)
            GHP_TRY(
                ghp_worker_accumulate(w, at->dw[p], at->x[p], ghp_worker_parameters(w, at->dw[p])));
    return GHP_OK;
}

const struct ghp_run_kind ghp_run_kind_accumulate = {.run = run_accumulate};

/* If all stages sum the metrics, only one worker of each subgroup counts its samples. */
static enum ghp_status one_counts(struct ghp_worker *w, bool counts)
{
    if (counts) return GHP_OK;
    return ghp_device_clear(w->arena.device, GHP_DEVICE_STREAM_COMPUTE, w->address[w->metrics],
                            GHP_METRIC_COUNT * sizeof(double));
}

static enum ghp_status run_metrics(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const double *own = w->address[w->metrics];

    if (w->mixer != NULL && w->program.mixing->keeps_loss && own[GHP_METRIC_SAMPLES] > 0)
        w->mix_numbers.lost += own[GHP_METRIC_LOSS] / own[GHP_METRIC_SAMPLES];
    GHP_TRY(one_counts(w, ghp_worker_instr(w, i)->counts));
    GHP_TRY(take_poison(w));
    if (ghp_worker_keeps_metrics(w) && !ghp_worker_keep_metrics(w)) return GHP_OK;
    return ghp_worker_post(w, i, previous);
}

static enum ghp_status reduce_metrics(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    if (ghp_worker_keeps_metrics(w)) return ghp_worker_sum_kept(w);
    if (ghp_instr_sends(instr)) GHP_TRY(ghp_worker_sum(w, i, instr->at.metrics, instr->bytes));
    return ghp_in_flight_metrics(w->in_flight, w->prepared[i].half, GHP_DEVICE_STREAM_COMM,
                                 w->address[w->metrics]);
}

const struct ghp_run_kind ghp_run_kind_metric_reduce = {run_metrics, reduce_metrics,
                                                        GHP_FAILPOINT_METRICS};

static enum ghp_status run_stat_reduce(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    (void)previous;
    if (w->prepared[i].comm == NULL || w->run.fault == GHP_FAULT_LOCAL_STATISTICS) return GHP_OK;
    return ghp_worker_sum(w, i, instr->at.stats, instr->bytes);
}

const struct ghp_run_kind ghp_run_kind_stat_reduce = {run_stat_reduce,
                                                      .failpoint = GHP_FAILPOINT_STATISTICS};

static enum ghp_status run_norm_reduce(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    double *sums = w->address[instr->at.y];

    (void)previous;
    if (w->prepared[i].comm != NULL) GHP_TRY(ghp_worker_sum(w, i, instr->at.y, instr->bytes));
    return ghp_in_flight_squares(w->in_flight,
                                 w->rates.rule != NULL ? ghp_worker_advance_rates(w, sums) : sums);
}

const struct ghp_run_kind ghp_run_kind_norm_reduce = {.run = run_norm_reduce,
                                                      .failpoint = GHP_FAILPOINT_NORM};

static enum ghp_status run_wait(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    int after = ghp_worker_instr(w, i)->after, message = w->prepared[after].message;

    (void)previous;
    if (ghp_worker_instr(w, after)->stream == GHP_STREAM_COMM)
        return ghp_comm_stream_wait(w->comm_stream, after);
    if (w->lanes != NULL) return ghp_lanes_wait(w->lanes, message);
    GHP_TRY(ghp_p2p_thread_wait(w->p2p_thread, message));
    return ghp_bounce_await(w->messages[message].bounce);
}

const struct ghp_run_kind ghp_run_kind_wait = {.run = run_wait};
