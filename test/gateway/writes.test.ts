import { expect, it } from 'vitest';
import { makeRefusals } from '../../src/db/checks/refusals.ts';
import { databaseClock } from '../../src/db/clock/clock.ts';
import { DatabaseError } from '../../src/db/sqlstate.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import type { Move, State } from '../../src/operations/operations.ts';
import { manualMachine } from '../harness/manual-machine.ts';
import { refillOpen } from '../harness/open-operations.ts';
import {
  BODY,
  GIVE,
  idOf,
  READ,
  type RigResponse,
  type ServiceAnswer,
  SUCCESS,
  setUpGateway,
} from './rig.ts';

const { database, sql, rig, open, operationOf } = await setUpGateway();

let keys = 0;
const freshKey = () => ({ 'idempotency-key': `write-${keys++}` });

it('A write is durable before it is sent, and its number before the caller gets it', async () => {
  let during: unknown;
  rig.answer(async () => {
    [during] = await sql`
        select state, amount, reference from tallyhook.operations order by id desc limit 1`;
    return SUCCESS;
  });
  const response = await rig.give({ 'tallyhook-reference': 'order 7' });
  expect(during).toEqual({ state: 'sending', amount: 10n, reference: 'order 7' });
  expect(response.headers['tallyhook-outcome']).toBe('accepted');
  expect(await operationOf(response)).toMatchObject({
    state: 'accepted',
    keyHeld: false,
    txLogNo: 9007199254740993n,
    reference: 'order 7',
    sends: 1,
  });
});

it.each(['reset', 'hang'] as const)(
  'A write with a lost answer (%s) gets 504 with its id and state, and is not resent',
  async (lost) => {
    const impatient = await open({ writeTimeoutMs: 500 });
    // The first request fetches the client token, which must not use up the timeout.
    await impatient.call('GET', READ);
    impatient.requests.length = 0;
    impatient.answer(() => lost);
    const response = await impatient.give();
    expect(response).toMatchObject({
      status: 504,
      json: { code: 'outcome_unknown', operation_id: idOf(response), state: 'unknown' },
      headers: { 'tallyhook-outcome': 'unknown' },
    });
    expect(impatient.requests).toHaveLength(1);
    expect(await operationOf(response)).toMatchObject({ state: 'unknown', sends: 1 });
  },
);

it.each<[string, ServiceAnswer & { body: string }]>([
  ['500 with bytes', { status: 500, body: 'oops' }],
  [
    '500/999 under 200',
    { status: 200, body: '{"status":"500","error":{"code":"999","message":""}}' },
  ],
  ['no number', { status: 200, body: '{"status":200,"data":{}}' }],
])(
  'A write with an inconclusive answer (%s) gets that answer, and is unknown',
  async (_what, answer) => {
    rig.answer(() => answer);
    const response = await rig.give();
    expect(response.headers['tallyhook-outcome']).toBe('unknown');
    expect(response.bytes.toString()).toBe(answer.body);
    expect(await operationOf(response)).toMatchObject({ state: 'unknown' });
  },
);

it('A write is not sent by a daemon without a heartbeat', async () => {
  const dead = await open({ isAlive: () => false });
  expect(await dead.give()).toMatchObject({
    status: 502,
    json: { code: 'upstream_not_reached' },
  });
  expect(dead.requests).toEqual([]);
});

it('A daemon whose heartbeat has expired beats again before it sends', async () => {
  let alive = false;
  const prove = async () => {
    alive = true;
  };
  const late = await open({ isAlive: () => alive, prove });
  expect((await late.give()).status).toBe(200);
});

it('A machine that is suspended before the first byte of a write does not send it past its deadline', async () => {
  const machine = manualMachine();
  const counts = { monotonicMs: machine.count.ms, uptimeMs: machine.uptimeMs };
  const clock = await databaseClock(database.db, makeLog('silent'), undefined, counts);
  let suspended = false;
  const isAlive = () => {
    // The last question before the first byte.
    if (suspended) machine.suspend(60_000);
    return true;
  };
  const laptop = await open({ clock, isAlive });
  expect((await laptop.give()).status).toBe(200);
  suspended = true;
  expect(await laptop.give()).toMatchObject({
    status: 502,
    json: { code: 'upstream_not_reached' },
  });
  expect(laptop.requests).toHaveLength(1);
});

it('A write is resent once after a 401 on the managed token, and both sends are rows', async () => {
  const unauthorized = '{"status":"406","error":{"code":"401","message":"unauthorized"}}';
  const fresh = await open();
  fresh.answer(() => (fresh.requests.length === 1 ? { status: 406, body: unauthorized } : SUCCESS));
  const response = await fresh.give();
  expect(response.status).toBe(200);
  expect(fresh.requests).toHaveLength(2);
  expect(await operationOf(response)).toMatchObject({ state: 'accepted', sends: 2 });
});

it('A write during a Retry-After gets our 429 with the seconds left; a repeat gets its answer', async () => {
  const throttled = await open();
  const [first, second] = [freshKey(), freshKey()];
  const accepted = await throttled.give(first);
  throttled.answer(() => ({ status: 429, headers: [['retry-after', '60']], body: 'slow down' }));
  const refused = await throttled.give(second);
  expect([refused.status, refused.bytes.toString()]).toEqual([429, 'slow down']);
  expect(await throttled.give(second)).toMatchObject({
    status: 429,
    json: { code: 'upstream_throttled' },
    headers: { 'retry-after': expect.stringMatching(/^(59|60)$/) },
  });
  const repeat = await throttled.give(first);
  expect([repeat.status, repeat.bytes]).toEqual([200, accepted.bytes]);
  expect(throttled.requests).toHaveLength(2);
});

const account = (status: string, code: string) =>
  JSON.stringify({ status, error: { code, message: 'no' } });
const nft = (status: number) => JSON.stringify({ status, error: [{ message: 'no' }] });
const oauth = (detail: string) =>
  JSON.stringify({ status: 400, error: { code: 400, message: 'no', detail } });
const MINT = '/v1/chain/erc721/1/mint';
const MINTED = { status: 200, body: `{"status":200,"data":{"tx_hash":"0x${'ab'.repeat(32)}"}}` };

it.each<[string, string, ServiceAnswer, 'released' | 'kept']>([
  ['an NFT body 401', MINT, { status: 200, body: nft(401) }, 'released'],
  ['an NFT body 403', MINT, { status: 200, body: nft(403) }, 'released'],
  ['HTTP 401', MINT, { status: 401, body: 'no' }, 'released'],
  ['HTTP 403', MINT, { status: 403, body: '' }, 'released'],
  ['an NFT body 422', MINT, { status: 200, body: nft(422) }, 'kept'],
  ['an NFT body 404', MINT, { status: 200, body: nft(404) }, 'kept'],
  ['406/401', GIVE, { status: 406, body: account('406', '401') }, 'released'],
  ['406/401 under 200', GIVE, { status: 200, body: account('406', '401') }, 'released'],
  ['401 of a transaction', GIVE, { status: 401, body: account('401', '401') }, 'released'],
  ['403 of a transaction', GIVE, { status: 403, body: account('403', '7') }, 'released'],
  ['406/198', GIVE, { status: 406, body: account('406', '198') }, 'kept'],
  ['500/997', GIVE, { status: 500, body: account('500', '997') }, 'kept'],
  ['invalid_token', GIVE, { status: 400, body: oauth('invalid_token') }, 'released'],
  ['invalid_grant', GIVE, { status: 400, body: oauth('invalid_grant') }, 'released'],
  ['unauthorized_client', GIVE, { status: 400, body: oauth('unauthorized_client') }, 'released'],
  ['invalid_request', GIVE, { status: 400, body: oauth('invalid_request') }, 'kept'],
])(
  "After a refusal by %s of the caller's own token the key of a write is released or kept",
  async (_title, path, refusal, expected) => {
    const key = freshKey();
    const as = (token: string) =>
      rig.call('POST', path, {
        headers: { authorization: `Bearer ${token}`, 'tallyhook-key': rig.secret, ...key },
        body: path === MINT ? 'toAddr=x&tokenId=1&tokenURI=u' : BODY,
      });
    rig.answer(() => refusal);
    const refused = await as('expired');
    expect([refused.status, refused.bytes.toString()]).toEqual([refusal.status, refusal.body]);
    const rejected = { state: 'rejected', keyHeld: expected === 'kept' };
    expect(await operationOf(refused)).toMatchObject(rejected);
    rig.answer(() => (path === MINT ? MINTED : SUCCESS));
    const again = await as('good');
    expect(again.headers['idempotency-replayed']).toBe(expected === 'kept' ? 'true' : undefined);
    expect(rig.requests.map(({ headers }) => headers.authorization)).toEqual(
      expected === 'kept' ? ['Bearer expired'] : ['Bearer expired', 'Bearer good'],
    );
    expect(await operationOf(again)).toMatchObject({
      state: expected === 'kept' ? 'rejected' : 'accepted',
      keyHeld: true,
    });
    expect((await as('good')).bytes).toEqual(again.bytes);
    expect(await operationOf(refused)).toMatchObject(rejected);
  },
);

it('A write that the managed token may not make is sent again under its key once it may', async () => {
  const key = freshKey();
  const owned = await open();
  owned.answer(() => ({ status: 406, body: account('406', '401') }));
  expect(await owned.give(key)).toMatchObject({ status: 406 });
  owned.answer(() => SUCCESS);
  expect(await owned.give(key)).toMatchObject({ status: 200 });
});

it("None of the gateway's own refusals uses an idempotency key", async () => {
  const key = freshKey();
  const owner = 'refused-by-gateway';
  const keyOf = async (input: Partial<Parameters<typeof rig.keys.create>[0]>) => {
    const { secret } = await rig.keys.create({ name: 'k', owner, scopes: ['gateway'], ...input });
    return (body = BODY) => rig.give({ authorization: `Bearer ${secret}`, ...key }, body);
  };
  const [limited, good] = [await keyOf({ limits: { amount_per_call: '1' } }), await keyOf({})];
  const reader = await keyOf({ scopes: ['read'] });
  const order = { reason: 'test', by: owner };
  const codes: string[] = [];
  codes.push((await reader()).json.code);
  codes.push((await limited()).json.code);
  codes.push((await limited('{"amount":1,"AMOUNT":2}')).json.code);
  codes.push(
    (await rig.give({ authorization: `Bearer thk_${'x'.repeat(43)}`, ...key })).json.status,
  );
  await rig.operations.freeze(order);
  codes.push((await good()).json.code);
  await rig.operations.unfreeze(order);
  expect(codes).toEqual(['forbidden', 'key_limit', 'member_not_allowed', '406', 'frozen']);
  expect(rig.requests).toEqual([]);
  expect(await good()).toMatchObject({ status: 200 });
});

it('An idempotency key is the same with and without quotes, and a repeat gets the same bytes', async () => {
  const key = freshKey();
  const first = await rig.give(key);
  const repeat = await rig.give({ 'idempotency-key': `"${key['idempotency-key']}"` });
  expect([repeat.status, repeat.bytes]).toEqual([first.status, first.bytes]);
  expect(repeat.headers).toMatchObject({
    'content-type': 'application/json',
    'idempotency-replayed': 'true',
    'tallyhook-operation': idOf(first),
  });
  expect(first.headers['idempotency-replayed']).toBeUndefined();
  expect(rig.requests).toHaveLength(1);
});

it('A write that is recorded shows that Postgres records again, and a repeat of one does not', async () => {
  const refusals = makeRefusals();
  const own = await open({ refusals });
  const key = freshKey();
  await own.give(key);
  refusals.failed(new DatabaseError('53100'));
  expect(await own.give(key)).toMatchObject({ status: 200 });
  expect(refusals.within(60_000)).toBe('53100');
  expect(await own.give(freshKey())).toMatchObject({ status: 200 });
  expect(refusals.within(60_000)).toBe(undefined);
});

it.each(['""', 'x'.repeat(256), 'caf\u00e9'])(
  'An idempotency key is refused when it is %j',
  async (key) => {
    const response = await rig.give({ 'idempotency-key': key });
    expect(response).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
    expect(rig.requests).toEqual([]);
  },
);

it('An idempotency key does not match another body, path or query, but matches another spelling of the body', async () => {
  const key = freshKey();
  const first = await rig.give(key);
  const same = await rig.give(key, JSON.stringify(JSON.parse(BODY), null, 2));
  expect(idOf(same)).toBe(idOf(first));
  const headers = { authorization: `Bearer ${rig.secret}`, ...key };
  for (const [path, body] of [
    [GIVE, BODY.replace('10', '11')],
    [`${GIVE}?x=1`, BODY],
    [GIVE.replace('operations/1', 'operations/2'), BODY],
  ] as const)
    expect(await rig.call('POST', path, { headers, body })).toMatchObject({
      status: 422,
      json: { code: 'idempotency_mismatch', operation_id: idOf(first) },
    });
  expect(rig.requests).toHaveLength(1);
});

it('An idempotency key of 30 concurrent requests lets one through', async () => {
  const key = freshKey();
  const responses = await Promise.all(Array.from({ length: 30 }, () => rig.give(key)));
  expect(rig.requests).toHaveLength(1);
  const isReplay = ({ headers }: RigResponse) => headers['idempotency-replayed'] === 'true';
  expect(responses.filter((response) => !isReplay(response))).toMatchObject([
    { status: 200, headers: { 'tallyhook-outcome': 'accepted' } },
  ]);
  for (const { status, json } of responses.filter(isReplay))
    expect(status === 200 ? '' : json.code).toBe(status === 409 ? 'idempotency_in_flight' : '');
});

/** As evidence finds them, without an answer of the service to replay. */
const IDS = { txAppNo: 1n, txLogNo: 4n };

it.each<[string, State[], Partial<Move>, number, string | undefined]>([
  ['sending', [], {}, 409, 'idempotency_in_flight'],
  ['unknown', ['unknown'], {}, 504, 'outcome_unknown'],
  ['undecided', ['unknown', 'undecided'], {}, 504, 'outcome_unknown'],
  ['not executed', ['unknown', 'not_executed'], {}, 409, 'not_executed'],
  ['executed without ids', ['unknown', 'executed'], {}, 409, 'executed_without_number'],
  ['executed with ids', ['unknown', 'executed'], IDS, 200, undefined],
  ['settled by evidence', ['unknown', 'executed', 'settled'], IDS, 200, undefined],
])(
  'A repeat of a write that is %s gets its state and is not sent',
  async (_what, path, ids, status, code) => {
    const key = freshKey();
    const id = await lostWrite(() => rig.give(key));
    await sql`
      update tallyhook.operations set state = 'sending', answered_at = null where id = ${id}`;
    await refillOpen(database.owner);
    for (const to of path) await move(id, to, to === 'executed' ? ids : {});
    const repeat = await rig.give(key);
    expect(repeat).toMatchObject({
      status,
      headers: { 'tallyhook-operation': id, 'idempotency-replayed': 'true' },
      json: code
        ? { code, operation_id: id, state: path.at(-1) ?? 'sending' }
        : { status: 200, data: { tx_app_no: 1, tx_log_no: 4 } },
    });
    expect(rig.requests).toHaveLength(1);
  },
);

it.each<[State]>([['settled'], ['failed']])(
  "A repeat of an accepted write that has %s gets the service's answer",
  async (state) => {
    const key = freshKey();
    const first = await rig.give(key);
    await move(idOf(first), state);
    const repeat = await rig.give(key);
    expect([repeat.status, repeat.bytes]).toEqual([first.status, first.bytes]);
    expect(repeat.headers['tallyhook-outcome']).toBe(state);
  },
);

it("A repeat of a refused write gets the service's refusal", async () => {
  const body = '{"status":"406","error":{"code":"198","message":"balance too low"}}';
  rig.answer(() => ({ status: 406, headers: [['content-type', 'a/b']], body }));
  const key = freshKey();
  for (const { status, bytes, headers } of [await rig.give(key), await rig.give(key)])
    expect([status, bytes.toString(), headers['content-type']]).toEqual([406, body, 'a/b']);
  expect(rig.requests).toHaveLength(1);
});

it('A repeat of a sequential mint without a known token id is refused', async () => {
  const headers = { authorization: `Bearer ${rig.secret}`, ...freshKey() };
  const body = 'toAddr=x&tokenURI=u';
  const mint = () => rig.call('POST', '/v1/chain/erc721/1/mint-sequential', { headers, body });
  await move(await lostWrite(mint), 'executed', { txHash: '0x'.padEnd(66, 'a') });
  expect(await mint()).toMatchObject({ status: 409, json: { code: 'executed_without_number' } });
});

async function lostWrite(write: () => Promise<RigResponse>): Promise<string> {
  rig.answer(() => 'reset');
  return idOf(await write());
}

async function move(id: string, to: State, ids: Partial<Move> = {}) {
  const change: Move = { id, to, at: Date.UTC(2026, 0, 1), cause: 'test', ...ids };
  const moved = await database.db.begin((tx) => rig.operations.move(tx, [change]));
  expect(moved).toHaveLength(1);
}
