/**
 * `/api/operators`: the wallets that operators pay from. One owner proposes to map a wallet, and
 * another approves or rejects it; no daemon has to start again.
 */
import { z } from '@hono/zod-openapi';
import type { MappedOperator } from '../../../ledger/ledger.ts';
import { listDrifts } from '../../../reconciler/reconciler.ts';
import { operator, operatorDetail } from '../../../resources/ledger/operator.ts';
import type { Row } from '../../../resources/resource.ts';
import type { ApiDeps } from '../../deps.ts';
import { paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { addressInput, decimalInput, filtersOf, reasonInput } from '../../http/schemas.ts';

const DRIFTS_MAX = 200;

const params = z.object({ no: decimalInput.openapi({ description: 'Number of the operator' }) });
const n = z.int().min(1).max(32_767).optional();
const base = { tag: 'operators', response: 'The operator', answer: operatorDetail } as const;
const action = { ...base, scope: 'decide', method: 'post' } as const;

export function addOperators(
  router: Router,
  { db, operatorMappings, wake }: Pick<ApiDeps, 'db' | 'operatorMappings' | 'wake'>,
): void {
  /** With the open drifts of the wallet that name the operator. */
  const shown = async ({ effect, ...row }: MappedOperator): Promise<Row<typeof operatorDetail>> => {
    if (!effect) return { ...row, effect };
    const filter = { cause: 'operator_wallet', state: 'unclosed', addr: effect.addr } as const;
    const found = await listDrifts(db, filter, { limit: DRIFTS_MAX });
    const no = String(row.operatorNo);
    const drifts = found.filter((drift) => drift.operator?.operator_no === no);
    return { ...row, effect: { ...effect, drifts: drifts.map(({ id }) => id) } };
  };
  router.listOf({
    tag: 'operators',
    scope: 'read',
    path: '/api/operators',
    summary: 'List operators that have a wallet, or a proposal for one',
    request: z.object({
      query: z.strictObject({ ...paging, ...filtersOf(operator.filters) }),
    }),
    items: operator,
    parsePosition: (text) => (/^\d{1,100}$/.test(text) ? BigInt(text) : undefined),
    list: ({ query: { proposed = false } }, page) => operatorMappings.list({ ...page, proposed }),
    position: ({ operatorNo }) => operatorNo,
  });
  router.answer({
    ...base,
    scope: 'read',
    method: 'get',
    path: '/api/operators/{no}',
    summary: 'Read an operator, and what an approval of its proposal does',
    request: z.object({ params }),
    handle: async ({ params: { no } }) => shown(await operatorMappings.find(no)),
  });
  router.answer({
    ...action,
    path: '/api/operators/{no}/propose',
    summary: 'Propose the wallet that an operator pays from; a key of another owner approves',
    description:
      'With dry_run nothing is stored, and `effect` says what an approval does. An operator that ' +
      'the setting `ledger.operators` names is refused: the setting wins.',
    request: z.object({
      params,
      body: z.strictObject({
        addr: addressInput,
        reason: reasonInput,
        dry_run: z.boolean().optional(),
      }),
    }),
    async handle({ params: { no }, body: { addr, reason, dry_run: dryRun } }, by) {
      return shown(await operatorMappings.propose(no, { addr, reason, dryRun }, by));
    },
  });
  router.answer({
    ...action,
    path: '/api/operators/{no}/approve',
    summary: 'Approve the proposed wallet of an operator; a key of another owner than the proposer',
    description:
      'All daemons know it with their next heartbeat. Gives since the opening of the wallet are ' +
      'reversed and posted again from it, and the drifts that they explain close.',
    request: z.object({ params, body: z.strictObject({ n }) }),
    async handle({ params: { no }, body }, by) {
      const approved = await operatorMappings.approve(no, body.n, by);
      wake('ledger', 'observer');
      return shown(approved);
    },
  });
  router.answer({
    ...action,
    path: '/api/operators/{no}/reject',
    summary: 'Reject the proposed wallet of an operator; its proposer withdraws it so',
    request: z.object({ params, body: z.strictObject({ n, reason: reasonInput }) }),
    handle: async ({ params: { no }, body }, by) =>
      shown(await operatorMappings.reject(no, body, by)),
  });
}
