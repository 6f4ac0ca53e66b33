/**
 * `/api/wallets`: ledger balance, open operations, observed balance and drift of each wallet; its
 * statement and its observations. Read-only.
 */
import { z } from '@hono/zod-openapi';
import type { Queryable } from '../../../db/connect.ts';
import { addressKey, isAddress } from '../../../kernel/addresses.ts';
import { decimalText, wholeOf } from '../../../kernel/amounts.ts';
import { Failure, must } from '../../../kernel/errors.ts';
import { isId } from '../../../kernel/ids.ts';
import { listTransactions, type Transaction } from '../../../ledger/ledger.ts';
import {
  listObservationsBefore,
  type StoredObservation,
  targetName,
} from '../../../observer/observer.ts';
import { accountOfWallet } from '../../../operations/operations.ts';
import {
  findWallet,
  listWallets,
  type Position,
  positionsOf,
  type Wallet,
} from '../../../reconciler/reconciler.ts';
import type { ApiDeps } from '../../deps.ts';
import { addressInput, decimal, instant, instantText } from '../../http/fields.ts';
import { numberPosition, page, pageOf, paging, readCursor } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const wallet = z
  .object({
    addr: z.string(),
    status: z.int().nullable().openapi({ description: 'As last observed' }),
    opened_at: instant
      .nullable()
      .openapi({ description: 'Time of the opening; drift is computed from then on' }),
    verdict: z
      .string()
      .openapi({ description: 'explained, drifting, inconclusive, unopened or vanished' }),
    cause: z.string().nullable(),
    ledger_balance: decimal,
    unposted: decimal.openapi({
      description: 'Executed operations and posting requests that are not yet posted',
    }),
    in_flight: decimal,
    unknown: decimal,
    best_case: decimal,
    worst_case: decimal,
    observed_balance: decimal.nullable(),
    observed_at: instant.nullable(),
    ledger_at_observation: decimal.nullable(),
    drift: decimal.openapi({ description: 'Sum of its open drifts' }),
  })
  .openapi('Wallet');

const statementLine = z
  .object({
    transaction_id: decimal,
    effective_at: instant,
    recorded_at: instant,
    kind: z.string(),
    reason_type: z.string().nullable(),
    reference: z.string().nullable(),
    tx_log_no: decimal.nullable(),
    operation_id: z.string().nullable(),
    counterparty: z
      .array(z.string())
      .openapi({ description: 'The other accounts of the transaction' }),
    amount: decimal,
    balance_after: decimal,
  })
  .openapi('StatementLine');

const observation = z
  .object({
    id: z.string(),
    unchanged_since: instant.openapi({ description: 'Since when it has been observed like this' }),
    started_at: instant,
    ended_at: instant,
    result: z.enum(['seen', 'absent', 'inconclusive']),
    cause: z.string().nullable(),
    balance: decimal.nullable(),
    status: decimal.nullable(),
  })
  .openapi('WalletObservation');

const params = z.object({ addr: addressInput });
const query = z.strictObject(paging);
const filters = z.strictObject({
  ...paging,
  stale: z
    .literal('true')
    .optional()
    .openapi({ description: 'Only those that `stale_wallets` in the status counts' }),
  vanished: z
    .literal('true')
    .optional()
    .openapi({ description: 'Only those that `wallets_vanished` in the status counts' }),
});
const base = { tag: 'wallets', scope: 'read' as const };

type Deps = Pick<ApiDeps, 'db' | 'clock' | 'staleAfterMs'>;

export function addWallets(router: Router, { db, clock, staleAfterMs }: Deps): void {
  router.list({
    ...base,
    path: '/api/wallets',
    summary: 'List observed wallets, by address',
    request: z.object({ query: filters }),
    item: wallet,
    parsePosition: (text) => (isAddress(text) ? text : undefined),
    async list({ query: { stale, vanished } }, { after = '', limit }) {
      const observedBefore = stale && clock.now() - staleAfterMs;
      const rows = await listWallets(db, { after, limit, observedBefore, isVanished: !!vanished });
      const positions = await positionsOf(
        db,
        rows.map(({ key }) => key),
      );
      return rows.map((row) => ({ row, position: must(positions.get(row.key), 'position') }));
    },
    output: ({ row, position }) => walletOutput(row, position),
    position: ({ row }) => row.key,
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/wallets/{addr}',
    summary: 'Read a wallet',
    request: z.object({ params }),
    response: 'The wallet',
    schema: wallet,
    async handle({ params: { addr } }) {
      const found = await getWallet(db, addr);
      const positions = await positionsOf(db, [found.key]);
      return walletOutput(found, must(positions.get(found.key), 'position'));
    },
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/wallets/{addr}/statement',
    summary: 'List the ledger entries of a wallet, newest first; limit counts transactions',
    request: z.object({ params, query }),
    response: 'A page of entries',
    schema: pageOf(statementLine),
    async handle({ params, query: { limit, cursor } }) {
      const account = accountOfWallet((await getWallet(db, params.addr)).addr);
      const before = readCursor(cursor, numberPosition);
      const rows = await listTransactions(db, { account, before, limit: limit + 1 });
      const { data, next_cursor } = page(
        rows,
        limit,
        (row) => statementLines(row, account),
        ({ id }) => id,
      );
      return { data: data.flat(), next_cursor };
    },
  });
  router.list({
    ...base,
    path: '/api/wallets/{addr}/observations',
    summary: 'List the observations of a wallet, newest first',
    request: z.object({ params, query }),
    item: observation,
    parsePosition: observationPosition,
    async list({ params }, { after: before, limit }) {
      const { addr } = await getWallet(db, params.addr);
      return listObservationsBefore(db, targetName({ kind: 'wallet', addr }), { before, limit });
    },
    output: observationOutput,
    position: (row) => `${row.unchangedSince} ${row.id}`,
  });
}

/** @throws Failure `not_found` */
async function getWallet(db: Queryable, addr: string): Promise<Wallet> {
  const found = await findWallet(db, addressKey(addr));
  if (!found) throw new Failure('not_found');
  return found;
}

function observationPosition(text: string) {
  const [since = '', id = '', ...rest] = text.split(' ');
  const valid = /^\d{1,14}$/.test(since) && isId('obs', id) && rest.length === 0;
  return valid ? { unchangedSince: Number(since), id } : undefined;
}

function walletOutput(row: Wallet, position: Position) {
  const expected = position.ledgerBalance + position.unposted;
  return {
    addr: row.addr,
    status: row.status,
    opened_at: instantText(row.openedAt),
    verdict: row.verdict,
    cause: row.cause,
    ledger_balance: decimalText(position.ledgerBalance),
    unposted: decimalText(position.unposted),
    in_flight: decimalText(position.inFlight),
    unknown: decimalText(position.unknown),
    best_case: decimalText(expected + position.openUp),
    worst_case: decimalText(expected + position.openDown),
    observed_balance: decimalText(row.observedBalance),
    observed_at: instantText(row.observedAt),
    ledger_at_observation: decimalText(row.ledgerAtObservation),
    drift: decimalText(position.drift),
  };
}

/** One line, or two when the wallet paid itself. */
function statementLines(transaction: Transaction, account: string) {
  const isOwn = (name: string) => addressKey(name) === addressKey(account);
  const counterparty = transaction.entries.flatMap((e) => (isOwn(e.account) ? [] : [e.account]));
  return transaction.entries
    .filter((entry) => isOwn(entry.account))
    .map((entry) => ({
      transaction_id: decimalText(transaction.id),
      effective_at: instantText(transaction.effectiveAt),
      recorded_at: instantText(transaction.recordedAt),
      kind: transaction.kind,
      reason_type: transaction.reasonType,
      reference: transaction.reference,
      tx_log_no: decimalText(transaction.txLogNo),
      operation_id: transaction.operationId,
      counterparty,
      amount: decimalText(entry.amount),
      balance_after: decimalText(entry.balanceAfter),
    }));
}

function observationOutput(observation: StoredObservation) {
  const record = observation.record;
  const members = record !== null && typeof record === 'object' && !Array.isArray(record);
  const { balance, status } = members ? record : {};
  return {
    id: observation.id,
    unchanged_since: instantText(observation.unchangedSince),
    started_at: instantText(observation.startedAt),
    ended_at: instantText(observation.endedAt),
    result: observation.result,
    cause: observation.cause,
    balance: decimalText(wholeOf(balance)),
    status: decimalText(wholeOf(status)),
  };
}
