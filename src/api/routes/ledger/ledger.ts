/**
 * `/api/ledger`: accounts, transactions with their entries, and the trial balance. `/api/openings`:
 * since when and with what balance wallets are known, for the balance proof of an import. All are
 * read-only.
 */
import { z } from '@hono/zod-openapi';
import { addressKey } from '../../../kernel/addresses.ts';
import {
  hasDueReports,
  listAccounts,
  listTransactions,
  openingAmounts,
  openingsOf,
  trialBalancePage,
} from '../../../ledger/ledger.ts';
import { accountKey, accountOfWallet } from '../../../operations/operations.ts';
import { positionsOf, walletsByKey } from '../../../reconciler/reconciler.ts';
import { givenOf } from '../../../resources/fields.ts';
import { account, openings, transaction, trialBalance } from '../../../resources/ledger/ledger.ts';
import type { ApiDeps } from '../../deps.ts';
import { numberPosition, page, paging, readCursor } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { addressInput, filtersOf } from '../../http/schemas.ts';

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
  addOpenings(router, db);
}

function accountPosition(text: string): string | undefined {
  return /^[\x21-\x7e]{1,200}$/.test(text) ? text : undefined;
}

const ADDRS_MAX = 100;

const addr = z
  .union([addressInput.transform((one) => [one]), z.array(addressInput).max(ADDRS_MAX)])
  .openapi({ description: `Repeated for each wallet, at most ${ADDRS_MAX}` });

function addOpenings(router: Router, db: ApiDeps['db']): void {
  router.answer({
    ...base,
    method: 'get',
    path: '/api/openings',
    summary: 'List the openings of wallets',
    request: z.object({ query: z.strictObject({ addr }) }),
    response: 'The wallets in the order of the request',
    answer: openings,
    async handle({ query }) {
      // First: what is posted after it changes an opening and its entries by the same amount.
      const posting = await hasDueReports(db);
      const keys = query.addr.map(addressKey);
      const accounts = keys.map(accountOfWallet);
      const opened = await openingsOf(db, accounts);
      const amounts = await openingAmounts(db, accounts);
      const wallets = await walletsByKey(db, keys);
      const positions = await positionsOf(db, [...new Set(keys)]);
      const data = query.addr.map((name) => {
        const key = addressKey(name);
        const account = accountKey(accountOfWallet(key));
        const found = opened.get(account);
        return {
          addr: name,
          opening: found ? (amounts.get(account) ?? 0n) : null,
          openedAt: found?.seenAt ?? null,
          knownSince: found?.effectiveAt ?? null,
          observedAt: wallets.get(key)?.observedAt ?? null,
          drift: positions.get(key)?.drift ?? 0n,
        };
      });
      return { data, posting };
    },
  });
}
