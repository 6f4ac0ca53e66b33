/** Drifts of the wallet that an operator pays from, while no setting names it, and then. */
import { expect, it } from 'vitest';
import { addressKey } from '../../../src/kernel/addresses.ts';
import { listTransactions, verifyLedger } from '../../../src/ledger/ledger.ts';
import type { Person } from '../../../src/operations/operations.ts';
import { makeDrifts } from '../../../src/reconciler/reconciler.ts';
import { reportOf } from '../../ledger/builders.ts';
import { openLedger, PLAIN, putOperations, runDry } from '../../ledger/fixture.ts';
import { lateReports, makePeople } from '../late.ts';
import { freshAddr, openRig } from '../rig.ts';

/** Daemons that start later have the operators that tests add. */
const operators = new Map<string, string>();
const books = { ...PLAIN, operators };
const rig = await openRig({ books });
const report = lateReports(rig);
const people = makePeople(rig);
const { database, clock } = rig;
let daemons = 0;

/** A ledger that starts after a change of the setting does what it has to do. */
async function restartLedger() {
  clock.advance(60_000);
  const daemonId = `dmn_x${++daemons}`;
  await runDry(await openLedger({ db: database.db, clock, books, daemonId, batchMax: 200 }), clock);
}

const endsOf = (addr: string) => database.owner.sql<
  { amount: bigint; state: string; by: string }[]
>`
  select amount, state, coalesce(closed_by ->> 'operation_ids', closed_by ->> 'operation_id') as by
  from tallyhook.drifts where wallet_key = ${addressKey(addr)} order by opened_at, id`;

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

it('Once the setting names the wallet, its gives are posted from it and the drifts close', async () => {
  const { wallet, gives, balance } = await paying(21n, 10n, 20n, 10n, 30n);
  expect(await rig.balance(wallet)).toBe(1_000n);
  operators.set('21', wallet);
  await restartLedger();
  expect(await rig.balance(wallet)).toBe(balance);
  const posted = await listTransactions(database.db, { operationId: gives[0], limit: 10 });
  expect(posted.toReversed().map(({ kind, reverses }) => [kind, reverses !== null])).toEqual([
    ['give', false],
    ['reversal', true],
    ['give', false],
  ]);
  await rig.observe(wallet, balance);
  expect(await rig.drifts(wallet)).toEqual([]);
  expect(await endsOf(wallet)).toEqual(
    [-10n, -20n, -10n, -30n].map((amount, i) => ({ amount, state: 'explained', by: gives[i] })),
  );
  await rig.observeSeries(wallet, balance, balance);
  expect(await rig.drifts(wallet)).toEqual([]);
  expect((await verifyLedger(database.db, [])).ok).toBe(true);
});

it('Gives of the operator from then on are expected from its wallet', async () => {
  const { wallet, user, balance } = await paying(22n, 10n, 20n, 10n);
  operators.set('22', wallet);
  await restartLedger();
  await rig.accept(await rig.give(user, 40n, 22n));
  await rig.observeSeries(wallet, balance - 40n, balance - 40n);
  expect(await rig.drifts(wallet)).toEqual([]);
  await restartLedger();
  expect(await rig.balance(wallet)).toBe(balance - 40n);
});

it('A change elsewhere stays a drift of its own, also if gives happened in its window', async () => {
  const { wallet, user, balance } = await paying(23n, 10n, 20n, 10n);
  await rig.accept(await rig.give(user, 5n, 23n));
  await rig.observeSeries(wallet, balance + 95n, balance + 95n);
  for (const amount of [3n, 4n]) await rig.accept(await rig.give(user, amount, 23n));
  await rig.observeSeries(wallet, balance + 88n, balance + 88n);
  expect(await rig.driftAmounts(wallet)).toEqual([-10n, -20n, -10n, 95n, -7n]);
  operators.set('23', wallet);
  await restartLedger();
  await rig.observeSeries(wallet, balance + 88n, balance + 88n);
  expect(await rig.driftAmounts(wallet)).toEqual([100n]);
  expect(await rig.balance(wallet)).toBe(balance - 12n);
});

it('Gives before the opening of the wallet stay on the account of the operator', async () => {
  const user = freshAddr();
  const early = await rig.give(user, 60n, 24n);
  await rig.accept(early);
  clock.advance(60_000);
  const { wallet, balance } = await paying(24n, 10n, 20n, 10n);
  operators.set('24', wallet);
  await restartLedger();
  await rig.observe(wallet, balance);
  expect(await rig.drifts(wallet)).toEqual([]);
  expect(await listTransactions(database.db, { operationId: early, limit: 10 })).toHaveLength(1);
});

it('Nothing is prepared for gives of an operator, and a booking shows with the setting', async () => {
  const { wallet, balance } = await paying(25n, 10n, 20n, 30n);
  const { operations, outbox } = rig;
  const drifts = makeDrifts({ db: database.db, clock, outbox, operations, effectSettings: books });
  const [ann, bob] = ['ann', 'bob'].map((owner) => ({ owner, keyId: owner })) as [Person, Person];
  const { id = '' } = (await rig.drifts(wallet))[1] ?? {};
  expect(await drifts.propose([id], { reason: 'x' }, ann)).toMatchObject([
    { failure: { message: expect.stringContaining(`ledger.operators: {"25": "${wallet}"}`) } },
  ]);
  await drifts.propose([id], { proposal: 'book', reason: 'x' }, ann);
  await drifts.approve([id], {}, bob);
  await rig.observeSeries(wallet, balance, balance);
  expect(await rig.driftAmounts(wallet)).toEqual([-10n, -30n]);
  operators.set('25', wallet);
  await restartLedger();
  await rig.observeSeries(wallet, balance, balance, balance);
  expect(await rig.driftAmounts(wallet)).toEqual([20n]);
});

it('Gives that settled are moved too, and one whose answer was lost is paid from the wallet', async () => {
  const [wallet, user] = [await rig.opened(1_000n), await rig.opened(0n)];
  for (const [addr, balance] of [
    [wallet, 1_000n],
    [user, 0n],
  ] as const)
    await rig.observe(addr, balance);
  const settled = await rig.give(user, 10n, 26n);
  await rig.accept(settled);
  await rig.observeAll([user, 10n], [wallet, 990n], [user, 10n], [wallet, 990n]);
  expect(await rig.stateOf(settled)).toBe('settled');
  const lost = await rig.give(user, 25n, 26n);
  await rig.lose(lost);
  operators.set('26', wallet);
  await restartLedger();
  expect(await rig.balance(wallet)).toBe(990n);
  await rig.observeAll([wallet, 990n], [user, 10n]);
  expect(await rig.drifts(wallet)).toEqual([]);
  await rig.accept(lost);
  await rig.observeAll([wallet, 965n], [user, 35n], [wallet, 965n], [user, 35n]);
  await restartLedger();
  expect(await rig.balance(wallet)).toBe(965n);
  for (const addr of [wallet, user]) expect(await rig.drifts(addr)).toEqual([]);
  expect(await rig.stateOf(lost)).toBe('settled');
});

const amountsOf = async (addr: string) =>
  (await endsOf(addr)).map(({ amount, state }) => `${amount} ${state}`);

it('A give that the wallet did not pay is one drift with the setting, and explains none', async () => {
  const [wallet, user] = [await rig.opened(1_000n), freshAddr()];
  await rig.observe(wallet, 1_000n);
  await rig.accept(await rig.give(user, 10n, 42n));
  await rig.post();
  operators.set('42', wallet);
  await restartLedger();
  await rig.observeSeries(wallet, 1_000n, 1_000n);
  expect(await amountsOf(wallet)).toEqual(['10 open']);
  await rig.observeSeries(wallet, 1_000n, 1_000n, 1_000n, 1_000n);
  expect(await amountsOf(wallet)).toEqual(['10 open']);
});

it('A reported give that the wallet did not pay is one drift with the setting, too', async () => {
  const [wallet, user] = [await rig.opened(1_000n), freshAddr()];
  await rig.observe(wallet, 1_000n);
  clock.advance(5_000);
  const fields = { operationNo: 43n, toAddr: user, amount: 10n };
  // A number that no accepted write has.
  const ids = { txAppNo: 1n, txLogNo: 6_000_043n, occurredAt: clock.now() };
  await report(reportOf({ ...ids, fields }));
  clock.advance(5_000);
  await rig.observeSeries(wallet, 1_000n, 1_000n);
  operators.set('43', wallet);
  await restartLedger();
  await rig.observeSeries(wallet, 1_000n, 1_000n);
  expect(await amountsOf(wallet)).toEqual(['10 open']);
  await rig.observeSeries(wallet, 1_000n, 1_000n, 1_000n, 1_000n);
  expect(await amountsOf(wallet)).toEqual(['10 open']);
});

it('A give that was taken back before the setting makes no drift with it', async () => {
  const [wallet, user] = [await rig.opened(1_000n), freshAddr()];
  await rig.observe(wallet, 1_000n);
  const id = await rig.give(user, 10n, 44n);
  await rig.accept(id);
  clock.advance(5_000);
  await rig.observeSeries(wallet, 1_000n, 1_000n);
  await people.decide(id, 'not_executed');
  await rig.post();
  operators.set('44', wallet);
  await restartLedger();
  await rig.observeSeries(wallet, 1_000n, 1_000n);
  expect(await amountsOf(wallet)).toEqual([]);
});

it('A give that was taken back before the setting and is executed again is moved then', async () => {
  const [wallet, user] = [await rig.opened(1_000n), freshAddr()];
  await rig.observe(wallet, 1_000n);
  const id = await rig.give(user, 10n, 45n);
  await rig.accept(id);
  await rig.post();
  await people.decide(id, 'not_executed');
  await rig.post();
  operators.set('45', wallet);
  await restartLedger();
  await people.decide(id, 'executed');
  await restartLedger();
  await rig.observeSeries(wallet, 990n, 990n);
  expect(await amountsOf(wallet)).toEqual([]);
  expect(await rig.balance(wallet)).toBe(990n);
});

it('A drift that may be a lost write brings no operator to light', async () => {
  const { wallet, user, balance } = await paying(48n, 10n, 20n);
  const lost = await rig.transfer(wallet, user, 30n);
  await rig.lose(lost);
  rig.passQuiescence();
  await rig.observeSeries(wallet, balance, balance);
  expect(await rig.stateOf(lost)).toBe('not_executed');
  await rig.accept(await rig.give(user, 30n, 48n));
  await rig.observeSeries(wallet, balance - 30n, balance - 30n);
  const causes = (await rig.drifts(wallet)).map(({ cause }) => cause);
  expect(causes).toEqual(['made_elsewhere', 'made_elsewhere', 'lost_operation']);
});

it('Drifts from before the newest 4,000 gives are compared with none', async () => {
  const { wallet, user, balance } = await paying(46n, 10n, 20n);
  clock.advance(5_000);
  const others = Array.from({ length: 4_000 }, (_, i) => {
    const common = { kind: 'give', state: 'settled', operationNo: 47n, toAddr: user } as const;
    return { ...common, id: `op_other_${i}`, amount: 1n, recordedAt: clock.now() };
  });
  await putOperations(database.owner, others);
  await rig.observe(wallet, balance);
  await rig.accept(await rig.give(user, 30n, 46n));
  await rig.observeSeries(wallet, balance - 30n, balance - 30n);
  const causes = (await rig.drifts(wallet)).map(({ cause }) => cause);
  expect(causes).toEqual(Array(3).fill('made_elsewhere'));
});
