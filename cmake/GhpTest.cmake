# cmake/GhpTest.cmake - how ghp's tests are built and registered with CTest.
#
#   ghp_test_room(<room> [lib...])   registers all tests in tests/<room> and the folders in it
#
# A test_<topic>.c is part of its room's driver, build/tests/test_<room>, which runs the topic it is told to (see
# tests/check.h). One that has a `main` of its own, because it stands in for functions of the C library or of ghp, is a
# program of its own, test_<room>_<topic>. A test_<topic>.sh is run by bash and finds GHP_BIN, the folder of the tools,
# and GHP_SOURCE, the source tree. Other *.c files there are helpers: a library that the room's tests are linked to.
#
# Tests are named as their files lie below tests/, `core/program/fuse` for core/program/test_fuse.c, with `:npN` for N
# ranks; exit 77 means skipped. A test says more of itself in one of its first lines, in a
# comment (sources and scripts alike):
#
#   ghp-test: np=2,3 np_full=1,4 timeout=120 processors=1 label=slow needs=ghp-plan,ghp-run full=yes emulated=yes
#
#   np          it runs under mpirun with these numbers of ranks
#   np_full     and in full runs with these, too
#   full        it runs in full runs only; what stands for it in short ones is named in its head
#   timeout     in seconds; 60 unless given
#   processors  how many it keeps busy; else its ranks, or 1
#   label       instead of unit, mpi or script
#   needs       a script whose needs are neither a target of this build nor a program on the path is disabled
#   emulated    it is one of tests/emulated, too
#
# Full runs are `GHP_TEST_FULL=1 ctest -C Full`: the variable tells a test to take all cases (check_full, check_cases).
set(GHP_TEST_TIMEOUT 60)
set(GHP_TEST_SLOWDOWN 1) # of all timeouts
if(GHP_SANITIZE OR GHP_FUZZ)
  set(GHP_TEST_SLOWDOWN 5)
endif()

# ob1 is what Open MPI takes here in the end; to find that out takes it 0.2 s a start.
set(GHP_TEST_ENVIRONMENT OMPI_MCA_pml=ob1
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    OMP_WAIT_POLICY=passive
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0")

# Reads a file's marker line into marker_NP, marker_TIMEOUT and so on of the caller, with what is true where it is
# silent; changes of the file configure again.
function(ghp_test_marker file label)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" line REGEX "ghp-test:" LIMIT_COUNT 1)
  foreach(key np np_full timeout label needs emulated full processors)
    string(TOUPPER ${key} upper)
    set(value "")
    if(line MATCHES "[ :]${key}=([^ ]+)")
      string(REPLACE "," ";" value "${CMAKE_MATCH_1}")
    endif()
    set(marker_${upper} "${value}" PARENT_SCOPE)
    set(${upper} "${value}")
  endforeach()
  if(NOT TIMEOUT)
    set(marker_TIMEOUT ${GHP_TEST_TIMEOUT} PARENT_SCOPE)
  endif()
  if(NP_FULL)
    list(REMOVE_ITEM NP_FULL ${NP} "")
    set(marker_NP_FULL "${NP_FULL}" PARENT_SCOPE)
  endif()
  if(NOT LABEL AND (NP OR NP_FULL))
    set(marker_LABEL mpi PARENT_SCOPE)
  elseif(NOT LABEL)
    set(marker_LABEL ${label} PARENT_SCOPE)
  endif()
endfunction()

# ghp_add_test(<name> <processors> <full> COMMAND word...): one test, by the marker that was read last.
function(ghp_add_test name processors full)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "COMMAND")
  set(configurations "")
  if(full OR marker_FULL)
    set(configurations CONFIGURATIONS Full)
  endif()
  if(marker_PROCESSORS)
    set(processors ${marker_PROCESSORS})
  endif()
  # MPI's libraries keep no frame pointers: only the slow way finds whose a leak is
  set(asan allocator_may_return_null=1)
  if(name MATCHES "^(executor|profiler)/")
    string(APPEND asan ":fast_unwind_on_malloc=0")
  endif()
  math(EXPR seconds "${marker_TIMEOUT} * ${GHP_TEST_SLOWDOWN}")
  add_test(NAME ${name} ${configurations} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${marker_LABEL}" TIMEOUT ${seconds} PROCESSORS ${processors}
                       COST ${marker_TIMEOUT} # long ones start first, so that no core waits for the last
                       SKIP_RETURN_CODE 77 ENVIRONMENT "${GHP_TEST_ENVIRONMENT};ASAN_OPTIONS=${asan}")
endfunction()

# ghp_add_program_tests(<prefix> <topic> <program> [argument...]): the tests of a program, under mpirun where the marker
# says so; gives their names in `names` of the caller.
function(ghp_add_program_tests prefix topic program)
  set(all "")
  # mpirun ends hung ranks, and says their state, a little before CTest would kill mpirun alone
  math(EXPR limit "${marker_TIMEOUT} * ${GHP_TEST_SLOWDOWN} - 5")
  foreach(np IN LISTS marker_NP marker_NP_FULL)
    set(full OFF)
    if(NOT np IN_LIST marker_NP)
      set(full ON)
    endif()
    ghp_mpi_launch(launch ${np} ${limit})
    ghp_add_test(${prefix}/${topic}:np${np} ${np} ${full} COMMAND ${launch} "$<TARGET_FILE:${program}>" ${ARGN})
    list(APPEND all ${prefix}/${topic}:np${np})
  endforeach()
  if(NOT all)
    ghp_add_test(${prefix}/${topic} 1 OFF COMMAND ${program} ${ARGN})
    set(all ${prefix}/${topic})
  endif()
  set(names "${all}" PARENT_SCOPE)
endfunction()

# What each program of tests needs.
function(ghp_test_program program)
  if(GHP_SANITIZE OR GHP_FUZZ)
    target_sources(${program} PRIVATE "${PROJECT_SOURCE_DIR}/tests/keep_plugins.c")
  endif()
  set_target_properties(${program} PROPERTIES LINKER_LANGUAGE C RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(${program} PRIVATE ghp_flags ${ARGN} ghp_check m)
  target_compile_definitions(${program} PRIVATE GHP_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             GHP_BINARY_DIR="${PROJECT_BINARY_DIR}")
endfunction()

# The topic that a test file is about, in `topic` of the caller, and the folder below tests/ where it lies, in `place`.
macro(ghp_test_topic file)
  get_filename_component(topic "${file}" NAME_WE)
  string(REGEX REPLACE "^test_" "" topic "${topic}")
  get_filename_component(place "${file}" DIRECTORY)
  file(RELATIVE_PATH place "${PROJECT_SOURCE_DIR}/tests" "${place}")
endmacro()

# ghp_test_driver(<program> SOURCES file... LIBS lib...): one program of these tests and the table of their topics.
function(ghp_test_driver program)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  set(declarations "")
  set(rows "")
  foreach(file IN LISTS arg_SOURCES)
    ghp_test_topic("${file}")
    string(APPEND declarations "int check_${topic}_test(int argc, char **argv);\n")
    string(APPEND rows "    {\"${topic}\", check_${topic}_test},\n")
  endforeach()
  set(table "${CMAKE_CURRENT_BINARY_DIR}/${program}.c")
  file(CONFIGURE OUTPUT "${table}" @ONLY CONTENT "/* The tests of @program@, written by cmake/GhpTest.cmake. */
#include \"tests/driver.h\"

@declarations@
const struct check_topic check_topics[] = {
@rows@    {NULL, NULL},
};
")
  add_executable(${program} "${PROJECT_SOURCE_DIR}/tests/driver.c" "${table}" ${arg_SOURCES})
  ghp_test_program(${program} ${arg_LIBS})
endfunction()

# Scripts start workers by `mpirun`, in the words of Open MPI's: where that is another MPI's here, a stand-in on their
# path names the right one.
set(GHP_TEST_PATH "")
if(NOT GHP_MPIRUN STREQUAL mpirun OR NOT GHP_MPI_KIND STREQUAL openmpi)
  set(GHP_TEST_PATH "${PROJECT_BINARY_DIR}/mpi")
  file(CONFIGURE OUTPUT "${GHP_TEST_PATH}/mpirun.in" @ONLY CONTENT "#!/bin/sh
# written by cmake/GhpTest.cmake
kind=@GHP_MPI_KIND@
for word; do
    shift
    [ $kind = mpich ] && [ \"$word\" = --oversubscribe ] || set -- \"$@\" \"$word\"
done
exec '@MPIEXEC_EXECUTABLE@' \"$@\"
")
  file(COPY_FILE "${GHP_TEST_PATH}/mpirun.in" "${GHP_TEST_PATH}/mpirun" ONLY_IF_DIFFERENT)
  file(CHMOD "${GHP_TEST_PATH}/mpirun" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
       WORLD_READ WORLD_EXECUTE)
endif()

function(ghp_test_script file)
  ghp_test_topic("${file}")
  ghp_test_marker("${file}" script)
  set(name ${place}/${topic})
  ghp_add_test(${name} 1 OFF COMMAND bash "${file}")
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "GHP_BIN=${PROJECT_BINARY_DIR}/bin"
               "GHP_SOURCE=${PROJECT_SOURCE_DIR}")
  if(GHP_TEST_PATH)
    set_property(TEST ${name} PROPERTY ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:${GHP_TEST_PATH}")
  endif()
  foreach(need IN LISTS marker_NEEDS)
    if(NOT TARGET ${need})
      find_program(GHP_PROGRAM_${need} ${need})
      if(NOT GHP_PROGRAM_${need})
        message(STATUS "test ${name} is disabled: it needs ${need}")
        set_tests_properties(${name} PROPERTIES DISABLED TRUE)
      endif()
    endif()
  endforeach()
endfunction()

function(ghp_test_room room)
  set(libs ${ARGN})
  set(folder "${PROJECT_SOURCE_DIR}/tests/${room}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/test_*.c")
  file(GLOB_RECURSE helpers CONFIGURE_DEPENDS "${folder}/*.c")
  file(GLOB_RECURSE scripts CONFIGURE_DEPENDS "${folder}/test_*.sh")
  list(FILTER helpers EXCLUDE REGEX "/test_[^/]*$")
  if(NOT GHP_HAS_CUDA) # by folder: what tests the files that are not compiled without CUDA
    list(FILTER sources EXCLUDE REGEX "/(cuda|nccl)/[^/]*$")
  endif()

  if(helpers)
    add_library(ghp_test_${room} STATIC ${helpers})
    target_link_libraries(ghp_test_${room} PUBLIC ghp_flags ${libs} ghp_check)
    list(PREPEND libs ghp_test_${room})
  endif()
  set(together "")
  foreach(file IN LISTS sources)
    ghp_test_topic("${file}")
    ghp_test_marker("${file}" unit)
    file(STRINGS "${file}" alone REGEX "^int main\\(" LIMIT_COUNT 1)
    if(alone)
      add_executable(test_${room}_${topic} "${file}")
      ghp_test_program(test_${room}_${topic} ${libs})
      ghp_add_program_tests(${place} ${topic} test_${room}_${topic})
    else()
      list(APPEND together "${file}")
      ghp_add_program_tests(${place} ${topic} test_${room} ${topic})
    endif()
  endforeach()
  if(together)
    ghp_test_driver(test_${room} SOURCES ${together} LIBS ${libs})
  endif()
  foreach(file IN LISTS scripts)
    ghp_test_script("${file}")
  endforeach()
endfunction()
