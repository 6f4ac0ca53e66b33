/** Reported operations in a whole daemon: how observations settle them. */
import { beforeAll, describe, expect, it } from 'vitest';
import { useRig } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const rig = useRig();
const { app } = rig;

beforeAll(async () => {
  const { ada, ben } = rig.world;
  await rig.observe(ada, ben);
});

const walletOf = async (addr: string) => (await app.call('GET', `/api/wallets/${addr}`)).json;
/** The wallet after an observation that includes the present ledger. */
async function reconciled(addr: string) {
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
  const input = {
    kind: 'give',
    tx_app_no: '7',
    operation_no: '1',
    to_addr: rig.world.ada,
    ...change,
  };
  const { status, json } = await app.call('POST', '/api/operations', input);
  return { status, id: json.id, state: json.state, json };
};
const kindsOf = async (addr: string) => {
  const { json } = await app.call('GET', `/api/wallets/${addr}/statement`);
  return json.data.map(({ kind, amount }: Record<string, string>) => `${kind} ${amount}`);
};

describe('A report', () => {
  it('A report of an old give leaves balance and drift of the wallet unchanged', async () => {
    const before = await reconciled(rig.world.ada);
    const made = await report({
      tx_log_no: '1',
      amount: '30',
      occurred_at: '2026-01-31T09:00:00Z',
    });
    expect({ status: made.status, state: made.state }).toEqual({ status: 201, state: 'settled' });
    const after = await reconciled(rig.world.ada);
    await reconciled(rig.world.ada);
    expect([after.ledger_balance, after.drift]).toEqual([before.ledger_balance, '0']);
    // The opening moves before the report.
    const { ledger_balance: opened } = before;
    expect(await kindsOf(rig.world.ada)).toEqual([
      'opening -30',
      'give 30',
      `opening -${opened}`,
      `opening ${opened}`,
      `opening ${opened}`,
    ]);
    const drifts = await app.call('GET', '/api/drifts');
    expect(drifts.json.data).toEqual([]);
  });

  it('A report of an outside give closes its drift and settles by an observation', async () => {
    rig.world.sandbox.control.setWallet(rig.world.ada, { delta: 25n });
    const occurred = new Date().toISOString();
    await app.until(({ type, data }) => type === 'wallet.drift_opened' && data.amount === '25');
    const made = await report({ tx_log_no: '2', amount: '25', occurred_at: occurred });
    expect(made).toMatchObject({ status: 201, state: 'executed' });
    await app.until(({ type }) => type === 'wallet.drift_closed');
    await app.until(
      ({ type, data }) => type === 'operation.settled' && data.operation_id === made.id,
    );
    const wallet = await reconciled(rig.world.ada);
    expect(wallet).toMatchObject({ ledger_balance: wallet.observed_balance, drift: '0' });
  });

  it('A report of a mint settles when its token shows the hash', async () => {
    const token = rig.world.sandbox.control.setToken(1n, 777n, { owner: rig.world.ben });
    const made = await report({
      kind: 'mint',
      contract_id: '1',
      token_id: '777',
      tx_hash: token.last_tx_hash,
      to_addr: rig.world.ben,
      occurred_at: new Date().toISOString(),
      tx_app_no: undefined,
      operation_no: undefined,
    });
    expect(made).toMatchObject({ status: 201, state: 'executed' });
    await app.until(
      ({ type, data }) => type === 'operation.settled' && data.operation_id === made.id,
    );
    const moved = await until(async () => {
      const { json } = await app.call('GET', '/api/tokens/1/777/history');
      return json.data.length > 0 ? json.data : undefined;
    });
    expect(moved).toMatchObject([{ kind: 'mint', operation_id: made.id, to_addr: rig.world.ben }]);
  });

  it('Reported operations leave the reconciliation report balanced', async () => {
    const { now } = (await app.call('GET', '/api/status')).json;
    await Promise.all([reconciled(rig.world.ada), reconciled(rig.world.ben)]);
    const period = { from: '2026-01-01T00:00:00Z', to: now };
    const { json } = await app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
    const found = await app.call('GET', `/api/reports/${json.id}?format=json`);
    expect(json.verdict, JSON.stringify(found.json.findings ?? found.json)).toBe('balanced');
  });
});
