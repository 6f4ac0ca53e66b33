/** `/api/drifts`: drifts, their history, and sums by cause and age. */
import { z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { Failure, must } from '../../../kernel/errors.ts';
import {
  CAUSES,
  DRIFT_STATES,
  type DriftSums,
  findDrift,
  listDriftActions,
  listDrifts,
  summarizeDrifts,
} from '../../../reconciler/reconciler.ts';
import { ENDED_MS } from '../../counts.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  addressInput,
  anyJson,
  decimal,
  idInput,
  instant,
  instantInput,
  instantText,
  textInput,
} from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { drift, driftOutput, withProposals } from './drift-fields.ts';

const detail = drift
  .extend({
    actions: z.array(
      z.object({ action: z.string(), at: instant, by: z.string(), detail: anyJson }),
    ),
  })
  .openapi('DriftDetail');

const sums = {
  drifts: z.int(),
  findings: z.int().openapi({ description: 'As drifts, but a drift and its counterpart are one' }),
  up: decimal,
  down: decimal,
};
const summary = z
  .object({
    by_cause: z.array(z.object({ cause: z.enum(CAUSES), ...sums })),
    by_age: z
      .array(z.object({ order: z.int(), bucket: z.string(), ...sums }))
      .openapi({ description: 'By the time since the first observation, youngest first' }),
    ended: z
      .object({ since: instant, drifts: z.int(), median_s: z.number().nullable() })
      .openapi({ description: 'Median time from the first observation of a drift to its end' }),
  })
  .openapi('DriftSummary');

const ASSIGNEE_MAX = 200;
export const assigneeInput = textInput(ASSIGNEE_MAX);
const filters = z.strictObject({
  ...paging,
  state: z.enum(['unclosed', ...DRIFT_STATES]).optional(),
  cause: z.enum(CAUSES).optional(),
  addr: addressInput.optional(),
  assignee: assigneeInput.optional(),
  age: z
    .enum(['1', '2', '3', '4', '5', '6'])
    .optional()
    .openapi({ description: 'The `order` of an age in the summary' }),
  ended_since: instantInput
    .optional()
    .openapi({ description: 'Only those that ended since then, as `ended` in the summary' }),
});
const base = { tag: 'drifts', scope: 'read' as const };

export function addDrifts(router: Router, { db, clock }: Pick<ApiDeps, 'db' | 'clock'>): void {
  router.list({
    ...base,
    path: '/api/drifts',
    summary: 'List drifts, newest first; the state `unclosed` stands for open and proposed',
    request: z.object({ query: filters }),
    item: drift,
    parsePosition: idPosition('drf'),
    async list({ query }, { after: before, limit }) {
      const { age: order, ended_since: endedSince, ...rest } = query;
      const age = order && { order: Number(order), now: clock.now() };
      const filter = { ...rest, age, endedSince };
      return withProposals(db, await listDrifts(db, filter, { before, limit }));
    },
    output: driftOutput,
    position: ([{ id }]) => id,
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/drifts/summary',
    summary: 'Sum unclosed drifts by probable cause and by age',
    request: z.object({}),
    response: 'The sums, and the median time to an end over the last 30 days',
    schema: summary,
    async handle() {
      const now = clock.now();
      const { byCause, byAge, ended } = await summarizeDrifts(db, now, now - ENDED_MS);
      const { since, count: drifts, medianMs } = ended;
      return {
        by_cause: byCause.map(({ cause, ...of }) => ({ cause, ...sumsOutput(of) })),
        by_age: byAge.map(({ order, bucket, ...of }) => ({ order, bucket, ...sumsOutput(of) })),
        ended: { since: instantText(since), drifts, median_s: secondsOf(medianMs) },
      };
    },
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/drifts/{id}',
    summary: 'Read a drift with its history',
    request: z.object({ params: z.object({ id: idInput('drf') }) }),
    response: 'The drift',
    schema: detail,
    async handle({ params: { id } }) {
      const found = await findDrift(db, id);
      if (!found) throw new Failure('not_found');
      const [shown] = await withProposals(db, [found]);
      const actions = await listDriftActions(db, id);
      return {
        ...driftOutput(must(shown, 'drift')),
        actions: actions.map((action) => ({ ...action, at: instantText(action.at) })),
      };
    },
  });
}

function sumsOutput({ drifts, findings, up, down }: DriftSums) {
  return { drifts, findings, up: decimalText(up), down: decimalText(down) };
}

function secondsOf(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}
