#!/usr/bin/env bash
# ghp-test: timeout=240 full=yes needs=libghp,ghp-run,ghp-profile,ghp-launch,ghp-train,cpack,dpkg-deb,dpkg-shlibdeps
# tests/tools/together/test_debian.sh - cpack makes Debian packages: what they depend on, what is in them, and that the
# tools run from there. In short tests planner/api/api stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
build=$(dirname "$GHP_BIN")

cpack -G DEB --config "$build/CPackConfig.cmake" -B "$PWD/packed" >log 2>&1 || { tail -20 log >&2; exit 1; }
tools=$(ls packed/ghp_*.deb) dev=$(ls packed/ghp-dev_*.deb)
for package in "$tools" "$dev"; do
    dpkg -x "$package" unpacked || fail "cannot unpack $package"
    dpkg-deb -I "$package" >info || fail "$package is no package"
    grep -qE '^ Description: [a-z].{20,80}$' info || fail "$package has no short description"
done
depends=$(dpkg-deb -f "$tools" Depends)
mpi=libopenmpi3 launcher=openmpi-bin # of the MPI that this build has
ldd "$GHP_BIN/ghp-run" | grep -q libmpich && mpi=libmpich12 launcher=mpich
for library in libc6 libjansson4 libglpk40 $mpi libhwloc15 libdnnl zlib1g libprotobuf-c1; do
    grep -q "$library" <<<"$depends" || fail "the package does not depend on $library, but on $depends"
done
[[ $(dpkg-deb -f "$tools" Recommends) == *$launcher* ]] || fail "the package does not recommend $launcher"
[ "$(dpkg-deb -f "$dev" Depends)" = "ghp (= $(dpkg-deb -f "$tools" Version))" ] || fail "ghp-dev is not of its ghp"

root=$PWD/unpacked/usr
for tool in ghp ghp-plan ghp-expect ghp-profile ghp-inspect ghp-run ghp-launch ghp-train; do
    gzip -t "$root/share/man/man1/$tool.1.gz" || fail "$tool.1.gz is not there"
    [ -e "$root/share/man/man1/$tool.1" ] && fail "$tool.1 is there twice"
    [ -s "$root/share/bash-completion/completions/$tool" ] || fail "$tool has no completions"
    readelf -S "$root/bin/$tool" | grep -q '\.debug_info' && fail "$tool is not stripped"
    (cd / && "$root/bin/$tool" --version >/dev/null) || fail "$tool does not start"
done
for package in ghp ghp-dev; do
    grep -q 'License: Apache-2.0' "$root/share/doc/$package/copyright" || fail "$package has no copyright"
    zcat "$root/share/doc/$package/changelog.gz" | grep -q '^ghp (' || fail "$package has no changelog"
done
[ "$(readlink -m "$root/share/doc/ghp/LICENSE")" = "$root/share/common-licenses/Apache-2.0" ] ||
    fail "README's link to the licence leads elsewhere than to Debian's"
[ -s "$root/include/ghp.h" ] || fail "ghp.h is not there"

cd elsewhere 2>/dev/null || { mkdir elsewhere && cd elsewhere || exit 1; }
PATH=$root/bin:$PATH
model=$root/share/ghp/models/lenet5.json
ghp profile --analytic F=1e11,bandwidth=1e9,latency=1e-5 --model "$model" -o profile.json >out 2>&1 &&
    ghp plan "$model" --profile profile.json --workers 2 --batch 8 -o plan.json >out 2>&1 &&
    mpirun --oversubscribe --bind-to none -n 2 ghp run plan.json --steps 2 >out 2>&1 ||
    fail "the tools do not work: $(tail -3 out)"
cd ..

if command -v lintian >/dev/null && full; then
    lintian --fail-on error "$tools" "$dev" >&2 || fail "lintian finds errors"
fi
[ "$failures" = 0 ] && echo "packed as Debian wants it"
exit $((failures > 0))
