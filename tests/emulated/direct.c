/* tests/emulated/direct.c - on an emulated GPU the plain kernels run convolutions and linear layers, and own kernels
 * attention: cuDNN and cuBLASLt need a real one. Takes the place of cuda/conv.c, cuda/linear.c and cuda/attention.c. */
#include "executor/backend/cuda/backend_cuda_private.h"

enum ghp_status ghp_cuda_conv_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    (void)wanted;
    ghp_cuda_direct_prepare(kernel);
    return GHP_OK;
}

enum ghp_status ghp_cuda_linear_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    (void)wanted;
    ghp_cuda_direct_prepare(kernel);
    return GHP_OK;
}

enum ghp_status ghp_cuda_attention_prepare(struct ghp_cuda_kernel *kernel, const char *wanted)
{
    (void)wanted;
    return ghp_cuda_native_prepare(kernel);
}
