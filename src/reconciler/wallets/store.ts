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
  observationEndedAt: Instant | null;
  openedAt: Instant | null;
  consistentAt: Instant | null;
  quietAt: Instant | null;
  ledgerAtObservation: bigint | null;
  observationId: string | null;
  verdict: string;
  cause: string | null;
  suspectedMin: bigint | null;
  suspectedMax: bigint | null;
  suspectedAt: Instant | null;
}

function walletColumns(sql: Sql) {
  return sql`key, addr, status, observed_balance, observed_at, observation_ended_at, opened_at,
    consistent_at, quiet_at, ledger_at_observation, observation_id, verdict, cause, suspected_min,
    suspected_max, suspected_at`;
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
    insert into tallyhook.wallets (key, addr, status, observed_balance, observed_at,
      observation_ended_at, opened_at, consistent_at, quiet_at, ledger_at_observation,
      observation_id, verdict, cause, suspected_min, suspected_max, suspected_at)
    values (${wallet.key}, ${wallet.addr}, ${wallet.status},
      ${text(wallet.observedBalance)}::numeric, ${at(wallet.observedAt)},
      ${at(wallet.observationEndedAt)}, ${at(wallet.openedAt)}, ${at(wallet.consistentAt)},
      ${at(wallet.quietAt)}, ${text(wallet.ledgerAtObservation)}::numeric,
      ${wallet.observationId}, ${wallet.verdict}, ${wallet.cause},
      ${text(wallet.suspectedMin)}::numeric, ${text(wallet.suspectedMax)}::numeric,
      ${at(wallet.suspectedAt)})
    on conflict (key) do update set status = excluded.status,
      observed_balance = excluded.observed_balance, observed_at = excluded.observed_at,
      observation_ended_at = excluded.observation_ended_at, opened_at = excluded.opened_at,
      consistent_at = excluded.consistent_at, quiet_at = excluded.quiet_at,
      ledger_at_observation = excluded.ledger_at_observation,
      observation_id = excluded.observation_id, verdict = excluded.verdict, cause = excluded.cause,
      suspected_min = excluded.suspected_min, suspected_max = excluded.suspected_max,
      suspected_at = excluded.suspected_at`;
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
  /** Null until it is exact; then equal to both bounds. */
  amount: bigint | null;
  min: bigint;
  max: bigint;
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
  return sql`id, wallet_key, addr, amount, amount_min as min, amount_max as max, state,
    suspected_at, opened_at, closed_at, window_from, window_to, evidence, assignee, proposal,
    approved_by`;
}

export async function insertDrift(tx: Tx, drift: Drift): Promise<void> {
  const { windowFrom: from } = drift;
  await tx.sql`
    insert into tallyhook.drifts (id, wallet_key, addr, amount, amount_min, amount_max, state,
      suspected_at, opened_at, window_from, window_to, evidence)
    values (${drift.id}, ${drift.walletKey}, ${drift.addr}, ${text(drift.amount)}::numeric,
      ${text(drift.min)}::numeric, ${text(drift.max)}::numeric, ${drift.state},
      ${isoText(drift.suspectedAt)}, ${isoText(drift.openedAt)},
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

/** Stores what is known better of an open drift. */
export async function reviseDrift(
  tx: Tx,
  { id, amount, min, max }: Pick<Drift, 'id' | 'amount' | 'min' | 'max'>,
): Promise<void> {
  await tx.sql`
    update tallyhook.drifts set amount = ${text(amount)}::numeric,
      amount_min = ${min.toString()}::numeric, amount_max = ${max.toString()}::numeric
    where id = ${id} and closed_at is null`;
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
