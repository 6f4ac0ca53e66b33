/**
 * `GET /api/openings`: since when and with what balance wallets are known, for the balance proof of
 * an import. Read-only.
 */
import { z } from '@hono/zod-openapi';
import { addressKey } from '../../../kernel/addresses.ts';
import { decimalText } from '../../../kernel/amounts.ts';
import { hasDueReports, openingAmounts, openingsOf } from '../../../ledger/ledger.ts';
import { accountKey, accountOfWallet } from '../../../operations/operations.ts';
import { positionsOf, walletsByKey } from '../../../reconciler/reconciler.ts';
import type { ApiDeps } from '../../deps.ts';
import { addressInput, decimal, instant, instantText } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';

const ADDRS_MAX = 100;

const opening = z
  .object({
    addr: z.string(),
    opening: decimal.nullable().openapi({ description: 'Null without an opening' }),
    opened_at: instant.nullable().openapi({
      description:
        'The observation that the opening rests on; what took effect before is part of it',
    }),
    known_since: instant.nullable().openapi({
      description: 'Where the opening stands: before opened_at when older entries moved it',
    }),
    observed_at: instant.nullable(),
    drift: decimal.openapi({ description: 'Sum of its open drifts' }),
  })
  .openapi('Opening');

const addr = z
  .union([addressInput.transform((one) => [one]), z.array(addressInput).max(ADDRS_MAX)])
  .openapi({ description: `Repeated for each wallet, at most ${ADDRS_MAX}` });

export function addOpenings(router: Router, { db }: Pick<ApiDeps, 'db'>): void {
  router.add({
    tag: 'ledger',
    scope: 'read',
    method: 'get',
    path: '/api/openings',
    summary: 'List the openings of wallets',
    request: z.object({ query: z.strictObject({ addr }) }),
    response: 'The wallets in the order of the request',
    schema: z.object({
      data: z.array(opening),
      posting: z
        .boolean()
        .openapi({ description: 'True while reported operations are not posted' }),
    }),
    async handle({ query }) {
      // First: what is posted after it changes an opening and its entries by the same amount.
      const posting = await hasDueReports(db);
      const keys = query.addr.map(addressKey);
      const accounts = keys.map(accountOfWallet);
      const openings = await openingsOf(db, accounts);
      const amounts = await openingAmounts(db, accounts);
      const wallets = await walletsByKey(db, keys);
      const positions = await positionsOf(db, [...new Set(keys)]);
      const data = query.addr.map((name) => {
        const key = addressKey(name);
        const account = accountKey(accountOfWallet(key));
        const found = openings.get(account);
        return {
          addr: name,
          opening: found ? decimalText(amounts.get(account) ?? 0n) : null,
          opened_at: instantText(found?.seenAt ?? null),
          known_since: instantText(found?.effectiveAt ?? null),
          observed_at: instantText(wallets.get(key)?.observedAt ?? null),
          drift: decimalText(positions.get(key)?.drift ?? 0n),
        };
      });
      return { data, posting };
    },
  });
}
