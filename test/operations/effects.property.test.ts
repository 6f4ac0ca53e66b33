/**
 * After any sequence of recording, answers, decisions, reports and postings, the rows of
 * `operation_effects`, the due postings, and the pending and posted balances of each account follow
 * from the states of the operations.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Db } from '../../src/db/connect.ts';
import {
  accountKey,
  type EffectSettings,
  effectsOrNone,
  type Kind,
  listOperations,
  makeReportedOperations,
  type NewWrite,
  NFT_KINDS,
  type Operation,
  type Report,
  recordedEffectsOf,
  type State,
  TOKEN_KINDS,
} from '../../src/operations/operations.ts';
import { createDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { naiveEffects } from '../harness/naive-effects.ts';
import { openStages } from '../harness/stages.ts';
import { reportOf } from '../ledger/builders.ts';
import { Model } from './effects-model.ts';
import { conclusion, nextNumber, write } from './rig.ts';

const addr = (n: number) => `0xAb${String(n).padStart(38, '0')}`;
const [OPERATOR, FEES, POT] = [addr(7), addr(8), addr(9)];
const TTL_MS = 3_600_000;

const wallets = [addr(1), addr(1).toLowerCase(), addr(2), OPERATOR, FEES, POT];
const wallet = fc.option(fc.constantFrom(...wallets), { freq: 15 });
const FIELDS = {
  fromAddr: wallet,
  toAddr: wallet,
  operationNo: fc.constantFrom(1n, 2n),
  amount: fc.option(fc.bigInt(1n, 10n ** 40n), { freq: 15 }),
  feeAmount: fc.constantFrom(null, 0n, 0n, 0n, 5n),
  contractId: fc.constant(3n),
  tokenId: fc.option(fc.bigInt(1n, 99n), { freq: 9 }),
};
const writeFields = {
  kind: fc.constantFrom<Kind>(
    ...TOKEN_KINDS,
    ...TOKEN_KINDS,
    ...TOKEN_KINDS,
    ...NFT_KINDS,
    'other',
  ),
  fields: fc.record(FIELDS),
};
const CLASSES = ['accepted', 'rejected', 'unavailable', 'not_sent', 'unknown'] as const;
const STATES: State[] = ['executed', 'not_executed', 'undecided', 'settled', 'failed'];
const which = fc.nat(99);
interface Step {
  do: string;
  kind?: Kind;
  fields?: NewWrite['fields'];
  which?: number;
  cls?: (typeof CLASSES)[number];
  to?: State;
}
const steps = (weight: number, arbitrary: fc.Arbitrary<Step>) => ({ weight, arbitrary });
const step = fc.oneof(
  steps(3, fc.record({ do: fc.constantFrom('record', 'queue'), ...writeFields })),
  steps(1, fc.record({ do: fc.constantFrom('report', 'report as included'), ...writeFields })),
  steps(4, fc.record({ do: fc.constant('conclude'), which, cls: fc.constantFrom(...CLASSES) })),
  steps(4, fc.record({ do: fc.constant('move'), which, to: fc.constantFrom(...STATES) })),
  steps(1, fc.record({ do: fc.constantFrom('claim', 'cancel'), which })),
  steps(2, fc.record({ do: fc.constant('post') })),
);
const settings: fc.Arbitrary<EffectSettings> = fc.record({
  feeMode: fc.constantFrom('on_top', 'deducted'),
  operators: fc.constantFrom(new Map(), new Map([['1', OPERATOR]])),
  feesAddr: fc.constantFrom(undefined, FEES),
  collectionAddr: fc.constantFrom(undefined, POT),
});

type Stages = Awaited<ReturnType<typeof openStages>>;

/** Takes one step; most steps have no effect in most states. */
async function take(stages: Stages, clock: ManualClock, effects: EffectSettings, one: Step) {
  const { db, ids, outbox, metrics, operations, ledger } = stages;
  const { kind = 'give', fields = {} } = one;
  const all = await listOperations(db, { limit: 100 });
  const id = all[(one.which ?? 0) % all.length]?.id ?? 'op_none';
  switch (one.do) {
    case 'record':
      return operations.record(write({ kind, fields }));
    case 'queue':
      return operations.record(
        write({ kind, fields, queue: true, expiresAt: clock.now() + TTL_MS }),
      );
    case 'conclude':
      if (all.length === 0) return;
      return operations.conclude(conclusion(id, one.cls ?? 'unknown', clock.now()));
    case 'move': {
      // What the reconciler settles is posted.
      if (one.to === 'settled' && (await isDue(db, id))) return;
      const to = { id, to: one.to ?? 'executed', at: clock.now(), cause: 'test', decided: true };
      return db.begin((tx) => operations.move(tx, [to]));
    }
    case 'claim':
      return operations.claimQueued(clock.now(), 2);
    case 'cancel':
      return operations.cancel(id, { owner: 'app', admin: true }).catch(() => undefined);
    case 'post':
      while ((await ledger.runOnce(clock.now())).more);
      return;
    default: {
      const included = one.do === 'report as included';
      const reported = makeReportedOperations({
        db,
        clock,
        ids,
        outbox,
        metrics,
        effectSettings: effects,
        includedInOpenings: async (_, written) => new Set(included ? written.map((o) => o.id) : []),
        observe: async () => {},
        onRecorded: () => {},
      });
      return reported.report([reportFor(kind, fields, clock)], { owner: 'app', keyId: 'key_1' });
    }
  }
}

function reportFor(kind: Kind, fields: object, clock: ManualClock): Report {
  const isNft = NFT_KINDS.includes(kind);
  return reportOf({
    kind: kind === 'other' ? 'give' : kind,
    txAppNo: isNft ? null : 7n,
    txLogNo: isNft ? null : nextNumber(),
    txHash: isNft ? `0x${nextNumber()}` : null,
    occurredAt: clock.now(),
    fields,
  });
}

async function isDue(db: Db, id: string): Promise<boolean> {
  const rows = await db.sql`select 1 from tallyhook.due_postings where operation_id = ${id}`;
  return rows.length > 0;
}

/** The metric counts each change of a state once. */
async function checkCounts({ sql }: Db, { metrics }: Stages): Promise<void> {
  const rows = await sql<{ line: string }[]>`
    select format('tallyhook_operations_total{kind="%s",state="%s"} %s', kind, to_state, count(*))
      as line
    from tallyhook.transitions t join tallyhook.operations o on o.id = t.operation_id
    where from_state is distinct from to_state
    group by kind, to_state`;
  // Every series begins at 0.
  const counted = (await metrics.text()).match(/^tallyhook_operations_total{.* [1-9]\d*$/gm);
  expect((counted ?? []).sort()).toEqual(rows.map(({ line }) => line).sort());
}

async function check(owner: Db, model: Model, operations: readonly Operation[]): Promise<void> {
  const { sql } = owner;
  const rows = await sql`
    select operation_id, line, account, amount, phase from tallyhook.operation_effects
    order by operation_id, line`;
  expect([...rows]).toEqual(
    operations.flatMap((operation) =>
      recordedEffectsOf(operation, model.effects).effects.map((effect, i) => {
        return {
          operationId: operation.id,
          line: i + 1,
          ...effect,
          phase: model.phaseOf(operation),
        };
      }),
    ),
  );
  const due = await sql`
    select operation_id as id, quarantine_reason from tallyhook.due_postings order by 1`;
  expect(due.map((row) => [row.id, row.quarantineReason !== null])).toEqual(model.due());
  const pending = await sql`
    select account_key, unposted, in_flight, unknown, open_up, open_down
    from tallyhook.pending_effects`;
  expect(new Map(pending.map(({ accountKey: key, ...sums }) => [key, sums]))).toEqual(
    model.pending(operations),
  );
  const positions = await sql`
    select 'wallet:' || lower(addr) as key, ledger_balance, unposted, in_flight, unknown,
      best_case, worst_case from finance_v1.wallet_positions`;
  expect(new Map(positions.map(({ key, ...sums }) => [key, sums]))).toEqual(
    new Map(model.positions(operations) as [string, object][]),
  );
}

it('Effects, due postings and positions follow from the states of the operations', async () => {
  await fc.assert(
    fc.asyncProperty(
      settings,
      fc.array(step, { maxLength: 40, size: 'max' }),
      async (effects, sequence) => {
        const database = await createDatabase();
        try {
          const clock = manualClock();
          const stages = await openStages(database.db, {
            clock,
            pause: clock.pause,
            settings: { effects, conflictWaitMs: 0 },
          });
          const model = new Model(effects);
          for (const one of sequence) {
            clock.advance(1);
            await take(stages, clock, effects, one);
            const operations = (await listOperations(database.db, { limit: 100 })).toReversed();
            model.follow(operations, one.do === 'post');
            await check(database.owner, model, operations);
          }
          await checkCounts(database.owner, stages);
        } finally {
          await database.drop();
        }
      },
    ),
    { numRuns: 10, interruptAfterTimeLimit: 40_000 },
  );
});

const WHEN = { sentAt: null, effectiveAt: null, recordedAt: 0 };

it('The effects of a write are those of a naive second definition', () => {
  fc.assert(
    fc.property(settings, writeFields.kind, writeFields.fields, (effects, kind, fields) => {
      const write = { ...WHEN, kind, ...fields };
      const found = effectsOrNone(write, effects);
      fc.pre(found.length > 0);
      const sums = new Map<string, bigint>();
      for (const { account, amount } of found)
        sums.set(accountKey(account), (sums.get(accountKey(account)) ?? 0n) + amount);
      const naive = naiveEffects(write, effects);
      const changing = (all: Map<string, bigint>) => new Map([...all].filter(([, n]) => n !== 0n));
      expect(changing(sums)).toEqual(changing(naive));
    }),
  );
});
