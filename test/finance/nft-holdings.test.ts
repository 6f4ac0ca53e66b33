/** Which tokens a wallet held at an instant, by the movements of NFTs. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FINANCE } from '../../src/db/access/roles.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { addr, HOUR, makeWorld, START, type World } from '../reports/world.ts';

let world: World;
let finance: Db;
beforeAll(async () => {
  world = await makeWorld();
  finance = connect({ url: world.url, role: FINANCE, max: 1 });
});
afterAll(async () => {
  await finance.end();
  await world.drop();
});

type Row = Record<string, unknown>;
const read = (text: string) =>
  finance.sql.unsafe(`select * from finance_v1.${text}`) as Promise<Row[]>;

it('The tokens that a wallet held are those of the movements that took effect before and stand', async () => {
  const [ann, bob] = [addr(21), addr(22)];
  const write = (kind: string, token: number, hours: number, columns: object = {}) =>
    world.operation({
      ...{ kind, contract_id: 8, token_id: token, state: 'settled', operation_no: null },
      ...{ amount: null, to_addr: null, effective_at: isoText(START + hours * HOUR), ...columns },
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
  // What was reversed never was: the token that came back has its opening.
  expect(await held(7)).toEqual(['1 bob', '4 ann']);
  const before = (await read('nft_movements where contract_id = 8')).length;
  expect(before).toBeGreaterThan(8);
});
