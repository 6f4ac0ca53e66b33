/**
 * The slots of sends. Endpoints whose last send was slow share one pool, all others another, so a
 * full pool of slow sends holds back only endpoints known to be slow. Each origin has a part of
 * both pools, so its hanging endpoints leave room for its healthy ones and for other origins.
 */

export type Pool = 'quick' | 'slow';
type Count = Record<Pool, number>;

export class Slots {
  private readonly all: Count = { quick: 0, slow: 0 };
  private readonly byOrigin = new Map<string, Count>();
  private readonly max: Count;
  private readonly perOrigin: number;

  /** @param perOrigin of each pool */
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

  occupy(pool: Pool, origin: string, by: 1 | -1): void {
    const count = this.byOrigin.get(origin) ?? { quick: 0, slow: 0 };
    this.byOrigin.set(origin, count);
    count[pool] += by;
    this.all[pool] += by;
    if (count.quick + count.slow === 0) this.byOrigin.delete(origin);
  }
}
