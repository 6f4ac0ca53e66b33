/** Drifts that an operation explains, that belong together, and that are ended in bulk. */
import { describe, expect, it } from 'vitest';
import type { Body } from './described.ts';
import { useDrifts } from './drifts-rig.ts';
import { aTransfer } from './writes.ts';

const rig = useDrifts();
const { api, poll, post, driftsOf, driftOf, find, eventsOf, drifting, propose, approve } = rig;
const { freshAddr, booked } = rig;

describe('A lost operation', () => {
  /** A transfer of 100 and a fee of 1 that people called not executed; the drift shows it. */
  async function lost() {
    const [from, to] = [freshAddr(), freshAddr()];
    for (const addr of [from, to]) await poll(addr, 1_000n, 1_000n);
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
    await poll(from, 899n, 899n);
    await poll(to, 1_100n, 1_100n);
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
      state: 'linked',
      closed_by: { operation_id: operation },
    });
    expect(await find(other)).toMatchObject({
      state: 'explained',
      closed_by: { operation_id: operation, drift: drift.id },
    });
    const found = (await api.call('GET', `/api/operations/${operation}`)).body;
    expect(found).toMatchObject({ state: 'executed', evidence: { drift: drift.id } });
    expect([await api.balance(from), await api.balance(to)]).toEqual([899n, 1_100n]);
    for (const [addr, balance] of [[from, 899n] as const, [to, 1_100n] as const])
      await poll(addr, balance, balance);
    expect([...(await driftsOf(from)), ...(await driftsOf(to))]).toEqual([]);
  });

  it('A link is refused to an operation of another effect, or one that was counted', async () => {
    const { operation } = await lost();
    const { addr, id } = await drifting(100n);
    const link = (operation_id: string) => propose(id, { proposal: 'link', operation_id });
    expect((await link(operation)).body.detail).toContain('changes the wallet by 0');
    const counted = freshAddr();
    await poll(counted, 1_000n, 1_000n);
    const { body } = await api.call('POST', '/api/operations', {
      body: aTransfer({ from_addr: addr, to_addr: counted, amount: '100', fee_amount: '0' }),
    });
    const reported = String(body.operation_id ?? body.id);
    await poll(counted, 1_200n, 1_200n);
    const { id: twice } = await driftOf(counted);
    const again = await propose(twice, { proposal: 'link', operation_id: reported });
    expect(again.body.detail).toContain('already counted');
  });
});

describe('A booked drift', () => {
  it('When its operation is reported later, it is linked and its booking is reversed', async () => {
    const { addr, id } = await booked(100n);
    const payer = freshAddr();
    await poll(addr, 1_100n, 1_100n);
    const { window_to } = await find(id);
    const { status, body } = await api.call('POST', '/api/operations', {
      body: aTransfer({ from_addr: payer, to_addr: addr, occurred_at: window_to }),
    });
    expect(status, JSON.stringify(body)).toBe(201);
    await api.postAll();
    await poll(addr, 1_100n, 1_100n);
    const drift = await driftOf(addr);
    expect(drift).toMatchObject({
      amount: '-100',
      cause: 'lost_operation',
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
      ['opening', 1_000n],
      ['booking', 100n],
      ['transfer', 100n],
      ['reversal', -100n],
    ]);
    expect((await eventsOf(addr)).map(({ type }) => type).slice(-3)).toEqual([
      'wallet.drift_proposed',
      'wallet.drift_reversed',
      'wallet.drift_closed',
    ]);
    await poll(addr, 1_100n, 1_100n);
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
    for (const addr of [from, to]) await poll(addr, 1_000n);
    for (const addr of [from, to]) await poll(addr, 1_000n);
    await poll(from, 300n);
    await poll(to, 1_700n);
    await poll(from, 300n);
    await poll(to, 1_700n);
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
      undefined,
      undefined,
      undefined,
      'not_found',
    ]);
    const [first = ''] = ids;
    await propose(first, { proposal: 'dismiss' }, 'bob');
    const approved = await post('/approve', { ids, proposal: 'book' }, 'bob');
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
    const [young] = body.by_age as { drifts: number }[];
    const listed = async (age: number) => {
      const page = await api.call('GET', `/api/drifts?state=unclosed&age=${age}`);
      return (page.body.data as object[]).length;
    };
    expect([await listed(1), await listed(2)]).toEqual([young?.drifts, 0]);
    expect(body.ended).toMatchObject({ median_s: expect.any(Number) });
    const status = (await api.call('GET', '/api/status')).body;
    expect(status.drift_resolution_median_s).toEqual(expect.any(Number));
  });
});
