/* tests/emulated/driver.c - a CUDA driver, libcuda.so.1, that takes every compiled kernel and runs nothing.
 *
 * cuDNN hands the kernels that it compiles to the driver before it says whether an engine is supported. With this
 * library it says so without a GPU. To CUDA's run-time there is no GPU here. */
#define TAKEN 0
#define NO_DEVICE 100

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuGetErrorString(int error, const char **text);
int cuLibraryLoadData(void **library, const void *code, ...);
int cuLibraryUnload(void *library);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);

static int something; /* whose address is a handle */

int cuInit(unsigned flags)
{
    (void)flags;
    return NO_DEVICE;
}

int cuDeviceGetCount(int *count)
{
    *count = 0;
    return NO_DEVICE;
}

int cuGetErrorString(int error, const char **text)
{
    (void)error;
    *text = "a driver for tests";
    return TAKEN;
}

int cuLibraryLoadData(void **library, const void *code, ...)
{
    (void)code;
    *library = &something;
    return TAKEN;
}

int cuLibraryUnload(void *library)
{
    (void)library;
    return TAKEN;
}

int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    (void)library;
    (void)name;
    *kernel = &something;
    return TAKEN;
}

/* What cuDNN also looks up, but never calls with success here. */
#define NOT_HERE(name)                                                                             \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return NO_DEVICE;                                                                          \
    }
NOT_HERE(cuCtxGetCurrent)
NOT_HERE(cuCtxGetLimit)
NOT_HERE(cuCtxPopCurrent)
NOT_HERE(cuCtxPushCurrent)
NOT_HERE(cuDeviceGet)
NOT_HERE(cuDriverGetVersion)
NOT_HERE(cuGetErrorName)
NOT_HERE(cuKernelGetAttribute)
NOT_HERE(cuKernelSetAttribute)
NOT_HERE(cuLaunchCooperativeKernel)
NOT_HERE(cuLaunchKernel)
NOT_HERE(cuLaunchKernelEx)
NOT_HERE(cuLibraryLoadFromFile)
NOT_HERE(cuLinkAddData)
NOT_HERE(cuLinkComplete)
NOT_HERE(cuLinkCreate)
NOT_HERE(cuLinkDestroy)
NOT_HERE(cuOccupancyMaxPotentialClusterSize)
NOT_HERE(cuStreamGetCtx)
