/**
 * Which database this is. A dump that is restored elsewhere, and a copy made from a template, have
 * another system identifier or oid, a dump that is restored in place other tables; a promoted
 * replica and a recovery to a point in time have another timeline. Copied files of the embedded
 * server keep all three, but not their inode.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Db } from '../connect.ts';
import { DatabaseError, toDatabaseError } from '../sqlstate.ts';

/** What is null could not be read and is not compared. */
export interface Identity {
  system: string | null;
  oid: string | null;
  timeline: string | null;
  /** The oid of a table that no migration makes again. */
  table: string | null;
  /** The inode of a file that the embedded server only ever overwrites. */
  file: string | null;
}

/** insufficient_privilege, undefined_function, feature_not_supported; the last on a standby. */
const NOT_READABLE = new Set(['42501', '42883', '0A000', '55000']);

/**
 * Every login may read these on Postgres 15 to 18 unless the right was revoked. Some hosts do: then
 * a restored dump is recognised by the oid alone, which differs unless both clusters made as many
 * databases before, and a failover is not noticed without the second.
 * @param folder the data of the embedded server
 */
export async function readIdentity(db: Db, folder: string | undefined): Promise<Identity> {
  const { sql } = db;
  const file = folder === undefined ? null : String((await stat(fileIn(folder))).ino);
  const system = sql`(select system_identifier::text from pg_control_system())`;
  const oid = sql`(select oid::text from pg_database where datname = current_database())`;
  const table = sql`to_regclass('tallyhook.installation')::oid::text`;
  // The timeline that is written now; the control file still names the former one for minutes.
  const timeline = sql`substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`;
  const [row] = await readable(sql<Omit<Identity, 'file'>[]>`
    select ${system} as system, ${oid} as oid, ${timeline} as timeline, ${table} as table`);
  if (row) return { ...row, file };
  const one = async (value: typeof system) => {
    const [found] = await readable(sql<{ value: string | null }[]>`select ${value} as value`);
    return found?.value ?? null;
  };
  return {
    system: await one(system),
    oid: await one(oid),
    timeline: await one(timeline),
    table: await one(table),
    file,
  };
}

/** No rows for what this login or this host does not let us read. */
async function readable<Row>(statement: PromiseLike<Row[]>): Promise<Row[]> {
  try {
    return [...(await statement)];
  } catch (raw) {
    const error = toDatabaseError(raw);
    if (error instanceof DatabaseError && NOT_READABLE.has(error.code)) return [];
    throw error;
  }
}

function fileIn(folder: string): string {
  return join(folder, 'global', 'pg_control');
}

/** `restored`: another database; `failover`: the same one with another history; else undefined. */
export function differenceOf(
  recorded: Identity,
  present: Identity,
): 'restored' | 'failover' | undefined {
  const differs = (name: keyof Identity) =>
    recorded[name] !== null && present[name] !== null && recorded[name] !== present[name];
  if ((['system', 'oid', 'table', 'file'] as const).some(differs)) return 'restored';
  return differs('timeline') ? 'failover' : undefined;
}
