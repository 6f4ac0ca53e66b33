/**
 * `/api/consumers`: named positions in the feed, kept for those who pull. Events are copied into
 * answers as text, as in `/api/events`. Pulling is not audited: a worker pulls every few seconds.
 */
import { z } from '@hono/zod-openapi';
import { isoText } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import { jsonText } from '../../../kernel/json.ts';
import type { Caller } from '../../../keys/keys.ts';
import {
  acknowledged,
  consumer,
  pulled,
  REDELIVER_S,
  released,
} from '../../../resources/delivery/consumer.ts';
import { isEventPattern } from '../../../resources/delivery/events.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, paging } from '../../http/pages.ts';
import { problemsOf } from '../../http/problems.ts';
import { json, type Router, reply } from '../../http/router.ts';
import { idInput, schemaOf } from '../../http/schemas.ts';

const TYPES_MAX = 100;
const PULLED_MAX = 500;
const PULLED_DEFAULT = 50;
const WAIT_S_MAX = 30;

const position = z
  .string()
  .regex(/^(latest|oldest|\d{1,18})$/, 'must be latest, oldest, or a cursor of the feed');

const creation = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][\w.-]{0,99}$/, 'must be 1 to 100 letters, digits, dots, - or _')
      .openapi({ description: 'Unique among your consumers', example: 'ledger-export' }),
    event_types: z
      .array(z.string().max(100))
      .min(1)
      .max(TYPES_MAX)
      .refine((types) => types.every(isEventPattern), 'must be event types, group.* or *')
      .default(['*'])
      .openapi({ description: 'Exact types, `group.*` or `*`; by default all' }),
    from: position.default('latest').openapi({
      description: 'Where it begins: latest (the default), oldest, or after a cursor of the feed',
    }),
    redeliver_after_s: z
      .int()
      .min(REDELIVER_S.min)
      .max(REDELIVER_S.max)
      .default(REDELIVER_S.default)
      .openapi({
        description: 'Seconds until an event that is not acknowledged is handed out again',
      }),
  })
  .openapi('ConsumerRequest');

const pulling = z
  .strictObject({
    limit: z.int().min(1).max(PULLED_MAX).default(PULLED_DEFAULT),
    wait: z
      .int()
      .min(0)
      .max(WAIT_S_MAX)
      .default(0)
      .openapi({ description: 'Seconds to wait for an event if there is none' }),
  })
  .prefault({});

const receipts = z.strictObject({
  receipts: z
    .array(z.string().regex(/^\d{1,9}\.\d{1,18}\.\d{1,9}$/, 'must be receipts of a pull'))
    .min(1)
    .max(PULLED_MAX),
});

const seeking = z.strictObject({
  to: position.openapi({ description: 'latest, oldest, or a cursor of the feed' }),
});

const params = z.object({ id: idInput('con') });
const request = z.object({ params });
const base = { tag: 'consumers', path: '/api/consumers/{id}', scope: 'read' } as const;

type Deps = Pick<ApiDeps, 'consumers' | 'nextEvent' | 'stopping' | 'feedWaitMaxMs'>;

export function addConsumers(router: Router, deps: Deps): void {
  const { consumers } = deps;
  router.listOf({
    ...base,
    path: '/api/consumers',
    summary: 'List your consumers and how far they are behind; an admin lists all',
    request: z.object({ query: z.strictObject(paging) }),
    items: consumer,
    parsePosition: idPosition('con'),
    async list(_, { after = '', limit }, caller) {
      return consumers.listConsumers({ owner: ownerFor(caller), after, limit });
    },
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    method: 'post',
    path: '/api/consumers',
    scope: 'manage',
    summary: 'Create a consumer: a named position in the feed',
    request: z.object({ body: creation }),
    status: 201,
    response: 'The consumer',
    answer: consumer,
    handle: ({ body: { event_types, redeliver_after_s, ...rest } }, { owner }) =>
      consumers.createConsumer(
        { ...rest, eventTypes: event_types, redeliverAfterS: redeliver_after_s },
        owner,
      ),
  });
  router.answer({
    ...base,
    method: 'get',
    summary: 'Read a consumer and how far it is behind',
    request,
    response: 'The consumer',
    answer: consumer,
    async handle({ params: { id } }, caller) {
      await requireOwn(consumers, id, caller);
      return consumers.getConsumer(id);
    },
  });
  router.add({
    ...base,
    method: 'delete',
    scope: 'manage',
    summary: 'Delete a consumer and its position',
    request,
    response: 'The consumer is deleted',
    async handle({ params: { id } }, caller) {
      await requireOwn(consumers, id, caller);
      await consumers.deleteConsumer(id);
    },
  });
  router.answer({
    ...base,
    method: 'post',
    path: '/api/consumers/{id}/seek',
    scope: 'manage',
    summary: 'Go on after another position',
    description: 'Everything pulled before is forgotten: its receipts are stale.',
    request: z.object({ params, body: seeking }),
    response: 'The consumer',
    answer: consumer,
    async handle({ params: { id }, body: { to } }, caller) {
      await requireOwn(consumers, id, caller);
      return consumers.seek(id, to);
    },
  });
  addWork(router, deps);
}

/** What its workers do. */
function addWork(router: Router, { consumers, nextEvent, stopping, feedWaitMaxMs }: Deps): void {
  router.raw({
    ...base,
    method: 'post',
    path: '/api/consumers/{id}/pull',
    summary: 'Pull events, which no other worker of the consumer gets meanwhile',
    description:
      'Events of one subject come in order, and to one worker at a time: while a worker has an ' +
      'event of a subject, no other one of it is handed out. What is neither acknowledged nor ' +
      'released until `redeliver_at` is handed out again.',
    request: z.object({ params, body: pulling }),
    responses: {
      200: json('Events, as webhooks carry them', schemaOf(pulled)),
      ...problemsOf('post', true, {
        410: 'Events were pruned before they were pulled; `missed` says how many. Seek to go on',
      }),
    },
    async handle({ params: { id }, body: { limit, wait } }, c, caller) {
      await requireOwn(consumers, id, caller);
      const aborted = AbortSignal.any([c.req.raw.signal, stopping]);
      const waitMs = Math.min(wait * 1_000, feedWaitMaxMs);
      const found = await consumers.pull(id, { limit, waitMs, nextEvent, aborted });
      const data = found.events.map(
        ({ receipt, redelivered, body }) =>
          `{"receipt":"${receipt}","redelivered":${redelivered},"event":${body}}`,
      );
      const at = found.redeliverAt === null ? 'null' : `"${isoText(found.redeliverAt)}"`;
      return reply(c, `{"data":[${data.join(',')}],"redeliver_at":${at}}`);
    },
  });
  const ends = { body: receipts, params };
  router.raw({
    ...base,
    method: 'post',
    path: '/api/consumers/{id}/ack',
    summary: 'Acknowledge events, which are not handed out again',
    request: z.object(ends),
    responses: {
      200: json('How many, and the receipts that are stale', schemaOf(acknowledged)),
      ...problemsOf('post', true),
    },
    async handle({ params: { id }, body }, c, caller) {
      await requireOwn(consumers, id, caller);
      return reply(c, jsonText(await consumers.acknowledge(id, body.receipts)));
    },
  });
  router.raw({
    ...base,
    method: 'post',
    path: '/api/consumers/{id}/release',
    summary: 'Give events back, which are handed out again at once',
    request: z.object(ends),
    responses: {
      200: json('How many, and the receipts that are stale', schemaOf(released)),
      ...problemsOf('post', true),
    },
    async handle({ params: { id }, body }, c, caller) {
      await requireOwn(consumers, id, caller);
      return reply(c, jsonText(await consumers.release(id, body.receipts)));
    },
  });
}

/** Whose consumers the caller may see; undefined for everyone's. */
function ownerFor({ scopes, owner }: Caller): string | undefined {
  return scopes.includes('admin') ? undefined : owner;
}

/** A consumer of another owner is as one that does not exist. */
async function requireOwn(
  consumers: ApiDeps['consumers'],
  id: string,
  caller: Caller | undefined,
): Promise<void> {
  const owner = caller && ownerFor(caller);
  if (owner === undefined) return;
  if ((await consumers.ownerOf(id)) !== owner)
    throw new Failure('not_found', `you have no consumer ${id}`);
}
