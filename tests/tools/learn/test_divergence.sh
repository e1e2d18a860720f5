#!/usr/bin/env bash
# ghp-test: timeout=1200 label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect,ghp-launch,python3
# tests/tools/learn/test_divergence.sh - trainings that diverge, drawn by rate and seed over networks, optimizers,
# precisions, synchronisers, clipped or not: none ends with exit code 0 and a number in its checkpoint that is not
# finite. Where one ends with 5, the named step is right: a checkpoint of that many steps is there and finite, and a run
# by the same plan that ends there, once more, is done; the step after it ends the same way, with the same layer. NaN in
# a sample, in weights and by a rate of 0 are told apart. ghp-launch does not start such a run again. 6 draws, in full
# runs 20; GHP_DRAWS=50 takes more, GHP_SEED repeats them.
set -u
. "$(dirname "$0")/../scratch.sh"
draws=6
full && draws=20
draws=${GHP_DRAWS:-$draws}
RANDOM=${GHP_SEED:-$$}
echo "GHP_SEED=${GHP_SEED:-$$}, $draws draws"
networks=(lenet5 vgg-a-32 small-resnet cifar10-quick gpt-nano llama-nano)
codes=''

# one WORDS...: a word drawn
one() { local words=("$@"); echo "${words[RANDOM % $#]}"; }

cat >finite.py <<'PY'
import json, math, struct, sys
f = open(sys.argv[1], 'rb')
head = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
base = f.tell()
kind = {'F32': 'f', 'F64': 'd'}
for name, t in head.items():
    if name == '__metadata__': continue
    a, b = t['data_offsets']
    f.seek(base + a)
    n = (b - a) // struct.calcsize(kind[t['dtype']])
    if not all(map(math.isfinite, struct.unpack('<%d%s' % (n, kind[t['dtype']]), f.read(b - a)))):
        sys.exit('not finite: ' + name)
print(head['__metadata__']['step'])
PY

# train ARGS...: by the drawn plan
train() {
    if [ "$workers" = 1 ]; then "$GHP_BIN/ghp-run" plan.json --seed "$seed" --lr "$rate" "$@" >out 2>err </dev/null
    else ranks "$workers" run plan.json --seed "$seed" --lr "$rate" "$@"; fi
}

# named: "layer step", as the run said it
named() { sed -n "s/.*the weights of '\([^']*\)' are not finite after step \([0-9]*\):.*/\1 \2/p; s/.*the loss of '\([^']*\)' is not finite in step \([0-9]*\):.*/\1 \2/p" err | head -n 1; }

# check_named: what the run that has ended with 5 said
check_named() {
    local said=$1 layer=${1% *} step=${1#* } kept
    [ -n "$said" ] || { fail "$what: names no layer and step: $(cat err)"; return; }
    if [ "$step" -gt 0 ]; then
        kept=$(python3 finite.py kept/checkpoint.safetensors 2>&1) || fail "$what: step $step: $kept"
        [ "$kept" = "$step" ] || fail "$what: named step $step, the last checkpoint is of $kept steps"
    elif [ -e kept/checkpoint.safetensors ]; then
        fail "$what: named step 0, and there is a checkpoint"
    fi
    [ "$step" = 0 ] || train --steps "$step" || fail "$what: $step steps alone: exit $?: $(cat err)"
    train --steps $((step + 1)) && fail "$what: $((step + 1)) steps alone: exit 0"
    [ "$(named)" = "$said" ] || fail "$what: $said, and then $(named)"
}

for draw in $(seq "$draws"); do
    network=${networks[draw % 6]}
    optimizer=$(one sgd sgd adamw) workers=$(one 1 1 2) seed=$RANDOM options=() clips=no
    rate=$(one 0.5 2 3 10 100 1e4 1e6)
    [ "$optimizer" = adamw ] && rate=$(one 3 30 1e3 1e5 1e6)
    [ "$(one yes no no)" = yes ] && clips=yes && options+=(--clip-norm "$(one 1 100)")
    [ "$(one yes no no)" = yes ] && options+=(--precision bf16)
    sync=$(one allreduce sharded local:2)
    [ "$sync$clips" = local:2yes ] && sync=sharded # no worker has the norm
    [ "$workers" = 2 ] && options+=(--sync "$sync")
    what="draw $draw: $network $optimizer workers $workers rate $rate seed $seed ${options[*]-}"
    model=$GHP_SOURCE/models/$network.json
    analytic "$model" profile.json
    "$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers "$workers" --batch 4 --optimizer "$optimizer" \
        ${options[@]+"${options[@]}"} -o plan.json >out 2>err || { fail "$what: $(cat err)"; continue; }
    rm -rf kept
    code=0
    train --steps 12 --checkpoint kept --checkpoint-every 1 || code=$?
    case $code in
    0) python3 finite.py kept/checkpoint.safetensors >out 2>&1 || fail "$what: exit 0, and $(cat out)" ;;
    5) check_named "$(named)" ;;
    *) fail "$what: exit $code: $(cat err)" ;;
    esac
    codes="$codes $code"
done
echo "exit codes:$codes"
case $codes in *5*) ;; *) fail "none diverged" ;; esac

# a divergence is no reason for ghp-launch to start again; nor is there a checkpoint that is not finite
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 8 -o plan.json >out 2>err || fail "$(cat err)"
rm -rf kept
denied 5 "gave up, as a restart would end the same: the weights of '[a-z0-9]*' are not finite" \
    "$GHP_BIN/ghp-launch" plan.json --checkpoint kept --mpirun 'mpirun --oversubscribe --bind-to none' -- \
    --steps 20 --lr 1e6
[ "$(grep -c 'synthetic: ' err)" = 1 ] || fail "not one attempt: $(cat err)"

# weights that are not finite are refused by --init, and shown by ghp-inspect; by a rate of 0 "lower --lr" is no remedy
workers=1 seed=1 rate=0.01
train --steps 2 --checkpoint good || fail "$(cat err)"
mkdir bad
python3 - <<'PY'
import json, struct
data = bytearray(open('good/checkpoint.safetensors', 'rb').read())
size = struct.unpack('<Q', data[:8])[0]
head = json.loads(data[8:8 + size])
at = 8 + size + head['conv2.weight']['data_offsets'][0]
data[at:at + 4] = struct.pack('<f', float('nan'))
for key in ('checksum', 'xxh3'):
    head['__metadata__'].pop(key, None)
text = json.dumps(head).encode()
open('bad/checkpoint.safetensors', 'wb').write(struct.pack('<Q', len(text)) + text + data[8 + size:])
PY
denied 1 "1 of [0-9]* numbers of tensor 'conv2.weight' are not finite" \
    "$GHP_BIN/ghp-run" plan.json --steps 1 --init bad/checkpoint.safetensors
"$GHP_BIN/ghp-inspect" bad >out 2>err || fail "ghp-inspect: $(cat err)"
grep -q "not finite: 1 of [0-9]* tensors, the first 'conv2.weight'" out || fail "ghp-inspect: $(cat out)"
python3 - <<'PY'
import struct
n = 16
values = [0.5] * (n * 28 * 28)
values[3 * 28 * 28 + 5] = float('nan')
def save(name, kind, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    head += ' ' * (63 - (10 + len(head)) % 64) + '\n'
    open(name, 'wb').write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + data)
import os
os.mkdir('arrays')
save('arrays/images.npy', '<f4', '(%d, 28, 28, 1)' % n, struct.pack('<%df' % len(values), *values))
save('arrays/labels.npy', '<i8', '(%d,)' % n, struct.pack('<%dq' % n, *[i % 10 for i in range(n)]))
PY
denied 1 'sample 3 of the training set has numbers that are not finite, and step [01] trains on it' \
    "$GHP_BIN/ghp-run" plan.json --steps 4 --data npy:arrays --normalise none
[ $failures -eq 0 ]
