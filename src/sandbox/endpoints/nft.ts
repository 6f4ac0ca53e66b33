/**
 * The NFT endpoints (section 4.1): five writes, the paged list and the read of one token. Checks
 * run in this order: caller (401), input (400), contract and token exist (404), state allows the
 * write (422).
 */
import { addressKey, sameAddress } from '../../kernel/addresses.ts';
import { jsonText } from '../../kernel/json.ts';
import { isProcessing, startMint, startWrite } from '../chain/chain.ts';
import { type Caller, callerOf } from '../state/grants.ts';
import { type Contract, type Token, tokenKey } from '../state/records.ts';
import type { Switches } from '../state/switches.ts';
import type { ReadTable } from '../state/tables.ts';
import { walletOf } from '../state/wallets.ts';
import type { World } from '../world.ts';
import { type Answer, type Call, formOf, success, successText, timestampText } from './call.ts';
import { nftRefusal, unprocessable } from './errors.ts';
import { checkedInput, flagOf, type Input } from './nft-input.ts';

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
function authorize(world: World, call: Call, kind: Caller['kind']): Caller {
  const caller = callerOf(world, call.authorization);
  if (caller?.kind !== kind) throw nftRefusal(401);
  return caller;
}

/** @throws Refusal 404 for an unknown contract, 401 for one of another app */
function getContract(world: World, input: Input): Contract {
  const contract = world.contracts.get(input.whole('contractId').toString());
  if (!contract) throw nftRefusal(404);
  if (!contract.own) throw nftRefusal(401);
  return contract;
}

function absentToken(world: World) {
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

const FILTERS = ['ownerAddr', 'creatorAddr', 'isLocked', 'valid', 'page', 'perPage'];

/** GET …/tokens */
export function listTokens(world: World, call: Call): Answer {
  authorize(world, call, 'client');
  const fields = new Map([...call.query, ...Object.entries(call.params)]);
  const input = checkedInput(fields, ['contractId'], FILTERS);
  const { contract_id } = getContract(world, input);
  const { per_page_default, per_page_max, time_zone } = world.switches();
  const rows = filtered(world, visibleTokens(world, call), contract_id, input);

  const requested = input.find('perPage') ? input.whole('perPage') : BigInt(per_page_default);
  const perPage = Number(requested < per_page_max ? requested : BigInt(per_page_max));
  const page = input.find('page') ? input.whole('page') : 1n;
  const lastPage = Math.max(1, Math.ceil(rows.length / perPage));
  const start = page > lastPage ? rows.length : (Number(page) - 1) * perPage + call.shift;
  const data = rows.slice(start, start + perPage).map((token) => recordText(token, time_zone));
  return successText(
    `{"total":${rows.length},"perPage":${perPage},"page":${page},"lastPage":${lastPage},` +
      `"data":[${data.join(',')}]}`,
  );
}

/** GET …/tokens/{tokenId} */
export function readToken(world: World, call: Call): Answer {
  authorize(world, call, 'client');
  const input = checkedInput(new Map(Object.entries(call.params)), ['contractId', 'tokenId']);
  const { contract_id } = getContract(world, input);
  const token = visibleTokens(world, call).get(tokenKey(contract_id, input.whole('tokenId')));
  if (!token) throw absentToken(world);
  return successText(recordText(token, world.switches().time_zone));
}

/** The tokens as reads see them, behind the read lag. */
function visibleTokens(world: World, call: Call): ReadTable<Token> {
  const lag = Math.max(call.ageMs, world.switches().read_lag_ms);
  return world.asOf(world.now() - lag).tokens;
}

/** The most lists that are cached at once. */
const LISTS_KEPT = 100;

const cache = new WeakMap<
  ReadTable<Token>,
  { version: number; lists: Map<string, readonly Token[]> }
>();

/**
 * The tokens that match the filters of the query, in the order of the switch. Cached until a token
 * changes, because a scan reads the same list page by page.
 */
function filtered(
  world: World,
  tokens: ReadTable<Token>,
  contractId: bigint,
  input: Input,
): readonly Token[] {
  const order = world.switches().list_order;
  const find = () => [...tokens.values()].filter(filterOf(contractId, input)).sort(ORDERS[order]);
  if (tokens !== world.tokens) return find();
  const version = world.tokens.version();
  let cached = cache.get(tokens);
  if (cached?.version !== version || cached.lists.size >= LISTS_KEPT) {
    cached = { version, lists: new Map() };
    cache.set(tokens, cached);
  }
  const filters = ['ownerAddr', 'creatorAddr', 'isLocked', 'valid'].map((name) => input.text(name));
  const key = [order, contractId, ...filters].join('\n');
  const list = cached.lists.get(key) ?? find();
  cached.lists.set(key, list);
  return list;
}

function filterOf(contractId: bigint, input: Input): (token: Token) => boolean {
  const address = (name: string) => {
    const text = input.find(name);
    return text === undefined ? undefined : addressKey(text);
  };
  const [owner, creator] = [address('ownerAddr'), address('creatorAddr')];
  const locked = flagOf(input.text('isLocked'));
  const valid = flagOf(input.text('valid'));
  return (token) =>
    token.contract_id === contractId &&
    (owner === undefined || addressKey(token.owner) === owner) &&
    (creator === undefined || addressKey(token.creator) === creator) &&
    (locked === undefined || token.locked === locked) &&
    (valid !== true || !isProcessing(token));
}

type Order = (a: Token, b: Token) => number;
const byId: Order = (a, b) => (a.token_id < b.token_id ? -1 : a.token_id > b.token_id ? 1 : 0);

/** Ties are broken by the id, so that every order is total. */
const ORDERS: Record<Switches['list_order'], Order> = {
  token_id: byId,
  token_id_desc: (a, b) => byId(b, a),
  created: (a, b) => a.created_at - b.created_at || byId(a, b),
  created_desc: (a, b) => b.created_at - a.created_at || byId(b, a),
  owned_desc: (a, b) => b.owned_at - a.owned_at || byId(b, a),
};

/** Record texts by row, because most rows of a list did not change since the last read. */
const texts = new WeakMap<Token, { timeZone: string; text: string }>();

/** The token record of section 2.1 as JSON text. */
function recordText(token: Token, timeZone: string): string {
  const known = texts.get(token);
  if (known?.timeZone === timeZone) return known.text;
  const text = jsonText({
    contract_id: token.contract_id,
    token_id: token.token_id,
    token_owner: token.owner,
    token_uri: token.uri,
    token_metadata: token.metadata,
    token_extradata: token.extra,
    token_creator: token.creator,
    token_created_at: timestampText(token.created_at, timeZone),
    token_owned_at: timestampText(token.owned_at, timeZone),
    token_is_locked: token.locked ? 1 : 0,
    status: token.status,
    last_tx_hash: token.last_tx_hash,
  });
  texts.set(token, { timeZone, text });
  return text;
}
