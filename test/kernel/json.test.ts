import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DIGITS_MAX, decimalText, parseWhole, sumOf, wholeOf } from '../../src/kernel/amounts.ts';
import {
  canonicalJson,
  type Json,
  jsonText,
  membersOf,
  parseJson,
  sha256Hex,
  tryParseJson,
} from '../../src/kernel/json.ts';

/** Whole numbers of 1 to 60 digits, both signs. */
const whole = fc
  .tuple(fc.boolean(), fc.stringMatching(/^(0|[1-9]\d{0,59})$/))
  .map(([minus, digits]) => (minus ? -1n : 1n) * BigInt(digits));

/** As parseJson returns it: a number when it is a safe integer, else a bigint. */
const asRead = (value: bigint) => (Number.isSafeInteger(Number(value)) ? Number(value) : value);

/** Any JSON value, its numbers exact. */
const anyJson: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    fc.string({ unit: 'grapheme' }),
    whole.map(asRead),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('10', '9', '')), tie('value'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
})).value;

/** The same value with the members of every object in reverse order. */
function reversed(value: Json): Json {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== 'object') return value;
  const members = Object.entries(value).map(([key, item]) => [key, reversed(item)] as const);
  return Object.fromEntries(members.reverse());
}

it('JSON with integers of up to 60 digits is written as it was read', () => {
  fc.assert(
    fc.property(whole, (value) => {
      const text = `{"a":[${value}]}`;
      expect(jsonText(parseJson(text))).toBe(text);
      expect(wholeOf((parseJson(text) as { a: Json[] }).a[0])).toBe(value);
    }),
  );
});

it('JSON of any value is read as an equal value', () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      expect(parseJson(jsonText(value))).toEqual(value);
    }),
  );
});

it.each<[string, Json]>([
  ['9007199254740991', 9007199254740991],
  ['9007199254740992', 9007199254740992n],
  ['9007199254740993', 9007199254740993n],
  ['-9007199254740993', -9007199254740993n],
  ['1000000000000000', 1000000000000000],
  ['"9007199254740993"', '9007199254740993'],
  ['0.1234567890123456789', 0.12345678901234568],
  ['1e3', 1000],
  ['1.5', 1.5],
  ['1e30', 10n ** 30n],
  ['-12.50E+20', -125n * 10n ** 19n],
  ['9007199254740993.000', 9007199254740993n],
  ['9007199254740993.5', Number('9007199254740993.5')],
  ['1e400', 10n ** 400n],
  ['1e1001', Number.POSITIVE_INFINITY],
  ['1e9999999', Number.POSITIVE_INFINITY],
  ['"a:1e30"', 'a:1e30'],
])('JSON %s is read as %s', (text, value) => {
  expect(parseJson(text)).toBe(value);
});

it('JSON with a member named __proto__ is read with that member', () => {
  const read = parseJson('{"__proto__":9007199254740993}') as object;
  expect(Object.entries(read)).toEqual([['__proto__', 9007199254740993n]]);
  expect(canonicalJson(read)).toBe('{"__proto__":9007199254740993}');
});

it.each(['', '{', '01', 'NaN', '{"a":1,}', '"\n"', '[9007199254740993'])(
  'JSON is not %j',
  (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
    expect(tryParseJson(text)).toBeUndefined();
  },
);

it('JSON with 200,000 nested arrays and a large integer is refused without a crash', () => {
  const text = `${'['.repeat(200_000)}9007199254740993${']'.repeat(200_000)}`;
  expect(() => parseJson(text)).toThrow(SyntaxError);
});

it('JSON is written without undefined members', () => {
  expect(jsonText({ a: undefined, b: 1n })).toBe('{"b":1}');
});

it('The canonical form does not depend on the order of members', () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      expect(canonicalJson(reversed(value))).toBe(canonicalJson(value));
    }),
  );
});

it('The canonical form is JSON of the same value', () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      expect(parseJson(canonicalJson(value))).toEqual(value);
    }),
  );
});

it.each<[unknown, string]>([
  [{ b: 1, a: 2 }, '{"a":2,"b":1}'],
  [{ 10: 1, 9: 2, a: 3, A: 4 }, '{"10":1,"9":2,"A":4,"a":3}'],
  [{ a: undefined, b: [undefined, 1] }, '{"b":[null,1]}'],
  [{ amount: 9007199254740993n }, '{"amount":9007199254740993}'],
  [[{ y: [], x: {} }], '[{"x":{},"y":[]}]'],
  ['é\n', '"é\\n"'],
  [undefined, 'null'],
])('The canonical form of case %# is %s', (value, text) => {
  expect(canonicalJson(value)).toBe(text);
});

it('A hash is SHA-256 in lower-case hex', () => {
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

it.each(['', '+1', '01', '-', ' 1', '1 ', '1.0', '1e3', '0x1', '١', '--1', '00'])(
  'An amount is not parsed from %j',
  (text) => {
    expect(parseWhole(text)).toBeUndefined();
  },
);

it.each<[unknown, bigint | undefined]>([
  [1, 1n],
  [-0, 0n],
  [1.5, undefined],
  [2 ** 53, undefined],
  [Number.NaN, undefined],
  ['-7', -7n],
  [8n, 8n],
  [null, undefined],
  [true, undefined],
  [{}, undefined],
  ['9'.repeat(DIGITS_MAX), BigInt('9'.repeat(DIGITS_MAX))],
  ['9'.repeat(DIGITS_MAX + 1), undefined],
  [BigInt('9'.repeat(DIGITS_MAX)), BigInt('9'.repeat(DIGITS_MAX))],
  [10n ** BigInt(DIGITS_MAX), undefined],
  [-(10n ** BigInt(DIGITS_MAX)), undefined],
])('An amount is read exactly or not at all in case %#', (value, found) => {
  expect(wholeOf(value)).toBe(found);
});

it('An amount is the same after it is written and parsed', () => {
  fc.assert(fc.property(whole, (value) => parseWhole(decimalText(value)) === value));
  expect([decimalText(null), decimalText(undefined)]).toEqual([null, null]);
});

it('An amount is summed exactly in any order', () => {
  fc.assert(
    fc.property(fc.array(whole), (values) => {
      expect(sumOf(values)).toBe(sumOf(values.toReversed()));
    }),
  );
  expect(sumOf([2n ** 53n, 1n])).toBe(9007199254740993n);
  expect(sumOf([])).toBe(0n);
});

it.each<[string, Json | undefined, object]>([
  ['an object', { a: 1, b: null }, { a: 1, b: null }],
  ['an empty object', {}, {}],
  ['a list', [1, 2], {}],
  ['null', null, {}],
  ['a text', 'ab', {}],
  ['a number', 7n, {}],
  ['nothing', undefined, {}],
])('Of %s the members of an object are read, and none of any other value', (_, value, members) => {
  expect(membersOf(value)).toEqual(members);
});
