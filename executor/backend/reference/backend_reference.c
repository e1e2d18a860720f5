/* executor/backend/reference/backend_reference.c - the reference implementation: plain loops on one thread, in float or
 * double.
 *
 * Every other backend is tested against it. Finds a pass's kernel, and runs it on the tensors themselves if they are
 * doubles, else on copies in scratch: so everything is computed in double, and in float its error is far below that of
 * what it judges. Refuses bfloat16, fused operations and blocked tensors. */
#include "executor/backend/reference/reference.h"
#include "executor/backend/backend_private.h"
#include "executor/backend/operands.h"

#include <stdlib.h>

struct kernel {
    struct ghp_kernel base; /* first: a struct ghp_kernel * is cast back */
    const struct ghp_reference_kernel *row;
};

static const struct ghp_reference_kernel *find(enum ghp_op op, enum ghp_pass pass)
{
    for (const struct ghp_reference_kernel *const *table = ghp_reference_tables; *table != NULL;
         table++)
        for (const struct ghp_reference_kernel *row = *table; row->run != NULL; row++)
            if (row->op == op && row->pass == pass) return row;
    return NULL;
}

/* ---- copies in double ---- */

enum { MOST_OPERANDS = 2 * GHP_MAX_INPUTS + 2 * GHP_MAX_PARAMS + 2 * GHP_MAX_STATES + 3 };

struct copy {
    void *tensor; /* of floats */
    double *numbers;
    int64_t n;
};

struct copies {
    const struct ghp_reference_kernel *row;
    char *base; /* NULL: only `bytes` is counted, of every tensor that may be there */
    int64_t bytes;
    int n_written;
    struct copy written[MOST_OPERANDS];
};

/* The tensor's copy; or the tensor, if the kernel does not touch it or it is not there. */
static void *copy_of(struct copies *copies, enum ghp_reference_operand operand, const void *tensor,
                     int64_t n)
{
    const struct ghp_reference_kernel *row = copies->row;
    struct copy copy = {.tensor = (void *)(uintptr_t)tensor, .n = n};

    if (((row->reads | row->writes) & operand) == 0) return copy.tensor;
    if (copies->base != NULL && tensor == NULL) return NULL;
    if (copies->base != NULL) copy.numbers = (double *)(void *)(copies->base + copies->bytes);
    copies->bytes += ghp_align(n * (int64_t)sizeof(double));
    if (copies->base == NULL) return NULL;
    for (int64_t i = 0; (row->reads & operand) != 0 && i < n; i++)
        copy.numbers[i] = ghp_reference_get(tensor, sizeof(float), i);
    if ((row->writes & operand) != 0) copies->written[copies->n_written++] = copy;
    return copy.numbers;
}

static void copy_all(struct copies *copies, const struct ghp_local *local, struct ghp_tensors *at)
{
    int64_t out = ghp_local_out_elements(local);
    int64_t saved = ghp_local_saved_bytes(local, sizeof(double)) / (int64_t)sizeof(double) /
                    ghp_local_repeat(local);
    int weights = ghp_operand_set_weights(local);

    for (int i = 0; i < ghp_operand_set_inputs(local); i++) {
        int64_t in = ghp_operand_set_input_elements(local, i);

        at->x[i] = copy_of(copies, GHP_REFERENCE_X, at->x[i], in);
        at->dx[i] = copy_of(copies, GHP_REFERENCE_DX, at->dx[i], in);
    }
    at->y = copy_of(copies, GHP_REFERENCE_Y, at->y, out);
    at->dy = copy_of(copies, GHP_REFERENCE_DY, at->dy, out);
    for (int i = 0; i < weights; i++) {
        int64_t n = ghp_local_weight_elements(local) / weights;

        at->w[i] = copy_of(copies, GHP_REFERENCE_W, at->w[i], n);
        at->dw[i] = copy_of(copies, GHP_REFERENCE_DW, at->dw[i], n);
    }
    for (int i = 0; i < GHP_MAX_STATES; i++) {
        at->state[i] = copy_of(copies, GHP_REFERENCE_STATE, at->state[i], local->c);
        at->stats_delta[i] = copy_of(copies, GHP_REFERENCE_STATE, at->stats_delta[i], local->c);
    }
    at->saved = copy_of(copies, GHP_REFERENCE_SAVED, at->saved, saved);
}

static void round_written(const struct copies *copies)
{
    for (int i = 0; i < copies->n_written; i++) {
        const struct copy *copy = &copies->written[i];

        for (int64_t j = 0; j < copy->n; j++)
            ghp_reference_put(copy->tensor, sizeof(float), j, copy->numbers[j]);
    }
}

/* ---- the vtable ---- */

static bool reference_has_precision(int element_bytes)
{
    return element_bytes == 4 || element_bytes == 8;
}

static bool reference_has(enum ghp_op op, enum ghp_pass pass)
{
    return op == GHP_OP_CONV_TRANSPOSE ? ghp_op_has_pass(op, pass) : find(op, pass) != NULL;
}

static enum ghp_status reference_open(const struct ghp_backend_config *config,
                                      struct ghp_backend **backend)
{
    if (!reference_has_precision(config->element_bytes))
        return GHP_FAIL(GHP_ERR_INPUT, "backend 'reference' has no numbers of %d bytes; use 4 or 8",
                        config->element_bytes);
    struct ghp_backend *opened = ghp_alloc(1, sizeof *opened);
    if (opened == NULL) return GHP_NO_MEMORY();
    opened->config = *config;
    opened->config.threads = 1;
    *backend = opened;
    return GHP_OK;
}

static void reference_close(struct ghp_backend *backend)
{
    free(backend);
}

/* Bytes that the kernel itself takes of scratch; copies lie after them. */
static int64_t own_scratch(const struct kernel *kernel)
{
    if (kernel->row->scratch == NULL) return 0;
    return ghp_align(kernel->row->scratch(&kernel->base.local) * (int64_t)sizeof(double));
}

/* By way of memory: gcc 12 leaves the rounding out if it makes one vector of two neighbours. */
static double as_float(double value)
{
    volatile float rounded = (float)value;
    return rounded;
}

static enum ghp_status reference_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                         enum ghp_pass pass, struct ghp_kernel **kernel)
{
    const struct ghp_reference_kernel *row = find(local->op, pass);
    if (local->op == GHP_OP_CONV_TRANSPOSE && ghp_op_has_pass(local->op, pass))
        return ghp_kernel_prepare_turned(&ghp_backend_reference, backend, local, pass, kernel);
    if (row == NULL)
        return GHP_FAIL(GHP_ERR_INPUT, "'%s' has no pass '%s'; ask for one that the operation has",
                        ghp_op_name(local->op), ghp_pass_name(pass));
    struct kernel *made = ghp_alloc(1, sizeof *made);
    if (made == NULL) return GHP_NO_MEMORY();
    made->row = row;
    made->base = (struct ghp_kernel){
        .backend = backend, .local = *local, .pass = pass, .parts = 1, .algorithm = "loop"};
    made->base.scratch_bytes = own_scratch(made);
    if (backend->config.element_bytes == 4) {
        struct copies copies = {.row = row};
        struct ghp_activation *activation = &made->base.local.activation;

        copy_all(&copies, local, &(struct ghp_tensors){0});
        made->base.scratch_bytes += copies.bytes;
        activation->alpha = as_float(activation->alpha); /* a limit is as y holds it */
        activation->beta = as_float(activation->beta);
    }
    *kernel = &made->base;
    return GHP_OK;
}

static enum ghp_status reference_run(struct ghp_kernel *kernel,
                                     const struct ghp_kernel_arguments *args)
{
    const struct kernel *mine = (const struct kernel *)kernel;

    if (kernel->turned != NULL) {
        const struct ghp_kernel_arguments turned = ghp_kernel_arguments_turned(args);
        return reference_run(kernel->turned, &turned);
    }
    if (kernel->backend->config.element_bytes == 8) {
        mine->row->run(&kernel->local, args);
        return GHP_OK;
    }
    struct ghp_kernel_arguments doubles = *args;
    struct copies copies = {.row = mine->row, .base = (char *)args->at.scratch + own_scratch(mine)};
    copy_all(&copies, &kernel->local, &doubles.at);
    mine->row->run(&kernel->local, &doubles);
    round_written(&copies);
    return GHP_OK;
}

static void reference_release(struct ghp_kernel *kernel)
{
    if (kernel != NULL) free(kernel->turned);
    free(kernel);
}

const struct ghp_backend_ops ghp_backend_reference = {
    .name = "reference",
    .has_precision = reference_has_precision,
    .has = reference_has,
    .open = reference_open,
    .close = reference_close,
    .prepare = reference_prepare,
    .scratch_bytes = ghp_kernel_scratch_bytes,
    .algorithm = ghp_kernel_algorithm,
    .run = reference_run,
    .release = reference_release,
    .has_update = ghp_reference_has_update,
    .update = ghp_reference_update,
    .direct = ghp_reference_direct,
    .square = ghp_reference_square,
    .accumulate = ghp_reference_accumulate,
};
