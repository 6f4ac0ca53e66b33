/**
 * The two NFT reads (section 4.1, rows 6 and 7): filters, order and pages over the token records.
 */
import { type Answer, type Call, success } from './call.ts';
import { isProcessing } from './chain.ts';
import { checkedInput, flagOf, type Input } from './fields.ts';
import { absentToken, authorize, getContract, sameAddress } from './nft.ts';
import { type Token, tokenKey } from './records.ts';
import type { Switches } from './switches.ts';
import type { ReadTable } from './tables.ts';
import { wallText } from './wall-time.ts';
import type { World } from './world.ts';

const FILTERS = ['ownerAddr', 'creatorAddr', 'isLocked', 'valid', 'page', 'perPage'];

/** GET …/tokens */
export function listTokens(world: World, call: Call): Answer {
  authorize(world, call, 'client');
  const given = new Map([...call.query, ...Object.entries(call.params)]);
  const input = checkedInput(given, ['contractId'], FILTERS);
  const contract = getContract(world, input);
  const switches = world.switches();
  const rows: Token[] = [];
  const matches = filterOf(input);
  for (const token of visible(world, call).values()) {
    if (token.contract_id === contract.contract_id && matches(token)) rows.push(token);
  }
  rows.sort(ORDERS[switches.list_order]);

  const asked = input.find('perPage') ? input.whole('perPage') : BigInt(switches.per_page_default);
  const perPage = Number(asked < switches.per_page_max ? asked : BigInt(switches.per_page_max));
  const page = input.find('page') ? input.whole('page') : 1n;
  const lastPage = Math.max(1, Math.ceil(rows.length / perPage));
  const start = page > lastPage ? rows.length : (Number(page) - 1) * perPage + call.shift;
  const data = rows.slice(start, start + perPage).map((token) => recordOf(token, switches));
  return success({ total: rows.length, perPage, page, lastPage, data });
}

/** GET …/tokens/{tokenId} */
export function readToken(world: World, call: Call): Answer {
  authorize(world, call, 'client');
  const input = checkedInput(new Map(Object.entries(call.params)), ['contractId', 'tokenId']);
  const contract = getContract(world, input);
  const token = visible(world, call).get(tokenKey(contract.contract_id, input.whole('tokenId')));
  if (!token) throw absentToken(world);
  return success(recordOf(token, world.switches()));
}

/** The tokens as a read sees them: now, or some time ago. */
function visible(world: World, call: Call): ReadTable<Token> {
  const lag = Math.max(call.ageMs, world.switches().read_lag_ms);
  return world.past(world.now() - lag).tokens;
}

function filterOf(input: Input): (token: Token) => boolean {
  const owner = input.find('ownerAddr');
  const creator = input.find('creatorAddr');
  const locked = flagOf(input.text('isLocked'));
  const valid = flagOf(input.text('valid'));
  return (token) =>
    (owner === undefined || sameAddress(token.owner, owner)) &&
    (creator === undefined || sameAddress(token.creator, creator)) &&
    (locked === undefined || token.locked === locked) &&
    (valid !== true || !isProcessing(token));
}

type Order = (a: Token, b: Token) => number;
const byId: Order = (a, b) => (a.token_id < b.token_id ? -1 : a.token_id > b.token_id ? 1 : 0);

/** Equal instants fall back on the id, so that every order is total. */
const ORDERS: Record<Switches['list_order'], Order> = {
  token_id: byId,
  token_id_desc: (a, b) => byId(b, a),
  created: (a, b) => a.created_at - b.created_at || byId(a, b),
  created_desc: (a, b) => b.created_at - a.created_at || byId(b, a),
  owned_desc: (a, b) => b.owned_at - a.owned_at || byId(b, a),
};

/** The record of section 2.1. */
function recordOf(token: Token, { time_zone }: Switches) {
  return {
    contract_id: token.contract_id,
    token_id: token.token_id,
    token_owner: token.owner,
    token_uri: token.uri,
    token_metadata: token.metadata,
    token_extradata: token.extra,
    token_creator: token.creator,
    token_created_at: wallText(token.created_at, time_zone),
    token_owned_at: wallText(token.owned_at, time_zone),
    token_is_locked: token.locked ? 1 : 0,
    status: token.status,
    last_tx_hash: token.last_tx_hash,
  };
}
