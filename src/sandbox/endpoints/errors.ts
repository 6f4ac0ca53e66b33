/**
 * The errors of the service: the statuses of section 7.1, the codes of 7.2 and the details of 7.3,
 * each in the shape of its family. Endpoints throw a Refusal; any other error becomes the family's
 * internal error.
 */
import type { Switches } from '../state/switches.ts';
import { type Answer, type Family, jsonAnswer } from './call.ts';

const NFT_STATUSES = {
  400: 'Validation error',
  401: 'Unauthorized',
  404: 'URL does not exist',
  422: 'The request cannot be processed',
  500: 'Internal server error',
} as const;
type NftStatus = keyof typeof NFT_STATUSES;

/** Placeholders in messages begin with a colon. */
export const ACCOUNT_CODES = {
  999: 'Unidentified error. Please try again later.',
  997: 'Invalid parameter value.',
  499: 'Balance lookup error. Please try again later.',
  401: 'Unauthorized.',
  399: 'Invalid parameter value.',
  398: 'The wallet address of the account was not found.',
  397: 'Wrong app number setting for the deposit or withdrawal target (:method).',
  396: 'The transaction record does not exist.',
  199: 'The wallet address is withdrawn or under sanction.',
  198: 'The balance is too low to send. Current balance: :amount',
  197: 'Changing the member wallet status failed.',
  196: 'The balance is too low including the fee. Balance: :amount, to send: :sendAmount',
  299: 'The amount is zero or negative.',
  298: 'The amount is not an integer.',
  297: 'The amount is below the minimum transfer of :transferMin.',
  296: 'The amount is above the maximum transfer of :transferMax.',
  295: 'The amount would exceed the limit of :onedayLimit in 24 hours. Sent: :onedaySendAmount',
  294: 'The received amount after the fee would be fractional: :recvAmount',
} as const;
/** The service failed; the others refuse the request with 406. */
const ACCOUNT_FAILURES = [999, 997, 499];
type AccountCode = keyof typeof ACCOUNT_CODES;

const OAUTH_DETAILS = {
  invalid_request: 'Wrong parameter or malformed request',
  invalid_token: 'The access token is expired, malformed or otherwise invalid',
  invalid_grant: 'Authentication failed because of the grant type, an expiry or similar',
  unauthorized_client: 'The authorization code was not authorized',
  unsupported_response_type: 'The response type is not defined',
  redirect_uri_mismatch: 'The redirect URI is not allowed',
} as const;
type OauthDetail = keyof typeof OAUTH_DETAILS;

const OAUTH_STATUSES: Record<number, string> = {
  400: 'Bad request or invalid parameter',
  401: 'Authentication failed for lack of authority',
  403: 'The URI is not accessible',
  404: 'URL not found or no result',
  500: 'Authorization server error',
  503: 'System under maintenance, please retry later',
};

/** An entry of the error list of an NFT response. */
export interface FieldError {
  message: string;
  field: string;
  validation: string;
}

/** The service refuses the request; the response depends on the switch for HTTP codes. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly answer: (switches: Switches) => Answer;

  constructor(what: string, answer: (switches: Switches) => Answer) {
    super(what);
    this.answer = answer;
  }
}

/** An error of section 7.1: HTTP 200, the status in the body. */
export function nftRefusal(status: NftStatus, ...fieldErrors: FieldError[]): Refusal {
  const error =
    fieldErrors.length > 0
      ? fieldErrors
      : [{ message: NFT_STATUSES[status], field: '', validation: '' }];
  return new Refusal(`nft ${status}`, () => jsonAnswer(200, { status, error }));
}

/** 422 for one field, with the rule that was broken. */
export function unprocessable(field: string, validation: string, message: string): Refusal {
  return nftRefusal(422, { message, field, validation });
}

/** An error of section 7.2. @param figures values for the placeholders of its message */
export function accountRefusal(
  code: AccountCode,
  figures: Record<string, bigint | string> = {},
): Refusal {
  const status = ACCOUNT_FAILURES.includes(code) ? 500 : 406;
  const message = ACCOUNT_CODES[code].replace(/:([a-zA-Z]+)/g, (word, name: string) =>
    name in figures ? String(figures[name]) : word,
  );
  const body = { status: String(status), error: { code: String(code), message } };
  return new Refusal(`account ${code}`, (switches) =>
    jsonAnswer(switches.error_http === 'ok' ? 200 : status, body),
  );
}

/** An error of section 7.3 with HTTP 400. */
export function oauthRefusal(detail: OauthDetail): Refusal {
  return new Refusal(`oauth ${detail}`, () => oauthAnswer(400, OAUTH_DETAILS[detail], detail));
}

/** Another HTTP status of the authorization endpoints. */
export function oauthStatus(status: number): Refusal {
  return new Refusal(`oauth ${status}`, () => failure('oauth', status));
}

function oauthAnswer(status: number, message: string, detail: string): Answer {
  const error = { code: status, message, detail, data: null, errors: {} };
  return jsonAnswer(status, { status, error });
}

/** An HTTP status outside the tables (429, 502, 503 …), in the shape of the family. */
export function failure(family: Family, status: number, message?: string): Answer {
  const text = message ?? OAUTH_STATUSES[status] ?? `HTTP status ${status}`;
  switch (family) {
    case 'nft':
      return jsonAnswer(status, { status, error: [{ message: text, field: '', validation: '' }] });
    case 'account': {
      const error = { code: String(status), message: text };
      return jsonAnswer(status, { status: String(status), error });
    }
    case 'oauth':
      return oauthAnswer(status, text, status === 400 ? 'invalid_request' : text);
  }
}

/** The response to a path or method that the service does not have. */
export function absentAnswer(family: Family, switches: Switches): Answer {
  return family === 'nft' ? nftRefusal(404).answer(switches) : failure(family, 404);
}

/** The response to an unexpected error. */
export function internalError(family: Family, switches: Switches): Answer {
  if (family === 'nft') return nftRefusal(500).answer(switches);
  return family === 'account' ? accountRefusal(999).answer(switches) : failure('oauth', 500);
}

/** Whether any family documents this error. */
export function isErrorCode(code: string): boolean {
  return isNftStatus(Number(code)) || isAccountCode(Number(code)) || isOauthDetail(code);
}

/**
 * The documented error with that code; the internal error if the family does not have it.
 * @param figures values for the placeholders of its message
 */
export function refusalByCode(
  family: Family,
  code: string,
  figures: Record<string, bigint | string>,
): Refusal {
  const number = Number(code);
  switch (family) {
    case 'nft':
      return nftRefusal(isNftStatus(number) ? number : 500);
    case 'account':
      return accountRefusal(isAccountCode(number) ? number : 999, figures);
    case 'oauth':
      return isOauthDetail(code) ? oauthRefusal(code) : oauthStatus(500);
  }
}

const isNftStatus = (code: number): code is NftStatus => Object.hasOwn(NFT_STATUSES, code);
const isAccountCode = (code: number): code is AccountCode => Object.hasOwn(ACCOUNT_CODES, code);
const isOauthDetail = (code: string): code is OauthDetail => Object.hasOwn(OAUTH_DETAILS, code);
