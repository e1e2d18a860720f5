#!/usr/bin/env bash
# ghp-test: timeout=300 label=emulated
# tests/emulated/test_registered.sh - --reduce-multiprocessors: NCCL's reductions and the products of backward passes get
# their numbers; arenas are NCCL's memory, as many bytes as planned, which is registered and freed again; weights are the
# same bits as without. Older versions of NCCL know such memory otherwise, or have none. If one rank cannot register,
# none does. A registration that hangs is named, and so is what the option is not for.
set -u
. "$(dirname "$0")/../tools/scratch.sh"
cat >small.json <<'JSON'
{"format": "ghp.model/1", "name": "small", "input": {"channels": 8, "height": 1, "width": 1},
 "layers": [{"name": "flat", "op": "flatten"}, {"name": "fc0", "op": "linear", "features": 8},
            {"name": "fc", "op": "linear", "features": 4}, {"name": "loss", "op": "softmax_cross_entropy"}]}
JSON
analytic small.json profile.json
for n in 1 2; do
    "$GHP_BIN/ghp-plan" small.json --profile profile.json --workers $n --batch 8 --strategy data -o plan$n.json \
        >out 2>&1 || fail "planning: $(cat out)"
done
libraries=$LD_LIBRARY_PATH

# on WORKERS NCCL OPTION...: a run with what the libraries tell in err; NCCL is a version, or "new"
on() {
    GHP_EMULATED_TELL=1 GHP_EMULATED=eager GHP_EMULATED_GPUS=$1 \
        LD_LIBRARY_PATH="$(dirname "$GHP_EMULATED_BIN")/nccl-$2:$libraries" \
        mpirun --oversubscribe --bind-to none -n "$1" "$GHP_EMULATED_BIN/ghp-run" "plan$1.json" --backend cuda \
        --steps 4 --json "${@:3}" >out 2>err </dev/null
}

# told TIMES PATTERN: by both workers together
told() {
    local n
    n=$(grep -c "^emulated $2" err)
    [ "$n" -eq "$1" ] || fail "$what: '$2' $n times in place of $1: $(cat err)"
}

weights() { grep '"weights_hash"' out; }

what="without the option"
on 2 new || fail "$what: $(cat err)"
plain=$(weights)
told 0 "NCCL: "
told 0 "cuBLASLt: "
for version in new 2.19 2.18; do
    what="NCCL $version"
    on 2 $version --reduce-multiprocessors 4 || fail "$what: $(cat err)"
    [ "$plain" = "$(weights)" ] || fail "$what: other bits than without the option"
    told 2 "NCCL: 4 blocks for 2 ranks"
    [ "$(grep -c '^emulated cuBLASLt: 128 multiprocessors' err)" -gt 0 ] || fail "$what: products take all"
    [ $version = 2.18 ] || bytes=$(number peak_bytes out)
    case $version in
    new) how=", symmetric" ;;
    2.19) how=", local" ;;
    2.18)
        told 0 "NCCL: .* allocated"
        grep -q 'this NCCL registers no memory' err || fail "$what: says nothing"
        continue
        ;;
    esac
    told 2 "NCCL: $bytes bytes allocated"
    told 2 "NCCL: $bytes bytes registered$how"
    told 2 "NCCL: deregistered"
    told 2 "NCCL: freed"
done

what="registration fails"
GHP_EMULATED_NCCL=register on 2 new --reduce-multiprocessors 4 || fail "$what: $(cat err)"
[ "$plain" = "$(weights)" ] || fail "$what: other bits than without the option"
grep -q 'NCCL cannot register memory on worker 0 (an error): reductions copy' err || fail "$what: $(cat err)"
told 2 "NCCL: freed"

# refused WORKERS PATTERN OPTION...
refused() {
    what="refused: $2"
    on "$1" new "${@:3}" && fail "$what: exit 0"
    grep -qE -- "$2" err || fail "$what: $(cat err)"
}

GHP_EMULATED_NCCL=register:1 refused 2 "in 'registering memory with NCCL': NCCL does not return" --watchdog 3 \
    --reduce-multiprocessors 4
refused 2 'MPI carries them; leave it out' --reduce-multiprocessors 4 --transport mpi
refused 1 'one worker reduces nothing; leave it out' --reduce-multiprocessors 4
[ $failures -eq 0 ]
