/**
 * Proves that the database is the one that was recorded and that this daemon knows, and stops
 * writes when it is not: a restored backup or a copy could send again what the original has sent. A
 * person releases them with `tallyhook doctor --restored`.
 *
 * A restored disk or base backup without recovery has the identity of the original. It is found by
 * a counter of the database, which every proof counts up and notes here and in DATA_DIR, and by the
 * last send of this daemon, which it lacks.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { differenceOf, type Identity, readIdentity } from '../db/checks/identity.ts';
import type { Tx } from '../db/connect.ts';
import {
  countUp,
  type Daemon,
  fixInstallationSetting,
  setInstallationSetting,
} from '../db/leases.ts';
import type { Instant } from '../kernel/clock.ts';
import { jsonText, tryParseJson } from '../kernel/json.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import { type FreezeCause, freezeWrites, hasQueued, hasSend } from '../operations/operations.ts';
import type { Database } from './database.ts';

const SETTING = 'identity';
const COUNTER = 'counter';
/** In DATA_DIR. */
const NOTE = 'database-counter.json';

const REASONS = {
  restored:
    'this database was restored from a backup or copied, so the original may have sent more',
  snapshot:
    'this database is older than DATA_DIR or a running daemon knows it, ' +
    'such as a restored disk or base backup',
  lost: 'the history of this database changed and it lacks a write that this daemon has sent',
  failover: 'the history of this database changed (a promoted standby or a recovery)',
};
type Finding = keyof typeof REASONS;

export interface IdentityProof {
  /**
   * Proves the database inside the transaction with which the daemon counts as alive, and freezes
   * in it when the database is another one. The first call of all records it.
   */
  prove(tx: Tx, daemon?: Daemon): Promise<void>;
  /** Notes the counter in DATA_DIR, after the transaction. */
  note(): Promise<void>;
}

/** The counter when it was last counted up, and the database that it belongs to. */
interface Note {
  identity: Identity;
  counter: number;
}

/** What a proof compares. */
interface Facts {
  recorded: Identity;
  present: Identity;
  counter: number;
  noted: Note | undefined;
  /** What this process proved last. */
  proved: Identity | undefined;
  lacksSend: boolean;
}

type Opened = Pick<Database, 'clock' | 'folder'>;

export function makeIdentityProof(deps: {
  database: Opened;
  dataDir: string;
  log: Log;
}): IdentityProof {
  const { database, dataDir, log } = deps;
  const path = join(dataDir, NOTE);
  let noted: Note | undefined;
  let proved: Identity | undefined;
  return {
    async prove(tx, daemon) {
      const now = database.clock.now();
      noted ??= await readNote(path);
      // The lock on the counter lets one daemon at a time prove.
      let counter = await countUp(tx, COUNTER, now);
      const { present, recorded: stored } = await readIdentity(tx, database.folder, SETTING);
      const text = stored ?? (await fixInstallationSetting(tx, SETTING, jsonText(present), now));
      const recorded = JSON.parse(text) as Identity;
      const send = daemon?.lastSend;
      const lacksSend = send !== undefined && !(await hasSend(tx, send));
      const finding = findingOf({ recorded, present, counter, noted, proved, lacksSend });
      if (finding) {
        const stopped = await freezeFor(tx, finding, now);
        // From now on the freeze stands for the difference.
        await setInstallationSetting(tx, SETTING, jsonText(present), now);
        counter = await countUp(tx, COUNTER, now, (noted?.counter ?? 0) + 1);
        const facts = { recorded, present, counter, noted, stopped };
        tx.afterCommit(() => log.error(facts, `${REASONS[finding]}; see doctor --restored`));
      }
      tx.afterCommit(() => {
        noted = { identity: present, counter };
        proved = present;
        if (daemon && lacksSend) daemon.lastSend = undefined;
      });
    },
    async note() {
      if (noted) await writeNote(dataDir, path, noted);
    },
  };
}

/** Lets no daemon prove the database, and so send by it, until the transaction ends. */
export async function holdProofs(tx: Tx, now: Instant): Promise<void> {
  await countUp(tx, COUNTER, now);
}

/** What is wrong with the database; undefined when it is the known one. */
export function findingOf(facts: Facts): Finding | undefined {
  const { recorded, present, counter, noted, proved, lacksSend } = facts;
  const difference = differenceOf(recorded, present);
  if (difference === 'restored') return 'restored';
  if (proved && differenceOf(proved, present) === 'restored') return 'restored';
  const isFailover = difference === 'failover' || (proved && differenceOf(proved, present));
  if (lacksSend) return isFailover ? 'lost' : 'snapshot';
  // After a failover the counter may be behind by what the standby lacked.
  const isBehind = noted && counter <= noted.counter && !differenceOf(noted.identity, present);
  return isBehind ? 'snapshot' : difference;
}

/** Returns what it stopped. */
async function freezeFor(tx: Tx, finding: Finding, now: number): Promise<string> {
  const cause: FreezeCause = finding === 'failover' ? 'failover' : 'restored';
  if (cause === 'failover' && !(await hasQueued(tx))) return 'nothing';
  await freezeWrites(tx, { by: 'tallyhook', reason: REASONS[finding] }, cause, now);
  return cause === 'failover' ? 'queued writes' : 'all writes';
}

async function readNote(path: string): Promise<Note | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return tryParseJson(text) as Note | undefined;
}

/** Without a folder that can be written, disks restored while no daemon ran are not found. */
async function writeNote(dataDir: string, path: string, note: Note): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true });
    await writeFile(`${path}.new`, jsonText(note));
    await rename(`${path}.new`, path);
  } catch {
    // Said above.
  }
}
