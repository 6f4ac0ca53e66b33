/** Where writes wait: bounded in number and in time, woken in order, released at the end. */
import { beforeEach, describe, expect, test } from 'vitest';
import { makeWaitQueue, type WaitQueue } from '../../src/operations/intake/wait-queue.ts';
import { type Parking, parking } from './parking.ts';

const LOOK_MS = 75;
let park: Parking;
/** What other daemons have not ended. */
let there: Set<string>;
let observations: number;
let failing: boolean;
let room: WaitQueue;

function open(max = 100) {
  return makeWaitQueue({
    max,
    pause: park.pause,
    async stillBlocking(names) {
      observations++;
      if (failing) throw new Error('away');
      return new Set(names.filter((name) => there.has(name)));
    },
  });
}
beforeEach(() => {
  park = parking();
  there = new Set(['a', 'b', 'c']);
  observations = 0;
  failing = false;
  room = open();
});

describe('A wait', () => {
  test('Ends when its time is over', async () => {
    const waits = room.wait(['a'], 2_000, 1);
    park.advance(2_000);
    expect(await waits).toBe('timed_out');
  });

  test('Ends when one of those that it waits for is gone, and not for others', async () => {
    let ended = 0;
    const count = () => ended++;
    const one = room.wait(['a', 'b'], 2_000, 1).finally(count);
    const other = room.wait(['c'], 2_000, 2);
    room.notify(['x']);
    await park.parked(2, 2_000);
    expect(ended).toBe(0);
    room.notify(['b']);
    expect(await one).toBe('notified');
    park.advance(2_000);
    expect(await other).toBe('timed_out');
  });

  test('Ends when another daemon ended what it waits for, found by one look for all', async () => {
    const waits = ['a', 'b'].map((name, i) => room.wait([name], 2_000, i));
    park.advance(LOOK_MS);
    await park.parked(3, LOOK_MS);
    there.delete('a');
    there.delete('b');
    park.advance(LOOK_MS);
    expect(await Promise.all(waits)).toEqual(['notified', 'notified']);
    expect(observations).toBeLessThanOrEqual(2);
  });

  test('Outlives a database that does not answer', async () => {
    failing = true;
    const waits = room.wait(['a'], 2_000, 1);
    park.advance(LOOK_MS);
    await park.parked(2, 1);
    failing = false;
    there.delete('a');
    park.advance(LOOK_MS);
    expect(await waits).toBe('notified');
  });

  test('Is over at once in a full room, for no time, and after the end', async () => {
    const full = open(1);
    const first = full.wait(['a'], 2_000, 1);
    expect(await full.wait(['a'], 2_000, 2)).toBe('timed_out');
    expect(await room.wait(['a'], 0, 3)).toBe('timed_out');
    full.close();
    expect(await first).toBe('closed');
    expect(await full.wait(['a'], 2_000, 4)).toBe('closed');
  });
});

describe('Of many that may go on', () => {
  test('Those who came first go first, a few at a time, and none is forgotten', async () => {
    const order: number[] = [];
    const turns = Array.from({ length: 80 }, (_, i) => (i * 37) % 80);
    const all = turns.map((turn) =>
      room.wait(['a'], 2_000, turn).then((woken) => order.push(woken === 'notified' ? turn : -1)),
    );
    room.notify(['a']);
    await Promise.all(all.filter((_, i) => (turns[i] ?? 99) < 32));
    expect(order).toEqual(Array.from({ length: 32 }, (_, i) => i));
    there.delete('a');
    park.advance(LOOK_MS);
    room.notify(['x']);
    park.advance(LOOK_MS);
    await Promise.all(all);
    expect(order).toEqual(Array.from({ length: 80 }, (_, i) => i));
  });
});
