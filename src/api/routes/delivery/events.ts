/**
 * `/api/events`: the pull feed with long polling or as server-sent events, single events, and the
 * list of event types. Stored webhook bodies are copied into responses as text, so numbers keep all
 * digits.
 */
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Db } from '../../../db/connect.ts';
import { monotonicMs } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import type { Json } from '../../../kernel/json.ts';
import { cursorBefore, type FeedPage, findEvent, makeTail } from '../../../outbox/outbox.ts';
import {
  bodyOf,
  event,
  eventTypes,
  exampleOfEvent,
  removedBody,
} from '../../../resources/delivery/event.ts';
import { EVENT_TYPES, EVENTS, isEventPattern } from '../../../resources/delivery/events.ts';
import type { ApiDeps } from '../../deps.ts';
import { IDLE_MS, streamHeaders } from '../../http/line-stream.ts';
import { paging } from '../../http/pages.ts';
import { problemsOf } from '../../http/problems.ts';
import { json, type Router, reply } from '../../http/router.ts';
import { idInput, schemaOf } from '../../http/schemas.ts';

const TYPES_MAX = 50;

const feed = z.object({
  data: z.array(schemaOf(event)),
  next_cursor: z.string().openapi({ description: 'The cursor of the next request; never null' }),
});

const feedQuery = z.strictObject({
  limit: paging.limit,
  cursor: z
    .string()
    .max(30)
    .default('')
    .openapi({
      description:
        'The next_cursor of the previous response, or `latest` for what comes from now on; ' +
        'without it the oldest stored event',
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

const base = { method: 'get', tag: 'events', scope: 'read' } as const;

export function addEvents(
  router: Router,
  deps: Pick<ApiDeps, 'db' | 'webhooks' | 'nextEvent' | 'stopping' | 'feedWaitMaxMs'>,
): void {
  const tail = makeTail(deps);
  router.raw({
    ...base,
    path: '/api/events',
    summary: 'Read events after a cursor, in order and without gaps',
    description:
      'With `Accept: text/event-stream` the response is a stream of server-sent events: `data` ' +
      'is the body of a webhook and `id` the cursor after it. It ends after five minutes; send ' +
      'the last id as `Last-Event-ID` to continue.',
    request: z.object({ query: feedQuery }),
    responses: {
      200: {
        description: 'Events as webhooks carry them',
        content: {
          'application/json': { schema: feed },
          [EVENT_STREAM]: { schema: z.string() },
        },
      },
      ...problemsOf('get', false, { 410: 'The cursor is older than the retention period' }),
    },
    async handle({ query: { wait, last, cursor: sent, types: named, limit } }, c) {
      const waitMs = Math.min(wait * 1_000, deps.feedWaitMaxMs);
      const types = named.includes('*') ? [] : named;
      const read = (cursor: string, ms: number, aborted: AbortSignal) =>
        tail.read({ cursor, types, limit }, ms, aborted);
      const { signal } = c.req.raw;
      if (!c.req.header('accept')?.includes(EVENT_STREAM)) {
        const { rows, cursor } = await read(await beginOf(deps.db, sent, last), waitMs, signal);
        const bodies = rows.map(({ body }) => body).join(',');
        return reply(c, `{"data":[${bodies}],"next_cursor":${JSON.stringify(cursor)}}`);
      }
      const begin = c.req.header('last-event-id') ?? (await beginOf(deps.db, sent, last));
      const first = streamPageOf(await read(begin, 0, signal));
      return answerEventStream(c, deps.stopping, first, async (after, aborted) =>
        streamPageOf(await read(after, Math.min(IDLE_MS, deps.feedWaitMaxMs), aborted)),
      );
    },
  });
  router.raw({
    ...base,
    path: '/api/events/{id}',
    summary: 'Read one event',
    request: z.object({ params: z.object({ id: z.string().max(60) }) }),
    responses: {
      200: json('The event as webhooks carry it', schemaOf(event)),
      ...problemsOf('get', false),
    },
    async handle({ params: { id } }, c) {
      const body = await findEvent(deps.db, id);
      if (body === undefined) throw new Failure('not_found', `no stored event ${id}`);
      return reply(c, body);
    },
  });
  router.answer({
    ...base,
    method: 'delete',
    path: '/api/events/{id}/body',
    scope: 'admin',
    summary: 'Remove the body of an event for good',
    description:
      'The event keeps its id, type, time and numbers; its `data` are `body_removed_at`, ' +
      '`body_sha256` and `subject_seq` from then on, here, in the feed and for consumers. ' +
      'Deliveries that still wait for it are cancelled, and a replay sends it no more. What was ' +
      'sent before is with its receivers.',
    request: z.object({ params: z.object({ id: idInput('evt') }) }),
    response: 'What is left of it',
    answer: removedBody,
    handle: ({ params: { id } }) => deps.webhooks.removeBody(id),
  });
  const data = catalogue();
  for (const { type, description, since, example } of data)
    router.webhook(type, description, schemaOf({ fields: bodyOf(type) }), { since, example });
  router.add({
    ...base,
    path: '/api/event-types',
    summary: 'List event types with their first version, a JSON Schema and an example',
    request: z.object({}),
    response: 'All event types',
    ownOnly: true,
    schema: schemaOf(eventTypes),
    handle: () => ({ data }),
  });
}

/** What receivers may rely on: every type of event with the schema of its body. */
export function catalogue() {
  return EVENT_TYPES.map((type) => {
    const { description, since } = EVENTS[type];
    // As what is read: further members are allowed.
    const schema = z.toJSONSchema(schemaOf({ fields: bodyOf(type) }), { io: 'input' }) as Json;
    return { type, description, since, schema, example: exampleOfEvent(type) };
  });
}

/** A cursor for the begin that a query names. */
async function beginOf(db: Db, cursor: string, last: number | undefined): Promise<string> {
  if (cursor === 'latest') return cursorBefore(db, 0);
  return cursor === '' && last !== undefined ? cursorBefore(db, last) : cursor;
}

function streamPageOf({ rows, cursor }: FeedPage): StreamPage {
  const events = rows.map(({ seq, type, body }) => ({ id: `${seq}`, type, data: body }));
  return { events, id: cursor };
}

const EVENT_STREAM = 'text/event-stream';

interface StreamPage {
  /** `data` is one line of text; `id` is where a client continues after it. */
  events: readonly { id: string; type: string; data: string }[];
  /** Where a client continues after all of them. */
  id: string;
}

/** A client then connects again with its `Last-Event-ID`, and its key is checked again. */
const STREAM_MS = 300_000;

const STOPPING = ': the daemon is stopping; connect again with the last id\n\n';

/**
 * Streams the first page and those after it, as fast as the client reads, until the client
 * disconnects, a page fails, the signal aborts, or five minutes have passed. The signal adds a
 * comment, so that the end is not taken for a failure.
 * @param next the page after an id; it waits for events and may be empty
 */
function answerEventStream(
  c: Context,
  stopping: AbortSignal,
  first: StreamPage,
  next: (id: string, aborted: AbortSignal) => Promise<StreamPage>,
): Response {
  const disconnected = new AbortController();
  const stop = AbortSignal.any([disconnected.signal, stopping]);
  const until = monotonicMs() + STREAM_MS;
  const encoder = new TextEncoder();
  let page: StreamPage | undefined = first;
  let { id } = first;
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const end = () => {
        if (stopping.aborted) controller.enqueue(encoder.encode(STOPPING));
        controller.close();
      };
      if (stop.aborted || monotonicMs() >= until) return end();
      try {
        page ??= await next(id, stop);
      } catch {
        return end();
      }
      id = page.id;
      controller.enqueue(encoder.encode(framesOf(page)));
      page = undefined;
    },
    cancel: () => disconnected.abort(),
  });
  return c.body(stream, 200, streamHeaders(EVENT_STREAM));
}

/** Clients keep an id without data and dispatch no event for it, so it keeps a stream alive. */
function framesOf({ events, id }: StreamPage): string {
  const frames = events.map((one) => `id: ${one.id}\nevent: ${one.type}\ndata: ${one.data}\n\n`);
  return `${frames.join('')}id: ${id}\n\n`;
}
