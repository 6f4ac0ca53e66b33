/**
 * An operator whose watched wallet no setting names gets it while its gives go on: from the
 * settings file by a start, or from two owners without one.
 */
import { describe, expect, it } from 'vitest';
import { isoText, systemClock } from '../../src/kernel/clock.ts';
import { type Answered, type App, makeApp } from '../harness/app.ts';
import { runCommand } from '../harness/command.ts';
import { QUICK } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';

/** A wallet that a daemon polls when it is killed is polled again after twice that time. */
const QUICK_POLLS = { observer: { ...QUICK.observer, poll_timeout_ms: 1_000 } };
const [BY_GIVES, EXPLAINED] = [Array(3).fill('operator_wallet'), Array(3).fill('explained')];

/** Registers the hooks of an installation whose settings name no wallet of operator 1. */
function useOperator(more: object = {}) {
  const settings = { ledger: { operators: {} as Record<string, string> }, ...more };
  const rig = useRig(settings);
  const sql = <T extends object>(text: string) =>
    rig.world.database.owner.sql.unsafe<T[]>(text).then((rows) => [...rows]);
  const drifts = (where: string) =>
    sql<{ cause: string; state: string }>(
      `select cause, state from tallyhook.drifts where ${where} order by opened_at, id`,
    );
  /** Its wallet, which the sandbox knows. */
  const addr = () => {
    const { operators } = rig.world.sandbox.control.state();
    return operators.find((one) => one.operation_no === 1n)?.addr ?? '';
  };
  const call = (by: App, act: string, body: object) =>
    by.call('POST', `/api/operators/1/${act}`, body);
  return {
    rig,
    settings,
    sql,
    addr,
    openDrifts: () => drifts('closed_at is null'),
    states: async () => (await drifts('true')).map(({ state }) => state),
    /** Watches the wallet and gives three times, each of which is a drift of it. */
    async recognise(): Promise<void> {
      await rig.observe(addr());
      for (const [i, amount] of [11, 12, 13].entries()) {
        await rig.app.give(rig.world.ada, amount);
        await expect.poll(async () => (await drifts('true')).length).toBe(i + 1);
      }
      const causes = async () => (await drifts('closed_at is null')).map(({ cause }) => cause);
      await expect.poll(causes).toEqual(BY_GIVES);
    },
    /** How much more of the wallet the service shows than the ledger, once all is posted. */
    async off(): Promise<number | undefined> {
      const rows = await sql<{ off: number }>(`select (w.observed_balance - a.balance)::int as off
        from tallyhook.wallets w join tallyhook.accounts a on lower(a.name) = 'wallet:' || w.key
        where w.key = lower('${addr()}') and not exists (select from tallyhook.due_postings)`);
      return rows[0]?.off;
    },
    /** What is on the account of the operator itself. */
    async unmapped(): Promise<bigint> {
      const rows = await sql<{ balance: bigint }>(
        `select balance from tallyhook.accounts where name = 'operator:1'`,
      );
      return rows[0]?.balance ?? 0n;
    },
    /** The breaks of a report over the time of the test. */
    async breaks(app = rig.app): Promise<string[]> {
      const now = systemClock.now();
      const period = { from: isoText(now - 600_000), to: isoText(now + 60_000) };
      const body = { kind: 'reconciliation', ...period };
      const made = await app.call('POST', '/api/reports', body);
      const { json } = await app.call('GET', `/api/reports/${made.json.id}`);
      return json.content.breaks.listed.map(({ kind }: { kind: string }) => kind);
    },
    /** Ann proposes and Bob approves; apps of both. */
    async people(): Promise<{ ann: App; bob: App; run: (...args: string[]) => Run }> {
      const keyOf = async (owner: string) => {
        const body = { name: owner, owner, scopes: ['read', 'decide'] };
        return (await rig.app.call('POST', '/api/keys', body)).json.key;
      };
      const [ann, bob] = [await keyOf('ann'), await keyOf('bob')];
      const app = (key: string) => makeApp(() => rig.daemon.url, key);
      const run = (...args: string[]) =>
        runCommand({ TALLYHOOK_URL: rig.daemon.url, TALLYHOOK_KEY: ann }, 'operators', ...args);
      return { ann: app(ann), bob: app(bob), run };
    },
    propose: (by: App) => call(by, 'propose', { addr: addr(), reason: 'the contract says so' }),
    approve: (by: App): Promise<Answered> => call(by, 'approve', {}),
  };
}
type Run = ReturnType<typeof runCommand>;

describe('With the setting of its wallet', () => {
  const operator = useOperator();
  const { rig, settings, openDrifts } = operator;

  it('After a start with the wallet of an operator, the drifts of its gives close as explained', async () => {
    await operator.recognise();
    settings.ledger.operators['1'] = operator.addr();
    await rig.restart();
    await expect.poll(openDrifts).toEqual([]);
    expect(await operator.states()).toEqual(EXPLAINED);
    await rig.app.give(rig.world.ada, 14);
    await expect.poll(operator.off).toBe(0);
    await expect.poll(() => operator.breaks()).toEqual([]);
    expect(await openDrifts()).toEqual([]);
  });
});

describe('Mapped by two owners', () => {
  const operator = useOperator();
  const { rig, openDrifts } = operator;

  it('Without a start its gives are posted from the wallet, their drifts close, and later gives make none', async () => {
    await operator.recognise();
    const { ann, bob, run } = await operator.people();
    const tried = await run(
      'propose',
      '1',
      '--addr',
      operator.addr(),
      '--reason',
      'r',
      '--dry-run',
    );
    expect(tried.text).toContain('"gives":3');
    const proposed = await operator.propose(ann);
    expect(proposed.status, proposed.text).toBe(200);
    expect(proposed.json).toMatchObject({ operator_no: '1', addr: null, source: null });
    expect(proposed.json.proposal).toMatchObject({ n: 1, state: 'proposed', proposed_by: 'ann' });
    expect(proposed.json.effect).toMatchObject({ addr: operator.addr(), gives: 3 });
    expect(proposed.json.effect.drifts).toHaveLength(3);
    expect((await operator.approve(ann)).json.code).toBe('same_owner');
    expect(await operator.unmapped()).toBe(-36n);

    const approved = await operator.approve(bob);
    expect(approved.json).toMatchObject({ addr: operator.addr(), source: 'mapping', effect: null });
    expect(approved.json.proposal).toMatchObject({ state: 'active', approved_by: 'bob' });
    await expect.poll(openDrifts).toEqual([]);
    expect(await operator.states()).toEqual(EXPLAINED);
    expect(await operator.unmapped()).toBe(0n);

    await rig.app.give(rig.world.ada, 14);
    await expect.poll(operator.off).toBe(0);
    await expect.poll(() => operator.breaks()).toEqual([]);
    expect(await operator.states()).toEqual(EXPLAINED);
    // It was recorded on the wallet, not moved to it.
    expect(
      await operator.sql(`select from tallyhook.entries e join tallyhook.accounts a
      on a.id = e.account_id where a.name = 'operator:1'`),
    ).toHaveLength(6);
    expect(
      await operator.sql('select addr from finance_v1.operators where addr is not null'),
    ).toEqual([{ addr: operator.addr() }]);
    expect((await run('list')).text).toMatch(/operator_no +addr +source\n1 +0x\w+ +mapping/);
    const audit = await rig.app.call('GET', '/api/audit?limit=20');
    const entries = audit.json.data.filter((one: { action: string }) =>
      one.action.startsWith('POST /api/operators/{no}/'),
    );
    expect(
      entries
        .map(({ owner, action, detail, result }: Record<string, object>) => {
          return [owner, action, detail, result];
        })
        .slice(0, 2),
    ).toEqual([
      ['bob', 'POST /api/operators/{no}/approve', { no: 1 }, 'done'],
      ['ann', 'POST /api/operators/{no}/approve', { no: 1 }, 'same_owner'],
    ]);
  });
});

describe('Mapped while something goes wrong', () => {
  const operator = useOperator(QUICK_POLLS);
  const { rig, openDrifts } = operator;

  it('A daemon that is killed between the approval and the moving loses nothing', async () => {
    await operator.recognise();
    const { ann, bob } = await operator.people();
    expect((await operator.propose(ann)).status).toBe(200);
    // The ledger waits for this lock, so the daemon dies after the approval and before the moving.
    await rig.world.database.owner.begin(async ({ sql }) => {
      await sql`lock table tallyhook.batches in exclusive mode`;
      expect((await operator.approve(bob)).status).toBe(200);
      await rig.daemon.kill();
    });
    expect(await operator.unmapped()).toBe(-36n);
    await rig.restart();
    await rig.app.give(rig.world.ada, 14);
    await expect.poll(openDrifts).toEqual([]);
    expect(await operator.states()).toEqual(EXPLAINED);
    expect(await operator.unmapped()).toBe(0n);
    await expect.poll(operator.off).toBe(0);
  });
});

describe('Mapped at one of two daemons', () => {
  const operator = useOperator(QUICK_POLLS);
  const { rig, openDrifts } = operator;

  it('What the other records before it knows of the mapping is posted from the wallet as well', async () => {
    const app = makeApp(() => second.url);
    const second = await rig.another();
    await operator.recognise();
    const { ann, bob } = await operator.people();
    await operator.propose(ann);
    expect((await operator.approve(bob)).status).toBe(200);
    // It goes on alone, so that it has to learn of the mapping by itself.
    await rig.daemon.kill();
    const gives = [14, 15, 16, 17].map((amount) => app.give(rig.world.ben, amount));
    expect((await Promise.all(gives)).map(({ status }) => status)).toEqual(Array(4).fill(200));
    await expect.poll(operator.unmapped).toBe(0n);
    await expect.poll(operator.off).toBe(0);
    await expect.poll(openDrifts).toEqual([]);
    expect(await operator.states()).not.toContain('returned');
    await expect.poll(() => operator.breaks(app)).toEqual([]);
  });
});
