# cmake/GhpNvidia.cmake - finds headers and libraries of NVIDIA other than CUDA's own: in the system's folders, in
# CUDA's, and in the packages that Python installs them as (site-packages/nvidia/cudnn, nvidia/cu13, ...).
#
#   ghp_find_nvidia(<package> HEADER file LIBRARY name SONAME file)
#
# Sets <package>_INCLUDE_DIR and, where the library is there too, <package>_LIBRARY (a full path; it is not linked).
# GHP_NVIDIA_FOLDERS lists further folders that hold include/ and lib/.
include_guard(GLOBAL)
set(GHP_NVIDIA_FOLDERS "" CACHE STRING "folders with include/ and lib/ of cuDNN, NCCL and cuBLAS, before all others")

# Folders <site-packages>/nvidia/* of the Python on the path.
function(ghp_python_nvidia folders)
  set(found "")
  find_program(GHP_PYTHON NAMES python3 python)
  mark_as_advanced(GHP_PYTHON)
  if(GHP_PYTHON)
    set(script "import site; print(';'.join(site.getsitepackages() + [site.getusersitepackages()]))")
    execute_process(COMMAND "${GHP_PYTHON}" -c "${script}" OUTPUT_VARIABLE sites OUTPUT_STRIP_TRAILING_WHITESPACE
                    ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)
      set(sites "")
    endif()
    foreach(site IN LISTS sites)
      file(GLOB packages LIST_DIRECTORIES true "${site}/nvidia/*")
      list(APPEND found ${packages})
    endforeach()
  endif()
  set(${folders} "${found}" PARENT_SCOPE)
endfunction()

function(ghp_find_nvidia package)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;LIBRARY;SONAME" "")
  ghp_python_nvidia(python)
  set(folders ${GHP_NVIDIA_FOLDERS} $ENV{CUDA_HOME} $ENV{CUDA_PATH} ${CUDAToolkit_LIBRARY_ROOT}
              ${CUDAToolkit_TARGET_DIR} ${python})
  find_path(${package}_INCLUDE_DIR ${arg_HEADER} HINTS ${GHP_NVIDIA_FOLDERS} ${CUDAToolkit_INCLUDE_DIRS}
            PATHS ${folders} PATH_SUFFIXES include)
  find_library(${package}_LIBRARY NAMES ${arg_SONAME} ${arg_LIBRARY} HINTS ${GHP_NVIDIA_FOLDERS}
               PATHS ${folders} PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu)
  mark_as_advanced(${package}_INCLUDE_DIR ${package}_LIBRARY)
endfunction()

# ghp_nvidia_version(<variable> <file> <macro prefix>): "9.19.0" from PREFIX_MAJOR, _MINOR and _PATCH[LEVEL].
function(ghp_nvidia_version variable file prefix)
  set(version "")
  if(EXISTS "${file}")
    foreach(part MAJOR MINOR PATCH)
      file(STRINGS "${file}" line REGEX "^#define[ \t]+${prefix}_${part}(LEVEL)?[ \t]+[0-9]+" LIMIT_COUNT 1)
      if(line MATCHES "([0-9]+)[ \t]*$")
        list(APPEND version ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endif()
  list(JOIN version "." version)
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()
