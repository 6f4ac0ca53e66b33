/**
 * What an exchange teaches about asking: a throttling, a wish for silence, or that all is well.
 * Whatever sends a request passes its end through here, so that no `Retry-After` is lost.
 */
import type { Instant } from '../../kernel/clock.ts';
import { parseRetryAfter } from '../../kernel/retry-after.ts';
import type { Exchanged } from '../http/exchange.ts';
import { headerOf, readEnvelope } from '../parse/envelope.ts';
import { unavailability } from '../parse/outcome.ts';
import type { TrafficClass } from '../types.ts';
import type { Budget } from './budget.ts';

export type Lesson =
  | { kind: 'throttled'; retryAt?: Instant }
  | { kind: 'maintenance'; retryAt?: Instant }
  | { kind: 'fine' }
  /** No answer: it says nothing about limits. */
  | { kind: 'nothing' };

/** The lesson of one exchange. Pure. */
export function lessonOf(exchanged: Exchanged, now: Instant): Lesson {
  if (exchanged.end === 'not_sent' || !exchanged.answer) return { kind: 'nothing' };
  const { answer } = exchanged;
  const retryAt = parseRetryAfter(headerOf(answer, 'retry-after'), now);
  const until = retryAt === undefined ? {} : { retryAt };
  if (exchanged.end !== 'answered')
    return answer.status === 429 ? { kind: 'throttled', ...until } : { kind: 'nothing' };
  const unavailable = unavailability(answer, readEnvelope(answer.body), now);
  if (unavailable) return { kind: unavailable.reason, ...until };
  // A 503 that names a time but no maintenance asks for less.
  if (answer.status === 503 && retryAt !== undefined) return { kind: 'throttled', retryAt };
  return { kind: 'fine' };
}

/** Hands the lesson to the budget. Resolves when a deadline in it is kept. Never rejects. */
export async function learn(budget: Budget, cls: TrafficClass, lesson: Lesson): Promise<void> {
  switch (lesson.kind) {
    case 'throttled':
      return budget.throttled(cls, lesson.retryAt);
    case 'maintenance':
      // Apps are still forwarded to the service, whose own 503 stands; only looks are silent.
      return lesson.retryAt === undefined ? undefined : budget.silence(lesson.retryAt);
    case 'fine':
      return cls === 'polls' ? budget.succeeded() : undefined;
    case 'nothing':
      return undefined;
  }
}
