# tests/tools/python/notebook.py - a notebook of docs/how-to/python.md's functions, executed by a true kernel: a plan and
# a run show their pages, an expectation its screen. Needs nbclient and ipykernel; argument: a run's file, or nothing.
import sys

import nbclient
import nbformat

cells = ["import ghp\nghp.expect('gpt2-124m', machine='h100-sxm-8', batch=64)",
         "ghp.plan('gpt2-124m@64', machine='h100-sxm-8', workers=2, batch=64, no_break_even=True)"]
cells += ["ghp.Run(%r)" % path for path in sys.argv[1:]]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
shown = []
for cell in notebook.cells:
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    assert len(results) == 1, cell.outputs
    shown.append(results[0].data)
assert "binds" in shown[0]["text/plain"], shown[0]
for data in shown[1:]:
    assert data["text/html"].startswith("<iframe") and "&lt;svg" in data["text/html"], data["text/html"][:300]
    assert "predicted" in data["text/plain"], data["text/plain"][:300]
print(len(shown), "cells show what they should")
