#!/usr/bin/env bash
# ghp-test: timeout=240 needs=ghp-expect
# tests/tools/plan/test_expect.sh - ghp-expect: a slow link makes two nodes slower than one and it says from which rate on
# they pay, a measured rate is judged, a profile takes a machine's place, and what cannot be read is refused with what
# to do.
set -u
. "$(dirname "$0")/../scratch.sh"
expect=("$GHP_BIN/ghp-expect" gpt2-124m@256 --machine a100-sxm-40-8 --batch 128 --precision bf16)

"${expect[@]}" --nodes 1 --json >one || fail "one node: exit $?"
"${expect[@]}" --nodes 2 --network eth-10 --json >slow || fail "two nodes at 10 Gbit/s: exit $?"
"${expect[@]}" --nodes 2 --network ib-200x8 --json >quick || fail "two nodes at 1600 Gbit/s: exit $?"
a=$(number step_s one) b=$(number step_s slow) c=$(number step_s quick)
awk -v a="$a" -v b="$b" -v c="$c" 'BEGIN { exit !(c < a && a < b) }' || fail "steps $a on one node, $b and $c on two"
from=$(number second_node_from_Bps slow)
awk -v f="$from" 'BEGIN { exit !(1.25e9 < f && f < 2e11) }' || fail "two nodes pay from $from bytes/s on"
for file in one slow quick; do
    awk -v l="$(number low_s $file)" -v s="$(number step_s $file)" -v m="$(number high_s $file)" \
        -v u="$(number flop_utilisation $file)" 'BEGIN { exit !(0 < l && l < s && s < m && 0 < u && u < 1) }' ||
        fail "no range around the step: $(cat $file)"
done
awk -v l="$(number low_s one)" -v h="$(number high_s one)" -v s="$a" \
    'BEGIN { exit !(l / s < 0.631 && l / s > 0.629 && h / s > 1.729 && h / s < 1.731) }' || fail "another range: $(cat one)"
"${expect[@]}" --nodes 2 --network eth-10 >out || fail "no text"
grep -q '^faster by   ' out || fail "no change is named: $(cat out)"

# what is suggested without baselines is the plan that --plan ghp finds with them
"${expect[@]}" --nodes 2 --network eth-10 --plan ghp --json >own || fail "ghp's own plan: exit $?"
holds own "min(abs(c['gain_s'] - json.load(open('slow'))['step_s'] + o['step_s']) for c in json.load(open('slow'))['changes']
    if c['change'].startswith('split layers')) <= 0.01 * o['step_s'] and not any(
    'compute in' in c['change'] for c in o['changes'])" || fail "another plan is suggested: $(cat slow)"
grep -q second_node own && fail "ghp's own plan has data parallelism's second node: $(cat own)"

# the same measured step in three units; three times as long
for measured in "$(awk -v s="$a" 'BEGIN { print 1e3 * s "ms" }')" "$(awk -v s="$a" 'BEGIN { print 128 / s " samples/s" }')" \
    "$(awk -v s="$a" 'BEGIN { print 0.128 * 256 / s "k tokens/s" }')" "$(awk -v s="$a" 'BEGIN { print 1 / s "it/s" }')"; do
    "${expect[@]}" --measured "$measured" | grep -q '^measured .* 1.00 of the expected step: normal' ||
        fail "'$measured' is not normal"
done
"${expect[@]}" --measured "$(awk -v s="$a" 'BEGIN { print 3 * s "s" }')" >out
grep -q 'slower than' out || fail "three times as long is not slow: $(cat out)"
grep -q '^look first' out && fail "three times as long is taken for one of eight workers' batch: $(cat out)"
# eight times as long as with all workers, and more FLOPs than there are
"${expect[@]}" --measured "$(awk -v s="$a" 'BEGIN { print 8 * s "s" }')" | grep -q '^look first .* all 8 together' ||
    fail "one worker's rate is not seen"
"${expect[@]}" --measured "$(awk -v s="$a" 'BEGIN { print s / 8 "s" }')" >out
grep -qE '^measured .* [1-9][0-9]{2}\.[0-9] % MFU, .*more than the peak FLOPs allow' out || fail "an impossible rate: $(cat out)"

"${expect[@]}" --nodes 1,2,3 --network eth-100 >table || fail "several nodes: exit $?"
[ "$(grep -c '^ *[123] ' table)" = 3 ] || fail "no table of three rows: $(cat table)"
grep -q '^# 3 node(s): .* 24 replicas' table || fail "why three nodes cannot be is not said: $(cat table)"
"${expect[@]}" --nodes 1,2,3 --network eth-10 --json >several || fail "several nodes, JSON: exit $?"
holds several "[p['feasible'] for p in o['points']] == [True, True, False] and all(
    p[k] == json.load(open(f))[k] for p, f in zip(o['points'], ('one', 'slow'))
    for k in ('step_s', 'low_s', 'high_s', 'workers', 'flop_utilisation', 'peak_bytes'))" || fail "other points"
denied 1 '48 replicas' "${expect[@]}" --nodes 3,6 --network eth-10 --json
# some of a node's GPUs, and a link of no name
"${expect[@]}" --gpus 1 --json >few || fail "one GPU: exit $?"
awk -v a="$a" -v f="$(number step_s few)" -v w="$(number workers few)" -v u="$(number flop_utilisation few)" \
    'BEGIN { exit !(w == 1 && f > 6 * a && f < 8 * a && u < 0.5) }' || fail "one GPU: $(cat few)"
"${expect[@]}" --gpus 2 --nodes 2 --network '100 Mbit/s' --json >few || fail "two GPUs a node: exit $?"
[ "$(number workers few)" = 4 ] || fail "not 4 workers: $(cat few)"
denied 2 "has 8 GPUs; give --gpus as many or fewer" "${expect[@]}" --gpus 9
denied 2 "unknown option '--workers'; .*--gpus G.* --nodes H" "${expect[@]}" --workers 2
denied 2 "'xeon-8180-2' has 0 GPUs; leave --gpus out" "$GHP_BIN/ghp-expect" gpt2-124m --machine xeon-8180-2 --batch 8 --gpus 1
# fp16: at bf16's figure, or at one of its own where there is no bf16
"${expect[@]/bf16/fp16}" --json >half || fail "fp16: exit $?"
holds half "o['step_s'] == $a and o['precision'] == 'fp16'" || fail "fp16 is not as bf16: $(cat half)"
volta=("$GHP_BIN/ghp-expect" gpt2-124m@256 --machine v100-sxm-32-8 --batch 128)
"${volta[@]}" --precision fp16 --json >half || fail "fp16 on a V100: exit $?"
"${volta[@]}" --json >single || fail "float on a V100: exit $?"
holds single "abs([c['gain_s'] for c in o['changes'] if c['change'] == 'compute in fp16'][0] - o['step_s'] + $(number step_s half)) \
    < 1e-9" || fail "fp16 is not suggested: $(cat single)"
holds half "0.1 < o['flop_utilisation'] < 0.5 and not any('compute in' in c['change'] for c in o['changes'])" ||
    fail "fp16 on a V100: $(cat half)"
denied 2 "computes in fp16, and not in bf16; give --precision fp16" "${volta[@]}" --precision bf16
denied 2 'computes in neither fp16 nor bf16' "$GHP_BIN/ghp-expect" gpt2-124m --machine xeon-8180-2 --batch 8 --precision fp16
# batch norms: their exchanges do not count as computing, and local statistics are named as what they gain
norms=("$GHP_BIN/ghp-expect" "$GHP_SOURCE/models/resnet18.json" --machine xeon-8180-2 --nodes 4 --network eth-1 --batch 32)
"${norms[@]}" --json >norms || fail "batch norms: exit $?"
holds norms "abs(o['compute_s'] + o['reshard_s'] + o['exposed_s'] - o['step_s']) < 1e-9 < o['reshard_s'] and any(
        '--batch-norm local' in c['change'] and c['gain_s'] > 0 for c in o['changes'])" || fail "exchanges of batch norms"
"${norms[@]}" --batch-norm local --json >local || fail "local statistics: exit $?"
holds local "o['reshard_s'] == 0 and not any('--batch-norm' in c['change'] for c in o['changes'])" || fail "local statistics"
# frozen layers compute no gradients: no more of the peak is used than the rule of thumb lets them
"${expect[@]}" --freeze '*' --freeze-except 'h.11*' --json >frozen || fail "frozen layers: exit $?"
holds frozen "o['flop_utilisation'] < 0.5" || fail "frozen layers count as trained: $(cat frozen)"
# a step of microseconds, and what gains some of them
"$GHP_BIN/ghp-expect" "$GHP_SOURCE/models/lenet5.json" --machine h100-sxm-8 --batch 8 >out || fail "a short step: exit $?"
grep -q ' 0\.0 ms less' out && fail "a gain of 0.0 ms: $(cat out)"
grep -qE '^step +0\.0[0-9]{2,} ms; ' out || fail "a step of one digit: $(cat out)"
# what does not fit says what to try that is not there yet
large=("$GHP_BIN/ghp-expect" gpt2-1558m --machine a10-4 --batch 64 --precision bf16)
"${large[@]}" >out && grep -q 'try --shard pass, --recompute, a smaller' out || fail "no remedy: $(cat out)"
"${large[@]/64/256}" --shard pass --recompute >out
grep -q 'try a smaller --batch, or more --nodes' out || fail "remedies that are there already: $(cat out)"
"${large[@]}" --nodes 1,2 >out
[ "$(grep -c '^# [12] node(s): .* so this cannot run' out)" = 2 ] || fail "the table hides what does not fit: $(cat out)"
"$GHP_BIN/ghp-expect" gpt2-1558m --machine xeon-8180-2 --batch 2 | grep -qE '^rate +0\.[0-9]{2,3} samples/s' ||
    fail "a rate of less than one sample a second has one digit"
# a batch that hides any link, and one that none helps
"$GHP_BIN/ghp-expect" "$GHP_SOURCE/models/lenet5.json" --machine xeon-8180-2 --batch 1048576 >out || fail "a large batch"
grep -q '^two nodes .* even at 0.008 Gbit/s, the slowest link tried$' out || fail "the end of a search is a rate: $(cat out)"
# degrees, sharded parameters and recomputation: less memory, and more seconds where blocks are computed again
"${expect[@]}" --shard pass --recompute --json >fsdp || fail "sharded and recomputed: exit $?"
awk -v m="$(number peak_bytes one)" -v f="$(number peak_bytes fsdp)" -v s="$a" -v t="$(number step_s fsdp)" \
    'BEGIN { exit !(f < 0.8 * m && s < t && t < 2 * s) }' || fail "sharded and recomputed: $(cat fsdp) beside $(cat one)"
# sharded is what each stage can: not the table that two stages share, and nothing where a stage has one replica
staged=("${expect[@]}" --pipeline 2 --micro-batches 4 --json)
"${staged[@]}" >whole && "${staged[@]}" --shard pass >parts || fail "sharded in stages: exit $?"
awk -v w="$(number peak_bytes whole)" -v p="$(number peak_bytes parts)" 'BEGIN { exit !(p < w) }' ||
    fail "sharded in stages: $(cat parts) beside $(cat whole)"
"${staged[@]}" --tensor 4 >whole && "${staged[@]}" --tensor 4 --shard pass >parts || fail "one replica a stage: exit $?"
[ "$(number step_s whole)" = "$(number step_s parts)" ] || fail "one replica a stage is sharded: $(cat parts)"
"${expect[@]}" --tensor 2 --pipeline 2 --micro-batches 4 >out || fail "degrees: exit $?"
grep -q 'plan data, tensor 2, pipeline 2, 4 micro-batches$' out || fail "degrees are not named: $(head -1 out)"
# a few micro-batches: stages wait, not gradients; over PCIe tensor parallelism's exchanges bind
"${expect[@]}" --pipeline 4 | grep -q '^binds .* stages that wait for each other' || fail "no word of stages that wait"
"$GHP_BIN/ghp-expect" gpt2-124m@256 --machine h100-pcie-8 --batch 128 --precision bf16 --tensor 4 --json >tensor ||
    fail "tensor parallelism over PCIe: exit $?"
awk -v l="$(number links_s tensor)" -v s="$(number step_s tensor)" 'BEGIN { exit !(l > 0.5 * s && l < s) }' ||
    fail "exchanges do not bind: $(cat tensor)"
denied 1 'a batch of 4 does not come out on 8 replicas; use a multiple of 8' "${expect[@]/128/4}"
denied 1 'does not divide the 12 heads' "${expect[@]}" --tensor 8
denied 1 '128 in 32 micro-batches .* one sample to each of 8 workers.*; use 256 or more, or fewer micro-batches' \
    "${expect[@]}" --micro-batches 32
# one sample for eight workers that divide each layer, which all of them hold
divided=("$GHP_BIN/ghp-expect" gpt2-355m@256 --machine h100-sxm-8 --tensor 8 --json)
denied 1 'use 8 or more, or --micro-batches 4, each of one sample for 8 workers' "${divided[@]}" --batch 4
"${divided[@]}" --batch 4 --micro-batches 4 >few || fail "a sample for eight workers: exit $?"
"${divided[@]}" --batch 32 --micro-batches 4 >more || fail "a sample for each worker: exit $?"
awk -v f="$(number step_s few)" -v m="$(number step_s more)" -v a="$(number peak_bytes few)" -v b="$(number peak_bytes more)" \
    'BEGIN { exit !(m / 8 < f && f < m && a < b) }' || fail "a sample for eight workers: $(cat few) beside $(cat more)"
denied 1 'not whole replicas of 1 x 5' "${expect[@]}" --pipeline 5
denied 1 'has no blocks of a transformer to recompute' "$GHP_BIN/ghp-expect" "$GHP_SOURCE/models/alexnet.json" \
    --machine h100-sxm-8 --batch 64 --recompute
denied 2 'leave --tensor, --pipeline, --shard and --recompute out' "${expect[@]}" --tensor 2 --plan ghp

if full; then
    # a profile in place of a machine: its workers, precision and range; further nodes over a link that slows
    profile=$GHP_SOURCE/tests/fuzz/seeds/profile/measured.json
    python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1]))["model"], open("net.json", "w"))' \
        "$GHP_SOURCE/tests/fuzz/seeds/plan/measured.json" || fail "no network in the plan"
    measured=("$GHP_BIN/ghp-expect" net.json --profile "$profile" --batch 8)
    "${measured[@]}" >out || fail "a profile: exit $?"
    grep -q '^# measured with 2 workers on 1 node' out || fail "where the figures come from is not said: $(cat out)"
    "${measured[@]}" --json >one || fail "a profile, JSON: exit $?"
    "${measured[@]}" --json --nodes 2 --network eth-1 >slow || fail "a profile on two nodes: exit $?"
    [ "$(number workers one) $(number workers slow)" = '2 4' ] || fail "not 2 and 4 workers: $(cat one slow)"
    awk -v l="$(number low_s one)" -v s="$(number step_s one)" -v h="$(number high_s one)" -v t="$(number step_s slow)" \
        'BEGIN { exit !(l < s && s < h && s < t && (h - s) / s < 0.73) }' || fail "not the range of a profile: $(cat one slow)"
    # a profile of which nothing fits the network cannot judge
    python3 - "$profile" <<'PY'
import json, sys
p = json.load(open(sys.argv[1]))
for o in p["operations"]:
    o["key"] = o["key"].replace(" n", " n9") # other sample counts
p["collectives"], p["analytic"]["spread"], p["analytic"]["comm_spread"] = [], 1.0, 1.0
for rate in p["rates"].values():
    rate["source"], rate["spread"] = "analytic", 1.0
json.dump(p, open("useless.json", "w"))
PY
    "$GHP_BIN/ghp-expect" net.json --profile useless.json --batch 8 --measured 5s >out || fail "a useless profile: exit $?"
    grep -q '^step        not known: 0 % of it was measured' out || fail "a useless profile is used: $(cat out)"
    grep -q '^measured .* cannot say whether that is normal$' out || fail "a useless profile judges: $(cat out)"
    grep -q flop_utilisation one && fail "a profile without the peak has a fraction of it"
    sed 's/"inter".*/"inter": {"latency_s": 0, "bandwidth_Bps": 0}/' "$profile" >alone.json
    denied 2 'measured on one node' "$GHP_BIN/ghp-expect" net.json --profile alone.json --batch 8 --nodes 2
    denied 2 'leave --machine out' "${measured[@]}" --machine h100-sxm-8
    denied 2 'leave --gpus and --precision fp16 out' "${measured[@]}" --gpus 1
    denied 1 'knows no operation of' "$GHP_BIN/ghp-expect" "$GHP_SOURCE/models/vgg16.json" --profile "$profile" --batch 8
fi

for text in '5 apples' 5ks '5M ms' 1e300s 1e-300s; do
    denied 2 "cannot read --measured '$text'" "${expect[@]}" --measured "$text"
done
denied 1 'no blocks of a transformer to make stages of' "$GHP_BIN/ghp-expect" "$GHP_SOURCE/models/lenet5.json" \
    --machine h100-sxm-8 --batch 64 --pipeline 2
denied 2 "cannot read --nodes '1,,2'" "${expect[@]}" --nodes 1,,2
denied 1 'add --network NAME' "$GHP_BIN/ghp-expect" "$GHP_SOURCE/models/vgg16.json" --machine xeon-8180-2 --nodes 2 --batch 64
denied 2 "did you mean 'a100-" "$GHP_BIN/ghp-expect" gpt2-124m --machine a100 --batch 64
denied 1 'give a network.s file, such as models/resnet50.json, or one of gpt2-124m' "$GHP_BIN/ghp-expect" resnet50 \
    --machine h100-sxm-8 --batch 64
denied 2 'no batch given' "$GHP_BIN/ghp-expect" gpt2-124m --machine h100-sxm-8
denied 3 'no plan of .gpt2-1558m. within 37.3 GiB a worker was found; give a smaller --batch or more --nodes' \
    "$GHP_BIN/ghp-expect" gpt2-1558m --machine a100-sxm-40-8 --batch 512 --plan ghp

[ "$failures" = 0 ] && echo "one node $a s, two $b and $c s, paying from $from bytes/s on"
exit $((failures > 0))
