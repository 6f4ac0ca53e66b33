/** Gives of a bench, and how long their events take to a receiver (`fan-out-receiver.ts`). */
import { request } from 'undici';
import { monotonicMs, pause } from '../../../src/kernel/clock.ts';
import { until } from '../../harness/until.ts';
import { GIVE, KEY, type Running, WALLETS } from './daemon.ts';
import { quantileOf, type Sample } from './frame.ts';

const ENDS_WITHIN_MS = 300_000;

/** Waits until so many have come. */
export async function received(receiver: Running, count: number): Promise<void> {
  const isAll = async () => ((await heard(receiver)).count >= count ? true : undefined);
  if (!(await until(isAll, { deadlineMs: ENDS_WITHIN_MS, everyMs: 20 })))
    throw new Error(`not everything arrived within ${ENDS_WITHIN_MS} ms`);
}

export interface Pace {
  perSecond: number;
  seconds: number;
  /** Deliveries of each event. */
  each: number;
}

/** From the answer to each give until its event has arrived at each endpoint; p95 is the value. */
export async function waitsOf(daemon: Running, receiver: Running, pace: Pace): Promise<Sample> {
  const { perSecond, seconds, each } = pace;
  await forget(receiver);
  const answered = new Map<string, number>();
  const gives: Promise<void>[] = [];
  const startedAt = monotonicMs();
  const count = perSecond * seconds;
  for (let n = 0; n < count; n++) {
    await pause(Math.max(0, startedAt + (n * 1000) / perSecond - monotonicMs()));
    gives.push(give(daemon, n).then(([id, at]) => void answered.set(id, at)));
  }
  await Promise.all(gives);
  await received(receiver, count * each);
  const waits = (await heard(receiver, '/times')).times.flatMap(([id, at]) => {
    const from = answered.get(id);
    return from === undefined ? [] : [at - from];
  });
  waits.sort((a, b) => a - b);
  const [value = Number.NaN, p50 = Number.NaN, p99 = Number.NaN] = [0.95, 0.5, 0.99].map((share) =>
    quantileOf(waits, share),
  );
  return { value, p50, p99 };
}

/** Answers the id of the operation, and when it was answered, as the receiver tells time. */
export async function give(daemon: Running, n: number): Promise<[id: string, at: number]> {
  const toAddr = `0x${(1 + (n % WALLETS)).toString(16).padStart(40, 'b')}`;
  const { statusCode, headers, body } = await request(`${daemon.url}${GIVE}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ toAddr, amount: 1, reasonType: 'bench' }),
  });
  const at = performance.timeOrigin + performance.now();
  await body.dump();
  if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
  return [String(headers['tallyhook-operation']), at];
}

interface Heard {
  count: number;
  times: [id: string, at: number][];
}

async function heard({ url }: Running, path = '/'): Promise<Heard> {
  return (await request(`${url}${path}`)).body.json() as Promise<Heard>;
}

/** Makes the receiver forget what came. */
export async function forget({ url }: Running): Promise<void> {
  await (await request(url, { method: 'DELETE' })).body.dump();
}
