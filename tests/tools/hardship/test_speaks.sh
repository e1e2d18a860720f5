#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/hardship/test_speaks.sh - one of several workers speaks, whatever the launcher says: MPI's rank 0 does.
# Open MPI's variable with the rank is taken away, as under another launcher, or names another rank. Without a launcher
# help, version and usage errors need no MPI. In short tests executor/platform/launch_environment stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 8 -o plan.json >out 2>&1 ||
    { cat out >&2; exit 1; }

# once CODE FILE TEXT COMMAND...: two workers exit with CODE and say TEXT once, in FILE (out or err)
once() {
    local code=$1 file=$2 text=$3 got=0
    timeout 60 mpirun --oversubscribe --bind-to none -n 2 "${as[@]}" "${@:4}" >out 2>err </dev/null || got=$?
    [ $got = "$code" ] || fail "${as[*]} ${*:4}: exit $got, not $code: $(head -5 err)"
    [ "$(grep -c -e "$text" $file)" = 1 ] || fail "${as[*]} ${*:4}: '$text' is said $(grep -c -e "$text" $file) times"
}

for variable in -uOMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_RANK=1; do
    as=(env $variable)
    for tool in ghp-run ghp-profile; do
        once 0 out "^$tool " "$GHP_BIN/$tool" --version
        once 0 out '^usage:' "$GHP_BIN/$tool" --help
        once 2 err "^$tool: .*--nonsense" "$GHP_BIN/$tool" --nonsense
        once 2 err "^$tool: " "$GHP_BIN/$tool"
    done
done
as=(env -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_LOCAL_RANK -u OMPI_COMM_WORLD_LOCAL_SIZE)
once 0 err '^ghp-run: .*numerics' "$GHP_BIN/ghp-run" plan.json --steps 2
once 0 out 'images/s' "$GHP_BIN/ghp-run" plan.json --steps 2
once 1 err '^ghp-run: ' "$GHP_BIN/ghp-run" nosuch.json
once 1 err '^ghp-profile: ' "$GHP_BIN/ghp-profile" --model nosuch.json --batch 8 -o measured.json

# no MPI where nobody launched: it would fail here
alone() { OMPI_MCA_pml=nosuch "$@" >out 2>err </dev/null; }
for tool in ghp-run ghp-profile; do
    alone "$GHP_BIN/$tool" --help && grep -q '^usage:' out || fail "$tool --help without mpirun: $(head -3 err)"
    alone "$GHP_BIN/$tool" --version && grep -q "^$tool " out || fail "$tool --version without mpirun: $(head -3 err)"
    alone "$GHP_BIN/$tool" --nonsense
    [ $? = 2 ] && grep -q -e '--nonsense' err || fail "$tool --nonsense without mpirun: $(head -3 err)"
done
exit $((failures > 0))
