/** NFTs: opening + minted − burned = held, also for what was made elsewhere. */
import { expect, it } from 'vitest';
import { operationIdOf, useRig } from '../harness/rig.ts';

const rig = useRig();
const CONTRACT = 1n;
const [OLD, MINTED, OURS] = [7_100n, 7_101n, 7_102n];

/** What stands in the journal of a token, as finance reads it. */
async function journalOf(tokenId: bigint): Promise<string[]> {
  const rows = await rig.world.database.owner.sql<{ kind: string; unexplained: boolean }[]>`
    select kind, unexplained from finance_v1.nft_movements
    where standing and contract_id = 1 and token_id = ${tokenId.toString()}::numeric
    order by effective_at, seq`;
  return rows.map(({ kind, unexplained }) => (unexplained ? `${kind} made elsewhere` : kind));
}

/** The same by the service and by the journal; and the supply of the contract. */
async function accounts() {
  const { sql } = rig.world.database.owner;
  const [found] = await sql<{ seen: string[]; held: string[]; supply: object }[]>`
    select
      array(select token_id || ' ' || lower(owner) from finance_v1.nft_holdings order by 1) as seen,
      array(select token_id || ' ' || lower(owner) from finance_v1.nft_holdings_as_of()
        order by 1) as held,
      (select to_jsonb(s) from finance_v1.nft_supply() s where contract_id = 1) as supply`;
  return found;
}

async function watchContract() {
  const watch = [{ kind: 'contract', contract_id: `${CONTRACT}` }];
  const watched = await rig.app.call('POST', '/api/watches', watch);
  expect(watched.status, watched.text).toBe(201);
  const listed = async () => {
    const rows = await rig.world.database.owner.sql<{ at: unknown }[]>`
      select scan_progress -> 'listedAt' as at from tallyhook.targets
      where name = ${`contract:${CONTRACT}`}`;
    return typeof rows[0]?.at;
  };
  await expect.poll(listed).toBe('number');
}

it('Tokens that others mint, transfer and burn are in the journal beside ours, also when daemons die, and the reconciliation is balanced', async () => {
  const { world, app } = rig;
  const { control } = world.sandbox;
  await rig.another();
  control.setToken(CONTRACT, OLD, { owner: world.ada });
  await watchContract();
  await expect.poll(() => journalOf(OLD)).toEqual(['opening']);
  control.setToken(CONTRACT, MINTED, { owner: world.ada });
  const minted = await app.mint(world.ada, OURS);
  expect(minted.status, minted.text).toBe(200);
  await app.until((e) => e.type === 'token.minted' && e.data.token_id === `${MINTED}`);
  await rig.restart();
  await expect.poll(() => journalOf(MINTED)).toEqual(['mint made elsewhere']);
  await rig.eventOf(minted, 'operation.settled');
  await expect.poll(() => journalOf(OURS)).toEqual(['mint']);
  control.setToken(CONTRACT, OLD, { owner: world.ben });
  control.removeToken(CONTRACT, MINTED);
  await expect.poll(() => journalOf(OLD)).toEqual(['opening', 'transfer made elsewhere']);
  await expect
    .poll(() => journalOf(MINTED))
    .toEqual(['mint made elsewhere', 'burn made elsewhere']);
  const found = await accounts();
  expect(found?.held).toEqual(found?.seen);
  expect(found?.supply).toMatchObject({
    minted_unexplained: 1,
    burned: 1,
    burned_unexplained: 1,
    balanced: true,
  });
  const day = 86_400_000;
  const period = { from: new Date(Date.now() - day), to: new Date(Date.now() + day) };
  const made = await app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
  expect(made.json.verdict, made.text).toBe('balanced');
});

it('A transfer that is reported later takes the place of the one that was made elsewhere', async () => {
  const { world, app } = rig;
  const { json: token } = await app.call('GET', `/api/tokens/${CONTRACT}/${OLD}`);
  const reported = await app.call('POST', '/api/operations', {
    kind: 'transfer_from',
    tx_hash: token.last_tx_hash,
    contract_id: `${CONTRACT}`,
    token_id: `${OLD}`,
    from_addr: world.ada,
    to_addr: world.ben,
    occurred_at: new Date(Date.now() - 3_600_000).toISOString(),
  });
  expect(reported.status, reported.text).toBe(201);
  await expect.poll(() => journalOf(OLD)).toEqual(['opening', 'transfer']);
  const found = await accounts();
  expect(found?.held).toEqual(found?.seen);
  const history = await app.call('GET', `/api/tokens/${CONTRACT}/${OLD}/history`);
  const kinds = history.json.data.map(({ kind }: { kind: string }) => kind);
  expect(kinds.toSorted()).toEqual(['opening', 'reversal', 'transfer', 'transfer']);
});

it('A burn of ours is never recorded as made elsewhere, from its send to its end', async () => {
  const { world, app } = rig;
  const burned = await app.call(
    'POST',
    `/v1/chain/erc721/${CONTRACT}/burn`,
    new URLSearchParams({ tokenId: `${OURS}` }),
  );
  expect(burned.status, burned.text).toBe(200);
  await app.until(
    (e) => e.type === 'operation.settled' && e.data.operation_id === operationIdOf(burned),
  );
  await expect.poll(() => journalOf(OURS)).toEqual(['mint', 'burn']);
  const rows = await world.database.owner.sql`
    select seq from finance_v1.nft_movements where token_id = ${OURS.toString()}::numeric`;
  expect(rows).toHaveLength(2);
});
