/**
 * The journal of a token ends with the truth, for all that we do, others do, is observed and is
 * reported late.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { must } from '../../../src/kernel/errors.ts';
import { freshAddr, openRig } from '../rig.ts';
import { CONTRACT, freshHash, tokenScenario } from './scenario.ts';

const rig = await openRig();
const { db } = rig.database;

const OWNERS = [freshAddr(), freshAddr(), freshAddr()];

/** What happens: by us or elsewhere, the latter reported later or never; or it is observed. */
const step = fc.record({
  what: fc.constantFrom('write', 'write', 'observe', 'observe', 'post', 'report'),
  to: fc.nat(2),
  burn: fc.boolean(),
  ours: fc.boolean(),
  lost: fc.boolean(),
  skewMs: fc.integer({ min: -8_000, max: 2_000 }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Done {
  kind: 'mint' | 'transfer_from' | 'burn';
  fromAddr: string | null;
  toAddr: string | null;
  at: number;
}

/** One token: its true owner, and the writes made elsewhere that nobody has reported. */
function makeTruth() {
  const token = tokenScenario(rig);
  const fields = { contractId: CONTRACT, tokenId: token.ref.tokenId };
  let owner: string | null = null;
  let hash = freshHash();
  let allOurs = true;
  const unreported: Done[] = [];

  /** The next write: a mint when there is no token, else a burn or a transfer. */
  function nextWrite({ to, burn }: Step): Omit<Done, 'at'> | undefined {
    const toAddr = must(OWNERS[to], 'owner');
    if (owner === null) return { kind: 'mint', fromAddr: null, toAddr };
    if (burn) return { kind: 'burn', fromAddr: null, toAddr: null };
    if (toAddr === owner) return undefined;
    return { kind: 'transfer_from', fromAddr: owner, toAddr };
  }

  async function observe() {
    if (owner === null) await token.observeAbsent();
    else await token.observe({ owner, lastTxHash: hash });
  }

  async function send(write: Omit<Done, 'at'>, lost: boolean) {
    const { kind, fromAddr, toAddr } = write;
    const id = await rig.send(kind, { ...fields, fromAddr, toAddr, tokenUri: 'ipfs://one' });
    hash = freshHash();
    owner = toAddr;
    if (lost) await rig.lose(id);
    else await rig.acceptHash(id, hash);
    for (let n = 0; n < 3; n++) await observe();
    const { state } = must(await rig.operation(id), 'operation');
    if (state !== 'settled') {
      await rig.conclude(id, { class: 'accepted', txHash: hash });
      for (let n = 0; n < 3; n++) await observe();
    }
    expect(await rig.stateOf(id)).toBe('settled');
  }

  return {
    token,
    observe,
    ownerOf: () => owner,
    areAllOurs: () => allOurs,
    async act(one: Step) {
      if (one.what === 'observe') return observe();
      if (one.what === 'post') return void (await rig.post());
      if (one.what === 'report') {
        const done = unreported.shift();
        if (!done) return;
        const { at, ...write } = done;
        await token.report({ ...write, occurredAt: at + one.skewMs });
        return observe();
      }
      const write = nextWrite(one);
      if (!write) return;
      if (one.ours) return send(write, one.lost);
      hash = freshHash();
      owner = write.toAddr;
      allOurs = false;
      unreported.push({ ...write, at: rig.clock.now() });
      rig.clock.advance(3_000);
    },
  };
}

it('After any writes of ours, moves elsewhere, polls and late reports the journal holds the truth, and its supply balances', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
      const truth = makeTruth();
      await truth.observe();
      for (const one of steps) await truth.act(one);
      // An absence is confirmed by a second poll.
      for (let n = 0; n < 2; n++) await truth.observe();
      await rig.post();
      const tokenId = `${truth.token.ref.tokenId}`;
      const [held] = await db.sql<{ owner: string }[]>`
        select owner from finance_v1.nft_holdings_as_of() where token_id = ${tokenId}::numeric`;
      const [seen] = await db.sql<{ owner: string }[]>`
        select owner from finance_v1.nft_holdings where token_id = ${tokenId}::numeric`;
      expect(held?.owner ?? null).toBe(truth.ownerOf());
      expect(seen?.owner ?? null).toBe(truth.ownerOf());
      const supply = await db.sql<{ balanced: boolean }[]>`
        select balanced from finance_v1.nft_supply()`;
      expect(supply.every(({ balanced }) => balanced)).toBe(true);
      const strange = await db.sql`
        select seq from finance_v1.nft_movements
        where token_id = ${tokenId}::numeric and operation_id is null`;
      if (truth.areAllOurs()) expect(strange).toHaveLength(0);
      const waiting = await db.sql`select id from tallyhook.observed_holders`;
      expect(waiting).toHaveLength(0);
    }),
    { numRuns: 60 },
  );
}, 120_000);
