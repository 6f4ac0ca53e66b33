/** A period through the API: refused, signed off, closed, signed by another owner, reopened. */
import { beforeAll, describe, expect, it } from 'vitest';
import { isoText, systemClock } from '../../src/kernel/clock.ts';
import { findWaitingPeriods } from '../../src/reports/reports.ts';
import type { Answer, Body } from './described.ts';
import { useDrifts } from './drifts-rig.ts';
import { aGive } from './writes.ts';

const rig = useDrifts();
const { api } = rig;

/** An hour before the drift. */
const START = isoText(systemClock.now() - 3_600_000);
const as = (owner: 'ann' | 'bob', path: string, body?: object): Promise<Answer> =>
  api.call('POST', `/api/periods${path}`, { key: rig.keys[owner], ...(body ? { body } : {}) });
const now = () => isoText(api.deps.clock.now());
const reportOf = async (from: string, to: string) => {
  const made = await api.call('POST', '/api/reports', {
    body: { kind: 'reconciliation', from, to },
  });
  return { made, read: await api.call('GET', `/api/reports/${made.body.id}`) };
};
const periodEvents = async () => {
  const rows = await api.database.owner.sql<{ type: string; body: string }[]>`
    select type, tallyhook.event_body(events) as body from tallyhook.events
    where subject = 'periods' order by subject_seq`;
  return rows.map(({ type, body }) => ({ type, data: JSON.parse(body).data }));
};

/** The period that follows the last one waits for its close when as much time has passed. */
async function expectNextIsDue() {
  const { body } = await api.call('GET', '/api/periods?state=closed');
  const [{ period_from: from, period_to: to }] = body.data as [Body];
  const next = 2 * Date.parse(String(to)) - Date.parse(String(from));
  const at = (ms: number) => findWaitingPeriods(api.db, ms);
  const noReopening = { toReopenSince: null, toReopenProposedBy: null };
  expect(await at(next - 1)).toEqual({ toSign: 1, toCloseSince: null, ...noReopening });
  expect(await at(next)).toEqual({ toSign: 1, toCloseSince: next, ...noReopening });
}

describe('From an open period to a signed one', () => {
  let end: string;
  let drift: { addr: string; id: string };
  let closed: Body;
  beforeAll(async () => {
    drift = await rig.drifting(-3n);
    end = now();
  });

  it('It does not close while a drift is open, and a dry run says so', async () => {
    const dry = await as('ann', '/close', { from: START, to: end, dry_run: true });
    expect(dry).toMatchObject({
      status: 200,
      body: { period: null, breaks: 1, obstacles: [{ kind: 'drift_open', subject: drift.id }] },
    });
    const { status, body } = await as('ann', '/close', { from: START, to: end });
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'conflict' });
    expect(body.detail).toContain(`drift_open ${drift.id}`);
    expect(body.obstacles).toEqual(dry.body.obstacles);
    expect((await api.call('GET', '/api/periods')).body.data).toEqual([]);
    expect((await api.call('GET', '/api/reports')).body.data).toEqual([]);
  });

  it('It closes when the drift is signed off with a reason, by the owner of the key', async () => {
    const sign_offs = [{ subject: drift.id, reason: 'refund is on its way' }];
    const { status, body } = await as('ann', '/close', { from: START, to: end, sign_offs });
    expect(status).toBe(200);
    closed = body.period as Body;
    expect(closed).toMatchObject({
      state: 'closed',
      closed_by: 'ann',
      period_from: START,
      period_to: end,
      sign_offs: [{ kind: 'drift_open', ...sign_offs[0] }],
    });
    expect(await periodEvents()).toMatchObject([
      {
        type: 'period.closed',
        data: { period_id: closed.id, closed_by: 'ann', signed_off: 1, hash: closed.report_hash },
      },
    ]);
  });

  it('The same report again is the one of the close, also after a late fact', async () => {
    const first = await reportOf(START, end);
    expect(first.made.body).toMatchObject({ id: closed.report_id, hash: closed.report_hash });
    const occurred_at = isoText(Date.parse(end) - 1);
    const late = aGive({ occurred_at, amount: '7', to_addr: rig.freshAddr() });
    expect((await api.call('POST', '/api/operations', { body: late })).status).toBe(201);
    await api.postAll();
    const again = await reportOf(START, end);
    expect(again.read.text).toBe(first.read.text);
    const other = await reportOf(START, isoText(Date.parse(end) + 1));
    expect(other.made.body.id).not.toBe(first.made.body.id);
  });

  it('The next report has the late fact as a prior-period line', async () => {
    const { read } = await reportOf(end, now());
    const content = read.body.content as {
      prior_period: { closed_until: string; listed: object[] };
    };
    expect(content.prior_period.closed_until).toBe(end);
    expect(content.prior_period.listed).toMatchObject([
      { amount: '-7', kind: 'give' },
      { amount: '7', kind: 'give' },
    ]);
  });

  it('The owner that closed it cannot sign it, another one can, and only once', async () => {
    const waiting = async () => (await api.call('GET', '/api/status')).body.periods;
    const listed = async () => (await api.call('GET', '/api/periods?state=closed')).body.data;
    const nothing = { to_close_since: null, to_reopen_since: null, to_reopen_proposed_by: null };
    expect(await waiting()).toEqual({ to_sign: 1, ...nothing });
    expect(await listed()).toMatchObject([{ id: closed.id }]);
    const own = await as('ann', `/${closed.id}/sign`);
    expect([own.status, own.body.code]).toEqual([409, 'same_owner']);
    const { status, body } = await as('bob', `/${closed.id}/sign`);
    expect([status, body.state, body.signed_by]).toEqual([200, 'signed', 'bob']);
    expect((await as('bob', `/${closed.id}/sign`)).body.code).toBe('conflict');
    expect([await waiting(), await listed()]).toEqual([{ to_sign: 0, ...nothing }, []]);
    const rows = await api.database.owner.sql`
      select period, state, closed_by, signed_by, signed_off from finance_v1.periods
      where period is not null`;
    expect(rows).toEqual([
      { period: closed.id, state: 'signed', closedBy: 'ann', signedBy: 'bob', signedOff: 1n },
    ]);
  });

  it('Once signed it is reopened by two owners, and can then be closed with another end', async () => {
    const without = await as('ann', `/${closed.id}/reopen`, {});
    expect([without.status, without.body.code]).toEqual([400, 'invalid_request']);
    const approve = (owner: 'ann' | 'bob', n?: number) =>
      as(owner, `/${closed.id}/approve`, n === undefined ? {} : { n });
    expect((await approve('bob', 1)).body.code).toBe('conflict');
    await as('ann', `/${closed.id}/reopen`, { reason: 'receipt 16' });
    const reason = 'receipt 17';
    const proposed = await as('ann', `/${closed.id}/reopen`, { reason });
    const people = {
      reopen_proposal: 3,
      reopen_proposed_by: 'ann',
      reopen_reason: reason,
      signed_by: 'bob',
    };
    expect(proposed.body).toMatchObject({ state: 'signed', reopened_by: null, ...people });
    const waiting = async () => (await api.call('GET', '/api/status')).body.periods;
    expect(await waiting()).toEqual({
      to_sign: 0,
      to_close_since: null,
      to_reopen_since: expect.any(String),
      to_reopen_proposed_by: 'ann',
    });
    const own = await approve('ann', 3);
    expect([own.status, own.body.code]).toEqual([409, 'same_owner']);
    expect((await periodEvents()).at(-1)).toMatchObject({ type: 'period.closed' });
    expect((await approve('bob')).body.code).toBe('invalid_request');
    expect((await approve('bob', 2)).body.detail).toMatch(/is number 3: reopen; read it first$/);
    const { body } = await approve('bob', 3);
    expect(body).toMatchObject({ state: 'reopened', reopened_by: 'bob', ...people });
    expect((await approve('bob', 3)).body.code).toBe('conflict');
    const done = { previous: 'signed', reopened_by: 'bob', proposed_by: 'ann', reason };
    expect((await periodEvents()).at(-1)).toMatchObject({
      type: 'period.reopened',
      data: { period_id: closed.id, ...done },
    });
    expect(await waiting()).toEqual({
      to_sign: 0,
      to_close_since: closed.period_to,
      to_reopen_since: null,
      to_reopen_proposed_by: null,
    });
    const sign_offs = [{ subject: drift.id, reason: 'refund is on its way' }];
    const again = await as('ann', '/close', { from: START, to: now(), sign_offs });
    expect(again.status).toBe(200);
    const { body: list } = await api.call('GET', '/api/periods');
    await expectNextIsDue();
    expect(list.data.map(({ state }) => state)).toEqual(['closed', 'reopened']);
    const history = await api.database.owner.sql<{ action: string; by: string }[]>`
      select action, by from finance_v1.period_history where period = ${closed.id} order by at`;
    expect(history.map(({ action, by }) => `${action} ${by}`)).toEqual([
      'closed ann',
      'signed_off ann',
      'signed bob',
      'reopen_proposed ann',
      'reopen_proposed ann',
      'reopened bob',
    ]);
  });
});

describe('A period is refused', () => {
  it.each([
    ['while it runs', { to: '2999-01-01' }, 409, 'conflict'],
    ['with a gap before it', { from: '2026-01-01', to: '2999-01-01' }, 409, 'conflict'],
    ['when it ends before it begins', { to: '2020-01-01' }, 400, 'invalid_request'],
    ['on a day that does not exist', { to: '2026-02-30' }, 400, 'invalid_request'],
    ['at a time without a zone', { to: '2026-02-01T00:00:00' }, 400, 'invalid_request'],
  ])('%s', async (_, body, status, code) => {
    const answer = await as('ann', '/close', body);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  it('to a key without the scope decide, and when no period has the id', async () => {
    const key = await api.keyFor('manage');
    const body = { to: '2026-01-01' };
    const refused = await api.call('POST', '/api/periods/close', { key, body });
    expect(refused.status).toBe(403);
    const id = 'per_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
    expect((await as('bob', `/${id}/sign`)).status).toBe(404);
    expect((await as('bob', `/${id}/reopen`, { reason: 'x' })).status).toBe(404);
  });
});

it('A day begins at midnight in the time zone of the reports', async () => {
  const { body } = await as('ann', '/close', { to: '2999-01-01', dry_run: true });
  expect(body).toMatchObject({
    period_to: '2998-12-31T15:00:00.000Z',
    obstacles: expect.arrayContaining([expect.objectContaining({ kind: 'period_runs' })]),
  });
});

it.each([
  [{ period: '2025-Q4' }, { from: '2025-10-01T00:00:00+09:00', to: '2026-01-01T00:00:00+09:00' }],
  [
    { from: '2025-10', to: '2025-10-17' },
    { from: '2025-10-01T00:00:00+09:00', to: '2025-10-17T00:00:00+09:00' },
  ],
])(
  'The dates %j of a report begin and end with days of the reports',
  async (dates, { from, to }) => {
    const kind = 'reconciliation';
    const { body } = await api.call('POST', '/api/reports', { body: { kind, ...dates } });
    expect([body.period_from, body.period_to].map((at) => Date.parse(String(at)))).toEqual(
      [from, to].map((at) => Date.parse(at)),
    );
    const both = await api.call('POST', '/api/reports', { body: { kind, period: '2025', from } });
    expect([both.status, both.body.errors]).toEqual([
      400,
      [{ path: '', message: 'name either period, or from and to' }],
    ]);
  },
);
