/**
 * Promise 13. Two daemons share one database and the same traffic; one of them is killed on the
 * way.
 */
import { expect, it } from 'vitest';
import { jsonText } from '../../src/kernel/json.ts';
import type { FaultInput } from '../../src/sandbox/faults/kinds.ts';
import { type Answered, makeApp } from '../harness/app.ts';
import { QUICK } from '../harness/daemon.ts';
import { operationIdOf, useRig } from '../harness/rig.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { until } from '../harness/until.ts';

/** Even a starved daemon sends its heartbeat in time. */
const rig = useRig({ daemon: { ...QUICK.daemon, heartbeat_timeout_ms: 15_000 } });
const UNTIL = { deadlineMs: 90_000 };

const keyed = (key: string) => ({ 'idempotency-key': key, 'tallyhook-reference': key });

const FAULTS: FaultInput[] = [
  { kind: 'lost_answer' },
  { kind: 'dropped' },
  // Sooner than the rig's send timeout and quiescence, 2.4 s: later no inference can know it.
  { kind: 'late', delay_ms: 1_000 },
  { kind: 'status', status: 502, applied: true },
  { kind: 'truncated' },
];

it('The same traffic through both daemons is applied as through one, also when one of them dies', async () => {
  const { world } = rig;
  const second = await rig.another();
  const apps = [rig.app, makeApp(() => second.url)];
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
      if (amount === first + 120) await second.kill();
      const calls = apps.map((app) =>
        app.give(amount % 2 ? world.ada : world.ben, amount, keyed(`same-${amount}`)),
      );
      const settled = await Promise.allSettled(calls);
      answers.set(
        amount,
        settled.flatMap((s) => (s.status === 'fulfilled' ? [s.value] : [])),
      );
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  await rig.another();
  const open = async () => {
    const rows = await world.database.owner.sql<{ n: number }[]>`
      select count(*)::int as n from tallyhook.operations where state in ('sending', 'unknown')`;
    return rows[0]?.n === 0 || undefined;
  };
  expect(await until(open, UNTIL), 'something stayed open').toBe(true);

  const rows = await world.database.owner.sql<{ n: bigint; state: string; outcome: string }[]>`
    select amount as n, state, outcome from tallyhook.operations
    where amount >= ${first} and amount < ${last}`;
  const texts = (amount: number) =>
    answers.get(amount)?.map(({ status, text }) => `${status} ${text.slice(0, 200)}`) ?? [];
  const wrong = [];
  for (let amount = first; amount < last; amount++) {
    const applied = rig.effects(amount).length;
    const kept = rows.filter((row) => row.n === BigInt(amount));
    const executed = kept.filter((row) => row.outcome === 'executed').length;
    const undecided = kept.some((row) => row.state === 'undecided');
    // At most once at the service; recorded as executed if it was applied, or left to people.
    if (applied > 1 || kept.length === 0 || (executed !== applied && !undecided))
      wrong.push({ amount, applied, kept, answers: texts(amount) });
    const oks = (answers.get(amount) ?? []).filter(({ status }) => status === 200);
    if (oks.length > 0 && applied !== 1) wrong.push({ amount, applied, oks: oks.length });
  }
  expect(wrong, jsonText(wrong)).toEqual([]);
}, 240_000);

interface Lease {
  name: string;
  daemonId: string;
  fence: bigint;
  /** Whether its holder counts as alive. */
  alive: boolean;
}

/** The leases of the stages that always work, once living daemons hold all of them. */
async function heldLeases(): Promise<Lease[]> {
  const { sql } = rig.world.database.owner;
  const held = await until(async () => {
    const leases = await sql<Lease[]>`
      select l.name, l.daemon_id, l.fence, d.alive_until > now() as alive
      from tallyhook.leases l join tallyhook.daemons d on d.id = l.daemon_id
      where l.name in ('ledger', 'reconciler', 'alerts') order by l.name`;
    return leases.length === 3 && leases.every(({ alive }) => alive) ? leases : undefined;
  }, UNTIL);
  if (!held) throw new Error('living daemons do not hold all leases');
  return held;
}

it('A lease is never taken from a living daemon, and from a dead one once', async () => {
  const further = await rig.another();
  const before = await heldLeases();
  for (const app of [rig.app, makeApp(() => further.url)])
    for (let n = 0; n < 10; n++) {
      const id = operationIdOf(await app.give(rig.world.ada, 1));
      await app.until((e) => e.data.operation_id === id && e.type === 'operation.settled');
    }
  expect(await heldLeases()).toEqual(before);
  await rig.daemon.kill();
  const moved = await until(async () => {
    const leases = await heldLeases();
    return leases.some(({ fence }, i) => fence !== before[i]?.fence) ? leases : undefined;
  }, UNTIL);
  for (const [i, { daemonId, fence }] of moved?.entries() ?? []) {
    const { daemonId: former, fence: formerFence = 0n } = before[i] ?? {};
    expect(fence).toBe(daemonId === former ? formerFence : formerFence + 1n);
  }
  expect(moved).toBeDefined();
}, 240_000);
