import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { freshAddr, type House, openHouse } from './house.ts';

let database: TestDatabase;
let house: House;
beforeAll(async () => {
  database = await createDatabase();
  house = await openHouse(database.db);
});
afterAll(() => database.drop());

async function opened(balance: bigint): Promise<string> {
  const addr = freshAddr();
  await house.look(addr, balance);
  await house.post();
  return addr;
}

/** A lost transfer of 10 that two looks at both wallets deny after quiescence. */
async function denied(a: string, b: string): Promise<string> {
  const fields = { fromAddr: a, toAddr: b, amount: 10n, feeAmount: 0n };
  const id = await house.send('transfer', fields);
  await house.lose(id);
  house.clock.advance(36_000);
  for (let i = 0; i < 2; i++) for (const addr of [a, b]) await house.look(addr, 100n);
  expect(await house.stateOf(id)).toBe('not_executed');
  return id;
}

describe('A write that was called not executed', () => {
  it('Is executed after all when both wallets change just so, and explains both drifts', async () => {
    const [a, b] = [await opened(100n), await opened(100n)];
    const id = await denied(a, b);
    for (let i = 0; i < 2; i++) await house.look(a, 90n);
    expect(await house.stateOf(id)).toBe('not_executed');
    for (let i = 0; i < 2; i++) await house.look(b, 110n);
    expect(await house.operation(id)).toMatchObject({ state: 'executed' });
    const events = await house.events(`operation:${id}`);
    expect(events.at(-1)).toMatchObject({
      type: 'operation.resolved',
      data: { outcome: 'executed', supersedes: 'not_executed' },
    });
    expect([...(await house.drifts(a)), ...(await house.drifts(b))]).toEqual([]);
    expect((await house.typesOf(b)).slice(-2)).toEqual([
      'wallet.drift_opened',
      'wallet.drift_closed',
    ]);
    await house.post();
    expect([await house.balance(a), await house.balance(b)]).toEqual([90n, 110n]);
    await house.look(a, 90n);
    await house.look(b, 110n);
    await house.look(a, 90n);
    expect(await house.stateOf(id)).toBe('settled');
    expect([...(await house.drifts(a)), ...(await house.drifts(b))]).toEqual([]);
  });

  it('Is only named to people where one wallet changes just so', async () => {
    const [a, b] = [await opened(100n), await opened(100n)];
    const id = await denied(a, b);
    for (let i = 0; i < 2; i++)
      for (const [w, n] of [
        [a, 90n],
        [b, 100n],
      ] as const)
        await house.look(w, n);
    expect(await house.stateOf(id)).toBe('not_executed');
    expect(await house.drifts(a)).toMatchObject([{ evidence: { equals_denied: [id] } }]);
  });

  it('Stays so where the change comes when it cannot have been applied any more', async () => {
    const [a, b] = [await opened(100n), await opened(100n)];
    const id = await denied(a, b);
    await house.wait(900_000);
    for (const addr of [a, b]) await house.look(addr, 100n);
    for (let i = 0; i < 2; i++)
      for (const [w, n] of [
        [a, 90n],
        [b, 110n],
      ] as const)
        await house.look(w, n);
    expect(await house.stateOf(id)).toBe('not_executed');
    expect(await house.drifts(b)).toMatchObject([{ evidence: { equals_denied: [id] } }]);
  });
});
