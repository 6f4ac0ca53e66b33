/**
 * When an absence is believed: the service's own refusal names the wallet or token (the parser
 * decides that), and right after it something else of that kind that is known to exist is answered;
 * without budget for that, a later refusal, with such an answer in between, has to do.
 * A list without tokens likewise: a token that is known to exist contradicts it, and the list of
 * another contract has to answer. An observation of an absence is thus one voice; the reconciler
 * wants two. Where nothing else is known to exist the refusal itself has to do.
 */
import type { Queryable } from '../db/connect.ts';
import type { Instant } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import type { Observation, TokenRecord, Upstream, WalletRecord } from '../upstream/upstream.ts';
import { expedite, type TargetColumns, type TargetRef, targetName, toTarget } from './targets.ts';

interface AbsenceDeps {
  db: Queryable;
  /** Deadlines are read before each request, because another daemon may have received one. */
  upstream: Pick<Upstream, 'account' | 'token' | 'tokens' | 'syncQuota'>;
  /** For one read. */
  pollTimeoutMs: number;
}

/** A target that one read shows. */
export type Readable = Exclude<TargetRef, { kind: 'contract' }>;

/** The observation; inconclusive if it is an absence that is not confirmed. */
export async function withConfirmedAbsence<T>(
  deps: AbsenceDeps,
  ref: Readable,
  observation: Observation<T>,
): Promise<Observation<T>> {
  if (observation.result !== 'absent' || (await isGone(deps, ref))) return observation;
  const { startedAt, endedAt } = observation;
  return { startedAt, endedAt, result: 'inconclusive', cause: 'unconfirmed' };
}

/** Whether an empty list of a contract may be true: no token of it is known to exist. */
export async function isListEmpty(deps: AbsenceDeps, contractId: bigint): Promise<boolean> {
  const other = await findOtherContract(deps.db, contractId);
  if (other === undefined) return true;
  await deps.upstream.syncQuota();
  const signal = AbortSignal.timeout(deps.pollTimeoutMs);
  const seen = await deps.upstream.tokens(other, { page: 1, perPage: 1 }, 'pending', signal);
  return seen.result === 'seen' && seen.record.total > 0n;
}

async function isGone(deps: AbsenceDeps, ref: Readable): Promise<boolean> {
  const { db, upstream, pollTimeoutMs } = deps;
  const others = await listOthers(db, ref);
  for (const { target } of others) {
    await upstream.syncQuota();
    const seen = await read(upstream, target, 'pending', pollTimeoutMs);
    if (seen.result === 'inconclusive' && seen.isUnsent)
      return wasSeenSinceRefusal(db, ref, others, seen.endedAt);
    if (seen.result !== 'absent') return seen.result === 'seen';
  }
  // No other is known, or the others are gone as well.
  if (ref.kind === 'wallet') return others.length === 0;
  const { contractId, tokenId } = ref;
  await upstream.syncQuota();
  const signal = AbortSignal.timeout(pollTimeoutMs);
  const list = await upstream.tokens(contractId, { page: 1, perPage: 100 }, 'pending', signal);
  return list.result === 'seen' && !list.record.tokens.some((one) => one.tokenId === tokenId);
}

/** Reads a wallet or a token. */
export function read(
  upstream: Pick<Upstream, 'account' | 'token'>,
  ref: Readable,
  priority: 'unknown' | 'pending' | 'steady',
  timeoutMs: number,
): Promise<Observation<WalletRecord | TokenRecord>> {
  const signal = AbortSignal.timeout(timeoutMs);
  return ref.kind === 'wallet'
    ? upstream.account(ref.addr, priority, signal)
    : upstream.token(ref.contractId, ref.tokenId, priority, signal);
}

/** The wallet or token of a target. */
export function readableOf({ kind, addr, contractId, tokenId }: TargetColumns): Readable {
  if (kind === 'wallet') return { kind, addr: must(addr, 'address') };
  return {
    kind: 'token',
    contractId: must(contractId, 'contract'),
    tokenId: must(tokenId, 'token'),
  };
}

/** Others that are read at most, and neighbours among which they are looked for. */
const OTHERS_MAX = 2;
const SEARCHED_MAX = 50;

interface Other {
  target: Readable;
  seenAt: Instant;
}

/** Whether another was seen since the target was refused before; if not, one is polled. */
async function wasSeenSinceRefusal(
  db: Queryable,
  ref: Readable,
  others: readonly Other[],
  now: Instant,
): Promise<boolean> {
  const rows = await db.sql<{ at: Instant | null }[]>`
    select refused_at as at from tallyhook.targets where name = ${targetName(ref)}`;
  const refusedAt = rows[0]?.at ?? Number.POSITIVE_INFINITY;
  if (others.some(({ seenAt }) => seenAt > refusedAt)) return true;
  await expedite(db, new Map(others.map(({ target }) => [targetName(target), now])));
  return false;
}

/** Wallets, or tokens of the same contract, that were seen last time. */
async function listOthers({ sql }: Queryable, ref: Readable): Promise<Other[]> {
  const name = targetName(ref);
  const { contractId } = toTarget(ref);
  const columns = sql`name, kind, addr, contract_id, token_id, last_result, last_started_at`;
  const rows = await sql<(TargetColumns & { lastStartedAt: Instant })[]>`
    select kind, addr, contract_id, token_id, last_started_at from (
      (select ${columns} from tallyhook.targets where name > ${name}
        order by name limit ${SEARCHED_MAX})
      union all
      (select ${columns} from tallyhook.targets where name < ${name}
        order by name desc limit ${SEARCHED_MAX})) t
    where kind = ${ref.kind} and last_result = 'seen'
      and contract_id is not distinct from ${contractId?.toString() ?? null}::numeric
    order by last_started_at desc limit ${OTHERS_MAX}`;
  return rows.map((row) => ({ target: readableOf(row), seenAt: row.lastStartedAt }));
}

async function findOtherContract(
  { sql }: Queryable,
  contractId: bigint,
): Promise<bigint | undefined> {
  const id = contractId.toString();
  const rows = await sql<{ contractId: bigint }[]>`
    select contract_id from (
      (select contract_id, presence from tallyhook.tokens where contract_id > ${id}::numeric
        order by contract_id, token_id limit ${SEARCHED_MAX})
      union all
      (select contract_id, presence from tallyhook.tokens where contract_id < ${id}::numeric
        order by contract_id desc, token_id desc limit ${SEARCHED_MAX})) k
    where presence = 'present' limit 1`;
  return rows[0]?.contractId;
}
