/**
 * Imports: the history of an app from a file. Its rows are staged while the file arrives, then
 * checked and proved, and recorded when its owner says so: a dry run is the same without that last
 * step. A worker does it in steps; any living daemon goes on with it.
 */
import type { Db } from '../db/connect.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { ImportState, RowResult } from '../resources/operations/import.ts';
import { checkStep, recordStep, type Step, type StepDeps } from './steps.ts';
import type { Import, ImportRow } from './store.ts';
import * as store from './store.ts';
import { stageFile, type Upload } from './upload.ts';

interface By {
  owner: string;
  admin: boolean;
}

interface Page<T> {
  after: T | undefined;
  limit: number;
}

export interface Imports {
  /**
   * The import of a file, once it has arrived.
   * @throws Failure `invalid_request`, `malformed_json`, `body_too_large`, `request_timeout`,
   * `too_many_requests`, `shutting_down`
   */
  upload(upload: Upload): Promise<Import>;
  /** @throws Failure `not_found` */
  get(id: string): Promise<Import>;
  /** Newest first. */
  list(page: Page<string> & { state?: ImportState | undefined }): Promise<Import[]>;
  /** @throws Failure `not_found` */
  listRows(
    id: string,
    page: Page<bigint> & { result?: RowResult | undefined },
  ): Promise<ImportRow[]>;
  /**
   * Has it recorded. @param reason why, although balances contradict it
   * @throws Failure `not_found`, `forbidden`, `conflict` when rows are refused, balances contradict
   * it without a reason, or its check is too old
   */
  record(id: string, by: By, reason?: string): Promise<Import>;
  /** What it has recorded stays. @throws Failure `not_found`, `forbidden`, `conflict` */
  cancel(id: string, by: By): Promise<Import>;
  /** Works on one import for a few seconds; returns when there is more to do. */
  runOnce(now: Instant, signal?: AbortSignal): Promise<Instant | undefined>;
}

interface Deps extends StepDeps {
  /** For people; `db` is that of the workers. */
  peopleDb: Db;
  clock: Clock;
  ids: Ids;
}

const UPLOADS_MAX = 2;
/** Until then another daemon does not go on with it, also if this one was killed. */
const LEASE_MS = 15_000;
const PASS_MS = 5_000;
const WAIT_MS = 500;
/** A check says what would happen now, and not for ever. */
const CHECK_VALID_MS = 3_600_000;
const KEEP_MS = 30 * 86_400_000;
const UPLOAD_MS = 86_400_000;

export function makeImports(deps: Deps): Imports {
  const { peopleDb, clock } = deps;
  let uploads = 0;

  async function get(id: string): Promise<Import> {
    const found = await store.findImport(peopleDb, id);
    if (!found) throw new Failure('not_found');
    return found;
  }
  async function getOwn(id: string, by: By): Promise<Import> {
    const found = await get(id);
    if (by.admin || found.owner === by.owner) return found;
    throw new Failure('forbidden', 'the import belongs to another owner');
  }
  return {
    async upload(upload) {
      if (uploads >= UPLOADS_MAX)
        throw new Failure('too_many_requests', `at most ${UPLOADS_MAX} files at once`);
      uploads++;
      try {
        return await stageFile({ ...deps, db: peopleDb }, upload);
      } finally {
        uploads--;
      }
    },
    get,
    list: (page) => store.listImports(peopleDb, page),
    async listRows(id, page) {
      await get(id);
      return store.listRows(peopleDb, id, page);
    },
    async record(id, by, reason) {
      const found = await getOwn(id, by);
      const now = clock.now();
      requireRecordable(found, reason, now);
      const unproved = found.summary?.wallets.failed ? { reason: reason ?? null } : {};
      const moved = await store.moveImport(peopleDb, id, ['ready'], 'recording', {
        now,
        ...unproved,
      });
      if (moved) return moved;
      throw new Failure('conflict', `the import is ${(await get(id)).state}`);
    },
    async cancel(id, by) {
      await getOwn(id, by);
      const from = ['checking', 'ready', 'refused', 'recording'] as const;
      const moved = await store.moveImport(peopleDb, id, from, 'cancelled', { now: clock.now() });
      if (moved) return moved;
      throw new Failure('conflict', 'the import has ended');
    },
    runOnce: (now, signal) => runOnce(deps, now, signal),
  };
}

/** Ends imports that nobody goes on with; removes some old rows, and returns how many. */
export async function pruneImports(db: Db, now: Instant): Promise<number> {
  await store.endIdle(db, now - KEEP_MS, now);
  for (const id of await store.listAbandoned(db, now - UPLOAD_MS)) await store.removeStaged(db, id);
  return db.single((q) => store.removeRows(q, now - KEEP_MS));
}

/** @throws Failure `conflict` */
function requireRecordable(one: Import, reason: string | undefined, now: Instant): void {
  const { state, summary, checkedAt, refused } = one;
  if (state === 'refused')
    throw new Failure('conflict', `${refused} rows are refused; mend or remove them`);
  if (state !== 'ready') throw new Failure('conflict', `the import is ${state}`);
  const contradicting = summary?.wallets.failed ?? 0;
  if (contradicting > 0 && reason === undefined)
    throw new Failure(
      'conflict',
      `the balances of ${contradicting} wallets contradict the file; mend it, or give a reason`,
    );
  if (checkedAt === null || now - checkedAt > CHECK_VALID_MS)
    throw new Failure('conflict', 'it was checked more than an hour ago; send the file again');
}

/** A step that fails leaves the lease: other imports go on until it is over. */
async function runOnce(
  deps: Deps,
  now: Instant,
  signal: AbortSignal | undefined,
): Promise<Instant | undefined> {
  const { db, clock } = deps;
  const claimed = await db.single((q) => store.claimImport(q, now, now + LEASE_MS));
  if (!claimed) return undefined;
  const until = now + PASS_MS;
  let one: Import | undefined = claimed;
  let step: Step = 'more';
  const place = { after: 0 };
  while (one && step === 'more' && clock.now() < until && !signal?.aborted) {
    const isWorking: boolean = one.state === 'checking' || one.state === 'recording';
    if (!isWorking) step = 'ended';
    else step = await (one.state === 'checking' ? checkStep : recordStep)(deps, one, place);
    if (step === 'more') one = await store.findImport(db, claimed.id);
  }
  const at = clock.now();
  await store.releaseImport(db, claimed.id, step === 'wait' ? at + WAIT_MS : at);
  return step === 'wait' ? at + WAIT_MS : at;
}
