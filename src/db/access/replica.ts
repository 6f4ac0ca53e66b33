/**
 * Long reads of one snapshot, such as reports: on the replica, if there is one that has replayed
 * everything that was committed when the read was asked for; else on the primary.
 */
import { pause } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import type { Db, Queryable } from '../connect.ts';
import { DatabaseError } from '../sqlstate.ts';

/** Runs reads in a transaction, as `Db` does, on the replica or the primary. */
export type Reads = Pick<Db, 'begin'>;

export interface ReplicaReads extends Reads {
  /**
   * Whether a read would be run on the replica now, if there is one. It waits as long for the
   * replica as a read. @throws DatabaseError of the primary
   */
  usesReplica(): Promise<boolean>;
}

interface Deps {
  primary: Db;
  replica: Db | undefined;
  log: Log;
  /** How long a read waits for the replica before it goes to the primary. */
  catchUpMs: number;
}

const CHECK_MS = 100;

export function makeReads({ primary, replica, log, catchUpMs }: Deps): ReplicaReads {
  /** Why the replica cannot be used, as it was logged; undefined while it can. */
  let problem: string | undefined;
  /** Logs a problem once, not for each read that meets it. */
  const onError = (error: unknown) => {
    // It is away or behind, or its replay has ended the read.
    if (!(error instanceof DatabaseError || error instanceof Unusable)) throw error;
    const { message } = error;
    if (message !== problem)
      log.warn(
        { problem: message },
        'the replica of DATABASE_READ_URL cannot be used; reading the primary',
      );
    problem = message;
  };
  const onUse = () => {
    if (problem !== undefined) log.info('the replica of DATABASE_READ_URL is used again');
    problem = undefined;
  };
  return {
    async begin(work, options) {
      if (!replica) return primary.begin(work, options);
      try {
        await caughtUp(primary, replica, catchUpMs);
        const result = await replica.begin(work, options);
        onUse();
        return result;
      } catch (error) {
        onError(error);
        return primary.begin(work, options);
      }
    },
    async usesReplica() {
      if (!replica) return false;
      try {
        await caughtUp(primary, replica, catchUpMs);
      } catch (error) {
        // Else nothing is known of the replica.
        await primary.single(({ sql }) => sql`select 1`);
        onError(error);
        return false;
      }
      onUse();
      return true;
    },
  };
}

class Unusable extends Error {}

/** Why reports cannot use the replica at present; undefined when they can. */
export async function whyUnusable(
  { primary, replica }: { primary: Db; replica: Db },
  withinMs: number,
): Promise<string | undefined> {
  try {
    await caughtUp(primary, replica, withinMs);
    const [own] = await primary.single(systemOf);
    const [other] = await replica.single(systemOf);
    return own?.system === other?.system ? undefined : 'it is a replica of another server';
  } catch (error) {
    if (error instanceof Unusable) return error.message;
    if (error instanceof DatabaseError) return `it does not answer (${error.code})`;
    throw error;
  }
}

/** The identifier of the cluster, which its replicas share; null where it may not be read. */
function systemOf({ sql }: Queryable) {
  return sql<{ system: string | null }[]>`select system from tallyhook.database_identity()`;
}

/**
 * Waits until the replica has what is committed on the primary now.
 * @throws Unusable, DatabaseError
 */
async function caughtUp(primary: Db, replica: Db, withinMs: number): Promise<void> {
  const [now] = await primary.single(
    ({ sql }) => sql<{ lsn: string }[]>`select pg_current_wal_lsn()::text as lsn`,
  );
  for (let waitedMs = 0; ; waitedMs += CHECK_MS) {
    const [state] = await replica.single(
      ({ sql }) => sql<{ isReplica: boolean; hasAll: boolean }[]>`
        select pg_is_in_recovery() as is_replica,
          coalesce(pg_last_wal_replay_lsn() >= ${now?.lsn ?? ''}::pg_lsn, false) as has_all`,
    );
    // A promoted one may lack commits, or have others.
    if (!state?.isReplica) throw new Unusable('it is not a replica');
    if (state.hasAll) return;
    if (waitedMs >= withinMs) throw new Unusable(`it is more than ${withinMs / 1000} s behind`);
    await pause(CHECK_MS);
  }
}
