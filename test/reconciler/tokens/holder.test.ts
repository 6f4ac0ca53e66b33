/** What is made elsewhere to a token, from its observations to the journal that finance reads. */
import { describe, expect, it } from 'vitest';
import { openLedger, runDry } from '../../ledger/fixture.ts';
import { openRig } from '../rig.ts';
import { CONTRACT, freshHash, tokenScenario } from './scenario.ts';

const rig = await openRig();
const { db } = rig.database;

const scenario = () => tokenScenario(rig);
type Scenario = ReturnType<typeof scenario>;

/** The standing movements of a token: kind, from, to, and `ours` or `elsewhere`. */
async function journalOf({ ref, owner, other }: Scenario): Promise<string[]> {
  await rig.post();
  const nameOf = (addr: string | null) =>
    addr === owner ? ' owner' : addr === other ? ' other' : addr ? ' another' : '';
  const rows = await db.sql<
    { kind: string; fromAddr: string; toAddr: string; operationId: string | null }[]
  >`
    select kind, from_addr, to_addr, operation_id from finance_v1.nft_movements
    where standing and token_id = ${ref.tokenId.toString()}::numeric order by effective_at, seq`;
  return rows.map(({ kind, fromAddr, toAddr, operationId }) => {
    const origin = operationId === null ? 'elsewhere' : 'ours';
    return `${kind}${nameOf(fromAddr)}${nameOf(toAddr)}, ${origin}`;
  });
}

const partiesOf = ({ owner, other }: Scenario) => ({
  mint: { fromAddr: null, toAddr: owner },
  transfer_from: { fromAddr: owner, toAddr: other },
  burn: { fromAddr: null, toAddr: null },
});

describe('What is made elsewhere', () => {
  it('A token that is first seen, transferred and burned elsewhere has all that in its journal', async () => {
    const token = scenario();
    await token.observe();
    await token.observe({ owner: token.other, lastTxHash: freshHash() });
    const before = rig.clock.now();
    await token.observeAbsent();
    await token.observeAbsent();
    expect(await journalOf(token)).toEqual([
      'opening owner, elsewhere',
      'transfer owner other, elsewhere',
      'burn other, elsewhere',
    ]);
    const [burn] = await db.sql<{ at: number; notBefore: number; basis: string }[]>`
      select effective_at as at, not_before, effective_basis as basis, unexplained
      from finance_v1.nft_movements where kind = 'burn' and token_id = ${`${token.ref.tokenId}`}`;
    expect(burn).toMatchObject({ basis: 'observed', unexplained: true });
    expect(burn?.notBefore).toBeLessThanOrEqual(before);
    expect(burn?.at).toBeGreaterThan(before);
  });

  it('A token that is burned and minted again under its number has both in its journal', async () => {
    const token = scenario();
    await token.observe();
    await token.observeAbsent();
    await token.observeAbsent();
    await token.observe({ lastTxHash: freshHash() });
    expect(await journalOf(token)).toEqual([
      'opening owner, elsewhere',
      'burn owner, elsewhere',
      'mint owner, elsewhere',
    ]);
  });

  it('A token that did not exist at its first observation was minted elsewhere', async () => {
    const token = scenario();
    await token.observeAbsent();
    await token.observe({ status: 0 });
    expect(await journalOf(token)).toEqual([]);
    await token.observe({ status: 1 });
    expect(await journalOf(token)).toEqual(['mint owner, elsewhere']);
  });

  it('A token that is absent once is not burned', async () => {
    const token = scenario();
    await token.observe();
    await token.observeAbsent();
    await token.observe();
    expect(await journalOf(token)).toEqual(['opening owner, elsewhere']);
  });

  it('A token that does not change costs nothing in the journal', async () => {
    const token = scenario();
    await token.observe();
    await journalOf(token);
    await token.observe({ locked: true });
    await token.observe({ locked: false, extraData: '{}' });
    await token.observe({ owner: token.owner.toUpperCase().replace('0X', '0x') });
    const waiting = await db.sql`select id from tallyhook.observed_holders`;
    expect([...waiting]).toEqual([]);
    expect(await journalOf(token)).toEqual(['opening owner, elsewhere']);
  });

  it('A token whose mint the chain failed is in no journal', async () => {
    const token = scenario();
    const id = await token.mint();
    const hash = freshHash();
    await rig.acceptHash(id, hash);
    await token.observe({ status: 3, lastTxHash: hash });
    expect(await rig.stateOf(id)).toBe('failed');
    expect(await journalOf(token)).toEqual([]);
  });
});

describe('Our own writes', () => {
  it('Our own transfer is never recorded as made elsewhere, from its send to its end', async () => {
    const token = scenario();
    await token.observe();
    const id = await token.transfer(token.preImage());
    await token.observe({ owner: token.other, status: 2, lastTxHash: freshHash() }, 100);
    expect(await journalOf(token)).toEqual(['opening owner, elsewhere']);
    const hash = freshHash();
    await rig.acceptHash(id, hash);
    await token.observe({ status: 1, lastTxHash: hash });
    expect(await rig.stateOf(id)).toBe('settled');
    expect(await journalOf(token)).toEqual([
      'opening owner, elsewhere',
      'transfer owner other, ours',
    ]);
  });

  it('A transfer with a lost answer waits for its outcome, and was made elsewhere if it is refused', async () => {
    const token = scenario();
    await token.observe();
    const id = await token.transfer();
    await rig.lose(id);
    await token.observe({ owner: token.other, lastTxHash: freshHash() });
    expect(await journalOf(token)).toEqual(['opening owner, elsewhere']);
    await rig.conclude(id, { class: 'rejected', status: 422, code: '422', message: 'no' });
    await token.observe();
    expect(await journalOf(token)).toEqual([
      'opening owner, elsewhere',
      'transfer owner other, elsewhere',
    ]);
  });

  it('A token that is first seen while our transfer is open has an opening before the transfer', async () => {
    const token = scenario();
    const id = await token.transfer();
    const hash = freshHash();
    await rig.acceptHash(id, hash);
    await token.observe({}, 100);
    expect(await journalOf(token)).toEqual([]);
    await token.observe({ owner: token.other, lastTxHash: hash });
    expect(await journalOf(token)).toEqual([
      'opening owner, elsewhere',
      'transfer owner other, ours',
    ]);
  });

  it('Our mint and burn leave nothing made elsewhere', async () => {
    const token = scenario();
    const minted = await token.mint();
    const hash = freshHash();
    await rig.acceptHash(minted, hash);
    await token.observe({ lastTxHash: hash });
    const burned = await token.burn(token.preImage());
    await rig.acceptHash(burned, freshHash());
    await token.observeAbsent();
    await token.observeAbsent();
    expect(await rig.stateOf(burned)).toBe('settled');
    expect(await journalOf(token)).toEqual(['mint owner, ours', 'burn owner, ours']);
  });
});

describe('A token that an open sequential mint of ours may have made', () => {
  it('The token waits for the outcome of the mint, and was minted elsewhere if that has another', async () => {
    const token = scenario();
    const id = await rig.send('mint_sequential', {
      contractId: CONTRACT,
      tokenUri: 'ipfs://one',
      toAddr: token.owner,
    });
    await rig.lose(id);
    await token.observeAbsent();
    await token.observe();
    expect(await journalOf(token)).toEqual([]);
    // Nothing else polls a token that only a list shows.
    expect(await token.dueInMs()).toBeLessThan(30_000);
    await rig.conclude(id, { class: 'rejected', status: 422, code: '422', message: 'no' });
    await token.observe();
    expect(await journalOf(token)).toEqual(['mint owner, elsewhere']);
  });
});

describe('A write that is reported later', () => {
  it.each(['mint', 'transfer_from', 'burn'] as const)(
    'A %s that is reported after it was recorded as made elsewhere does not count twice',
    async (kind) => {
      const token = scenario();
      if (kind === 'mint') await token.observeAbsent();
      await token.observe();
      if (kind === 'transfer_from')
        await token.observe({ owner: token.other, lastTxHash: freshHash() });
      if (kind === 'burn') for (let i = 0; i < 2; i++) await token.observeAbsent();
      const before = await journalOf(token);
      expect(before.every((line) => line.endsWith('elsewhere'))).toBe(true);
      await token.report({ kind, occurredAt: rig.clock.now() - 3_000, ...partiesOf(token)[kind] });
      await (kind === 'burn' ? token.observeAbsent() : token.observe());
      const after = await journalOf(token);
      expect(after).toHaveLength(before.length);
      expect(after.at(-1)).toMatch(/, ours$/);
      expect(after.slice(0, -1)).toEqual(before.slice(0, -1));
    },
  );

  it('A mint that is reported for a token with an opening replaces the opening', async () => {
    const token = scenario();
    await token.observe();
    expect(await journalOf(token)).toEqual(['opening owner, elsewhere']);
    const { mint } = partiesOf(token);
    await token.report({ kind: 'mint', occurredAt: rig.clock.now() - 3_600_000, ...mint });
    await token.observe();
    expect(await journalOf(token)).toEqual(['mint owner, ours']);
  });
});

describe('A restart', () => {
  it('What waits to be recorded survives it, and of two daemons one records it', async () => {
    const token = scenario();
    await token.observe();
    const [count] = await db.sql<{ n: number }[]>`
      select count(*)::int as n from tallyhook.observed_holders`;
    expect(count?.n).toBe(1);
    const { clock } = rig;
    clock.advance(60_000);
    const ledgers = await Promise.all(
      ['dmn_b', 'dmn_c'].map((daemonId) => openLedger({ db, clock, daemonId })),
    );
    await Promise.all(ledgers.map((ledger) => runDry(ledger, clock)));
    expect(await journalOf(token)).toEqual(['opening owner, elsewhere']);
    const all = await db.sql`
      select id from tallyhook.nft_movements where token_id = ${`${token.ref.tokenId}`}`;
    expect(all).toHaveLength(1);
  });
});
