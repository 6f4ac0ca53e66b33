/** Statements without a check: not visible to a client, or marked as not shown by the interface. */
import { type Statement, untestable } from '../statement.ts';

const NOT_SHOWN = 'not shown by the interface';
const OUTSIDE = 'happens outside of the service';

const rows: [section: string, title: string, reason: string][] = [
  ['1', 'An NFT contract id must be obtained separately before the NFT endpoints', OUTSIDE],
  ['1', 'Contracts were issued to the developer separately', OUTSIDE],
  ['2.8', 'The operator side registers Client ID, Client Secret and Redirect URI', OUTSIDE],
  ['2.8', "The Client Secret is kept on the developer's server", OUTSIDE],
  ['3', 'Transitions of the NFT token status', NOT_SHOWN],
  ['3', 'Transitions of the NFT token lock', NOT_SHOWN],
  ['3', 'Transitions of the wallet status', NOT_SHOWN],
  ['3', 'Transitions of the maintenance status', NOT_SHOWN],
  ['4', 'Address of the transaction endpoints in production', NOT_SHOWN],
  ['4', 'The {tx_url} host is the test-network host', 'an address is given to this program'],
  ['4.3', 'The content type header of transaction bodies', NOT_SHOWN],
  ['4.3', 'Allowed values of reasonType', NOT_SHOWN],
  ['4.3', 'Path and shape of the separate give operation for event payouts', NOT_SHOWN],
  ['4.3', 'The separate give operation guards against over-payment', NOT_SHOWN],
  ['4.3', 'operationNo is the number configured in the operator console', OUTSIDE],
  ['4.4', 'state is recommended against cross-site request forgery', 'advice to callers'],
  ['4.4', 'The authorization endpoints must be called from a server', 'advice to callers'],
  ['5', 'client_secret must stay secret and be used server-side only', 'advice to callers'],
  ['5', 'Client Credentials are for actions from the own addresses', 'advice to callers'],
  ['5', 'Unit of expires_in', NOT_SHOWN],
  ['5', 'Allowed values of scope', NOT_SHOWN],
  ['5', 'Lifetime and rotation of refresh tokens', NOT_SHOWN],
  ['6', 'Events, callbacks or webhooks', NOT_SHOWN],
  ['7.2', 'The HTTP-level code of account and transaction errors', NOT_SHOWN],
  ['7.2', 'Codes 999 and 499: retry later', 'advice to callers'],
  ['7.2', 'Messages contain placeholders', 'which words are replaced when is not shown'],
  ['7.3', 'HTTP 503: retry later', 'advice to callers'],
  ['8', 'Numeric value of the minimum transfer', NOT_SHOWN],
  ['8', 'Numeric value of the maximum per transfer', NOT_SHOWN],
  ['8', 'Numeric value of the 24-hour cumulative transfer limit', NOT_SHOWN],
  ['8', 'Default and maximum for page and perPage', NOT_SHOWN],
  ['8', 'Rate limits', NOT_SHOWN],
  ['9', 'Rules for introducing or retiring versions', NOT_SHOWN],
];

export const NOT_SHOWN_STATEMENTS: Statement[] = rows.map((row) => untestable(...row));
