/**
 * What a new world holds. The same seed gives the same addresses; numbers are the same in every
 * world. The control surface shows it.
 */

import type { World } from '../world.ts';
import { type Member, STATUS, tokenKey, type WalletStatus } from './records.ts';
import { addressOf, putWallet } from './wallets.ts';

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

/** Contract 1 is the client's own to fill, 2 is somebody else's, 3 is one that is in use. */
const CONTRACTS: [contractId: bigint, own: boolean][] = [
  [1n, true],
  [2n, false],
  [3n, true],
];

/** The tokens of contract 3 by number: the member who owns it, and whether a market locks it. */
const TOKENS: [memberNo: bigint, locked: boolean][] = [
  [1n, false],
  [1n, true],
  [2n, false],
  [2n, true],
  [3n, false],
];

/** The addresses to which codes may be sent, unless the start names others. */
export const REDIRECT_URIS = ['http://127.0.0.1:3000/callback', 'http://localhost:3000/callback'];

/** Fills an empty world: members, wallets, operators, contracts, tokens. */
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
  for (const [contract_id, own] of CONTRACTS) {
    world.contracts.put(contract_id.toString(), {
      contract_id,
      own,
      creator_addr: addressOf(world, 'creator', contract_id),
      next_token_id: 1n,
    });
  }
  TOKENS.forEach(([memberNo, locked], index) => {
    sowToken(world, BigInt(index + 1), addressOf(world, 'member', memberNo), locked);
  });
}

function sowToken(world: World, token_id: bigint, owner: string, locked: boolean): void {
  const contract_id = 3n;
  world.tokens.put(tokenKey(contract_id, token_id), {
    contract_id,
    token_id,
    owner,
    uri: `https://tokens.example/3/${token_id}.json`,
    metadata: `{"name":"Token ${token_id}"}`,
    extra: '{"level":1}',
    creator: addressOf(world, 'creator', contract_id),
    created_at: world.now(),
    owned_at: world.now(),
    locked,
    status: STATUS.complete,
    last_tx_hash: `0x${world.hex('sown', token_id, 64)}`,
    exists: true,
    work: null,
  });
}
