/** A daemon while reads are answered by generic errors, which say nothing about what exists. */
import { afterEach, expect, it } from 'vitest';
import { operationIdOf, useRig } from '../harness/rig.ts';

const rig = useRig();
const CONTRACT = 1n;

/** The standard JSON of a framework for a route that does not exist. */
const NO_ROUTE = '{"timestamp":"2026-01-31","status":404,"error":"Not Found","path":"/v1"}';
const failing = (endpoint: string, body = NO_ROUTE) =>
  rig.world.sandbox.control.addFault({ kind: 'status', status: 404, endpoint, body, count: 1e9 });
afterEach(() => rig.world.sandbox.control.clearFaults());

/** Waits until the service was asked so often for that from now on. */
async function asked(endpoint: string, times: number, contains = '') {
  const { control } = rig.world.sandbox;
  const count = () =>
    control
      .requests(0, 1e9)
      .filter((one) => one.endpoint === endpoint && `${one.path}?${one.query}`.includes(contains))
      .length;
  const before = count();
  await expect.poll(count, { timeout: 40_000 }).toBeGreaterThanOrEqual(before + times);
}
const typesOf = async (tokenId: bigint) =>
  (await rig.app.events()).filter(({ data }) => data.token_id === `${tokenId}`).map((e) => e.type);
const mintSettled = async (tokenId: bigint) =>
  rig.eventOf(await rig.app.mint(rig.world.ada, tokenId), 'operation.settled');
const stateOf = async (id: string) => (await rig.app.call('GET', `/api/operations/${id}`)).json;

it('A burn with a lost answer stays unknown while every token is a route that does not exist, and settles when tokens are shown again', async () => {
  const { app, world } = rig;
  const [burned, ...living] = [8_101n, 8_102n, 8_103n] as const;
  for (const tokenId of [burned, ...living]) await mintSettled(tokenId);
  const watches = [burned, ...living].map((id) => ({
    kind: 'token',
    contract_id: `${CONTRACT}`,
    token_id: `${id}`,
  }));
  expect((await app.call('POST', '/api/watches', watches)).status).toBe(201);
  failing('token');
  world.sandbox.control.addFault({ kind: 'lost_answer', endpoint: 'burn' });
  const form = new URLSearchParams({ tokenId: `${burned}` });
  const answer = await app.call('POST', `/v1/chain/erc721/${CONTRACT}/burn`, form);
  expect(answer.status, answer.text).toBe(504);
  const id = operationIdOf(answer);
  for (const tokenId of [burned, ...living]) await asked('token', 8, `tokens/${tokenId}`);
  expect(await stateOf(id)).toMatchObject({ state: 'unknown' });
  expect((await app.events()).map(({ type }) => type)).not.toContain('token.burned');
  world.sandbox.control.clearFaults();
  await rig.eventOf(answer, 'operation.settled');
  await app.until(({ type, data }) => type === 'token.burned' && data.token_id === `${burned}`);
  expect(await stateOf(id)).toMatchObject({ state: 'settled', outcome: 'executed' });
  for (const tokenId of living) {
    await asked('token', 3, `tokens/${tokenId}`);
    expect(await typesOf(tokenId)).not.toContain('token.burned');
  }
});

it('A burn that fails is not taken for one that was executed when tokens are a route that does not exist', async () => {
  const { app, world } = rig;
  const tokenId = 8_201n;
  await mintSettled(tokenId);
  failing('token');
  world.sandbox.control.addFault({ kind: 'dropped', endpoint: 'burn' });
  const form = new URLSearchParams({ tokenId: `${tokenId}` });
  const answer = await app.call('POST', `/v1/chain/erc721/${CONTRACT}/burn`, form);
  await asked('token', 8, `tokens/${tokenId}`);
  world.sandbox.control.clearFaults();
  await app.until(
    ({ type, data }) =>
      type === 'operation.resolved' && data.operation_id === operationIdOf(answer),
  );
  expect(await stateOf(operationIdOf(answer))).toMatchObject({ state: 'not_executed' });
  expect(await typesOf(tokenId)).not.toContain('token.burned');
});

it('Polls, clocks and the queue go on while the maintenance path is a route that does not exist', async () => {
  const { app, world } = rig;
  await rig.watch(world.ada);
  failing('maintenance');
  await asked('maintenance', 8);
  const answer = await app.call(
    ...(['POST', '/v1/app/token/operations/1/give'] as const),
    { toAddr: world.ada, amount: 41, reasonType: 'test' },
    {
      prefer: 'respond-async',
      'tallyhook-expires': new Date(Date.now() + 60_000).toISOString(),
      'idempotency-key': 'k',
    },
  );
  expect(answer.status, answer.text).toBe(200);
  await rig.eventOf(answer, 'operation.settled');
  const types = (await app.events()).map(({ type }) => type);
  expect(types.filter((type) => type.startsWith('service.'))).toEqual([]);
});

it('A wallet with a balance that is not found is a break of the report, an alert and an event, until it is shown again', async () => {
  const { app, world } = rig;
  const addr = world.ben;
  await rig.watch(world.ada, addr);
  await rig.eventOf(await app.give(addr, 150), 'operation.settled');
  const about = (type: string) => (event: { type: string; data: { addr?: string } }) =>
    event.type === type && event.data.addr?.toLowerCase() === addr.toLowerCase();
  world.sandbox.control.addFault({
    kind: 'error',
    endpoint: 'account',
    code: '398',
    contains: addr,
    count: 1e9,
  });
  await app.until(about('wallet.vanished'));
  const status = await app.call('GET', '/api/status');
  expect(status.json.open.wallets_vanished).toBe(1);
  const listed = await app.call('GET', '/api/wallets?vanished=true');
  expect(listed.json.data).toMatchObject([{ addr, verdict: 'vanished' }]);
  const alerts = async () => {
    const { json } = await app.call('GET', '/api/alerts');
    return json.data.map(({ rule, detail }: { rule: string; detail: { addr: string } }) => [
      rule,
      detail.addr,
    ]);
  };
  await expect.poll(alerts, { timeout: 40_000 }).toEqual([['wallet.vanished', addr]]);
  expect(await vanishedInReport()).toEqual([`wallet:${addr}`]);
  world.sandbox.control.clearFaults();
  await app.until(about('wallet.reappeared'));
  await expect.poll(alerts, { timeout: 40_000 }).toEqual([]);
  expect(await vanishedInReport()).toEqual([]);
});

async function vanishedInReport(): Promise<string[]> {
  const day = 86_400_000;
  const [from, to] = [-day, day].map((ms) => new Date(Date.now() + ms).toISOString());
  const made = await rig.app.call('POST', '/api/reports', { kind: 'reconciliation', from, to });
  expect(made.status, made.text).toBeLessThan(300);
  const report = await rig.app.call('GET', `/api/reports/${made.json.id}?format=json`);
  const { breaks, verdict } = report.json.content;
  const found = breaks.listed.filter(({ kind }: { kind: string }) => kind === 'wallet_vanished');
  if (found.length > 0) expect(verdict).toBe('breaks');
  return found.map(({ subject }: { subject: string }) => subject);
}
