/** Tokens in the reconciliation: settlement of NFT operations, and the supply per contract. */
import { describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { releaseQuarantined } from '../../src/reconciler/reconciler.ts';
import { wordsOf } from '../../src/resources/reports/finding.ts';
import { addr, type Columns, DAY, HOUR, START, useEachWorld } from './world.ts';

const world = useEachWorld();

const HASH = `0x${'a'.repeat(64)}`;

/** An NFT operation of contract 5, settled by default. */
function write(kind: string, token: number, columns: Columns = {}) {
  const nothing = { amount: null, operation_no: null, to_addr: addr(1) };
  const token_columns = { contract_id: 5, token_id: token, tx_hash: HASH };
  return world.operation({ kind, state: 'settled', ...nothing, ...token_columns, ...columns });
}

/** A token of contract 5 as the reconciler stores it. */
function insertToken(token: number, columns: Columns = {}) {
  const id = { contract_id: 5, token_id: token, owner: addr(1), status: 1, locked: 0 };
  const observation = { observed_at: isoText(world.clock.now()), presence: 'present' };
  return world.insert('tokens', { ...id, ...observation, ...columns });
}

async function report(to?: number) {
  const { content } = await world.report(START, to);
  const listed = [...content.breaks.listed, ...content.open_items.listed];
  return { content, found: listed.map(({ kind, subject }) => `${kind} ${subject}`) };
}

describe('Supply', () => {
  it('Opening + minted − burned = held', async () => {
    await write('mint', 1);
    await write('mint_sequential', 2);
    await write('mint', 3);
    await write('transfer_from', 1, { from_addr: addr(1), to_addr: addr(2) });
    await write('burn', 3);
    await world.post();
    await insertToken(1, { owner: addr(2) });
    await insertToken(2);
    await insertToken(3, { presence: 'absent', absent_since: isoText(START) });
    const { content, found } = await report();
    expect(found).toEqual([]);
    expect(content.headline).toBe('balanced');
    const none = { opening: 0, found: 0, missing: 0, surplus: 0 };
    expect(content.tokens.supply).toEqual({
      total: 1,
      listed: [{ contract_id: '5', minted: 3, burned: 1, held: 2, ...none }],
    });
    expect(content.tokens.writes).toEqual({ settled: 5, failed: 0, pending: 0 });
  });

  it('A reversed mint is not counted', async () => {
    const id = await write('mint', 1);
    await world.post();
    await insertToken(1, { presence: 'absent' });
    await world.sql(`update tallyhook.operations set state = 'failed' where id = '${id}'`);
    await world.post();
    const { content, found } = await report();
    expect(found).toEqual([]);
    expect(content.tokens.supply.listed).toMatchObject([{ minted: 0, held: 0 }]);
  });

  it('A token in the ledger that is not held is missing, a burned one that is held is surplus', async () => {
    await write('mint', 1);
    await write('mint', 2);
    await write('burn', 2);
    await world.post();
    await insertToken(1, { presence: 'absent', absent_since: isoText(START) });
    await insertToken(2);
    const { content, found } = await report();
    expect(found).toEqual(['nft_missing token:5:1', 'nft_surplus token:5:2']);
    expect(content.tokens.supply.listed).toMatchObject([
      { minted: 2, burned: 1, missing: 1, surplus: 1, held: 1 },
    ]);
  });

  it('Tokens missing in the ledger are one open item per contract', async () => {
    await insertToken(1);
    await insertToken(2);
    const { content, found } = await report();
    expect(content.headline).toBe('balanced');
    expect(found).toEqual(['nft_not_booked contract:5']);
    expect(content.tokens.supply.listed).toMatchObject([{ found: 2, held: 2 }]);
  });
});

describe('Owners', () => {
  const token = { contractId: 5n, tokenId: 1n };

  it('A token with another owner than in the journal is a break, and says so in a sentence', async () => {
    await write('mint', 1);
    await world.post();
    await insertToken(1, { owner: addr(2) });
    const { content, found } = await report();
    expect(found).toEqual(['nft_owner_differs token:5:1']);
    const [finding] = content.breaks.listed;
    expect(finding && wordsOf(finding)).toBe(
      `Token 1 of contract 5 belongs to ${addr(2)} at the service; by the journal ` +
        `${addr(1)} holds it.`,
    );
  });

  it('Another owner is an open item while an operation may explain it, or the journal is to record it', async () => {
    await write('mint', 1);
    await world.post();
    await insertToken(1, { owner: addr(2), differs_since: isoText(START) });
    expect((await report()).found).toEqual(['nft_change_pending token:5:1']);
    await world.sql('update tallyhook.tokens set differs_since = null');
    await world.hold(token, addr(2), START + 5 * HOUR);
    expect((await report()).found.toSorted()).toEqual([
      'nft_change_pending token:5:1',
      'posting_due 1',
    ]);
    await world.post();
    expect((await report()).found).toEqual([]);
  });

  it('What cannot be recorded is a break that names the token, until a person releases it', async () => {
    await world.hold(token, addr(2), START);
    await world.sql(`update tallyhook.observed_holders set problem = 'no room'`);
    await world.post();
    const { content } = await report();
    expect(content.breaks.listed).toMatchObject([
      { kind: 'posting_quarantined', subject: '1', evidence: { token: 'token:5:1' } },
    ]);
    const by = { owner: 'app', keyId: 'key_1' };
    const input = { kind: 'observed_holder' as const, id: '1', reason: 'corrected' };
    const released = await releaseQuarantined(world.db, input, by, START);
    expect(released.problem).toBe('no room');
    await world.post();
    expect((await report()).content.tokens.supply.listed).toMatchObject([{ opening: 1 }]);
  });
});

describe('Hashes', () => {
  it('An unsettled NFT operation is an open item, and a break after the limit', async () => {
    await insertToken(1, { presence: 'absent' });
    const id = await write('burn', 1, { state: 'accepted' });
    expect((await report()).found).toEqual([`nft_write_pending ${id}`]);
    world.clock.advance(3 * DAY);
    const later = await world.report(START, START + 3 * DAY);
    expect(later.content.breaks.listed).toMatchObject([
      { kind: 'nft_write_without_end', subject: id, age_s: (3 * DAY - HOUR) / 1000 },
    ]);
  });

  it('An operation that was reported late waits for the chain since it is known', async () => {
    await insertToken(1, { presence: 'absent' });
    world.clock.advance(3 * DAY);
    const reported = { source: 'report', sent_at: null, answered_at: null };
    const recorded_at = isoText(world.clock.now());
    const id = await write('burn', 1, { ...reported, state: 'executed', recorded_at });
    await world.post();
    expect((await report(START + 3 * DAY)).found).toEqual([`nft_write_pending ${id}`]);
  });

  it('A settled operation without an observed token is a break', async () => {
    const id = await write('set_extra_data', 1);
    await world.post();
    expect((await report()).found).toEqual([`token_never_observed ${id}`]);
  });
});
