/** SQL of wallets and drifts. */
import { asJson, type Queryable, type Sql, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';

export interface Wallet {
  key: string;
  addr: string;
  status: number | null;
  observedBalance: bigint | null;
  observedAt: Instant | null;
  openedAt: Instant | null;
  quietAt: Instant | null;
  ledgerAtObservation: bigint | null;
  observationId: string | null;
  verdict: string;
  cause: string | null;
  unquietObservations: number;
  suspectedAmount: bigint | null;
  suspectedAt: Instant | null;
}

function walletColumns(sql: Sql) {
  return sql`key, addr, status, observed_balance, observed_at, opened_at, quiet_at,
    ledger_at_observation, observation_id, verdict, cause, unquiet_observations, suspected_amount,
      suspected_at`;
}

export async function findWallet(db: Queryable, key: string): Promise<Wallet | undefined> {
  const rows = await db.sql<Wallet[]>`
    select ${walletColumns(db.sql)}
    from tallyhook.wallets where key = ${key}`;
  return rows[0];
}

export async function listWallets(
  db: Queryable,
  page: { after: string; limit: number },
): Promise<Wallet[]> {
  return db.sql<Wallet[]>`
    select ${walletColumns(db.sql)}
    from tallyhook.wallets where key > ${page.after} order by key limit ${page.limit}`;
}

/** Writes the whole row; the first spelling of the address is kept. */
export async function saveWallet(tx: Tx, wallet: Wallet): Promise<void> {
  const at = (instant: Instant | null) => (instant === null ? null : isoText(instant));
  await tx.sql`
    insert into tallyhook.wallets (key, addr, status, observed_balance, observed_at, opened_at,
      quiet_at, ledger_at_observation, observation_id, verdict, cause, unquiet_observations,
      suspected_amount, suspected_at)
    values (${wallet.key}, ${wallet.addr}, ${wallet.status},
      ${text(wallet.observedBalance)}::numeric, ${at(wallet.observedAt)}, ${at(wallet.openedAt)},
      ${at(wallet.quietAt)}, ${text(wallet.ledgerAtObservation)}::numeric,
      ${wallet.observationId}, ${wallet.verdict}, ${wallet.cause}, ${wallet.unquietObservations},
      ${text(wallet.suspectedAmount)}::numeric, ${at(wallet.suspectedAt)})
    on conflict (key) do update set status = excluded.status,
      observed_balance = excluded.observed_balance, observed_at = excluded.observed_at,
      opened_at = excluded.opened_at, quiet_at = excluded.quiet_at,
      ledger_at_observation = excluded.ledger_at_observation,
      observation_id = excluded.observation_id, verdict = excluded.verdict, cause = excluded.cause,
      unquiet_observations = excluded.unquiet_observations,
      suspected_amount = excluded.suspected_amount, suspected_at = excluded.suspected_at`;
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

export interface Drift {
  id: string;
  walletKey: string;
  addr: string;
  amount: bigint;
  state: string;
  suspectedAt: Instant;
  openedAt: Instant;
  closedAt: Instant | null;
  windowFrom: Instant | null;
  windowTo: Instant;
  evidence: Json;
  assignee: string | null;
  proposal: Json;
  approvedBy: string | null;
}

function driftColumns(sql: Sql) {
  return sql`id, wallet_key, addr, amount, state, suspected_at, opened_at, closed_at, window_from,
    window_to, evidence, assignee, proposal, approved_by`;
}

export async function insertDrift(tx: Tx, drift: Drift): Promise<void> {
  const { windowFrom: from } = drift;
  await tx.sql`
    insert into tallyhook.drifts (id, wallet_key, addr, amount, state, suspected_at, opened_at,
      window_from, window_to, evidence)
    values (${drift.id}, ${drift.walletKey}, ${drift.addr}, ${drift.amount.toString()}::numeric,
      ${drift.state}, ${isoText(drift.suspectedAt)}, ${isoText(drift.openedAt)},
      ${from === null ? null : isoText(from)}, ${isoText(drift.windowTo)},
      ${asJson(drift.evidence)}::jsonb)`;
}

/** Open drifts of a wallet, oldest first. */
export async function listOpenDrifts(db: Queryable, walletKey: string): Promise<Drift[]> {
  return db.sql<Drift[]>`
    select ${driftColumns(db.sql)}
    from tallyhook.drifts where wallet_key = ${walletKey} and closed_at is null
    order by opened_at, id`;
}

/** Newest first. */
export async function listDrifts(
  db: Queryable,
  filter: {
    state?: string | undefined;
    addr?: string | undefined;
    before?: string | undefined;
    limit: number;
  },
): Promise<Drift[]> {
  const { sql } = db;
  return sql<Drift[]>`
    select ${driftColumns(db.sql)}
    from tallyhook.drifts where true
      ${filter.state ? sql`and state = ${filter.state}` : sql``}
      ${filter.addr ? sql`and wallet_key = ${filter.addr.toLowerCase()}` : sql``}
      ${filter.before ? sql`and id < ${filter.before}` : sql``}
    order by id desc limit ${filter.limit}`;
}

export async function findDrift(db: Queryable, id: string): Promise<Drift | undefined> {
  const rows = await db.sql<Drift[]>`
    select ${driftColumns(db.sql)}
    from tallyhook.drifts where id = ${id}`;
  return rows[0];
}

/** Closes an open drift; false when it was closed already. */
export async function closeDrift(tx: Tx, id: string, state: string, at: Instant): Promise<boolean> {
  const rows = await tx.sql`
    update tallyhook.drifts set state = ${state}, closed_at = ${isoText(at)}
    where id = ${id} and closed_at is null returning 1 as one`;
  return rows.length === 1;
}

export async function insertDriftAction(
  tx: Tx,
  action: { driftId: string; action: string; at: Instant; by: string; detail: Json },
): Promise<void> {
  await tx.sql`
    insert into tallyhook.drift_actions (drift_id, action, at, by, detail)
    values (${action.driftId}, ${action.action}, ${isoText(action.at)}, ${action.by},
      ${asJson(action.detail)}::jsonb)`;
}

export async function listDriftActions(
  db: Queryable,
  driftId: string,
): Promise<{ action: string; at: Instant; by: string; detail: Json }[]> {
  return db.sql<{ action: string; at: Instant; by: string; detail: Json }[]>`
    select action, at, by, detail from tallyhook.drift_actions where drift_id = ${driftId}
    order by id limit 1000`;
}

/**
 * How many drifts of these sizes, open or closed, one wallet had and all wallets together; and for
 * how many milliseconds the other wallets have been observed in total.
 * @param sizes without sign; undefined for any
 */
export async function countLikeDrifts(
  db: Queryable,
  walletKey: string,
  sizes: readonly bigint[] | undefined,
  now: Instant,
): Promise<{ own: number; pool: number; observedMs: number }> {
  const { sql } = db;
  const like = sizes ? sql`and abs(amount) = any(${sizes.map(String)}::numeric[])` : sql``;
  const rows = await sql<{ own: number; pool: number; observedMs: number }[]>`
    select d.own, d.pool, w.observed as "observedMs"
    from (select count(*)::int as pool,
        (count(*) filter (where wallet_key = ${walletKey}))::int as own
      from tallyhook.drifts where true ${like}) d,
      (select coalesce(sum(extract(epoch from ${isoText(now)}::timestamptz - opened_at) * 1000), 0)
          ::float8 as observed
        from (select opened_at from tallyhook.wallets
          where opened_at is not null and key <> ${walletKey} limit ${POOL_MAX}) o) w`;
  return rows[0] ?? { own: 0, pool: 0, observedMs: 0 };
}

/** At most so many wallets contribute to `observedMs`. */
const POOL_MAX = 1_000;
