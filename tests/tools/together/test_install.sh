#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes needs=libghp,ghp-plan,ghp-expect,ghp-run,ghp-profile,ghp-inspect,ghp-launch,ghp-train,pkg-config,python3
# tests/tools/together/test_install.sh - `cmake --install` is complete, and works from any folder: it names neither the
# source tree nor the prefix. A program is built against the installed library by pkg-config and by CMake; ghp.h is
# good C++ and the library shows nothing but what ghp.h declares. In short tests planner/api/api stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
build=$(dirname "$GHP_BIN")

cmake --install "$build" --prefix "$PWD/first" --strip >log 2>&1 || { tail -5 log >&2; exit 1; }
mv first moved # what remembers the prefix fails from here on
root=$PWD/moved data=$PWD/moved/share/ghp
lib=$(dirname "$(find "$root" -name 'libghp.so')")
PATH=$root/bin:$PATH
export PATH

for tool in ghp ghp-plan ghp-expect ghp-profile ghp-inspect ghp-run ghp-launch ghp-train; do
    [ "$(command -v $tool)" = "$root/bin/$tool" ] || fail "$tool is not installed"
    [ -s "$root/share/man/man1/$tool.1" ] || fail "$tool has no man page"
    [ -s "$root/share/bash-completion/completions/$tool" ] || fail "$tool has no completions"
    (cd / && $tool --version >/dev/null) || fail "$tool does not start"
done
for file in LICENSE README.md docs/schema/model.json docs/schema/layer.json examples/library/plan.c examples/mnist-mlp/run.sh; do
    [ -s "$root/share/doc/ghp/$file" ] || fail "doc/ghp/$file is not installed"
done
[ "$(ghp help words | sed -n 's/^Page: //p')" = "$root/share/doc/ghp/docs/reference/glossary.md" ] ||
    fail "ghp help names no installed page: $(ghp help words)"
GHP_SOURCE=$root/share/doc/ghp "$GHP_SOURCE/tests/core/test_links.sh" >out ||
    fail "links of the installed pages: $(head -5 out)"
for folder in machines machines/network models plans; do
    [ "$(cd "$GHP_SOURCE/$folder" && ls ./*.json)" = "$(cd "$data/$folder" && ls ./*.json)" ] ||
        fail "$folder are not all installed"
done
# but for what GPUs' profilers read, the lines of kernels and of what they inline of core/model
find "$root" -type f -exec strings -a -f {} + | grep -F -e "$GHP_SOURCE" -e "$PWD/first" |
    grep -v -e 'backend/cuda/kernels' -e '/core/model$' >named && fail "these name the source tree or the prefix: $(cat named)"

# the tools together, each found next to the other; the example plans with their profile
ghp inspect "$data/plans/vgg16-16-ghp.plan.json" --verify >/dev/null || fail "the example plan does not hold"
mkdir -p elsewhere
(cd elsewhere && ghp train "$data/models/lenet5.json" --workers 2 --batch 8 --budget 2 -- --steps 2) >out 2>err ||
    fail "ghp train: $(tail -3 err)"
(cd elsewhere && mpirun --oversubscribe --bind-to none -n 2 ghp run ghp-lenet5-n2-b8/plan.json --steps 2) >out 2>err ||
    fail "mpirun ghp run: $(tail -3 err)"

# a program against the library, which plans as ghp-plan does
vgg=$data/models/vgg-a-32.json
ghp profile --analytic F=1e12,bandwidth=1e8,latency=1e-5 --model "$vgg" -o profile.json >/dev/null 2>&1
ghp plan "$vgg" --profile profile.json --workers 4 --batch 64 -o tool.json >/dev/null 2>&1
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
example=$root/share/doc/ghp/examples/library
# shellcheck disable=SC2046
if ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror "$example/plan.c" $(pkg-config --cflags --libs ghp) -o plan; then
    ./plan "$vgg" profile.json 4 64 api.json >out 2>err || fail "the example: $(cat err)"
    grep -qE '^conv3 +out:' out || fail "the example plans: $(cat out)"
    cmp <(grep -v '"profile_path"\|_s"' api.json) <(grep -v '"profile_path"\|_s"' tool.json) ||
        fail "it plans otherwise than ghp-plan"
    denied 1 'not a multiple of 3' ./plan "$vgg" profile.json 3 64 no.json
    denied 1 'nowhere.json' ./plan nowhere.json profile.json 4 64 no.json
else
    fail "the example cannot be compiled"
fi
cmake -S "$example" -B by-cmake -DCMAKE_PREFIX_PATH="$root" >log 2>&1 && cmake --build by-cmake >>log 2>&1 ||
    fail "by CMake: $(tail -5 log)"
by-cmake/plan "$vgg" profile.json 4 64 api.json >out 2>err || fail "by CMake: $(cat err)"
if command -v "${CXX:-c++}" >/dev/null; then
    printf '#include <ghp.h>\nint main() { return ghp_version()[0] == 0; }\n' >main.cpp
    # shellcheck disable=SC2046
    ${CXX:-c++} -std=c++11 -Wall -Wextra -pedantic -Werror main.cpp $(pkg-config --cflags --libs ghp) -o main &&
        ./main || fail "ghp.h from C++"
else
    echo "not checked: C++, whose compiler is not there" >&2
fi
cmp <(nm -D --defined-only "$lib/libghp.so" | awk '$2 == "T" { print $3 }' | sort) \
    <(grep -oE '^GHP_API .*' "$root/include/ghp.h" | grep -oE 'ghp_[a-z_]+\(' | tr -d '(' | sort) ||
    fail "the library's symbols are not those of ghp.h"

[ "$failures" = 0 ] && echo "installed like other software"
exit $((failures > 0))
