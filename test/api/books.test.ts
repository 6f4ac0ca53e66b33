/** Wallets, tokens, the ledger and drifts through the API, as the stages leave them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asJson } from '../../src/db/connect.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { openApi, type TestApi } from './harness.ts';
import { ADDR_A, ADDR_B, accepted, aWrite, HASH, lost } from './writes.ts';

const HUGE = 9_007_199_254_740_993_000n;
let database: TestDatabase;
let api: TestApi;

/** A finished look, judged at once by the reconciler, and everything posted that follows. */
async function observation(
  kind: 'wallet' | 'token',
  object: string,
  record: object,
): Promise<void> {
  const at = isoText(api.deps.clock.now());
  await database.db.sql`
    insert into tallyhook.targets (name, kind, next_poll_at, added_at)
    values (${object}, ${kind}, ${at}, ${at}) on conflict do nothing`;
  await database.db.sql`
    insert into tallyhook.observations (id, target, kind, started_at, ended_at, result, record)
    values (${api.ids.next('obs')}, ${object}, ${kind}, ${at}, ${at}, 'seen',
      ${asJson(record)}::jsonb)`;
  await api.reconciler.runOnce(api.deps.clock.now());
  await post();
}

async function post(): Promise<void> {
  while ((await api.ledger.runOnce(api.deps.clock.now())).posted > 0);
}

const pollWallet = (addr: string, balance: bigint) =>
  observation('wallet', `wallet:${addr.toLowerCase()}`, { addr, balance, status: 1 });

async function recorded(change: Parameters<typeof aWrite>[0] = {}): Promise<string> {
  const made = await api.operations.record(aWrite(change));
  if (!('id' in made)) throw new Error('the key is held');
  return made.id;
}

beforeAll(async () => {
  database = await createDatabase();
  api = await openApi(database.db);
  await pollWallet(ADDR_A, HUGE);
  await pollWallet(ADDR_B, 500n);
});
afterAll(() => database.drop());

describe('A wallet', () => {
  test('shows what is posted, unknown, and the best and worst of it, digit by digit', async () => {
    const paid = await recorded();
    await api.operations.conclude(accepted(paid, HUGE, api.deps.clock.now()));
    const unposted = await api.ask('GET', `/api/wallets/${ADDR_A}`);
    expect(unposted.body).toMatchObject({ ledger_balance: `${HUGE}`, unposted: '-101' });
    await post();
    await api.operations.conclude(lost(await recorded(), api.deps.clock.now()));
    await recorded({ fields: { fromAddr: ADDR_B, toAddr: ADDR_A, amount: 7n, feeAmount: 0n } });
    const { body } = await api.ask(
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

  test('is the same in finance_v1', async () => {
    const { body } = await api.ask('GET', '/api/wallets');
    const rows = await database.db.sql<Record<string, bigint>[]>`
      select ledger_balance, unposted, in_flight, unknown, best_case, worst_case, drift
      from finance_v1.wallet_positions where status is not null order by lower(addr)`;
    expect(rows.length).toBe(2);
    for (const [n, row] of rows.entries())
      for (const [column, value] of Object.entries(row)) {
        const field = column.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
        expect({ [field]: body.data[n]?.[field] }).toEqual({ [field]: String(value) });
      }
  });

  test('has a statement of its entries, and the looks at it', async () => {
    const statement = await api.ask('GET', `/api/wallets/${ADDR_A}/statement`);
    expect(statement.body.data.map((line) => [line.kind, line.amount, line.balance_after])).toEqual(
      [
        ['transfer', '-101', `${HUGE - 101n}`],
        ['opening', `${HUGE}`, `${HUGE}`],
      ],
    );
    const first = await api.ask('GET', `/api/wallets/${ADDR_A}/statement?limit=1`);
    const second = await api.ask(
      'GET',
      `/api/wallets/${ADDR_A}/statement?limit=1&cursor=${first.body.next_cursor}`,
    );
    expect(second.body.data.map((line) => line.kind)).toEqual(['opening']);
    const observations = await api.ask('GET', `/api/wallets/${ADDR_A}/observations`);
    expect(observations.body.data).toMatchObject([
      { result: 'seen', balance: `${HUGE}`, status: '1' },
    ]);
  });

  test.each(['', '/statement', '/observations'])('that nobody saw is not found%s', async (path) => {
    for (const addr of [`0x${'00'.repeat(20)}`, '0x1', '%00'])
      expect((await api.ask('GET', `/api/wallets/${addr}${path}`)).status).toBe(404);
  });
});

describe('The ledger', () => {
  test('lists accounts and transactions whose entries sum to zero', async () => {
    const { body } = await api.ask('GET', '/api/ledger/transactions');
    expect(body.data.length).toBe(3);
    for (const { entries } of body.data) {
      const amounts = (entries as { amount: string }[]).map(({ amount }) => BigInt(amount));
      expect(amounts.reduce((a, b) => a + b)).toBe(0n);
    }
    const accounts = await api.ask('GET', '/api/ledger/accounts?limit=500');
    expect(accounts.body.data.map(({ account }) => account)).toContain(`wallet:${ADDR_A}`);
    const own = await api.ask('GET', `/api/ledger/transactions?account=wallet:${ADDR_B}`);
    expect(own.body.data.map(({ kind }) => kind)).toEqual(['transfer', 'opening']);
  });

  test('balances on every page of the trial balance, now and then', async () => {
    const seen: unknown[] = [];
    let cursor = '';
    do {
      const { body } = await api.ask('GET', `/api/ledger/trial-balance?limit=1${cursor}`);
      expect(body.debit).toBe(body.credit);
      seen.push(...body.data.map(({ account }) => account));
      cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`;
    } while (cursor !== '');
    expect(new Set(seen)).toEqual(
      new Set(['fees', 'opening', `wallet:${ADDR_A}`, `wallet:${ADDR_B}`]),
    );
    const before = await api.ask('GET', '/api/ledger/trial-balance?known_at=2000-01-01T00:00:00Z');
    expect(before.body).toMatchObject({ debit: '0', credit: '0', data: [], next_cursor: null });
  });
});

describe('A drift', () => {
  test('is listed once it is confirmed, with its history', async () => {
    const addr = `0x${'77'.repeat(20)}`;
    for (const balance of [500n, 750n, 750n]) await pollWallet(addr, balance);
    const { body } = await api.ask('GET', `/api/drifts?state=open&addr=${addr}`);
    expect(body.data).toMatchObject([{ addr, amount: '250', state: 'open', closed_at: null }]);
    const found = await api.ask('GET', `/api/drifts/${body.data[0]?.id}`);
    expect(found.body.actions).not.toEqual([]);
    expect((await api.ask('GET', `/api/wallets/${addr}`)).body.drift).toBe('250');
    expect((await api.ask('GET', '/api/status')).body.open).toMatchObject({ drifts: 1 });
  });
});

describe('A token', () => {
  test('shows its state, and what happened to it', async () => {
    const token = { contractId: HUGE, tokenId: 34n };
    const id = await recorded({
      kind: 'set_extra_data',
      fields: { fromAddr: null, toAddr: null, amount: null, feeAmount: null, ...token },
    });
    const outcome = { class: 'accepted' as const, txHash: HASH } as never;
    const endedAt = api.deps.clock.now();
    await api.operations.conclude({ operationId: id, outcome, answer: undefined, endedAt });
    await observation('token', `token:${HUGE}:34`, {
      ...token,
      ...{ owner: ADDR_A, uri: 'u', metaData: 'm', extraData: 'x', creator: ADDR_B },
      ...{ createdAtText: '', ownedAtText: '', locked: false, status: 1, lastTxHash: HASH },
    });
    const path = `/api/tokens/${HUGE}`;
    expect((await api.ask('GET', path)).body.data).toMatchObject([{ token_id: '34' }]);
    const found = await api.ask('GET', `${path}/34`);
    expect(found.body).toMatchObject({ contract_id: `${HUGE}`, owner: ADDR_A, extra_data: 'x' });
    const history = await api.ask('GET', `${path}/34/history`);
    expect(history.body.data).toMatchObject([{ kind: 'data_change', operation_id: id }]);
    for (const missing of [`${path}/35`, `${path}/x`, `${path}/35/history`, '/api/tokens/01/1'])
      expect((await api.ask('GET', missing)).status).toBe(404);
  });
});
