/**
 * A small repository in which nothing is wrong: every room, every door, every allowed exception.
 * Each planted fault is one change to it, so a finding beside the expected one is a false alarm.
 */
import type { Tree } from './source.ts';

const KERNEL = {
  'src/kernel/clock.ts': `/** Time as an argument. */
export const systemClock = { now: () => Date.now() + performance.now() + +new Date() };
export const after = (ms: number, act: () => void) => setTimeout(act, ms);
`,
  'src/kernel/chance.ts': `/** Randomness as an argument. */
import { randomBytes } from 'node:crypto';
export const systemChance = { unit: () => Math.random(), bytes: randomBytes };
`,
  'src/kernel/log.ts': `/** The log. */
import { pino } from 'pino';
export const makeLog = () => pino();
`,
  'src/kernel/metrics.ts': `/** Measurements. */
import { Registry } from 'prom-client';
export const makeMetrics = () => new Registry();
`,
  'src/kernel/terminal.ts': `/** What people read at a terminal. */
export const say = (line: string) => console.log(line);
`,
  'src/kernel/full.ts': `/** All at its limit: 300 lines, 70 in a function, 100 columns. */
export function full() {
${rows(68, '  // .')}
}
// ${'x'.repeat(97)}
${rows(228, '// .')}
`,
  'src/kernel/json.ts': `/** JSON that loses no digit. */
export const exact = JSON as unknown as { rawJSON(text: string): unknown };
`,
};

const DB = {
  'src/db/db.ts': `/** The connection. */
import postgres from 'postgres';
import { start } from './embedded.ts';
export { holdLease } from './leases.ts';
export const connect = (url: string) => postgres(url || start());
`,
  'src/db/embedded.ts': `/** The server that comes with us. */
export { start } from './embedded-process.ts';
`,
  'src/db/embedded-process.ts': `/** Its process. */
export const start = () => 'postgres://127.0.0.1';
`,
  'src/db/owner-url.ts': `/** The address of the owner's connection, for drizzle-kit. */
export const ownerUrl = () => '';
`,
  'src/db/columns.ts': `/** Column types. */
import { pgSchema } from 'drizzle-orm/pg-core';
export const tallyhook = pgSchema('tallyhook');
`,
  'src/db/tables.ts': `/** Tables of db. */
import { tallyhook } from './columns.ts';
export const leases = tallyhook.table('leases', {});
`,
  'src/db/leases.ts': `/** Leases, and the list of migrations. */
import { sql } from 'drizzle-orm';
import { leases } from './tables.ts';
export const MIGRATIONS = 'create table if not exists tallyhook.migrations (id text)';
export const holdLease = (tx: any_, name: string) => [
  tx.insert(leases).values({ name }),
  sql\`insert into tallyhook.migrations (id) values (\${name})\`,
  sql\`drop table tallyhook.\${sql.identifier(name)}\`,
  sql\`truncate tallyhook.\${sql.raw(name)}\`,
];
type any_ = { insert(table: unknown): { values(row: object): void } };
`,
};

const STAGES = {
  'src/keys/tables.ts': table('keys'),
  'src/keys/keys.ts': `/** Who may call. */
import { findKey } from './store.ts';
export const allow = findKey;
`,
  'src/keys/store.ts': `/** The SQL of keys. */
import { sql } from 'drizzle-orm';
import { keys } from './tables.ts';
export const findKey = () => sql\`select id from \${keys} limit 1\`;
`,
  'src/upstream/upstream.ts': `/** How to speak to the service.
 * https://example.test/${'long/'.repeat(20)} */
import { request } from 'undici';
export interface Service { ask(path: string): Promise<unknown> }
export const makeService = (exchange: typeof request): Service => ({ ask: (p) => exchange(p) });
`,
  'src/journal/tables.ts': `/** Tables of the journal. */
import { tallyhook } from '../db/columns.ts';
export const operations = tallyhook.table('operations', {}).enableRLS();
export const transitions = tallyhook.table('transitions', {});
`,
  'src/journal/journal.ts': `/** What we asked of the service. */
import type { Service } from '../upstream/upstream.ts';
import { emit } from '../outbox/outbox.ts';
import type { Event } from '../outbox/events.ts';
import { isFinal } from './rules.ts';
import { record } from './store.ts';
export { operations as written } from './tables.ts';
export const run = (service: Service, event: Event) => [record, emit, isFinal, service, event];
export class NotThere extends Error {}
export const spoken = (error: Error) => new Map([['text', error.message]]).delete('update keys');
`,
  'src/journal/rules.ts': `/** Rules of the journal. Insert into keys nothing. */
import { type Instant, later } from './instants.ts';
export const isFinal = (state: string, at: Instant) => state === 'settled' && later(at, 0);
export const help = ['select a wallet from the list', 'update keys set by others', html()];
function html() { return String.raw\`delete from keys, in words\`; }
`,
  'src/journal/instants.ts': `/** Instants. */
export type Instant = number;
export const later = (a: Instant, b: Instant) => new Date(a) > new Date(b);
export const same = (a: Error, b: Error) => a.message === b.message && a.message !== undefined;
export const isText = (a: { message: unknown }) => typeof a.message === 'string';
export const refetch = async (service: { fetch(path: string): void }) => service.fetch('/');
`,
  'src/journal/store.ts': `/** The SQL of the journal. */
import { sql } from 'drizzle-orm';
import * as tables from './tables.ts';
import { transitions } from './tables.ts';
export const record = (tx: { delete(of: unknown): void; insert(into: unknown): void }) => [
  tx.insert(transitions), tx.delete(tables.operations), new Set<unknown>().delete(tx),
  sql\`with sent as (insert into \${tables.operations} (id) values (1)
    on conflict (id) do update set id = 2 returning id)
    update tallyhook.transitions t set state = 1 from sent\`,
  sql\`select count(*), id from tallyhook.operations limit 1 for update of operations skip locked\`,
  sql\`select pg_advisory_xact_lock(1), 'please update keys of yours'\`,
  sql\`insert into scratch (id) values (1)\`, \`update \${tx} when it is due\`,
];
`,
  'src/ledger/tables.ts': table('entries'),
  'src/ledger/ledger.ts': `/** What we hold to be true. */
import { post as postRows } from './store.ts';
export const post = () => postRows;
`,
  'src/ledger/store.ts': `/** The SQL of the ledger. */
import { run } from '../journal/journal.ts';
export const post = () => run;
`,
  'src/observer/observer.ts': `/** What the service says now. */
import { makeService } from '../upstream/upstream.ts';
export const look = () => makeService;
`,
  'src/reconciler/reconciler.ts': `/** What the difference means. */
import type { Service } from '../upstream/upstream.ts';
import { look } from '../observer/observer.ts';
export const compare = (service: Service) => look() && service;
`,
  'src/outbox/tables.ts': table('events'),
  'src/outbox/events.ts': `/** The events. */
export interface Event { type: string }
`,
  'src/outbox/outbox.ts': `/** The seam between inside and outside. */
import { events } from './tables.ts';
export const emit = () => events;
`,
  'src/webhooks/tables.ts': table('deliveries'),
  'src/webhooks/webhooks.ts': `/** How it leaves the house. */
import { Pool } from 'undici';
import { settle } from './delivery-store.ts';
export const deliver = () => settle(new Pool('https://example.test'));
`,
  'src/webhooks/delivery-store.ts': `/** The SQL of deliveries. */
import { deliveries } from './tables.ts';
export const settle = (tx: unknown) => (tx as { update(t: unknown): void }).update(deliveries);
`,
  'src/reports/reports.ts': `/** Read-only questions. */
import { sql } from 'drizzle-orm';
import { operations } from '../journal/tables.ts';
import { post } from '../ledger/ledger.ts';
export const balance = () => [sql\`select sum(amount) from \${operations}\`, post()];
`,
};

const SURFACES = {
  'src/gateway/gateway.ts': `/** The service's own paths, recorded. */
import type { HttpBindings } from '@hono/node-server';
import { run } from '../journal/journal.ts';
export const forward = (bindings: HttpBindings) => [run, bindings];
`,
  'src/api/api.ts': `/** Our own HTTP API. */
import type { Event } from '../outbox/events.ts';
import { balance } from '../reports/reports.ts';
import { allow } from '../keys/keys.ts';
export const app = (event: Event) => [allow, balance, event];
`,
  'src/console/console.ts': `/** Pages for people. */
import { run } from '../journal/journal.ts';
export const page = (html: typeof String.raw) => html\`<p>update keys set of \${run.name}</p>\`;
`,
  'src/sandbox/sandbox.ts': `/** The service itself. */
import { systemClock } from '../kernel/clock.ts';
export const chain = () => [systemClock, new URL('./chain-worker.ts', import.meta.url)];
`,
  'src/sandbox/chain-worker.ts': `/** The simulated chain, in a thread of its own. */
export {};
`,
  'src/daemon/daemon.ts': `/** The composition root. */
import { systemChance } from '../kernel/chance.ts';
import { full } from '../kernel/full.ts';
import { exact } from '../kernel/json.ts';
import { makeLog } from '../kernel/log.ts';
import { makeMetrics } from '../kernel/metrics.ts';
import { connect, holdLease } from '../db/db.ts';
import { MIGRATIONS } from '../db/leases.ts';
import { compare } from '../reconciler/reconciler.ts';
import { deliver } from '../webhooks/webhooks.ts';
import { forward } from '../gateway/gateway.ts';
import { app } from '../api/api.ts';
import { page } from '../console/console.ts';
import { readConfig } from './config.ts';
import { schedule } from './schedule.ts';
const parts = [full, systemChance, exact, makeLog, makeMetrics, connect, holdLease, MIGRATIONS];
export const start = () => [parts, compare, deliver, forward, app, page, readConfig, schedule];
`,
  'src/daemon/config.ts': `/** The settings. */
import { parse } from 'yaml';
export const readConfig = () => [parse, process.env.NODE_ENV];
`,
  'src/daemon/schedule.ts': `/** When reports are due. */
import cron from 'node-cron';
export const schedule = () => cron.schedule;
`,
  'src/cli/tallyhook.ts': `#!/usr/bin/env node
/** Commands for people. */
import { Command } from 'commander';
import { start } from '../daemon/daemon.ts';
import { say } from '../kernel/terminal.ts';
const { chain } = await import('../sandbox/sandbox.ts');
process.exit([new Command(), start, say, chain, process.env].length);
`,
  'src/main.ts': `/** Process entry. */
import { start } from './daemon/daemon.ts';
process.exit(start().length);
`,
};

const TESTS = {
  'test/journal/journal.test.ts': `/** The journal. */
import { describe, expect, test, vi } from 'vitest';
import { isFinal } from '../../src/journal/rules.ts';
describe('a list of tests', () => {
${rows(80, "  test('x', () => {});")}
});
describe.each([1])('a list of lists', () => {
${rows(80, "  test('x', () => {});")}
});
test('a settled operation is final', () => {
  vi.waitFor(() => expect(isFinal('settled', 1)).toBe(true));
});
`,
  'drizzle.config.ts': `/** For drizzle-kit. */
export { ownerUrl } from './src/db/owner-url.ts';
`,
  'test/harness/deadline.ts': `/** The one place that waits. */
export const until = () => new Promise((resolve) => setTimeout(resolve, 5));
`,
};

function rows(count: number, row: string): string {
  return Array.from({ length: count }, () => row).join('\n');
}

function table(name: string): string {
  return `/** Table ${name}. */
import { sql } from 'drizzle-orm';
import { tallyhook } from '../db/columns.ts';
export const never = sql\`false\`;
export const ${name} = tallyhook.table('${name}', {});
`;
}

/** The tree in which no check finds anything. */
export const CLEAN: Tree = new Map(
  Object.entries({ ...KERNEL, ...DB, ...STAGES, ...SURFACES, ...TESTS }),
);
