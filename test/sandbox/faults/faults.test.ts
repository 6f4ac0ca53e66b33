/** Scripted faults: what is applied, what the client receives, which requests they match. */
import { beforeEach, describe, expect, it } from 'vitest';
import { useCaller } from '../client.ts';

const caller = useCaller();

const give = (amount = 5) =>
  caller.send('POST', '/v1/app/token/operations/1/give', {
    as: caller.client,
    json: { toAddr: caller.addressOf(1), amount, reasonType: 'x' },
  });
const read = () =>
  caller.send('GET', `/v1/app/token/account?addr=${caller.addressOf(1)}`, { as: caller.client });
const balance = () => caller.balanceOf(caller.addressOf(1));
const logged = () => caller.sandbox.control.requests().at(-1);

async function scripted(fault: object) {
  const reply = await caller.send('POST', '/_sandbox/faults', { json: fault });
  expect(reply.status).toBe(200);
}

describe('A fault that cuts the connection', () => {
  it('lost_answer applies the write and sends no response', async () => {
    await scripted({ kind: 'lost_answer', endpoint: 'give' });
    await expect(give()).rejects.toThrow();
    expect(balance()).toBe(1_005n);
    expect(logged()).toMatchObject({ applied: true, status: null, fault: 'lost_answer' });
    expect((await give()).status).toBe(200);
  });

  it('dropped does not apply the write', async () => {
    await scripted({ kind: 'dropped', endpoint: 'give', reset: true });
    await expect(give()).rejects.toThrow();
    expect(balance()).toBe(1_000n);
    expect(logged()).toMatchObject({ applied: false, status: null });
  });

  it('late applies the write after the connection was cut', async () => {
    await scripted({ kind: 'late', endpoint: 'give', delay_ms: 30_000 });
    await expect(give()).rejects.toThrow();
    caller.clock.advance(29_999);
    expect((await read()).at('data.amt_token')).toBe(1_000);
    caller.clock.advance(1);
    expect((await read()).at('data.amt_token')).toBe(1_005);
    expect(caller.sandbox.control.effects()).toHaveLength(1);
  });

  it('late with hold keeps the connection open until it is cut', async () => {
    await scripted({ kind: 'late', endpoint: 'give', delay_ms: 20, hold: true });
    await expect(give()).rejects.toThrow();
    expect(balance()).toBe(1_000n);
    caller.clock.advance(20);
    expect(balance()).toBe(1_005n);
  });

  it('truncated sends half of the response', async () => {
    await scripted({ kind: 'truncated', endpoint: 'give' });
    await expect(give()).rejects.toThrow();
    expect(balance()).toBe(1_005n);
  });
});

describe('A fault that changes the response', () => {
  it('garbled sends a body that is not JSON', async () => {
    await scripted({ kind: 'garbled', endpoint: 'give' });
    await expect(give()).rejects.toThrow(SyntaxError);
    expect(balance()).toBe(1_005n);
  });

  it('without applies the write and leaves a member out of the data of its answer', async () => {
    await scripted({ kind: 'without', endpoint: 'give', member: 'tx_app_no' });
    const reply = await give();
    expect([reply.at('data.tx_app_no'), reply.at('data.tx_log_no')]).toEqual([undefined, 1]);
    expect(balance()).toBe(1_005n);
  });

  it('status can answer a body of any type', async () => {
    const generic = { body: '{"error":"Not Found"}', content_type: 'application/json' };
    await scripted({ kind: 'status', endpoint: 'give', status: 404, ...generic });
    const reply = await give();
    expect([reply.status, reply.text]).toEqual([404, generic.body]);
    expect(reply.headers.get('content-type')).toBe(generic.content_type);
  });

  it('delay applies the write at once and responds later', async () => {
    await scripted({ kind: 'delay', endpoint: 'give', delay_ms: 30 });
    const reply = give();
    await expect.poll(balance).toBe(1_005n);
    expect((await reply).status).toBe(200);
  });

  it.each([
    ['seconds', '7'],
    ['date', 'Thu, 01 Jan 2026 00:00:07 GMT'],
    ['none', null],
  ])('throttle answers 429 with Retry-After as %s', async (retry_after, expected) => {
    await scripted({ kind: 'throttle', endpoint: 'give', retry_after, retry_after_s: 7 });
    const reply = await give();
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([429, expected]);
    expect(balance()).toBe(1_000n);
  });

  it('throttle can answer 503, and apply the write', async () => {
    await scripted({ kind: 'throttle', endpoint: 'give', status: 503, applied: true });
    const reply = await give();
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '1']);
    expect(balance()).toBe(1_005n);
  });

  it.each([500, 502, 503])(
    'status %i does not apply the write unless applied is set',
    async (status) => {
      await scripted({ kind: 'status', endpoint: 'give', status });
      expect((await give()).status).toBe(status);
      expect(balance()).toBe(1_000n);
      const body = '<h1>Bad gateway</h1>';
      await scripted({ kind: 'status', endpoint: 'give', status, applied: true, body });
      expect(await give()).toMatchObject({ status, text: body });
      expect(balance()).toBe(1_005n);
    },
  );
});

describe('A fault that changes a list', () => {
  const path = '/v1/chain/erc721/1/tokens?perPage=2';
  const page = async (n: number) => {
    const reply = await caller.send('GET', `${path}&page=${n}`, { as: caller.client });
    return [0, 1].map((i) => reply.at(`data.data.${i}.token_id`));
  };
  beforeEach(() => {
    for (let id = 1n; id <= 4n; id += 1n) caller.sandbox.control.setToken(1n, id, {});
    caller.clock.advance(1_000);
  });

  it('stale_list shows an earlier state', async () => {
    caller.sandbox.control.removeToken(1n, 1n);
    caller.sandbox.control.setToken(1n, 9n, {});
    await scripted({ kind: 'stale_list', endpoint: 'tokens', age_ms: 500 });
    expect(await page(1)).toEqual([1, 2]);
    expect(await page(1)).toEqual([2, 3]);
  });

  it('shifting_pages makes a scan miss rows and read others twice', async () => {
    await scripted({ kind: 'shifting_pages', endpoint: 'tokens', count: 2 });
    expect([await page(1), await page(2)]).toEqual([
      [2, 3],
      [undefined, undefined],
    ]);
    expect(await page(1)).toEqual([1, 2]);
  });
});

describe('A fault matches', () => {
  it.each([
    { endpoint: 'transfer' },
    { method: 'GET' },
    { path: '/v1/chain/*' },
    { contains: 'absent text' },
  ])('no give with %j', async (target) => {
    await scripted({ kind: 'status', status: 500, ...target });
    expect((await give()).status).toBe(200);
  });

  it.each([
    {},
    { endpoint: 'give' },
    { method: 'post' },
    { path: '/v1/app/*/give' },
    { contains: '"reasonType":"x"' },
  ])('a give with %j, once', async (target) => {
    await scripted({ kind: 'status', status: 500, ...target });
    expect((await give()).status).toBe(500);
    expect((await give()).status).toBe(200);
  });

  it('after `skip` requests, and `count` times', async () => {
    await scripted({ kind: 'status', status: 500, endpoint: 'give', skip: 1, count: 2 });
    const statuses = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await give()).status);
    expect(statuses).toEqual([200, 500, 500, 200]);
    expect(caller.sandbox.control.faults()[0]).toMatchObject({ left: 0, hits: 2 });
  });
});

it('The switch rate_per_s limits all requests with a token bucket', async () => {
  caller.sandbox.control.setSwitches({ rate_per_s: 2, rate_burst: 3 });
  const statuses = async (n: number) => {
    const all = [];
    for (let i = 0; i < n; i += 1) all.push((await read()).status);
    return all;
  };
  expect(await statuses(4)).toEqual([200, 200, 200, 429]);
  expect((await read()).headers.get('retry-after')).toBe('1');
  caller.clock.advance(1_000);
  expect(await statuses(3)).toEqual([200, 200, 429]);
});
