/**
 * Imports: the history of an app from a file. Its rows are staged while the file arrives, then
 * checked and proved. When its owner says so they are checked once more and recorded: a dry run is
 * the same without that. A worker does it in steps; any living daemon goes on with it.
 */
import type { Db } from '../db/connect.ts';
import { type Clock, DAY_MS, type Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { ImportState, RowResult } from '../resources/operations/import.ts';
import { checkStep, recordStep, type Step, type StepDeps } from './steps.ts';
import type { Import, ImportRow } from './store.ts';
import * as store from './store.ts';
import { stageFile, type Upload } from './upload.ts';

export { isWorking } from './store.ts';

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
   * Has it checked once more and recorded. @param reason why, although balances contradict it
   * @throws Failure `not_found`, `forbidden`, `conflict` when rows are refused, or balances
   * contradict it without a reason
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
      requireRecordable(found, reason);
      const moved = await store.takeTurn(peopleDb, id, reason ?? null);
      if (moved) return moved;
      throw new Failure('conflict', `the import is ${(await get(id)).state}`);
    },
    async cancel(id, by) {
      await getOwn(id, by);
      const from = ['checking', 'ready', 'refused', 'recording'] as const;
      const moved = await store.endImport(peopleDb, id, from, 'cancelled', clock.now());
      if (moved) return moved;
      throw new Failure('conflict', 'the import has ended');
    },
    runOnce: (now, signal) => runOnce(deps, now, signal),
  };
}

/**
 * Ends imports that were not continued for a day; removes some rows that recorded nothing a day
 * after their end, and the others after a month. Returns how many.
 */
export async function pruneImports(db: Db, now: Instant): Promise<number> {
  const aDayAgo = now - DAY_MS;
  await store.endIdle(db, aDayAgo, now);
  for (const id of await store.listAbandoned(db, aDayAgo)) await store.removeStaged(db, id);
  return db.single((q) => store.removeRows(q, { cancelled: aDayAgo, done: now - 30 * DAY_MS }));
}

/** @throws Failure `conflict` */
function requireRecordable({ state, summary, refused }: Import, reason: string | undefined): void {
  if (state === 'refused')
    throw new Failure('conflict', `${refused} rows are refused; mend or remove them`);
  if (state !== 'ready') throw new Failure('conflict', `the import is ${state}`);
  const contradicting = summary?.wallets.failed ?? 0;
  if (contradicting > 0 && reason === undefined)
    throw new Failure(
      'conflict',
      `the balances of ${contradicting} wallets contradict the file; mend it, or give a reason`,
    );
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
  while (one && step === 'more' && clock.now() < until && !signal?.aborted) {
    const { state }: Import = one;
    if (state !== 'checking' && state !== 'recording') step = 'ended';
    else step = await (state === 'checking' ? checkStep : recordStep)(deps, one);
    if (step === 'more') one = await store.findImport(db, claimed.id);
  }
  const at = clock.now();
  await store.releaseImport(db, claimed.id, step === 'wait' ? at + WAIT_MS : at);
  return step === 'wait' ? at + WAIT_MS : at;
}
