/** `/api/drifts`: drifts, their history, and sums by cause and age. */
import { z } from '@hono/zod-openapi';
import type { Queryable } from '../../../db/connect.ts';
import { Failure, must } from '../../../kernel/errors.ts';
import { newestDecisions } from '../../../operations/operations.ts';
import {
  type Drift,
  findDrift,
  listDriftActions,
  listDrifts,
  summarizeDrifts,
} from '../../../reconciler/reconciler.ts';
import { drift, driftDetail, driftSummary } from '../../../resources/ledger/drift.ts';
import type { ProposalKind } from '../../../resources/operations/decision.ts';
import type { Row } from '../../../resources/resource.ts';
import { ENDED_MS } from '../../counts.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput } from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { filtersOf } from '../../http/schemas.ts';

const query = z.strictObject({ ...paging, ...filtersOf(drift.filters) });
const base = { tag: 'drifts', scope: 'read' as const };

export function addDrifts(router: Router, { db, clock }: Pick<ApiDeps, 'db' | 'clock'>): void {
  router.listOf({
    ...base,
    path: '/api/drifts',
    summary: 'List drifts, newest first',
    request: z.object({ query }),
    items: drift,
    parsePosition: idPosition('drf'),
    async list({ query }, { after: before, limit }) {
      const { age: order, ended_since: endedSince, ...rest } = query;
      const age = order && { order: Number(order), now: clock.now() };
      const filter = { ...rest, age, endedSince };
      return withProposals(db, await listDrifts(db, filter, { before, limit }));
    },
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    method: 'get',
    path: '/api/drifts/summary',
    summary: 'Sum unclosed drifts by probable cause and by age',
    request: z.object({}),
    response: 'The sums, and the median time to an end over the last 30 days',
    answer: driftSummary,
    async handle() {
      const now = clock.now();
      return summarizeDrifts(db, now, now - ENDED_MS);
    },
  });
  router.answer({
    ...base,
    method: 'get',
    path: '/api/drifts/{id}',
    summary: 'Read a drift with its history',
    request: z.object({ params: z.object({ id: idInput('drf') }) }),
    response: 'The drift',
    answer: driftDetail,
    async handle({ params: { id } }) {
      const found = await findDrift(db, id);
      if (!found) throw new Failure('not_found');
      const [shown] = await withProposals(db, [found]);
      return { ...must(shown, 'drift'), actions: await listDriftActions(db, id) };
    },
  });
}

/** Drifts with their newest proposals, read at once. */
export async function withProposals(
  db: Queryable,
  drifts: readonly Drift[],
): Promise<Row<typeof drift>[]> {
  const newest = await newestDecisions(
    db,
    drifts.map(({ id }) => id),
  );
  return drifts.map((found) => {
    const decision = newest.get(found.id);
    return {
      ...found,
      amountMin: found.min,
      amountMax: found.max,
      proposal: decision ? { ...decision, kind: decision.decision as ProposalKind } : null,
    };
  });
}
