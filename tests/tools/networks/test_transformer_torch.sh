#!/usr/bin/env bash
# ghp-test: timeout=900 full=yes label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect
# tests/tools/networks/test_transformer_torch.sh - transformers trained by ghp are PyTorch's: losses, the norm of all
# gradients and every gradient tensor, in float and double, on one worker and on four, by each way to divide them.
# Wants a python3 (GHP_PYTHON) that has torch. In short tests executor/train/equality stands for it.
set -u
. "$(dirname "$0")/../scratch.sh"
python=${GHP_PYTHON:-python3}
script=$GHP_SOURCE/tests/tools/networks/transformer_torch.py

"$python" -c 'import torch' 2>/dev/null || {
    echo "skipped: '$python' has no torch; set GHP_PYTHON to one that has"
    exit 77
}

"$python" "$script" make gpt gpt-tied gpt-odd llama llama-tied || exit 1
mkdir runs

# trained NETWORK.POSITIONS.BITS.IGNORED.PLAN WORKERS PLAN-OPTION...: the first step's gradients, which are the means
# that AdamW keeps if it keeps nothing else; then ten steps
trained() {
    local network positions bits ignored run=runs/$1 workers=$2 numbers=(--precision float --backend onednn)
    IFS=. read -r network positions bits ignored _ <<<"$1"
    shift 2
    [ "$bits" = 64 ] && numbers=(--precision double --backend reference)
    [ "$ignored" = none ] || numbers+=(--ignore-label "$ignored")
    mkdir "$run"
    [ -e "$network.profile" ] || "$GHP_BIN/ghp-profile" --analytic F=1e10,bandwidth=1e8,latency=1e-6 \
        --model "$network" -o "$network.profile" >out 2>err || { fail "$run: $(cat err)"; return; }
    [ -e "text.$positions" ] || # one batch: a step sees all, and their order does not count
        head -c $((8 * positions + 1)) text >"text.$positions"
    "$GHP_BIN/ghp-plan" "$network@$positions" --profile "$network.profile" --workers "$workers" --batch 8 \
        --optimizer adamw --clip-norm 0.5 --no-break-even "$@" -o "$run/plan.json" >"$run/table" 2>err ||
        { fail "$run: $(cat err)"; return; }
    for part in '--steps 1 --beta1 0 --clip-norm 1e12 --checkpoint first' \
        '--steps 10 --beta2 0.95 --metrics metrics'; do
        # shellcheck disable=SC2086
        (cd "$run" && mpirun --oversubscribe --bind-to none -n "$workers" "$GHP_BIN/ghp-run" plan.json --lr 0.003 \
            --weight-decay 0.1 --data "bytes:../../text.$positions" --init "../../$network@$positions" --threads 1 \
            --numerics exact "${numbers[@]}" $part) >out 2>err </dev/null || { fail "$run: $(head -3 err)"; return; }
    done
    echo "${run#runs/}: $(sed -n 's/^# \([0-9]* groups.*\)/\1/p' "$run/table")"
}

heads='*attn.?=out:4,*attn.heads=channel:4,*attn.c_proj=in:4'
features='*mlp.c_fc=out:4,*mlp.act=channel:4,*mlp.c_proj=in:4'
vocabulary='wte=rows:4,lm_head=out:4,loss=channel:4'
positions='wpe=position:4,*ln_*=position:4,*add_?=position:4' # between the pairs of products
llama_heads='*.?_proj=out:2,*.?_rotary=channel:2,*.self_attn.heads=channel:2,*.o_proj=in:2' # of 2 key/value heads
llama_features='*.gate_proj=out:4,*.up_proj=out:4,*.mlp.act=channel:4,*.mlp.gated=channel:4,*.down_proj=in:4'
llama_vocabulary='embed_tokens=rows:4,lm_head=out:4,loss=channel:4'
llama_context='*.?_rotary=position:4,*.self_attn.heads=position:4'
llama_positions='*norm=position:4,*add_?=position:4'

trained gpt.64.64.none.all 4 --force "$heads,$features,$vocabulary,$positions"
trained llama.64.64.37.context 4 --force "$llama_context,$llama_positions" # 2 key/value heads for 4 workers
trained gpt.48.32.none.stages 4 --stages 2,h.1.ln_1:2 --micro-batches 2 # less than the context
trained gpt-tied.64.64.none.stages 4 --stages 2,h.1.ln_1:2 --micro-batches 2 --force wte=rows:2 # copies of the table
trained gpt-odd.64.64.none.rows 4 --force 'wte=rows:4,loss=channel:4' # 257 rows
trained gpt.64.64.37.data 4 --strategy data
trained llama.64.32.none.heads 4 --force "$llama_heads"
if full; then # in double, where no rounding hides a fault
    for network in gpt-tied llama; do
        trained $network.48.64.37.one 1
        trained $network.16.64.none.planned 4 --no-simplify
    done
    trained gpt-tied.64.64.none.sharded 4 --strategy data --sync sharded
    trained gpt.64.64.none.stages 4 --stages 2,h.1.ln_1:2 --micro-batches 2 --pipeline-schedule zb-h1
    trained llama.64.64.none.stages 4 --stages 2,layers.1.input_layernorm:2 --micro-batches 2 \
        --force '*.?_proj=out:2,*.o_proj=in:2'
    trained llama.64.64.37.all 4 --force "$llama_heads,$llama_features,$llama_vocabulary,$llama_positions"
    trained gpt.64.64.37.positions 4 --force "$heads,$features,$positions,loss=position:4"
    trained gpt.64.64.none.context 4 --force "$positions,*attn.heads=position:2,loss=position:2"
    trained gpt-tied.64.64.37.rows 4 --force "$heads,$features,wte=rows:4,loss=channel:4"
    trained llama-tied.64.64.none.stages 4 --stages 2,layers.1.input_layernorm:2 --micro-batches 4
fi
# gpt-nano on the texts of licenses, 100 steps on four workers, by GHP_ALL=1 500; the windows come in the order of the
# seed
prose() {
    local steps=100 run=(mpirun --oversubscribe --bind-to none -n 4 "$GHP_BIN/ghp-run" prose/plan.json --data bytes:prose/text
        --train-fraction 0.9 --threads 1)
    [ "${GHP_ALL:-0}" != 1 ] || steps=500
    mkdir prose
    cat /usr/share/common-licenses/{GPL-3,GPL-2,LGPL-2.1,MPL-1.1,Apache-2.0} >prose/text 2>err ||
        { echo "no licenses here to train on"; return; }
    "$GHP_BIN/ghp-plan" "$GHP_SOURCE/models/gpt-nano.json" --profile gpt.profile --workers 4 --batch 16 \
        --optimizer adamw --clip-norm 0.5 --no-break-even --force "$heads,$features" -o prose/plan.json >out 2>err &&
        "${run[@]}" --steps 1 --lr 0 --eval off --checkpoint prose/first >out 2>err </dev/null &&
        "$GHP_BIN/ghp-inspect" prose/plan.json --export-hf prose/network \
            --weights prose/first/checkpoint.safetensors >out 2>err &&
        "${run[@]}" --steps "$steps" --lr 0.003 --weight-decay 0.1 --beta2 0.95 --init prose/network --run prose/run.json \
            >out 2>err </dev/null || { fail "prose: $(head -3 err)"; return; }
    "$python" "$script" prose prose || fail "$steps steps are not PyTorch's"
}
full && prose
"$python" "$script" compare || fail "ghp's are not PyTorch's"
[ $failures -eq 0 ]
