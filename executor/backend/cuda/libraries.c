/* executor/backend/cuda/libraries.c - see cuda/libraries.h. */
#include "executor/backend/cuda/libraries.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

/* The paths at which the build found the libraries; it may not have found them. */
#ifndef GHP_CUDNN_PATH
#define GHP_CUDNN_PATH NULL
#endif
#ifndef GHP_CUBLASLT_PATH
#define GHP_CUBLASLT_PATH NULL
#endif
#ifndef GHP_NCCL_PATH
#define GHP_NCCL_PATH NULL
#endif

struct symbol {
    const char *name;
    size_t offset; /* of its pointer in the table */
    bool optional; /* older libraries lack it */
};

struct library {
    const char *title, *file, *path, *package; /* path may be NULL */
    const struct symbol *symbols;              /* ended by a NULL name */
    void *table;
    bool loaded;
};

static struct ghp_cudnn cudnn_table;
static struct ghp_cublaslt cublaslt_table;
static struct ghp_nccl nccl_table;

#define SYMBOL(name) {#name, offsetof(struct SYMBOLS_OF, name), false},
#define OPTIONAL(name) {#name, offsetof(struct SYMBOLS_OF, name), true},
#define SYMBOLS_OF ghp_cudnn
static const struct symbol cudnn_symbols[] = {GHP_CUDNN_LIST(SYMBOL){NULL, 0, false}};
#undef SYMBOLS_OF
#define SYMBOLS_OF ghp_cublaslt
static const struct symbol cublaslt_symbols[] = {GHP_CUBLASLT_LIST(SYMBOL){NULL, 0, false}};
#undef SYMBOLS_OF
#define SYMBOLS_OF ghp_nccl
static const struct symbol nccl_symbols[] = {
    GHP_NCCL_LIST(SYMBOL) OPTIONAL(ncclMemAlloc) OPTIONAL(ncclMemFree) OPTIONAL(ncclCommRegister)
        OPTIONAL(ncclCommDeregister) OPTIONAL(ncclCommWindowRegister)
            OPTIONAL(ncclCommWindowDeregister){NULL, 0, false}};
#undef SYMBOLS_OF

static struct library cudnn_library = {.title = "cuDNN",
                                       .file = "libcudnn.so." TEXT(CUDNN_MAJOR),
                                       .path = GHP_CUDNN_PATH,
                                       .package = "nvidia-cudnn-cu" TEXT(CUBLAS_VER_MAJOR),
                                       .symbols = cudnn_symbols,
                                       .table = &cudnn_table};
static struct library cublaslt_library = {.title = "cuBLASLt",
                                          .file = "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR),
                                          .path = GHP_CUBLASLT_PATH,
#if CUBLAS_VER_MAJOR < 13
                                          .package = "nvidia-cublas-cu" TEXT(CUBLAS_VER_MAJOR),
#else
                                          .package = "nvidia-cublas",
#endif
                                          .symbols = cublaslt_symbols,
                                          .table = &cublaslt_table};
static struct library nccl_library = {.title = "NCCL",
                                      .file = "libnccl.so." TEXT(NCCL_MAJOR),
                                      .path = GHP_NCCL_PATH,
                                      .package = "nvidia-nccl-cu" TEXT(CUBLAS_VER_MAJOR),
                                      .symbols = nccl_symbols,
                                      .table = &nccl_table};

static enum ghp_status load(struct library *l)
{
    void *handle;

    if (l->loaded) return GHP_OK;
    handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL && l->path != NULL) handle = dlopen(l->path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return GHP_FAIL(GHP_ERR_BACKEND,
                        "%s is missing: %s; install it (from NVIDIA's packages, or 'pip install "
                        "%s') and put its folder into LD_LIBRARY_PATH, or use --backend onednn",
                        l->title, dlerror(), l->package);
    for (const struct symbol *s = l->symbols; s->name != NULL; s++) {
        void *address = dlsym(handle, s->name);

        if (address == NULL && !s->optional) {
            dlclose(handle);
            return GHP_FAIL(GHP_ERR_BACKEND,
                            "%s (%s) has no function '%s': it is too old or too new; install the "
                            "version that this build was made for",
                            l->title, l->file, s->name);
        }
        memcpy((char *)l->table + s->offset, &address, sizeof address);
    }
    l->loaded = true;
    return GHP_OK;
}

enum ghp_status ghp_cudnn_load(const struct ghp_cudnn **cudnn)
{
    *cudnn = &cudnn_table;
    return load(&cudnn_library);
}

enum ghp_status ghp_cublaslt_load(const struct ghp_cublaslt **cublaslt)
{
    *cublaslt = &cublaslt_table;
    return load(&cublaslt_library);
}

enum ghp_status ghp_nccl_load(const struct ghp_nccl **nccl)
{
    *nccl = &nccl_table;
    return load(&nccl_library);
}

enum ghp_status ghp_cuda_find(int *count)
{
    int n = 0, version = 0;
    cudaError_t status = cudaGetDeviceCount(&n); /* leaves n alone if it fails */

    if (count != NULL) *count = n;
    if (status == cudaSuccess && n > 0) return GHP_OK;
    cudaGetLastError(); /* or the next call would report it again */
    if (status == cudaSuccess || status == cudaErrorNoDevice)
        return GHP_FAIL(
            GHP_ERR_BACKEND,
            "this machine has no GPU that CUDA can use; see that 'nvidia-smi' lists one "
            "and that CUDA_VISIBLE_DEVICES does not hide it, or use --backend onednn");
    cudaDriverGetVersion(&version);
    if (status == cudaErrorInsufficientDriver && version == 0)
        return GHP_FAIL(GHP_ERR_BACKEND,
                        "no NVIDIA driver was found; install the driver for your GPU (then "
                        "'nvidia-smi' lists it), or use --backend onednn");
    if (status == cudaErrorInsufficientDriver)
        return GHP_FAIL(
            GHP_ERR_BACKEND,
            "the NVIDIA driver is for CUDA %d.%d, this build is for CUDA %d.%d; install "
            "a newer driver, or use --backend onednn",
            version / 1000, version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return GHP_FAIL(GHP_ERR_BACKEND,
                    "CUDA cannot start: %s; see what 'nvidia-smi' says, or use --backend onednn",
                    cudaGetErrorString(status));
}

enum ghp_status ghp_cuda_status(cudaError_t status, const char *what)
{
    if (status == cudaSuccess) return GHP_OK;
    cudaGetLastError();
    if (status == cudaErrorMemoryAllocation)
        return GHP_FAIL(GHP_ERR_NO_MEMORY,
                        "the GPU is out of memory in '%.60s'; use a smaller batch, more workers or "
                        "a plan made with a lower --memory",
                        what);
    if (status == cudaErrorNoKernelImageForDevice)
        return GHP_FAIL(GHP_ERR_BACKEND,
                        "this build has no machine code for this GPU; configure with "
                        "-DCMAKE_CUDA_ARCHITECTURES=native on its machine and build again, or use "
                        "--backend onednn");
    return GHP_FAIL(GHP_ERR_BACKEND,
                    "CUDA's '%.60s' failed: %s; see the kernel's log (dmesg) for "
                    "faults of the GPU, or report this",
                    what, cudaGetErrorString(status));
}

enum ghp_status ghp_cudnn_status(const struct ghp_cudnn *cudnn, cudnnStatus_t status,
                                 const char *what)
{
    char reason[256] = "";

    if (status == CUDNN_STATUS_SUCCESS) return GHP_OK;
    cudnn->cudnnGetLastErrorString(reason, sizeof reason);
    reason[strcspn(reason, "\n")] = '\0';
    return GHP_FAIL(GHP_ERR_BACKEND,
                    "cuDNN's '%.60s' failed: %s%s%s; use another version of cuDNN 9, or report "
                    "this",
                    what, cudnn->cudnnGetErrorString(status), reason[0] != '\0' ? ", " : "",
                    reason);
}

enum ghp_status ghp_cublaslt_status(const struct ghp_cublaslt *lt, cublasStatus_t status,
                                    const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS) return GHP_OK;
    return GHP_FAIL(GHP_ERR_BACKEND,
                    "cuBLASLt's '%.60s' failed: %s; use another version of cuBLAS, or report this",
                    what, lt->cublasLtGetStatusString(status));
}
