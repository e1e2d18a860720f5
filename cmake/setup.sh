# cmake/setup.sh - what ./demo and ./check share: install the packages that are missing, and build.
# Sourced by bash from the source tree's root; not run by itself.

# Debian's packages: to build and run, to test, and to check with clang, too.
GHP_PACKAGES="gcc libc6-dev make cmake ninja-build pkg-config libopenmpi-dev openmpi-bin libhwloc-dev libglpk-dev
    libdnnl-dev libjansson-dev libxxhash-dev librandom123-dev zlib1g-dev libonnx-dev libprotobuf-c-dev
    protobuf-c-compiler libjpeg62-turbo-dev libpng-dev"
GHP_TEST_PACKAGES="coinor-cbc glpk-utils python3-jsonschema libxml2-utils groff-base libonnx-testdata"
GHP_MPICH_PACKAGES="libmpich-dev mpich" # next to Open MPI, which stays what mpicc and mpirun are
GHP_SLURM_PACKAGES="slurmctld slurmd slurm-client munge"
GHP_CLANG_PACKAGES="clang libclang-rt-dev libomp-dev"
GHP_PYTHON_PACKAGES="python3 python3-venv" # tests/requirements.txt has what PyPI gives

# Everything of MPI that a test machine needs: root in containers, more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMP_WAIT_POLICY=passive

say() {
    printf '== %s\n' "$*" >&2
}

# Prints the command, then ends the script where it fails.
must() {
    say "$*"
    "$@" || {
        say "failed: $*"
        exit 1
    }
}

# Runs a command as root: directly, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        say "cannot install packages without root or sudo; ask an administrator to run: $*"
        return 1
    fi
}

# install_packages NAME...: installs those that are missing; runs nothing where all are there.
install_packages() {
    local name missing=()
    for name; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] ||
            missing+=("$name")
    done
    [ "${#missing[@]}" -eq 0 ] && return
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update -q </dev/null >&2 || say "apt-get update failed; trying with the old lists"
    # env: sudo does not pass the variable on
    must as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null >&2
}

# The virtual environment with the packages of tests/requirements.txt, kept between runs and shared by source trees.
ghp_python_environment=${XDG_CACHE_HOME:-$HOME/.cache}/ghp/python-$(sha256sum <tests/requirements.txt | cut -c1-12)

# install_python: makes that environment if it is not there; needs about 6 GB, as PyPI's PyTorch carries CUDA.
# A build of PyTorch for CPUs alone is on no index that pip asks by default.
install_python() {
    local folder=$ghp_python_environment
    [ -e "$folder/complete" ] && return
    say "installing PyTorch and the other packages of tests/requirements.txt into $folder"
    rm -rf "$folder"
    must mkdir -p "${folder%/*}"
    must /usr/bin/python3 -m venv "$folder" >&2
    must "$folder/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt </dev/null >&2
    must touch "$folder/complete"
}

# build FOLDER [-DOPTION=VALUE...] [--target NAME...]: configures (with ninja in a new folder) and builds.
build() {
    local folder=$1 generator=() options=()
    shift
    while [ $# -gt 0 ] && [ "$1" != --target ]; do
        options+=("$1")
        shift
    done
    [ -f "$folder/CMakeCache.txt" ] || generator=(-G Ninja)
    must cmake -S . -B "$folder" "${generator[@]}" "${options[@]}" >&2
    must cmake --build "$folder" --parallel "$(nproc)" "$@" >&2
}
