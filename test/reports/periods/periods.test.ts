/** Closed periods answer the same, and what arrives late is a prior-period line. */
import { beforeEach, describe, expect, it } from 'vitest';
import { isoText } from '../../../src/kernel/clock.ts';
import { setFeeRules } from '../../../src/ledger/ledger.ts';
import { renderJson } from '../../../src/reports/render/formats.ts';
import { renderHtml } from '../../../src/reports/render/html.ts';
import {
  findWaitingPeriods,
  makePeriods,
  makeReports,
  type Periods,
} from '../../../src/reports/reports.ts';
import { addr, balancedWorld, DAY, HOUR, START, useEachWorld } from '../world.ts';

const world = useEachWorld(balancedWorld);
let periods: Periods;
const ann = { owner: 'ann', keyId: 'key_ann' };
const bob = { owner: 'bob', keyId: 'key_bob' };
const END = START + DAY;

beforeEach(async () => {
  const { db, clock, ids, outbox, settings } = world;
  periods = makePeriods({
    db,
    reads: db,
    clock,
    ids,
    outbox,
    settings: { ...settings, timeZone: 'UTC' },
  });
  world.clock.set(END + HOUR);
});

const close = (from: number | undefined, to: number) =>
  periods.close(
    { ...(from === undefined ? {} : { from: { at: from } }), to: { at: to }, signOffs: [] },
    ann,
  );
const reportOf = (from: number, to: number) => world.report(from, to);

/** A give that took effect an hour after START and is recorded now. */
async function lateGive(amount: number, columns: object = {}): Promise<string> {
  const id = await world.operation({ amount, to_addr: addr(7), ...columns });
  await world.post();
  return id;
}

/** Balances of the closed day by what was known at its close. */
async function balancesKnown(): Promise<unknown> {
  return world.owner.sql`
    select b.* from finance_v1.periods p
    cross join lateral finance_v1.balances_as_of(p.period_to, p.known_at) b
    where p.period is not null and p.state <> 'reopened' and p.period_from = ${isoText(START)}`;
}

describe('A closed period', () => {
  it('answers the same to the last digit while late facts arrive', async () => {
    const { closed } = await close(START, END);
    const first = await reportOf(START, END);
    const json = renderJson(first);
    const balances = await balancesKnown();
    expect(closed).toMatchObject({ state: 'closed', reportId: first.id, reportHash: first.hash });
    await lateGive(7);
    await lateGive(3);
    world.clock.advance(DAY);
    expect(renderJson(await reportOf(START, END))).toBe(json);
    expect(await balancesKnown()).toEqual(balances);
    const now = await world.owner.sql`
      select account from finance_v1.balances_as_of(${isoText(END)})
      where account = 'operator:7' and balance = -110`;
    expect(now).toHaveLength(1);
  });

  it('gives its report to a later schedule, with the same hash', async () => {
    const { closed } = await close(START, END);
    await lateGive(7);
    const { db, clock, ids, outbox } = world;
    const settings = { ...world.settings, schedule: { every: 'day', timeZone: 'UTC' } as const };
    const reports = makeReports({ db, reads: db, clock, ids, outbox, settings });
    expect((await reports.runDue(world.clock.now())).made).toBe(1);
    const [newest] = await reports.listReports({ limit: 1 });
    expect(newest).toMatchObject({ requestedBy: 'schedule', hash: closed?.reportHash });
  });
});

describe('A fact that arrives late', () => {
  it('is a prior-period line of later reports, and the whole difference of the opening', async () => {
    // Recorded after the end of the day, but known at its close.
    await lateGive(5);
    const { content: closedDay } = await close(START, END);
    const id = await lateGive(7, { reason_type: 'forgotten' });
    await world.operation({
      recorded_at: isoText(END),
      sent_at: isoText(END),
      answered_at: isoText(END),
      effective_at: isoText(END),
      to_addr: addr(7),
      amount: 1,
    });
    await world.post();
    const next = await reportOf(END, END + DAY);
    const { prior_period: prior, roll_forward: rows } = next.content;
    expect(prior).toMatchObject({ closed_until: isoText(END), total: 2 });
    expect(prior.listed).toMatchObject([
      { account: 'operator:7', amount: '-7', operation_id: id, reason_type: 'forgotten' },
      { account: `wallet:${addr(7)}`, amount: '7', effective_at: isoText(START + HOUR) },
    ]);
    for (const row of rows) {
      const before = closedDay.roll_forward.find(({ name }) => name === row.name);
      expect([row.name, BigInt(row.opening) - BigInt(row.prior_period)]).toEqual([
        row.name,
        BigInt(before?.closing ?? 0),
      ]);
    }
    expect(renderHtml(next)).toContain('<h2>Prior-period lines</h2>');
    const later = await reportOf(END + DAY, END + 2 * DAY);
    expect(later.content.prior_period.total).toBe(2);
  });

  it('may be another fee rule: the closed period stays, its corrections are lines', async () => {
    const fee = { kind: 'transfer', from_addr: addr(7), to_addr: addr(8), amount: 50 };
    const id = await world.operation({ ...fee, fee_amount: 3 });
    await world.post();
    const { content: closedDay } = await close(START, END);
    const [json, balances] = [renderJson(await reportOf(START, END)), await balancesKnown()];
    await setFeeRules(world.db, { feeMode: 'deducted' }, world.clock.now());
    await world.post();
    expect(renderJson(await reportOf(START, END))).toBe(json);
    expect(await balancesKnown()).toEqual(balances);
    const next = (await reportOf(END, END + DAY)).content;
    const lines = next.prior_period.listed.filter((line) => line.operation_id === id);
    expect(lines.map(({ kind }) => kind)).toEqual([
      'reversal',
      'reversal',
      'reversal',
      'transfer',
      'transfer',
      'transfer',
    ]);
    for (const { name, opening, prior_period } of next.roll_forward) {
      const before = closedDay.roll_forward.find((row) => row.name === name)?.closing ?? 0;
      expect([name, BigInt(opening) - BigInt(prior_period)]).toEqual([name, BigInt(before)]);
    }
    expect(next.breaks.by_kind.map(({ kind }) => kind)).not.toContain('posted_differently');
  });

  it('is a line only until the next close, which knows it', async () => {
    await close(START, END);
    await lateGive(7);
    world.clock.set(END + DAY);
    const second = await close(undefined, END + DAY);
    expect(second.content.prior_period.total).toBe(2);
    const next = (await reportOf(END + DAY, END + 2 * DAY)).content;
    expect(next.prior_period).toMatchObject({ closed_until: isoText(END + DAY), total: 0 });
    for (const { prior_period } of next.roll_forward) expect(prior_period).toBe('0');
  });
});

describe('Periods are consecutive', () => {
  it('each begins where the last ends, and is reopened only from the newest on', async () => {
    const first = await close(START, END);
    await expect(close(END + 1, END + HOUR)).rejects.toMatchObject({ code: 'conflict' });
    const second = await close(undefined, END + HOUR);
    expect(second.closed).toMatchObject({ periodFrom: END, periodTo: END + HOUR });
    const [one = '', two = ''] = [first.closed?.id, second.closed?.id];
    await expect(periods.reopen(one, 'wrong', bob)).rejects.toMatchObject({ code: 'conflict' });
    await periods.reopen(two, 'wrong end', bob);
    await periods.reopen(one, 'wrong end too', bob);
    const again = await close(START + HOUR, END);
    expect(again.closed?.state).toBe('closed');
    const rows = await world.owner.sql`
      select state, reopened_by from finance_v1.periods order by period nulls last`;
    expect(rows.map(({ state }) => state)).toEqual(['reopened', 'reopened', 'closed', 'open']);
  });

  it('Of two closes at the same time one is refused', async () => {
    const results = await Promise.allSettled([close(START, END), close(START, END)]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(results.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'conflict' },
    });
  });
});

describe('The reopening of a signed period', () => {
  let id: string;
  beforeEach(async () => {
    const { closed } = await close(START, END);
    id = closed?.id ?? '';
    await periods.sign(id, bob);
  });

  it('Of two approvals at the same time one is refused, and one event says who decided', async () => {
    await periods.reopen(id, 'receipt 17', ann);
    const people = ['bob', 'eve'].map((owner) => ({ owner, keyId: `key_${owner}` }));
    const approvals = people.map((by) => periods.approveReopening(id, 2, by));
    const results = await Promise.allSettled(approvals);
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(results.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'conflict' },
    });
    const events = await world.owner.sql`
      select type from tallyhook.events where type = 'period.reopened'`;
    expect(events).toHaveLength(1);
  });

  it('A newer proposal takes the place of the one before, and its proposer cannot approve it', async () => {
    await periods.reopen(id, 'receipt 17', ann);
    expect(await periods.reopen(id, 'receipt 18', bob)).toMatchObject({
      state: 'signed',
      reopenProposal: 3,
      reopenProposedBy: 'bob',
      reopenReason: 'receipt 18',
    });
    const own = periods.approveReopening(id, 3, bob);
    await expect(own).rejects.toMatchObject({ code: 'same_owner' });
    expect(await periods.approveReopening(id, 3, ann)).toMatchObject({
      state: 'reopened',
      reopenedBy: 'ann',
      reopenReason: 'receipt 18',
    });
  });

  it('An approval of a proposal that a newer one replaced is refused, and says which waits', async () => {
    await periods.reopen(id, 'receipt 17', ann);
    await periods.reopen(id, 'receipt 18', ann);
    await expect(periods.approveReopening(id, 2, bob)).rejects.toThrow(
      `conflict: the newest proposal on ${id} is number 3: reopen; read it first`,
    );
    const waiting = await findWaitingPeriods(world.db, END + HOUR);
    expect(waiting).toMatchObject({ toReopenSince: END + HOUR, toReopenProposedBy: 'ann' });
    expect(await periods.approveReopening(id, 3, bob)).toMatchObject({ state: 'reopened' });
  });

  it('A proposal waits while a later period is in force, and has no effect then', async () => {
    await periods.reopen(id, 'receipt 17', ann);
    await close(undefined, END + HOUR);
    const approval = periods.approveReopening(id, 2, bob);
    await expect(approval).rejects.toMatchObject({ code: 'conflict' });
    const waiting = await findWaitingPeriods(world.db, END + HOUR);
    expect(waiting).toMatchObject({ toReopenSince: null, toReopenProposedBy: null });
  });
});

describe('A close that takes long', () => {
  /** Ann's close, whose transaction begins only when `open` was called. */
  function slowClose(from: number | undefined, to: number) {
    const { db, clock, ids, outbox, settings } = world;
    const { promise: isOpen, resolve: open } = Promise.withResolvers<void>();
    const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
    const begin: typeof db.begin = async (...args) => {
      read();
      await isOpen;
      return db.begin(...args);
    };
    const slow = makePeriods({ db: { ...db, begin }, reads: db, clock, ids, outbox, settings });
    const input = { ...(from === undefined ? {} : { from: { at: from } }), to: { at: to } };
    const closing = slow.close({ ...input, signOffs: [] }, ann);
    return { closing: expect(closing).rejects.toMatchObject({ code: 'conflict' }), isRead, open };
  }

  it('is refused if the period before it was reopened and closed again to the same end', async () => {
    const first = await close(START, END);
    await lateGive(7);
    world.clock.set(END + DAY);
    const second = slowClose(undefined, END + DAY);
    await second.isRead;
    await periods.reopen(first.closed?.id ?? '', 'a give was forgotten', bob);
    const again = await close(START, END);
    second.open();
    await second.closing;
    const next = await close(undefined, END + DAY);
    expect(again.closed).toMatchObject({ periodTo: END, state: 'closed' });
    expect(next.content.prior_period).toMatchObject({ closed_until: isoText(END), total: 0 });
  });
});

describe('The database itself', () => {
  const insert = (columns: object) =>
    world.insert('periods', {
      id: 'per_x',
      period_from: isoText(END),
      period_to: isoText(END + HOUR),
      last_batch: 0,
      known_at: isoText(END),
      closed_by: 'ann',
      closed_at: isoText(END),
      decision: 1,
      ...columns,
    });
  const act = (period_id: string, action: string, by: string) =>
    world.insert('period_actions', {
      period_id,
      action,
      by,
      at: isoText(END),
      key_id: 'key',
      reason: 'because',
    });

  it('refuses gaps, overlaps, foreign reports, and every change', async () => {
    const { closed } = await close(START, END);
    const own = { report_id: closed?.reportId ?? '', report_hash: closed?.reportHash ?? '' };
    const refused = { code: 'TH007' };
    await expect(insert({ ...own, period_from: isoText(END + 1) })).rejects.toMatchObject(refused);
    await expect(insert({ ...own, period_from: isoText(END - 1) })).rejects.toMatchObject(refused);
    await expect(insert(own)).rejects.toMatchObject(refused);
    for (const table of ['periods', 'period_actions'])
      await expect(world.sql(`delete from tallyhook.${table}`)).rejects.toMatchObject({
        code: 'TH001',
      });
  });

  it('reopens a signed period only for the reason that another owner approved, and the newest', async () => {
    const { closed } = await close(START, END);
    const id = closed?.id ?? '';
    await periods.sign(id, bob);
    const approve = (n: number) =>
      world.insert('approvals', {
        subject: id,
        n,
        proposed_by: 'ann',
        owner: 'bob',
        key_id: 'key',
        at: isoText(END),
      });
    const reopened = () => act(id, 'reopened', 'bob');
    await periods.reopen(id, 'another reason', ann);
    await approve(2);
    await expect(reopened()).rejects.toMatchObject({ code: 'TH007' });
    await periods.reopen(id, 'because', ann);
    await expect(reopened()).rejects.toMatchObject({ code: 'TH007' });
    await approve(3);
    await reopened();
  });

  it('refuses a signature without an approval, and anything on a reopened period', async () => {
    const { closed } = await close(START, END);
    const id = closed?.id ?? '';
    await expect(act(id, 'signed', 'bob')).rejects.toMatchObject({ code: 'TH007' });
    await expect(
      world.insert('approvals', {
        subject: id,
        n: 1,
        proposed_by: 'ann',
        owner: 'ann',
        key_id: 'key',
        at: isoText(END),
      }),
    ).rejects.toMatchObject({ code: '23514' });
    for (const owner of ['Ann', ' ann', '\uff41nn']) {
      const signing = periods.sign(id, { owner, keyId: 'key_x' });
      await expect(signing).rejects.toMatchObject({ code: 'same_owner' });
    }
    await periods.sign(id, bob);
    await expect(act(id, 'reopened', 'bob')).rejects.toMatchObject({ code: 'TH007' });
    expect(await periods.reopen(id, 'receipt', ann)).toMatchObject({ state: 'signed' });
    await expect(act(id, 'reopened', 'ann')).rejects.toMatchObject({ code: 'TH007' });
    await periods.approveReopening(id, 2, bob);
    await expect(act(id, 'signed_off', 'bob')).rejects.toMatchObject({ code: 'TH007' });
  });
});
