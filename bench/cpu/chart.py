#!/usr/bin/env python3
"""bench/cpu/chart.py - draws what bench/cpu/run has written: images/s of ghp and of the floor, PyTorch's as one.

Networks differ by orders of magnitude in images/s, ratios do not: a bar is a ratio to PyTorch of the same row, the line
on ghp's the least and the most of the pairs.  Light and dark by media query; the same results give the same bytes.

usage: bench/cpu/chart.py RESULT.json CHART.svg
Exit codes: 0 done, 1 failed, 2 bad usage.
"""
import json
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, BAR, GAP = 700, 170, 60, 62, 16, 14
STYLE = """<style>
text { font: 13px sans-serif; fill: #222 } .small { font-size: 11px; fill: #666 }
.title { font-size: 15px; font-weight: bold } .axis { stroke: #ccc }
.ghp { fill: #2a6fbb } .floor { fill: #9aa7b4 } .range { stroke: #222 } .one { stroke: #b5452c; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .small { fill: #999 } .ghp { fill: #5b9be0 }
.floor { fill: #66727e } .range { stroke: #ddd } .one { stroke: #e0765c } .axis { stroke: #444 } }
</style>"""


def fail(code, text):
    print(f"chart: {text}", file=sys.stderr)
    sys.exit(code)


def bars_of(row):
    """(class, ratio, least, most) of a row; the floor where it was measured."""
    bars = [("ghp", row["ratio"], row["ratio_low"], row["ratio_high"])]
    if "over_floor" in row:
        ratio = row["ratio"] * row["over_floor"]
        bars.append(("floor", ratio, ratio, ratio))
    return bars


def name_of(row):
    return f"{row['network']}, batch {row['batch']}" + (f", {row['workers']} workers" if row["workers"] > 1 else "")


def text(x, y, words, kind="", anchor="start"):
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


def draw(result):
    rows = result["rows"]
    most = max(bar[3] for row in rows for bar in bars_of(row))
    scale = (WIDTH - LEFT - RIGHT) / max(most, 1)
    lines, y = [], TOP
    for row in rows:
        bars = bars_of(row)
        lines.append(text(LEFT - 8, y + len(bars) * BAR / 2 + 4, name_of(row), anchor="end"))
        for kind, ratio, least, high in bars:
            lines.append(f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{ratio * scale:.1f}" height="{BAR - 2}"/>')
            if high > least:
                lines.append(f'<line class="range" x1="{LEFT + least * scale:.1f}" x2="{LEFT + high * scale:.1f}" '
                             f'y1="{y + BAR / 2 - 1}" y2="{y + BAR / 2 - 1}"/>')
            lines.append(text(LEFT + high * scale + 5, y + BAR - 5, f"{ratio:.2f}", "small"))
            y += BAR
        y += GAP
    x = LEFT + scale
    lines.append(f'<line class="one" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{y - GAP + 4}"/>')
    lines.append(f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{TOP - 6}" y2="{y - GAP + 4}"/>')
    threads = ", ".join(sorted({f"{row['threads']} thread(s)" for row in rows}))
    head = [text(12, 22, "Training steps on a processor: images/s over PyTorch's", "title"),
            text(12, 42, f"{threads} a worker, medians of {result['repeats']} pairs of runs, {result['clock']} clock; "
                         "blue: ghp, grey: the best primitives and the update alone, dashed: PyTorch", "small")]
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">'
    return "\n".join([svg, STYLE, *head, *lines, "</svg>", ""])


def main():
    if len(sys.argv) != 3:
        fail(2, "wants RESULT.json, written by bench/cpu/run --output, and CHART.svg")
    try:
        result = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as problem:
        fail(1, f"cannot read '{sys.argv[1]}': {problem}")
    if result.get("format") != "ghp.bench-cpu/1" or not result.get("rows"):
        fail(1, f"'{sys.argv[1]}' is not a result of bench/cpu/run with a row or more; write one with its --output")
    pathlib.Path(sys.argv[2]).write_text(draw(result), encoding="utf-8")


if __name__ == "__main__":
    main()
