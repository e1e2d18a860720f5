#!/bin/bash
# plans/make.sh - makes the example plans again: vgg16 on 16 workers, global batch 1024, by a law of round numbers.
#
# usage, from the source tree's root: plans/make.sh [FOLDER OF THE TOOLS]
# Reads models/vgg16.json, writes into plans/. The paths are part of the plans, so they are relative. The time limit is
# one that no busy machine reaches: what a plan's search leaves out for lack of time would make it another.
set -eu
bin=${1:-build/bin}
name=vgg16-16
"$bin/ghp-profile" --analytic F=6e12,bandwidth=1.25e9,latency=20e-6 --model models/vgg16.json \
    -o plans/$name.profile.json >/dev/null
for strategy in auto data model owt; do
    plan=$name-$strategy
    [ $strategy = auto ] && plan=$name-ghp
    "$bin/ghp-plan" models/vgg16.json --profile plans/$name.profile.json --workers 16 --batch 1024 \
        --strategy $strategy --time-limit 600 -o plans/$plan.plan.json >/dev/null
done
