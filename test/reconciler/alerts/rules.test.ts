/** Rules of the configuration: one event when they begin to hold, one when they end. */
import { describe, expect, it } from 'vitest';
import { type Alert, changesOf } from '../../../src/reconciler/alerts/rule.ts';
import { listAlerts } from '../../../src/reconciler/reconciler.ts';
import { freshAddr } from '../rig.ts';
import { openAlertRig } from './rig.ts';

type Rig = Awaited<ReturnType<typeof openAlertRig>>;

async function alertEvents({ db }: Rig) {
  const rows = await db.sql<{ type: string; body: string; seq: bigint }[]>`
    select type, tallyhook.event_body(events) as body, subject_seq as seq
    from tallyhook.events where type like 'alert.%'
    order by recorded_at, id`;
  return rows.map(({ type, body, seq }) => ({ type, seq: Number(seq), ...JSON.parse(body).data }));
}

const raised = async ({ db }: Rig) => listAlerts(db, { after: undefined, limit: 10 });

describe('A rule about a balance', () => {
  it.each([
    ['wallet_below', 100n, 99n, 100n],
    ['wallet_above', 100n, 101n, 100n],
  ] as const)('%s %i holds at %i and ends at %i, one event each', async (kind, amount, at, end) => {
    const addr = freshAddr();
    const rig = await openAlertRig({ rules: [{ name: 'till', kind, addr, amount }] });
    await rig.check();
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBe(0);
    await rig.opened(100n, addr);
    await rig.check(1_000);
    expect(await alertEvents(rig)).toEqual([]);
    await rig.observe(addr, at);
    await rig.check(1_000);
    await rig.check(1_000);
    const [alert] = await raised(rig);
    const common = { alert_id: alert?.id, rule: 'till', kind, limit: '100', addr };
    expect(await alertEvents(rig)).toMatchObject([
      { type: 'alert.raised', seq: 1, amount: `${at}`, ...common, operation_id: null },
    ]);
    await rig.observe(addr, end);
    await rig.check(1_000);
    await rig.check(1_000);
    expect(await alertEvents(rig)).toMatchObject([
      { type: 'alert.raised' },
      { type: 'alert.cleared', seq: 2, amount: `${end}`, ...common },
    ]);
    expect(await raised(rig)).toEqual([]);
  });

  it('holds once for several daemons and restarts, and is raised anew after it ended', async () => {
    const addr = freshAddr();
    const rules = [{ name: 'till', kind: 'wallet_below' as const, addr, amount: 100n }];
    const rig = await openAlertRig({ rules });
    await rig.opened(5n, addr);
    const two = [await rig.alertsOf('dmn_a'), await rig.alertsOf('dmn_b')];
    await Promise.all(two.map((one) => one.runOnce(rig.clock.now())));
    rig.clock.advance(60_000);
    await (await rig.alertsOf('dmn_c')).runOnce(rig.clock.now());
    expect((await alertEvents(rig)).map(({ type }) => type)).toEqual(['alert.raised']);
    await rig.observe(addr, 100n);
    await rig.check(60_000);
    await rig.observe(addr, 5n);
    await rig.check(1_000);
    const events = await alertEvents(rig);
    expect(events.map(({ type, seq }) => `${type} ${seq}`)).toEqual([
      'alert.raised 1',
      'alert.cleared 2',
      'alert.raised 1',
    ]);
    expect(new Set(events.map((event) => event.alert_id)).size).toBe(2);
  });

  it('ends when it is removed from the configuration', async () => {
    const addr = freshAddr();
    const rules = [{ name: 'till', kind: 'wallet_below' as const, addr, amount: 100n }];
    const rig = await openAlertRig({ rules });
    await rig.opened(5n, addr);
    await rig.check();
    rig.clock.advance(60_000);
    await (await rig.alertsOf('dmn_new', { rules: [] })).runOnce(rig.clock.now());
    expect((await alertEvents(rig)).map(({ type }) => type)).toEqual([
      'alert.raised',
      'alert.cleared',
    ]);
  });
});

describe('A rule about unknown operations', () => {
  const rules = [{ name: 'old', kind: 'unknown_older' as const, ageMs: 300_000 }];

  it('is raised for each that is older, until its outcome is known', async () => {
    const rig = await openAlertRig({ rules });
    await rig.serviceIs('active');
    const id = await rig.give(freshAddr(), 5n);
    await rig.lose(id);
    await rig.check(299_000);
    expect(await alertEvents(rig)).toEqual([]);
    await rig.check(2_000);
    await rig.check(2_000);
    const subject = { operation_id: id, limit_ms: 300_000, addr: null, amount: null };
    expect(await alertEvents(rig)).toMatchObject([
      { type: 'alert.raised', rule: 'old', ...subject },
    ]);
    await rig.accept(id);
    await rig.check(1_000);
    expect(await alertEvents(rig)).toMatchObject([
      { type: 'alert.raised' },
      { type: 'alert.cleared', ...subject },
    ]);
  });

  it('does not count the time in which the service was down, and keeps what was raised', async () => {
    const rig = await openAlertRig({ rules });
    await rig.serviceIs('active');
    const before = await rig.give(freshAddr(), 5n);
    await rig.lose(before);
    await rig.check(301_000);
    await rig.lose(await rig.give(freshAddr(), 6n));
    await rig.serviceIs('maintenance');
    await rig.check(3_600_000);
    await rig.serviceIs('active');
    await rig.check(290_000);
    expect(await alertEvents(rig)).toMatchObject([{ operation_id: before }]);
    await rig.check(11_000);
    expect(await alertEvents(rig)).toHaveLength(2);
  });
});

describe('A rule about drifts', () => {
  it('is raised for each open one above the amount, in either direction', async () => {
    const rules = [{ name: 'large', kind: 'drift_above' as const, amount: 10n }];
    const rig = await openAlertRig({ rules });
    const [a, b] = [await rig.opened(100n), await rig.opened(100n)];
    await rig.observeSeries(a, 89n, 89n);
    await rig.observeSeries(b, 110n, 110n);
    await rig.check(1_000);
    const [drift] = await rig.drifts(a);
    expect(await alertEvents(rig)).toMatchObject([
      { type: 'alert.raised', drift_id: drift?.id, amount: '-11', limit: '10' },
    ]);
    await rig.observeSeries(a, 100n, 100n);
    await rig.check(1_000);
    expect((await alertEvents(rig)).map(({ type }) => type)).toEqual([
      'alert.raised',
      'alert.cleared',
    ]);
  });
});

it('An alert of a rule that could not be checked stays as it is', () => {
  const alert: Alert = { id: 'alr_1', rule: 'till', subject: 'a', raisedAt: 0, detail: { n: 1 } };
  expect(changesOf([alert], [], () => false)).toEqual({ begun: [], ended: [], updated: [] });
  expect(changesOf([alert], [], () => true).ended).toEqual([alert]);
});
