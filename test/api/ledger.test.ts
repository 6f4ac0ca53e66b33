/** Wallets, tokens, the ledger and drifts through the API, as the stages leave them. */
import { beforeAll, describe, expect, it } from 'vitest';
import { observe, pollWallet } from './polls.ts';
import { useApi } from './rig.ts';
import { ADDR_A, ADDR_B, accepted, answerLost, HASH } from './writes.ts';

const HUGE = 9_007_199_254_740_993_000n;
const api = useApi();

beforeAll(async () => {
  await pollWallet(api, ADDR_A, HUGE);
  await pollWallet(api, ADDR_B, 500n);
});

describe('A wallet', () => {
  it('A wallet shows posted, in-flight and unknown amounts with all digits', async () => {
    const paid = await api.record();
    await api.operations.conclude(accepted(paid, HUGE, api.deps.clock.now()));
    const unposted = await api.call('GET', `/api/wallets/${ADDR_A}`);
    expect(unposted.body).toMatchObject({ ledger_balance: `${HUGE}`, unposted: '-101' });
    await api.postAll();
    await api.operations.conclude(answerLost(await api.record(), api.deps.clock.now()));
    await api.record({ fields: { fromAddr: ADDR_B, toAddr: ADDR_A, amount: 7n, feeAmount: 0n } });
    const { body } = await api.call(
      'GET',
      `/api/wallets/${ADDR_A.toUpperCase().replace('0X', '0x')}`,
    );
    expect(body).toMatchObject({
      addr: ADDR_A,
      ledger_balance: `${HUGE - 101n}`,
      unposted: '0',
      in_flight: '7',
      unknown: '-101',
      best_case: `${HUGE - 101n + 7n}`,
      worst_case: `${HUGE - 202n}`,
      observed_balance: `${HUGE}`,
      drift: '0',
    });
  });

  it('A wallet has the same amounts in finance_v1', async () => {
    const { body } = await api.call('GET', '/api/wallets');
    const rows = await api.database.db.sql<Record<string, bigint>[]>`
      select ledger_balance, unposted, in_flight, unknown, best_case, worst_case, drift
      from finance_v1.wallet_positions where status is not null order by lower(addr)`;
    expect(rows.length).toBe(2);
    for (const [n, row] of rows.entries())
      for (const [column, value] of Object.entries(row)) {
        const field = column.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
        expect({ [field]: body.data[n]?.[field] }).toEqual({ [field]: String(value) });
      }
  });

  it('A wallet has a statement of its entries and a list of its observations', async () => {
    const statement = await api.call('GET', `/api/wallets/${ADDR_A}/statement`);
    expect(statement.body.data.map((line) => [line.kind, line.amount, line.balance_after])).toEqual(
      [
        ['transfer', '-101', `${HUGE - 101n}`],
        ['opening', `${HUGE}`, `${HUGE}`],
      ],
    );
    const first = await api.call('GET', `/api/wallets/${ADDR_A}/statement?limit=1`);
    const second = await api.call(
      'GET',
      `/api/wallets/${ADDR_A}/statement?limit=1&cursor=${first.body.next_cursor}`,
    );
    expect(second.body.data.map((line) => line.kind)).toEqual(['opening']);
    const observations = await api.call('GET', `/api/wallets/${ADDR_A}/observations`);
    expect(observations.body.data).toMatchObject([
      { result: 'seen', balance: `${HUGE}`, status: '1' },
    ]);
  });

  it.each(['', '/statement', '/observations'])(
    'An unobserved wallet is not found%s',
    async (path) => {
      for (const addr of [`0x${'00'.repeat(20)}`, '0x1', '%00'])
        expect((await api.call('GET', `/api/wallets/${addr}${path}`)).status).toBe(404);
    },
  );
});

describe('The ledger', () => {
  it('The entries of every listed transaction sum to zero', async () => {
    const { body } = await api.call('GET', '/api/ledger/transactions');
    expect(body.data.length).toBe(3);
    for (const { entries } of body.data) {
      const amounts = (entries as { amount: string }[]).map(({ amount }) => BigInt(amount));
      expect(amounts.reduce((a, b) => a + b)).toBe(0n);
    }
    const accounts = await api.call('GET', '/api/ledger/accounts?limit=500');
    expect(accounts.body.data.map(({ account }) => account)).toContain(`wallet:${ADDR_A}`);
    const own = await api.call('GET', `/api/ledger/transactions?account=wallet:${ADDR_B}`);
    expect(own.body.data.map(({ kind }) => kind)).toEqual(['transfer', 'opening']);
  });

  it('The trial balance has equal totals on every page and at every time', async () => {
    const pages = await api.pagesOf('/api/ledger/trial-balance?limit=1');
    for (const { debit, credit } of pages) expect(debit).toBe(credit);
    const seen = pages.flatMap(({ data }) => data.map(({ account }) => account));
    expect(new Set(seen)).toEqual(
      new Set(['fees', 'opening', `wallet:${ADDR_A}`, `wallet:${ADDR_B}`]),
    );
    const before = await api.call('GET', '/api/ledger/trial-balance?known_at=2000-01-01T00:00:00Z');
    expect(before.body).toMatchObject({ debit: '0', credit: '0', data: [], next_cursor: null });
  });
});

describe('A drift', () => {
  it('A confirmed drift is listed with its history', async () => {
    const addr = `0x${'77'.repeat(20)}`;
    for (const balance of [500n, 750n, 750n]) await pollWallet(api, addr, balance);
    const { body } = await api.call('GET', `/api/drifts?state=open&addr=${addr}`);
    expect(body.data).toMatchObject([{ addr, amount: '250', state: 'open', closed_at: null }]);
    const found = await api.call('GET', `/api/drifts/${body.data[0]?.id}`);
    expect(found.body.actions).not.toEqual([]);
    expect((await api.call('GET', `/api/wallets/${addr}`)).body.drift).toBe('250');
    expect((await api.call('GET', '/api/status')).body.open).toMatchObject({ drifts: 1 });
    const ended = await api.call('GET', '/api/drifts?ended_since=2020-01-01T00:00:00Z');
    expect(ended.body.data).toEqual([]);
  });
});

describe('A token', () => {
  it('A token shows its state and its movements', async () => {
    const token = { contractId: HUGE, tokenId: 34n };
    const id = await api.record({
      kind: 'set_extra_data',
      fields: { fromAddr: null, toAddr: null, amount: null, feeAmount: null, ...token },
    });
    const outcome = { class: 'accepted' as const, txHash: HASH } as never;
    const endedAt = api.deps.clock.now();
    await api.operations.conclude({ operationId: id, outcome, answer: undefined, endedAt });
    await observe(api, 'token', `token:${HUGE}:34`, {
      ...token,
      owner: ADDR_A,
      uri: 'u',
      metaData: 'm',
      extraData: 'x',
      creator: ADDR_B,
      createdAtText: '',
      ownedAtText: '',
      locked: false,
      status: 1,
      lastTxHash: HASH,
    });
    const path = `/api/tokens/${HUGE}`;
    expect((await api.call('GET', path)).body.data).toMatchObject([{ token_id: '34' }]);
    const found = await api.call('GET', `${path}/34`);
    expect(found.body).toMatchObject({ contract_id: `${HUGE}`, owner: ADDR_A, extra_data: 'x' });
    const history = await api.call('GET', `${path}/34/history`);
    // The ledger did not know the token, so it opened it first.
    expect(history.body.data).toMatchObject([
      { kind: 'data_change', operation_id: id },
      { kind: 'opening', operation_id: null },
    ]);
    for (const missing of [`${path}/35`, `${path}/x`, `${path}/35/history`, '/api/tokens/01/1'])
      expect((await api.call('GET', missing)).status).toBe(404);
  });
});
