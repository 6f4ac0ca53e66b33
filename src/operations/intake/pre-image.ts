/**
 * The pre-image of a token write: what was last observed of its wallets, and when. It is stored
 * with every write for good, so each wallet is four values instead of a poll with its names.
 */
import { addressKey } from '../../kernel/addresses.ts';
import { isObject, type Json, membersOf } from '../../kernel/json.ts';

/** What is stored; a pre-image of another form is stored as it is. */
export function storedImage(preImage: Json): Json {
  const polls = pollsIn(preImage);
  return polls ? { wallets: polls.map((poll) => valuesOf(poll) ?? poll) } : preImage;
}

/** The pre-image that was stored; also one that is not short. */
export function imageOf(stored: Json): Json {
  const polls = pollsIn(stored);
  return polls ? { wallets: polls.map(pollOf) } : stored;
}

function pollsIn(image: Json): Json[] | undefined {
  const { wallets, ...other } = membersOf(image);
  return Array.isArray(wallets) && Object.keys(other).length === 0 ? wallets : undefined;
}

function valuesOf(poll: Json): Json[] | undefined {
  if (!hasMembers(poll, 'at', 'name', 'seen')) return undefined;
  const { at = null, name, seen = null } = poll;
  if (!hasMembers(seen, 'addr', 'balance', 'status')) return undefined;
  const { addr, status = null, balance = null } = seen;
  if (typeof addr !== 'string' || name !== nameOf(addr)) return undefined;
  return [at, addr, status, balance];
}

function pollOf(stored: Json): Json {
  if (!Array.isArray(stored)) return stored;
  const [at = null, addr = null, status = null, balance = null] = stored;
  return { at, name: nameOf(String(addr)), seen: { addr, status, balance } };
}

const nameOf = (addr: string) => `wallet:${addressKey(addr)}`;

function hasMembers(value: Json, ...names: string[]): value is Record<string, Json> {
  if (!isObject(value)) return false;
  return Object.keys(value).length === names.length && names.every((name) => name in value);
}
