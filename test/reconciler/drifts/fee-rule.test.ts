/** Drifts that another fee rule explains. */
import { expect, it } from 'vitest';
import { listTransactions, setFeeRules } from '../../../src/ledger/ledger.ts';
import { checkFeeRule, isContradicted } from '../../../src/reconciler/drifts/fee-rule.ts';
import { feeRuleAnnouncement } from '../../../src/reconciler/reconciler.ts';
import { openLedger, runDry } from '../../ledger/fixture.ts';
import { openRig } from '../rig.ts';

const rig = await openRig();
const { database, clock } = rig;

it('The drifts that another fee rule explains close, with one event for all of them', async () => {
  await setFeeRules(database.db, { feeMode: 'on_top' }, clock.now());
  const [a, b] = [await rig.opened(1_000n), await rig.opened(1_000n)];
  for (const addr of [a, b]) await rig.observe(addr, 1_000n);
  const first = await rig.transfer(a, b, 100n, 3n);
  await rig.accept(first);
  await rig.observeAll([a, 900n], [b, 1_097n], [a, 900n], [b, 1_097n]);
  await rig.accept(await rig.transfer(a, b, 200n, 5n));
  await rig.observeAll([a, 700n], [b, 1_292n], [a, 700n], [b, 1_292n]);
  expect(await rig.drifts(a)).toMatchObject([{ amount: 3n }, { amount: 5n }]);
  const drifts = [...(await rig.drifts(a)), ...(await rig.drifts(b))];
  expect(new Set(drifts.map(({ cause }) => cause))).toEqual(new Set(['fee_rule']));
  const contradiction = {
    rule: 'ledger.fee_rule_contradicted',
    detail: {
      setting: 'ledger.fee_mode',
      set: 'on_top',
      observed: 'deducted',
      votes_against: 2,
      votes_for: 0,
      operation_id: first,
    },
  };
  expect(await checkFeeRule(database.db)).toMatchObject([contradiction]);

  await setFeeRules(database.db, { feeMode: 'deducted' }, clock.now());
  const ledgers = await Promise.all(
    ['dmn_x', 'dmn_y'].map((daemonId) =>
      openLedger({
        db: database.db,
        clock,
        daemonId,
        announceFeeRules: feeRuleAnnouncement(rig.outbox),
      }),
    ),
  );
  for (const ledger of ledgers) {
    clock.advance(60_000);
    await runDry(ledger, clock);
  }
  const events = await rig.events('ledger:fee_rule');
  expect(events).toMatchObject([
    { type: 'ledger.fee_rule_applied', data: { changed: 2, reposted: 2 } },
  ]);
  expect(events[0]?.data.drifts).toHaveLength(4);
  const posted = await listTransactions(database.db, { operationId: first, limit: 10 });
  expect(posted.toReversed().map(({ kind, reverses }) => [kind, reverses !== null])).toEqual([
    ['transfer', false],
    ['reversal', true],
    ['transfer', false],
  ]);

  await rig.observeAll([a, 700n], [b, 1_292n], [a, 700n], [b, 1_292n]);
  for (const addr of [a, b]) expect(await rig.drifts(addr)).toEqual([]);
  expect(await checkFeeRule(database.db)).toEqual([]);
  const closed = await database.owner.sql<{ state: string; by: string | null }[]>`
    select state, closed_by ->> 'fee_rule_set_at' as by from tallyhook.drifts`;
  expect(closed.map(({ state, by }) => [state, by !== null])).toEqual(
    drifts.map(() => ['explained', true]),
  );
});

it.each([
  ['one vote may be a coincidence', 1, 0, false],
  ['two votes that nothing opposes decide', 2, 2, true],
  ['as many votes for the rule as against it keep it', 2, 4, false],
])('Of the fee rule, %s', (_, against, settled, expected) => {
  const votes = { against, settled, operationId: 'op_1', mode: 'on_top' as const };
  expect(isContradicted(votes)).toBe(expected);
});
