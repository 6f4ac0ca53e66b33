/** A request that could be read in two ways tells no amount. */
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { isAmbiguous } from '../../src/gateway/ambiguity.ts';

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';
const request = (body: string | Buffer, contentType?: string) => ({
  ...{ method: 'POST', path: '/v1/app/token/accounts/transfer', contentType },
  body: Buffer.from(body),
});
const spaces = ' '.repeat(80);
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
    // JSON to one and a form to the other.
    [both, JSON_TYPE, false],
    [both, 'application/vnd.api+json; charset=UTF-8', false],
    [both, undefined, true],
    [both, FORM, true],
    [both, `${FORM}; a=json`, true],
    ['{"amount":1,"reasonType":"r"}', FORM, false],
    [`${spaces}${both}`, undefined, true],
    ['[{"amount":99,"reasonType":"x&amount=1&y="}]', undefined, true],
    ['amount=1&toAddr=x', 'multipart/form-data; boundary=b', true],
    ['amount=1&toAddr=x', 'text/plain', true],
    ['{"amount":1}', 'application/json; charset=utf-7', true],
    [gzipSync('{"amount":1}'), JSON_TYPE, true],
  ])('Whose body could be read in two ways is found: %s of type %s', (body, type, ambiguous) => {
    expect(isAmbiguous(request(body, type), '')).toBe(ambiguous);
  });

  it('That is packed, or says something in its query, is found', () => {
    const plain = request('{"amount":1}', JSON_TYPE);
    expect(isAmbiguous(plain, '?x=1')).toBe(false);
    expect(isAmbiguous(plain, '?x=1&amount=99')).toBe(true);
    expect(isAmbiguous(plain, '?feeAmount=99')).toBe(true);
    expect(isAmbiguous(plain, '', 'gzip')).toBe(true);
  });
});
