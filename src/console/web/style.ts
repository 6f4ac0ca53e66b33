/** The style sheet of all pages, with a dark scheme. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1b2430; --soft: #5c6b7d; --paper: #f5f7f9; --card: #fff;
  --line: #dde3ea; --mark: #0b6b5d; --bad: #b3261e; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf1; --soft: #9aa8b8; --paper: #12171d; --card: #1a2129; --line: #2b3540;
    --mark: #4fc3ae; --bad: #ff8a80; --warn: #ffc46b; } }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 60rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
body.wide { max-width: 80rem; }
header { display: flex; align-items: center; gap: .8rem; flex-wrap: wrap; }
h1 { font-size: 1.6rem; margin: 0; letter-spacing: -.02em; }
h1 a { color: inherit; text-decoration: none; }
h2 { font-size: 1rem; margin: 0 0 .6rem; }
a { color: var(--mark); }
.lead { color: var(--soft); max-width: 42rem; margin: .4rem 0 1.4rem; }
.pill { padding: .1rem .7rem; border-radius: 1rem; border: 1px solid var(--line); font-size: .85rem;
  color: var(--soft); }
.pill.good { color: var(--mark); border-color: var(--mark); }
.pill.warn { color: var(--warn); border-color: var(--warn); }
.pill.bad, .bad { color: var(--bad); }
.pill.bad { border-color: var(--bad); }
.muted { color: var(--soft); font-size: .85rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1rem 1.2rem; margin: 0 0 1rem; }
.row { display: flex; gap: .5rem; margin-top: .4rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 1rem;
  margin-bottom: 1rem; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .8rem 1.2rem; }
.tile b { display: block; font-size: 1.7rem; font-variant-numeric: tabular-nums; line-height: 1.2; }
.tile.bad { border-color: var(--bad); }
.tile { color: inherit; text-decoration: none; }
.scroll { overflow-x: auto; }
pre { margin: 0 0 1rem; overflow-x: auto; font-size: .85rem; }
select { padding: .5rem .7rem; font: inherit; color: inherit; background: var(--paper);
  border: 1px solid var(--line); border-radius: .4rem; }
dd { overflow-wrap: anywhere; }
input { flex: 1; min-width: 0; padding: .5rem .7rem; font: inherit; color: inherit;
  background: var(--paper); border: 1px solid var(--line); border-radius: .4rem; }
button { padding: .5rem 1rem; font: inherit; color: var(--card); background: var(--mark); border: 0;
  border-radius: .4rem; cursor: pointer; }
button.quiet { color: var(--soft); background: none; border: 1px solid var(--line);
  padding: .1rem .7rem; font-size: .85rem; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; color: var(--soft); font-size: .85rem; }
td, th { padding: .3rem .5rem .3rem 0; border-bottom: 1px solid var(--line); }
tbody tr:last-child td { border-bottom: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; }
footer { display: flex; gap: 1rem; flex-wrap: wrap; margin-top: 1.5rem; font-size: .9rem; }
iframe { width: 100%; height: calc(100vh - 7rem); border: 1px solid var(--line);
  border-radius: .6rem; background: #fff; margin-top: 1rem; }
`;
