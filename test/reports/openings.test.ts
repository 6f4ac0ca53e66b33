/** Openings in the reconciliation: of wallets that a report moves, and of tokens. */
import { expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { addr, type Columns, HOUR, START, useEachWorld } from './world.ts';

const world = useEachWorld();

it('An opening that an old report moves is one movement of the period', async () => {
  await world.open(addr(1), 100n, START + 3 * HOUR);
  await world.post();
  const at = isoText(START + HOUR);
  const reported = { source: 'report', effective_basis: 'reported', effective_at: at };
  await world.operation({ ...reported, sent_at: null, amount: 40 });
  await world.post();
  const { content } = await world.report();
  expect(content.roll_forward.find(({ name }) => name === 'wallet')).toMatchObject({
    opening: '0',
    prior_period: '0',
    incoming: '100',
    outgoing: '0',
    closing: '100',
  });
});

/** A settled NFT operation of token 1 of contract 5. */
function write(kind: string, columns: Columns = {}): Promise<string> {
  const nothing = { amount: null, operation_no: null, to_addr: addr(2) };
  const token = { contract_id: 5, token_id: 1, tx_hash: `0x${'a'.repeat(64)}` };
  return world.operation({ kind, state: 'settled', ...nothing, ...token, ...columns });
}

const observed = (presence: 'present' | 'absent') =>
  world.insert('tokens', {
    contract_id: 5,
    token_id: 1,
    owner: addr(2),
    status: 1,
    locked: 0,
    observed_at: isoText(world.clock.now()),
    presence,
  });

it.each([
  ['burned', 'burn', 'absent', { opening: 1, minted: 0, burned: 1, held: 0 }],
  ['transferred', 'transfer_from', 'present', { opening: 1, minted: 0, burned: 0, held: 1 }],
  ['changed', 'set_extra_data', 'present', { opening: 1, minted: 0, burned: 0, held: 1 }],
] as const)(
  'A token from before the daemon that is %s is balanced',
  async (_, kind, presence, supply) => {
    await write(kind, { from_addr: kind === 'set_extra_data' ? addr(2) : addr(1) });
    await world.post();
    await observed(presence);
    const { content } = await world.report();
    expect([content.headline, content.breaks.listed]).toEqual(['balanced', []]);
    expect(content.tokens.supply.listed).toEqual([
      { contract_id: '5', ...supply, found: 0, missing: 0, surplus: 0 },
    ]);
    const moves = await world.owner.sql<{ kind: string; toAddr: string | null }[]>`
    select kind, to_addr from finance_v1.nft_movements order by effective_at`;
    const [opening] = moves;
    expect(opening?.kind).toBe('opening');
    expect(opening?.toAddr).toBe(kind === 'set_extra_data' ? addr(2) : addr(1));
  },
);

it('A token that we minted has no opening, in any order of postings', async () => {
  const late = isoText(START + 2 * HOUR);
  await write('mint', { effective_at: late, answered_at: late });
  await world.sql(`update tallyhook.due_postings set due_at = '${late}'`);
  await write('transfer_from', { from_addr: addr(1) });
  await write('burn', { from_addr: addr(2) });
  await world.post();
  await observed('absent');
  const { content } = await world.report();
  expect([content.headline, content.breaks.listed]).toEqual(['balanced', []]);
  expect(content.tokens.supply.listed).toMatchObject([{ opening: 0, minted: 1, burned: 1 }]);
});

it('A token that we burn twice was minted elsewhere in between', async () => {
  await write('mint');
  await write('burn', { from_addr: addr(2) });
  await world.post();
  await write('burn', { from_addr: addr(3) });
  await world.post();
  await observed('absent');
  const { content } = await world.report();
  expect(content.headline).toBe('balanced');
  expect(content.tokens.supply.listed).toMatchObject([{ opening: 0, minted: 2, burned: 2 }]);
});
