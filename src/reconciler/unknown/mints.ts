/**
 * Resolves unknown sequential mints by complete scans of the contract's tokens. Two scans that
 * began after quiescence must agree; otherwise people decide, with the candidate tokens listed.
 */
import { asJson, type Queryable, type Tx } from '../../db/connect.ts';
import { sameAddress, txHashKey } from '../../kernel/addresses.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
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
import { sentAtOf, tokenStateOf } from '../tokens/rule.ts';
import {
  type ListedToken,
  type MintFinding,
  mintEvidence,
  mintHashOf,
  type ScannedToken,
} from './mint-rule.ts';

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
    hashFree:
      isListed.has(token.tokenId) && (about?.hashOf ?? []).length === 0 && about?.written !== true,
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

/** What is known about one token besides the scan. */
interface TokenKnown {
  tokenId: bigint;
  /** The operations that made it, by number or hash. */
  claimedBy: string[];
  /** The operations with the token's newest hash. */
  hashOf: string[];
  /** A write after its mint may have been executed, and has replaced the hash before its effect. */
  written: boolean;
  /** When it was first observed, or first named by an operation. */
  firstKnownAt: Instant | null;
  /** Owners and extra data that operations, except those not executed, gave it. */
  owners: string[];
  data: string[];
}

const SCANS_SEARCHED_MAX = 20;

/**
 * What operations and observations say about the tokens of a scan. Rows are looked up in scalar
 * subqueries: a join planned while a table was small would scan it all later.
 */
export async function knownOf(
  db: Queryable,
  contractId: bigint,
  tokens: readonly { tokenId: bigint; hash: string | null }[],
): Promise<Map<bigint, TokenKnown>> {
  if (tokens.length === 0) return new Map();
  const contract = contractId.toString();
  const input = tokens.map(({ tokenId, hash }) => ({
    id: tokenId.toString(),
    hash: hash && txHashKey(hash),
  }));
  const rows = await db.sql<TokenKnown[]>`
    with x as (
      select * from jsonb_to_recordset(${asJson(input)}::jsonb) as x(id numeric, hash text)
    ), scans as (
      select started_at, record from tallyhook.observations
      where target like ${`scan:${contract}:%`} and kind = 'scan' and result = 'seen'
      order by started_at desc limit ${SCANS_SEARCHED_MAX}
    )
    select x.id as token_id,
      (select coalesce(jsonb_agg(o.id), '[]'::jsonb) from (
          select p.id, p.kind, p.outcome, p.contract_id from tallyhook.operations p
          where p.contract_id = ${contract}::numeric and p.token_id = x.id
          union
          select p.id, p.kind, p.outcome, p.contract_id from tallyhook.transitions t
          join tallyhook.operations p on p.id = t.operation_id
          where lower(t.tx_hash) = nullif(x.hash, '') offset 0) o
        where o.kind in ('mint', 'mint_sequential') and o.contract_id = ${contract}::numeric
          and o.outcome <> 'not_executed') as claimed_by,
      (select coalesce(jsonb_agg(distinct t.operation_id), '[]'::jsonb) from tallyhook.transitions t
        where lower(t.tx_hash) = nullif(x.hash, '')) as hash_of,
      (select count(*) > 0 from tallyhook.operations o
        where o.contract_id = ${contract}::numeric and o.token_id = x.id
          and o.kind not in ('mint', 'mint_sequential') and o.outcome <> 'not_executed') as written,
      least(
        (select min(l.started_at) from tallyhook.observations l
          where l.target = ${`token:${contract}:`} || x.id and l.result = 'seen'),
        (select min(o.recorded_at) from tallyhook.operations o
          where o.contract_id = ${contract}::numeric and o.token_id = x.id
            and o.outcome <> 'not_executed'),
        (select min(s.started_at) from scans s
          where s.record->'tokens' @> jsonb_build_array(jsonb_build_object('tokenId', x.id)))
      ) as first_known_at,
      (select coalesce(jsonb_agg(o.to_addr), '[]'::jsonb) from tallyhook.operations o
        where o.kind = 'transfer_from' and o.outcome <> 'not_executed'
          and o.contract_id = ${contract}::numeric and o.token_id = x.id) as owners,
      (select coalesce(jsonb_agg(o.extra_data), '[]'::jsonb) from tallyhook.operations o
        where o.kind = 'set_extra_data' and o.outcome <> 'not_executed'
          and o.contract_id = ${contract}::numeric and o.token_id = x.id) as data
    from x`;
  return new Map(rows.map((row) => [row.tokenId, row]));
}

/** With more tokens of one URI and unknown origin a mint stays unclear. */
const HELD_MAX = 100;

/** Observed tokens with one of these URIs that no known mint made, absent ones included. */
export async function listHeld(
  db: Queryable,
  contractId: bigint,
  uris: readonly string[],
): Promise<ListedToken[]> {
  if (uris.length === 0) return [];
  return db.sql<ListedToken[]>`
    select h.token_id, h.owner, h.creator, h.uri, h.metadata, h.extra_data, h.status, h.locked,
      h.last_tx_hash, coalesce(h.created_text, '') as "createdText",
      coalesce(h.owned_text, '') as "ownedText"
    from unnest(${uris as string[]}::text[]) as u(uri) cross join lateral (
      select t.token_id, t.owner, t.creator, t.uri, t.metadata, t.extra_data, t.status, t.locked,
        t.last_tx_hash, t.created_text, t.owned_text
      from tallyhook.tokens t
      where t.contract_id = ${contractId.toString()}::numeric and t.uri = u.uri
        and hashtextextended(t.uri, 0) = hashtextextended(u.uri, 0)
        and (select o.id from tallyhook.operations o
          where o.kind in ('mint', 'mint_sequential') and o.outcome <> 'not_executed'
            and o.contract_id = t.contract_id and o.token_id = t.token_id
          limit 1) is null
      order by t.token_id limit ${HELD_MAX}) h`;
}

/**
 * When the last known burn since then was recorded that took a token that no known mint made and
 * that was never observed; undefined without one.
 */
export async function lastBurnUnseen(
  db: Queryable,
  contractId: bigint,
  since: Instant,
): Promise<Instant | undefined> {
  const contract = contractId.toString();
  const rows = await db.sql<{ at: Instant | null }[]>`
    select max(b.recorded_at) as at from (
      select contract_id, token_id, outcome, recorded_at from tallyhook.operations
      where kind = 'burn' and recorded_at >= ${isoText(since)} offset 0) b
    where b.contract_id = ${contract}::numeric and b.token_id is not null
      and b.outcome <> 'not_executed'
      and (select o.id from tallyhook.operations o
        where o.kind in ('mint', 'mint_sequential') and o.outcome <> 'not_executed'
          and o.contract_id = b.contract_id and o.token_id = b.token_id limit 1) is null
      and (select t.token_id from tallyhook.tokens t
        where t.contract_id = b.contract_id and t.token_id = b.token_id and t.uri is not null)
        is null`;
  return rows[0]?.at ?? undefined;
}

/** Whether a sequential mint with an open outcome may have made a token of this URI. */
export async function hasOpenMint(
  db: Queryable,
  contractId: bigint,
  uri: string,
): Promise<boolean> {
  const rows = await db.sql`
    select 1 as one from tallyhook.open_operations w join tallyhook.operations o on o.id = w.id
    where w.contract_id = ${contractId.toString()}::numeric and w.state in ('sending', 'unknown')
      and o.token_id is null and o.kind = 'mint_sequential'
      and coalesce(o.token_uri, '') = ${uri} limit 1`;
  return rows.length > 0;
}

/** Sequential mints that were sent, not refused, and whose token is not known; oldest first. */
export async function listUnnumbered(
  db: Queryable,
  contractId: bigint,
  limit: number,
): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`
    select id from tallyhook.operations
    where id = any(array(select o.id from tallyhook.operations o
        where o.contract_id = ${contractId.toString()}::numeric and o.token_id is null))
      and kind = 'mint_sequential' and outcome <> 'not_executed'
      and state not in ('queued', 'cancelled')
    order by recorded_at limit ${limit}`;
  return rows.map(({ id }) => id);
}
