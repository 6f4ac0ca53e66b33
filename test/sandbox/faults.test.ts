/** Scripted faults: what is applied, what the caller sees, and whom they leave alone. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Caller, startCaller, stopAll } from './client.ts';

let caller: Caller;
let client: string;
let ada: string;

beforeAll(async () => {
  caller = await startCaller();
});
afterAll(stopAll);
beforeEach(async () => {
  caller.clock.set(Date.UTC(2026, 0, 1));
  caller.sandbox.control.reset({});
  client = await caller.clientToken();
  ada = caller.addressOf(1);
});

const give = (amount = 5) =>
  caller.send('POST', '/v1/app/token/operations/1/give', {
    as: client,
    json: { toAddr: ada, amount, reasonType: 'x' },
  });
const observation = () => caller.send('GET', `/v1/app/token/account?addr=${ada}`, { as: client });
const balance = () => caller.balanceOf(ada);
const logged = () => caller.sandbox.control.requests().at(-1);

/** Scripts a fault by the control surface, as a person would. */
async function scripted(fault: object) {
  const reply = await caller.send('POST', '/_sandbox/faults', { json: fault });
  expect(reply.status).toBe(200);
}

describe('A connection is cut', () => {
  test('lost_answer: the write is applied, its answer is not seen', async () => {
    await scripted({ kind: 'lost_answer', endpoint: 'give' });
    await expect(give()).rejects.toThrow();
    expect(balance()).toBe(1_005n);
    expect(logged()).toMatchObject({ applied: true, status: null, fault: 'lost_answer' });
    expect((await give()).status).toBe(200);
  });

  test('dropped: the write is not applied', async () => {
    await scripted({ kind: 'dropped', endpoint: 'give', reset: true });
    await expect(give()).rejects.toThrow();
    expect(balance()).toBe(1_000n);
    expect(logged()).toMatchObject({ applied: false, status: null });
  });

  test('late: the write is applied long after the caller was cut off', async () => {
    await scripted({ kind: 'late', endpoint: 'give', delay_ms: 30_000 });
    await expect(give()).rejects.toThrow();
    caller.clock.advance(29_999);
    expect((await observation()).at('data.amt_token')).toBe(1_000);
    caller.clock.advance(1);
    expect((await observation()).at('data.amt_token')).toBe(1_005);
    expect(caller.sandbox.control.effects()).toHaveLength(1);
  });

  test('late and held: the connection hangs until then, and is cut', async () => {
    await scripted({ kind: 'late', endpoint: 'give', delay_ms: 20, hold: true });
    await expect(give()).rejects.toThrow();
    expect(balance()).toBe(1_000n);
    caller.clock.advance(20);
    expect(balance()).toBe(1_005n);
  });

  test('truncated: half of the answer comes', async () => {
    await scripted({ kind: 'truncated', endpoint: 'give' });
    await expect(give()).rejects.toThrow();
    expect(balance()).toBe(1_005n);
  });
});

describe('An answer is spoilt', () => {
  test('garbled: no parser reads it', async () => {
    await scripted({ kind: 'garbled', endpoint: 'give' });
    const reply = await give().then(
      () => 'read',
      (error: unknown) => (error instanceof SyntaxError ? 'unreadable' : error),
    );
    expect(reply).toBe('unreadable');
    expect(balance()).toBe(1_005n);
  });

  test('delay: applied at once, answered later', async () => {
    await scripted({ kind: 'delay', endpoint: 'give', delay_ms: 30 });
    const reply = give();
    await expect.poll(balance).toBe(1_005n);
    expect((await reply).status).toBe(200);
  });

  test.each([
    ['seconds', '7'],
    ['date', 'Thu, 01 Jan 2026 00:00:07 GMT'],
    ['none', null],
  ])('throttle: 429 with Retry-After as %s', async (retry_after, expected) => {
    await scripted({ kind: 'throttle', endpoint: 'give', retry_after, retry_after_s: 7 });
    const reply = await give();
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([429, expected]);
    expect(balance()).toBe(1_000n);
  });

  test('throttle: 503 instead of 429, and applied, when told so', async () => {
    await scripted({ kind: 'throttle', endpoint: 'give', status: 503, applied: true });
    const reply = await give();
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '1']);
    expect(balance()).toBe(1_005n);
  });

  test.each([500, 502, 503])('status %i: not applied, unless told otherwise', async (status) => {
    await scripted({ kind: 'status', endpoint: 'give', status });
    expect((await give()).status).toBe(status);
    expect(balance()).toBe(1_000n);
    const body = '<h1>Bad gateway</h1>';
    await scripted({ kind: 'status', endpoint: 'give', status, applied: true, body });
    expect(await give()).toMatchObject({ status, text: body });
    expect(balance()).toBe(1_005n);
  });
});

describe('A list deceives', () => {
  const path = '/v1/chain/erc721/1/tokens?perPage=2';
  const page = async (n: number) => {
    const reply = await caller.send('GET', `${path}&page=${n}`, { as: client });
    return [0, 1].map((i) => reply.at(`data.data.${i}.token_id`));
  };
  beforeEach(() => {
    for (let id = 1n; id <= 4n; id += 1n) caller.sandbox.control.setToken(1n, id, {});
    caller.clock.advance(1_000);
  });

  test('stale_list: it shows things as they were', async () => {
    caller.sandbox.control.removeToken(1n, 1n);
    caller.sandbox.control.setToken(1n, 9n, {});
    await scripted({ kind: 'stale_list', endpoint: 'tokens', age_ms: 500 });
    expect(await page(1)).toEqual([1, 2]);
    expect(await page(1)).toEqual([2, 3]);
  });

  test('shifting_pages: a sweep misses rows and sees others twice', async () => {
    await scripted({ kind: 'shifting_pages', endpoint: 'tokens', count: 2 });
    expect([await page(1), await page(2)]).toEqual([
      [2, 3],
      [undefined, undefined],
    ]);
    expect(await page(1)).toEqual([1, 2]);
  });
});

describe('A fault meets only whom it is meant for', () => {
  test.each([
    { endpoint: 'transfer' },
    { method: 'GET' },
    { path: '/v1/chain/*' },
    { contains: 'nobody' },
  ])('not a give: %j', async (target) => {
    await scripted({ kind: 'status', status: 500, ...target });
    expect((await give()).status).toBe(200);
  });

  test.each([
    {},
    { endpoint: 'give' },
    { method: 'post' },
    { path: '/v1/app/*/give' },
    { contains: '"reasonType":"x"' },
  ])('a give: %j', async (target) => {
    await scripted({ kind: 'status', status: 500, ...target });
    expect((await give()).status).toBe(500);
    expect((await give()).status).toBe(200);
  });

  test('after as many as it skips, and as often as it counts', async () => {
    await scripted({ kind: 'status', status: 500, endpoint: 'give', skip: 1, count: 2 });
    const statuses = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await give()).status);
    expect(statuses).toEqual([200, 500, 500, 200]);
    expect(caller.sandbox.control.faults()[0]).toMatchObject({ left: 0, hits: 2 });
  });
});

test('The service throttles by itself when that is switched on', async () => {
  caller.sandbox.control.setSwitches({ rate_per_s: 2, rate_burst: 3 });
  const statuses = async (n: number) => {
    const all = [];
    for (let i = 0; i < n; i += 1) all.push((await observation()).status);
    return all;
  };
  expect(await statuses(4)).toEqual([200, 200, 200, 429]);
  expect((await observation()).headers.get('retry-after')).toBe('1');
  caller.clock.advance(1_000);
  expect(await statuses(3)).toEqual([200, 200, 429]);
});
