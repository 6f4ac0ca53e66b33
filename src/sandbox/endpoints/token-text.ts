/**
 * The record of a token (section 2.1) as JSON text. A row is never changed in place, so its text is
 * made once and kept as long as the row: lists are mostly made of rows that did not change.
 */
import { jsonText } from '../../kernel/json.ts';
import type { Token } from '../state/records.ts';
import { wallText } from '../state/wall-time.ts';

const kept = new WeakMap<Token, { timeZone: string; text: string }>();

/** @param timeZone of its timestamps, an IANA name */
export function tokenText(token: Token, timeZone: string): string {
  const known = kept.get(token);
  if (known?.timeZone === timeZone) return known.text;
  const text = jsonText(recordOf(token, timeZone));
  kept.set(token, { timeZone, text });
  return text;
}

function recordOf(token: Token, timeZone: string) {
  return {
    contract_id: token.contract_id,
    token_id: token.token_id,
    token_owner: token.owner,
    token_uri: token.uri,
    token_metadata: token.metadata,
    token_extradata: token.extra,
    token_creator: token.creator,
    token_created_at: wallText(token.created_at, timeZone),
    token_owned_at: wallText(token.owned_at, timeZone),
    token_is_locked: token.locked ? 1 : 0,
    status: token.status,
    last_tx_hash: token.last_tx_hash,
  };
}
