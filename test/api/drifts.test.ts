/** Drifts ended by two owners through the API: states, approvals, refusals, and the ledger. */
import { describe, expect, it } from 'vitest';
import { exportJournal } from '../../src/ledger/ledger.ts';
import { useDrifts } from './drifts-rig.ts';

const rig = useDrifts();
const { api, poll, post, driftsOf, driftOf, find, eventsOf, drifting, propose, approve } = rig;

describe('A drift made elsewhere', () => {
  it('It is booked to external once another owner approves, and polls then agree', async () => {
    const { addr, id } = await drifting(7n);
    expect((await propose(id)).body).toMatchObject({
      state: 'proposed',
      cause: 'made_elsewhere',
      proposal: { n: 1, kind: 'book', proposed_by: 'ann', approvals: [], approved_by: null },
    });
    expect(await api.balance(addr)).toBe(1_000n);
    expect((await api.call('GET', '/api/status')).body.open).toMatchObject({ drifts_proposed: 1 });
    const { body } = await approve(id);
    expect(body).toMatchObject({
      state: 'booked',
      closed_at: expect.stringMatching(/Z$/),
      proposal: { approved_by: 'bob', reason: 'paid in cash' },
      closed_by: { decided_by: 'ann', approved_by: 'bob', reason: 'paid in cash' },
    });
    expect(await api.balance(addr)).toBe(1_007n);
    await poll(addr, 1_007n, 1_007n);
    expect(await driftsOf(addr)).toEqual([]);
    const entries = await api.database.owner.sql`
      select account, amount, drift_id, reason, decided_by from finance_v1.journal
      where kind = 'booking' and requested_by = 'ann' order by amount`;
    const decided = { driftId: id, reason: 'paid in cash', decidedBy: 'ann, bob' };
    expect(entries).toEqual([
      { account: 'external', amount: -7n, ...decided },
      { account: `wallet:${addr}`, amount: 7n, ...decided },
    ]);
    const listed = await api.call('GET', `/api/ledger/transactions?account=wallet:${addr}`);
    expect(listed.body.data[0]).toMatchObject({
      drift_id: id,
      reason: 'paid in cash',
      decided_by: 'ann, bob',
    });
    const journal: string[] = [];
    const save = async (texts: AsyncIterable<string>) => {
      for await (const text of texts) journal.push(text);
    };
    await exportJournal(api.db, save, () => {}, 'UTC');
    expect(journal.join('')).toMatch(
      new RegExp(` booking\n.* drift:${id}, decided_by:ann and bob, reason:paid in cash\n`),
    );
    expect((await find(id)).actions).toMatchObject([
      { action: 'opened', by: 'reconciler' },
      { action: 'proposed', by: 'ann' },
      { action: 'booked', by: 'bob' },
    ]);
    expect((await eventsOf(addr)).map(({ type }) => type)).toEqual([
      'wallet.drift_opened',
      'wallet.drift_proposed',
      'wallet.drift_closed',
    ]);
  });

  it('It is assigned, which is announced and recorded, until it is closed', async () => {
    const { addr, id } = await drifting(3n);
    expect((await post(`/${id}/assign`, { assignee: 'ann' }, 'bob')).body.assignee).toBe('ann');
    for (const assignee of ['ann', 'ANN', '+ann'])
      expect(await driftsOf(addr, `assignee=${assignee}`)).toMatchObject([{ id }]);
    expect((await eventsOf(addr)).at(-1)).toMatchObject({
      type: 'wallet.drift_assigned',
      data: { assignee: 'ann', assigned_by: 'bob' },
    });
    await post(`/${id}/assign`, { assignee: null });
    await poll(addr, 1_000n, 1_000n);
    const { status, body } = await post(`/${id}/assign`, { assignee: 'bob' });
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'conflict' });
    expect((await find(id)).assignee).toBeNull();
    const { body: audit } = await api.call('GET', '/api/audit?limit=1');
    expect(audit.data[0]).toMatchObject({
      action: 'POST /api/drifts/{id}/assign',
      detail: { id, assignee: 'bob' },
      result: 'conflict',
    });
  });

  it('When its balance returns, its end names the observation that closed it', async () => {
    const { addr, id } = await drifting(4n);
    await propose(id);
    await poll(addr, 1_000n, 1_000n);
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
    await poll(addr, 1_005n, 1_005n);
    expect(await driftsOf(addr)).toMatchObject([{ amount: '5' }]);
    expect((await driftOf(addr)).id).not.toBe(id);
  });
});

describe('A proposal about a drift', () => {
  it('It is not approved by a key of the owner that made it', async () => {
    const { id } = await drifting(6n);
    await propose(id);
    const { secret } = await api.keys.create({ name: 'second', owner: 'ann', scopes: ['decide'] });
    for (const key of ['ann', secret])
      expect((await approve(id, key)).body.code).toBe('same_owner');
    expect((await find(id)).state).toBe('proposed');
  });

  it.each(['ANN', ' ann ', '\uff41nn'])(
    'It is not approved by the same owner as %j',
    async (owner) => {
      const { id } = await drifting(12n);
      await propose(id);
      const { secret } = await api.keys.create({ name: 'second', owner, scopes: ['decide'] });
      expect((await approve(id, secret)).body.code).toBe('same_owner');
      expect((await find(id)).state).toBe('proposed');
    },
  );

  it('Its second approval is not that of the first owner in another spelling', async () => {
    const { id } = await drifting(-1_000_002n);
    await propose(id);
    expect((await approve(id)).body.state).toBe('proposed');
    const { secret } = await api.keys.create({ name: 'a', owner: ' BOB', scopes: ['decide'] });
    expect((await approve(id, secret)).body.code).toBe('same_owner');
    const { sql } = api.database.db;
    const approveAs = (owner: string) => sql`
      insert into tallyhook.approvals (subject, n, proposed_by, owner, key_id, at)
      values (${id}, 1, 'ann', ${owner}, 'key_1', now())`;
    await expect(approveAs('Bob')).rejects.toMatchObject({ constraint_name: 'approvals_once' });
    await expect(approveAs('Ann ')).rejects.toMatchObject({
      constraint_name: 'approvals_by_another_owner',
    });
  });

  it('Above the set amount it needs two other owners', async () => {
    const { addr, id } = await drifting(-1_000_001n);
    expect((await propose(id)).body.proposal).toMatchObject({ approvals_needed: 2 });
    expect((await approve(id)).body).toMatchObject({
      state: 'proposed',
      proposal: { approvals: [{ owner: 'bob' }], approved_by: null },
    });
    expect((await approve(id, 'bob')).body.code).toBe('same_owner');
    expect((await approve(id, 'ann')).body.code).toBe('same_owner');
    expect((await approve(id, 'cleo')).body).toMatchObject({
      state: 'booked',
      proposal: { approved_by: 'bob, cleo' },
    });
    expect(await api.balance(addr)).toBe(-999_001n);
  });

  it('A newer proposal replaces it, and an approval that names the old one is refused', async () => {
    const { id } = await drifting(8n);
    await propose(id);
    await propose(id, { proposal: 'dismiss' }, 'bob');
    expect((await approve(id, 'cleo', { proposal: 'book' })).body.detail).toContain('number 2');
    expect((await approve(id, 'cleo', { n: 1 })).body.code).toBe('conflict');
    expect((await approve(id, 'cleo', { n: 2, proposal: 'dismiss' })).body.state).toBe('dismissed');
    expect((await approve(id, 'cleo')).body.code).toBe('conflict');
    expect((await propose(id)).body.detail).toContain('it is dismissed');
  });

  it('Of concurrent approvals one books the drift, once', async () => {
    const { addr, id } = await drifting(9n);
    await propose(id);
    const answers = await Promise.all([approve(id), approve(id, 'cleo'), approve(id)]);
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
