/**
 * Promises 2 and 13. Two daemons share one database and the same callers: a write that reaches both
 * at once, a hundred times over, is sent once, and one of them may die on the way.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jsonText } from '../../src/kernel/json.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import type { FaultInput } from '../../src/sandbox/faults/kinds.ts';
import { type Answered, type App, makeApp } from '../harness/app.ts';
import { createWorld, type DaemonProcess, startDaemon, type World } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

let world: World;
let daemons: [DaemonProcess, DaemonProcess];
let apps: [App, App];

beforeAll(async () => {
  world = await createWorld();
  daemons = [await startDaemon(world), await startDaemon(world)];
  apps = [makeApp(() => daemons[0].url), makeApp(() => daemons[1].url)];
});

afterAll(async () => {
  await Promise.all(daemons?.map((daemon) => daemon.kill()) ?? []);
  await world?.close();
});

const keyed = (key: string) => ({ 'idempotency-key': key, 'tallyhook-reference': key });

/** What the service did under that amount. */
const effectsOf = (amount: number) =>
  world.sandbox.control.effects(0n, 10_000).filter((e) => e.amount === BigInt(amount));

describe('A hundred identical requests with one key, on two daemons', () => {
  const round = (key: string, amount: number) =>
    Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        (apps[i % 2] as App).give(world.ada, amount, keyed(key)),
      ),
    );

  it('are sent once: one gets the answer, the others the same answer or a conflict', async () => {
    const answers = await round('once', 31_001);
    expect(effectsOf(31_001)).toHaveLength(1);
    const fine = answers.filter(({ status }) => status === 200);
    expect(fine.length).toBeGreaterThan(0);
    expect(new Set(fine.map(({ text }) => text)).size).toBe(1);
    expect(fine.filter(({ headers }) => !headers['idempotency-replayed'])).toHaveLength(1);
    for (const { json } of answers.filter(({ status }) => status !== 200))
      expect(json.code).toBe('idempotency_in_flight');
    const again = await round('once', 31_001);
    expect(again.map(({ text }) => text)).toEqual(again.map(() => fine[0]?.text));
    expect(effectsOf(31_001)).toHaveLength(1);
  });

  it('whose answer is lost are sent once, and all hear that it is unknown', async () => {
    world.sandbox.control.addFault({ kind: 'lost_answer', contains: '31002', count: 100 });
    const answers = await round('lost', 31_002);
    expect(effectsOf(31_002)).toHaveLength(1);
    const codes = new Set(answers.map(({ json }) => json.code));
    expect([...codes].filter((code) => code !== 'idempotency_in_flight')).toEqual([
      'outcome_unknown',
    ]);
    const ids = answers.map(({ headers }) => headers['tallyhook-operation']);
    expect(new Set(ids).size).toBe(1);
  });
});

const FAULTS: FaultInput[] = [
  { kind: 'lost_answer' },
  { kind: 'dropped' },
  { kind: 'late', delay_ms: 2_500 },
  { kind: 'status', status: 502, applied: true },
  { kind: 'truncated' },
];

it('The same traffic through both daemons is applied as through one, also when one of them dies', async () => {
  const random = seededRandom(5);
  const first = 50_000;
  const last = first + 240;
  const answers = new Map<number, Answered[]>();
  let next = first;
  /** Each write goes to both daemons at once, under one key. */
  const worker = async () => {
    while (next < last) {
      const amount = next++;
      const fault = FAULTS[Math.floor(random.unit() * FAULTS.length * 5)];
      if (fault) world.sandbox.control.addFault({ ...fault, contains: String(amount) });
      if (amount === first + 120) await daemons[1].kill();
      const asked = apps.map((app) =>
        app.give(amount % 2 ? world.ada : world.ben, amount, keyed(`same-${amount}`)),
      );
      const settled = await Promise.allSettled(asked);
      answers.set(
        amount,
        settled.flatMap((s) => (s.status === 'fulfilled' ? [s.value] : [])),
      );
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  daemons[1] = await startDaemon(world);
  const open = async () => {
    const rows = await world.database.owner.sql<{ n: number }[]>`
      select count(*)::int as n from tallyhook.operations where state in ('sending', 'unknown')`;
    return rows[0]?.n === 0 || undefined;
  };
  expect(await until(open, { deadlineMs: 40_000 }), 'something stayed open').toBe(true);

  const rows = await world.database.owner.sql<{ n: bigint; state: string; outcome: string }[]>`
    select amount as n, state, outcome from tallyhook.operations
    where amount >= ${first} and amount < ${last}`;
  const wrong = [];
  for (let amount = first; amount < last; amount++) {
    const applied = effectsOf(amount).length;
    const kept = rows.filter((row) => row.n === BigInt(amount));
    const said = kept.filter((row) => row.outcome === 'executed').length;
    const undecided = kept.some((row) => row.state === 'undecided');
    // At most once at the service; in the journal what was applied, or left to people.
    if (applied > 1 || kept.length === 0 || (said !== applied && !undecided))
      wrong.push({ amount, applied, kept });
    const oks = (answers.get(amount) ?? []).filter(({ status }) => status === 200);
    if (oks.length > 0 && applied !== 1) wrong.push({ amount, applied, oks: oks.length });
  }
  expect(wrong, jsonText(wrong)).toEqual([]);
}, 120_000);
