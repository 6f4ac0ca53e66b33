/** Endpoints, deliveries and reports through the API. */
import { describe, expect, it } from 'vitest';
import { useApi } from './rig.ts';

const api = useApi();

const url = 'http://127.0.0.1:4567/hooks';

const kafka = (more: object) => ({
  kind: 'kafka',
  servers: ['127.0.0.1:9092'],
  topic: 'events',
  ...more,
});
const sqs = (more: object) => ({
  kind: 'sqs',
  queue_url: 'http://127.0.0.1:9324/000000000000/events',
  region: 'eu-west-1',
  access_key_id: 'a',
  secret_access_key: 'b',
  ...more,
});
const auth = (more: object) => ({
  oauth2: { token_url: `${url}/token`, client_id: 'a', client_secret: 'b', ...more },
});

describe('An endpoint', () => {
  it('The secret of an endpoint is only in the responses that create or rotate it', async () => {
    const made = await api.call('POST', '/api/endpoints', {
      body: { url, event_types: ['wallet.*'], headers: { 'x-token': 'very secret' } },
    });
    expect(made.status).toBe(201);
    expect(made.body.secret).toMatch(/^whsec_/);
    expect(made.body.new_public_key).toMatch(/^whpk_/);
    const path = `/api/endpoints/${made.body.id}`;
    const changed = await api.call('PATCH', path, { body: { rate_per_s: 2, description: null } });
    expect(changed.body).toMatchObject({ rate_per_s: 2, secret: null, header_names: ['x-token'] });
    const rotated = await api.call('POST', `${path}/rotate`, { body: { overlap_s: 60 } });
    expect(rotated.body.secret).not.toBe(made.body.secret);
    for (const { text } of [await api.call('GET', path), await api.call('GET', '/api/endpoints')])
      expect(text).not.toMatch(/whsec_|whsk_|very secret/);
    const keys = await api.call('GET', '/.well-known/webhook-keys', { key: undefined });
    expect(keys.body.keys).toEqual([
      { endpoint_id: made.body.id, public_key: rotated.body.new_public_key },
    ]);
  });

  it('Only the owner of an endpoint, and an admin, may change, test, retry or delete it', async () => {
    const key = await api.keyFor('manage');
    const { body } = await api.call('POST', '/api/endpoints', { key, body: { url } });
    const path = `/api/endpoints/${body.id}`;
    const other = await api.keyFor('read', 'manage');
    await api.call('POST', `${path}/test`, { key });
    const listed = await api.call('GET', `/api/deliveries?endpoint_id=${body.id}`);
    const delivery = listed.body.data[0]?.id;
    const changes = [
      ['PATCH', path, { url: 'http://127.0.0.1:4568/' }],
      ['POST', `${path}/rotate`, {}],
      ['POST', `${path}/disable`, undefined],
      ['POST', `${path}/enable`, undefined],
      ['POST', `${path}/test`, undefined],
      ['POST', `/api/deliveries/${delivery}/retry`, undefined],
      ['DELETE', path, undefined],
    ] as const;
    // To its owner it answers that the delivery is not exhausted.
    const cancel = ['POST', `/api/deliveries/${delivery}/cancel`, undefined] as const;
    for (const [method, to, change] of [cancel, ...changes]) {
      const refused = await api.call(method, to, { key: other, body: change });
      expect([to, refused.status, refused.body.code]).toEqual([to, 403, 'forbidden']);
    }
    expect((await api.call('GET', path)).body).toMatchObject({ url, state: 'enabled' });
    expect((await api.call('POST', `${path}/rotate`, { body: {} })).status).toBe(200);
    for (const [method, to, change] of changes)
      expect((await api.call(method, to, { key, body: change })).status).toBeLessThan(300);
  });

  it('A key of another owner reads the origin of an endpoint, not its path and query', async () => {
    const key = await api.keyFor('manage', 'read');
    const secret = `${url}/T0KEN?token=T0KEN`;
    const { body } = await api.call('POST', '/api/endpoints', { key, body: { url: secret } });
    const seenBy = async (reader: string | undefined) => {
      const call = { key: reader };
      const one = await api.call('GET', `/api/endpoints/${body.id}`, call);
      const all = await api.call('GET', '/api/endpoints?limit=500', call);
      return [one.body.url, all.body.data.find(({ id }) => id === body.id)?.url];
    };
    expect(await seenBy(key)).toEqual([secret, secret]);
    expect(await seenBy(await api.keyFor('admin'))).toEqual([secret, secret]);
    const origin = 'http://127.0.0.1:4567';
    expect(await seenBy(await api.keyFor('read'))).toEqual([origin, origin]);
  });

  it('A key of another owner sees that attempts failed, when and with which status, and nothing that the receiver answered', async () => {
    const key = await api.keyFor('manage', 'read');
    const { body } = await api.call('POST', '/api/endpoints', { key, body: { url } });
    await api.call('POST', `/api/endpoints/${body.id}/test`, { key });
    const listed = await api.call('GET', `/api/deliveries?endpoint_id=${body.id}`);
    const id = String(listed.body.data[0]?.id);
    const at = '2026-01-02T03:04:05.000Z';
    const answered = [
      { n: 1, status: 302, error: null, body: 'answer-body', headers: { location: '/answer-url' } },
      { n: 2, status: null, error: 'timeout', body: null, headers: null },
    ];
    for (const { n, status, error, body: text, headers } of answered)
      await api.database.owner.sql`
        insert into tallyhook.attempts (delivery_id, at, n, duration_ms, status, result, error,
          response_body, response_headers)
        values (${id.slice(4)}, ${at}, ${n}, 7, ${status}, 'retry', ${error}, ${text},
          ${headers === null ? null : JSON.stringify(headers)}::text::json)`;
    const path = `/api/deliveries/${id}/attempts`;
    const seenBy = async (reader: string) =>
      (await api.call('GET', path, { key: reader })).body.data;
    const common = {
      at: expect.stringMatching(/^2026-01-02T03:04:05/),
      duration_ms: 7,
      result: 'retry',
    };
    const all = answered.map(({ n, status, error, body: text, headers }) => ({
      ...common,
      n,
      status,
      error,
      response_body: text,
      response_headers: headers,
    }));
    const none = { error: null, response_body: null, response_headers: null };
    const least = answered.map(({ n, status }) => ({ ...common, ...none, n, status }));
    const [admin, other] = [await api.keyFor('admin'), await api.keyFor('read')];
    expect(await seenBy(key)).toEqual(all);
    expect(await seenBy(admin)).toEqual(all);
    expect(await seenBy(other)).toEqual(least);
    const [shown, shownToOther] = await Promise.all(
      [key, other].map(async (reader) => {
        const one = await api.call('GET', `/api/deliveries/${id}`, { key: reader });
        return [one.body.failing, one.body.last_error, one.body.endpoint_url];
      }),
    );
    expect([shown, shownToOther]).toEqual([
      [true, 'timeout', url],
      [true, null, new URL(url).origin],
    ]);
    for (const surface of [
      `/api/deliveries/${id}`,
      '/api/deliveries?limit=500',
      '/api/endpoints?limit=500',
      `/api/endpoints/${body.id}/activity`,
      '/api/events?limit=500',
    ])
      expect((await api.call('GET', surface, { key: other })).text).not.toMatch(
        /answer-|"timeout"/,
      );
    await api.call('DELETE', `/api/endpoints/${body.id}`, { key });
    expect([await seenBy(key), await seenBy(admin)]).toEqual([least, all]);
  });

  it('No response and no audit entry has the credentials of a destination or of auth', async () => {
    const secrets = { password: 'hidden-1', client_secret: 'hidden-2' };
    const { password, client_secret } = secrets;
    const servers = ['127.0.0.1:4222'];
    const destination = { kind: 'nats', servers, subject: 'x.{type}', username: 'a', password };
    const broker = await api.call('POST', '/api/endpoints', { body: { destination } });
    expect(broker).toMatchObject({
      status: 201,
      body: { kind: 'nats', url: 'nats://127.0.0.1:4222/x.{type}', auth: [] },
    });
    const oauth2 = { token_url: `${url}/token`, client_id: 'a', client_secret };
    const receiver = await api.call('POST', '/api/endpoints', { body: { url, auth: { oauth2 } } });
    expect(receiver).toMatchObject({ status: 201, body: { kind: 'http', auth: ['oauth2'] } });
    const path = `/api/endpoints/${broker.body.id}`;
    const moved = { ...destination, subject: 'y' };
    const changed = await api.call('PATCH', path, { body: { destination: moved } });
    expect(changed.body).toMatchObject({ url: 'nats://127.0.0.1:4222/y', removed_auth: false });
    const shown = [broker, receiver, changed];
    for (const surface of ['/api/endpoints', path, '/api/audit?limit=10', '/api/events?limit=50'])
      shown.push(await api.call('GET', surface));
    expect(shown.map(({ text }) => text).join()).not.toMatch(/hidden-\d/);
    const other = await api.call('GET', path, { key: await api.keyFor('read') });
    expect(other.body.url).toBe('nats://127.0.0.1:4222');
  });

  it.each([
    ['both a URL and a destination', { url, destination: sqs({}) }, /not both/],
    ['neither a URL nor a destination', {}, /url or destination/],
    ['headers for a destination', { destination: sqs({}), headers: { a: 'b' } }, /HTTP only/],
    ['a queue without a region', { destination: sqs({ region: undefined }) }, /region is missing/],
    ['a private server', { destination: kafka({ servers: ['10.0.0.1:9092'] }) }, /not public/],
    ['no server', { destination: kafka({ servers: ['http://x/'] }) }, /not a server/],
    ['no topic', { destination: kafka({ topic: '../x' }) }, /topic/],
    ['a user without a password', { destination: kafka({ username: 'a' }) }, /together/],
    ['an authority that is none', { destination: kafka({ ca: 'text' }) }, /PEM/],
    ['auth for a destination', { destination: sqs({}), auth: auth({}) }, /HTTP only/],
    ['a private token endpoint', { url, auth: auth({ token_url: 'https://10.0.0.1/' }) }, /public/],
    ['auth of nothing', { url, auth: {} }, /give oauth2, tls or both/],
  ])('An endpoint with %s is refused', async (_, body, detail) => {
    const refused = await api.call('POST', '/api/endpoints', { body });
    expect(refused.body.code).toMatch(/^(invalid_request|url_refused)$/);
    expect(refused.body.detail).toMatch(detail);
  });

  it('The kind of an endpoint does not change', async () => {
    const made = await api.call('POST', '/api/endpoints', { body: { url } });
    const path = `/api/endpoints/${made.body.id}`;
    const refused = await api.call('PATCH', path, { body: { destination: kafka({}) } });
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringMatching(/http/)]);
  });

  it('A change of origin removes the headers and names them, unless they are given', async () => {
    const headers = { 'x-token': 'very secret', 'x-other': 'value' };
    const made = await api.call('POST', '/api/endpoints', { body: { url, headers } });
    const change = async (input: object) => {
      const path = `/api/endpoints/${made.body.id}`;
      const { body } = await api.call('PATCH', path, { body: input });
      return [body.header_names, body.removed_headers];
    };
    const names = Object.keys(headers);
    expect(await change({ url: `${url}/moved` })).toEqual([names, []]);
    expect(await change({ url: 'http://127.0.0.1:4568/', headers })).toEqual([names, []]);
    expect(await change({ url: 'http://127.0.0.1:4569/' })).toEqual([[], names]);
    expect(await change({ headers: { 'x-new': 'value' } })).toEqual([['x-new'], []]);
    expect(await change({ headers: {} })).toEqual([[], []]);
  });

  it('Endpoints that fail, and deliveries that failed for good, are counted as they are listed', async () => {
    const counts = async () => {
      const { body } = await api.call('GET', '/api/status');
      const failing = await api.call('GET', '/api/endpoints?failing=true');
      const exhausted = await api.call('GET', '/api/deliveries?state=exhausted');
      expect(body.webhooks).toEqual({
        endpoints_failing: failing.body.data.length,
        deliveries_exhausted: exhausted.body.data.length,
      });
      return [failing, exhausted].map(({ body: { data } }) => data.map(({ id }) => id));
    };
    expect(await counts()).toEqual([[], []]);
    const made = await api.call('POST', '/api/endpoints', { body: { url } });
    const { id } = made.body;
    await api.call('POST', `/api/endpoints/${id}/test`);
    const { sql } = api.database.owner;
    const [delivery] = await sql<{ id: string }[]>`
      with gone as (
        delete from tallyhook.pending_deliveries where 'ep_' || endpoint_id = ${id} returning *)
      insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, event_type, state,
        attempts, fence, finished_at)
      select id, created_at, endpoint_id, event_id, event_type, 'exhausted', 1, fence, now()
      from gone returning 'dlv_' || id as id`;
    await sql`
      update tallyhook.endpoint_health set consecutive_failures = 1 where endpoint_id = ${id}`;
    expect(await counts()).toEqual([[id], [delivery?.id]]);
    const cancelled = await api.call('POST', `/api/deliveries/${delivery?.id}/cancel`);
    expect([cancelled.status, cancelled.body.state]).toEqual([200, 'cancelled']);
    expect(await counts()).toEqual([[id], []]);
    const again = await api.call('POST', `/api/deliveries/${delivery?.id}/cancel`);
    expect([again.status, again.body.code]).toEqual([409, 'conflict']);
    await sql`update tallyhook.endpoints set state = 'disabled', state_reason = 'requested'
      where id = ${id}`;
    expect((await counts())[0]).toEqual([]);
    await sql`update tallyhook.endpoints set state_reason = 'failing' where id = ${id}`;
    expect((await counts())[0]).toEqual([id]);
    await api.call('DELETE', `/api/endpoints/${id}`);
  });

  it('An endpoint can be tested, disabled, enabled and deleted', async () => {
    const { body } = await api.call('POST', '/api/endpoints', { body: { url } });
    const path = `/api/endpoints/${body.id}`;
    const tested = await api.call('POST', `${path}/test`);
    expect({ status: tested.status, id: tested.body.event_id }).toEqual({
      status: 202,
      id: expect.stringMatching(/^evt_/),
    });
    const listed = await api.call('GET', `/api/deliveries?endpoint_id=${body.id}`);
    expect(listed.body.data).toMatchObject([{ event_id: tested.body.event_id, state: 'pending' }]);
    const delivery = `/api/deliveries/${listed.body.data[0]?.id}`;
    const read = await api.call('GET', delivery);
    expect(read.body.event_type).toBe('endpoint.test');
    expect(JSON.parse(String(read.body.request_body))).toMatchObject({ type: 'endpoint.test' });
    const { body: endpoints } = await api.call('GET', '/api/endpoints?limit=500');
    expect(endpoints.data.at(-1)?.health).toMatchObject({ consecutive_failures: 0 });
    expect((await api.call('GET', `${delivery}/attempts`)).body.data).toEqual([]);
    expect((await api.call('POST', `${delivery}/retry`)).status).toBe(202);
    expect((await api.call('POST', `${path}/disable`)).body.state).toBe('disabled');
    const conflict = await api.call('POST', `${path}/test`);
    expect({ status: conflict.status, code: conflict.body.code }).toEqual({
      status: 409,
      code: 'conflict',
    });
    expect((await api.call('GET', delivery)).body.state).toBe('held');
    const unknown = await api.call('POST', `${path}/enable`, { body: { held: 'forget' } });
    expect(unknown.status).toBe(400);
    const skipped = await api.call('POST', `${path}/enable`, { body: { held: 'skip' } });
    expect(skipped.body.state).toBe('enabled');
    expect((await api.call('POST', `${path}/enable`)).body.state).toBe('enabled');
    expect((await api.call('DELETE', path)).status).toBe(204);
    expect((await api.call('GET', path)).status).toBe(404);
  });

  it.each([
    [{}, 400],
    [{ url: 'not a url' }, 422],
    [{ url: 'http://10.0.0.1/' }, 422],
    [{ url, event_types: ['moon.*'] }, 400],
    [{ url, signing: [] }, 400],
    [{ url, ordering: 'sometimes' }, 400],
    [{ url, headers: { host: 'x' } }, 400],
    [{ url, rate_per_s: 0 }, 400],
    [{ url, colour: 'red' }, 400],
  ])('The input %j is refused with %i', async (body, status) => {
    expect((await api.call('POST', '/api/endpoints', { body })).status).toBe(status);
  });
});

describe('A report', () => {
  const input = {
    kind: 'reconciliation',
    from: '2026-01-01T00:00:00Z',
    to: '2026-02-01T00:00:00Z',
  };

  it('A report is made once and read in every format', async () => {
    const made = await api.call('POST', '/api/reports', { body: input });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ requested_by: 'owner of admin', verdict: 'balanced' });
    const listed = await api.call('GET', '/api/reports');
    expect(listed.body.data).toEqual([made.body]);
    const path = `/api/reports/${made.body.id}`;
    expect((await api.call('GET', path)).body.content).toMatchObject({ verdict: 'balanced' });
    for (const [query, accept, type] of [
      ['?format=csv', '', 'text/csv'],
      ['?format=xlsx', '', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
      ['?format=csv-zip', '', 'application/zip'],
      ['?format=html', 'text/csv', 'text/html'],
      ['?format=hledger', '', 'text/plain'],
      ['', 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8', 'text/html'],
      ['', 'text/csv', 'text/csv'],
      ['', 'image/png', 'application/json'],
    ]) {
      const { headers } = await api.call('GET', `${path}${query}`, {
        headers: { accept: accept ?? '' },
      });
      expect(headers.get('content-type')).toContain(type);
    }
    expect((await api.call('GET', `${path}?format=pdf`)).status).toBe(400);
    const lines = await api.call('GET', `${path}/lines?kind=give&reason_type=`);
    expect(lines.body).toEqual({ data: [], next_cursor: null });
    expect((await api.call('GET', `${path}/lines?cursor=MTI`)).body.code).toBe('invalid_cursor');
    expect((await api.call('GET', `${path}/files`)).body).toEqual({ data: [] });
  });

  it.each([
    [{ ...input, to: input.from }, 400],
    [{ ...input, kind: 'horoscope' }, 400],
    [{ ...input, from: '2026-13-01' }, 400],
    [{ ...input, period: '2026-01' }, 400],
  ])('The input %j is refused with %i', async (body, status) => {
    expect((await api.call('POST', '/api/reports', { body })).status).toBe(status);
  });
});
