/** Promise 5 in the report: every difference between ledger and observation is named. */
import { afterEach, describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { addr, DAY, HOUR, makeWorld, START, timesAt, type World } from './world.ts';

let world: World | undefined;
afterEach(async () => {
  await world?.drop();
  world = undefined;
});

describe('Ledger and observation', () => {
  /** A wallet with a ledger balance of 100 and an observation that took 500 ms. */
  async function polled(balance: bigint) {
    world = await makeWorld();
    await world.open(addr(1), 100n);
    await world.post();
    const at = world.clock.now();
    await world.wallet(addr(1), balance, { observation_ended_at: isoText(at + 500) });
    return { world, at };
  }
  const later = (at: number) => ({ ...timesAt(at), amount: 7 });

  it('An operation posted after the observation is added to what was observed', async () => {
    const { world: w, at } = await polled(100n);
    await w.operation(later(at + 1_000));
    w.clock.advance(2_000);
    await w.post();
    const { content } = await w.report();
    expect(content.headline).toBe('balanced');
    expect(content.wallets.statement).toMatchObject({
      ledger: '107',
      observed: '107',
    });
  });

  it.each([100n, 107n])(
    'An observation may include an operation that overlaps it: %s',
    async (balance) => {
      const { world: w, at } = await polled(balance);
      await w.operation(later(at + 100));
      w.clock.advance(2_000);
      await w.post();
      const { content } = await w.report();
      expect(content.headline).toBe('balanced');
      expect(content.wallets.statement).toMatchObject({ ledger: '107', observed: '107' });
    },
  );

  it('An executed operation that is not yet posted is counted', async () => {
    const { world: w, at } = await polled(107n);
    await w.operation({ ...later(at - HOUR), quarantine_reason: 'kept back' });
    const { content } = await w.report();
    expect(content.wallets.statement).toMatchObject({ ledger: '100', not_yet_posted: '7' });
    expect(content.breaks.by_kind).toEqual([{ kind: 'posting_quarantined', count: 1 }]);
  });

  it('An observation may include an operation that was reported after it', async () => {
    const { world: w, at } = await polled(107n);
    const reported = { source: 'report', sent_at: null, recorded_at: isoText(at + HOUR) };
    await w.operation({ ...later(at - 1_000), ...reported });
    await w.post();
    expect((await w.report()).content.headline).toBe('balanced');
  });

  it('Unknown operations explain a balance only as a named subset', async () => {
    const { world: w, at } = await polled(111n);
    const lost = { ...later(at - HOUR), state: 'unknown', answered_at: null, effective_at: null };
    const own = await Promise.all(
      [7, 4, 90].map((amount) =>
        w.operation({ ...lost, amount, send_deadline_at: isoText(START + 3 * DAY) }),
      ),
    );
    const { content } = await w.report();
    expect(content.headline).toBe('balanced');
    const [shown] = content.wallets.in_transit.listed;
    expect(shown?.operations).toEqual(own.slice(0, 2).sort());
    expect(content.wallets.statement).toMatchObject({ in_transit: '11', observed: '111' });
    await w.sql('update tallyhook.wallets set observed_balance = 112');
    expect((await w.report()).content.breaks.by_kind).toEqual([
      { kind: 'observed_not_explained', count: 1 },
    ]);
  });

  it('A reversed operation explains nothing and is no break', async () => {
    const { world: w, at } = await polled(100n);
    const id = await w.operation(later(at - HOUR));
    await w.post();
    await w.sql(`update tallyhook.operations set state = 'failed' where id = '${id}'`);
    expect((await w.report()).content.wallets.statement).toMatchObject({ not_yet_posted: '-7' });
    await w.post();
    const { content } = await w.report();
    expect(content.headline).toBe('balanced');
    expect(content.movements.listed).toMatchObject([{ operations: 0, amount: '0' }]);
  });
});
