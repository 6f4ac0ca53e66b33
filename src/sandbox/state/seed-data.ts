/** The content of a new world. Its addresses depend on the seed, its numbers do not. */
import type { World } from '../world.ts';
import { newToken, tokenKey, type WalletStatus } from './records.ts';
import { addressOf, putWallet } from './wallets.ts';

/** By member number; a balance of null means that the member has no wallet yet. */
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

/** Contract 1 is empty, contract 2 belongs to another app, contract 3 has tokens. */
const CONTRACTS: [contractId: bigint, own: boolean][] = [
  [1n, true],
  [2n, false],
  [3n, true],
];

/** The tokens of contract 3, by token id; a locked one is registered on a market. */
const TOKENS: [ownerMemberNo: bigint, locked: boolean][] = [
  [1n, false],
  [1n, true],
  [2n, false],
  [2n, true],
  [3n, false],
];

/** Registered redirect URIs, unless the start options name others. */
export const REDIRECT_URIS = ['http://127.0.0.1:3000/callback', 'http://localhost:3000/callback'];

/** Fills an empty world. */
export function insertSeedData(world: World): void {
  MEMBERS.forEach(([nickname, balance, status], index) => {
    const member_no = BigInt(index + 1);
    const addr = balance === null ? null : addressOf(world, 'member', member_no);
    if (balance !== null && addr !== null) putWallet(world, { addr, balance, status });
    world.members.put(member_no.toString(), { member_no, nickname, addr });
  });
  for (const [operation_no, balance] of OPERATORS) {
    const addr = addressOf(world, 'operator', operation_no);
    putWallet(world, { addr, balance, status: 1 });
    world.operators.put(operation_no.toString(), { operation_no, addr });
  }
  for (const [contract_id, own] of CONTRACTS) {
    const creator_addr = addressOf(world, 'creator', contract_id);
    const contract = { contract_id, own, creator_addr, next_token_id: 1n };
    world.contracts.put(contract_id.toString(), contract);
    if (contract_id !== 3n) continue;
    TOKENS.forEach(([ownerMemberNo, locked], index) => {
      const token_id = BigInt(index + 1);
      const token = newToken(contract, token_id, world.now(), {
        owner: addressOf(world, 'member', ownerMemberNo),
        uri: `https://tokens.example/3/${token_id}.json`,
        metadata: `{"name":"Token ${token_id}"}`,
        extra: '{"level":1}',
        locked,
        last_tx_hash: `0x${world.hex('seeded', token_id, 64)}`,
      });
      world.tokens.put(tokenKey(contract_id, token_id), token);
    });
  }
}
