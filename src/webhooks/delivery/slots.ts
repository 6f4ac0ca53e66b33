/**
 * The slots of sends, and the claimed deliveries that wait for one. Endpoints whose last send was
 * slow share one pool, all others another, so a full pool of slow sends holds back only endpoints
 * known to be slow. Each origin has a part of both pools and of the waiting deliveries, so its
 * hanging endpoints leave room for its healthy ones and for other origins.
 */

import { shareByGroup } from './limits.ts';

export type Pool = 'quick' | 'slow';
type Count = Record<Pool, number>;

export class Slots {
  private readonly all: Count = { quick: 0, slow: 0 };
  private readonly byOrigin = new Map<string, Count>();
  private readonly waitingByOrigin = new Map<string, number>();
  private readonly max: Count;
  private readonly perOrigin: number;

  /** Claimed deliveries that wait. */
  waiting = 0;

  /** @param perOrigin of each pool, and of the waiting deliveries */
  constructor(max: Count, perOrigin: number) {
    this.max = max;
    this.perOrigin = perOrigin;
  }

  get used(): number {
    return this.all.quick + this.all.slow;
  }

  /** Free slots of a pool; at most 0 when it is full. */
  free(pool: Pool): number {
    return this.max[pool] - this.all[pool];
  }

  /** Free slots of an origin, whether or not the pool is full. */
  freeOf(origin: string, pool: Pool): number {
    return this.perOrigin - (this.byOrigin.get(origin)?.[pool] ?? 0);
  }

  /**
   * How many more deliveries of an origin may be claimed for this pool. Slow ones do not wait for a
   * slot, and quick ones are claimed in groups: once half of the waiting ones have left.
   */
  private roomOf(origin: string, pool: Pool): number {
    const free = this.freeOf(origin, pool);
    if (free <= 0 || pool === 'slow') return Math.max(0, free);
    const waiting = this.waitingByOrigin.get(origin) ?? 0;
    return waiting * 2 > this.perOrigin ? 0 : this.perOrigin - waiting;
  }

  /** The capacities for claims, limited to the room of each origin and to the free slow slots. */
  limit<T extends { n: number; origin: string; pool: Pool }>(capacities: readonly T[]): T[] {
    const ofOrigins = shareByGroup(
      capacities,
      ({ pool, origin }) => `${pool} ${origin}`,
      ({ pool, origin }) => this.roomOf(origin, pool),
    );
    return shareByGroup(
      ofOrigins,
      ({ pool }) => pool,
      ({ pool }) => (pool === 'slow' ? this.free(pool) : Number.POSITIVE_INFINITY),
    );
  }

  wait(origin: string, by: number): void {
    this.waiting += by;
    const waiting = (this.waitingByOrigin.get(origin) ?? 0) + by;
    if (waiting === 0) this.waitingByOrigin.delete(origin);
    else this.waitingByOrigin.set(origin, waiting);
  }

  occupy(pool: Pool, origin: string, by: 1 | -1): void {
    const count = this.byOrigin.get(origin) ?? { quick: 0, slow: 0 };
    this.byOrigin.set(origin, count);
    count[pool] += by;
    this.all[pool] += by;
    if (count.quick + count.slow === 0) this.byOrigin.delete(origin);
  }
}
