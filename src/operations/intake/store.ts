/**
 * SQL of intents: one call of `tallyhook.record_intents` locks, checks and records them in one
 * round trip.
 */
import { asJson, type Queryable } from '../../db/connect.ts';
import type { Daemon } from '../../db/leases.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { RecordedEffects } from '../effects/effects.ts';
import type { Kind, WriteFields } from '../operation.ts';
import { storedImage } from './pre-image.ts';

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
  /** When a caller that chose to wait stops waiting; else null. */
  expiresAt: Instant | null;
  /** The most that its key may move in any 24 hours; null: no limit. */
  dayLimit: bigint | null;
}

export interface Attempt extends RecordedEffects {
  intent: Intent;
  /** `queued` records it into the request queue. */
  state: 'sending' | 'queued';
  sendDeadlineAt: Instant;
  ambiguous: boolean;
  /** Accounts of users' wallets (lower case). */
  users: readonly string[];
  /**
   * Those of them that tell it apart from the known writes and the others of this call; one that
   * has no further open writes is enough.
   */
  apart: readonly string[];
  /** See `ConflictScope`. */
  conflictKey: string | null;
  /** Open writes known not to conflict; null skips the check. */
  known: readonly string[] | null;
  /** The amount and fee of this attempt and of earlier ones of the same key in this call. */
  dayMoved: bigint;
  /** Wallets, tokens and keys to lock. */
  names: readonly string[];
}

export interface RecordRow {
  n: number;
  result:
    | 'sending'
    | 'queued'
    | 'key_in_use'
    | 'frozen'
    | 'key_used_since_backup'
    | 'day_limit'
    | 'queue_full'
    | 'throttled'
    | 'others_open'
    | 'unproved';
  /** The open writes of `others_open`, or the deadline of `throttled`. */
  open: Json;
}

/** Records the attempts that pass the checks; returns a row for each, by its index. */
export async function recordIntents(
  db: Queryable,
  input: {
    attempts: readonly Attempt[];
    at: Instant;
    daemon: Daemon;
    queueMax: number;
  },
): Promise<RecordRow[]> {
  const { attempts, at, daemon } = input;
  const { id, epoch, lastSend } = daemon;
  const names = [...new Set(attempts.flatMap((attempt) => attempt.names))];
  const mayQueue = attempts.some(({ intent }) => intent.expiresAt !== null);
  return db.sql<RecordRow[]>`
    select n, result, open from tallyhook.record_intents(
      ${asJson(attempts.map(rowOf))}::jsonb, ${names}::text[], ${isoText(at)}::timestamptz,
      ${id}, ${epoch.toString()}::bigint, ${lastSend?.operationId ?? null}::text,
      ${lastSend?.n ?? null}::int, ${mayQueue ? input.queueMax : null}::int)`;
}

function rowOf({ intent, names: _, ...attempt }: Attempt, n: number) {
  const { fields, body, preImage, expiresAt, ...plain } = intent;
  return {
    n,
    ...plain,
    ...fields,
    ...attempt,
    preImage: storedImage(preImage),
    body: Buffer.from(body).toString('base64'),
    expiresAt: expiresAt === null ? null : isoText(expiresAt),
    sendDeadlineAt: isoText(attempt.sendDeadlineAt),
  };
}
