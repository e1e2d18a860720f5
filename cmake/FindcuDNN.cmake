# cmake/FindcuDNN.cmake - cuDNN's headers, and its library where it is there: defines cuDNN_FOUND, cuDNN_VERSION,
# cuDNN_INCLUDE_DIR and cuDNN_LIBRARY (opened at run time, never linked: docs/how-to/gpu.md).
include(GhpNvidia)
ghp_find_nvidia(cuDNN HEADER cudnn.h LIBRARY cudnn SONAME libcudnn.so.9)
ghp_nvidia_version(cuDNN_VERSION "${cuDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuDNN REQUIRED_VARS cuDNN_INCLUDE_DIR VERSION_VAR cuDNN_VERSION)
