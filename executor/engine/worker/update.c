/* executor/engine/worker/update.c - weights by gradients: one instruction's updates, or all that are ready at once; and
 * norms: of all gradients together, or of each tensor's if learning rates follow them
 * (core/optimizer/tensor_rates.h), with the factors that follow from all workers' sums. These are in host memory alone.
 *
 * If the norms are of directions, moments move when the norms are taken; the weights move with all other updates, by
 * the same direction again. */
#include "executor/engine/worker_private.h"

#include "core/base/finite.h"
#include "core/model/precision.h"
#include "executor/engine/kernel_arguments.h"

#include <math.h>

/* ---- what an instruction updates ---- */

static void *address_of(const struct ghp_worker *w, int buffer)
{
    return buffer >= 0 ? w->address[buffer] : NULL;
}

/* The update of what an instruction names as parameter p, by the rates of the step whose gradient it takes. */
static struct ghp_update update_of(const struct ghp_worker *w, const struct ghp_instr *instr, int p,
                                   const struct ghp_step *of)
{
    struct ghp_update update = {.optimizer = instr->optimizer,
                                .w = w->address[instr->at.w[p]],
                                .dw = w->address[instr->at.dw[p]],
                                .w_bf16 = address_of(w, instr->at.w_bf16[p]),
                                .elements = w->program.buffers[instr->at.w[p]].elements,
                                .squares = address_of(w, instr->at.x[0]),
                                .decays = true,
                                .rate_scale = 1,
                                .given = of->hyperparameters,
                                .not_finite = ghp_in_flight_not_finite(w->in_flight),
                                .layer = instr->layer,
                                .step = of->index,
                                .hyperparameters = ghp_in_flight_hyperparameters(w->in_flight)};

    for (int m = 0; m < instr->optimizer->n_moments; m++)
        update.moment[m] = w->address[instr->at.moment[m][p]];
    return update;
}

static void take_group(const struct ghp_worker *w, int layer, int slot, struct ghp_update *update)
{
    ghp_kernel_update_group(&w->program.model->layers[layer], slot, update);
}

/* The part of an update in elements `at` of it. */
static struct ghp_update part_of(const struct ghp_worker *w, const struct ghp_update *all,
                                 struct ghp_range at)
{
    int64_t skipped = at.first * ghp_parameter_bytes(w->program.element_bytes);
    struct ghp_update part = *all;

    part.w = (char *)all->w + skipped;
    part.dw = (const char *)all->dw + skipped;
    for (int m = 0; m < GHP_MAX_MOMENTS; m++)
        if (part.moment[m] != NULL) part.moment[m] = (char *)all->moment[m] + skipped;
    part.elements = at.end - at.first;
    return part;
}

/* An optimizer shard's updates: each parameter's part. What pads the parameters stays zero. Returns their number. */
static int list_shard(const struct ghp_worker *w, int bucket_index, const struct ghp_update *shard,
                      struct ghp_update *updates)
{
    const struct ghp_buffer *buffers = w->program.buffers;
    const struct ghp_bucket *bucket = &w->program.buckets[bucket_index];
    int64_t bytes = ghp_parameter_bytes(w->program.element_bytes);
    int n = 0;

    for (int i = 0; i < w->program.n_buffers; i++) {
        const struct ghp_buffer *b = &buffers[i];
        struct ghp_range at = {(b->storage_offset - bucket->shard_offset) / bytes, 0};

        if (b->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT || b->storage != bucket->buffer) continue;
        at.end = at.first + b->elements;
        if (at.first < 0) at.first = 0;
        if (at.end > shard->elements) at.end = shard->elements;
        if (at.first >= at.end) continue;
        w->update_of[updates - w->updates + n] = i;
        updates[n] = part_of(w, shard, at);
        take_group(w, b->layer, b->slot, &updates[n]);
        updates[n++].layer = b->layer;
    }
    return n;
}

/* An instruction's updates, into a place in w->updates; returns their number. */
static int list_updates(const struct ghp_worker *w, int i, const struct ghp_step *of,
                        struct ghp_update *updates)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    int n = 0;

    if (w->program.buckets[instr->bucket].shard_bytes > 0) {
        struct ghp_update shard = update_of(w, instr, 0, of);

        return list_shard(w, instr->bucket, &shard, updates);
    }
    for (int p = 0; p < GHP_MAX_PARAMS; p++) {
        if (instr->at.w[p] < 0) continue;
        updates[n] = update_of(w, instr, p, of);
        w->update_of[updates - w->updates + n] = instr->at.dw[p];
        take_group(w, instr->layer, p, &updates[n++]);
    }
    return n;
}

/* ---- rates by norms ---- */

static int batches_of(const struct ghp_worker *w)
{
    return w->program.problem.workers * w->program.micro_batches;
}

static int64_t parameter_bytes(const struct ghp_worker *w)
{
    return ghp_parameter_bytes(w->program.element_bytes);
}

enum ghp_status ghp_worker_open_rates(struct ghp_worker *w)
{
    const struct ghp_model *model = w->program.model;

    if (w->program.rates == NULL) return GHP_OK;
    return ghp_tensor_rates_open(w->program.rates, ghp_norm_place(model, model->n_layers, 0),
                                 &w->rates);
}

const struct ghp_tensor_rates *ghp_worker_rates(const struct ghp_worker *w)
{
    return w->rates.rule != NULL ? &w->rates : NULL;
}

/* One part of a parameter: its moments, and its part of both norms. What lies in an optimizer shard is all its own, or
 * another's. */
static enum ghp_status square_direction(const struct ghp_worker *w, const struct ghp_update *u,
                                        int buffer, double *sums)
{
    const struct ghp_buffer *b = &w->program.buffers[buffer];
    struct ghp_norm_range at = ghp_norm_range_of(&w->program, buffer);
    int place = ghp_norm_place(w->program.model, b->layer, b->slot);
    double *directions = &sums[place], *weights = &sums[place + w->rates.tensors];

    if (u->elements < b->elements)
        at = (struct ghp_norm_range){.end = at.first < at.end ? u->elements : 0};
    return w->exec.backend_ops->direct(
        w->exec.backend, u, &(struct ghp_direction_squares){at.first, at.end, directions, weights});
}

static enum ghp_status square_directions(struct ghp_worker *w, double *sums)
{
    for (int i = 0; i < w->program.n_instrs; i++) {
        int n;

        if (ghp_worker_instr(w, i)->kind != GHP_INSTR_UPDATE) continue;
        n = list_updates(w, i, &w->step, w->updates);
        for (int p = 0; p < n; p++)
            GHP_TRY(square_direction(w, &w->updates[p], w->update_of[p], sums));
    }
    return GHP_OK;
}

/* Adds the squares of some elements at an address. */
static enum ghp_status add_squares(struct ghp_worker *w, const struct ghp_instr *instr,
                                   struct ghp_squares of, double *sum)
{
    double more = 0;

    GHP_TRY(w->exec.backend_ops->square(
        w->exec.backend, &(struct ghp_square_sum){&of, 1, w->address[instr->at.scratch], &more}));
    *sum += more;
    return GHP_OK;
}

/* Gradients are parts of the mean: a worker batch's own is n times as long. */
static enum ghp_status run_worker_norm(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    double n = batches_of(w), *sums = w->address[instr->at.y];

    (void)previous;
    for (int p = 0; p < GHP_MAX_PARAMS; p++) {
        double sum = 0, *to;

        if (instr->at.dw[p] < 0) continue;
        GHP_TRY(add_squares(w, instr,
                            (struct ghp_squares){w->address[instr->at.dw[p]],
                                                 ghp_worker_parameters(w, instr->at.dw[p])},
                            &sum));
        to = &sums[w->rates.tensors + ghp_norm_place(w->program.model, instr->layer, p)];
        *to = (instr->micro == 0 ? 0 : *to) + n * n * sum;
    }
    return GHP_OK;
}

const struct ghp_run_kind ghp_run_kind_worker_norm = {.run = run_worker_norm};

/* The address at which this worker has a parameter from an element on, or its gradient in `buffer`. If they are
 * sharded, it lies in the worker's shard. */
static void *parameter_at(struct ghp_worker *w, int buffer, bool weight, int64_t first)
{
    const struct ghp_buffer *b = &w->program.buffers[buffer];
    int64_t skipped = first * parameter_bytes(w);

    for (int k = 0; k < w->program.n_buckets; k++) {
        const struct ghp_bucket *bucket = &w->program.buckets[k];
        bool shards =
            weight ? ghp_sharding_gathers(bucket->sharding) : bucket->sharding != GHP_SHARDING_NONE;

        if (bucket->buffer == b->storage && shards)
            return (char *)w->address[weight ? bucket->weight_shard : bucket->gradient_shard] +
                   (b->storage_offset - bucket->shard_offset) + skipped;
    }
    return (char *)(weight ? ghp_worker_tensor(w, GHP_BUFFER_WEIGHT, b->layer, b->slot, NULL)
                           : w->address[buffer]) +
           skipped;
}

/* This worker's part of each gradient and, if that is asked for, of the weights. */
static enum ghp_status square_ranges(struct ghp_worker *w, const struct ghp_instr *instr,
                                     double *sums)
{
    int64_t bytes = parameter_bytes(w);

    for (int b = 0; b < w->program.n_buffers; b++) {
        const struct ghp_buffer *buffer = &w->program.buffers[b];
        int place = ghp_norm_place(w->program.model, buffer->layer, buffer->slot);
        struct ghp_norm_range at;
        struct ghp_squares of;

        if (buffer->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT) continue;
        at = ghp_norm_range_of(&w->program, b);
        if (at.first >= at.end) continue;
        of = (struct ghp_squares){parameter_at(w, b, false, at.first),
                                  {at.end - at.first, (int)bytes}};
        GHP_TRY(add_squares(w, instr, of, &sums[place]));
        if (!w->rates.rule->weights) continue;
        of.of = parameter_at(w, b, true, at.first);
        GHP_TRY(add_squares(w, instr, of, &sums[place + w->rates.tensors]));
    }
    return GHP_OK;
}

/* If rates follow norms, makes the sums of squares of each tensor. */
static enum ghp_status square_tensors(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    double *sums = w->address[instr->at.y];
    int zeroed = w->rates.rule->weights ? 2 * w->rates.tensors : w->rates.tensors;

    for (int j = 0; j < zeroed; j++)
        sums[j] = 0;
    if (!w->rates.rule->directions) return square_ranges(w, instr, sums);
    return square_directions(w, sums);
}

const double *ghp_worker_advance_rates(struct ghp_worker *w, double *sums)
{
    int tensors = w->rates.tensors;
    double *all = &sums[2 * (int64_t)tensors];

    ghp_tensor_rates_advance(&w->rates, batches_of(w), &w->step.hyperparameters,
                             &(struct ghp_tensor_norms){sums, sums + tensors});
    *all = 0;
    for (int j = 0; j < tensors && !w->rates.rule->directions; j++)
        *all += sums[j];
    return all;
}

/* An update of what has its gradient in `buffer`, by its factor. */
static void scale_update(const struct ghp_worker *w, int buffer, struct ghp_update *update)
{
    const struct ghp_buffer *b = &w->program.buffers[buffer];
    struct ghp_hyperparameters *h = &update->given;

    h->learning_rate *= w->rates.factors[ghp_norm_place(w->program.model, b->layer, b->slot)];
    update->directed = w->rates.rule->directions;
    if (!w->rates.rule->weights || update->directed) return;
    update->scales = true; /* the rate is in what the momentum sums up */
    update->scale = h->learning_rate;
    h->weight_decay *= h->learning_rate;
    h->learning_rate = 1;
}

/* ---- updates ---- */

enum ghp_status ghp_worker_accumulate(struct ghp_worker *w, int sum, int more,
                                      struct ghp_buffer_extent extent)
{
    return w->exec.backend_ops->accumulate(w->exec.backend, w->address[sum], w->address[more],
                                           extent);
}

struct ghp_buffer_extent ghp_worker_parameters(const struct ghp_worker *w, int buffer)
{
    return (struct ghp_buffer_extent){w->program.buffers[buffer].elements,
                                      ghp_parameter_bytes(w->program.element_bytes)};
}

/* On a processor: notes numbers that are not finite. */
static void look_at(struct ghp_worker *w, int buffer)
{
    const struct ghp_buffer *b = &w->program.buffers[buffer];

    if (ghp_device_is_host(w->arena.device) &&
        !ghp_are_finite(w->address[buffer], b->elements, (int)parameter_bytes(w)))
        ghp_not_finite_note(ghp_in_flight_not_finite(w->in_flight), w->updating, b->layer);
}

int ghp_worker_optimizer_shard_not_finite(struct ghp_worker *w)
{
    int least = -1;

    for (int i = 0; i < w->program.n_instrs && ghp_device_is_host(w->arena.device); i++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, i);
        int n = instr->kind == GHP_INSTR_UPDATE && w->program.buckets[instr->bucket].shard_bytes > 0
                    ? list_updates(w, i, &w->step, w->updates)
                    : 0;

        for (int p = 0; p < n; p++)
            for (int m = 0; m < instr->optimizer->n_moments; m++) {
                const struct ghp_update *update = &w->updates[p];
                int layer = w->program.buffers[w->update_of[p]].layer;

                if ((least < 0 || layer < least) &&
                    (!ghp_are_finite(update->moment[m], update->elements,
                                     (int)parameter_bytes(w)) ||
                     !ghp_are_finite(update->w, update->elements, (int)parameter_bytes(w))))
                    least = layer;
            }
    }
    return least;
}

void ghp_worker_look_at_pulled(struct ghp_worker *w, int bucket)
{
    const struct ghp_buffer *buffers = w->program.buffers;

    for (int i = 0; i < w->program.n_buffers; i++)
        if (buffers[i].buffer_kind == GHP_BUFFER_WEIGHT &&
            (bucket < 0 || buffers[i].storage == w->program.buckets[bucket].weights))
            look_at(w, i);
}

/* Running statistics that moved apart come together; a few numbers a channel, which are looked at. */
static enum ghp_status add_stats_deltas(struct ghp_worker *w, int i)
{
    const struct ghp_operands *at = &ghp_worker_instr(w, i)->at;

    for (int s = 0; s < GHP_MAX_STATES; s++) {
        if (at->stats_delta[s] >= 0)
            GHP_TRY(ghp_worker_accumulate(w, at->state[s], at->stats_delta[s],
                                          ghp_worker_parameters(w, at->state[s])));
        if (at->state[s] >= 0) look_at(w, at->state[s]);
    }
    return GHP_OK;
}

/* If a launch costs more than an update, does with this update all later ones whose gradients are there too. The
 * communication stream is first in, first out, so a reduction that is done has all before it done; they are posted in
 * the order of the list. */
static enum ghp_status update_together(struct ghp_worker *w, int i, const struct ghp_step *of)
{
    int n = 0;

    if (w->prepared[i].updated) return GHP_OK;
    for (int j = i; j < w->program.n_instrs; j++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, j);

        if (instr->kind != GHP_INSTR_UPDATE || w->prepared[j].updated ||
            instr->wait > ghp_worker_instr(w, i)->wait)
            continue;
        w->prepared[j].updated = true;
        n += list_updates(w, j, of, w->updates + n);
        GHP_TRY(add_stats_deltas(w, j));
    }
    return w->exec.backend_ops->update_all(w->exec.backend, w->updates, n);
}

static enum ghp_status run_norm(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    int64_t bytes = ghp_parameter_bytes(w->program.element_bytes);
    int n = 0;

    (void)previous;
    if (w->rates.rule != NULL) return square_tensors(w, i);
    for (int b = 0; b < w->program.n_buffers; b++) {
        const struct ghp_buffer *buffer = &w->program.buffers[b];
        struct ghp_norm_range range;

        if (buffer->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT) continue;
        range = ghp_norm_range_of(&w->program, b);
        if (range.first < range.end)
            w->squares[n++] = (struct ghp_squares){parameter_at(w, b, false, range.first),
                                                   {range.end - range.first, (int)bytes}};
    }
    return w->exec.backend_ops->square(
        w->exec.backend, &(struct ghp_square_sum){w->squares, n, w->address[instr->at.scratch],
                                                  w->address[instr->at.y]});
}

const struct ghp_run_kind ghp_run_kind_norm = {.run = run_norm};

/* ---- one worker's own gradients ---- */

static double squares_of(const void *of, struct ghp_buffer_extent extent)
{
    double sum = 0;

    for (int64_t i = 0; i < extent.n; i++) {
        double x = extent.bytes == 8 ? ((const double *)of)[i] : (double)((const float *)of)[i];

        sum += x * x;
    }
    return sum;
}

void ghp_worker_measure(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = i >= 0 ? ghp_worker_instr(w, i) : NULL;

    if (w->own_squares < 0) w->own_squares = 0;
    for (int b = 0; b < w->program.n_buffers; b++) {
        const struct ghp_buffer *buffer = &w->program.buffers[b];

        if (buffer->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT) continue;
        if (instr != NULL && w->program.buckets[instr->bucket].buffer != buffer->storage) continue;
        w->own_squares += squares_of(w->address[b], ghp_worker_parameters(w, b));
    }
}

double ghp_worker_own_norm(const struct ghp_worker *w)
{
    /* gradients are loss_scale times those of the sample */
    return w->loss_scale > 0 ? sqrt(w->own_squares) / w->loss_scale : 0;
}

/* ---- updates ---- */

enum ghp_status ghp_worker_copy_weights(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_buffers; i++) {
        const struct ghp_buffer *b = &w->program.buffers[i];

        if (b->buffer_kind == GHP_BUFFER_BF16_WEIGHT)
            GHP_TRY(w->exec.backend_ops->copy_weight(
                w->exec.backend, ghp_worker_tensor(w, GHP_BUFFER_WEIGHT, b->layer, b->slot, NULL),
                w->address[i], b->elements));
    }
    return GHP_OK;
}

void ghp_worker_begin_updates(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        w->prepared[i].updated = false;
}

static enum ghp_status run_update(struct ghp_worker *w, int i, const struct ghp_step *of)
{
    int n;

    if (w->run.fault == GHP_FAULT_SKIP_UPDATE && i == w->dropped) return GHP_OK;
    if (w->exec.backend_ops->update_all != NULL) return update_together(w, i, of);
    n = list_updates(w, i, of, w->updates);
    for (int p = 0; p < n; p++) {
        if (w->rates.rule != NULL) scale_update(w, w->update_of[p], &w->updates[p]);
        GHP_TRY(w->exec.backend_ops->update(w->exec.backend, &w->updates[p]));
    }
    return add_stats_deltas(w, i);
}

const struct ghp_run_kind ghp_run_kind_update = {.run = run_update,
                                                 .failpoint = GHP_FAILPOINT_UPDATE};
