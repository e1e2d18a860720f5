/* inspect/report/style.c - how the report's page looks, and the little that it does.
 *
 * Neither < nor & stands in these texts, so that the page reads as HTML and as XML alike.  Colours come in pairs, for
 * light and for dark; text has a contrast of at least 4.5 to 1 on its ground (tests/tools/test_report.sh). */
#include "inspect/report/private.h"

/* Lines, ended by NULL. */
const char *const ghp_report_style[] = {
    ":root{color-scheme:light dark;--ground:#f3f5f8;--card:#fff;--ink:#17202b;--soft:#4d5967;"
    "--line:#d3dae3;--faint:#e9edf2;--data:#2667a8;--out:#a34606;--in:#21784a;--channel:#7344ad;"
    "--full:#725807;--change:#c4267a;--own:#2667a8;--other:#8494a7;--idle:#dfa82f;"
    "--p0:#3f83cc;--p1:#7a63c9;--p2:#b05aa6;--p3:#d9772a;--p4:#5c9440;--p5:#8b97a5;--p6:#c29b1c;"
    "--p7:#dfe4ea;--m0:#3f6fb5;--m1:#7396d0;--m2:#c29b1c;--m3:#3f9a7c;--m4:#8fc7a9;--m5:#a59ab5;"
    "--limit:#b3261e}\n",
    "@media (prefers-color-scheme:dark){:root{--ground:#11161d;--card:#1a212b;--ink:#e7ecf2;"
    "--soft:#a9b5c3;--line:#36414f;--faint:#252e3a;--data:#6fb0f0;--out:#f39a55;--in:#64c692;"
    "--channel:#bd97ee;--full:#d8b958;--change:#f77bb8;--own:#4f94dc;--other:#647386;"
    "--idle:#c9982a;--p0:#4b90da;--p1:#8d78dc;--p2:#c26fb8;--p3:#e58a42;--p4:#6ea850;--p5:#768393;"
    "--p6:#cfab37;--p7:#323d4a;--m0:#4a7cc4;--m1:#2f5288;--m2:#b8951f;--m3:#37886e;--m4:#27584a;"
    "--m5:#6d6480;--limit:#ff8a80}}\n",
    "*{box-sizing:border-box}\n",
    "body{margin:0;background:var(--ground);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n",
    "main{max-width:1200px;margin:0 auto;padding:20px}\n",
    "h1{font-size:28px;line-height:1.2;margin:8px "
    "0;letter-spacing:-.01em;overflow-wrap:anywhere}\n",
    "h2{font-size:19px;margin:0 0 10px}\n",
    "h3{font-size:14px;margin:0}\n",
    "p{margin:6px 0}\n",
    "header p{color:var(--soft)}\n",
    "section{background:var(--card);border:1px solid var(--line);border-radius:12px;"
    "padding:18px;margin:16px 0}\n",
    ".small{font-size:13px;color:var(--soft);display:block;min-height:20px}\n",
    "code{font:12px/1.4 ui-monospace,'DejaVu Sans Mono',monospace;color:var(--soft)}\n",
    "ul{list-style:none;margin:0;padding:0}\n",
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(128px,1fr));gap:10px;"
    "margin:14px 0 0}\n",
    ".figure{background:var(--card);border:1px solid var(--line);border-radius:12px;"
    "padding:10px 14px}\n",
    ".figure dt{font-size:12.5px;color:var(--soft)}\n",
    ".figure dd{margin:0}\n",
    ".figure b{display:block;font-size:23px;line-height:1.3;font-variant-numeric:tabular-nums}\n",
    ".figure span{font-size:12.5px;color:var(--soft)}\n",
    ".legend,.facts{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;color:var(--soft);"
    "margin:0 0 10px}\n",
    ".legend b,.facts b{color:var(--ink)}\n",
    ".legend .none{font-style:italic}\n",
    ".facts li{overflow-wrap:anywhere}\n",
    ".dot{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;"
    "background:var(--c);vertical-align:-1px}\n",
    ".data{--c:var(--data)}.out{--c:var(--out)}.in{--c:var(--in)}.channel{--c:var(--channel)}"
    ".full{--c:var(--full)}.change{--c:var(--change)}.busy{--c:var(--own)}.idle{--c:var(--idle)}\n",
    ".p0{--c:var(--p0)}.p1{--c:var(--p1)}.p2{--c:var(--p2)}.p3{--c:var(--p3)}.p4{--c:var(--p4)}"
    ".p5{--c:var(--p5)}.p6{--c:var(--p6)}.p7{--c:var(--p7)}\n",
    ".m0{--c:var(--m0)}.m1{--c:var(--m1)}.m2{--c:var(--m2)}.m3{--c:var(--m3)}.m4{--c:var(--m4)}"
    ".m5{--c:var(--m5)}\n",
    ".strategies li{margin:0 0 12px}\n",
    ".strategies p{margin:3px 0 0;font-size:13px;color:var(--soft);"
    "font-variant-numeric:tabular-nums}\n",
    ".strategies p b{color:var(--ink);font-size:15px}\n",
    ".track{display:flex;height:18px;margin-top:4px;background:var(--faint);border-radius:5px;"
    "overflow:hidden}\n",
    ".track i{background:var(--c)}\n",
    ".other .busy{--c:var(--other)}\n",
    ".cut{-webkit-mask:linear-gradient(90deg,#000 92%,transparent);"
    "mask:linear-gradient(90deg,#000 92%,transparent)}\n",
    ".scroll{overflow-x:auto;border-radius:6px}\n",
    ".scroll:focus-visible{outline:2px solid var(--own);outline-offset:3px}\n",
    ".tall{max-height:640px;overflow-y:auto}\n",
    "svg{display:block;font:inherit}\n",
    ".broad svg,.narrow svg{margin:0 auto}\n",
    ".narrow{display:none}\n",
    ".edge{fill:none;stroke:var(--soft);stroke-width:1.3}\n",
    ".edge.change{stroke:var(--change);stroke-width:2.6}\n",
    "marker path{fill:var(--soft)}\n",
    "marker.change path{fill:var(--change)}\n",
    ".note{font-size:10.5px;fill:var(--change);font-weight:600}\n",
    ".block .back{fill:var(--card)}\n",
    ".block .box{fill:var(--c);fill-opacity:.13;stroke:var(--c);stroke-width:1.4}\n",
    ".block .bar{fill:var(--c)}\n",
    ".block text{fill:var(--ink)}\n",
    ".block .name{font-size:13px;font-weight:650}\n",
    ".block .ops{font-size:11px;fill:var(--soft)}\n",
    ".block .kind{font-weight:650;fill:var(--c)}\n",
    ".lane{margin:4px 0 10px}\n",
    ".lane svg{width:100%;height:34px}\n",
    ".lane "
    "rect{fill:var(--c);stroke:var(--card);stroke-width:.6;vector-effect:non-scaling-stroke}\n",
    ".lane .ground{fill:var(--faint);stroke:none}\n",
    ".lane .before{fill-opacity:.55}\n",
    ".lead{position:sticky;left:0;display:inline-block;font-size:12.5px;color:var(--soft)}\n",
    ".lead b{color:var(--ink)}\n",
    ".end{fill:none;stroke:var(--ink);stroke-width:1.6;vector-effect:non-scaling-stroke}\n",
    ".pair{display:grid;grid-template-columns:minmax(0,2.1fr) minmax(0,1fr);gap:0 28px}\n",
    ".zoom{display:inline-flex;align-items:center;gap:8px;font-size:13px;color:var(--soft)}\n",
    ".zoom input{accent-color:var(--own)}\n",
    ".wide{min-width:100%}\n",
    ".axis{position:relative;height:20px;font-size:12px;color:var(--soft);white-space:nowrap}\n",
    ".axis span{position:absolute;padding-left:4px;border-left:1px solid var(--line)}\n",
    ".chart{position:relative}\n",
    ".chart svg{width:100%;height:240px;background:var(--faint);border-radius:6px}\n",
    ".chart path[class^=m]{fill:var(--c)}\n",
    ".chart .arena,.chart .limit{fill:none;stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 4;"
    "vector-effect:non-scaling-stroke}\n",
    ".chart .limit{stroke:var(--limit);stroke-width:2.2}\n",
    ".marks span{position:absolute;right:6px;font-size:12px;background:var(--card);"
    "border-radius:4px;padding:0 5px;margin-bottom:3px}\n",
    ".nodes{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(250px,100%),1fr));"
    "gap:12px;margin-top:10px}\n",
    ".node{border:1px solid var(--line);border-radius:10px;padding:10px 12px}\n",
    ".node ul{display:grid;grid-template-columns:repeat(auto-fill,minmax(104px,1fr));gap:8px;"
    "margin-top:6px}\n",
    ".worker{border:1.5px solid var(--c);border-left-width:6px;border-radius:7px;padding:4px 8px;"
    "font-size:12px;line-height:1.35}\n",
    ".worker b,.worker span{display:block}\n",
    ".worker span{color:var(--soft)}\n",
    ".cores{margin-top:2px;min-height:9px}\n",
    ".cores i{display:inline-block;width:8px;height:8px;border-radius:2px;background:var(--c);"
    "margin-right:2px}\n",
    ".g0{--c:#3f83cc}.g1{--c:#d9772a}.g2{--c:#3f9a7c}.g3{--c:#a85fc4}.g4{--c:#c29b1c}"
    ".g5{--c:#cf4f6f}.g6{--c:#5c9440}.g7{--c:#7c8ba0}\n",
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;"
    "margin-top:8px}\n",
    "caption{text-align:left;color:var(--soft);padding-bottom:4px}\n",
    "th,td{padding:3px 10px;text-align:right;border-bottom:1px solid var(--faint);"
    "white-space:nowrap}\n",
    "thead th{color:var(--soft);font-weight:600;vertical-align:bottom;background:var(--card)}\n",
    "tbody th,thead th:first-child{text-align:left;font-weight:600}\n",
    "td.word,thead th.word{text-align:left}\n",
    ".layers{width:100%}.layers td,.layers th{padding:3px 5px}.wraps "
    "td.word{white-space:normal;min-width:90px}\n",
    ".layers caption{position:absolute;clip-path:inset(50%)}\n",
    ".layers thead th{position:sticky;top:0;z-index:1}\n",
    "tbody th{white-space:normal}\n",
    ".layers tbody "
    "th{white-space:nowrap;position:sticky;left:0;background:var(--card);max-width:170px;"
    "overflow:hidden;text-overflow:ellipsis}\n",
    ".tag{display:inline-block;border:1px solid var(--c);border-radius:5px;padding:0 6px;"
    "color:var(--c);font-weight:600}\n",
    ".sum{position:relative;min-width:76px}\n",
    ".sum i{position:absolute;left:4px;bottom:1px;height:3px;max-width:calc(100% - 8px);"
    "background:var(--own);border-radius:2px}\n",
    "@media (max-width:999px){.broad{display:none}.narrow{display:block}.pair{display:block}}\n",
    "@media (max-width:560px){main{padding:10px}section{padding:14px 12px}h1{font-size:23px}"
    ".figures{grid-template-columns:repeat(2,1fr)}.figure{padding:8px 10px}"
    ".figure b{font-size:19px}.odd{display:none}th,td{padding:3px 7px}"
    ".layers tbody th{max-width:110px}}\n",
    "@media print{body{background:#fff}.tall{max-height:none}.zoom{display:none}}\n",
    NULL};

const char ghp_report_script[] =
    "document.querySelectorAll('[data-zoom]').forEach(function(box){"
    "var wide=box.querySelector('.wide'),out=box.querySelector('output'),"
    "range=box.querySelector('input');"
    "range.addEventListener('input',function(){wide.style.width=range.value*100+'%';});"
    "box.addEventListener('pointerover',function(event){"
    "var title=event.target.querySelector(':scope>title');"
    "if(title)out.textContent=title.textContent;});});";
