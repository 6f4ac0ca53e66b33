/**
 * Every drift can be ended: after any sequence of changes made elsewhere, lost answers, late
 * reports, proposals and observations, the prepared proposals of the drifts that are left make
 * ledger and service agree.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { makeDecisions, makeReportedOperations } from '../../../src/operations/operations.ts';
import { makeDrifts, type ProposalInput } from '../../../src/reconciler/reconciler.ts';
import { reportOf } from '../../ledger/builders.ts';
import { faultsOf, NO_FAULTS, PLAIN } from '../../ledger/fixture.ts';
import { freshAddr, openRig } from '../rig.ts';

const rig = await openRig();
const { clock, ids, outbox, metrics, operations } = rig;
const { db } = rig.database;
const drifts = makeDrifts({ db, clock, outbox, operations, effectSettings: PLAIN });
const decisions = makeDecisions({ db, clock, outbox, metrics });
const reports = makeReportedOperations({
  db,
  clock,
  ids,
  outbox,
  metrics,
  effectSettings: PLAIN,
  includedInOpenings: async () => new Set(),
  observe: async () => {},
  onRecorded: () => {},
});
const [ann, bob] = ['ann', 'bob'].map((owner) => ({ owner, keyId: owner }));

const wallet = fc.nat(2);
const amount = fc.bigInt(1n, 6n);
const step = fc.oneof(
  fc.record({ do: fc.constant('change' as const), wallet, by: fc.bigInt(-9n, 9n) }),
  fc.record({ do: fc.constant('transfer elsewhere' as const), from: wallet, to: wallet, amount }),
  fc.record({ do: fc.constant('give elsewhere' as const), wallet, amount }),
  fc.record({ do: fc.constant('report' as const) }),
  fc.record({ do: fc.constant('lose' as const), wallet, amount, applied: fc.boolean() }),
  { weight: 8, arbitrary: fc.record({ do: fc.constant('observe' as const), wallet }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      wallet,
      proposal: fc.constantFrom('book' as const, 'dismiss' as const, undefined),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class World {
  readonly balances = [100n, 100n, 100n];
  readonly lost: { id: string; applied: boolean }[] = [];
  readonly unreported: (() => Promise<unknown>)[] = [];
  readonly addrs: string[];

  constructor(addrs: string[]) {
    this.addrs = addrs;
  }
  addr(i: number): string {
    return this.addrs[i] ?? '';
  }
  change(i: number, by: bigint): void {
    this.balances[i] = (this.balances[i] ?? 0n) + by;
  }
  observe(i: number): Promise<void> {
    return rig.observe(this.addr(i), this.balances[i] ?? 0n);
  }

  async take(one: Step): Promise<unknown> {
    switch (one.do) {
      case 'change':
        return this.change(one.wallet, one.by);
      case 'transfer elsewhere':
        this.change(one.from, -one.amount);
        return this.change(one.to, one.amount);
      case 'give elsewhere':
        return this.outsideGive(one.wallet, one.amount);
      case 'report':
        return this.unreported.shift()?.();
      case 'lose': {
        const id = await rig.give(this.addr(one.wallet), one.amount);
        await rig.lose(id);
        this.lost.push({ id, applied: one.applied });
        return one.applied ? this.change(one.wallet, one.amount) : undefined;
      }
      case 'observe':
        return this.observe(one.wallet);
      case 'end':
        return this.end(this.addr(one.wallet), { proposal: one.proposal, reason: 'r' });
    }
  }

  outsideGive(i: number, of: bigint): void {
    this.change(i, of);
    const fields = { operationNo: 7n, toAddr: this.addr(i), amount: of };
    const report = reportOf({ txAppNo: 1n, txLogNo: ++numbers, occurredAt: clock.now(), fields });
    this.unreported.push(() => reports.report([report], { owner: 'x', keyId: 'k' }));
  }

  /** Ends the first drift of a wallet; one that cannot be ended so stays as it is. */
  async end(addr: string, input: ProposalInput): Promise<void> {
    const [drift] = await rig.drifts(addr);
    if (!drift || !ann || !bob) return;
    const proposed = await drifts.propose([drift.id], input, ann);
    await drifts.approve(
      proposed.flatMap((result) => ('drift' in result ? result.id : [])),
      {},
      bob,
    );
  }

  /** All outcomes are decided as they were, then the drifts that are left are ended. */
  async finish(): Promise<void> {
    while (this.unreported.length > 0) await this.unreported.shift()?.();
    rig.passQuiescence();
    for (let i = 0; i < 3; i++) for (const n of this.addrs.keys()) await this.observe(n);
    await rig.wait(700_000);
    for (const { id, applied } of this.lost) {
      if ((await rig.operation(id))?.outcome !== (applied ? 'executed' : 'not_executed'))
        await this.decide(id, applied ? 'executed' : 'not_executed');
    }
    for (let round = 0; round < 12; round++) {
      for (let i = 0; i < 3; i++) for (const n of this.addrs.keys()) await this.observe(n);
      const open = await Promise.all(this.addrs.map((addr) => rig.drifts(addr)));
      if (open.flat().length === 0) return;
      for (const addr of this.addrs) await this.end(addr, { reason: 'prepared' });
    }
  }

  async decide(id: string, outcome: 'executed' | 'not_executed'): Promise<void> {
    if (!ann || !bob) return;
    await decisions.propose(id, { outcome, reason: 'r' }, ann);
    await decisions.approve(id, {}, bob);
  }
}

let numbers = 6_000_000n;

it('After any sequence every drift can be ended, and ledger and service agree', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const addrs = [freshAddr(), freshAddr(), freshAddr()];
      const world = new World(addrs);
      for (const n of addrs.keys()) await world.observe(n);
      for (const n of addrs.keys()) await world.observe(n);
      for (const one of steps) await world.take(one);
      await world.finish();
      await rig.post();
      for (const [i, addr] of addrs.entries()) {
        expect(await rig.drifts(addr)).toEqual([]);
        expect([i, await rig.balance(addr)]).toEqual([i, world.balances[i]]);
      }
      expect(await faultsOf(rig.database.owner)).toEqual(NO_FAULTS);
    }),
    { numRuns: 15, interruptAfterTimeLimit: 40_000 },
  );
});
