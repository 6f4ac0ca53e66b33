/** A caller that chose to wait gets 202 with its operation; it is sent once, when it can be. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { touchedBy } from '../../src/daemon/config/stage-settings.ts';
import type { Db } from '../../src/db/connect.ts';
import { DatabaseError } from '../../src/db/sqlstate.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { operationsDefaults } from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { DONE, GIVE, openRig, type Reply, type Rig } from './gateway-house.ts';

const BOOKS = {
  feeMode: 'on_top' as const,
  operators: new Map<string, string>(),
  feesAddr: undefined,
  collectionAddr: undefined,
};
/** Whose wallets are whose, as the daemon tells the journal. */
const JOURNAL = { ...operationsDefaults, admissionWaitMs: 50, touchedBy: touchedBy(BOOKS) };

let database: TestDatabase;
let rig: Rig;
let down = false;
/** Each test has a wallet of its own: what one leaves open must not stop the next. */
let body = '';
let wallets = 0;
beforeAll(async () => {
  database = await createDatabase();
  rig = await openRig(database.db, { serviceDown: () => down, operations: JOURNAL });
});
beforeEach(() => {
  down = false;
  const wallet = `0x${String(++wallets).padStart(40, '0')}`;
  body = `{"toAddr":"${wallet}", "amount":10, "reasonType":"gift"}`;
  rig.answer(() => DONE);
  rig.asked.length = 0;
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

const DOWN: Reply = {
  status: 503,
  headers: [['content-type', 'application/json']],
  body: '{"status":503,"message":"the service is under maintenance"}',
};
let keys = 0;
const give = (more: Record<string, string> = {}, at: Rig = rig) =>
  at.call('POST', GIVE, {
    headers: {
      authorization: `Bearer ${at.secret}`,
      prefer: 'respond-async',
      'content-type': 'application/json',
      ...more,
    },
    body,
  });
const pass = () => rig.gateway.runQueue(systemClock.now());
async function stateOf(id: unknown) {
  const rows = await database.owner.sql<{ state: string; code: string | null; sends: number }[]>`
    select state, error_code as code,
      (select count(*)::int from tallyhook.sends s where s.operation_id = o.id) as sends
    from tallyhook.operations o where id = ${String(id)}`;
  return rows[0];
}

function expectQueued(told: Awaited<ReturnType<typeof give>>): string {
  const id = String(told.headers['tallyhook-operation']);
  expect(told).toMatchObject({
    status: 202,
    headers: {
      'content-type': 'application/json',
      'preference-applied': 'respond-async',
      'tallyhook-outcome': 'queued',
      location: `/api/operations/${id}`,
    },
    json: { id, operation_id: id, kind: 'give', state: 'queued', outcome: 'open', amount: '10' },
  });
  return id;
}

describe('A write whose caller chose to wait', () => {
  test('Is answered as ever while the service is there', async () => {
    const told = await give();
    expect(told).toMatchObject({ status: 200, headers: { 'tallyhook-outcome': 'accepted' } });
    expect(told.headers['preference-applied']).toBeUndefined();
  });

  test('Is queued untried while the service is down, and sent once when it is back', async () => {
    down = true;
    const id = expectQueued(await give());
    expect(await pass()).toMatchObject({ sent: 0 });
    expect(rig.asked).toEqual([]);
    down = false;
    expect(await pass()).toMatchObject({ sent: 1 });
    expect(await pass()).toMatchObject({ sent: 0 });
    expect(rig.asked).toHaveLength(1);
    expect(rig.asked[0]).toMatchObject({ method: 'POST', url: GIVE });
    expect(rig.asked[0]?.body.toString()).toBe(body);
    expect(rig.asked[0]?.headers).toMatchObject({
      authorization: 'Bearer managed',
      'content-type': 'application/json',
    });
    expect(await stateOf(id)).toEqual({ state: 'accepted', code: null, sends: 1 });
  });

  test('Is queued when maintenance refuses it, and goes back as long as it lasts', async () => {
    rig.answer(() => DOWN);
    const id = expectQueued(await give());
    expect(await pass()).toMatchObject({ sent: 1 });
    expect(await stateOf(id)).toMatchObject({ state: 'queued' });
    rig.answer(() => DONE);
    await pass();
    expect(await stateOf(id)).toEqual({ state: 'accepted', code: null, sends: 3 });
  });

  test('Is answered as it stands when another daemon sent it on meanwhile', async () => {
    let lose: (() => Promise<unknown>) | undefined;
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
        const meanwhile = lose;
        if (!meanwhile) return done;
        lose = undefined;
        await meanwhile();
        throw new DatabaseError('CONNECTION_CLOSED', undefined, undefined);
      },
    };
    const cut = await openRig(losing, { operations: JOURNAL });
    try {
      cut.answer(() => DOWN);
      lose = pass;
      const told = await give({}, cut);
      const id = String(told.headers['tallyhook-operation']);
      expect(told).toMatchObject({ status: 202, json: { id, state: 'accepted' } });
      expect([cut.asked.length, rig.asked.length]).toEqual([1, 1]);
      expect(await stateOf(id)).toMatchObject({ state: 'accepted', sends: 2 });
    } finally {
      await cut.close();
    }
  });

  test('Is sent no more when its answer was lost: it is unknown', async () => {
    down = true;
    const id = expectQueued(await give());
    down = false;
    rig.answer(() => 'reset');
    await pass();
    expect(await stateOf(id)).toMatchObject({ state: 'unknown', sends: 1 });
    expect(await pass()).toMatchObject({ sent: 0 });
    expect(rig.asked).toHaveLength(1);
  });

  test('Is told again to a repeat, and its answer once it has one', async () => {
    down = true;
    const once = { 'idempotency-key': `wait-${keys++}` };
    const id = expectQueued(await give(once));
    const again = await give(once);
    expect(expectQueued(again)).toBe(id);
    expect(again.headers['idempotency-replayed']).toBe('true');
    down = false;
    await pass();
    const answered = await give(once);
    expect(answered).toMatchObject({ status: 200, headers: { 'tallyhook-operation': id } });
    expect(answered.bytes.toString()).toBe((DONE as { body: string }).body);
    expect(rig.asked).toHaveLength(1);
  });

  test('Is refused with a token of its own, which is never kept', async () => {
    const headers = { authorization: 'Bearer mine', 'tallyhook-key': rig.secret };
    expect(await give(headers)).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
    expect(rig.asked).toEqual([]);
  });

  test('Is refused with a packed body: how it is packed is not kept', async () => {
    const told = await give({ 'content-encoding': 'gzip' });
    expect(told).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
    expect(rig.asked).toEqual([]);
  });

  it.each(['yesterday', '2020-01-01T00:00:00Z', '2999-01-01T00:00:00Z'])(
    'Is refused when it may wait until %s',
    async (expires) => {
      const told = await give({ 'tallyhook-expires': expires });
      expect(told).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
    },
  );

  test('Is queued while the service wants no writes, and waits until it does', async () => {
    const slow = await openRig(database.db);
    try {
      slow.answer(() => ({ status: 429, headers: [['retry-after', '60']], body: 'slow down' }));
      expectQueued(await give({}, slow));
      expectQueued(await give({}, slow));
      expect(slow.asked).toHaveLength(1);
      const now = systemClock.now();
      const { sent, nextAt } = await slow.gateway.runQueue(now);
      expect(sent).toBe(0);
      expect(nextAt).toBeGreaterThan(now + 50_000);
    } finally {
      await slow.close();
    }
  });

  test('Goes out in the order in which it came, on one wallet', async () => {
    down = true;
    const references = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const reference of references) await give({ 'tallyhook-reference': reference });
    down = false;
    while ((await pass()).sent > 0);
    const rows = await database.owner.sql<{ reference: string }[]>`
      select reference from tallyhook.operations where reference = any(${references})
      order by answered_at`;
    expect(rows.map(({ reference }) => reference)).toEqual(references);
  });
});
