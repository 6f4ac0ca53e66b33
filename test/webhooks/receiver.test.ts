/** The receiver of the tests is itself tested: the other tests believe what it says. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Receiver, startReceiver } from '../harness/receiver.ts';

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

const post = (path: string, body: string) =>
  fetch(`${receiver.url}${path}`, { method: 'POST', body, redirect: 'manual' });

describe('the receiver', () => {
  test('keeps the raw body and hands out requests in order', async () => {
    const first = receiver.next();
    await post('/a', 'één');
    await post('/b', 'two');
    expect((await first).rawBody).toEqual(Buffer.from('één'));
    expect(await receiver.next()).toMatchObject({ path: '/b', body: 'two', method: 'POST' });
  });

  test('behaves differently on one path', async () => {
    receiver.answer(429, { 'retry-after': '7' }, '/limited');
    const limited = await post('/limited', '');
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '7']);
    expect((await post('/free', '')).status).toBe(200);
  });

  test('counts what hangs and answers it when released', async () => {
    receiver.behave({ do: 'hang' }, '/hang');
    const before = receiver.requests.length;
    const answer = post('/hang', '');
    await receiver.count(before + 1);
    expect(receiver.open('/hang')).toBe(1);
    receiver.release(204);
    expect((await answer).status).toBe(204);
    expect(receiver.openMax('/hang')).toBe(1);
  });

  test('cuts connections before the head and in the body', async () => {
    receiver.behave({ do: 'reset', when: 'before_head' }, '/cut');
    await expect(post('/cut', '')).rejects.toThrow();
    receiver.behave({ do: 'reset', when: 'in_body' }, '/cut');
    const answer = await post('/cut', '');
    await expect(answer.text()).rejects.toThrow();
  });

  test('says which request did not come', async () => {
    await expect(receiver.count(9_999, 1)).rejects.toThrow('request 9998 did not come');
  });
});
