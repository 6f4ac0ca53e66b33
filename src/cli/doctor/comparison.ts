/** Compares what the database holds of wallets and tokens with what a service shows at present. */
import type { Db } from '../../db/connect.ts';
import { sameAddress, txHashKey } from '../../kernel/addresses.ts';
import {
  listContracts,
  listTokens,
  listWallets,
  positionsOf,
  type Token,
} from '../../reconciler/reconciler.ts';
import type { TokenRecord, Upstream } from '../../upstream/upstream.ts';

export interface WalletDifference {
  addr: string;
  /** The ledger with what is due to be posted. */
  expected: bigint;
  shown: bigint;
  /** The sum of open drifts, which have been found since or were known before. */
  drift: bigint;
  /** The sums of open operations, which may explain the difference. */
  openUp: bigint;
  openDown: bigint;
}

interface TokenDifference {
  contractId: bigint;
  tokenId: bigint;
  /** `not_here`: the service shows a token that this database does not have. */
  difference: 'not_here' | 'not_shown' | 'changed';
}

export interface Comparison {
  wallets: { compared: number; unreadable: number; different: WalletDifference[] };
  tokens: { compared: number; unreadable: number; different: TokenDifference[] };
}

export function comparisonLines({ wallets, tokens }: Comparison): string[] {
  return [
    `${wallets.compared} wallets compared, ${wallets.unreadable} unreadable; ${found(wallets)}`,
    ...wallets.different.map(
      ({ addr, expected, shown, drift, openUp, openDown }) =>
        `  ${addr}  ledger ${expected}  service ${shown}  drift ${drift}` +
        `  open ${openUp} ${openDown}`,
    ),
    `${tokens.compared} tokens compared, ${tokens.unreadable} contracts unreadable; ` +
      found(tokens),
    ...tokens.different.map(
      ({ contractId, tokenId, difference }) => `  ${contractId}/${tokenId}  ${difference}`,
    ),
  ];
}

function found({ different }: { different: readonly unknown[] }): string {
  return different.length === 0 ? 'none differs' : 'different:';
}

/** As JSON. */
export function comparisonRows({ wallets, tokens }: Comparison) {
  return {
    wallets: {
      compared: wallets.compared,
      unreadable: wallets.unreadable,
      different: wallets.different.map((wallet) => ({
        addr: wallet.addr,
        expected: wallet.expected.toString(),
        shown: wallet.shown.toString(),
        drift: wallet.drift.toString(),
        open_up: wallet.openUp.toString(),
        open_down: wallet.openDown.toString(),
      })),
    },
    tokens: {
      compared: tokens.compared,
      unreadable: tokens.unreadable,
      different: tokens.different.map(({ contractId, tokenId, difference }) => ({
        contract_id: contractId.toString(),
        token_id: tokenId.toString(),
        difference,
      })),
    },
  };
}

const PER_PAGE = 100;
const CONTRACTS_MAX = 100;

/**
 * Compares what this database holds with what the service shows at present, within the budget of
 * polls: at most `limit` wallets and about as many tokens.
 */
export async function compareWithService(
  db: Db,
  upstream: Upstream,
  limit: number,
): Promise<Comparison> {
  return {
    wallets: await compareWallets(db, upstream, limit),
    tokens: await compareTokens(db, upstream, limit),
  };
}

async function compareWallets(db: Db, upstream: Upstream, limit: number) {
  const result: Comparison['wallets'] = { compared: 0, unreadable: 0, different: [] };
  const wallets = await listWallets(db, { after: '', limit });
  const opened = wallets.filter(({ openedAt }) => openedAt !== null);
  const positions = await positionsOf(
    db,
    opened.map(({ key }) => key),
  );
  for (const { key, addr } of opened) {
    const seen = await upstream.account(addr, 'pending');
    const position = positions.get(key);
    if (seen.result !== 'seen' || !position) {
      result.unreadable += 1;
      continue;
    }
    result.compared += 1;
    const { drift, openUp, openDown } = position;
    const expected = position.ledgerBalance + position.unposted;
    const shown = seen.record.balance;
    if (shown !== expected)
      result.different.push({ addr, expected, shown, drift, openUp, openDown });
  }
  return result;
}

async function compareTokens(db: Db, upstream: Upstream, limit: number) {
  const result: Comparison['tokens'] = { compared: 0, unreadable: 0, different: [] };
  for (const contractId of await listContracts(db, CONTRACTS_MAX)) {
    if (result.compared >= limit) break;
    const most = limit - result.compared;
    const shown = await shownTokens(upstream, contractId, most);
    if (shown === undefined) {
      result.unreadable += 1;
      continue;
    }
    const held = new Map<bigint, Token>();
    for (const token of await listTokens(db, { contractId, after: undefined, limit: most + 1 }))
      if (token.presence === 'present') held.set(token.tokenId, token);
    result.compared += Math.max(shown.rows.size, held.size);
    const ids = new Set([...shown.rows.keys(), ...held.keys()]);
    // Beyond the limit of either list nothing is known about the other.
    const isWhole = shown.isWhole && held.size <= most;
    for (const tokenId of ids) {
      const difference = differenceOf(held.get(tokenId), shown.rows.get(tokenId));
      if (difference && (isWhole || difference === 'changed'))
        result.different.push({ contractId, tokenId, difference });
    }
  }
  return result;
}

async function shownTokens(upstream: Upstream, contractId: bigint, most: number) {
  const rows = new Map<bigint, TokenRecord>();
  for (let page = 1; ; page++) {
    const seen = await upstream.tokens(contractId, { page, perPage: PER_PAGE }, 'pending');
    if (seen.result !== 'seen') return undefined;
    for (const row of seen.record.tokens) rows.set(row.tokenId, row);
    if (page >= seen.record.lastPage) return { rows, isWhole: true };
    if (rows.size >= most) return { rows, isWhole: false };
  }
}

function differenceOf(
  held: Token | undefined,
  shown: TokenRecord | undefined,
): TokenDifference['difference'] | undefined {
  if (!held) return 'not_here';
  if (!shown) return 'not_shown';
  const isSame =
    sameAddress(held.owner, shown.owner) &&
    txHashKey(held.lastTxHash ?? '') === txHashKey(shown.lastTxHash);
  return isSame ? undefined : 'changed';
}
