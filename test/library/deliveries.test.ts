/** The library takes what a daemon sends, across a rotation, and nothing that is not that. */
import { expect, it } from 'vitest';
import { type Message, makeReceiver, type ReceiverOptions } from '../../library/receive/receive.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import type { Received } from '../harness/receiver.ts';
import { useRig } from '../harness/rig.ts';

const rig = useRig();
const ignore = () => {};

/** An endpoint with both signatures, and the first delivery of its test events. */
async function subscribe(path: string) {
  const { url } = await rig.receiver();
  const input = { url: `${url}${path}`, event_types: ['endpoint.*'], signing: ['v1', 'v1a'] };
  const { status, json, text } = await rig.app.call('POST', '/api/endpoints', input);
  expect(status, text).toBe(201);
  return { id: json.id, secret: json.secret, publicKey: json.new_public_key, path };
}

/** The delivery of a test event that is asked for now. */
async function deliver({ id, path }: { id: string; path: string }): Promise<Message> {
  const receiver = await rig.receiver();
  const before = receiver.requests.length;
  const asked = await rig.app.call('POST', `/api/endpoints/${id}/test`);
  expect(asked.status, asked.text).toBeLessThan(300);
  for (let n = before + 1; ; n++) {
    const requests = await receiver.count(n);
    const found = requests.slice(before).find((one) => one.path === path);
    if (found) return messageOf(found);
  }
}

const messageOf = ({ headers, rawBody }: Received): Message => ({ headers, body: rawBody });

/** Waits until the daemon publishes a key; it keeps their list for a second. */
async function publishes(key: string): Promise<void> {
  const keys = async () => (await rig.app.call('GET', '/.well-known/webhook-keys')).text;
  await expect.poll(keys).toContain(key);
}

async function resultOf(options: ReceiverOptions, message: Message): Promise<string> {
  return (await makeReceiver(options).receive(message, ignore)).result;
}

it('A delivery of a daemon is verified by its secret, its public key and its published key', async () => {
  const endpoint = await subscribe('/all');
  const message = await deliver(endpoint);
  const published = { url: rig.daemon.url, endpoint: endpoint.id };
  const { secret, publicKey } = endpoint;
  await publishes(publicKey);
  for (const options of [{ keys: secret }, { keys: publicKey }, { published }])
    expect(await resultOf(options, message)).toBe('handled');
  const event = await makeReceiver({ keys: secret }).verify(message);
  expect(event).toMatchObject({ type: 'endpoint.test', data: { endpoint_id: endpoint.id } });
});

it('The secret of another endpoint, a body changed by one byte and a late one are refused', async () => {
  const [endpoint, other] = [await subscribe('/mine'), await subscribe('/others')];
  const { headers, body } = await deliver(endpoint);
  const changed = Buffer.from(body);
  changed[changed.length - 3] = (changed[changed.length - 3] ?? 0) ^ 1;
  for (const [mine, others] of [
    [endpoint.secret, other.secret],
    [endpoint.publicKey, other.publicKey],
  ]) {
    expect(await resultOf({ keys: others }, { headers, body })).toBe('bad_signature');
    expect(await resultOf({ keys: mine }, { headers, body: changed })).toBe('bad_signature');
    const now = () => systemClock.now() + 301_000;
    expect(await resultOf({ keys: mine, now }, { headers, body })).toBe('outside_tolerance');
  }
  await publishes(other.publicKey);
  const published = { url: rig.daemon.url, endpoint: other.id };
  expect(await resultOf({ published }, { headers, body })).toBe('bad_signature');
});

it('A replayed delivery is a duplicate, and is not handled again', async () => {
  const endpoint = await subscribe('/replayed');
  const message = await deliver(endpoint);
  const receiver = makeReceiver({ keys: endpoint.secret });
  const handled: string[] = [];
  const take = () => receiver.receive(message, ({ id }) => handled.push(id));
  expect([await take(), await take()]).toEqual([
    { status: 204, result: 'handled' },
    { status: 204, result: 'duplicate' },
  ]);
  expect(handled).toHaveLength(1);
});

it('A rotation is seamless for the old keys, the new ones and published ones', async () => {
  const old = await subscribe('/rotated');
  await publishes(old.publicKey);
  let now = systemClock.now();
  const published = { url: rig.daemon.url, endpoint: old.id };
  const following = makeReceiver({ published, now: () => now });
  expect((await following.receive(await deliver(old), ignore)).result).toBe('handled');
  const rotated = await rig.app.call('POST', `/api/endpoints/${old.id}/rotate`, {});
  expect(rotated.status, rotated.text).toBeLessThan(300);
  const { secret, new_public_key: publicKey } = rotated.json;
  const message = await deliver(old);
  expect(message.headers).toMatchObject({
    'webhook-signature': expect.stringMatching(/^v1,\S+ v1a,\S+ v1,\S+ v1a,\S+$/),
  });
  for (const keys of [old.secret, old.publicKey, secret, publicKey, [secret, old.secret]])
    expect(await resultOf({ keys }, message)).toBe('handled');
  await publishes(publicKey);
  now += 60_000;
  expect((await following.receive(message, ignore)).result).toBe('handled');
});
