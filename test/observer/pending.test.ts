/** When pending targets are polled next, and what a restart keeps of what was learned. */
import { beforeAll, describe, expect, it } from 'vitest';
import { boundedAt, makePendingPolls } from '../../src/observer/schedule/pending.ts';
import { useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';

const SETTINGS = { steadyMs: 60_000, pendingMinMs: 1_000, pendingMaxMs: 30_000 };

describe('A poll of a pending target', () => {
  it.each([
    ['is due where the price says', 5_000, 10_000, 0, 5_000],
    ['is not sooner than the minimum', 10, 10_000, 0, 1_000],
    ['is not later than the maximum', 90_000, 10_000, 0, 30_000],
    ['of a day-old operation is as rare as a hundred-and-twentieth of its age', 10, 864e5, 0, 72e4],
    ['follows no sooner than the last one took to be processed', 10, 10_000, 4_000, 8_000],
  ])('%s', (_title, gapMs, ageMs, processedMs, after) => {
    const polledAt = 1e9;
    const at = boundedAt(SETTINGS, { gapMs, ageMs, polledAt, now: polledAt + processedMs });
    expect(at - polledAt).toBe(after);
  });
});

describe('What was learned of operations', () => {
  const clock = manualClock();
  let database: Awaited<ReturnType<typeof useDatabase>>;
  beforeAll(async () => {
    database = await useDatabase();
  });
  const openPolls = () =>
    makePendingPolls({
      db: database.db,
      clock,
      settings: { ...SETTINGS, pendingMaxMs: 600_000 },
      pricing: async () => ({ price: 20 }),
    });

  it('is kept by a restart, for its contract and less for others', async () => {
    const pending = openPolls();
    const polls = await pending();
    const since = clock.now();
    const first = (contractId: bigint) =>
      ({ wait: { kind: 'mint', contractId, since }, at: { polledAt: since, now: since } }) as const;
    const { wait, at } = first(1n);
    const before = polls.nextAt(wait, at);
    for (let i = 0; i < 100; i++)
      polls.learn(wait, { notAt: since + 110_000, shownAt: since + 120_000 });
    clock.advance(5_000);
    await pending();
    const restarted = await openPolls()();
    expect(restarted.nextAt(wait, at) - since).toBeGreaterThan(60_000);
    expect(before - since).toBeLessThan(30_000);
    const other = first(2n);
    expect(restarted.nextAt(other.wait, other.at)).toBeGreaterThan(before);
    expect(restarted.nextAt({ kind: 'burn', contractId: 1n, since }, at)).toBe(before);
  });

  it('is kept of the 500 kinds and contracts that settled last', async () => {
    const pending = openPolls();
    const polls = await pending();
    const since = clock.now();
    for (let contractId = 10n; contractId < 610n; contractId += 1n)
      polls.learn({ kind: 'mint', contractId, since }, { notAt: null, shownAt: since + 1_000 });
    clock.advance(5_000);
    await pending();
    const rows = await database.db.sql`select name from tallyhook.waits`;
    expect(rows).toHaveLength(500);
  });

  it('does not count the time in which the service was down', async () => {
    const since = clock.now();
    const [from, until] = [since + 10_000, since + 3_610_000];
    await database.owner.sql`
      insert into tallyhook.service_state (name, state, since, down_from, down_until,
        next_probe_at, failures)
      values ('upstream', 'active', ${until}, ${from}, ${until},
        ${until}, 0)`;
    const polls = await openPolls()();
    const wait = { kind: 'burn', since };
    const gapAfter = (ms: number) =>
      polls.nextAt(wait, { polledAt: since + ms, now: since + ms }) - since - ms;
    const stillAfter = (ms: number) => {
      const from = since - 1e8;
      const at = { polledAt: from + ms, now: from + ms };
      return polls.nextAt({ kind: 'burn', since: from }, at) - from - ms;
    };
    expect(gapAfter(3_620_000)).toBe(stillAfter(20_000));
  });
});
