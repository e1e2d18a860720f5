#!/usr/bin/env bash
# ghp-test: timeout=600 label=mpi needs=ghp-plan,ghp-run,ghp-profile,ghp-inspect,ghp-expect
# tests/tools/python/test_python.sh - the Python package `ghp`: what docs/how-to/python.md shows. In full runs what
# door.py says, and its wheel, built and installed into an environment that has nothing else.
set -u
python=$(command -v "${GHP_PYTHON:-python3}")
. "$(dirname "$0")/../scratch.sh"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$GHP_SOURCE/python

# no PyTorch is needed for what is known by name
python3 -c '
import ghp
assert ghp.expect("gpt2-124m", machine="h100-sxm-8", batch=64).step_s > 0 and ghp.__version__[0].isdigit()
assert len(ghp.expect("gpt2-124m", machine="h100-sxm-8", nodes=[1, 2], batch=64).points) == 2' >out 2>err ||
    fail "without PyTorch: $(tail -1 err)"
# what is refused names keywords, not options
python3 -c '
import ghp
for words, sentence in (({"pipeline": 4}, "bad value \x274\x27 for \x27pipeline\x27; give one of off, auto"),
                        ({"shard": "zero1"}, "bad value \x27zero1\x27 for \x27shard\x27; give sync=\"sharded\" in its place"),
                        ({"batch_nrom": "local"}, "unknown option \x27batch_nrom\x27; did you mean \x27batch_norm\x27?")):
    try:
        ghp.plan("gpt2-124m@64", machine="h100-sxm-8", workers=2, batch=64, **words)
    except ghp.UsageError as error:
        assert str(error) == sentence, str(error)' >out 2>err || fail "keywords: $(tail -1 err)"
# the command that pip installs
for words in '' '"--help"' '"help"' '"help", "expect"' '"--version"' '"expect", "--machine", "list"'; do
    python3 -c "import sys, ghp.tools; sys.argv = ['ghp', $words]; ghp.tools.main()" >out 2>err || fail "ghp $words: $(cat err)"
done

if full; then
    "$python" -c 'import scikit_build_core' 2>/dev/null ||
        { echo "skipped: '$python' lacks scikit-build-core; set GHP_PYTHON to one that has it" >&2; exit 77; }
    python3 -m venv clean || fail "no environment"
    "$python" -m pip wheel -q --no-build-isolation --no-deps -w wheel "$GHP_SOURCE/python" >out 2>err ||
        fail "the wheel is not built: $(tail -3 err)"
    clean/bin/pip install -q --no-index wheel/ghp-*.whl >out 2>err || fail "the wheel is not installed: $(tail -3 err)"
    env -u GHP_BIN -u PYTHONPATH clean/bin/python -c '
import ghp
plan = ghp.plan("gpt2-124m", machine="h100-sxm-8", nodes=2, workers=16, batch=512, precision="bf16")
assert plan.step_s == plan.baselines["data"], plan.baselines' 2>err || fail "in the clean environment: $(tail -1 err)"
    # other versions of Python that start here: the wheel is the same for all
    for version in 3.11 3.12 3.13; do
        own=$(command -v "python$version") && "$own" -c pass 2>/dev/null ||
            own=$(find "${PYENV_ROOT:-$HOME/.pyenv}/versions" -path "*/$version.*/bin/python" 2>/dev/null | tail -n 1)
        [ -n "$own" ] || { echo "not tried: no python$version here" >&2; continue; }
        "$own" -m venv "v$version" && "v$version/bin/pip" install -q --no-index wheel/ghp-*.whl >out 2>err ||
            fail "the wheel is not installed by Python $version: $(tail -3 err)"
        env -u GHP_BIN -u PYTHONPATH "v$version/bin/python" -c '
import ghp
assert ghp.expect("gpt2-124m", machine="h100-sxm-8", batch=64).step_s > 0
plan = ghp.plan("gpt2-124m@64", machine="h100-sxm-8", workers=2, batch=64, no_break_even=True)
assert "predicted" in repr(plan) and "<iframe" in plan._repr_html_()' 2>err || fail "Python $version: $(tail -1 err)"
    done
    PATH=/usr/bin:/bin clean/bin/ghp plan --version >out 2>&1 || fail "the command: $(cat out)"
fi

"$python" -c 'import torch, onnx, onnxscript' 2>/dev/null || {
    echo "skipped what needs PyTorch: '$python' lacks torch, onnx or onnxscript; set GHP_PYTHON to one that has them"
    exit $((failures > 0))
}
sed -n '/^```python$/,/^```$/{/^```/d;p}' "$GHP_SOURCE/docs/how-to/python.md" >page.py
"$python" page.py >out 2>err || fail "docs/how-to/python.md: $(tail -3 err)"
refusal=$(tail -1 out)
tr '\n' ' ' <"$GHP_SOURCE/docs/how-to/python.md" | grep -qF "\`$refusal\`" || fail "docs/how-to/python.md: it prints '$refusal'"
if full; then
    "$python" "$GHP_SOURCE/tests/tools/python/door.py" >out 2>err || fail "$(tail -4 err)"
    if "$python" -c 'import nbclient, ipykernel' 2>/dev/null; then
        "$python" "$GHP_SOURCE/tests/tools/python/notebook.py" run.json >out 2>err || fail "a notebook: $(tail -4 err)"
    else
        echo "skipped the notebook: '$python' lacks nbclient or ipykernel; install them, or set GHP_PYTHON" >&2
    fi
fi
[ $failures -eq 0 ]
