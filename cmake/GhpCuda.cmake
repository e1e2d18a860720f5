# cmake/GhpCuda.cmake - whether GPUs are part of this build: sets GHP_HAS_CUDA.
#
# Needed are CUDA's compiler, its run-time as a static library, and the headers of cuBLASLt, cuDNN 9 and NCCL 2. The
# three libraries themselves are opened when a GPU is asked for, not linked: a tool starts where they, or the driver,
# are missing (docs/how-to/gpu.md). If they are found now, their places are tried after the loader's own.
#
# GHP_CUDA   ON: a build without GPUs is an error; OFF: nothing is looked for; AUTO: where everything is there
set(GHP_CUDA AUTO CACHE STRING "GPUs: AUTO (where all is there), ON or OFF")
set_property(CACHE GHP_CUDA PROPERTY STRINGS AUTO ON OFF)
set(GHP_HAS_CUDA FALSE)
if(NOT GHP_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "GHP_CUDA is '${GHP_CUDA}'; use AUTO, ON or OFF")
endif()
if(GHP_CUDA STREQUAL "OFF")
  return()
endif()

include(CheckLanguage)
set(ghp_cuda_missing "")
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual) # A100, H100, and PTX for what comes after
  set(ghp_cuda_blackwell 100-real 120-real)
endif()
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  # B200, RTX 50: else compiled when a tool starts. It doubles the compiler's time, so only for what is kept
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    list(APPEND CMAKE_CUDA_ARCHITECTURES ${ghp_cuda_blackwell})
  endif()
  find_package(CUDAToolkit QUIET)
  find_package(cuBLASLt QUIET)
  find_package(cuDNN 9 QUIET)
  find_package(NCCL 2 QUIET)
  if(NOT TARGET CUDA::cudart_static)
    list(APPEND ghp_cuda_missing "CUDA's run-time (libcudart_static.a)")
  endif()
  if(NOT cuBLASLt_FOUND)
    list(APPEND ghp_cuda_missing "cuBLASLt (cublasLt.h)")
  endif()
  if(NOT cuDNN_FOUND)
    list(APPEND ghp_cuda_missing "cuDNN 9 (cudnn.h)")
  endif()
  if(NOT NCCL_FOUND)
    list(APPEND ghp_cuda_missing "NCCL 2 (nccl.h)")
  endif()
else()
  list(APPEND ghp_cuda_missing "CUDA's compiler (nvcc, with a C++ compiler beside it)")
endif()

list(JOIN ghp_cuda_missing ", " ghp_cuda_text)
if(NOT ghp_cuda_missing)
  set(GHP_HAS_CUDA TRUE)
  message(STATUS "GPUs: CUDA ${CUDAToolkit_VERSION}, cuDNN ${cuDNN_VERSION}, NCCL ${NCCL_VERSION}")
elseif(GHP_CUDA STREQUAL "ON")
  message(FATAL_ERROR "GHP_CUDA is ON, but missing: ${ghp_cuda_text}.\nInstall NVIDIA's packages, or "
                      "'pip install nvidia-cublas nvidia-cudnn-cu13 nvidia-nccl-cu13' for the headers and libraries; "
                      "-DCMAKE_CUDA_COMPILER=/path/to/nvcc names a compiler that is not on the path")
else()
  message(STATUS "no GPUs in this build, missing: ${ghp_cuda_text}")
endif()
