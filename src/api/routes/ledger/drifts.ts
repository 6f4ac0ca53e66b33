/**
 * `/api/drifts`: drifts, their history, and sums by cause and age; and their end by people: assign,
 * propose, and approve by a key of another owner, one drift by its path, or many by their ids. A
 * drift with a counterpart is ended together with it.
 */
import { z } from '@hono/zod-openapi';
import type { Queryable } from '../../../db/connect.ts';
import { Failure, must, problemOf } from '../../../kernel/errors.ts';
import { newestDecisions } from '../../../operations/operations.ts';
import {
  type Drift,
  type DriftResult,
  findDrift,
  listDriftActions,
  listDrifts,
  summarizeDrifts,
} from '../../../reconciler/reconciler.ts';
import { drift, driftDetail, driftSummary } from '../../../resources/ledger/drift.ts';
import { PROPOSALS, type ProposalKind } from '../../../resources/operations/decision.ts';
import type { Row } from '../../../resources/resource.ts';
import { driftResults } from '../../../resources/results.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { filtersOf, idInput, reasonInput, textInput } from '../../http/schemas.ts';
import { ENDED_MS } from '../admin/status.ts';

const query = z.strictObject({ ...paging, ...filtersOf(drift.filters) });
const base = { tag: 'drifts', scope: 'read' } as const;

type Deps = Pick<ApiDeps, 'db' | 'clock' | 'drifts' | 'wake'>;

export function addDrifts(router: Router, deps: Deps): void {
  const { db, clock } = deps;
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
  addActions(router, deps);
}

/** Drifts with their newest proposals, read at once. */
async function withProposals(
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

const IDS_MAX = 200;

const ASSIGNEE_MAX = 200;
const assignment = z.strictObject({ assignee: textInput(ASSIGNEE_MAX).nullable() });
const proposal = z.strictObject({
  proposal: z
    .enum(PROPOSALS)
    .optional()
    .openapi({
      description:
        'book: post the difference to the account external; link: an operation explains it and ' +
        'becomes executed; dismiss: nothing is posted. By default the prepared proposal',
    }),
  operation_id: idInput('op').optional(),
  reason: reasonInput,
});
const approval = z.strictObject({
  n: z.int().min(1).max(32_767).optional(),
  proposal: z.enum(PROPOSALS).optional(),
});
const ids = z.array(idInput('drf')).min(1).max(IDS_MAX);
const params = z.object({ id: idInput('drf') });

const action = { tag: 'drifts', scope: 'decide', method: 'post' } as const;
const one = { ...action, response: 'The drift', answer: drift };
const many = { ...action, response: 'What became of each drift', answer: driftResults };
const ASSIGN = 'Assign a drift to a person, or with null to no one';
const PROPOSE = 'Propose how a drift ends; a key of another owner approves';
const APPROVE = 'Approve the newest proposal of another owner';

function addActions(router: Router, { db, drifts, wake }: Deps): void {
  const toOne = async (work: Promise<DriftResult[]>, id: string) => {
    const result = must(
      (await work).find((of) => of.id === id),
      'result',
    );
    if ('failure' in result) throw result.failure;
    wake('ledger', 'observer', 'sequencer', 'webhooks');
    const [shown] = await withProposals(db, [result.drift]);
    return must(shown, 'drift');
  };
  const toMany = async (work: Promise<DriftResult[]>) => {
    const done = await work;
    wake('ledger', 'observer', 'sequencer', 'webhooks');
    const changed = done.flatMap((of) => ('drift' in of ? [of.drift] : []));
    const shown = new Map((await withProposals(db, changed)).map((row) => [row.id, row]));
    const data = done.map((of) => ({
      id: of.id,
      drift: shown.get(of.id) ?? null,
      problem: 'failure' in of ? problemOf(of.failure) : null,
    }));
    return { data };
  };
  router.answer({
    ...one,
    path: '/api/drifts/{id}/assign',
    summary: ASSIGN,
    request: z.object({ params, body: assignment }),
    handle: ({ params: { id }, body }, by) => toOne(drifts.assign([id], body.assignee, by), id),
  });
  router.answer({
    ...many,
    path: '/api/drifts/assign',
    summary: `${ASSIGN}; many at once`,
    request: z.object({ body: assignment.extend({ ids }) }),
    handle: ({ body }, by) => toMany(drifts.assign(body.ids, body.assignee, by)),
  });
  router.answer({
    ...one,
    path: '/api/drifts/{id}/propose',
    summary: PROPOSE,
    request: z.object({ params, body: proposal }),
    handle: ({ params: { id }, body }, by) => toOne(drifts.propose([id], inputOf(body), by), id),
  });
  router.answer({
    ...many,
    path: '/api/drifts/propose',
    summary: `${PROPOSE}; many at once`,
    request: z.object({ body: proposal.extend({ ids }) }),
    handle: ({ body }, by) => toMany(drifts.propose(body.ids, inputOf(body), by)),
  });
  router.answer({
    ...one,
    path: '/api/drifts/{id}/approve',
    summary: APPROVE,
    request: z.object({ params, body: approval }),
    handle: ({ params: { id }, body }, by) => toOne(drifts.approve([id], body, by), id),
  });
  router.answer({
    ...many,
    path: '/api/drifts/approve',
    summary: `${APPROVE}; many at once`,
    request: z.object({ body: approval.extend({ ids }) }),
    handle: ({ body }, by) => toMany(drifts.approve(body.ids, body, by)),
  });
}

function inputOf(body: z.output<typeof proposal>) {
  return { proposal: body.proposal, operationId: body.operation_id, reason: body.reason };
}
