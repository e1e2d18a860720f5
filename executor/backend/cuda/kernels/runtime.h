/* executor/backend/cuda/kernels/runtime.h - CUDA's run-time, for C and kernels alike: the only header that shows
 * cuda_runtime_api.h. */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_KERNELS_RUNTIME_H
#define GHP_EXECUTOR_BACKEND_CUDA_KERNELS_RUNTIME_H

#include <cuda_runtime_api.h>

#endif
