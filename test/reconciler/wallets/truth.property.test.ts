/**
 * A service that applies a write when it is sent or never, and that shows it at once: after any
 * sequence of writes, answers, reports, decisions, postings and observations, ledger and service
 * agree, no drift is open, and every operation has the outcome that it had at the service. Each
 * change is explained when it is observed, unless its report comes later or a decision was wrong.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { listIncludedInOpenings } from '../../../src/ledger/ledger.ts';
import {
  makeDecisions,
  makeReportedOperations,
  type Report,
} from '../../../src/operations/operations.ts';
import { makeOutbox } from '../../../src/outbox/outbox.ts';
import { reportOf } from '../../ledger/builders.ts';
import { PLAIN } from '../../ledger/fixture.ts';
import { freshAddr, openRig } from '../rig.ts';

const rig = await openRig();
const { db } = rig.database;
const { metrics } = rig;
const outbox = makeOutbox({ clock: rig.clock, ids: rig.ids });
const deps = { db, clock: rig.clock, ids: rig.ids, outbox, metrics };
const decisions = makeDecisions(deps);
const reports = makeReportedOperations({
  ...deps,
  effectSettings: PLAIN,
  includedInOpenings: (tx, operations, before) =>
    listIncludedInOpenings(tx, operations, PLAIN, before),
  observe: async () => {},
  onRecorded: () => {},
});

const wallet = fc.nat(2);
const amount = fc.bigInt(1n, 6n);
const which = fc.nat(20);
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      from: fc.option(wallet),
      to: wallet,
      amount,
      applied: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('answer' as const, 'answer' as const, 'lose' as const),
      which,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('give of others' as const),
      to: wallet,
      amount,
      agoMs: fc.nat(3_000),
      reported: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('decide' as const, 'report' as const),
      which,
      right: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('post' as const) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('observe' as const),
      wallet,
      afterMs: fc.constantFrom(0, 100, 900, 2_000),
      // Else a later one may replace it unprocessed.
      processed: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(40_000, 700_000),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

type GiveOfOthers = Extract<Step, { do: 'give of others' }>;
interface Sent {
  id: string;
  applied: boolean;
  answered: boolean;
}

class World {
  readonly addrs = [freshAddr(), freshAddr(), freshAddr()];
  readonly balances = [100n, 100n, 100n];
  readonly sent: Sent[] = [];
  /** Wallets that may have an opening. */
  readonly observed = new Set<number>();
  readonly unreported: Report[] = [];
  /** Whether a change may be unexplained: one is not reported, or a decision was wrong. */
  disturbed = false;

  addr(i: number): string {
    return this.addrs[i] ?? '';
  }
  change(i: number, by: bigint): void {
    this.balances[i] = (this.balances[i] ?? 0n) + by;
  }

  async take(one: Step): Promise<void> {
    switch (one.do) {
      case 'write': {
        const { from, to, amount: n, applied } = one;
        const id =
          from === null
            ? await rig.give(this.addr(to), n)
            : await rig.transfer(this.addr(from), this.addr(to), n);
        this.sent.push({ id, applied, answered: false });
        if (!applied) return;
        if (from !== null) this.change(from, -n);
        return this.change(to, n);
      }
      case 'answer':
      case 'lose': {
        const sent = this.sent[one.which % this.sent.length];
        if (!sent || sent.answered) return;
        if (one.do === 'lose') {
          if ((await rig.stateOf(sent.id)) === 'sending') await rig.lose(sent.id);
          return;
        }
        return this.answer(sent);
      }
      case 'give of others':
        return this.giveOfOthers(one);
      case 'report':
        return this.report();
      case 'decide': {
        const sent = this.sent[one.which % this.sent.length];
        if (!sent) return;
        if (!one.right) this.disturbed = true;
        await this.decide(sent.id, one.right === sent.applied ? 'executed' : 'not_executed');
        return;
      }
      case 'post':
        await rig.post();
        return;
      case 'observe': {
        rig.clock.advance(one.afterMs);
        await rig.putObservation(this.addr(one.wallet), this.balances[one.wallet] ?? 0n);
        this.observed.add(one.wallet);
        if (one.processed) await rig.process();
        return;
      }
      case 'wait':
        return rig.wait(one.ms);
    }
  }

  /** A give made by others; unless it is reported at once, it may be unexplained. */
  async giveOfOthers({ to, amount: n, agoMs, reported }: GiveOfOthers): Promise<void> {
    if (!reported && this.observed.has(to)) this.disturbed = true;
    this.change(to, n);
    const fields = { operationNo: 7n, toAddr: this.addr(to), amount: n };
    this.unreported.push(
      reportOf({ txAppNo: 1n, txLogNo: number(), occurredAt: rig.clock.now(), fields }),
    );
    rig.clock.advance(agoMs);
    if (reported) await this.report();
  }

  async report(): Promise<void> {
    const report = this.unreported.pop();
    if (report) await reports.report([report], { owner: 'x', keyId: 'k' });
  }

  async answer(sent: Sent): Promise<void> {
    sent.answered = true;
    if (sent.applied) await rig.accept(sent.id, number());
    else
      await rig.conclude(sent.id, { class: 'rejected', status: 406, code: '198', message: 'no' });
  }

  async decide(id: string, outcome: 'executed' | 'not_executed'): Promise<void> {
    try {
      await decisions.propose(id, { outcome, reason: 'r' }, { owner: 'a', keyId: 'a' });
    } catch {
      return;
    }
    await decisions.approve(id, {}, { owner: 'b', keyId: 'b' });
  }

  async observeAll(): Promise<void> {
    for (const [i, addr] of this.addrs.entries()) await rig.observe(addr, this.balances[i] ?? 0n);
  }

  async end(): Promise<void> {
    for (const { id } of this.sent) if ((await rig.stateOf(id)) === 'sending') await rig.lose(id);
    while (this.unreported.length > 0) await this.report();
    rig.passQuiescence();
    for (let i = 0; i < 3; i++) await this.observeAll();
    await rig.wait(700_000);
    await this.observeAll();
    await rig.wait(6_000);
    for (const { id, applied } of this.sent) {
      await this.decide(id, applied ? 'executed' : 'not_executed');
    }
    for (let i = 0; i < 6; i++) await this.observeAll();
  }
}

let numbers = 5_000_000n;
function number(): bigint {
  return ++numbers;
}

it('Ledger and service agree after any sequence of writes, answers, decisions and observations', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const world = new World();
      for (const one of steps) await world.take(one);
      await world.end();
      for (const { id, applied } of world.sent) {
        const operation = await rig.operation(id);
        expect([id, operation?.outcome, operation?.state]).toEqual([
          id,
          applied ? 'executed' : 'not_executed',
          applied ? 'settled' : expect.anything(),
        ]);
      }
      for (const [i, addr] of world.addrs.entries()) {
        expect([i, await rig.balance(addr)]).toEqual([i, world.balances[i]]);
        expect(await rig.drifts(addr)).toEqual([]);
        const events = (await rig.eventsOf(addr)).map(({ data }) => data.explanation);
        if (!world.disturbed) expect(events).not.toContain('unexplained');
      }
    }),
    { numRuns: 15, interruptAfterTimeLimit: 40_000 },
  );
});
