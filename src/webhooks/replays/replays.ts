/**
 * Replays: the events of a time are sent to an endpoint again, in the background and in pages. A
 * page and its position are one commit, so a replay continues where a killed daemon left it.
 */
import type { Db } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import * as store from './store.ts';

export { type Replay, WHICH } from './store.ts';

/** `until` is the present by default. */
type Request = Omit<store.ReplayInput, 'until'> & { until?: Instant | undefined };

/** Events that a count examines at most. */
export const COUNTED_MAX = 100_000;
const DAY_MS = 86_400_000;

export type Replays = ReturnType<typeof makeReplays>;

interface Deps {
  db: Db;
  peopleDb: Db;
  clock: Clock;
  ids: Ids;
  /** How long deliveries are kept. */
  keepMs: number;
}

export function makeReplays(deps: Deps) {
  const { db, peopleDb, clock, ids } = deps;
  const getReplay = async (id: string): Promise<store.Replay> => {
    const found = await store.findReplay(peopleDb, id);
    if (!found) throw new Failure('not_found');
    return found;
  };
  return {
    /** @throws Failure `invalid_request`, `conflict` while another replay of the endpoint runs */
    async startReplay(request: Request, createdBy: string): Promise<store.Replay> {
      const input = inputOf(deps, request);
      const id = ids.next('rpl');
      const replay = { ...input, id, createdBy, createdAt: clock.now() };
      const started = await peopleDb.single((q) => store.insertReplay(q, replay));
      if (started) return started;
      throw new Failure(
        'conflict',
        'another replay of the endpoint runs; wait for it or cancel it',
      );
    },

    /**
     * What a replay would queue; of the first `COUNTED_MAX` events.
     * @throws Failure `invalid_request`
     */
    countReplay(request: Request): Promise<store.Counts & { until: Instant }> {
      const input = inputOf(deps, request);
      return peopleDb.begin(async (tx) => ({
        ...(await store.countReplay(tx, input, COUNTED_MAX)),
        until: input.until,
      }));
    },

    /** Newest first, with ids below `before`; from the newest for the empty string. */
    listReplays: (page: { before: string; limit: number }) => store.listReplays(peopleDb, page),

    /** @throws Failure `not_found` */
    getReplay,

    /** What it has queued stays. @throws Failure `not_found`, `conflict` when it has ended */
    async cancelReplay(id: string): Promise<store.Replay> {
      await getReplay(id);
      const cancelled = await peopleDb.single((q) => store.cancelReplay(q, id, clock.now()));
      if (cancelled) return cancelled;
      throw new Failure('conflict', 'the replay has ended');
    },

    /** Works through a page of one replay; false when none can go on now. */
    replayOnce: (now: Instant) => db.begin((tx) => store.replayPage(tx, now)),

    /** Removes some replays that ended before; returns how many. */
    removeReplays: (before: Instant, limit: number) =>
      db.single((q) => store.removeReplays(q, before, limit)),
  };
}

/** @throws Failure `invalid_request` */
function inputOf({ clock, keepMs }: Deps, { until, ...request }: Request): store.ReplayInput {
  const now = clock.now();
  const input = { ...request, until: Math.min(until ?? now, now) };
  if (input.since >= input.until)
    throw new Failure('invalid_request', 'since must be before until, and in the past');
  if (input.since >= now - keepMs) return input;
  const days = Math.floor(keepMs / DAY_MS);
  throw new Failure(
    'invalid_request',
    `since must be within the last ${days} days, for which deliveries are kept`,
  );
}
