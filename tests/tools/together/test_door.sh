#!/usr/bin/env bash
# ghp-test: timeout=120 needs=ghp,ghp-plan,ghp-expect,ghp-run,ghp-profile,ghp-inspect,ghp-launch,ghp-train
# tests/tools/together/test_door.sh - `ghp TOOL ...` is `ghp-TOOL ...`: the same output, exit code and speaking under
# mpirun; a word that is not a tool is refused once, with the nearest one.
set -u
. "$(dirname "$0")/../scratch.sh"
model=$GHP_SOURCE/models/lenet5.json
PATH=$GHP_BIN:$PATH
ranks=(mpirun --timeout 60 --oversubscribe --bind-to none -n)

# every tool, with the purpose that it gives itself; no other
"$GHP_BIN/ghp" help >help || fail "ghp help: exit $?"
cmp -s help <(ghp --help) || fail "ghp help is not ghp --help"
for tool in "$GHP_BIN"/ghp-*; do
    tool=${tool##*/ghp-}
    case $tool in # of bench/
    lab-* | published | speedups | look | loader | primitives | reductions | gpu-floors | counted*) continue ;;
    esac
    tr -s ' \n' ' ' <help | grep -qF "$("$GHP_BIN/ghp-$tool" --help | sed -n '/^$/q; p' | tr '\n' ' ' | sed 's/^ghp-//; s/ - / /')" ||
        fail "ghp help does not have $tool's own purpose"
    cmp -s <(ghp help "$tool") <("$GHP_BIN/ghp-$tool" --help) || fail "ghp help $tool is not its --help"
    cmp -s <(ghp "$tool" --version) <("$GHP_BIN/ghp-$tool" --version) || fail "ghp $tool is not ghp-$tool"
done
[ "$(grep -cE '^  [a-z]+ ' help)" = 7 ] || fail "ghp help lists other tools"
ghp --version | grep -qE '^ghp \(ghp\) [0-9]+\.[0-9]+\.[0-9]+$' || fail "ghp --version"

# arguments and exit codes go through
ghp profile --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model "$model" -o profile.json >out 2>&1 &&
    ghp plan "$model" --profile profile.json --workers 2 --batch 8 -o plan.json >out 2>&1 || fail "ghp plan: $(cat out)"
denied 3 '^ghp-plan: .*least' ghp plan "$model" --profile profile.json --workers 2 --batch 8 --memory 100KiB
denied 1 '^ghp-inspect: .*nowhere' ghp inspect nowhere.json
denied 2 '^ghp-plan: .*--strategy' ghp plan --strategie auto
"${ranks[@]}" 2 ghp run plan.json --steps 2 >out 2>err || fail "mpirun ghp run: $(cat err)"
[ "$(grep -c 'images/s' out)" = 1 ] || fail "mpirun ghp run speaks $(grep -c 'images/s' out) times"
denied_once 2 "ghp-run: unknown option '--stepz'; did you mean '--steps'?" "${ranks[@]}" 2 ghp run plan.json --stepz 2

# a task's command shows what its page begins with
ghp help fine-tune | grep -q -- "--freeze '\*' --freeze-except fc" || fail "no head is trained: $(ghp help fine-tune)"

# words that are not tools
denied 2 "^ghp: ghp has no tool 'rum'; did you mean 'run'\?$" ghp rum plan.json
denied 2 "^ghp: ghp has no tool or task 'plna'; did you mean 'plan'\?$" ghp help plna
denied 2 "^ghp: ghp has no tool or task 'resum'; did you mean 'resume'\?$" ghp help resum
denied 2 "^ghp: ghp has no tool '$model'; give one of train, .*, inspect, help$" ghp "$model"
denied 2 "^ghp: no tool was named; give one of " ghp
denied 2 "unknown option '--versoin'; did you mean '--version'\?" ghp --versoin
denied_once 2 "ghp: ghp has no tool 'rum'; did you mean 'run'?" "${ranks[@]}" 3 ghp rum plan.json
"${ranks[@]}" 2 ghp --version >out 2>err || fail "mpirun ghp --version: $(cat err)"
[ "$(grep -c '^ghp (ghp)' out)" = 1 ] || fail "mpirun ghp --version speaks $(grep -c '^ghp (ghp)' out) times"

# a door without the house
mkdir alone && cp "$GHP_BIN/ghp" alone
denied 1 "^ghp: cannot start 'ghp-plan': .*; install it next to ghp" env PATH=/usr/bin:/bin alone/ghp plan x

[ "$failures" = 0 ] && echo "one door to all tools"
exit $((failures > 0))
