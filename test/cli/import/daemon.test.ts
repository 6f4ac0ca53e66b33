/** An import into a whole daemon, whose observations prove or contradict it. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { runCommand } from '../../harness/command.ts';
import { ADMIN_KEY } from '../../harness/daemon.ts';
import { useFolder } from '../../harness/folder.ts';
import { useRig } from '../../harness/rig.ts';
import { until } from '../../harness/until.ts';

const rig = useRig();
const { app } = rig;
const folder = useFolder();

beforeAll(async () => {
  const { ada, ben } = rig.world;
  await rig.observe(ada, ben);
});

const walletOf = async (addr: string) => (await app.call('GET', `/api/wallets/${addr}`)).json;
const give = (no: number, amount: string, at: string) =>
  `give,${at},${no},7,1,${rig.world.ada},${amount}`;

async function importLines(lines: string[], ...options: string[]) {
  const path = join(folder, 'history.csv');
  const header = 'kind,occurred_at,tx_log_no,tx_app_no,operation_no,to_addr,amount';
  await writeFile(path, [header, ...lines, ''].join('\n'));
  const env = { TALLYHOOK_URL: rig.daemon.url, TALLYHOOK_KEY: ADMIN_KEY };
  return runCommand(env, 'import', path, ...options);
}
/** The wallet after an observation from now on. */
async function observedAgain(addr: string) {
  const { now } = (await app.call('GET', '/api/status')).json;
  const wallet = await until(async () => {
    const seen = await walletOf(addr);
    return seen.observed_at > now && seen.unposted === '0' ? seen : undefined;
  });
  expect(wallet).toBeDefined();
  return wallet;
}

it('A history from before the daemon changes no balance, and drifts nothing', async () => {
  const before = await observedAgain(rig.world.ada);
  const lines = [give(1, '10', '2026-01-05T00:00:00Z'), give(2, '20', '2026-01-04T00:00:00Z')];
  const dry = await importLines(lines, '--dry-run');
  expect(dry.code, dry.text).toBe(0);
  expect(dry.text).toMatch(/Balance proof: \d wallets: [12] proved, 0 failed/);
  expect((await app.call('GET', '/api/operations')).json.data).toEqual([]);
  const { code, text } = await importLines(lines);
  expect({ code, text }).toMatchObject({
    code: 0,
    text: expect.stringContaining('Imported: 2 recorded, 0 known, 0 refused'),
  });
  const after = await observedAgain(rig.world.ada);
  expect([after.ledger_balance, after.drift]).toEqual([before.ledger_balance, '0']);
  const again = await importLines(lines);
  expect(again.text).toContain('Imported: 0 recorded, 2 known, 0 refused');
});

it('A history that the observations contradict is refused before anything is recorded', async () => {
  const { observed_balance } = await observedAgain(rig.world.ada);
  const tooMuch = (BigInt(observed_balance) + 1n).toString();
  const impossible = await importLines([give(3, tooMuch, '2026-01-06T00:00:00Z')]);
  expect(impossible).toMatchObject({ code: 1, text: expect.stringContaining('impossible') });

  rig.world.sandbox.control.setWallet(rig.world.ada, { delta: 25n });
  const occurred = new Date().toISOString();
  await app.until(({ type, data }) => type === 'wallet.drift_opened' && data.amount === '25');
  const other = await importLines([give(4, '24', occurred)]);
  expect(other).toMatchObject({ code: 1, text: expect.stringContaining('contradicted') });
  expect((await app.call('GET', '/api/operations')).json.data).toHaveLength(2);
  const right = await importLines([give(5, '25', occurred)]);
  expect(right.text).toContain('Imported: 1 recorded, 0 known, 0 refused');
  await app.until(({ type }) => type === 'wallet.drift_closed');
});

it('An import goes on after kills of the daemon, in its check and in its recording, row for row', async () => {
  const addr = `0x${'5'.repeat(40)}`;
  const lines = Array.from(
    { length: 4_000 },
    (_, n) => `give,2026-01-05T00:00:00Z,${1_000 + n},7,1,${addr},1`,
  );
  const imports = async () => {
    const { data } = (await app.call('GET', '/api/imports')).json;
    return data.filter((one: { lines: number }) => one.lines === lines.length);
  };
  const killedOnce = async (count: 'checked' | 'recorded') => {
    const command = importLines(lines);
    await until(async () => ((await imports())[0]?.[count] > 0 ? true : undefined));
    await rig.restart();
    await command;
  };
  await killedOnce('checked');
  await killedOnce('recorded');
  const { code, text } = await importLines(lines);
  expect(code, text).toBe(0);
  const made = await imports();
  expect(made.map(({ state }: { state: string }) => state)).toContain('done');
  const recorded = made.reduce((sum: number, one: { recorded: number }) => sum + one.recorded, 0);
  expect(recorded).toBe(lines.length);
});
