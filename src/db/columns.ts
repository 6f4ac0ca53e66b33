/**
 * The house column types: where whole numbers, instants and JSON meet SQL. Every table uses these.
 *
 * `numeric` without precision plus a scale check keeps 60 digits exact; `numeric(38,0)` would
 * overflow or round in silence. Instants are `timestamptz(3)`, because epoch milliseconds then
 * survive both ways.
 */
import { customType, pgSchema } from 'drizzle-orm/pg-core';
import { type Instant, isoText } from '../kernel/clock.ts';
import { type Json, parseJson } from '../kernel/json.ts';

/** The schema that holds every table of ours. */
export const tallyhook = pgSchema('tallyhook');

/** A whole number of any size; each column of it gets a `check (scale(x) = 0)` in its migration. */
export const whole = customType<{ data: bigint; driverData: string | bigint }>({
  dataType: () => 'numeric',
  toDriver: (value) => value.toString(),
  fromDriver: (value) => BigInt(value),
});

/** An instant: epoch milliseconds here, `timestamptz(3)` there. */
export const instant = customType<{ data: Instant; driverData: string | number }>({
  dataType: () => 'timestamptz(3)',
  toDriver: (value) => isoText(value),
  fromDriver: (value) => (typeof value === 'number' ? value : Date.parse(value)),
});

/** JSON that loses no digit. */
export const json = customType<{ data: Json; driverData: unknown }>({
  dataType: () => 'jsonb',
  toDriver: (value) => value,
  fromDriver: (value) => (typeof value === 'string' ? parseJson(value) : (value as Json)),
});

/** Bytes exactly as they were. */
export const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({
  dataType: () => 'bytea',
});
