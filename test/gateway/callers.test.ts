/** Who gets in, how much a body may hold, and how many may be under way. */
import { connect as connectSocket } from 'node:net';
import { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { connect } from '../../src/db/connect.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { BODY, DONE, GIVE, openRig, type Reply, type Rig } from './gateway-house.ts';

const LIMIT = 4_096;
let database: TestDatabase;
let rig: Rig;
const opened: Rig[] = [];
beforeAll(async () => {
  database = await createDatabase();
  rig = await openRig(database.db, { bodyBytesMax: LIMIT });
  opened.push(rig);
});
beforeEach(() => {
  rig.answer(() => DONE);
  rig.asked.length = 0;
});
afterAll(async () => {
  for (const one of opened) await one.close();
  await database.drop();
});

const UNKNOWN_KEY = `thk_${'x'.repeat(43)}`;
const TRANSACTION_401 = { status: '406', error: { code: '401', message: expect.any(String) } };
const NFT_401 = {
  status: 401,
  error: [{ message: expect.any(String), field: 'Authorization', validation: 'required' }],
};

describe('A caller', () => {
  it.each([
    ['GET', '/v1/app/token/account', 406, TRANSACTION_401],
    ['POST', GIVE, 406, TRANSACTION_401],
    ['POST', '/v1/chain/erc721/1/mint', 200, NFT_401],
    ['GET', '/v1/chain/erc721/1/tokens', 200, NFT_401],
    ['POST', '/v1/anything', 200, NFT_401],
  ])("Without a key gets the service's own 401: %s %s", async (method, path, status, json) => {
    const wrong: Record<string, string>[] = [
      {},
      { authorization: 'Bearer of-the-service' },
      { authorization: `Bearer ${UNKNOWN_KEY}` },
      { authorization: `Basic ${rig.secret}` },
      { 'tallyhook-key': UNKNOWN_KEY },
      { 'tallyhook-key': 'x', authorization: 'Bearer of-the-service' },
    ];
    for (const headers of wrong) {
      const answered = await rig.call(method, path, { headers });
      expect([answered.status, answered.json]).toEqual([status, json]);
      expect(answered.headers['content-type']).toBe('application/json');
    }
    expect(rig.asked).toEqual([]);
  });

  test('Does not get our token out of an answer that repeats what was sent', async () => {
    rig.answer(({ headers }) => ({ status: 200, body: JSON.stringify(headers) }));
    const answered = await rig.call('TRACE', '/v1/anything');
    expect(answered).toMatchObject({ status: 405, json: { code: 'method_not_allowed' } });
    expect(rig.asked).toEqual([]);
  });

  test('With a key as its token uses the managed token; with its own beside it, that', async () => {
    const ways: [Record<string, string>, string][] = [
      [{ authorization: `Bearer ${rig.secret}` }, 'Bearer managed'],
      [{ authorization: `bearer  ${rig.secret}` }, 'Bearer managed'],
      [{ 'tallyhook-key': rig.secret }, 'Bearer managed'],
      [{ 'tallyhook-key': rig.secret, authorization: 'Bearer mine' }, 'Bearer mine'],
    ];
    for (const [headers, sent] of ways) {
      await rig.call('GET', '/v1/app/token/account', { headers });
      await rig.call('POST', GIVE, { headers, body: BODY });
      expect(rig.asked.slice(-2).map((asked) => asked.headers.authorization)).toEqual([sent, sent]);
      expect(JSON.stringify(rig.asked.map((asked) => asked.headers))).not.toContain('thk_');
    }
  });

  test('Without the scope gateway is told so, and nothing is sent', async () => {
    const given = { name: 'reader', owner: 'team', scopes: ['read', 'manage'] as const };
    const { secret } = await rig.keys.create(given);
    const headers = { authorization: `Bearer ${secret}` };
    for (const [method, path] of [
      ['GET', '/v1/app/token/account'],
      ['POST', GIVE],
    ] as const) {
      const answered = await rig.call(method, path, { headers });
      expect(answered).toMatchObject({ status: 403, json: { code: 'forbidden' } });
    }
    expect(rig.asked).toEqual([]);
  });

  test('Needs no key for authorization and maintenance, and a key of ours stays here', async () => {
    for (const authorization of [undefined, 'Basic abc', 'Bearer user', `Bearer ${rig.secret}`]) {
      const headers: Record<string, string> = authorization ? { authorization } : {};
      await rig.call('GET', '/v1/system/maintenance', { headers });
    }
    expect(rig.asked.map((asked) => asked.headers.authorization)).toEqual([
      undefined,
      'Basic abc',
      'Bearer user',
      undefined,
    ]);
  });

  test('Hears 503 while the database is away, and the log shows nothing of its key', async () => {
    const keysDb = connect({ url: 'postgres://postgres@127.0.0.1:1/none', max: 1 });
    const dark = await openRig(database.db, { keysDb });
    opened.push(dark);
    const headers = { authorization: `Bearer ${UNKNOWN_KEY}` };
    const answered = await dark.call('GET', '/v1/app/token/account', { headers });
    expect(answered).toMatchObject({ status: 503, json: { code: 'database_unavailable' } });
    expect(dark.logged()).not.toMatch(/xxxx|Failed query/);
    await keysDb.end(0);
  });
});

describe('A body', () => {
  const authorization = () => ({ authorization: `Bearer ${rig.secret}` });

  test('Of exactly the limit goes through', async () => {
    const body = Buffer.alloc(LIMIT, 0x20);
    await rig.call('POST', GIVE, { headers: authorization(), body });
    expect(rig.asked[0]?.body).toEqual(body);
  });

  it.each([
    ['declared', 1],
    ['declared', LIMIT * 6],
    ['in pieces', 1],
    ['in pieces', LIMIT * 6],
  ])(
    'That is too large, %s, by %i bytes is refused, and the connection goes on',
    async (how, by) => {
      const agent = new Agent({ connections: 1, pipelining: 1 });
      const pieces = function* () {
        for (let left = LIMIT + by; left > 0; left -= 1_000)
          yield Buffer.alloc(Math.min(left, 1_000));
      };
      const body = how === 'declared' ? Buffer.alloc(LIMIT + by) : Readable.from(pieces());
      const options = { dispatcher: agent, headers: authorization() };
      const first = await request(`${rig.url}${GIVE}`, { ...options, method: 'POST', body });
      expect([first.statusCode, await first.body.json()]).toMatchObject([
        413,
        { code: 'body_too_large', status: 413 },
      ]);
      expect(first.headers.connection).toBe('keep-alive');
      const next = await request(`${rig.url}/v1/app/token/account`, options);
      await next.body.dump();
      expect(next.statusCode).toBe(200);
      await agent.close();
      expect(rig.asked.map(({ method }) => method)).toEqual(['GET']);
    },
  );

  test('Announced beyond all measure is refused unread, and the connection ends', async () => {
    const socket = connectSocket(Number(new URL(rig.url).port), '127.0.0.1');
    const key = `authorization: Bearer ${rig.secret}`;
    socket.write(`POST ${GIVE} HTTP/1.1\r\nhost: x\r\n${key}\r\ncontent-length: 999999999\r\n\r\n`);
    const told = (await socket.toArray()).join('');
    expect(told).toMatch(/^HTTP\/1\.1 413 /);
    expect(told).toMatch(/connection: close/i);
  });

  test('That was cut off is neither recorded nor sent', async () => {
    const before = await count();
    const socket = connectSocket(Number(new URL(rig.url).port), '127.0.0.1');
    const key = `authorization: Bearer ${rig.secret}`;
    socket.end(`POST ${GIVE} HTTP/1.1\r\nhost: x\r\n${key}\r\ncontent-length: 99\r\n\r\n{"am`);
    await socket.toArray().catch(() => []);
    expect(await rig.call('POST', GIVE, { body: BODY })).toMatchObject({ status: 200 });
    expect([await count(), rig.asked.length]).toEqual([before + 1, 1]);
  });

  const count = async () => {
    const rows = await database.owner.sql<{ n: number }[]>`
      select count(*)::int as n from tallyhook.operations`;
    return rows[0]?.n ?? 0;
  };
});

describe('Requests under way', () => {
  /** A service that answers when it is told to. */
  function held() {
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const answer = async (): Promise<Reply> => {
      await opened;
      return DONE;
    };
    return { open: () => open(), answer };
  }

  test('Beyond the bound are refused with 429', async () => {
    const small = await openRig(database.db, { concurrencyMax: 2 });
    opened.push(small);
    const { open, answer } = held();
    small.answer(answer);
    const two = [1, 2].map(() => small.call('POST', GIVE, { body: BODY }));
    await expect.poll(() => small.asked.length).toBe(2);
    const third = await small.call('POST', GIVE, { body: BODY });
    expect(third).toMatchObject({ status: 429, json: { code: 'too_many_requests' } });
    open();
    expect((await Promise.all(two)).map(({ status }) => status)).toEqual([200, 200]);
    expect(await small.call('POST', GIVE, { body: BODY })).toMatchObject({ status: 200 });
  });

  test('Are answered before a drain ends, and new ones are refused meanwhile', async () => {
    const leaving = await openRig(database.db);
    opened.push(leaving);
    const { open, answer } = held();
    leaving.answer(answer);
    const first = leaving.call('POST', GIVE, { body: BODY });
    await expect.poll(() => leaving.asked.length).toBe(1);
    let drained = false;
    const drain = leaving.gateway.drain().then(() => {
      drained = true;
    });
    const second = await leaving.call('POST', GIVE, { body: BODY });
    expect(second).toMatchObject({ status: 503, json: { code: 'shutting_down' } });
    expect(drained).toBe(false);
    open();
    expect((await first).status).toBe(200);
    await drain;
    expect(leaving.asked).toHaveLength(1);
  });
});
