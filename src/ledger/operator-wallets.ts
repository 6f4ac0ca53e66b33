/**
 * Posts gives from the wallet of their operator, if they were recorded by a daemon that knew of
 * none: their effects and postings were on the account `operator:<no>`. The wallet is that of the
 * setting `ledger.operators`, or one that two owners mapped. Those that the opening of the wallet
 * includes stay there: its balance never counted them as missing. The work is found by its absence,
 * so that a pass that was interrupted goes on. A process remembers how far it has read: it reads
 * each entry of the account once.
 */
import type { Db, Queryable, Sql, Tx } from '../db/connect.ts';
import { addressKey } from '../kernel/addresses.ts';
import { type Clock, type Instant, isoText } from '../kernel/clock.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import {
  accountKey,
  accountOfWallet,
  type EffectSettings,
  listLines,
  listUnsettledGives,
  lockOperations,
  renameAccount,
} from '../operations/operations.ts';
import { COUNTED_MAX } from '../resources/ledger/operator.ts';
import { timesPosted } from './batch.ts';
import { type Opening, openingsOf } from './openings.ts';
import { findPosted, listDueReasons, repost, type Wrong } from './repost.ts';

/** Told inside the transaction that gives are posted from these wallets now; by their keys. */
export type OnMovedGives = (tx: Tx, walletKeys: readonly string[], now: Instant) => Promise<void>;

interface Deps {
  db: Db;
  clock: Clock;
  log: Log;
  effectSettings: EffectSettings;
  onMovedGives?: OnMovedGives;
  /** Keeps every other daemon from posting until the end of the transaction. */
  lockLease(tx: Tx, fence: bigint): Promise<void>;
}

/** Gives of one batch, whose rows are locked for so long, and entries that are read for it. */
const BATCH_MAX = 200;
/** Until what a daemon without the wallet recorded is searched again; posted gives are at once. */
const SEARCH_MS = 600_000;

export function makeOperatorWallets({ db, clock, log, effectSettings, ...deps }: Deps) {
  const { onMovedGives, lockLease } = deps;
  let nextSearchAt = Number.NEGATIVE_INFINITY;
  const places = new Map<string, Place>();
  /** The operators with whom the present search has ended, and the wallets of the one before. */
  const ended = new Set<string>();
  let searched: ReadonlyMap<string, string> = new Map();

  /** @param operators a copy: another one may be mapped meanwhile */
  async function batch(tx: Tx, fence: bigint, operators: ReadonlyMap<string, string>) {
    await lockLease(tx, fence);
    for (const { no, opening } of await listOperators(tx, operators)) {
      if (ended.has(no)) continue;
      const page = await nextPage(tx, no, opening.seenAt, places.get(no) ?? BEGINNING);
      if (!page) {
        ended.add(no);
        continue;
      }
      const { ids, place } = page;
      tx.afterCommit(() => places.set(no, place));
      if (ids.length === 0) return { no, moved: 0, reposted: 0 };
      const reposted = await move(tx, clock, ids, { no, to: opening.account });
      const key = addressKey(opening.account.replace(/^wallet:/, ''));
      await onMovedGives?.(tx, [key], clock.now());
      return { no, moved: ids.length, reposted };
    }
    return undefined;
  }

  function endSearch(operators: ReadonlyMap<string, string>, now: Instant) {
    nextSearchAt = now + SEARCH_MS;
    searched = operators;
    ended.clear();
    for (const [no, { version }] of places) places.set(no, { ...BEGINNING, version });
  }

  return {
    isDue: (now: Instant) =>
      (effectSettings.operators.size > 0 && now >= nextSearchAt) ||
      [...effectSettings.operators].some(([no, addr]) => searched.get(no) !== addr),
    /**
     * A batch posted on these accounts of operators, or opened these wallets; by their keys. A
     * daemon that did not know of the wallet recorded that: it is moved at once.
     */
    notePosted(accounts: ReadonlySet<string>) {
      for (const [no, addr] of effectSettings.operators)
        if (accounts.has(`operator:${no}`) || accounts.has(accountKey(accountOfWallet(addr))))
          nextSearchAt = Number.NEGATIVE_INFINITY;
    },
    /** Moves one batch of gives. */
    async runOnce(fence: bigint, now: Instant): Promise<{ reposted: number; more: boolean }> {
      const operators = new Map(effectSettings.operators);
      const done = await db.begin((tx) => batch(tx, fence, operators));
      if (!done) endSearch(operators, now);
      else if (done.moved > 0)
        log.info(done, 'gives of an operator are posted from its wallet now');
      return { reposted: done?.reposted ?? 0, more: done !== undefined };
    },
  };
}

/** Operators whose wallets have an opening. */
async function listOperators(
  tx: Tx,
  operators: ReadonlyMap<string, string>,
): Promise<{ no: string; opening: Opening }[]> {
  const accounts = [...operators].map(([no, addr]) => ({ no, account: accountOfWallet(addr) }));
  const openings = await openingsOf(
    tx,
    accounts.map(({ account }) => account),
  );
  return accounts.flatMap(({ no, account }) => {
    const opening = openings.get(accountKey(account));
    return opening ? [{ no, opening }] : [];
  });
}

/** How far a search has come on the account of an operator. */
interface Place {
  /** The last version of the account whose entry was read; later ones are recorded later. */
  version: bigint;
  /** The last unsettled give that was moved, once all entries were read. */
  unsettledId: string;
}

const BEGINNING: Place = { version: 0n, unsettledId: '' };

/**
 * Gives on the account of the operator that were sent since then, and how far that read: first
 * posted ones, which are many, then the few others that are not settled. Undefined at the end.
 */
async function nextPage(
  tx: Tx,
  no: string,
  since: Instant,
  place: Place,
): Promise<{ ids: string[]; place: Place } | undefined> {
  const posted = await listPostedGives(tx, no, { since, after: place.version }, BATCH_MAX);
  if (posted) return { ids: posted.ids, place: { ...place, version: posted.version } };
  const ids = await listUnsettledGives(tx, no, { since, after: place.unsettledId }, BATCH_MAX);
  const last = ids.at(-1);
  return last === undefined ? undefined : { ids, place: { ...place, unsettledId: last } };
}

/**
 * Gives that are posted from the account of an operator and were sent since then, by its next
 * entries after a version, with the version of the last one that was read; undefined without any.
 * What is about to be posted is left out: it gets a later entry.
 */
export async function listPostedGives(
  { sql }: Queryable,
  no: string,
  { since, after }: { since: Instant; after: bigint },
  limit: number,
): Promise<{ ids: string[]; version: bigint } | undefined> {
  const rows = await sql<{ version: bigint; id: string | null }[]>`
    select e.version, g.id
    from (select e.version, e.transaction_id from tallyhook.entries e
      where e.account_id = (select a.id from tallyhook.accounts a
          where lower(a.name) = ${`operator:${no}`} and a.asset = 'service_token')
        and e.version > ${after.toString()}::bigint
      order by e.version limit ${limit}) e
    left join lateral (${giveOf(sql, since)}) g on true
    order by e.version`;
  const last = rows.at(-1);
  return last && { ids: rows.flatMap(({ id }) => id ?? []), version: last.version };
}

/** The give of an entry `e` that was sent since then, if the entry still stands for it. */
function giveOf(sql: Sql, since: Instant) {
  return sql`select o.id from tallyhook.transactions t
    join tallyhook.operations o on o.id = t.operation_id
    where t.id = e.transaction_id and t.posting % 2 = 1 and o.kind = 'give'
      and coalesce(o.sent_at, o.effective_at, o.recorded_at) >= ${isoText(since)}
      and not exists (select from tallyhook.transactions r where r.reverses = t.id)
      and not exists (select from tallyhook.due_postings d
        where d.operation_id = o.id and d.quarantine_reason is null)`;
}

/** How many such gives there are, among the newest `COUNTED_MAX` entries of the account. */
export async function countPostedGives(
  { sql }: Queryable,
  no: string,
  since: Instant,
): Promise<number> {
  const rows = await sql<{ n: number }[]>`
    select count(*)::int as n
    from (select e.transaction_id from tallyhook.entries e
      where e.account_id = (select a.id from tallyhook.accounts a
        where lower(a.name) = ${`operator:${no}`} and a.asset = 'service_token')
      order by e.version desc limit ${COUNTED_MAX}) e
    cross join lateral (${giveOf(sql, since)}) g`;
  return rows[0]?.n ?? 0;
}

/** Changes the account of their effects, and posts again what is posted. */
async function move(
  tx: Tx,
  clock: Clock,
  ids: readonly string[],
  { no, to }: { no: string; to: string },
): Promise<number> {
  const writes = await lockOperations(tx, ids);
  await renameAccount(tx, ids, { from: `operator:${no}`, to });
  const [lines, due, times] = [
    await listLines(tx, ids),
    await listDueReasons(tx, ids),
    await timesPosted(tx, ids),
  ];
  const originals = await findPosted(tx, times);
  const wrong = writes.map(
    (write): Wrong => ({
      write,
      dueReason: due.get(write.id) ?? undefined,
      timesPosted: times.get(write.id) ?? 0,
      effects: (lines.get(write.id) ?? []).filter(({ amount }) => amount !== 0n),
      original: originals.find(({ operationId }) => operationId === write.id),
    }),
  );
  return repost(tx, wrong, clock);
}

/** A give that the ledger posted from another account before. */
export interface MovedGive {
  operationId: string;
  /** What it changes the wallet by. */
  amount: bigint;
  sentAt: Instant;
  effectiveAt: Instant;
}

/** Entries of a wallet that are read, the newest first. */
const ENTRIES_MAX = 2_000;

/**
 * What was posted from or to this wallet by entries of these versions of its account, and from or
 * to other accounts before.
 */
export async function listMovedGives(
  { sql }: Queryable,
  key: string,
  versions: { after: bigint; upTo: bigint },
): Promise<MovedGive[]> {
  return sql<MovedGive[]>`
    select o.id as operation_id, sum(e.amount) as amount, e.effective_at,
      least(e.effective_at, coalesce(o.sent_at, e.effective_at)) as sent_at
    from (select e.transaction_id, e.account_id, e.amount, e.effective_at
      from tallyhook.entries e where e.account_id = (select a.id from tallyhook.accounts a
        where lower(a.name) = ${`wallet:${key}`} and a.asset = 'service_token')
        and e.version > ${versions.after.toString()}::bigint
        and e.version <= ${versions.upTo.toString()}::bigint
      order by e.version desc limit ${ENTRIES_MAX}) e
    join tallyhook.transactions t on t.id = e.transaction_id
    join tallyhook.operations o on o.id = t.operation_id
    where o.kind = 'give' and t.posting >= 3 and t.posting % 2 = 1
      and not exists (select from tallyhook.transactions r
        join tallyhook.entries x on x.transaction_id = r.id
        where r.operation_id = t.operation_id and r.posting = t.posting - 1
          and x.account_id = e.account_id)
    group by o.id, e.effective_at order by e.effective_at, o.id limit 1000`;
}
