/**
 * What `tallyhook doctor` checks of Postgres: the login of the daemon and its connections, whether
 * commits and heartbeats get through, and the replica of reports.
 */
import { type Config, type Database, openReplica } from '../../daemon/daemon.ts';
import { reach } from '../../db/access/reach.ts';
import { whyUnusable } from '../../db/access/replica.ts';
import { WRITER } from '../../db/access/roles.ts';
import { commitsWithin, readLogin } from '../../db/checks/login.ts';
import { parseConnection } from '../../db/connection/settings.ts';
import { listLiving, listLost } from '../../db/leases.ts';
import { isoText } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';

const COMMIT_MS = 3_000;
/** A daemon that was killed longer ago is not named: no one has to act. */
const LOST_SINCE_MS = 900_000;
const REPLICA_MS = 10_000;

const LOST_CAUSES =
  'it was killed, or its heartbeats are not committed: its commits hang, or its role has no ' +
  'free connection; see its log';

/** A superuser could change what the guards of the ledger protect. */
export async function checkLogin({ db }: Database, { databaseUrl }: Config): Promise<string> {
  const { name, isSuperuser } = await readLogin(db);
  if (!databaseUrl) return `${name}, which owns the embedded Postgres`;
  if (isSuperuser)
    throw new Failure(
      'bad_setting',
      `DATABASE_URL: login ${name} is a superuser, so nothing protects the ledger from it; use ` +
        'the login that npx tallyhook setup makes',
    );
  return `${name}, no superuser`;
}

/** Behind a pooler its own limits count. */
export async function checkConnections(database: Database, { database: settings }: Config) {
  const { db, clock, url } = database;
  if (!parseConnection(url).keepsSession) return 'of a pooler';
  const { name, connections, limitedBy } = await readLogin(db);
  const each = Object.values(settings.connections).reduce((sum, one) => sum + one, 0);
  const daemons = Math.max(1, (await listLiving(db, clock.now())).length);
  const needed = daemons * each;
  const found = `${connections} by the limit of the ${limitedBy}, ${daemons} daemon(s) of ${each}`;
  if (connections >= needed) return found;
  const remedy = {
    login: `alter role ${name} connection limit -1`,
    database: 'alter database … connection limit -1',
    server: 'raise max_connections',
  }[limitedBy];
  throw new Failure(
    'bad_setting',
    `${found} open up to ${needed}; ${remedy}, or lower database.connections`,
  );
}

export async function checkCommits({ url }: Database): Promise<string> {
  if (await commitsWithin(url, WRITER, COMMIT_MS)) return 'become durable';
  throw new Failure(
    'bad_setting',
    `a commit did not end within ${COMMIT_MS / 1_000} s, so no write is accepted: bring the ` +
      'standby of synchronous_standby_names back or take it out, or see the disk of the server',
  );
}

export async function checkHeartbeats({ db, clock }: Database): Promise<string> {
  const now = clock.now();
  const [lost] = await listLost(db, now - LOST_SINCE_MS, now);
  if (!lost) return 'none was lost';
  throw new Failure(
    'bad_setting',
    `${lost.id} (${lost.roles.join(', ')}) has none since ${isoText(lost.aliveUntil)}: ` +
      LOST_CAUSES,
  );
}

export async function checkReplica({ db: primary }: Database, config: Config): Promise<string> {
  const replica = openReplica(config);
  if (!replica || !config.databaseReadUrl) return 'none; reports are made on the primary';
  try {
    await reach({ variable: 'DATABASE_READ_URL', url: config.databaseReadUrl, role: WRITER }, 0);
    const reason = await whyUnusable({ primary, replica }, REPLICA_MS);
    if (reason === undefined) return 'has what is committed';
    throw new Failure(
      'bad_setting',
      `DATABASE_READ_URL: ${reason}, so reports are made on the primary; correct or remove it`,
    );
  } finally {
    await replica.end(0);
  }
}
