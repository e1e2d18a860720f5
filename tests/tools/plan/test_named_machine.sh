#!/usr/bin/env bash
# ghp-test: timeout=60 needs=ghp-plan,ghp-inspect
# tests/tools/plan/test_named_machine.sh - ghp-plan --machine NAME --nodes --network: the lists, a plan that nobody
# measured and what it says of itself, that it verifies, that a file comes first, the completions, and what is refused.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
plan() { "$GHP_BIN/ghp-plan" "$model" --batch 64 "$@"; }

"$GHP_BIN/ghp-plan" --machine list >machines || fail "--machine list fails"
"$GHP_BIN/ghp-plan" --network list >networks || fail "--network list fails"
for file in "$GHP_SOURCE"/machines/*.json; do
    grep -q "^$(basename "$file" .json) " machines || fail "--machine list does not name $file"
done
for file in "$GHP_SOURCE"/machines/network/*.json; do
    grep -q "^$(basename "$file" .json) " networks || fail "--network list does not name $file"
done

"$GHP_BIN/ghp-inspect" h100-sxm-8 >shown 2>&1 && grep -q '^# machine NVIDIA DGX H100' shown ||
    fail "ghp-inspect does not show a named machine: $(head -3 shown)"
plan --machine h100-sxm-8 --workers 16 --precision bf16 -o plan.json >table 2>err || fail "no plan: $(cat err)"
grep -q '^# nothing was measured: by rule of thumb, 50 % of' table || fail "the table does not say what it is of"
"$GHP_BIN/ghp-inspect" plan.json >shown || fail "ghp-inspect does not show the plan"
grep -q '^# nothing was measured: by rule of thumb' shown || fail "ghp-inspect does not say what the plan is of"
holds plan.json "o['profile']['machine']['nodes'] == 2 and o['profile']['machine']['sources']['peak']"
holds plan.json "o['profile']['machine']['inter']['bandwidth_Bps'] == 0.8 * 400e9"
holds plan.json "o['predicted']['measured_share'] == 0"
"$GHP_BIN/ghp-inspect" plan.json --verify >verified 2>&1 || fail "the plan does not verify: $(tail -3 verified)"
plan --machine h100-sxm-8 --workers 16 --nodes 4 --network eth-10 --json >slow.json 2>err || fail "no plan: $(cat err)"
holds slow.json "o['rule_of_thumb'].startswith('nothing was measured')"
plan --machine l4-8 --sweep workers=1,8 >sweep 2>err || fail "no sweep: $(cat err)"
grep -q '^# nothing was measured' sweep || fail "the sweep does not say what it is of"

# a file of that path comes first, with peaks or without; without them nothing is planned
sed 's/"nodes": 1,/"nodes": 3,/' "$GHP_SOURCE/machines/l4-8.json" >a30-4
plan --machine a30-4 --workers 4 -o file.json >out 2>err || fail "no plan by a file: $(cat err)"
holds file.json "o['profile']['machine']['gpus']['name'] == 'NVIDIA L4' and o['profile']['machine']['nodes'] == 3"
sed '/"peak"/d' a30-4 >bare.json
denied 1 "no peak figures.*--profile" "$GHP_BIN/ghp-plan" "$model" --batch 64 --workers 4 --machine bare.json

denied 2 "did you mean 'h100-sxm-8'.*--machine list" "$GHP_BIN/ghp-plan" "$model" --batch 64 --workers 4 --machine h100-smx-8
denied 2 "did you mean 'eth-1" "$GHP_BIN/ghp-plan" "$model" --batch 64 --workers 4 --machine l4-8 --network eht-10
denied 2 "--strict wants what was measured" "$GHP_BIN/ghp-plan" "$model" --batch 64 --workers 4 --machine l4-8 --strict 0.1
denied 2 "--nodes is of a --machine" "$GHP_BIN/ghp-plan" "$model" --batch 64 --workers 4 --profile x --nodes 2
denied 1 "no network between its 2 nodes; add --network" "$GHP_BIN/ghp-plan" "$model" --batch 64 --workers 8 --machine a5000-4
# the names are completed
(
    source <("$GHP_BIN/ghp-plan" --help=bash) || exit 1
    COMP_WORDS=(ghp-plan --machine h100-s) COMP_CWORD=2
    _ghp_plan
    [ "${COMPREPLY[*]}" = h100-sxm-8 ]
) || fail "--machine h100-s is not completed"
[ $failures -eq 0 ]
