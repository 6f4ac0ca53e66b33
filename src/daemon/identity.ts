/**
 * Compares the database with the one that was recorded, and stops writes when it is another one: a
 * restored backup or a copy could send again what the original has sent. A person releases them
 * with `tallyhook doctor --restored`.
 *
 * A restored disk or base backup without recovery has the identity of the original. It is found by
 * a counter of the database, which is counted up every few seconds and noted in DATA_DIR.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { differenceOf, type Identity, readIdentity } from '../db/checks/identity.ts';
import {
  countUp,
  findInstallationSetting,
  fixInstallationSetting,
  setInstallationSetting,
} from '../db/leases.ts';
import { jsonText, tryParseJson } from '../kernel/json.ts';
import type { Log } from '../kernel/log.ts';
import { freezeWrites, hasQueued } from '../operations/operations.ts';
import type { Database } from './database.ts';

const SETTING = 'identity';
const COUNTER = 'counter';
/** In DATA_DIR. */
const NOTE = 'database-counter.json';

const REASONS = {
  restored:
    'this database was restored from a backup or copied, so the original may have sent more',
  failover: 'the history of this database changed (a promoted standby or a recovery)',
  snapshot: 'this database is older than DATA_DIR knows it, such as a restored disk or base backup',
};

export interface IdentityCheck {
  /** Records the database at the first call; freezes when it is another one. */
  check(): Promise<void>;
  /** Counts up and notes the counter; freezes when the database is behind the note. */
  count(): Promise<void>;
}

/** The counter when it was last counted up, and the database that it belongs to. */
interface Note {
  identity: Identity;
  counter: number;
}

type Opened = Pick<Database, 'db' | 'clock' | 'folder'>;

export function makeIdentityCheck(deps: {
  database: Opened;
  dataDir: string;
  log: Log;
}): IdentityCheck {
  const { database, dataDir, log } = deps;
  const path = join(dataDir, NOTE);
  let noted: Note | undefined;
  return {
    async count() {
      const { db, clock, folder } = database;
      noted ??= await readNote(path);
      const identity = await readIdentity(db, folder);
      let counter = await countUp(db, COUNTER, clock.now());
      // After a failover the counter may be behind by what the standby lacked.
      if (noted && counter <= noted.counter && !differenceOf(noted.identity, identity)) {
        const order = { by: 'tallyhook', reason: REASONS.snapshot };
        await freezeWrites(db, order, 'restored', clock.now());
        log.error({ counter, noted }, `${REASONS.snapshot}; see doctor --restored`);
        counter = await countUp(db, COUNTER, clock.now(), noted.counter + 1);
      }
      noted = { identity, counter };
      await writeNote(dataDir, path, noted);
    },
    async check() {
      const { recorded, present } = await compareIdentity(database);
      const difference = differenceOf(recorded, present);
      if (difference === undefined) return;
      const reason = REASONS[difference];
      const stops = difference === 'restored' || (await hasQueued(database.db));
      const { db, clock } = database;
      const order = { by: 'tallyhook', reason };
      if (stops) await freezeWrites(db, order, difference, clock.now());
      // From now on the freeze stands for the difference.
      await setInstallationSetting(db, SETTING, jsonText(present), clock.now());
      const what = difference === 'restored' ? 'all writes' : stops ? 'queued writes' : 'nothing';
      log.error({ recorded, present, stopped: what }, `${reason}; see doctor --restored`);
    },
  };
}

/** The recorded identity, which is the present one at the first call. */
async function compareIdentity({
  db,
  clock,
  folder,
}: Opened): Promise<{ recorded: Identity; present: Identity }> {
  const present = await readIdentity(db, folder);
  const found = await findInstallationSetting(db, SETTING);
  const text =
    found?.value ?? (await fixInstallationSetting(db, SETTING, jsonText(present), clock.now()));
  return { recorded: JSON.parse(text) as Identity, present };
}

async function readNote(path: string): Promise<Note | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return tryParseJson(text) as Note | undefined;
}

/** Without a folder that can be written, restored disks are not found. */
async function writeNote(dataDir: string, path: string, note: Note): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true });
    await writeFile(`${path}.new`, jsonText(note));
    await rename(`${path}.new`, path);
  } catch {
    // Said above.
  }
}
