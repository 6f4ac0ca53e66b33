/**
 * A statement of the interface and the result of its check at one service: held, not held, not
 * checked for lack of a precondition, or untestable by a client.
 */
import { withDeadline } from '../../../src/kernel/clock.ts';
import type { Service } from './client/service.ts';

type Check = (service: Service) => Promise<void>;

export interface Statement {
  /** Its section of the interface, such as `4.1`. */
  section: string;
  title: string;
  /** Absent when no client can check the statement. */
  check?: Check;
  /** Why there is no check. */
  reason?: string;
}

export type CheckResult =
  | { result: 'held' }
  | { result: 'not held'; why: string }
  | { result: 'not checked'; why: string }
  | { result: 'untestable'; why: string };

/** The service contradicts the statement; the message names the expected and the received value. */
export class NotHeld extends Error {
  override readonly name = 'NotHeld';
}

/** The check lacks a precondition, such as a state that only operators can set. */
export class NotChecked extends Error {
  override readonly name = 'NotChecked';
}

export function statement(section: string, title: string, check: Check): Statement {
  return { section, title, check };
}

export function untestable(section: string, title: string, reason: string): Statement {
  return { section, title, reason };
}

/** @throws NotHeld with the message */
export function ensure(condition: unknown, message: string): asserts condition {
  if (!condition) throw new NotHeld(message);
}

/** @throws NotHeld that names both values when they differ */
export function equal(what: string, received: unknown, expected: unknown): void {
  ensure(received === expected, `${what} should be ${shown(expected)} and is ${shown(received)}`);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `"${value.slice(0, 120)}"` : String(value);
}

/** Checks one statement. An error of the check becomes its result. */
export async function checkStatement(
  { check, reason = '' }: Statement,
  service: Service,
  deadlineMs = 10_000,
): Promise<CheckResult> {
  if (!check) return { result: 'untestable', why: reason };
  try {
    await withDeadline(Promise.try(check, service), deadlineMs, () => {
      throw new NotHeld(`the check did not end within ${deadlineMs} ms`);
    });
    return { result: 'held' };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { result: error instanceof NotChecked ? 'not checked' : 'not held', why };
  }
}
