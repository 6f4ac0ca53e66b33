import { expect, it } from 'vitest';
import { makePreImages } from '../../src/daemon/observations/first-poll.ts';
import { asJson } from '../../src/db/connect.ts';
import type { WriteRoute } from '../../src/gateway/gateway.ts';
import { addressKey, sameAddress } from '../../src/kernel/addresses.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import type { Observer, TargetRef } from '../../src/observer/observer.ts';
import type { Upstream } from '../../src/upstream/upstream.ts';
import { useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';

const database = await useDatabase();

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

interface Given {
  free?: number;
  firstPollMs?: number;
  ownWallets?: string[];
  /** A deadline of polls stands that another daemon received. */
  blocked?: boolean;
  /** Called instead of a poll: others poll. */
  pollElsewhere?: (ref: TargetRef) => Promise<void>;
}

/** A pre-image source whose polls are answered by the test. */
function preImages(settings: Given = {}) {
  const clock = manualClock(AT);
  let free = settings.free ?? 2;
  const polled: string[] = [];
  const added: TargetRef[] = [];
  let answer: (name: string) => Promise<unknown> = async (addr) => ({
    startedAt: AT,
    endedAt: AT + 1,
    result: 'seen',
    raw: null,
    record: { addr, balance: 7n, status: 1 },
  });
  const poll = (name: string) => {
    polled.push(name);
    free -= 1;
    return answer(name);
  };
  const upstream = {
    account: (addr: string) => poll(addr),
    token: (contract: bigint, token: bigint) => poll(`${contract}:${token}`),
    // Two polls per second.
    budget: {
      free: () => free,
      nextAt: () => AT + 500,
      ratePerS: () => 2,
      bounds: () => ({ effective: 2 }),
    },
  } as unknown as Upstream;
  const observer = {
    addForFirstPoll: async (_db: unknown, ref: TargetRef) => {
      added.push(ref);
      await settings.pollElsewhere?.(ref);
      return settings.blocked !== true;
    },
    noteRead: async () => {},
  } as unknown as Observer;
  const preImage = makePreImages({
    db: database.db,
    observer,
    upstream,
    clock,
    pause: clock.pause,
    log: makeLog('silent'),
    isOwnWallet: (addr) => (settings.ownWallets ?? []).some((own) => sameAddress(own, addr)),
    firstPollMs: settings.firstPollMs ?? 5_000,
    polls: settings.pollElsewhere === undefined,
  });
  return {
    polled,
    added,
    preImage,
    clock,
    /** The budget has a free request again. */
    refill() {
      free = 1;
    },
    answers(next: (name: string) => Promise<unknown>) {
      answer = next;
    },
  };
}

async function observedBefore(name: string, record: Record<string, string>) {
  await database.owner.sql`
    insert into tallyhook.targets (name, kind, next_poll_at, added_at, last_record,
      last_started_at)
    values (${name}, ${name.split(':')[0] ?? ''}, now(), now(), ${asJson(record)}::jsonb,
      ${new Date(AT).toISOString()})`;
}

it('A pre-image is the last observation, in any spelling of the address, without a poll', async () => {
  const addr = freshAddr();
  await observedBefore(`wallet:${addressKey(addr)}`, { addr, balance: '5' });
  const { preImage, polled } = preImages();
  const seen = { name: `wallet:${addressKey(addr)}`, at: AT, seen: { addr, balance: '5' } };
  expect(await preImage(give(addr.toUpperCase().replace('X', 'x')))).toEqual({ wallets: [seen] });
  expect(polled).toEqual([]);
});

it('A pre-image of each of many concurrent writes is that of its own wallet', async () => {
  const addrs = Array.from({ length: 50 }, freshAddr);
  for (const addr of addrs) await observedBefore(`wallet:${addressKey(addr)}`, { addr });
  const { preImage } = preImages();
  const found = await Promise.all(addrs.map((addr) => preImage(give(addr))));
  expect(found).toEqual(
    addrs.map((addr) => ({
      wallets: [{ name: `wallet:${addressKey(addr)}`, at: AT, seen: { addr } }],
    })),
  );
});

it('A pre-image of a wallet without an observation is one poll, shared by concurrent writes', async () => {
  const addr = freshAddr();
  const { preImage, polled, added } = preImages();
  const found = await Promise.all([
    preImage(give(addr)),
    preImage(give(addr)),
    preImage(give(addr)),
  ]);
  const record = { addr, balance: 7n, status: 1 };
  for (const one of found)
    expect(one).toEqual({
      wallets: [{ name: `wallet:${addressKey(addr)}`, at: AT, seen: record }],
    });
  expect(polled).toEqual([addr]);
  expect(added).toEqual([{ kind: 'wallet', addr }]);
});

it('A pre-image on a daemon that does not poll is what another daemon observed meanwhile', async () => {
  const addr = freshAddr();
  const { preImage, polled, added, clock } = preImages({
    firstPollMs: 1_000,
    pollElsewhere: () => observedBefore(`wallet:${addressKey(addr)}`, { addr }),
  });
  const found = preImage(give(addr));
  await clock.paused(1, 50);
  clock.advance(50);
  expect(await found).toMatchObject({ wallets: [{ seen: { addr } }] });
  expect(added).toEqual([{ kind: 'wallet', addr }]);
  expect(polled).toEqual([]);
});

it('A pre-image on a daemon that does not poll is empty when none polls in time', async () => {
  const { preImage, polled, clock } = preImages({
    firstPollMs: 50,
    pollElsewhere: async () => {},
  });
  const found = preImage(give(freshAddr()));
  await clock.paused(1, 50);
  clock.advance(50);
  expect(await found).toEqual({ wallets: [] });
  expect(polled).toEqual([]);
});

it('A pre-image of two wallets polls only the one without an observation', async () => {
  const [from, to] = [freshAddr(), freshAddr()];
  await observedBefore(`wallet:${addressKey(from)}`, { addr: from });
  const { preImage, polled } = preImages();
  const found = await preImage(give(to, from));
  expect(found).toMatchObject({ wallets: [{ seen: { addr: from } }, { seen: { addr: to } }] });
  expect(polled).toEqual([to]);
});

it('A pre-image of a token without an observation is one poll of it', async () => {
  const { preImage, polled } = preImages();
  expect(await preImage(burn(4n))).toMatchObject({ token: { balance: 7n }, at: AT });
  expect(polled).toEqual(['1:4']);
  expect(await preImage(burn(null))).toBeNull();
});

it('A pre-image waits until the budget has a free request', async () => {
  const addr = freshAddr();
  const { preImage, polled, clock, refill } = preImages({ free: 0 });
  const found = preImage(give(addr));
  await clock.paused(1, 500);
  expect(polled).toEqual([]);
  refill();
  clock.advance(500);
  expect(await found).toMatchObject({ wallets: [{ seen: { addr } }] });
});

it('A pre-image is empty at once when those that wait use up the budget in time', async () => {
  const { preImage, polled, clock } = preImages({ free: 0, firstPollMs: 1_000 });
  const waiting = [preImage(give(freshAddr())), preImage(give(freshAddr()))];
  await clock.paused(2, 500);
  expect(await preImage(give(freshAddr()))).toEqual({ wallets: [] });
  clock.advance(1_000);
  expect(await Promise.all(waiting)).toEqual([{ wallets: [] }, { wallets: [] }]);
  expect(polled).toEqual([]);
});

it.each([
  ['when the budget has no free request in time', { free: 0, firstPollMs: 400 }],
  ['when first polls are disabled', { firstPollMs: 0 }],
  ['while a deadline stands that another daemon received', { blocked: true }],
])('A pre-image is empty %s', async (_what, settings) => {
  const { preImage, polled } = preImages(settings);
  expect(await preImage(give(freshAddr()))).toEqual({ wallets: [] });
  expect(polled).toEqual([]);
});

it('A pre-image of an operator wallet is not polled', async () => {
  const addr = freshAddr();
  const { preImage, polled } = preImages({ ownWallets: [addr] });
  expect(await preImage(give(addr))).toEqual({ wallets: [] });
  expect(polled).toEqual([]);
});

it('A pre-image is empty when the poll does not end in time', async () => {
  const { preImage, answers, polled } = preImages({ firstPollMs: 20 });
  answers(() => new Promise(() => {}));
  expect(await preImage(give(freshAddr()))).toEqual({ wallets: [] });
  expect(polled).toHaveLength(1);
});

it.each([
  ['absent', { result: 'absent', status: 406, message: '' }],
  ['inconclusive', { result: 'inconclusive', cause: 'error' }],
])(
  'A pre-image of a wallet with an %s poll is empty, and the wallet is not polled again at once',
  async (_what, observation) => {
    const addr = freshAddr();
    const { preImage, answers, polled } = preImages();
    answers(async () => ({ startedAt: AT, endedAt: AT, ...observation }));
    expect(await preImage(give(addr))).toEqual({ wallets: [] });
    expect(await preImage(give(addr))).toEqual({ wallets: [] });
    expect(polled).toHaveLength(1);
  },
);

it('A pre-image of an invalid address is null', async () => {
  const { preImage, polled } = preImages();
  expect(await preImage(give('x'))).toBeNull();
  expect(polled).toEqual([]);
});
