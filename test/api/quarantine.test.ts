/** What is quarantined, and its release by a person. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type PostingRequest, requestPosting } from '../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../src/operations/operations.ts';
import type { Body } from './described.ts';
import { useApi } from './rig.ts';
import { ADDR_A, ADDR_B, accepted, nextNumber } from './writes.ts';

const api = useApi();
let start: number;
beforeAll(() => {
  start = api.deps.clock.now();
});

const list = async (): Promise<Body[]> => (await api.call('GET', '/api/quarantine')).body.data;
const find = async (id: string) => (await list()).find((one) => one.id === id);
const release = (kind: string, id: string, reason = 'the other app confirmed it') =>
  api.call('POST', '/api/quarantine/release', { body: { kind, id, reason } });
const releases = async () => (await api.call('GET', '/api/quarantine/releases')).body.data;
const settle = (id: string) =>
  api.database.db.begin((tx) => {
    const at = api.deps.clock.now();
    return api.operations.move(tx, [{ id, to: 'settled', at, cause: 'observed', settledAt: at }]);
  });

/** An accepted transfer of 100 whose answer has the number of another app, or a used number. */
async function withNumber(cause: 'foreign' | 'repeated'): Promise<string> {
  const conclude = async (txLogNo: bigint, expectedAppNo: bigint) => {
    const answer = accepted(await api.record(), txLogNo, api.deps.clock.now());
    return (await api.operations.conclude({ ...answer, expectedAppNo })).id;
  };
  const number = nextNumber();
  if (cause === 'foreign') return conclude(number, 8n);
  await settle(await conclude(number, 7n));
  return conclude(number, 7n);
}

/** A request that cannot be posted, because its amount is zero. */
async function zeroRequest(id: string): Promise<string> {
  const request: PostingRequest = {
    id,
    kind: 'booking',
    account: accountOfWallet(ADDR_A),
    counter: 'external',
    amount: 0n,
    effectiveAt: start,
    effectiveBasis: 'test',
    requestedBy: 'test',
  };
  const now = api.deps.clock.now();
  await api.database.db.begin((tx) => requestPosting(tx, request, now));
  await api.ledger.runOnce(now);
  return id;
}

/** An observation that no pass can process until the wallets accept rows again. */
async function brokenObservation(addr: string): Promise<string> {
  const { owner } = api.database;
  await owner.sql`alter table tallyhook.wallets rename column verdict to verdict_before`;
  const ref = { kind: 'wallet' as const, addr };
  await api.observer.add(api.database.db, [ref]);
  const startedAt = api.deps.clock.now();
  const times = { startedAt, endedAt: startedAt + 1 };
  const record = { addr, balance: 5n, status: 1 };
  await api.observer.noteRead(ref, { result: 'seen', record, raw: null, ...times });
  for (let pass = 1; pass <= 5; pass++)
    await api.reconciler.runOnce(startedAt + pass * 70_000).catch(() => {});
  await owner.sql`alter table tallyhook.wallets rename column verdict_before to verdict`;
  return `wallet:${addr.toLowerCase()}`;
}

describe('The quarantine', () => {
  it.each([
    ['foreign', 'foreign_tx_app_no'],
    ['repeated', 'repeated_tx_log_no'],
  ] as const)(
    'An operation with a %s number is posted after its release, and is not quarantined again',
    async (cause, reason) => {
      const before = await api.balance(ADDR_B);
      const id = await withNumber(cause);
      const others = cause === 'repeated' ? 100n : 0n;
      expect(await api.balance(ADDR_B)).toBe(before + others);
      expect(await find(id)).toMatchObject({ kind: 'operation', id, reason, amount: '100' });
      const { status, body } = await release('operation', id);
      expect({ status, ...body }).toMatchObject({
        status: 200,
        kind: 'operation',
        id,
        problem: reason,
        released_by: 'owner of admin',
        reason: 'the other app confirmed it',
      });
      await settle(id);
      expect(await api.balance(ADDR_B)).toBe(before + others + 100n);
      expect(await find(id)).toBeUndefined();
      expect((await release('operation', id)).body.code).toBe('not_found');
    },
  );

  it('A posting request that still cannot be posted is quarantined again after its release', async () => {
    const id = await zeroRequest('booking:zero');
    const found = { kind: 'posting_request', id, reason: 'the amount is zero', amount: '0' };
    expect(await find(id)).toMatchObject(found);
    expect((await release('posting_request', id)).status).toBe(200);
    expect(await find(id)).toBeUndefined();
    await api.postAll();
    expect(await find(id)).toMatchObject(found);
  });

  it('A released observation is processed once its cause is corrected', async () => {
    const target = await brokenObservation(ADDR_A);
    expect(await find(target)).toMatchObject({ kind: 'observation', amount: null });
    const status = async () => (await api.call('GET', `/api/wallets/${ADDR_A}`)).status;
    await api.reconciler.runOnce(start + 800_000);
    expect(await status()).toBe(404);
    expect((await release('observation', target)).status).toBe(200);
    await api.reconciler.runOnce(start + 900_000);
    expect(await status()).toBe(200);
    expect(await find(target)).toBeUndefined();
  });

  it('The list is paged, newest first, across the kinds', async () => {
    await withNumber('foreign');
    await zeroRequest('booking:zero again');
    const all = await list();
    expect(new Set(all.map(({ kind }) => kind)).size).toBe(2);
    const since = all.map((one) => String(one.since));
    expect(since).toEqual(since.toSorted().reverse());
    const pages = await api.pagesOf('/api/quarantine?limit=1');
    expect(pages.flatMap(({ data }) => data)).toEqual(all);
  });

  it('What is not quarantined cannot be released', async () => {
    for (const kind of ['operation', 'posting_request', 'observation'])
      expect((await release(kind, 'op_1')).body.code).toBe('not_found');
    expect((await release('wallet', 'op_1')).body.code).toBe('invalid_request');
    expect((await release('operation', 'op_1', '')).body.code).toBe('invalid_request');
  });

  it('Every release stays in the history, newest first', async () => {
    const before = (await releases()).length;
    const id = await withNumber('foreign');
    await release('operation', id, 'first');
    expect(await releases()).toHaveLength(before + 1);
    expect((await releases())[0]).toMatchObject({ id, reason: 'first' });
    await expect(
      api.database.owner.sql`update tallyhook.quarantine_releases set reason = 'other'`,
    ).rejects.toMatchObject({ code: 'TH001' });
    const pages = await api.pagesOf('/api/quarantine/releases?limit=1');
    expect(pages.flatMap(({ data }) => data)).toEqual(await releases());
  });
});
