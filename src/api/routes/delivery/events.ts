/**
 * `/api/events`: the pull feed with long polling, and the list of event types. The feed copies the
 * stored webhook bodies into its response as text, so numbers keep all digits.
 */
import { z } from '@hono/zod-openapi';
import { EVENTS, type EventType, isEventPattern } from '../../../outbox/events.ts';
import { cursorBefore, makeTail } from '../../../outbox/outbox.ts';
import type { ApiDeps } from '../../deps.ts';
import { anyJson } from '../../http/fields.ts';
import { paging } from '../../http/pages.ts';
import { problemsOf } from '../../http/problems.ts';
import { json, type Router, reply } from '../../http/router.ts';
import { exampleOf } from './event-examples.ts';

const TYPES_MAX = 50;

const event = z
  .object({
    id: z.string(),
    type: z.string(),
    timestamp: z.string(),
    data: z.record(z.string(), anyJson),
  })
  .openapi('Event');

const feed = z.object({
  data: z.array(event),
  next_cursor: z.string().openapi({ description: 'The cursor of the next request; never null' }),
});

const feedQuery = z.strictObject({
  limit: paging.limit,
  cursor: z.string().max(30).default('').openapi({
    description: 'The next_cursor of the previous response; without it the oldest stored event',
  }),
  last: z
    .string()
    .regex(/^\d{1,3}$/, 'must be a whole number from 0 to 999')
    .transform(Number)
    .optional()
    .openapi({
      type: 'integer',
      minimum: 0,
      maximum: 999,
      description: 'Without a cursor: begin before the newest so many events of all types',
    }),
  types: z
    .string()
    .max(5_000)
    .optional()
    .transform((text) => (text === undefined ? [] : text.split(',')))
    .refine((types) => types.length <= TYPES_MAX, `at most ${TYPES_MAX}`)
    .refine(
      (types) => types.every(isEventPattern),
      'must be event types or group.*, separated by commas',
    )
    .openapi({ type: 'string', example: 'wallet.*,operation.settled' }),
  wait: z
    .string()
    .regex(/^\d{1,2}$/, 'must be whole seconds from 0 to 30')
    .transform(Number)
    .pipe(z.number().max(30))
    .default(0)
    .openapi({
      type: 'integer',
      minimum: 0,
      maximum: 30,
      default: 0,
      description: 'Seconds to wait for an event if there is none',
    }),
});

const eventType = z
  .object({
    type: z.string(),
    description: z.string(),
    schema: anyJson.openapi({ description: 'JSON Schema of the body' }),
    example: event,
  })
  .openapi('EventType');

const base = { method: 'get' as const, tag: 'events', scope: 'read' as const };

export function addEvents(
  router: Router,
  deps: Pick<ApiDeps, 'db' | 'nextEvent' | 'stopping' | 'feedWaitMaxMs'>,
): void {
  const tail = makeTail(deps);
  router.raw({
    ...base,
    path: '/api/events',
    summary: 'Read events after a cursor, in order and without gaps',
    request: z.object({ query: feedQuery }),
    responses: {
      200: json('Events as webhooks carry them', feed),
      ...problemsOf('get', false, { 410: 'The cursor is older than the retention period' }),
    },
    async handle({ query: { wait, last, ...rest } }, c) {
      const waitMs = Math.min(wait * 1_000, deps.feedWaitMaxMs);
      const cursor =
        rest.cursor === '' && last !== undefined ? await cursorBefore(deps.db, last) : rest.cursor;
      const query = { ...rest, cursor };
      const types = query.types.includes('*') ? [] : query.types;
      const { rows, cursor: next } = await tail.read({ ...query, types }, waitMs, c.req.raw.signal);
      const bodies = rows.map(({ body }) => body).join(',');
      return reply(c, `{"data":[${bodies}],"next_cursor":${JSON.stringify(next)}}`);
    },
  });
  const types = (Object.keys(EVENTS) as EventType[]).map(eventTypeOutput);
  router.add({
    ...base,
    path: '/api/event-types',
    summary: 'List event types with a description, a JSON Schema and an example',
    request: z.object({}),
    response: 'All event types',
    schema: z.object({ data: z.array(eventType) }),
    handle: () => ({ data: types }),
  });
}

function eventTypeOutput(type: EventType) {
  const { description, data } = EVENTS[type];
  const body = z.object({
    id: z.string(),
    type: z.literal(type),
    timestamp: z.string().describe('When it happened, as far as known; RFC 3339 in UTC'),
    data,
  });
  return { type, description, schema: z.toJSONSchema(body), example: exampleOf(type) };
}
