import { createServer } from 'node:http';
import { beforeEach, expect, it } from 'vitest';
import type { Db } from '../../src/db/connect.ts';
import { DatabaseError } from '../../src/db/sqlstate.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { operationsDefaults } from '../../src/operations/operations.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { GIVE, idOf, type RigResponse, SUCCESS, setUpGateway } from './rig.ts';

/** Settings with which writes on one wallet wait for each other. */
const operations = {
  ...operationsDefaults,
  conflictWaitMs: 50,
};

let down = false;
/** Each test has its own wallet, so that an open write does not delay the next test. */
let body = '';
let wallets = 0;
const { database, sql, rig, open, operationOf } = await setUpGateway({
  serviceDown: () => down,
  operations,
});
beforeEach(() => {
  down = false;
  const wallet = `0x${String(++wallets).padStart(40, '0')}`;
  body = `{"toAddr":"${wallet}", "amount":10, "reasonType":"gift"}`;
});

const MAINTENANCE = {
  status: 503,
  headers: SUCCESS.headers,
  body: '{"status":503,"message":"the service is under maintenance"}',
};
const give = (headers: Record<string, string> = {}, at = rig) =>
  at.give({ prefer: 'respond-async', 'content-type': 'application/json', ...headers }, body);
const runQueue = () => rig.gateway.runQueue(systemClock.now());
/** A pass after the wait of the writes that were refused. */
async function runQueueLater() {
  await database.owner.sql`update tallyhook.operations set retry_at = null`;
  return rig.gateway.runQueue(systemClock.now() + 600_000);
}

function expectQueued(response: RigResponse): void {
  const id = idOf(response);
  expect(response).toMatchObject({
    status: 202,
    headers: {
      'content-type': 'application/json',
      'preference-applied': 'respond-async',
      'tallyhook-outcome': 'queued',
      location: `/api/operations/${id}`,
    },
    json: { id, operation_id: id, kind: 'give', state: 'queued', outcome: 'open', amount: '10' },
  });
}

/** A write that is queued unsent, with the service available again. */
async function queued(headers: Record<string, string> = {}): Promise<RigResponse> {
  down = true;
  const response = await give(headers);
  expectQueued(response);
  down = false;
  return response;
}

it('A write whose caller chose to wait is answered directly while the service is available', async () => {
  const response = await give();
  expect(response).toMatchObject({ status: 200, headers: { 'tallyhook-outcome': 'accepted' } });
  expect(response.headers['preference-applied']).toBeUndefined();
});

it('A write whose caller chose to wait is queued unsent during maintenance, and sent once afterwards', async () => {
  const response = await queued();
  down = true;
  expect(await runQueue()).toMatchObject({ sent: 0 });
  expect(rig.requests).toEqual([]);
  down = false;
  expect(await runQueue()).toMatchObject({ sent: 1 });
  expect(await runQueue()).toMatchObject({ sent: 0 });
  expect(rig.requests).toMatchObject([
    {
      method: 'POST',
      url: GIVE,
      headers: { authorization: 'Bearer managed', 'content-type': 'application/json' },
    },
  ]);
  expect(rig.requests[0]?.body.toString()).toBe(body);
  expect(await operationOf(response)).toMatchObject({ state: 'accepted', sends: 1 });
});

it('A write whose caller chose to wait is queued again each time that maintenance refuses it', async () => {
  rig.answer(() => MAINTENANCE);
  const response = await give();
  expectQueued(response);
  expect(await runQueue()).toMatchObject({ sent: 0 });
  expect(await runQueueLater()).toMatchObject({ sent: 1 });
  expect(await operationOf(response)).toMatchObject({ state: 'queued' });
  rig.answer(() => SUCCESS);
  await runQueueLater();
  expect(await operationOf(response)).toMatchObject({
    state: 'accepted',
    errorCode: null,
    sends: 3,
  });
});

it('A write whose caller chose to wait gets its current state when another daemon has sent it meanwhile', async () => {
  let meanwhile: (() => Promise<unknown>) | undefined;
  /** Loses the response to the commit after which `meanwhile` runs. */
  const losing: Db = {
    ...database.db,
    get sql() {
      return database.db.sql;
    },
    get orm() {
      return database.db.orm;
    },
    async begin(work, options) {
      const done = await database.db.begin(work, options);
      const run = meanwhile;
      if (!run) return done;
      meanwhile = undefined;
      await run();
      throw new DatabaseError('CONNECTION_CLOSED');
    },
  };
  const interrupted = await open({ db: losing, operations });
  interrupted.answer(() => MAINTENANCE);
  meanwhile = runQueueLater;
  const response = await give({}, interrupted);
  const id = idOf(response);
  expect(response).toMatchObject({ status: 202, json: { id, state: 'accepted' } });
  expect([interrupted.requests.length, rig.requests.length]).toEqual([1, 1]);
  expect(await operationOf(response)).toMatchObject({ state: 'accepted', sends: 2 });
});

it('A write whose caller chose to wait is unknown after a lost answer, and is not sent again', async () => {
  const response = await queued();
  rig.answer(() => 'reset');
  await runQueue();
  expect(await operationOf(response)).toMatchObject({ state: 'unknown', sends: 1 });
  expect(await runQueue()).toMatchObject({ sent: 0 });
  expect(rig.requests).toHaveLength(1);
});

it('A write whose caller chose to wait is queued once for all repeats, which get its answer after it is sent', async () => {
  const key = { 'idempotency-key': 'queued once' };
  const first = await queued(key);
  const repeat = await queued(key);
  expect(idOf(repeat)).toBe(idOf(first));
  expect(repeat.headers['idempotency-replayed']).toBe('true');
  await runQueue();
  const answered = await give(key);
  expect(answered).toMatchObject({ status: 200, headers: { 'idempotency-replayed': 'true' } });
  expect([idOf(answered), answered.bytes.toString()]).toEqual([idOf(first), SUCCESS.body]);
  expect(rig.requests).toHaveLength(1);
});

it.each<[string, Record<string, string>]>([
  ['its own token', { authorization: 'Bearer mine', 'tallyhook-key': rig.secret }],
  ['an expiry that is not an instant', { 'tallyhook-expires': 'yesterday' }],
  ['an expiry in the past', { 'tallyhook-expires': '2020-01-01T00:00:00Z' }],
  ['an expiry too far ahead', { 'tallyhook-expires': '2999-01-01T00:00:00Z' }],
])('A write whose caller chose to wait is refused with %s', async (_what, headers) => {
  expect(await give(headers)).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
  expect(rig.requests).toEqual([]);
});

it('A write whose caller chose to wait is queued during a Retry-After, and the next pass is due at its end', async () => {
  const throttled = await open();
  throttled.answer(() => ({ status: 429, headers: [['retry-after', '60']], body: 'slow down' }));
  expectQueued(await give({}, throttled));
  expectQueued(await give({}, throttled));
  expect(throttled.requests).toHaveLength(1);
  const now = systemClock.now();
  const { sent, nextAt } = await throttled.gateway.runQueue(now);
  expect(sent).toBe(0);
  expect(nextAt).toBeGreaterThan(now + 50_000);
});

it('A write whose caller chose to wait is sent after earlier queued writes on its wallet', async () => {
  const references = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (const reference of references) await queued({ 'tallyhook-reference': reference });
  while ((await runQueue()).sent > 0);
  const rows = await sql<{ reference: string }[]>`
      select o.reference from tallyhook.transitions t
      join tallyhook.operations o on o.id = t.operation_id
      where o.reference = any(${references}) and t.to_state = 'accepted' order by t.id`;
  expect(rows.map(({ reference }) => reference)).toEqual(references);
});

it('While a host is not reached, one write tries it at growing intervals, and other hosts get theirs', async () => {
  const closed = createServer();
  const port = await listen(closed);
  await closeServer(closed);
  const txUrl = `http://127.0.0.1:${port}`;
  const away = await open({ operations, serviceDown: () => down, txUrl });
  const runAt = (now: number) => away.gateway.runQueue(now);
  const released = async () => {
    await database.owner.sql`update tallyhook.operations set retry_at = null`;
  };
  down = true;
  for (let n = 0; n < 60; n++) {
    const toAddr = `0x${String(++wallets).padStart(40, '0')}`;
    body = JSON.stringify({ toAddr, amount: 10, reasonType: 'gift' });
    expectQueued(await give({}, away));
  }
  const mint = await away.call('POST', '/v1/chain/erc721/1/mint', {
    headers: {
      authorization: `Bearer ${away.secret}`,
      prefer: 'respond-async',
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: `tokenId=${wallets}&toAddr=0x1&tokenURI=x`,
  });
  down = false;
  const at = systemClock.now();
  const first = await runAt(at);
  expect(first.sent).toBeLessThan(60);
  expect(await operationOf(mint)).toMatchObject({ sends: 1 });
  await released();
  expect((await runAt(at)).sent).toBe(0);
  const later = systemClock.now() + 2_000;
  expect((await runAt(later)).sent).toBe(1);
  await released();
  expect((await runAt(later)).sent).toBe(0);
  expect((await runAt(systemClock.now() + 5_000)).sent).toBe(1);
});
