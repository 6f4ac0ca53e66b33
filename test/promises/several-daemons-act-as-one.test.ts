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

/** From here on the database notes who takes a lease from whom, and whether it was free. */
async function noteTakeovers(): Promise<() => Promise<{ name: string; free: boolean }[]>> {
  const { sql } = rig.world.database.owner;
  await sql.unsafe(`
    create table public.takeovers (name text, free boolean);
    create function public.note_takeover() returns trigger language plpgsql security definer as $$
    begin
      insert into public.takeovers values (old.name, old.until <= clock_timestamp()
        or (select d.alive_until <= clock_timestamp() from tallyhook.daemons d
          where d.id = old.daemon_id));
      return null;
    end $$;
    create trigger note_takeover after update on tallyhook.leases for each row
      when (old.daemon_id <> new.daemon_id) execute function public.note_takeover()`);
  return () => sql<{ name: string; free: boolean }[]>`select name, free from public.takeovers`;
}

it('A lease is taken from a dead daemon, and never from one that lives and renews it', async () => {
  const takeovers = await noteTakeovers();
  const further = await rig.another();
  // Mints, since a give may wait for what the test before has left undecided.
  for (const [from, app] of [rig.app, makeApp(() => further.url)].entries())
    for (let n = 0; n < 10; n++) {
      const id = operationIdOf(await app.mint(rig.world.ada, 900_000 + from * 10 + n));
      await app.until((e) => e.data.operation_id === id && e.type === 'operation.settled');
    }
  await rig.daemon.kill();
  await expect.poll(takeovers).not.toEqual([]);
  expect((await takeovers()).filter(({ free }) => !free)).toEqual([]);
}, 240_000);
