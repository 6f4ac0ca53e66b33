/**
 * SQL of intents: one call of `tallyhook.record_intents` looks at them and writes those that may
 * go, under locks on what they name, in one round trip and one commit.
 */
import { asJson, type Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { Effect } from '../effects.ts';
import type { Kind, WriteFields } from '../operation.ts';

/** A write as it is asked for, complete. */
export interface Intent {
  id: string;
  kind: Kind;
  owner: string;
  keyId: string;
  idempotencyKey: string | null;
  fingerprint: string;
  reference: string | null;
  method: string;
  path: string;
  contentType: string | null;
  body: Uint8Array;
  fields: WriteFields;
  preImage: Json;
  /** The caller chose to wait: until when it may still be sent. */
  expiresAt: Instant | null;
  /** The most that its key may move in any 24 hours; null: no limit. */
  dayLimit: bigint | null;
}

/** One try to record an intent. */
export interface Attempt {
  intent: Intent;
  /** `queued` waits for the service from the start. */
  state: 'sending' | 'queued';
  sendDeadlineAt: Instant;
  ambiguous: boolean;
  effects: readonly Effect[];
  /** Accounts of the users' wallets among them (lower case): where conflicts are looked for. */
  users: readonly string[];
  /** Every wallet that it changes (lower case): a hold on one stops it. */
  wallets: readonly string[];
  /** See Marks. */
  conflictKey: string | null;
  /** Open writes that were taken into account; null: it is recorded whatever is open. */
  known: readonly string[] | null;
  /** What its key moves with it, and with those before it in the same call. */
  dayMoved: bigint;
  /** What is locked meanwhile: wallets, tokens, keys. */
  names: readonly string[];
}

/** What became of an attempt. */
export interface RecordRow {
  n: number;
  result:
    | 'sending'
    | 'queued'
    | 'key_in_use'
    | 'frozen'
    | 'day_limit'
    | 'queue_full'
    | 'wallet_held'
    | 'others_open'
    | 'lease_lost';
  /** Of `wallet_held`: when the hold ends. */
  until: Instant | null;
  /** Of `others_open`: the open writes; of `wallet_held`: the wallets. */
  open: Json;
}

/** Records the attempts that conflict with nothing; returns a row for each, by its place. */
export async function recordIntents(
  db: Queryable,
  input: {
    attempts: readonly Attempt[];
    at: Instant;
    daemonId: string;
    epoch: bigint;
    queueMax: number;
  },
): Promise<RecordRow[]> {
  const { attempts, at, daemonId, epoch } = input;
  const names = [...new Set(attempts.flatMap((attempt) => attempt.names))];
  const mayQueue = attempts.some(({ intent }) => intent.expiresAt !== null);
  return db.sql<RecordRow[]>`
    select n, result, until, open from tallyhook.record_intents(
      ${asJson(attempts.map(rowOf))}::jsonb, ${names}::text[], ${isoText(at)}::timestamptz,
      ${daemonId}, ${epoch.toString()}::bigint, ${mayQueue ? input.queueMax : null}::int)`;
}

function rowOf({ intent, names: _, ...attempt }: Attempt, n: number) {
  const { fields, body, expiresAt, ...plain } = intent;
  return {
    n,
    ...plain,
    ...fields,
    ...attempt,
    body: Buffer.from(body).toString('base64'),
    expiresAt: expiresAt === null ? null : isoText(expiresAt),
    sendDeadlineAt: isoText(attempt.sendDeadlineAt),
  };
}
