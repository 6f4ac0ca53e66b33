/**
 * Resolves unknown sequential mints by complete scans of the contract's tokens. Two scans that
 * began after quiescence must agree; otherwise people decide, with the candidate tokens listed.
 */
import type { Queryable, Tx } from '../../db/connect.ts';
import { sameAddress } from '../../kernel/addresses.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import {
  newestScan,
  newestScans,
  requestScan,
  type StoredObservation,
} from '../../observer/observer.ts';
import { findOperations, type Operation } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { applyFinding, isQuiescent, markUndecided, quiescentAt } from '../resolution.ts';
import { tokenStateOf } from '../tokens/rule.ts';
import {
  type ListedToken,
  type MintFinding,
  mintEvidence,
  mintHashOf,
  type ScannedToken,
} from './mint-rule.ts';
import {
  HELD_MAX,
  knownOf,
  lastBurnUnseen,
  listHeld,
  listUnnumbered,
  type TokenKnown,
} from './mint-store.ts';

const MINTS_MAX = 500;
const CANDIDATES_MAX = 20;
/** Mints that one scan resolves. */
const APPLIED_MAX = 200;
/** Tokens of a page of a scan. */
const PAGE_TOKENS = 100;

/** Evaluates every unknown mint that the scan was made for. */
export async function evaluateScan(
  tx: Tx,
  deps: Deps,
  observation: Pick<StoredObservation, 'id' | 'startedAt' | 'endedAt' | 'record'>,
  now: Instant,
): Promise<EventDraft[]> {
  const scan = scanOf(observation);
  if (!scan || scan.truncated) return [];
  const mints = await openMints(tx, scan.contractId);
  const searched = new Set(scan.operationIds);
  const unknown = mints.filter(
    (operation) =>
      operation.state === 'unknown' &&
      searched.has(operation.id) &&
      isQuiescent(operation, observation.startedAt, deps),
  );
  const findings = await findingsOf(tx, unknown, scan, mints);
  const clear = unknown.flatMap((operation) => {
    const found = findings.get(operation.id);
    return found && found.outcome !== 'unclear' ? [{ operation, found }] : [];
  });
  const events: EventDraft[] = [];
  // The others are left to the next scan.
  for (const { operation, found } of clear.slice(0, APPLIED_MAX)) {
    const token = found.outcome === 'executed' ? found.token : undefined;
    const finding = {
      outcome: found.outcome,
      basis: 'scan',
      sufficient: true,
      evidence: {
        observation: observation.id,
        tokens_listed: scan.total,
        ...(token ? { token_id: token.tokenId.toString() } : {}),
      },
      startedAt: observation.startedAt,
      endedAt: observation.endedAt,
      txHash: token ? mintHashOf(operation, token) : null,
      tokenId: token?.tokenId ?? null,
    };
    events.push(...(await applyFinding(tx, deps, operation, finding, now)));
  }
  return events;
}

/** Requests scans for unknown mints: the first after quiescence, further ones at growing gaps. */
export async function requestScans(
  db: Queryable,
  deps: Deps,
  mints: readonly Operation[],
  now: Instant,
): Promise<void> {
  const soonest = new Map<bigint, Instant>();
  const scans = await newestScans(db, contractsOf(mints));
  for (const operation of mints) {
    const { contractId } = operation;
    if (contractId === null || operation.tokenId !== null) continue;
    const quiescent = quiescentAt(operation, deps);
    if (!Number.isFinite(quiescent)) continue;
    const last = scans.get(contractId);
    const newest = last && last.startedAt >= quiescent ? last : undefined;
    const wait = { kind: 'confirmation', since: quiescent };
    // A scan reads the whole list.
    const requests = 1 + Number(newest?.total ?? 0) / PAGE_TOKENS;
    const at = newest
      ? deps.polls.nextAt(wait, { polledAt: newest.endedAt, now: newest.endedAt, requests })
      : Math.max(quiescent, now);
    soonest.set(contractId, Math.min(at, soonest.get(contractId) ?? at));
  }
  for (const [contractId, at] of soonest) await requestScan(db, contractId, at, now);
}

/** The contracts of these operations, each once. */
export function contractsOf(operations: readonly Operation[]): bigint[] {
  return [...new Set(operations.flatMap(({ contractId }) => contractId ?? []))];
}

/** Marks a mint as undecided, with the tokens of the newest scan that may be its result. */
export async function markMintUndecided(
  tx: Tx,
  deps: Deps,
  operation: Operation,
  now: Instant,
): Promise<EventDraft[]> {
  const quiescent = quiescentAt(operation, deps);
  const observation = await newestScan(tx, operation.contractId ?? 0n, quiescent);
  const scan = observation && scanOf(observation);
  const findings =
    scan && (await findingsOf(tx, [operation], scan, await openMints(tx, scan.contractId)));
  const finding = findings?.get(operation.id);
  const unclear = finding?.outcome === 'unclear' ? finding : undefined;
  const evidence = {
    explanations: unclear?.why ?? 'no two complete scans agree within the time set',
    ...(observation ? { observation: observation.id } : {}),
    candidates: (unclear?.candidates ?? []).slice(0, CANDIDATES_MAX).map(shown),
  };
  return markUndecided(tx, deps, operation, evidence, now);
}

interface Scan {
  contractId: bigint;
  total: string;
  operationIds: string[];
  truncated: boolean;
  tokens: Record<string, unknown>[];
}

function scanOf({ record }: Pick<StoredObservation, 'record'>): Scan | undefined {
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

/** What a scan says about these mints; the number of statements does not depend on theirs. */
async function findingsOf(
  tx: Tx,
  operations: readonly Operation[],
  scan: Scan,
  open: readonly Operation[],
): Promise<Map<string, MintFinding>> {
  if (operations.length === 0) return new Map();
  const { contractId } = scan;
  const uris = new Set(operations.map(uriOf));
  const listed = scan.tokens.flatMap(listedToken).filter(({ uri }) => uris.has(uri ?? ''));
  const held = await listHeld(tx, contractId, [...uris]);
  const since = Math.min(...operations.map(sentAtOf));
  const isListed = new Set(listed.map(({ tokenId }) => tokenId));
  const all = [...listed, ...held.filter(({ tokenId }) => !isListed.has(tokenId))];
  const hashes = all.map(({ tokenId, lastTxHash }) => ({ tokenId, hash: lastTxHash }));
  const known = await knownOf(tx, contractId, hashes);
  const burnedAt = await lastBurnUnseen(tx, contractId, since);
  const heldBy = Map.groupBy(held, ({ uri }) => uri ?? '');
  const byUri = Map.groupBy(all, ({ uri }) => uri ?? '');
  const findingOf = (operation: Operation): MintFinding => {
    if ((heldBy.get(uriOf(operation))?.length ?? 0) >= HELD_MAX)
      return { outcome: 'unclear', why: 'too many tokens may be its result', candidates: [] };
    const tokens = (byUri.get(uriOf(operation)) ?? []).map((token) =>
      scannedToken(token, known.get(token.tokenId), isListed, operation),
    );
    const rivals = open.filter(({ id }) => id !== operation.id);
    const burned = burnedAt !== undefined && burnedAt >= sentAtOf(operation);
    return mintEvidence(operation, tokens, rivals, burned);
  };
  return new Map(operations.map((operation) => [operation.id, findingOf(operation)]));
}

function uriOf({ tokenUri }: Operation): string {
  return tokenUri ?? '';
}

function sentAtOf({ sentAt, recordedAt }: Operation): Instant {
  return sentAt ?? recordedAt;
}

async function openMints(tx: Tx, contractId: bigint): Promise<Operation[]> {
  const ids = await listUnnumbered(tx, contractId, MINTS_MAX);
  const found = await findOperations(tx, ids);
  return ids.flatMap((id) => found.get(id) ?? []);
}

function scannedToken(
  token: ListedToken,
  about: TokenKnown | undefined,
  isListed: ReadonlySet<bigint>,
  operation: Operation,
): ScannedToken {
  const owners = about?.owners ?? [];
  return {
    ...token,
    hashFree: isListed.has(token.tokenId) && (about?.hashOf ?? []).length === 0,
    claimed: (about?.claimedBy ?? []).some((id) => id !== operation.id),
    knownBefore: about?.firstKnownAt != null && about.firstKnownAt < sentAtOf(operation),
    ownerExplained: owners.some((addr) => sameAddress(addr, token.owner)),
    dataExplained: (about?.data ?? []).includes(token.extraData ?? ''),
  };
}

function listedToken(record: Record<string, unknown>): ListedToken[] {
  const tokenId = wholeOf(record.tokenId);
  if (tokenId === undefined) return [];
  const token = tokenStateOf(record);
  return [{ ...token, tokenId, lastTxHash: token.lastTxHash || null }];
}

function shown(token: ScannedToken): Json {
  return {
    token_id: token.tokenId.toString(),
    owner: token.owner,
    created: token.createdText,
    last_tx_hash: token.lastTxHash,
  };
}
