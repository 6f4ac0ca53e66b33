/** Posting executed operations and posting requests, and reading what was posted. */
import { describe, expect, it } from 'vitest';
import {
  listAccounts,
  listTransactions,
  type PostingRequest,
  requestPosting,
  trialBalancePage,
} from '../../src/ledger/ledger.ts';
import { accountOfWallet } from '../../src/operations/operations.ts';
import { addr, give, openLedgerOfInserted, PLAIN, runDry, START, useLedger } from './fixture.ts';

const rig = useLedger();
const [A, B] = [addr(1), addr(2)];
const HUGE = 123456789012345678901234567890123456789012345678901234567890n;

const opening = (
  id: string,
  amount: bigint,
  more: Partial<PostingRequest> = {},
): PostingRequest => ({
  id,
  kind: 'opening',
  account: accountOfWallet(A),
  counter: 'opening',
  amount,
  effectiveAt: START,
  effectiveBasis: 'observed',
  requestedBy: 'reconciler',
  ...more,
});

describe('Operations', () => {
  it('An executed operation is posted once, with everything that names it', async () => {
    const fields = { reasonType: 'event', reference: 'order 1', txAppNo: 5n, txLogNo: 2n ** 70n };
    await rig.put(
      give('op_1', { ...fields, amount: HUGE, effectiveAt: START + 7, effectiveBasis: 'answer' }),
      give('op_2', { state: 'unknown' }),
      give('op_3', { state: 'rejected' }),
    );
    expect(await rig.runOnce()).toEqual({ posted: 1, quarantined: 0, more: false });
    expect(await rig.runOnce()).toEqual({ posted: 0, quarantined: 0, more: false });
    expect(await listTransactions(rig.database.db, { limit: 10 })).toEqual([
      {
        ...fields,
        id: 1n,
        batchId: 1n,
        kind: 'give',
        operationId: 'op_1',
        postingRequestId: null,
        reverses: null,
        requestedBy: 'app',
        effectiveAt: START + 7,
        effectiveBasis: 'answer',
        recordedAt: START + 1_000,
        driftId: null,
        decidedBy: null,
        reason: null,
        fee: 0n,
        entries: [
          { account: 'operator:7', amount: -HUGE, balanceAfter: -HUGE },
          { account: `wallet:${A}`, amount: HUGE, balanceAfter: HUGE },
        ],
      },
    ]);
  });

  it('Two spellings of one wallet have one account, named by the first', async () => {
    await rig.put(
      give('op_1'),
      give('op_2', { toAddr: A.toUpperCase().replace('0X', '0x'), recordedAt: START + 1 }),
    );
    await rig.post();
    await rig.put(give('op_3', { toAddr: A.toLowerCase() }));
    await rig.post();
    const accounts = await listAccounts(rig.database.db, { limit: 10 });
    expect(accounts.map(({ account, balance, entries }) => [account, balance, entries])).toEqual(
      expect.arrayContaining([
        ['operator:7', -30n, 3n],
        [`wallet:${A}`, 30n, 3n],
      ]),
    );
    expect(accounts).toHaveLength(2);
    const lower = `wallet:${A.toLowerCase()}`;
    expect(await rig.balances(lower, 'wallet:none')).toEqual({ [lower]: '30' });
  });

  it('An operation that is no longer executed is reversed, and posted again once it is', async () => {
    await rig.put(give('op_1', { effectiveAt: START + 7, state: 'executed' }));
    await rig.post();
    await rig.setState('not_executed', 'op_1');
    await rig.post();
    expect(await rig.balances('operator:7', `wallet:${A}`)).toEqual({
      'operator:7': '0',
      [`wallet:${A}`]: '0',
    });
    await rig.setState('executed', 'op_1');
    await rig.post();
    const all = await listTransactions(rig.database.db, { operationId: 'op_1', limit: 10 });
    expect(
      all.map(({ id, kind, reverses, effectiveAt }) => [id, kind, reverses, effectiveAt]),
    ).toEqual([
      [3n, 'give', null, START + 7],
      [2n, 'reversal', 1n, START + 7],
      [1n, 'give', null, START + 7],
    ]);
  });

  it('A pass full of operations that need no posting any more is followed by another', async () => {
    const batchMax = 2;
    const { database, clock } = rig;
    const small = await openLedgerOfInserted({
      db: database.db,
      clock,
      daemonId: 'dmn_2',
      batchMax,
    });
    await rig.put(give('op_1', { state: 'not_executed' }), give('op_2', { state: 'not_executed' }));
    await database.owner.sql`
      insert into tallyhook.due_postings (operation_id, due_at)
      values ('op_1', 'epoch'), ('op_2', 'epoch')`;
    await rig.put(give('op_3'));
    expect(await small.runOnce(clock.now())).toEqual({ posted: 0, quarantined: 0, more: true });
    expect(await small.runOnce(clock.now())).toMatchObject({ posted: 1 });
  });

  it('A reversal negates what was posted, even when the effect settings changed since', async () => {
    await rig.put(give('op_1'));
    await rig.post();
    await rig.setState('failed', 'op_1');
    rig.clock.advance(60_000);
    const settings = { ...PLAIN, operators: new Map([['7', B]]) };
    const [db, clock] = [rig.database.db, rig.clock];
    await runDry(
      await openLedgerOfInserted({ db, clock, books: settings, daemonId: 'dmn_2' }),
      clock,
    );
    expect(await rig.balances('operator:7', `wallet:${B}`)).toEqual({ 'operator:7': '0' });
  });

  it('Each batch is recorded later than the one before, even when the clock goes back', async () => {
    for (const [n, at] of [START, START, START - 5_000, START + 9].entries()) {
      rig.clock.set(at);
      await rig.put(give(`op_${n}`));
      await rig.runOnce();
    }
    const all = await listTransactions(rig.database.db, { limit: 10 });
    expect(all.map((t) => t.recordedAt - START).reverse()).toEqual([0, 1, 2, 9]);
  });

  it('NFT writes are movements and change no account', async () => {
    const token = { contractId: 3n, tokenId: 2n ** 64n, txHash: 'h', state: 'settled' as const };
    const parties = [
      ['mint_sequential', null, A],
      ['transfer_from', A, B],
      ['set_extra_data', null, null],
      ['burn', null, null],
      ['mint', null, B],
    ] as const;
    const writes = parties.map(([kind, fromAddr, toAddr], i) => {
      return { ...token, fromAddr, toAddr, id: `op_${i}`, kind, recordedAt: START + i };
    });
    const unsettled = { ...token, id: 'op_8', kind: 'burn' as const, state: 'accepted' as const };
    await rig.put(...writes, unsettled, { id: 'op_9', kind: 'other', state: 'settled' });
    expect(await rig.post()).toEqual({ posted: 5, quarantined: 0 });
    await rig.setState('failed', 'op_1');
    await rig.post();
    const rows = await rig.database.db.sql`
      select kind, contract_id, token_id, from_addr, to_addr, operation_id, posting, tx_hash
      from tallyhook.nft_movements order by id`;
    const same = { contractId: 3n, tokenId: 2n ** 64n, txHash: 'h' };
    const moves = ['mint', 'transfer', 'data_change', 'burn', 'mint'];
    expect([...rows]).toEqual([
      ...moves.map((kind, i) => {
        const [, fromAddr, toAddr] = parties[i] ?? [];
        return { ...same, fromAddr, toAddr, kind, operationId: `op_${i}`, posting: 1 };
      }),
      { ...same, kind: 'reversal', fromAddr: B, toAddr: A, operationId: 'op_1', posting: 2 },
    ]);
    expect(await listAccounts(rig.database.db, { limit: 10 })).toEqual([]);
  });
});

describe('Posting requests', () => {
  it('A repeated posting request is posted once, and only if its caller commits', async () => {
    await rig.request(opening('opening:a', 40n));
    await rig.request(opening('opening:a', 41n));
    const undone = new Error('undo');
    const run = rig.database.db.begin(async (tx) => {
      await requestPosting(tx, opening('opening:b', 5n), START);
      throw undone;
    });
    await expect(run).rejects.toBe(undone);
    expect(await rig.post()).toEqual({ posted: 1, quarantined: 0 });
    expect(await rig.balances(`wallet:${A}`, 'opening')).toEqual({
      [`wallet:${A}`]: '40',
      opening: '-40',
    });
  });

  it('An opening of zero opens the account without an entry', async () => {
    await rig.request(opening('opening:a', 0n));
    expect(await rig.post()).toEqual({ posted: 1, quarantined: 0 });
    expect(await rig.balances(`wallet:${A}`)).toEqual({ [`wallet:${A}`]: '0' });
    expect(await listTransactions(rig.database.db, { limit: 10 })).toEqual([]);
  });

  it('A reversal is posted after the request that it reverses, and names it', async () => {
    const back = { kind: 'reversal', counter: 'external', reverses: 'drift:1' } as const;
    await rig.request(
      opening('drift:1:back', -5n, back),
      opening('drift:1', 5n, { kind: 'booking', counter: 'external' }),
      opening('drift:2:back', -5n, { ...back, reverses: 'drift:2' }),
      opening('drift:1:again', -5n, back),
    );
    expect(await rig.post()).toEqual({ posted: 2, quarantined: 2 });
    const all = await listTransactions(rig.database.db, { account: 'external', limit: 10 });
    expect(
      all.map(({ kind, postingRequestId, reverses }) => [kind, postingRequestId, reverses]),
    ).toEqual([
      ['reversal', 'drift:1:back', 1n],
      ['booking', 'drift:1', null],
    ]);
    expect(await rig.quarantined()).toEqual({
      'drift:2:back': 'what it reverses is not in the ledger',
      'drift:1:again': 'database error: 23505 (transactions_reversed_once)',
    });
  });

  it('A posting request for an impossible account name is refused at once', async () => {
    const wrong = rig.request(opening('opening:a', 1n, { account: 'wallet:short' }));
    await expect(wrong).rejects.toThrow('the account has no valid name');
  });
});

describe('Reads', () => {
  it('A trial balance is given as of an effective time, a recording time, or both', async () => {
    await rig.put(give('op_1', { effectiveAt: START + 10 }));
    await rig.post();
    rig.clock.advance(1_000);
    await rig.put(give('op_2', { effectiveAt: START + 5, amount: 3n }));
    await rig.post();
    const lines = async (at: { asOf?: number; knownAt?: number }) =>
      (await trialBalancePage(rig.database.db, at, { limit: 10 })).lines.map(
        ({ account, debit, credit }) => `${account} ${debit} ${credit}`,
      );
    const wallet = `wallet:${A}`;
    expect(await lines({})).toEqual(['operator:7 0 13', `${wallet} 13 0`]);
    expect(await lines({ asOf: START + 5 })).toEqual([]);
    expect(await lines({ asOf: START + 6 })).toEqual(['operator:7 0 3', `${wallet} 3 0`]);
    expect(await lines({ knownAt: START + 1_000 })).toEqual(['operator:7 0 10', `${wallet} 10 0`]);
    expect(await lines({ asOf: START + 6, knownAt: START + 1_000 })).toEqual([]);
  });

  it('Transactions and accounts are listed in pages', async () => {
    const many = [1, 2, 3].map((n) => give(`op_${n}`, { recordedAt: START + n, toAddr: addr(n) }));
    await rig.put(...many);
    await rig.post();
    const ids = async (page: { before?: bigint; account?: string }) =>
      (await listTransactions(rig.database.db, { ...page, limit: 2 })).map((t) => t.id);
    expect(await ids({})).toEqual([3n, 2n]);
    expect(await ids({ before: 2n })).toEqual([1n]);
    expect(await ids({ account: `wallet:${addr(2).toLowerCase()}` })).toEqual([2n]);
    const first = await listAccounts(rig.database.db, { limit: 3 });
    const rest = await listAccounts(rig.database.db, { after: first.at(-1)?.id ?? 0n, limit: 3 });
    expect([first.length, rest.length]).toEqual([3, 1]);
  });
});
