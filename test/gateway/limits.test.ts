import { expect, it, onTestFinished } from 'vitest';
import { makeAddressLimit } from '../../src/keys/keys.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { gate } from '../upstream/rig.ts';
import { READ, received, SUCCESS, setUpGateway } from './rig.ts';

const { open } = await setUpGateway();

/** A limit, and the seconds that it tells an address to wait; 0 when the request is allowed. */
function addressLimit(perS: number) {
  const clock = manualClock();
  const limit = makeAddressLimit(perS, clock);
  const waitOf = (address: string): unknown => {
    try {
      limit.check(address);
      return 0;
    } catch (error) {
      expect(error).toMatchObject({ code: 'too_many_requests' });
      return (error as { members: Record<string, unknown> }).members.retry_after_s;
    }
  };
  return { clock, waitOf };
}

it('The limit of an address allows a burst of two seconds, and then its rate', () => {
  const { clock, waitOf } = addressLimit(5);
  const allowed = () => Array.from({ length: 20 }, () => waitOf('10.0.0.1')).filter((w) => !w);
  expect(allowed()).toHaveLength(10);
  expect(waitOf('10.0.0.1')).toBe(1);
  clock.advance(1_000);
  expect(allowed()).toHaveLength(5);
  clock.advance(60_000);
  expect(allowed()).toHaveLength(10);
});

it('The limit of an address names the seconds to wait at a rate below one per second', () => {
  const { waitOf } = addressLimit(0.1);
  expect([waitOf('a'), waitOf('a')]).toEqual([0, 10]);
});

it.each([
  ['10.0.0.1', '10.0.0.2', false],
  ['10.0.0.1', '::ffff:10.0.0.1', true],
  ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', true],
  ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
  ['::1', '::2', true],
  ['2001:db8::1', '2001:db8:0:0:5::', true],
])('The limit of an address is shared by %s and %s: %s', (first, second, isShared) => {
  const { waitOf } = addressLimit(0.5);
  expect(waitOf(first)).toBe(0);
  expect(waitOf(second) !== 0).toBe(isShared);
});

it('The limit of an address is forgotten after requests of ten thousand other addresses', () => {
  const { waitOf } = addressLimit(0.5);
  expect([waitOf('first'), waitOf('first')]).toEqual([0, 2]);
  for (let i = 0; i < 9_999; i++) waitOf(`x${i}`);
  expect(waitOf('first')).toBe(2);
  for (let i = 0; i < 10_000; i++) waitOf(`y${i}`);
  expect(waitOf('first')).toBe(0);
});

it('Half-sent requests without a key take no slot, and the oldest are answered 408', async () => {
  const rig = await open({ concurrencyMax: 4 });
  const halfSent = () => {
    const socket = rig.rawRequest('content-length: 9', { key: false, path: '/v1/oauth/token' });
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  const oldest = received(halfSent(), 'request_timeout');
  for (let n = 0; n < 520; n++) halfSent();
  expect(await oldest).toMatch(/^HTTP\/1\.1 408 [\s\S]*connection: close/i);
  const tokenRequest = { headers: {}, body: 'grant_type=x' };
  expect((await rig.call('POST', '/v1/oauth/token', tokenRequest)).status).toBe(200);
  expect(await rig.give()).toMatchObject({ status: 200 });
});

it('Unauthenticated requests in progress leave slots to authenticated ones', async () => {
  const { rig, answer } = await withHeldAnswers({ concurrencyMax: 4 });
  const maintenance = () => rig.call('GET', '/v1/system/maintenance', { headers: {} });
  const first = maintenance();
  await expect.poll(() => rig.requests.length).toBe(1);
  expect(await maintenance()).toMatchObject({ status: 429 });
  const give = rig.give();
  answer();
  expect([(await first).status, (await give).status]).toEqual([200, 200]);
});

it.each<[string, (n: number) => Record<string, string>]>([
  ['unknown keys', (n) => ({ 'tallyhook-key': `thk_${String(n).padStart(43, 'x')}` })],
  [
    'unknown keys as Bearer',
    (n) => ({ authorization: `Bearer thk_${String(n).padStart(43, 'x')}` }),
  ],
  ['malformed keys', (n) => ({ 'tallyhook-key': `thk_${n}` })],
  ['tokens of the service', (n) => ({ authorization: `Bearer token-${n}` })],
  ['requests without a key', () => ({})],
])(
  'An address may try 100 %s at once; a known key goes on from there',
  async (_what, headersOf) => {
    const rig = await open({ monotonic: manualClock() });
    expect((await rig.call('GET', READ)).status).toBe(200);
    const tries = Array.from({ length: 200 }, (_, n) =>
      rig.call('GET', READ, { headers: headersOf(n) }),
    );
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([406, 429]));
    // The first use of the known key counts, too.
    expect(statuses.filter((status) => status === 406)).toHaveLength(99);
    expect((await rig.call('GET', READ)).status).toBe(200);
  },
);

it('Unauthenticated requests are limited per address, with Retry-After', async () => {
  const rig = await open({ openPathsPerS: 0.5 });
  const maintenance = () => rig.call('GET', '/v1/system/maintenance', { headers: {} });
  expect((await maintenance()).status).toBe(200);
  const second = await maintenance();
  expect(second).toMatchObject({ status: 429, json: { code: 'too_many_requests' } });
  expect(Number(second.headers['retry-after'])).toBeGreaterThan(0);
  expect((await rig.call('GET', READ)).status).toBe(200);
  expect(rig.requests).toHaveLength(2);
});

it.each([
  ['trusted', ['127.0.0.0/8'], 200],
  ['not trusted', [], 429],
])('The address limit of clients behind a proxy that is %s', async (_, trustedProxies, status) => {
  const rig = await open({ openPathsPerS: 0.5, trustedProxies });
  const from = (address: string) =>
    rig.call('GET', '/v1/system/maintenance', { headers: { 'x-forwarded-for': address } });
  expect((await from('1.1.1.1')).status).toBe(200);
  expect((await from('6.6.6.6, 1.1.1.1')).status).toBe(429);
  expect((await from('1.1.1.2')).status).toBe(status);
});

/** A gateway whose service answers after `answer` is called. */
async function withHeldAnswers(options = {}) {
  const rig = await open(options);
  const { opened, open: answer } = gate();
  rig.answer(() => opened.then(() => SUCCESS));
  return { rig, answer };
}

it('Running requests are limited; further ones are refused with 429', async () => {
  const { rig, answer } = await withHeldAnswers({ concurrencyMax: 2 });
  const running = [rig.give(), rig.give()];
  await expect.poll(() => rig.requests.length).toBe(2);
  expect(await rig.give()).toMatchObject({ status: 429, json: { code: 'too_many_requests' } });
  answer();
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
  expect(await rig.give()).toMatchObject({ status: 200 });
});

it('Running requests are answered before a drain ends, and new ones are refused meanwhile', async () => {
  const { rig, answer } = await withHeldAnswers();
  const running = rig.give();
  await expect.poll(() => rig.requests.length).toBe(1);
  let drained = false;
  const drain = rig.gateway.drain().then(() => {
    drained = true;
  });
  expect(await rig.give()).toMatchObject({ status: 503, json: { code: 'shutting_down' } });
  expect(drained).toBe(false);
  answer();
  expect((await running).status).toBe(200);
  await drain;
  expect(rig.requests).toHaveLength(1);
});
