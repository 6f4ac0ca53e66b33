import { describe, expect, it } from 'vitest';
import { saveListing } from '../../../src/observer/scans/listing.ts';
import { addTargets, targetName, toTarget } from '../../../src/observer/targets.ts';
import { freshAddr, openRig } from '../rig.ts';
import { freshHash, tokenScenario } from './scenario.ts';

const rig = await openRig();

const scenario = () => tokenScenario(rig);
const typesOf = async (subject: string) => (await rig.events(subject)).map(({ type }) => type);

describe('A mint', () => {
  it('A mint is announced at its first observation and settles when the token is complete', async () => {
    const token = scenario();
    const id = await token.mint();
    const hash = freshHash();
    await rig.acceptHash(id, hash);
    await token.observe({ status: 0, lastTxHash: hash }, 100);
    expect(await rig.stateOf(id)).toBe('accepted');
    expect(await token.dueInMs()).toBeLessThanOrEqual(1_000);
    await token.observe({ status: 2 });
    await token.observe({ status: 1 });
    expect(await rig.stateOf(id)).toBe('settled');
    const events = await rig.events(token.subject);
    expect(events.map(({ type }) => type)).toEqual([
      'token.minted',
      'token.status_changed',
      'token.status_changed',
    ]);
    expect(events.map(({ data }) => data.cause)).toEqual([id, id, id]);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    await rig.post();
    const moves = await rig.database.db.sql`
      select kind from tallyhook.nft_movements where operation_id = ${id}`;
    expect(moves).toMatchObject([{ kind: 'mint' }]);
  });

  it('A mint that the chain fails is failed', async () => {
    const token = scenario();
    const id = await token.mint();
    await rig.acceptHash(id, freshHash());
    await token.observe({ status: 3, lastTxHash: (await rig.operation(id))?.txHash ?? '' });
    expect(await rig.stateOf(id)).toBe('failed');
  });

  it('A mint that does not show yet is not failed and settles later', async () => {
    const token = scenario();
    const id = await token.mint();
    const hash = freshHash();
    await rig.acceptHash(id, hash);
    for (let i = 0; i < 3; i++) await token.observeAbsent(100);
    expect(await rig.stateOf(id)).toBe('accepted');
    await token.observe({ lastTxHash: hash });
    expect(await rig.stateOf(id)).toBe('settled');
    expect(await typesOf(token.subject)).toEqual(['token.minted']);
  });

  it('A rejected mint does not claim the token of another', async () => {
    const token = scenario();
    const id = await token.mint();
    await rig.conclude(id, { class: 'rejected', status: 422, code: '422', message: 'taken' });
    await token.observe();
    expect(await typesOf(token.subject)).toEqual([]);
  });
});

describe('A token', () => {
  it('Each change made elsewhere is an event with an external cause', async () => {
    const token = scenario();
    await token.observe();
    await token.observe({ owner: token.other, lastTxHash: freshHash() });
    await token.observe({ locked: true });
    await token.observe({ locked: false, extraData: '{"a":1}', lastTxHash: freshHash() });
    const events = await rig.events(token.subject);
    expect(events.map(({ type, data }) => [type, data.cause])).toEqual([
      ['token.transferred', 'external'],
      ['token.locked', 'external'],
      ['token.unlocked', 'external'],
      ['token.extra_data_changed', 'external'],
    ]);
  });

  it('A lock or a transfer made elsewhere is not blamed on the operation with the last hash', async () => {
    const token = scenario();
    await token.observe();
    const id = await token.setData('{"a":1}');
    const hash = freshHash();
    await rig.acceptHash(id, hash);
    await token.observe({ lastTxHash: hash, extraData: '{"a":1}', locked: true });
    await token.observe({ owner: token.other });
    const events = await rig.events(token.subject);
    expect(events.map(({ type, data }) => [type, data.cause])).toEqual([
      ['token.locked', 'external'],
      ['token.extra_data_changed', id],
      ['token.transferred', 'external'],
    ]);
  });

  it('A change is ascribed to the operation with its effect, also under a later hash', async () => {
    const token = scenario();
    await token.observe();
    const moved = await token.transfer();
    await rig.acceptHash(moved, freshHash());
    const changed = await token.setData('{"b":2}');
    const hash = freshHash();
    await rig.acceptHash(changed, hash);
    await token.observe({ lastTxHash: hash, owner: token.other, extraData: '{"b":2}' });
    const events = await rig.events(token.subject);
    expect(events.map(({ type, data }) => [type, data.cause])).toEqual([
      ['token.transferred', moved],
      ['token.extra_data_changed', changed],
    ]);
    // What has settled is not the cause of the same change later.
    await token.observe({ extraData: '' });
    await token.observe({ extraData: '{"b":2}', lastTxHash: freshHash() });
    const causes = (await rig.events(token.subject)).map(({ data }) => data.cause);
    expect(causes.slice(2)).toEqual(['external', 'external']);
  });

  it('A token is burned only after two absences in a row', async () => {
    const token = scenario();
    await token.observe();
    await token.observeAbsent();
    expect(await token.dueInMs()).toBe(1_000);
    await token.observe();
    await token.observeAbsent();
    expect(await typesOf(token.subject)).toEqual([]);
    await token.observeAbsent();
    await token.observeAbsent();
    expect(await typesOf(token.subject)).toEqual(['token.burned']);
  });

  it('A token that reappears after a burn is minted', async () => {
    const token = scenario();
    await token.observe();
    await token.observeAbsent();
    await token.observeAbsent();
    await token.observe({ lastTxHash: freshHash() });
    expect(await typesOf(token.subject)).toEqual(['token.burned', 'token.minted']);
  });

  it('A token that stays pending is polled less and less often', async () => {
    const token = scenario();
    const gaps: number[] = [];
    for (let i = 0; i < 24; i++) {
      await token.observe({ status: 0 }, Math.max(1_000, gaps.at(-1) ?? 0));
      gaps.push(await token.dueInMs());
    }
    expect(gaps[0]).toBe(1_000);
    expect(gaps.at(-1)).toBeGreaterThan(5_000);
  });

  it('An observation that began before the newest one changes nothing', async () => {
    const token = scenario();
    await token.observe();
    await token.observe({ owner: token.other });
    const before = await typesOf(token.subject);
    await rig.put(token.ref, 'seen', null, rig.clock.now() - 60_000);
    await rig.process();
    expect(await typesOf(token.subject)).toEqual(before);
  });
});

describe('A lost write', () => {
  it('It settles when it shows under the hash of a later one that the chain failed', async () => {
    const token = scenario();
    await token.observe();
    const lost = await token.transfer(token.preImage());
    await rig.lose(lost);
    const hash = freshHash();
    await rig.acceptHash(await token.setData('{"level":1}', token.preImage()), hash);
    for (let i = 0; i < 2; i++)
      await token.observe({ owner: token.other, lastTxHash: hash, status: 3 });
    expect(await rig.stateOf(lost)).toBe('settled');
  });
});

describe('A burn', () => {
  it('Of two accepted burns the newest settles if its hash was observed, else neither', async () => {
    const [seen, unseen] = [scenario(), scenario()];
    const burns: string[][] = [];
    for (const token of [seen, unseen]) {
      await token.observe();
      const ids = [await token.burn(token.preImage()), await token.burn(token.preImage())];
      const hashes = [freshHash(), freshHash()];
      for (const [i, id] of ids.entries()) await rig.acceptHash(id, hashes[i] ?? '');
      if (token === seen) await token.observe({ status: 2, lastTxHash: hashes[1] ?? '' }, 100);
      burns.push(ids);
    }
    for (const token of [seen, unseen]) for (let i = 0; i < 3; i++) await token.observeAbsent();
    const states = await Promise.all(burns.flat().map((id) => rig.stateOf(id)));
    expect(states).toEqual(['failed', 'settled', 'accepted', 'accepted']);
  });

  it('A burn that takes the token fails no transfer before it', async () => {
    const token = scenario();
    await token.observe();
    const first = await token.transfer(token.preImage());
    await rig.acceptHash(first, freshHash());
    const [hash, receiver] = [freshHash(), freshAddr()];
    const { contractId, tokenId } = token.ref;
    const onward = { contractId, tokenId, fromAddr: token.other, toAddr: receiver };
    await rig.acceptHash(await rig.send('transfer_from', onward, token.preImage()), hash);
    await token.observe({ lastTxHash: hash, owner: receiver });
    await rig.acceptHash(await token.burn(token.preImage()), freshHash());
    for (let i = 0; i < 3; i++) await token.observeAbsent();
    expect(await rig.stateOf(first)).toBe('settled');
  });

  it('A burn settles when the token is absent, and is the cause of the event', async () => {
    const token = scenario();
    await token.observe();
    const id = await token.burn(token.preImage());
    await rig.acceptHash(id, freshHash());
    await token.observeAbsent();
    expect(await rig.stateOf(id)).toBe('accepted');
    await token.observeAbsent();
    expect(await rig.stateOf(id)).toBe('settled');
    expect((await rig.events(token.subject)).at(-1)?.data.cause).toBe(id);
  });

  it('A burn of an absent token does not settle within the read lag', async () => {
    const token = scenario();
    await token.observeAbsent(100);
    const id = await token.burn();
    await rig.acceptHash(id, freshHash());
    await token.observeAbsent(100);
    await token.observeAbsent(100);
    expect(await rig.stateOf(id)).toBe('accepted');
    await token.observeAbsent();
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('A burn whose token still exists under a later hash is failed', async () => {
    const token = scenario();
    await token.observe();
    const id = await token.burn(token.preImage());
    await rig.acceptHash(id, freshHash());
    await token.observe({ lastTxHash: freshHash(), owner: token.other });
    expect(await rig.stateOf(id)).toBe('failed');
  });
});

describe('A token that is new in the list of a watched contract', () => {
  const CONTRACT = 77n;
  const listed = async () => {
    const { db } = rig.database;
    const ref = { kind: 'contract', contractId: CONTRACT } as const;
    await addTargets(db, [toTarget(ref)], rig.clock.now());
    const walk = { walk: null, total: '0', walkedAt: rig.clock.now(), listedAt: rig.clock.now() };
    await saveListing(db, targetName(ref), walk);
    rig.clock.advance(1_000);
  };
  const seen = async (tokenId: bigint, uri: string) => {
    const record = { contractId: CONTRACT, tokenId, owner: 'o', creator: 'c', uri };
    const rest = { metaData: '', extraData: '', status: 1, locked: false, lastTxHash: freshHash() };
    const times = { createdAtText: '', ownedAtText: '' };
    await rig.put({ kind: 'token', contractId: CONTRACT, tokenId }, 'seen', {
      ...record,
      ...rest,
      ...times,
    });
    await rig.process();
    return (await rig.events(`token:${CONTRACT}:${tokenId}`)).map(({ type, data }) => [
      type,
      data.cause,
    ]);
  };

  it('It was minted elsewhere, or by an open mint of ours: then its cause is not known', async () => {
    expect(await seen(1n, 'ipfs://before')).toEqual([]);
    await listed();
    expect(await seen(2n, 'ipfs://a')).toEqual([['token.minted', 'external']]);
    const id = await rig.send('mint_sequential', {
      contractId: CONTRACT,
      tokenUri: 'ipfs://b',
      toAddr: freshAddr(),
    });
    expect(await seen(3n, 'ipfs://b')).toEqual([['token.minted', 'unknown']]);
    expect(await seen(4n, 'ipfs://c')).toEqual([['token.minted', 'external']]);
    await rig.lose(id);
    expect(await seen(5n, 'ipfs://b')).toEqual([['token.minted', 'unknown']]);
  });
});
