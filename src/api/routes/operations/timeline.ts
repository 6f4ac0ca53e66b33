/**
 * `/api/operations/{id}/timeline`: what later stages recorded about one operation. Every part is
 * bounded; the parts are read by the indexes of their tables.
 */
import { z } from '@hono/zod-openapi';
import type { Db } from '../../../db/connect.ts';
import { decimalText, wholeOf } from '../../../kernel/amounts.ts';
import type { Instant } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import { listMovementsOf, listTransactions } from '../../../ledger/ledger.ts';
import {
  listObservationsBefore,
  type StoredObservation,
  targetName,
} from '../../../observer/observer.ts';
import {
  findOperation,
  listEffects,
  listTransitions,
  type Operation,
} from '../../../operations/operations.ts';
import { listSubjectEvents, type SubjectEvent } from '../../../outbox/outbox.ts';
import type { Delivery } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import { decimal, idInput, instant, instantText } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';

const TARGETS_MAX = 8;
const OBSERVATIONS_MAX = 20;
const POSTINGS_MAX = 20;
const EVENTS_MAX = 20;
const DELIVERIES_MAX = 20;
const TRANSITIONS_MAX = 50;
/** An event is recorded with the change that it reports: at once, or when a long pass commits. */
const EVENT_AFTER_MS = 60_000;

const timeline = z
  .object({
    observations: z
      .array(
        z.object({
          id: z.string(),
          target: z.string(),
          unchanged_since: instant,
          started_at: instant,
          ended_at: instant,
          result: z.enum(['seen', 'absent', 'inconclusive']),
          balance: decimal.nullable().openapi({ description: 'Of a wallet' }),
          owner: z.string().nullable().openapi({ description: 'Of a token' }),
        }),
      )
      .openapi({
        description:
          'Of each wallet and token of the operation: the last one before it was sent, and the ' +
          `newest ${OBSERVATIONS_MAX} until it settled, in the order of time`,
      }),
    postings: z
      .array(
        z.object({
          transaction_id: decimal,
          kind: z.string(),
          reverses: decimal.nullable(),
          recorded_at: instant,
          entries: z.array(z.object({ account: z.string(), amount: decimal })),
        }),
      )
      .openapi({ description: `The newest ${POSTINGS_MAX} transactions of the ledger` }),
    movements: z.array(
      z.object({
        kind: z.string(),
        from_addr: z.string().nullable(),
        to_addr: z.string().nullable(),
        recorded_at: instant,
      }),
    ),
    events: z
      .array(
        z.object({
          id: z.string(),
          type: z.string(),
          recorded_at: instant,
          deliveries: z.array(
            z.object({
              id: z.string(),
              endpoint_id: z.string(),
              state: z.string(),
              attempts: z.int(),
              created_at: instant,
              finished_at: instant.nullable(),
            }),
          ),
        }),
      )
      .openapi({
        description:
          `The first ${EVENTS_MAX} events of its changes of state that retention has left, ` +
          `each with its newest ${DELIVERIES_MAX} deliveries`,
      }),
  })
  .openapi('OperationTimeline');

export function addTimeline(
  router: Router,
  { db, clock, webhooks }: Pick<ApiDeps, 'db' | 'clock' | 'webhooks'>,
): void {
  router.add({
    tag: 'operations',
    scope: 'read',
    method: 'get',
    path: '/api/operations/{id}/timeline',
    summary: 'List the observations, postings, events and deliveries of an operation',
    request: z.object({ params: z.object({ id: idInput('op') }) }),
    response: 'What later stages recorded about the operation',
    schema: timeline,
    async handle({ params: { id } }) {
      const operation = await findOperation(db, id);
      if (!operation) throw new Failure('not_found');
      const [observations, postings, movements, events] = await Promise.all([
        observationsOf(db, operation, clock.now()),
        listTransactions(db, { operationId: id, limit: POSTINGS_MAX }),
        listMovementsOf(db, id, POSTINGS_MAX),
        eventsOf(db, id),
      ]);
      const deliveries = await Promise.all(
        events.map((event) =>
          webhooks.listDeliveries({ eventId: event.id }, { before: '', limit: DELIVERIES_MAX }),
        ),
      );
      return {
        observations: observations.map(observationOutput),
        postings: postings.map((row) => ({
          transaction_id: decimalText(row.id),
          kind: row.kind,
          reverses: decimalText(row.reverses),
          recorded_at: instantText(row.recordedAt),
          entries: row.entries.map(({ account, amount }) => ({
            account,
            amount: decimalText(amount),
          })),
        })),
        movements: movements.map((row) => ({
          kind: row.kind,
          from_addr: row.fromAddr,
          to_addr: row.toAddr,
          recorded_at: instantText(row.recordedAt),
        })),
        events: events.map((event, n) => eventOutput(event, deliveries[n] ?? [])),
      };
    },
  });
}

/** Of every target: the last observation before the send, and what came until it settled. */
async function observationsOf(
  db: Db,
  operation: Operation,
  now: Instant,
): Promise<StoredObservation[]> {
  const { sentAt, effectiveAt, recordedAt, settledAt } = operation;
  const from = sentAt ?? effectiveAt ?? recordedAt;
  const before = { unchangedSince: (settledAt ?? now) + 1, id: '' };
  const targets = await targetsOf(db, operation);
  const series = await Promise.all(
    targets.map((target) =>
      listObservationsBefore(db, target, { before, limit: OBSERVATIONS_MAX }),
    ),
  );
  return series
    .flatMap((rows) => {
      const since = rows.filter(({ endedAt }) => endedAt >= from);
      const last = rows.find(({ endedAt }) => endedAt < from);
      return last ? [last, ...since] : since;
    })
    .sort((a, b) => a.endedAt - b.endedAt);
}

async function targetsOf(db: Db, operation: Operation): Promise<string[]> {
  const { id, contractId, tokenId } = operation;
  const effects = (await listEffects(db, [id])).get(id) ?? [];
  const wallets = effects.flatMap(({ account }) => {
    const addr = /^wallet:(.+)$/.exec(account)?.[1];
    return addr === undefined ? [] : [targetName({ kind: 'wallet', addr })];
  });
  const token =
    contractId === null || tokenId === null
      ? []
      : [targetName({ kind: 'token', contractId, tokenId })];
  return [...new Set([...wallets, ...token])].slice(0, TARGETS_MAX);
}

async function eventsOf(db: Db, id: string): Promise<SubjectEvent[]> {
  const transitions = await listTransitions(db, id);
  const spans: { from: Instant; until: Instant }[] = [];
  for (const { at } of transitions.slice(-TRANSITIONS_MAX).sort((a, b) => a.at - b.at)) {
    const last = spans.at(-1);
    if (last && at <= last.until) last.until = at + EVENT_AFTER_MS;
    else spans.push({ from: at, until: at + EVENT_AFTER_MS });
  }
  return listSubjectEvents(db, `operation:${id}`, spans, EVENTS_MAX);
}

function observationOutput(row: StoredObservation) {
  const { record } = row;
  const members = record !== null && typeof record === 'object' && !Array.isArray(record);
  const { balance, owner } = members ? record : {};
  return {
    id: row.id,
    target: row.target,
    unchanged_since: instantText(row.unchangedSince),
    started_at: instantText(row.startedAt),
    ended_at: instantText(row.endedAt),
    result: row.result,
    balance: decimalText(wholeOf(balance)),
    owner: typeof owner === 'string' ? owner : null,
  };
}

function eventOutput(event: SubjectEvent, deliveries: readonly Delivery[]) {
  return {
    id: event.id,
    type: event.type,
    recorded_at: instantText(event.recordedAt),
    deliveries: deliveries.map((row) => ({
      id: row.id,
      endpoint_id: row.endpointId,
      state: row.state,
      attempts: row.attempts,
      created_at: instantText(row.createdAt),
      finished_at: instantText(row.finishedAt),
    })),
  };
}
