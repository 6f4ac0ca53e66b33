import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EffectSettings } from '../../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../../harness/database.ts';
import { freshAddr, openRig, type Rig } from '../rig.ts';

const OPERATOR = freshAddr();
const FEES = freshAddr();
/** Operator 7 pays and collects from a wallet that can be read; fees go to another one. */
const BOOKS: EffectSettings = {
  feeMode: 'on_top',
  operators: new Map([['7', OPERATOR]]),
  feesAddr: FEES,
  collectionAddr: OPERATOR,
};

let database: TestDatabase;
let rig: Rig;
/** What the service holds for the operator, as the stories change it. */
let operator = 1_000_000n;
beforeAll(async () => {
  database = await createDatabase();
  rig = await openRig(database.db, { books: BOOKS });
  await rig.observation(OPERATOR, operator);
  await rig.observation(FEES, 0n);
  await rig.post();
});
afterAll(() => database.drop());

async function opened(balance: bigint): Promise<string> {
  const addr = freshAddr();
  await rig.observation(addr, balance);
  await rig.post();
  return addr;
}

const transfer = (fromAddr: string, toAddr: string, amount: bigint) =>
  rig.send('transfer', { fromAddr, toAddr, amount, feeAmount: 0n });
const give = (toAddr: string, amount: bigint, operationNo = 7n) =>
  rig.send('give', { operationNo, toAddr, amount });

/** Looks at several wallets, one after the other, and judges them. */
async function pollAll(...seen: [string, bigint][]) {
  for (const [addr, balance] of seen) await rig.observation(addr, balance);
}

/** Passes the deadline of sending, the quiescence and the read lag. */
const calm = () => rig.clock.advance(5_000 + 30_000 + 1_000);

async function endOf(id: string) {
  const events = await rig.events(`operation:${id}`);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
  return { state: await rig.stateOf(id), types: events.map(({ type }) => type.split('.')[1]) };
}

describe('A lost payment between two wallets that can be seen', () => {
  it('Is executed when two looks at both agree, is posted once, and settles', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const id = await transfer(a, b, 10n);
    await rig.lose(id);
    await pollAll([a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await pollAll([a, 90n], [b, 10n]);
    expect(await endOf(id)).toMatchObject({ state: 'executed' });
    expect(await rig.operation(id)).toMatchObject({
      evidence: { basis: 'two_sided' },
      effectiveBasis: 'observed',
    });
    await rig.post();
    expect([await rig.balance(a), await rig.balance(b)]).toEqual([90n, 10n]);
    await pollAll([a, 90n], [b, 10n], [a, 90n]);
    expect(await endOf(id)).toEqual({
      state: 'settled',
      types: ['unknown', 'resolved', 'settled'],
    });
    expect([...(await rig.drifts(a)), ...(await rig.drifts(b))]).toEqual([]);
  });

  it('Is not executed only when both looks began after quiescence and read lag', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const id = await transfer(a, b, 10n);
    await rig.lose(id);
    for (let i = 0; i < 5; i++) await pollAll([a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    const sent = await rig.operation(id);
    const quiescent = (sent?.sendDeadlineAt ?? 0) + 30_000 + 1_000;
    rig.clock.set(quiescent - 6_000);
    await pollAll([a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await pollAll([a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await pollAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    expect(await endOf(id)).toEqual({ state: 'not_executed', types: ['unknown', 'resolved'] });
  });

  it('That is applied late, after looks that did not show it, is executed', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const id = await transfer(a, b, 10n);
    await rig.lose(id);
    await pollAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    rig.clock.advance(20_000);
    await pollAll([a, 90n], [b, 10n], [a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('That one wallet shows and the other not yet waits', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const id = await transfer(a, b, 10n);
    await rig.lose(id);
    await pollAll([a, 90n], [b, 0n], [a, 90n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    // The first explanation rests on the older look at one of them, the second on none of its
    // looks.
    await pollAll([b, 10n], [a, 90n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await pollAll([b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('That was shown once and then no more, when all was quiet, is given to people', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const id = await transfer(a, b, 10n);
    await rig.lose(id);
    await pollAll([a, 90n], [b, 10n]);
    calm();
    await pollAll([a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('undecided');
    expect(await rig.operation(id)).toMatchObject({ evidence: { indicated: 'contradictory' } });
  });

  it('That shows only after all was quiet is given to people', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const id = await transfer(a, b, 10n);
    await rig.lose(id);
    calm();
    await pollAll([a, 100n], [b, 0n]);
    await pollAll([a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('undecided');
  });

  it('Two equal ones in a row between the same wallets are given to people', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const ids = [await transfer(a, b, 10n), await transfer(a, b, 10n)];
    for (const id of ids) await rig.lose(id);
    calm();
    for (let i = 0; i < 13; i++) {
      rig.clock.advance(50_000);
      await pollAll([a, 90n], [b, 10n]);
    }
    for (const id of ids)
      expect(await endOf(id)).toEqual({ state: 'undecided', types: ['unknown', 'undecided'] });
    expect([...(await rig.drifts(a)), ...(await rig.drifts(b))]).toEqual([]);
  });

  it('The answer that comes late wins over the waiting, and over what was concluded', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const [waiting, concluded] = [await transfer(a, b, 10n), await transfer(a, b, 3n)];
    await rig.lose(waiting);
    await rig.lose(concluded);
    await pollAll([a, 87n], [b, 13n]);
    await rig.accept(waiting);
    await pollAll([a, 87n], [b, 13n]);
    expect(await rig.stateOf(concluded)).toBe('executed');
    const refused = { class: 'rejected', status: 406, code: '198', message: 'too low' } as const;
    await rig.conclude(concluded, refused);
    await rig.post();
    await pollAll([a, 87n], [a, 87n], [b, 13n], [b, 13n]);
    expect((await rig.drifts(a)).map(({ amount }) => amount)).toEqual([-3n]);
    expect((await rig.drifts(b)).map(({ amount }) => amount)).toEqual([3n]);
  });
});

describe('A lost payment beside others', () => {
  it('Writes under way on the same wallets do not keep it from its end', async () => {
    const [a, b, c] = [await opened(100n), await opened(0n), await opened(0n)];
    const id = await transfer(a, b, 10n);
    await rig.lose(id);
    for (let i = 1n; i <= 2n; i++) {
      const other = await transfer(a, c, 7n);
      await rig.accept(other);
      await rig.observation(a, 90n - 7n * i, 100);
      await rig.observation(b, 10n, 100);
    }
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('One that people have to decide does not keep others from their end', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const stuck = await transfer(a, b, 40n);
    await rig.lose(stuck);
    await rig.wait(700_000);
    await rig.judge();
    expect(await rig.stateOf(stuck)).toBe('undecided');
    const id = await transfer(a, b, 10n);
    await rig.lose(id);
    await pollAll([a, 90n], [b, 10n], [a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('A fresh one that one wallet shows first is not taken for an older one', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const older = await give(b, 5n, 9n);
    await rig.lose(older);
    calm();
    const fresh = await transfer(a, b, 5n);
    await rig.lose(fresh);
    const ends = async () => [await rig.stateOf(older), await rig.stateOf(fresh)];
    for (let i = 0; i < 3; i++) await pollAll([a, 100n], [b, 5n]);
    expect(await ends()).toEqual(['unknown', 'unknown']);
    calm();
    for (let i = 0; i < 3; i++) await pollAll([a, 95n], [b, 5n]);
    // Nobody knows the receiver for long, so that it alone does not prove the absence of the older.
    expect(await rig.stateOf(older)).toBe('undecided');
    expect(['executed', 'settled']).toContain(await rig.stateOf(fresh));
  });

  it('A wallet that others changed silences no neighbour, and its drift comes out', async () => {
    const [a, b, c] = [await opened(100n), await opened(0n), await opened(0n)];
    const ids = [await transfer(a, b, 10n), await transfer(a, c, 7n)];
    for (const id of ids) await rig.lose(id);
    // Somebody gave 1,000 to c; nothing on c explains that.
    for (let i = 0; i < 3; i++) await pollAll([a, 83n], [b, 10n], [c, 1_007n]);
    expect(['executed', 'settled']).toContain(await rig.stateOf(ids[0] ?? ''));
    // The other one is told by its sender alone, who is not known for long: it waits.
    expect(await rig.stateOf(ids[1] ?? '')).toBe('unknown');
    await rig.wait(700_000);
    for (let i = 0; i < 3; i++) await pollAll([a, 83n], [b, 10n], [c, 1_007n]);
    expect(await rig.stateOf(ids[1] ?? '')).toBe('undecided');
    expect((await rig.drifts(c)).map(({ amount }) => amount)).toEqual([1_007n]);
  });

  it('One that changes nothing goes to people alone', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const idle = await rig.send('transfer', { fromAddr: a, toAddr: a, amount: 5n });
    const id = await transfer(a, b, 10n);
    await rig.lose(idle);
    await rig.lose(id);
    await pollAll([a, 90n], [b, 10n], [a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
    await rig.wait(700_000);
    await rig.judge();
    expect(await rig.stateOf(idle)).toBe('undecided');
  });

  it('Twelve lost gives of one operator come to their ends by their receivers', async () => {
    const receivers: string[] = [];
    for (let i = 0; i < 12; i++) receivers.push(await opened(0n));
    const ids: string[] = [];
    for (const addr of receivers) ids.push(await give(addr, 5n));
    for (const id of ids) await rig.lose(id);
    calm();
    operator -= 5n * 8n;
    const shown = receivers.map((addr, i): [string, bigint] => [addr, i % 3 === 0 ? 0n : 5n]);
    for (let i = 0; i < 2; i++) await pollAll(...shown, [OPERATOR, operator]);
    const states = await Promise.all(ids.map((id) => rig.stateOf(id)));
    expect(states).toEqual(ids.map((_, i) => (i % 3 === 0 ? 'not_executed' : 'executed')));
  });
});
