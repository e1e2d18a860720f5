# examples/setup.sh - sourced by each run.sh. It puts ghp's tools on the path and enters the working folder: the script's
# argument, or NAME.out in the folder where you are. It sets `here` to the example's folder, `models` to the folder of
# ghp's networks and `docs` to that of its pages.
# shellcheck shell=bash disable=SC2034
set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(basename "$here").out}
tools=${GHP_BIN:-$here/../../build/bin}
[ ! -d "$tools" ] || PATH=$(cd "$tools" && pwd):$PATH
export PATH
command -v ghp-plan >/dev/null || { echo "ghp-plan is not on the path; build ghp first: ./demo" >&2; exit 1; }
models=$here/../../models
[ -d "$models" ] || models=$(dirname "$(command -v ghp-plan)")/../share/ghp/models
docs=$here/../../docs
mkdir -p "$work" && cd "$work"

# without WHAT: says why an example cannot run here, and ends with the exit code that tests take as "skipped"
without() {
    echo "skipped: $1" >&2
    exit 77
}
