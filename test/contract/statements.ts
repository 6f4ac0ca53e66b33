/** Every statement of the interface, in the order in which they are checked. */
import { ACCOUNTS } from './accounts.ts';
import { AUTHORIZATION } from './authorization.ts';
import { ERRORS_AUTHORIZATION } from './errors-authorization.ts';
import { ERRORS_NFT } from './errors-nft.ts';
import { CUMULATIVE_LIMIT, ERRORS_PAYMENTS } from './errors-payments.ts';
import { LIMITS } from './limits.ts';
import { MAINTENANCE } from './maintenance.ts';
import { MINT_INPUT } from './mint-input.ts';
import { NFT_READS } from './nft-reads.ts';
import { NFT_WRITES } from './nft-writes.ts';
import { NOT_SHOWN_STATEMENTS } from './not-shown.ts';
import type { Statement } from './statement.ts';
import { STATE_MOVES, TOKEN_LIFE } from './states.ts';
import { TOKEN_GRANTS } from './token-grants.ts';
import { TOKEN_KINDS } from './token-kinds.ts';
import { TOKEN_RECORD } from './token-record.ts';
import { TRANSACTIONS } from './transactions.ts';
import { PAYMENT_RESULT, WALLET_RECORD } from './wallet-record.ts';

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
  // Days pass here, so these stand last.
  ...TOKEN_LIFE,
  ...CUMULATIVE_LIMIT,
];
