/**
 * The walk-through: a daemon with its own temporary data between an app and the service. Each step says
 * what it does, waits for what must be seen, and counts only if it was; the exit code is 0 when all held.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { type Config, loadConfig, type RunningDaemon, startDaemon } from '../daemon/daemon.ts';
import { systemChance } from '../kernel/chance.ts';
import { isoText, monotonicMs, pause, systemClock } from '../kernel/clock.ts';
import { type Json, jsonText, parseJson } from '../kernel/json.ts';
import { printLine } from '../kernel/terminal.ts';
import { newSecret } from '../keys/keys.ts';
import { type DemoReceiver, type Received, startReceiver } from './demo-receiver.ts';
import { type DemoOptions, type DemoService, openDemoService } from './demo-service.ts';

const PATIENCE_MS = 60_000;
/** Faster than the defaults, so that a person does not wait; the budget stays the configured one. */
const QUICK = {
  http: { host: '127.0.0.1', port: 0 },
  observer: { steady_ms: 3_000, pending_min_ms: 300, pending_max_ms: 2_000 },
  reconciler: { read_lag_ms: 300, quiescence_ms: 3_000, undecided_after_ms: 15_000 },
  upstream: { write_timeout_ms: 5_000 },
  log: { level: 'fatal' },
};

/** Runs the walk-through. Answers the exit code. */
export async function runDemo(options: DemoOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-demo-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const base = loadConfig(undefined, QUICK);
    const service = await openDemoService(base.service, options);
    undo.push(service.close);
    const receiver = await startReceiver();
    undo.push(receiver.close);
    const adminKey = newSecret(systemChance);
    const config: Config = {
      ...base,
      dataDir: folder,
      databaseUrl: undefined,
      databaseOwnerUrl: undefined,
      service: service.address,
      adminKey,
      webhooks: { ...base.webhooks, allow_cidrs: ['127.0.0.0/8'] },
    };
    const daemon = await startDaemon(config);
    undo.push(daemon.stop);
    printLine(
      `Tallyhook runs at ${daemon.url}; the service is ${service.words}; data in ${folder}`,
    );
    return await walk({ service, receiver, daemon, adminKey });
  } finally {
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}

interface Stage {
  service: DemoService;
  receiver: DemoReceiver;
  daemon: RunningDaemon;
  adminKey: string;
}

async function walk(stage: Stage): Promise<number> {
  const startedAt = systemClock.now();
  let failed = 0;
  const step = async (title: string, work: () => Promise<string>) => {
    const began = monotonicMs();
    try {
      const words = await work();
      printLine(`  ok    ${title}: ${words} (${Math.round(monotonicMs() - began)} ms)`);
    } catch (error) {
      failed++;
      printLine(`  FAIL  ${title}: ${error instanceof Error ? error.message : 'unknown'}`);
    }
  };
  await step('an endpoint for webhooks', () => subscribe(stage));
  await step('the wallets are observed', () => observe(stage));
  await step('mint and settle', () => mint(stage));
  await step('give', () => give(stage));
  await step('transfer with a fee', () => transfer(stage, '20', 'transfer'));
  await step('a lost answer is called unknown', () => loseAnswer(stage));
  await step('a wallet changed behind our back', () => changeBehind(stage));
  await step('the lost answer ends by evidence or with people', () => endOfLost(stage));
  await step('the report names exactly that', () => report(stage, startedAt));
  await step('every webhook is genuine', () => genuine(stage));
  printLine(failed === 0 ? 'Everything held.' : `${failed} of 10 steps did not hold.`);
  return failed === 0 ? 0 : 1;
}

/** What later steps need of earlier ones. */
const seen: { lost?: string; resolution?: string } = {};

async function call(
  stage: Stage,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: Json | string,
): Promise<{ status: number; body: Record<string, Json>; operation: string | undefined }> {
  const form = typeof body === 'string';
  const answer = await request(`${stage.daemon.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${stage.adminKey}`,
      ...(body === undefined
        ? {}
        : { 'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json' }),
    },
    body: body === undefined ? null : form ? body : jsonText(body),
    headersTimeout: PATIENCE_MS,
  });
  const operation = answer.headers['tallyhook-operation'];
  const text = await answer.body.text();
  return {
    status: answer.statusCode,
    body: (text ? parseJson(text) : {}) as Record<string, Json>,
    operation: typeof operation === 'string' ? operation : undefined,
  };
}

function insist(holds: unknown, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}

async function webhook(
  { receiver }: Stage,
  words: string,
  fits: (received: Received) => boolean,
): Promise<Received> {
  const found = await receiver.waitFor(fits, PATIENCE_MS);
  insist(found, `no webhook came within ${PATIENCE_MS / 1000} s: ${words}`);
  return found;
}

async function subscribe(stage: Stage): Promise<string> {
  const { status, body } = await call(stage, 'POST', '/api/endpoints', {
    url: stage.receiver.url,
    event_types: ['*'],
  });
  insist(
    status === 201 && typeof body.secret === 'string',
    `creation answered ${status} ${jsonText(body)}`,
  );
  stage.receiver.trust(body.secret);
  return `${String(body.id)} at ${stage.receiver.url}`;
}

async function observe(stage: Stage): Promise<string> {
  const { payer, payee } = stage.service.objects;
  const addrs = [...new Set([payer, payee])];
  const { status, body } = await call(
    stage,
    'POST',
    '/api/watches',
    addrs.map((addr) => ({ kind: 'wallet', addr })),
  );
  insist(status === 201, `watching answered ${status} ${jsonText(body)}`);
  for (const addr of addrs) {
    await webhook(
      stage,
      `wallet.observed of ${addr}`,
      (r) => r.type === 'wallet.observed' && same(r.data.addr, addr),
    );
  }
  return addrs.join(' and ');
}

async function mint(stage: Stage): Promise<string> {
  const { contract, payer } = stage.service.objects;
  const tokenId = String(Math.floor(systemChance.unit() * 1e9) + 1e6);
  const form = new URLSearchParams({
    toAddr: payer,
    tokenId,
    tokenURI: `https://example.com/${tokenId}.json`,
  });
  const { body, operation } = await call(
    stage,
    'POST',
    `/v1/chain/erc721/${contract}/mint`,
    form.toString(),
  );
  insist(operation, `the mint answered ${jsonText(body)}`);
  await about(stage, 'operation.accepted', operation);
  await webhook(
    stage,
    'token.minted',
    (r) => r.type === 'token.minted' && r.data.token_id === tokenId,
  );
  const settled = await about(stage, 'operation.settled', operation);
  return `token ${tokenId} settled under ${String(settled.data.tx_hash)}`;
}

async function give(stage: Stage): Promise<string> {
  const { operator, payer } = stage.service.objects;
  const path = `/v1/app/token/operations/${operator}/give`;
  const { body, operation } = await call(stage, 'POST', path, {
    toAddr: payer,
    amount: 100,
    reasonType: 'demo',
  });
  insist(operation, `the give answered ${jsonText(body)}`);
  const accepted = await about(stage, 'operation.accepted', operation);
  await about(stage, 'operation.settled', operation);
  return `100 to ${payer}, number ${String(accepted.data.tx_log_no)}, confirmed by the balance`;
}

async function transfer(stage: Stage, amount: string, reasonType: string): Promise<string> {
  const { payer, payee } = stage.service.objects;
  const payment = {
    fromAddr: payer,
    toAddr: payee,
    amount: Number(amount),
    feeAmount: 1,
    reasonType,
  };
  const { body, operation } = await call(stage, 'POST', '/v1/app/token/accounts/transfer', payment);
  insist(operation, `the transfer answered ${jsonText(body)}`);
  const accepted = await about(stage, 'operation.accepted', operation);
  await about(stage, 'operation.settled', operation);
  return `${amount} and 1 as fee, number ${String(accepted.data.tx_log_no)}`;
}

async function loseAnswer(stage: Stage): Promise<string> {
  const { payer, payee } = stage.service.objects;
  stage.service.loseNextAnswer();
  const payment = { fromAddr: payer, toAddr: payee, amount: 13, feeAmount: 2, reasonType: 'lost' };
  const { status, body, operation } = await call(
    stage,
    'POST',
    '/v1/app/token/accounts/transfer',
    payment,
  );
  insist(
    status === 504 && operation,
    `the gateway answered ${status} ${jsonText(body)} instead of 504`,
  );
  await about(stage, 'operation.unknown', operation);
  seen.lost = operation;
  return `${operation} is unknown, and not sent again`;
}

async function changeBehind(stage: Stage): Promise<string> {
  const { operator, payee } = stage.service.objects;
  const path = `/v1/app/token/operations/${operator}/give`;
  // After the lost transfer is explained, so that the evidence for the one does not blur the other.
  await endOfLost(stage);
  await stage.service.directly(path, { toAddr: payee, amount: 7, reasonType: 'elsewhere' });
  const opened = await webhook(
    stage,
    'wallet.drift_opened',
    (r) => r.type === 'wallet.drift_opened' && same(r.data.addr, payee) && r.data.amount === '7',
  );
  return `drift ${String(opened.data.drift_id)} of 7 on ${payee}`;
}

async function endOfLost(stage: Stage): Promise<string> {
  insist(seen.lost, 'there is no lost answer');
  const ended = await webhook(
    stage,
    'operation.resolved or operation.undecided',
    (r) =>
      ['operation.resolved', 'operation.undecided'].includes(r.type) &&
      r.data.operation_id === seen.lost,
  );
  seen.resolution = ended.type;
  return ended.type === 'operation.resolved'
    ? `resolved as ${String(ended.data.outcome)} by evidence`
    : 'the evidence does not decide; people must, and the report names it';
}

async function report(stage: Stage, from: number): Promise<string> {
  const { payee } = stage.service.objects;
  let said = 'there is no report';
  // The last looks and postings may still be under way: a report is asked for until it has them.
  for (const until = monotonicMs() + PATIENCE_MS; monotonicMs() < until; await pause(1_000)) {
    const { id, breaks } = await makeReport(stage, from);
    const drifts = breaks.filter(({ kind }) => kind.startsWith('drift'));
    const others = breaks.filter(({ kind }) => !kind.startsWith('drift'));
    const lost = others.filter((row) => jsonText(row).includes(String(seen.lost)));
    said = breaks.map(({ kind, amount }) => `${kind} ${amount ?? ''}`).join(', ') || 'balanced';
    const right =
      drifts.length === 1 && drifts[0]?.amount === '7' && jsonText(drifts).includes(payee);
    const named =
      seen.resolution === 'operation.resolved'
        ? others.length === 0
        : lost.length === others.length;
    if (right && named) return `${id} has ${breaks.length} break: ${said}, on ${payee}`;
  }
  throw new Error(`the report says: ${said}`);
}

interface Break {
  kind: string;
  amount: string | null;
}

async function makeReport(stage: Stage, from: number): Promise<{ id: string; breaks: Break[] }> {
  const period = { from: isoText(from - 1_000), to: isoText(systemClock.now() + 1_000) };
  const made = await call(stage, 'POST', '/api/reports', { kind: 'reconciliation', ...period });
  insist(made.status === 201, `the report answered ${made.status} ${jsonText(made.body)}`);
  const whole = await call(stage, 'GET', `/api/reports/${String(made.body.id)}`);
  const { content } = whole.body as unknown as { content: { breaks: { listed: Break[] } } };
  return { id: String(made.body.id), breaks: content.breaks.listed };
}

async function genuine({ receiver }: Stage): Promise<string> {
  const { verified, refused, repeated } = receiver.counts();
  insist(verified > 0 && refused === 0, `${verified} verified, ${refused} refused`);
  return `${verified} verified by standardwebhooks, ${repeated} repeated with the same id, 0 refused`;
}

function about(stage: Stage, type: string, operation: string): Promise<Received> {
  return webhook(
    stage,
    `${type} of ${operation}`,
    (r) => r.type === type && r.data.operation_id === operation,
  );
}

function same(a: unknown, b: string): boolean {
  return typeof a === 'string' && a.toLowerCase() === b.toLowerCase();
}
