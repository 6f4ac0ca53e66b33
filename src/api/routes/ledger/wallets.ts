/**
 * `/api/wallets`: what the books hold of a wallet, what is open on it, what the service showed,
 * and what nothing explains; its statement, and the looks at it. Changes nothing.
 */
import { createRoute, z } from '@hono/zod-openapi';
import type { Queryable } from '../../../db/connect.ts';
import { addressKey, isAddress } from '../../../kernel/addresses.ts';
import { decimalText, wholeOf } from '../../../kernel/amounts.ts';
import { must } from '../../../kernel/assert.ts';
import { Failure } from '../../../kernel/errors.ts';
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
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import {
  addressIn,
  digits,
  instantOut,
  isRowNumber,
  page,
  pageOf,
  paging,
  placeIn,
  timeText,
} from '../../http/fields.ts';
import { json, refusals } from '../../http/problems.ts';

const wallet = z
  .object({
    addr: z.string(),
    status: z.int().nullable().openapi({ description: 'As the service showed it' }),
    opened_at: instantOut.nullable().openapi({ description: 'Before it there is no drift' }),
    verdict: z.string().openapi({ description: 'explained, drifting, inconclusive or unopened' }),
    cause: z.string().nullable(),
    ledger_balance: digits,
    unposted: digits.openapi({ description: 'Executed or wanted, and not posted yet' }),
    in_flight: digits,
    unknown: digits,
    best_case: digits,
    worst_case: digits,
    observed_balance: digits.nullable(),
    observed_at: instantOut.nullable(),
    ledger_at_observation: digits.nullable(),
    drift: digits.openapi({ description: 'Sum of its open drifts' }),
  })
  .openapi('Wallet');

const line = z
  .object({
    transaction_id: digits,
    effective_at: instantOut,
    recorded_at: instantOut,
    kind: z.string(),
    reason_type: z.string().nullable(),
    reference: z.string().nullable(),
    tx_log_no: digits.nullable(),
    operation_id: z.string().nullable(),
    counterparty: z.array(z.string()).openapi({ description: 'The other accounts' }),
    amount: digits,
    balance_after: digits,
  })
  .openapi('StatementLine');

const observation = z
  .object({
    id: z.string(),
    started_at: instantOut,
    ended_at: instantOut,
    result: z.enum(['seen', 'absent', 'inconclusive']),
    cause: z.string().nullable(),
    balance: digits.nullable(),
    status: digits.nullable(),
  })
  .openapi('WalletObservation');

const ofWallet = { params: z.object({ addr: addressIn }) };
const paged = { query: z.strictObject(paging) };
const base = { method: 'get' as const, tags: ['wallets'], ...deps('read') };

const listRoute = createRoute({
  ...base,
  path: '/api/wallets',
  summary: 'Wallets that were looked at, by address',
  request: paged,
  responses: { 200: json('A page of wallets', pageOf(wallet)), ...refusals },
});
const findRoute = createRoute({
  ...base,
  path: '/api/wallets/{addr}',
  summary: 'One wallet',
  request: ofWallet,
  responses: { 200: json('The wallet', wallet), ...refusals },
});
const statementRoute = createRoute({
  ...base,
  path: '/api/wallets/{addr}/statement',
  summary: 'Its entries in the books, the newest first; the limit counts transactions',
  request: { ...ofWallet, ...paged },
  responses: { 200: json('A page of entries', pageOf(line)), ...refusals },
});
const observationsRoute = createRoute({
  ...base,
  path: '/api/wallets/{addr}/observations',
  summary: 'Looks at it, the newest first',
  request: { ...ofWallet, ...paged },
  responses: { 200: json('A page of looks', pageOf(observation)), ...refusals },
});

export function addWallets(app: Api, deps: ApiDeps): void {
  const { db } = deps;
  app.openapi(guarded(deps, listRoute), async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const after = placeIn(cursor, isAddress) ?? '';
    const rows = await listWallets(db, { after, limit: limit + 1 });
    const keys = rows.slice(0, limit).map(({ key }) => key);
    const positions = await positionsOf(db, keys);
    return reply(
      c,
      page(
        rows,
        limit,
        (row) => shown(row, must(positions.get(row.key), 'position')),
        (row) => row.key,
      ),
      200,
    );
  });
  app.openapi(guarded(deps, findRoute), async (c) => {
    const found = await insistOnWallet(db, c.req.valid('param').addr);
    const positions = await positionsOf(db, [found.key]);
    return reply(c, shown(found, must(positions.get(found.key), 'position')), 200);
  });
  app.openapi(guarded(deps, statementRoute), async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const { addr } = await insistOnWallet(db, c.req.valid('param').addr);
    const before = placeIn(cursor, isRowNumber);
    const account = accountOfWallet(addr);
    const rows = await listTransactions(db, {
      account,
      ...(before === undefined ? {} : { before: BigInt(before) }),
      limit: limit + 1,
    });
    const { data, next_cursor } = page(
      rows,
      limit,
      (row) => linesOf(row, account),
      ({ id }) => id.toString(),
    );
    return reply(c, { data: data.flat(), next_cursor }, 200);
  });
  app.openapi(guarded(deps, observationsRoute), async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const { addr } = await insistOnWallet(db, c.req.valid('param').addr);
    const [startedAt, id] = placeIn(cursor, isObservationCursor)?.split(' ') ?? [];
    const before = id === undefined ? undefined : { startedAt: Number(startedAt), id };
    const target = targetName({ kind: 'wallet', addr });
    const rows = await listObservationsBefore(db, target, { before, limit: limit + 1 });
    return reply(
      c,
      page(rows, limit, observed, (row) => `${row.startedAt} ${row.id}`),
      200,
    );
  });
}

/** @throws Failure `not_found` */
async function insistOnWallet(db: Queryable, addr: string): Promise<Wallet> {
  const found = await findWallet(db, addressKey(addr));
  if (!found) throw new Failure('not_found');
  return found;
}

function isObservationCursor(place: string): boolean {
  const [startedAt = '', id = '', ...rest] = place.split(' ');
  return /^\d{1,14}$/.test(startedAt) && isId('obs', id) && rest.length === 0;
}

function shown(row: Wallet, position: Position) {
  const expected = position.ledgerBalance + position.unposted;
  return {
    addr: row.addr,
    status: row.status,
    opened_at: timeText(row.openedAt),
    verdict: row.verdict,
    cause: row.cause,
    ledger_balance: decimalText(position.ledgerBalance),
    unposted: decimalText(position.unposted),
    in_flight: decimalText(position.inFlight),
    unknown: decimalText(position.unknown),
    best_case: decimalText(expected + position.openUp),
    worst_case: decimalText(expected + position.openDown),
    observed_balance: decimalText(row.observedBalance),
    observed_at: timeText(row.observedAt),
    ledger_at_observation: decimalText(row.ledgerAtObservation),
    drift: decimalText(position.drift),
  };
}

/** The entries of one account in a transaction: one, or two when a wallet paid itself. */
function linesOf(transaction: Transaction, account: string) {
  const isOwn = (name: string) => addressKey(name) === addressKey(account);
  const counterparty = transaction.entries.flatMap((e) => (isOwn(e.account) ? [] : [e.account]));
  return transaction.entries
    .filter((entry) => isOwn(entry.account))
    .map((entry) => ({
      transaction_id: decimalText(transaction.id),
      effective_at: timeText(transaction.effectiveAt),
      recorded_at: timeText(transaction.recordedAt),
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

function observed(observation: StoredObservation) {
  const record = observation.record;
  const members = record !== null && typeof record === 'object' && !Array.isArray(record);
  const { balance, status } = members ? record : {};
  return {
    id: observation.id,
    started_at: timeText(observation.startedAt),
    ended_at: timeText(observation.endedAt),
    result: observation.result,
    cause: observation.cause,
    balance: decimalText(wholeOf(balance)),
    status: decimalText(wholeOf(status)),
  };
}
