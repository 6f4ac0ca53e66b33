import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { idempotencyKeyOf, targetOf } from '../../src/gateway/http.ts';

it.each([
  ['/v1/x', '/v1/x', ''],
  ['/v1/x?', '/v1/x', '?'],
  ['/v1/x?a=%2F..%2F&b=//&c', '/v1/x', '?a=%2F..%2F&b=//&c'],
  ['/v1/x/?a=1?b=2', '/v1/x/', '?a=1?b=2'],
  ['/v1/a%20b', '/v1/a%20b', ''],
  ['/v1/%C3%A9', '/v1/%C3%A9', ''],
  ['/v1/%c3%a9?a=%c3', '/v1/%c3%a9', '?a=%c3'],
  ['/v1/a:b@c,d;e=f', '/v1/a:b@c,d;e=f', ''],
])('A request target is split into path and query: %s', (url, path, query) => {
  expect(targetOf(url)).toEqual({ path, query });
});

it.each([
  '/v1/../x',
  '/v1/./x',
  '/v1/%2e%2e/x',
  '/v1/%2E%2e/x',
  '/v1/.%2e/x',
  '/v1/%2e/x',
  '/v1//x',
  '/v1/x//',
  '//v1/x',
  '//evil.example/v1/x',
  '/v1\\x',
  '/v1/x\\..\\y',
  '/v1/%5c..%5cx',
  'http://evil.example/v1/x',
  'http://host.invalid/v1/x',
  'v1/x',
  '*',
  '',
  '/v1/x#y',
  '/v1/a b',
  '/v1/é',
  '/v1/a%2Fb',
  '/v1/a%2fb',
  '/v1/app/token/operations/%31/give',
  '/v1/app/token/operations/1/%67ive',
  '/v1/%zz',
  '/v1/%',
  '/v1/%ff',
  '/v1/%00',
  '/v1/a%0Ab',
  '/v1/%5C..%5Cx',
  '/v1/x\t',
])('A request target that is not in its normal form is not found: %j', (url) => {
  expect(() => targetOf(url)).toThrow(expect.objectContaining({ code: 'not_found' }));
});

it('A request target that is accepted has one path for every URL parser', () => {
  const piece = fc.constantFrom(
    '/',
    '.',
    '..',
    '%2e',
    '%2F',
    '\\',
    'a',
    '%61',
    '%20',
    '#',
    '?',
    '%',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const url = `/v1/${pieces.join('')}`;
      let target: { path: string } | undefined;
      try {
        target = targetOf(url);
      } catch {
        return;
      }
      expect(new URL(url, 'http://other.example').pathname).toBe(target.path);
      const decoded = decodeURIComponent(target.path);
      expect(decoded.split('/')).toHaveLength(target.path.split('/').length);
      expect(decoded).not.toMatch(/\\|\/\.{1,2}(\/|$)|\/\//);
    }),
    { numRuns: 500 },
  );
});

/** Printable characters that need no escape. */
const LONG = 'k'.repeat(255);

function keyOf(value: string | undefined): string | undefined {
  const incoming = new IncomingMessage(new Socket());
  if (value !== undefined) incoming.headers['idempotency-key'] = value;
  return idempotencyKeyOf(incoming);
}

it.each<[string | undefined, string | undefined]>([
  [undefined, undefined],
  ['order-17', 'order-17'],
  ['"order-17"', 'order-17'],
  ['"order 17"', 'order 17'],
  ['order "17"', 'order "17"'],
  ['order-17"', 'order-17"'],
  [String.raw`"a\"b\\c"`, String.raw`a"b\c`],
  [String.raw`a\b`, String.raw`a\b`],
  ["'order'", "'order'"],
  [LONG, LONG],
  [`"${LONG}"`, LONG],
  [`"${String.raw`\"`.repeat(255)}"`, '"'.repeat(255)],
])('The header Idempotency-Key %s is the key %s', (value, key) => {
  expect(keyOf(value)).toBe(key);
});

it.each([
  '',
  '""',
  '"',
  '"order-17',
  '"a"b',
  '"a" ',
  '"a", "a"',
  '"a";v=1',
  String.raw`"a\"`,
  String.raw`"a\b"`,
  `${LONG}k`,
  `"${LONG}k"`,
  'café',
  '"caf\u00e9"',
  'a\tb',
])('The header Idempotency-Key %j is refused', (value) => {
  expect(() => keyOf(value)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
});
