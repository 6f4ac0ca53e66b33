/**
 * Generated invalid requests, and the shapes of the service's answers: for tests of the sandbox and
 * of the gateway before it.
 */
import { connect } from 'node:net';
import fc from 'fast-check';
import { z } from 'zod';
import { ROUTES } from '../../src/sandbox/endpoints/routes.ts';

const complaint = z.strictObject({
  message: z.string(),
  field: z.string(),
  validation: z.string(),
});
const nftError = z.strictObject({ status: z.int(), error: z.array(complaint).min(1) });
const accountError = z.strictObject({
  status: z.string(),
  error: z.strictObject({ code: z.string(), message: z.string() }),
});
const oauthError = z.strictObject({
  status: z.int(),
  error: z.strictObject({
    code: z.int(),
    message: z.string(),
    detail: z.string(),
    data: z.null(),
    errors: z.strictObject({}),
  }),
});
const success = z.looseObject({ status: z.literal(200), data: z.looseObject({}) });
const record = z.looseObject({ access_token: z.string() });
/** Every shape of the interface. */
export const documented = z.union([nftError, accountError, oauthError, success, record]);

const noise = fc.oneof(
  fc.string(),
  fc.json(),
  fc.string({ unit: 'binary' }),
  fc.constant('['.repeat(50_000)),
  fc.constant('9'.repeat(5_000)),
  fc.bigInt().map(String),
  fc.constantFrom('__proto__', 'constructor', '%', '%00', '\u0000', '-0', '1e400', 'null'),
);
const field = fc.constantFrom(
  ...'toAddr fromAddr tokenId tokenURI metaData extraData amount feeAmount reasonType'.split(' '),
  ...'grant_type code redirect_uri refresh_token response_type client_id member_no'.split(' '),
);
const fields = fc.dictionary(field, fc.oneof(noise, fc.constant(`0x${'a'.repeat(40)}`)));
const body = fc.oneof(
  noise,
  fields.map((body) => new URLSearchParams(body).toString()),
  fc.dictionary(field, fc.jsonValue()).map((body) => JSON.stringify(body)),
);
const segment = noise.map(encodeURIComponentSafely);
const path = fc.oneof(
  fc
    .tuple(fc.constantFrom(...ROUTES), segment)
    .map(([route, value]) => route.path.replace(/:\w+/g, value || 'x')),
  fc.array(segment, { maxLength: 5 }).map((parts) => `/v1/${parts.join('/')}`),
);
/** Well-formed HTTP with anything in it. */
export const anyRequest = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'),
  path,
  query: fc.option(
    fields.map((query) => `?${new URLSearchParams(query)}`),
    { nil: '' },
  ),
  body,
  who: fc.constantFrom('client', 'user', 'basic', 'none', 'noise'),
  type: fc.option(fc.constantFrom('application/json', 'text/plain', 'multipart/form-data')),
});

/** What need not be HTTP at all. */
export const anyBytes = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 500 }).map((each) => Buffer.from(each)),
  fc
    .tuple(fc.constantFrom('GET', 'TRACE', 'CONNECT', 'get', 'HEAD'), fc.string())
    .map(([method, target]) => Buffer.from(`${method} ${target} HTTP/1.1\r\n\r\n`)),
  fc.string().map((text) => Buffer.from(`GET / HTTP/1.1\r\nHost: ${text}\r\n\r\n`)),
);

function encodeURIComponentSafely(text: string): string {
  return encodeURIComponent(text.toWellFormed()).slice(0, 2_000);
}

/** What comes back for raw bytes, until the connection is closed. */
export function exchanged(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setTimeout(2_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
    socket.end(bytes);
  });
}
