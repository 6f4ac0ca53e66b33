/**
 * The API over the real stages and a database of its own; only the service is missing. Every
 * response to `call` is checked against the OpenAPI definition of its route: status, content type,
 * and every field.
 */

import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { afterAll, beforeAll } from 'vitest';
import { type Api, type ApiDeps, makeApi, readReport } from '../../src/api/api.ts';
import { makeConsole } from '../../src/console/console.ts';
import { makeNotifier } from '../../src/daemon/workers/wake-up.ts';
import { makeRefusals } from '../../src/db/checks/refusals.ts';
import type { Db } from '../../src/db/connect.ts';
import { readMigrations } from '../../src/db/migrate.ts';
import { makeImports } from '../../src/imports/imports.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeTrustedProxies } from '../../src/kernel/http/trusted-proxies.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeAudit, makeKeys, makeSessions } from '../../src/keys/keys.ts';
import { listIncludedInOpenings, makeOperatorMappings } from '../../src/ledger/ledger.ts';
import { addWallets, makeObserver, makeQuotaStore } from '../../src/observer/observer.ts';
import {
  accountOfWallet,
  type EffectSettings,
  makeDecisions,
  makeReportedOperations,
} from '../../src/operations/operations.ts';
import { makeConsumers } from '../../src/outbox/outbox.ts';
import { makeDrifts, makeReconciler } from '../../src/reconciler/reconciler.ts';
import { DEFAULT_LIMITS, makePeriods, makeReports } from '../../src/reports/reports.ts';
import type { Scope } from '../../src/resources/admin/key.ts';
import { ROLES } from '../../src/resources/admin/status.ts';
import { openUpstream } from '../../src/upstream/upstream.ts';
import { makeEncryption } from '../../src/webhooks/encryption.ts';
import { makeWebhooks, webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { balancesOf } from '../harness/books.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { openStages } from '../harness/stages.ts';
import { type Answer, type Body, checkResponse } from './described.ts';
import { answerLost, aWrite } from './writes.ts';

export interface Call {
  key?: string | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent unchanged. */
  raw?: string;
  headers?: Record<string, string>;
}

export type TestApi = Awaited<ReturnType<typeof openApi>>;

async function openAllStages(db: Db) {
  const clock = { ...systemClock, correctionMs: () => 0 };
  const random = systemRandom;
  const lines: string[] = [];
  const log = makeLog('info', { write: (line) => void lines.push(line) });
  const operators = new Map<string, string>([[NAMED_OPERATOR, NAMED_WALLET]]);
  const effectSettings: EffectSettings = { feeMode: 'on_top', operators };
  const stages = await openStages(db, {
    clock,
    random,
    log,
    settings: { effects: effectSettings },
  });
  const { ids, metrics, outbox } = stages;
  const encryption = makeEncryption(random.bytes(32), random);
  const people = { db, clock, outbox, secondApproverAbove: 1_000_000n };
  const settings = { ...webhookDefaults, allowCidrs: ['127.0.0.0/8'] };
  const webhooks = makeWebhooks({
    db,
    clock,
    wallClock: clock,
    random,
    ids,
    log,
    metrics,
    settings,
    emit: outbox.emit,
    encryption,
  });
  const upstream = await openUpstream({
    baseUrl: CLOSED_PORT,
    authUrl: CLOSED_PORT,
    txUrl: CLOSED_PORT,
    clientId: 'client',
    clientSecret: 'secret',
    clock,
    random,
    log,
    metrics,
    quota: makeQuotaStore(db),
    settings: UPSTREAM,
  });
  const observer = makeObserver({ ...stages, upstream, settings: OBSERVER });
  const reportedOperations = makeReportedOperations({
    db,
    clock,
    ids,
    outbox,
    metrics,
    effectSettings,
    includedInOpenings: (tx, written, at) =>
      listIncludedInOpenings(tx, written, effectSettings, at),
    observe: addWallets,
    onRecorded: () => {},
  });
  const importDeps = { db, peopleDb: db, clock, ids, reportedOperations, readReport };
  return {
    ...stages,
    clock,
    lines,
    importDeps,
    webhooks,
    consumers: makeConsumers({ db, clock, ids }),
    upstream,
    observer,
    decisions: makeDecisions({ ...people, metrics }),
    drifts: makeDrifts({ ...people, ...stages, effectSettings }),
    operatorMappings: makeOperatorMappings({
      db,
      clock,
      operators,
      observe: (tx, addr, at) => addWallets(tx, [addr], at),
      onMapped: () => {},
    }),
    reportedOperations,
    imports: makeImports(importDeps),
    reconciler: makeReconciler({ ...stages, ...observer, effectSettings, settings: RECONCILER }),
    reports: makeReports({ ...people, reads: db, ids, settings: REPORTS }),
    periods: makePeriods({ ...people, reads: db, ids, settings: REPORTS }),
    keys: makeKeys({ db, clock, random, ids }),
    audit: makeAudit({ db, clock }),
    sessions: makeSessions({ clock, random, encryption }),
  };
}

/** Opens the API before the first test of a file. Use it inside tests only. */
export function useApi(change?: (deps: ApiDeps) => ApiDeps) {
  const rig = {} as TestApi & ReturnType<typeof shortcuts> & { database: TestDatabase };
  beforeAll(async () => {
    const database = await createDatabase();
    const api = await openApi(database.db, change);
    Object.assign(rig, { database }, api, shortcuts(api));
  });
  afterAll(() => rig.database?.drop());
  return rig;
}

function shortcuts({ db, call, operations, ledger, clock }: TestApi) {
  const postAll = async (): Promise<void> => {
    while ((await ledger.runOnce(clock.now())).posted > 0);
  };
  const record = async (change: Parameters<typeof aWrite>[0] = {}) => {
    const made = await operations.record(aWrite(change));
    if (!('id' in made)) throw new Error('the operation was not recorded');
    return made.id;
  };
  return {
    /** Records an operation that is being sent. */
    record,
    /** Records an operation whose answer is lost. */
    async recordLost(change: Parameters<typeof aWrite>[0] = {}): Promise<string> {
      const id = await record(change);
      await operations.conclude(answerLost(id, clock.now()));
      return id;
    },
    postAll,
    /** What the ledger holds for a wallet once everything is posted. */
    async balance(addr: string): Promise<bigint> {
      await postAll();
      const account = accountOfWallet(addr);
      return (await balancesOf(db, [account])).get(account)?.balance ?? 0n;
    },
    /** All pages of a list. @param path with its query */
    async pagesOf(path: string): Promise<Body[]> {
      const pages: Body[] = [];
      for (let cursor = ''; ; ) {
        const { body } = await call('GET', `${path}${cursor}`);
        pages.push(body);
        if (body.next_cursor === null) return pages;
        cursor = `&cursor=${body.next_cursor}`;
      }
    },
  };
}

/** The API of one daemon. */
export async function openApi(db: Db, change = (deps: ApiDeps) => deps) {
  const stages = await openAllStages(db);
  const { keys } = stages;
  const leaving = new AbortController();
  const stopping = new AbortController();
  const notifier = makeNotifier();
  const deps = change({
    ...stages,
    wake: () => {},
    stopping: stopping.signal,
    leaving: leaving.signal,
    roles: ROLES,
    isAlive: () => true,
    refusals: makeRefusals(),
    delivery: { isRunning: () => true, report: async () => undefined },
    migrations: await readMigrations(),
    nextEvent: notifier.wait,
    staleAfterMs: DEFAULT_LIMITS.staleMs,
    feedWaitMaxMs: 30_000,
    bodyBytesMax: 1_048_576,
    basePath: '',
    trusted: makeTrustedProxies([]),
    settings: [],
  });
  const api = makeApi(deps);
  const secrets = new Map<string, { secret: string }>();
  const keyFor = async (...scopes: Scope[]) => {
    const name = scopes.join(' ');
    const { secret } =
      secrets.get(name) ?? (await keys.create({ name, owner: `owner of ${name}`, scopes }));
    secrets.set(name, { secret });
    return secret;
  };
  const request = async (method: string, path: string, call: Call = {}): Promise<Answer> => {
    const key = 'key' in call ? call.key : await keyFor('admin');
    const response = await api.request(path, requestOf(method, { ...call, key }));
    return checkResponse(api, method, path, response);
  };
  return { ...stages, api, call: request, keyFor, deps, notifier, leaving, stopping };
}

/** The operator of the settings file, and its wallet. */
export const [NAMED_OPERATOR, NAMED_WALLET] = ['900', `0xE9${'0'.repeat(38)}`] as const;
const CLOSED_PORT = 'http://127.0.0.1:9';
const UPSTREAM = {
  readTimeoutMs: 1_000,
  writeTimeoutMs: 1_000,
  connectTimeoutMs: 500,
  proxies: {},
  bodyBytesMax: 1_048_576,
  budgetPerS: 5,
  initialRatePerS: 5,
  concurrencyMax: 4,
  steadyShare: 0.2,
  waitingMax: 10,
  waitMs: 100,
  forwardsMax: 10,
};
const REPORTS = { ...DEFAULT_LIMITS, timeZone: 'Asia/Seoul' };
const RECONCILER = {
  steadyMs: 60_000,
  pendingMinMs: 1_000,
  pendingMaxMs: 30_000,
  readLagMs: 0,
  quiescenceMs: 30_000,
  undecidedAfterMs: 3_600_000,
  bracketMaxMs: 600_000,
  oneSided: 'resolve' as const,
};
const OBSERVER = {
  steadyMs: 60_000,
  settledMs: 86_400_000,
  minGapMs: 500,
  readLagMs: 0,
  pendingMinMs: 1_000,
  pendingMaxMs: 30_000,
  steadyShare: 0.2,
  probeMs: 60_000,
  probeDownMs: 10_000,
  pollTimeoutMs: 5_000,
};

/** Serves the API and the console on a free port of loopback. */
export async function startServer(api: Api) {
  api.route('/', makeConsole());
  const listener = getRequestListener(api.fetch, { overrideGlobalObjects: false });
  const server = createServer((request, response) => void listener(request, response));
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => closeServer(server),
  };
}

export function requestOf(method: string, { key, body, raw, headers }: Call): RequestInit {
  const text = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  return {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(text === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(text === undefined ? {} : { body: text }),
  };
}
