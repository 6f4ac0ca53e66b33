/** All statements of the interface, in the order of their checks. */

import { ERRORS_AUTHORIZATION } from './authorization/errors.ts';
import { AUTHORIZATION } from './authorization/grants.ts';
import { MAINTENANCE } from './authorization/maintenance.ts';
import { TOKEN_GRANTS } from './authorization/token-records.ts';
import { LIMITS } from './general/limits.ts';
import { NOT_SHOWN_STATEMENTS } from './general/not-shown.ts';
import { STATE_MOVES, TOKEN_LIFE } from './general/states.ts';
import { TOKEN_KINDS } from './general/token-kinds.ts';
import { ERRORS_NFT } from './nft/errors.ts';
import { MINT_INPUT } from './nft/mint-input.ts';
import { NFT_READS } from './nft/reads.ts';
import { TOKEN_RECORD } from './nft/token-record.ts';
import { NFT_WRITES } from './nft/writes.ts';
import { ACCOUNTS } from './payments/accounts.ts';
import { CUMULATIVE_LIMIT, ERRORS_PAYMENTS } from './payments/errors.ts';
import { TRANSACTIONS } from './payments/transactions.ts';
import { PAYMENT_RESULT, WALLET_RECORD } from './payments/wallet-record.ts';
import type { Statement } from './statement.ts';

export const STATEMENTS: readonly Statement[] = [
  ...LIMITS,
  ...TOKEN_RECORD,
  ...MINT_INPUT,
  ...WALLET_RECORD,
  ...PAYMENT_RESULT,
  ...TOKEN_GRANTS,
  ...NFT_WRITES,
  ...NFT_READS,
  ...ACCOUNTS,
  ...TRANSACTIONS,
  ...AUTHORIZATION,
  ...TOKEN_KINDS,
  ...ERRORS_NFT,
  ...ERRORS_PAYMENTS,
  ...ERRORS_AUTHORIZATION,
  ...STATE_MOVES,
  ...MAINTENANCE,
  ...NOT_SHOWN_STATEMENTS,
  // These move the clock by days, so they come last.
  ...TOKEN_LIFE,
  ...CUMULATIVE_LIMIT,
];
