/** Reports of what was done elsewhere, people who decide, and balances as of a time. */
import { makeDecisions, type Report } from '../../src/operations/operations.ts';
import { makeDrifts, type ProposalInput } from '../../src/reconciler/reconciler.ts';
import { reportOf } from '../ledger/builders.ts';
import { PLAIN } from '../ledger/fixture.ts';
import type { Rig } from './rig.ts';

let numbers = 8_000_000n;

const OTHER = '0xE000000000000000000000000000000000000001';

/** A give to a wallet, or with a negative amount a transfer from it. */
export function giveOf(addr: string, amount: bigint, occurredAt: number): Report {
  const common = { txAppNo: 1n, txLogNo: ++numbers, occurredAt };
  return amount > 0n
    ? reportOf({ ...common, fields: { operationNo: 7n, toAddr: addr, amount } })
    : reportOf({
        ...common,
        kind: 'transfer',
        fields: { fromAddr: addr, toAddr: OTHER, amount: -amount, feeAmount: 0n },
      });
}

export const lateReports =
  ({ reported }: Rig) =>
  (...some: Report[]) =>
    reported.report(some, { owner: 'x', keyId: 'k' });

/** Two owners: one proposes, the other approves. */
export function makePeople({ database, clock, outbox, metrics, operations }: Rig) {
  const { db } = database;
  const [ann, bob] = [
    { owner: 'ann', keyId: 'ann' },
    { owner: 'bob', keyId: 'bob' },
  ];
  const drifts = makeDrifts({ db, clock, outbox, operations, effectSettings: PLAIN });
  const decisions = makeDecisions({ db, clock, outbox, metrics });
  return {
    ann,
    bob,
    drifts,
    decisions,
    async end(id: string, input: Omit<ProposalInput, 'reason'>) {
      const proposed = await drifts.propose([id], { ...input, reason: 'r' }, ann);
      await drifts.approve(
        proposed.flatMap((result) => ('drift' in result ? result.id : [])),
        {},
        bob,
      );
    },
    async decide(id: string, outcome: 'executed' | 'not_executed') {
      await decisions.propose(id, { outcome, reason: 'r' }, ann);
      await decisions.approve(id, {}, bob);
    },
  };
}

/** The balance of a wallet as of a time by the ledger. */
export async function asOf({ database }: Rig, addr: string, at: number) {
  const rows = await database.owner.sql<{ balance: bigint | null }[]>`
    select balance from finance_v1.balances_as_of(${new Date(at).toISOString()})
    where lower(account) = ${`wallet:${addr.toLowerCase()}`}`;
  return rows[0]?.balance;
}
