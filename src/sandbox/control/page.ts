/**
 * The page of the sandbox: the world as it is, buttons for faults and time, and a form for the
 * whole control surface. It looks like the console, whose style sheet it includes.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isoText } from '../../kernel/clock.ts';
import { type Answer, escapeHtml, htmlAnswer } from '../endpoints/call.ts';
import { ROUTES } from '../endpoints/routes.ts';
import { WALLET_STATUS } from '../state/records.ts';
import type { Control } from './control.ts';
import { CONTROL_ROUTES, type ControlRoute } from './routes.ts';

type State = ReturnType<Control['state']>;

const CONSOLE_STYLE = join(import.meta.dirname, '../../console/web/style.css');
const OWN_STYLE = `main { margin: 0 auto; }
#orders .actions { justify-content: flex-start; }
#response:empty { display: none; }
#response { white-space: pre-wrap; overflow-wrap: anywhere; }`;

/** Faults by button; each is met by one request to the chosen endpoint. */
const FAULTS: Record<string, object> = {
  'Lose the answer': { kind: 'lost_answer' },
  'Drop the request': { kind: 'dropped' },
  'Apply it 5 s late': { kind: 'late', delay_ms: 5_000 },
  'Answer 5 s late': { kind: 'delay', delay_ms: 5_000 },
  'Answer 429': { kind: 'throttle', retry_after_s: 5 },
  'Answer 500': { kind: 'status', status: 500 },
  'Garble the answer': { kind: 'garbled' },
};

const ORDERS: [label: string, method: string, path: string, body?: object][] = [
  ['Delete all faults', 'DELETE', '/faults'],
  ['Start maintenance', 'POST', '/maintenance', { state: 'on', message: 'Started by hand' }],
  [
    'Announce maintenance in 1 min',
    'POST',
    '/maintenance',
    { state: 'announced', start_in_ms: 60_000, duration_ms: 600_000 },
  ],
  ['End maintenance', 'POST', '/maintenance', { state: 'off' }],
  ['Fail the next chain write', 'POST', '/tokens/fail-next', { count: 1 }],
  ['Clock 1 min on', 'POST', '/clock', { advance_ms: 60_000 }],
  ['Clock 1 h on', 'POST', '/clock', { advance_ms: 3_600_000 }],
];

/**
 * Sends the buttons and the form, and keeps the world new. It shows responses as text and never as
 * markup; the world is the one that the server rendered.
 */
const SCRIPT = `const form = document.forms.act;
const response = document.getElementById('response');
const selected = () => form.route.selectedOptions[0].dataset;
const renew = async () => {
  const answer = await fetch('/_sandbox');
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  document.getElementById('world').replaceWith(fresh.getElementById('world'));
};
const send = async (method, path, body, words) => {
  const sent = method === 'POST' ? { body } : {};
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(path, { method, headers, ...sent });
  const text = await answer.text();
  response.textContent = answer.ok && words ? words : answer.status + ' ' + text;
  await renew();
};
form.route.onchange = () => {
  form.path.value = selected().path;
  form.body.value = selected().body;
};
form.onsubmit = (event) => {
  event.preventDefault();
  return send(selected().method, form.path.value, form.body.value);
};
form.route.onchange();
document.onclick = ({ target }) => {
  const { method, path, body, fault, words } = target.dataset ?? {};
  if (target.type !== 'button') return;
  const endpoint = document.getElementById('endpoint').value;
  if (fault) {
    const where = endpoint ? { endpoint } : {};
    const text = target.textContent + ': the next request to ' + (endpoint || 'any endpoint') + '.';
    const scripted = JSON.stringify({ ...JSON.parse(fault), ...where });
    return send('POST', '/_sandbox/faults', scripted, text);
  }
  if (method) return send(method, path, body, words || target.textContent + ': done.');
};
// A press or the focus within what is replaced would be lost.
const isUsed = () => document.getElementById('world').matches(':focus-within, :active');
setInterval(() => document.hidden || isUsed() || renew().catch(() => {}), 3000);`;

/** The content security policy source for the one script. */
const SCRIPT_SOURCE = `'sha256-${createHash('sha256').update(SCRIPT).digest('base64')}'`;

let style: string | undefined;

export function controlPage(state: State): Answer {
  return htmlAnswer(pageOf(state), SCRIPT_SOURCE);
}

function pageOf(state: State): string {
  style ??= `${readFileSync(CONSOLE_STYLE, 'utf8')}\n${OWN_STYLE}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sandbox</title>
<style>${style}</style>
</head>
<body>
<main class="view">
<div class="view-head"><h1>Sandbox</h1><a href="/_sandbox/openapi.json">openapi.json</a></div>
<p class="lead">A simulated service with seed ${state.seed}, for app ${state.app.app_no}
(<code>${escapeHtml(state.app.client_id)}</code>). Break it here and see what Tallyhook makes of
it.</p>
${ordersCard()}
${worldOf(state)}
${referenceOf()}
</main>
<script>${SCRIPT}</script>
</body>
</html>
`;
}

function ordersCard(): string {
  const names = ROUTES.map(({ name }) => `<option>${escapeHtml(name)}</option>`);
  const faults = Object.entries(FAULTS).map(([label, fault]) =>
    buttonOf(label, `data-fault="${escapeHtml(JSON.stringify(fault))}"`),
  );
  const orders = ORDERS.map(([label, method, path, body = {}]) => {
    const json = escapeHtml(JSON.stringify(body));
    const data = `data-method="${method}" data-path="/_sandbox${path}" data-body="${json}"`;
    return buttonOf(label, data);
  });
  const actions = CONTROL_ROUTES.filter(({ method }) => method !== 'GET').map(optionOf);
  return `<section class="card">
<div id="orders">
<div class="card-head"><h2>Faults</h2></div>
<div class="form">
<label class="field"><span>The next request to</span>
<select id="endpoint"><option value="">any endpoint</option>${names.join('')}</select></label>
<div class="actions">${faults.join('')}</div>
</div>
<h3>Service and time</h3>
<p class="actions">${orders.join('')}</p>
</div>
<details><summary>Anything else</summary>
<form name="act" class="form">
<label class="field"><span>Action</span><select name="route">${actions.join('')}</select></label>
<label class="field"><span>Path</span><input name="path"></label>
<label class="field"><span>Body</span><textarea name="body" rows="3"></textarea></label>
<div class="actions"><button>Send</button></div>
</form></details>
<pre id="response" role="status" tabindex="0"></pre>
</section>`;
}

function buttonOf(label: string, data: string): string {
  return `<button type="button" class="quiet" ${data}>${escapeHtml(label)}</button>`;
}

/** What the script replaces by a fresh one. */
function worldOf(state: State): string {
  const members = new Map(state.members.map((member) => [member.addr, member.nickname]));
  const operators = new Map(
    state.operators.map(({ addr, operation_no }) => [addr, `operator ${operation_no}`]),
  );
  const wallets = state.wallets.map(({ addr, balance, status }) => [
    members.get(addr) ?? operators.get(addr) ?? '',
    addr,
    balance,
    status,
    walletButtons(addr, balance, status),
  ]);
  const tokens = state.tokens.map((token) => [
    `${token.contract_id}/${token.token_id}`,
    token.owner,
    token.status,
    token.locked ? 'locked' : '',
  ]);
  const faults = state.faults.map(({ fault, left, hits }) => [
    fault.kind,
    fault.endpoint ?? 'any endpoint',
    left,
    hits,
  ]);
  const { counts, maintenance } = state;
  const tiles: [unknown, string][] = [
    [serviceOf(maintenance, state.now), 'service'],
    [isoText(state.now).slice(11, 19), `its clock, ${isoText(state.now).slice(0, 10)} UTC`],
    [counts.effects, 'writes applied'],
    [counts.requests, 'requests received'],
    [counts.wallets, 'wallets'],
    [counts.tokens, 'tokens'],
  ];
  return `<div id="world" class="view">
<div class="tiles">${tiles.map(tileOf).join('')}</div>
${cardOf('Faults that wait or were met', ['kind', 'endpoint', 'left', 'met'], faults)}
${cardOf('Wallets', ['owner', 'token_addr', 'amt_token', 'status', 'change'], wallets)}
${cardOf('Tokens', ['token', 'owner', 'status', 'lock'], tokens)}
</div>`;
}

function serviceOf(window: State['maintenance'], now: number): string {
  if (!window || (window.end !== null && now >= window.end)) return 'active';
  return window.start > now ? 'announced' : 'down';
}

/** Changes to a wallet by others, which Tallyhook sees only in its balance. */
function walletButtons(addr: string, balance: unknown, status: unknown): Raw {
  const taken = Math.min(100, Number(balance));
  const changes: (readonly [label: string, change: object, words: string])[] = [
    ['+100', { delta: 100 }, 'was given 100'],
    ...(taken > 0 ? [[`−${taken}`, { delta: -taken }, `lost ${taken}`] as const] : []),
    Number(status) === WALLET_STATUS.normal
      ? ['withdraw', { status: WALLET_STATUS.withdrawn }, 'is withdrawn']
      : ['restore', { status: WALLET_STATUS.normal }, 'is active again'],
  ];
  const buttons = changes.map(([label, change, words]) => {
    const body = escapeHtml(JSON.stringify(change));
    const data = `data-method="POST" data-path="/_sandbox/wallets/${addr}" data-body="${body}"`;
    return buttonOf(label, `${data} data-words="${addr} ${words}."`);
  });
  return { html: buttons.join(' ') };
}

function tileOf([value, name]: [unknown, string]): string {
  return `<div class="tile"><b>${escapeHtml(String(value))}</b><span>${name}</span></div>`;
}

function referenceOf(): string {
  const control = CONTROL_ROUTES.map(({ method, path, summary }) => [
    method,
    `/_sandbox${path}`,
    summary,
  ]);
  const service = ROUTES.map(({ method, path, name }) => [method, path, name]);
  return `<details class="card"><summary>Control surface and endpoints</summary>
<h2>Control</h2>${tableOf('Control', ['method', 'path', 'description'], control)}
<h2>Endpoints</h2>${tableOf('Endpoints', ['method', 'path', 'name for faults'], service)}
</details>`;
}

function cardOf(title: string, head: string[], rows: unknown[][]): string {
  const table = rows.length > 0 ? tableOf(title, head, rows) : '<p class="empty">None.</p>';
  return `<section class="card"><div class="card-head"><h2>${title}</h2></div>${table}</section>`;
}

function tableOf(title: string, head: string[], rows: unknown[][]): string {
  const cellOf = (cell: unknown, n: number) => {
    const html = isRaw(cell) ? cell.html : escapeHtml(String(cell));
    return `<td data-head="${head[n]}">${html}</td>`;
  };
  return `<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table>
<thead><tr>${head.map((name) => `<th scope="col">${name}</th>`).join('')}</tr></thead>
<tbody>${rows.map((row) => `<tr>${row.map(cellOf).join('')}</tr>`).join('\n')}</tbody>
</table></div>`;
}

/** A cell that is not escaped. */
interface Raw {
  html: string;
}

function isRaw(cell: unknown): cell is Raw {
  return typeof cell === 'object' && cell !== null && 'html' in cell;
}

function optionOf({ method, path, summary, example }: ControlRoute): string {
  const body = escapeHtml(example ? JSON.stringify(example) : '');
  const data = `data-method="${method}" data-path="/_sandbox${path}" data-body="${body}"`;
  return `<option ${data}>${escapeHtml(summary)}</option>`;
}
