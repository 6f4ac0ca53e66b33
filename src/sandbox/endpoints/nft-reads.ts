/**
 * The two NFT reads (section 4.1, rows 6 and 7): pages over the token records, and one of them.
 */

import { type Token, tokenKey } from '../state/records.ts';
import type { ReadTable } from '../state/tables.ts';
import type { World } from '../world.ts';
import { type Answer, type Call, successText } from './call.ts';
import { checkedInput, flagOf } from './fields.ts';
import { absentToken, authorize, getContract } from './nft.ts';
import { tokenList } from './token-lists.ts';
import { tokenText } from './token-text.ts';

const FILTERS = ['ownerAddr', 'creatorAddr', 'isLocked', 'valid', 'page', 'perPage'];

/** GET …/tokens */
export function listTokens(world: World, call: Call): Answer {
  authorize(world, call, 'client');
  const given = new Map([...call.query, ...Object.entries(call.params)]);
  const input = checkedInput(given, ['contractId'], FILTERS);
  const { contract_id } = getContract(world, input);
  const { per_page_default, per_page_max, time_zone } = world.switches();
  const rows = tokenList(world, visible(world, call), {
    contractId: contract_id,
    owner: input.find('ownerAddr'),
    creator: input.find('creatorAddr'),
    locked: flagOf(input.text('isLocked')),
    valid: flagOf(input.text('valid')),
  });

  const asked = input.find('perPage') ? input.whole('perPage') : BigInt(per_page_default);
  const perPage = Number(asked < per_page_max ? asked : BigInt(per_page_max));
  const page = input.find('page') ? input.whole('page') : 1n;
  const lastPage = Math.max(1, Math.ceil(rows.length / perPage));
  const start = page > lastPage ? rows.length : (Number(page) - 1) * perPage + call.shift;
  const data = rows.slice(start, start + perPage).map((token) => tokenText(token, time_zone));
  return successText(
    `{"total":${rows.length},"perPage":${perPage},"page":${page},"lastPage":${lastPage},` +
      `"data":[${data.join(',')}]}`,
  );
}

/** GET …/tokens/{tokenId} */
export function readToken(world: World, call: Call): Answer {
  authorize(world, call, 'client');
  const input = checkedInput(new Map(Object.entries(call.params)), ['contractId', 'tokenId']);
  const contract = getContract(world, input);
  const token = visible(world, call).get(tokenKey(contract.contract_id, input.whole('tokenId')));
  if (!token) throw absentToken(world);
  return successText(tokenText(token, world.switches().time_zone));
}

/** The tokens as a read sees them: now, or some time ago. */
function visible(world: World, call: Call): ReadTable<Token> {
  const lag = Math.max(call.ageMs, world.switches().read_lag_ms);
  return world.past(world.now() - lag).tokens;
}
