import { describe, expect, it } from 'vitest';
import type { EffectSettings } from '../../../src/operations/operations.ts';
import { freshAddr, openRig } from '../rig.ts';

const DAY_MS = 86_400_000;
const OPERATOR = freshAddr();
const FEES = freshAddr();
/** Operator 7 pays from and collects in a readable wallet; fees go to another one. */
const ACCOUNTS: EffectSettings = {
  feeMode: 'on_top',
  operators: new Map([['7', OPERATOR]]),
  feesAddr: FEES,
  collectionAddr: OPERATOR,
};
/** An operator without a readable wallet. */
const UNREADABLE = 9n;

const rig = await openRig({ books: ACCOUNTS });
const deducted = await openRig({ books: { ...ACCOUNTS, feeMode: 'deducted' } });
/** The service's balance of the operator, as the tests change it. */
let operator = 1_000_000n;
await rig.opened(operator, OPERATOR);
await rig.opened(0n, FEES);

/** An unknown give by an operator without a readable wallet. */
async function unknownGive(toAddr: string, amount: bigint): Promise<string> {
  const id = await rig.give(toAddr, amount, UNREADABLE);
  await rig.lose(id);
  return id;
}

describe('Ledger accounts kept in wallets', () => {
  it('The wallets of operators and fees are observed without a watch', async () => {
    expect(await rig.dueInMs({ kind: 'wallet', addr: FEES })).toBeTypeOf('number');
    const rows = await rig.database.db.sql`
      select name from tallyhook.targets where name = ${`wallet:${OPERATOR.toLowerCase()}`}`;
    expect(rows).toHaveLength(1);
  });

  it('An unknown transfer with a fee is resolved by sender, receiver and fees together', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(a, b, 10n, 2n);
    await rig.lose(id);
    for (let i = 0; i < 2; i++) await rig.observeAll([a, 88n], [b, 10n], [FEES, 2n]);
    expect(await rig.stateOf(id)).toBe('executed');
    await rig.post();
    expect(await rig.balance(FEES)).toBe(2n);
  });

  it('An unknown deduction is resolved by the user and the collection', async () => {
    const a = await rig.opened(100n);
    const id = await rig.send('receive_from', { fromAddr: a, amount: 10n, feeAmount: 0n });
    await rig.lose(id);
    operator += 10n;
    await rig.observeAll([a, 90n], [OPERATOR, operator], [a, 90n], [OPERATOR, operator]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('With fee mode deducted the receiver shows the amount without the fee', async () => {
    const [a, b] = [await deducted.opened(100n), await deducted.opened(0n)];
    await deducted.opened(0n, FEES);
    const id = await deducted.transfer(a, b, 10n, 2n);
    await deducted.lose(id);
    for (let i = 0; i < 2; i++) await deducted.observeAll([a, 90n], [b, 8n], [FEES, 2n]);
    expect(await deducted.stateOf(id)).toBe('executed');
  });

  it('Twelve unknown gives of one operator are resolved by their receivers', async () => {
    const receivers: string[] = [];
    for (let i = 0; i < 12; i++) receivers.push(await rig.opened(0n));
    const ids: string[] = [];
    for (const addr of receivers) ids.push(await rig.give(addr, 5n));
    for (const id of ids) await rig.lose(id);
    rig.passQuiescence();
    operator -= 5n * 8n;
    const shown = receivers.map((addr, i): [string, bigint] => [addr, i % 3 === 0 ? 0n : 5n]);
    for (let i = 0; i < 2; i++) await rig.observeAll(...shown, [OPERATOR, operator]);
    const states = await Promise.all(ids.map((id) => rig.stateOf(id)));
    expect(states).toEqual(ids.map((_, i) => (i % 3 === 0 ? 'not_executed' : 'executed')));
  });
});

describe('Many unknown gives of one operator after an outage', () => {
  it('Ambiguous ones among them do not delay those that their receivers show', async () => {
    const receivers: string[] = [];
    for (let i = 0; i < 8; i++) receivers.push(await rig.opened(0n));
    const [clear = '', ...ambiguous] = receivers;
    const id = await rig.give(clear, 5n);
    const others: string[] = [];
    for (const addr of [...ambiguous, ...ambiguous]) others.push(await rig.give(addr, 5n));
    for (const one of [id, ...others]) await rig.lose(one);
    operator -= 5n * 8n;
    const shown = receivers.map((addr): [string, bigint] => [addr, 5n]);
    for (let i = 0; i < 2; i++) await rig.observeAll([OPERATOR, operator], ...shown);
    await rig.wait(10_000);
    expect(['executed', 'settled']).toContain(await rig.stateOf(id));
    for (const one of others) expect(await rig.stateOf(one)).toBe('unknown');
  });
});

describe('More unknown gives to one wallet than are tried as subsets', () => {
  /** Twenty unknown gives of 5 to a wallet that holds 100. */
  async function twentyLost() {
    const a = await rig.opened(100n);
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push(await rig.give(a, 5n, UNREADABLE));
    for (const id of ids) await rig.lose(id);
    return { a, states: () => Promise.all(ids.map((id) => rig.stateOf(id))) };
  }

  /** Observes it in four passes, because a pass ends early after a while. */
  async function seen(addr: string, balance: bigint) {
    for (let i = 0; i < 4; i++) {
      await rig.observe(addr, balance);
      await rig.wait(10_000);
    }
  }

  it('All are executed when the wallet holds all of them', async () => {
    const { a, states } = await twentyLost();
    await seen(a, 200n);
    for (const state of await states()) expect(['executed', 'settled']).toContain(state);
    expect(await rig.drifts(a)).toEqual([]);
  });

  it('None is executed when two polls after quiescence show none', async () => {
    const { a, states } = await twentyLost();
    rig.passQuiescence();
    await seen(a, 100n);
    expect(new Set(await states())).toEqual(new Set(['not_executed']));
  });

  it('Some of them are told apart by nobody but people', async () => {
    const { a, states } = await twentyLost();
    rig.passQuiescence();
    await rig.observeAll([a, 150n], [a, 150n]);
    expect(new Set(await states())).toEqual(new Set(['unknown']));
    await rig.wait(700_000);
    await seen(a, 150n);
    expect(new Set(await states())).toEqual(new Set(['undecided']));
  });
});

describe('An unknown give of an operator without a readable wallet', () => {
  it('It is executed when the polls before the send and after it are close to each other', async () => {
    const a = await rig.opened(0n);
    rig.clock.advance(590_000);
    const id = await unknownGive(a, 5n);
    await rig.observeAll([a, 5n], [a, 5n]);
    expect(await rig.endOf(id)).toEqual({ state: 'executed', types: ['unknown', 'resolved'] });
    expect(await rig.operation(id)).toMatchObject({ evidence: { basis: 'one_sided' } });
  });

  it('It is not executed when a poll before the send and two after quiescence show nothing', async () => {
    const a = await rig.opened(0n);
    const id = await unknownGive(a, 5n);
    rig.passQuiescence();
    await rig.observeAll([a, 0n], [a, 0n]);
    expect(await rig.stateOf(id)).toBe('not_executed');
  });

  it('It becomes undecided, with the indicated outcome, when they are far from each other', async () => {
    const a = await rig.opened(0n);
    rig.clock.advance(600_000);
    const id = await unknownGive(a, 5n);
    await rig.observeAll([a, 5n], [a, 5n]);
    expect(await rig.endOf(id)).toEqual({ state: 'undecided', types: ['unknown', 'undecided'] });
    expect(await rig.operation(id)).toMatchObject({
      evidence: { basis: 'one_sided', indicated: 'executed' },
    });
  });

  it('A poll that the intent names counts as the one before the send', async () => {
    const a = await rig.opened(0n);
    rig.clock.advance(600_000);
    const name = `wallet:${a.toLowerCase()}`;
    const preImage = { wallets: [{ name, at: rig.clock.now(), seen: null }] };
    const fields = { operationNo: UNREADABLE, toAddr: a, amount: 5n };
    const id = await rig.send('give', fields, preImage);
    await rig.lose(id);
    await rig.observeAll([a, 5n], [a, 5n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('A poll before the send that showed the same balance is no evidence that it was executed', async () => {
    const a = await rig.opened(100n);
    rig.clock.advance(600_000);
    await rig.observe(a, 105n);
    const name = `wallet:${a.toLowerCase()}`;
    const seen = { addr: a, balance: 105n, status: 1 };
    const preImage = { wallets: [{ name, at: rig.clock.now() - 10, seen }] };
    const id = await rig.send('give', { operationNo: UNREADABLE, toAddr: a, amount: 5n }, preImage);
    await rig.lose(id);
    await rig.observeSeries(a, 105n, 105n);
    expect(await rig.stateOf(id)).toBe('undecided');
  });

  it('People decide it when the settings say so', async () => {
    const people = await openRig({ books: ACCOUNTS, settings: { oneSided: 'people' } });
    const a = await people.opened(0n);
    const id = await people.give(a, 5n, UNREADABLE);
    await people.lose(id);
    await people.observeAll([a, 5n], [a, 5n]);
    expect(await people.stateOf(id)).toBe('undecided');
  });

  it('On an unopened wallet it becomes undecided after the time set for it', async () => {
    const a = freshAddr();
    const id = await unknownGive(a, 5n);
    await rig.observeAll([a, 5n], [a, 5n], [a, 5n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.wait(700_000);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.observe(a, 5n);
    expect(await rig.stateOf(id)).toBe('undecided');
  });
});

describe('A service that is down', () => {
  const setState = (state: string) => rig.database.owner.sql`
    insert into tallyhook.service_state
      (name, state, since, down_from, next_probe_at, failures)
    values ('upstream', ${state}, ${rig.clock.now()}, ${rig.clock.now()}, ${rig.clock.now()}, 0)
    on conflict (name) do update set state = excluded.state, since = excluded.since,
      down_until = excluded.since`;

  it('Maintenance stops resolutions and deadlines, and quiescence begins anew after it', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
    await setState('maintenance');
    rig.clock.advance(DAY_MS);
    await rig.observeAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await setState('active');
    await rig.observeAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    rig.passQuiescence();
    await rig.observeAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('not_executed');
  });
});

describe('An unknown give on a wallet that is also changed elsewhere', () => {
  it('It is executed if the wallet changed once by exactly its amount, after the other change', async () => {
    const a = await rig.opened(100n);
    const id = await unknownGive(a, 7n);
    await rig.observeSeries(a, 1_100n, 1_100n, 1_107n, 1_107n, 1_107n);
    expect(['executed', 'settled']).toContain(await rig.stateOf(id));
    expect(await rig.operation(id)).toMatchObject({ evidence: { basis: 'one_sided' } });
    await rig.observeSeries(a, 1_107n, 1_107n);
    expect(await rig.driftAmounts(a)).toEqual([1_000n]);
  });

  it('It is executed if the other change happened before the send', async () => {
    const a = await rig.opened(100n);
    await rig.observeSeries(a, 1_100n);
    const id = await unknownGive(a, 7n);
    await rig.observeSeries(a, 1_100n, 1_107n, 1_107n, 1_107n);
    expect(['executed', 'settled']).toContain(await rig.stateOf(id));
    await rig.post();
    await rig.observeSeries(a, 1_107n, 1_107n);
    expect(await rig.driftAmounts(a)).toEqual([1_000n]);
  });

  it('It stays unknown if both changes may lie between the same two observations', async () => {
    const a = await rig.opened(100n);
    const id = await unknownGive(a, 7n);
    await rig.observeSeries(a, 1_107n, 1_107n, 1_107n);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.wait(700_000);
    await rig.observeSeries(a, 1_107n, 1_107n);
    expect(await rig.stateOf(id)).toBe('undecided');
  });

  it('It stays unknown if the step was taken back or happened twice', async () => {
    const [back, twice] = [await rig.opened(100n), await rig.opened(100n)];
    const ids = [await unknownGive(back, 7n), await unknownGive(twice, 7n)];
    await rig.observeSeries(back, 1_100n, 1_107n, 1_100n, 1_100n);
    await rig.observeSeries(twice, 1_100n, 1_107n, 1_114n, 1_114n);
    for (const id of ids) expect(['unknown', 'undecided']).toContain(await rig.stateOf(id));
  });

  it('It stays unknown if another operation was possible with the step', async () => {
    const a = await rig.opened(100n);
    const ids = [await unknownGive(a, 7n), await unknownGive(a, 5n)];
    await rig.observeSeries(a, 1_100n, 1_107n, 1_107n, 1_107n);
    for (const id of ids) expect(await rig.stateOf(id)).toBe('unknown');
  });
});
