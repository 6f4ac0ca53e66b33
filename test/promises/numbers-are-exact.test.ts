/**
 * Promise 11. Whole numbers beyond 2^53 pass unchanged from the service's JSON to SQL, events,
 * back.
 */
import { expect, it } from 'vitest';
import { operationIdOf, useRig } from '../harness/rig.ts';

const rig = useRig();
const AMOUNT = 9_007_199_254_740_993n;
const TOKEN = 340_282_366_920_938_463_463_374_607_431_768_211_457n;

it('An amount beyond 2^53 is exact at the service, in the ledger, in events and in webhooks', async () => {
  await rig.subscribe('/hook', ['operation.settled']);
  const answer = await rig.app.give(rig.world.ada, AMOUNT);
  expect(answer.status, answer.text).toBe(200);
  expect(rig.effects(AMOUNT)).toHaveLength(1);
  const settled = await rig.eventOf(answer, 'operation.settled');
  expect(settled.data.amount).toBe(String(AMOUNT));
  const rows = await rig.world.database.owner.sql<{ amount: bigint }[]>`
    select amount from finance_v1.journal where operation_id = ${operationIdOf(answer)}
    order by amount`;
  expect(rows.map(({ amount }) => amount)).toEqual([-AMOUNT, AMOUNT]);
  const { body } = await (await rig.receiver()).next();
  expect(JSON.parse(body).data.amount).toBe(String(AMOUNT));
  const wallet = await rig.app.call('GET', `/v1/app/token/account?addr=${rig.world.ada}`);
  expect(wallet.text).toContain(`"amt_token":${1_000n + AMOUNT},`);
});

it('A token id beyond 2^128 is exact in its event and in the API', async () => {
  const answer = await rig.app.mint(rig.world.ada, TOKEN);
  const minted = await rig.app.until(
    (e) => e.type === 'token.minted' && e.data.token_id === String(TOKEN),
  );
  expect(minted.data.contract_id).toBe('1');
  const { json } = await rig.app.call('GET', `/api/operations/${operationIdOf(answer)}`);
  expect(String(json.token_id)).toBe(String(TOKEN));
});
