/** The style sheet of the printed report. */
export const PAGE_STYLE = `
:root { color-scheme: light; }
body { margin: 2rem auto; max-width: 66rem; padding: 0 1.25rem; color: #1a1a1a; background: #fff;
  font: 15px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.35rem; margin: 0 0 .25rem; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; padding-bottom: .2rem;
  border-bottom: 1px solid #1a1a1a; }
h3 { font-size: .95rem; margin: 1.1rem 0 .35rem; }
p { margin: .35rem 0; }
.owner { font-weight: 600; }
.verdict { font-size: 1.6rem; font-weight: 650; margin: .9rem 0 .6rem; padding: .5rem .8rem;
  border-left: .4rem solid #1b6e3c; background: #eef6f0; }
.verdict.breaks { border-color: #a3231d; background: #fbefee; }
.nothing, .note { color: #4a4a4a; }
.note { font-size: .88rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: .5rem 0; }
dt { color: #4a4a4a; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .3rem 0; font-size: .88rem; }
th { text-align: left; font-weight: 600; border-bottom: 1px solid #777; vertical-align: bottom; }
th, td { padding: .28rem .9rem .28rem 0; }
th:last-child, td:last-child { padding-right: 0; }
td { border-bottom: 1px solid #ddd; vertical-align: top; }
td.text { overflow-wrap: anywhere; }
td.text { min-width: 9rem; }
td.text:first-child { min-width: 10rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.whole { white-space: nowrap; }
.short { width: auto; min-width: 20rem; }
tr.total td { font-weight: 650; border-top: 1px solid #777; }
code { font: .86em/1.4 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.small { font-size: .82rem; color: #4a4a4a; overflow-wrap: anywhere; }
.sign { display: grid; grid-template-columns: 1fr 1fr; gap: 2.5rem; margin-top: 3.2rem; }
.sign div { border-top: 1px solid #1a1a1a; padding-top: .3rem; font-size: .88rem; }
@media print {
  body { margin: 0; max-width: none; padding: 0; font-size: 10.5pt; }
  .wide { overflow: visible; } table { font-size: 8.5pt; }
  th, td { padding-right: .5rem; } .small { font-size: 7.5pt; line-height: 1.3; }
  td.text, td.text:first-child { min-width: 5rem; }
  h2, h3 { break-after: avoid; } tr, .sign { break-inside: avoid; }
  thead { display: table-header-group; }
  .verdict { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
@page { size: A4; margin: 16mm 14mm; }
`;
