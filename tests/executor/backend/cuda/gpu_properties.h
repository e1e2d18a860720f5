/* tests/executor/backend/cuda/gpu_properties.h - two GPUs that need not be there, for cuDNN's heuristics. */
#ifndef GHP_TESTS_EXECUTOR_BACKEND_CUDA_GPU_PROPERTIES_H
#define GHP_TESTS_EXECUTOR_BACKEND_CUDA_GPU_PROPERTIES_H

/* As cuDNN writes them for devices that are there; figures from NVIDIA's data sheets. */
static const char gpu_properties_h100[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":"
    "65536,"
    "\"multiProcessorCount\":132,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,"
    "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,"
    "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":85000000000,"
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800,"
    "\"cudaDeviceId\":0,"
    "\"deviceVer\":900,\"driverVer\":13000,\"deviceName\":\"NVIDIA H100 80GB HBM3\"}";
static const char gpu_properties_a100[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":"
    "65536,"
    "\"multiProcessorCount\":108,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":166912,\"reservedSharedMemoryPerBlock\":1024,"
    "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,"
    "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":85000000000,"
    "\"smClockRateKHz\":1410000,\"memClockRateKHz\":1593000,\"l2CacheSize\":41943040,"
    "\"cudaDeviceId\":0,"
    "\"deviceVer\":800,\"driverVer\":13000,\"deviceName\":\"NVIDIA A100-SXM4-80GB\"}";

#endif
