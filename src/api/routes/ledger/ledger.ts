/**
 * `/api/ledger`: accounts, transactions with their entries, and the trial balance. All are
 * read-only.
 */
import { z } from '@hono/zod-openapi';
import { listAccounts, listTransactions, trialBalancePage } from '../../../ledger/ledger.ts';
import { givenOf } from '../../../resources/fields.ts';
import { account, transaction, trialBalance } from '../../../resources/ledger/ledger.ts';
import type { ApiDeps } from '../../deps.ts';
import { numberPosition, page, paging, readCursor } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { filtersOf } from '../../http/schemas.ts';

const base = { tag: 'ledger', scope: 'read' } as const;

export function addLedger(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  router.listOf({
    ...base,
    path: '/api/ledger/accounts',
    summary: 'List accounts, oldest first',
    request: z.object({ query: z.strictObject(paging) }),
    items: account,
    parsePosition: numberPosition,
    list: (_, page) => listAccounts(db, page),
    position: ({ id }) => id,
  });
  router.listOf({
    ...base,
    path: '/api/ledger/transactions',
    summary: 'List transactions with their entries, newest first',
    request: z.object({
      query: z.strictObject({ ...paging, ...filtersOf(transaction.filters) }),
    }),
    items: transaction,
    parsePosition: numberPosition,
    list: ({ query }, { after: before, limit }) =>
      listTransactions(db, { ...givenOf(transaction.filters, query), before, limit }),
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    method: 'get',
    path: '/api/ledger/trial-balance',
    summary: 'List the balance of every account',
    description:
      'As of an instant: what took effect before as_of, that instant excluded, and was recorded ' +
      'until known_at, that instant included. By default everything.',
    request: z.object({
      query: z.strictObject({ ...paging, ...filtersOf(trialBalance.filters) }),
    }),
    response: 'A page of accounts and the totals of all accounts',
    answer: trialBalance,
    async handle({ query: { limit, cursor, as_of: asOf, known_at: knownAt } }) {
      const after = readCursor(cursor, accountPosition);
      const { lines, debit, credit } = await trialBalancePage(
        db,
        { asOf, knownAt },
        { after, limit: limit + 1 },
      );
      const { data, next_cursor: nextCursor } = page(
        lines,
        limit,
        (line) => line,
        ({ account }) => account,
      );
      return { asOf: asOf ?? null, knownAt: knownAt ?? null, debit, credit, data, nextCursor };
    },
  });
}

function accountPosition(text: string): string | undefined {
  return /^[\x21-\x7e]{1,200}$/.test(text) ? text : undefined;
}
