/** `/api/ledger`: accounts, transactions with their entries, and the trial balance; read-only. */
import { z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import {
  type Account,
  listAccounts,
  listTransactions,
  type Transaction,
  type TrialLine,
  trialBalancePage,
} from '../../../ledger/ledger.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  decimal,
  idInput,
  instant,
  instantInput,
  instantText,
  textInput,
} from '../../http/fields.ts';
import { numberPosition, page, pageOf, paging, readCursor } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const account = z
  .object({
    account: z.string().openapi({ example: 'wallet:0x…, operator:1, fees, collection, opening' }),
    kind: z.string(),
    asset: z.string(),
    balance: decimal,
    entries: decimal,
    opened_at: instant,
  })
  .openapi('Account');

const transaction = z
  .object({
    id: decimal,
    batch_id: decimal,
    kind: z.string(),
    operation_id: z.string().nullable(),
    reverses: decimal.nullable(),
    reason_type: z.string().nullable(),
    reference: z.string().nullable(),
    tx_app_no: decimal.nullable(),
    tx_log_no: decimal.nullable(),
    requested_by: z.string().nullable(),
    effective_at: instant,
    effective_basis: z.string(),
    recorded_at: instant,
    entries: z
      .array(z.object({ account: z.string(), amount: decimal, balance_after: decimal }))
      .openapi({ description: 'Their amounts sum to zero' }),
  })
  .openapi('Transaction');

const trialLine = z
  .object({ account: z.string(), asset: z.string(), debit: decimal, credit: decimal })
  .openapi('TrialLine');

const trialBalance = pageOf(trialLine).extend({
  as_of: instant.nullable(),
  known_at: instant.nullable(),
  debit: decimal.openapi({ description: 'Total of all accounts; equals credit' }),
  credit: decimal,
});

const base = { tag: 'ledger', scope: 'read' as const };

export function addLedger(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  router.list({
    ...base,
    path: '/api/ledger/accounts',
    summary: 'List accounts, oldest first',
    request: z.object({ query: z.strictObject(paging) }),
    item: account,
    parsePosition: numberPosition,
    list: (_, page) => listAccounts(db, page),
    output: accountOutput,
    position: ({ id }) => id,
  });
  router.list({
    ...base,
    path: '/api/ledger/transactions',
    summary: 'List transactions with their entries, newest first',
    request: z.object({
      query: z.strictObject({
        ...paging,
        account: textInput(200).optional(),
        operation_id: idInput('op').optional(),
      }),
    }),
    item: transaction,
    parsePosition: numberPosition,
    list: ({ query: { account, operation_id: operationId } }, { after: before, limit }) =>
      listTransactions(db, { account, operationId, before, limit }),
    output: transactionOutput,
    position: ({ id }) => id,
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/ledger/trial-balance',
    summary: 'List the balance of every account',
    description:
      'As of an instant: what took effect before as_of, that instant excluded, and was recorded ' +
      'until known_at, that instant included. By default everything.',
    request: z.object({
      query: z.strictObject({
        ...paging,
        as_of: instantInput.optional(),
        known_at: instantInput.optional(),
      }),
    }),
    response: 'A page of accounts and the totals of all accounts',
    schema: trialBalance,
    async handle({ query: { limit, cursor, as_of: asOf, known_at: knownAt } }) {
      const after = readCursor(cursor, accountPosition);
      const found = await trialBalancePage(db, { asOf, knownAt }, { after, limit: limit + 1 });
      return {
        as_of: instantText(asOf ?? null),
        known_at: instantText(knownAt ?? null),
        debit: decimalText(found.debit),
        credit: decimalText(found.credit),
        ...page(found.lines, limit, trialLineOutput, (line) => line.account),
      };
    },
  });
}

function accountPosition(text: string): string | undefined {
  return /^[\x21-\x7e]{1,200}$/.test(text) ? text : undefined;
}

function accountOutput(row: Account) {
  return {
    account: row.name,
    kind: row.kind,
    asset: row.asset,
    balance: decimalText(row.balance),
    entries: decimalText(row.version),
    opened_at: instantText(row.openedAt),
  };
}

function transactionOutput(row: Transaction) {
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
    effective_at: instantText(row.effectiveAt),
    effective_basis: row.effectiveBasis,
    recorded_at: instantText(row.recordedAt),
    entries: row.entries.map((entry) => ({
      account: entry.account,
      amount: decimalText(entry.amount),
      balance_after: decimalText(entry.balanceAfter),
    })),
  };
}

function trialLineOutput({ account, asset, debit, credit }: TrialLine) {
  return { account, asset, debit: decimalText(debit), credit: decimalText(credit) };
}
