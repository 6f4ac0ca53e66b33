import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { freshAddr, type House, openHouse } from './house.ts';

const DAY_MS = 86_400_000;

let database: TestDatabase;
let house: House;
beforeAll(async () => {
  database = await createDatabase();
  house = await openHouse(database.db);
});
afterAll(() => database.drop());

/** A wallet that stood still for long, and was looked at just now. */
async function known(balance: bigint): Promise<string> {
  const addr = freshAddr();
  await house.look(addr, balance);
  await house.post();
  house.clock.advance(60 * DAY_MS);
  await house.look(addr, balance);
  return addr;
}

/** A give by an operator whose wallet cannot be seen, with its answer lost. */
async function lostGive(toAddr: string, amount: bigint): Promise<string> {
  const id = await house.send('give', { operationNo: 9n, toAddr, amount });
  await house.lose(id);
  return id;
}

const driftsOf = async (addr: string) => (await house.drifts(addr)).map(({ amount }) => amount);

/** The balances that looks two seconds apart see. */
async function looks(addr: string, ...balances: bigint[]): Promise<void> {
  for (const balance of balances) await house.look(addr, balance);
}

describe('A lost give on a wallet that others change as well', () => {
  it('Is executed when the wallet moved once by just its amount, after the other change', async () => {
    const a = await known(100n);
    const id = await lostGive(a, 7n);
    await looks(a, 1_100n, 1_100n, 1_107n, 1_107n, 1_107n);
    expect(await house.operation(id)).toMatchObject({
      state: 'executed',
      evidence: { basis: 'one_sided', second: { moved_once: true } },
    });
    await house.post();
    await looks(a, 1_107n, 1_107n);
    expect(await driftsOf(a)).toEqual([1_000n]);
  });

  it('Is executed when the other change came first and was older than the write', async () => {
    const a = await known(100n);
    await looks(a, 1_100n);
    const id = await lostGive(a, 7n);
    await looks(a, 1_100n, 1_107n, 1_107n, 1_107n);
    expect(['executed', 'settled']).toContain(await house.stateOf(id));
    await house.post();
    await looks(a, 1_107n, 1_107n);
    expect(await driftsOf(a)).toEqual([1_000n]);
  });

  it('Is left open when both may have come between the same two looks', async () => {
    const a = await known(100n);
    const id = await lostGive(a, 7n);
    await looks(a, 1_107n, 1_107n, 1_107n);
    expect(await house.stateOf(id)).toBe('unknown');
    await house.wait(700_000);
    await looks(a, 1_107n, 1_107n);
    expect(await house.stateOf(id)).toBe('undecided');
  });

  it('Is left open when the step was taken back, or came twice', async () => {
    const [back, twice] = [await known(100n), await known(100n)];
    const ids = [await lostGive(back, 7n), await lostGive(twice, 7n)];
    await looks(back, 1_100n, 1_107n, 1_100n, 1_100n);
    await looks(twice, 1_100n, 1_107n, 1_114n, 1_114n);
    for (const id of ids) expect(['unknown', 'undecided']).toContain(await house.stateOf(id));
  });

  it('Is left open when another write of ours was under way with the step', async () => {
    const a = await known(100n);
    const ids = [await lostGive(a, 7n), await lostGive(a, 5n)];
    await looks(a, 1_100n, 1_107n, 1_107n, 1_107n);
    for (const id of ids) expect(await house.stateOf(id)).toBe('unknown');
  });
});
