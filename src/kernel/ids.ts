/**
 * Names for our own things: a prefix that says what it is, and a UUIDv7 (RFC 9562, section 5.7)
 * that sorts by time. Time and randomness come in, so a seeded run makes the same ids.
 */

import type { Clock } from './clock.ts';
import type { Random } from './random.ts';

export type IdPrefix = 'op' | 'evt' | 'ep' | 'dlv' | 'drf' | 'rep' | 'key' | 'wat' | 'obs' | 'dmn';

export interface Ids {
  /** A new id such as `op_0190…`; ids of one source rise strictly. */
  next(prefix: IdPrefix): string;
}

/** A source of ids from a clock and randomness. */
export function makeIds(clock: Clock, random: Random): Ids {
  let last = 0;
  let counter = 0;
  return {
    next(prefix) {
      const now = Math.max(clock.now(), last);
      counter = now === last ? counter + 1 : 0;
      // More than 4,096 ids in a millisecond borrow the next one, which keeps them rising.
      const carry = counter > 0xfff ? 1 : 0;
      if (carry) counter = 0;
      last = now + carry;
      return `${prefix}_${uuidv7(last, counter, random)}`;
    },
  };
}

/**
 * The 12 bits after the version hold a counter, so that ids of one millisecond keep their order.
 */
function uuidv7(now: number, counter: number, random: Random): string {
  const time = now.toString(16).padStart(12, '0');
  const tail = random.bytes(8);
  tail[0] = ((tail[0] ?? 0) & 0x3f) | 0x80;
  const hex = Buffer.from(tail).toString('hex');
  const head = `7${counter.toString(16).padStart(3, '0')}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-${head}-${hex.slice(0, 4)}-${hex.slice(4)}`;
}

const SHAPE = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** True when the text has the shape of an id with that prefix. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && SHAPE.test(text.slice(prefix.length + 1));
}
