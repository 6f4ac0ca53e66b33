/** What others gave elsewhere and tell only later, each with the time at which it was made. */
import { makeIds } from '../../../src/kernel/ids.ts';
import { jsonText } from '../../../src/kernel/json.ts';
import { makeMetrics } from '../../../src/kernel/metrics.ts';
import { addDuePostings, listIncludedInOpenings } from '../../../src/ledger/ledger.ts';
import { makeReportedOperations, type Operation } from '../../../src/operations/operations.ts';
import { makeOutbox } from '../../../src/outbox/outbox.ts';
import type { Effect } from '../../../src/sandbox/state/records.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import type { Outside } from './outside.ts';
import type { World } from './world.ts';

/** An operator whose wallet nobody knows. */
const OTHER_OPERATOR = 77n;
const FIRST_NUMBER = 9_000_000n;

/** What people act through; made once at an instant, since its ids follow from that. */
export function stagesOf({ db, clock, plan, restarts, daemons, books }: World) {
  const ids = makeIds(clock, seededRandom(plan.seed * 104_729 + restarts + clock.now()));
  const outbox = makeOutbox({ clock, ids, fanOut: async () => {} });
  const [daemon] = daemons;
  if (!daemon) throw new Error('no daemon');
  return { db, clock, ids, outbox, effectSettings: books, operations: daemon.write.operations };
}

const REPORTER = { owner: 'x', keyId: 'k' };

export type Stages = ReturnType<typeof stagesOf>;

function reportsIn(world: World, stages: Stages) {
  return makeReportedOperations({
    ...{ ...stages, metrics: makeMetrics(), addDuePostings },
    includedInOpenings: (tx, reported, before) =>
      listIncludedInOpenings(tx, reported, world.books, before),
    observe: async () => {},
  });
}

/** Reports one of three changes made elsewhere, as far as they gave and are not reported yet. */
export async function reportLate(world: World, outside: Outside[]): Promise<void> {
  const reports = reportsIn(world, stagesOf(world));
  const late = outside.filter((c, n) => n % 3 === 0 && c.amount > 0n && c.reportedAt === undefined);
  for (const change of late) {
    change.reportedAt = world.clock.now();
    const number = FIRST_NUMBER + BigInt(outside.indexOf(change));
    const [result] = await reports.report([reportOf(change, number)], REPORTER);
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

/** Reports which token a sequential mint made whose answer was lost. */
export async function reportMint(
  world: World,
  stages: Stages,
  mint: Operation,
  made: Effect,
): Promise<void> {
  const { id: operationId, toAddr, contractId, tokenUri, metaData, extraData } = mint;
  const none = { operationNo: null, fromAddr: null, amount: null, feeAmount: null };
  const texts = { reasonType: null, tokenUri, metaData, extraData };
  const report = {
    ...{ kind: 'mint_sequential' as const, txAppNo: null, txLogNo: null, txHash: made.tx_hash },
    ...{ occurredAt: made.at, reference: null, operationId, distinct: true, body: '{}' },
    fields: { ...none, ...texts, toAddr, contractId, tokenId: made.token_id },
  };
  const [result] = await reportsIn(world, stages).report([report], REPORTER);
  if (result?.result === 'refused') throw new Error(`${operationId}: ${jsonText(result)}`);
}
