/** Apps that write at a steady rate: gives, and now and then a transfer that is refused. */
import { monotonicMs } from '../../../src/kernel/clock.ts';
import type { App } from '../../harness/app.ts';

export interface Pace {
  seconds: number;
  /** Gives per second. */
  perS: number;
  /** Seconds between two transfers that are refused. */
  refusedEveryS: number;
}

export interface Write {
  /** Its operation; empty without an answer. */
  id: string;
  isRefused: boolean;
  status: number;
  tookMs: number;
  /** When it was answered, in milliseconds of `monotonicMs`. */
  answeredMs: number;
}

const TICK_MS = 5;
const REFUSED_AMOUNT = 10n ** 30n;

/** @returns the writes once all are answered */
export async function runLoad(
  app: App,
  wallets: readonly string[],
  { seconds, perS, refusedEveryS }: Pace,
): Promise<Write[]> {
  const started = monotonicMs();
  const writes: Promise<Write>[] = [];
  const wallet = (n: number) => wallets[n % wallets.length] ?? '';
  const { promise: over, resolve } = Promise.withResolvers<void>();
  let [gives, refused] = [0, 0];
  const tick = setInterval(() => {
    const nowS = (monotonicMs() - started) / 1000;
    for (; gives / perS <= Math.min(nowS, seconds); gives++) {
      const n = gives;
      writes.push(answered(() => app.give(wallet(n), 1 + n), false));
    }
    for (; refused * refusedEveryS <= Math.min(nowS, seconds); refused++) {
      const n = refused;
      const transfer = () => app.transfer(wallet(n), wallet(n + 1), REFUSED_AMOUNT);
      writes.push(answered(transfer, true));
    }
    if (nowS >= seconds) resolve();
  }, TICK_MS);
  await over;
  clearInterval(tick);
  return Promise.all(writes);
}

async function answered(write: () => ReturnType<App['give']>, isRefused: boolean): Promise<Write> {
  const started = monotonicMs();
  const answer = await write().catch(() => undefined);
  const answeredMs = monotonicMs();
  return {
    id: String(answer?.headers['tallyhook-operation'] ?? ''),
    isRefused,
    status: answer?.status ?? 0,
    tookMs: answeredMs - started,
    answeredMs,
  };
}
