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
const DAY_MS = 86_400_000;

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

describe('Books that live in wallets', () => {
  it('Are put under observation without a watch', async () => {
    expect(await rig.dueInMs({ kind: 'wallet', addr: FEES })).toBeTypeOf('number');
    const rows = await database.db.sql`
      select name from tallyhook.targets where name = ${`wallet:${OPERATOR.toLowerCase()}`}`;
    expect(rows).toHaveLength(1);
  });

  it('A lost transfer with a fee is told by sender, receiver and fees together', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const id = await rig.send('transfer', { fromAddr: a, toAddr: b, amount: 10n, feeAmount: 2n });
    await rig.lose(id);
    const seen: [string, bigint][] = [
      [a, 88n],
      [b, 10n],
      [FEES, 2n],
    ];
    await pollAll(...seen, ...seen);
    expect(await rig.stateOf(id)).toBe('executed');
    await rig.post();
    expect(await rig.balance(FEES)).toBe(2n);
  });

  it('A lost deduction is told by the user and the collection', async () => {
    const a = await opened(100n);
    const id = await rig.send('receive_from', { fromAddr: a, amount: 10n, feeAmount: 0n });
    await rig.lose(id);
    operator += 10n;
    await pollAll([a, 90n], [OPERATOR, operator], [a, 90n], [OPERATOR, operator]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('When the fee is deducted from the amount, the receiver shows what is left', async () => {
    const [own, fees] = [freshAddr(), freshAddr()];
    const books = { feeMode: 'deducted', operators: new Map(), feesAddr: fees } as const;
    const other = await openRig(database.db, { books, name: 'dmn_deducted' });
    other.clock.set(rig.clock.now() + 60_000);
    const [a, b] = [own, freshAddr()];
    for (const [addr, balance] of [
      [a, 100n],
      [b, 0n],
      [fees, 0n],
    ] as const)
      await other.observation(addr, balance);
    await other.post();
    const id = await other.send('transfer', { fromAddr: a, toAddr: b, amount: 10n, feeAmount: 2n });
    await other.lose(id);
    for (let i = 0; i < 2; i++) {
      await other.observation(a, 90n);
      await other.observation(b, 8n);
      await other.observation(fees, 2n);
    }
    expect(await other.stateOf(id)).toBe('executed');
    rig.clock.set(other.clock.now() + 60_000);
  });
});

describe('A lost give whose operator cannot be seen', () => {
  const OTHER_OPERATOR = 9n;

  it('Is given to people, with what was seen, while the wallet is not known well', async () => {
    const a = await opened(0n);
    const id = await give(a, 5n, OTHER_OPERATOR);
    await rig.lose(id);
    await pollAll([a, 5n], [a, 5n]);
    expect(await endOf(id)).toEqual({ state: 'undecided', types: ['unknown', 'undecided'] });
    expect(await rig.operation(id)).toMatchObject({
      evidence: { basis: 'one_sided', indicated: 'executed' },
    });
  });

  it('Is executed on a wallet that stood still for long', async () => {
    const a = await opened(0n);
    rig.clock.advance(30 * DAY_MS);
    await rig.observation(a, 0n);
    const id = await give(a, 5n, OTHER_OPERATOR);
    await rig.lose(id);
    await pollAll([a, 5n], [a, 5n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('Is given to people when nobody had looked for a day before it was sent', async () => {
    const a = await opened(0n);
    rig.clock.advance(30 * DAY_MS);
    await rig.observation(a, 0n);
    rig.clock.advance(DAY_MS);
    const id = await give(a, 5n, OTHER_OPERATOR);
    await rig.lose(id);
    await pollAll([a, 5n], [a, 5n]);
    expect(await rig.stateOf(id)).toBe('undecided');
  });

  it('On a wallet that was never opened it waits, and then people are asked', async () => {
    const a = freshAddr();
    const id = await give(a, 5n, OTHER_OPERATOR);
    await rig.lose(id);
    await pollAll([a, 5n], [a, 5n], [a, 5n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.wait(700_000);
    await rig.judge();
    expect(await rig.stateOf(id)).toBe('undecided');
  });
});

describe('While the service is down', () => {
  const setState = (state: string) => database.owner.sql`
    insert into tallyhook.service_state
      (name, state, since, next_probe_at, checked_at, failures)
    values ('upstream', ${state}, ${rig.clock.now()}, ${rig.clock.now()},
      ${rig.clock.now()}, 0)
    on conflict (name) do update set state = excluded.state, since = excluded.since`;

  it('Nothing is called not executed or overdue, and quiescence begins anew after it', async () => {
    const [a, b] = [await opened(100n), await opened(0n)];
    const id = await transfer(a, b, 10n);
    await rig.lose(id);
    await setState('maintenance');
    rig.clock.advance(DAY_MS);
    await pollAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await setState('active');
    await pollAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    calm();
    await pollAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('not_executed');
  });
});
