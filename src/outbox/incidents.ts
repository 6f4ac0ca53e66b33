/**
 * Incidents in the log: of all daemons on a database, one logs each event of these types, with the
 * ids in it. The position is stored, so that incidents of a daemon that died are logged as well.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Json, parseJson } from '../kernel/json.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import type { EventType } from '../resources/delivery/events.ts';
import { feedBounds, listFeed, PAGE_BYTES_MAX } from './feed.ts';

const INCIDENTS: Partial<Record<EventType, 'info' | 'warn' | 'error'>> = {
  'operation.unknown': 'warn',
  'operation.undecided': 'warn',
  'operation.resolved': 'info',
  'wallet.vanished': 'warn',
  'wallet.reappeared': 'info',
  'wallet.drift_opened': 'warn',
  'wallet.drift_closed': 'info',
  'wallet.drift_reversed': 'info',
  'service.maintenance_announced': 'info',
  'service.maintenance_started': 'warn',
  'service.maintenance_ended': 'info',
  'service.unreachable': 'warn',
  'service.recovered': 'info',
  'operation.stuck': 'warn',
  'observer.late': 'warn',
  'observer.recovered': 'info',
  'alert.raised': 'warn',
  'alert.cleared': 'info',
  'endpoint.disabled': 'warn',
  'report.completed': 'info',
  'ledger.verify_failed': 'error',
};
/** Other members of an event are not logged; a URL, for one, may hold a token. */
const LOGGED = new Set([
  'operation_id',
  'kind',
  'state',
  'addr',
  'amount',
  'tx_log_no',
  'tx_hash',
  'drift_id',
  'previous',
  'current',
  'start',
  'end',
  'endpoint_id',
  'reason',
  'report_id',
  'verdict',
  'chain_head',
  'executed_at',
  'targets',
  'oldest_poll_at',
  'late_since',
  'alert_id',
  'rule',
  'how',
  'ledger_balance',
  'limit',
  'limit_ms',
  'findings',
  'listed',
  'command',
]);
const READER = 'incidents';
const LIMIT = 500;

/** Logs the incidents since the last call of any daemon; returns true when there may be more. */
export async function logIncidents(db: Db, log: Log): Promise<boolean> {
  const types = Object.keys(INCIDENTS);
  return db.begin(async (tx) => {
    const after = await lockReader(tx);
    if (after === undefined) return false;
    const { newest } = await feedBounds(tx);
    if (newest <= after) return false;
    const query = { after, upTo: newest, types, limit: LIMIT, bytesMax: PAGE_BYTES_MAX };
    const rows = await listFeed(tx, query);
    for (const { type, body } of rows)
      log[INCIDENTS[type as EventType] ?? 'info'](fieldsOf(parseJson(body)), type);
    const last = rows.at(-1);
    const more = rows.length === LIMIT || last?.cut === true;
    const position = (more && last ? last.seq : newest).toString();
    await tx.sql`
      update tallyhook.feed set last_seq = ${position}::bigint where name = ${READER}`;
    return more;
  });
}

/**
 * The position of a reader of the feed, locked until the end of the transaction; a new reader
 * begins at the present. Undefined while another daemon holds it.
 */
async function lockReader(tx: Tx): Promise<bigint | undefined> {
  await tx.sql`
    insert into tallyhook.feed (name, last_seq)
    select ${READER}, coalesce((select last_seq from tallyhook.feed where name = 'events'), 0)
    where not exists (select from tallyhook.feed where name = ${READER}) on conflict do nothing`;
  const rows = await tx.sql<{ lastSeq: bigint }[]>`
    select last_seq from tallyhook.feed where name = ${READER} for update skip locked`;
  return rows[0]?.lastSeq;
}

function fieldsOf(body: Json): Record<string, string | number | null> {
  const { id, data } = body as { id: string; data: Record<string, Json> };
  const isLogged = ([name, value]: [string, Json]) =>
    LOGGED.has(name) && (typeof value === 'string' || typeof value === 'number');
  return { event_id: id, ...Object.fromEntries(Object.entries(data).filter(isLogged)) };
}
