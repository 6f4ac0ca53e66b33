import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { isAmbiguous } from '../../src/gateway/key-limits.ts';
import type { Request } from '../../src/gateway/routes.ts';

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';
const request = (body: string | Buffer, contentType?: string): Request => ({
  ...{ method: 'POST', path: '/v1/app/token/accounts/transfer', query: '', headers: [] },
  ...{ contentType, body: Buffer.from(body) },
});
const both = '{"amount":1,"reasonType":"x&amount=99&toAddr=y"}';

describe('A request', () => {
  it.each<[string | Buffer, string | undefined, boolean]>([
    ['{"amount":1,"amount":2}', undefined, true],
    ['{"amount":1,"\\u0061mount":2}', undefined, true],
    ['{"a":{"amount":1},"amount":2,"b":[{"amount":3}]}', undefined, false],
    ['{"amount":"\\",\\"amount\\":1","b":{}}', undefined, false],
    ['{"amount":1', undefined, true],
    ['amount=1&toAddr=x', undefined, false],
    ['amount=1&amount=2', undefined, true],
    ['', undefined, false],
    // Valid as JSON and as a form.
    [both, JSON_TYPE, false],
    [both, 'application/vnd.api+json; charset=UTF-8', false],
    [both, undefined, true],
    [both, FORM, true],
    [both, `${FORM}; a=json`, true],
    ['{"amount":1,"reasonType":"r"}', FORM, false],
    [`${' '.repeat(80)}${both}`, undefined, true],
    ['[{"amount":99,"reasonType":"x&amount=1&y="}]', undefined, true],
    ['amount=1&toAddr=x', 'multipart/form-data; boundary=b', true],
    ['amount=1&toAddr=x', 'text/plain', true],
    ['{"amount":1}', 'application/json; charset=utf-7', true],
    [gzipSync('{"amount":1}'), JSON_TYPE, true],
  ])('with the body %s of type %s is ambiguous: %s', (body, type, ambiguous) => {
    expect(isAmbiguous(request(body, type))).toBe(ambiguous);
  });

  it.each<[string, Partial<Request>, boolean]>([
    ['another query', { query: '?x=1' }, false],
    ['an amount in the query', { query: '?x=1&amount=99' }, true],
    ['a fee in the query', { query: '?feeAmount=99' }, true],
    ['a content encoding', { headers: [['content-encoding', 'gzip']] }, true],
  ])('with %s is ambiguous or not', (_what, more, ambiguous) => {
    expect(isAmbiguous({ ...request('{"amount":1}', JSON_TYPE), ...more })).toBe(ambiguous);
  });
});
