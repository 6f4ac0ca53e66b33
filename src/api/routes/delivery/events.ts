/**
 * `/api/events`: the pull feed, gap-free, by long poll; and the list of event types. The bodies of
 * the feed are the bytes that webhooks carry: they are put into the answer as text, so no digit
 * changes.
 */
import { createRoute, z } from '@hono/zod-openapi';
import { monotonicMs } from '../../../kernel/clock.ts';
import { EVENTS, type EventType, isEventPattern } from '../../../outbox/events.ts';
import { type FeedPage, readFeed } from '../../../outbox/outbox.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply, replyText } from '../../http/auth.ts';
import { anyJson, paging } from '../../http/fields.ts';
import { json, refusals } from '../../http/problems.ts';
import { exampleOf } from './event-examples.ts';

const TYPES_MAX = 50;
/** Another daemon may number events without our bell ringing: so often the feed is read again. */
const REREAD_MS = 1_000;

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
  cursor: z.string().openapi({ description: 'Give it as cursor for what follows' }),
});

const feedRoute = createRoute({
  method: 'get',
  path: '/api/events',
  tags: ['events'],
  summary: 'Events after a cursor, in order and without gaps; waits for the next one if asked to',
  ...deps('read'),
  request: {
    query: z.strictObject({
      limit: paging.limit,
      cursor: z
        .string()
        .max(30)
        .default('')
        .openapi({ description: 'The cursor of the last answer; without it from the oldest kept' }),
      types: z
        .string()
        .max(5_000)
        .optional()
        .transform((text) => (text === undefined ? [] : text.split(',')))
        .refine((types) => types.length <= TYPES_MAX, `at most ${TYPES_MAX}`)
        .refine((types) => types.every(isEventPattern), 'must be types or group.*, with commas')
        .openapi({ type: 'string', example: 'wallet.*,operation.settled' }),
      wait: z
        .string()
        .regex(/^\d{1,2}$/, 'must be whole seconds from 0 to 30')
        .transform(Number)
        .pipe(z.number().max(30))
        .default(0)
        .openapi({ type: 'integer', minimum: 0, maximum: 30, default: 0, description: 'Seconds' }),
    }),
  },
  responses: {
    200: json('Bodies as webhooks carry them', feed),
    ...refusals,
    410: { ...refusals[404], description: 'The cursor is older than what is kept' },
  },
});

const eventType = z
  .object({
    type: z.string(),
    description: z.string(),
    schema: anyJson.openapi({ description: 'JSON Schema of the body' }),
    example: event,
  })
  .openapi('EventType');

const typesRoute = createRoute({
  method: 'get',
  path: '/api/event-types',
  tags: ['events'],
  summary: 'Every type of event: what it means, the schema of its body, an example',
  ...deps('read'),
  responses: { 200: json('All of them', z.object({ data: z.array(eventType) })), ...refusals },
});

export function addEvents(app: Api, deps: ApiDeps): void {
  app.openapi(guarded(deps, feedRoute), async (c) => {
    const { wait, ...query } = c.req.valid('query');
    const waitMs = Math.min(wait * 1_000, deps.feedWaitMaxMs);
    const found = await pull(deps, query, waitMs, c.req.raw.signal);
    const text = `{"data":[${found.bodies.join(',')}],"cursor":${JSON.stringify(found.cursor)}}`;
    return replyText<z.input<typeof feed>, 200>(c, text, 200);
  });
  const types = (Object.keys(EVENTS) as EventType[]).map(describe);
  app.openapi(guarded(deps, typesRoute), (c) => reply(c, { data: types }, 200));
}

/** Reads the feed; while it has nothing, again whenever the bell rings, until the time is over. */
async function pull(
  { db, nextEvent, stopping }: ApiDeps,
  query: { cursor: string; types: string[]; limit: number },
  waitMs: number,
  gone: AbortSignal,
): Promise<FeedPage> {
  const types = query.types.includes('*') ? [] : query.types;
  const until = monotonicMs() + waitMs;
  let { cursor } = query;
  for (;;) {
    const left = until - monotonicMs();
    // Listening begins before reading, or what is numbered in between would not be heard.
    const read = new AbortController();
    const ends = AbortSignal.any([gone, stopping, read.signal]);
    const rung = left > 0 ? nextEvent(ends, Math.min(left, REREAD_MS)) : undefined;
    try {
      const found = await readFeed(db, { cursor, types, limit: query.limit });
      if (found.bodies.length > 0 || !rung || gone.aborted || stopping.aborted) return found;
      cursor = found.cursor;
      await rung;
    } finally {
      read.abort();
    }
  }
}

function describe(type: EventType) {
  const { description, data } = EVENTS[type];
  const body = z.object({
    id: z.string(),
    type: z.literal(type),
    timestamp: z.string().describe('When it happened, as far as known; RFC 3339 UTC'),
    data,
  });
  // Through text, because the schema is made of class instances.
  const schema: z.input<typeof anyJson> = JSON.parse(JSON.stringify(z.toJSONSchema(body)));
  return { type, description, schema, example: exampleOf(type) };
}
