/**
 * Apps that write through several daemons as behind a load balancer: a daemon that is not ready or
 * draining gets nothing new, and what it refused or a cut connection is sent to the next one under
 * the same idempotency key.
 */
import { must } from '../../../src/kernel/errors.ts';
import { type Answered, makeApp } from '../../harness/app.ts';
import type { DaemonProcess, World } from '../../harness/daemon.ts';
import { until } from '../../harness/until.ts';

const WORKERS = 4;
const FIRST_AMOUNT = 10_000;

interface Counts {
  /** Writes that were answered 2xx. */
  written: number;
  /** Tries that another daemon got, by why. */
  elsewhere: Record<string, number>;
  /** Writes that every daemon refused. */
  refused: string[];
  /** Answers of /readyz other than 200 of daemons that take traffic. */
  unready: Record<string, number>;
  slowestMs: number;
}

export function startLoad(world: World, daemons: readonly DaemonProcess[]) {
  const counts: Counts = { written: 0, elsewhere: {}, refused: [], unready: {}, slowestMs: 0 };
  const answered = new Map<number, Answered>();
  const addresses = world.sandbox.control.state().members.flatMap(({ addr }) => addr ?? []);
  let next = FIRST_AMOUNT;
  let stopped = false;

  const add = (to: Record<string, number>, why: string) => {
    to[why] = (to[why] ?? 0) + 1;
  };
  async function write(n: number): Promise<void> {
    const tried: string[] = [];
    const started = performance.now();
    for (let turn = n; tried.length < 6; turn++) {
      const daemon = must(daemons[turn % daemons.length], 'daemon');
      const app = makeApp(() => daemon.url);
      const key = { 'idempotency-key': `upgrade-${n}` };
      const to = must(addresses[n % 2], 'address');
      const answer = await app.give(to, n, key).catch((error: Error) => error);
      if (!(answer instanceof Error) && answer.status < 300) {
        answered.set(n, answer);
        counts.written += 1;
        counts.slowestMs = Math.max(counts.slowestMs, performance.now() - started);
        return;
      }
      const why =
        answer instanceof Error ? answer.message : `${answer.status} ${answer.text.slice(0, 200)}`;
      tried.push(why);
      add(counts.elsewhere, why);
    }
    counts.refused.push(tried.join('; '));
  }
  async function worker(): Promise<void> {
    while (!stopped) await write(next++);
  }
  async function watchReadiness(): Promise<void> {
    await until(
      async () => {
        for (const daemon of [...daemons]) {
          const answer = await makeApp(() => daemon.url)
            .call('GET', '/readyz')
            .catch((error: Error) => ({ status: 0, text: error.message }));
          if (answer.status !== 200 && daemons.includes(daemon)) add(counts.unready, answer.text);
        }
        return stopped || undefined;
      },
      { deadlineMs: 600_000, everyMs: 50 },
    );
  }
  const all = Promise.all([...Array.from({ length: WORKERS }, worker), watchReadiness()]);
  return {
    answered,
    counts,
    /** Waits for so many more writes. */
    async more(writes: number): Promise<void> {
      const goal = counts.written + counts.refused.length + writes;
      await until(async () => counts.written + counts.refused.length >= goal || undefined);
    },
    mark: () => structuredClone(counts),
    since(mark: Counts) {
      const slowest = counts.slowestMs;
      counts.slowestMs = 0;
      return { ...structuredClone(counts), written: counts.written - mark.written, slowest };
    },
    async stop(): Promise<void> {
      stopped = true;
      await all;
    },
  };
}
