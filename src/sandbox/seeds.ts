/**
 * What a new world holds. The same seed gives the same addresses; numbers are the same in every
 * world. The table is shown by the control surface and in the README.
 */
import type { Member, WalletStatus } from './records.ts';
import { addressOf, putWallet } from './wallets.ts';
import type { World } from './world.ts';

/** Nickname, balance and status by member number; a balance of null: no wallet yet. */
const MEMBERS: [nickname: string, balance: bigint | null, status: WalletStatus][] = [
  ['Ada', 1_000n, 1],
  ['Ben', 500n, 1],
  ['Chloe', 100n, 1],
  ['Dan', 0n, 1],
  ['Eve', null, 1],
  ['Frank', 1_000n, 2],
  ['Grace', 1_000n, 3],
  ['Heidi', 1_000n, 9],
];

/** Operator 1 pays and collects; operator 0 receives fees. */
const OPERATORS: [operationNo: bigint, balance: bigint][] = [
  [0n, 0n],
  [1n, 10n ** 18n],
];

/** The addresses to which codes may be sent, unless the start names others. */
export const REDIRECT_URIS = ['http://127.0.0.1:3000/callback', 'http://localhost:3000/callback'];

/**
 * Fills an empty world: contract 1 of the client, contract 2 of somebody else, wallets, members.
 */
export function sow(world: World): void {
  MEMBERS.forEach(([nickname, balance, status], index) => {
    const member: Member = { member_no: BigInt(index + 1), nickname, addr: null };
    if (balance !== null) {
      const { addr } = putWallet(world, {
        addr: addressOf(world, 'member', member.member_no),
        balance,
        status,
      });
      member.addr = addr;
    }
    world.members.put(member.member_no.toString(), member);
  });
  for (const [operation_no, balance] of OPERATORS) {
    const addr = addressOf(world, 'operator', operation_no);
    putWallet(world, { addr, balance, status: 1 });
    world.operators.put(operation_no.toString(), { operation_no, addr });
  }
  const market = addressOf(world, 'market', 1n);
  putWallet(world, { addr: market, balance: 0n, status: 1 });
  for (const [contract_id, own] of [
    [1n, true],
    [2n, false],
  ] as const) {
    world.contracts.put(contract_id.toString(), {
      contract_id,
      own,
      creator_addr: addressOf(world, 'creator', contract_id),
      next_token_id: 1n,
    });
  }
}
