#!/usr/bin/env bash
# ghp-test: timeout=400 full=yes needs=ghp-plan,ghp-profile,ghp-inspect
# tests/tools/plan/test_check_with.sh - other solvers confirm a certificate by the program of ghp-plan --write-mps, and
# refuse one that claims more, or less, than is so. Of HiGHS, CBC and GLPK those that are installed; a solver that says
# what the test tells it stands for them in the cases that need none. In full: more networks and workers. In short tests
# planner/search/mps stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"

# plan FILE MODEL WORKERS BATCH ARGS...: FILE.json and FILE.mps
plan() {
    "$GHP_BIN/ghp-plan" "$2" --profile law.json --workers "$3" --batch "$4" --sync allreduce --no-break-even \
        --output "$1.json" --write-mps "$1.mps" "${@:5}" >out 2>err || fail "no plan of $2: $(cat err)"
}
check() { "$GHP_BIN/ghp-inspect" "$1.json" --check-with "$2"; }

# falsify NAME KEY FACTOR...: false.json, whose certificate has other numbers
falsify() {
    python3 - "$@" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1] + ".json"))
for key, factor in zip(sys.argv[2::2], sys.argv[3::2]):
    plan["certificate"][key] *= float(factor)
json.dump(plan, open("false.json", "w"))
PY
    cp "$1.mps" false.mps
}

analytic "$GHP_SOURCE/models/alexnet.json" law.json F=6e12,bandwidth=1.25e9,latency=20e-6
plan alexnet "$GHP_SOURCE/models/alexnet.json" 4 64
head -n 1 alexnet.mps | grep -q '^\* certificate: model [0-9a-f]\{16\} .* 4 workers, batch 64, allreduce, auto' ||
    fail "the program does not say whose it is: $(head -n 1 alexnet.mps)"

# a solver of the test's: it says that it solved the program, and the optimum it is told
cat >cbc <<'SH'
#!/bin/sh
[ "$(head -c 15 "$1")" = '* certificate: ' ] || exit 1
echo 'Result - Optimal solution found'
echo "Objective value:   $(cat optimum)"
SH
chmod +x cbc
unit=$(sed -n 's/^\* unit_s: //p' alexnet.mps)
step=$(number step_s alexnet.json)
awk -v s="$step" -v u="$unit" 'BEGIN { printf "%.9f\n", s / u }' >optimum
check alexnet ./cbc >out 2>err || fail "the certificate is not confirmed: $(cat err)"
grep -q '^confirmed: the best plan takes' out || fail "does not say what is confirmed: $(cat out)"
"$GHP_BIN/ghp-inspect" alexnet.json alexnet.mps --check-with ./cbc --json >o.json || fail "no object"
holds o.json "abs(o['optimum_s'] / o['step_s'] - 1) < 1e-6 and o['solver'] == 'cbc'"
awk -v s="$step" -v u="$unit" 'BEGIN { printf "%.9f\n", 1.001 * s / u }' >optimum
denied 1 'does not hold: its best plan takes .* none takes less' check alexnet ./cbc
awk -v s="$step" -v u="$unit" 'BEGIN { printf "%.9f\n", .999 * s / u }' >optimum
denied 1 'does not hold: it says that no plan takes less' check alexnet ./cbc

# the step of other splits than the plan has
python3 - <<'PY'
import json
plan = json.load(open("alexnet.json"))
split = next(s for s in plan["splits"] if s["layer"] == "fc6")
split.update({"split": "data", "tp_size": 1} if split["split"] != "data" else {"split": "out", "tp_size": 4})
json.dump(plan, open("false.json", "w"))
PY
cp alexnet.mps false.mps
awk -v s="$step" -v u="$unit" 'BEGIN { printf "%.9f\n", s / u }' >optimum
denied 1 'the plan does not hold' check false ./cbc

# what cannot be
awk -v s="$step" -v u="$unit" 'BEGIN { printf "%.9f\n", s / u }' >optimum
falsify alexnet bound_s 1.1
denied 1 'a step of .* and a gap of .* do not agree' check false ./cbc
falsify alexnet step_s 1.1
denied 1 'a step of .* and a gap of .* do not agree' check false ./cbc
python3 - <<'PY'
import json
plan = json.load(open("alexnet.json"))
c = plan["certificate"]
c["bound_s"] *= 0.9
c["gap"], c["status"] = 1 - c["bound_s"] / c["step_s"], "time limit"
json.dump(plan, open("weak.json", "w"))
c["step_s"] *= 0.95  # not the plan's, and the program's optimum is between
c["gap"] = 1 - c["bound_s"] / c["step_s"]
json.dump(plan, open("false.json", "w"))
PY
sed 's/^\* exact: yes/* exact: no, of a test/' alexnet.mps | tee weak.mps >false.mps
awk -v s="$step" -v u="$unit" 'BEGIN { printf "%.9f\n", .92 * s / u }' >optimum
check weak ./cbc | grep -q '^confirmed: no plan takes less than' || fail 'a bound is called the best plan'
denied 1 "certificate.step_s' says" check false ./cbc
awk -v s="$step" -v u="$unit" 'BEGIN { printf "%.9f\n", .8 * s / u }' >optimum
denied 3 'its third line has the reason' check weak ./cbc
for word in inf -5 nan; do
    echo $word >optimum
    denied 3 'did not solve the program' check alexnet ./cbc
done
for word in 0 nan -1 inf; do
    sed "s/^\* unit_s: .*/* unit_s: $word/" alexnet.mps >unit.mps
    denied 1 'unit.mps: the second line gives no unit of seconds' \
        "$GHP_BIN/ghp-inspect" alexnet.json unit.mps --check-with ./cbc
done
# a program that was changed below its head: another coefficient, a row less, another right side, another bound
changes=('0,/^ x[0-9]*:[^ ]* slot/s/^\( x[0-9]*:[^ ]* slot[^ ]* \).*/\1-1e-9/' '/^ G first_wait:0$/d; / first_wait:0 /d'
    's/^ right one0 1$/ right one0 2/' '0,/^ UP bound [^ ]* 1$/s// UP bound x0:data 0/')
for change in "${changes[@]}"; do
    sed "$change" alexnet.mps >changed.mps
    cmp -s alexnet.mps changed.mps && fail "'$change' changes nothing"
    denied 1 'changed.mps: the integer program was changed after ghp-plan wrote it' \
        "$GHP_BIN/ghp-inspect" alexnet.json changed.mps --check-with ./cbc
done
sed '$d' alexnet.mps >short.mps
denied 1 'short.mps: the integer program ends before its last line' \
    "$GHP_BIN/ghp-inspect" alexnet.json short.mps --check-with ./cbc
echo 'exit 3' >cbc
denied 3 'did not solve the program' check alexnet ./cbc
printf '#!/bin/sh\nexec sleep 100\n' >cbc
denied 3 'did not solve the program in 7 s' "$GHP_BIN/ghp-inspect" alexnet.json --check-with ./cbc --solver-limit 1
denied 2 "does not know the solver 'gurobi'; give highs, cbc, glpk" check alexnet gurobi
denied 1 "cannot run the solver './none/highs'; pip install highsbox" check alexnet ./none/highs
mv alexnet.mps elsewhere.mps
denied 1 "integer program 'alexnet.mps' is not there; make plan and program together" check alexnet ./cbc
mv elsewhere.mps alexnet.mps
plan other "$GHP_SOURCE/models/alexnet.json" 2 64
denied 1 "of another plan's certificate" "$GHP_BIN/ghp-inspect" other.json alexnet.mps --check-with ./cbc
denied 1 'no integer program of a certificate' "$GHP_BIN/ghp-inspect" other.json other.json --check-with ./cbc
denied 2 'check-with is about one plan' "$GHP_BIN/ghp-inspect" law.json --check-with cbc
denied 2 'write-mps is of one plan without stages' "$GHP_BIN/ghp-plan" "$GHP_SOURCE/models/alexnet.json" \
    --profile law.json --workers 4 --batch 64 --pipeline auto --write-mps x.mps

# solvers that are there
solvers=
command -v glpsol >/dev/null && solvers=glpk
command -v cbc >/dev/null && solvers+=" cbc"
if command -v highs >/dev/null; then
    solvers+=" highs"
elif highs=$("${GHP_PYTHON:-python3}" -c 'import highsbox; print(highsbox.highs_bin_path())' 2>/dev/null); then
    solvers+=" $highs"
fi
for solver in $solvers; do
    check alexnet "$solver" >out 2>err || fail "$solver does not confirm: $(cat err)"
    falsify alexnet step_s .99 bound_s .99
    denied 1 'does not hold: its best plan takes' check false "$solver"
    falsify alexnet step_s 1.01 bound_s 1.01
    denied 1 'does not hold: it says that no plan' check false "$solver"
done
echo "solvers tried: ${solvers:-none is installed}"
if full; then
    for case in alexnet:16:256 vgg16:4:64 vgg16:16:256; do
        IFS=: read -r network workers batch <<<"$case"
        plan case "$GHP_SOURCE/models/$network.json" "$workers" "$batch"
        for solver in $solvers; do
            check case "$solver" >out 2>err || fail "$solver does not confirm $case: $(cat err)"
        done
    done
fi
[ $failures -eq 0 ]
