#!/usr/bin/env bash
# ghp-test: timeout=120 needs=ghp-run,cmake,ninja,mpicc.openmpi,mpicc.mpich,mpirun.openmpi,mpirun.mpich
# tests/tools/together/test_mpi_choice.sh - a build folder takes another MPI by -DGHP_MPI= whenever it is told, and
# keeps nothing of the one before: library, launcher and the launcher's options are of one kind.
set -u
. "$(dirname "$0")/../scratch.sh"
cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(choice C)
include($GHP_SOURCE/cmake/GhpMpi.cmake)
get_target_property(folders MPI::MPI_C INTERFACE_INCLUDE_DIRECTORIES)
message(STATUS "all: \${GHP_MPI_KIND} \${GHP_MPI_SRUN} \${folders} \${MPI_C_LIBRARIES} \${MPIEXEC_EXECUTABLE}")
END
# chosen KIND SRUN [OPTION]: what the folder is configured for
chosen() {
    local other=openmpi all
    [ "$1" = openmpi ] && other=mpich
    cmake -G Ninja -S . -B build "${@:3}" >out 2>&1 || { fail "${3:-}: $(tail -n 5 out)"; return; }
    all=$(sed -n 's/^-- all: //p' out)
    [[ $all == "$1 $2 "*$1* ]] || fail "${3:-as before}: is for $all"
    [[ $all == *$other* ]] && fail "${3:-as before}: keeps $other: $all"
}
chosen openmpi pmix -DGHP_MPI=openmpi
chosen mpich pmi2 -DGHP_MPI=mpich
chosen mpich pmi2
chosen openmpi pmix -DGHP_MPI=openmpi
cmake -S . -B build -DGHP_MPI=lam >out 2>&1 && fail "an MPI of another name is taken"
grep -q "GHP_MPI is 'lam'; give openmpi, mpich" out || fail "another name: $(tail -n 3 out)"
exit $((failures > 0))
