/**
 * `/api/ledger`: accounts, transactions with their entries, and the trial balance. Changes
 * nothing.
 */
import { createRoute, z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import {
  type Account,
  listAccounts,
  listTransactions,
  type Transaction,
  type TrialLine,
  trialBalancePage,
} from '../../../ledger/ledger.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import {
  digits,
  idIn,
  instantIn,
  instantOut,
  isRowNumber,
  page,
  pageOf,
  paging,
  placeIn,
  textIn,
  timeText,
} from '../../http/fields.ts';
import { json, refusals } from '../../http/problems.ts';

const account = z
  .object({
    account: z.string().openapi({ example: 'wallet:0x…, operator:1, fees, collection, opening' }),
    kind: z.string(),
    asset: z.string(),
    balance: digits,
    entries: digits,
    opened_at: instantOut,
  })
  .openapi('Account');

const transaction = z
  .object({
    id: digits,
    batch_id: digits,
    kind: z.string(),
    operation_id: z.string().nullable(),
    reverses: digits.nullable(),
    reason_type: z.string().nullable(),
    reference: z.string().nullable(),
    tx_app_no: digits.nullable(),
    tx_log_no: digits.nullable(),
    requested_by: z.string().nullable(),
    effective_at: instantOut,
    effective_basis: z.string(),
    recorded_at: instantOut,
    entries: z
      .array(z.object({ account: z.string(), amount: digits, balance_after: digits }))
      .openapi({ description: 'They sum to zero' }),
  })
  .openapi('Transaction');

const trialLine = z
  .object({ account: z.string(), asset: z.string(), debit: digits, credit: digits })
  .openapi('TrialLine');

const trialBalance = pageOf(trialLine).extend({
  as_of: instantOut.nullable(),
  known_at: instantOut.nullable(),
  debit: digits.openapi({ description: 'Of all accounts; equal to credit' }),
  credit: digits,
});

const base = { method: 'get' as const, tags: ['ledger'], ...deps('read') };

const accountsRoute = createRoute({
  ...base,
  path: '/api/ledger/accounts',
  summary: 'Accounts, in the order in which they were opened',
  request: { query: z.strictObject(paging) },
  responses: { 200: json('A page of accounts', pageOf(account)), ...refusals },
});
const transactionsRoute = createRoute({
  ...base,
  path: '/api/ledger/transactions',
  summary: 'Transactions with their entries, the newest first',
  request: {
    query: z.strictObject({
      ...paging,
      account: textIn(200).optional(),
      operation_id: idIn('op').optional(),
    }),
  },
  responses: { 200: json('A page of transactions', pageOf(transaction)), ...refusals },
});
const trialRoute = createRoute({
  ...base,
  path: '/api/ledger/trial-balance',
  summary: 'What every account held, as of when it took effect and when it was known',
  request: {
    query: z.strictObject({
      ...paging,
      as_of: instantIn.optional(),
      known_at: instantIn.optional(),
    }),
  },
  responses: { 200: json('A page of accounts, and the totals of all', trialBalance), ...refusals },
});

export function addLedger(app: Api, deps: ApiDeps): void {
  const { db } = deps;
  app.openapi(guarded(deps, accountsRoute), async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const place = placeIn(cursor, isRowNumber);
    const after = place === undefined ? {} : { after: BigInt(place) };
    const rows = await listAccounts(db, { ...after, limit: limit + 1 });
    return reply(
      c,
      page(rows, limit, shownAccount, ({ id }) => id.toString()),
      200,
    );
  });
  app.openapi(guarded(deps, transactionsRoute), async (c) => {
    const { limit, cursor, account, operation_id: operationId } = c.req.valid('query');
    const place = placeIn(cursor, isRowNumber);
    const rows = await listTransactions(db, {
      ...(account === undefined ? {} : { account }),
      ...(operationId === undefined ? {} : { operationId }),
      ...(place === undefined ? {} : { before: BigInt(place) }),
      limit: limit + 1,
    });
    return reply(
      c,
      page(rows, limit, shownTransaction, ({ id }) => id.toString()),
      200,
    );
  });
  app.openapi(guarded(deps, trialRoute), async (c) => {
    const { limit, cursor, as_of: asOf, known_at: knownAt } = c.req.valid('query');
    const after = placeIn(cursor, (place) => /^[\x21-\x7e]{1,200}$/.test(place));
    const found = await trialBalancePage(db, { asOf, knownAt }, { after, limit: limit + 1 });
    return reply(
      c,
      {
        as_of: timeText(asOf ?? null),
        known_at: timeText(knownAt ?? null),
        debit: decimalText(found.debit),
        credit: decimalText(found.credit),
        ...page(found.lines, limit, shownLine, (line) => line.account),
      },
      200,
    );
  });
}

function shownAccount(row: Account) {
  return {
    account: row.name,
    kind: row.kind,
    asset: row.asset,
    balance: decimalText(row.balance),
    entries: decimalText(row.version),
    opened_at: timeText(row.openedAt),
  };
}

function shownTransaction(row: Transaction) {
  return {
    id: decimalText(row.id),
    batch_id: decimalText(row.batchId),
    kind: row.kind,
    operation_id: row.operationId,
    reverses: decimalText(row.reverses),
    reason_type: row.reasonType,
    reference: row.reference,
    tx_app_no: decimalText(row.txAppNo),
    tx_log_no: decimalText(row.txLogNo),
    requested_by: row.requestedBy,
    effective_at: timeText(row.effectiveAt),
    effective_basis: row.effectiveBasis,
    recorded_at: timeText(row.recordedAt),
    entries: row.entries.map((entry) => ({
      account: entry.account,
      amount: decimalText(entry.amount),
      balance_after: decimalText(entry.balanceAfter),
    })),
  };
}

function shownLine({ account, asset, debit, credit }: TrialLine) {
  return { account, asset, debit: decimalText(debit), credit: decimalText(credit) };
}
