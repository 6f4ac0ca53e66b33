/** What others gave elsewhere and tell only later, each with the time at which it was made. */
import { must } from '../../../src/kernel/errors.ts';
import { makeIds } from '../../../src/kernel/ids.ts';
import { jsonText } from '../../../src/kernel/json.ts';
import { makeMetrics } from '../../../src/kernel/telemetry/metrics.ts';
import { listIncludedInOpenings } from '../../../src/ledger/ledger.ts';
import {
  findOperation,
  makeReportedOperations,
  type Operation,
  type Report,
} from '../../../src/operations/operations.ts';
import { makeOutbox } from '../../../src/outbox/outbox.ts';
import type { Effect } from '../../../src/sandbox/state/records.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import { reportOf } from '../../ledger/builders.ts';
import type { Outside } from './outside.ts';
import type { Simulation } from './run.ts';
import type { World } from './world.ts';

/** An operator whose wallet nobody knows. */
const OTHER_OPERATOR = 77n;
const FIRST_NUMBER = 9_000_000n;
/** A wallet that nobody observes. */
const OUTSIDER = `0x0fe${'0'.repeat(37)}`;

/** What people act through; each has ids of its own. */
export function stagesOf(world: World) {
  const { db, clock, plan, daemons, books } = world;
  world.stages += 1;
  const ids = makeIds(clock, seededRandom(plan.seed * 104_729 + world.stages + clock.now()));
  const outbox = makeOutbox({ clock, ids });
  const [daemon] = daemons;
  if (!daemon) throw new Error('no daemon');
  return { db, clock, ids, outbox, effectSettings: books, operations: daemon.write.operations };
}

const REPORTER = { owner: 'x', keyId: 'k' };

export type Stages = ReturnType<typeof stagesOf>;

function reportsIn(world: World, stages: Stages) {
  return makeReportedOperations({
    ...stages,
    metrics: makeMetrics(),
    includedInOpenings: (tx, reported, before) =>
      listIncludedInOpenings(tx, reported, world.books, before),
    observe: async () => {},
    onRecorded: () => {},
  });
}

/**
 * Reports some of the changes made elsewhere that are not reported yet: one in three, as far as
 * they gave. With the fault `reports` another third, also of those that took, so that one of
 * several of a wallet is reported and others are not.
 */
export async function reportLate(world: World, outside: Outside[]): Promise<void> {
  const takesToo = world.plan.faults.includes('reports');
  const isLate = ({ amount, reportedAt }: Outside, n: number) =>
    reportedAt === undefined && ((n % 3 === 0 && amount > 0n) || (n % 3 === 1 && takesToo));
  for (const change of outside.filter(isLate)) await reportChange(world, outside, change);
}

/** Reports a change with the time at which it was made. */
export async function reportChange(
  world: World,
  outside: readonly Outside[],
  change: Outside,
): Promise<void> {
  change.reportedAt = world.clock.now();
  const number = FIRST_NUMBER + BigInt(outside.indexOf(change));
  const reports = reportsIn(world, stagesOf(world));
  const [result] = await reports.report([reportOfOther(change, number)], REPORTER);
  if (result?.result !== 'recorded')
    throw new Error(`a report was ${result?.result}: ${jsonText(result)}`);
}

/** An operator of another app gave it, or it was transferred to a wallet that nobody observes. */
function reportOfOther({ addr, amount, at }: Outside, txLogNo: bigint): Report {
  const about = { txAppNo: 7n, txLogNo, occurredAt: at };
  return amount > 0n
    ? reportOf({ ...about, fields: { operationNo: OTHER_OPERATOR, toAddr: addr, amount } })
    : reportOf({
        ...about,
        kind: 'transfer',
        fields: { fromAddr: addr, toAddr: OUTSIDER, amount: -amount, feeAmount: 0n },
      });
}

/** So many of the app's own writes are reported at each rest. */
const OWN_MAX = 4;

/**
 * Reports writes of the app itself that Tallyhook knows: those whose answer had no app number, with
 * both numbers, and some on tokens, with the hash in other letter case.
 */
export async function reportOwn(world: World, { incidents }: Simulation): Promise<void> {
  const { db, sandbox } = world;
  const rows = await db.sql<{ id: string }[]>`
    (select id from tallyhook.operations where source = 'gateway' and tx_log_no is not null
      and reference = any(${[...world.appless]}::text[]) order by id desc limit ${OWN_MAX})
    union all
    (select id from tallyhook.operations where source = 'gateway' and tx_hash is not null
      and token_id is not null and state in ('accepted', 'settled')
      order by id desc limit ${OWN_MAX})`;
  const reports = reportsIn(world, stagesOf(world));
  const effects = [...sandbox.world.effects.values()];
  for (const { id } of rows) {
    const known = must(await findOperation(db, id), id);
    const { txLogNo, txHash } = known;
    const effect = effects.find((e) =>
      txHash === null ? e.tx_log_no === txLogNo : e.tx_hash === txHash,
    );
    if (!effect) continue;
    const [result] = await reports.report([ownReport(known, effect)], REPORTER);
    if (result?.result === 'recorded' && result.isNew)
      incidents.doubled.push(`${id} ${known.reference}: its report is ${result.operation.id}`);
  }
}

function ownReport(known: Operation, effect: Effect): Report {
  const { txLogNo, txHash } = known;
  return {
    kind: known.kind as Report['kind'],
    txAppNo: txLogNo === null ? null : effect.tx_app_no,
    txLogNo,
    txHash: txHash?.replace(/[a-f]/g, (digit) => digit.toUpperCase()) ?? null,
    occurredAt: effect.at,
    reference: null,
    operationId: null,
    distinct: true,
    body: '{}',
    fields: {
      operationNo: known.operationNo,
      fromAddr: known.fromAddr,
      toAddr: known.toAddr,
      amount: known.amount,
      feeAmount: known.feeAmount,
      reasonType: known.reasonType,
      contractId: known.contractId,
      tokenId: known.tokenId,
      tokenUri: known.tokenUri,
      metaData: known.metaData,
      extraData: known.extraData,
    },
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
  const report = reportOf({
    kind: 'mint_sequential',
    txHash: made.tx_hash,
    occurredAt: made.at,
    operationId,
    fields: { toAddr, contractId, tokenUri, metaData, extraData, tokenId: made.token_id },
  });
  const [result] = await reportsIn(world, stages).report([report], REPORTER);
  if (result?.result === 'refused') throw new Error(`${operationId}: ${jsonText(result)}`);
}
