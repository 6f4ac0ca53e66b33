import { describe, expect, it } from 'vitest';
import { openRig } from '../rig.ts';
import { CONTRACT, freshHash, tokenScenario } from '../tokens/scenario.ts';

const rig = await openRig();

const scenario = () => tokenScenario(rig);
async function lostMint() {
  const token = scenario();
  const id = await token.mint();
  await rig.lose(id);
  return { token, id };
}

describe('An unknown write on a token', () => {
  it('A mint is executed when two observations show the token, and takes its hash', async () => {
    const { token, id } = await lostMint();
    const hash = freshHash();
    await token.observe({ status: 0, lastTxHash: hash });
    await token.observe({ status: 2 });
    expect(await rig.operation(id)).toMatchObject({ state: 'executed', txHash: hash });
    await token.observe({ status: 1 });
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('A mint is not executed when there is no token after quiescence', async () => {
    const { token, id } = await lostMint();
    for (let i = 0; i < 4; i++) await token.observeAbsent();
    expect(await rig.stateOf(id)).toBe('unknown');
    rig.passQuiescence();
    await token.observeAbsent();
    expect(await rig.stateOf(id)).toBe('unknown');
    await token.observeAbsent();
    expect(await rig.stateOf(id)).toBe('not_executed');
  });

  it('A mint is not resolved as not executed when the token was observed meanwhile', async () => {
    const { token, id } = await lostMint();
    rig.passQuiescence();
    await token.observe({ owner: token.other, lastTxHash: freshHash() });
    for (let i = 0; i < 3; i++) await token.observeAbsent();
    expect(await rig.stateOf(id)).toBe('unknown');
  });

  it('A mint is not resolved as not executed when a later burn of the token was accepted', async () => {
    const { token, id } = await lostMint();
    rig.passQuiescence();
    const burn = await token.burn();
    await rig.acceptHash(burn, freshHash());
    for (let i = 0; i < 3; i++) await token.observeAbsent();
    expect(await rig.stateOf(burn)).toBe('settled');
    expect(await rig.stateOf(id)).toBe('unknown');
  });

  it('A mint whose token was observed and is absent after quiescence is not resolved', async () => {
    const { token, id } = await lostMint();
    await token.observe({ status: 2 });
    rig.passQuiescence();
    for (let i = 0; i < 3; i++) await token.observeAbsent();
    expect(['unknown', 'undecided']).toContain(await rig.stateOf(id));
  });

  it('A burn beside an accepted burn is not resolved as executed, nor settles that', async () => {
    const token = scenario();
    await token.observe();
    const answered = await token.burn(token.preImage());
    await rig.acceptHash(answered, freshHash());
    const unknown = await token.burn(token.preImage());
    await rig.lose(unknown);
    for (let i = 0; i < 4; i++) await token.observeAbsent();
    expect(await rig.stateOf(answered)).toBe('accepted');
    expect(await rig.stateOf(unknown)).toBe('unknown');
  });

  it('A mint is executed where a failed mint had left the number', async () => {
    const token = scenario();
    await token.observe({ status: 3 });
    const id = await token.mint(token.preImage());
    await rig.lose(id);
    rig.passQuiescence();
    await token.observe({ status: 1, lastTxHash: freshHash() });
    await token.observe();
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('A transfer is executed when the new owner shows under a new hash', async () => {
    const token = scenario();
    await token.observe();
    const id = await token.transfer(token.preImage());
    await rig.lose(id);
    await token.observe({ status: 0, lastTxHash: freshHash() });
    await token.observe({ status: 1, owner: token.other });
    await token.observe();
    expect(['executed', 'settled']).toContain(await rig.stateOf(id));
  });

  it('A transfer settles with the observation that proves it, before a burn hides it', async () => {
    const token = scenario();
    await token.observe();
    const transfer = await token.transfer(token.preImage());
    await rig.lose(transfer);
    await token.observe({ status: 1, owner: token.other, lastTxHash: freshHash() });
    const burn = await token.burn(token.preImage());
    await rig.lose(burn);
    await token.observe();
    await token.observe({ status: 2, lastTxHash: freshHash() });
    for (let i = 0; i < 3; i++) await token.observeAbsent();
    expect(await rig.stateOf(transfer)).toBe('settled');
    expect(await rig.stateOf(burn)).toBe('settled');
  });

  it('A transfer to the present owner, sent before the first observation, stays unknown', async () => {
    const token = scenario();
    const fields = { contractId: CONTRACT, tokenId: token.ref.tokenId, fromAddr: token.owner };
    await rig.acceptHash(await token.mint(), freshHash());
    const id = await rig.send('transfer_from', { ...fields, toAddr: token.owner });
    await rig.lose(id);
    await token.observe({ lastTxHash: freshHash() });
    await token.observe();
    expect(await rig.stateOf(id)).toBe('unknown');
  });

  it('A transfer to the present owner is executed when the ownership timestamp changed', async () => {
    const [anew, same] = [scenario(), scenario()];
    const ids: string[] = [];
    for (const token of [anew, same]) {
      await token.observe();
      const fields = { contractId: CONTRACT, tokenId: token.ref.tokenId, fromAddr: token.owner };
      const to = { ...fields, toAddr: token.owner };
      ids.push(await rig.send('transfer_from', to, token.preImage()));
    }
    for (const id of ids) await rig.lose(id);
    rig.passQuiescence();
    await anew.observe({ lastTxHash: freshHash(), ownedAtText: '2026-01-01 00:10:00' });
    await same.observe({ lastTxHash: freshHash() });
    for (const token of [anew, same]) await token.observe();
    expect(['executed', 'settled']).toContain(await rig.stateOf(ids[0] ?? ''));
    expect(await rig.stateOf(ids[1] ?? '')).toBe('unknown');
  });

  it('A transfer without a pre-image is compared with the newest observation before it', async () => {
    const [moves, stays] = [scenario(), scenario()];
    for (const token of [moves, stays]) await token.observe();
    const ids = [await moves.transfer(), await stays.transfer()];
    for (const id of ids) await rig.lose(id);
    rig.passQuiescence();
    await moves.observe({ owner: moves.other, lastTxHash: freshHash() });
    await stays.observe();
    for (const token of [moves, stays]) await token.observe();
    expect(['executed', 'settled']).toContain(await rig.stateOf(ids[0] ?? ''));
    expect(await rig.stateOf(ids[1] ?? '')).toBe('not_executed');
  });

  it('A transfer is not executed when the token did not change', async () => {
    const token = scenario();
    await token.observe();
    const id = await token.transfer(token.preImage());
    await rig.lose(id);
    await token.observe();
    await token.observe();
    expect(await rig.stateOf(id)).toBe('unknown');
    rig.passQuiescence();
    await token.observe();
    await token.observe();
    expect(await rig.stateOf(id)).toBe('not_executed');
  });

  it('A transfer is not executed when only another known write shows', async () => {
    const token = scenario();
    await token.observe();
    const preImage = token.preImage();
    const data = await token.setData('{}', preImage);
    const hash = freshHash();
    await rig.acceptHash(data, hash);
    const id = await token.transfer(preImage);
    await rig.lose(id);
    rig.passQuiescence();
    await token.observe({ extraData: '{}', lastTxHash: hash });
    await token.observe();
    expect(await rig.stateOf(id)).toBe('not_executed');
    expect(await rig.stateOf(data)).toBe('settled');
  });

  it('An observation that began before the send is no evidence', async () => {
    const token = scenario();
    await token.observe();
    const preImage = token.preImage();
    rig.clock.advance(1_000);
    await rig.put(token.ref, 'seen', {
      contractId: CONTRACT,
      tokenId: token.ref.tokenId,
      owner: token.other,
      status: 1,
      uri: 'ipfs://one',
      lastTxHash: freshHash(),
      locked: false,
    });
    const id = await token.transfer(preImage);
    await rig.lose(id);
    await rig.process();
    const rows = await rig.database.db.sql`
      select outcome from tallyhook.candidates where operation_id = ${id}`;
    expect(rows).toEqual([]);
  });

  it('A lost data change after a shown one is not executed when a later hash shows no more', async () => {
    const token = scenario();
    await token.observe();
    const [shown, later] = [freshHash(), freshHash()];
    await rig.acceptHash(await token.setData('{"n":1}', token.preImage()), shown);
    await token.observe({ extraData: '{"n":1}', lastTxHash: shown });
    const lost = await token.setData('{"n":2}', token.preImage());
    await rig.lose(lost);
    await rig.acceptHash(await token.transfer(token.preImage()), later);
    rig.passQuiescence();
    await token.observe({ owner: token.other, lastTxHash: later });
    await token.observe();
    expect(await rig.stateOf(lost)).toBe('not_executed');
  });

  it('A burn is executed when the token is absent, unless it was never observed', async () => {
    const [there, never] = [scenario(), scenario()];
    await there.observe();
    const burnt = await there.burn(there.preImage());
    const unseen = await never.burn();
    for (const id of [burnt, unseen]) await rig.lose(id);
    for (const token of [there, never]) for (let i = 0; i < 3; i++) await token.observeAbsent();
    expect(['executed', 'settled']).toContain(await rig.stateOf(burnt));
    expect(await rig.stateOf(unseen)).toBe('unknown');
  });

  it('Two unknown writes of one kind on one token become undecided', async () => {
    const token = scenario();
    await token.observe();
    const ids = [await token.transfer(token.preImage()), await token.transfer(token.preImage())];
    for (const id of ids) await rig.lose(id);
    await token.observe({ owner: token.other, lastTxHash: freshHash() });
    await token.observe();
    await rig.wait(700_000);
    await token.observe();
    await rig.wait(10_000);
    for (const id of ids) expect(await rig.stateOf(id)).toBe('undecided');
    // An undecided write does not shorten the polling interval.
    await token.observe();
    expect(await token.dueInMs()).toBeGreaterThan(50_000);
  });

  it('Two unknown writes of one kind are not executed when the token did not change', async () => {
    for (const kind of ['transfer', 'setData', 'burn'] as const) {
      const token = scenario();
      await token.observe();
      const send = () =>
        kind === 'setData' ? token.setData('{}', token.preImage()) : token[kind](token.preImage());
      const ids = [await send(), await send()];
      for (const id of ids) await rig.lose(id);
      rig.passQuiescence();
      await token.observe();
      await token.observe();
      for (const id of ids) expect(await rig.stateOf(id), kind).toBe('not_executed');
    }
  });

  it('Of two unknown transfers the later one is not executed when only the earlier one shows', async () => {
    const token = scenario();
    await token.observe();
    const first = await token.transfer(token.preImage());
    await rig.lose(first);
    await token.observe({ owner: token.other, lastTxHash: freshHash() });
    const second = await token.transfer(token.preImage());
    await rig.lose(second);
    rig.passQuiescence();
    for (let i = 0; i < 4; i++) await token.observe();
    expect(await rig.stateOf(second)).toBe('not_executed');
    expect(['executed', 'settled']).toContain(await rig.stateOf(first));
  });

  it('A transfer and a data change that both show are settled without a hash', async () => {
    const token = scenario();
    await token.observe();
    const ids = [
      await token.setData('{}', token.preImage()),
      await token.transfer(token.preImage()),
    ];
    for (const id of ids) await rig.lose(id);
    await token.observe({ owner: token.other, extraData: '{}', lastTxHash: freshHash() });
    await token.observe();
    for (const id of ids)
      expect(await rig.operation(id)).toMatchObject({ state: 'settled', txHash: null });
  });

  it('A write of kind other becomes undecided after quiescence', async () => {
    const id = await rig.send('other', {});
    await rig.lose(id);
    await rig.process();
    expect(await rig.stateOf(id)).toBe('unknown');
    rig.passQuiescence();
    await rig.process();
    expect(await rig.stateOf(id)).toBe('undecided');
  });
});
