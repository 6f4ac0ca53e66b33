/**
 * `tallyhook demo`: runs a daemon with temporary data and walks through its features. Each step
 * waits for its effect and fails if it does not appear; the exit code is 0 if every step succeeds.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { type Config, loadConfig, type RunningDaemon, startDaemon } from '../../daemon/daemon.ts';
import { isoText, monotonicMs, pause, systemClock } from '../../kernel/clock.ts';
import { type Json, jsonText, parseJson } from '../../kernel/json.ts';
import { systemRandom } from '../../kernel/random.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import { newSecret } from '../../keys/keys.ts';
import { type DemoReceiver, type Received, startReceiver } from './receiver.ts';
import { type DemoOptions, type DemoService, openDemoService } from './service.ts';

/** Shorter intervals than the defaults; the budget stays the configured one. */
const DEMO_SETTINGS = {
  http: { host: '127.0.0.1', port: 0 },
  observer: {
    steady_interval_ms: 3_000,
    pending_interval_min_ms: 300,
    pending_interval_max_ms: 2_000,
  },
  reconciler: { read_lag_ms: 300, quiescence_ms: 3_000, undecided_after_ms: 15_000 },
  upstream: { write_timeout_ms: 5_000 },
  log: { level: 'fatal' },
};

/** The longest wait of a step. */
const TIMEOUT_MS = 60_000;

interface Walk {
  service: DemoService;
  receiver: DemoReceiver;
  daemon: RunningDaemon;
  adminKey: string;
  /** Results for later steps. */
  memory: { lost?: string; resolution?: string };
}

/** Returns the exit code. */
export async function runDemo(options: DemoOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-demo-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const base = loadConfig(undefined, DEMO_SETTINGS);
    const service = await openDemoService(base.service, options);
    undo.push(service.close);
    const receiver = await startReceiver();
    undo.push(receiver.close);
    const adminKey = newSecret(systemRandom);
    const config: Config = {
      ...base,
      dataDir: folder,
      databaseUrl: undefined,
      databaseOwnerUrl: undefined,
      databaseReadUrl: undefined,
      service: service.address,
      adminKey,
      webhooks: { ...base.webhooks, allow_cidrs: ['127.0.0.0/8'] },
    };
    const daemon = await startDaemon(config);
    undo.push(daemon.stop);
    printLine(
      `Tallyhook runs at ${daemon.url}; the service is ${service.description}; data in ${folder}`,
    );
    return await runSteps({ service, receiver, daemon, adminKey, memory: {} });
  } finally {
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}

async function runSteps(walk: Walk): Promise<number> {
  const startedAt = systemClock.now();
  let failed = 0;
  const step = async (title: string, work: () => Promise<string>) => {
    const began = monotonicMs();
    try {
      const description = await work();
      printLine(`  ok    ${title}: ${description} (${Math.round(monotonicMs() - began)} ms)`);
    } catch (error) {
      failed++;
      printLine(`  FAIL  ${title}: ${error instanceof Error ? error.message : 'unknown'}`);
    }
  };
  await step('create a webhook endpoint', () => subscribe(walk));
  await step('watch the wallets', () => observe(walk));
  await step('mint and settle', () => mint(walk));
  await step('give', () => give(walk));
  await step('transfer with a fee', () => transfer(walk));
  await step('a lost answer makes a write unknown', () => loseAnswer(walk));
  await step('a change outside the daemon opens a drift', () => changeOutside(walk));
  await step('evidence resolves the unknown write, or people must', () => resolveLost(walk));
  await step('the report lists exactly these differences', () => report(walk, startedAt));
  await step('every webhook signature is valid', () => verifyWebhooks(walk));
  printLine(failed === 0 ? 'Every step succeeded.' : `${failed} of 10 steps failed.`);
  return failed === 0 ? 0 : 1;
}

/** Each step returns a description of its result, or throws the reason. */
async function subscribe(walk: Walk): Promise<string> {
  const { status, body } = await call(walk, 'POST', '/api/endpoints', {
    url: walk.receiver.url,
    event_types: ['*'],
  });
  expect(
    status === 201 && typeof body.secret === 'string',
    `creation answered ${status} ${jsonText(body)}`,
  );
  walk.receiver.trust(body.secret);
  return `${String(body.id)} at ${walk.receiver.url}`;
}

async function observe(walk: Walk): Promise<string> {
  const { payer, payee } = walk.service.targets;
  const addrs = [...new Set([payer, payee])];
  const { status, body } = await call(
    walk,
    'POST',
    '/api/watches',
    addrs.map((addr) => ({ kind: 'wallet', addr })),
  );
  expect(status === 201, `watching answered ${status} ${jsonText(body)}`);
  for (const addr of addrs) {
    await webhook(
      walk,
      `wallet.observed of ${addr}`,
      (r) => r.type === 'wallet.observed' && sameAddress(r.data.addr, addr),
    );
  }
  return addrs.join(' and ');
}

async function mint(walk: Walk): Promise<string> {
  const { contract, payer } = walk.service.targets;
  const tokenId = String(Math.floor(systemRandom.unit() * 1e9) + 1e6);
  const form = new URLSearchParams({
    toAddr: payer,
    tokenId,
    tokenURI: `https://example.com/${tokenId}.json`,
  });
  const { body, operation, outcome } = await call(
    walk,
    'POST',
    `/v1/chain/erc721/${contract}/mint`,
    form.toString(),
  );
  expect(operation && outcome === 'accepted', `the mint answered ${jsonText(body)}`);
  await about(walk, 'operation.accepted', operation);
  await webhook(
    walk,
    'token.minted',
    (r) => r.type === 'token.minted' && r.data.token_id === tokenId,
  );
  const settled = await about(walk, 'operation.settled', operation);
  return `token ${tokenId} settled under ${String(settled.data.tx_hash)}`;
}

async function give(walk: Walk): Promise<string> {
  const { operator, payer } = walk.service.targets;
  const path = `/v1/app/token/operations/${operator}/give`;
  const { body, operation, outcome } = await call(walk, 'POST', path, {
    toAddr: payer,
    amount: 100,
    reasonType: 'demo',
  });
  expect(operation && outcome === 'accepted', `the give answered ${jsonText(body)}`);
  const accepted = await about(walk, 'operation.accepted', operation);
  await about(walk, 'operation.settled', operation);
  return `100 to ${payer}, number ${String(accepted.data.tx_log_no)}, confirmed by the balance`;
}

async function transfer(walk: Walk): Promise<string> {
  const { path, body } = payment(walk, 20, 1);
  const answer = await call(walk, 'POST', path, body);
  const { operation } = answer;
  expect(operation && answer.outcome === 'accepted', `it answered ${jsonText(answer.body)}`);
  const accepted = await about(walk, 'operation.accepted', operation);
  await about(walk, 'operation.settled', operation);
  return `20 and 1 as fee, number ${String(accepted.data.tx_log_no)}`;
}

/** A transfer between the two wallets, or a deduction if there is only one. */
function payment(walk: Walk, amount: number, feeAmount: number): { path: string; body: Json } {
  const { payer: fromAddr, payee: toAddr } = walk.service.targets;
  const money = { fromAddr, amount, feeAmount, reasonType: 'demo' };
  return fromAddr === toAddr
    ? { path: '/v1/app/token/operations/receive-from', body: money }
    : { path: '/v1/app/token/accounts/transfer', body: { ...money, toAddr } };
}

async function loseAnswer(walk: Walk): Promise<string> {
  walk.service.loseNextAnswer();
  const lost = payment(walk, 13, 2);
  const { status, body, operation } = await call(walk, 'POST', lost.path, lost.body);
  expect(
    status === 504 && operation,
    `the gateway answered ${status} ${jsonText(body)} instead of 504`,
  );
  await about(walk, 'operation.unknown', operation);
  walk.memory.lost = operation;
  return `${operation} is unknown and is not sent again`;
}

async function changeOutside(walk: Walk): Promise<string> {
  const { operator, payee } = walk.service.targets;
  const path = `/v1/app/token/operations/${operator}/give`;
  // First the unknown transfer is resolved, so that the two differences are not mixed.
  await resolveLost(walk);
  await walk.service.sendDirectly(path, { toAddr: payee, amount: 7, reasonType: 'outside' });
  const opened = await webhook(
    walk,
    'wallet.drift_opened',
    (r) =>
      r.type === 'wallet.drift_opened' && sameAddress(r.data.addr, payee) && r.data.amount === '7',
  );
  return `drift ${String(opened.data.drift_id)} of 7 on ${payee}`;
}

async function resolveLost(walk: Walk): Promise<string> {
  expect(walk.memory.lost, 'there is no lost answer');
  const ended = await webhook(
    walk,
    'operation.resolved or operation.undecided',
    (r) =>
      ['operation.resolved', 'operation.undecided'].includes(r.type) &&
      r.data.operation_id === walk.memory.lost,
  );
  walk.memory.resolution = ended.type;
  return ended.type === 'operation.resolved'
    ? `resolved as ${String(ended.data.outcome)} by evidence`
    : 'undecided by evidence; the report lists it for people';
}

async function report(walk: Walk, from: number): Promise<string> {
  const { payee } = walk.service.targets;
  let result = 'there is no report';
  // The last polls and postings may still be running, so the report is repeated.
  for (const until = monotonicMs() + TIMEOUT_MS; monotonicMs() < until; await pause(1_000)) {
    const { id, breaks } = await makeReport(walk, from);
    const drifts = breaks.filter(({ kind }) => kind.startsWith('drift'));
    const others = breaks.filter(({ kind }) => !kind.startsWith('drift'));
    const lost = others.filter((row) => jsonText(row).includes(String(walk.memory.lost)));
    result = breaks.map(({ kind, amount }) => `${kind} ${amount ?? ''}`).join(', ') || 'balanced';
    const hasDrift =
      drifts.length === 1 && drifts[0]?.amount === '7' && jsonText(drifts).includes(payee);
    const hasUnknown =
      walk.memory.resolution === 'operation.resolved'
        ? others.length === 0
        : lost.length === others.length;
    if (hasDrift && hasUnknown) return `${id} has ${breaks.length} break: ${result}, on ${payee}`;
  }
  throw new Error(`the report has: ${result}`);
}

type Break = { kind: string; amount: string | null };

async function makeReport(walk: Walk, from: number): Promise<{ id: string; breaks: Break[] }> {
  const period = { from: isoText(from - 1_000), to: isoText(systemClock.now() + 1_000) };
  const made = await call(walk, 'POST', '/api/reports', { kind: 'reconciliation', ...period });
  expect(made.status === 201, `the report answered ${made.status} ${jsonText(made.body)}`);
  const whole = await call(walk, 'GET', `/api/reports/${String(made.body.id)}`);
  const content = whole.body.content as { breaks?: { listed?: Break[] } } | undefined;
  return { id: String(made.body.id), breaks: content?.breaks?.listed ?? [] };
}

async function verifyWebhooks({ receiver }: Walk): Promise<string> {
  const { verified, refused, repeated } = receiver.counts();
  expect(verified > 0 && refused === 0, `${verified} verified, ${refused} refused`);
  return `${verified} verified by standardwebhooks, ${repeated} repeated, 0 refused`;
}

/** Sends one request to the daemon with the admin key. */
async function call(
  walk: Walk,
  method: 'GET' | 'POST',
  path: string,
  body?: Json | string,
): Promise<{
  status: number;
  body: Record<string, Json>;
  operation: string | undefined;
  outcome: string | undefined;
}> {
  const form = typeof body === 'string';
  const answer = await request(`${walk.daemon.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${walk.adminKey}`,
      ...(body === undefined
        ? {}
        : { 'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json' }),
    },
    body: body === undefined ? null : form ? body : jsonText(body),
    headersTimeout: TIMEOUT_MS,
  });
  const headerOf = (name: string) => {
    const value = answer.headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const text = await answer.body.text();
  return {
    status: answer.statusCode,
    body: (text ? parseJson(text) : {}) as Record<string, Json>,
    operation: headerOf('tallyhook-operation'),
    outcome: headerOf('tallyhook-outcome'),
  };
}

/** @throws Error with the message when the condition is false */
function expect(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

/** The first matching webhook. @throws Error when none arrives in time */
async function webhook(
  { receiver }: Walk,
  description: string,
  matches: (received: Received) => boolean,
): Promise<Received> {
  const found = await receiver.waitFor(matches, TIMEOUT_MS);
  expect(found, `no webhook arrived within ${TIMEOUT_MS / 1000} s: ${description}`);
  return found;
}

/** The webhook of that type about that operation. */
function about(walk: Walk, type: string, operation: string): Promise<Received> {
  return webhook(
    walk,
    `${type} of ${operation}`,
    (r) => r.type === type && r.data.operation_id === operation,
  );
}

function sameAddress(a: unknown, b: string): boolean {
  return typeof a === 'string' && a.toLowerCase() === b.toLowerCase();
}
