/** A daemon that starts with another fee rule than the one before it. */
import { expect, it } from 'vitest';
import { operationIdOf, useRig } from '../harness/rig.ts';

const settings = { ledger: { fee_mode: 'deducted' } };
const rig = useRig(settings);

const sql = <T extends object>(text: string) =>
  rig.world.database.owner.sql.unsafe<T[]>(text).then((rows) => [...rows]);
const openDrifts = () =>
  sql<{ cause: string }>('select cause from tallyhook.drifts where closed_at is null');

it('After a start with the right fee rule the ledger agrees with the service again', async () => {
  const { ada, ben } = rig.world;
  await rig.eventOf(await rig.app.give(ada, 1_000), 'operation.settled');
  await rig.eventOf(await rig.app.give(ben, 1_000), 'operation.settled');
  const causes = async () => (await openDrifts()).map(({ cause }) => cause);
  const transfer = await rig.app.transfer(ada, ben, 20);
  await expect.poll(async () => new Set(await causes())).toEqual(new Set(['fee_rule']));
  await rig.app.transfer(ada, ben, 41);
  await expect.poll(async () => (await causes()).length).toBeGreaterThan(1);
  expect(new Set(await causes())).toEqual(new Set(['fee_rule']));

  settings.ledger.fee_mode = 'on_top';
  await rig.restart();
  const events = () =>
    sql<{ data: object }>(`select tallyhook.event_body(events)::jsonb -> 'data' as data
      from tallyhook.events where type = 'ledger.fee_rule_applied'`);
  await expect.poll(openDrifts).toEqual([]);
  expect(await events()).toMatchObject([{ data: { changed: 2, reposted: 2 } }]);
  expect(
    await sql(`select account, sum(amount)::int as amount from finance_v1.journal
      where operation_id = '${operationIdOf(transfer)}' group by 1 order by 2`),
  ).toEqual([
    { account: `wallet:${ada}`, amount: -21 },
    { account: 'fees', amount: 1 },
    { account: `wallet:${ben}`, amount: 20 },
  ]);
});
