/** SQL of the journal: intents, sends, and the one statement that changes a state. */
import { asJson, type Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import type { Kind, Operation, State, WriteFields } from './operation.ts';
import { statesBefore } from './operation.ts';
import { type OperationRow, operationColumns, toOperation } from './row-store.ts';

/** A write about to be sent, complete: what is durable before the first byte leaves. */
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
  recordedAt: Instant;
  sendDeadlineAt: Instant;
  daemonId: string;
  epoch: bigint;
}

/**
 * Inserts intents in state `sending`, with their first transitions and their first send. Answers
 * the ids that were inserted; a missing one met a held idempotency key.
 */
export async function insertIntents(tx: Tx, intents: readonly Intent[]): Promise<Set<string>> {
  const rows = intents.map(({ fields, body, recordedAt, sendDeadlineAt, ...intent }) => ({
    ...intent,
    ...fields,
    body: Buffer.from(body).toString('base64'),
    recordedAt: isoText(recordedAt),
    sendDeadlineAt: isoText(sendDeadlineAt),
  }));
  const inserted = await tx.sql<{ id: string }[]>`
    with x as (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, kind text, owner text,
        "keyId" text, "idempotencyKey" text, fingerprint text, reference text, method text, path
          text,
        "contentType" text, body text, "fromAddr" text, "toAddr" text, "operationNo" numeric,
        "contractId" numeric, "tokenId" numeric, amount numeric, "feeAmount" numeric, "reasonType"
          text,
        "tokenUri" text, "metaData" text, "extraData" text, "preImage" jsonb, "recordedAt"
          timestamptz,
        "sendDeadlineAt" timestamptz, "daemonId" text, epoch bigint)
    ), o as (
      insert into tallyhook.operations (id, kind, state, source, owner, key_id, idempotency_key,
        fingerprint, key_held, reference, method, path, content_type, request_body, from_addr,
          to_addr,
        operation_no, contract_id, token_id, amount, fee_amount, reason_type, token_uri, meta_data,
        extra_data, pre_image, recorded_at, sent_at, send_deadline_at, daemon_id)
      select id, kind, 'sending', 'gateway', owner, "keyId", "idempotencyKey", fingerprint,
        "idempotencyKey" is not null, reference, method, path, "contentType", decode(body,
          'base64'),
        "fromAddr", "toAddr", "operationNo", "contractId", "tokenId", amount, "feeAmount",
        "reasonType", "tokenUri", "metaData", "extraData", "preImage", "recordedAt", "recordedAt",
        "sendDeadlineAt", "daemonId"
      from x
      on conflict (owner, idempotency_key) where key_held do nothing
      returning id
    ), t as (
      insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, daemon_id)
      select o.id, s.from_state, s.to_state, x."recordedAt", s.cause, x."daemonId"
      from o join x on x.id = o.id
      cross join (values (1, null, 'recorded', 'intent'), (2, 'recorded', 'sending', 'send'))
        as s(n, from_state, to_state, cause)
      order by o.id, s.n
    ), s as (
      insert into tallyhook.sends (operation_id, n, started_at, deadline_at, daemon_id, epoch)
      select o.id, 1, x."recordedAt", x."sendDeadlineAt", x."daemonId", x.epoch
      from o join x on x.id = o.id
    )
    select id from o`;
  return new Set(inserted.map((row) => row.id));
}

/** One more send of the same operation, with the proof that allows it. */
export async function insertSend(
  tx: Tx,
  send: {
    operationId: string;
    daemonId: string;
    epoch: bigint;
    startedAt: Instant;
    deadlineAt: Instant;
    after: string;
  },
): Promise<void> {
  await tx.sql`
    insert into tallyhook.sends (operation_id, n, started_at, deadline_at, daemon_id, epoch, after)
    select ${send.operationId}, coalesce(max(n), 0) + 1, ${isoText(send.startedAt)}::timestamptz,
      ${isoText(send.deadlineAt)}::timestamptz, ${send.daemonId}, ${send.epoch.toString()}::bigint,
        ${send.after}
    from tallyhook.sends where operation_id = ${send.operationId}`;
}

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
  postingProblem?: string;
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
 * and its transition is written in the same statement. Answers the operations that moved.
 */
export async function moveStates(tx: Tx, moves: readonly Move[]): Promise<Operation[]> {
  const rows = moves.map((move) => ({
    ...move,
    at: isoText(move.at),
    before: statesBefore(move.to),
    answerBody: move.answerBody ? Buffer.from(move.answerBody).toString('base64') : null,
    answeredAt: textOf(move.answeredAt),
    effectiveAt: textOf(move.effectiveAt),
    settledAt: textOf(move.settledAt),
  }));
  const moved = await tx.sql<OperationRow[]>`
    with x as (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id text, "to" text, at
        timestamptz,
        cause text, "daemonId" text, evidence jsonb, "keyHeld" boolean, "txAppNo" numeric,
        "txLogNo" numeric, "txHash" text, "tokenId" numeric, "errorClass" text, "errorStatus" int,
        "errorCode" text, "errorMessage" text, "answerStatus" int, "answerHeaders" jsonb,
        "answerBody" text, "answeredAt" timestamptz, "effectiveAt" timestamptz, "effectiveBasis"
          text,
        "settledAt" timestamptz, before text[])
    ), locked as (
      select o.id, o.state from tallyhook.operations o join x on x.id = o.id
      where o.state = any(x.before) order by o.id for update of o
    ), t as (
      insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, evidence,
        daemon_id)
      select l.id, l.state, x."to", x.at, x.cause, x.evidence, x."daemonId"
      from locked l join x on x.id = l.id order by l.id
    )
    update tallyhook.operations o set
      state = x."to",
      key_held = o.key_held and coalesce(x."keyHeld", true),
      tx_app_no = coalesce(x."txAppNo", o.tx_app_no), tx_log_no = coalesce(x."txLogNo",
        o.tx_log_no),
      tx_hash = coalesce(x."txHash", o.tx_hash), token_id = coalesce(x."tokenId", o.token_id),
      error_class = x."errorClass", error_status = x."errorStatus", error_code = x."errorCode",
      error_message = x."errorMessage",
      answer_status = coalesce(x."answerStatus", o.answer_status),
      answer_headers = coalesce(x."answerHeaders", o.answer_headers),
      answer_body = coalesce(decode(x."answerBody", 'base64'), o.answer_body),
      answered_at = coalesce(x."answeredAt", o.answered_at),
      effective_at = coalesce(x."effectiveAt", o.effective_at),
      effective_basis = coalesce(x."effectiveBasis", o.effective_basis),
      settled_at = coalesce(x."settledAt", o.settled_at),
      evidence = coalesce(x.evidence, o.evidence),
      posting_problem = case
        when exists (select from x y where y."txLogNo" = x."txLogNo" and y."txAppNo" = x."txAppNo"
            and y.id <> x.id)
          or exists (select from tallyhook.operations p where p.tx_log_no = x."txLogNo"
            and p.tx_app_no = x."txAppNo" and p.id <> o.id and p.in_books)
        then 'repeated_tx_log_no' else o.posting_problem end
    from locked l join x on x.id = l.id
    where o.id = l.id
    returning ${operationColumns(tx.sql)}`;
  return moved.map(toOperation);
}

function textOf(at: Instant | undefined): string | null {
  return at === undefined ? null : isoText(at);
}

/** Operations that the ledger has to post or to reverse, oldest first. */
export async function listPostingsDue(tx: Tx, limit: number): Promise<Operation[]> {
  const rows = await tx.sql<OperationRow[]>`
    select ${operationColumns(tx.sql)} from tallyhook.operations o
    where o.in_books <> (o.postings % 2 = 1) and o.posting_problem is null
    order by o.recorded_at limit ${limit} for no key update`;
  return rows.map(toOperation);
}

/** Counts one posting (or reversal) of each. */
export async function markPosted(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.sql`
    update tallyhook.operations set postings = postings + 1 where id =
      any(${ids as string[]}::text[])`;
}

/** Takes a row out of the ledger's work, with its cause; it is a break until a person looks. */
export async function setAside(tx: Tx, id: string, problem: string): Promise<void> {
  await tx.sql`update tallyhook.operations set posting_problem = ${problem} where id = ${id}`;
}
