#!/bin/bash
# ghp-test: timeout=60 label=script
# What ghp-lab-report makes of comparisons: errors, their summary, regret by the interval's lower end; crossovers; bad
# input.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
report=$GHP_BIN/ghp-lab-report

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# comparison WORKERS PLAN...: a ghp.comparison/2 object; PLAN is NAME:STRATEGY:PREDICTED:MEASURED:RATIO:LOW:HIGH
comparison() {
    local workers=$1 comma='' name strategy predicted measured ratio low high plan
    shift
    printf '{"format": "ghp.comparison/2", "workers": %s, "global_batch": 64, "foreign_share": 0.01,' "$workers"
    printf ' "speed_probe": {"compute": 1.07, "memory": 1}, "plans": ['
    for plan; do
        IFS=: read -r name strategy predicted measured ratio low high <<<"$plan"
        printf '%s{"plan": "x/%s.plan.json", "strategy": "%s", "predicted_step_s": %s, "measured_step_s": %s,' \
            "$comma" "$name" "$strategy" "$predicted" "$measured"
        printf ' "spread": 0.02, "error": %s, "ratio": %s, "ratio_low": %s, "ratio_high": %s}' \
            "$(awk -v p="$predicted" -v m="$measured" 'BEGIN { print p / m - 1 }')" "$ratio" "$low" "$high"
        comma=', '
    done
    printf ']}\n'
}

mkdir -p "$work/2x1@1gbit/net" "$work/4x1@1gbit/net" "$work/4x1@1gbit/empty"
comparison 2 auto:auto:0.11:0.1:1:1:1 data:data:0.18:0.2:2:1.9:2.1 random-1:given:0.3:0.3:3:2.9:3.1 \
    >"$work/2x1@1gbit/net/all.json"
comparison 2 auto:auto:0.11:0.1:1:1:1 data:data:0.18:0.2:2:1.9:2.1 >"$work/2x1@1gbit/net/pairs.json"
# here OWT measured best, and ghp's choice is surely slower than 1.03 times it: 1 / 0.96
comparison 4 auto:auto:0.1:0.1:1:1:1 data:data:0.2:0.2:2:1.9:2.1 owt:owt:0.12:0.096:0.95:0.94:0.96 \
    >"$work/4x1@1gbit/net/all.json"
cp "$work/4x1@1gbit/net/all.json" "$work/4x1@1gbit/net/pairs.json"

"$report" "$work"/*/*/ >"$work/out" || fail "no report"
grep -Eq '^2x1@1gbit +net +64 +auto +110.0 +100.0 +2.0 +\+10.0 +1.0 +1.07$' "$work/out" || fail "error of ghp's plan"
grep -Eq '^2x1@1gbit +net +64 +data +180.0 +200.0 +2.0 +-10.0 +1.0 +1.07$' "$work/out" || fail "error of data"
grep -Eq '^2 +all +3 +6.7 +10.0 +10.0 +-$' "$work/out" || fail "summary of two workers"
grep -Eq '^2 +by chance +1 +0.0 +0.0 +0.0 +-$' "$work/out" || fail "summary of plans by chance"
grep -Eq '^more +owt +1 +25.0 +25.0 +25.0 +-$' "$work/out" || fail "summary of four workers"
grep -Eq '^2x1@1gbit +net +auto +same +- +- +0.500 +0.476 +0.526 +1.0 *$' "$work/out" || fail "regret where ghp is best"
grep -Eq '^4x1@1gbit +net +owt +1.053 +1.042 +1.064 .* over$' "$work/out" || fail "regret over the limit"
grep -q '^1 cell(s) with a regret over the limits$' "$work/out" || fail "count of regrets"
[ "$("$report" --best "$work/4x1@1gbit/net/all.json")" = x/owt.plan.json ] || fail "the best plan"

# four plans, two of whose ranks are exchanged: Spearman 1 - 6 x 2 / (4 x 15); short steps have a line of their own
mkdir -p "$work/short/2x1@1gbit/net"
comparison 2 auto:auto:0.002:0.002:1:1:1 data:data:0.004:0.005:2:1.9:2.1 model:model:0.005:0.004:2:1.9:2.1 \
    owt:owt:0.6:0.6:2:1.9:2.1 >"$work/short/2x1@1gbit/net/all.json"
# too few pairs for an interval: no regret is sure
comparison 2 auto:auto:0.002:0.002:1:1:1 data:data:0.004:0.005:2:null:null >"$work/short/2x1@1gbit/net/pairs.json"
"$report" "$work"/short/*/* >"$work/out" || fail "no report of short steps"
grep -Eq '^2 +all +4 +11.2 +25.0 +25.0 +0.800$' "$work/out" || fail "rank correlation: $(cat "$work/out")"
grep -q '^0 cell(s) with a regret over the limits$' "$work/out" || fail "no interval: $(cat "$work/out")"
grep -Eq '^2 +up to 10 ms +3 +15.0 +25.0 +25.0 +-$' "$work/out" || fail "short steps: $(cat "$work/out")"

# refused EXIT TEXT ARGUMENT...
refused() {
    local code=$1 text=$2
    shift 2
    "$report" "$@" >"$work/out" 2>"$work/err"
    [ $? -eq "$code" ] || fail "exit code of: $*"
    grep -q "$text" "$work/err" || fail "message of: $*: $(cat "$work/err")"
}
refused 1 'all.json' "$work/4x1@1gbit/empty"
refused 2 'CLUSTER/NETWORK'
echo '{"format": "ghp.comparison/2", "plans": []}' >"$work/4x1@1gbit/empty/all.json"
refused 1 'no plans' "$work/4x1@1gbit/empty"
comparison 2 data:data:0.18:0.2:2:1.9:2.1 >"$work/4x1@1gbit/empty/all.json"
cp "$work/4x1@1gbit/empty/all.json" "$work/4x1@1gbit/empty/pairs.json"
refused 1 'not the first' "$work/4x1@1gbit/empty"

# crossovers: data parallelism less the plan is 0.3 s at 64 samples of 4 tokens, -0.1 s at 128: 0 between them
for b in 1 2; do
    mkdir -p "$work/wide/net-b$b"
    echo '{"model": {"input": {"positions": 4}}}' >"$work/wide/net-b$b/data.plan.json"
done
comparison 4 data:data:0.5:0.5:1:1:1 split:given:0.3:0.2:1:1:1 >"$work/wide/net-b1/all.json"
comparison 4 data:data:0.6:0.6:1:1:1 split:given:0.5:0.7:1:1:1 >"$work/wide/net-b2/all.json"
sed -i 's/"global_batch": 64/"global_batch": 128/' "$work/wide/net-b2/all.json"
"$GHP_SOURCE/bench/lab/crossover" "$work/wide" split:data >"$work/out" || fail "no crossover"
grep -q '^# predicted: by data from ~768 tokens a step on$' "$work/out" || fail "extrapolated: $(cat "$work/out")"
grep -q '^# measured: by data from 448 tokens a step on$' "$work/out" || fail "enclosed: $(cat "$work/out")"
"$GHP_SOURCE/bench/lab/crossover" "$work/wide" other >"$work/out" 2>"$work/err" && fail "a plan that is not there"
grep -q "have plans 'other' and 'data'" "$work/err" || fail "message: $(cat "$work/err")"

bash -n "$GHP_SOURCE/bench/lab/accuracy" || fail "bench/lab/accuracy does not parse"
(cd "$GHP_SOURCE" && bench/lab/accuracy --nonsense 2>/dev/null)
[ $? -eq 2 ] || fail "an unknown option of bench/lab/accuracy"
echo "ok"
