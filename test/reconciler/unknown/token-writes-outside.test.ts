import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../../harness/database.ts';
import { freshAddr, openRig, type Rig } from '../rig.ts';

const DAY_MS = 86_400_000;

let database: TestDatabase;
let rig: Rig;
beforeAll(async () => {
  database = await createDatabase();
  rig = await openRig(database.db);
});
afterAll(() => database.drop());

/** A wallet that stood still for long, and was looked at just now. */
async function known(balance: bigint): Promise<string> {
  const addr = freshAddr();
  await rig.observation(addr, balance);
  await rig.post();
  rig.clock.advance(60 * DAY_MS);
  await rig.observation(addr, balance);
  return addr;
}

/** A give by an operator whose wallet cannot be seen, with its answer lost. */
async function lostGive(toAddr: string, amount: bigint): Promise<string> {
  const id = await rig.send('give', { operationNo: 9n, toAddr, amount });
  await rig.lose(id);
  return id;
}

const driftsOf = async (addr: string) => (await rig.drifts(addr)).map(({ amount }) => amount);

/** The balances that looks two seconds apart see. */
async function observations(addr: string, ...balances: bigint[]): Promise<void> {
  for (const balance of balances) await rig.observation(addr, balance);
}

describe('A lost give on a wallet that others change as well', () => {
  it('Is executed when the wallet moved once by just its amount, after the other change', async () => {
    const a = await known(100n);
    const id = await lostGive(a, 7n);
    await observations(a, 1_100n, 1_100n, 1_107n, 1_107n, 1_107n);
    expect(await rig.operation(id)).toMatchObject({
      state: 'executed',
      evidence: { basis: 'one_sided', second: { moved_once: true } },
    });
    await rig.post();
    await observations(a, 1_107n, 1_107n);
    expect(await driftsOf(a)).toEqual([1_000n]);
  });

  it('Is executed when the other change came first and was older than the write', async () => {
    const a = await known(100n);
    await observations(a, 1_100n);
    const id = await lostGive(a, 7n);
    await observations(a, 1_100n, 1_107n, 1_107n, 1_107n);
    expect(['executed', 'settled']).toContain(await rig.stateOf(id));
    await rig.post();
    await observations(a, 1_107n, 1_107n);
    expect(await driftsOf(a)).toEqual([1_000n]);
  });

  it('Is left open when both may have come between the same two looks', async () => {
    const a = await known(100n);
    const id = await lostGive(a, 7n);
    await observations(a, 1_107n, 1_107n, 1_107n);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.wait(700_000);
    await observations(a, 1_107n, 1_107n);
    expect(await rig.stateOf(id)).toBe('undecided');
  });

  it('Is left open when the step was taken back, or came twice', async () => {
    const [back, twice] = [await known(100n), await known(100n)];
    const ids = [await lostGive(back, 7n), await lostGive(twice, 7n)];
    await observations(back, 1_100n, 1_107n, 1_100n, 1_100n);
    await observations(twice, 1_100n, 1_107n, 1_114n, 1_114n);
    for (const id of ids) expect(['unknown', 'undecided']).toContain(await rig.stateOf(id));
  });

  it('Is left open when another write of ours was under way with the step', async () => {
    const a = await known(100n);
    const ids = [await lostGive(a, 7n), await lostGive(a, 5n)];
    await observations(a, 1_100n, 1_107n, 1_107n, 1_107n);
    for (const id of ids) expect(await rig.stateOf(id)).toBe('unknown');
  });
});
