/**
 * Apps that write through several daemons without a pause. What a daemon that leaves refuses, or a
 * connection that it cuts, is sent to the next one under the same idempotency key, as a load
 * balancer or an app does; a write that no daemon takes is refused.
 */
import { monotonicMs } from '../../../src/kernel/clock.ts';
import { must } from '../../../src/kernel/errors.ts';
import { makeApp } from '../../harness/app.ts';
import type { DaemonProcess, World } from '../../harness/daemon.ts';
import { until } from '../../harness/until.ts';

const WORKERS = 4;
const TRIES_MAX = 6;
const READYZ_MS = 50;
const FIRST_AMOUNT = 10_000;

export class Load {
  /** The ids of operations that were answered 200, by amount. */
  readonly answered = new Map<number, string>();
  /** Why another daemon got a write, and how often. */
  readonly resent: Record<string, number> = {};
  /** What every daemon answered to a write. */
  readonly refused: string[] = [];
  /** Answers of /readyz other than 200, by daemons that do not leave. */
  readonly unready: string[] = [];
  /** Daemons that were told to stop, or are not yet replaced. */
  readonly leaving = new Set<DaemonProcess>();
  /** The answer times of writes, in milliseconds; the reader empties the list. */
  readonly durations: number[] = [];
  private readonly addresses: string[];
  private readonly daemons: readonly DaemonProcess[];
  private readonly ended: Promise<unknown>;
  private next = FIRST_AMOUNT;
  private stopped = false;

  /** @param daemons those that get writes; may be changed while it runs */
  constructor({ ada, ben }: World, daemons: readonly DaemonProcess[]) {
    this.addresses = [ada, ben];
    this.daemons = daemons;
    const workers = Array.from({ length: WORKERS }, () => this.work());
    this.ended = Promise.all([...workers, this.watchReadiness()]);
  }

  /** Waits for so many more writes. */
  async more(writes: number): Promise<void> {
    const done = () => this.answered.size + this.refused.length;
    const goal = done() + writes;
    await until(async () => done() >= goal || undefined);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.ended;
  }

  private async work(): Promise<void> {
    while (!this.stopped) {
      const n = this.next++;
      const startedMs = monotonicMs();
      await this.write(n);
      this.durations.push(monotonicMs() - startedMs);
    }
  }

  private async write(n: number): Promise<void> {
    const tried: string[] = [];
    for (let turn = n; tried.length < TRIES_MAX; turn++) {
      const daemon = must(this.daemons[turn % this.daemons.length], 'daemon');
      const key = { 'idempotency-key': `upgrade-${n}` };
      const answer = await makeApp(() => daemon.url)
        .give(must(this.addresses[n % 2], 'address'), n, key)
        .catch(({ message }: Error) => ({ status: 0, text: message, headers: undefined }));
      if (answer.status === 200) {
        this.answered.set(n, String(answer.headers?.['tallyhook-operation']));
        return;
      }
      const why = `${answer.status} ${answer.text}`;
      tried.push(why);
      this.resent[why] = (this.resent[why] ?? 0) + 1;
    }
    this.refused.push(tried.join('\n'));
  }

  private async watchReadiness(): Promise<void> {
    while (!this.stopped) {
      for (const daemon of [...this.daemons]) {
        const answer = await makeApp(() => daemon.url)
          .call('GET', '/readyz')
          .catch(({ message }: Error) => ({ status: 0, text: message }));
        if (answer.status !== 200 && !this.leaving.has(daemon)) this.unready.push(answer.text);
      }
      await until(async () => this.stopped || undefined, { deadlineMs: READYZ_MS });
    }
  }
}
