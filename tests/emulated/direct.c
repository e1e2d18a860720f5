/* tests/emulated/direct.c - on an emulated GPU the plain kernels run convolutions, and own kernels attention: cuDNN
 * needs a real one. Takes the place of cuda/conv.c and cuda/attention.c. Linear layers are cuda/linear.c's, by an
 * emulated cuBLASLt.
 *
 * In bf16 they read weights in bfloat16, as the libraries do: their copies, or cast in scratch. With GHP_EMULATED_CASTS
 * set they always cast. The sums of outputs are part of a convolution whose channels come in eights, as cuDNN has
 * engines for them; of others ghp's kernels make them. */
#include "executor/backend/cuda/backend_cuda_private.h"

#include <stdlib.h>

static enum ghp_status (*run_direct)(struct ghp_cuda_kernel *kernel,
                                     const struct ghp_kernel_arguments *args);
static enum ghp_status (*run_linear)(struct ghp_cuda_kernel *kernel,
                                     const struct ghp_kernel_arguments *args);

static bool casts(void)
{
    return getenv("GHP_EMULATED_CASTS") != NULL;
}

static enum ghp_status run_cast(struct ghp_cuda_kernel *kernel,
                                const struct ghp_kernel_arguments *args)
{
    int64_t weights = ghp_local_weight_elements(&kernel->base.local);
    cudaStream_t stream = ghp_cuda_launch(kernel->base.backend).stream;
    void *scratch = ghp_cuda_aligned(args->at.scratch);
    struct ghp_kernel_arguments cast = *args;

    if (args->at.w_bf16[0] != NULL && !casts()) return run_direct(kernel, args);
    cast.at.w_bf16[0] = scratch;
    GHP_TRY(
        ghp_cuda_status(ghp_launch_to_bf16(stream, weights, args->at.w[0], scratch), "to bf16"));
    return run_direct(kernel, &cast);
}

/* sums.cpp */
void ghp_emulated_sums(cudaStream_t stream, int64_t rows, int64_t c, const void *y, float *sums);

static enum ghp_status run_summed(struct ghp_cuda_kernel *kernel,
                                  const struct ghp_kernel_arguments *args)
{
    const struct ghp_local *l = &kernel->base.local;

    GHP_TRY(run_cast(kernel, args));
    if (args->at.sums != NULL)
        ghp_emulated_sums(ghp_cuda_launch(kernel->base.backend).stream, l->n * l->p * l->q, l->k,
                          args->at.y, args->at.sums);
    return GHP_OK;
}

enum ghp_status ghp_cuda_conv_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    bool sums = kernel->fused.sums && kernel->base.local.k % 8 == 0;
    int64_t cast;

    (void)wanted;
    ghp_cuda_direct_prepare(kernel);
    if (kernel->base.backend->config.element_bytes != 2 ||
        kernel->base.pass == GHP_PASS_BACKWARD_WEIGHT)
        return GHP_OK;
    run_direct = kernel->run;
    kernel->run = sums ? run_summed : run_cast;
    if (sums) kernel->epilogue = false;
    cast = ghp_cuda_scratch(ghp_local_weight_elements(&kernel->base.local) * 2);
    if (kernel->base.scratch_bytes < cast) kernel->base.scratch_bytes = cast;
    return GHP_OK;
}

static enum ghp_status run_without_copies(struct ghp_cuda_kernel *kernel,
                                          const struct ghp_kernel_arguments *args)
{
    struct ghp_kernel_arguments without = *args;

    for (int i = 0; i < GHP_MAX_PARAMS; i++)
        without.at.w_bf16[i] = NULL;
    return run_linear(kernel, &without);
}

/* cuda/linear.c's, as this folder builds it */
enum ghp_status ghp_emulated_linear_prepare(struct ghp_cuda_kernel *kernel, const char *wanted);

enum ghp_status ghp_cuda_linear_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    GHP_TRY(ghp_emulated_linear_prepare(kernel, wanted));
    if (!casts() || kernel->data == NULL) return GHP_OK;
    run_linear = kernel->run;
    kernel->run = run_without_copies;
    kernel->run_all = NULL;
    return GHP_OK;
}

enum ghp_status ghp_cuda_attention_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    (void)wanted;
    return ghp_cuda_native_prepare(kernel);
}
