/**
 * SQL of intents: one call of `tallyhook.record_intents` looks at them and writes those that may
 * go, under locks on what they name, in one round trip and one commit.
 */
import { asJson, type Queryable } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
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
  /** The users' wallets that it changes, and all wallets that a hold on may stop it. */
  users: readonly string[];
  wallets: readonly string[];
  /** Open writes that were taken into account; null: it goes whatever is open. */
  sees: readonly string[] | null;
  /** Whether it acts on a token, or on equal mints, of which one goes at a time. */
  target: boolean;
  /** What its key moves with it, and with those before it in the same call. */
  dayBefore: bigint;
  /** What is locked meanwhile: wallets, tokens, keys. */
  names: readonly string[];
}

/** What a limited key moved of late. */
export interface DaySum {
  /** Writes recorded after `from`, until `upTo`, are in the sum; the others are not. */
  from: Instant;
  upTo: Instant;
  moved: bigint;
}

export interface VerdictRow {
  n: number;
  verdict:
    | 'sending'
    | 'queued'
    | 'held'
    | 'frozen'
    | 'limit'
    | 'full'
    | 'hold'
    | 'seen'
    | 'lease_lost';
  /** Of a `hold`: when it ends by itself. */
  until: Instant | null;
  /** What is open, when it is more than was taken into account; of a `hold`: the held wallets. */
  seen: Json;
}

/** Looks at the attempts and writes those that may go. Answers a verdict for each, by its place. */
export async function recordIntents(
  db: Queryable,
  given: {
    attempts: readonly Attempt[];
    /** Of each limited key among them. */
    daySums: ReadonlyMap<string, DaySum>;
    at: Instant;
    daemonId: string;
    epoch: bigint;
    queueMax: number;
  },
): Promise<VerdictRow[]> {
  const { attempts, daySums, at, daemonId, epoch } = given;
  const rows = attempts.map((attempt, n) => rowOf(attempt, n, daySums));
  const names = [...new Set(attempts.flatMap((attempt) => attempt.names))];
  const mayQueue = attempts.some(({ intent }) => intent.expiresAt !== null);
  return db.sql<VerdictRow[]>`
    select n, verdict, until, seen from tallyhook.record_intents(
      ${asJson(rows)}::jsonb, ${names}::text[], ${isoText(at)}::timestamptz,
      ${daemonId}, ${epoch.toString()}::bigint, ${mayQueue ? given.queueMax : null}::int)`;
}

function rowOf(
  { intent, names: _, ...attempt }: Attempt,
  n: number,
  daySums: ReadonlyMap<string, DaySum>,
) {
  const { fields, body, expiresAt, ...plain } = intent;
  const sum = plain.dayLimit === null ? undefined : daySums.get(plain.keyId);
  return {
    n,
    ...plain,
    ...fields,
    ...attempt,
    body: Buffer.from(body).toString('base64'),
    expiresAt: expiresAt === null ? null : isoText(expiresAt),
    sendDeadlineAt: isoText(attempt.sendDeadlineAt),
    ...(sum ? { dayFrom: isoText(sum.from), dayUpTo: isoText(sum.upTo), dayMoved: sum.moved } : {}),
  };
}

/** What these keys moved between two instants, fees included, as far as it was not refused. */
export async function sumsOfKeys(
  db: Queryable,
  keyIds: readonly string[],
  after: Instant,
  upTo: Instant,
): Promise<Map<string, bigint>> {
  const rows = await db.sql<{ keyId: string; moved: bigint }[]>`
    select o.key_id, sum(greatest(o.amount, 0) + greatest(o.fee_amount, 0)) as moved
    from tallyhook.operations o
    where o.key_id = any(${keyIds as string[]}::text[]) and o.amount is not null
      and o.recorded_at > ${isoText(after)} and o.recorded_at <= ${isoText(upTo)}
      and o.outcome <> 'not_executed'
    group by o.key_id`;
  return new Map(rows.map(({ keyId, moved }) => [keyId, moved]));
}
