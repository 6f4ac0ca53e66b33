/**
 * The column types of all tables: whole numbers, instants, JSON and bytes.
 *
 * Whole numbers are `numeric` without precision plus a scale check, because `numeric(38,0)`
 * overflows at 39 digits and rounds fractions silently. Instants are `timestamptz(3)`, so that
 * epoch milliseconds survive a round trip.
 */
import { type Instant, isoText } from '../kernel/clock.ts';
import { type Json, parseJson } from '../kernel/json.ts';
import { customType, pgSchema } from './drizzle.ts';

export const tallyhook = pgSchema('tallyhook');

/** A whole number of any size; each column also has `check (scale(x) = 0)` in its migration. */
export const whole = customType<{ data: bigint; driverData: string | bigint }>({
  dataType: () => 'numeric',
  toDriver: (value) => value.toString(),
  fromDriver: (value) => BigInt(value),
});

export const instant = customType<{ data: Instant; driverData: string | number }>({
  dataType: () => 'timestamptz(3)',
  toDriver: (value) => isoText(value),
  fromDriver: (value) => (typeof value === 'number' ? value : Date.parse(value)),
});

/** JSON with exact numbers. */
export const json = customType<{ data: Json; driverData: unknown }>({
  dataType: () => 'jsonb',
  toDriver: (value) => value,
  fromDriver: (value) => (typeof value === 'string' ? parseJson(value) : (value as Json)),
});

/** The same stored as text, which is smaller than a small jsonb. */
export const jsonAsText = customType<{ data: Json; driverData: unknown }>({
  dataType: () => 'json',
  toDriver: (value) => value,
  fromDriver: (value) => (typeof value === 'string' ? parseJson(value) : (value as Json)),
});

export const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({
  dataType: () => 'bytea',
});
