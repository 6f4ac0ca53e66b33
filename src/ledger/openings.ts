/**
 * Openings, and what is posted for a wallet after its opening.
 *
 * The opening of a wallet is the balance that an observation showed minus our own executed writes.
 * A backdated write took effect before that observation but is posted later (it was reported or
 * decided, or is a reversal), so the observed balance includes it already. It is posted together
 * with a correction of the opening by the opposite amount, and the balance of the wallet stays.
 * Whether the opening includes an entry is decided by the version of the account when the opening
 * was computed, never by clocks.
 *
 * An opening takes effect before every other entry of its account, so that balances as of any time
 * are right, and unknown before it. An earlier entry moves it: it is taken back at its time, and
 * posted again just before the entry.
 */
import { asJson, type Queryable, type Tx } from '../db/connect.ts';
import { addressKey } from '../kernel/addresses.ts';
import { sumOf } from '../kernel/amounts.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import {
  accountKey,
  accountOfWallet,
  type Effect,
  type EffectSettings,
  type Operation,
  walletKeysOf,
} from '../operations/operations.ts';
import type { PostingRequest } from './posting.ts';

/** An opening that was requested, posted or not. */
export interface Opening {
  account: string;
  /** The start of the observation that it rests on. */
  seenAt: Instant;
  /** Since when the balance is known: where the opening stands with its corrections. */
  effectiveAt: Instant;
}

/** An opening that has to stand earlier. */
export interface OpeningMove extends Opening {
  to: Instant;
}

/** The id of the posting request for the opening of a wallet, so that there is only one. */
export function openingId(addr: string): string {
  return `opening:${addressKey(addr)}`;
}

/** Effective bases of outcomes that may become known long after they took effect. */
const BACKDATED_BASES: readonly string[] = ['reported', 'decision'];

/**
 * True for a posting that may have taken effect before an opening that was computed without it: of
 * a reported or decided operation, a reversal, or a posting after a reversal.
 */
export function isBackdated(operation: Operation, timesPosted: number): boolean {
  const { source, effectiveBasis } = operation;
  if (source === 'report' || timesPosted > 0) return true;
  return effectiveBasis !== null && BACKDATED_BASES.includes(effectiveBasis);
}

/** Postings alternate: odd ones post the operation, even ones reverse it. */
export function isPosted(timesPosted: number): boolean {
  return timesPosted % 2 === 1;
}

/** The earliest instant at which the operation can have taken effect, as far as known. */
function earliestEffectAt(operation: Operation): Instant {
  return operation.sentAt ?? operation.effectiveAt ?? operation.recordedAt;
}

/**
 * The openings that have to move, because an entry takes effect at or before them.
 * @param entries accounts with the time of an entry of theirs
 */
function movesOf(
  openings: ReadonlyMap<string, Opening>,
  entries: readonly { account: string; effectiveAt: Instant }[],
): OpeningMove[] {
  const first = new Map<string, Instant>();
  for (const { account, effectiveAt } of entries) {
    const key = accountKey(account);
    first.set(key, Math.min(effectiveAt, first.get(key) ?? effectiveAt));
  }
  return [...first].flatMap(([key, at]) => {
    const opening = openings.get(key);
    return opening && at <= opening.effectiveAt ? [{ ...opening, to: at - 1 }] : [];
  });
}

/** The two requests that move an opening of this amount; one is enough for an amount of zero. */
export function requestsOf(
  { account, effectiveAt, to }: OpeningMove,
  amount: bigint,
): PostingRequest[] {
  const moved = { ...openingRequest(account), reason: 'an entry took effect before the opening' };
  const id = `${accountKey(account).replace(/^wallet:/, 'opening:')}:moved:${to}`;
  const earlier = { ...moved, id, amount, effectiveAt: to };
  const back = { ...moved, id: `${id}:back`, amount: -amount, effectiveAt };
  return amount === 0n ? [earlier] : [earlier, back];
}

/**
 * The corrections that one posting of an operation needs: one for each wallet whose opening was
 * observed after the operation took effect.
 * @param openings by account key
 */
export function correctionsOf(
  operation: Operation,
  timesPosted: number,
  effects: readonly Effect[],
  openings: ReadonlyMap<string, Opening>,
): PostingRequest[] {
  return isBackdated(operation, timesPosted)
    ? lateCorrectionsOf(operation, timesPosted, effects, openings)
    : [];
}

/** The same for a posting that no opening can have included. */
export function lateCorrectionsOf(
  operation: Operation,
  timesPosted: number,
  effects: readonly Effect[],
  openings: ReadonlyMap<string, Opening>,
): PostingRequest[] {
  const at = earliestEffectAt(operation);
  const posting = timesPosted + 1;
  return [...new Set(effects.map(({ account }) => accountKey(account)))].flatMap((key) => {
    const opening = openings.get(key);
    // A wallet that pays itself has two effects that add up to zero.
    const amount = sumOf(
      effects.flatMap((effect) => (accountKey(effect.account) === key ? effect.amount : [])),
    );
    if (!opening || at >= opening.seenAt || amount === 0n) return [];
    return [correctionOf(opening, { operationId: operation.id, posting, amount })];
  });
}

/**
 * True for a write that the openings of all its wallets include.
 * @param before stands for the openings that do not exist yet
 */
function isIncludedInOpenings(
  operation: Operation,
  accounts: readonly string[],
  openings: ReadonlyMap<string, Opening>,
  before: Instant,
): boolean {
  const at = earliestEffectAt(operation);
  const isIncluded = (account: string) =>
    at < (openings.get(accountKey(account))?.seenAt ?? before);
  return accounts.length > 0 && accounts.every(isIncluded);
}

/** What an operation posted to an account that its opening does not include. */
export interface MissedEntry {
  postingRequestId: string;
  operationId: string;
  posting: number;
  amount: bigint;
}

/** The correction for an entry that the opening does not include. */
export function correctionOf(
  opening: Opening,
  entry: Omit<MissedEntry, 'postingRequestId'>,
): PostingRequest {
  const { account, effectiveAt } = opening;
  const { operationId, posting, amount } = entry;
  return {
    ...openingRequest(account),
    id: `${accountKey(account).replace(/^wallet:/, 'opening:')}:${operationId}:${posting}`,
    amount: -amount,
    effectiveAt,
    reason: `${operationId} took effect before the first observation`,
  };
}

/** What the ledger's own requests about an opening have in common. */
function openingRequest(account: string) {
  return {
    kind: 'opening' as const,
    account,
    counter: 'opening',
    effectiveBasis: 'observed',
    requestedBy: 'ledger',
  };
}

/** The openings of these accounts by account key, posted or not; other accounts are absent. */
export async function openingsOf(
  db: Queryable,
  accounts: readonly string[],
): Promise<Map<string, Opening>> {
  const ids = accounts
    .map(accountKey)
    .flatMap((key) => (key.startsWith('wallet:') ? [key.replace('wallet:', 'opening:')] : []));
  if (ids.length === 0) return new Map();
  const rows = await db.sql<Opening[]>`
    select r.account, r.seen_at, (select min(m.effective_at) from tallyhook.posting_requests m
      where lower(m.account) = lower(r.account) and m.kind = 'opening' and m.problem is null)
      as effective_at
    from tallyhook.posting_requests r
    where r.id = any(${ids}::text[]) and r.seen_at is not null and r.problem is null`;
  return new Map(rows.map((row) => [accountKey(row.account), row]));
}

/**
 * The openings of accounts by key, and those that have to stand earlier because of these entries,
 * with their amounts.
 */
export async function readOpenings(
  tx: Tx,
  accounts: readonly string[],
  entries: readonly { account: string; effectiveAt: Instant }[],
): Promise<{ openings: Map<string, Opening>; moves: (OpeningMove & { amount: bigint })[] }> {
  const openings = await openingsOf(tx, accounts);
  const moves = movesOf(openings, entries);
  const amounts = await openingAmounts(
    tx,
    moves.map(({ account }) => account),
  );
  const amountOf = ({ account }: OpeningMove) => amounts.get(accountKey(account)) ?? 0n;
  return { openings, moves: moves.map((move) => ({ ...move, amount: amountOf(move) })) };
}

/** The sums of the openings of these accounts with their corrections, by account key. */
export async function openingAmounts(
  db: Queryable,
  accounts: readonly string[],
): Promise<Map<string, bigint>> {
  if (accounts.length === 0) return new Map();
  const rows = await db.sql<{ key: string; amount: bigint }[]>`
    select lower(account) as key, sum(amount) as amount from tallyhook.posting_requests
    where kind = 'opening' and problem is null
      and lower(account) = any(${accounts.map(accountKey)}::text[]) group by 1`;
  return new Map(rows.map(({ key, amount }) => [key, amount]));
}

/**
 * What entries before an instant change of each account, by its key; its openings apart. At one
 * instant the increases are one, and the decreases.
 */
export async function entriesBefore(
  db: Queryable,
  accounts: readonly { account: string; before: Instant }[],
): Promise<Map<string, { at: Instant; amount: bigint }[]>> {
  if (accounts.length === 0) return new Map();
  const given = accounts.map((one) => ({ ...one, before: isoText(one.before) }));
  const rows = await db.sql<{ account: string; at: Instant; amount: bigint }[]>`
    select x.account, e.effective_at as at, sum(e.amount) as amount
    from jsonb_to_recordset(${asJson(given)}::jsonb) as x(account text, before timestamptz)
    join tallyhook.accounts a on lower(a.name) = x.account and a.asset = 'service_token'
    join tallyhook.entries e on e.account_id = a.id and e.effective_at < x.before
    join tallyhook.transactions t on t.id = e.transaction_id and t.kind <> 'opening'
    group by x.account, e.effective_at, e.amount < 0`;
  const found = new Map<string, { at: Instant; amount: bigint }[]>();
  for (const { account, ...entry } of rows) {
    const entries = found.get(account);
    if (entries) entries.push(entry);
    else found.set(account, [entry]);
  }
  return found;
}

/** When the first entry of each account that a due opening opens took effect. */
export async function listFirstEntries(
  tx: Tx,
  requests: readonly PostingRequest[],
): Promise<{ account: string; effectiveAt: Instant }[]> {
  const accounts = requests.flatMap(({ account, seen }) => (seen ? [accountKey(account)] : []));
  if (accounts.length === 0) return [];
  return tx.sql<{ account: string; effectiveAt: Instant }[]>`
    select k.account, e.effective_at from unnest(${accounts}::text[]) as k(account)
    join tallyhook.accounts a on lower(a.name) = k.account and a.asset = 'service_token'
    cross join lateral (select min(e.effective_at) as effective_at from tallyhook.entries e
      where e.account_id = a.id having count(*) > 0) e`;
}

/**
 * Backdated entries that due openings miss: posted after the opening was computed, and in effect
 * before its observation.
 */
export async function listMissedEntries(
  tx: Tx,
  requests: readonly PostingRequest[],
): Promise<MissedEntry[]> {
  const openings = requests.flatMap(({ id, account, seen }) =>
    seen ? [{ id, account, at: isoText(seen.at), version: seen.version }] : [],
  );
  if (openings.length === 0) return [];
  // `offset 0` keeps each step on its index, also while small tables favour sequential scans.
  return tx.sql<MissedEntry[]>`
    select w.id as "postingRequestId", t.operation_id, t.posting,
      sum(e.amount) as amount
    from jsonb_to_recordset(${asJson(openings)}::jsonb)
      as w(id text, account text, at timestamptz, version bigint)
    cross join lateral (select e.transaction_id, e.amount from tallyhook.entries e
      where e.account_id = (select a.id from tallyhook.accounts a
          where lower(a.name) = lower(w.account) and a.asset = 'service_token')
        and e.version > w.version offset 0) e
    cross join lateral (select t.id, t.operation_id, t.posting from tallyhook.transactions t
      where t.id = e.transaction_id and t.operation_id is not null offset 0) t
    cross join lateral (select o.source, o.effective_basis, o.sent_at, o.effective_at, o.recorded_at
      from tallyhook.operations o where o.id = t.operation_id offset 0) o
    where (t.posting > 1 or o.source = 'report'
        or o.effective_basis = any(${BACKDATED_BASES as string[]}::text[]))
      and coalesce(o.sent_at, o.effective_at, o.recorded_at) < w.at
      and not exists (select from tallyhook.posting_requests c
        where c.id = w.id || ':' || t.operation_id || ':' || t.posting)
    group by w.id, t.id, t.operation_id, t.posting having sum(e.amount) <> 0
    order by t.id`;
}

/** The accounts of the wallets that a write changes once executed. */
function walletAccountsOf(operation: Operation, effectSettings: EffectSettings): string[] {
  return walletKeysOf(operation, effectSettings).map(accountOfWallet);
}

/**
 * The ids of those operations that need no observation to confirm them: every wallet was opened
 * after they took effect, or has no opening yet and will get a later one.
 * @param before operations before this instant are older than any future opening
 */
export async function listIncludedInOpenings(
  db: Queryable,
  operations: readonly Operation[],
  effectSettings: EffectSettings,
  before: Instant,
): Promise<Set<string>> {
  const accounts = operations.flatMap((operation) => walletAccountsOf(operation, effectSettings));
  const openings = await openingsOf(db, accounts);
  const included = operations.filter((operation) =>
    isIncludedInOpenings(operation, walletAccountsOf(operation, effectSettings), openings, before),
  );
  return new Set(included.map(({ id }) => id));
}
