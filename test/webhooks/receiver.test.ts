/** The receiver that the webhook tests rely on. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Receiver, startReceiver } from '../harness/receiver.ts';

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

const post = (path: string, body: string) =>
  fetch(`${receiver.url}${path}`, { method: 'POST', body, redirect: 'manual' });

it('The receiver keeps raw bodies and returns requests in order', async () => {
  const first = receiver.next();
  await post('/a', 'één');
  await post('/b', 'two');
  expect((await first).rawBody).toEqual(Buffer.from('één'));
  expect(await receiver.next()).toMatchObject({ path: '/b', body: 'two', method: 'POST' });
});

it('A behaviour can be set for one path', async () => {
  receiver.answer(429, { 'retry-after': '7' }, '/limited');
  const limited = await post('/limited', '');
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '7']);
  expect((await post('/free', '')).status).toBe(200);
});

it('Hanging requests are counted, and answered when released', async () => {
  receiver.behave({ do: 'hang' }, '/hang');
  const before = receiver.requests.length;
  const response = post('/hang', '');
  await receiver.count(before + 1);
  expect(receiver.open('/hang')).toBe(1);
  receiver.release(204);
  expect((await response).status).toBe(204);
  expect(receiver.openMax('/hang')).toBe(1);
});

it('Connections are reset before the head or in the body', async () => {
  receiver.behave({ do: 'reset', when: 'before_head' }, '/reset');
  await expect(post('/reset', '')).rejects.toThrow();
  receiver.behave({ do: 'reset', when: 'in_body', status: 200 }, '/reset');
  const response = await post('/reset', '');
  await expect(response.text()).rejects.toThrow();
});

it('Waiting for a request that does not arrive fails with its number', async () => {
  await expect(receiver.count(9_999, 1)).rejects.toThrow('request 9998 did not come');
});
