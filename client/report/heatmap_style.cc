#include "client/report/heatmap_style.h"

namespace penstock::client::report {
namespace {

// Colours that follow the page's; boxes have theirs in both.
constexpr char kStyle[] =
    ".hm{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica "
    "Neue',Arial,sans-serif;--ink:#111827;--soft:#5b6472;--track:#eef1f5;"
    "--hatch:#d3d9e2;--grid:#c9d0da;--end:#e9d5ff;--end-ink:#6b21a8;--paper:#"
    "ffffff}"
    "@media(prefers-color-scheme:dark){.hm{--ink:#e8ecf2;--soft:#9aa5b4;"
    "--track:#1d2533;--hatch:#303a4b;--grid:#3a4557;--end:#3b2a5a;"
    "--end-ink:#d8b4fe;--paper:#141b27}}"
    ".hm .paper{fill:var(--paper)}.hm text{fill:var(--ink);font-size:12px}.hm "
    ".soft{fill:var(--soft);"
    "font-size:11px}.hm .h{font-size:16px;font-weight:650}"
    ".hm .mid{text-anchor:middle}.hm .track{fill:var(--track)}"
    ".hm .hatch{stroke:var(--hatch);"
    "stroke-width:1.4}.hm .grid{stroke:var(--grid);stroke-width:1;"
    "stroke-dasharray:2 3;opacity:.7}.hm .end{fill:var(--end)}"
    ".hm .endtext{fill:var(--end-ink);font-size:11px}"
    ".hm .chunk{fill:#0b1220;fill-opacity:.5}"
    ".hm .n text{font-size:inherit;text-anchor:middle;pointer-events:none;"
    "font-variant-numeric:tabular-nums}";

}  // namespace

absl::string_view HeatmapStyle() { return kStyle; }

}  // namespace penstock::client::report
