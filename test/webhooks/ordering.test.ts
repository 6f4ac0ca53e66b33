/**
 * Endpoints that want order: one at a time per subject, in the order of its numbers; subjects
 * apart.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { openRig, type Rig, walletEvent } from './house.ts';

const MINUTE = 60_000;
const addr = (n: number) => `0x${n.toString(16).padStart(40, '0')}`;

let rig: Rig;
let receiver: Receiver;
beforeAll(async () => {
  rig = await openRig();
});
afterAll(() => rig.close());
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(async () => {
  receiver.answer(200);
  receiver.release();
  const { data } = await rig.webhooks.listEndpoints({ cursor: '', limit: 100 });
  for (const { id } of data) await rig.webhooks.deleteEndpoint(id);
  await rig.deliver();
  await receiver.close();
});

const subscribe = async () => {
  const url = `${receiver.url}/ordered`;
  const made = await rig.webhooks.createEndpoint({ url, ordering: 'subject' }, 'ann');
  return made.endpoint.id;
};

interface Seen {
  addr: string;
  seq: number;
}
const seen = (): Seen[] =>
  receiver.requests.map(({ body }) => {
    const { data } = JSON.parse(body);
    return { addr: data.addr, seq: data.subject_seq };
  });
const numbersOf = (of: string) => seen().flatMap((s) => (s.addr === of ? [s.seq] : []));

describe('with ordering by subject', () => {
  test('every subject arrives in order, also through several daemons', async () => {
    await subscribe();
    const subjects = [1, 2, 3, 4, 5].map(addr);
    const before = new Map<string, number>();
    for (let round = 0; round < 20; round++)
      await rig.emit(...subjects.map((subject) => walletEvent(subject)));
    const [first] = subjects;
    await Promise.all([rig.deliver(), rig.deliver(rig.another())]);
    await rig.deliver();
    expect(receiver.requests.length).toBe(100);
    for (const subject of subjects) {
      const numbers = numbersOf(subject);
      before.set(subject, numbers.length);
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    }
    expect(before.get(first ?? '')).toBe(20);
  });

  test('one subject has one on the wire, and others go beside it', async () => {
    await subscribe();
    receiver.behave({ do: 'hang' });
    await rig.emit(walletEvent(addr(11)), walletEvent(addr(11)), walletEvent(addr(12)));
    for (let i = 0; i < 5; i++) await rig.webhooks.runOnce(rig.clock.now());
    await receiver.count(2);
    expect(
      seen()
        .map((s) => s.addr)
        .sort(),
    ).toEqual([addr(11), addr(12)]);
    expect(receiver.openMax()).toBe(2);
    receiver.answer(200);
    receiver.release();
    await rig.deliver();
    expect(numbersOf(addr(11))).toEqual([1, 2]);
  });

  test('a failing subject waits for its turn while the others go on', async () => {
    await subscribe();
    await rig.emit(walletEvent(addr(21)), walletEvent(addr(21)));
    receiver.answer(500);
    await rig.deliver();
    receiver.answer(200);
    await rig.emit(walletEvent(addr(22)), walletEvent(addr(22)));
    await rig.deliver();
    expect(numbersOf(addr(21))).toEqual([1]);
    expect(numbersOf(addr(22))).toEqual([1, 2]);
    rig.clock.advance(6_000);
    await rig.deliver();
    expect(numbersOf(addr(21))).toEqual([1, 1, 2]);
  });

  test('a long row behind a failing one does not hide the other subjects', async () => {
    await subscribe();
    receiver.answer(500);
    await rig.emit(walletEvent(addr(31)));
    await rig.deliver();
    receiver.answer(200);
    for (let i = 0; i < 10; i++)
      await rig.emit(...Array.from({ length: 60 }, () => walletEvent(addr(31))));
    await rig.emit(walletEvent(addr(32)));
    await rig.deliver();
    expect(numbersOf(addr(31))).toEqual([1]);
    expect(numbersOf(addr(32))).toEqual([1]);
    rig.clock.advance(6_000);
    await rig.deliver();
    expect(numbersOf(addr(31)).slice(1)).toEqual(Array.from({ length: 601 }, (_, i) => i + 1));
  });

  test('a subject is blocked for a bounded time, and then passes the one that fails', async () => {
    const endpoint = await subscribe();
    await rig.emit(walletEvent(addr(41), '1'), walletEvent(addr(41), '2'));
    receiver.answer(500);
    for (const wait of [0, 6_000, 6 * MINUTE]) {
      rig.clock.advance(wait);
      await rig.deliver();
    }
    // The third failure waits half an hour, which is longer than anybody waits for it.
    expect(numbersOf(addr(41)).slice(0, 3)).toEqual([1, 1, 1]);
    receiver.answer(200);
    rig.clock.advance(MINUTE);
    await rig.deliver();
    expect(numbersOf(addr(41)).slice(-1)).toEqual([2]);
    rig.clock.advance(40 * MINUTE);
    await rig.deliver();
    expect(numbersOf(addr(41)).slice(-1)).toEqual([1]);
    const { sql } = rig.database.db;
    const rows = await sql`
      select distinct state from tallyhook.deliveries where endpoint_id = ${endpoint}`;
    expect([...rows]).toEqual([{ state: 'delivered' }]);
  });
});
