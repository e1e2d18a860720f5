#!/usr/bin/env bash
# ghp-test: timeout=300 processors=2 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,python3
# tests/tools/examples/test_schemes.sh - examples/schemes: each scheme of the lesson learns; a slow worker holds up those that sum.
# A step of the slow worker lasts 80 ms at least, since a sleep is never too short: 64 samples in it are 800 a second.
# In short tests planner/schemes/schemes stands for it.
set -u
. "$(dirname "$0")/example.sh"
export STEPS=16
full || export SCHEMES='allreduce ad-psgd'
example schemes
while read -r scheme fast accuracy slow; do
    above "$accuracy" 0.5 "the accuracy of $scheme"
    above "$fast" 0 "the rate of $scheme"
    case $scheme in
    allreduce | bsp) below "$slow" 860 "the rate of $scheme with a slow worker (15 of 16 steps are waited for)" ;;
    esac
done < <(tail -n +3 work/table)
[ "$(tail -n +3 work/table | wc -l)" -ge 2 ] || fail "the table has no schemes: $(cat work/table)"
# a machine that was too busy for such rates is named
late=$(sed -n 's/^ *"emulation_late_steps": \([0-9]*\).*/\1/p' work/*.json | sort -n | tail -n 1)
grep -q "^$late steps of a worker computed for longer" out && said=yes || said=no
[ "$late" -gt $((STEPS / 10)) ] && wanted=yes || wanted=no
[ $said = $wanted ] || fail "$late late steps of $STEPS: said $said: $(tail -n 1 out)"
[ $failures -eq 0 ]
