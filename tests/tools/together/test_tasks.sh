#!/usr/bin/env bash
# ghp-test: timeout=60 needs=ghp,ghp-plan,ghp-expect,ghp-profile,ghp-inspect,ghp-run,ghp-launch,ghp-train
# tests/tools/together/test_tasks.sh - `ghp help TASK`: every task of `ghp help tasks` names a page that is there and a
# command of which each option is one of its tool's, and each network without a file a known one; and docs/index.md
# leads to each of these pages.
set -u
. "$(dirname "$0")/../scratch.sh"
PATH=$GHP_BIN:$PATH

ghp help tasks >tasks || fail "ghp help tasks: exit $?"
names=$(sed -nE 's/^  ([a-z-]+) .*/\1/p' tasks)
[ "$(wc -w <<<"$names")" -ge 20 ] || fail "only these tasks: $names"
for name in $names; do
    ghp help "$name" >task 2>err || fail "ghp help $name: $(cat err)"
    page=$(sed -n 's/^Page: //p' task)
    [ -f "$GHP_SOURCE/$page" ] || fail "ghp help $name: there is no '$page'"
    from_index=${page#docs/}
    [ "$from_index" != "$page" ] || from_index=../$page
    grep -qF "]($from_index)" "$GHP_SOURCE/docs/index.md" || [ "$page" = docs/index.md ] ||
        fail "docs/index.md does not lead to $page"
    command=$(sed -n 's/^    //p' task)
    tool=$(grep -oE '(^| )ghp [a-z]+' <<<"$command" | awk '{ print $2 }')
    [ -z "$tool" ] && continue
    ghp "$tool" --help all >options || fail "ghp help $name: there is no 'ghp $tool'"
    ghp run --help all >>options # after '--'
    network=$(sed -nE "s/.*ghp (plan|expect|train) ([a-z0-9@-]+) .*/\2/p" <<<"$command") # a name, not a file
    [ -z "$network" ] || ghp-inspect "$network" >out 2>err || fail "ghp help $name: $(cat err)"
    for option in $(grep -oE "ghp $tool .*" <<<"$command" | sed "s/'[^']*'//g" | grep -oE -- '--[a-z][a-z-]+'); do
        grep -qE -- "^ +(-[a-z], )?$option\b" options || fail "ghp help $name: $option is no option of ghp-$tool"
    done
done
while read -r word task; do
    ghp help "$word" >tasks 2>err || fail "ghp help $word: exit $?: $(cat err)"
    grep -q "^  $task " tasks || fail "ghp help $word does not lead to $task: $(cat tasks)"
done <<'END'
fsdp shard
memory shard
oom shard
straggler slow
bandwidth slow
gossip sync
server sync
parameter-server sync
html report
llama huggingface
tensor language-model
END
ghp help >help || fail "ghp help: exit $?"
grep -qF "'ghp help tasks'" help || fail "ghp help does not lead to the tasks"

[ "$failures" = 0 ] && echo "each task has its command and its page"
exit $((failures > 0))
