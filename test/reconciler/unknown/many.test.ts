import { expect, it } from 'vitest';
import { openRig } from '../rig.ts';

const rig = await openRig();
const UNKNOWN = 60;
/** The sessions of a test's database. */
const SESSIONS = 6;

/** How many effects of operations were read by account, as far as all sessions have counted. */
async function effectsRead(): Promise<number> {
  const { db, owner } = rig.database;
  const all = Promise.withResolvers<void>();
  let begun = 0;
  const publish = () =>
    db.begin(async ({ sql }) => {
      await sql`select pg_stat_force_next_flush()`;
      begun += 1;
      if (begun === SESSIONS) all.resolve();
      await all.promise;
    });
  await Promise.all(Array.from({ length: SESSIONS }, publish));
  const rows = await owner.sql<{ read: number }[]>`
    select idx_tup_read::int as read from pg_stat_user_indexes
    where indexrelname = 'operation_effects_by_account'`;
  return rows[0]?.read ?? 0;
}

it('A pass reads the effects on two wallets a few times, however many of their writes are unknown', async () => {
  const [a, b] = [await rig.opened(10_000n), await rig.opened(0n)];
  for (let n = 1; n <= UNKNOWN; n++) await rig.lose(await rig.transfer(a, b, BigInt(n)));
  rig.clock.advance(10_000);
  await rig.putObservation(a, 9_000n);
  const before = await effectsRead();
  await rig.process();
  const read = (await effectsRead()) - before;
  expect(read).toBeGreaterThanOrEqual(UNKNOWN);
  expect(read).toBeLessThan(UNKNOWN * 15);
});
