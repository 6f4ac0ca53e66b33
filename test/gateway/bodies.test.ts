/** Bodies on their way: large answers, callers that wait for `100 Continue`, and without a key. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectSocket, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { SETTINGS } from '../upstream/rig.ts';
import { BODY, DONE, GIVE, openRig, type Rig } from './gateway-house.ts';

let database: TestDatabase;
let rig: Rig;
beforeAll(async () => {
  database = await createDatabase();
  rig = await openRig(database.db, { bodyBytesMax: 4_096 });
});
beforeEach(() => {
  rig.answer(() => DONE);
  rig.asked.length = 0;
  rig.observed.length = 0;
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const key = () => `authorization: Bearer ${rig.secret}\r\n`;
const open = () => connectSocket(Number(new URL(rig.url).port), '127.0.0.1');
/** What came until the text is in it, or until the end. */
async function until(socket: Socket, text: string): Promise<string> {
  let told = '';
  socket.setEncoding('latin1');
  while (!told.includes(text)) {
    const [chunk] = await Promise.race([once(socket, 'data'), once(socket, 'end').then(() => [])]);
    if (chunk === undefined) return told;
    told += String(chunk);
  }
  return told;
}

describe('A large answer', () => {
  const LARGE = Buffer.alloc(SETTINGS.bodyBytesMax * 3, 'a');

  it.each(['/v1/chain/erc721/1/tokens', '/v1/oauth/authorize?x=1'])(
    'Of a read comes whole, and is no look: %s',
    async (path) => {
      const headers: [string, string][] = [
        ['content-type', 'a/b'],
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
        ['x-internal', 'no'],
      ];
      rig.answer(() => ({ status: 206, headers, body: LARGE }));
      const told = await rig.call('GET', path);
      expect(told.status).toBe(206);
      expect(told.bytes.equals(LARGE)).toBe(true);
      expect(told.headers).toMatchObject({ 'content-type': 'a/b', 'set-cookie': ['a=1', 'b=2'] });
      expect(told.headers['x-internal']).toBeUndefined();
      expect(rig.observed).toEqual([]);
    },
  );

  test('Of a read does not keep the gateway, when its caller leaves', async () => {
    rig.answer(() => ({ status: 200, body: LARGE }));
    const socket = open();
    socket.write(`GET /v1/chain/erc721/1/tokens HTTP/1.1\r\nhost: x\r\n${key()}\r\n`);
    await until(socket, 'HTTP/1.1 200');
    socket.destroy();
    rig.answer(() => DONE);
    expect(await rig.call('POST', GIVE, { body: BODY })).toMatchObject({ status: 200 });
  });

  test('Of a write is an unknown outcome: it was not read to its end', async () => {
    rig.answer(() => ({ status: 200, body: LARGE }));
    const told = await rig.call('POST', GIVE, { body: BODY });
    expect(told).toMatchObject({ status: 504, json: { code: 'outcome_unknown' } });
  });
});

describe('A caller that waits for 100 Continue', () => {
  const head = (more: string, length = BODY.length) => {
    const lines = [`content-length: ${length}`, 'expect: 100-continue'].join('\r\n');
    return `POST ${GIVE} HTTP/1.1\r\nhost: x\r\n${more}${lines}\r\n\r\n`;
  };

  test('Is told to go on once its key is known', async () => {
    const socket = open();
    socket.write(head(key()));
    expect(await until(socket, '\r\n\r\n')).toMatch(/^HTTP\/1\.1 100 /);
    socket.write(BODY);
    expect(await until(socket, 'tx_log_no')).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
    expect(rig.asked[0]?.body.toString()).toBe(BODY);
    expect(rig.asked[0]?.headers.expect).toBeUndefined();
  });

  it.each([
    ['without a key', () => head(''), 406],
    ['with a body that is too large', () => head(key(), 5_000), 413],
    ['with a key of its own that is none', () => head(`${key()}idempotency-key: \r\n`), 400],
  ])('Is refused before its body %s', async (_what, text, status) => {
    const socket = open();
    socket.write(text());
    const told = (await socket.toArray()).join('');
    expect(told).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(told).not.toContain('100 Continue');
    expect(rig.asked).toEqual([]);
  });
});

describe('A body', () => {
  test('Of a caller without a key is not read, however long it is', async () => {
    const socket = open();
    socket.write(
      `POST ${GIVE} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n`,
    );
    const told = (await socket.toArray()).join('');
    expect(told).toMatch(/^HTTP\/1\.1 406 /);
    expect(told).toMatch(/connection: close/i);
  });

  test('Of a caller without a key is dropped when it is short, and the connection goes on', async () => {
    const socket = open();
    const post = `POST ${GIVE} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n`;
    socket.write(post);
    expect(await until(socket, '}}')).toMatch(/^HTTP\/1\.1 406 /);
    socket.write(`abcde${post}abcde`);
    expect(await until(socket, '}}')).toMatch(/^HTTP\/1\.1 406 /);
    socket.destroy();
  });

  test('In chunks reaches the service whole, and none of the connection goes along', async () => {
    const pieces = ['{"toAddr":"', 'x'.repeat(42), '","amount":1,', '"reasonType":"r"}'];
    const socket = open();
    const more = 'te: trailers\r\nkeep-alive: 300\r\nconnection: te\r\n';
    socket.write(
      `POST ${GIVE} HTTP/1.1\r\nhost: x\r\n${key()}${more}transfer-encoding: chunked\r\n\r\n`,
    );
    for (const piece of [...pieces, ''])
      socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
    expect(await until(socket, 'tx_log_no')).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
    expect(rig.asked[0]?.body.toString()).toBe(pieces.join(''));
    const { te, 'keep-alive': kept, 'transfer-encoding': sent } = rig.asked[0]?.headers ?? {};
    expect([te, kept, sent]).toEqual([undefined, undefined, undefined]);
  });

  test('With an address of any length reaches the service, which judges it', async () => {
    const toAddr = randomBytes(1_500).toString('hex');
    const body = JSON.stringify({ toAddr, amount: 1, reasonType: 'r' });
    expect(await rig.call('POST', GIVE, { body })).toMatchObject({ status: 200 });
    expect(rig.asked[0]?.body.toString()).toBe(body);
  });

  test('That is encoded is sent on with the word that says how', async () => {
    const headers = { authorization: `Bearer ${rig.secret}`, 'content-encoding': 'gzip' };
    await rig.call('POST', GIVE, { headers, body: Buffer.from([31, 139, 8]) });
    expect(rig.asked[0]?.headers['content-encoding']).toBe('gzip');
  });
});
