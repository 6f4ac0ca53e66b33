/** A daemon that starts with the wallet of an operator, which the daemon before it watched. */
import { expect, it } from 'vitest';
import { isoText, systemClock } from '../../src/kernel/clock.ts';
import { useRig } from '../harness/rig.ts';

const settings = { ledger: { operators: {} as Record<string, string> } };
const rig = useRig(settings);

const sql = <T extends object>(text: string) =>
  rig.world.database.owner.sql.unsafe<T[]>(text).then((rows) => [...rows]);
const drifts = (where: string) =>
  sql<{ cause: string; state: string }>(
    `select cause, state from tallyhook.drifts where ${where} order by opened_at, id`,
  );

/** The breaks of a report over the time of the test. */
async function breaks(): Promise<string[]> {
  const now = systemClock.now();
  const period = { from: isoText(now - 600_000), to: isoText(now + 60_000) };
  const made = await rig.app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
  const { json } = await rig.app.call('GET', `/api/reports/${made.json.id}`);
  return json.content.breaks.listed.map(({ kind }: { kind: string }) => kind);
}

it('After a start with the wallet of an operator, the drifts of its gives close as explained', async () => {
  const { ada, sandbox } = rig.world;
  const { addr = '' } =
    sandbox.control.state().operators.find((one) => one.operation_no === 1n) ?? {};
  await rig.observe(addr);
  for (const [i, amount] of [11, 12, 13].entries()) {
    await rig.app.give(ada, amount);
    await expect.poll(async () => (await drifts('true')).length).toBe(i + 1);
  }
  const causes = async () => (await drifts('closed_at is null')).map(({ cause }) => cause);
  await expect.poll(causes).toEqual(['operator_wallet', 'operator_wallet', 'operator_wallet']);

  settings.ledger.operators['1'] = addr;
  await rig.restart();
  await expect.poll(() => drifts('closed_at is null')).toEqual([]);
  expect((await drifts('true')).map(({ state }) => state)).toEqual([
    'explained',
    'explained',
    'explained',
  ]);
  await rig.app.give(ada, 14);
  const balances = () =>
    sql<{ off: number }>(`select (w.observed_balance - a.balance)::int as off
      from tallyhook.wallets w join tallyhook.accounts a on lower(a.name) = 'wallet:' || w.key
      where w.key = lower('${addr}')`);
  await expect.poll(balances).toEqual([{ off: 0 }]);
  await expect.poll(breaks).toEqual([]);
  expect(await drifts('closed_at is null')).toEqual([]);
});
