/**
 * Lost answers of mints whose number the service chooses: judged by complete sweeps over the
 * contract's tokens. Two of them that began after quiescence must agree; whatever is not proved
 * goes to people with the tokens that they should look at.
 */
import type { Queryable, Tx } from '../../db/connect.ts';
import { findOperation, type Operation } from '../../operations/operations.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { type LookToJudge, pendingGapMs, sweepSoon } from '../../observer/observer.ts';
import type { EventDraft } from '../../outbox/events.ts';
import { isUnlikely } from './probability.ts';
import type { Context } from '../deps.ts';
import {
  type ListedToken,
  type MintSaid,
  mintEvidence,
  mintHashOf,
  type SweptToken,
} from './mint-rule.ts';
import {
  burnedUnseen,
  HELD_MAX,
  knownOf,
  listHeld,
  listUnnumbered,
  newestSweep,
} from './mint-store.ts';
import { beliefIn, giveToPeople, isQuiet, quietAfter, takeEvidence } from '../resolution.ts';
import { sameAddress } from '../tokens/rule.ts';

/** Lost mints judged at once at most. */
const MINTS_MAX = 500;
/** Tokens that are named to people at most. */
const CANDIDATES_MAX = 20;

/** Judges every lost mint that a sweep looked for. */
export async function judgeSweep(
  tx: Tx,
  context: Context,
  look: LookToJudge,
  now: Instant,
): Promise<EventDraft[]> {
  const sweep = sweepOf(look);
  if (!sweep || sweep.truncated) return [];
  const mints = await openMints(tx, sweep.contractId);
  const events: EventDraft[] = [];
  for (const operation of mints) {
    if (operation.state !== 'unknown' || !sweep.wanted.includes(operation.id)) continue;
    if (!isQuiet(operation, look.started_at, context)) continue;
    const said = await saidOf(tx, operation, sweep, mints);
    if (said.outcome === 'unclear') continue;
    const belief = beliefIn(context, operation, look.started_at);
    if (said.outcome === 'not_executed' && !isUnlikely(belief)) continue;
    const token = said.outcome === 'executed' ? said.token : undefined;
    const statement = {
      outcome: said.outcome,
      basis: 'sweep',
      enough: true,
      evidence: {
        look: look.id,
        tokens_listed: sweep.total,
        ...(token ? { token_id: token.tokenId.toString() } : { belief_executed: belief }),
      },
      startedAt: look.started_at,
      endedAt: look.ended_at,
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
export async function wantSweeps(
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
    const quiet = quietAfter(operation, context);
    if (!Number.isFinite(quiet)) continue;
    const newest = await newestSweep(db, contractId, quiet);
    const at = newest
      ? newest.ended_at + pendingGapMs(settings, quiet, newest.ended_at)
      : Math.max(quiet, now);
    soonest.set(contractId, Math.min(at, soonest.get(contractId) ?? at));
  }
  for (const [contractId, at] of soonest) await sweepSoon(db, contractId, at, now);
}

/** Gives a lost mint to people, with the tokens of the newest sweep that may be its result. */
export async function giveMintToPeople(
  tx: Tx,
  context: Context,
  operation: Operation,
  now: Instant,
): Promise<EventDraft[]> {
  const quiet = quietAfter(operation, context);
  const look = await newestSweep(tx, operation.contractId ?? 0n, quiet);
  const sweep = look && sweepOf(look);
  const said = sweep && (await saidOf(tx, operation, sweep, await openMints(tx, sweep.contractId)));
  const unclear = said?.outcome === 'unclear' ? said : undefined;
  const evidence = {
    explanations: unclear?.why ?? 'no two complete sweeps agree within the time set',
    ...(look ? { look: look.id } : {}),
    candidates: (unclear?.candidates ?? []).slice(0, CANDIDATES_MAX).map(shown),
  };
  return giveToPeople(tx, context, operation, evidence, now);
}

interface Sweep {
  contractId: bigint;
  total: string;
  wanted: string[];
  truncated: boolean;
  tokens: Record<string, unknown>[];
}

function sweepOf({ record }: LookToJudge): Sweep | undefined {
  const sweep = record as Record<string, unknown> | null;
  const contractId = wholeOf(sweep?.contractId);
  if (!sweep || contractId === undefined || !Array.isArray(sweep.tokens)) return undefined;
  return {
    contractId,
    total: String(sweep.total),
    wanted: Array.isArray(sweep.wanted) ? sweep.wanted.map(String) : [],
    truncated: sweep.truncated === true,
    tokens: sweep.tokens as Record<string, unknown>[],
  };
}

async function saidOf(
  tx: Tx,
  operation: Operation,
  sweep: Sweep,
  open: readonly Operation[],
): Promise<MintSaid> {
  const sentAt = operation.sentAt ?? operation.recordedAt;
  const tokens = await tokensOf(tx, sweep, operation, sentAt);
  if (!tokens) return { outcome: 'unclear', why: 'too many tokens are like it', candidates: [] };
  const rivals = open.filter(({ id }) => id !== operation.id);
  const burned = await burnedUnseen(tx, sweep.contractId, sentAt);
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
  sweep: Sweep,
  operation: Operation,
  sentAt: Instant,
): Promise<SweptToken[] | undefined> {
  const uri = operation.tokenUri ?? '';
  const listed = sweep.tokens.flatMap(listedToken).filter((token) => token.uri === uri);
  const held = await listHeld(tx, sweep.contractId, uri, operation.id);
  if (held.length === HELD_MAX) return undefined;
  const unlisted = held.filter(({ tokenId }) => !listed.some((token) => token.tokenId === tokenId));
  const all = [...listed, ...unlisted];
  const known = await knownOf(
    tx,
    sweep.contractId,
    all.map(({ tokenId, lastTxHash }) => ({ tokenId, hash: lastTxHash })),
  );
  return all.map((token) => {
    const about = known.get(token.tokenId);
    const givenBy = about?.owners ?? [];
    return {
      ...token,
      hashFree: listed.includes(token) && (about?.hash_of ?? []).length === 0,
      claimed: (about?.claimed_by ?? []).some((id) => id !== operation.id),
      knownBefore: about?.first_known_at != null && about.first_known_at < sentAt,
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

function shown(token: SweptToken): Json {
  return {
    token_id: token.tokenId.toString(),
    owner: token.owner,
    created: token.createdText,
    last_tx_hash: token.lastTxHash,
  };
}
