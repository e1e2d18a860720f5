#!/usr/bin/env bash
# ghp-test: timeout=60 needs=ghp-plan,ghp-expect,ghp-profile,ghp-inspect,ghp-run,ghp-launch,ghp-train
# tests/tools/together/test_reference.sh - the pages of docs/reference/cli are what the tools print (`ninja reference`
# writes them), and none is missing or left over.
set -u
. "$(dirname "$0")/../scratch.sh"
cd "$GHP_SOURCE" || exit 1

tools="ghp-expect ghp-inspect ghp-launch ghp-plan ghp-profile ghp-run ghp-train"
[ "$(cd docs/reference/cli && printf '%s ' *)" = "$(printf '%s.md ' $tools)" ] || fail "other pages than tools"
for tool in $tools; do
    # another MPI's launcher has another name, and a build without CUDA other backends
    diff <("$GHP_BIN/$tool" --help=md | sed 's/\[mpirun[.a-z]*\]/[mpirun]/; s/onednn, reference, cuda/onednn, reference/') \
        <(sed 's/onednn, reference, cuda/onednn, reference/' "docs/reference/cli/$tool.md") >"$scratch/difference" ||
        fail "docs/reference/cli/$tool.md is not what $tool prints; run 'ninja -C build reference': $(head -5 "$scratch/difference")"
done

[ "$failures" = 0 ] && echo "the reference is what the tools print"
exit $((failures > 0))
