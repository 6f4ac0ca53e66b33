/**
 * When a pass of the dispatcher examines all endpoints with pending deliveries (a round, page by
 * page), and when only those that it served lately. Resting endpoints, which are disabled or paused
 * with a backlog, make a round longer; so with many of them its pages are apart, and what the
 * daemon serves does not wait for them. Pure.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { ActiveEndpoint, ActivePage } from './queue.ts';

/** So few resting endpoints of a round do not matter. */
const RESTING_FEW = 100;
/** Before the next page, for each resting endpoint: a multiple of what its examination costs. */
const APART_MS = 0.1;
/** Endpoints without capacity that a round remembers: capacity for one of them is enough. */
const STARVED_MAX = 1_000;
/** After every instant. */
export const NEVER = Number.POSITIVE_INFINITY;

/** What a pass leaves to later ones. */
export interface Left {
  /** When there may be something to do for the endpoints that it examined. */
  dueAt: Instant;
  /** Those of them that are ready and lack capacity. */
  starved: readonly ActiveEndpoint[];
}

export class Rounds {
  /** The endpoint after which the next page begins; '' for the first page. */
  after = '';
  /** When the next page may be examined. */
  nextAt: Instant = 0;
  private left: Left = { dueAt: NEVER, starved: [] };
  private endedAt: Instant = 0;
  /** Of the round so far, and of those the ones that no page has waited for. */
  private resting = 0;
  private waiting = 0;

  /** True when the next page may be examined; also after a step of the clock. */
  isDue(now: Instant): boolean {
    return now >= this.nextAt || now < this.endedAt;
  }

  /** To be called with every page of a round. */
  advance({ next, resting }: Pick<ActivePage, 'next' | 'resting'>, now: Instant): void {
    const isFirst = this.after === '';
    this.resting = resting + (isFirst ? 0 : this.resting);
    this.waiting = resting + (isFirst ? 0 : this.waiting);
    if (isFirst) this.left = { dueAt: NEVER, starved: [] };
    this.after = next;
    this.endedAt = now;
    this.nextAt = now;
    if (this.resting <= RESTING_FEW) return;
    this.nextAt = now + Math.ceil(this.waiting * APART_MS);
    this.waiting = 0;
  }

  /** What all pages of the round so far have left, with that of the last one. */
  leave({ dueAt, starved }: Left): Left {
    this.left = {
      dueAt: Math.min(dueAt, this.left.dueAt),
      starved: [...starved, ...this.left.starved].slice(0, STARVED_MAX),
    };
    return this.left;
  }
}
