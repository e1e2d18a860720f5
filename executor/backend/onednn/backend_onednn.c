/* executor/backend/onednn/backend_onednn.c - the CPU backend: convolutions and linear layers by oneDNN, the rest by
 * ghp's CPU kernels.
 *
 * Operations bound by memory gain nothing from a library, and a batch norm whose statistics cross workers is in none.
 * bf16 is refused if the library would only imitate it.
 * `exact` takes direct algorithms only; with it and a fixed thread count runs repeat bit for bit. */
#include "executor/backend/onednn/backend_onednn_private.h"
#include "executor/backend/cpu/convolution/winograd.h"

#include <stdlib.h>
#include <string.h>

static bool onednn_has_precision(int element_bytes)
{
    return element_bytes == 4 || element_bytes == 2;
}

static enum ghp_status check_precision(int element_bytes)
{
    if (!onednn_has_precision(element_bytes))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "backend 'onednn' has no numbers of %d bytes; use float or bf16, or "
                        "'--backend reference' for double",
                        element_bytes);
    if (element_bytes == 2 && !ghp_onednn_has_bf16())
        return GHP_FAIL(GHP_ERR_BACKEND,
                        "oneDNN has no bf16 kernels for this processor; use one with AVX512_BF16 "
                        "or AMX (and no DNNL_MAX_CPU_ISA below avx512_core_bf16), or "
                        "'--precision float'");
    return GHP_OK;
}

static void onednn_close(struct ghp_backend *backend)
{
    if (backend == NULL) return;
    struct ghp_onednn *library = backend->library;
    if (library != NULL && library->stream != NULL) dnnl_stream_destroy(library->stream);
    if (library != NULL && library->engine != NULL) dnnl_engine_destroy(library->engine);
    free(library);
    free(backend);
}

/* ghp's own kernels are of all operations, the library's among them. */
static bool onednn_has(enum ghp_op op, enum ghp_pass pass)
{
    return op == GHP_OP_CONV_TRANSPOSE ? ghp_op_has_pass(op, pass)
                                       : ghp_cpu_kernel_find(op, pass) != NULL;
}

static enum ghp_status onednn_open(const struct ghp_backend_config *config,
                                   struct ghp_backend **backend)
{
    GHP_TRY(check_precision(config->element_bytes));
    if (config->threads < 1)
        return GHP_FAIL(GHP_ERR_INPUT, "cannot compute on %d threads; use 1 or more",
                        config->threads);
    GHP_TRY(ghp_parallel_check(config->threads));
    enum ghp_status status = GHP_OK;
    struct ghp_onednn *library = ghp_alloc(1, sizeof *library);
    struct ghp_backend *opened = ghp_alloc(1, sizeof *opened);
    if (library == NULL || opened == NULL) {
        free(library);
        free(opened);
        return GHP_NO_MEMORY();
    }
    opened->config = *config;
    opened->library = library;
    ghp_parallel_threads(config->threads);
    GHP_TRY_GOTO(status, ghp_onednn_engine_open(&library->engine), fail);
    GHP_TRY_GOTO(status,
                 GHP_ONEDNN(dnnl_stream_create(&library->stream, library->engine,
                                               dnnl_stream_default_flags)),
                 fail);
    *backend = opened;
    return GHP_OK;
fail:
    onednn_close(opened);
    return status;
}

/* Each channel by itself, and alike: blocked tensors are plain ones of 16 channels and more samples. */
static bool is_apart(enum ghp_op op)
{
    return op == GHP_OP_RELU || op == GHP_OP_ADD || op == GHP_OP_MAX_POOL ||
           op == GHP_OP_AVG_POOL || op == GHP_OP_GLOBAL_AVG_POOL || op == GHP_OP_FLATTEN;
}

static bool onednn_can_block(const struct ghp_backend *backend, const struct ghp_local *local)
{
    /* direct algorithms are as quick on plain tensors, and bf16 has no others */
    if (backend->config.exact || backend->config.element_bytes == 2) return false;
    if (local->op == GHP_OP_CONV2D) return local->window.groups == 1;
    return is_apart(local->op) || local->op == GHP_OP_BIAS || local->op == GHP_OP_BATCH_NORM ||
           local->op == GHP_OP_FROZEN_BATCH_NORM;
}

/* What Winograd's three passes and two of the direct ones want on blocked activations; the others reorder either
 * way. */
static bool onednn_blocks_weights(const struct ghp_backend *backend, const struct ghp_local *local)
{
#ifdef __x86_64__
    return !backend->config.exact && local->op == GHP_OP_CONV2D && local->window.groups == 1 &&
           local->c % GHP_BLOCK_CHANNELS == 0 && local->k % GHP_BLOCK_CHANNELS == 0;
#else
    (void)
        backend; /* the library may have none but its reference code, in whose place ghp's loops compute */
    (void)local;
    return false;
#endif
}

/* With `exact` a bias is added by itself, as where it follows a sum of partial tensors. */
static bool onednn_fuses(const struct ghp_backend *backend, enum ghp_op op, enum ghp_pass pass)
{
    bool back = pass == GHP_PASS_BACKWARD_DATA
                    ? op == GHP_OP_BATCH_NORM || op == GHP_OP_RELU /* in a sum of gradients */
                    : op == GHP_OP_BATCH_NORM && pass == GHP_PASS_BACKWARD_STATS;
    bool forward =
        op == GHP_OP_CONV2D || op == GHP_OP_BATCH_NORM || op == GHP_OP_ADD || op == GHP_OP_MAX_POOL;
    return !backend->config.exact && (back || (forward && pass == GHP_PASS_FORWARD));
}

static struct ghp_local as_blocks(const struct ghp_local *local)
{
    struct ghp_local blocks = *local;
    int64_t n = local->c / GHP_BLOCK_CHANNELS;
    blocks.n *= n;
    blocks.c = GHP_BLOCK_CHANNELS;
    blocks.k /= n;
    return blocks;
}

/* The loop that computes a pass on plain tensors, or with what is fused; NULL: there is none. */
static const struct ghp_cpu_kernel *cpu_kernel_of(enum ghp_op op, enum ghp_pass pass,
                                                  struct ghp_kernel_spec spec)
{
    if (spec.bias) return NULL;
    if (op == GHP_OP_BATCH_NORM) return ghp_cpu_kernel_norm(pass, spec);
    if (!spec.relu) return ghp_cpu_kernel_find(op, pass);
    if (pass != GHP_PASS_FORWARD) return NULL;
    return op == GHP_OP_ADD        ? &ghp_cpu_kernel_add_relu
           : op == GHP_OP_MAX_POOL ? &ghp_cpu_kernel_max_relu
                                   : NULL;
}

/* What the library has no part in. */
static enum ghp_status prepare_cpu_kernel(struct ghp_backend *backend,
                                          const struct ghp_local *local, enum ghp_pass pass,
                                          struct ghp_kernel_spec spec, struct ghp_kernel **kernel)
{
    bool nchw16c = spec.x || spec.y || spec.w;
    const struct ghp_cpu_kernel *cpu_kernel = cpu_kernel_of(local->op, pass, spec);
    if (cpu_kernel == NULL && (spec.bias || spec.relu || spec.stats || spec.add)) return GHP_OK;
    if (cpu_kernel == NULL)
        return ghp_cpu_kernel_prepare(backend, local, pass, kernel); /* says so */
    if (!nchw16c || local->op == GHP_OP_BATCH_NORM)
        return ghp_cpu_kernel_prepare_by(backend, local, cpu_kernel, kernel);
    if (!is_apart(local->op)) return ghp_onednn_nchw16c_prepare(backend, local, pass, kernel);
    const struct ghp_local blocks = as_blocks(local);
    return ghp_cpu_kernel_prepare_by(backend, &blocks, cpu_kernel, kernel);
}

/* Whether ghp's Winograd is the first choice, until it is timed. The library's comes first if there is one. */
static bool is_winograd_first(const struct ghp_backend *backend, const struct ghp_local *local,
                              enum ghp_pass pass)
{
    return ghp_winograd_can(backend, local) && ghp_conv_tiles_pay(local, pass) &&
           !ghp_onednn_conv_has_winograd(backend, local);
}

static enum ghp_status onednn_prepare_nchw16c(struct ghp_backend *backend,
                                              const struct ghp_local *local, enum ghp_pass pass,
                                              const char *algorithm, struct ghp_kernel_spec spec,
                                              struct ghp_kernel **kernel)
{
    const struct ghp_onednn_wish wish = {algorithm, spec};
    struct ghp_onednn_kernel *made = NULL;
    *kernel = NULL;
    ghp_parallel_threads(backend->config.threads);
    if (local->op == GHP_OP_CONV_TRANSPOSE && ghp_local_has_pass(local, pass))
        return ghp_kernel_prepare_turned(&ghp_backend_onednn, backend, local, pass, kernel);
    if (ghp_local_has_pass(local, pass)) {
        if (algorithm != NULL
                ? strcmp(algorithm, GHP_WINOGRAD) == 0 && ghp_winograd_can(backend, local)
                : is_winograd_first(backend, local, pass))
            return ghp_winograd_prepare(backend, local, pass, spec, kernel);
        if (algorithm != NULL && strcmp(algorithm, GHP_CPU_KERNEL_DEPTHWISE) == 0 &&
            ghp_cpu_kernel_is_depthwise(backend, local, pass, spec))
            return ghp_cpu_kernel_prepare_by(backend, local, &ghp_cpu_kernel_depthwise, kernel);
        if (local->op == GHP_OP_CONV2D)
            GHP_TRY(ghp_onednn_conv_prepare(backend, local, pass, wish, &made));
        if (algorithm != NULL && strcmp(algorithm, GHP_CPU_KERNEL_SMALL_BATCH) == 0 &&
            ghp_cpu_kernel_is_small_batch(backend, local))
            return ghp_cpu_kernel_prepare_by(backend, local, ghp_cpu_kernel_small_batch(pass),
                                             kernel);
        if (local->op == GHP_OP_LINEAR)
            GHP_TRY(ghp_onednn_linear_prepare(backend, local, pass, algorithm, &made));
    }
    if (made == NULL && algorithm != NULL)
        return onednn_prepare_nchw16c(backend, local, pass, NULL, spec, kernel);
    if (made != NULL) {
        *kernel = &made->base;
        return GHP_OK;
    }
    return prepare_cpu_kernel(backend, local, pass, spec, kernel);
}

static enum ghp_status onednn_prepare_as(struct ghp_backend *backend, const struct ghp_local *local,
                                         enum ghp_pass pass, const char *algorithm,
                                         struct ghp_kernel **kernel)
{
    const struct ghp_kernel_spec plain = {0};
    return onednn_prepare_nchw16c(backend, local, pass, algorithm, plain, kernel);
}

static enum ghp_status onednn_prepare(struct ghp_backend *backend, const struct ghp_local *local,
                                      enum ghp_pass pass, struct ghp_kernel **kernel)
{
    return onednn_prepare_as(backend, local, pass, NULL, kernel);
}

static enum ghp_status onednn_algorithms(struct ghp_backend *backend, const struct ghp_local *local,
                                         enum ghp_pass pass, struct ghp_kernel_spec spec,
                                         struct ghp_algorithms *names)
{
    names->n = 0;
    ghp_parallel_threads(backend->config.threads); /* what the library has depends on it */
    if (!ghp_local_has_pass(local, pass)) return GHP_OK;
    if (is_winograd_first(backend, local, pass)) ghp_onednn_add_name(names, GHP_WINOGRAD);
    if (local->op == GHP_OP_CONV2D)
        GHP_TRY(ghp_onednn_conv_algorithms(backend, local, pass, spec, names));
    if (ghp_winograd_can(backend, local)) ghp_onednn_add_name(names, GHP_WINOGRAD);
    if (ghp_cpu_kernel_is_depthwise(backend, local, pass, spec))
        ghp_onednn_add_name(names, GHP_CPU_KERNEL_DEPTHWISE);
    if (local->op == GHP_OP_LINEAR)
        GHP_TRY(ghp_onednn_linear_algorithms(backend, local, pass, names));
    if (ghp_cpu_kernel_is_small_batch(backend, local))
        ghp_onednn_add_name(names, GHP_CPU_KERNEL_SMALL_BATCH);
    return GHP_OK;
}

static void *address_of(const struct ghp_kernel_arguments *args,
                        const struct ghp_onednn_memory *memory)
{
    const struct ghp_tensors *at = &args->at;
    switch (memory->where) {
    case GHP_ONEDNN_X: return (void *)(uintptr_t)at->x[0];
    case GHP_ONEDNN_DX: return at->dx[0];
    case GHP_ONEDNN_Y: return at->y;
    case GHP_ONEDNN_DY: return at->dy;
    case GHP_ONEDNN_W: return at->w[0];
    case GHP_ONEDNN_DW: return at->dw[0];
    case GHP_ONEDNN_BIAS: return at->w[1];
    case GHP_ONEDNN_SCRATCH: return (char *)at->scratch + memory->offset;
    }
    return NULL;
}

static enum ghp_status onednn_run(struct ghp_kernel *kernel,
                                  const struct ghp_kernel_arguments *args)
{
    if (kernel->turned != NULL) {
        const struct ghp_kernel_arguments turned = ghp_kernel_arguments_turned(args);
        return onednn_run(kernel->turned, &turned);
    }
    if (kernel->cpu_kernel != NULL || kernel->run != NULL) {
        (kernel->cpu_kernel != NULL ? ghp_cpu_kernel_run : kernel->run)(kernel, args);
        return GHP_OK;
    }
    struct ghp_onednn_kernel *mine = (struct ghp_onednn_kernel *)kernel;
    const struct ghp_onednn *library = kernel->backend->library;
    ghp_parallel_threads(kernel->backend->config.threads);
    for (int i = 0; i < mine->n_memories; i++) {
        struct ghp_onednn_memory *memory = &mine->memories[i];
        void *address = address_of(args, memory);
        if (address == memory->bound) continue;
        GHP_TRY(GHP_ONEDNN(dnnl_memory_set_data_handle(memory->memory, address)));
        memory->bound = address;
    }
    if (mine->im2col) ghp_onednn_im2col(mine, args->at.x[0], mine->memories[0].bound);
    for (int i = 0; i < mine->n_steps; i++) {
        const struct ghp_onednn_step *step = &mine->steps[i];
        GHP_TRY(GHP_ONEDNN(
            dnnl_primitive_execute(step->primitive, library->stream, step->n_args, step->args)));
    }
    return GHP_ONEDNN(dnnl_stream_wait(library->stream));
}

static void onednn_release(struct ghp_kernel *kernel)
{
    if (kernel == NULL) return;
    onednn_release(kernel->turned);
    if (kernel->cpu_kernel != NULL || kernel->run != NULL || kernel->turned != NULL)
        free(kernel);
    else
        ghp_onednn_kernel_close((struct ghp_onednn_kernel *)kernel);
}

const struct ghp_backend_ops ghp_backend_onednn = {
    .name = "onednn",
    .has_precision = onednn_has_precision,
    .has = onednn_has,
    .open = onednn_open,
    .close = onednn_close,
    .prepare = onednn_prepare,
    .prepare_as = onednn_prepare_as,
    .algorithms = onednn_algorithms,
    .can_block = onednn_can_block,
    .blocks_weights = onednn_blocks_weights,
    .fuses = onednn_fuses,
    .prepare_nchw16c = onednn_prepare_nchw16c,
    .scratch_bytes = ghp_kernel_scratch_bytes,
    .algorithm = ghp_kernel_algorithm,
    .run = onednn_run,
    .release = onednn_release,
    .has_update = ghp_cpu_kernel_has_update,
    .update = ghp_cpu_kernel_update,
    .direct = ghp_cpu_kernel_direct,
    .square = ghp_cpu_kernel_square,
    .accumulate = ghp_cpu_kernel_accumulate,
    .accumulate_masked = ghp_cpu_kernel_accumulate_masked,
};
