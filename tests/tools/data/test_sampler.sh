#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes needs=ghp-plan,ghp-run,ghp-profile
# tests/tools/data/test_sampler.sh - training by importance sampling: one worker and three learn, a run repeats bit for
# bit, with a sharded update to the same bits; a stopped run continues to them, in its first epoch and after it; samples
# that are alike train as by uniform sampling; what it is refused with. In short tests executor/train/sampling and
# executor/data/sampler stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"

run() { ranks "$1" run "${@:2}" --json; }
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" out; }
plan() { # plan MODEL WORKERS BATCH FILE OPTION...
    analytic "$1" profile.json F=1e10,bandwidth=1e9,latency=1e-6
    "$GHP_BIN/ghp-plan" "$1" --profile profile.json --workers "$2" --batch "$3" --strategy data -o "${@:4}" \
        >/dev/null 2>err || fail "planning $4: $(cat err)"
}

bytes() { perl -ne 'print pack "H*", $_' >"$1"; } # bytes FILE: of hexadecimal digits

# 60 pictures of 4 x 4 pixels in two classes, some of them much brighter than others
mkdir two
awk 'BEGIN { srand(1)
    printf "000008030000003c" "0000000400000004"
    for (s = 0; s < 60; s++) for (i = 0; i < 16; i++)
        printf "%02x", int((s % 10 ? 1 : 12) * ((i % 2 == s % 2 ? 12 : 0) + 8 * rand())) }' |
    bytes two/train-images-idx3-ubyte
awk 'BEGIN { printf "000008010000003c"; for (s = 0; s < 60; s++) printf "%02x", s % 2 }' |
    bytes two/train-labels-idx1-ubyte
for part in images-idx3 labels-idx1; do cp two/train-$part-ubyte two/t10k-$part-ubyte; done
cat >model.json <<'M'
{"format": "ghp.model/1", "name": "two", "input": {"channels": 1, "height": 4, "width": 4},
 "layers": [{"name": "flatten", "op": "flatten"}, {"name": "fc", "op": "linear", "features": 2},
            {"name": "loss", "op": "softmax_cross_entropy"}]}
M
how=(--normalise none --momentum 0 --lr 0.5 --precision double --numerics exact)
train=(--data "idx:$PWD/two" "${how[@]}")

plan model.json 1 1 one.json
plan model.json 3 3 three.json
plan model.json 3 3 sharded.json --sync sharded
for plan in one three sharded; do
    workers=3
    [ $plan = one ] && workers=1
    run $workers $plan.json "${train[@]}" --sampler srg --epochs 20 || fail "$plan: $(tail -1 err)"
    accuracy=$(value test_accuracy)
    awk -v a="$accuracy" 'BEGIN { exit !(a > 0.95) }' || fail "$plan: accuracy '$accuracy'"
    mv out $plan.out
    run $workers $plan.json "${train[@]}" --sampler srg --epochs 20 || fail "$plan, again: $(tail -1 err)"
    [ "$(grep final_loss out)" = "$(grep final_loss $plan.out)" ] || fail "$plan: another loss the second time"
done

# a checkpoint has the norms: a stopped run continues as if it had not been, in its first epoch and after it
for case in one:1:70 three:3:13; do
    IFS=: read -r plan workers stop <<<"$case"
    more=("${train[@]}" --sampler srg --checkpoint kept)
    rm -rf kept
    run $workers $plan.json "${more[@]}" --steps $((stop + 30)) || fail "$plan: $(tail -1 err)"
    hash=$(value weights_hash)
    rm -rf kept
    run $workers $plan.json "${more[@]}" --steps $stop || fail "$plan, $stop steps: $(tail -1 err)"
    run $workers $plan.json "${more[@]}" --steps $((stop + 30)) --resume || fail "$plan, resumed: $(tail -1 err)"
    [ -n "$hash" ] && [ "$(value weights_hash)" = "$hash" ] || fail "$plan: after $stop steps it goes on otherwise"
done
[ "$(grep final_loss three.out)" = "$(grep final_loss sharded.out)" ] || fail "a sharded update samples otherwise"

# gradients that are the same for all samples: the way is that of uniform sampling, but for norms that were measured
# earlier and are longer
awk 'BEGIN { printf "0000080300000004" "0000000400000004"; for (i = 0; i < 64; i++) printf "40" }' | bytes same-images
awk 'BEGIN { printf "0000080100000004" "00000000" }' | bytes same-labels
mkdir same
for set in train t10k; do cp same-images same/$set-images-idx3-ubyte; cp same-labels same/$set-labels-idx1-ubyte; done
for n in one:1 three:3; do
    for sampler in srg uniform; do
        run ${n#*:} ${n%:*}.json "${how[@]}" --data "idx:$PWD/same" --sampler $sampler --steps 40 ||
            fail "$(tail -1 err)"
        eval "$sampler=\$(value final_loss)"
    done
    awk -v a="$srg" -v b="$uniform" 'BEGIN { d = a / b - 1; exit !(d < 0.1 && d > -0.1) }' ||
        fail "${n%:*}: samples that are alike train otherwise by srg: loss $srg, by uniform $uniform"
done

# ---- refusals ----
refused() { # refused CODE TEXT RANKS PLAN OPTION...
    run "$3" "$4" "${train[@]}" --steps 1 "${@:5}"
    [ $? = "$1" ] || fail "${*:4}: does not exit $1"
    grep -qe "$2" err || fail "${*:4} lacks '$2': $(tail -1 err)"
}
plan model.json 2 4 more.json
plan model.json 2 2 local.json --sync local:2
refused 1 'plan with --batch 2' 2 more.json --sampler srg
refused 1 "by 'local' they are not; plan with --sync allreduce" 2 local.json --sampler srg
refused 1 'leave one of them out' 1 one.json --sampler srg --ignore-label 1
refused 2 "'often'" 1 one.json --sampler often
run 1 one.json "${train[@]}" --verify 2 --sampler srg
[ $? = 2 ] && grep -q 'nothing to compare with; leave it out' err || fail "--verify by srg: $(tail -1 err)"

[ "$failures" = 0 ] && echo "samples are drawn by the length of their gradients"
exit $((failures > 0))
