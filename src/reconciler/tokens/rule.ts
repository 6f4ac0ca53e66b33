/**
 * What an observation of a token means: which fields changed, and which operations caused it. Pure.
 * `last_tx_hash` ties a token to an operation; an unknown hash is a change made elsewhere. Token
 * status: 0 pending, 1 complete, 2 progress, 3 fail (interface, 2.1).
 */

import { sameAddress, sameTxHash } from '../../kernel/addresses.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import { sameJsonText } from '../../kernel/json.ts';
import type { Kind, Operation } from '../../operations/operations.ts';
import type { EventType } from '../../resources/delivery/events.ts';
import type { token } from '../../resources/ledger/token.ts';
import type { Row } from '../../resources/resource.ts';

export const COMPLETE = 1;
export const FAILED = 3;

export type TokenState = Pick<
  Row<typeof token>,
  ('owner' | 'creator' | 'uri' | 'metadata' | 'extraData') | ('status' | 'locked' | 'lastTxHash')
>;

/** The token in the record of an observation; missing texts are empty. */
export function tokenStateOf(
  record: Record<string, unknown>,
): TokenState & { createdText: string; ownedText: string } {
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  return {
    owner: text(record.owner),
    creator: text(record.creator),
    uri: text(record.uri),
    metadata: text(record.metaData),
    extraData: text(record.extraData),
    status: Number(must(wholeOf(record.status), 'status of an observation')),
    locked: record.locked ? 1 : 0,
    lastTxHash: text(record.lastTxHash),
    createdText: text(record.createdAtText),
    ownedText: text(record.ownedAtText),
  };
}

export type TokenEvent = Extract<EventType, `token.${string}`>;

/**
 * The events of a change.
 * @param minted whether a token without an accepted state was just minted
 */
export function changesOf(
  before: TokenState | undefined,
  now: TokenState,
  minted: boolean,
): TokenEvent[] {
  if (!before) return minted ? ['token.minted'] : [];
  const events: TokenEvent[] = [];
  if (before.status !== now.status) events.push('token.status_changed');
  if (!sameAddress(before.owner, now.owner)) events.push('token.transferred');
  if (before.locked !== now.locked) events.push(now.locked ? 'token.locked' : 'token.unlocked');
  if (before.extraData !== now.extraData) events.push('token.extra_data_changed');
  return events;
}

/** True while the chain is processing the token. */
export function isMoving(state: TokenState): boolean {
  return state.status !== COMPLETE && state.status !== FAILED;
}

/** What is known about an observation besides the token itself. */
export interface ObservationContext {
  startedAt: Instant;
  readLagMs: number;
  /** False when another token was minted under the same number. */
  sameToken: boolean;
  /** The hash of the token at the observation before; null if there was none. */
  lastHash: string | null;
}

export function sentAtOf({ sentAt, recordedAt }: Operation): Instant {
  return sentAt ?? recordedAt;
}

export function isMint({ kind }: Operation): boolean {
  return kind === 'mint' || kind === 'mint_sequential';
}

/** When an executed operation took effect, as far as known. */
export function tookEffectAt({ effectiveAt, answeredAt, recordedAt }: Operation): Instant {
  return effectiveAt ?? answeredAt ?? recordedAt;
}

/** Whether an observation must include an executed operation. */
export function isRequired(
  operation: Operation,
  { startedAt, readLagMs }: Pick<ObservationContext, 'startedAt' | 'readLagMs'>,
): boolean {
  return startedAt - readLagMs > tookEffectAt(operation);
}

/** Whether a write may still change the holder, or an observation may lack its change. */
export function isAtWork(
  operation: Operation,
  observed: Pick<ObservationContext, 'startedAt' | 'readLagMs'>,
): boolean {
  const { kind, state, outcome, settledAt } = operation;
  if (kind === 'set_extra_data' || state === 'queued') return false;
  if (outcome !== 'executed') return outcome === 'open';
  return settledAt === null && !isRequired(operation, observed);
}

/** Whether a token shows an executed write, or a confirmed absence a burn. */
export function shows(token: TokenState | 'absent', operation: Operation): boolean {
  return token === 'absent' ? operation.kind === 'burn' : hasEffect(operation, token);
}

export function hasEffect(operation: Operation, token: TokenState): boolean {
  switch (operation.kind) {
    case 'mint':
    case 'mint_sequential':
      return true;
    case 'transfer_from':
      return sameAddress(operation.toAddr, token.owner);
    case 'set_extra_data':
      return sameJsonText(operation.extraData, token.extraData);
    default:
      return false;
  }
}

/** The kinds of operations that can cause a change; none locks a token. */
const CAUSES: { [type in TokenEvent]?: readonly Kind[] } = {
  'token.minted': ['mint', 'mint_sequential'],
  'token.transferred': ['transfer_from'],
  'token.extra_data_changed': ['set_extra_data'],
  'token.burned': ['burn'],
};

/**
 * The operation that a change of a token proves: the token has the effect that such an operation
 * has, and its hash if one of several must be told apart; the status is that of the hash.
 * @param since when the token was observed before; what had settled by then caused nothing since
 * @returns 'unknown' when several cannot be told apart, undefined when none of ours did it
 */
export function causeOf(
  type: TokenEvent,
  token: TokenState,
  operations: readonly Operation[],
  since: Instant | undefined,
): string | undefined {
  const hashed = operations.find(({ txHash }) => sameTxHash(txHash, token.lastTxHash));
  if (type === 'token.status_changed') return hashed?.id;
  const able = operations.filter(
    (operation) =>
      CAUSES[type]?.includes(operation.kind) &&
      operation.outcome !== 'not_executed' &&
      (operation.settledAt === null || since === undefined || operation.settledAt >= since) &&
      (operation.kind === 'burn' || hasEffect(operation, token)),
  );
  if (hashed && able.includes(hashed)) return hashed.id;
  return able.length > 1 ? 'unknown' : able[0]?.id;
}
