import fc from 'fast-check';
import { expect, it } from 'vitest';
import { targetOf } from '../../src/gateway/http.ts';

it.each([
  ['/v1/x', '/v1/x', ''],
  ['/v1/x?', '/v1/x', '?'],
  ['/v1/x?a=%2F..%2F&b=//&c', '/v1/x', '?a=%2F..%2F&b=//&c'],
  ['/v1/x/?a=1?b=2', '/v1/x/', '?a=1?b=2'],
  ['/v1/a%20b', '/v1/a%20b', ''],
  ['/v1/%C3%A9', '/v1/%C3%A9', ''],
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
  '/v1/x?a=1#y',
  '/v1/a b',
  '/v1/é',
  '/v1/%c3%a9',
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
