/**
 * A statement of the interface, and what becomes of it at one service: it holds, it does not, it
 * could not be brought about here, or nobody can see it from outside.
 */
import { withDeadline } from '../../src/kernel/clock.ts';
import type { Service } from './service.ts';

export type Check = (service: Service) => Promise<void>;

export interface Statement {
  /** The section of the interface that says it, such as `4.1`. */
  section: string;
  /** The statement, in the words of the interface as far as they make a sentence. */
  title: string;
  /** Absent for what cannot be seen from outside. */
  check?: Check;
  /** Why it cannot be seen from outside. */
  reason?: string;
}

export type Verdict =
  | { result: 'held' }
  | { result: 'not held'; why: string }
  | { result: 'not checked'; why: string }
  | { result: 'untestable'; why: string };

/** The service contradicts the interface; the message says what was expected and what came. */
export class NotHeld extends Error {
  override readonly name = 'NotHeld';
}

/** The statement needs something that is not there, such as a state that only operators cause. */
export class NotChecked extends Error {
  override readonly name = 'NotChecked';
}

/** A statement with its check, which throws when the service contradicts it. */
export function statement(section: string, title: string, check: Check): Statement {
  return { section, title, check };
}

/** A statement that no request can confirm or contradict. */
export function untestable(section: string, title: string, reason: string): Statement {
  return { section, title, reason };
}

/** @throws NotHeld with the sentence */
export function insist(condition: unknown, sentence: string): asserts condition {
  if (!condition) throw new NotHeld(sentence);
}

/** @throws NotHeld that names both values when they differ */
export function same(what: string, seen: unknown, expected: unknown): void {
  insist(seen === expected, `${what} should be ${shown(expected)} and is ${shown(seen)}`);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `"${value.slice(0, 120)}"` : String(value);
}

/** Checks one statement; whatever the check throws is a verdict. */
export async function judge(
  { check, reason = '' }: Statement,
  service: Service,
  deadlineMs = 10_000,
): Promise<Verdict> {
  if (!check) return { result: 'untestable', why: reason };
  try {
    await withDeadline(Promise.try(check, service), deadlineMs, () => {
      throw new NotHeld(`there should be an end within ${deadlineMs} ms, and there was none`);
    });
    return { result: 'held' };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { result: error instanceof NotChecked ? 'not checked' : 'not held', why };
  }
}
