#!/usr/bin/env bash
# docs/how-to/report.sh - makes docs/how-to/report.png again, from the source tree, with chromium.
set -eu
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
build/bin/ghp-profile --analytic F=6e12,bandwidth=1.25e9,latency=20e-6 --model models/vgg16.json -o "$work/profile.json"
build/bin/ghp-profile --machine-only --hwloc 'package:2 core:2 pu:1' --nodes 4 -o "$work/cluster.json"
build/bin/ghp-plan models/vgg16.json --profile "$work/profile.json" --machine "$work/cluster.json" \
    --workers 16 --batch 512 --groups 4 --bucket-cap 0 --memory 4GiB -o "$work/plan.json"
build/bin/ghp-inspect "$work/plan.json" --html "$work/vgg16.html"
chromium --headless --hide-scrollbars --window-size=1280,2080 --screenshot=docs/how-to/report.png "$work/vgg16.html"
