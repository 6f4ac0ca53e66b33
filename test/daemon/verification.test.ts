/** The verification of the ledger by the daemons: when it runs, on which of them, what it says. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findVerification, verificationWorker } from '../../src/daemon/workers/verification.ts';
import { registerDaemon } from '../../src/db/leases.ts';
import { parseJson } from '../../src/kernel/json.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { give, openLedgerOfInserted, putOperations, runDry, START } from '../ledger/fixture.ts';
import { openOutbox } from '../outbox/rig.ts';

const DAY = 86_400_000;
let database: TestDatabase;
let clock: ManualClock;
let ledger: Ledger;

beforeEach(async () => {
  database = await createDatabase();
  clock = manualClock(START + 1_000);
  ledger = await openLedgerOfInserted({ db: database.db, clock });
  await postGives(1, 2);
});
afterEach(() => database.drop());

async function postGives(...numbers: number[]): Promise<void> {
  await putOperations(
    database.owner,
    numbers.map((n) => give(`op_${n}`)),
  );
  await runDry(ledger, clock);
}

/** The worker of a daemon that lives as long. */
async function startDaemon(id: string, { intervalMs = DAY, aliveMs = 30 * DAY } = {}) {
  const { db } = database;
  const daemon = await registerDaemon(db, id, clock.now(), aliveMs);
  const { outbox } = openOutbox(db, clock);
  const { pass } = verificationWorker({ db, daemon, outbox, intervalMs, wake: () => {} });
  return (signal = new AbortController().signal) => pass(clock.now(), signal);
}

/** Runs a statement as a superuser who switched the guards off. */
async function tamper(table: string, statement: string): Promise<void> {
  await database.owner.begin(async ({ sql }) => {
    await sql.unsafe(`alter table tallyhook.${table} disable trigger all`);
    await sql.unsafe(statement);
    await sql.unsafe(`alter table tallyhook.${table} enable trigger all`);
  });
}

async function events() {
  const rows = await database.db.sql<{ body: string }[]>`
    select tallyhook.event_body(events) as body from tallyhook.events
    where type = 'ledger.verify_failed' order by id`;
  return rows.map(({ body }) => parseJson(body));
}

const last = () => findVerification(database.db);

it('A ledger is verified once in the interval by all daemons together', async () => {
  const verifyAll = async (passes: Awaited<ReturnType<typeof startDaemon>>[]) => {
    await Promise.all(passes.map((pass) => pass()));
    return last();
  };
  const daemons = [await startDaemon('dmn_a'), await startDaemon('dmn_b')];
  const first = { endedAt: clock.now(), findings: 0, transactions: '2' };
  expect(await verifyAll(daemons)).toMatchObject(first);
  await postGives(3);
  clock.advance(DAY - 1);
  expect(await verifyAll(daemons)).toMatchObject(first);
  clock.advance(1);
  const second = { endedAt: clock.now(), findings: 0, transactions: '3' };
  expect(await verifyAll(daemons)).toMatchObject(second);
  expect(await events()).toEqual([]);
});

it('A changed row is announced by each verification until it is mended', async () => {
  const verify = await startDaemon('dmn_a');
  const change = (amount: string) =>
    tamper('entries', `update tallyhook.entries set amount = ${amount} where transaction_id = 2`);
  await change('2 * amount');
  await verify();
  clock.advance(DAY);
  await verify();
  const found = {
    type: 'ledger.verify_failed',
    data: {
      findings: 1,
      listed: [{ kind: 'changed', row: 'transaction 2' }],
      transactions: '2',
      command: 'npx tallyhook verify',
    },
  };
  expect(await events()).toMatchObject([found, found]);
  expect(await last()).toMatchObject({ findings: 1 });
  await change('div(amount, 2)');
  clock.advance(DAY);
  await verify();
  expect(await last()).toMatchObject({ findings: 0 });
  expect(await events()).toHaveLength(2);
});

it('A chain that was computed again contradicts the last verification without findings', async () => {
  const verify = await startDaemon('dmn_a');
  await verify();
  await tamper('chain', 'update tallyhook.chain set head = sha256(head)');
  for (const count of [1, 2]) {
    clock.advance(DAY);
    await verify();
    const found = await events();
    expect(found).toHaveLength(count);
    expect(JSON.stringify(found.at(-1))).toContain('the last verification without findings');
  }
});

it('A verification that was stopped, or whose daemon died, is begun again', async () => {
  const stopped = new AbortController();
  stopped.abort();
  const [one, other] = [await startDaemon('dmn_a', { aliveMs: 1_000 }), await startDaemon('dmn_b')];
  await one(stopped.signal);
  await other();
  expect(await last()).toBeUndefined();
  clock.advance(1_000);
  await other();
  expect(await last()).toMatchObject({ findings: 0 });
});

it('An interval of 0 leaves verifying to people', async () => {
  const verify = await startDaemon('dmn_a', { intervalMs: 0 });
  await verify();
  expect(await last()).toBeUndefined();
});
