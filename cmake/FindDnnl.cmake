# cmake/FindDnnl.cmake - oneDNN (Debian: libdnnl-dev): defines Dnnl_FOUND and the target DNNL::dnnl.
# Not by oneDNN's own CMake package: Debian's asks for OpenCL's headers, which the package only recommends and
# ghp does not use.
find_path(Dnnl_INCLUDE_DIR dnnl.h)
find_library(Dnnl_LIBRARY dnnl)
mark_as_advanced(Dnnl_INCLUDE_DIR Dnnl_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Dnnl REQUIRED_VARS Dnnl_LIBRARY Dnnl_INCLUDE_DIR)

if(Dnnl_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${Dnnl_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${Dnnl_INCLUDE_DIR}")
endif()
