/** SQL of the journal: the one statement that changes a state, and what the ledger marks. */
import { asJson, type Tx } from '../db/connect.ts';
import { assert } from '../kernel/assert.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import { type Operation, type State, statesBefore } from './operation.ts';
import { operationColumns } from './row-store.ts';

/**
 * A change of state with what it brings; members that are absent leave their columns as they are.
 */
export interface Move {
  id: string;
  to: State;
  at: Instant;
  cause: string;
  daemonId?: string | null;
  /** True for what people decided: only they may take back what is settled. */
  decided?: boolean;
  /** Why the ledger must not post it. */
  quarantineReason?: string;
  /** Back to the queue instead, if its caller still waits: nothing of it was applied. */
  requeue?: boolean;
  evidence?: Json;
  keyHeld?: boolean;
  txAppNo?: bigint | null;
  txLogNo?: bigint | null;
  txHash?: string | null;
  tokenId?: bigint | null;
  errorClass?: string | null;
  errorStatus?: number | null;
  errorCode?: string | null;
  errorMessage?: string | null;
  answerStatus?: number | null;
  answerHeaders?: Json;
  answerBody?: Uint8Array | null;
  answeredAt?: Instant;
  effectiveAt?: Instant;
  effectiveBasis?: string;
  settledAt?: Instant;
}

/**
 * The statement that changes states: each row moves only from a state that may precede its new one,
 * and its transition is written in the same statement. Answers the operations that moved. No
 * operation may be named twice.
 */
export async function moveStates(tx: Tx, moves: readonly Move[]): Promise<Operation[]> {
  assert(new Set(moves.map(({ id }) => id)).size === moves.length, 'each operation moves once');
  const numbers = moves.map(({ txAppNo, txLogNo }) => `${txAppNo}/${txLogNo}`);
  const counts = new Map<string, number>();
  for (const number of numbers) counts.set(number, (counts.get(number) ?? 0) + 1);
  const rows = moves.map((move, i) => ({
    ...move,
    repeated: (counts.get(numbers[i] ?? '') ?? 0) > 1,
    at: isoText(move.at),
    before: statesBefore(move.to),
    answerBody: move.answerBody ? Buffer.from(move.answerBody).toString('base64') : null,
    answeredAt: textOf(move.answeredAt),
    effectiveAt: textOf(move.effectiveAt),
    settledAt: textOf(move.settledAt),
  }));
  return tx.sql<Operation[]>`
    with x as (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, "to" text,
        at timestamptz, cause text, "daemonId" text, evidence jsonb, "keyHeld" boolean,
        decided boolean, requeue boolean, repeated boolean, "quarantineReason" text,
        "txAppNo" numeric, "txLogNo" numeric, "txHash" text, "tokenId" numeric,
        "errorClass" text, "errorStatus" int, "errorCode" text, "errorMessage" text,
        "answerStatus" int, "answerHeaders" jsonb, "answerBody" text,
        "answeredAt" timestamptz, "effectiveAt" timestamptz,
        "effectiveBasis" text, "settledAt" timestamptz, before text[])
    ), locked as (
      select o.id, o.state, case when x.requeue and o.state = 'sending' and o.expires_at > x.at
        then 'queued' else x."to" end as to_state
      from tallyhook.operations o join x on x.id = o.id
      where o.state = any(x.before)
        and (o.state <> 'settled' or x.decided and o.effective_basis is distinct from 'answer')
      order by o.id for update of o
    ), t as (
      insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, evidence,
        daemon_id)
      select l.id, l.state, l.to_state, x.at, x.cause, x.evidence, x."daemonId"
      from locked l join x on x.id = l.id order by l.id
    )
    update tallyhook.operations o set
      state = l.to_state,
      key_held = o.key_held and (coalesce(x."keyHeld", true) or l.to_state = 'queued'),
      tx_app_no = coalesce(x."txAppNo", o.tx_app_no),
      tx_log_no = coalesce(x."txLogNo", o.tx_log_no),
      tx_hash = coalesce(x."txHash", o.tx_hash), token_id = coalesce(x."tokenId", o.token_id),
      error_class = x."errorClass", error_status = x."errorStatus", error_code = x."errorCode",
      error_message = x."errorMessage",
      answer_status = coalesce(x."answerStatus", o.answer_status),
      answer_headers = coalesce(x."answerHeaders", o.answer_headers),
      answer_body = coalesce(decode(x."answerBody", 'base64'), o.answer_body),
      answered_at = case when l.to_state <> 'queued'
        then coalesce(x."answeredAt", o.answered_at) end,
      effective_at = coalesce(x."effectiveAt", o.effective_at),
      effective_basis = coalesce(x."effectiveBasis", o.effective_basis),
      settled_at = case when l.to_state in ('executed', 'not_executed') then null
        else coalesce(x."settledAt", o.settled_at) end,
      evidence = coalesce(x.evidence, o.evidence),
      quarantine_reason = case when x."txLogNo" is null
        then coalesce(x."quarantineReason", o.quarantine_reason)
        when x.repeated or exists (select from tallyhook.operations p
          where p.tx_log_no = x."txLogNo" and p.tx_app_no = x."txAppNo" and p.id <> o.id
            and p.in_books)
        then 'repeated_tx_log_no' else coalesce(x."quarantineReason", o.quarantine_reason) end
    from locked l join x on x.id = l.id
    where o.id = l.id
    returning ${operationColumns(tx.sql)}`;
}

function textOf(at: Instant | undefined): string | null {
  return at === undefined ? null : isoText(at);
}

/** Operations that the ledger has to post or to reverse, oldest first. */
export async function listPostingsDue(tx: Tx, limit: number): Promise<Operation[]> {
  return tx.sql<Operation[]>`
    select ${operationColumns(tx.sql)} from tallyhook.operations o
    where o.in_books <> (o.postings % 2 = 1) and o.quarantine_reason is null
    order by o.recorded_at limit ${limit} for no key update`;
}

/** Counts one posting (or reversal) of each. */
export async function markPosted(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.sql`
    update tallyhook.operations set postings = postings + 1 where id =
      any(${ids as string[]}::text[])`;
}

/** Takes a row out of the ledger's work, with its cause; it is a break until a person looks. */
export async function quarantine(tx: Tx, id: string, problem: string): Promise<void> {
  await tx.sql`update tallyhook.operations set quarantine_reason = ${problem} where id = ${id}`;
}
