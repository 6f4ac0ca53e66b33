/**
 * The page of the control surface: what stands in the world, and a form that does to it what the
 * surface can do.
 */
import { createHash } from 'node:crypto';
import { isoText } from '../../kernel/clock.ts';
import { escapeHtml } from '../endpoints/call.ts';
import { ROUTES } from '../endpoints/routes.ts';
import type { Control } from './control.ts';
import { CONTROL_ROUTES, type ControlRoute } from './routes.ts';

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;
padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ccc;padding:.3rem;
text-align:left;vertical-align:top}code{font-size:.9em;overflow-wrap:anywhere}
select,input,textarea{font:inherit;display:block;width:100%;box-sizing:border-box;
margin:.3rem 0}
pre{white-space:pre-wrap;overflow-wrap:anywhere}`;

/** Sends what the form says and shows the answer, as text and never as HTML. */
const SCRIPT = `const form = document.forms.act;
const said = document.getElementById('said');
const chosen = () => form.route.selectedOptions[0].dataset;
form.route.onchange = () => {
  form.path.value = chosen().path;
  form.body.value = chosen().body;
};
form.onsubmit = async (event) => {
  event.preventDefault();
  const method = chosen().method;
  const sent = method === 'POST' ? { body: form.body.value } : {};
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(form.path.value, { method, headers, ...sent });
  said.textContent = answer.status + ' ' + (await answer.text());
};
form.route.onchange();`;

const SCRIPT_HASH = createHash('sha256').update(SCRIPT).digest('base64');
/** What the page may run: its own script, and nothing else. */
export const PAGE_SCRIPT_SOURCE = `'sha256-${SCRIPT_HASH}'`;

/** What stands in the world, and what can be done to it. */
export function controlPage(state: ReturnType<Control['state']>): string {
  const members = new Map(state.members.map((member) => [member.addr, member.nickname]));
  const operators = new Map(
    state.operators.map(({ addr, operation_no }) => [addr, `operator ${operation_no}`]),
  );
  const wallets = state.wallets.map(({ addr, balance, status }) => [
    members.get(addr) ?? operators.get(addr) ?? '',
    addr,
    balance,
    status,
  ]);
  const tokens = state.tokens.map((token) => [
    `${token.contract_id}/${token.token_id}`,
    token.owner,
    token.status,
    token.locked ? 'locked' : '',
  ]);
  const control = CONTROL_ROUTES.map(({ method, path, summary }) => [
    method,
    `/_sandbox${path}`,
    summary,
  ]);
  const acts = CONTROL_ROUTES.filter(({ method }) => method !== 'GET').map(optionOf);
  const service = ROUTES.map(({ method, path, name }) => [method, path, name]);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sandbox</title><style>${STYLE}</style></head>
<body>
<h1>Sandbox</h1>
<p>Seed ${state.seed}, ${isoText(state.now)}, app ${state.app.app_no}
(<code>${escapeHtml(state.app.client_id)}</code>).
The control surface is described by <a href="/_sandbox/openapi.json">openapi.json</a>.</p>
<form name="act"><select name="route" aria-label="What to do">${acts.join('')}</select>
<input name="path" aria-label="Path"><textarea name="body" rows="3" aria-label="Body"></textarea>
<button>Send</button></form><pre id="said" role="status"></pre>
<h2>Wallets</h2>${tableOf(['who', 'token_addr', 'amt_token', 'status'], wallets)}
<h2>Tokens</h2>${tableOf(['token', 'owner', 'status', 'lock'], tokens)}
<h2>Control</h2>${tableOf(['method', 'path', 'does'], control)}
<h2>Endpoints</h2>${tableOf(['method', 'path', 'name for faults'], service)}
<script>${SCRIPT}</script>
</body>
</html>
`;
}

function tableOf(head: string[], rows: unknown[][]): string {
  const line = (cells: unknown[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(String(cell))}</${tag}>`).join('')}</tr>`;
  return `<table>${line(head, 'th')}${rows.map((row) => line(row, 'td')).join('\n')}</table>`;
}

function optionOf({ method, path, summary, example }: ControlRoute): string {
  const body = escapeHtml(example ? JSON.stringify(example) : '');
  const data = `data-method="${method}" data-path="/_sandbox${path}" data-body="${body}"`;
  return `<option ${data}>${escapeHtml(summary)}</option>`;
}
