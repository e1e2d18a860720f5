# cmake/GhpFlags.cmake - the flags of every C file, as the interface library ghp_flags.
include(CheckCCompilerFlag)

add_library(ghp_flags INTERFACE)
target_include_directories(ghp_flags INTERFACE "${PROJECT_SOURCE_DIR}")
# OMPI_SKIP_MPICXX, MPICH_SKIP_MPICXX: MPI's C++ bindings stay out.
target_compile_definitions(ghp_flags INTERFACE _GNU_SOURCE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_compile_options(ghp_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -ffp-contract=off)
# What a binary says of its source names no folder of the machine that built it.
target_compile_options(ghp_flags INTERFACE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
# Nobody reads the processor's exception flags, so both sides of a choice may be computed: loops with choices become
# vectors.
target_compile_options(ghp_flags INTERFACE -fno-trapping-math)
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
if(GHP_FUZZ)
  include(CheckCSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
  check_c_source_compiles("int LLVMFuzzerTestOneInput(const char *b, unsigned long n);
                           int LLVMFuzzerTestOneInput(const char *b, unsigned long n) { return b[0] == (char)n; }"
                          GHP_HAS_FUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT GHP_HAS_FUZZER)
    message(FATAL_ERROR "GHP_FUZZ needs clang with its fuzzer's run-time; install it with\n"
                        "  apt-get install clang libclang-rt-dev\nand configure with -DCMAKE_C_COMPILER=clang")
  endif()
  target_compile_options(ghp_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(GHP_SANITIZE OR GHP_FUZZ)
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(ghp_flags INTERFACE ${sanitize})
  target_link_options(ghp_flags INTERFACE ${sanitize})
endif()
