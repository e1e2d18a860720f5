# cmake/GhpTest.cmake - how ghp's tests are built and registered with CTest.
#
#   ghp_unit_test(<room> <topic> [LIBS lib...] [TIMEOUT s] [LABEL name])        tests/<room>/test_<topic>.c
#   ghp_mpi_test(<room> <topic> NP n... [LIBS lib...] [TIMEOUT s] [LABEL name]) the same under mpirun, for each n
#   ghp_script_test(<room> <topic> [TIMEOUT s] [LABEL name] [NEEDS name...])    tests/<room>/test_<topic>.sh
#   ghp_test_room(<room> [lib...])   registers all files of tests/<room>, each as its marker line says
#
# Tests are named room/topic[:npN]; exit 77 means skipped.  Timeouts are 60 s unless given.  A test says otherwise in
# one of its first lines, in a comment (sources and scripts alike):
#
#   ghp-test: np=1,2,4 timeout=120 label=slow needs=ghp-plan,ghp-run
#
# np makes it an MPI test; emulated=yes makes it one of tests/emulated, too; label replaces the default (unit, mpi or script); a script whose `needs` name neither a
# target of this build nor a program on the path is registered but disabled.  Other *.c files in tests/<room> are
# linked into each of its tests.  Scripts find GHP_BIN, the folder of the tools, and GHP_SOURCE, the source tree.
set(GHP_TEST_TIMEOUT 60)
set(GHP_TEST_SLOWDOWN 1) # of all timeouts
if(GHP_SANITIZE OR GHP_FUZZ)
  set(GHP_TEST_SLOWDOWN 5)
endif()

set(GHP_TEST_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    OMP_WAIT_POLICY=passive
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0")

# The properties that all tests share.
function(ghp_test_properties name label timeout processors)
  math(EXPR seconds "${timeout} * ${GHP_TEST_SLOWDOWN}")
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${seconds}
                       PROCESSORS ${processors} SKIP_RETURN_CODE 77
                       ENVIRONMENT "${GHP_TEST_ENVIRONMENT}")
  # MPI's libraries keep no frame pointers: only the slow way finds whose a leak is
  set(asan allocator_may_return_null=1)
  if(name MATCHES "^(executor|profiler)/")
    string(APPEND asan ":fast_unwind_on_malloc=0")
  endif()
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "ASAN_OPTIONS=${asan}")
endfunction()

# Builds tests/<room>/test_<topic>.c as the program test_<room>_<topic> in build/tests.
function(ghp_test_program room topic)
  set(program test_${room}_${topic})
  if(TARGET ${program})
    return()
  endif()
  add_executable(${program} "${PROJECT_SOURCE_DIR}/tests/${room}/test_${topic}.c")
  if(GHP_SANITIZE)
    target_sources(${program} PRIVATE "${PROJECT_SOURCE_DIR}/tests/keep_plugins.c")
  endif()
  set_target_properties(${program} PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(${program} PRIVATE ghp_flags ${ARGN} m)
  set_target_properties(${program} PROPERTIES LINKER_LANGUAGE C)
  target_compile_definitions(${program} PRIVATE GHP_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             GHP_BINARY_DIR="${PROJECT_BINARY_DIR}")
endfunction()

function(ghp_unit_test room topic)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT;LABEL" "LIBS")
  ghp_test_defaults(unit)
  ghp_test_program(${room} ${topic} ${arg_LIBS})
  add_test(NAME ${room}/${topic} COMMAND test_${room}_${topic})
  ghp_test_properties(${room}/${topic} ${arg_LABEL} ${arg_TIMEOUT} 1)
endfunction()

function(ghp_mpi_test room topic)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT;LABEL" "LIBS;NP")
  ghp_test_defaults(mpi)
  ghp_test_program(${room} ${topic} ${arg_LIBS})
  ghp_mpi_tests(${room} ${topic} test_${room}_${topic} NP ${arg_NP} TIMEOUT ${arg_TIMEOUT} LABEL ${arg_LABEL})
endfunction()

# Registers a program under mpirun, for each number of ranks.
function(ghp_mpi_tests room topic program)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "TIMEOUT;LABEL" "NP")
  ghp_test_defaults(mpi)
  # mpirun ends hung ranks, and says their state, a little before CTest would kill mpirun alone
  math(EXPR limit "${arg_TIMEOUT} * ${GHP_TEST_SLOWDOWN} - 5")
  foreach(np IN LISTS arg_NP)
    set(name ${room}/${topic}:np${np})
    add_test(NAME ${name} COMMAND "${MPIEXEC_EXECUTABLE}" --oversubscribe --bind-to none
                                  --timeout ${limit} --report-state-on-timeout -n ${np} "$<TARGET_FILE:${program}>")
    ghp_test_properties(${name} ${arg_LABEL} ${arg_TIMEOUT} ${np})
  endforeach()
endfunction()

function(ghp_script_test room topic)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT;LABEL" "NEEDS")
  ghp_test_defaults(script)
  set(name ${room}/${topic})
  add_test(NAME ${name} COMMAND bash "${PROJECT_SOURCE_DIR}/tests/${room}/test_${topic}.sh")
  ghp_test_properties(${name} ${arg_LABEL} ${arg_TIMEOUT} 2)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "GHP_BIN=${PROJECT_BINARY_DIR}/bin"
               "GHP_SOURCE=${PROJECT_SOURCE_DIR}")
  foreach(need IN LISTS arg_NEEDS)
    if(NOT TARGET ${need})
      find_program(GHP_PROGRAM_${need} ${need})
      if(NOT GHP_PROGRAM_${need})
        message(STATUS "test ${name} is disabled: it needs ${need}")
        set_tests_properties(${name} PROPERTIES DISABLED TRUE)
      endif()
    endif()
  endforeach()
endfunction()

# Fills arg_TIMEOUT and arg_LABEL of the caller where they were not given.
macro(ghp_test_defaults label)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${GHP_TEST_TIMEOUT})
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL ${label})
  endif()
endmacro()

# Reads a file's marker line into <prefix>_NP, _TIMEOUT, _LABEL, _NEEDS, _EMULATED of the caller (lists); changes of it configure
# anew.
function(ghp_test_marker file prefix)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" marker REGEX "ghp-test:" LIMIT_COUNT 1)
  foreach(key np timeout label needs emulated)
    string(TOUPPER ${key} upper)
    set(value "")
    if(marker MATCHES "[ :]${key}=([^ ]+)")
      string(REPLACE "," ";" value "${CMAKE_MATCH_1}")
    endif()
    set(${prefix}_${upper} "${value}" PARENT_SCOPE)
  endforeach()
endfunction()

function(ghp_test_room room)
  set(libs ${ARGN})
  set(folder "${PROJECT_SOURCE_DIR}/tests/${room}")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/test_*.c")
  file(GLOB helpers CONFIGURE_DEPENDS "${folder}/*.c")
  file(GLOB scripts CONFIGURE_DEPENDS "${folder}/test_*.sh")
  if(NOT GHP_HAS_CUDA) # by name: what tests the files that are not compiled without CUDA
    list(FILTER sources EXCLUDE REGEX "/test_(cuda|nccl)[a-z_]*\\.c$")
    list(FILTER helpers EXCLUDE REGEX "/cuda_[a-z_]*\\.c$")
  endif()

  list(FILTER helpers EXCLUDE REGEX "/test_[^/]*$")
  if(helpers)
    add_library(ghp_test_${room} STATIC ${helpers})
    target_link_libraries(ghp_test_${room} PUBLIC ghp_flags ${libs})
    list(PREPEND libs ghp_test_${room})
  endif()

  foreach(file IN LISTS sources scripts)
    get_filename_component(name "${file}" NAME)
    string(REGEX REPLACE "^test_(.*)\\.(c|sh)$" "\\1" topic "${name}")
    ghp_test_marker("${file}" marker)
    if(name MATCHES "\\.sh$")
      ghp_script_test(${room} ${topic} TIMEOUT ${marker_TIMEOUT} LABEL ${marker_LABEL}
                      NEEDS ${marker_NEEDS})
    elseif(marker_NP)
      ghp_mpi_test(${room} ${topic} NP ${marker_NP} LIBS ${libs} TIMEOUT ${marker_TIMEOUT}
                   LABEL ${marker_LABEL})
    else()
      ghp_unit_test(${room} ${topic} LIBS ${libs} TIMEOUT ${marker_TIMEOUT} LABEL ${marker_LABEL})
    endif()
  endforeach()
endfunction()
