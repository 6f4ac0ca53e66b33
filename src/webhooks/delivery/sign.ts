/**
 * The signature of Standard Webhooks over `id.timestamp.body`, for every key that signs now. Pure.
 */
import { createHmac, sign as signEd25519 } from 'node:crypto';
import { assert } from '../../kernel/assert.ts';
import type { ReadyKey } from '../endpoints/keys.ts';

/** What is signed: the event's id, the unix seconds of this attempt, and exactly the bytes sent. */
export interface Message {
  id: string;
  timestamp: number;
  body: Uint8Array;
}

/** The three headers of Standard Webhooks, in the order of the keys. */
export function signedHeaders(message: Message, keys: readonly ReadyKey[]) {
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestamp),
    'webhook-signature': signatures(message, keys).join(' '),
  };
}

/** One `v1,…` or `v1a,…` per key. */
export function signatures(message: Message, keys: readonly ReadyKey[]): string[] {
  const { id, timestamp, body } = message;
  // A dot in the id or the time could move bytes between the parts of what is signed.
  assert(
    !id.includes('.') && Number.isInteger(timestamp),
    'webhook id and timestamp without a dot',
  );
  const head = Buffer.from(`${id}.${timestamp}.`);
  const content = Buffer.concat([head, body]);
  return keys.map((ready) =>
    ready.scheme === 'v1'
      ? `v1,${createHmac('sha256', ready.key).update(content).digest('base64')}`
      : `v1a,${signEd25519(null, content, ready.key).toString('base64')}`,
  );
}
