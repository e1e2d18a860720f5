/* profiler/measure/rates.c - copy, update, load, accumulate: two sizes each, and the line through them. */
#include "profiler/measure/rates.h"
#include "core/model/precision.h"
#include "executor/data/samples.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALL_BYTES = 16 << 10,
    LARGE_BYTES = 16 << 20, /* of each tensor */
    /* of each: beyond what caches keep, as weights are when their update comes */
    WEIGHTS_BYTES = 64 << 20,
    BEYOND_CACHE = 4,       /* size of its tensors in multiples of a device's cache */
    COPY_BLOCK_BYTES = 256, /* 64 channels of a slice */
    COPY_PARTS = 4,
    TENSORS = 2 + GHP_MAX_MOMENTS /* weights, gradients, moments */
};

static struct ghp_effort effort_of(const struct ghp_measure *m)
{
    return (struct ghp_effort){.sample_s = m->sample_s,
                               .min_samples = ghp_measure_rounds(m, 5),
                               .max_samples = ghp_measure_rounds(m, 7)};
}

struct ghp_rate ghp_measure_line(const double bytes[2], const struct ghp_timed timed[2])
{
    struct ghp_rate rate = {.source = GHP_SOURCE_MEASURED, .spread = timed[1].spread};
    double rise_s = timed[1].seconds - timed[0].seconds;

    if (rise_s > 0) {
        rate.bandwidth_Bps = (bytes[1] - bytes[0]) / rise_s;
        rate.latency_s = timed[0].seconds - bytes[0] / rate.bandwidth_Bps;
        if (rate.latency_s >= 0) return rate;
    }
    rate.latency_s = 0;
    rate.bandwidth_Bps = bytes[1] / (timed[1].seconds > 0 ? timed[1].seconds : 1e-9);
    return rate;
}

/* One of the memory operations, on tensors of `bytes`. */
struct job {
    const struct ghp_measure *m;
    int64_t bytes;
    void *a, *b, *c, *d;
    void *w_bf16;                          /* of the update; NULL: it writes no copy */
    const struct ghp_optimizer *optimizer; /* of the update */
};

static enum ghp_status run_copy(void *context, int64_t repeats)
{
    const struct job *job = context;
    struct ghp_pack pack = {.rows = job->bytes / (COPY_BLOCK_BYTES * COPY_PARTS),
                            .block_bytes = COPY_BLOCK_BYTES,
                            .parts = COPY_PARTS};

    struct ghp_move move = {GHP_MOVE_SPLIT, pack, job->a, job->b, 0};

    for (int64_t i = 0; i < repeats; i++)
        GHP_TRY(ghp_device_move(ghp_measure_device(job->m), GHP_DEVICE_STREAM_COMPUTE, &move));
    return GHP_OK;
}

static enum ghp_status run_update(void *context, int64_t repeats)
{
    const struct job *job = context;
    struct ghp_update update = {.optimizer = job->optimizer,
                                .w = job->a,
                                .moment = {job->b, job->d},
                                .dw = job->c,
                                .w_bf16 = job->w_bf16,
                                .elements = job->bytes / ghp_parameter_bytes(job->m->element_bytes),
                                .decays = true,
                                .given = ghp_optimizer_usual(job->optimizer)};

    if (job->optimizer->complete != NULL) job->optimizer->complete(&update.given, 1);
    for (int64_t i = 0; i < repeats; i++)
        GHP_TRY(job->m->backend_ops->update(job->m->backend, &update));
    return GHP_OK;
}

static enum ghp_status run_square(void *context, int64_t repeats)
{
    const struct job *job = context;
    int bytes = ghp_parameter_bytes(job->m->element_bytes);
    const struct ghp_squares all = {job->a, {job->bytes / bytes, bytes}};
    const struct ghp_square_sum sum = {&all, 1, job->b, job->c};

    for (int64_t i = 0; i < repeats; i++)
        GHP_TRY(job->m->backend_ops->square(job->m->backend, &sum));
    return GHP_OK;
}

static enum ghp_status run_accumulate(void *context, int64_t repeats)
{
    const struct job *job = context;
    const struct ghp_buffer_extent extent = {job->bytes / job->m->element_bytes,
                                             job->m->element_bytes};

    for (int64_t i = 0; i < repeats; i++)
        GHP_TRY(job->m->backend_ops->accumulate(job->m->backend, job->a, job->b, extent));
    return GHP_OK;
}

/* On a device samples are there before a step begins (executor/engine/loader.h); the step copies them to their
 * place. */
static enum ghp_status run_place(void *context, int64_t repeats)
{
    const struct job *job = context;
    struct ghp_copy copy = {job->b, job->a, job->bytes, GHP_COPY_ON_DEVICE};

    for (int64_t i = 0; i < repeats; i++)
        GHP_TRY(ghp_device_copy(ghp_measure_device(job->m), GHP_DEVICE_STREAM_COMPUTE, copy));
    return GHP_OK;
}

/* Times one operation at a small and this size; bytes_per_byte: counted bytes per byte of a tensor. */
static enum ghp_status measure_memory(struct job *job,
                                      enum ghp_status (*run)(void *context, int64_t repeats),
                                      int64_t large, double bytes_per_byte, struct ghp_rate *rate)
{
    const int64_t sizes[2] = {SMALL_BYTES, large};
    struct ghp_task task = {
        .run = run, .context = job, .clock = ghp_measure_clock(job->m), .alone = true};
    struct ghp_timed timed[2] = {{0}};
    double bytes[2] = {0};

    for (int i = 0; i < 2; i++) {
        job->bytes = sizes[i];
        bytes[i] = bytes_per_byte * (double)sizes[i];
        GHP_TRY(ghp_measure_task(job->m, task, effort_of(job->m), &timed[i]));
    }
    *rate = ghp_measure_line(bytes, timed);
    return GHP_OK;
}

/* Bytes of a tensor. On a device that is more than its cache keeps, which holds only activations of small batches. */
static int64_t tensor_bytes(const struct ghp_measure *m, int64_t least)
{
    int64_t beyond = m->cache_bytes * BEYOND_CACHE / LARGE_BYTES * LARGE_BYTES;

    return ghp_measure_device(m).ops != NULL && beyond > least ? beyond : least;
}

/* SGD's, and as far as the time goes the others', which else count as SGD's. */
static enum ghp_status measure_updates(struct job *job, struct ghp_profile *profile)
{
    bool late = false;

    for (int i = 0; i < GHP_OPTIMIZERS && !late; i++) {
        job->optimizer = ghp_optimizer_at(i);
        if (!ghp_backend_has_update(job->m->backend_ops, job->optimizer)) continue;
        GHP_TRY(measure_memory(job, run_update, tensor_bytes(job->m, WEIGHTS_BYTES),
                               (double)ghp_optimizer_written(job->optimizer, 1),
                               &profile->update[i]));
        GHP_TRY(ghp_measure_late(job->m, &late));
    }
    return GHP_OK;
}

/* A kernel that adds what it makes reads one tensor more; a sum of its own moves three. */
static struct ghp_rate fused_rate(const struct ghp_measure *m, struct ghp_rate sum)
{
    if (m->backend_ops->adds == NULL || !m->backend_ops->adds(m->backend, GHP_OP_LINEAR))
        return (struct ghp_rate){0};
    sum.latency_s = 0;
    sum.bandwidth_Bps *= 3;
    return sum;
}

static enum ghp_status measure_tensors(const struct ghp_measure *m, struct ghp_profile *profile)
{
    struct job job = {.m = m};
    int64_t large = tensor_bytes(m, LARGE_BYTES), weights = tensor_bytes(m, WEIGHTS_BYTES);
    void **const tensors[TENSORS] = {&job.a, &job.b, &job.c, &job.d};
    double unused = 0;
    enum ghp_status status = GHP_OK;

    for (int i = 0; i < TENSORS && status == GHP_OK; i++)
        status = ghp_device_allocate(ghp_measure_device(m), weights, tensors[i]);
    if (status == GHP_OK && m->backend_ops->copy_weight != NULL && m->element_bytes == 2)
        status = ghp_device_allocate(ghp_measure_device(m), weights / 2, &job.w_bf16);
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
    GHP_TRY_GOTO(status, measure_memory(&job, run_copy, large, 1, &profile->copy), done);
    GHP_TRY_GOTO(status, measure_updates(&job, profile), done);
    GHP_TRY_GOTO(status, measure_memory(&job, run_square, weights, 1, &profile->squares), done);
    GHP_TRY_GOTO(status, measure_memory(&job, run_accumulate, large, 1, &profile->accumulate),
                 done);
    profile->fused_accumulate = fused_rate(m, profile->accumulate);
    if (ghp_measure_device(m).ops != NULL)
        status = measure_memory(&job, run_place, large, 1, &profile->load);
done:
    for (int i = 0; i < TENSORS; i++)
        ghp_device_release(ghp_measure_device(m), *tensors[i]);
    ghp_device_release(ghp_measure_device(m), job.w_bf16);
    return status;
}

/* Loading `n` samples, each time others. */
struct load {
    struct ghp_load part; /* all of a batch */
    struct ghp_supply supply;
    int64_t *samples;
    void *images;
    int32_t *labels;
    int64_t count; /* samples of the source */
    int64_t next;
};

static enum ghp_status run_load(void *context, int64_t repeats)
{
    struct load *load = context;

    for (int64_t i = 0; i < repeats; i++) {
        for (int64_t s = 0; s < load->part.images; s++)
            load->samples[s] = (load->next + s) % load->count;
        load->next += load->part.images;
        GHP_TRY(ghp_samples_images(&load->part, &load->supply,
                                   (struct ghp_range){0, load->part.images}, load->images));
        GHP_TRY(ghp_samples_labels(&load->part, &load->supply, load->labels));
    }
    return GHP_OK;
}

/* Bytes of one sample. */
static int64_t image_bytes(const struct ghp_model *model, const struct ghp_measure *m)
{
    struct ghp_shape in = model->layers[0].out;

    return ghp_shape_elements(in) * ghp_shape_element_bytes(in, m->element_bytes);
}

static enum ghp_status load_open(const struct ghp_measure *m, const struct ghp_model *model,
                                 const char *data, int64_t samples, struct load *load)
{
    struct ghp_data_request request = {.spec = data != NULL ? data : "synthetic",
                                       .seed = 1,
                                       .global_batch = samples * m->size,
                                       .shape = model->layers[0].out,
                                       .sample_labels = ghp_model_labels(model),
                                       .targets = ghp_model_targets(model),
                                       .outputs = ghp_model_label_outputs(model),
                                       .classes = model->classes};

    GHP_TRY(ghp_data_open(&request, &load->supply.data));
    load->count = ghp_data_count(load->supply.data, GHP_DATA_TRAIN);
    load->next = m->rank * samples;
    load->samples = ghp_alloc((size_t)samples, sizeof *load->samples);
    load->labels = ghp_alloc((size_t)(samples * request.sample_labels), sizeof *load->labels);
    load->supply.set = GHP_DATA_TRAIN;
    load->supply.samples = load->samples;
    load->supply.n = samples;
    load->part.channels = request.shape.c;
    load->part.image_bytes = image_bytes(model, m);
    load->part.sample_labels = load->part.positions = request.sample_labels;
    load->part.element_bytes = m->element_bytes;
    load->part.threads = m->threads > 0 ? m->threads : 1;
    load->images = ghp_alloc((size_t)samples, (size_t)load->part.image_bytes);
    if (load->samples == NULL || load->labels == NULL || load->images == NULL)
        return GHP_NO_MEMORY();
    return GHP_OK;
}

static void load_close(struct load *load)
{
    free(load->images);
    free(load->labels);
    free(load->samples);
    ghp_data_close(load->supply.data);
}

enum ghp_status ghp_measure_load(const struct ghp_measure *m, const struct ghp_model *model,
                                 const char *data, int64_t samples, struct ghp_rate *rate)
{
    int64_t sample_bytes =
        image_bytes(model, m) + ghp_model_labels(model) * (int64_t)sizeof(int32_t);
    int64_t large = samples > 1 ? samples : 2;
    struct load load = {0};
    struct ghp_task task = {.run = run_load, .context = &load, .alone = true};
    struct ghp_timed timed[2] = {{0}};
    double bytes[2] = {(double)sample_bytes, (double)(large * sample_bytes)};
    double unused = 0;
    enum ghp_status status = load_open(m, model, data, large, &load);

    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
    load.part.images = load.part.labels = 1;
    GHP_TRY_GOTO(status, ghp_measure_task(m, task, effort_of(m), &timed[0]), done);
    load.part.images = load.part.labels = large;
    GHP_TRY_GOTO(status, ghp_measure_task(m, task, effort_of(m), &timed[1]), done);
    *rate = ghp_measure_line(bytes, timed);
done:
    load_close(&load);
    return status;
}

enum ghp_status ghp_measure_rates(const struct ghp_measure *m, const struct ghp_model *model,
                                  int64_t samples, struct ghp_profile *profile)
{
    GHP_TRY(measure_tensors(m, profile));
    if (ghp_measure_device(m).ops != NULL) return GHP_OK;
    return ghp_measure_load(m, model, NULL, samples, &profile->load);
}
