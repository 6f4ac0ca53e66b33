/** Reported operations: recording, repeats, refusals, and their postings. */
import { describe, expect, it } from 'vitest';
import { openingId, requestPosting } from '../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../src/operations/operations.ts';
import { balancesOf } from '../harness/books.ts';
import type { Body } from './described.ts';
import { useApi } from './rig.ts';
import { ADDR_A, ADDR_B, accepted, aGive, aTransfer, HASH, iso, nextNumber } from './writes.ts';

const HUGE = 9_007_199_254_740_993n;
const api = useApi();

const now = () => api.deps.clock.now();
const report = (body: unknown) => api.call('POST', '/api/operations', { body });
const lostTransfer = (amount: bigint) => api.recordLost({ fields: { amount } });

/** An answer with a number, but without that of its app. */
const unnamed = (id: string, number: bigint) => {
  const { outcome, ...answer } = accepted(id, number, now());
  const { txAppNo: _, ...rest } = outcome as { txAppNo?: bigint } & typeof outcome;
  return { ...answer, outcome: rest };
};

describe('One report', () => {
  it('A report becomes an operation that is posted at the time when it occurred', async () => {
    const input = aGive({ reference: 'grant 1', reason_type: 'grant', amount: HUGE.toString() });
    const made = await report(input);
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      source: 'report',
      outcome: 'executed',
      effective_basis: 'reported',
      amount: HUGE.toString(),
      reference: 'grant 1',
      tx_app_no: '7',
      tx_log_no: input.tx_log_no,
      effective_at: input.occurred_at,
    });
    await api.postAll();
    const { body } = await api.call('GET', `/api/ledger/transactions?operation_id=${made.body.id}`);
    expect(body.data).toMatchObject([
      { kind: 'give', effective_at: input.occurred_at, effective_basis: 'reported' },
    ]);
    const detail = await api.call('GET', `/api/operations/${made.body.id}`);
    expect(detail.body.evidence).toMatchObject({ report: { by: 'owner of admin' } });
    expect(detail.body.transitions).toMatchObject([
      { from_state: null, to_state: 'executed', cause: 'report' },
      { from_state: 'executed', to_state: 'settled' },
    ]);
  });

  it('A repeated report is known under the same id', async () => {
    const input = aGive();
    const first = await report(input);
    const second = await report({ ...input, to_addr: ADDR_A.toLowerCase() });
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.body.id).toBe(first.body.id);
  });

  it.each([
    [{ amount: '11' }, ['amount']],
    [{ to_addr: ADDR_B }, ['to_addr']],
    [{ operation_no: '2' }, ['operation_no']],
    [{ occurred_at: '2026-01-01T00:00:00Z' }, ['occurred_at']],
  ])('A report with a used number and other fields %j is refused', async (change, differs) => {
    const input = aGive();
    const first = await report(input);
    const { status, body } = await report({ ...input, ...change });
    expect({ status, code: body.code, differs: body.differs, id: body.operation_id }).toEqual({
      status: 409,
      code: 'conflict',
      differs,
      id: first.body.id,
    });
  });

  it('A report of an operation of the gateway is known', async () => {
    const id = await api.record({ fields: { amount: 4_711n } });
    const number = nextNumber();
    await api.operations.conclude(accepted(id, number, now()));
    const { status, body } = await report(aTransfer({ amount: '4711', tx_log_no: String(number) }));
    expect({ status, id: body.id }).toEqual({ status: 200, id });
  });

  it.each([['7'], ['8'], [undefined]])(
    'A write whose answer named no app is one with its report, which names %s',
    async (tx_app_no) => {
      const amount = nextNumber();
      const id = await api.record({ fields: { amount } });
      const number = nextNumber();
      await api.operations.conclude(unnamed(id, number));
      const about = { amount: String(amount), tx_log_no: String(number), tx_app_no };
      const { status, body } = await report(aTransfer(about));
      expect({ status, id: body.id }).toEqual({ status: 200, id });
      const other = await report(aTransfer({ ...about, amount: '1' }));
      expect(other.body).toMatchObject({ code: 'conflict', operation_id: id });
    },
  );

  it('An answer that names no app is not posted after the report of its number', async () => {
    const amount = nextNumber();
    const id = await api.record({ fields: { amount } });
    const number = nextNumber();
    const distinct = { amount: String(amount), tx_log_no: String(number), distinct: true };
    expect((await report(aTransfer(distinct))).status).toBe(201);
    await api.operations.conclude({ ...unnamed(id, number), ownAppNo: 7n });
    const { body } = await api.call('GET', '/api/quarantine');
    expect(body.data).toMatchObject([{ id, reason: 'repeated_tx_log_no' }]);
    expect((await api.call('GET', `/api/operations/${id}`)).body.tx_app_no).toBe('7');
  });

  it('Reports are entries of the audit with their result, one for an array', async () => {
    const entries = async (limit: number) =>
      (await api.call('GET', `/api/audit?limit=${limit}`)).body.data;
    const input = aGive();
    await report(input);
    const own = { action: 'POST /api/operations', owner: 'owner of admin' };
    expect(await entries(1)).toMatchObject([{ ...own, detail: { kind: 'give' }, result: 'done' }]);
    await report({ ...input, amount: '11' });
    expect(await entries(1)).toMatchObject([{ ...own, result: 'conflict' }]);
    await report([aGive(), aGive()]);
    expect(await entries(2)).toMatchObject([
      { ...own, detail: { reports: 2 }, result: 'done' },
      { ...own, result: 'conflict' },
    ]);
  });

  it('A report without an app number belongs to the app of this client', async () => {
    const { tx_app_no: _, ...rest } = aGive();
    const { status, body } = await report(rest);
    expect({ status, app: body.tx_app_no }).toEqual({ status: 201, app: '7' });
  });

  it('An answer that names another app does not change which app is ours', async () => {
    const id = await api.record({ fields: { amount: 4n } });
    const foreign = accepted(id, nextNumber(), now());
    const outcome = { ...foreign.outcome, txAppNo: 8n } as typeof foreign.outcome;
    await api.operations.conclude({ ...foreign, outcome, expectedAppNo: 7n });
    const at = now();
    await api.database.db.begin((tx) =>
      api.operations.move(tx, [{ id, to: 'settled', at, cause: 'test', settledAt: at }]),
    );
    const { tx_app_no: _, ...rest } = aGive();
    expect((await report(rest)).body.tx_app_no).toBe('7');
  });

  it('A report of a token names its hash and waits for the chain', async () => {
    const minted = {
      kind: 'mint',
      tx_hash: HASH,
      contract_id: '12',
      token_id: HUGE.toString(),
      to_addr: ADDR_A,
      token_uri: 'https://example.com/t',
      occurred_at: iso(now()),
    };
    const first = await report(minted);
    expect({ status: first.status, state: first.body.state }).toEqual({
      status: 201,
      state: 'executed',
    });
    expect((await report(minted)).body.id).toBe(first.body.id);
    expect((await report({ ...minted, token_id: '5' })).body.code).toBe('conflict');
  });

  it('A mint whose hash is reported again in other letters is the same mint', async () => {
    const minted = (tx_hash: string) => ({
      kind: 'mint',
      tx_hash,
      contract_id: '13',
      token_id: '1',
      to_addr: ADDR_A,
      token_uri: 'https://example.com/t',
      occurred_at: '2026-01-02T00:00:00.000Z',
    });
    const [lower, upper] = [`0x${'ab'.repeat(32)}`, `0X${'AB'.repeat(32)}`];
    const first = await report(minted(lower));
    const second = await report(minted(upper));
    expect([second.status, second.body.id, second.body.tx_hash]).toEqual([
      200,
      first.body.id,
      lower,
    ]);
    const found = await api.call('GET', `/api/operations?tx_hash=${upper}`);
    expect(found.body.data).toMatchObject([{ id: first.body.id, tx_hash: lower }]);
    const other = await report({ ...minted(`0x${'cd'.repeat(32)}`), token_id: '2' });
    const set = `set tx_hash = '${upper}' where id = '${other.body.id}'`;
    const again = api.database.owner.sql.unsafe(`update tallyhook.operations ${set}`);
    await expect(again).rejects.toMatchObject({
      code: '23505',
      constraint_name: 'operations_reported',
    });
  });

  it.each([
    [{ kind: 'other' }, 'kind'],
    [{ amount: '0' }, 'amount'],
    [{ amount: 10 }, 'amount'],
    [{ amount: '1.5' }, 'amount'],
    [{ tx_log_no: undefined }, 'tx_log_no'],
    [{ fee_amount: '1' }, 'fee_amount'],
    [{ occurred_at: '2026-01-01' }, 'occurred_at'],
    [{ occurred_at: '2999-01-01T00:00:00Z' }, 'occurred_at'],
    [{ colour: 'red' }, 'colour'],
  ])('A report with %j is refused with the name of the field', async (change, path) => {
    const { status, body } = await report(aGive(change));
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_request' });
    expect(String((body as Body & { detail: string }).detail)).toContain(path);
  });
});

describe('A report that matches an open operation', () => {
  it('A report that matches an open operation is refused unless it is marked distinct', async () => {
    const id = await lostTransfer(201n);
    const input = aTransfer({ amount: '201' });
    const refused = await report(input);
    expect({ status: refused.status, code: refused.body.code }).toEqual({
      status: 409,
      code: 'matches_open_operation',
    });
    expect(refused.body.candidates).toMatchObject([{ operation_id: id, state: 'unknown' }]);
    const distinct = await report({ ...input, distinct: true });
    expect(distinct.status).toBe(201);
    expect(distinct.body.id).not.toBe(id);
  });

  it.each([
    ['another amount', { amount: '203' }],
    ['another wallet', { to_addr: ADDR_A }],
    ['another day', { occurred_at: '2026-01-02T00:00:00Z' }],
  ])('A report that matches in all but %s is recorded', async (_, change) => {
    await lostTransfer(202n);
    expect((await report(aTransfer({ amount: '202', ...change }))).status).toBe(201);
  });

  it('A report that names an unknown operation resolves it, and the ledger posts it', async () => {
    const id = await lostTransfer(204n);
    const input = aTransfer({ amount: '204', operation_id: id });
    const { status, body } = await report(input);
    expect({ status, id: body.id, state: body.state }).toEqual({
      status: 200,
      id,
      state: 'executed',
    });
    expect(body.tx_log_no).toBe(input.tx_log_no);
    await api.postAll();
    const posted = await api.call('GET', `/api/ledger/transactions?operation_id=${id}`);
    expect(posted.body.data).toMatchObject([{ kind: 'transfer', tx_log_no: input.tx_log_no }]);
    const events = await api.database.owner.sql<{ body: string }[]>`
      select tallyhook.event_body(events) as body from tallyhook.events
      where subject = ${`operation:${id}`} and type = 'operation.resolved'`;
    expect(events.map((event) => JSON.parse(event.body).data)).toMatchObject([
      { outcome: 'executed', supersedes: null, evidence: { report: { by: 'owner of admin' } } },
    ]);
    expect((await report(input)).body.id).toBe(id);
  });

  it('A report adds the number to an operation that was executed without it', async () => {
    const id = await lostTransfer(205n);
    await api.database.db.begin((tx) =>
      api.operations.move(tx, [
        { id, to: 'executed', at: now(), cause: 'evidence', evidence: { basis: 'two_sided' } },
      ]),
    );
    const refused = await report(aTransfer({ amount: '205' }));
    expect(refused.body.code).toBe('matches_open_operation');
    const { body } = await report(aTransfer({ amount: '205', operation_id: id }));
    expect(body).toMatchObject({ id, state: 'executed', tx_app_no: '7' });
    const detail = await api.call('GET', `/api/operations/${id}`);
    expect(detail.body.evidence).toMatchObject({ basis: 'two_sided', report: {} });
  });

  it.each([
    ['it differs', { amount: '207' }, 'conflict'],
    ['there is none', { operation_id: 'op_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b' }, 'not_found'],
  ])('A report that names an operation is refused if %s', async (_, change, code) => {
    const id = await lostTransfer(206n);
    const { body } = await report(
      aTransfer({ amount: '206', operation_id: id, distinct: true, ...change }),
    );
    expect(body.code).toBe(code);
  });

  it('A report that names an operation being sent is refused', async () => {
    const id = await api.record({ fields: { amount: 208n } });
    const { body } = await report(aTransfer({ amount: '208', operation_id: id }));
    expect(body).toMatchObject({ code: 'conflict', operation_id: id });
  });
});

describe('A report from before the opening', () => {
  it('A report from before the opening is posted and leaves the balance unchanged', async () => {
    const wallet = `0x${'5e'.repeat(20)}`;
    const seenAt = now();
    await api.database.db.begin((tx) =>
      requestPosting(
        tx,
        {
          id: openingId(wallet),
          kind: 'opening',
          account: accountOfWallet(wallet),
          counter: 'opening',
          amount: 500n,
          effectiveAt: seenAt,
          requestedBy: 'reconciler',
          effectiveBasis: 'observed',
          seen: { at: seenAt, version: 0n },
        },
        seenAt,
      ),
    );
    await api.postAll();
    const made = await report(aGive({ to_addr: wallet, amount: '30' }));
    expect(made.body.state).toBe('settled');
    await api.postAll();
    const account = accountOfWallet(wallet);
    expect((await balancesOf(api.database.db, [account])).get(account)?.balance).toBe(500n);
    const { body } = await api.call('GET', `/api/ledger/transactions?account=${account}`);
    expect(body.data.map(({ kind }) => kind)).toEqual([
      'opening',
      'give',
      'opening',
      'opening',
      'opening',
    ]);
  });
});

it('A report and an answer with the same number at once are posted once', async () => {
  for (let n = 0; n < 12; n++) {
    const id = await api.record({ fields: { amount: 900n } });
    const number = nextNumber();
    const input = aTransfer({ amount: '900', tx_log_no: String(number), distinct: true });
    await Promise.all([api.operations.conclude(accepted(id, number, now())), report(input)]);
    const rows = await api.database.owner.sql<{ posted: boolean }[]>`
      select in_ledger and not exists (select from tallyhook.due_postings d
        where d.operation_id = id and d.quarantine_reason is not null) as posted
      from tallyhook.operations
      where tx_log_no = ${number.toString()}::numeric`;
    expect(rows.filter(({ posted }) => posted).length).toBe(1);
  }
});
