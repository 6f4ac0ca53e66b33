/** A column of a finance view that is the field of a resource is described by the same text. */
import { expect, it } from 'vitest';
import type { Field } from '../../src/resources/fields.ts';
import { drift } from '../../src/resources/ledger/drift.ts';
import { account, transaction } from '../../src/resources/ledger/ledger.ts';
import { period } from '../../src/resources/ledger/period.ts';
import { token, tokenMovement } from '../../src/resources/ledger/token.ts';
import { wallet } from '../../src/resources/ledger/wallet.ts';
import { decision } from '../../src/resources/operations/decision.ts';
import { operation } from '../../src/resources/operations/operation.ts';
import { report } from '../../src/resources/reports/report.ts';
import type { Resource } from '../../src/resources/resource.ts';
import { useDatabase } from '../harness/database.ts';

interface Described {
  of: Resource;
  /** The column that is the id. */
  id?: string;
  /** Columns of the same name that are another thing. */
  not?: string[];
}

const VIEWS: Record<string, Described> = {
  accounts: { of: account },
  balances: { of: account },
  journal: { of: transaction, id: 'transaction_id' },
  wallet_positions: { of: wallet },
  operations: { of: operation },
  operations_without_tx_number: { of: operation },
  // Only two of the states, and where the rest stands.
  in_doubt: { of: operation, not: ['operation_id', 'state'] },
  // A proposal is a document of its own form there.
  drifts: { of: drift, id: 'drift_id', not: ['proposal'] },
  drifts_ageing: { of: drift, id: 'drift_id', not: ['proposal'] },
  // Operations and drifts in one view: the operation is one that a drift is linked to.
  decisions: { of: decision },
  reports: { of: report, id: 'report_id' },
  // The open period is one of them.
  periods: { of: period, not: ['state', 'period_from'] },
  nft_movements: { of: tokenMovement },
  // There a flag.
  nft_holdings: { of: token, not: ['locked'] },
};

/** What a field is, then its values. */
function commentOf({ description, values }: Field): string {
  const listed = values && `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
  return `${[description, listed].filter(Boolean).join(': ')}.`;
}

const database = await useDatabase();
const rows = await database.owner.sql<{ view: string; column: string; comment: string }[]>`
  select c.relname as view, a.attname as column, col_description(c.oid, a.attnum) as comment
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
  where c.relnamespace = 'finance_v1'::regnamespace`;

it.each(Object.entries(VIEWS))('Comments of %s are the descriptions', (view, { of, id, not }) => {
  const same = rows.flatMap(({ column, comment, ...row }) => {
    const field = of.fields[column === id ? 'id' : column];
    return row.view === view && field && !not?.includes(column) ? [{ column, comment, field }] : [];
  });
  expect(same.length).toBeGreaterThan(1);
  const texts = same.map(({ column, comment }) => [column, comment]);
  expect(texts).toEqual(same.map(({ column, field }) => [column, commentOf(field)]));
});
