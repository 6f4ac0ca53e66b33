/** No spelling of an endpoint's secret that a receiver can echo is kept. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeRedaction } from '../../src/webhooks/delivery/http/redaction.ts';
import { makeKey } from '../../src/webhooks/webhooks.ts';

/** With every kind of character that base64 and escapes treat in a way of their own. */
const BYTES = Buffer.from(
  `${'fb'.repeat(3)}ff3e3f00e9c3a9${'7f'.repeat(6)}22275c2f3c3e26252b3d${'d1'.repeat(6)}`,
  'hex',
);
const BASE64 = BYTES.toString('base64');
const KEY = `whsec_${BASE64}`;
const SEED = makeKey('v1a', 0, { bytes: () => BYTES.subarray(0, 32), unit: () => 0 }).secret;
const USER = 'shop-"user"';
const PASSWORD = 'p&s<s>/é%41';
const BASIC = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
const url = new URL('https://h.example/hooks/T0123456789ABCDEF?key=s%C3%A9cret+1&v=1');
const redact = makeRedaction({
  keys: [KEY, SEED],
  headers: [
    `Basic ${BASIC}`,
    'Bearer tok+en/val=ue',
    'api="quoted-secret", id=1',
    'plain secret &41',
    '1',
  ],
  url,
});

const hexOf = (text: string, form: (hex: string) => string) =>
  [...Buffer.from(text)].map((byte) => form(byte.toString(16).padStart(2, '0'))).join('');
const each = (text: string, form: (code: number) => string) =>
  [...text].map((char) => form(char.codePointAt(0) ?? 0)).join('');

/** How a receiver may write a text into a response. */
const SPELLINGS: Record<string, (text: string) => string> = {
  'as it is': (text) => text,
  'in JSON': (text) => JSON.stringify(text).slice(1, -1),
  'in JSON of PHP': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'in JSON within JSON': (text) => JSON.stringify(JSON.stringify(text)).slice(3, -3),
  'in \\u of lower case': (text) => each(text, (c) => `\\u${c.toString(16).padStart(4, '0')}`),
  'in \\u of upper case': (text) =>
    each(text, (c) => `\\u${c.toString(16).toUpperCase().padStart(4, '0')}`),
  'in \\x': (text) => hexOf(text, (hex) => `\\x${hex}`),
  'in decimal entities': (text) => each(text, (c) => `&#${c};`),
  'in entities with zeros': (text) => each(text, (c) => `&#00${c};`),
  'in hex entities': (text) => each(text, (c) => `&#x${c.toString(16)};`),
  'in hex entities of upper case': (text) =>
    each(text, (c) => `&#X${c.toString(16).toUpperCase()};`),
  'in HTML with names': (text) =>
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      .replaceAll("'", '&apos;')
      .replaceAll('+', '&plus;')
      .replaceAll('/', '&sol;')
      .replaceAll('=', '&equals;')
      .replaceAll('é', '&eacute;'),
  'in JSON within HTML': (text) =>
    JSON.stringify(text).slice(1, -1).replaceAll('&', '&amp;').replaceAll('"', '&#34;'),
  'in HTML within a URL': (text) => encodeURIComponent(text.replaceAll('&', '&amp;')),
  'in a URL': (text) => encodeURIComponent(text),
  'in a URL of lower case': (text) => hexOf(text, (hex) => `%${hex}`),
  'in a URL of upper case': (text) => hexOf(text, (hex) => `%${hex.toUpperCase()}`),
  'in a URL within a URL': (text) => encodeURIComponent(encodeURIComponent(text)),
  'in a form': (text) => new URLSearchParams({ a: text }).toString().slice(2),
  'in a URL of old JavaScript': (text) => escape(text),
  'in lower case': (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
  'in upper case': (text) => text.replace(/[a-z]/g, (letter) => letter.toUpperCase()),
  'in base64': (text) => Buffer.from(`x: ${text} and more`).toString('base64'),
  'in base64url': (text) => Buffer.from(text).toString('base64url'),
  'in hex': (text) => Buffer.from(text).toString('hex'),
  'in hex of upper case': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  'in hex with spaces': (text) => hexOf(text, (hex) => `${hex} `),
  'in hex with colons': (text) => hexOf(text, (hex) => `${hex}:`).slice(0, -1),
};
const SECRETS: Record<string, string> = {
  'A signing key': KEY,
  'A signing key without its scheme': BASE64,
  'A signing key in base64url': BYTES.toString('base64url'),
  'A signing key without padding': BASE64.replace(/=+$/, ''),
  'The bytes of a signing key as hex': BYTES.toString('hex'),
  'The bytes of a signing key read as Latin-1': BYTES.toString('latin1'),
  'An asymmetric key': SEED,
  'An asymmetric key without its scheme': SEED.slice(5),
  'The seed of an asymmetric key': BYTES.subarray(0, 32).toString('base64'),
  'The seed of an asymmetric key as hex': BYTES.subarray(0, 32).toString('hex'),
  'A header': `Basic ${BASIC}`,
  'A Basic value': BASIC,
  'User and password': `${USER}:${PASSWORD}`,
  'A user': USER,
  'A password': PASSWORD,
  'A bearer header': 'Bearer tok+en/val=ue',
  'A bearer token': 'tok+en/val=ue',
  'A quoted part of a header': 'quoted-secret',
  'A header that looks escaped': 'plain secret &41',
  'A token in the path': 'T0123456789ABCDEF',
  'A value of the query': 'sécret 1',
};

describe.each(Object.entries(SPELLINGS))('What a receiver echoes %s', (_how, spell) => {
  it.each(Object.entries(SECRETS))('%s is not kept', (_what, secret) => {
    const text = `before <${spell(secret)}> after`;
    const kept = redact(text);
    expect(kept.startsWith('before <'), kept).toBe(true);
    expect(kept.endsWith('> after'), kept).toBe(true);
    const rest = kept.slice('before <'.length, -'> after'.length).replaceAll('[secret]', '');
    // What is left are at most names such as Basic, and padding.
    expect(rest.replace(/[=%&;:\s]|basic|bearer|3d|u003d|x3d|20/gi, '').length, kept).toBeLessThan(
      6,
    );
  });
});

it.each([
  'OK',
  '{"received":true,"id":"evt_0198"}',
  'Cannot POST /hooks/other?v=1',
  'signature mismatch: expected whsec_ prefix',
  '&amp; %41 \\u0041 &#65; 100%',
  'QmFzZTY0IG9mIHNvbWV0aGluZyBlbHNlIGVudGlyZWx5',
  'Bearer realm="x", Basic',
])('A response without a secret is kept as it is: %s', (text) => {
  expect(redact(text)).toBe(text);
});

it('The bytes of a key that are no text are not kept when a response has them as they are', () => {
  const response = Buffer.concat([Buffer.from('<'), BYTES, Buffer.from('|')]).toString('utf8');
  for (const text of [response, response.replaceAll('\0', '\ufffd')])
    expect(redact(text)).toBe('<[secret]|');
});

it('A secret that the end of what is kept cuts is not kept, from its eighth character on', () => {
  for (const spelled of [
    KEY,
    encodeURIComponent(KEY),
    SPELLINGS['in decimal entities']?.(KEY) ?? '',
  ])
    for (let length = 8; length < spelled.length; length++) {
      const kept = redact(`body: ${spelled.slice(0, length)}`);
      const shown = /^body: (.*?)(?:\[secret\].{0,9})?$/s.exec(kept)?.[1] ?? kept;
      expect(shown.length, kept).toBeLessThan(8 * 6);
    }
  for (let length = 8; length < KEY.length; length++)
    expect(redact(`body: ${KEY.slice(0, length)}`)).toBe('body: [secret]');
});

it('A secret whose end looks like the begin of an escape is found', () => {
  const redact = makeRedaction({ keys: [], headers: ['{ . =*%![:}\\'], url });
  expect(redact('{ . &equals;*%![:}\\": ')).toBe('[secret]": ');
});

it('No secret is found in a response, with any bytes, in any spelling and between any texts', () => {
  const spellings = Object.values(SPELLINGS);
  const secret = fc.oneof(
    fc.constantFrom(...Object.values(SECRETS)),
    fc
      .uint8Array({ minLength: 32, maxLength: 32 })
      .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`),
    fc
      .string({
        unit: fc.constantFrom(...' !"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~aZ09'),
        minLength: 12,
        maxLength: 40,
      })
      .filter((text) => text.trim() === text && /[^\s,;]{6}/.test(text)),
  );
  const around = fc.constantFrom('', ' ', '"', '<', '>', '\n', '(', ')', '[', ']', '{"a":"', '": ');
  fc.assert(
    fc.property(
      secret,
      fc.constantFrom(...spellings),
      around,
      around,
      (text, spell, before, after) => {
        const isKey = text.startsWith('whsec_');
        const own = makeRedaction({ keys: isKey ? [text] : [], headers: isKey ? [] : [text], url });
        const spelled = spell(text);
        const kept = own(`${before}${spelled}${after}`);
        expect(kept.includes(spelled), kept).toBe(false);
        expect(kept).toContain('[secret]');
      },
    ),
    { numRuns: 3_000 },
  );
});

it('Control characters of a key are found as the escapes of JSON, C and PHP write them', () => {
  const controls: [string, string][] = [
    ['\0', '\\0'],
    ['\x07', '\\a'],
    ['\b', '\\b'],
    ['\x1b', '\\e'],
    ['\f', '\\f'],
    ['\n', '\\n'],
    ['\r', '\\r'],
    ['\t', '\\t'],
    ['\v', '\\v'],
  ];
  for (const [control, written] of controls) {
    const text = `ab${control}`.repeat(8);
    const keys = [`whsec_${Buffer.from(text).toString('base64')}`];
    const hide = makeRedaction({ keys, headers: [], url: new URL('https://h.example/') });
    expect(hide(`<${text.replaceAll(control, written)}>`), written).toBe('<[secret]>');
  }
});
