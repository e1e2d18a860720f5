#!/usr/bin/env bash
# ghp-test: timeout=120 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/data/test_tokens.sh - a network of tokens through the tools, from files of tokens: what is reported of
# tokens in addition to samples, that two workers train as one, and what is refused. In short tests executor/data/tokens
# and executor/data/token_windows stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
model="$GHP_SOURCE/models/gpt-nano.json"

python3 -c 'import random; random.seed(3); print(end="".join(random.choices("etaoin shrdlu", k=64 * 16 + 1)))' >text
analytic "$model" profile.json F=1e11,bandwidth=1e9,latency=2e-5
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 2 --batch 4 -o plan.json >out 2>&1 ||
    fail "plan: $(cat out)"
grep -q 'tokens/s' out || fail "a plan's table has no tokens/s: $(cat out)"

train() { ranks 2 run plan.json --threads 1 "$@"; }

train --data bytes:text --train-fraction 0.5 --steps 4 --run run.json --metrics metrics || fail "run: $(cat err)"
grep -qE 'samples/s, [0-9]+ tokens/s' out || fail "no tokens/s: $(cat out)"
grep -qE 'loss [0-9.]+, perplexity [0-9.]+, over all 8 samples' out || fail "no perplexity: $(cat out)"
awk -v i="$(number images_per_s run.json)" -v t="$(number tokens_per_s run.json)" -v l="$(number test_loss run.json)" \
    -v p="$(number test_perplexity run.json)" \
    'function far(a, b) { return a - b > 1e-6 * b || b - a > 1e-6 * b } # both are printed in full
     BEGIN { exit far(t, 64 * i) || far(p, exp(l)) }' || fail "tokens/s or perplexity in run.json"
# the first step has no rate yet
[ "$(grep -c tokens_per_s metrics)" = 3 ] || fail "tokens_per_s in metrics: $(cat metrics)"
[ "$(grep -c test_perplexity metrics)" -ge 1 ] || fail "test_perplexity in metrics: $(cat metrics)"

train --data bytes:text --verify 2 || fail "two workers: $(tail -3 out) $(cat err)"

# a file that becomes shorter while it is trained on ends the run with a sentence, whatever its format
python3 - <<'PY'
import struct
n = 1 << 20
open('cut.bin', 'wb').write(struct.pack('<H', 7) * n)
head = "{'descr': '<u2', 'fortran_order': False, 'shape': (%d,), }" % n
head += ' ' * (63 - (10 + len(head)) % 64) + '\n'
open('cut.npy', 'wb').write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + struct.pack('<H', 7) * n)
PY
trains() { [ -s "$1" ]; }
for file in cut.bin cut.npy; do
    mpirun --oversubscribe --bind-to none -n 2 "$GHP_BIN/ghp-run" plan.json --threads 1 --data tokens:$file \
        --steps 1000000 --metrics $file.jsonl >out 2>err </dev/null &
    job=$!
    waits 30 trains $file.jsonl || fail "$file: does not train: $(cat err)"
    truncate -s 1000 $file
    wait $job
    code=$?
    [ $code = 1 ] || fail "$file cut: exit $code: $(cat err)"
    grep -qE "^ghp-run: cannot read '$file' any more: it became shorter, .* with --resume$" err ||
        fail "$file cut: $(cat err)"
done

printf 'abc' >odd
for bad in 'tokens:odd|odd number of bytes' 'bytes:odd|fewer than one window' 'bytes:absent|cannot read' \
    'tokens:text|is text, not token ids' 'cifar10:.|no data in|takes|samples of'; do
    train --data "${bad%%|*}" --steps 1 && fail "${bad%%|*} was taken"
    grep -qE "${bad#*|}" err || fail "${bad%%|*}: $(cat err)"
done
[ $failures -eq 0 ]
