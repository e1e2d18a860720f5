# tests/gpu/libraries.sh - sourced by the scripts that train on GPUs: finds NVIDIA's libraries and GPUs, and starts
# programs under MPI. PYTHON names the Python whose packages are looked into (python3), LIMIT the seconds that a start
# may take (300).

# LD_LIBRARY_PATH for PyTorch, before folders are added here
export TORCH_LIBRARIES=${TORCH_LIBRARIES-${LD_LIBRARY_PATH:-}}

# Open MPI refuses root unless it is told twice.
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Folders of Python's packages that hold a library which the loader does not find, with colons between.
python_libraries() {
    "${PYTHON:-python3}" - 2>/dev/null <<'PY'
import ctypes, glob, importlib.util, os

spec = importlib.util.find_spec("nvidia")
folders = []
for root in (spec.submodule_search_locations or []) if spec else []:
    for path in sorted(glob.glob(os.path.join(root, "*", "lib", "lib*.so.*"))):
        folder, file = os.path.split(path)
        if folder in folders or not file.startswith(("libcudnn.so.", "libcublasLt.so.", "libnccl.so.")):
            continue
        try:
            ctypes.CDLL(file)
        except OSError:
            folders.append(folder)
print(":".join(folders))
PY
}

# After all other folders, so that nothing found before is found elsewhere now.
use_python_libraries() {
    local folders
    folders=$(python_libraries)
    [ -z "$folders" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folders"
}
use_python_libraries

# GPUs that nvidia-smi lists and this process may use; 0 where it is not there
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
    gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
else
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
fi

# no_gpu FILE: a tool says there that this machine has no GPU (or its build no backend for one), and nvidia-smi lists
# none
no_gpu() {
    ! nvidia-smi -L 2>/dev/null | grep -q '^GPU ' &&
        grep -qE "has no GPU that CUDA can use|no NVIDIA driver was found|has no backend 'cuda'" "$1"
}

# limited SECONDS COMMAND...: ended after that time, with 124; in the foreground, so that an interrupt ends it, too
limited() {
    local seconds=$1 code=0
    shift
    timeout --foreground -k 10 "$seconds" "$@" </dev/null || code=$?
    [ $code = 137 ] && code=124 # it had to be killed
    [ $code != 124 ] || echo "time was up after $seconds s: $1" >&2
    return $code
}

# mpi N COMMAND...: N workers, on whatever cores; with a limit, as bringing NCCL together has none of its own
mpi() {
    limited "${LIMIT:-300}" mpirun --oversubscribe --bind-to none -n "$@"
}

# mpi_apart N COMMAND...: the same; where workers share a GPU, NCCL takes each for a host of its own, or it would refuse
mpi_apart() {
    if [ "$1" -le "$gpus" ]; then
        mpi "$@"
    else
        # shellcheck disable=SC2016
        mpi "$1" bash -c 'NCCL_HOSTID=ghp-$OMPI_COMM_WORLD_RANK exec "$@"' apart "${@:2}"
    fi
}

# why FILE: the last lines before mpirun speaks of the end, where a tool says what failed
why() {
    sed '/^-----/,$d' "$1" | grep . | tail -n 3
    grep '^time was up' "$1" | tail -n 1
}
