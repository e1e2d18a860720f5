# cmake/GhpFlags.cmake - the flags of every source file, as the interface library ghp_flags.
include(CheckCCompilerFlag)

add_library(ghp_flags INTERFACE)
target_include_directories(ghp_flags INTERFACE "${PROJECT_SOURCE_DIR}")
# OMPI_SKIP_MPICXX, MPICH_SKIP_MPICXX: MPI's C++ bindings stay out.
target_compile_definitions(ghp_flags INTERFACE _GNU_SOURCE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_compile_options(ghp_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -ffp-contract=off)
# snprintf cuts on purpose here, and gcc's guess whether it may depends on what it inlined.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ghp_flags INTERFACE -Wno-format-truncation)
endif()
if(GHP_WERROR)
  target_compile_options(ghp_flags INTERFACE -Werror)
endif()
if(GHP_NATIVE)
  check_c_compiler_flag(-march=native GHP_HAS_MARCH_NATIVE)
  if(GHP_HAS_MARCH_NATIVE)
    target_compile_options(ghp_flags INTERFACE -march=native)
  endif()
endif()
if(GHP_SANITIZE)
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(ghp_flags INTERFACE ${sanitize})
  target_link_options(ghp_flags INTERFACE ${sanitize})
endif()
