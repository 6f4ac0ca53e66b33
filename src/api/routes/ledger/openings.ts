/**
 * `GET /api/openings`: since when and with what balance wallets are known, for the balance proof of
 * an import. Read-only.
 */
import { z } from '@hono/zod-openapi';
import { addressKey } from '../../../kernel/addresses.ts';
import { hasDueReports, openingAmounts, openingsOf } from '../../../ledger/ledger.ts';
import { accountKey, accountOfWallet } from '../../../operations/operations.ts';
import { positionsOf, walletsByKey } from '../../../reconciler/reconciler.ts';
import { openings } from '../../../resources/ledger/ledger.ts';
import type { ApiDeps } from '../../deps.ts';
import { addressInput } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';

const ADDRS_MAX = 100;

const addr = z
  .union([addressInput.transform((one) => [one]), z.array(addressInput).max(ADDRS_MAX)])
  .openapi({ description: `Repeated for each wallet, at most ${ADDRS_MAX}` });

export function addOpenings(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  router.answer({
    tag: 'ledger',
    scope: 'read',
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
