import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOLD_AFTER_OBSERVATIONS } from '../../../src/reconciler/wallets/hold.ts';
import { createDatabase, type TestDatabase } from '../../harness/database.ts';
import { freshAddr, openRig, type Rig } from '../rig.ts';

let database: TestDatabase;
let rig: Rig;
beforeAll(async () => {
  database = await createDatabase();
  rig = await openRig(database.db);
});
afterAll(() => database.drop());

async function opened(balance: bigint): Promise<string> {
  const addr = freshAddr();
  await rig.observation(addr, balance);
  await rig.post();
  return addr;
}

const give = (toAddr: string, amount: bigint) =>
  rig.send('give', { operationNo: 7n, toAddr, amount });

/** Until when new writes on the wallet wait, in milliseconds from now; undefined when none do. */
async function heldMs(addr: string): Promise<number | undefined> {
  const rows = await database.db.sql<{ until: number }[]>`
    select until from tallyhook.holds where wallet_key = ${addr.toLowerCase()}`;
  return rows[0] && rows[0].until - rig.clock.now();
}

describe('A wallet on which every look meets writes under way', () => {
  it('New writes wait for one look after several, and that look releases them', async () => {
    const addr = await opened(100n);
    await give(addr, 5n);
    for (let i = 1; i < HOLD_AFTER_OBSERVATIONS; i++) await rig.observation(addr, 100n);
    expect(await heldMs(addr)).toBeUndefined();
    await rig.observation(addr, 100n);
    expect(await heldMs(addr)).toBe(3_000);
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBe(1_001);
    await rig.observation(addr, 100n);
    expect(await heldMs(addr)).toBeUndefined();
    for (let i = 2; i < HOLD_AFTER_OBSERVATIONS; i++) await rig.observation(addr, 100n);
    expect(await heldMs(addr)).toBeUndefined();
    await rig.observation(addr, 100n);
    expect(await heldMs(addr)).toBeGreaterThan(0);
  });

  it('Nothing waits for a lost write alone, which no look makes clean', async () => {
    const addr = await opened(100n);
    await rig.lose(await give(addr, 5n));
    for (let i = 0; i < HOLD_AFTER_OBSERVATIONS; i++) await rig.observation(addr, 100n, 200);
    expect(await heldMs(addr)).toBeUndefined();
  });

  it('Nothing waits where looks are judged late', async () => {
    const addr = await opened(100n);
    await give(addr, 5n);
    for (let i = 1; i < HOLD_AFTER_OBSERVATIONS; i++) await rig.observation(addr, 100n);
    await rig.putObservation(addr, 100n);
    rig.clock.advance(6_000);
    await rig.judge();
    expect(await heldMs(addr)).toBeUndefined();
  });
});
