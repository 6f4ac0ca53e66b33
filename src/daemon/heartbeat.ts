/**
 * Keeps this daemon registered as alive, in the transaction that proves that the database is the
 * known one and still belongs to the service of this daemon. On the way it follows the database's
 * clock and the mappings of operators, divides the polling budget among the living daemons that
 * poll, and restarts an embedded server that died.
 */
import { type Daemon, keepAlive, type Living } from '../db/leases.ts';
import { isOutage, logOutage, toDatabaseError } from '../db/sqlstate.ts';
import { after, type Instant, type MachineCount, machineCount } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import type { OperatorMappings } from '../ledger/ledger.ts';
import { ROLES, type Role } from '../resources/admin/status.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { Database } from './database.ts';
import type { IdentityProof } from './identity.ts';
import { findMove } from './service.ts';

export interface Heartbeat {
  /** @throws DatabaseError; Failure `bad_setting` when the database belongs to another service */
  prove(): Promise<void>;
  /**
   * As `prove`, but when the database is away it is revived, and the next beat is due soon.
   * @throws Failure `not_ready` when the database belongs to another service
   */
  beat(): Promise<'alive' | 'away'>;
  /** Aborts when a proof finds that the database belongs to another service; the reason says so. */
  moved: AbortSignal;
  /**
   * False once the last successful beat is older than `aliveMs`, or from before the machine was
   * suspended or its clock set, or the database was moved; then nothing may be sent.
   */
  isAlive: () => boolean;
  /** Waits for a running proof; none follows, so that the registration may end. */
  end(): Promise<void>;
  /** Living daemons at the last beat, this one included. */
  living: () => number;
  /** Those of them that deliver. */
  delivering: () => number;
}

export function makeHeartbeat(deps: {
  database: Pick<Database, 'db' | 'clock' | 'revive'>;
  identity: IdentityProof;
  daemon: Daemon;
  /** The roles that it performs at present. */
  roles: () => readonly Role[];
  /** The identity of the service that it sends to. */
  service: string;
  upstream: Pick<Upstream, 'appPerS' | 'share' | 'syncQuota'>;
  operatorMappings: Pick<OperatorMappings, 'load'>;
  log: Log;
  metrics: Pick<Metrics, 'beforeScrape' | 'clockCorrection' | 'daemons' | 'heartbeatAlive'>;
  aliveMs: number;
  /** Absent: that of this machine. */
  machine?: MachineCount;
}): Heartbeat {
  const { database, identity, daemon, roles, service, upstream, log, metrics, aliveMs } = deps;
  const { machine = machineCount, operatorMappings } = deps;
  let last = { at: machine.ms(), interruptions: machine.interruptions() };
  let living: readonly Living[] = [];
  let startedAt: Instant | undefined;
  let proving: Promise<void> | undefined;
  let hasEnded = false;
  const lateness = makeLatenessLog(aliveMs, log);
  const moved = new AbortController();
  let followedMs = Number.NEGATIVE_INFINITY;

  async function follow() {
    await database.clock.follow();
    followedMs = machine.ms();
    metrics.clockCorrection.set(database.clock.correctionMs() / 1000);
  }

  async function proveOnce() {
    const sent = { at: machine.ms(), interruptions: machine.interruptions() };
    // The heartbeat and what follows go by its time.
    if (sent.interruptions !== last.interruptions) await follow();
    living = await database.db.begin(async (tx) => {
      await identity.prove(tx, daemon);
      // The proof holds off a move until this transaction ends.
      const move = await findMove(tx, service);
      if (move) moved.abort(move);
      moved.signal.throwIfAborted();
      await operatorMappings.load(tx);
      const own = { roles: roles(), appPerS: upstream.appPerS() };
      return keepAlive(tx, daemon, database.clock.now(), aliveMs, own);
    });
    // The database counts from an instant not before `sent`.
    last = sent;
    lateness.committed();
    for (const role of ROLES) metrics.daemons.set({ role }, countOf(living, role));
    await identity.note();
    startedAt ??= database.clock.now();
    upstream.share(shareOf(living, startedAt, aliveMs));
    await upstream.syncQuota();
    // Between two readings time runs by the machine: not every beat needs one.
    if (machine.ms() >= followedMs + aliveMs) await follow();
  }
  const prove = async () => {
    if (hasEnded) throw new Failure('shutting_down');
    proving ??= proveOnce().finally(() => {
      proving = undefined;
    });
    return proving;
  };
  const isAlive = () =>
    !moved.signal.aborted &&
    machine.ms() - last.at < aliveMs &&
    machine.interruptions() === last.interruptions;
  metrics.beforeScrape(() => metrics.heartbeatAlive.set(isAlive() ? 1 : 0));
  return {
    prove,
    async beat() {
      try {
        await prove();
        return 'alive';
      } catch (raw) {
        if (moved.signal.aborted)
          throw new Failure('not_ready', 'the database belongs to another service now');
        const error = toDatabaseError(raw);
        if (!isOutage(error)) throw error;
        logOutage(log, error);
        await database.revive();
        return 'away';
      }
    },
    moved: moved.signal,
    isAlive,
    async end() {
      hasEnded = true;
      await proving?.catch(() => {});
      lateness.end();
    },
    living: () => living.length,
    delivering: () => countOf(living, 'delivery'),
  };
}

function countOf(living: readonly Living[], role: Role): number {
  return living.filter(({ roles }) => roles.includes(role)).length;
}

/** How the polling budget is divided, by a daemon that started then. */
function shareOf(living: readonly Living[], startedAt: Instant, aliveMs: number) {
  const appPerS = living.reduce((sum, one) => sum + one.appPerS, 0);
  const pollers = countOf(living, 'workers');
  // The others beat every third of `aliveMs`, and then divide the budget anew.
  const startsAt = pollers > 1 ? startedAt + aliveMs / 2 : startedAt;
  return { pollers, appPerS, startsAt };
}

/** Logs once that no heartbeat came through, also while the statement of one still waits. */
function makeLatenessLog(aliveMs: number, log: Log) {
  let isLate = false;
  let cancel = () => {};
  return {
    /** The next one is late after `aliveMs`. */
    committed() {
      if (isLate) log.info('heartbeats are committed again');
      isLate = false;
      cancel();
      cancel = after(aliveMs, () => {
        isLate = true;
        log.error({ aliveMs }, 'no heartbeat was committed in time: nothing is sent until one is');
      });
    },
    end: () => cancel(),
  };
}
