/** The pull feed and the list of event types. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/api/http/schemas.ts';
import { findEvent, sequence } from '../../src/outbox/outbox.ts';
import { bodyOf } from '../../src/resources/delivery/event.ts';
import { EVENT_TYPES } from '../../src/resources/delivery/events.ts';
import { openApi, useApi } from './rig.ts';
import { ADDR_A } from './writes.ts';

type Webhooks = Record<string, unknown>;

const HUGE = '9007199254740993000000000001';
const api = useApi();

/** Commits and numbers an event; returns its body. */
async function emit(balance: string): Promise<string> {
  const [event] = await api.database.db.begin((tx) =>
    api.outbox.emit(tx, [
      {
        type: 'wallet.observed',
        subject: `wallet:${ADDR_A}`,
        occurredAt: api.deps.clock.now(),
        data: { addr: ADDR_A, current: { balance, status: 1 } },
      },
    ]),
  );
  while ((await sequence(api.database.db)) > 0);
  api.notifier.notify();
  return (await findEvent(api.database.db, event?.id ?? '')) ?? '';
}

describe('The feed', () => {
  it('The feed returns the bytes of the webhooks in order and continues after its cursor', async () => {
    const bodies = [await emit(HUGE), await emit('1'), await emit('2')];
    const first = await api.call('GET', '/api/events?limit=2');
    expect(first.text).toContain(`"data":[${bodies[0]},${bodies[1]}]`);
    const second = await api.call('GET', `/api/events?cursor=${first.body.next_cursor}`);
    expect(second.text).toContain(`"data":[${bodies[2]}]`);
    const third = await api.call('GET', `/api/events?cursor=${second.body.next_cursor}`);
    expect(third.body.data).toEqual([]);
    expect(third.body.next_cursor).toBe(second.body.next_cursor);
  });

  it('The feed filters by type and by group, and its cursor skips other events', async () => {
    await emit('3');
    const none = await api.call('GET', '/api/events?types=operation.*,token.minted');
    expect(none.body.data).toEqual([]);
    const all = await api.call('GET', '/api/events?types=wallet.*');
    expect(all.body.data.length).toBeGreaterThan(0);
    expect(all.body.next_cursor).toBe(none.body.next_cursor);
  });

  it('With `last` and without a cursor the feed begins before the newest events', async () => {
    const bodies = [await emit('10'), await emit('11')];
    const last = await api.call('GET', '/api/events?last=2');
    expect(last.text).toContain(`"data":[${bodies}]`);
    const none = await api.call('GET', '/api/events?last=0');
    expect(none.body).toEqual({ data: [], next_cursor: last.body.next_cursor });
    const all = await api.call('GET', '/api/events?last=999&limit=500');
    expect(all.body.data).toEqual((await api.call('GET', '/api/events?limit=500')).body.data);
  });

  it('The cursor `latest` begins after the newest event', async () => {
    const { body } = await api.call('GET', '/api/events?cursor=latest');
    const emitted = await emit('12');
    expect(body.data).toEqual([]);
    const { text } = await api.call('GET', `/api/events?cursor=${body.next_cursor}`);
    expect(text).toContain(`"data":[${emitted}]`);
  });

  it('One event is read by its id, as webhooks carry it', async () => {
    const emitted = await emit(HUGE);
    const { id } = JSON.parse(emitted);
    expect((await api.call('GET', `/api/events/${id}`)).text).toBe(emitted);
    for (const other of [`${id.slice(0, -1)}g`, id.replace(/^evt_..../, 'evt_0000'), 'x']) {
      const { status, body } = await api.call('GET', `/api/events/${other}`);
      expect({ status, code: body.code }).toEqual({ status: 404, code: 'not_found' });
    }
  });

  it('A long poll is answered when an event arrives', async () => {
    const { body } = await api.call('GET', '/api/events?limit=500');
    const pull = api.call('GET', `/api/events?wait=30&cursor=${body.next_cursor}`);
    const emitted = await emit('4');
    expect((await pull).text).toContain(`"data":[${emitted}]`);
  });

  it('A long poll ends when the daemon stops', async () => {
    const stopped = await openApi(api.database.db);
    const { body } = await stopped.call('GET', '/api/events?limit=500');
    const pull = stopped.call('GET', `/api/events?wait=30&cursor=${body.next_cursor}`);
    stopped.stopping.abort();
    expect((await pull).body.data).toEqual([]);
  });

  it.each([
    ['cursor=x', 'invalid_cursor'],
    ['cursor=999999999', 'invalid_cursor'],
    ['wait=31', 'invalid_request'],
    ['wait=-1', 'invalid_request'],
    ['types=nothing.at.all', 'invalid_request'],
    ['types=', 'invalid_request'],
    ['limit=', 'invalid_request'],
  ])('The query ?%s is refused as %s', async (query, code) => {
    const { status, body } = await api.call('GET', `/api/events?${query}`);
    expect({ status, code: body.code }).toEqual({ status: 400, code });
  });

  it('A cursor older than the retention period is refused as expired', async () => {
    await emit('5');
    await api.database.owner.sql`
      delete from tallyhook.numbered_events
      where first_seq < (select max(first_seq) from tallyhook.numbered_events)`;
    const { status, body } = await api.call('GET', '/api/events?cursor=1');
    expect({ status, code: body.code }).toEqual({ status: 410, code: 'cursor_expired' });
  });
});

describe('The feed as server-sent events', () => {
  /** The frames of a stream, one after the other. */
  async function* framesOf(query: string, headers: Record<string, string> = {}) {
    const response = await api.api.request(`/api/events${query}`, {
      headers: {
        accept: 'text/event-stream',
        authorization: `Bearer ${await reader()}`,
        ...headers,
      },
    });
    expect(Object.fromEntries(response.headers)).toEqual({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    const text = response.body?.pipeThrough(new TextDecoderStream()) ?? [];
    for await (const part of text as AsyncIterable<string>)
      yield* part.split('\n\n').filter((frame) => frame !== '');
  }
  const reader = () => api.keyFor('read');
  const seqOf = (frame: string) => /^id: (\d+)/.exec(frame)?.[1] ?? '';

  it('Each has the bytes of the webhook, and the cursor after it as id', async () => {
    const bodies = [await emit(HUGE), await emit('1')];
    const frames = framesOf('?last=2');
    for (const body of bodies) {
      const { value = '' } = await frames.next();
      expect(value).toBe(`id: ${seqOf(value)}\nevent: wallet.observed\ndata: ${body}`);
    }
    await frames.return(undefined);
  });

  it('A stream goes on with what comes, and another one after the id of the last', async () => {
    const first = await emit('20');
    const frames = framesOf('?last=1');
    const { value = '' } = await frames.next();
    expect(value).toContain(first);
    await frames.next();
    const pending = frames.next();
    const second = await emit('21');
    expect((await pending).value).toContain(`data: ${second}`);
    await frames.return(undefined);
    const again = framesOf('?last=5', { 'last-event-id': seqOf(value) });
    expect((await again.next()).value).toContain(`data: ${second}`);
    await again.return(undefined);
  });

  it('A stream ends with a comment when the daemon stops', async () => {
    const stopped = await openApi(api.database.db);
    const key = await stopped.keyFor('read');
    const response = await stopped.api.request('/api/events?cursor=latest', {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${key}` },
    });
    const text = response.text();
    stopped.stopping.abort();
    expect(await text).toMatch(/^(id: \d+\n\n)+: the daemon is stopping[^\n]*\n\n$/);
  });

  it('A wrong cursor is refused before the stream begins', async () => {
    const { status, body } = await api.call('GET', '/api/events?cursor=x', {
      headers: { accept: 'text/event-stream' },
    });
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_cursor' });
  });
});

it('The body of an event is removed for good by an admin, which the audit has', async () => {
  const { body: consumer } = await api.call('POST', '/api/consumers', {
    body: { name: 'tombstones' },
  });
  const [kept, body] = [await emit('20'), await emit('21')];
  const { id, type } = JSON.parse(body);
  const path = `/api/events/${id}/body`;
  const manage = await api.keyFor('manage');
  expect((await api.call('DELETE', path, { key: manage })).body.code).toBe('forbidden');
  const removed = await api.call('DELETE', path);
  expect([removed.status, removed.body]).toEqual([
    200,
    {
      id,
      type,
      removed_at: expect.any(String),
      sha256: createHash('sha256').update(body).digest('hex'),
      deliveries_cancelled: 0,
    },
  ]);
  expect((await api.call('DELETE', path)).body).toEqual(removed.body);
  const left = await api.call('GET', `/api/events/${id}`);
  expect(left.body).toMatchObject({ id, type, data: { body_sha256: removed.body.sha256 } });
  expect(left.text).not.toContain('"21"');
  const pulled = await api.call('POST', `/api/consumers/${consumer.id}/pull`);
  expect(pulled.text).toContain(`"event":${kept}}`);
  expect(pulled.text).toContain(`"event":${left.text}}`);
  const feed = await api.call('GET', '/api/events?last=2');
  expect(feed.text).toContain(`"data":[${kept},${left.text}]`);
  const missing = '/api/events/evt_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b/body';
  expect((await api.call('DELETE', missing)).body.code).toBe('not_found');
  const { body: audit } = await api.call('GET', '/api/audit?limit=2');
  expect(audit.data).toMatchObject([
    { result: 'not_found' },
    { action: 'DELETE /api/events/{id}/body', detail: { id }, result: 'done' },
  ]);
});

it('Every event type is listed with its first version, an open schema and a valid example', async () => {
  const { body } = await api.call('GET', '/api/event-types');
  expect(body.data.map(({ type }) => type)).toEqual(EVENT_TYPES);
  const { webhooks } = (await api.call('GET', '/api/openapi.json')).body;
  expect(Object.keys(webhooks as object)).toEqual(EVENT_TYPES);
  for (const [n, { type, since, schema, example }] of body.data.entries()) {
    expect(since).toMatch(/^\d+\.\d+\.\d+$/);
    expect(JSON.stringify(schema)).not.toContain('"additionalProperties":false');
    expect((webhooks as Webhooks)[String(type)]).toMatchObject({
      post: { requestBody: { content: { 'application/json': { example } } } },
    });
    const { data, ...envelope } = bodyOf(EVENT_TYPES[n] ?? 'endpoint.test');
    const strict = schemaOf({ fields: envelope })
      .extend({ data: schemaOf({ fields: data.fields ?? {} }).strict() })
      .strict();
    expect(strict.safeParse(example).error?.issues ?? [], String(type)).toEqual([]);
    const numbered = { properties: { subject_seq: { minimum: 1 } } };
    expect(schema).toMatchObject({
      type: 'object',
      properties: { type: { const: type }, data: numbered },
    });
  }
});
