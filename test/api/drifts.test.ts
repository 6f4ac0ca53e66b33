/** Drifts ended by people through the API: by two owners, in bulk, in the ledger and in events. */
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { faultsOf, NO_FAULTS } from '../ledger/fixture.ts';
import { pollWallet } from './polls.ts';
import { type Body, useApi } from './rig.ts';
import { aTransfer } from './writes.ts';

const api = useApi();
let ann: string;
let bob: string;
let cleo: string;

beforeAll(async () => {
  const keyOf = async (owner: string) =>
    (await api.keys.create({ name: owner, owner, scopes: ['decide', 'read'] })).secret;
  [ann, bob, cleo] = [await keyOf('ann'), await keyOf('bob'), await keyOf('cleo')];
});
afterEach(async () => {
  expect(await faultsOf(api.database.owner)).toEqual(NO_FAULTS);
});

let wallets = 0;
const freshAddr = () => `0xDD${String(++wallets).padStart(38, '0')}`;
const post = (path: string, body: object = {}, key = ann) =>
  api.call('POST', `/api/drifts${path}`, { key, body });
const driftsOf = async (addr: string, query = 'state=unclosed') =>
  (await api.call('GET', `/api/drifts?${query}&addr=${addr}`)).body.data;
const driftOf = async (addr: string) => (await driftsOf(addr))[0] as Body;
const find = async (id: string) => (await api.call('GET', `/api/drifts/${id}`)).body;
const eventsOf = async (addr: string) => {
  const rows = await api.database.owner.sql<{ type: string; body: string }[]>`
    select type, body from tallyhook.events where subject = ${`wallet:${addr.toLowerCase()}`}
      and type like 'wallet.drift%' order by subject_seq`;
  return rows.map(({ type, body }) => ({ type, data: JSON.parse(body).data }));
};
/** A wallet of 1000 that was changed elsewhere by this amount; further polls pass in between. */
async function drifting(amount: bigint, addr = freshAddr()): Promise<{ addr: string; id: string }> {
  await pollWallet(api, addr, 1_000n, 1_000n, 1_000n + amount, 1_000n + amount);
  return { addr, id: (await driftOf(addr)).id };
}
const propose = (id: string, body: object = {}, key = ann) =>
  post(`/${id}/propose`, { reason: 'paid in cash', proposal: 'book', ...body }, key);
const approve = (id: string, key = bob, body: object = {}) => post(`/${id}/approve`, body, key);
async function booked(amount: bigint) {
  const { addr, id } = await drifting(amount);
  await propose(id);
  expect((await approve(id)).status).toBe(200);
  await api.postAll();
  return { addr, id };
}

describe('A drift made elsewhere', () => {
  it('It is booked to external once another owner approves, and polls then agree', async () => {
    const { addr, id } = await drifting(7n);
    expect((await propose(id)).body).toMatchObject({
      ...{ state: 'proposed', cause: 'made_elsewhere' },
      proposal: { n: 1, kind: 'book', proposed_by: 'ann', approvals: [], approved_by: null },
    });
    expect(await api.balance(addr)).toBe(1_000n);
    expect((await api.call('GET', '/api/status')).body.open).toMatchObject({ drifts_proposed: 1 });
    const { body } = await approve(id);
    expect(body).toMatchObject({
      ...{ state: 'booked', closed_at: expect.stringMatching(/Z$/) },
      proposal: { approved_by: 'bob', reason: 'paid in cash' },
      closed_by: { decided_by: 'ann', approved_by: 'bob', reason: 'paid in cash' },
    });
    expect(await api.balance(addr)).toBe(1_007n);
    await pollWallet(api, addr, 1_007n, 1_007n);
    expect(await driftsOf(addr)).toEqual([]);
    const entries = await api.database.owner.sql<{ account: string; amount: bigint }[]>`
      select account, amount from finance_v1.journal where kind = 'booking'
        and requested_by = 'ann' order by amount`;
    expect(entries.map(({ account, amount }) => [account, amount])).toEqual([
      ['external', -7n],
      [`wallet:${addr}`, 7n],
    ]);
    expect((await find(id)).actions).toMatchObject([
      { action: 'opened', by: 'reconciler' },
      { action: 'proposed', by: 'ann' },
      { action: 'booked', by: 'bob' },
    ]);
    expect((await eventsOf(addr)).map(({ type }) => type)).toEqual([
      ...['wallet.drift_opened', 'wallet.drift_proposed', 'wallet.drift_closed'],
    ]);
  });

  it('It is assigned, which is announced and recorded, until it is closed', async () => {
    const { addr, id } = await drifting(3n);
    expect((await post(`/${id}/assign`, { assignee: 'ann' }, bob)).body.assignee).toBe('ann');
    expect(await driftsOf(addr, 'assignee=ann')).toMatchObject([{ id }]);
    expect((await eventsOf(addr)).at(-1)).toMatchObject({
      ...{ type: 'wallet.drift_assigned', data: { assignee: 'ann', assigned_by: 'bob' } },
    });
    await post(`/${id}/assign`, { assignee: null });
    await pollWallet(api, addr, 1_000n, 1_000n);
    const { status, body } = await post(`/${id}/assign`, { assignee: 'bob' });
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'conflict' });
    expect((await find(id)).assignee).toBeNull();
    const { body: audit } = await api.call('GET', '/api/audit?limit=1');
    expect(audit.data[0]).toMatchObject({
      ...{ action: 'POST /api/drifts/{id}/assign', detail: { id, assignee: 'bob' } },
      result: 'conflict',
    });
  });

  it('When its balance returns, its end names the observation that closed it', async () => {
    const { addr, id } = await drifting(4n);
    await propose(id);
    await pollWallet(api, addr, 1_000n, 1_000n);
    const found = await find(id);
    expect(found).toMatchObject({ state: 'returned', closed_by: { observed_balance: '1000' } });
    const observation = (found.closed_by as { observation: string }).observation;
    const rows = await api.database.owner.sql`
      select 1 as one from tallyhook.observations where id = ${observation}`;
    expect(rows).toHaveLength(1);
    expect((await approve(id)).body.detail).toContain('it is returned');
  });

  it('A dismissal posts nothing, and a difference that still shows is a new drift', async () => {
    const { addr, id } = await drifting(5n);
    await propose(id, { proposal: 'dismiss', reason: 'the support corrects it' });
    expect((await approve(id)).body.state).toBe('dismissed');
    expect(await api.balance(addr)).toBe(1_000n);
    await pollWallet(api, addr, 1_005n, 1_005n);
    expect(await driftsOf(addr)).toMatchObject([{ amount: '5' }]);
    expect((await driftOf(addr)).id).not.toBe(id);
  });
});

describe('A proposal about a drift', () => {
  it('It is not approved by a key of the owner that made it', async () => {
    const { id } = await drifting(6n);
    await propose(id);
    const { secret } = await api.keys.create({ name: 'second', owner: 'ann', scopes: ['decide'] });
    for (const key of [ann, secret]) expect((await approve(id, key)).body.code).toBe('same_owner');
    expect((await find(id)).state).toBe('proposed');
  });

  it('Above the set amount it needs two other owners', async () => {
    const { addr, id } = await drifting(-1_000_001n, freshAddr());
    expect((await propose(id)).body.proposal).toMatchObject({ approvals_needed: 2 });
    expect((await approve(id)).body).toMatchObject({
      state: 'proposed',
      proposal: { approvals: [{ owner: 'bob' }], approved_by: null },
    });
    expect((await approve(id, bob)).body.code).toBe('same_owner');
    expect((await approve(id, ann)).body.code).toBe('same_owner');
    expect((await approve(id, cleo)).body).toMatchObject({
      state: 'booked',
      proposal: { approved_by: 'bob, cleo' },
    });
    expect(await api.balance(addr)).toBe(-999_001n);
  });

  it('A newer proposal replaces it, and an approval that names the old one is refused', async () => {
    const { id } = await drifting(8n);
    await propose(id);
    await propose(id, { proposal: 'dismiss' }, bob);
    expect((await approve(id, cleo, { proposal: 'book' })).body.detail).toContain('number 2');
    expect((await approve(id, cleo, { n: 1 })).body.code).toBe('conflict');
    expect((await approve(id, cleo, { n: 2, proposal: 'dismiss' })).body.state).toBe('dismissed');
    expect((await approve(id, cleo)).body.code).toBe('conflict');
    expect((await propose(id)).body.detail).toContain('it is dismissed');
  });

  it('Of concurrent approvals one books the drift, once', async () => {
    const { addr, id } = await drifting(9n);
    await propose(id);
    const answers = await Promise.all([approve(id), approve(id, cleo), approve(id)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
    expect(await api.balance(addr)).toBe(1_009n);
  });

  it.each([
    [{ proposal: 'book' }, 'invalid_request'],
    [{ proposal: 'forget', reason: 'x' }, 'invalid_request'],
    [{ proposal: 'link', reason: 'x' }, 'conflict'],
    [
      { proposal: 'link', operation_id: 'op_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b', reason: 'x' },
      'conflict',
    ],
  ])('%j is refused', async (body, code) => {
    const { id } = await drifting(10n);
    expect((await post(`/${id}/propose`, body)).body.code).toBe(code);
    expect((await find(id)).proposal).toBeNull();
  });

  it('Postgres itself refuses an end without an approval of another owner', async () => {
    const { id } = await drifting(11n);
    const { sql } = api.database.db;
    const end = sql`
      update tallyhook.drifts set state = 'booked', closed_at = now(), closed_by = '{}'
      where id = ${id}`;
    await expect(end).rejects.toMatchObject({ code: 'TH006' });
    await propose(id);
    const own = sql`
      insert into tallyhook.approvals (subject, n, proposed_by, owner, key_id, at)
      values (${id}, 1, 'ann', 'ann', 'key_1', now())`;
    await expect(own).rejects.toMatchObject({ code: '23514' });
    const asBob = sql`
      insert into tallyhook.approvals (subject, n, proposed_by, owner, key_id, at)
      values (${id}, 1, 'bob', 'ann', 'key_1', now())`;
    await expect(asBob).rejects.toMatchObject({ code: '23503' });
    await expect(sql`
      update tallyhook.drifts set state = 'booked', closed_at = now(), closed_by = '{}'
      where id = ${id}`).rejects.toMatchObject({ code: 'TH006' });
    const change = api.database.owner.sql`update tallyhook.decisions set decision = 'dismiss'`;
    await expect(change).rejects.toMatchObject({ code: 'TH001' });
  });
});

describe('A lost operation', () => {
  /** A transfer of 100 and a fee of 1 that people called not executed; the drift shows it. */
  async function lost() {
    const [from, to] = [freshAddr(), freshAddr()];
    for (const addr of [from, to]) await pollWallet(api, addr, 1_000n, 1_000n);
    const operation = await api.recordLost({
      fields: { fromAddr: from, toAddr: to, amount: 100n },
    });
    for (const state of ['undecided', 'not_executed'] as const)
      await api.database.db.begin((tx) =>
        api.operations.move(tx, [
          { id: operation, to: state, at: api.deps.clock.now(), cause: 'test', evidence: {} },
        ]),
      );
    return { from, to, operation };
  }

  it('It is the prepared proposal of its drift, and the link makes it executed', async () => {
    const { from, to, operation } = await lost();
    await pollWallet(api, from, 899n, 899n);
    await pollWallet(api, to, 1_100n, 1_100n);
    const drift = await driftOf(from);
    expect(drift).toMatchObject({
      cause: 'lost_operation',
      prepared: { drift_id: drift.id, proposal: 'link', operation_id: operation },
    });
    const { id: other } = await driftOf(to);
    expect((await post(`/${drift.id}/propose`, { reason: 'receipt 17' })).body).toMatchObject({
      proposal: { kind: 'link', operation_id: operation },
    });
    expect((await approve(drift.id)).body).toMatchObject({
      ...{ state: 'linked', closed_by: { operation_id: operation } },
    });
    expect(await find(other)).toMatchObject({
      ...{ state: 'explained', closed_by: { operation_id: operation, drift: drift.id } },
    });
    const found = (await api.call('GET', `/api/operations/${operation}`)).body;
    expect(found).toMatchObject({ state: 'executed', evidence: { drift: drift.id } });
    expect([await api.balance(from), await api.balance(to)]).toEqual([899n, 1_100n]);
    for (const [addr, balance] of [[from, 899n] as const, [to, 1_100n] as const])
      await pollWallet(api, addr, balance, balance);
    expect([...(await driftsOf(from)), ...(await driftsOf(to))]).toEqual([]);
  });

  it('A link is refused to an operation of another effect, or one that was counted', async () => {
    const { operation } = await lost();
    const { addr, id } = await drifting(100n);
    const link = (operation_id: string) => propose(id, { proposal: 'link', operation_id });
    expect((await link(operation)).body.detail).toContain('changes the wallet by 0');
    const counted = freshAddr();
    await pollWallet(api, counted, 1_000n, 1_000n);
    const { body } = await api.call('POST', '/api/operations', {
      body: aTransfer({ from_addr: addr, to_addr: counted, amount: '100', fee_amount: '0' }),
    });
    const reported = String(body.operation_id ?? body.id);
    await pollWallet(api, counted, 1_200n, 1_200n);
    const { id: twice } = await driftOf(counted);
    const again = await propose(twice, { proposal: 'link', operation_id: reported });
    expect(again.body.detail).toContain('already counted');
  });
});

describe('A booked drift', () => {
  it('When its operation is reported later, it is linked and its booking is reversed', async () => {
    const { addr, id } = await booked(100n);
    const payer = freshAddr();
    await pollWallet(api, addr, 1_100n, 1_100n);
    const { window_to } = (await find(id)) as unknown as { window_to: string };
    const { status, body } = await api.call('POST', '/api/operations', {
      body: aTransfer({ from_addr: payer, to_addr: addr, occurred_at: window_to }),
    });
    expect(status, JSON.stringify(body)).toBe(201);
    await api.postAll();
    await pollWallet(api, addr, 1_100n, 1_100n);
    const drift = await driftOf(addr);
    expect(drift).toMatchObject({
      ...{ amount: '-100', cause: 'lost_operation' },
      prepared: { drift_id: id, proposal: 'link' },
    });
    await post(`/${drift.id}/propose`, { reason: 'reported now' });
    expect(await find(id)).toMatchObject({ state: 'booked', proposal: { kind: 'link', n: 2 } });
    expect((await approve(id)).body.state).toBe('linked');
    expect((await find(drift.id)).state).toBe('explained');
    expect(await api.balance(addr)).toBe(1_100n);
    const kinds = await api.database.owner.sql<{ kind: string; amount: bigint }[]>`
      select kind, amount from finance_v1.journal where account = ${`wallet:${addr}`}
      order by seq`;
    expect(kinds.map(({ kind, amount }) => [kind, amount])).toEqual([
      ...[
        ['opening', 1_000n],
        ['booking', 100n],
        ['transfer', 100n],
        ['reversal', -100n],
      ],
    ]);
    expect((await eventsOf(addr)).map(({ type }) => type).slice(-3)).toEqual([
      ...['wallet.drift_proposed', 'wallet.drift_reversed', 'wallet.drift_closed'],
    ]);
    await pollWallet(api, addr, 1_100n, 1_100n);
    expect(await driftsOf(addr)).toEqual([]);
  });

  it('It can be neither booked again nor dismissed', async () => {
    const { id } = await booked(12n);
    for (const proposal of ['book', 'dismiss'])
      expect((await propose(id, { proposal })).body.detail).toContain('can only be linked');
  });
});

describe('One transfer made elsewhere between two wallets', () => {
  it('Its two drifts are one finding, ended by one proposal and one approval', async () => {
    const [from, to] = [freshAddr(), freshAddr()];
    for (const addr of [from, to]) await pollWallet(api, addr, 1_000n);
    for (const addr of [from, to]) await pollWallet(api, addr, 1_000n);
    await pollWallet(api, from, 300n);
    await pollWallet(api, to, 1_700n);
    await pollWallet(api, from, 300n);
    await pollWallet(api, to, 1_700n);
    const [out, into] = [await driftOf(from), await driftOf(to)];
    expect([out.counterpart, into.counterpart]).toEqual([into.id, out.id]);
    expect(into.cause).toBe('made_elsewhere');
    await post(`/${into.id}/propose`, { reason: 'moved by hand' });
    expect((await find(out.id)).proposal).toMatchObject({ kind: 'book', proposed_by: 'ann' });
    await approve(out.id);
    expect([(await find(out.id)).state, (await find(into.id)).state]).toEqual(['booked', 'booked']);
    expect([await api.balance(from), await api.balance(to)]).toEqual([300n, 1_700n]);
  });
});

describe('Many drifts', () => {
  it('They are assigned, proposed and approved at once, and a refusal stops no other', async () => {
    const made = [await drifting(21n), await drifting(22n), await drifting(23n)];
    const ids = made.map(({ id }) => id);
    const none = 'drf_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
    const assigned = await post('/assign', { ids, assignee: 'cleo' });
    expect(assigned.body.data).toMatchObject(
      ids.map((id) => ({ id, drift: { assignee: 'cleo' } })),
    );
    const proposed = await post('/propose', { ids: [...ids, none], reason: 'campaign' });
    expect(proposed.body.data.map(({ problem }) => (problem as Body | null)?.code)).toEqual([
      ...[undefined, undefined, undefined, 'not_found'],
    ]);
    const [first = ''] = ids;
    await propose(first, { proposal: 'dismiss' }, bob);
    const approved = await post('/approve', { ids, proposal: 'book' }, bob);
    expect(approved.body.data).toMatchObject([
      { id: first, drift: null, problem: { code: 'conflict' } },
      { drift: { state: 'booked' }, problem: null },
      { drift: { state: 'booked' }, problem: null },
    ]);
    for (const [n, { addr }] of made.entries())
      expect(await api.balance(addr)).toBe(n === 0 ? 1_000n : 1_021n + BigInt(n));
  });

  it('They are summed by cause and age, and the median time to their end is shown', async () => {
    await drifting(31n);
    const { body } = await api.call('GET', '/api/drifts/summary');
    const byCause = body.by_cause as { cause: string; drifts: number; up: string }[];
    expect(byCause.find(({ cause }) => cause === 'made_elsewhere')?.drifts).toBeGreaterThan(0);
    expect(body.by_age).toMatchObject([{ order: 1, bucket: '<15 min' }]);
    expect(body.ended).toMatchObject({ median_s: expect.any(Number) });
    const status = (await api.call('GET', '/api/status')).body;
    expect(status.drift_resolution_median_s).toEqual(expect.any(Number));
  });
});
