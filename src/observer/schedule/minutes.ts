/** Samples of the use of the budget and of the delay of polls, which are stored by the minute. */
import type { Queryable } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { BudgetView } from '../../upstream/upstream.ts';
import { addToMinute } from './minutes-store.ts';
import type { Pricing } from './pricing.ts';

/** Each call adds the requests of this daemon since the last one. */
export function makeSamples(
  db: Queryable,
  budget: Pick<BudgetView, 'requests' | 'bounds'>,
  pricing: () => Promise<Pricing>,
) {
  let sampled = 0;
  return async (now: Instant): Promise<void> => {
    const { delay, oldestPollAt } = await pricing();
    const requests = budget.requests();
    await addToMinute(db, now, {
      requests: requests - sampled,
      allowedPerS: budget.bounds().effective,
      expectedDelayMs: delay?.expectedMs ?? null,
      oldestPollMs: oldestPollAt === null ? null : Math.max(0, now - oldestPollAt),
    });
    sampled = requests;
  };
}
