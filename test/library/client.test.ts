/** The typed client against a daemon: writes through the gateway, and the API. */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { makeClient } from '../../library/client/client.ts';
import { GATEWAY_PATHS } from '../../src/resources/operations/gateway.ts';
import { ADMIN_KEY, CLIENT } from '../harness/daemon.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { useRig } from '../harness/rig.ts';
import { headOf, SCHEMA } from './make-client.ts';

const rig = useRig();
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const clientOf = (url = rig.daemon.url, more: { timeoutMs?: number } = {}) =>
  makeClient({ url, key: ADMIN_KEY, ...more });

it('The types of the client are those of the document as it is', async () => {
  const [head] = (await readFile(SCHEMA, 'utf8')).split('\n');
  expect(head).toBe(headOf());
});

it('A body is sent in the form in which the document says that the service reads it', async () => {
  const sent: unknown[] = [];
  const fetch = async (request: Request) => {
    sent.push([new URL(request.url).pathname, request.headers.get('content-type')]);
    return Response.json({});
  };
  const client = makeClient({ url: 'http://127.0.0.1:1', key: ADMIN_KEY, fetch });
  const written = GATEWAY_PATHS.filter(({ body }) => body);
  // Of any path, so without the types that each has.
  const send = client.request as (...args: unknown[]) => Promise<unknown>;
  for (const { method, path } of written) await send(method, path, { body: { amount: 1 } });
  const types = { form: 'application/x-www-form-urlencoded', json: 'application/json' };
  expect(sent).toEqual(
    written.map(({ path, body }) => [encodeURI(path), types[body?.type ?? 'json']]),
  );
});

it('A form has no member of null and of undefined, and an object in one is not sent', async () => {
  const sent: string[] = [];
  const fetch = async (request: Request) => {
    sent.push(await request.text());
    return Response.json({});
  };
  const { request } = makeClient({ url: 'http://127.0.0.1:1', key: ADMIN_KEY, fetch });
  // Of members that no path has, so without the types that each has.
  const send = (body: object) =>
    (request as (...args: unknown[]) => Promise<unknown>)('post', '/v1/oauth/token', { body });
  await send({ grant_type: 'password', scope: null, username: undefined, count: 0, flag: false });
  expect(sent).toEqual(['grant_type=password&count=0&flag=false']);
  for (const extraData of [{ level: 1 }, [1]])
    await expect(send({ extraData })).rejects.toThrow(/^extraData: a member of a form is a text/);
  expect(sent).toHaveLength(1);
});

describe('A client', () => {
  it('A write of a typed client is recorded, and sent once for its idempotency key', async () => {
    const client = clientOf();
    const { ada: toAddr } = rig.world;
    const give = () =>
      client.POST('/v1/app/token/operations/{operationNo}/give', {
        params: { path: { operationNo: 1 }, header: { 'Idempotency-Key': 'order-17' } },
        body: { toAddr, amount: 3_217, reasonType: 'reward' },
      });
    const { data, error, response } = await give();
    if (!data || !('data' in data)) throw new Error(`refused: ${JSON.stringify(data ?? error)}`);
    expect(data.data.tx_log_no).toBeGreaterThan(0);
    const again = await give();
    expect(again.data).toEqual(data);
    expect(again.response.headers.get('idempotency-replayed')).toBe('true');
    expect(rig.effects(3_217)).toHaveLength(1);

    const id = response.headers.get('tallyhook-operation') ?? '';
    const read = await client.GET('/api/operations/{id}', { params: { path: { id } } });
    expect(read.data).toMatchObject({ id, amount: '3217', tx_log_no: String(data.data.tx_log_no) });
    const found = await client.GET('/api/operations', {
      params: { query: { idempotency_key: 'order-17' } },
    });
    expect(found.data?.data.map((one) => one.id)).toEqual([id]);
  });

  it('The body of a typed write that the service reads as a form is sent as one', async () => {
    const contractId = Number(rig.world.sandbox.control.state().contracts[0]?.contract_id);
    const { data } = await clientOf().POST('/v1/chain/erc721/{contractId}/mint', {
      params: { path: { contractId } },
      body: { toAddr: rig.world.ada, tokenId: 91_001, tokenURI: 'https://example.com/a b&c' },
    });
    expect(data).toMatchObject({ status: 200, data: { tx_hash: expect.stringMatching(/^0x/) } });
    const { data: read } = await clientOf().GET('/v1/chain/erc721/{contractId}/tokens/{tokenId}', {
      params: { path: { contractId, tokenId: 91_001 } },
    });
    expect(read).toMatchObject({ data: { token_uri: 'https://example.com/a b&c' } });
  });

  it('A refusal of the service and a problem of the daemon are told apart by their types', async () => {
    const client = clientOf();
    const refused = await client.POST('/v1/app/token/accounts/transfer', {
      body: {
        fromAddr: rig.world.ada,
        toAddr: rig.world.ben,
        amount: 0,
        feeAmount: 0,
        reasonType: 'none',
      },
    });
    const { error = refused.data } = refused;
    if (!error || !('error' in error) || typeof error.error !== 'object')
      throw new Error(`it was not refused: ${JSON.stringify(error)}`);
    expect(error.error).toMatchObject({ code: '299' });
    const unknown = await client.GET('/api/operations/{id}', { params: { path: { id: 'op_1' } } });
    expect([unknown.response.status, unknown.error?.code]).toEqual([404, 'not_found']);
  });

  it('Beside a token of your own the key has a header of its own', async () => {
    const client = clientOf();
    const basic = Buffer.from(`${CLIENT.clientId}:${CLIENT.clientSecret}`).toString('base64');
    const { data: token } = await client.POST('/v1/oauth/token', {
      body: { grant_type: 'client_credentials' },
      headers: { authorization: `Basic ${basic}` },
    });
    if (!token || !('access_token' in token)) throw new Error('there is no token');
    const { data } = await client.GET('/v1/app/token/account', {
      params: { query: { addr: rig.world.ada } },
      headers: { authorization: `Bearer ${token.access_token}` },
    });
    expect(data).toMatchObject({ data: { token_addr: rig.world.ada } });
  });
});

describe('A client is bounded', () => {
  /** A server that answers with what is given, or never. */
  async function serve(answer?: { status: number; location: string }) {
    const seen: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization);
      if (answer) response.writeHead(answer.status, { location: answer.location }).end();
    });
    closing.push(() => closeServer(server));
    return { url: `http://127.0.0.1:${await listen(server)}`, seen };
  }

  it('A request without an answer ends at its deadline', async () => {
    const { url } = await serve();
    const asked = clientOf(url, { timeoutMs: 50 }).GET('/api/status');
    await expect(asked).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('A redirect is not followed, so that the key goes nowhere else', async () => {
    const other = await serve();
    const { url } = await serve({ status: 307, location: `${other.url}/api/status` });
    await expect(clientOf(url).GET('/api/status')).rejects.toThrow();
    expect(other.seen).toEqual([]);
  });

  const INEXACT = [2 ** 53 + 2, -(2 ** 53), Number.NaN, Number.POSITIVE_INFINITY];

  it.each(INEXACT)('The amount %d, which is not exact, is not sent', async (amount) => {
    const { url, seen } = await serve({ status: 200, location: '' });
    const asked = clientOf(url).POST('/v1/app/token/operations/{operationNo}/give', {
      params: { path: { operationNo: 1 } },
      body: { toAddr: rig.world.ada, amount, reasonType: 'reward' },
    });
    await expect(asked).rejects.toThrow(`amount: ${amount} is no number that JavaScript holds`);
    expect(seen).toEqual([]);
  });

  it.each(INEXACT)('The parameter %d, which is not exact, is not sent', async (number) => {
    const { url, seen } = await serve({ status: 200, location: '' });
    const client = clientOf(url);
    const path = client.GET('/v1/chain/erc721/{contractId}/tokens/{tokenId}', {
      params: { path: { contractId: 1, tokenId: number } },
    });
    await expect(path).rejects.toThrow(`tokenId: ${number} is no number that JavaScript holds`);
    const query = client.GET('/api/operations', { params: { query: { limit: number } } });
    await expect(query).rejects.toThrow(`limit: ${number} is no number that JavaScript holds`);
    expect(seen).toEqual([]);
  });

  it.each([
    ['no key', { key: undefined }],
    ['a signing secret as its key', { key: 'whsec_x' }],
    ['an address that is none', { url: '127.0.0.1:8080' }],
    ['an endless deadline', { timeoutMs: Number.POSITIVE_INFINITY }],
  ])('A client with %s is not made', (_what, wrong) => {
    expect(() => makeClient({ url: rig.daemon.url, key: ADMIN_KEY, ...wrong })).toThrow();
  });
});
