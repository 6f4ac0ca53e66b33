/**
 * Fills the queue of deliveries: copies of the one event, endpoint and delivery that a daemon has
 * made, so that a column more changes nothing here.
 */
import postgres from 'postgres';
import { systemClock } from '../../../../src/kernel/clock.ts';
import { makeIds } from '../../../../src/kernel/ids.ts';
import { systemRandom } from '../../../../src/kernel/random.ts';
import { makeEncryption } from '../../../../src/webhooks/encryption.ts';
import { decryptKeys, encryptKeys } from '../../../../src/webhooks/endpoints/secrets.ts';
import { freePort } from '../../../harness/listen.ts';
import type { Running } from '../daemon.ts';

export const MASTER_KEY = Buffer.alloc(32, 9).toString('base64');
const WAITING = 1_000_000;
/** With the others as many as there may be. */
const DEAD = 9_988;
/** Of each dead endpoint. */
const DEAD_WAITING = 20;
/** Of an endpoint that has failed for days; its circuit is open. */
const FAILURES = 20;

/** @param url of a database whose one pending delivery belongs to the disabled slow endpoint */
export async function fillQueue(url: string, receiver: Running): Promise<void> {
  await withOwner(url, async (sql) => {
    await sql`
      insert into tallyhook.events
      select copy.* from tallyhook.events e
      join tallyhook.pending_deliveries d on d.event_id = e.id
      cross join generate_series(1, ${WAITING}::int) n
      cross join lateral jsonb_populate_record(e, jsonb_build_object('id', ${eventId(sql)},
        'subject_seq', e.subject_seq + n)) copy`;
    const dead = await deadEndpoints(sql, receiver);
    await sql`
      create temporary table dead as
      select * from jsonb_to_recordset(${sql.json(dead)}) as x(id text, url text,
        encrypted_secrets text)`;
    await sql`
      insert into tallyhook.endpoints
      select (jsonb_populate_record(e, to_jsonb(x) || '{"state": "enabled",
        "event_types": ["endpoint.test"]}')).*
      from dead x, tallyhook.endpoints e where e.state = 'disabled'`;
    await sql`
      insert into tallyhook.endpoint_health
      select (jsonb_populate_record(h, jsonb_build_object('endpoint_id', x.id,
        'consecutive_failures', ${FAILURES}::int, 'failing_since', now() - interval '1 day'))).*
      from dead x, tallyhook.endpoint_health h
      join tallyhook.endpoints e on e.id = h.endpoint_id and e.state = 'disabled'`;
    const [{ first = '' } = {}] = await sql<{ first: string }[]>`
      select id as first from tallyhook.pending_deliveries`;
    for (const [endpoints, waiting] of [
      [sql`select e.id from tallyhook.endpoints e where e.state = 'disabled'`, WAITING],
      [sql`select id from dead`, DEAD_WAITING],
    ] as const)
      await sql`
        insert into tallyhook.pending_deliveries
        select copy.* from tallyhook.pending_deliveries d
        join tallyhook.events e on e.id = d.event_id
        cross join lateral (select n, ${eventId(sql)} as id
          from generate_series(1, ${waiting}::int) n) c
        cross join (${endpoints}) p
        cross join lateral jsonb_populate_record(d, jsonb_build_object(
          'id', tallyhook.delivery_id(c.id, p.id), 'endpoint_id', substr(p.id, 4),
          'event_id', c.id, 'due_at', d.due_at + c.n * interval '1 ms')) copy
        where d.id = ${first}`;
    await sql`update tallyhook.endpoints set state = 'enabled' where state = 'disabled'`;
    await sql.unsafe('vacuum (analyze)');
    await sql.unsafe('checkpoint');
  });
}

/** The circuits of the dead endpoints let a probe pass within the next ten minutes. */
export async function makeDue(url: string): Promise<void> {
  await withOwner(url, async (sql) => {
    await sql`
      update tallyhook.endpoint_health set consecutive_failures = ${FAILURES},
        paused_until = now() + random() * interval '10 min'
      where failing_since is not null`;
  });
}

/** The id of the n-th copy of the event `e`. */
function eventId(sql: postgres.Sql) {
  return sql`overlay(e.id::text placing lpad(to_hex(n), 12, '0') from 25)::uuid`;
}

/** Half of them refuse connections, the others never answer. */
async function deadEndpoints(sql: postgres.Sql, receiver: Running) {
  const encryption = makeEncryption(Buffer.from(MASTER_KEY, 'base64'), systemRandom);
  const [slow] = await sql<{ id: string; secrets: string }[]>`
    select id, encrypted_secrets as secrets from tallyhook.endpoints where state = 'disabled'`;
  if (!slow) throw new Error('no endpoint is disabled');
  const keys = decryptKeys(encryption, slow.id, slow.secrets);
  const closed = await freePort();
  const ids = makeIds(systemClock, systemRandom);
  return Array.from({ length: DEAD }, (_, n) => {
    const id = ids.next('ep');
    const address = `127.${1 + (n % 2)}.${Math.floor(n / 500)}.${1 + (n % 250)}`;
    const port = n % 2 === 0 ? closed : receiver.port;
    return {
      id,
      url: `http://${address}:${port}/hangs`,
      encrypted_secrets: encryptKeys(encryption, id, keys),
    };
  });
}

async function withOwner(url: string, work: (sql: postgres.Sql) => Promise<void>): Promise<void> {
  const sql = postgres(url, {
    max: 1,
    onnotice: () => {},
    connection: {
      synchronous_commit: 'off',
      statement_timeout: 0,
      log_min_duration_statement: -1,
      work_mem: '256MB',
    },
  });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}
