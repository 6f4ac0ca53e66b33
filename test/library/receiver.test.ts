/** A receiver of the library: keys, duplicates, order, and its adapters on real HTTP. */
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type Handler,
  makeReceiver,
  memoryOrder,
  memorySeen,
  type ReceiverOptions,
  type TallyhookEvent,
  type WebhookError,
} from '../../library/receive/receive.ts';
import {
  makeKey,
  parseKey,
  publicKeyOf,
  signedHeaders,
} from '../../src/webhooks/endpoints/signing.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { startReceiver } from '../harness/receiver.ts';
import { seededRandom } from '../harness/seeded-random.ts';

const random = seededRandom(5);
const NOW = Date.UTC(2026, 0, 31);
const { secret } = makeKey('v1', NOW, random);
const asymmetric = makeKey('v1a', NOW, random).secret;
const ADDR = `0x${'a'.repeat(40)}`;

/** A signed webhook of a wallet's event. */
function message(seq = 1, keys = [secret], own: { id?: string; body?: string | Buffer } = {}) {
  const { id = `evt_${seq}`, body = bodyOf(id, seq) } = own;
  const timestamp = NOW / 1_000;
  const bytes = Buffer.from(body);
  return {
    headers: signedHeaders({ id, timestamp, body: bytes }, keys.map(parseKey)),
    body: bytes,
  };
}

function bodyOf(id: string, subject_seq: number): string {
  const data = { addr: ADDR, current: { balance: '5', status: 1 }, subject_seq };
  return JSON.stringify({ id, type: 'wallet.observed', timestamp: '2026-01-31T00:00:00Z', data });
}

const receiverOf = (options: Partial<ReceiverOptions> = {}) =>
  makeReceiver({ keys: secret, now: () => NOW, ...options });

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Collects the numbers of what is handled. */
function collect() {
  const seen: number[] = [];
  const handler: Handler = (event: TallyhookEvent) => seen.push(event.data.subject_seq);
  return { seen, handler };
}

describe('A key', () => {
  it.each([[undefined], [''], [[]], [[undefined]], ['whsec_'], [[secret, '']]])(
    'A receiver with the keys %j is not made',
    (keys) => {
      expect(() => makeReceiver({ keys } as ReceiverOptions)).toThrow(
        expect.objectContaining({ code: 'bad_key' }),
      );
    },
  );

  it('The message of a refused key holds nothing of it', () => {
    for (const keys of ['whsk_c2VjcmV0c2VjcmV0', 'whsec_c2VjcmV0', 'c2VjcmV0'])
      expect(() => makeReceiver({ keys })).toThrow(/^(?!.*c2VjcmV0)the key cannot verify/);
  });
});

describe('The answer', () => {
  it('An event is handled once, also when two deliveries of it arrive at once', async () => {
    const receiver = receiverOf();
    let release = () => {};
    const handled: string[] = [];
    const slow: Handler = async ({ id }) => {
      handled.push(id);
      await new Promise<void>((resolve) => {
        release = resolve;
      });
    };
    const first = receiver.receive(message(), slow);
    const second = await receiver.receive(message(), slow);
    expect(second).toMatchObject({ status: 409, result: 'in_progress' });
    release();
    expect(await first).toEqual({ status: 204, result: 'handled' });
    expect(await receiver.receive(message(), slow)).toEqual({ status: 204, result: 'duplicate' });
    expect(handled).toEqual(['evt_1']);
  });

  it('An event whose handler failed is handled at its next delivery', async () => {
    const refused: WebhookError[] = [];
    const receiver = receiverOf({ onRefused: (error) => refused.push(error) });
    const cause = new Error('the database is away');
    const failing = await receiver.receive(message(), () => Promise.reject(cause));
    expect(failing).toMatchObject({ status: 500, result: 'handler_failed' });
    expect(failing.reason).not.toContain('database');
    expect(refused.map((error) => error.cause)).toEqual([cause]);
    const { handler, seen } = collect();
    expect((await receiver.receive(message(), handler)).result).toBe('handled');
    expect(seen).toEqual([1]);
  });

  it('What a store or a log throws is a refusal, and never thrown', async () => {
    const broken = () => {
      throw new Error('no connection');
    };
    const seen = { ...memorySeen(), claim: broken };
    const receiver = receiverOf({ seen, onRefused: broken });
    const answer = await receiver.receive(message(), () => {});
    expect(answer).toMatchObject({ status: 500, result: 'store_failed' });
  });

  it.each([
    ['no JSON', '{', 'evt_1'],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'evt_1'],
    ['no object', 'null', 'evt_1'],
    ['no number of its subject', '{"id":"evt_1","type":"a.b","timestamp":"","data":{}}', 'evt_1'],
    ['another id', bodyOf('evt_2', 1), 'evt_1'],
  ])('A signed body with %s is refused as bad_event', async (_what, body, id) => {
    const answer = await receiverOf().receive(message(1, [secret], { id, body }), () => {});
    expect(answer).toMatchObject({ status: 400, result: 'bad_event' });
  });

  it('Handlers by type get their events, and events of other types are taken', async () => {
    const receiver = receiverOf();
    const balances: string[] = [];
    const handler: Handler = {
      'wallet.observed': ({ data }) => balances.push(data.current.balance),
    };
    expect((await receiver.receive(message(), handler)).result).toBe('handled');
    expect((await receiver.receive(message(2), {})).status).toBe(204);
    expect(balances).toEqual(['5']);
  });

  it('The memory of duplicates keeps the newest ids and no more', () => {
    const seen = memorySeen(2);
    for (const id of ['a', 'b', 'c']) {
      expect(seen.claim(id)).toBe('new');
      seen.done(id);
    }
    expect(['c', 'b', 'a'].map((id) => seen.claim(id))).toEqual(['done', 'done', 'new']);
  });
});

describe('The order', () => {
  it('A handler is told of gaps and of stale events', async () => {
    const receiver = receiverOf();
    const orders: unknown[] = [];
    for (const seq of [3, 4, 7, 5])
      await receiver.receive(message(seq), (_event, { order }) => orders.push(order));
    expect(orders).toEqual([
      { kind: 'next', seq: 3 },
      { kind: 'next', seq: 4 },
      { kind: 'gap', seq: 7, missing: 2 },
      { kind: 'stale', seq: 5, newest: 7 },
    ]);
  });

  it('With onlyNewer a stale event is taken and not handled', async () => {
    const receiver = receiverOf({ onlyNewer: true });
    const { handler, seen } = collect();
    const results: string[] = [];
    for (const seq of [2, 5, 4])
      results.push((await receiver.receive(message(seq), handler)).result);
    expect(results).toEqual(['handled', 'handled', 'stale']);
    expect(seen).toEqual([2, 5]);
  });

  it('A newer event does not overtake one of its subject that is still being handled', async () => {
    const receiver = receiverOf({ onlyNewer: true });
    const steps: string[] = [];
    let release = () => {};
    const first = receiver.receive(message(1), async () => {
      steps.push('1 begins');
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      steps.push('1 ends');
    });
    await expect.poll(() => steps).toEqual(['1 begins']);
    const second = receiver.receive(message(2), () => steps.push('2'));
    release();
    await Promise.all([first, second]);
    expect(steps).toEqual(['1 begins', '1 ends', '2']);
  });

  it('The memory of the order keeps the subjects last heard of and no more', () => {
    const order = memoryOrder(2);
    for (const [subject, seq] of [
      ['a', 1],
      ['b', 9],
      ['a', 2],
      ['c', 1],
    ] as const)
      order.handled(subject, seq);
    expect(['a', 'b', 'c'].map((subject) => order.newest(subject))).toEqual([2, undefined, 1]);
  });
});

describe('Published keys', () => {
  const newer = makeKey('v1a', NOW, random).secret;
  const ENDPOINT = 'ep_mine';

  /** A daemon that publishes these keys. */
  async function publish(keys: { endpoint_id: string; public_key: string }[]) {
    const daemon = await startReceiver();
    closing.push(() => daemon.close());
    const show = (shown: object[]) =>
      daemon.behave({ do: 'answer', status: 200, body: JSON.stringify({ keys: shown }) });
    show(keys);
    // A day and a minute are within the tolerance from here.
    let now = NOW - 60_000;
    const published = { url: `${daemon.url}/base`, endpoint: ENDPOINT, timeoutMs: 2_000 };
    const toleranceS = 86_400;
    const receiver = makeReceiver({ published, toleranceS, now: () => now, seen: false });
    const take = async (key: string) =>
      (await receiver.receive(message(1, [key]), () => {})).result;
    return { daemon, show, take, pass: (ms: number) => (now += ms) };
  }
  const shown = (key: string, endpoint_id = ENDPOINT) => [
    { endpoint_id, public_key: publicKeyOf(key) },
  ];

  it('Published keys are fetched once, and again at most once a minute for an unknown key', async () => {
    const { daemon, show, take, pass } = await publish(shown(asymmetric));
    expect([await take(asymmetric), await take(asymmetric)]).toEqual(['handled', 'handled']);
    expect(daemon.requests.map(({ path }) => path)).toEqual(['/base/.well-known/webhook-keys']);
    show(shown(newer));
    expect(await take(newer)).toBe('bad_signature');
    expect(daemon.requests).toHaveLength(1);
    pass(60_000);
    expect([await take(newer), await take(asymmetric)]).toEqual(['handled', 'bad_signature']);
    expect(daemon.requests).toHaveLength(2);
  });

  it('The key of another endpoint does not count', async () => {
    const { take } = await publish(shown(asymmetric, 'ep_other'));
    expect(await take(asymmetric)).toBe('keys_unavailable');
  });

  it('Known keys outlive a daemon that is away, and forgeries make no requests', async () => {
    const { daemon, take, pass } = await publish(shown(asymmetric));
    expect(await take(asymmetric)).toBe('handled');
    daemon.answer(503);
    pass(60_000);
    const results = await Promise.all(Array.from({ length: 20 }, () => take(newer)));
    expect(new Set(results)).toEqual(new Set(['bad_signature']));
    expect(daemon.requests).toHaveLength(2);
    expect(await take(asymmetric)).toBe('handled');
  });

  it('A delivery that a known key verifies does not wait for a request that a forgery caused', async () => {
    const { daemon, take, pass } = await publish(shown(asymmetric));
    expect(await take(asymmetric)).toBe('handled');
    daemon.behave({ do: 'hang' });
    pass(60_000);
    const results: string[] = [];
    const forged = take(newer).then((result) => results.push(result));
    await daemon.count(2);
    results.push(await take(asymmetric));
    daemon.release(503);
    await forged;
    expect(results).toEqual(['handled', 'bad_signature']);
  });

  it('A delivery that a known key verifies does not wait for the request of each hour', async () => {
    const { daemon, show, take, pass } = await publish(shown(asymmetric));
    expect(await take(asymmetric)).toBe('handled');
    daemon.behave({ do: 'hang' });
    pass(3_600_000);
    expect([await take(asymmetric), await take(asymmetric)]).toEqual(['handled', 'handled']);
    await daemon.count(2);
    daemon.release(503);
    show(shown(newer));
    pass(60_000);
    expect(await take(asymmetric)).toBe('handled');
    await expect.poll(() => take(asymmetric)).toBe('bad_signature');
    expect(daemon.requests).toHaveLength(3);
  });

  it('Known keys end after a day without an answer of the daemon', async () => {
    const { daemon, show, take, pass } = await publish(shown(asymmetric));
    expect(await take(asymmetric)).toBe('handled');
    daemon.answer(503);
    pass(86_400_000 - 1);
    expect(await take(asymmetric)).toBe('handled');
    pass(1);
    expect(await take(asymmetric)).toBe('keys_unavailable');
    show(shown(newer));
    expect(await take(asymmetric)).toBe('keys_unavailable');
    pass(1_000);
    expect([await take(asymmetric), await take(newer)]).toEqual(['bad_signature', 'handled']);
  });

  it.each([
    ['does not answer', { do: 'hang' }],
    ['redirects', { do: 'answer', status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
    ['sends bytes without end', { do: 'flood', status: 200 }],
    ['answers no JSON', { do: 'answer', status: 200, body: '<html>' }],
  ] as const)('A daemon that %s leaves keys_unavailable, a 503', async (_what, behaviour) => {
    const { daemon, take } = await publish([]);
    daemon.behave(behaviour);
    expect(await take(asymmetric)).toBe('keys_unavailable');
  });
});

describe('An adapter', () => {
  const {
    node,
    hono,
    fetch: fetched,
  } = receiverOf({ seen: false, bodyBytesMax: 2_000, bodyTimeoutMs: 300 });
  const handler: Handler = () => {};
  async function open(kind: string): Promise<string> {
    if (kind === 'node') {
      const server = createServer(node(handler));
      closing.push(() => closeServer(server));
      return `http://127.0.0.1:${await listen(server)}/`;
    }
    const app = new Hono();
    if (kind === 'hono') app.all('/', hono(handler));
    else app.all('/', (c) => fetched(handler)(c.req.raw));
    const url = await new Promise<string>((resolve) => {
      const server = serve(
        {
          // Tests of other files share the globals.
          overrideGlobalObjects: false,
          fetch: app.fetch,
          hostname: '127.0.0.1',
          port: 0,
        },
        ({ port }) => resolve(`http://127.0.0.1:${port}/`),
      );
      closing.push(() => new Promise((done) => server.close(done)));
    });
    return url;
  }
  const KINDS = ['node', 'hono', 'fetch'];

  it.each(KINDS)('%s answers 204, and each refusal with its status and reason', async (kind) => {
    const url = await open(kind);
    const { headers, body } = message();
    const send = async (init: RequestInit) => {
      const answer = await fetch(url, { method: 'POST', headers, body, ...init });
      await answer.text();
      return answer.status;
    };
    expect(await send({})).toBe(204);
    expect(await send({ body: `${body} ` })).toBe(401);
    expect(await send({ headers: { ...headers, 'webhook-timestamp': '1' } })).toBe(400);
    expect(await send({ headers: {} })).toBe(400);
    expect(await send({ body: 'x'.repeat(2_001) })).toBe(413);
    expect(await send({ body: 'x'.repeat(200_000) })).toBe(413);
    expect(await send({ method: 'PUT' })).toBe(405);
    const refused = await fetch(url, { method: 'POST', headers, body: 'x' });
    expect(await refused.json()).toEqual({
      code: 'bad_signature',
      reason: 'no signature is one of the body by a known key',
    });
    // After all refusals the connections still serve.
    expect(await send({})).toBe(204);
  });

  it('The chunks of a body are copied when they arrive, so that none is kept', async () => {
    const padded = { ...JSON.parse(bodyOf('evt_1', 1)), padding: 'x'.repeat(100_000) };
    const { headers, body } = message(1, [secret], { body: JSON.stringify(padded) });
    const receiver = receiverOf({ bodyBytesMax: body.length });
    // The next chunk takes the place of the one before.
    const chunk = new Uint8Array(1);
    async function* parts() {
      for (const byte of body) {
        chunk[0] = byte;
        yield chunk;
      }
    }
    const response = { statusCode: 0, setHeader: () => {}, end: () => {} };
    const request = Object.assign(parts(), { method: 'POST', headers });
    await receiver.node(handler)(request, response);
    expect(response.statusCode).toBe(204);
  });

  /** The answer to a request of the Fetch API, and how often its stream was cancelled. */
  async function stream(pull: (to: { enqueue(chunk: Uint8Array): void }) => void) {
    let cancelled = 0;
    const cancel = () => void cancelled++;
    const body = new ReadableStream<Uint8Array>({ pull, cancel });
    const { headers } = message();
    const init = { method: 'POST', headers, body, duplex: 'half' as const };
    const { status } = await fetched(handler)(new Request('http://127.0.0.1/', init));
    return [status, cancelled];
  }

  it('The stream of a body that is late, or far too large, is cancelled', async () => {
    expect(await stream(() => {})).toEqual([408, 1]);
    expect(await stream((to) => to.enqueue(new Uint8Array(1_000)))).toEqual([413, 1]);
  });

  it('A request whose body is being read elsewhere is refused as body_consumed', async () => {
    const { headers, body } = message();
    const request = new Request('http://127.0.0.1/', { method: 'POST', headers, body });
    request.body?.getReader();
    const answer = await fetched(handler)(request);
    expect([answer.status, await answer.json()]).toMatchObject([500, { code: 'body_consumed' }]);
  });

  it.each(KINDS)('%s refuses a body that does not end in time with 408', async (kind) => {
    const { hostname, port } = new URL(await open(kind));
    const head = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf';
    const text = await new Promise<string>((resolve) => {
      let all = '';
      const socket = connect(Number(port), hostname, () => socket.write(head));
      socket.on('data', (chunk) => {
        all += chunk;
        if (all.includes('body_late')) socket.destroy();
      });
      socket.on('close', () => resolve(all));
    });
    expect(text).toMatch(/^HTTP\/1\.1 408 /);
  });
});
