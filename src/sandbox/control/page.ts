/** The console of the sandbox: the state of the world, and a form for the control surface. */
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

/** Sends the form and shows the response, as text and never as HTML. */
const SCRIPT = `const form = document.forms.act;
const response = document.getElementById('response');
const selected = () => form.route.selectedOptions[0].dataset;
form.route.onchange = () => {
  form.path.value = selected().path;
  form.body.value = selected().body;
};
form.onsubmit = async (event) => {
  event.preventDefault();
  const method = selected().method;
  const sent = method === 'POST' ? { body: form.body.value } : {};
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(form.path.value, { method, headers, ...sent });
  response.textContent = answer.status + ' ' + (await answer.text());
};
form.route.onchange();`;

const SCRIPT_HASH = createHash('sha256').update(SCRIPT).digest('base64');
/** The content security policy source for the page's one script. */
export const PAGE_SCRIPT_SOURCE = `'sha256-${SCRIPT_HASH}'`;

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
  const actions = CONTROL_ROUTES.filter(({ method }) => method !== 'GET').map(optionOf);
  const service = ROUTES.map(({ method, path, name }) => [method, path, name]);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sandbox</title><style>${STYLE}</style></head>
<body>
<h1>Sandbox</h1>
<p>Seed ${state.seed}, ${isoText(state.now)}, app ${state.app.app_no}
(<code>${escapeHtml(state.app.client_id)}</code>).
The control surface is described by <a href="/_sandbox/openapi.json">openapi.json</a>.</p>
<form name="act"><select name="route" aria-label="Action">${actions.join('')}</select>
<input name="path" aria-label="Path"><textarea name="body" rows="3" aria-label="Body"></textarea>
<button>Send</button></form><pre id="response" role="status"></pre>
<h2>Wallets</h2>${tableOf(['owner', 'token_addr', 'amt_token', 'status'], wallets)}
<h2>Tokens</h2>${tableOf(['token', 'owner', 'status', 'lock'], tokens)}
<h2>Control</h2>${tableOf(['method', 'path', 'description'], control)}
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
