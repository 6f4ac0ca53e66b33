/** Drifts of the wallet that an operator pays from, while no setting names it. */
import { expect, it } from 'vitest';
import { freshAddr, openRig } from '../rig.ts';

const rig = await openRig();

/** A wallet with these gives paid from it, each seen before the next one. */
async function paying(operatorNo: bigint, ...amounts: bigint[]) {
  const [wallet, user] = [await rig.opened(1_000n), freshAddr()];
  let balance = 1_000n;
  await rig.observe(wallet, balance);
  const gives: string[] = [];
  for (const amount of amounts) {
    const id = await rig.give(user, amount, operatorNo);
    await rig.accept(id);
    gives.push(id);
    balance -= amount;
    await rig.observeSeries(wallet, balance, balance);
  }
  return { wallet, user, gives, balance };
}

it('From the third give on the wallet is recognised, with the gives of each drift', async () => {
  const { wallet, gives } = await paying(7n, 10n, 20n, 10n, 30n);
  const drifts = await rig.drifts(wallet);
  expect(drifts.map(({ amount, cause }) => [amount, cause])).toEqual(
    [-10n, -20n, -10n, -30n].map((amount) => [amount, 'operator_wallet']),
  );
  expect(drifts.map(({ operator, prepared }) => [operator, prepared])).toEqual(
    gives.map((id) => [{ operator_no: '7', gives: [id] }, null]),
  );
});

it('Two gives are a coincidence', async () => {
  const { wallet } = await paying(8n, 10n, 20n);
  const causes = (await rig.drifts(wallet)).map(({ cause }) => cause);
  expect(causes).toEqual(['made_elsewhere', 'made_elsewhere']);
});

it('A give that the wallet did not pay between the others keeps the cause', async () => {
  const { wallet, user, balance } = await paying(9n, 10n, 20n);
  await rig.accept(await rig.give(user, 55n, 9n));
  await rig.observeSeries(wallet, balance, balance);
  await rig.accept(await rig.give(user, 30n, 9n));
  await rig.observeSeries(wallet, balance - 30n, balance - 30n);
  const causes = (await rig.drifts(wallet)).map(({ cause }) => cause);
  expect(causes).toEqual(['made_elsewhere', 'made_elsewhere', 'made_elsewhere']);
});

it('A change elsewhere among the gives keeps its own cause', async () => {
  const { wallet, user, balance } = await paying(11n, 10n, 20n, 30n);
  await rig.observeSeries(wallet, balance + 500n, balance + 500n);
  await rig.accept(await rig.give(user, 40n, 11n));
  await rig.observeSeries(wallet, balance + 460n, balance + 460n);
  const found = (await rig.drifts(wallet)).map(({ amount, cause }) => [amount, cause]);
  expect(found.slice(3)).toEqual([
    [500n, 'made_elsewhere'],
    [-40n, 'operator_wallet'],
  ]);
});
