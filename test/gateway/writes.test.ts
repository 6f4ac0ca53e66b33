/** The path of every write: recorded before it leaves, durable before it is told, once per key. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { type Move, type State, statesBefore } from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { BODY, DONE, GIVE, openRig, type Reply, type Rig } from './gateway-house.ts';

let database: TestDatabase;
let rig: Rig;
const opened: Rig[] = [];
const also = async (...given: Parameters<typeof openRig>) => {
  const one = await openRig(...given);
  opened.push(one);
  return one;
};
beforeAll(async () => {
  database = await createDatabase();
  rig = await also(database.db);
});
beforeEach(() => {
  rig.answer(() => DONE);
  rig.asked.length = 0;
});
afterAll(async () => {
  for (const one of opened) await one.close();
  await database.drop();
});

let keys = 0;
const freshKey = () => `write-${keys++}`;
const give = (at: Rig, headers: Record<string, string> = {}, body = BODY) =>
  at.call('POST', GIVE, { headers: { authorization: `Bearer ${at.secret}`, ...headers }, body });
const operationOf = ({ headers }: Awaited<ReturnType<typeof give>>) =>
  String(headers['tallyhook-operation']);

interface Row {
  state: string;
  keyHeld: boolean;
  txLogNo: bigint | null;
  reference: string | null;
  sends: number;
}
async function rowOf(id: string): Promise<Row | undefined> {
  const rows = await database.owner.sql<Row[]>`
    select state, key_held, tx_log_no, reference,
      (select count(*)::int from tallyhook.sends s where s.operation_id = o.id) as sends
    from tallyhook.operations o where id = ${id}`;
  return rows[0];
}

describe('A write', () => {
  test('Is durable before it leaves, and its number before the caller hears it', async () => {
    let meanwhile: unknown;
    rig.answer(async () => {
      [meanwhile] = await database.owner.sql`
        select state, amount, reference from tallyhook.operations order by id desc limit 1`;
      return DONE;
    });
    const answered = await give(rig, { 'tallyhook-reference': 'order 7' });
    expect(meanwhile).toEqual({ state: 'sending', amount: 10n, reference: 'order 7' });
    expect(answered.headers['tallyhook-outcome']).toBe('accepted');
    expect(await rowOf(operationOf(answered))).toEqual({
      state: 'accepted',
      keyHeld: false,
      txLogNo: 9007199254740993n,
      reference: 'order 7',
      sends: 1,
    });
  });

  it.each<[string, Reply, number, string]>([
    ['reset', 'reset', 504, 'unknown'],
    ['hanging', 'hang', 504, 'unknown'],
  ])(
    'Whose answer was lost (%s) is 504 with its id and state, and is not repeated',
    async (_how, reply, status, state) => {
      const hasty = await also(database.db, { writeTimeoutMs: 250 });
      hasty.answer(() => reply);
      const answered = await give(hasty);
      const id = operationOf(answered);
      expect(answered).toMatchObject({
        status,
        json: { code: 'outcome_unknown', operation_id: id, state },
        headers: { 'tallyhook-outcome': 'unknown' },
      });
      expect([hasty.asked.length, await rowOf(id)]).toMatchObject([1, { state, sends: 1 }]);
    },
  );

  it.each<[string, Reply]>([
    ['500 with bytes', { status: 500, body: 'oops' }],
    [
      '500/999 under 200',
      { status: 200, body: '{"status":"500","error":{"code":"999","message":""}}' },
    ],
    ['no number', { status: 200, body: '{"status":200,"data":{}}' }],
  ])('Whose answer says nothing (%s) passes it on, and is unknown', async (_what, reply) => {
    rig.answer(() => reply);
    const answered = await give(rig);
    expect(answered.headers['tallyhook-outcome']).toBe('unknown');
    expect(answered.bytes.toString()).toBe(typeof reply === 'string' ? '' : reply.body);
    expect(await rowOf(operationOf(answered))).toMatchObject({ state: 'unknown' });
  });

  test('That provably never left is 502, and its key is free', async () => {
    const nowhere = await also(database.db, { txUrl: 'http://127.0.0.1:1' });
    const header = { 'idempotency-key': freshKey() };
    const first = await give(nowhere, header);
    expect(first).toMatchObject({ status: 502, json: { code: 'upstream_not_reached' } });
    expect(await rowOf(operationOf(first))).toMatchObject({ state: 'rejected', keyHeld: false });
    const second = await give(nowhere, header);
    expect(operationOf(second)).not.toBe(operationOf(first));
    expect(second.headers['idempotency-replayed']).toBeUndefined();
  });

  test('Of a daemon that no longer counts as alive is not sent', async () => {
    const dead = await also(database.db, { isAlive: () => false });
    expect(await give(dead)).toMatchObject({ status: 502, json: { code: 'upstream_not_reached' } });
    expect(dead.asked).toEqual([]);
  });

  test('Refused for the managed token is sent once more, and both sends are rows', async () => {
    const fresh = await also(database.db);
    const no = '{"status":"406","error":{"code":"401","message":"unauthorized"}}';
    fresh.answer(() => (fresh.asked.length === 1 ? { status: 406, body: no } : DONE));
    const answered = await give(fresh);
    expect(answered.status).toBe(200);
    expect([fresh.asked.length, await rowOf(operationOf(answered))]).toMatchObject([
      2,
      { state: 'accepted', sends: 2 },
    ]);
  });

  test('While the service asked to wait is answered by us, with the seconds left', async () => {
    const slow = await also(database.db);
    slow.answer(() => ({ status: 429, headers: [['retry-after', '60']], body: 'slow down' }));
    const header = { 'idempotency-key': freshKey() };
    const first = await give(slow, header);
    expect([first.status, first.bytes.toString()]).toEqual([429, 'slow down']);
    const second = await give(slow, header);
    expect(second).toMatchObject({ status: 429, json: { code: 'upstream_throttled' } });
    expect(Number(second.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(second.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(slow.asked).toHaveLength(1);
  });
});

describe('An idempotency key', () => {
  test('Quoted or bare is the same, and the repeat is the same bytes', async () => {
    const key = freshKey();
    const first = await give(rig, { 'idempotency-key': key });
    const again = await give(rig, { 'idempotency-key': `"${key}"` });
    expect([again.status, again.bytes]).toEqual([first.status, first.bytes]);
    expect(again.headers).toMatchObject({
      'content-type': 'application/json',
      'idempotency-replayed': 'true',
      'tallyhook-operation': operationOf(first),
    });
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    expect(rig.asked).toHaveLength(1);
  });

  it.each(['""', 'x'.repeat(256), 'caf\u00e9'])('Written %j is refused', async (key) => {
    const answered = await give(rig, { 'idempotency-key': key });
    expect(answered).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
    expect(rig.asked).toEqual([]);
  });

  test('With another body, path or query is a mismatch; another spelling is not', async () => {
    const header = { 'idempotency-key': freshKey() };
    const first = await give(rig, header);
    const same = await give(rig, header, JSON.stringify(JSON.parse(BODY), null, 2));
    expect(operationOf(same)).toBe(operationOf(first));
    const other = await give(rig, header, BODY.replace('10', '11'));
    expect(other).toMatchObject({
      status: 422,
      json: { code: 'idempotency_mismatch', operation_id: operationOf(first) },
    });
    const headers = { authorization: `Bearer ${rig.secret}`, ...header };
    for (const path of [`${GIVE}?x=1`, GIVE.replace('operations/1', 'operations/2')])
      expect(await rig.call('POST', path, { headers, body: BODY })).toMatchObject({
        status: 422,
      });
    expect(rig.asked).toHaveLength(1);
  });

  test('Of 30 requests at once lets one through', async () => {
    const header = { 'idempotency-key': freshKey() };
    const told = await Promise.all(Array.from({ length: 30 }, () => give(rig, header)));
    expect(rig.asked).toHaveLength(1);
    for (const { status, json } of told)
      expect(status === 200 || (status === 409 && json.code === 'idempotency_in_flight')).toBe(
        true,
      );
    expect(
      told.filter(
        ({ headers }) =>
          !headers['idempotency-replayed'] && headers['tallyhook-outcome'] === 'accepted',
      ),
    ).toHaveLength(1);
  });
});

describe('A repeat', () => {
  /** By evidence: no answer of the service is there to be told again. */
  const RECOVERED = { txAppNo: 1n, txLogNo: 4n };
  type Case = [string, State[], Partial<Move>, number, string | undefined];
  const CASES: Case[] = [
    ['sending', [], {}, 409, 'idempotency_in_flight'],
    ['unknown', ['unknown'], {}, 504, 'outcome_unknown'],
    ['undecided', ['unknown', 'undecided'], {}, 504, 'outcome_unknown'],
    ['not_executed', ['unknown', 'not_executed'], {}, 409, 'not_executed'],
    ['executed without ids', ['unknown', 'executed'], {}, 409, 'executed_without_number'],
    ['executed with its ids', ['unknown', 'executed'], RECOVERED, 200, undefined],
    ['settled by evidence', ['unknown', 'executed', 'settled'], RECOVERED, 200, undefined],
  ];

  it.each(CASES)(
    'Of one that is %s gets its answer, and sends nothing',
    async (_what, path, more, status, code) => {
      const { id, header } = await recordedOnly();
      for (const to of path) await moved(id, to, to === 'executed' ? more : {});
      const again = await give(rig, header);
      expect(again.status).toBe(status);
      expect(again.headers).toMatchObject({
        'tallyhook-operation': id,
        'idempotency-replayed': 'true',
      });
      if (code)
        expect(again.json).toMatchObject({
          code,
          operation_id: id,
          state: path.at(-1) ?? 'sending',
        });
      else expect(again.json).toEqual({ status: 200, data: { tx_app_no: 1, tx_log_no: 4 } });
      expect(rig.asked).toHaveLength(1);
    },
  );

  it.each<[State]>([['settled'], ['failed']])(
    "Of one that was accepted and has %s gets the service's own answer again",
    async (state) => {
      const header = { 'idempotency-key': freshKey() };
      const first = await give(rig, header);
      await moved(operationOf(first), state);
      const again = await give(rig, header);
      expect([again.status, again.bytes]).toEqual([first.status, first.bytes]);
      expect(again.headers['tallyhook-outcome']).toBe(state);
    },
  );

  test("Of one that the service refused gets the service's own refusal again", async () => {
    const body = '{"status":"406","error":{"code":"198","message":"balance too low"}}';
    rig.answer(() => ({ status: 406, headers: [['content-type', 'a/b']], body }));
    const header = { 'idempotency-key': freshKey() };
    const first = await give(rig, header);
    const again = await give(rig, header);
    for (const { status, bytes, headers } of [first, again])
      expect([status, bytes.toString(), headers['content-type']]).toEqual([406, body, 'a/b']);
    expect(rig.asked).toHaveLength(1);
  });

  test('Of a mint whose token is not known is not made up', async () => {
    const header = { 'idempotency-key': freshKey() };
    const mint = () =>
      rig.call('POST', '/v1/chain/erc721/1/mint-sequential', {
        headers: { authorization: `Bearer ${rig.secret}`, ...header },
        body: 'toAddr=x&tokenURI=u',
      });
    rig.answer(() => 'reset');
    const id = operationOf(await mint());
    await moved(id, 'executed', { txHash: '0x'.padEnd(66, 'a') });
    expect(await mint()).toMatchObject({ status: 409, json: { code: 'executed_without_number' } });
  });

  /** A write whose answer never came, put back into `sending` as far as the journal knows. */
  async function recordedOnly() {
    const key = freshKey();
    const header = { 'idempotency-key': key };
    rig.answer(() => 'reset');
    const id = operationOf(await give(rig, header));
    await database.owner.sql`
      update tallyhook.operations set state = 'sending', answered_at = null where id = ${id}`;
    return { id, header };
  }

  async function moved(id: string, to: State, more: Partial<Move> = {}) {
    expect(statesBefore(to).length).toBeGreaterThan(0);
    const move: Move = { id, to, at: Date.UTC(2026, 0, 1), cause: 'test', ...more };
    const done = await database.db.begin((tx) => rig.operations.move(tx, [move]));
    expect(done).toHaveLength(1);
  }
});
