import { expect, it } from 'vitest';
import { must } from '../../src/kernel/errors.ts';
import { openRig } from './rig.ts';

const rig = await openRig();
const { owner } = rig.database;
const DAY = 86_400_000;
const dayOf = (at: Date | number) => new Date(at).toISOString().slice(0, 10);

/** The days on which an operation takes effect: by its row, its entries, and the sums of days. */
async function daysOf(id: string): Promise<Set<string>> {
  const [operation] = await owner.sql<{ at: number }[]>`
    select effective_at as at from finance_v1.operations where operation_id = ${id}`;
  const entries = await owner.sql<{ at: number }[]>`
    select effective_at as at from finance_v1.journal where operation_id = ${id} and seq % 1000 = 1
    and kind <> 'reversal' order by seq desc limit 1`;
  const daily = await owner.sql<{ day: string; operations: bigint }[]>`
    select day::text, operations from finance_v1.movements_daily(null, null)`;
  return new Set([
    dayOf(must(operation, 'operation').at),
    ...entries.map(({ at }) => dayOf(at)),
    ...daily.flatMap(({ day, operations }) => (operations === 0n ? [] : day)),
  ]);
}

it('A write whose answer comes after midnight stays in the day in which its entries are', async () => {
  const addr = await rig.opened(100n);
  const midnight = Math.ceil(rig.clock.now() / DAY) * DAY;
  rig.clock.advance(midnight - 60_000 - rig.clock.now());
  await rig.observe(addr, 100n);
  const id = await rig.give(addr, 30n);
  await rig.lose(id);
  rig.passQuiescence();
  await rig.observeSeries(addr, 130n, 130n);
  expect(await rig.stateOf(id)).toBe('executed');
  await rig.post();
  const before = await daysOf(id);
  rig.clock.advance(120_000);
  await rig.accept(id);
  await rig.observe(addr, 130n);
  expect(before).toEqual(new Set([dayOf(midnight - 1)]));
  expect(await daysOf(id)).toEqual(before);
});
