#include "client/report/style_sheet.h"

namespace penstock::client::report {
namespace {

constexpr char kStyleSheet[] = R"css(
:root {
  --page: #f4f6f9; --card: #ffffff; --line: #e1e6ed; --ink: #111827;
  --soft: #5b6472; --track: #eef1f5; --grid: #e5e9ef;
  --good: #0f766e; --good-bg: #d5f3ec; --bad: #b91c1c; --bad-bg: #fde8e8;
  --plain-bg: #e8ecf2; --warn: #b45309;
  --blue: #2563eb; --orange: #ea6a0c; --green: #0b8a5a; --teal: #0e7f97;
  --purple: #7c3aed; --slate: #64748b; --rest: #b9c4d3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0c111a; --card: #141b27; --line: #253044; --ink: #e8ecf2;
    --soft: #9aa5b4; --track: #1d2533; --grid: #222c3d;
    --good: #5eead4; --good-bg: #0f3a37; --bad: #fca5a5; --bad-bg: #451a1f;
    --plain-bg: #263145; --warn: #fbbf24;
    --blue: #6ea8fe; --orange: #fb9a4b; --green: #4ade9c; --teal: #4cc9dd;
    --purple: #b794f6; --slate: #94a3b8; --rest: #4a5a73;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto,
    'Helvetica Neue', Arial, sans-serif;
}
main { max-width: 1200px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 30px; line-height: 1.2; margin: 14px 0 2px;
  letter-spacing: -.02em; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 0 0 2px; letter-spacing: -.01em; }
h3 { font-size: 15px; margin: 0 0 6px; }
h3 small { color: var(--soft); font-weight: 400; font-size: 13px; }
p { margin: 0; }
.sub { color: var(--soft); font-size: 14px; }
.sub b { color: var(--ink); }
.soft { color: var(--soft); }
.note { color: var(--soft); font-size: 13px; margin-top: 10px;
  max-width: 105ch; }
.brand { display: flex; align-items: center; gap: 8px; font-weight: 650;
  font-size: 14px; }
.brand svg { width: 22px; height: 22px; }
.brand span { color: var(--soft); font-weight: 400; }
.b1 { fill: #2563eb; } .b2 { fill: #12a06a; } .b3 { fill: #ea7a1a; }
.pill { display: inline-block; vertical-align: middle; font-size: 12px;
  font-weight: 650; letter-spacing: .04em; border-radius: 99px;
  padding: 3px 11px; margin-left: 8px; background: var(--plain-bg);
  color: var(--soft); }
.pill.good { background: var(--good-bg); color: var(--good); }
.pill.bad { background: var(--bad-bg); color: var(--bad); }
.banner { margin-top: 14px; border-radius: 10px; padding: 12px 16px;
  background: var(--plain-bg); overflow-wrap: anywhere; }
.banner.bad { background: var(--bad-bg); }
.banner.bad strong { color: var(--bad); }
.tiles { display: grid; gap: 12px; margin-top: 18px;
  grid-template-columns: repeat(auto-fit, minmax(155px, 1fr)); }
.tile, .card { background: var(--card); border: 1px solid var(--line);
  border-radius: 12px; }
.tile { padding: 12px 16px 11px; }
.tile-name { color: var(--soft); font-size: 13px; }
.tile-value { font-size: 25px; font-weight: 650; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums; line-height: 1.35; }
.tile-value small { font-size: 14px; font-weight: 500; letter-spacing: 0; }
.tile-note { color: var(--soft); font-size: 12.5px; min-height: 1.2em; }
.card { margin-top: 18px; padding: 18px 22px 20px; }
.headline { display: flex; flex-wrap: wrap; gap: 10px 28px;
  justify-content: space-between; margin-bottom: 16px; }
.figures { display: flex; flex-wrap: wrap; gap: 6px 26px; }
.figure span { display: block; color: var(--soft); font-size: 12.5px; }
.figure b { font-size: 19px; font-variant-numeric: tabular-nums;
  letter-spacing: -.01em; font-weight: 600; }
.figure.strong b { color: var(--blue); font-weight: 700; }
.scroll { overflow-x: auto; }
svg.hm, svg.chart { display: block; width: 100%; height: auto; }
svg.hm, .card:not(.small) svg.chart { min-width: 720px; }
.chart text { fill: var(--ink); font-size: 12px;
  font-variant-numeric: tabular-nums; }
.chart .tick { fill: var(--soft); }
.chart .grid { stroke: var(--grid); }
.chart .axis { stroke: var(--line); stroke-width: 1.5; }
.chart .line { fill: none; stroke: currentColor; stroke-width: 1.8;
  stroke-linejoin: round; }
.chart .band { fill: currentColor; fill-opacity: .18; }
.chart circle { fill: currentColor; stroke: var(--card); stroke-width: 1.2; }
.chart .mark { stroke: var(--bad); stroke-width: 2; }
.chart .endlabel { fill: currentColor; font-size: 13px; font-weight: 600; }
.chart .track { fill: var(--track); }
.chart .bar-act { fill: var(--blue); }
.chart .bar-rest { fill: var(--rest); }
.chart .predicted { stroke: var(--ink); stroke-width: 2; }
.c-blue { color: var(--blue); } .c-orange { color: var(--orange); }
.c-green { color: var(--green); } .c-teal { color: var(--teal); }
.c-purple { color: var(--purple); } .c-slate { color: var(--slate); }
.sub + .scroll { margin-top: 10px; }
.scroll + h3 { margin-top: 14px; }
.grid2 { display: grid; gap: 18px; margin-top: 18px;
  grid-template-columns: repeat(auto-fit, minmax(min(430px, 100%), 1fr)); }
.grid2 .card { margin: 0; padding: 14px 18px 12px; }
.key { margin-bottom: 12px; }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 3px;
  margin: 0 7px 0 14px; vertical-align: -1px; }
.key i:first-child { margin-left: 0; }
.k-act { background: var(--blue); } .k-rest { background: var(--rest); }
.key .k-pred { width: 2px; height: 16px; border-radius: 0;
  background: var(--ink); vertical-align: -3px; }
table { border-collapse: collapse; width: 100%; margin-top: 12px;
  font-size: 14px; }
th { text-align: left; font-weight: 600; }
thead th { color: var(--soft); font-weight: 500; font-size: 13px;
  vertical-align: bottom; white-space: nowrap; }
th, td { padding: 6px 12px 6px 0; }
tbody tr { border-top: 1px solid var(--line); }
tbody th, td { vertical-align: top; }
thead .group { border-bottom: 1px solid var(--line); text-align: center;
  padding-bottom: 3px; }
.num { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.ok { color: var(--good); white-space: nowrap; font-size: 13px; }
.off { color: var(--warn); white-space: nowrap; font-size: 13px; }
.events { list-style: none; margin: 10px 0 0; padding: 0; }
.events li { display: flex; gap: 16px; padding: 7px 0 7px 12px;
  border-left: 3px solid var(--line); }
.events li + li { margin-top: 3px; }
.events .bad { border-color: var(--bad); }
.events .bad b { color: var(--bad); }
.events .warn { border-color: var(--warn); }
.events .follows { margin-left: 26px; }
.events time { color: var(--soft); font-variant-numeric: tabular-nums;
  font-size: 13px; line-height: 22px; white-space: nowrap; }
.events b { font-size: 13px; letter-spacing: .02em; }
.events em { font-style: normal; font-size: 12px; border-radius: 99px;
  padding: 1px 8px; background: var(--plain-bg); color: var(--soft); }
.events .bad em { background: var(--bad-bg); color: var(--bad); }
.events p { overflow-wrap: anywhere; }
.events .info p { display: inline; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 6px 24px;
  margin: 10px 0 0; font-size: 14px; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.code, pre { font-family: ui-monospace, 'SF Mono', Menlo, Consolas,
  'DejaVu Sans Mono', monospace; font-size: 12.5px; }
details { margin-top: 14px; }
summary { cursor: pointer; color: var(--blue); font-size: 14px; }
pre { background: var(--track); border-radius: 8px; padding: 12px 14px;
  overflow-x: auto; line-height: 1.45; }
@media (max-width: 640px) {
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 8px; }
  .card { padding: 14px; }
}
@media print { body { background: #fff; } .card, .tile { break-inside: avoid; } }
)css";

}  // namespace

absl::string_view StyleSheet() { return kStyleSheet; }

}  // namespace penstock::client::report
