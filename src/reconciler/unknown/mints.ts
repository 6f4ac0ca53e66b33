/**
 * Lost answers of mints whose number the service chooses: judged by complete sweeps over the
 * contract's tokens. Two of them that began after quiescence must agree; whatever is not proved
 * goes to people with the tokens that they should look at.
 */
import type { Queryable, Tx } from '../../db/connect.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { pendingIntervalMs, requestScan, type StoredObservation } from '../../observer/observer.ts';
import { findOperation, type Operation } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Context } from '../deps.ts';
import { beliefIn, giveToPeople, isQuiescent, quietAfter, takeEvidence } from '../resolution.ts';
import { sameAddress } from '../tokens/rule.ts';
import {
  type ListedToken,
  type MintSaid,
  mintEvidence,
  mintHashOf,
  type ScannedToken,
} from './mint-rule.ts';
import {
  burnedUnseen,
  HELD_MAX,
  knownOf,
  listHeld,
  listUnnumbered,
  newestScan,
} from './mint-store.ts';
import { isUnlikely } from './probability.ts';

/** Lost mints judged at once at most. */
const MINTS_MAX = 500;
/** Tokens that are named to people at most. */
const CANDIDATES_MAX = 20;

/** Judges every lost mint that a sweep looked for. */
export async function evaluateScan(
  tx: Tx,
  context: Context,
  observation: StoredObservation,
  now: Instant,
): Promise<EventDraft[]> {
  const scan = scanOf(observation);
  if (!scan || scan.truncated) return [];
  const mints = await openMints(tx, scan.contractId);
  const events: EventDraft[] = [];
  for (const operation of mints) {
    if (operation.state !== 'unknown' || !scan.operationIds.includes(operation.id)) continue;
    if (!isQuiescent(operation, observation.startedAt, context)) continue;
    const said = await saidOf(tx, operation, scan, mints);
    if (said.outcome === 'unclear') continue;
    const belief = beliefIn(context, operation, observation.startedAt);
    if (said.outcome === 'not_executed' && !isUnlikely(belief)) continue;
    const token = said.outcome === 'executed' ? said.token : undefined;
    const statement = {
      outcome: said.outcome,
      basis: 'scan',
      enough: true,
      evidence: {
        observation: observation.id,
        tokens_listed: scan.total,
        ...(token ? { token_id: token.tokenId.toString() } : { belief_executed: belief }),
      },
      startedAt: observation.startedAt,
      endedAt: observation.endedAt,
      txHash: token ? mintHashOf(operation, token) : null,
      tokenId: token?.tokenId ?? null,
    };
    events.push(...(await takeEvidence(tx, context, operation, statement, now)));
  }
  return events;
}

/**
 * Sees to it that a lost mint is swept for: once it is quiet, again while one sweep stands alone,
 * and after that less and less often.
 */
export async function requestScans(
  db: Queryable,
  context: Context,
  mints: readonly Operation[],
  now: Instant,
): Promise<void> {
  const { settings } = context;
  const soonest = new Map<bigint, Instant>();
  for (const operation of mints) {
    const { contractId } = operation;
    if (contractId === null || operation.tokenId !== null) continue;
    const quiescent = quietAfter(operation, context);
    if (!Number.isFinite(quiescent)) continue;
    const newest = await newestScan(db, contractId, quiescent);
    const at = newest
      ? newest.endedAt + pendingIntervalMs(settings, quiescent, newest.endedAt)
      : Math.max(quiescent, now);
    soonest.set(contractId, Math.min(at, soonest.get(contractId) ?? at));
  }
  for (const [contractId, at] of soonest) await requestScan(db, contractId, at, now);
}

/** Gives a lost mint to people, with the tokens of the newest sweep that may be its result. */
export async function giveMintToPeople(
  tx: Tx,
  context: Context,
  operation: Operation,
  now: Instant,
): Promise<EventDraft[]> {
  const quiescent = quietAfter(operation, context);
  const observation = await newestScan(tx, operation.contractId ?? 0n, quiescent);
  const scan = observation && scanOf(observation);
  const said = scan && (await saidOf(tx, operation, scan, await openMints(tx, scan.contractId)));
  const unclear = said?.outcome === 'unclear' ? said : undefined;
  const evidence = {
    explanations: unclear?.why ?? 'no two complete sweeps agree within the time set',
    ...(observation ? { observation: observation.id } : {}),
    candidates: (unclear?.candidates ?? []).slice(0, CANDIDATES_MAX).map(shown),
  };
  return giveToPeople(tx, context, operation, evidence, now);
}

interface Scan {
  contractId: bigint;
  total: string;
  operationIds: string[];
  truncated: boolean;
  tokens: Record<string, unknown>[];
}

function scanOf({ record }: StoredObservation): Scan | undefined {
  const scan = record as Record<string, unknown> | null;
  const contractId = wholeOf(scan?.contractId);
  if (!scan || contractId === undefined || !Array.isArray(scan.tokens)) return undefined;
  return {
    contractId,
    total: String(scan.total),
    operationIds: Array.isArray(scan.operationIds) ? scan.operationIds.map(String) : [],
    truncated: scan.truncated === true,
    tokens: scan.tokens as Record<string, unknown>[],
  };
}

async function saidOf(
  tx: Tx,
  operation: Operation,
  scan: Scan,
  open: readonly Operation[],
): Promise<MintSaid> {
  const sentAt = operation.sentAt ?? operation.recordedAt;
  const tokens = await tokensOf(tx, scan, operation, sentAt);
  if (!tokens) return { outcome: 'unclear', why: 'too many tokens are like it', candidates: [] };
  const rivals = open.filter(({ id }) => id !== operation.id);
  const burned = await burnedUnseen(tx, scan.contractId, sentAt);
  return mintEvidence(operation, tokens, rivals, burned);
}

/** Mints of a contract, not refused, whose token nobody knows. */
async function openMints(tx: Tx, contractId: bigint): Promise<Operation[]> {
  const ids = await listUnnumbered(tx, contractId, MINTS_MAX);
  const found = await Promise.all(ids.map((id) => findOperation(tx, id)));
  return found.filter((operation) => operation !== undefined);
}

/** Every token that may be meant, there or gone, with what is known of it; or too many of them. */
async function tokensOf(
  tx: Tx,
  scan: Scan,
  operation: Operation,
  sentAt: Instant,
): Promise<ScannedToken[] | undefined> {
  const uri = operation.tokenUri ?? '';
  const listed = scan.tokens.flatMap(listedToken).filter((token) => token.uri === uri);
  const held = await listHeld(tx, scan.contractId, uri, operation.id);
  if (held.length === HELD_MAX) return undefined;
  const unlisted = held.filter(({ tokenId }) => !listed.some((token) => token.tokenId === tokenId));
  const all = [...listed, ...unlisted];
  const known = await knownOf(
    tx,
    scan.contractId,
    all.map(({ tokenId, lastTxHash }) => ({ tokenId, hash: lastTxHash })),
  );
  return all.map((token) => {
    const about = known.get(token.tokenId);
    const givenBy = about?.owners ?? [];
    return {
      ...token,
      hashFree: listed.includes(token) && (about?.hashOf ?? []).length === 0,
      claimed: (about?.claimedBy ?? []).some((id) => id !== operation.id),
      knownBefore: about?.firstKnownAt != null && about.firstKnownAt < sentAt,
      ownerExplained: givenBy.some((addr) => sameAddress(addr, token.owner)),
      dataExplained: (about?.data ?? []).includes(token.extraData ?? ''),
    };
  });
}

function listedToken(record: Record<string, unknown>): ListedToken[] {
  const tokenId = wholeOf(record.tokenId);
  if (tokenId === undefined) return [];
  const token = {
    tokenId,
    owner: text(record.owner),
    creator: text(record.creator),
    uri: text(record.uri),
    metadata: text(record.metaData),
    extraData: text(record.extraData),
    status: Number(record.status),
    locked: record.locked ? 1 : 0,
    lastTxHash: text(record.lastTxHash) || null,
    createdText: text(record.createdAtText),
    ownedText: text(record.ownedAtText),
  };
  return [token];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function shown(token: ScannedToken): Json {
  return {
    token_id: token.tokenId.toString(),
    owner: token.owner,
    created: token.createdText,
    last_tx_hash: token.lastTxHash,
  };
}
