/**
 * Living daemons, leases, and the stored settings of an installation. A lease lets one daemon at a
 * time do some work. Its fencing token (`fence`) grows when the holder changes, so that a former
 * holder is refused by `lockLease` before it writes. All instants are database time.
 */
import { type Clock, type Instant, isoText, type pause as kernelPause } from '../kernel/clock.ts';
import { Failure, must } from '../kernel/errors.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import { ROLES, type Role } from '../resources/admin/status.ts';
import type { Queryable, Sql, Tx } from './connect.ts';

export interface Daemon {
  id: string;
  /** Its newest send that is known to be committed. A database without it is an older copy. */
  lastSend?: { operationId: string; n: number } | undefined;
}

/** Registers a start of a daemon, alive until `aliveMs` after `now` or its last heartbeat. */
export async function registerDaemon(
  db: Queryable,
  id: string,
  now: Instant,
  aliveMs: number,
  roles: readonly Role[] = ROLES,
): Promise<Daemon> {
  await db.sql`
    insert into tallyhook.daemons (id, started_at, alive_until, roles, server_start,
      data_file, retires)
    values (${id}, ${isoText(now)}, ${isoText(now + aliveMs)}, ${roles as Role[]}::text[],
      pg_postmaster_start_time(), pg_relation_filepath('tallyhook.daemons'), true)`;
  return { id };
}

/** What a living daemon does. */
export interface Living {
  roles: readonly Role[];
  /** Requests of apps per second that the service answered without throttling. */
  appPerS: number;
}

/**
 * Stores a heartbeat; returns every living daemon, this one included. A daemon whose
 * registration was lost, such as with the last commits before a failover, is registered again. From
 * then on the daemon counts as having proved the database, so that is done in the same transaction.
 */
export async function keepAlive(
  db: Queryable,
  daemon: Daemon,
  now: Instant,
  aliveMs: number,
  { roles, appPerS }: Living = { roles: ROLES, appPerS: 0 },
): Promise<Living[]> {
  const until = isoText(now + aliveMs);
  return db.sql<Living[]>`
    with heartbeat as (
      update tallyhook.daemons set alive_until = ${until}, app_per_s = ${appPerS},
        roles = ${roles as Role[]}::text[], server_start = pg_postmaster_start_time(),
        data_file = pg_relation_filepath('tallyhook.daemons')
      where id = ${daemon.id}
      returning roles, app_per_s
    ), again as (
      insert into tallyhook.daemons (id, started_at, alive_until, app_per_s, roles, server_start,
        data_file, retires)
      select ${daemon.id}, ${isoText(now)}, ${until}, ${appPerS}, ${roles as Role[]}::text[],
        pg_postmaster_start_time(), pg_relation_filepath('tallyhook.daemons'), true
      where not exists (select from heartbeat)
      returning roles, app_per_s)
    select roles, app_per_s from heartbeat
    union all
    select roles, app_per_s from again
    union all
    select roles, app_per_s from tallyhook.daemons
    where alive_until > ${isoText(now)} and id <> ${daemon.id}`;
}

/** The roles of every living daemon. */
export async function listLiving(db: Queryable, now: Instant): Promise<Role[][]> {
  const rows = await db.sql<{ roles: Role[] }[]>`
    select roles from tallyhook.daemons where alive_until > ${isoText(now)}`;
  return rows.map((row) => row.roles);
}

/**
 * Refuses the transaction of a daemon that no longer counts as alive, such as a process that was
 * paused for long, and of one that must first prove the database again; see the function.
 * @throws Failure `database_unproved`
 */
export async function assertProved(tx: Tx, daemon: Daemon, now: Instant): Promise<void> {
  const { id, lastSend } = daemon;
  const [row] = await tx.sql<{ proved: boolean }[]>`
    select tallyhook.is_proved(${id}, ${isoText(now)}::timestamptz,
      ${lastSend?.operationId ?? null}::text, ${lastSend?.n ?? null}::int) as proved`;
  if (!row?.proved) throw new Failure('database_unproved');
}

export interface ProveDeps {
  clock: Clock;
  /** Proves the database again, or finds it frozen or away. */
  prove: () => Promise<unknown>;
  pause: typeof kernelPause;
}

/** Other daemons may have to prove too. One that has died is waited for until it counts as dead. */
const PROVE_WITHIN_MS = 10_000;
const PAUSE_BASE_MS = 50;
const PAUSE_MAX_MS = 1_000;

/**
 * Runs work that acts as this daemon; when the database must be proved first, such as after a
 * restart of Postgres, proves and repeats.
 * @param work checks the proof in its transaction (`assertProved`)
 * @throws Failure `database_unproved` when it was not proved in time
 */
export async function whenProved<T>(deps: ProveDeps, work: () => Promise<T>): Promise<T> {
  const { clock, prove, pause } = deps;
  const giveUpAt = clock.now() + PROVE_WITHIN_MS;
  for (let waitMs = PAUSE_BASE_MS; ; waitMs = Math.min(waitMs * 2, PAUSE_MAX_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'database_unproved') throw error;
      if (clock.now() >= giveUpAt) throw error;
    }
    await prove();
    // The first time usually helps at once.
    if (waitMs > PAUSE_BASE_MS) await pause(waitMs);
  }
}

/** Counts a setting up, and at least to `least`; returns its new value. */
export async function countUp(
  db: Queryable,
  name: string,
  now: Instant,
  least = 1,
): Promise<number> {
  const [row] = await db.sql<{ value: string }[]>`
    insert into tallyhook.installation as i (name, value, set_at)
    values (${name}, ${String(least)}, ${isoText(now)})
    on conflict (name) do update set set_at = excluded.set_at,
      value = greatest(i.value::bigint + 1, excluded.value::bigint)::text
    returning value`;
  return Number(must(row, `installation setting ${name}`).value);
}

/** Living daemons that started before an instant. */
export async function countOlderDaemons(
  db: Queryable,
  startedBefore: Instant,
  now: Instant,
): Promise<number> {
  const [row] = await db.sql<{ n: number }[]>`
    select count(*)::int as n from tallyhook.daemons
    where alive_until > ${isoText(now)} and started_at < ${isoText(startedBefore)}`;
  return row?.n ?? 0;
}

/** Deletes the rows of daemons that have not been alive since `before`. */
export async function forgetDaemons(db: Queryable, before: Instant): Promise<void> {
  await db.sql`delete from tallyhook.daemons where alive_until < ${isoText(before)}`;
}

/**
 * Ends a daemon's registration, which also frees its leases. It performs no role any more, unlike
 * one that was killed.
 */
export async function retireDaemon(db: Queryable, daemon: Daemon, now: Instant): Promise<void> {
  await db.sql`
    update tallyhook.daemons set alive_until = ${isoText(now)}, roles = '{}'
    where id = ${daemon.id}`;
}

/**
 * Daemons whose heartbeat expired since `since` and that did not say that they end. Nothing is
 * known of those of 0.2.0, which an upgrade replaces: they say it in no case.
 */
export async function listLost(
  db: Queryable,
  since: Instant,
  now: Instant,
): Promise<{ id: string; aliveUntil: Instant; roles: Role[] }[]> {
  return db.sql<{ id: string; aliveUntil: Instant; roles: Role[] }[]>`
    select id, alive_until, roles from tallyhook.daemons
    where alive_until > ${isoText(since)} and alive_until <= ${isoText(now)}
      and roles <> '{}' and retires
    order by alive_until desc limit 20`;
}

/**
 * Takes or renews a lease until `now + ttlMs`; returns its fencing token, or undefined while
 * another living daemon holds it.
 */
export async function acquireLease(
  db: Queryable,
  name: string,
  daemon: Daemon,
  now: Instant,
  ttlMs: number,
): Promise<bigint | undefined> {
  const [row] = await db.sql<{ fence: bigint }[]>`
    insert into tallyhook.leases as held (name, daemon_id, fence, until)
    values (${name}, ${daemon.id}, 1, ${isoText(now + ttlMs)})
    on conflict (name) do update set
      daemon_id = excluded.daemon_id,
      fence = held.fence + case when held.daemon_id = excluded.daemon_id then 0 else 1 end,
      until = excluded.until
    where held.daemon_id = excluded.daemon_id or held.until <= ${isoText(now)}
      or (select d.alive_until <= ${isoText(now)} from tallyhook.daemons d
        where d.id = held.daemon_id)
    returning fence`;
  return row?.fence;
}

/** `acquireLease` for one daemon, which logs each time that it takes the lease over. */
export function makeLease(
  db: Queryable,
  { name, daemon, ttlMs, log }: { name: string; daemon: Daemon; ttlMs: number; log: Log },
): (now: Instant) => Promise<bigint | undefined> {
  let last: bigint | undefined;
  return async (now) => {
    const fence = await acquireLease(db, name, daemon, now, ttlMs);
    if (fence !== undefined && fence !== last) {
      last = fence;
      log.info({ lease: name, daemon: daemon.id, fence: String(fence) }, 'leader change');
    }
    return fence;
  };
}

/**
 * Locks a lease until the end of the transaction.
 * @throws Failure `lease_lost` when another daemon has taken it since
 */
export async function lockLease(tx: Tx, name: string, fence: bigint): Promise<void> {
  const rows = await tx.sql<{ fence: bigint }[]>`${lockedFence(tx.sql, name)}`;
  requireFence(rows[0]?.fence, name, fence);
}

/** As `lockLease`, as a part of a statement. */
export function lockedFence(sql: Sql, name: string) {
  return sql`select fence from tallyhook.leases where name = ${name} for no key update`;
}

/** @throws Failure `lease_lost` */
export function requireFence(found: bigint | null | undefined, name: string, own: bigint): void {
  if (found !== own) throw new Failure('lease_lost', name);
}

export function isLeaseLost(error: unknown): boolean {
  return error instanceof Failure && error.code === 'lease_lost';
}

/** Stores a setting unless it has a value; returns its value. */
export async function fixInstallationSetting(
  db: Queryable,
  name: string,
  value: string,
  now: Instant,
): Promise<string> {
  const stored = await findInstallationSetting(db, name);
  if (stored) return stored.value;
  await db.sql`
    insert into tallyhook.installation (name, value, set_at) values (${name}, ${value},
      ${isoText(now)})
    on conflict (name) do nothing`;
  return must(await findInstallationSetting(db, name), `installation setting ${name}`).value;
}

export async function findInstallationSetting(
  db: Queryable,
  name: string,
): Promise<{ value: string; setAt: Instant } | undefined> {
  const [row] = await db.sql<{ value: string; setAt: Instant }[]>`
    select value, set_at from tallyhook.installation where name = ${name}`;
  return row;
}

/** Stores a setting, replacing its value. */
export async function setInstallationSetting(
  db: Queryable,
  name: string,
  value: string,
  now: Instant,
): Promise<void> {
  await db.sql`
    insert into tallyhook.installation (name, value, set_at) values (${name}, ${value},
      ${isoText(now)})
    on conflict (name) do update set value = excluded.value, set_at = excluded.set_at
    where tallyhook.installation.value <> excluded.value`;
}

/** A lease that is renewed only when half of it is over, for work in many small steps. */
export function makeHeldLease(
  db: Queryable,
  options: { name: string; daemon: Daemon; ttlMs: number; log: Log },
) {
  const acquire = makeLease(db, options);
  let held: { fence: bigint; until: Instant } | undefined;
  return {
    /** The fencing token, or undefined while another living daemon holds the lease. */
    async take(now: Instant): Promise<bigint | undefined> {
      if (held && now < held.until - options.ttlMs / 2) return held.fence;
      const fence = await acquire(now);
      held = fence === undefined ? undefined : { fence, until: now + options.ttlMs };
      return fence;
    },
    /** Asks again next time: after a refusal by `lockLease`. */
    forget() {
      held = undefined;
    },
  };
}
