# cmake/GhpMpi.cmake - which MPI ghp is built against, and what starts its programs.
#
# GHP_MPI is the choice: `openmpi` or `mpich` is the one of that name if both are installed, as Debian's
# packages do; empty, the default, takes the one that `mpicc` is. A build folder may be given another choice later:
# whatever was found for the one before is looked for again. Either way these are set:
#
#   MPI::MPI_C         the library
#   GHP_MPI_KIND       openmpi or mpich, read from the header
#   GHP_MPIRUN         what starts its programs, by name: mpirun, or mpirun.mpich where mpirun is another's
#   GHP_MPI_SHARES     its options for workers that may outnumber the cores, and bind themselves
#   GHP_MPI_SRUN       what srun's --mpi is for them
#   GHP_MPI_PACKAGES   Debian's packages, for the message about what is missing
#   ghp_mpi_launch     words that start a test
set(GHP_MPI "" CACHE STRING "which MPI: openmpi, mpich, or nothing for the one that mpicc is")
set_property(CACHE GHP_MPI PROPERTY STRINGS "" openmpi mpich)
if(NOT GHP_MPI MATCHES "^(openmpi|mpich)?$")
  message(FATAL_ERROR "GHP_MPI is '${GHP_MPI}'; give openmpi, mpich, or nothing for the one that mpicc is")
endif()
set(GHP_MPI_PACKAGES "libopenmpi-dev;openmpi-bin")
if(GHP_MPI STREQUAL mpich)
  set(GHP_MPI_PACKAGES "libmpich-dev;mpich")
endif()

if(DEFINED CACHE{GHP_MPI_BEFORE} AND NOT GHP_MPI STREQUAL GHP_MPI_BEFORE)
  get_cmake_property(names CACHE_VARIABLES)
  foreach(name IN LISTS names)
    if(name MATCHES "^(MPI_|MPIEXEC_|GHP_MPICC$|GHP_MPIEXEC|GHP_MPI_IS_|GHP_MPIRUN_)")
      unset(${name} CACHE)
    endif()
  endforeach()
endif()
set(GHP_MPI_BEFORE "${GHP_MPI}" CACHE INTERNAL "the choice of the last configuration")

if(GHP_MPI) # by the names that Debian gives them; elsewhere the first on the path
  find_program(GHP_MPICC NAMES mpicc.${GHP_MPI} mpicc)
  find_program(GHP_MPIEXEC NAMES mpirun.${GHP_MPI} mpirun)
  mark_as_advanced(GHP_MPICC GHP_MPIEXEC)
  if(GHP_MPICC AND GHP_MPIEXEC)
    set(MPI_C_COMPILER "${GHP_MPICC}" CACHE FILEPATH "MPI's compiler" FORCE)
    set(MPIEXEC_EXECUTABLE "${GHP_MPIEXEC}" CACHE FILEPATH "what starts MPI's programs" FORCE)
  endif()
endif()
find_package(MPI QUIET COMPONENTS C)

if(MPI_C_FOUND)
  include(CheckCSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
  check_c_source_compiles("#include <mpi.h>
#ifndef OPEN_MPI
#error not Open MPI
#endif
int main(void) { return 0; }" GHP_MPI_IS_OPENMPI)
  unset(CMAKE_REQUIRED_LIBRARIES)
  set(GHP_MPI_KIND mpich)
  if(GHP_MPI_IS_OPENMPI)
    set(GHP_MPI_KIND openmpi)
  endif()
  if(GHP_MPI AND NOT GHP_MPI STREQUAL GHP_MPI_KIND)
    set(MPI_C_FOUND FALSE)
  endif()
endif()

# Whether a launcher is of the kind that the library is: a program under the other's is N programs of one worker.
function(ghp_mpi_launcher_fits launcher result)
  execute_process(COMMAND "${launcher}" --version OUTPUT_VARIABLE says ERROR_VARIABLE says RESULT_VARIABLE code)
  set(fits FALSE)
  if((GHP_MPI_KIND STREQUAL openmpi AND says MATCHES "Open MPI|OpenRTE") OR
     (GHP_MPI_KIND STREQUAL mpich AND says MATCHES "HYDRA|Hydra|MPICH"))
    set(fits TRUE)
  endif()
  set(${result} ${fits} PARENT_SCOPE)
endfunction()

set(GHP_MPIRUN mpirun)
if(MPI_C_FOUND)
  ghp_mpi_launcher_fits("${MPIEXEC_EXECUTABLE}" fits)
  if(NOT fits) # mpicc is one MPI, mpirun another
    unset(GHP_MPIEXEC_OF_KIND CACHE)
    find_program(GHP_MPIEXEC_OF_KIND mpirun.${GHP_MPI_KIND})
    if(NOT GHP_MPIEXEC_OF_KIND)
      message(FATAL_ERROR "ghp is built against ${GHP_MPI_KIND}, and '${MPIEXEC_EXECUTABLE}' is another MPI's; give "
                          "-DMPIEXEC_EXECUTABLE=, or the other MPI by -DGHP_MPI=")
    endif()
    set(MPIEXEC_EXECUTABLE "${GHP_MPIEXEC_OF_KIND}" CACHE FILEPATH "what starts MPI's programs" FORCE)
  endif()
  if(GHP_MPI_KIND STREQUAL openmpi)
    set(GHP_MPI_SHARES "--oversubscribe --bind-to none")
    set(GHP_MPI_SRUN pmix)
  else()
    set(GHP_MPI_SHARES "-bind-to none")
    set(GHP_MPI_SRUN pmi2)
    if(CMAKE_C_COMPILER_ID STREQUAL GNU) # its MPI_STATUSES_IGNORE is an array of no length to GCC
      target_compile_options(MPI::MPI_C INTERFACE -Wno-stringop-overflow)
    endif()
  endif()
  find_program(GHP_MPIRUN_PLAIN mpirun)
  mark_as_advanced(GHP_MPIRUN_PLAIN GHP_MPIEXEC_OF_KIND)
  set(fits FALSE)
  if(GHP_MPIRUN_PLAIN)
    ghp_mpi_launcher_fits("${GHP_MPIRUN_PLAIN}" fits)
  endif()
  if(NOT fits)
    get_filename_component(GHP_MPIRUN "${MPIEXEC_EXECUTABLE}" NAME)
  endif()
  message(STATUS "MPI: ${GHP_MPI_KIND}, started by ${GHP_MPIRUN}")
endif()

# ghp_mpi_launch(<result> <ranks> <limit>): words that start `ranks` ranks on this machine, whatever its cores, and end
# them after `limit` seconds.
function(ghp_mpi_launch result ranks limit)
  string(REPLACE " " ";" words "${GHP_MPI_SHARES}")
  if(GHP_MPI_KIND STREQUAL openmpi)
    set(words "${MPIEXEC_EXECUTABLE}" ${words} --timeout ${limit} --report-state-on-timeout)
  else() # hydra takes its limit from the environment
    set(words "${CMAKE_COMMAND}" -E env MPIEXEC_TIMEOUT=${limit} "${MPIEXEC_EXECUTABLE}" ${words})
  endif()
  set(${result} ${words} -n ${ranks} PARENT_SCOPE)
endfunction()
