/**
 * When a pass of the dispatcher examines all endpoints with pending deliveries (a round, page by
 * page), and when only those that it served lately. Resting endpoints, which are disabled or paused
 * with a backlog, make a round longer; so with many of them rounds are apart, and what the daemon
 * serves does not wait for them. Pure.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { ActivePage } from './queue.ts';

/** So few resting endpoints do not matter. */
const RESTING_FEW = 100;
/** Between two rounds, for each resting endpoint: a multiple of what its examination costs. */
const APART_MS = 0.1;

export class Rounds {
  /** The endpoint after which the next page begins; '' for the first page. */
  after = '';
  /** When the next round may begin. */
  nextAt: Instant = 0;
  private resting = 0;
  private endedAt: Instant = 0;

  /** True while a round runs, and when the next one may begin; also after a step of the clock. */
  isDue(now: Instant): boolean {
    return this.after !== '' || now >= this.nextAt || now < this.endedAt;
  }

  /** To be called with every page of a round. */
  advance({ next, resting }: Pick<ActivePage, 'next' | 'resting'>, now: Instant): void {
    this.resting = resting + (this.after === '' ? 0 : this.resting);
    this.after = next;
    if (next !== '') return;
    this.endedAt = now;
    this.nextAt = this.resting > RESTING_FEW ? now + Math.ceil(this.resting * APART_MS) : now;
  }
}
