/** Which misbehaviours can be scripted, and which requests they meet. The table of faults. */
import { z } from 'zod';
import { isErrorCode } from '../endpoints/refusals.ts';
import { whole } from './switches.ts';

const target = {
  /** Name of an endpoint, such as `give` or `mint`; absent: any. */
  endpoint: z.string().max(64).optional(),
  method: z.string().max(16).optional(),
  /** A path pattern in which `*` stands for anything; absent: any. */
  path: z.string().max(500).optional(),
  /** Met only by a request whose path, query or body contains this text. */
  contains: z.string().max(500).optional(),
  /** How many requests it meets. */
  count: z.int().min(1).max(1e9).default(1),
  /** How many matching requests pass unharmed first. */
  skip: z.int().min(0).max(1e9).default(0),
};
const delayMs = z.int().min(0).max(86_400_000);
/** How a connection is cut: closed, or reset. */
const reset = z.boolean().default(false);

export const faultSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('lost_answer'), ...target, reset }),
  z.strictObject({ kind: z.literal('dropped'), ...target, reset }),
  /** Applied `delay_ms` after the connection was cut, or with `hold` cut when it is applied. */
  z.strictObject({
    kind: z.literal('late'),
    ...target,
    delay_ms: delayMs.default(1000),
    hold: z.boolean().default(false),
    reset,
  }),
  /** Applied at once, answered `delay_ms` later. */
  z.strictObject({ kind: z.literal('delay'), ...target, delay_ms: delayMs.default(1000) }),
  z.strictObject({
    kind: z.literal('throttle'),
    ...target,
    status: z.literal([429, 503]).default(429),
    /** Whether the request is applied all the same. */
    applied: z.boolean().default(false),
    retry_after: z.enum(['seconds', 'date', 'none']).default('seconds'),
    retry_after_s: z.int().min(0).max(1e6).default(1),
  }),
  z.strictObject({
    kind: z.literal('status'),
    ...target,
    status: z.int().min(400).max(599),
    /** Whether the request is applied before the status is answered. */
    applied: z.boolean().default(false),
    /** The body instead of the documented shape, as HTML. */
    body: z.string().max(10_000).optional(),
  }),
  /** A documented error: a status of section 7.1, a code of 7.2 or a detail of 7.3. */
  z.strictObject({
    kind: z.literal('error'),
    ...target,
    code: z.string().refine(isErrorCode, 'not an error of the service'),
    /** What stands in its message, such as `{"amount":"12"}`. */
    figures: z.record(z.string().max(32), z.string().max(1000)).default({}),
    applied: z.boolean().default(false),
  }),
  z.strictObject({ kind: z.literal('truncated'), ...target, reset }),
  z.strictObject({ kind: z.literal('garbled'), ...target }),
  /** Reads answer as things stood `age_ms` ago. */
  z.strictObject({ kind: z.literal('stale_list'), ...target, age_ms: delayMs.default(60_000) }),
  /** Each page begins one row further than it should. */
  z.strictObject({ kind: z.literal('shifting_pages'), ...target }),
]);

/** A fault as it may be written: what is left out has a default. */
export type FaultInput = z.input<typeof faultSchema>;
export type Fault = z.output<typeof faultSchema>;

export const faultRowSchema = z.strictObject({
  fault_id: whole,
  fault: faultSchema,
  /** Matching requests still to pass unharmed. */
  skip: z.int(),
  /** Requests still to be met. */
  left: z.int(),
  hits: z.int(),
});
export type FaultRow = z.output<typeof faultRowSchema>;
