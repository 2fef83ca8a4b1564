"""The look of a page: one column that a phone can show, light or dark as the reader's system is, and on paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfbf9; --card: #ffffff; --ink: #1d2023; --quiet: #646b73; --line: #e2e3de; --stripe: #f5f5f1;
  --accent: #00639c; --good: #00694a; --bad: #a63c0c; --warn: #8a5a00; --warn-card: #fdf6e6; --warn-line: #ecd9ab;
  --mark: #eaf3fa;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #121416; --card: #191c1f; --ink: #e4e5e1; --quiet: #9aa1a8; --line: #2d3236; --stripe: #1e2225;
    --accent: #74bcec; --good: #5fcfa3; --bad: #f39a76; --warn: #e3bd6e; --warn-card: #221d12; --warn-line: #4d4022;
    --mark: #152c3d;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body {
  margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: break-word;
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
main { max-width: 73rem; margin: 0 auto; padding: 3rem 2rem 4rem; }
h1, h2, h3 { line-height: 1.25; letter-spacing: -0.012em; margin: 0; text-wrap: balance; }
h1 { font-size: 2.1rem; font-weight: 700; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; font-weight: 650; margin-bottom: 0.75rem; }
h3 { font-size: 1rem; font-weight: 650; }
p, ul { margin: 0 0 1rem; max-width: 46rem; }
a { color: var(--accent); text-underline-offset: 0.2em; text-decoration-thickness: 1px; }
code, pre { font: 0.86em/1.55 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
section { margin-top: 3rem; }
.quiet { color: var(--quiet); }
.good { color: var(--good); } .bad { color: var(--bad); }
.kicker {
  margin: 0 0 0.35rem; color: var(--quiet); font-size: 0.8rem; letter-spacing: 0.08em; text-transform: uppercase;
}
.question { font-size: 1.2rem; line-height: 1.5; color: var(--quiet); margin: 0.9rem 0 0; max-width: 48rem; }
.progress {
  display: flex; align-items: center; gap: 0.9rem; margin-top: 1.2rem; color: var(--quiet); font-size: 0.9rem;
  flex-wrap: wrap;
}
.bar {
  display: flex; flex: 0 1 14rem; min-width: 8rem; height: 0.45rem; border-radius: 1rem; overflow: hidden; gap: 2px;
}
.bar span { background: var(--line); } .bar .complete { background: var(--good); }
.bar .failed { background: var(--bad); } .bar .in-use, .bar .interrupted { background: var(--accent); }
.answer {
  margin-top: 2rem; padding: 1.5rem 1.75rem 1.4rem; background: var(--card); border: 1px solid var(--line);
  border-left: 4px solid var(--quiet); border-radius: 6px;
}
.answer.better { border-left-color: var(--good); } .answer.worse { border-left-color: var(--bad); }
.answer h2 { font-size: 0.85rem; color: var(--quiet); font-weight: 600; letter-spacing: 0; margin-bottom: 0.4rem; }
.answer .said { font-size: 1.12rem; line-height: 1.55; margin: 0; max-width: 52rem; }
.answer.better .verdict { color: var(--good); } .answer.worse .verdict { color: var(--bad); }
dl { margin: 0; } dd { margin: 0; }
.answer dl { display: flex; flex-wrap: wrap; gap: 0.8rem 2.4rem; margin-top: 1.2rem; }
dt { color: var(--quiet); font-size: 0.82rem; }
.answer dd { font-weight: 600; font-variant-numeric: tabular-nums; }
nav { margin-top: 1.6rem; font-size: 0.92rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; list-style: none; padding: 0; margin: 0; max-width: none; }
.caveats {
  margin-top: 1.6rem; padding: 1.1rem 1.5rem 0.5rem; background: var(--warn-card); border: 1px solid var(--warn-line);
  border-radius: 6px; font-size: 0.94rem;
}
.caveats h2 { font-size: 0.85rem; color: var(--warn); margin-bottom: 0.5rem; letter-spacing: 0; }
.caveats h3 { font-size: 0.95rem; } .caveats ul { margin-bottom: 0.7rem; padding-left: 1.1rem; max-width: none; }
.scroll {
  overflow-x: auto; max-width: 100%; margin: 0 0 1.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px;
}
.scroll:focus-visible, pre:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
th, td { padding: 0.42rem 0.7rem; text-align: left; vertical-align: top; white-space: nowrap; font-weight: 400; }
thead th {
  color: var(--quiet); font-size: 0.82rem; font-weight: 600; border-bottom: 1px solid var(--line);
  vertical-align: bottom;
}
table:not(.grouped) tbody tr:nth-child(even) > * { background: var(--stripe); }
.grouped tbody td, .grouped tbody th { padding-top: 0.28rem; padding-bottom: 0.28rem; }
.grouped tbody tr.first:not(:first-child) > * { border-top: 1px solid var(--line); }
tr.marked td { background: var(--mark); } tr.marked td.marked { color: var(--accent); font-weight: 600; }
tbody th, thead th:first-child { position: sticky; left: 0; background: var(--card); }
.number { text-align: right; }
td strong { font-weight: 700; }
td.quiet { color: var(--quiet); } td.good { color: var(--good); } td.bad { color: var(--bad); }
.wrap td:last-child { white-space: normal; min-width: 18rem; }
figure { margin: 0 0 2.25rem; }
figure picture { display: block; }
figure img {
  display: block; width: 100%; max-width: 54rem; height: auto; padding: 1rem; background: #fff;
  border: 1px solid var(--line); border-radius: 6px;
}
@media (prefers-color-scheme: dark) {
  figure img { filter: invert(0.92) hue-rotate(180deg); border-color: #d8d8d8; }
}
figcaption { margin-top: 0.6rem; font-size: 0.9rem; max-width: 50rem; }
figcaption strong { font-weight: 650; }
.settings > div { display: flex; gap: 0.3rem 1.5rem; padding: 0.55rem 0; border-top: 1px solid var(--line); }
.settings { border-bottom: 1px solid var(--line); margin-bottom: 1.25rem; }
.settings dt { flex: 0 0 12rem; font-size: 0.92rem; color: var(--ink); font-weight: 600; overflow-wrap: anywhere; }
.settings dd { min-width: 0; } .settings code { display: block; overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: 0.8rem 1.5rem; }
.facts dd { font-size: 0.92rem; overflow-wrap: anywhere; }
.notes { font-size: 0.9rem; color: var(--quiet); padding-left: 1.1rem; } .notes li { margin-bottom: 0.25rem; }
details { margin: 0 0 1.25rem; } summary { cursor: pointer; color: var(--accent); font-size: 0.92rem; }
pre {
  overflow-x: auto; max-width: 100%; margin: 0.6rem 0 0; padding: 1rem 1.2rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 6px;
}
footer {
  margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--quiet); font-size: 0.85rem;
}
/* The width of mtl.studies.report.figures.NARROW. */
@media (max-width: 640px) {
  main { padding: 1.6rem 1rem 3rem; }
  h1 { font-size: 1.6rem; } .question { font-size: 1.06rem; }
  section { margin-top: 2.4rem; }
  .answer { padding: 1.1rem 1.1rem 1rem; } .answer .said { font-size: 1.04rem; } .answer dl { gap: 0.6rem 1.6rem; }
  .caveats { padding: 0.9rem 1rem 0.3rem; }
  th, td { padding: 0.4rem 0.55rem; } table:not(.grouped) td:not(.number) { white-space: normal; }
  figure img { padding: 0.5rem; }
  .settings > div { display: block; }
}
@media print {
  body { background: #fff; } main { max-width: none; padding: 0; } nav, details { display: none; }
  .scroll { overflow: visible; border: 0; } section { break-inside: auto; } figure, tr { break-inside: avoid; }
}
"""
