/** Watched contracts: their token lists are read, page by page. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { expedite, listObservations, type Observer } from '../../src/observer/observer.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { addr } from '../ledger/builders.ts';
import { closeAll, upstreamTo } from '../upstream/rig.ts';
import { observerOf, processAll } from './rig.ts';

const CONTRACT = 1n;
const PER_PAGE = 5;
const nameOf = (id: number) => `token:${CONTRACT}:${id}`;

let database: TestDatabase;
let sandbox: Sandbox;
let clock: ManualClock;
let observer: Observer;
/** Of the tokens that the sandbox's seed has made. */
let seeded: number;
beforeEach(async () => {
  database = await createDatabase();
  clock = manualClock();
  sandbox = await startSandbox({
    seed: 1,
    clock,
    clientId: 'client',
    clientSecret: 'hush-hush',
    switches: { per_page_max: PER_PAGE, settle_median_ms: 1 },
  });
  clock.advance(10_000);
  const { upstream } = await upstreamTo(sandbox.url, clock, { settings: { waitMs: 1 } });
  observer = observerOf(database.db, clock, upstream, 1, { minGapMs: 1_000 });
  seeded = sandbox.control
    .state()
    .tokens.filter(({ contract_id }) => contract_id === CONTRACT).length;
  await observer.watch([{ kind: 'contract', contractId: CONTRACT }], 'ops');
});
afterEach(async () => {
  await closeAll();
  await sandbox.close();
  await database.drop();
});

const add = (count: number, from = 5_000n) => {
  for (let n = 0n; n < count; n++) sandbox.control.setToken(CONTRACT, from + n, { owner: addr(1) });
};
/** Lets so much time pass, in polls a second apart. */
async function pass(seconds: number) {
  for (let n = 0; n < seconds; n++) {
    clock.advance(1_000);
    await observer.runOnce(clock.now());
    await processAll(database);
  }
}
const namesOfTokens = async () => {
  const rows = await database.db.sql<{ name: string }[]>`
    select name from tallyhook.targets where kind = 'token' and last_result = 'seen'`;
  return rows.map(({ name }) => name).sort();
};
const expected = () =>
  sandbox.control
    .state()
    .tokens.filter(({ contract_id }) => contract_id === CONTRACT)
    .map(({ token_id }) => `token:${CONTRACT}:${token_id}`)
    .sort();
const requests = (part: string) =>
  sandbox.control.requests(0, 5_000).filter(({ path }) => path.includes(part)).length;

describe('The list of a watched contract', () => {
  it('Every token of it becomes a target with an observation, over several pages', async () => {
    add(12);
    await pass(6);
    expect(await namesOfTokens()).toEqual(expected());
    const [seen] = await listObservations(database.db, `token:${CONTRACT}:5000`, 2);
    expect(seen).toMatchObject({ result: 'seen', record: { owner: addr(1) } });
  });

  it('A page serves all its tokens: none of them is polled by itself', async () => {
    add(12);
    await pass(30);
    expect(requests('/tokens/')).toBe(0);
  });

  it('An unchanged total costs one page a poll, and a new token is found by a walk at once', async () => {
    add(12);
    await pass(6);
    const walked = requests('/tokens');
    await pass(10);
    expect(requests('/tokens') - walked).toBeLessThanOrEqual(10);
    add(1, 9_000n);
    await pass(3);
    expect(await namesOfTokens()).toContain(`token:${CONTRACT}:9000`);
  });

  it('A change on a late page is found by the next walk, within the guaranteed age', async () => {
    add(12);
    await pass(6);
    sandbox.control.setToken(CONTRACT, 5_011n, { owner: addr(2) });
    await pass(65);
    const [seen] = await listObservations(database.db, `token:${CONTRACT}:5011`, 2);
    expect(seen).toMatchObject({ record: { owner: addr(2) } });
  });

  it('A stale list does not bring a former state of a token back, nor a token that is gone', async () => {
    add(3);
    await pass(90);
    sandbox.control.setToken(CONTRACT, 5_000n, { owner: addr(2) });
    sandbox.control.removeToken(CONTRACT, 5_001n);
    await expedite(database.db, new Map([5_000, 5_001].map((id) => [nameOf(id), clock.now()])));
    await pass(3);
    const stored = async (id: number) =>
      (await listObservations(database.db, nameOf(id), 10)).map(({ result }) => result);
    const known = [await stored(5_000), await stored(5_001)];
    expect(known).toEqual([
      ['seen', 'seen'],
      ['absent', 'seen'],
    ]);
    sandbox.control.addFault({
      kind: 'stale_list',
      age_ms: 80_000,
      endpoint: 'tokens',
      count: 100,
    });
    await pass(70);
    expect([await stored(5_000), await stored(5_001)]).toEqual(known);
  });

  it('A list that grows while it is read is read again, and no token is missed', async () => {
    add(40);
    for (let n = 0n; n < 20n; n++) {
      sandbox.control.setToken(CONTRACT, 100n + n, { owner: addr(1) });
      await pass(1);
    }
    await pass(10);
    expect(await namesOfTokens()).toEqual(expected());
  });

  it('A restart in the middle of a walk goes on with its page', async () => {
    add(100);
    await pass(1);
    const { upstream } = await upstreamTo(sandbox.url, clock, { settings: { waitMs: 1 } });
    observer = observerOf(database.db, clock, upstream, 2, { minGapMs: 1_000 });
    await pass(30);
    expect(await namesOfTokens()).toEqual(expected());
    expect(expected()).toHaveLength(seeded + 100);
  });

  it('A contract that the service refuses is tried again with growing pauses', async () => {
    await observer.watch([{ kind: 'contract', contractId: 999n }], 'ops');
    await pass(60);
    const tried = requests('/erc721/999/');
    expect(tried).toBeGreaterThan(1);
    expect(tried).toBeLessThan(15);
  });
});
