/** The class of every answer to a write: each code of sections 7.1 to 7.3, and unnamed answers. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonText } from '../../src/kernel/json.ts';
import type { Answer, ExchangeResult } from '../../src/upstream/http/exchange.ts';
import {
  classifyExchange,
  type ForwardFamily,
  isUnauthorized,
  rateSignalOf,
} from '../../src/upstream/parse/outcome.ts';

const NOW = Date.UTC(2026, 0, 1);
const HASH = `0x${'ab'.repeat(32)}`;

const times = { startedAt: NOW, endedAt: NOW };

function answer(status: number, body: unknown, headers: [string, string][] = []): Answer {
  const bytes =
    body instanceof Uint8Array
      ? body
      : Buffer.from(typeof body === 'string' ? body : jsonText(body));
  return { status, headers, body: bytes, complete: true };
}
const classify = (
  status: number,
  body: unknown,
  family: ForwardFamily = 'transaction',
  headers: [string, string][] = [],
) => classifyExchange({ ...times, end: 'answered', answer: answer(status, body, headers) }, family);

/** Section 7.1: an error of the NFT endpoints. */
const nft = (status: number | string, message = 'no') => ({
  status,
  error: [{ message, field: '', validation: '' }],
});
/** Section 7.2: an error of the account and transaction endpoints. */
const account = (status: number | string, code: number | string, message = 'no') => ({
  status,
  error: { code, message },
});
/** Section 7.3: an error of the authorization endpoints. */
const oauth = (status: number, detail: string) => ({
  status,
  error: { code: status, message: 'no', detail, data: null, errors: {} },
});

describe('An error of section 7.1, under any HTTP status, with its status as number or text,', () => {
  it.each([
    [400, 'rejected'],
    [401, 'rejected'],
    [404, 'rejected'],
    [422, 'rejected'],
    [500, 'unknown'],
  ])('%i is %s', (status, expected) => {
    for (const http of [200, 400, 406, 500])
      for (const written of [status, String(status)])
        expect(classify(http, nft(written), 'nft')).toMatchObject({ class: expected });
  });

  it('keeps the fields of a validation error in its message', () => {
    const error = [
      { message: 'is too long', field: 'metaData', validation: 'max' },
      { message: 'Bad', field: '', validation: '' },
    ];
    expect(classify(200, { status: 422, error }, 'nft')).toEqual({
      class: 'rejected',
      status: 422,
      code: '422',
      message: 'metaData: is too long; Bad',
    });
  });
});

describe('An error of section 7.2, under any HTTP status, as numbers or texts,', () => {
  const rows: [status: number, code: number, expected: string][] = [
    [500, 999, 'unknown'],
    [500, 997, 'rejected'],
    [500, 499, 'unknown'],
    ...[401, 399, 398, 397, 396, 199, 198, 197, 196].map((code): [number, number, string] => [
      406,
      code,
      'rejected',
    ]),
    ...[299, 298, 297, 296, 295, 294].map((code): [number, number, string] => [
      406,
      code,
      'rejected',
    ]),
  ];
  it.each(rows)('%i/%i is %s', (status, code, expected) => {
    for (const http of [200, 400, 406, 422, 500, 502])
      for (const body of [account(status, code), account(String(status), String(code))]) {
        const outcome = classify(http, body);
        expect(outcome.class).toBe(expected);
        if (outcome.class === 'rejected')
          expect(outcome).toMatchObject({ status, code: String(code), message: 'no' });
      }
  });
});

describe('An error of section 7.3', () => {
  it.each([
    'invalid_request',
    'invalid_token',
    'invalid_grant',
    'unauthorized_client',
    'unsupported_response_type',
    'redirect_uri_mismatch',
  ])('with status 400 and detail %s is rejected', (detail) => {
    const outcome = classify(400, oauth(400, detail), 'read');
    expect(outcome).toMatchObject({ class: 'rejected', status: 400, code: detail });
  });

  it.each([
    [401, 'rejected'],
    [403, 'rejected'],
    [404, 'rejected'],
    [500, 'unknown'],
    [503, 'unknown'],
  ])('with HTTP %i and no body is %s', (status, expected) => {
    expect(classify(status, '', 'read')).toMatchObject({ class: expected });
  });
});

describe('A refusal', () => {
  it.each<[string, number, unknown, 'credential' | 'rights' | undefined]>([
    ['7.1 401', 200, nft(401), 'credential'],
    ['7.1 401 as text', 200, nft('401'), 'credential'],
    ['7.1 403', 200, nft(403), 'rights'],
    ['7.1 400', 200, nft(400), undefined],
    ['7.1 404', 200, nft(404), undefined],
    ['7.1 422', 200, nft(422), undefined],
    ['7.2 406/401', 406, account('406', '401'), 'credential'],
    ['7.2 406/401 as numbers', 200, account(406, 401), 'credential'],
    ['7.2 406/401 under HTTP 500', 500, account('406', '401'), 'credential'],
    ['7.2 406/403', 406, account('406', '403'), 'rights'],
    ['7.2 401/401', 401, account('401', '401'), 'credential'],
    ['7.2 403/any', 403, account('403', 'E7'), 'rights'],
    ['7.2 400/401', 400, account('400', '401'), 'credential'],
    ['7.2 500/997', 500, account('500', '997'), undefined],
    ...[399, 398, 397, 396, 199, 198, 197, 196, 299, 298, 297, 296, 295, 294].map(
      (code): [string, number, unknown, undefined] => [
        `7.2 406/${code}`,
        406,
        account(406, code),
        undefined,
      ],
    ),
    ['7.3 invalid_token', 400, oauth(400, 'invalid_token'), 'credential'],
    ['7.3 invalid_grant', 400, oauth(400, 'invalid_grant'), 'credential'],
    ['7.3 unauthorized_client', 400, oauth(400, 'unauthorized_client'), 'rights'],
    ['7.3 invalid_request', 400, oauth(400, 'invalid_request'), undefined],
    ['7.3 unsupported_response_type', 400, oauth(400, 'unsupported_response_type'), undefined],
    ['7.3 redirect_uri_mismatch', 400, oauth(400, 'redirect_uri_mismatch'), undefined],
    ['7.3 401', 401, oauth(401, 'unauthorized'), 'credential'],
    ['HTTP 401 with a page', 401, '<html>', 'credential'],
    ['HTTP 401 of a standard server', 401, { error: 'invalid_token' }, 'credential'],
    ['HTTP 403 with nothing', 403, '', 'rights'],
    ['HTTP 403 with an error of the request', 403, account('406', '198'), undefined],
    ['HTTP 404 with nothing', 404, '', undefined],
    ['a code of a prototype', 406, account('406', 'constructor'), undefined],
  ])('%s refuses the credential, the rights, or the request', (_title, http, body, refuses) => {
    for (const family of ['transaction', 'nft', 'other'] as const) {
      const outcome = classify(http, body, family);
      expect(outcome).toMatchObject({ class: 'rejected' });
      expect(outcome.class === 'rejected' && outcome.refuses).toBe(refuses);
      expect(isUnauthorized(outcome)).toBe(refuses === 'credential');
    }
  });

  it('that is no proof is no refusal: 500/401 is unknown', () => {
    expect(classify(500, account('500', '401')).class).toBe('unknown');
  });
});

describe('An answer in none of the shapes', () => {
  const rejected = [400, 401, 403, 404, 405, 406, 422];
  const unknown = [301, 302, 304, 402, 408, 409, 410, 413, 415, 451, 500, 501, 502, 503, 504, 599];
  it.each([...rejected.map((s) => [s, 'rejected']), ...unknown.map((s) => [s, 'unknown'])])(
    'with HTTP %i is %s',
    (status, expected) => {
      for (const body of ['', '<html>nginx</html>', '{}', '[]', 'null', '{"status":true}'])
        expect(classify(Number(status), body).class).toBe(expected);
    },
  );

  it.each(['', '<html>', '{"status":200,"data":{"tx_log_no"', '{}', '[1]'])(
    'with HTTP 200 and body %j is unknown',
    (body) => {
      expect(classify(200, body).class).toBe('unknown');
    },
  );
});

describe('An answer with', () => {
  it.each([
    ['HTTP 503 in the shape of 7.1', 503, { status: 503, message: 'Service is under maintenance' }],
    ['HTTP 503 in the shape of 7.2', 503, account('503', '503', 'Maintenance until nine')],
    ['HTTP 503 in the shape of 7.3', 503, oauth(503, 'System under maintenance, retry later')],
    ['HTTP 503 with a page', 503, '<h1>The service is UNDER\n MAINTENANCE</h1>'],
    ['a 503 in a body of HTTP 200', 200, nft(503, 'under maintenance')],
  ])('%s is maintenance', (_title, http, body) => {
    expect(classify(http, body)).toEqual({ class: 'unavailable', reason: 'maintenance' });
  });

  it.each([
    ['is empty', ''],
    ['has another reason', account('503', '503', 'backend gone')],
    ['names several reasons', 'unable to serve due to maintenance downtime or capacity problems'],
  ])('a 503 that %s is unknown, with and without Retry-After', (_title, body) => {
    expect(classify(503, body).class).toBe('unknown');
    expect(classify(503, body, 'nft', [['Retry-After', '5']]).class).toBe('unknown');
  });

  it('a 500 that mentions maintenance is unknown', () => {
    expect(classify(500, account(500, 999, 'under maintenance')).class).toBe('unknown');
  });

  it.each([
    ['HTTP', 429, ''],
    ['HTTP with any body', 429, account(406, 299)],
    ['the body', 200, account('429', '429')],
  ])('429 of %s is a throttling until the deadline', (_title, http, body) => {
    expect(classify(http, body)).toEqual({ class: 'unavailable', reason: 'throttled' });
    expect(classify(http, body, 'nft', [['retry-AFTER', '3600']])).toEqual({
      class: 'unavailable',
      reason: 'throttled',
      retryAt: NOW + 3_600_000,
    });
  });
});

describe('A success envelope', () => {
  it.each<[ForwardFamily, object, object]>([
    ['transaction', { tx_app_no: 7, tx_log_no: 8 }, { txAppNo: 7n, txLogNo: 8n }],
    ['transaction', { tx_app_no: '7', tx_log_no: '8' }, { txAppNo: 7n, txLogNo: 8n }],
    ['transaction', { tx_log_no: 8 }, { txLogNo: 8n }],
    ['nft', { tx_hash: HASH }, { txHash: HASH }],
    ['nft', { tx_hash: HASH, tokenId: 5 }, { txHash: HASH, tokenId: 5n }],
    ['other', { tx_log_no: 8, more: [1] }, { txLogNo: 8n }],
    ['other', {}, {}],
    ['read', { tx_hash: 'short' }, {}],
  ])('of family %s with %j is accepted', (family, data, ids) => {
    for (const status of [200, '200'])
      expect(classify(200, { status, data }, family)).toEqual({ class: 'accepted', ...ids });
  });

  it('keeps every digit of its numbers', () => {
    const whole = fc.bigInt({ min: 1n, max: 10n ** 60n - 1n });
    fc.assert(
      fc.property(whole, whole, fc.boolean(), (app, log, asText) => {
        const data = asText
          ? { tx_app_no: String(app), tx_log_no: String(log) }
          : { tx_app_no: app, tx_log_no: log };
        const outcome = classify(200, { status: 200, data });
        expect(outcome).toEqual({ class: 'accepted', txAppNo: app, txLogNo: log });
      }),
    );
  });

  it.each<[ForwardFamily, unknown]>([
    ['transaction', {}],
    ['transaction', { tx_app_no: 7 }],
    ['transaction', { tx_log_no: 1.5 }],
    ['transaction', { tx_log_no: null }],
    ['nft', { tx_hash: '' }],
    ['nft', { tx_hash: HASH.slice(1) }],
    ['nft', { tokenId: 5 }],
    ['nft', []],
    ['transaction', null],
  ])('of family %s with %j lacks its number and is unknown', (family, data) => {
    const outcome = classify(200, { status: 200, data }, family);
    expect(outcome).toMatchObject({ class: 'unknown', cause: 'no_number' });
  });

  it.each([302, 400, 401, 429, 500, 503])(
    'under HTTP %i contradicts itself and is unknown',
    (http) => {
      const body = { status: 200, data: { tx_log_no: 1, note: 'under maintenance' } };
      const cause = http < 500 ? 'unexpected' : 'server_error';
      expect(classify(http, body)).toMatchObject({ class: 'unknown', cause });
    },
  );

  it('with an error beside its data is unknown', () => {
    const body = { status: 200, data: { tx_log_no: 1 }, error: { code: '1', message: 'no' } };
    expect(classify(200, body).class).toBe('unknown');
  });

  it('is not required of a read', () => {
    expect(classify(200, { access_token: 'x' }, 'read')).toEqual({ class: 'accepted' });
    expect(classify(302, '', 'read')).toEqual({ class: 'accepted' });
  });
});

describe('An exchange without a complete answer', () => {
  it('that sent nothing is not_sent', () => {
    const exchanged = { ...times, end: 'not_sent', cause: 'tls_expired' } as const;
    expect(classifyExchange(exchanged, 'nft')).toEqual({ class: 'not_sent', cause: 'tls_expired' });
  });

  it.each([200, 401, 406, 429, 503])('that broke under HTTP %i is unknown', (status) => {
    const cut = { ...answer(status, nft(status, 'under maintenance')), complete: false };
    const exchanged = { ...times, end: 'broken', cause: 'truncated', answer: cut } as const;
    const outcome = classifyExchange(exchanged, 'nft');
    expect(outcome).toEqual({ class: 'unknown', cause: 'truncated', status });
  });
});

it('No bytes make the classification throw, and only a success envelope is accepted', () => {
  const noise = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.json().map(Buffer.from));
  fc.assert(
    fc.property(noise, fc.integer({ min: 200, max: 599 }), (body, status) => {
      expect(classify(status, body).class).not.toBe('accepted');
    }),
  );
});

it('A credential in a message is masked', () => {
  const outcome = classify(200, account(406, 401, 'bad Bearer abc.def-ghi given'));
  expect(outcome).toMatchObject({ message: 'bad Bearer [secret] given' });
});

describe('An unknown outcome says why', () => {
  it.each<[string, number, unknown, ForwardFamily, string]>([
    ['an error of the service', 200, account(500, 999), 'transaction', 'server_error'],
    ['an error under HTTP 500', 500, account(409, 1), 'transaction', 'server_error'],
    ['an error of status 500 under 400', 400, account(500, 999), 'transaction', 'server_error'],
    ['an error that no section names', 200, account(409, 1), 'transaction', 'unexpected'],
    ['an error just below', 499, account(499, 1), 'transaction', 'unexpected'],
    ['nothing under HTTP 500', 500, '', 'transaction', 'server_error'],
    ['nothing under HTTP 500, of a read', 500, '', 'read', 'server_error'],
    ['nothing under HTTP 409', 409, '', 'transaction', 'unexpected'],
    ['nothing under HTTP 409, of a read', 409, '', 'read', 'unexpected'],
    ['nothing under HTTP 300', 300, '', 'transaction', 'unexpected'],
    ['nothing under HTTP 199', 199, '', 'transaction', 'unexpected'],
    ['no JSON', 200, '<html>', 'transaction', 'unreadable'],
    ['JSON without a number', 200, '{}', 'transaction', 'no_number'],
    ['another 997', 400, account(501, 997), 'transaction', 'server_error'],
  ])('%s', (_title, http, body, family, cause) => {
    expect(classify(http, body, family)).toEqual({ class: 'unknown', cause, status: http });
  });

  it('A read whose HTTP status is 400 or more is accepted by no shape of its own', () => {
    expect(classify(399, '[]', 'read')).toEqual({ class: 'accepted' });
    expect(classify(400, '[]', 'read')).toEqual({
      class: 'rejected',
      status: 400,
      code: '400',
      message: '',
    });
  });

  it.each<[unknown, object]>([
    [[{ tx_hash: HASH }], {}],
    ['text', {}],
    [5, {}],
    [{ tx_hash: 7, tokenId: 'x' }, {}],
    [{ tokenId: '5' }, { tokenId: 5n }],
  ])('A success with %j has the ids that it holds', (data, ids) => {
    expect(classify(200, { status: 200, data }, 'other')).toEqual({ class: 'accepted', ...ids });
  });
});

describe('What an exchange says about the limits of the service', () => {
  const HOUR = 3_600_000;
  const after: [string, string][] = [['Retry-After', '3600']];
  const answered = (status: number, body: unknown, headers: [string, string][] = []) =>
    ({ ...times, end: 'answered', answer: answer(status, body, headers) }) as const;
  const cut = (status: number, headers: [string, string][] = []) =>
    ({ ...times, end: 'broken', cause: 'truncated', answer: answer(status, '', headers) }) as const;
  const streamed = (status: number) =>
    ({ ...times, end: 'streamed', answer: answer(status, '') }) as const;
  const date = new Date(NOW - HOUR).toUTCString();
  const until = new Date(NOW).toUTCString();

  it.each<[string, ExchangeResult, object]>([
    [
      'Nothing, when nothing was sent',
      { ...times, end: 'not_sent', cause: 'tls_expired' },
      { kind: 'none' },
    ],
    ['Nothing, without an answer', { ...times, end: 'broken', cause: 'reset' }, { kind: 'none' }],
    ['Nothing, when an answer was cut', cut(503, after), { kind: 'none' }],
    ['A limit, when a 429 was cut', cut(429, after), { kind: 'throttled', retryAt: NOW + HOUR }],
    ['Nothing, of a stream', streamed(200), { kind: 'none' }],
    [
      'A limit, of a 429 that is a stream',
      streamed(429),
      { kind: 'throttled', retryAt: undefined },
    ],
    ['None, of a success', answered(200, nft(400)), { kind: 'answered' }],
    ['None, of a refusal with a deadline', answered(400, '', after), { kind: 'answered' }],
    ['A limit, of a 429', answered(429, ''), { kind: 'throttled', retryAt: undefined }],
    [
      'A limit, of a 429 in the body',
      answered(200, nft(429), after),
      { kind: 'throttled', retryAt: NOW + HOUR },
    ],
    [
      'Maintenance',
      answered(503, nft(503, 'maintenance'), after),
      { kind: 'maintenance', retryAt: NOW + HOUR },
    ],
    [
      'A limit, of another 503 with a deadline',
      answered(503, '', after),
      { kind: 'throttled', retryAt: NOW + HOUR },
    ],
    ['None, of another 503', answered(503, ''), { kind: 'answered' }],
    [
      "A limit by the service's own clock",
      answered(429, '', [
        ['retry-after', until],
        ['date', date],
      ]),
      { kind: 'throttled', retryAt: NOW + HOUR },
    ],
  ])('%s', (_title, exchanged, signal) => {
    expect(rateSignalOf(exchanged)).toEqual(signal);
  });

  it.each([
    [200, { class: 'accepted' }],
    [399, { class: 'accepted' }],
    [400, { class: 'unknown', cause: 'too_large', status: 400 }],
  ])('A stream under HTTP %i is classified by its head: %j', (status, outcome) => {
    expect(classifyExchange(streamed(status), 'read')).toEqual(outcome);
  });

  it('A break before any answer is unknown without a status', () => {
    const broken = { ...times, end: 'broken', cause: 'reset' } as const;
    expect(classifyExchange(broken, 'nft')).toEqual({ class: 'unknown', cause: 'reset' });
  });
});
