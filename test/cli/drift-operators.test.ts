/** A drift of an operator's wallet by the API and `tallyhook drifts`, and in words. */
import { expect, it } from 'vitest';
import { operatorTexts } from '../../src/resources/ledger/drift-words.ts';
import { accepted } from '../api/writes.ts';
import { useServedDrifts } from './served-drifts.ts';

const { rig, as } = useServedDrifts();

it('A drift of the wallet of an operator names its gives, and the command and the setting that end it', async () => {
  const { api } = rig;
  const addr = rig.freshAddr();
  await rig.poll(addr, 1_000n, 1_000n);
  const gives: string[] = [];
  let balance = 1_000n;
  for (const amount of [10n, 20n, 30n]) {
    const parties = { fromAddr: null, toAddr: rig.freshAddr(), feeAmount: null };
    const fields = { ...parties, operationNo: 4n, amount };
    const id = await api.record({ kind: 'give', fields });
    await api.operations.conclude(accepted(id, amount, api.deps.clock.now()));
    gives.push(id);
    balance -= amount;
    await rig.poll(addr, balance, balance);
  }
  const found = await rig.driftsOf(addr);
  expect(found.map(({ cause }) => cause)).toEqual(Array(3).fill('operator_wallet'));
  const [newest, second] = found.map(({ id }) => id);
  const operator = { operator_no: '4', gives: [gives[2]] };
  expect(found[0]).toMatchObject({ prepared: null, operator });
  expect((await rig.find(second ?? '')).actions).toMatchObject([
    { action: 'opened' },
    { action: 'recognised', detail: { operator_no: '4', gives: [gives[1]] } },
  ]);
  const setting = `ledger.operators: {"4": "${addr}"}`;
  const refused = await rig.post(`/${newest}/propose`, { reason: 'campaign' });
  expect(refused).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining(setting) },
  });
  const { text } = await as('ann', 'drifts', 'show', newest ?? '');
  expect(text).toContain(setting);
  expect(text).toContain(`npx tallyhook operators propose 4 --addr ${addr} --reason`);
  expect(text).not.toContain('Next:');
  const listed = await as('ann', 'drifts', '--cause', 'operator_wallet');
  const [heading, ...rows] = listed.text.trim().split('\n');
  expect(heading).toMatch(/^suspected_at {2,}id .* proposal$/);
  expect(rows).toHaveLength(3);
});

it('A drift that equals gives of an operator says how to map its wallet, and any other drift does not', () => {
  const operator = { operator_no: '12', gives: ['op_1'] };
  expect(operatorTexts({ addr: '0xA', operator: null })).toEqual([]);
  expect(operatorTexts({ addr: '0xA', operator }).join(' ')).toMatch(
    /^This looks like the wallet of operator 12: .* propose 12 --addr 0xA .* \{"12": "0xA"\} /,
  );
});
