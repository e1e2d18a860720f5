#!/usr/bin/env bash
# run.sh [FOLDER] - builds plan.c against an installed libghp, by pkg-config and by CMake, and plans with it.
# shellcheck source-path=SCRIPTDIR source=../setup.sh
. "$(dirname "$0")/../setup.sh"

# PREFIX is where ghp is installed; without it, it is installed here from this tree's build.
if [ -z "${PREFIX:-}" ]; then
    PREFIX=$PWD/prefix
    cmake --install "$(dirname "$(command -v ghp-plan)")/.." --prefix "$PREFIX" --strip >installed
fi
lib=$(dirname "$(find "$PREFIX" -name libghp.so | head -n 1)")
export LD_LIBRARY_PATH=$lib PKG_CONFIG_PATH=$lib/pkgconfig
network=$PREFIX/share/ghp/models/vgg16.json profile=$PREFIX/share/ghp/plans/vgg16-16.profile.json

# shellcheck disable=SC2046 # several words
"${CC:-cc}" "$here/plan.c" $(pkg-config --cflags --libs ghp) -o plan
./plan "$network" "$profile" 16 512 plan.json

cmake -S "$here" -B by-cmake -DCMAKE_PREFIX_PATH="$PREFIX" >cmake.log && cmake --build by-cmake >>cmake.log
by-cmake/plan "$network" "$profile" 16 512 plan.json >again
echo "a program built by CMake plans too"
