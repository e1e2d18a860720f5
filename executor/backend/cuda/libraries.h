/* executor/backend/cuda/libraries.h - CUDA's libraries, opened when they are first needed: cuDNN, cuBLASLt, NCCL.
 *
 * None of them is linked (docs/how-to/gpu.md says why): each is a table of function pointers, filled from the shared
 * library of the loader's own places, else from where the build found it. CUDA's run-time is linked statically and
 * needs no driver to start. To use a further function: its name in the list of its library.
 *
 * The only header that shows cudnn.h, cublasLt.h and nccl.h to ghp's C files.
 *
 * Tested tests/executor/backend/cuda/test_cuda_graph.c */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_LIBRARIES_H
#define GHP_EXECUTOR_BACKEND_CUDA_LIBRARIES_H

#include "core/base/status.h"
#include "executor/backend/cuda/kernels/runtime.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <nccl.h>

#define GHP_CUDNN_LIST(X)                                                                          \
    X(cudnnGetVersion)                                                                             \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnGetLastErrorString)                                                                     \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

#define GHP_CUBLASLT_LIST(X)                                                                       \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtGetStatusString)                                                                     \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtMatmul)                                                                              \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatrixLayoutSetAttribute)                                                            \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulAlgoCheck)

#define GHP_NCCL_LIST(X)                                                                           \
    X(ncclGetVersion)                                                                              \
    X(ncclGetErrorString)                                                                          \
    X(ncclGetLastError)                                                                            \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommInitRankConfig)                                                                      \
    X(ncclCommFinalize)                                                                            \
    X(ncclCommDestroy)                                                                             \
    X(ncclCommAbort)                                                                               \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclAllReduce)                                                                               \
    X(ncclReduceScatter)                                                                           \
    X(ncclAllGather)                                                                               \
    X(ncclSend)                                                                                    \
    X(ncclRecv)                                                                                    \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)

#define GHP_LIBRARY_POINTER(name) __typeof__(name) *name;
struct ghp_cudnn {
    GHP_CUDNN_LIST(GHP_LIBRARY_POINTER)
};
struct ghp_cublaslt {
    GHP_CUBLASLT_LIST(GHP_LIBRARY_POINTER)
};
struct ghp_nccl {
    GHP_NCCL_LIST(GHP_LIBRARY_POINTER)
    /* Of NCCL 2.19 and 2.27 on, typed here because the header may be older; NULL: this library lacks them. */
    ncclResult_t (*ncclMemAlloc)(void **at, size_t bytes);
    ncclResult_t (*ncclMemFree)(void *at);
    ncclResult_t (*ncclCommRegister)(ncclComm_t comm, void *at, size_t bytes, void **handle);
    ncclResult_t (*ncclCommDeregister)(ncclComm_t comm, void *handle);
    ncclResult_t (*ncclCommWindowRegister)(ncclComm_t comm, void *at, size_t bytes, void **window,
                                           int flags);
    ncclResult_t (*ncclCommWindowDeregister)(ncclComm_t comm, void *window);
};
#undef GHP_LIBRARY_POINTER

/* The libraries, opened on the first call and kept until the process ends. One thread at a time.
 *
 * Returns   GHP_OK; GHP_ERR_BACKEND naming the file that is missing and how to get it */
enum ghp_status ghp_cudnn_load(const struct ghp_cudnn **cudnn);
enum ghp_status ghp_cublaslt_load(const struct ghp_cublaslt **cublaslt);
enum ghp_status ghp_nccl_load(const struct ghp_nccl **nccl);

/* Whether this machine has a driver and a GPU.
 *
 * count   receives their number; may be NULL
 *
 * Returns   GHP_OK; GHP_ERR_BACKEND saying what is missing and what to do */
enum ghp_status ghp_cuda_find(int *count);

/* A library's status as ours; `what` names the call. */
enum ghp_status ghp_cuda_status(cudaError_t status, const char *what);
enum ghp_status ghp_cudnn_status(const struct ghp_cudnn *cudnn, cudnnStatus_t status,
                                 const char *what);
enum ghp_status ghp_cublaslt_status(const struct ghp_cublaslt *lt, cublasStatus_t status,
                                    const char *what);

#define GHP_CUDA(call) ghp_cuda_status((call), #call)
#define GHP_CUDNN(cudnn, call) ghp_cudnn_status((cudnn), (cudnn)->call, #call)
#define GHP_CUBLASLT(lt, call) ghp_cublaslt_status((lt), (lt)->call, #call)

#endif
