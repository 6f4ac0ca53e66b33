/**
 * `/api/wallets`: ledger balance, open operations, observed balance and drift of each wallet; its
 * statement and its observations. Read-only.
 */
import { z } from '@hono/zod-openapi';
import type { Queryable } from '../../../db/connect.ts';
import { addressKey, isAddress } from '../../../kernel/addresses.ts';
import { wholeOf } from '../../../kernel/amounts.ts';
import { Failure, must } from '../../../kernel/errors.ts';
import { isId } from '../../../kernel/ids.ts';
import { membersOf } from '../../../kernel/json.ts';
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
  positionsOf,
  type Wallet,
} from '../../../reconciler/reconciler.ts';
import { statementLine, wallet, walletObservation } from '../../../resources/ledger/wallet.ts';
import type { Row } from '../../../resources/resource.ts';
import { shower } from '../../../resources/show.ts';
import type { ApiDeps } from '../../deps.ts';
import { numberPosition, page, pageOf, paging, readCursor } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { addressInput, filtersOf, schemaOf } from '../../http/schemas.ts';

const params = z.object({ addr: addressInput });
const query = z.strictObject(paging);
const base = { tag: 'wallets', scope: 'read' } as const;

type Deps = Pick<ApiDeps, 'db' | 'clock' | 'staleAfterMs'>;

export function addWallets(router: Router, { db, clock, staleAfterMs }: Deps): void {
  router.listOf({
    ...base,
    path: '/api/wallets',
    summary: 'List observed wallets, by address',
    request: z.object({ query: z.strictObject({ ...paging, ...filtersOf(wallet.filters) }) }),
    items: wallet,
    parsePosition: (text) => (isAddress(text) ? text : undefined),
    async list({ query: { stale, vanished } }, { after = '', limit }) {
      const observedBefore = stale ? clock.now() - staleAfterMs : undefined;
      const page = { after, limit, observedBefore, isVanished: vanished ?? false };
      return withPositions(db, await listWallets(db, page));
    },
    position: ({ addr }) => addressKey(addr),
  });
  router.answer({
    ...base,
    method: 'get',
    path: '/api/wallets/{addr}',
    summary: 'Read a wallet',
    request: z.object({ params }),
    response: 'The wallet',
    answer: wallet,
    async handle({ params: { addr } }) {
      const [shown] = await withPositions(db, [await getWallet(db, addr)]);
      return must(shown, 'wallet');
    },
  });
  addStatement(router, db);
  router.listOf({
    ...base,
    path: '/api/wallets/{addr}/observations',
    summary: 'List the observations of a wallet, newest first',
    request: z.object({ params, query }),
    items: walletObservation,
    parsePosition: observationPosition,
    async list({ params }, { after: before, limit }) {
      const { addr } = await getWallet(db, params.addr);
      const page = { before, limit };
      const found = await listObservationsBefore(db, targetName({ kind: 'wallet', addr }), page);
      return found.map(withRecord);
    },
    position: ({ unchangedSince, id }) => `${unchangedSince} ${id}`,
  });
}

function addStatement(router: Router, db: Queryable): void {
  const show = shower(statementLine);
  router.add({
    ...base,
    method: 'get',
    path: '/api/wallets/{addr}/statement',
    summary: 'List the ledger entries of a wallet, newest first; limit counts transactions',
    request: z.object({ params, query }),
    response: 'A page of entries',
    schema: pageOf(schemaOf(statementLine)),
    async handle({ params, query: { limit, cursor } }) {
      const account = accountOfWallet((await getWallet(db, params.addr)).addr);
      const before = readCursor(cursor, numberPosition);
      const rows = await listTransactions(db, { account, before, limit: limit + 1 });
      const { data, next_cursor } = page(
        rows,
        limit,
        (row) => statementLines(row, account).map(show),
        ({ id }) => id,
      );
      return { data: data.flat(), next_cursor };
    },
  });
}

/** @throws Failure `not_found` */
async function getWallet(db: Queryable, addr: string): Promise<Wallet> {
  const found = await findWallet(db, addressKey(addr));
  if (!found) throw new Failure('not_found');
  return found;
}

/** Wallets with their positions, read at once. */
async function withPositions(db: Queryable, wallets: Wallet[]): Promise<Row<typeof wallet>[]> {
  const positions = await positionsOf(
    db,
    wallets.map(({ key }) => key),
  );
  return wallets.map((found) => {
    const position = must(positions.get(found.key), 'position');
    const expected = position.ledgerBalance + position.unposted;
    return {
      ...found,
      ...position,
      bestCase: expected + position.openUp,
      worstCase: expected + position.openDown,
    };
  });
}

function observationPosition(text: string) {
  const [since = '', id = '', ...rest] = text.split(' ');
  const valid = /^\d{1,14}$/.test(since) && isId('obs', id) && rest.length === 0;
  return valid ? { unchangedSince: Number(since), id } : undefined;
}

/** One line, or two when the wallet paid itself. */
function statementLines(transaction: Transaction, account: string): Row<typeof statementLine>[] {
  const isOwn = (name: string) => addressKey(name) === addressKey(account);
  const { id: transactionId, entries, reverses, fee } = transaction;
  const feeOf = (amount: bigint) => {
    if (amount > 0n === (reverses === null)) return 0n;
    return reverses === null ? fee : -fee;
  };
  const counterparty = entries.flatMap((entry) => (isOwn(entry.account) ? [] : [entry.account]));
  return entries
    .filter((entry) => isOwn(entry.account))
    .map((entry) => {
      const line = { ...transaction, ...entry, transactionId, counterparty };
      return { ...line, fee: feeOf(entry.amount) };
    });
}

/** Balance and status are null in a record that has none. */
function withRecord(observation: StoredObservation): Row<typeof walletObservation> {
  const { record } = observation;
  const { balance, status } = membersOf(record);
  return { ...observation, balance: wholeOf(balance) ?? null, status: wholeOf(status) ?? null };
}
