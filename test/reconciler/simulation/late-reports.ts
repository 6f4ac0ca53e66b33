/** What others gave elsewhere and tell only later, each with the time at which it was made. */
import { makeIds } from '../../../src/kernel/ids.ts';
import { makeMetrics } from '../../../src/kernel/metrics.ts';
import { addDuePostings, listIncludedInOpenings } from '../../../src/ledger/ledger.ts';
import { makeReportedOperations } from '../../../src/operations/operations.ts';
import { makeOutbox } from '../../../src/outbox/outbox.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import type { Outside } from './outside.ts';
import type { World } from './world.ts';

/** An operator whose wallet nobody knows. */
const OTHER_OPERATOR = 77n;
const FIRST_NUMBER = 9_000_000n;

/** What people act through. */
export function stagesOf({ db, clock, plan, restarts, daemons, books }: World) {
  const ids = makeIds(clock, seededRandom(plan.seed * 104_729 + restarts + clock.now()));
  const outbox = makeOutbox({ clock, ids, fanOut: async () => {} });
  const [daemon] = daemons;
  if (!daemon) throw new Error('no daemon');
  return { db, clock, ids, outbox, effectSettings: books, operations: daemon.write.operations };
}

/** Reports one of three changes made elsewhere, as far as they gave and are not reported yet. */
export async function reportLate(world: World, outside: Outside[]): Promise<void> {
  const reports = makeReportedOperations({
    ...{ ...stagesOf(world), metrics: makeMetrics(), addDuePostings },
    includedInOpenings: (tx, reported, before) =>
      listIncludedInOpenings(tx, reported, world.books, before),
    observe: async () => {},
  });
  const late = outside.filter((c, n) => n % 3 === 0 && c.amount > 0n && c.reportedAt === undefined);
  for (const change of late) {
    change.reportedAt = world.clock.now();
    const number = FIRST_NUMBER + BigInt(outside.indexOf(change));
    const [result] = await reports.report([reportOf(change, number)], { owner: 'x', keyId: 'k' });
    if (result?.result !== 'recorded') throw new Error(`a report was ${result?.result}`);
  }
}

function reportOf({ addr, amount, at }: Outside, txLogNo: bigint) {
  const none = { fromAddr: null, feeAmount: null, contractId: null, tokenId: null };
  const noTexts = { reasonType: null, tokenUri: null, metaData: null, extraData: null };
  return {
    ...{ kind: 'give' as const, txAppNo: 7n, txLogNo, txHash: null, occurredAt: at },
    ...{ reference: null, operationId: null, distinct: true, body: '{}' },
    fields: { ...none, ...noTexts, operationNo: OTHER_OPERATOR, toAddr: addr, amount },
  };
}
