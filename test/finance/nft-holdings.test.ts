/** Which tokens a wallet held at an instant, by the movements of NFTs. */
import { expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { listMovements } from '../../src/ledger/ledger.ts';
import { addr, HOUR, START } from '../reports/world.ts';
import { useFinance } from './rig.ts';

const { world, read } = await useFinance();

it('The tokens that a wallet held are those of the movements that took effect before and stand', async () => {
  const [ann, bob] = [addr(21), addr(22)];
  const write = (kind: string, token: number, hours: number, columns: object = {}) =>
    world.operation({
      kind,
      contract_id: 8,
      token_id: token,
      state: 'settled',
      operation_no: null,
      amount: null,
      to_addr: null,
      effective_at: isoText(START + hours * HOUR),
      ...columns,
    });
  await write('mint', 1, 1, { to_addr: ann });
  await write('transfer_from', 1, 3, { from_addr: ann, to_addr: bob });
  await write('set_extra_data', 1, 4, { from_addr: bob });
  await write('mint', 2, 2, { to_addr: ann });
  await write('burn', 2, 6);
  const failed = await write('mint', 3, 2, { to_addr: ann });
  const back = await write('transfer_from', 4, 5, { from_addr: ann, to_addr: bob });
  await world.post();
  const held = async (hours: number) => {
    const rows = await read(
      `nft_holdings_as_of('${isoText(START + hours * HOUR)}') where contract_id = 8`,
    );
    return rows.map(({ tokenId, owner }) => `${tokenId} ${owner === ann ? 'ann' : 'bob'}`);
  };
  expect(await held(1)).toEqual([]);
  expect(await held(2.5)).toEqual(['1 ann', '2 ann', '3 ann']);
  expect(await held(5.5)).toEqual(['1 bob', '2 ann', '3 ann', '4 bob']);
  expect(await held(7)).toEqual(['1 bob', '3 ann', '4 bob']);
  await world.sql(
    `update tallyhook.operations set state = 'failed' where id in ('${failed}', '${back}')`,
  );
  await world.post();
  // What the chain failed never was: the token that came back has its opening.
  expect(await held(7)).toEqual(['1 bob', '4 ann']);
  const [burn] = await read("nft_movements where contract_id = 8 and kind = 'burn'");
  expect(burn).toMatchObject({ fromAddr: ann, toAddr: null });
  const [newest] = await listMovements(world.db, { contractId: 8n, tokenId: 2n }, { limit: 1 });
  expect(newest).toMatchObject({ kind: 'burn', fromAddr: ann });
  const before = (await read('nft_movements where contract_id = 8')).length;
  expect(before).toBeGreaterThan(8);
});

it('A movement made elsewhere that a report replaces stood until the report was known', async () => {
  const [ann, bob] = [addr(21), addr(22)];
  const token = { contractId: 9n, tokenId: 1n };
  await world.hold(token, ann, START + HOUR);
  await world.hold(token, bob, START + 3 * HOUR);
  await world.post();
  const knownAt = isoText(world.clock.now());
  world.clock.advance(HOUR);
  const reported = { source: 'report', sent_at: null, answered_at: null, operation_no: null };
  const id = await world.operation({
    ...reported,
    kind: 'transfer_from',
    contract_id: 9,
    token_id: 1,
    state: 'settled',
    from_addr: ann,
    to_addr: bob,
    amount: null,
    effective_basis: 'reported',
    effective_at: isoText(START + 2 * HOUR),
  });
  await world.post();
  const heldAt = async (hours: number, known = '') =>
    (
      await read(
        `nft_holdings_as_of('${isoText(START + hours * HOUR)}'${known}) where contract_id = 9`,
      )
    ).map(({ owner, since }) => [owner, Number(since) - START]);
  expect(await heldAt(2.5, `, '${knownAt}'`)).toEqual([[ann, HOUR]]);
  expect(await heldAt(2.5)).toEqual([[bob, 2 * HOUR]]);
  expect(await heldAt(4, `, '${knownAt}'`)).toEqual([[bob, 3 * HOUR]]);
  const rows = await read('nft_movements where contract_id = 9 order by seq');
  expect(
    rows.map(({ kind, operationId, unexplained, standing, effectiveBasis: basis }) => {
      return [kind, operationId, unexplained, standing, basis];
    }),
  ).toEqual([
    ['opening', null, false, true, 'observed'],
    ['transfer', null, true, false, 'observed'],
    ['reversal', null, false, false, 'observed'],
    ['transfer', id, false, true, 'reported'],
  ]);
  expect(rows[2]?.reverses).toBe(rows[1]?.seq);
});

it('The supply of a contract balances as of any time: opening + minted − burned = held', async () => {
  const ann = addr(21);
  const token = (tokenId: bigint) => ({ contractId: 10n, tokenId });
  const supply = async (hours: number, known = '') => {
    const rows = await read(
      `nft_supply('${isoText(START + hours * HOUR)}'${known}) where contract_id = 10`,
    );
    return rows.map(({ contractId: _, ...row }) => Object.values(row).map(String).join(' '));
  };
  const write = (kind: string, tokenId: number, hours: number) =>
    world.operation({
      kind,
      contract_id: 10,
      token_id: tokenId,
      state: 'settled',
      operation_no: null,
      amount: null,
      to_addr: ann,
      effective_at: isoText(START + hours * HOUR),
    });
  await world.hold(token(1n), ann, START + HOUR);
  await world.hold(token(2n), ann, START + HOUR);
  await write('mint', 3, 2);
  await write('burn', 3, 4);
  await world.post();
  await world.hold(token(1n), null, START + 3 * HOUR);
  await world.hold(token(1n), ann, START + 5 * HOUR);
  await world.post();
  // Opening, minted, of these unexplained, burned, of these unexplained, held, balanced.
  expect(await supply(1)).toEqual([]);
  expect(await supply(1.5)).toEqual(['2 0 0 0 0 2 true']);
  expect(await supply(2.5)).toEqual(['2 1 0 0 0 3 true']);
  expect(await supply(3.5)).toEqual(['2 1 0 1 1 2 true']);
  expect(await supply(6)).toEqual(['2 2 1 2 1 2 true']);
});
