# cmake/FindcuBLASLt.cmake - cuBLASLt's header, and its library where it is there: defines cuBLASLt_FOUND,
# cuBLASLt_INCLUDE_DIR and cuBLASLt_LIBRARY (opened at run time, never linked: docs/how-to/gpu.md).
include(GhpNvidia)
ghp_find_nvidia(cuBLASLt HEADER cublasLt.h LIBRARY cublasLt SONAME libcublasLt.so.${CUDAToolkit_VERSION_MAJOR})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuBLASLt REQUIRED_VARS cuBLASLt_INCLUDE_DIR)
