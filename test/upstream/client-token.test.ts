/** The managed client token: shared, renewed, replaced once, never logged. */
import { describe, expect, it } from 'vitest';
import { type Metrics, makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import { ClientToken, lifetimeOf, type TokenFetch } from '../../src/upstream/client-token.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { gate, textLog } from './rig.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe('An expires_in', () => {
  it.each<[bigint | undefined, number, boolean]>([
    [86_400n, DAY, true],
    [86_399n, 86_399_000, true],
    [80_000n, 80_000_000, true],
    [86_400_000n, DAY, true],
    [1440n, DAY, true],
    [24n, DAY, true],
    [3600n, HOUR, false],
    [43_200n, 12 * HOUR, false],
    [10n, 60_000, false],
    [0n, 60_000, false],
    [-5n, 60_000, false],
    [10n ** 30n, DAY, false],
    [undefined, 60_000, false],
  ])('of %s means %i ms; its unit is sure: %s', (expiresIn, ms, sure) => {
    expect(lifetimeOf(expiresIn)).toEqual({ ms, sure });
  });
});

interface Managed {
  token: ClientToken;
  clock: ManualClock;
  fetches: () => number;
  log: () => string;
  metrics: Metrics;
}

/** Issues tokens `t1`, `t2` …; `answer` may refuse the nth fetch or delay it. */
function managed(
  answer: (nth: number) => Promise<TokenFetch | undefined> | TokenFetch | undefined,
  expiresIn: bigint | undefined = 86_400n,
): Managed {
  const clock = manualClock();
  let nth = 0;
  const metrics = makeMetrics();
  const { log, logged } = textLog();
  const token = new ClientToken({
    async fetchToken() {
      nth += 1;
      const mine = nth;
      const startedAt = clock.now();
      return (await answer(mine)) ?? { token: `t${mine}`, expiresIn, startedAt };
    },
    clock,
    random: seededRandom(1),
    log,
    metrics,
  });
  return { token, clock, metrics, fetches: () => nth, log: () => logged.text };
}
const get = ({ token, clock }: Managed) => token.get(clock.now() + 5000);
const replace = ({ token, clock }: Managed, refused: string) =>
  token.replace(refused, clock.now() + 5000);

describe('The client token', () => {
  it('is fetched once for concurrent and later callers', async () => {
    const one = managed(() => undefined);
    const got = await Promise.all(Array.from({ length: 50 }, () => get(one)));
    expect(new Set(got.map((g) => 'token' in g && g.token))).toEqual(new Set(['t1']));
    one.clock.advance(20 * HOUR);
    expect(await get(one)).toEqual({ token: 't1' });
    expect(one.fetches()).toBe(1);
  });

  it('is renewed in the background before it expires', async () => {
    const renewal = gate();
    const one = managed(async (nth) => {
      if (nth === 2) await renewal.opened;
      return undefined;
    });
    await get(one);
    one.clock.advance(22 * HOUR);
    expect(await get(one)).toEqual({ token: 't1' });
    expect(await get(one)).toEqual({ token: 't1' });
    expect(one.fetches()).toBe(2);
    renewal.open();
    await expect.poll(() => get(one)).toEqual({ token: 't2' });
  });

  it('is not used in its last seconds', async () => {
    const one = managed(() => undefined);
    await get(one);
    one.clock.advance(DAY - 10_000);
    expect(await get(one)).toEqual({ token: 't2' });
  });

  it('is renewed at half its lifetime when expires_in fits no unit, with one warning', async () => {
    const one = managed(() => undefined, 3600n);
    await get(one);
    one.clock.advance(31 * 60_000);
    await get(one);
    await expect.poll(() => get(one)).toEqual({ token: 't2' });
    expect(one.log().match(/fits no unit/g)).toHaveLength(1);
  });

  it('is replaced once for all callers that were refused the same one', async () => {
    const one = managed(() => undefined);
    await get(one);
    const got = await Promise.all([replace(one, 't1'), replace(one, 't1'), replace(one, 't1')]);
    expect(got).toEqual([{ token: 't2' }, { token: 't2' }, { token: 't2' }]);
    expect(one.fetches()).toBe(2);
  });

  it('is not fetched over and over when every token is refused', async () => {
    const one = managed(() => undefined);
    await get(one);
    expect(await replace(one, 't1')).toEqual({ token: 't2' });
    expect(await replace(one, 't2')).toBeUndefined();
    one.clock.advance(5000);
    expect(await replace(one, 't2')).toEqual({ token: 't3' });
  });

  it('is fetched again only after a back-off when a fetch fails', async () => {
    const one = managed((nth) => (nth <= 2 ? { failure: { cause: 'unauthorized' } } : undefined));
    expect(await get(one)).toEqual({ failure: { cause: 'unauthorized' } });
    expect(await get(one)).toEqual({ failure: { cause: 'unauthorized' } });
    expect(await one.metrics.text()).toContain('tallyhook_client_token_valid 0');
    expect(one.fetches()).toBe(1);
    one.clock.advance(1000);
    await get(one);
    expect(one.fetches()).toBe(2);
    one.clock.advance(2000);
    expect(await get(one)).toEqual({ token: 't3' });
  });

  it('is not fetched before the deadline that the service set', async () => {
    const one = managed((nth) => {
      if (nth > 1) return undefined;
      return { failure: { cause: 'throttled', retryAt: one.clock.now() + HOUR } };
    });
    await get(one);
    one.clock.advance(HOUR - 1);
    expect(await get(one)).toMatchObject({ failure: { cause: 'throttled' } });
    one.clock.advance(1);
    expect(await get(one)).toEqual({ token: 't2' });
  });

  it('stays in use while its renewal fails', async () => {
    const one = managed((nth) => (nth === 2 ? { failure: { cause: 'error' } } : undefined));
    await get(one);
    one.clock.advance(22 * HOUR);
    expect(await get(one)).toEqual({ token: 't1' });
    await expect.poll(() => one.log()).toContain('no client token');
    expect(await get(one)).toEqual({ token: 't1' });
    expect(one.fetches()).toBe(2);
  });

  it('makes no caller wait beyond its deadline or signal', async () => {
    const never = gate();
    const one = managed(async () => {
      await never.opened;
      return undefined;
    });
    const lost = { failure: { cause: 'unreachable' } };
    expect(await one.token.get(one.clock.now() + 20)).toEqual(lost);
    const stop = new AbortController();
    const waiting = one.token.get(one.clock.now() + 60_000, stop.signal);
    stop.abort();
    expect(await waiting).toEqual(lost);
    never.open();
  });
});
