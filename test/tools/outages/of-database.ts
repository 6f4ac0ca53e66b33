/** Outages of Postgres, its disk, its replica and its clock. */
import postgres from 'postgres';
import { pause, systemClock } from '../../../src/kernel/clock.ts';
import { CONNECTIONS_MAX, DAEMON } from './postgres.ts';
import type { Outage } from './run.ts';
import type { Scene } from './scene.ts';

const AWAY = /"msg":"the database is unavailable/;
const HOUR = 3_600_000;
/** What is seen of an outage in which no heartbeat is committed. */
const NO_HEARTBEAT = {
  alert: 'TallyhookHeartbeatLost',
  ready: 503,
  line: /"msg":"no heartbeat was committed in time/,
  lastsS: 45,
} as const;

const terminate = ({ postgres: server }: Scene) =>
  server.execute(
    `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${DAEMON}'`,
  );

export const ofDatabase: readonly Outage[] = [
  {
    name: 'database-stopped',
    what: 'Postgres is stopped',
    alert: 'TallyhookDatabaseAway',
    ready: 503,
    line: AWAY,
    lastsS: 30,
    begin: ({ postgres: server }) => server.stop(),
    end: ({ postgres: server }) => server.start(),
  },
  {
    name: 'database-connections',
    what: 'others hold every connection of Postgres',
    alert: 'TallyhookDatabaseAway',
    ready: 503,
    line: AWAY,
    lastsS: 30,
    begin: hoard,
    end: () => release(),
  },
  {
    name: 'database-role-limit',
    what: 'the login may have five connections instead of nineteen',
    alert: 'TallyhookWorkerFails',
    ready: undefined,
    line: AWAY,
    lastsS: 45,
    async begin(scene) {
      await scene.postgres.execute(`alter role ${DAEMON} connection limit 5`);
      await terminate(scene);
    },
    end: ({ postgres: server }) => server.execute(`alter role ${DAEMON} connection limit -1`),
  },
  {
    name: 'database-frozen',
    what: 'the processes of Postgres are stopped (SIGSTOP)',
    alert: 'TallyhookDatabaseAway',
    ready: 503,
    line: AWAY,
    lastsS: 45,
    begin: ({ postgres: server }) => server.signal('SIGSTOP'),
    end: ({ postgres: server }) => server.signal('SIGCONT'),
  },
  {
    name: 'commits-hang',
    what: 'commits wait for a standby that is gone',
    ...NO_HEARTBEAT,
    begin: ({ postgres: server }) => standbyNames(server.url, 'gone'),
    end: ({ postgres: server }) => standbyNames(server.url, ''),
  },
  {
    name: 'disk-full',
    what: 'the disk of Postgres is full',
    alert: 'TallyhookDatabaseAway',
    ready: 503,
    line: AWAY,
    lastsS: 45,
    scene: { diskMb: 160 },
    begin: ({ postgres: server }) => server.fillDisk(),
    async end({ postgres: server }) {
      await server.emptyDisk();
      await server.start();
    },
  },
  {
    name: 'heartbeat-lost',
    what: 'a transaction of another client locks the heartbeats',
    ...NO_HEARTBEAT,
    begin: ({ postgres: server }) => lock(server.url, 'tallyhook.daemons'),
    end: () => release(),
  },
  clockStep('clock-forward', 'the clock of the database steps forward by an hour', HOUR),
  clockStep('clock-back', 'the clock of the database steps back by an hour', -HOUR),
  {
    name: 'replica-away',
    what: 'the replica of DATABASE_READ_URL is stopped',
    alert: 'TallyhookReplicaUnusable',
    ready: 200,
    line: /"msg":"the replica of DATABASE_READ_URL cannot be used/,
    lastsS: 30,
    scene: { replica: true },
    begin: ({ postgres: { standby } }) => standby?.stop() ?? Promise.resolve(),
    end: ({ postgres: { standby } }) => standby?.start() ?? Promise.resolve(),
  },
  {
    name: 'verification-overdue',
    what: 'the last verification of the ledger was 27 hours ago',
    alert: 'TallyhookLedgerUnverified',
    ready: 200,
    line: undefined,
    lastsS: 20,
    horizonS: 75 * 60,
    // By people, as when the daemon's own do not end.
    scene: { settings: { ledger: { verify_interval_ms: 0 } } },
    begin: ({ postgres: server }) => verifiedBefore(server.url, 27 * HOUR),
    end: ({ postgres: server }) => verifiedBefore(server.url, 0),
  },
];

/** @param ms how far the clock steps, negative for back */
function clockStep(name: string, what: string, ms: number): Outage {
  return {
    name,
    what,
    alert: 'TallyhookClockStepped',
    ready: 200,
    line: /"msg":"the database's clock stepped/,
    lastsS: 40,
    scene: { clock: true },
    begin: ({ postgres: server }) => server.stepClock(ms),
    end: ({ postgres: server }) => server.stepClock(0),
  };
}

/** Sessions that an outage opened. */
const opened: postgres.Sql[] = [];

async function release(): Promise<void> {
  await Promise.all(opened.splice(0).map((sql) => sql.end({ timeout: 1 })));
}

/** Takes each connection that the daemons lose, until they have none. */
async function hoard(scene: Scene): Promise<void> {
  const { postgres: server } = scene;
  await server.execute('create role hoarder login');
  const url = Object.assign(new URL(server.url), { username: 'hoarder', pathname: '/postgres' });
  for (let tries = 0; tries < 4 * CONNECTIONS_MAX; tries++) {
    const sql = postgres(url.href, { max: 1, onnotice: () => {}, fetch_types: false });
    const isTaken = await sql`select 1`.then(
      () => true,
      () => false,
    );
    if (isTaken) {
      opened.push(sql);
      continue;
    }
    await sql.end();
    const [row] = await withServer(
      server.url,
      (owner) => owner<{ left: number }[]>`
      select count(pg_terminate_backend(pid))::int as left from pg_stat_activity
      where pid = (select pid from pg_stat_activity where usename = ${DAEMON} limit 1)`,
    );
    if (row?.left === 0) return;
  }
  throw new Error('the daemons kept a connection');
}

async function withServer<T>(url: string, work: (sql: postgres.Sql) => PromiseLike<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

/** In effect when it returns. */
async function standbyNames(url: string, names: string): Promise<void> {
  await withServer(url, async (sql) => {
    await sql`set synchronous_commit = local`;
    await sql.unsafe(`alter system set synchronous_standby_names = '${names}'`);
    await sql`select pg_reload_conf()`;
  });
  await pause(500);
}

/** Until `release`. */
async function lock(url: string, table: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  opened.push(sql);
  await sql.unsafe(`begin; lock table ${table} in exclusive mode`);
}

/** Notes a verification without findings that ended so long ago. */
async function verifiedBefore(url: string, ms: number): Promise<void> {
  const value = JSON.stringify({
    endedAt: systemClock.now() - ms,
    findings: 0,
    transactions: '0',
    keptHead: null,
  });
  await withServer(
    url,
    (sql) => sql`
    insert into tallyhook.installation (name, value, set_at)
    values ('ledger_verification', ${value}, now())
    on conflict (name) do update set value = excluded.value`,
  );
}
