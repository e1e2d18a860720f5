/* executor/opbench/opbench.c - an operation's tensors, its kernel and scratch, ready to run again and again. */
#include "executor/opbench/opbench.h"
#include "core/model/precision.h"
#include "executor/backend/backend_private.h"
#include "executor/backend/operands.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COPIES = 4096, PAGE_BYTES = 4096 };

struct ghp_opbench {
    const struct ghp_backend_ops *ops;
    enum ghp_pass pass;
    int element_bytes;
    struct ghp_kernel *kernel;
    struct ghp_operand_set set;
    struct ghp_device device;
    char *copies;                       /* of the set's memory, one after another; NULL: none */
    bool borrows;                       /* copies lie in the task's memory */
    struct ghp_kernel_arguments *calls; /* on the set, on the first copy, ... */
    int n_calls, next;
    int64_t other_bytes;
    char *scratch;         /* of the kernel, in turns too */
    int64_t scratch_bytes; /* there are */
    void *bias;            /* that the kernel fuses; NULL: none yet */
    void *sums;            /* that it makes or reads; NULL: none yet */
    void *bias_bf16;       /* its copy; NULL: none */
    char *w_bf16;          /* each call's copy of its weights in bfloat16; NULL: none */
    char *others; /* each call's other half of the sum that it fuses, or its mask; NULL: none */
    /* of a device, after each call, as a step has them; NULL: none */
    struct ghp_device_event *moment;
};

/* Passes whose results this one reads, bit by bit; they run in the order STATS, FORWARD, BACKWARD_STATS. */
static unsigned passes_before(const struct ghp_local *local, enum ghp_pass pass)
{
    enum ghp_op op = local->op;
    const unsigned stats = 1u << GHP_PASS_STATS, forward = 1u << GHP_PASS_FORWARD,
                   back_stats = 1u << GHP_PASS_BACKWARD_STATS;
    bool backward = ghp_pass_is_backward(pass);

    if (local->parts > 0) return pass == GHP_PASS_STATS ? 0 : stats;
    if (!ghp_op_of(op)->has_batch_statistics)
        return backward && (ghp_op_backward_reads(op) & GHP_AT_SAVED) ? forward : 0;
    if (pass == GHP_PASS_FORWARD) return stats;
    if (pass == GHP_PASS_BACKWARD_STATS) return stats | forward;
    return backward ? stats | forward | back_stats : 0;
}

static enum ghp_status run_before(struct ghp_opbench *bench, struct ghp_backend *backend,
                                  enum ghp_pass pass)
{
    static const enum ghp_pass order[] = {GHP_PASS_STATS, GHP_PASS_FORWARD,
                                          GHP_PASS_BACKWARD_STATS};
    unsigned before = passes_before(&bench->set.local, pass);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (before & 1u << order[i])
            GHP_TRY(ghp_operand_set_run(&bench->set, bench->ops, backend, order[i]));
    return GHP_OK;
}

/* As in training: outputs over inputs if the operation allows it. */
static void overlap(struct ghp_operand_set *set)
{
    struct ghp_tensors *at = &set->args.at;
    const struct ghp_op_facts *facts = ghp_op_of(set->local.op);
    bool in_place = facts->in_place != NULL &&
                    facts->in_place(ghp_shape_image(set->local.c, set->local.h, set->local.w));
    if (in_place) at->x[0] = at->y;
    if (in_place || facts->hands_gradient_on) at->dx[0] = at->dy;
}

/* The number of sets of set_bytes bytes that runs take in turns: together as large as what passes through the
 * caches. */
static int64_t sets_of(int64_t other_bytes, int64_t set_bytes)
{
    int64_t sets = set_bytes > 0 ? (other_bytes + set_bytes - 1) / set_bytes : 1;

    return sets < 1 ? 1 : sets > MOST_COPIES ? MOST_COPIES : sets;
}

/* Whether the operation before this one has just written the tensor. Weights are not among these: after an update of
 * one come those of all others, and between two micro-batches everything else. */
static bool is_fresh(const struct ghp_tensors *at, enum ghp_pass pass, const void *tensor)
{
    bool forward = pass == GHP_PASS_FORWARD || pass == GHP_PASS_STATS, fresh = false;

    if (!forward) return tensor == at->dy;
    for (int i = 0; i < GHP_MAX_INPUTS; i++)
        fresh = fresh || tensor == at->x[i];
    return fresh;
}

/* The same tensors in a copy of the set's memory, but for those that are fresh. */
static struct ghp_tensors tensors_in(const struct ghp_operand_set *set, enum ghp_pass pass,
                                     char *copy)
{
    const struct ghp_tensors *from = &set->args.at;
    struct ghp_tensors at = *from;
    const char *memory = set->memory;

#define TAKE(tensor)                                                                               \
    if (from->tensor != NULL && !is_fresh(from, pass, from->tensor))                               \
    at.tensor = (void *)(copy + ((const char *)from->tensor - memory))
    for (int i = 0; i < GHP_MAX_INPUTS; i++) {
        TAKE(x[i]);
        TAKE(dx[i]);
    }
    for (int i = 0; i < GHP_MAX_PARAMS; i++) {
        TAKE(w[i]);
        TAKE(dw[i]);
    }
    for (int i = 0; i < GHP_MAX_STATES; i++)
        TAKE(state[i]);
    TAKE(y);
    TAKE(dy);
    TAKE(saved);
    TAKE(stats);
    TAKE(labels);
    TAKE(metrics);
#undef TAKE
    return at;
}

/* Huge pages on the host, the device's memory elsewhere. */
static enum ghp_status block(struct ghp_device device, int64_t bytes, char **block)
{
    void *made = NULL;

    if (device.ops == NULL)
        made = ghp_operand_set_block(bytes);
    else
        GHP_TRY(ghp_device_allocate(device, bytes, &made));
    *block = made;
    return made != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static void unblock(struct ghp_device device, void *block)
{
    if (device.ops == NULL)
        free(block);
    else
        ghp_device_release(device, block);
}

void ghp_opbench_memory_release(struct ghp_opbench_memory *memory)
{
    free(memory->block);
    *memory = (struct ghp_opbench_memory){0};
}

/* Room for the copies. */
static enum ghp_status place_copies(struct ghp_opbench *bench, int64_t bytes,
                                    struct ghp_opbench_memory *memory)
{
    if (memory == NULL || bench->device.ops != NULL)
        return block(bench->device, bytes, &bench->copies);
    if (memory->bytes < bytes) {
        ghp_opbench_memory_release(memory);
        GHP_TRY(block(bench->device, bytes, &memory->block));
        memory->bytes = bytes;
    }
    bench->copies = memory->block;
    bench->borrows = true;
    return GHP_OK;
}

static enum ghp_status copy_set(struct ghp_opbench *bench, const struct ghp_opbench_task *task)
{
    const struct ghp_operand_set *set = &bench->set;
    int64_t n = sets_of(task->other_bytes, set->bytes);

    bench->calls = ghp_alloc((size_t)n, sizeof *bench->calls);
    if (bench->calls == NULL) return GHP_NO_MEMORY();
    bench->n_calls = (int)n;
    bench->calls[0] = set->args;
    if (n == 1) return GHP_OK;
    GHP_TRY(place_copies(bench, (n - 1) * set->bytes, task->memory));
    for (int64_t i = 1; i < n; i++) {
        char *copy = bench->copies + (i - 1) * set->bytes;

        GHP_TRY(
            ghp_device_copy(bench->device, GHP_DEVICE_STREAM_COMPUTE,
                            (struct ghp_copy){copy, set->memory, set->bytes, GHP_COPY_ON_DEVICE}));
        bench->calls[i] = set->args;
        bench->calls[i].at = tensors_in(set, task->pass, copy);
    }
    return GHP_OK;
}

/* A kernel's scratch is other kernels' and other tensors' place between two runs of it: each run has one that as much
 * has passed since it was used. What there is stays for the next kernel. */
static enum ghp_status place_scratch(struct ghp_opbench *bench)
{
    int64_t asked = bench->ops->scratch_bytes(bench->kernel);
    int64_t each = (asked / GHP_ALIGN_BYTES + 1) * GHP_ALIGN_BYTES;
    int64_t n = asked == 0 ? 1 : sets_of(bench->other_bytes, each + bench->set.bytes);

    if (n * each > bench->scratch_bytes) {
        unblock(bench->device, bench->scratch);
        bench->scratch = NULL;
        bench->scratch_bytes = 0;
        GHP_TRY(block(bench->device, n * each, &bench->scratch));
        bench->scratch_bytes = n * each;
        for (int64_t at = 0; bench->device.ops == NULL && at < n * each; at += PAGE_BYTES)
            bench->scratch[at] = 0; /* no run is to wait for its pages */
    }
    for (int64_t i = 0; i < bench->n_calls; i++)
        bench->calls[i].at.scratch = bench->scratch + i % n * each;
    return GHP_OK;
}

/* Elements of the copy in bfloat16 that a product reads of its weights, as in training; 0: it reads none. */
static int64_t copy_elements(const struct ghp_local *local, enum ghp_pass pass, int element_bytes)
{
    bool reads = element_bytes == 2 && ghp_op_multiplies_weights(local->op) &&
                 (ghp_op_uses(local->op, pass) & GHP_AT_W) != 0;

    return reads ? ghp_local_param_elements(local, 0) : 0;
}

static enum ghp_status copy_weights(struct ghp_opbench *bench, struct ghp_backend *backend)
{
    int64_t n = copy_elements(&bench->set.local, bench->pass, bench->element_bytes);
    int64_t each = ghp_align(2 * n);

    if (n == 0 || bench->ops->copy_weight == NULL) return GHP_OK;
    GHP_TRY(block(bench->device, bench->n_calls * each, &bench->w_bf16));
    for (int i = 0; i < bench->n_calls; i++) {
        void *copy = bench->w_bf16 + i * each;

        GHP_TRY(bench->ops->copy_weight(backend, bench->calls[i].at.w[0], copy, n));
        bench->calls[i].at.w_bf16[0] = copy;
    }
    return GHP_OK;
}

enum ghp_status ghp_opbench_open(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                                 const struct ghp_opbench_task *task, struct ghp_opbench **bench)
{
    struct ghp_opbench *made = ghp_alloc(1, sizeof *made);
    int size = backend->config.element_bytes;

    *bench = NULL;
    if (made == NULL) return GHP_NO_MEMORY();
    made->ops = ops;
    made->pass = task->pass;
    made->element_bytes = size;
    made->other_bytes = task->other_bytes;
    made->device = ghp_backend_device(ops, backend);
    enum ghp_status status = GHP_OK;
    GHP_TRY_GOTO(status,
                 ghp_operand_set_init_to_time(made->device, &task->local, size, 1u << task->pass,
                                              &made->set),
                 fail);
    GHP_TRY_GOTO(status, ops->prepare(backend, &task->local, task->pass, &made->kernel), fail);
    GHP_TRY_GOTO(status, run_before(made, backend, task->pass), fail);
    overlap(&made->set);
    GHP_TRY_GOTO(status, copy_set(made, task), fail);
    GHP_TRY_GOTO(status, copy_weights(made, backend), fail);
    GHP_TRY_GOTO(status, place_scratch(made), fail);
    if (made->device.ops != NULL)
        GHP_TRY_GOTO(status,
                     made->device.ops->event_open(made->device.backend, true, &made->moment), fail);
    *bench = made;
    return GHP_OK;
fail:
    ghp_opbench_close(made);
    return status;
}

/* What every bias is at first. */
static enum ghp_status add_bias(struct ghp_opbench *bench)
{
    if (bench->bias != NULL) return GHP_OK;
    GHP_TRY(ghp_device_allocate(bench->device,
                                bench->set.local.k * ghp_parameter_bytes(bench->element_bytes),
                                &bench->bias));
    if (bench->w_bf16 != NULL)
        GHP_TRY(ghp_device_allocate(bench->device, 2 * bench->set.local.k, &bench->bias_bf16));
    for (int i = 0; i < bench->n_calls; i++) {
        bench->calls[i].at.w[1] = bench->bias;
        bench->calls[i].at.w_bf16[1] = bench->bias_bf16;
    }
    return GHP_OK;
}

/* What a kernel adds to its result, or to its input, whose sum takes that place: made long before it, so each call has
 * its own. */
static enum ghp_status add_others(struct ghp_opbench *bench)
{
    int64_t bytes = ghp_local_out_elements(&bench->set.local) * bench->element_bytes;

    if (bench->others != NULL) return GHP_OK;
    GHP_TRY(block(bench->device, bench->n_calls * bytes, &bench->others));
    GHP_TRY(ghp_device_clear(bench->device, GHP_DEVICE_STREAM_COMPUTE, bench->others,
                             bench->n_calls * bytes));
    for (int i = 0; i < bench->n_calls; i++) {
        bench->calls[i].at.x[1] = bench->others + i * bytes;
        if (bench->pass == GHP_PASS_FORWARD) bench->calls[i].at.dx[0] = bench->others + i * bytes;
    }
    return GHP_OK;
}

/* What the mask of a ReLU is read from: made in the forward pass, so each call has its own. */
static enum ghp_status add_masks(struct ghp_opbench *bench)
{
    int64_t bytes = ghp_local_in_elements(&bench->set.local) * bench->element_bytes;

    if (bench->others != NULL) return GHP_OK;
    GHP_TRY(block(bench->device, bench->n_calls * bytes, &bench->others));
    GHP_TRY(ghp_device_clear(bench->device, GHP_DEVICE_STREAM_COMPUTE, bench->others,
                             bench->n_calls * bytes));
    for (int i = 0; i < bench->n_calls; i++)
        bench->calls[i].at.x[0] = bench->others + i * bytes;
    return GHP_OK;
}

/* The sums of a batch norm's input: zeros, of which it makes statistics at once. */
static enum ghp_status add_sums(struct ghp_opbench *bench)
{
    int64_t bytes = 2 * bench->set.local.k * (int64_t)sizeof(float);

    if (bench->sums != NULL) return GHP_OK;
    GHP_TRY(ghp_device_allocate(bench->device, bytes, &bench->sums));
    GHP_TRY(ghp_device_clear(bench->device, GHP_DEVICE_STREAM_COMPUTE, bench->sums, bytes));
    for (int i = 0; i < bench->n_calls; i++)
        bench->calls[i].at.sums = bench->sums;
    return GHP_OK;
}

static bool takes_mask(const struct ghp_opbench *bench, struct ghp_kernel_spec spec)
{
    return spec.relu && bench->pass == GHP_PASS_BACKWARD_DATA &&
           (ghp_op_of(bench->set.local.op)->fuses & GHP_FUSES_MASK) != 0;
}

enum ghp_status ghp_opbench_switch(struct ghp_opbench *bench, struct ghp_backend *backend,
                                   const char *algorithm, struct ghp_kernel_spec spec)
{
    const struct ghp_backend_ops *ops = bench->ops;

    if (bench->kernel != NULL) ops->release(bench->kernel);
    bench->kernel = NULL;
    GHP_TRY(ops->prepare_nchw16c(backend, &bench->set.local, bench->pass, algorithm, spec,
                                 &bench->kernel));
    if (bench->kernel == NULL) { /* none that fuses */
        spec.bias = spec.relu = spec.stats = spec.add = spec.gradient = spec.sums = false;
        GHP_TRY(ops->prepare_nchw16c(backend, &bench->set.local, bench->pass, algorithm, spec,
                                     &bench->kernel));
    }
    if (spec.bias) GHP_TRY(add_bias(bench));
    if (spec.add) GHP_TRY(add_others(bench));
    if (spec.sums) GHP_TRY(add_sums(bench));
    if (takes_mask(bench, spec)) GHP_TRY(add_masks(bench));
    return place_scratch(bench);
}

enum ghp_status ghp_opbench_run(struct ghp_opbench *bench, int repeats)
{
    for (int i = 0; i < repeats; i++) {
        GHP_TRY(bench->ops->run(bench->kernel, &bench->calls[bench->next]));
        if (bench->moment != NULL)
            GHP_TRY(bench->device.ops->record_event(bench->device.backend,
                                                    GHP_DEVICE_STREAM_COMPUTE, bench->moment));
        bench->next = bench->next + 1 < bench->n_calls ? bench->next + 1 : 0;
    }
    return GHP_OK;
}

int64_t ghp_opbench_bytes(const struct ghp_opbench_task *task, int element_bytes)
{
    int64_t bytes = ghp_operand_set_bytes(&task->local, element_bytes, 1u << task->pass);
    int64_t copy = ghp_align(2 * copy_elements(&task->local, task->pass, element_bytes));

    return (bytes + copy) * sets_of(task->other_bytes, bytes) + task->other_bytes;
}

const char *ghp_opbench_algorithm(const struct ghp_opbench *bench)
{
    return bench->ops->algorithm(bench->kernel);
}

void ghp_opbench_close(struct ghp_opbench *bench)
{
    if (bench == NULL) return;
    if (bench->kernel != NULL) bench->ops->release(bench->kernel);
    if (bench->moment != NULL) bench->device.ops->event_close(bench->device.backend, bench->moment);
    unblock(bench->device, bench->scratch);
    ghp_device_release(bench->device, bench->bias);
    ghp_device_release(bench->device, bench->sums);
    ghp_device_release(bench->device, bench->bias_bf16);
    unblock(bench->device, bench->w_bf16);
    unblock(bench->device, bench->others);
    free(bench->calls);
    if (!bench->borrows) unblock(bench->device, bench->copies);
    ghp_operand_set_release(&bench->set);
    free(bench);
}
