/**
 * Who lives and who may. A daemon has an epoch, one per start; a lease is work that one daemon at a
 * time may do. All instants are Postgres time. A lease that ran out may be taken by anybody; its
 * fence then rises, and a holder that wakes up late finds its fence gone (`holdFence`) before it
 * writes.
 */
import { must } from '../kernel/assert.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Queryable, Tx } from './connect.ts';

export interface Daemon {
  id: string;
  epoch: bigint;
}

/**
 * Registers a start and gives it its epoch; it counts as alive for `aliveMs` after its last sign.
 */
export async function registerDaemon(
  db: Queryable,
  id: string,
  now: Instant,
  aliveMs: number,
): Promise<Daemon> {
  const [row] = await db.sql<{ epoch: bigint }[]>`
    insert into tallyhook.daemons (id, started_at, alive_until)
    values (${id}, ${isoText(now)}, ${isoText(now + aliveMs)})
    returning epoch`;
  return { id, epoch: must(row, 'daemon row').epoch };
}

/** A sign of life. Answers how many daemons are alive, this one included. */
export async function keepAlive(
  db: Queryable,
  daemon: Daemon,
  now: Instant,
  aliveMs: number,
): Promise<number> {
  const [row] = await db.sql<{ alive: number }[]>`
    with sign as (
      update tallyhook.daemons set alive_until = ${isoText(now + aliveMs)} where id = ${daemon.id}
      returning id)
    select count(*)::int as alive from tallyhook.daemons
    where alive_until > ${isoText(now)} or id in (select id from sign)`;
  return row?.alive ?? 1;
}

/**
 * Insists, inside a transaction that is about to promise something, that this daemon still counts
 * as alive: a process that was paused for long finds itself declared dead and must not go on.
 * @throws Failure `lease_lost`
 */
export async function assertDaemonAlive(tx: Tx, daemon: Daemon, now: Instant): Promise<void> {
  const rows = await tx.sql`
    select 1 as one from tallyhook.daemons where id = ${daemon.id} and alive_until >
      ${isoText(now)}`;
  if (rows.length === 0)
    throw new Failure('lease_lost', 'this daemon is no longer counted as alive');
}

/** Says goodbye: from now on it counts as dead, and its leases are free for the others. */
export async function retireDaemon(db: Queryable, daemon: Daemon, now: Instant): Promise<void> {
  await db.sql`
    update tallyhook.daemons set alive_until = ${isoText(now)} where id = ${daemon.id}`;
}

/**
 * Takes or keeps the lease of that name until `now + ttlMs`. Answers its fence, or undefined while
 * another daemon holds it. A holder that no longer counts as alive has lost it at once.
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

/**
 * Locks the lease row to the end of the transaction, so that nobody takes it meanwhile.
 * @throws Failure `lease_lost` when the fence is no longer ours.
 */
export async function lockLease(tx: Tx, name: string, fence: bigint): Promise<void> {
  const rows = await tx.sql<{ fence: bigint }[]>`
    select fence from tallyhook.leases where name = ${name} for no key update`;
  if (rows[0]?.fence !== fence) throw new Failure('lease_lost', name);
}

/** What this database was told about itself under that name, if anything. */
export async function findInstallationSetting(
  db: Queryable,
  name: string,
): Promise<string | undefined> {
  const rows = await db.sql<{ value: string }[]>`
    select value from tallyhook.installation where name = ${name}`;
  return rows[0]?.value;
}

/** Records a fact once; answers the value that stands, which may be an earlier one. */
export async function fixInstallationSetting(
  db: Queryable,
  name: string,
  value: string,
  now: Instant,
): Promise<string> {
  await db.sql`
    insert into tallyhook.installation (name, value, set_at) values (${name}, ${value},
      ${isoText(now)})
    on conflict (name) do nothing`;
  return must(await findInstallationSetting(db, name), `installation fact ${name}`);
}

/** Records a fact that follows the configuration; the newest value stands. */
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
