/** Endpoints with ordering by subject. */
import { expect, it } from 'vitest';
import { useRig, walletEvent, walletEvents } from './rig.ts';

const MINUTE = 60_000;
const addr = (n: number) => `0x${n.toString(16).padStart(40, '0')}`;

const rig = useRig();
const subscribe = async () =>
  (await rig.subscribe('/ordered', { ordering: 'subject' })).endpoint.id;

const received = (): { addr: string; subject_seq: number }[] =>
  rig.receiver.requests.map(({ body }) => JSON.parse(body).data);
const numbersOf = (subject: string) =>
  received().flatMap((data) => (data.addr === subject ? [data.subject_seq] : []));
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

it('Events of a subject arrive in order, also through several daemons', async () => {
  await subscribe();
  const subjects = [1, 2, 3, 4, 5].map(addr);
  for (let round = 0; round < 20; round++)
    await rig.emit(...subjects.map((subject) => walletEvent(subject)));
  await Promise.all([rig.deliver(), rig.deliver(rig.another())]);
  await rig.deliver();
  for (const subject of subjects) expect(numbersOf(subject)).toEqual(upTo(20));
});

it('A subject has one delivery in flight while other subjects proceed', async () => {
  await subscribe();
  await rig.emit(walletEvent(addr(10)));
  await rig.deliver();
  rig.receiver.behave({ do: 'hang' });
  await rig.emit(walletEvent(addr(11)), walletEvent(addr(11)), walletEvent(addr(12)));
  for (let i = 0; i < 5; i++) await rig.webhooks.runOnce(rig.clock.now());
  await rig.receiver.count(3);
  const addresses = received()
    .slice(1)
    .map((data) => data.addr);
  expect(addresses.sort()).toEqual([addr(11), addr(12)]);
  expect(rig.receiver.openMax()).toBe(2);
  rig.receiver.answer(200);
  rig.receiver.release();
  await rig.deliver();
  expect(numbersOf(addr(11))).toEqual([1, 2]);
});

it('A subject whose delivery fails waits for the retry while other subjects proceed', async () => {
  await subscribe();
  await rig.emit(walletEvent(addr(21)), walletEvent(addr(21)));
  rig.receiver.answer(500);
  await rig.deliver();
  rig.receiver.answer(200);
  await rig.emit(walletEvent(addr(22)), walletEvent(addr(22)));
  await rig.deliver();
  expect(numbersOf(addr(21))).toEqual([1]);
  expect(numbersOf(addr(22))).toEqual([1, 2]);
  rig.clock.advance(6_000);
  await rig.deliver();
  expect(numbersOf(addr(21))).toEqual([1, 1, 2]);
});

it('More blocked deliveries than one claim examines do not starve other subjects', async () => {
  await subscribe();
  rig.receiver.answer(500);
  await rig.emit(walletEvent(addr(31)));
  await rig.deliver();
  rig.receiver.answer(200);
  await rig.emit(...walletEvents(300, addr(31)));
  await rig.emit(walletEvent(addr(32)));
  await rig.deliver();
  expect(numbersOf(addr(31))).toEqual([1]);
  expect(numbersOf(addr(32))).toEqual([1]);
  rig.clock.advance(6_000);
  await rig.deliver();
  expect(numbersOf(addr(31)).slice(1)).toEqual(upTo(301));
});

it('A delivery whose next attempt is too far away no longer blocks its subject', async () => {
  const endpoint = await subscribe();
  await rig.emit(walletEvent(addr(41), '1'), walletEvent(addr(41), '2'));
  rig.receiver.answer(500);
  for (const wait of [0, 6_000, 6 * MINUTE]) {
    rig.clock.advance(wait);
    await rig.deliver();
  }
  // The next attempt is half an hour away, more than `orderedWaitMaxMs`.
  expect(numbersOf(addr(41)).slice(0, 3)).toEqual([1, 1, 1]);
  rig.receiver.answer(200);
  rig.clock.advance(MINUTE);
  await rig.deliver();
  expect(numbersOf(addr(41)).at(-1)).toBe(2);
  rig.clock.advance(40 * MINUTE);
  await rig.deliver();
  expect(numbersOf(addr(41)).at(-1)).toBe(1);
  const states = (await rig.deliveriesOf(endpoint)).map(({ state }) => state);
  expect(states).toEqual(['delivered', 'delivered']);
});
