/** SQL of wallets. */
import type { Queryable, Sql, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { wallets } from '../tables.ts';

export type Wallet = typeof wallets.$inferSelect;

function walletColumns(sql: Sql) {
  return sql`key, addr, status, observed_balance, observed_at, observation_ended_at, opened_at,
    consistent_at, quiet_at, ledger_at_observation, observation_id, evaluated_at, verdict, cause,
    suspected_min, suspected_max, suspected_at, vanished_at`;
}

export async function findWallet(db: Queryable, key: string): Promise<Wallet | undefined> {
  const rows = await db.sql<Wallet[]>`
    select ${walletColumns(db.sql)}
    from tallyhook.wallets where key = ${key}`;
  return rows[0];
}

export async function listWallets(
  { sql }: Queryable,
  page: {
    after: string;
    limit: number;
    observedBefore?: Instant | undefined;
    /** Only those that have vanished. */
    isVanished?: boolean;
  },
): Promise<Wallet[]> {
  const { after, limit, observedBefore, isVanished = false } = page;
  return sql<Wallet[]>`
    select ${walletColumns(sql)} from tallyhook.wallets where key > ${after}
      ${observedBefore === undefined ? sql`` : sql`and observed_at < ${isoText(observedBefore)}`}
      ${isVanished ? sql`and vanished_at is not null` : sql``}
    order by key limit ${limit}`;
}

/** Writes the whole row; the first spelling of the address is kept. */
export async function saveWallet(tx: Tx, wallet: Wallet): Promise<void> {
  const at = (instant: Instant | null) => (instant === null ? null : isoText(instant));
  await tx.sql`
    insert into tallyhook.wallets (key, addr, status, observed_balance, observed_at,
      observation_ended_at, opened_at, consistent_at, quiet_at, ledger_at_observation,
      observation_id, evaluated_at, verdict, cause, suspected_min, suspected_max, suspected_at,
      vanished_at)
    values (${wallet.key}, ${wallet.addr}, ${wallet.status},
      ${text(wallet.observedBalance)}::numeric, ${at(wallet.observedAt)},
      ${at(wallet.observationEndedAt)}, ${at(wallet.openedAt)}, ${at(wallet.consistentAt)},
      ${at(wallet.quietAt)}, ${text(wallet.ledgerAtObservation)}::numeric,
      ${wallet.observationId}, ${at(wallet.evaluatedAt)}, ${wallet.verdict}, ${wallet.cause},
      ${text(wallet.suspectedMin)}::numeric, ${text(wallet.suspectedMax)}::numeric,
      ${at(wallet.suspectedAt)}, ${at(wallet.vanishedAt)})
    on conflict (key) do update set status = excluded.status,
      observed_balance = excluded.observed_balance, observed_at = excluded.observed_at,
      observation_ended_at = excluded.observation_ended_at, opened_at = excluded.opened_at,
      consistent_at = excluded.consistent_at, quiet_at = excluded.quiet_at,
      ledger_at_observation = excluded.ledger_at_observation,
      observation_id = excluded.observation_id, evaluated_at = excluded.evaluated_at,
      verdict = excluded.verdict, cause = excluded.cause,
      suspected_min = excluded.suspected_min, suspected_max = excluded.suspected_max,
      suspected_at = excluded.suspected_at, 
      vanished_at = excluded.vanished_at`;
}

function text(value: bigint | null): string | null {
  return value === null ? null : value.toString();
}

/** The wallets with these keys, by key. */
export async function walletsByKey(
  db: Queryable,
  keys: readonly string[],
): Promise<Map<string, Wallet>> {
  const rows = await db.sql<Wallet[]>`
    select ${walletColumns(db.sql)}
    from tallyhook.wallets where key = any(${keys as string[]}::text[])`;
  return new Map(rows.map((row) => [row.key, row]));
}

/** How many wallets have vanished, up to `max`, and since when the first has. */
export async function countVanished(
  { sql }: Queryable,
  max: number,
): Promise<{ count: number; oldestAt: Instant | null }> {
  const rows = await sql<{ count: number; oldestAt: Instant | null }[]>`
    select count(*)::int as count, min(vanished_at) as oldest_at from (
      select vanished_at from tallyhook.wallets where vanished_at is not null
      order by vanished_at limit ${max}) w`;
  return rows[0] ?? { count: 0, oldestAt: null };
}

/** The wallets that have vanished, first those that did first. */
export async function listVanished({ sql }: Queryable, limit: number): Promise<Wallet[]> {
  return sql<Wallet[]>`
    select ${walletColumns(sql)} from tallyhook.wallets where vanished_at is not null
    order by vanished_at limit ${limit}`;
}
