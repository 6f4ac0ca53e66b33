/**
 * Incidents in the log: of all daemons on a database, one logs each event of these types, with the
 * ids in it. The position is stored, so that incidents of a daemon that died are logged as well.
 * Of many of one type in a minute most are only counted, because an outage of the service makes one
 * of each write; all of them are in the feed.
 */
import type { Db, Tx } from '../db/connect.ts';
import { MINUTE_MS, monotonicMs } from '../kernel/clock.ts';
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

/** Lines of one type in a minute. */
const LINES_MAX = 10;

/**
 * Makes what logs the incidents since the last call of any daemon; it returns true when there may
 * be more.
 * @param nowMs counts milliseconds
 */
export function makeIncidentLog(
  db: Db,
  log: Log,
  nowMs: () => number = monotonicMs,
): () => Promise<boolean> {
  const write = limitedLog(log, nowMs);
  const types = Object.keys(INCIDENTS);
  return () => {
    write.rest();
    return db.begin(async (tx) => {
      const after = await lockReader(tx);
      if (after === undefined) return false;
      const { newest } = await feedBounds(tx);
      if (newest <= after) return false;
      const query = { after, upTo: newest, types, limit: LIMIT, bytesMax: PAGE_BYTES_MAX };
      const rows = await listFeed(tx, query);
      for (const { type, body } of rows) write.line(type, fieldsOf(parseJson(body)));
      const last = rows.at(-1);
      const more = rows.length === LIMIT || last?.cut === true;
      const position = (more && last ? last.seq : newest).toString();
      await tx.sql`
        update tallyhook.feed set last_seq = ${position}::bigint where name = ${READER}`;
      return more;
    });
  };
}

function limitedLog(log: Log, nowMs: () => number) {
  let minute = { endsAt: 0, counts: new Map<string, number>() };
  const levelOf = (type: string) => INCIDENTS[type as EventType] ?? 'info';
  /** Counts what was not logged, once its minute is over. */
  const rest = () => {
    if (nowMs() < minute.endsAt) return;
    for (const [type, count] of minute.counts)
      if (count > LINES_MAX)
        log[levelOf(type)]({ more: count - LINES_MAX }, `${type}: more in the last minute`);
    minute = { endsAt: nowMs() + MINUTE_MS, counts: new Map() };
  };
  return {
    rest,
    line(type: string, fields: Record<string, string | number | null>) {
      const count = (minute.counts.get(type) ?? 0) + 1;
      minute.counts.set(type, count);
      if (count <= LINES_MAX) log[levelOf(type)](fields, type);
    },
  };
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
