/**
 * The five NFT writes (section 4.1, rows 1 to 5). Checks run in this order: caller (401), input
 * (400), contract and token exist (404), state allows the write (422).
 */
import { sameAddress } from '../../kernel/addresses.ts';
import { isProcessing, startMint, startWrite } from '../chain/chain.ts';
import { type Caller, callerOf } from '../state/grants.ts';
import { type Contract, type Token, tokenKey } from '../state/records.ts';
import { walletOf } from '../state/wallets.ts';
import type { World } from '../world.ts';
import { type Answer, type Call, formOf, success } from './call.ts';
import { nftRefusal, unprocessable } from './errors.ts';
import { checkedInput, type Input } from './nft-input.ts';

/** POST …/mint */
export function mint(world: World, call: Call): Answer {
  authorize(world, call, 'client');
  const input = formInput(call, ['toAddr', 'tokenId', 'tokenURI'], ['metaData', 'extraData']);
  const contract = getContract(world, input);
  const token_id = input.whole('tokenId');
  const known = world.tokens.get(tokenKey(contract.contract_id, token_id));
  // A mint that failed on the chain leaves its token id free.
  if (known && (known.exists || isProcessing(known))) {
    throw unprocessable('tokenId', 'unique', 'The token id is already in use');
  }
  const tx_hash = startMint(world, contract, { token_id, ...mintFields(input) }, 'mint');
  return success({ tx_hash });
}

/** POST …/mint-sequential */
export function mintSequential(world: World, call: Call): Answer {
  authorize(world, call, 'client');
  const input = formInput(call, ['toAddr', 'tokenURI'], ['metaData', 'extraData']);
  const contract = getContract(world, input);
  let token_id = contract.next_token_id;
  while (world.tokens.get(tokenKey(contract.contract_id, token_id))) token_id += 1n;
  const key = contract.contract_id.toString();
  world.contracts.put(key, { ...contract, next_token_id: token_id + 1n });
  const fields = { token_id, ...mintFields(input) };
  const tx_hash = startMint(world, contract, fields, 'mint_sequential');
  return success({ tx_hash, tokenId: token_id });
}

/** POST …/burn */
export function burn(world: World, call: Call): Answer {
  authorize(world, call, 'client');
  const input = formInput(call, ['tokenId']);
  const contract = getContract(world, input);
  const token = getWritable(world, contract, input);
  if (world.switches().burn === 'own' && !sameAddress(token.owner, contract.creator_addr)) {
    throw unprocessable('tokenId', 'owner', 'The token has another owner');
  }
  return success({ tx_hash: startWrite(world, token, 'burn', '') });
}

/** PUT …/tokens/{tokenId}/set-extra-data */
export function setExtraData(world: World, call: Call): Answer {
  const caller = authorize(world, call, 'user');
  const input = formInput(call, ['tokenId', 'extraData']);
  const token = getOwned(world, getContract(world, input), input, caller);
  return success({ tx_hash: startWrite(world, token, 'set_extra_data', input.text('extraData')) });
}

/** POST …/transfer-from */
export function transferFrom(world: World, call: Call): Answer {
  const caller = authorize(world, call, 'user');
  const input = formInput(call, ['fromAddr', 'toAddr', 'tokenId']);
  const token = getOwned(world, getContract(world, input), input, caller);
  if (!sameAddress(token.owner, input.text('fromAddr'))) {
    throw unprocessable('fromAddr', 'owner', 'fromAddr is not the current owner');
  }
  return success({ tx_hash: startWrite(world, token, 'transfer_from', input.text('toAddr')) });
}

/** @throws Refusal 401 unless the access token is valid and of that kind */
export function authorize(world: World, call: Call, kind: Caller['kind']): Caller {
  const caller = callerOf(world, call.authorization);
  if (caller?.kind !== kind) throw nftRefusal(401);
  return caller;
}

/** @throws Refusal 404 for an unknown contract, 401 for one of another app */
export function getContract(world: World, input: Input): Contract {
  const contract = world.contracts.get(input.whole('contractId').toString());
  if (!contract) throw nftRefusal(404);
  if (!contract.own) throw nftRefusal(401);
  return contract;
}

export function absentToken(world: World) {
  const message = 'The token does not exist';
  const fieldError = { message, field: 'tokenId', validation: 'exists' };
  return nftRefusal(world.switches().absent_token, fieldError);
}

/** The form and path fields; path parameters take precedence. */
function formInput(call: Call, required: string[], optional: string[] = []): Input {
  const fields = new Map([...formOf(call), ...Object.entries(call.params)]);
  return checkedInput(fields, ['contractId', ...required], optional);
}

function mintFields(input: Input) {
  return {
    owner: input.text('toAddr'),
    uri: input.text('tokenURI'),
    metadata: input.text('metaData'),
    extra: input.text('extraData'),
  };
}

/** @throws Refusal 404, or 422 while the token is locked or being processed */
function getWritable(world: World, contract: Contract, input: Input): Token {
  const token = world.tokens.get(tokenKey(contract.contract_id, input.whole('tokenId')));
  if (!token) throw absentToken(world);
  if (isProcessing(token)) {
    throw unprocessable('tokenId', 'processing', 'The token is being processed');
  }
  if (!token.exists) throw unprocessable('tokenId', 'exists', 'The mint of the token failed');
  if (token.locked) throw unprocessable('tokenId', 'locked', 'The token is locked on a market');
  return token;
}

/** As `getWritable`, for a token of the logged-in user. @throws Refusal 422 */
function getOwned(world: World, contract: Contract, input: Input, caller: Caller): Token {
  const token = getWritable(world, contract, input);
  const own = caller.kind === 'user' && walletOf(world, caller.member).addr;
  if (!own || !sameAddress(token.owner, own)) {
    throw unprocessable('tokenId', 'owner', 'The token has another owner');
  }
  return token;
}
