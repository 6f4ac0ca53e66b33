/** A client of a scripted or raw service, and the requests and records that the tests share. */
import { type Clock, systemClock } from '../../src/kernel/clock.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import type { ExchangeRequest } from '../../src/upstream/http/exchange.ts';
import {
  makeTransport,
  type Transport,
  type TransportSettings,
} from '../../src/upstream/http/transport.ts';
import {
  type ForwardRequest,
  openUpstream,
  type QuotaState,
  type QuotaStore,
  type Upstream,
  type UpstreamDeps,
  type UpstreamSettings,
} from '../../src/upstream/upstream.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { closeLater, type Reply, type Script, startScripted } from './service.ts';

export { closeAll } from './service.ts';

export const SETTINGS: UpstreamSettings = {
  readTimeoutMs: 5000,
  writeTimeoutMs: 5000,
  connectTimeoutMs: 5000,
  proxies: {},
  bodyBytesMax: 1 << 20,
  budgetPerS: 1000,
  initialRatePerS: 1000,
  concurrencyMax: 8,
  steadyShare: 0.2,
  waitingMax: 100,
  waitMs: 5000,
  forwardsMax: 32,
};

/** A quota store in memory; it outlives the clients that use it. */
export function memoryQuotaStore(rows: QuotaState[] = []): QuotaStore & { rows: QuotaState[] } {
  return {
    rows,
    load: async () => rows.map((row) => ({ ...row })),
    async save(state) {
      const at = rows.findIndex(({ name }) => name === state.name);
      if (at < 0) rows.push(state);
      else rows[at] = state;
    },
    async clear(clearedAt) {
      for (const row of rows) Object.assign(row, { blockedUntil: null, clearedAt });
    },
  };
}

/** A log, and everything written to it. */
export function textLog() {
  const logged = { text: '' };
  const log = makeLog('trace', {
    write: (line: string) => {
      logged.text += line;
    },
  });
  return { log, logged };
}

export async function upstreamTo(
  origin: string,
  clock: Clock,
  more: Partial<Omit<UpstreamDeps, 'settings'>> & { settings?: Partial<UpstreamSettings> } = {},
): Promise<{ upstream: Upstream; logged: { text: string } }> {
  const { log, logged } = textLog();
  const upstream = await openUpstream({
    baseUrl: origin,
    authUrl: origin,
    txUrl: origin,
    clientId: 'client',
    clientSecret: 'hush-hush',
    clock,
    random: seededRandom(1),
    log,
    metrics: makeMetrics(),
    quota: memoryQuotaStore(),
    ...more,
    settings: { ...SETTINGS, ...more.settings },
  });
  return { upstream: closeLater(upstream), logged };
}

/** A promise and the way to fulfil it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

export function transportWith(
  settings: Partial<TransportSettings> = {},
  clock: Clock = systemClock,
  monotonic?: Clock,
): Transport {
  const all = {
    connectTimeoutMs: 5000,
    proxies: {},
    bodyBytesMax: 1000,
    connections: { polls: 1, 'app-read': 1 },
    ...settings,
  };
  return closeLater(makeTransport(clock, all, monotonic));
}

/** A request with a body, for an exchange of ten seconds at most. */
export function post(
  origin: string,
  more: Partial<ExchangeRequest> = {},
  now = systemClock.now(),
): ExchangeRequest {
  return {
    method: 'POST',
    origin,
    path: '/v1/app/token/accounts/transfer',
    headers: ['content-type', 'application/json'],
    body: Buffer.from('{"amount":1}'),
    deadlineAt: now + 10_000,
    bodyBytesMax: 1000,
    ...more,
  };
}

export const GIVE = '/v1/app/token/operations/7/give';
export const DONE: Reply = [200, { status: 200, data: { tx_app_no: 1, tx_log_no: 2n ** 70n } }];
export const BODY = '{"toAddr": "x",  "amount": 1.0}';

/** A write of an app that has five seconds from `now`. */
export function give(now: number, more: Partial<ForwardRequest> = {}): ForwardRequest {
  return {
    method: 'POST',
    path: GIVE,
    host: 'tx',
    headers: [['content-type', 'application/json;charset=weird']],
    body: Buffer.from(BODY),
    authorization: { managed: true },
    family: 'transaction',
    deadlineAt: now + 5000,
    ...more,
  };
}

/** A client on a manual clock; `forward` sends one write to the script. */
export async function forwardTo(script: Script, tokens?: Script) {
  const clock = manualClock();
  const service = await startScripted(script, tokens);
  const { upstream, logged } = await upstreamTo(service.origin, clock);
  const forward = (more: Partial<ForwardRequest> = {}) => upstream.forward(give(clock.now(), more));
  return { service, clock, forward, upstream, logged };
}

export const ADDR = `0x${'aB'.repeat(20)}`;
export const ACCOUNT = '/v1/app/token/account';
export const HASH = `0x${'ef'.repeat(32)}`;
export const wallet = { token_addr: ADDR, amt_token: 12345678901234567890n, status: 1 };
export const token = {
  contract_id: 3,
  token_id: 9,
  token_owner: ADDR,
  token_uri: 'ipfs://x',
  token_metadata: '{"a":1}',
  token_extradata: '',
  token_creator: ADDR,
  token_created_at: '2026-01-01 09:00:00',
  token_owned_at: '2026-01-02 09:00:00',
  token_is_locked: 0,
  status: 1,
  last_tx_hash: HASH,
};

export const ok = (data: unknown): Reply => [200, { status: 200, data }];
/** A refusal of the NFT endpoints (section 7.1). */
export const nftError = (status: number, message: string): Reply => [
  200,
  { status, error: [{ message, field: '', validation: '' }] },
];
/** A refusal of the account and transaction endpoints (section 7.2). */
export const accountError = (status: number, code: number): Reply => [
  200,
  { status: String(status), error: { code: String(code), message: 'no' } },
];

/** A client on a manual clock; `poll` reads the wallet from the script. */
export async function pollFrom(script: Script) {
  const made = await forwardTo(script);
  return { ...made, poll: () => made.upstream.account(ADDR, 'steady') };
}
