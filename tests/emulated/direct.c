/* tests/emulated/direct.c - on an emulated GPU the plain kernels run convolutions and linear layers: cuDNN and cuBLASLt
 * need a real one. Takes the place of cuda/conv.c and cuda/linear.c. */
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
