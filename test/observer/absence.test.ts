/** An absence is believed while something else that is known to exist is answered. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findListedAt, listObservations, type Observer } from '../../src/observer/observer.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import {
  ADDR,
  accountError,
  closeAll,
  nftError,
  ok,
  token,
  upstreamTo,
  wallet,
} from '../upstream/rig.ts';
import { type Reply, startScripted } from '../upstream/service.ts';
import { observerOf, processAll } from './rig.ts';

const CONTRACT = 3n;
const OTHER = `0x${'cd'.repeat(20)}`;
const GENERIC: Reply = [404, { statusCode: 404, message: 'Cannot GET it', error: 'Not Found' }];
const GONE = nftError(404, 'The token does not exist');
const NOT_FOUND = accountError(406, 398);
const tokenOf = (id: number) => ok({ ...token, token_id: id });
const walletOf = (addr: string) => ok({ ...wallet, token_addr: addr });
const listOf = (...ids: number[]) =>
  ok({
    total: ids.length,
    perPage: 100,
    page: 1,
    lastPage: 1,
    data: ids.map((id) => ({ ...token, token_id: id })),
  });
const LIST = `/v1/chain/erc721/${CONTRACT}/tokens`;
const pathOf = (id: number) => `${LIST}/${id}`;
const account = (addr: string) => `/v1/app/token/account?addr=${addr}`;

let database: TestDatabase;
let clock: ManualClock;
let observer: Observer;
/** How the service answers these paths now. */
let replies: Record<string, Reply>;
beforeEach(async () => {
  database = await createDatabase();
  clock = manualClock();
  replies = {};
  const service = await startScripted(
    ({ url }) => replies[url] ?? replies[url.split('?')[0] ?? ''] ?? GENERIC,
  );
  const { upstream } = await upstreamTo(service.origin, clock);
  observer = observerOf(database.db, clock, upstream, 1, { minGapMs: 1_000, steadyMs: 10_000 });
});
afterEach(async () => {
  await closeAll();
  await database.drop();
});

async function pass(seconds: number) {
  for (let n = 0; n < seconds; n++) {
    clock.advance(1_000);
    await observer.runOnce(clock.now());
    await processAll(database);
  }
}
const resultsOf = async (name: string) => {
  const found = await listObservations(database.db, name, 10);
  return found.map(({ result, cause }) => (result === 'inconclusive' ? cause : result));
};

describe('A token that is refused by its name is', () => {
  it.each<[string, string, Record<string, Reply>]>([
    ['absent', 'another one is answered', { [pathOf(2)]: tokenOf(2) }],
    ['unconfirmed', 'another one is not found as a path', { [pathOf(2)]: GENERIC }],
    ['unconfirmed', 'another one fails', { [pathOf(2)]: [500, ''], [LIST]: listOf(2) }],
    [
      'absent',
      'the others are gone too, and the list is empty',
      { [pathOf(2)]: GONE, [LIST]: listOf() },
    ],
    [
      'unconfirmed',
      'the others are gone too, and the list shows it',
      { [pathOf(2)]: GONE, [LIST]: listOf(1) },
    ],
    ['unconfirmed', 'the others are gone too, and the list fails', { [pathOf(2)]: GONE }],
  ])('%s while %s', async (result, _title, answers) => {
    Object.assign(replies, { [pathOf(1)]: tokenOf(1), [pathOf(2)]: tokenOf(2) });
    const both = [1n, 2n].map((tokenId) => ({
      kind: 'token' as const,
      contractId: CONTRACT,
      tokenId,
    }));
    await observer.watch(both, 'ops');
    await pass(3);
    Object.assign(replies, { [pathOf(1)]: GONE }, answers);
    await pass(15);
    expect(await resultsOf('token:3:1')).toEqual([result, 'seen']);
  });

  it.each<[string, string, Reply]>([
    ['absent', 'its list is answered without it', listOf()],
    ['unconfirmed', 'its list is answered with it', listOf(1)],
    ['unconfirmed', 'its list is not found as a path', GENERIC],
  ])('%s if no other is known and %s', async (result, _title, list) => {
    Object.assign(replies, { [pathOf(1)]: GONE, [LIST]: list });
    await observer.add(database.db, [{ kind: 'token', contractId: CONTRACT, tokenId: 1n }]);
    await pass(1);
    expect(await resultsOf('token:3:1')).toEqual([result]);
  });
});

describe('A wallet that is not found is', () => {
  it.each<[string, string, string[], Reply]>([
    ['absent', 'another one is answered', [OTHER], walletOf(OTHER)],
    ['unconfirmed', 'another one is not found as a path', [OTHER], GENERIC],
    ['unconfirmed', 'all others are not found either', [OTHER], NOT_FOUND],
    ['absent', 'no other is known', [], GENERIC],
  ])('%s while %s', async (result, _title, others, reply) => {
    Object.assign(replies, { [account(ADDR)]: walletOf(ADDR), [account(OTHER)]: walletOf(OTHER) });
    const wallets = [ADDR, ...others].map((addr) => ({ kind: 'wallet' as const, addr }));
    await observer.watch(wallets, 'ops');
    await pass(3);
    Object.assign(replies, { [account(ADDR)]: NOT_FOUND, [account(OTHER)]: reply });
    await pass(15);
    expect((await resultsOf(`wallet:${ADDR.toLowerCase()}`)).slice(0, 2)).toEqual([result, 'seen']);
  });
});

describe('A list without tokens', () => {
  const watch = () => observer.watch([{ kind: 'contract', contractId: CONTRACT }], 'ops');

  it('is not the whole list of its contract when it is read once', async () => {
    replies[LIST] = listOf();
    await watch();
    await pass(1);
    expect(await findListedAt(database.db, CONTRACT)).toBeUndefined();
    replies[LIST] = listOf(1, 2);
    await pass(15);
    const [first] = await listObservations(database.db, 'token:3:1', 1);
    expect(await findListedAt(database.db, CONTRACT)).toBeGreaterThanOrEqual(first?.endedAt ?? 0);
  });

  it('is the whole list of its contract when it is read twice', async () => {
    replies[LIST] = listOf();
    await watch();
    await pass(30);
    expect(await findListedAt(database.db, CONTRACT)).toBeDefined();
  });

  it('says nothing while the list of another contract is not answered', async () => {
    await putToken(4n);
    replies[LIST] = listOf();
    await watch();
    await pass(30);
    expect(await findListedAt(database.db, CONTRACT)).toBeUndefined();
    const one = { ...token, contract_id: 4 };
    const page = { total: 9, perPage: 1, page: 1, lastPage: 9, data: [one] };
    replies['/v1/chain/erc721/4/tokens'] = ok(page);
    await pass(300);
    expect(await findListedAt(database.db, CONTRACT)).toBeDefined();
  });

  it('says nothing while a token of it is known to exist, which is polled by itself', async () => {
    Object.assign(replies, { [pathOf(9)]: tokenOf(9), [LIST]: listOf() });
    await putToken(CONTRACT);
    await observer.add(database.db, [{ kind: 'token', contractId: CONTRACT, tokenId: 9n }]);
    await watch();
    await pass(30);
    expect(await findListedAt(database.db, CONTRACT)).toBeUndefined();
    expect(await resultsOf('token:3:9')).toEqual(['seen']);
  });
});

/** The reconciler knows of token 9 of this contract. */
async function putToken(contractId: bigint) {
  await database.owner.sql`
    insert into tallyhook.tokens (contract_id, token_id, observed_at, presence, creator)
    values (${contractId.toString()}::numeric, 9, now(), 'present', ${ADDR})`;
}
