/** Ids: a prefix that names the type, and a UUIDv7 (RFC 9562, section 5.7), which sorts by time. */
import type { Clock, Instant } from './clock.ts';
import type { Random } from './random.ts';
import type { IdPrefix } from './values.ts';

export type { IdPrefix } from './values.ts';

export interface Ids {
  /** A new id such as `op_0190…`. The ids of one source increase strictly. */
  next(prefix: IdPrefix): string;
}

export function makeIds(clock: Clock, random: Random): Ids {
  let last = 0;
  let counter = 0;
  return {
    next(prefix) {
      const now = Math.max(clock.now(), last);
      counter = now === last ? counter + 1 : 0;
      // After 4,096 ids in one millisecond the next millisecond is used, so that ids increase.
      const carry = counter > 0xfff ? 1 : 0;
      if (carry) counter = 0;
      last = now + carry;
      return `${prefix}_${uuidv7(last, counter, random)}`;
    },
  };
}

/** The 12 bits after the version hold a counter, which orders the ids of one millisecond. */
function uuidv7(now: number, counter: number, random: Random): string {
  const time = now.toString(16).padStart(12, '0');
  const tail = random.bytes(8);
  tail[0] = ((tail[0] ?? 0) & 0x3f) | 0x80;
  const hex = Buffer.from(tail).toString('hex');
  const head = `7${counter.toString(16).padStart(3, '0')}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-${head}-${hex.slice(0, 4)}-${hex.slice(4)}`;
}

const SHAPE = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && SHAPE.test(text.slice(prefix.length + 1));
}

/** The UUID of an id, which tables with many rows store: 16 bytes instead of 41. */
export function uuidOf(id: string): string {
  return id.slice(id.indexOf('_') + 1);
}

/** The first UUID that an id made then can have. */
export function uuidAt(at: Instant): string {
  const time = Math.max(0, Math.floor(at)).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}

/** Before every other one. */
export const FIRST_UUID = '00000000-0000-0000-0000-000000000000';

/** When an id of this shape was made, as far as the clock was right. */
export function idTime(id: string): Instant {
  const [, hex = ''] = id.split('_');
  return Number.parseInt(hex.replace('-', '').slice(0, 12), 16);
}
