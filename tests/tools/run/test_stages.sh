#!/usr/bin/env bash
# ghp-test: timeout=900 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/run/test_stages.sh - stages and micro-batches through the tools: plans for separated roles and pipelines
# are made, verified, shown in every form, and train like one worker (ten steps of `ghp-run --verify`), in float on
# oneDNN and in double on the reference backend; a search over all roles finds nothing slower than shared ones; what
# cannot be is refused with what would do. GHP_ALL=1 adds cd-dnn-512, vgg-a-32, resnet18-32 and every number of
# micro-batches everywhere (hours); GHP_ONLY=NETWORK takes one network of these alone, GHP_PIPELINE=1f1b one schedule, GHP_MICRO="1 2"
# these numbers of micro-batches; GHP_STEPS=10 has the large networks, too, take that number of steps in double. In
# short tests executor/engine/stages stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
batch=48
least=1
worst_w=0
worst_g=0
double_w=0
double_g=0
runs=0

# refuse CODE TEXT COMMAND...: fails with that exit code, and says so
refuse() {
    local code=$1 text=$2
    shift 2
    "$@" >out 2>err
    [ $? = "$code" ] || fail "'$*' does not exit with $code"
    grep -q -- "$text" err || fail "'$*' does not say '$text': $(head -n 2 err)"
}

plan() { "$GHP_BIN/ghp-plan" "$1" --profile profile.json --batch $batch "${@:2}" -o plan.json >out 2>err; }

# verify WORKERS OPTIONS...: ten steps ($steps) equal one worker's; in float the next seed where a decision falls the
# other way within rounding (docs/explanation/exactness.md)
verify() {
    local seed w g code
    for ((seed = 1; seed <= 8 + batch / 4; seed++)); do
        runs=$((runs + 1))
        ranks "$1" run plan.json --verify "${steps:-10}" --lr 0.01 --json --seed $seed --watchdog 300 "${@:2}"
        code=$?
        w=$(number max_relative_difference out)
        g=$(number max_relative_gradient_difference out)
        { [ $code = 0 ] || [ "${2:-}" = --backend ] || [ -z "$g" ]; } && break
    done
    [ $code = 0 ] || { fail "$name: e_w $w, e_g $g: $(head -n 3 err)"; return; }
    echo "$name ${*:2}: e_w $w, e_g $g"
    [ "$(number allocated_bytes out)" = "$(number peak_bytes out)" ] || fail "$name: allocated is not predicted memory"
    if [ "${2:-}" = --backend ]; then
        double_w=$(larger "$double_w" "$w")
        double_g=$(larger "$double_g" "$g")
    else
        worst_w=$(larger "$worst_w" "$w")
        worst_g=$(larger "$worst_g" "$g")
    fi
}

# sound: the plan holds, and every form of it can be made
sound() {
    local inspect=("$GHP_BIN/ghp-inspect" plan.json)
    "${inspect[@]}" --verify --profile profile.json >out 2>err || fail "$name is not sound: $(head -n 2 err)"
    "${inspect[@]}" >out 2>err || fail "$name cannot be shown: $(head -n 2 err)"
    "${inspect[@]}" --explain >out 2>err || fail "$name cannot be explained: $(head -n 2 err)"
    "${inspect[@]}" --html page.html --trace trace.json --dot net.dot >out 2>err ||
        fail "$name cannot be drawn: $(head -n 2 err)"
}

# smallest WORKERS STAGES MICRO-BATCHES: the least batch that such a plan can have, times `least`: large networks make
# such a number of decisions a sample that in float hardly a run over more agrees (docs/explanation/exactness.md)
smallest() {
    awk -v n="$1" -v stages="$2" -v u="$3" -v least="$least" 'BEGIN {
        k = split(stages, stage, ",")
        for (i = 1; i <= k; i++) {
            sub(".*:", "", stage[i])
            sum += stage[i]
            if (stage[i] + 0 > most) most = stage[i] + 0
        }
        for (unit = least * u * n / sum * most; (b += unit) % n != 0;) {}
        print b
    }'
}

# try MODEL WORKERS STAGES MICRO-BATCHES PIPELINE
try() {
    [ -n "${6:-}" ] && batch=$(smallest "$2" "$3" "$4")
    name="$(basename "$1") on $2 workers, $3, $4 micro-batches ($5), batch $batch"
    plan "$1" --workers "$2" --stages "$3" --micro-batches "$4" --pipeline-schedule "$5" ||
        { fail "$name: $(head -n 2 err)"; return; }
    [ "${6:-}" = deep ] && steps=1
    verify "$2"
    steps=${GHP_STEPS:-${steps:+2}}
    [ "${6:-}${GHP_STEPS:-}" = float ] || verify "$2" --backend reference --precision double
    steps=
}

# all MODEL A B C [float|deep]: separated roles, groups and pipelines cut at layers A, B and C; `float`: no double;
# `deep`: in float one step, in double two, since batch norm over two samples makes of one turned decision another
# network (docs/explanation/exactness.md)
all() {
    local model=$1 a=$2 b=$3 c=$4
    analytic "$model" profile.json F=1e11,bandwidth=1e9,latency=2e-5
    if [ -n "${GHP_ALL:-}" ]; then
        for u in ${GHP_MICRO:-1 2 4 8}; do
            for order in ${GHP_PIPELINE:-1f1b fill-drain zb-h1}; do
                try "$model" 2 "1,$b:1" $u $order "${5:-}"
                try "$model" 3 "2,$b:1" $u $order "${5:-}"
                try "$model" 4 "3,$c:1" $u $order "${5:-}"
                try "$model" 4 "2,$b:2" $u $order "${5:-}"
                try "$model" 4 "1,$b:1" $u $order "${5:-}"
                try "$model" 3 "1,$a:1,$c:1" $u $order "${5:-}"
            done
        done
        return
    fi
    if ! full; then # separated roles, and a pipeline of three
        try "$model" 3 "2,$b:1" 2 1f1b
        sound
        [ "$model" = ghosts.json ] || try "$model" 3 "1,$a:1,$c:1" 4 fill-drain
        return
    fi
    try "$model" 3 "2,$b:1" 2 1f1b
    try "$model" 4 "3,$c:1" 1 1f1b
    sound
    try "$model" 4 "2,$b:2" 8 fill-drain
    try "$model" 4 "1,$b:1" 2 1f1b
    try "$model" 3 "1,$a:1,$c:1" 8 zb-h1
    sound
}

models=$GHP_SOURCE/models
ghosts() { sed 's/"op": *"batch_norm"/&, "statistics": "local:2"/' "$models/$1.json"; }
ghosts small-resnet >ghosts.json
ghosts resnet18-32 >ghosts18.json
wanted() { [ -z "${GHP_ONLY:-}" ] || [ "$GHP_ONLY" = "$1" ]; }
wanted lenet5 && all "$models/lenet5.json" conv2 fc1 fc2
[ -n "${GHP_ALL:-}${GHP_ONLY:-}" ] && wanted cd-dnn-512 && all "$models/cd-dnn-512.json" fc2 fc4 fc7
wanted small-resnet && all ghosts.json a.conv1 b.conv1 pool
if [ -n "${GHP_ALL:-}" ]; then
    wanted vgg-a-32 && all "$models/vgg-a-32.json" conv3 conv5 fc1 float
    least=2 # whole ghost batches
    wanted resnet18-32 && all ghosts18.json stage2.0.conv1 stage3.0.conv1 stage4.0.conv1 deep
fi
if [ -n "${GHP_ONLY:-}" ]; then
    echo "$runs runs of $GHP_ONLY; in float at most e_w $worst_w, e_g $worst_g; in double $double_w, $double_g"
    [ $failures -eq 0 ]
    exit
fi

# accumulation alone, and a search over everything
batch=48
cp "$models/lenet5.json" model.json
analytic model.json profile.json F=1e11,bandwidth=1e9,latency=2e-5
name="lenet5 accumulated"
plan model.json --workers 2 --micro-batches 4 || fail "$name: $(head -n 2 err)"
verify 2 --backend reference --precision double
sound
grep -q '"micro_batches": 4' plan.json || fail "$name: the plan does not say so"
plan model.json --workers 4 || fail "shared: $(head -n 2 err)"
shared=$(number predicted_step_s plan.json)
plan model.json --workers 4 --pipeline auto --no-simplify || fail "all roles: $(head -n 2 err)"
sound
awk -v a="$(number predicted_step_s plan.json)" -v b="$shared" 'BEGIN { exit !(a <= b * (1 + 1e-9)) }' ||
    fail "all roles are slower than shared ones"
plan model.json --workers 4 --solver heuristic || fail "the rules: $(head -n 2 err)"
grep -q 'by rules, as asked: the best found takes' plan.json || fail "the rules' plan does not say what it loses"
sound

# refused
staged=("$GHP_BIN/ghp-plan" model.json --profile profile.json --workers 4 --batch 48 --stages)
refuse 2 'make them fit' "${staged[@]}" 2,fc1:1
refuse 2 "names layer 'fc9'" "${staged[@]}" 2,fc9:2
refuse 2 'leave --stages' "${staged[@]}" 2,fc1:2 --pipeline auto
refuse 1 'cut before a layer' "${staged[@]}" 2,fc1.bias:2
refuse 1 'local:S' "$GHP_BIN/ghp-plan" "$models/small-resnet.json" --profile profile.json --workers 2 --batch 48 \
    --micro-batches 2
echo "$runs runs; in float at most e_w $worst_w, e_g $worst_g; in double $double_w, $double_g"
[ $failures -eq 0 ]
