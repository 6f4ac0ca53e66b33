/**
 * Which tokens a list finds, in which order. A sweep asks for the same list page by page, so what
 * was found is kept until any token changes.
 */
import { addressKey } from '../../kernel/addresses.ts';
import { isProcessing } from '../chain/chain.ts';
import type { Switches } from '../faults/switches.ts';
import type { Token } from '../state/records.ts';
import type { ReadTable } from '../state/tables.ts';
import type { World } from '../world.ts';

export interface TokenFilter {
  contractId: bigint;
  owner: string | undefined;
  creator: string | undefined;
  locked: boolean | undefined;
  /** True leaves out what the chain is working on. */
  valid: boolean | undefined;
}

/** The most different lists that are kept at once. */
const LISTS_KEPT = 100;

interface Found {
  version: number;
  lists: Map<string, readonly Token[]>;
}
const kept = new WeakMap<ReadTable<Token>, Found>();

/** The tokens that the filter lets pass, in the order of the switch. */
export function tokenList(
  world: World,
  tokens: ReadTable<Token>,
  filter: TokenFilter,
): readonly Token[] {
  const order = world.switches().list_order;
  if (tokens !== world.tokens) return found(tokens, filter, order);
  const version = world.tokens.version();
  let memory = kept.get(tokens);
  if (memory?.version !== version || memory.lists.size >= LISTS_KEPT) {
    memory = { version, lists: new Map() };
    kept.set(tokens, memory);
  }
  const { contractId, owner, creator, locked, valid } = filter;
  const key = [order, contractId, owner, creator, locked, valid].join('\n');
  const list = memory.lists.get(key) ?? found(tokens, filter, order);
  memory.lists.set(key, list);
  return list;
}

function found(tokens: ReadTable<Token>, filter: TokenFilter, order: Switches['list_order']) {
  const list: Token[] = [];
  const matches = matcherOf(filter);
  for (const token of tokens.values()) if (matches(token)) list.push(token);
  return list.sort(ORDERS[order]);
}

function matcherOf(filter: TokenFilter): (token: Token) => boolean {
  const { contractId, locked, valid } = filter;
  const owner = filter.owner === undefined ? undefined : addressKey(filter.owner);
  const creator = filter.creator === undefined ? undefined : addressKey(filter.creator);
  return (token) =>
    token.contract_id === contractId &&
    (owner === undefined || addressKey(token.owner) === owner) &&
    (creator === undefined || addressKey(token.creator) === creator) &&
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
