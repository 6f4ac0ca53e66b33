/**
 * `tallyhook doctor --restored`: lists what a restored or copied database may lack, takes over the
 * idempotency keys that were used since, and releases the writes.
 */
import { createReadStream } from 'node:fs';
import { userInfo } from 'node:os';
import { createInterface } from 'node:readline';
import { type Config, type Database, identityTools } from '../../daemon/daemon.ts';
import { isoText, isoTextOrNull } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { HEADER_TEXT_MAX, isHeaderText } from '../../kernel/http/request.ts';
import { jsonText, tryParseJson } from '../../kernel/json.ts';
import { makeLog, printLine } from '../../kernel/telemetry/log.ts';
import {
  findCurrent,
  insertUsedSinceBackup,
  listOperations,
  type Operation,
  releaseRestored,
  type UsedSinceBackup,
} from '../../operations/operations.ts';
import { withDatabase } from '../installation.ts';
import {
  type Comparison,
  compareWithService,
  comparisonLines,
  comparisonRows,
} from './comparison.ts';
import { withUpstream } from './doctor.ts';

interface Options {
  keysUsed?: string;
  dryRun?: true;
  release?: string;
  sendQueued?: true;
  limit: number;
  json?: true;
}

interface Listing {
  /** Why writes are stopped; undefined when they are not. */
  held: { cause: string; since: string; reason: string } | undefined;
  /** When the newest operation of this database was recorded. */
  newestOperationAt: string | null;
  open: Operation[];
  service: Comparison | undefined;
  /** What the file names; undefined without one. */
  keys: Keys | undefined;
}

/** Keys and ids of operations in the file, and those of them that were stored now. */
interface Keys {
  named: number;
  taken: number;
}

/** States in which an operation may have gone on elsewhere. */
const OPEN_STATES = ['queued', 'sending', 'unknown', 'undecided'] as const;

export async function runRestored(options: Options): Promise<number> {
  const reason = options.release?.trim();
  if (reason === '') throw new Failure('bad_setting', '--release needs a reason');
  if (reason && options.dryRun)
    throw new Failure('bad_setting', '--release and --dry-run exclude each other');
  const { listing, released } = await withDatabase(async (database, config) => {
    const { makeIdentityProof } = await identityTools();
    const { dataDir } = config;
    const identity = makeIdentityProof({ database, dataDir, log: makeLog('fatal') });
    await database.db.begin((tx) => identity.prove(tx));
    await identity.note();
    const listing = await list(database, config, options);
    const { sendQueued = false } = options;
    const order = { by: userInfo().username, reason: reason ?? '', sendQueued };
    return { listing, released: reason ? await release(database, order) : false };
  });
  if (options.json) printLine(jsonText(outputOf(listing, released)));
  else for (const line of linesOf(listing, released, options)) printLine(line);
  return listing.held === undefined || released ? 0 : 1;
}

async function list(database: Database, config: Config, options: Options): Promise<Listing> {
  const { db } = database;
  const keys = options.keysUsed
    ? await takeKeys(database, options.keysUsed, options.dryRun)
    : undefined;
  const freeze = await findCurrent(db, ['restored', 'failover']);
  const [newest] = await listOperations(db, { limit: 1 });
  const open: Operation[] = [];
  for (const state of OPEN_STATES)
    open.push(...(await listOperations(db, { state, limit: options.limit })));
  const compare = () =>
    withUpstream(database, config, (upstream) => compareWithService(db, upstream, options.limit));
  return {
    held: freeze && {
      cause: freeze.cause,
      since: isoText(freeze.frozenAt),
      reason: freeze.reason,
    },
    newestOperationAt: isoTextOrNull(newest?.recordedAt),
    open,
    // The sandbox belongs to the process of the daemon.
    service: config.service ? await compare() : undefined,
    keys,
  };
}

/** All of the file or, if a line of it is refused, nothing. @throws Failure `bad_setting` */
async function takeKeys({ db, clock }: Database, path: string, dryRun = false): Promise<Keys> {
  return db.begin(async (tx) => {
    const keys: Keys = { named: 0, taken: 0 };
    for await (const group of readUsedKeys(path)) {
      for (const { key, operationId } of group)
        keys.named += (key === null ? 0 : 1) + (operationId === null ? 0 : 1);
      if (!dryRun) keys.taken += await insertUsedSinceBackup(tx, group, clock.now());
    }
    return keys;
  });
}

/** @throws Failure `conflict` when nothing is held */
async function release(
  { db, clock }: Database,
  order: { by: string; reason: string; sendQueued: boolean },
): Promise<boolean> {
  const freeze = await db.begin((tx) => releaseRestored(tx, order, clock.now()));
  if (!freeze) throw new Failure('conflict', 'nothing is held after a restore or a failover');
  return true;
}

function outputOf({ held, newestOperationAt, open, service, keys }: Listing, done: boolean) {
  return {
    held: held ?? null,
    released: done,
    newest_operation_at: newestOperationAt,
    keys_named: keys?.named ?? 0,
    keys_taken: keys?.taken ?? 0,
    operations: open.map((operation) => ({
      id: operation.id,
      state: operation.state,
      kind: operation.kind,
      amount: operation.amount?.toString() ?? null,
      from_addr: operation.fromAddr,
      to_addr: operation.toAddr,
      idempotency_key: operation.idempotencyKey,
      recorded_at: isoText(operation.recordedAt),
    })),
    ...(service && comparisonRows(service)),
  };
}

function linesOf(listing: Listing, released: boolean, options: Options): string[] {
  const { held, newestOperationAt, open, service, keys } = listing;
  const lines = [
    held
      ? `Held since ${held.since}: ${held.reason}`
      : 'Nothing is held: this is the database that the last start used',
    `The newest operation is of ${newestOperationAt ?? '-'}; what came later is not here`,
  ];
  if (keys && options.dryRun)
    lines.push(`The file names ${keys.named} keys and operations; a dry run takes none`);
  else if (keys) lines.push(`${keys.taken} keys and operations taken from the file`);
  for (const { state, id, kind, amount, idempotencyKey, recordedAt } of open)
    lines.push(
      `${state}  ${id}  ${kind} ${amount ?? ''}  ${isoText(recordedAt)}  ${idempotencyKey ?? '-'}`,
    );
  lines.push(...(service ? comparisonLines(service) : ['The sandbox is not compared']));
  if (released) lines.push(`Released. ${queuedLine(options)}`);
  else if (held)
    lines.push(
      'To allow writes: npx tallyhook doctor --restored --keys-used FILE --release "reason". ' +
        `${queuedLine(options)}${options.sendQueued ? '' : '; --send-queued sends it'}`,
    );
  return lines;
}

function queuedLine({ sendQueued }: Options): string {
  return sendQueued
    ? 'What was queued is sent, unless the file names it'
    : 'What was queued becomes unknown and ends by evidence';
}

const GROUP_MAX = 1_000;
/** Errors after which the key was free again. */
const UNAPPLIED = ['not_sent', 'unavailable'];

/**
 * The writes of a file, in groups: a key on each line, or events of a subscriber's copy of the
 * feed, one JSON document on each line.
 * @throws Failure `bad_setting` with the line
 */
async function* readUsedKeys(path: string): AsyncGenerator<UsedSinceBackup[]> {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: 1_000 });
  const group: UsedSinceBackup[] = [];
  let n = 0;
  try {
    for await (const line of lines) {
      n += 1;
      const used = usedOf(line.trim(), `${path}:${n}`);
      if (used) group.push(used);
      if (group.length === GROUP_MAX) yield group.splice(0);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw refusal(path, 'cannot be read');
  }
  yield group;
}

function usedOf(line: string, where: string): UsedSinceBackup | undefined {
  if (line === '') return undefined;
  if (!line.startsWith('{')) return { key: keyOf(line, where), operationId: null };
  const parsed = tryParseJson(line) as Members | undefined;
  if (typeof parsed !== 'object') throw refusal(where, 'is not JSON');
  const { idempotency_key, operation_id, error } = (parsed.data ?? parsed) as Members;
  if (UNAPPLIED.includes(String(error?.class))) return undefined;
  const key = typeof idempotency_key === 'string' ? keyOf(idempotency_key, where) : null;
  const operationId = typeof operation_id === 'string' ? operation_id : null;
  return key === null && operationId === null ? undefined : { key, operationId };
}

interface Members {
  data?: Members;
  idempotency_key?: unknown;
  operation_id?: unknown;
  error?: { class?: unknown } | null;
}

function keyOf(text: string, where: string): string {
  if (isHeaderText(text)) return text;
  throw refusal(where, `is no idempotency key: 1 to ${HEADER_TEXT_MAX} printable characters`);
}

function refusal(where: string, why: string): Failure {
  return new Failure('bad_setting', `${where} ${why}; nothing of the file was taken`);
}
