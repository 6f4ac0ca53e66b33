/**
 * Promise 5. What the service shows is what the ledger holds, what is open, and drifts: writes of
 * each kind settle when it agrees, and a change from outside is a drift with its amount.
 */
import { describe, expect, it } from 'vitest';
import { operationIdOf, useRig } from '../harness/rig.ts';

const rig = useRig();

describe('A token write', () => {
  it('is answered with the bytes of the service, posted, and settled by an observation', async () => {
    const answer = await rig.app.give(rig.world.ada, 100, { 'tallyhook-reference': 'order 17' });
    const [effect] = rig.effects(100);
    expect(answer.text).toBe(
      JSON.stringify({
        status: 200,
        data: { tx_app_no: 101, tx_log_no: Number(effect?.tx_log_no) },
      }),
    );
    const settled = await rig.eventOf(answer, 'operation.settled');
    expect(settled.data).toMatchObject({
      kind: 'give',
      amount: '100',
      reference: 'order 17',
      outcome: 'executed',
    });
  });

  it('with a fee moves three accounts that sum to zero, and settles', async () => {
    const answer = await rig.app.transfer(rig.world.ada, rig.world.ben, 20);
    await rig.eventOf(answer, 'operation.settled');
    const rows = await rig.world.database.owner.sql<{ account: string; amount: bigint }[]>`
      select account, amount from finance_v1.journal
      where operation_id = ${operationIdOf(answer)} order by amount`;
    expect(rows.map((row) => [row.account, row.amount])).toEqual([
      [`wallet:${rig.world.ada}`, -21n],
      ['fees', 1n],
      [`wallet:${rig.world.ben}`, 20n],
    ]);
  });

  it('that takes from a wallet settles against it', async () => {
    await rig.eventOf(await rig.app.receiveFrom(rig.world.ada, 5), 'operation.settled');
  });

  it('that the service refuses is answered with its refusal and moves nothing', async () => {
    const answer = await rig.app.transfer(rig.world.ada, rig.world.ben, 10n ** 30n);
    expect(answer.status).toBe(406);
    expect(answer.json.error.code).toBe('198');
    const event = await rig.eventOf(answer, 'operation.rejected');
    expect(event.data.error).toMatchObject({ class: 'refused', code: '198' });
    const posted = await rig.world.database.owner.sql`
      select 1 as one from finance_v1.journal where operation_id = ${operationIdOf(answer)}`;
    expect(posted).toHaveLength(0);
  });
});

describe('A mint', () => {
  it('settles when the chain completes its hash', async () => {
    const answer = await rig.app.mint(rig.world.ada, 776);
    const settled = await rig.eventOf(answer, 'operation.settled');
    expect(settled.data.tx_hash).toHaveLength(66);
  });

  it('fails when the chain fails its hash', async () => {
    rig.world.sandbox.control.failNext(1);
    const failed = await rig.eventOf(await rig.app.mint(rig.world.ada, 777), 'operation.failed');
    expect(failed.data.outcome).toBe('not_executed');
  });
});

describe('A wallet changed from outside', () => {
  it('has a drift with its amount after two observations, closed when the balance returns', async () => {
    const { ben, sandbox } = rig.world;
    await rig.observe(ben);
    sandbox.control.setWallet(ben, { delta: 7n });
    const opened = await rig.app.until((e) => e.type === 'wallet.drift_opened');
    expect(opened.data).toMatchObject({ addr: ben, amount: '7' });
    sandbox.control.setWallet(ben, { delta: -7n });
    const closed = await rig.app.until((e) => e.type === 'wallet.drift_closed');
    expect(closed.data).toMatchObject({ drift_id: opened.data.drift_id, how: 'returned' });
  });
});
