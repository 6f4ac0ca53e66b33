import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  listObservations,
  type Observer,
  requestScan,
  type StoredObservation,
} from '../../src/observer/observer.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { addr, putOperations } from '../ledger/fixture.ts';
import { closeAll, upstreamTo } from '../upstream/rig.ts';
import { observerOf } from './rig.ts';

const NAME = 'scan:1:*';

let database: TestDatabase;
let sandbox: Sandbox;
let clock: ManualClock;
let observer: Observer;
beforeEach(async () => {
  database = await createDatabase();
  clock = manualClock();
  sandbox = await startSandbox({
    seed: 1,
    clock,
    clientId: 'client',
    clientSecret: 'hush-hush',
    switches: { per_page_max: 5, settle_median_ms: 1 },
  });
  clock.advance(10_000);
  const { upstream } = await upstreamTo(sandbox.url, clock, { settings: { waitMs: 1 } });
  observer = observerOf(database.db, clock, upstream);
});
afterEach(async () => {
  await closeAll();
  await sandbox.close();
  await database.drop();
});

/** Mints tokens without the daemon, each with its own URI. */
async function mintOutside(count: number, from = 1): Promise<void> {
  const token = await fetchToken();
  for (let n = from; n < from + count; n++) {
    const body = new URLSearchParams({ toAddr: addr(1), tokenURI: `ipfs://${n}`, metaData: '' });
    await fetch(`${sandbox.url}/v1/chain/erc721/1/mint-sequential`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${token}` },
    });
  }
  clock.advance(1_000);
}

async function fetchToken(): Promise<string> {
  const basic = Buffer.from('client:hush-hush').toString('base64');
  const body = new URLSearchParams({ grant_type: 'client_credentials' });
  const answer = await fetch(`${sandbox.url}/v1/oauth/token`, {
    method: 'POST',
    body,
    headers: { authorization: `Basic ${basic}` },
  });
  return ((await answer.json()) as { access_token: string }).access_token;
}

const lost = (id: string, tokenUri: string) =>
  putOperations(database.owner, [
    { id, kind: 'mint_sequential', state: 'unknown', contractId: 1n, tokenUri, toAddr: addr(1) },
  ]);

/** Requests a scan and polls until it has ended. */
async function scanOnce(): Promise<StoredObservation | undefined> {
  await requestScan(database.db, 1n, clock.now(), clock.now());
  const before = new Set((await listObservations(database.db, NAME, 100)).map(({ id }) => id));
  for (let pass = 0; pass < 30; pass++) {
    clock.advance(1_000);
    await observer.runOnce(clock.now());
    const observations = await listObservations(database.db, NAME, 100);
    const made = observations.find(({ id }) => !before.has(id));
    if (made) return made;
  }
  return undefined;
}

const pagesRequested = () =>
  sandbox.control
    .requests(0, 1_000)
    .filter(({ endpoint }) => endpoint === 'tokens')
    .map(({ query }) => Number(new URLSearchParams(query).get('page')));
async function uris(observation: StoredObservation | undefined) {
  const record = observation?.record as { tokens: { uri: string }[] } | null | undefined;
  return record?.tokens.map(({ uri }) => uri);
}

describe('A scan of a contract', () => {
  it('reads every page and keeps only tokens that match an unknown mint', async () => {
    await mintOutside(12);
    await putUri('op_a', 'ipfs://11');
    const observation = await scanOnce();
    expect(observation).toMatchObject({
      result: 'seen',
      kind: 'scan',
      record: { operationIds: ['op_a'] },
    });
    expect(await uris(observation)).toEqual(['ipfs://11']);
    expect(pagesRequested()).toEqual([1, 2, 3]);
  });

  it('leaves out tokens of mints whose answer is known', async () => {
    await mintOutside(12);
    await putUri('op_a', 'ipfs://11');
    const answered = { kind: 'mint_sequential', state: 'accepted', contractId: 1n } as const;
    await putOperations(database.owner, [{ ...answered, id: 'op_b', tokenId: 11n }]);
    expect(await uris(await scanOnce())).toEqual([]);
  });

  it('goes backwards every other time', async () => {
    await mintOutside(12);
    await putUri('op_a', 'ipfs://3');
    await scanOnce();
    const observation = await scanOnce();
    expect(await uris(observation)).toEqual(['ipfs://3']);
    expect(pagesRequested()).toEqual([1, 2, 3, 3, 2, 1]);
  });

  it('restarts when the list changes while it is read', async () => {
    await mintOutside(12);
    await putUri('op_a', 'ipfs://12');
    sandbox.control.addFault({ kind: 'shifting_pages', skip: 1, count: 1, endpoint: 'tokens' });
    const observation = await scanOnce();
    expect(await uris(observation)).toEqual(['ipfs://12']);
    expect(pagesRequested()).toEqual([1, 2, 3, 1, 2, 3]);
  });

  it('of a list that keeps changing ends as inconclusive', async () => {
    await mintOutside(12);
    await putUri('op_a', 'ipfs://12');
    sandbox.control.addFault({ kind: 'shifting_pages', count: 100, endpoint: 'tokens' });
    expect(await scanOnce()).toMatchObject({ result: 'inconclusive', cause: 'moving' });
    // A request does not shorten the back-off.
    await requestScan(database.db, 1n, clock.now(), clock.now());
    const [target] = await database.db.sql<{ at: number }[]>`
      select next_poll_at as at from tallyhook.targets where name = ${NAME}`;
    expect(target?.at).toBeGreaterThan(clock.now());
  });

  it('continues at the page that failed', async () => {
    await mintOutside(12);
    await putUri('op_a', 'ipfs://12');
    sandbox.control.addFault({ kind: 'dropped', skip: 1, count: 1, endpoint: 'tokens' });
    expect(await scanOnce()).toMatchObject({ result: 'inconclusive' });
    const observation = await scanOnce();
    expect(observation).toMatchObject({ result: 'seen', cause: null });
    expect(await uris(observation)).toEqual(['ipfs://12']);
    expect(pagesRequested()).toEqual([1, 2, 2, 3]);
  });

  it('is removed when no operation needs it', async () => {
    await requestScan(database.db, 1n, clock.now(), clock.now());
    clock.advance(1_000);
    await observer.runOnce(clock.now());
    const rows = await database.db.sql`select 1 as one from tallyhook.targets where name = ${NAME}`;
    expect(rows).toEqual([]);
  });
});

/** An unknown mint with that URI. */
async function putUri(id: string, tokenUri: string): Promise<void> {
  await lost(id, tokenUri);
  await database.owner.sql`
    update tallyhook.operations set token_uri = ${tokenUri}, meta_data = '' where id = ${id}`;
}
