/** The two NFT reads (section 4.1, rows 6 and 7): the paged list, and one token. */
import { addressKey } from '../../kernel/addresses.ts';
import { jsonText } from '../../kernel/json.ts';
import { isProcessing } from '../chain/chain.ts';
import { type Token, tokenKey } from '../state/records.ts';
import type { Switches } from '../state/switches.ts';
import type { ReadTable } from '../state/tables.ts';
import { timestampText } from '../state/timestamps.ts';
import type { World } from '../world.ts';
import { type Answer, type Call, successText } from './call.ts';
import { absentToken, authorize, getContract } from './nft.ts';
import { checkedInput, flagOf, type Input } from './nft-input.ts';

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
