/** Another fee rule leads to the ledger that would have had it from the beginning. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Ledger, requestPosting, setFeeRules } from '../../src/ledger/ledger.ts';
import {
  accountOfWallet,
  type EffectSettings,
  effectsOrNone,
  type FeeRules,
  type Operation,
} from '../../src/operations/operations.ts';
import { balancesOf } from '../harness/books.ts';
import { createDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import {
  addr,
  faultsOf,
  NO_FAULTS,
  openLedger,
  openLedgerOfInserted,
  operation,
  putOperations,
  runDry,
  START,
  setState,
} from './fixture.ts';

const WALLETS = [0, 1, 2].map(addr);

const booksOf = (rules: FeeRules, mapped: boolean): EffectSettings => ({
  ...rules,
  operators: new Map(),
  ...(mapped ? { feesAddr: addr(0), collectionAddr: addr(2) } : {}),
});

/** A write every second; now and then the fee exceeds the amount. */
const write = fc.record({
  kind: fc.constantFrom('give' as const, 'receive_from' as const, 'transfer' as const),
  from: fc.nat(2),
  to: fc.nat(2),
  amount: fc.bigInt(1n, 9n),
  fee: fc.bigInt(0n, 10n),
  source: fc.constantFrom('gateway' as const, 'report' as const),
  /** Its state before the rule changes. */
  state: fc.constantFrom('accepted' as const, 'unknown' as const, 'not_executed' as const),
});
type Write = typeof write extends fc.Arbitrary<infer T> ? T : never;

const mode = fc.constantFrom('on_top' as const, 'deducted' as const);
const rules = fc.record({
  feeMode: mode,
  feeChanges: fc
    .uniqueArray(fc.record({ from: fc.integer({ min: 0, max: 12 }), mode }), {
      maxLength: 3,
      selector: ({ from }) => from,
    })
    .map((changes) =>
      changes
        .sort((a, b) => a.from - b.from)
        .map(({ from, ...rule }) => ({ ...rule, from: START + from * 1_000 })),
    ),
});

function operationsOf(writes: readonly Write[]): Partial<Operation>[] {
  return writes.map(({ kind, from, to, amount, fee, source, state }, n) => ({
    id: `op_${n}`,
    kind,
    source,
    state,
    amount,
    operationNo: 1n,
    fromAddr: WALLETS[from] ?? null,
    toAddr: WALLETS[to] ?? null,
    feeAmount: kind === 'give' ? 0n : fee,
    recordedAt: START + n * 1_000,
    effectiveAt: START + n * 1_000,
    ...(source === 'report'
      ? { effectiveBasis: 'reported' }
      : { sentAt: START + n * 1_000, effectiveBasis: 'answer' }),
  }));
}

/** The openings of wallets after so many writes: what was observed, less what was executed. */
async function openAt(
  seen: number,
  operations: readonly Partial<Operation>[],
  { database, books, balance }: { database: Database; books: EffectSettings; balance: bigint },
) {
  const at = START + seen * 1_000 - 1;
  const held = operations.slice(0, seen).filter(({ state }) => state === 'accepted');
  const before = await balancesOf(database.db, WALLETS.map(accountOfWallet));
  await database.db.begin(async (tx) => {
    for (const wallet of WALLETS) {
      const account = accountOfWallet(wallet);
      const effects = held.flatMap((one) => effectsOrNone(operation(one), books));
      const own = effects.filter((effect) => effect.account === account);
      await requestPosting(
        tx,
        {
          id: `opening:${wallet.toLowerCase()}`,
          kind: 'opening',
          account,
          amount: own.reduce((rest, { amount }) => rest - amount, balance),
          counter: 'opening',
          effectiveAt: at,
          effectiveBasis: 'observed',
          requestedBy: 'reconciler',
          seen: { at, version: before.get(account)?.version ?? 0n },
        },
        at,
      );
    }
  });
}

type Database = Awaited<ReturnType<typeof createDatabase>>;

/** Plays the writes under the first books, changes to the second ones, and ends the open writes. */
async function play(
  writes: readonly Write[],
  { first, then, seen }: { first: EffectSettings; then: EffectSettings; seen: number },
) {
  const database = await createDatabase();
  try {
    const { db, owner } = database;
    const clock = manualClock(START + 3_600_000);
    const operations = operationsOf(writes);
    await setFeeRules(db, first, clock.now());
    const before = await openLedgerOfInserted({ db, clock, books: first, batchMax: 3 });
    await putOperations(owner, operations.slice(0, seen));
    await runDry(before, clock);
    await openAt(seen, operations, { database, books: first, balance: 1_000n });
    await putOperations(owner, operations.slice(seen));
    await runDry(before, clock);
    await setFeeRules(db, then, clock.now());
    const daemons = await Promise.all(
      ['dmn_a', 'dmn_b'].map((daemonId) => openLedger({ db, clock, books: then, daemonId })),
    );
    await runAll(daemons, clock.now() + 60_000);
    clock.advance(120_000);
    const open = operations.filter(({ state }) => state === 'unknown').map(({ id = '' }) => id);
    await setState(owner, open, 'accepted');
    await owner.sql`
      update tallyhook.operations set effective_basis = 'decision'
      where id = any(${open}::text[])`;
    const after = await openLedgerOfInserted({ db, clock, books: then, daemonId: 'dmn_c' });
    await runDry(after, clock);
    expect(await faultsOf(owner)).toEqual(NO_FAULTS);
    return {
      balances: await owner.sql`
        select name, balance from tallyhook.accounts where balance <> 0 order by name`,
      effects: await owner.sql`
        select operation_id, account, amount, phase from tallyhook.operation_effects
        where amount <> 0 order by operation_id, line`,
      quarantined: await owner.sql`
        select operation_id, quarantine_reason from tallyhook.due_postings order by 1`,
    };
  } finally {
    await database.drop();
  }
}

/** Several daemons at once, until none finds work. */
async function runAll(daemons: readonly Ledger[], now: number): Promise<void> {
  for (let idle = 0; idle < 2; ) {
    const passes = await Promise.all(daemons.map((ledger) => ledger.runOnce(now)));
    idle = passes.some(({ posted, more }) => posted > 0 || more) ? 0 : idle + 1;
  }
}

it('After any rule, the ledger becomes one that had the rule from the beginning', async () => {
  const property = fc.asyncProperty(
    fc.array(write, { maxLength: 12 }),
    fc.record({ wrong: rules, right: rules, mapped: fc.boolean() }),
    fc.nat(12),
    async (writes, { wrong, right, mapped }, seen) => {
      const [first, then] = [booksOf(wrong, mapped), booksOf(right, mapped)];
      const changed = await play(writes, { first, then, seen });
      expect(changed).toEqual(await play(writes, { first: then, then, seen }));
    },
  );
  await fc.assert(property, { numRuns: 12 });
});
