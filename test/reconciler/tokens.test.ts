import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Json } from '../../src/kernel/json.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { freshAddr, type House, openHouse } from './house.ts';

let database: TestDatabase;
let house: House;
beforeAll(async () => {
  database = await createDatabase();
  house = await openHouse(database.db);
});
afterAll(() => database.drop());

const CONTRACT = 5n;
let tokens = 0n;
let hashes = 0;
const freshHash = () => `0x${String(++hashes).padStart(64, '0')}`;

/** One token of its own, with what is done to it and seen of it. */
function story() {
  const tokenId = ++tokens;
  const [owner, other] = [freshAddr(), freshAddr()];
  const ref = { kind: 'token', contractId: CONTRACT, tokenId } as const;
  const first = freshHash();
  let record = {
    ...{ owner, creator: freshAddr(), uri: 'ipfs://one', metaData: '', extraData: '' },
    ...{ status: 1, locked: false, lastTxHash: first },
    ...{ createdAtText: '2026-01-01 00:00:00', ownedAtText: '2026-01-01 00:00:00' },
  };
  const image = () => ({ token: { ...record } }) as Json;
  const fields = { contractId: CONTRACT, tokenId };
  return {
    ...{ ref, owner, other, first, image },
    subject: `token:${CONTRACT}:${tokenId}`,
    /** A look that sees it, changed as named from how it was seen last. */
    async sees(change: Partial<typeof record> = {}, afterMs = 2_000) {
      record = { ...record, ...change };
      house.clock.advance(afterMs);
      await house.put(ref, 'seen', { contractId: CONTRACT, tokenId, ...record });
      await house.judge();
    },
    async misses(afterMs = 2_000) {
      house.clock.advance(afterMs);
      await house.put(ref, 'absent', null);
      await house.judge();
    },
    mint: (preImage: Json = null) =>
      house.send('mint', { ...fields, toAddr: owner, tokenUri: 'ipfs://one' }, preImage),
    burn: (preImage: Json = null) => house.send('burn', fields, preImage),
    transfer: (preImage: Json = null) =>
      house.send('transfer_from', { ...fields, fromAddr: owner, toAddr: other }, preImage),
    setData: (extraData: string, preImage: Json = null) =>
      house.send('set_extra_data', { ...fields, extraData }, preImage),
    dueInMs: () => house.dueInMs(ref),
  };
}

const typesOf = async (subject: string) => (await house.events(subject)).map(({ type }) => type);
const calm = () => house.clock.advance(36_000);

describe('A mint', () => {
  it('Is minted when it is first seen, changes its status, and settles when it is complete', async () => {
    const token = story();
    const id = await token.mint();
    const hash = freshHash();
    await house.acceptHash(id, hash);
    await token.sees({ status: 0, lastTxHash: hash }, 100);
    expect(await house.stateOf(id)).toBe('accepted');
    expect(await token.dueInMs()).toBeLessThanOrEqual(1_000);
    await token.sees({ status: 2 });
    await token.sees({ status: 1 });
    expect(await house.stateOf(id)).toBe('settled');
    const events = await house.events(token.subject);
    expect(events.map(({ type }) => type)).toEqual([
      'token.minted',
      'token.status_changed',
      'token.status_changed',
    ]);
    expect(events.map(({ data }) => data.cause)).toEqual([id, id, id]);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    await house.post();
    const moves = await database.db.sql`
      select kind from tallyhook.nft_movements where operation_id = ${id}`;
    expect(moves).toMatchObject([{ kind: 'mint' }]);
  });

  it('That the chain fails is failed', async () => {
    const token = story();
    const id = await token.mint();
    await house.acceptHash(id, freshHash());
    await token.sees({ status: 3, lastTxHash: (await house.operation(id))?.txHash ?? '' });
    expect(await house.stateOf(id)).toBe('failed');
  });

  it('That is not there yet after its answer is not failed, and settles later', async () => {
    const token = story();
    const id = await token.mint();
    const hash = freshHash();
    await house.acceptHash(id, hash);
    for (let i = 0; i < 3; i++) await token.misses(100);
    expect(await house.stateOf(id)).toBe('accepted');
    await token.sees({ lastTxHash: hash });
    expect(await house.stateOf(id)).toBe('settled');
    expect(await typesOf(token.subject)).toEqual(['token.minted']);
  });

  it('That was refused does not make a foreign token ours', async () => {
    const token = story();
    const id = await token.mint();
    await house.conclude(id, { class: 'rejected', status: 422, code: '422', message: 'taken' });
    await token.sees();
    expect(await typesOf(token.subject)).toEqual([]);
  });
});

describe('A token', () => {
  it('Tells each change made elsewhere, with an outside cause', async () => {
    const token = story();
    await token.sees();
    await token.sees({ owner: token.other, lastTxHash: freshHash() });
    await token.sees({ locked: true });
    await token.sees({ locked: false, extraData: '{"a":1}', lastTxHash: freshHash() });
    const events = await house.events(token.subject);
    expect(events.map(({ type, data }) => [type, data.cause])).toEqual([
      ['token.transferred', 'external'],
      ['token.locked', 'external'],
      ['token.unlocked', 'external'],
      ['token.extra_data_changed', 'external'],
    ]);
  });

  it('Is gone only when two looks in a row say so', async () => {
    const token = story();
    await token.sees();
    await token.misses();
    expect(await token.dueInMs()).toBe(1_000);
    await token.sees();
    await token.misses();
    expect(await typesOf(token.subject)).toEqual([]);
    await token.misses();
    await token.misses();
    expect(await typesOf(token.subject)).toEqual(['token.burned']);
  });

  it('That was gone and is there again is minted', async () => {
    const token = story();
    await token.sees();
    await token.misses();
    await token.misses();
    await token.sees({ lastTxHash: freshHash() });
    expect(await typesOf(token.subject)).toEqual(['token.burned', 'token.minted']);
  });

  it('That stays pending by no write of ours is looked at less and less often', async () => {
    const token = story();
    const gaps: number[] = [];
    for (let i = 0; i < 24; i++) {
      await token.sees({ status: 0 }, Math.max(1_000, gaps.at(-1) ?? 0));
      gaps.push(await token.dueInMs());
    }
    expect(gaps[0]).toBe(1_000);
    expect(gaps.at(-1)).toBeGreaterThan(10_000);
  });

  it('Seen by a look that began earlier than the newest one changes nothing', async () => {
    const token = story();
    await token.sees();
    await token.sees({ owner: token.other });
    const [row] = await database.db.sql<{ id: string }[]>`
      select id from tallyhook.looks where object = ${token.subject} order by started_at limit 1`;
    const before = await typesOf(token.subject);
    await database.owner
      .sql`update tallyhook.looks set judged_at = null where id = ${row?.id ?? ''}`;
    await house.judge();
    expect(await typesOf(token.subject)).toEqual(before);
  });
});

describe('A burn', () => {
  it('Settles when the token is gone, and tells which burn it was', async () => {
    const token = story();
    await token.sees();
    const id = await token.burn(token.image());
    await house.acceptHash(id, freshHash());
    await token.misses();
    expect(await house.stateOf(id)).toBe('accepted');
    await token.misses();
    expect(await house.stateOf(id)).toBe('settled');
    expect((await house.events(token.subject)).at(-1)?.data.cause).toBe(id);
  });

  it('Of a token that cannot be read yet does not settle within the read lag', async () => {
    const token = story();
    await token.misses(100);
    const id = await token.burn();
    await house.acceptHash(id, freshHash());
    await token.misses(100);
    await token.misses(100);
    expect(await house.stateOf(id)).toBe('accepted');
    await token.misses();
    expect(await house.stateOf(id)).toBe('settled');
  });

  it('That the token outlives is failed', async () => {
    const token = story();
    await token.sees();
    const id = await token.burn(token.image());
    await house.acceptHash(id, freshHash());
    await token.sees({ lastTxHash: freshHash(), owner: token.other });
    expect(await house.stateOf(id)).toBe('failed');
  });
});

describe('A lost write on a token', () => {
  it('A mint is executed when two looks see the token as asked, and takes its hash', async () => {
    const token = story();
    const id = await token.mint();
    await house.lose(id);
    const hash = freshHash();
    await token.sees({ status: 0, lastTxHash: hash });
    await token.sees({ status: 2 });
    expect(await house.operation(id)).toMatchObject({ state: 'executed', txHash: hash });
    await token.sees({ status: 1 });
    expect(await house.stateOf(id)).toBe('settled');
  });

  it('A mint is not executed when there is no token after quiescence', async () => {
    const token = story();
    const id = await token.mint();
    await house.lose(id);
    for (let i = 0; i < 4; i++) await token.misses();
    expect(await house.stateOf(id)).toBe('unknown');
    calm();
    await token.misses();
    expect(await house.stateOf(id)).toBe('unknown');
    await token.misses();
    expect(await house.stateOf(id)).toBe('not_executed');
  });

  it('A mint of a token that was seen meanwhile is not called not executed', async () => {
    const token = story();
    const id = await token.mint();
    await house.lose(id);
    calm();
    await token.sees({ owner: token.other, lastTxHash: freshHash() });
    for (let i = 0; i < 3; i++) await token.misses();
    expect(await house.stateOf(id)).toBe('unknown');
  });

  it('A mint of a token that a later burn found is not called not executed', async () => {
    const token = story();
    const id = await token.mint();
    await house.lose(id);
    calm();
    const burn = await token.burn();
    await house.acceptHash(burn, freshHash());
    for (let i = 0; i < 3; i++) await token.misses();
    expect(await house.stateOf(burn)).toBe('settled');
    expect(await house.stateOf(id)).toBe('unknown');
  });

  it('A mint that was seen as asked and is gone when all is quiet is given to people', async () => {
    const token = story();
    const id = await token.mint();
    await house.lose(id);
    await token.sees({ status: 2 });
    calm();
    for (let i = 0; i < 3; i++) await token.misses();
    expect(['unknown', 'undecided']).toContain(await house.stateOf(id));
  });

  it('A burn beside one that was answered is not called executed', async () => {
    const token = story();
    await token.sees();
    const answered = await token.burn(token.image());
    await house.acceptHash(answered, freshHash());
    const lost = await token.burn(token.image());
    await house.lose(lost);
    for (let i = 0; i < 4; i++) await token.misses();
    expect(await house.stateOf(answered)).toBe('settled');
    expect(await house.stateOf(lost)).toBe('unknown');
  });

  it('A mint is executed where a failed mint had left the number', async () => {
    const token = story();
    await token.sees({ status: 3 });
    const id = await token.mint(token.image());
    await house.lose(id);
    calm();
    await token.sees({ status: 1, lastTxHash: freshHash() });
    await token.sees();
    expect(await house.stateOf(id)).toBe('executed');
  });

  it('A transfer is executed when the new owner shows under a new hash', async () => {
    const token = story();
    await token.sees();
    const id = await token.transfer(token.image());
    await house.lose(id);
    await token.sees({ status: 0, lastTxHash: freshHash() });
    await token.sees({ status: 1, owner: token.other });
    await token.sees();
    expect(['executed', 'settled']).toContain(await house.stateOf(id));
  });

  it('A transfer is not executed when the token did not change', async () => {
    const token = story();
    await token.sees();
    const id = await token.transfer(token.image());
    await house.lose(id);
    await token.sees();
    await token.sees();
    expect(await house.stateOf(id)).toBe('unknown');
    calm();
    await token.sees();
    await token.sees();
    expect(await house.stateOf(id)).toBe('not_executed');
  });

  it('A transfer after another write of ours that shows is not executed', async () => {
    const token = story();
    await token.sees();
    const image = token.image();
    const data = await token.setData('{}', image);
    const hash = freshHash();
    await house.acceptHash(data, hash);
    const id = await token.transfer(image);
    await house.lose(id);
    calm();
    await token.sees({ extraData: '{}', lastTxHash: hash });
    await token.sees();
    expect(await house.stateOf(id)).toBe('not_executed');
    expect(await house.stateOf(data)).toBe('settled');
  });

  it('A look that began before it was sent says nothing of it', async () => {
    const token = story();
    await token.sees();
    const image = token.image();
    house.clock.advance(1_000);
    await house.put(token.ref, 'seen', {
      ...{ contractId: CONTRACT, tokenId: token.ref.tokenId, owner: token.other, status: 1 },
      ...{ uri: 'ipfs://one', lastTxHash: freshHash(), locked: false },
    });
    const id = await token.transfer(image);
    await house.lose(id);
    await house.judge();
    const rows = await database.db.sql`
      select outcome from tallyhook.candidates where operation_id = ${id}`;
    expect(rows).toEqual([]);
  });

  it('A burn is executed when the token is gone, and not for a token never seen', async () => {
    const [there, never] = [story(), story()];
    await there.sees();
    const burnt = await there.burn(there.image());
    const unseen = await never.burn();
    for (const id of [burnt, unseen]) await house.lose(id);
    for (const token of [there, never]) for (let i = 0; i < 3; i++) await token.misses();
    expect(['executed', 'settled']).toContain(await house.stateOf(burnt));
    expect(await house.stateOf(unseen)).toBe('unknown');
  });

  it('Two of one kind on one token are given to people', async () => {
    const token = story();
    await token.sees();
    const ids = [await token.transfer(token.image()), await token.transfer(token.image())];
    for (const id of ids) await house.lose(id);
    await token.sees({ owner: token.other, lastTxHash: freshHash() });
    await token.sees();
    house.clock.advance(700_000);
    await house.judge();
    for (const id of ids) expect(await house.stateOf(id)).toBe('undecided');
    // People are waited for at the usual pace.
    await token.sees();
    expect(await token.dueInMs()).toBeGreaterThan(50_000);
  });

  it('A transfer and a data change that both show are executed, and neither claims the hash', async () => {
    const token = story();
    await token.sees();
    const ids = [await token.setData('{}', token.image()), await token.transfer(token.image())];
    for (const id of ids) await house.lose(id);
    await token.sees({ owner: token.other, extraData: '{}', lastTxHash: freshHash() });
    await token.sees();
    for (const id of ids)
      expect(await house.operation(id)).toMatchObject({ state: 'executed', txHash: null });
    await token.sees();
    for (const id of ids) expect(await house.stateOf(id)).toBe('settled');
  });

  it('One of another kind goes to people after quiescence', async () => {
    const id = await house.send('other', {});
    await house.lose(id);
    await house.judge();
    expect(await house.stateOf(id)).toBe('unknown');
    calm();
    await house.judge();
    expect(await house.stateOf(id)).toBe('undecided');
  });
});
