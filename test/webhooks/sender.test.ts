/** Which claimed deliveries are sent, and how many are claimed next, without a database. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { AttemptResponse } from '../../src/webhooks/delivery/http/attempt.ts';
import type { Job } from '../../src/webhooks/delivery/queue.ts';
import { Sender } from '../../src/webhooks/delivery/sender.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { manualClock } from '../harness/manual-clock.ts';

const SETTINGS = {
  ...webhookDefaults,
  slowAfterMs: 3_600_000,
  concurrency: 5,
  slowConcurrency: 4,
  connectionsPerOrigin: 9,
  retryShare: 0.3,
  inFlightPerEndpoint: 4,
  claimPerEndpointMax: 8,
};

const urlOf = (n: number) => `https://${n % 2}.example/${n}`;

/** A sender whose sends end when the test says so. */
function openSender() {
  const clock = manualClock();
  const sends: { n: number; job: Job; end: (status: number) => Promise<void> }[] = [];
  const waiting = new Set<Job>();
  const sender = new Sender({
    clock,
    settings: SETTINGS,
    daemons: () => 1,
    send(job) {
      waiting.delete(job);
      const { promise, resolve } = Promise.withResolvers<AttemptResponse>();
      const one = {
        n: Number(job.delivery.endpointId),
        job,
        async end(status: number) {
          sends.splice(sends.indexOf(one), 1);
          resolve({ status, error: null, durationMs: 1, body: null, headers: null } as never);
          await promise;
          await null;
        },
      };
      sends.push(one);
      return promise;
    },
    onSent: () => {},
    release(jobs) {
      for (const job of jobs) waiting.delete(job);
    },
    onProgress: () => {},
  });
  const capacityOf = (n: number, consecutiveFailures = 0) => {
    const ready = { endpointId: String(n), url: urlOf(n), maxInFlight: null, consecutiveFailures };
    return sender.capacities([ready])[0]?.n ?? 0;
  };
  /** Claims and accepts as many as the sender wants, at most `max`. */
  const fill = (n: number, { max = 100, failures = 0, isRetry = false } = {}) => {
    const jobs = Array.from({ length: Math.min(max, capacityOf(n, failures)) }, () => {
      const delivery = { endpointId: String(n), attempts: isRetry ? 1 : 0 };
      const endpoint = { endpointId: String(n), url: urlOf(n), consecutiveFailures: failures };
      return { delivery, endpoint, leaseUntil: clock.now() + 60_000 } as Job;
    });
    for (const job of jobs) waiting.add(job);
    sender.accept(jobs);
  };
  return { sender, sends, waiting, capacityOf, fill };
}

it('An endpoint that failed last is not among those served lately, until it delivers', async () => {
  const { sends, fill, sender } = openSender();
  const served = () => sender.servedSince(0).map(({ endpointId }) => endpointId);
  const answers: [status: number, served: string[]][] = [
    [200, ['1']],
    [500, []],
    [200, ['1']],
  ];
  for (const [status, expected] of answers) {
    fill(1, { max: 1 });
    await sends[0]?.end(status);
    expect(served()).toEqual(expected);
  }
});

it('What is claimed and sent of an endpoint grows while it keeps up, to its bounds', async () => {
  const { sends, fill, capacityOf, sender } = openSender();
  const [inFlight, claimed] = [[] as number[], [] as number[]];
  for (let n = 0; n < 30; n++) {
    fill(1);
    inFlight.push(sends.length);
    claimed.push(sender.claimed);
    await sends[0]?.end(200);
  }
  expect(inFlight.slice(0, 4)).toEqual([1, 2, 4, 4]);
  expect([Math.max(...inFlight), Math.max(...claimed)]).toEqual([4, 8]);
  expect(claimed.findIndex((count) => count > 4)).toBeGreaterThan(2);
  while (sends.length > 0) await sends[0]?.end(200);
  expect(capacityOf(1)).toBe(8);
  expect([capacityOf(1, 1), capacityOf(1, 5)]).toEqual([2, 1]);
});

it('A failure gives back what waits, and the endpoint begins again with one', async () => {
  const { sender, sends, waiting, fill, capacityOf } = openSender();
  for (let n = 0; n < 10; n++) {
    fill(1);
    await sends[0]?.end(200);
  }
  fill(1);
  expect(sends.length).toBe(4);
  expect(waiting.size).toBeGreaterThan(0);
  await sends[0]?.end(503);
  expect([sends.length, waiting.size, sender.claimed]).toEqual([3, 0, 3]);
  while (sends.length > 0) await sends[0]?.end(503);
  expect(capacityOf(1)).toBe(1);
  fill(1);
  expect(sends.length).toBe(1);
});

it('Endpoints take turns, however much waits of each', async () => {
  const { sends, fill } = openSender();
  for (let n = 0; n < 12; n++) {
    fill(1);
    await sends[0]?.end(200);
  }
  while (sends.length > 0) await sends[0]?.end(200);
  fill(1);
  fill(3);
  expect(sends.map(({ n }) => n)).toEqual([1, 1, 1, 1, 3]);
  await sends.find(({ n }) => n === 3)?.end(200);
  fill(3);
  expect(sends.map(({ n }) => n)).toEqual([1, 1, 1, 1, 3]);
  await sends[0]?.end(200);
  expect(sends.map(({ n }) => n)).toEqual([1, 1, 1, 3, 1]);
  await sends[0]?.end(200);
  expect(sends.map(({ n }) => n)).toEqual([1, 1, 3, 1, 3]);
});

it('Retries have a part of the slots, and what was never sent does not wait behind them', async () => {
  const { sends, fill } = openSender();
  for (const n of [1, 2, 3]) {
    fill(n);
    await sends[0]?.end(200);
  }
  for (const n of [1, 2]) fill(n, { isRetry: true });
  expect(sends.map(({ n }) => n)).toEqual([1]);
  fill(3);
  expect(sends.map(({ n }) => n)).toEqual([1, 3, 3]);
  await sends[0]?.end(200);
  expect(sends.map(({ n }) => n)).toEqual([3, 3, 1]);
});

it('In any order of claims and answers all bounds hold, and no endpoint waits for nothing', async () => {
  const step = fc.record({
    n: fc.nat(5),
    max: fc.integer({ min: 1, max: 8 }),
    failures: fc.constantFrom(0, 0, 0, 1, 3),
    isRetry: fc.boolean(),
    ends: fc.nat(6),
    status: fc.constantFrom(200, 200, 200, 503),
  });
  const { concurrency, slowConcurrency, inFlightPerEndpoint } = SETTINGS;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
      const { sender, sends, waiting, fill } = openSender();
      for (const { n, ends, status, ...claim } of steps) {
        fill(n, claim);
        for (let i = 0; i < ends && sends.length > 0; i++)
          await sends[(n + i) % sends.length]?.end(status);
        const open = Map.groupBy(sends, (send) => send.n);
        const most = Math.max(0, ...[...open.values()].map((some) => some.length));
        expect(most).toBeLessThanOrEqual(inFlightPerEndpoint);
        expect(sends.length).toBeLessThanOrEqual(concurrency + slowConcurrency);
        expect(sender.sending).toBe(sends.length);
        expect(sender.claimed).toBe(sends.length + waiting.size);
        const isIdle = ({ delivery }: Job) =>
          delivery.attempts === 0 && !open.has(Number(delivery.endpointId));
        const haveSlots = sends.length < Math.min(concurrency, slowConcurrency);
        expect(haveSlots && [...waiting].some(isIdle)).toBe(false);
      }
      while (sends.length > 0) await sends[0]?.end(200);
      expect(waiting.size).toBe(0);
    }),
  );
});
