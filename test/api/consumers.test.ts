/** Named consumers by HTTP: who may use them, what is answered, and long polls. */
import { describe, expect, it } from 'vitest';
import { findEvent, sequence } from '../../src/outbox/outbox.ts';
import type { Answer } from './described.ts';
import { openApi, useApi } from './rig.ts';
import { ADDR_A } from './writes.ts';

const HUGE = '9007199254740993000000000001';
const api = useApi();

/** Commits and numbers an event; returns its body. */
async function emit(balance: string, subject = ADDR_A): Promise<string> {
  const data = { addr: subject, current: { balance, status: 1 } };
  const at = api.deps.clock.now();
  const draft = { type: 'wallet.observed', subject: `wallet:${subject}`, occurredAt: at, data };
  const [event] = await api.database.db.begin((tx) => api.outbox.emit(tx, [draft as never]));
  while ((await sequence(api.database.db)) > 0);
  api.notifier.notify();
  return (await findEvent(api.database.db, event?.id ?? '')) ?? '';
}

async function create(name: string, more: object = {}): Promise<string> {
  const { status, body, text } = await api.call('POST', '/api/consumers', {
    body: { name, ...more },
  });
  expect(status, text).toBe(201);
  return `/api/consumers/${body.id}`;
}

const receiptsOf = ({ body }: Answer) => body.data.map(({ receipt }) => String(receipt));

describe('A consumer', () => {
  it('A consumer hands out the bytes of webhooks, and ends what is acknowledged', async () => {
    const path = await create('bytes', { redeliver_after_s: 5 });
    const bodies = [await emit(HUGE), await emit('1')];
    const pulled = await api.call('POST', `${path}/pull`);
    expect(pulled.text).toContain(`"redelivered":0,"event":${bodies[0]}}`);
    expect(pulled.text).toContain(`"redelivered":0,"event":${bodies[1]}}`);
    expect(pulled.body.redeliver_at).not.toBeNull();
    const receipts = receiptsOf(pulled);
    const acknowledged = await api.call('POST', `${path}/ack`, { body: { receipts } });
    expect(acknowledged.body).toEqual({ acknowledged: 2, stale: [] });
    const again = await api.call('POST', `${path}/ack`, { body: { receipts } });
    expect(again.body).toEqual({ acknowledged: 0, stale: receipts });
    const { body } = await api.call('GET', path);
    expect(body).toMatchObject({ name: 'bytes', state: 'active', behind: 0, unacknowledged: 0 });
    const empty = await api.call('POST', `${path}/pull`, { body: { limit: 1 } });
    expect(empty.body).toEqual({ data: [], redeliver_at: null });
  });

  it('Released events come again at once; a seek goes back', async () => {
    const path = await create('released', { event_types: ['wallet.*'] });
    const { body: begin } = await api.call('GET', path);
    await emit('5');
    const receipts = receiptsOf(await api.call('POST', `${path}/pull`));
    const released = await api.call('POST', `${path}/release`, { body: { receipts } });
    expect(released.body).toEqual({ released: 1, stale: [] });
    const again = await api.call('POST', `${path}/pull`);
    expect(again.body.data).toMatchObject([{ redelivered: 1 }]);
    const to = begin.position;
    const sought = await api.call('POST', `${path}/seek`, { body: { to } });
    expect(sought.body).toMatchObject({ behind: 1, in_flight: 0, position: to });
    expect((await api.call('POST', `${path}/pull`)).body.data).toMatchObject([{ redelivered: 0 }]);
  });

  it('A long poll of one daemon gets an event that another one numbers', async () => {
    const path = await create('waits');
    const other = await openApi(api.database.db);
    const pull = other.call('POST', `${path}/pull`, { body: { wait: 30 } });
    const emitted = await emit('6');
    expect((await pull).text).toContain(emitted);
  });

  it('Workers of two daemons share a consumer: each event goes to one of them', async () => {
    const path = await create('shared');
    const other = await openApi(api.database.db);
    const subjects = Array.from({ length: 20 }, (_, n) => ADDR_A.slice(0, -2) + String(10 + n));
    for (const subject of subjects) await emit('7', subject);
    const pulls = Array.from({ length: 10 }, (_, n) =>
      (n % 2 ? api : other).call('POST', `${path}/pull`, { body: { limit: 3 } }),
    );
    const pulled = (await Promise.all(pulls)).flatMap(({ body }) => body.data);
    const events = pulled.map(({ event }) => event as { data: { addr: string } });
    expect(events.map(({ data }) => data.addr).sort()).toEqual(subjects);
  });

  it('A long poll ends when the daemon stops', async () => {
    const path = await create('stops');
    const stopped = await openApi(api.database.db);
    const pull = stopped.call('POST', `${path}/pull`, { body: { wait: 30 } });
    stopped.stopping.abort();
    expect((await pull).body.data).toEqual([]);
  });

  it('Pulling needs the scope read, making, moving and deleting one manage', async () => {
    const mine = await api.keys.create({ name: 'm', owner: 'mia', scopes: ['manage', 'read'] });
    const worker = await api.keys.create({ name: 'w', owner: 'mia', scopes: ['read'] });
    const foreign = await api.keys.create({ name: 'f', owner: 'finn', scopes: ['manage', 'read'] });
    const body = { name: 'owned' };
    const denied = await api.call('POST', '/api/consumers', { key: worker.secret, body });
    expect(denied.body.code).toBe('forbidden');
    const made = await api.call('POST', '/api/consumers', { key: mine.secret, body });
    const path = `/api/consumers/${made.body.id}`;
    expect((await api.call('POST', `${path}/pull`, { key: worker.secret })).status).toBe(200);
    const seek = { key: worker.secret, body: { to: 'oldest' } };
    expect((await api.call('POST', `${path}/seek`, seek)).body.code).toBe('forbidden');
    const receipts = { receipts: ['0.1.1'] };
    for (const [method, at, sent] of [
      ['GET', path, undefined],
      ['DELETE', path, undefined],
      ['POST', `${path}/pull`, {}],
      ['POST', `${path}/ack`, receipts],
      ['POST', `${path}/release`, receipts],
      ['POST', `${path}/seek`, { to: 'oldest' }],
    ] as const) {
      const answer = await api.call(method, at, { key: foreign.secret, body: sent });
      expect([method, at, answer.body.code]).toEqual([method, at, 'not_found']);
    }
    const listed = await api.call('GET', '/api/consumers', { key: foreign.secret });
    expect(listed.body.data).toEqual([]);
    const own = await api.call('GET', '/api/consumers', { key: worker.secret });
    expect(own.body.data).toMatchObject([{ name: 'owned', created_by: 'mia' }]);
    const twice = await api.call('POST', '/api/consumers', { key: mine.secret, body });
    expect([twice.status, twice.body.code]).toEqual([409, 'conflict']);
    expect((await api.call('DELETE', path, { key: mine.secret })).status).toBe(204);
    expect((await api.call('GET', path, { key: mine.secret })).status).toBe(404);
    const { body: audit } = await api.call('GET', '/api/audit?limit=500');
    const done = audit.data.map(({ action, owner }) => `${owner} ${action}`);
    expect(done).toContain('mia POST /api/consumers');
    expect(done).toContain('mia DELETE /api/consumers/{id}');
    expect(done.filter((line) => line.includes('/pull'))).toEqual([]);
  });

  it.each([
    ['', {}],
    ['', { name: 'a b' }],
    ['', { name: 'x', event_types: [] }],
    ['', { name: 'x', event_types: ['nothing.at.all'] }],
    ['', { name: 'x', from: 'yesterday' }],
    ['', { name: 'x', redeliver_after_s: 0 }],
    ['', { name: 'x', redeliver_after_s: 43_201 }],
    ['/pull', { limit: 501 }],
    ['/pull', { wait: 31 }],
    ['/ack', {}],
    ['/ack', { receipts: [] }],
    ['/ack', { receipts: ['x'] }],
    ['/seek', {}],
  ])('POST /api/consumers%s with %j is refused', async (action, body) => {
    const path = action === '' ? '/api/consumers' : `${await create(`r${refused++}`)}${action}`;
    const answer = await api.call('POST', path, { body });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_request']);
  });

  it('A consumer behind retention answers 410 with a count until it is moved', async () => {
    const path = await create('behind');
    await emit('8');
    await emit('9');
    await api.database.owner.sql`
      delete from tallyhook.numbered_events
      where first_seq < (select max(first_seq) from tallyhook.numbered_events)`;
    const { status, body } = await api.call('POST', `${path}/pull`);
    expect([status, body.code, body.missed]).toEqual([410, 'cursor_expired', 1]);
    const { body: shown } = await api.call('GET', '/api/status');
    expect((shown.consumers as { expired: number }).expired).toBeGreaterThan(0);
    await api.call('POST', `${path}/seek`, { body: { to: 'oldest' } });
    expect((await api.call('POST', `${path}/pull`)).body.data).toHaveLength(1);
  });
});

let refused = 0;
