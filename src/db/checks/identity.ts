/**
 * Which database this is. A dump that is restored elsewhere, and a copy made from a template, have
 * another system identifier or oid, a dump that is restored in place other tables; a promoted
 * replica and a recovery to a point in time have another timeline. Copied files of the embedded
 * server keep all three, but not their inode.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { must } from '../../kernel/errors.ts';
import type { Queryable } from '../connect.ts';

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

/**
 * Every login may read these on Postgres 15 to 18 unless the right was revoked. Some hosts do: then
 * a restored dump is recognised by the oid alone, which differs unless both clusters made as many
 * databases before, and a failover is not noticed without the timeline.
 * @param folder the data of the embedded server
 * @param setting where an identity is recorded, which is returned as text
 */
export async function readIdentity(
  { sql }: Queryable,
  folder: string | undefined,
  setting: string,
): Promise<{ present: Identity; recorded: string | null }> {
  const file = folder === undefined ? null : await inodeOf(join(folder, 'global', 'pg_control'));
  const rows = await sql<(Omit<Identity, 'file'> & { recorded: string | null })[]>`
    select system, oid, timeline, "table",
      (select value from tallyhook.installation where name = ${setting}) as recorded
    from tallyhook.database_identity()`;
  const { recorded, ...present } = must(rows[0], 'identity of the database');
  return { present: { ...present, file }, recorded };
}

async function inodeOf(path: string): Promise<string> {
  return String((await stat(path)).ino);
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
