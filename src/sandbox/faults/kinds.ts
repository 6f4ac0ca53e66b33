/** The kinds of faults that can be scripted, and which requests they match. */
import { z } from 'zod';
import { DAY_MS } from '../../kernel/clock.ts';
import { isErrorCode } from '../endpoints/errors.ts';
import { whole } from '../state/switches.ts';

const match = {
  /** Name of an endpoint, such as `give` or `mint`; without it, any. */
  endpoint: z.string().max(64).optional(),
  method: z.string().max(16).optional(),
  /** A path pattern in which `*` stands for any text; without it, any path. */
  path: z.string().max(500).optional(),
  /** Text that the path, query or body of the request must contain. */
  contains: z.string().max(500).optional(),
  /** How many requests meet the fault. */
  count: z.int().min(1).max(1e9).default(1),
  /** How many matching requests pass before the first one meets it. */
  skip: z.int().min(0).max(1e9).default(0),
};
const delayMs = z.int().min(0).max(DAY_MS);
/** Cut the connection by a reset instead of a close. */
const reset = z.boolean().default(false);
/** Whether the request is applied despite the error response. */
const applied = z.boolean().default(false);

export const faultSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('lost_answer'), ...match, reset }),
  z.strictObject({ kind: z.literal('dropped'), ...match, reset }),
  /** Applied `delay_ms` after the connection is cut; with `hold`, both happen after `delay_ms`. */
  z.strictObject({
    kind: z.literal('late'),
    ...match,
    delay_ms: delayMs.default(1000),
    hold: z.boolean().default(false),
    reset,
  }),
  /** Applied at once, answered `delay_ms` later. */
  z.strictObject({ kind: z.literal('delay'), ...match, delay_ms: delayMs.default(1000) }),
  z.strictObject({
    kind: z.literal('throttle'),
    ...match,
    status: z.literal([429, 503]).default(429),
    applied,
    retry_after: z.enum(['seconds', 'date', 'none']).default('seconds'),
    retry_after_s: z.int().min(0).max(1e6).default(1),
  }),
  z.strictObject({
    kind: z.literal('status'),
    ...match,
    status: z.int().min(400).max(599),
    applied,
    /** A body instead of the documented shape, such as that of a framework or a proxy. */
    body: z.string().max(10_000).optional(),
    content_type: z.string().max(100).default('text/html'),
  }),
  /** A documented error: a status of section 7.1, a code of 7.2 or a detail of 7.3. */
  z.strictObject({
    kind: z.literal('error'),
    ...match,
    code: z.string().refine(isErrorCode, 'not an error of the service'),
    /** Values for the placeholders of its message, such as `{"amount":"12"}`. */
    figures: z.record(z.string().max(32), z.string().max(1000)).default({}),
    applied,
  }),
  z.strictObject({ kind: z.literal('truncated'), ...match, reset }),
  z.strictObject({ kind: z.literal('garbled'), ...match }),
  /** The data of the answer lack this member. */
  z.strictObject({ kind: z.literal('without'), ...match, member: z.string().max(64) }),
  /** Reads show the state of `age_ms` ago. */
  z.strictObject({ kind: z.literal('stale_list'), ...match, age_ms: delayMs.default(60_000) }),
  /** Each page starts one row too late, one more with every request. */
  z.strictObject({ kind: z.literal('shifting_pages'), ...match }),
]);

/** A fault before its defaults are filled in. */
export type FaultInput = z.input<typeof faultSchema>;
export type Fault = z.output<typeof faultSchema>;

export const faultRowSchema = z.strictObject({
  fault_id: whole,
  fault: faultSchema,
  /** Matching requests that still pass. */
  skip: z.int(),
  /** Requests that still meet the fault. */
  left: z.int(),
  hits: z.int(),
});
export type FaultRow = z.output<typeof faultRowSchema>;
