/** Reports from elsewhere in a whole daemon: what looks at the wallets make of them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { createWorld, type DaemonProcess, startDaemon, type World } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

let world: World;
let daemon: DaemonProcess;
let app: App;

beforeAll(async () => {
  world = await createWorld();
  daemon = await startDaemon(world);
  app = makeApp(() => daemon.url);
  for (const addr of [world.ada, world.ben]) {
    await app.call('POST', '/api/watches', { kind: 'wallet', addr });
    await app.until(({ type, data }) => type === 'wallet.observed' && data.addr === addr);
  }
});
afterAll(async () => {
  await daemon?.stop();
  await world?.close();
});

const walletOf = async (addr: string) => (await app.call('GET', `/api/wallets/${addr}`)).json;
/** The wallet after a look that judged what the ledger holds now. */
async function judged(addr: string) {
  const { now } = (await app.call('GET', '/api/status')).json;
  const wallet = await until(async () => {
    const seen = await walletOf(addr);
    const settled = seen.unposted === '0' && seen.verdict === 'explained';
    return seen.observed_at > now && settled ? seen : undefined;
  });
  expect(wallet).toBeDefined();
  return wallet;
}
const report = async (change: object) => {
  const given = { kind: 'give', tx_app_no: '7', operation_no: '1', to_addr: world.ada, ...change };
  const { status, json } = await app.call('POST', '/api/operations', given);
  return { status, id: json.id, state: json.state, json };
};
const kindsOf = async (addr: string) => {
  const { json } = await app.call('GET', `/api/wallets/${addr}/statement`);
  return json.data.map(({ kind, amount }: Record<string, string>) => `${kind} ${amount}`);
};

describe('A report', () => {
  it('Of an old give leaves the wallet and its looks in peace, and both rows in the books', async () => {
    const before = await judged(world.ada);
    const made = await report({
      ...{ tx_log_no: '1', amount: '30', occurred_at: '2026-01-31T09:00:00Z' },
    });
    expect({ status: made.status, state: made.state }).toEqual({ status: 201, state: 'settled' });
    const after = await judged(world.ada);
    await judged(world.ada);
    expect([after.ledger_balance, after.drift]).toEqual([before.ledger_balance, '0']);
    expect(await kindsOf(world.ada)).toEqual([
      ...['opening -30', 'give 30', `opening ${before.ledger_balance}`],
    ]);
    const drifts = await app.call('GET', '/api/drifts');
    expect(drifts.json.data).toEqual([]);
  });

  it('Of a give behind our back ends the drift that it made, and settles by a look', async () => {
    world.sandbox.control.setWallet(world.ada, { delta: 25n });
    const occurred = new Date().toISOString();
    await app.until(({ type, data }) => type === 'wallet.drift_opened' && data.amount === '25');
    const made = await report({ tx_log_no: '2', amount: '25', occurred_at: occurred });
    expect(made).toMatchObject({ status: 201, state: 'executed' });
    await app.until(({ type }) => type === 'wallet.drift_closed');
    await app.until(
      ({ type, data }) => type === 'operation.settled' && data.operation_id === made.id,
    );
    const wallet = await judged(world.ada);
    expect(wallet).toMatchObject({ ledger_balance: wallet.observed_balance, drift: '0' });
  });

  it('Of a mint by its hash settles when the chain shows that hash', async () => {
    const token = world.sandbox.control.setToken(1n, 777n, { owner: world.ben });
    const made = await report({
      ...{ kind: 'mint', contract_id: '1', token_id: '777', tx_hash: token.last_tx_hash },
      ...{ to_addr: world.ben, occurred_at: new Date().toISOString() },
      ...{ tx_app_no: undefined, operation_no: undefined },
    });
    expect(made).toMatchObject({ status: 201, state: 'executed' });
    await app.until(
      ({ type, data }) => type === 'operation.settled' && data.operation_id === made.id,
    );
    const moved = await until(async () => {
      const { json } = await app.call('GET', '/api/tokens/1/777/history');
      return json.data.length > 0 ? json.data : undefined;
    });
    expect(moved).toMatchObject([{ kind: 'mint', operation_id: made.id, to_addr: world.ben }]);
  });

  it('Leaves nothing for the reconciliation report to find', async () => {
    const { now } = (await app.call('GET', '/api/status')).json;
    await Promise.all([judged(world.ada), judged(world.ben)]);
    const period = { from: '2026-01-01T00:00:00Z', to: now };
    const { json } = await app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
    const found = await app.call('GET', `/api/reports/${json.id}?format=json`);
    expect(json.verdict, JSON.stringify(found.json.findings ?? found.json)).toBe('balanced');
  });
});
