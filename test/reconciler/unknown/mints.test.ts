import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/kernel/json.ts';
import { plannedAt, recordObservation } from '../../../src/observer/observations.ts';
import type { Deps } from '../../../src/reconciler/deps.ts';
import { evaluateScan } from '../../../src/reconciler/unknown/mints.ts';
import { PLAIN } from '../../ledger/fixture.ts';
import { SETTINGS } from '../builders.ts';
import { freshAddr, openRig } from '../rig.ts';
import { freshHash } from '../tokens/scenario.ts';

const CONTRACT = 9n;
const rig = await openRig();

let serial = 0;
/** A token that no other test mints. */
function mintFields() {
  const n = ++serial;
  return {
    contractId: CONTRACT,
    toAddr: freshAddr(),
    tokenUri: `ipfs://kind-${n}`,
    metaData: `{"kind":${n}}`,
    extraData: '{}',
  };
}
type MintFields = ReturnType<typeof mintFields>;

let numbers = 0n;
/** The minted token, as a list shows it. */
function mintedToken(fields: MintFields) {
  return {
    contractId: CONTRACT,
    tokenId: ++numbers,
    owner: fields.toAddr,
    uri: fields.tokenUri,
    metaData: fields.metaData,
    extraData: fields.extraData,
    creator: freshAddr(),
    createdAtText: '2026-01-01 00:00:00',
    ownedAtText: '2026-01-01 00:00:00',
    locked: false,
    status: 1,
    lastTxHash: freshHash(),
  };
}

async function unknownMint(fields: MintFields): Promise<string> {
  const id = await rig.send('mint_sequential', fields);
  await rig.lose(id);
  // A pass requests the scan.
  await rig.wait(5_000);
  return id;
}

/** A complete scan for these operations that found these tokens. */
async function scan(operationIds: string[], tokens: Json[], given: { truncated?: boolean } = {}) {
  rig.clock.advance(2_000);
  const startedAt = rig.clock.now();
  rig.clock.advance(10);
  const record = {
    contractId: CONTRACT,
    creator: null,
    total: String(tokens.length),
    lastPage: 1,
    operationIds,
    tokens,
    truncated: false,
    ...given,
  };
  const observation = {
    id: rig.ids.next('obs'),
    target: `scan:${CONTRACT}:*`,
    kind: 'scan',
    startedAt,
    endedAt: rig.clock.now(),
    result: 'seen' as const,
    cause: null,
    record,
  };
  const plan = plannedAt(rig.clock.now() + 60_000);
  await rig.database.db.begin((tx) => recordObservation(tx, observation, plan));
  await rig.process();
}
async function lostMints(fields: readonly MintFields[]): Promise<string[]> {
  const ids: string[] = [];
  for (const one of fields) {
    const id = await rig.send('mint_sequential', one);
    await rig.lose(id);
    ids.push(id);
  }
  return ids;
}
/** What an evaluation is given by the reconciler. */
const evaluation = (): Deps => ({
  ids: rig.ids,
  operations: rig.operations,
  effectSettings: PLAIN,
  settings: SETTINGS,
  availableSince: 0,
  restoredAt: undefined,
  pollBy: () => {},
  polls: { nextAt: () => 0, learn: () => {} },
});
const passQuiescence = () => rig.clock.advance(110_000);

describe('An unknown sequential mint', () => {
  it('It is executed with its number and hash when two scans show one matching token', async () => {
    const fields = mintFields();
    const id = await unknownMint(fields);
    passQuiescence();
    const token = mintedToken(fields);
    await scan([id], [token]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await scan([id], [token]);
    expect(await rig.operation(id)).toMatchObject({
      state: 'executed',
      tokenId: token.tokenId,
      txHash: token.lastTxHash,
      evidence: { basis: 'scan' },
    });
  });

  it('It gets no hash that a later write on its token may have made before its effect showed', async () => {
    const fields = mintFields();
    const id = await unknownMint(fields);
    const token = mintedToken(fields);
    const { tokenId } = token;
    const parties = { fromAddr: fields.toAddr, toAddr: freshAddr() };
    const later = await rig.send('transfer_from', { contractId: CONTRACT, tokenId, ...parties });
    await rig.lose(later);
    passQuiescence();
    for (let i = 0; i < 2; i++) await scan([id], [token]);
    expect(await rig.operation(id)).toMatchObject({ state: 'executed', tokenId, txHash: null });
  });

  it('It is not executed when two scans after quiescence show no matching token', async () => {
    const fields = mintFields();
    const id = await unknownMint(fields);
    for (let i = 0; i < 3; i++) await scan([id], []);
    expect(await rig.stateOf(id)).toBe('unknown');
    passQuiescence();
    for (let i = 0; i < 2; i++) await scan([id], []);
    expect(await rig.operation(id)).toMatchObject({ state: 'not_executed' });
  });

  it('Three hundred of one contract are resolved by the same scans', async () => {
    const fields = Array.from({ length: 300 }, mintFields);
    const ids = await lostMints(fields);
    passQuiescence();
    const tokens = fields.map(mintedToken);
    for (let n = 0; n < 4; n++) await scan(ids, tokens);
    for (const id of ids) expect(await rig.stateOf(id)).toBe('executed');
  });

  it('A hundred need as many statements as ten to be compared with a scan', async () => {
    const fields = Array.from({ length: 100 }, mintFields);
    const ids = await lostMints(fields);
    passQuiescence();
    // Two tokens for each, so that none is resolved.
    const tokens = fields.flatMap((one) => [mintedToken(one), mintedToken(one)]);
    const statements = (count: number) =>
      rig.database.db.begin(async (tx) => {
        let calls = 0;
        const sql = new Proxy(tx.sql, {
          apply(target, self, input) {
            calls += 1;
            return Reflect.apply(target, self, input);
          },
        });
        const [startedAt, endedAt] = [rig.clock.now() - 10, rig.clock.now()];
        const record = {
          contractId: CONTRACT,
          creator: null,
          total: '200',
          lastPage: 1,
          operationIds: ids.slice(0, count),
          tokens,
          truncated: false,
        };
        const observation = { id: 'obs_1', startedAt, endedAt, record };
        const events = await evaluateScan({ ...tx, sql }, evaluation(), observation, endedAt);
        expect(events).toEqual([]);
        return calls;
      });
    expect(await statements(100)).toBe(await statements(10));
  });

  it('Its scan is due after quiescence', async () => {
    const id = await unknownMint(mintFields());
    await rig.wait(5_000);
    const rows = await rig.database.db.sql<{ at: number }[]>`
      select next_poll_at as at from tallyhook.targets where name = ${`scan:${CONTRACT}:*`}`;
    const sent = await rig.operation(id);
    expect(rows[0]?.at).toBeLessThanOrEqual((sent?.sendDeadlineAt ?? 0) + 31_000);
  });

  it('A scan for other operations, or a truncated one, is no evidence', async () => {
    const fields = mintFields();
    const id = await unknownMint(fields);
    passQuiescence();
    for (let i = 0; i < 3; i++) await scan([], []);
    for (let i = 0; i < 3; i++) await scan([id], [], { truncated: true });
    expect(await rig.stateOf(id)).toBe('unknown');
  });

  it('Two equal mints with one token become undecided, with the token as candidate', async () => {
    const fields = mintFields();
    const ids = [await unknownMint(fields), await unknownMint(fields)];
    passQuiescence();
    const token = mintedToken(fields);
    for (let i = 0; i < 3; i++) await scan(ids, [token]);
    for (const id of ids) expect(await rig.stateOf(id)).toBe('unknown');
    await rig.wait(700_000);
    for (const id of ids)
      expect(await rig.operation(id)).toMatchObject({
        state: 'undecided',
        evidence: { candidates: [{ token_id: token.tokenId.toString() }] },
      });
  });

  it('The token of an accepted mint is not its result', async () => {
    const fields = mintFields();
    const answered = await rig.send('mint_sequential', fields);
    const token = mintedToken(fields);
    await rig.conclude(answered, {
      class: 'accepted',
      txHash: token.lastTxHash,
      tokenId: token.tokenId,
    });
    const id = await unknownMint(fields);
    passQuiescence();
    for (let i = 0; i < 2; i++) await scan([id, answered], [token]);
    expect(await rig.stateOf(id)).toBe('not_executed');
  });

  it('A token observed before the send is not its result', async () => {
    const fields = mintFields();
    const token = mintedToken(fields);
    const ref = { kind: 'token', contractId: CONTRACT, tokenId: token.tokenId } as const;
    await rig.put(ref, 'seen', { ...token });
    const id = await unknownMint(fields);
    passQuiescence();
    for (let i = 0; i < 2; i++) await scan([id], [token]);
    expect(await rig.stateOf(id)).toBe('not_executed');
  });

  it('A token that was observed and burned since is its result, and settles with the next poll', async () => {
    const fields = mintFields();
    const id = await unknownMint(fields);
    const token = mintedToken(fields);
    const ref = { kind: 'token', contractId: CONTRACT, tokenId: token.tokenId } as const;
    rig.clock.advance(3_000);
    await rig.put(ref, 'seen', { ...token });
    await rig.process();
    for (let i = 0; i < 2; i++) {
      rig.clock.advance(3_000);
      await rig.put(ref, 'absent', null);
    }
    await rig.process();
    passQuiescence();
    for (let i = 0; i < 2; i++) await scan([id], []);
    expect(await rig.operation(id)).toMatchObject({ state: 'executed', txHash: null });
    expect(await rig.dueInMs(ref)).toBeLessThanOrEqual(0);
    await rig.put(ref, 'absent', null);
    await rig.process();
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('A token that was observed and is missing in the scans is its result', async () => {
    const fields = mintFields();
    const id = await unknownMint(fields);
    const token = mintedToken(fields);
    const ref = { kind: 'token', contractId: CONTRACT, tokenId: token.tokenId } as const;
    rig.clock.advance(3_000);
    await rig.put(ref, 'seen', { ...token, status: 2 });
    await rig.process();
    passQuiescence();
    for (let i = 0; i < 2; i++) await scan([id], []);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('A burn of a token that was never observed keeps it unknown', async () => {
    const id = await unknownMint(mintFields());
    const burn = await rig.send('burn', { contractId: CONTRACT, tokenId: 4_000n });
    await rig.acceptHash(burn, freshHash());
    passQuiescence();
    for (let i = 0; i < 3; i++) await scan([id], []);
    expect(await rig.stateOf(id)).toBe('unknown');
  });
});
