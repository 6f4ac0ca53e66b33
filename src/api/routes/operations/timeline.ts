/**
 * `/api/operations/{id}/timeline`: what later stages recorded about one operation. Every part is
 * bounded; the parts are read by the indexes of their tables.
 */
import { z } from '@hono/zod-openapi';
import type { Db } from '../../../db/connect.ts';
import { wholeOf } from '../../../kernel/amounts.ts';
import type { Instant } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import { membersOf } from '../../../kernel/json.ts';
import { listMovementsOf, listTransactions } from '../../../ledger/ledger.ts';
import {
  listObservationsAround,
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
import { PART_MAX, timeline } from '../../../resources/operations/timeline.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Router } from '../../http/router.ts';
import { idInput } from '../../http/schemas.ts';

const TARGETS_MAX = 8;
const TRANSITIONS_MAX = 50;
/** An event is recorded with the change that it reports: at once, or when a long pass commits. */
const EVENT_AFTER_MS = 60_000;

export function addTimeline(
  router: Router,
  { db, clock, webhooks }: Pick<ApiDeps, 'db' | 'clock' | 'webhooks'>,
): void {
  router.answer({
    tag: 'operations',
    scope: 'read',
    method: 'get',
    path: '/api/operations/{id}/timeline',
    summary: 'List the observations, postings, events and deliveries of an operation',
    request: z.object({ params: z.object({ id: idInput('op') }) }),
    response: 'What later stages recorded about the operation',
    answer: timeline,
    async handle({ params: { id } }) {
      const operation = await findOperation(db, id);
      if (!operation) throw new Failure('not_found');
      const [observations, postings, movements, events] = await Promise.all([
        observationsOf(db, operation, clock.now()),
        listTransactions(db, { operationId: id, limit: PART_MAX }),
        listMovementsOf(db, id, PART_MAX),
        eventsOf(db, id),
      ]);
      const deliveries = await Promise.all(
        events.map((event) =>
          webhooks.listDeliveries({ eventId: event.id }, { before: '', limit: PART_MAX }),
        ),
      );
      return {
        observations: observations.map(withShown),
        postings: postings.map((row) => ({ ...row, transactionId: row.id })),
        movements,
        events: events.map((event, n) => ({ ...event, deliveries: deliveries[n] ?? [] })),
      };
    },
  });
}

/** Of every target: the last observation before the send, and the first ones until it settled. */
async function observationsOf(
  db: Db,
  operation: Operation,
  now: Instant,
): Promise<StoredObservation[]> {
  const { sentAt, effectiveAt, recordedAt, settledAt } = operation;
  const from = sentAt ?? effectiveAt ?? recordedAt;
  const span = { from, until: settledAt ?? now, limit: PART_MAX };
  const targets = await targetsOf(db, operation);
  const series = await Promise.all(
    targets.map((target) => listObservationsAround(db, target, span)),
  );
  return series.flat().sort((a, b) => a.endedAt - b.endedAt);
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
  return listSubjectEvents(db, `operation:${id}`, spans, PART_MAX);
}

/** With the balance or the owner that its record shows. */
function withShown(row: StoredObservation) {
  const { record } = row;
  const { balance, owner } = membersOf(record);
  return {
    ...row,
    balance: wholeOf(balance) ?? null,
    owner: typeof owner === 'string' ? owner : null,
  };
}
