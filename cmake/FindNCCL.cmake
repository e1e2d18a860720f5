# cmake/FindNCCL.cmake - NCCL's header, and its library where it is there: defines NCCL_FOUND, NCCL_VERSION,
# NCCL_INCLUDE_DIR and NCCL_LIBRARY (opened at run time, never linked: docs/how-to/gpu.md).
include(GhpNvidia)
ghp_find_nvidia(NCCL HEADER nccl.h LIBRARY nccl SONAME libnccl.so.2)
ghp_nvidia_version(NCCL_VERSION "${NCCL_INCLUDE_DIR}/nccl.h" NCCL)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
