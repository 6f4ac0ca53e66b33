/**
 * Ending drifts by people: assign, propose, and approve by a key of another owner; one drift by its
 * path, or many by their ids. A drift with a counterpart is ended together with it.
 */
import { z } from '@hono/zod-openapi';
import { must, problemOf } from '../../../kernel/errors.ts';
import type { DriftResult } from '../../../reconciler/reconciler.ts';
import { drift } from '../../../resources/ledger/drift.ts';
import { PROPOSALS } from '../../../resources/operations/decision.ts';
import { driftResults } from '../../../resources/results.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput, textInput } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';
import { withProposals } from './drifts.ts';

const REASON_MAX = 2_000;
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
  reason: textInput(REASON_MAX),
});
const approval = z.strictObject({
  n: z.int().min(1).max(32_767).optional(),
  proposal: z.enum(PROPOSALS).optional(),
});
const ids = z.array(idInput('drf')).min(1).max(IDS_MAX);
const params = z.object({ id: idInput('drf') });

const base = { tag: 'drifts', scope: 'decide', method: 'post' } as const;
const one = { ...base, response: 'The drift', answer: drift };
const many = { ...base, response: 'What became of each drift', answer: driftResults };
const ASSIGN = 'Assign a drift to a person, or with null to no one';
const PROPOSE = 'Propose how a drift ends; a key of another owner approves';
const APPROVE = 'Approve the newest proposal of another owner';

export function addDriftActions(
  router: Router,
  { db, drifts, wake }: Pick<ApiDeps, 'db' | 'drifts' | 'wake'>,
): void {
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
