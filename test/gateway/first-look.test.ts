/** What a write's intent says of before: what was last seen, after one look where nothing was. */
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { makePreImages } from '../../src/daemon/first-poll.ts';
import { asJson } from '../../src/db/connect.ts';
import type { WriteRoute } from '../../src/gateway/gateway.ts';
import { addressKey } from '../../src/kernel/addresses.ts';
import { makeLog } from '../../src/kernel/log.ts';
import type { Observer, TargetRef } from '../../src/observer/observer.ts';
import type { Upstream } from '../../src/upstream/upstream.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

const AT = Date.UTC(2026, 10, 21);
let wallets = 0;
const freshAddr = () => `0xAb${String(wallets++).padStart(38, '0')}`;

const give = (toAddr: string, fromAddr: string | null = null): WriteRoute => ({
  type: 'write',
  host: 'tx',
  kind: fromAddr === null ? 'give' : 'transfer',
  family: 'transaction',
  fields: { fromAddr, toAddr, amount: 1n },
});
const burn = (tokenId: bigint | null): WriteRoute => ({
  type: 'write',
  host: 'base',
  kind: 'burn',
  family: 'nft',
  fields: { contractId: 1n, tokenId },
});

/** A service whose looks are answered when the test says so. */
function polling(wanted: { free?: number; firstPollMs?: number; own?: string[] } = {}) {
  const asked: string[] = [];
  const added: TargetRef[] = [];
  let answer: (addr: string) => Promise<unknown> = async (addr) => ({
    startedAt: AT,
    endedAt: AT + 1,
    result: 'seen',
    raw: null,
    record: { addr, balance: 7n, status: 1 },
  });
  const observation = (name: string) => {
    asked.push(name);
    return answer(name);
  };
  const upstream = {
    account: (addr: string) => observation(addr),
    token: (contract: bigint, token: bigint) => observation(`${contract}:${token}`),
    budget: { free: () => wanted.free ?? 2 },
  } as unknown as Upstream;
  const observer = {
    add: async (_db: unknown, refs: readonly TargetRef[]) => void added.push(...refs),
    noteRead: async () => {},
  } as unknown as Observer;
  const preImage = makePreImages({
    db: database.db,
    observer,
    upstream,
    log: makeLog('silent'),
    ownWallets: new Set((wanted.own ?? []).map(addressKey)),
    firstPollMs: wanted.firstPollMs ?? 5_000,
  });
  return {
    asked,
    added,
    preImage,
    answers(next: (addr: string) => Promise<unknown>) {
      answer = next;
    },
  };
}

async function seenBefore(name: string, record: Record<string, string>) {
  await database.owner.sql`
    insert into tallyhook.targets (name, kind, weight, next_poll_at, added_at, last_seen,
      last_started_at)
    values (${name}, ${name.split(':')[0] ?? ''}, 1, now(), now(), ${asJson(record)}::jsonb,
      ${new Date(AT).toISOString()})`;
}

describe('A pre-image', () => {
  test('Is what was last seen, in any spelling, without another look', async () => {
    const addr = freshAddr();
    await seenBefore(`wallet:${addressKey(addr)}`, { addr, balance: '5' });
    const { preImage, asked } = polling();
    const seen = { name: `wallet:${addressKey(addr)}`, at: AT, seen: { addr, balance: '5' } };
    expect(await preImage(give(addr.toUpperCase().replace('X', 'x')))).toEqual({ wallets: [seen] });
    expect(asked).toEqual([]);
  });

  test('Of many writes at once is asked for together, each gets its own', async () => {
    const addrs = Array.from({ length: 50 }, freshAddr);
    for (const addr of addrs) await seenBefore(`wallet:${addressKey(addr)}`, { addr });
    const { preImage } = polling();
    const told = await Promise.all(addrs.map((addr) => preImage(give(addr))));
    expect(told).toEqual(
      addrs.map((addr) => ({
        wallets: [{ name: `wallet:${addressKey(addr)}`, at: AT, seen: { addr } }],
      })),
    );
  });

  test('Of a wallet that nobody saw is one look, shared by all first writes', async () => {
    const addr = freshAddr();
    const { preImage, asked, added } = polling();
    const told = await Promise.all([
      preImage(give(addr)),
      preImage(give(addr)),
      preImage(give(addr)),
    ]);
    const record = { addr, balance: 7n, status: 1 };
    for (const one of told)
      expect(one).toEqual({
        wallets: [{ name: `wallet:${addressKey(addr)}`, at: AT, seen: record }],
      });
    expect(asked).toEqual([addr]);
    expect(added).toEqual([{ kind: 'wallet', addr }]);
  });

  test('Of two wallets of which one was seen is the one, and a look at the other', async () => {
    const [from, to] = [freshAddr(), freshAddr()];
    await seenBefore(`wallet:${addressKey(from)}`, { addr: from });
    const { preImage, asked } = polling();
    const told = await preImage(give(to, from));
    expect(told).toMatchObject({ wallets: [{ seen: { addr: from } }, { seen: { addr: to } }] });
    expect(asked).toEqual([to]);
  });

  test('Of a token that nobody saw is one look at it', async () => {
    const { preImage, asked } = polling();
    expect(await preImage(burn(4n))).toMatchObject({ token: { balance: 7n }, at: AT });
    expect(asked).toEqual(['1:4']);
    expect(await preImage(burn(null))).toBeNull();
  });

  it.each([
    ['without a free look in the budget', { free: 0 }],
    ['when no look is wanted', { firstPollMs: 0 }],
  ])('Is nothing, and nobody waits, %s', async (_what, wanted) => {
    const { preImage, asked } = polling(wanted);
    expect(await preImage(give(freshAddr()))).toEqual({ wallets: [] });
    expect(asked).toEqual([]);
  });

  test('Of a wallet of our own books needs no look', async () => {
    const addr = freshAddr();
    const { preImage, asked } = polling({ own: [addr] });
    expect(await preImage(give(addr))).toEqual({ wallets: [] });
    expect(asked).toEqual([]);
  });

  test('Does not wait longer than it may', async () => {
    const { preImage, answers, asked } = polling({ firstPollMs: 20 });
    answers(() => new Promise(() => {}));
    expect(await preImage(give(freshAddr()))).toEqual({ wallets: [] });
    expect(asked).toHaveLength(1);
  });

  it.each([
    ['says that there is none', { result: 'absent', status: 406, message: '' }],
    ['says nothing', { result: 'inconclusive', cause: 'error' }],
  ])(
    'Of a wallet whose look %s is nothing, and it is not asked again at once',
    async (_what, observation) => {
      const addr = freshAddr();
      const { preImage, answers, asked } = polling();
      answers(async () => ({ startedAt: AT, endedAt: AT, ...observation }));
      expect(await preImage(give(addr))).toEqual({ wallets: [] });
      expect(await preImage(give(addr))).toEqual({ wallets: [] });
      expect(asked).toHaveLength(1);
    },
  );

  test('Of an address that is none, or of no party, is nothing', async () => {
    const { preImage, asked } = polling();
    expect(await preImage(give('x'))).toBeNull();
    expect(asked).toEqual([]);
  });
});
