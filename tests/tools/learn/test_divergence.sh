#!/usr/bin/env bash
# ghp-test: timeout=1200 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect,ghp-launch,python3
# tests/tools/learn/test_divergence.sh - trainings that diverge, drawn by rate and seed over networks, optimizers,
# precisions, synchronisers, clipped or not: none ends with exit code 0 and a number in its checkpoint that is not
# finite. If one ends with 5, the named step is right: a checkpoint of that many steps is there and finite, and a run
# by the same plan that ends there, once more, is done; the step after it ends the same way, with the same layer. That
# layer is the first, in the order of the network, that the checkpoint of a run with --inject-fault overlook has with
# numbers that are not finite, which Python reads. NaN in a sample, in weights and by a rate of 0 are told apart.
# ghp-launch does not start such a run again. 4 draws, in full
# runs 6, one a network; GHP_DRAWS=50 takes more, GHP_SEED repeats them. In short tests core/base/finite and
# executor/train/losses stand for it.
set -u
. "$(dirname "$0")/../scratch.sh"
draws=4
full && draws=6
draws=${GHP_DRAWS:-$draws}
RANDOM=${GHP_SEED:-77}
echo "GHP_SEED=${GHP_SEED:-77}, $draws draws"
networks=(lenet5 vgg-a-32 small-resnet cifar10-quick gpt-nano llama-nano)
codes='' seen=0

# one WORDS...: a word drawn
one() { local words=("$@"); echo "${words[RANDOM % $#]}"; }

cat >finite.py <<'PY'
import json, math, struct, sys
f = open(sys.argv[1], 'rb')
head = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))
base = f.tell()
kind = {'F32': 'f', 'F64': 'd'}
metadata = head.pop('__metadata__')
order = [name for name, t in sorted(head.items(), key=lambda item: item[1]['data_offsets'])]
bad = []
for name in order:
    t = head[name]
    a, b = t['data_offsets']
    f.seek(base + a)
    n = (b - a) // struct.calcsize(kind[t['dtype']])
    if not all(map(math.isfinite, struct.unpack('<%d%s' % (n, kind[t['dtype']]), f.read(b - a)))):
        bad.append(name)
if len(sys.argv) > 2: # the first parameter whose layer has anything, by the order of parameters
    bare = [next(p for p in order if name == p or name.endswith('.' + p) and name[:-len(p) - 1] in ('momentum', 'variance'))
            for name in bad]
    print(min(bare, key=order.index) if bare else '')
    sys.exit()
if bad: sys.exit('not finite: ' + bad[0])
print(metadata['step'])
PY

# train ARGS...: by the drawn plan
train() {
    if [ "$ranks" = 1 ]; then "$GHP_BIN/ghp-run" plan.json --seed "$seed" --lr "$rate" "$@" >out 2>err </dev/null
    else ranks "$ranks" run plan.json --seed "$seed" --lr "$rate" "$@"; fi
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
    # nobody looks: what the step left, and the loss with which it began
    rm -rf seen metrics
    train --steps $((step + 1)) --inject-fault overlook --checkpoint seen --checkpoint-epochs 0 --metrics metrics ||
        fail "$what: overlooked: $(cat err)"
    if grep -q 'the loss of' first; then
        sed -n "$((step + 1))p" metrics | grep -q '"loss": *null' || fail "$what: $said, and the loss was $(tail -n 1 metrics)"
    else
        kept=$(python3 finite.py seen/checkpoint.safetensors first 2>&1)
        case $kept in "$layer" | "$layer".*) ;; *) fail "$what: named '$layer', and the first not finite is '$kept'" ;; esac
    fi
    [ "$step" = 0 ] || head -n "$step" metrics | grep -q '"loss": *null' && fail "$what: a loss before step $step is not finite"
    seen=$((seen + 1))
}

# whether the processor has kernels for bf16
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 4 --precision bf16 -o plan.json >out 2>err ||
    fail "$(cat err)"
workers=1 ranks=1 seed=1 rate=0.1 optimizer=sgd
has_bf16=yes
train --steps 1 || { grep -q 'no bf16 kernels for this processor' err && has_bf16=no; } || fail "bf16: $(cat err)"

for draw in $(seq "$draws"); do
    network=${networks[draw % 6]}
    optimizer=$(one sgd sgd adamw) workers=$(one 1 1 2) seed=$RANDOM options=() clips=no
    rate=$(one 0.5 2 3 10 100 1e4 1e6)
    [ "$optimizer" = adamw ] && rate=$(one 3 30 1e3 1e5 1e6)
    scaling=none
    [ "$optimizer" = sgd ] && scaling=$(one none none lars)
    [ "$optimizer" = adamw ] && scaling=$(one none lamb lamb)
    [ $scaling = none ] && [ "$(one yes no no)" = yes ] && clips=yes && options+=(--clip-norm "$(one 1 100)")
    [ "$(one yes no no)" = yes ] && [ $has_bf16 = yes ] && options+=(--precision bf16)
    sync=$(one allreduce sharded local:2 bsp) ranks=$workers
    [ $scaling = none ] || { sync=$(one allreduce sharded) options+=(--lr-scaling $scaling); }
    [ "$sync$clips" = local:2yes ] || [ "$sync$clips" = bspyes ] && sync=sharded # no worker has the norm
    [ "$workers" = 2 ] && options+=(--sync "$sync") && [ $sync = bsp ] && ranks=3 options+=(--servers 1)
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
    5) cp err first && check_named "$(named)" ;;
    *) fail "$what: exit $code: $(cat err)" ;;
    esac
    codes="$codes $code"
done
echo "exit codes:$codes; $seen layers and steps looked at"
case $codes in *5*) ;; *) fail "none diverged" ;; esac

# ghp-launch does not start again after a divergence; nor is there a checkpoint that is not finite
model=$GHP_SOURCE/models/lenet5.json
analytic "$model" profile.json
"$GHP_BIN/ghp-plan" "$model" --profile profile.json --workers 1 --batch 8 -o plan.json >out 2>err || fail "$(cat err)"
rm -rf kept
denied 5 "gave up, as a restart would end the same: the weights of '[a-z0-9]*' are not finite" \
    "$GHP_BIN/ghp-launch" plan.json --checkpoint kept --mpirun 'mpirun --oversubscribe --bind-to none' -- \
    --steps 20 --lr 1e6
[ "$(grep -c 'synthetic: ' err)" = 1 ] || fail "not one attempt: $(cat err)"

# where neither the plan's weights are finite nor one worker's, nothing is said of a defect
denied 5 "nothing to compare: 'conv1.weight' is not finite after 6 steps by one worker, nor are the plan's weights; the" \
    "$GHP_BIN/ghp-run" plan.json --verify 6 --lr 1e6 --inject-fault overlook

# weights that are not finite are refused by --init, and shown by ghp-inspect; with a rate of 0 "lower --lr" does not
# help
ranks=1 seed=1 rate=0.01
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
