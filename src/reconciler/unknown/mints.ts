/**
 * Resolves unknown sequential mints by complete scans of the contract's tokens. Two scans that
 * began after quiescence must agree; otherwise people decide, with the candidate tokens listed.
 */
import type { Queryable, Tx } from '../../db/connect.ts';
import { sameAddress } from '../../kernel/addresses.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { newestScan, requestScan, type StoredObservation } from '../../observer/observer.ts';
import { findOperation, type Operation } from '../../operations/operations.ts';
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
import { burnedUnseen, HELD_MAX, knownOf, listHeld, listUnnumbered } from './mint-store.ts';

const MINTS_MAX = 500;
const CANDIDATES_MAX = 20;
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
  const events: EventDraft[] = [];
  for (const operation of mints) {
    if (operation.state !== 'unknown' || !scan.operationIds.includes(operation.id)) continue;
    if (!isQuiescent(operation, observation.startedAt, deps)) continue;
    const found = await findingOf(tx, operation, scan, mints);
    if (found.outcome === 'unclear') continue;
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
  for (const operation of mints) {
    const { contractId } = operation;
    if (contractId === null || operation.tokenId !== null) continue;
    const quiescent = quiescentAt(operation, deps);
    if (!Number.isFinite(quiescent)) continue;
    const newest = await newestScan(db, contractId, quiescent);
    const wait = { kind: 'confirmation', since: quiescent };
    // A scan reads the whole list.
    const requests = 1 + Number(newest ? (scanOf(newest)?.total ?? 0) : 0) / PAGE_TOKENS;
    const at = newest
      ? deps.polls.nextAt(wait, { polledAt: newest.endedAt, now: newest.endedAt, requests })
      : Math.max(quiescent, now);
    soonest.set(contractId, Math.min(at, soonest.get(contractId) ?? at));
  }
  for (const [contractId, at] of soonest) await requestScan(db, contractId, at, now);
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
  const finding =
    scan && (await findingOf(tx, operation, scan, await openMints(tx, scan.contractId)));
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

async function findingOf(
  tx: Tx,
  operation: Operation,
  scan: Scan,
  open: readonly Operation[],
): Promise<MintFinding> {
  const sentAt = operation.sentAt ?? operation.recordedAt;
  const tokens = await tokensOf(tx, scan, operation, sentAt);
  if (!tokens)
    return { outcome: 'unclear', why: 'too many tokens may be its result', candidates: [] };
  const rivals = open.filter(({ id }) => id !== operation.id);
  const burned = await burnedUnseen(tx, scan.contractId, sentAt);
  return mintEvidence(operation, tokens, rivals, burned);
}

async function openMints(tx: Tx, contractId: bigint): Promise<Operation[]> {
  const ids = await listUnnumbered(tx, contractId, MINTS_MAX);
  const found = await Promise.all(ids.map((id) => findOperation(tx, id)));
  return found.filter((operation) => operation !== undefined);
}

/** The tokens, present or absent, that may be the result; undefined when there are too many. */
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
    const owners = about?.owners ?? [];
    return {
      ...token,
      hashFree: listed.includes(token) && (about?.hashOf ?? []).length === 0,
      claimed: (about?.claimedBy ?? []).some((id) => id !== operation.id),
      knownBefore: about?.firstKnownAt != null && about.firstKnownAt < sentAt,
      ownerExplained: owners.some((addr) => sameAddress(addr, token.owner)),
      dataExplained: (about?.data ?? []).includes(token.extraData ?? ''),
    };
  });
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
