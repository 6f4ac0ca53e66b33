/**
 * Removes the secrets of an endpoint from what its receiver answers. A receiver may echo them in
 * any spelling, so a text is searched as it is and as it reads after its escapes (HTML, JSON, URL)
 * and its runs of base64 and hex are decoded. Pure.
 *
 * Texts are compared as bytes (one character each), without case, and with both alphabets of
 * base64 as one.
 */

/** What an endpoint keeps secret. */
interface EndpointSecrets {
  /** `whsec_…` and `whsk_…`, those that sign no more too. */
  keys: readonly string[];
  /** Values of the extra headers. */
  headers: readonly string[];
  url: URL;
}

const REPLACEMENT = '[secret]';
/** Shorter values, such as `1`, are not secret, and occur in any text. */
const LENGTH_MIN = 6;
/** Of a user name or password. */
const CREDENTIAL_LENGTH_MIN = 4;
/** Shorter parts of a path, such as `webhooks`, are names. */
const PATH_TOKEN_LENGTH_MIN = 16;
/** Of the begin of a secret at the end of a text, which may have been cut there. */
const CUT_LENGTH_MIN = 8;
/** A longer begin of a secret is never anything else. */
const BEGIN_LENGTH_MAX = 32;
/** An escape within an escape, as in JSON within HTML. */
const ESCAPES_DEPTH = 4;
/** Readings of a text, which are few unless a receiver tries to make them many. */
const LEVELS_MAX = 40;
/** The seed in the bytes of a `whsk_` key; the rest is its public key. */
const SEED_BYTES = 32;

/** A function that replaces every secret, and a secret that the end of the text cuts. */
export function makeRedaction(secrets: EndpointSecrets): (text: string) => string {
  const find = makeFind(needlesOf(secrets));
  const rangesOf = (text: string) => levelsOf(text).flatMap((level) => rangesIn(level, find));
  return (text) => {
    const whole = text.replace(CUT_ESCAPE, '');
    return replaceRanges(text, [...rangesOf(text), ...(whole === text ? [] : rangesOf(whole))]);
  };
}

/** An escape that the end of the text may have cut. */
const CUT_ESCAPE = /(?:%[0-9a-f]?|&[#a-z0-9]{0,9}|\\(?:u[0-9a-f]{0,3}|x[0-9a-f]?)?)$/i;

type Range = [from: number, to: number];

function replaceRanges(text: string, ranges: Range[]): string {
  ranges.sort(([a], [b]) => a - b);
  let redacted = '';
  let done = 0;
  for (const [from, to] of ranges) {
    if (from > done || (from === 0 && done === 0)) redacted += text.slice(done, from) + REPLACEMENT;
    done = Math.max(done, to);
  }
  return redacted + text.slice(done);
}

/** A text after some decoding, as bytes; each byte stands for a range of the first text. */
interface Level {
  bytes: string;
  from: number[];
  to: number[];
}

/**
 * The text itself, and what it reads after decoding its escapes once, twice and so on: all at once,
 * and those of one language alone, since what looks like an escape may be the end of a secret.
 */
function levelsOf(text: string): Level[] {
  const levels = [firstLevel(text)];
  const known = new Set(levels.map(({ bytes }) => bytes));
  let newest = levels;
  for (let depth = 0; depth < ESCAPES_DEPTH && levels.length < LEVELS_MAX; depth++) {
    newest = newest
      .flatMap((level) => READINGS.map((pattern) => decoded(level, pattern)))
      .filter((next) => next !== undefined)
      .filter(({ bytes }) => !known.has(bytes) && known.add(bytes))
      .slice(0, LEVELS_MAX - levels.length);
    levels.push(...newest);
  }
  return levels;
}

function firstLevel(text: string): Level {
  const level: Level = { bytes: bytesOf(text), from: [], to: [] };
  let at = 0;
  for (const char of text) {
    const length = char < '\x80' ? 1 : Buffer.byteLength(char);
    for (let i = 0; i < length; i++) {
      level.from.push(at);
      level.to.push(at + char.length);
    }
    at += char.length;
  }
  return level;
}

/** Undefined without an escape. */
function decoded({ bytes, from, to }: Level, pattern: RegExp): Level | undefined {
  const next: Level = { bytes: '', from: [], to: [] };
  let done = 0;
  const copyUntil = (end: number) => {
    next.bytes += bytes.slice(done, end);
    for (; done < end; done++) {
      next.from.push(from[done] ?? 0);
      next.to.push(to[done] ?? 0);
    }
  };
  for (const match of bytes.matchAll(pattern)) {
    const meant = meaningOf(match);
    if (meant === undefined) continue;
    copyUntil(match.index);
    done = match.index + match[0].length;
    next.bytes += meant;
    for (let i = 0; i < meant.length; i++) {
      next.from.push(from[match.index] ?? 0);
      next.to.push(to[done - 1] ?? 0);
    }
  }
  if (done === 0) return undefined;
  copyUntil(bytes.length);
  return next;
}

/** Of HTML, of JSON and JavaScript, and of URLs. */
const ESCAPES = [
  '&#x0*(?<htmlHex>[0-9a-f]{1,6});?|&#0*(?<htmlDecimal>\\d{1,7});?|&(?<htmlName>[a-z]{2,20});',
  '\\\\u(?<high>d[89ab][0-9a-f]{2})\\\\u(?<low>d[c-f][0-9a-f]{2})|' +
    '\\\\u\\{?(?<unit>[0-9a-f]{4})\\}?|' +
    '\\\\x(?<byte>[0-9a-f]{2})|\\\\(?<letter>["\'`\\\\/0abefnrtv])',
  '%u(?<high>d[89ab][0-9a-f]{2})%u(?<low>d[c-f][0-9a-f]{2})|%u(?<unit>[0-9a-f]{4})|' +
    '%(?<byte>[0-9a-f]{2})',
];
const READINGS = [ESCAPES.join('|'), ...ESCAPES].map((pattern) => new RegExp(pattern, 'gi'));

function meaningOf({ groups = {} }: RegExpExecArray): string | undefined {
  const { htmlHex, htmlDecimal, htmlName, high, low, unit, byte, letter } = groups;
  if (htmlHex !== undefined) return characterOf(Number.parseInt(htmlHex, 16));
  if (htmlDecimal !== undefined) return characterOf(Number(htmlDecimal));
  if (htmlName !== undefined) return namedCharacter(htmlName);
  if (high !== undefined && low !== undefined)
    return bytesOf(String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)));
  if (unit !== undefined) return characterOf(Number.parseInt(unit, 16));
  if (byte !== undefined) return String.fromCharCode(Number.parseInt(byte, 16));
  return letter === undefined ? undefined : (LETTERS.get(letter) ?? letter);
}

const LETTERS = new Map(
  Object.entries({ 0: '\0', a: '\x07', b: '\b', e: '\x1b', f: '\f', n: '\n', r: '\r', t: '\t' }),
).set('v', '\v');

function characterOf(codePoint: number): string | undefined {
  return codePoint <= 0x10ffff ? bytesOf(String.fromCodePoint(codePoint)) : undefined;
}

/** Names of HTML for the characters that occur in headers and keys. */
const ASCII_NAMES = `Tab:9 NewLine:10 excl:33 quot:34 num:35 dollar:36 percnt:37 amp:38 apos:39
  lpar:40 rpar:41 ast:42 midast:42 plus:43 comma:44 period:46 sol:47 colon:58 semi:59 lt:60
  equals:61 gt:62 quest:63 commat:64 lsqb:91 lbrack:91 bsol:92 rsqb:93 rbrack:93 Hat:94 lowbar:95
  UnderBar:95 grave:96 lcub:123 lbrace:123 verbar:124 vert:124 rcub:125 rbrace:125`;
/** Of U+00A0 and those after it, in their order. */
const LATIN_NAMES = `
  nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn
  sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave
  Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml
  ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN
  szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave
  iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute
  ucirc uuml yacute thorn yuml
`;
const NAMES = new Map<string, number>([
  ...ASCII_NAMES.split(/\s+/).map((one): [string, number] => {
    const [name = '', code] = one.split(':');
    return [name, Number(code)];
  }),
  ...LATIN_NAMES.trim()
    .split(/\s+/)
    .map((name, i): [string, number] => [name, 0xa0 + i]),
]);

function namedCharacter(name: string): string | undefined {
  const code = NAMES.get(name) ?? NAMES.get(name.toLowerCase());
  return code === undefined ? undefined : characterOf(code);
}

/** Where secrets are in a text of bytes, and where one begins that the end cuts. */
type Find = (text: string) => Range[];

function rangesIn({ bytes, from, to }: Level, find: Find): Range[] {
  const rangeOf = (begin: number, end: number): Range => [from[begin] ?? 0, to[end - 1] ?? 0];
  const found = find(bytes).map(([begin, end]) => rangeOf(begin, end));
  for (const { pattern, decodingsOf } of RUNS)
    for (const { 0: run, index } of bytes.matchAll(pattern))
      if (decodingsOf(run).some((text) => find(text).length > 0))
        found.push(rangeOf(index, index + run.length));
  return found;
}

/** Runs of base64 and hex, and what they mean wherever in them the encoded text begins. */
const RUNS = [
  {
    pattern: /[A-Za-z0-9+/_-]{12,}={0,2}/g,
    decodingsOf: (run: string) => [0, 1, 2, 3].map((skip) => decodeFrom(run, skip, 'base64')),
  },
  {
    pattern: /(?:[0-9a-f]{2}[:\s-]?){4,}/gi,
    decodingsOf: (run: string) => {
      const digits = run.replace(/[:\s-]/g, '');
      return [0, 1].map((skip) => decodeFrom(digits, skip, 'hex'));
    },
  },
];

function decodeFrom(run: string, skip: number, encoding: 'hex' | 'base64'): string {
  return Buffer.from(run.slice(skip), encoding).toString('latin1');
}

/**
 * Searches for all needles in one pass: by their first three bytes, and then each. A long begin of
 * a needle counts as the whole, so the time does not depend on the length of needles.
 */
function makeFind(needles: readonly string[]): Find {
  const byHead = Map.groupBy(
    needles.map((bytes, index) => ({ bytes, index })),
    ({ bytes }) => headOf(bytes),
  );
  return (text) => {
    const places: Range[] = [];
    /** Where the last place of each needle ends. */
    const ends: number[] = [];
    let head = 0;
    for (let at = 0; at < text.length; at++) {
      head = ((head << 8) | foldedAt(text, at)) & 0xffffff;
      const begin = at - 2;
      for (const { bytes, index } of byHead.get(head) ?? []) {
        if (begin < (ends[index] ?? 0)) continue;
        const same = sameLength(text, begin, bytes);
        const isCut = begin + same === text.length && same >= CUT_LENGTH_MIN;
        if (same < Math.min(bytes.length, BEGIN_LENGTH_MAX) && !isCut) continue;
        places.push([begin, begin + same]);
        ends[index] = begin + same;
      }
    }
    return places;
  };
}

function headOf(needle: string): number {
  return (needle.charCodeAt(0) << 16) | (needle.charCodeAt(1) << 8) | needle.charCodeAt(2);
}

/** How many bytes of the needle the text has from there on. */
function sameLength(text: string, begin: number, needle: string): number {
  let n = 0;
  while (n < needle.length && foldedAt(text, begin + n) === needle.charCodeAt(n)) n++;
  return n;
}

/** Case, and the two alphabets of base64; a form turns the plus sign into a space. */
const FOLDED = Array.from({ length: 256 }, (_, code) => {
  const char = String.fromCharCode(code);
  const folded =
    { '-': '+', ' ': '+', _: '/' }[char] ?? char.replace(/[A-Z]/, (c) => c.toLowerCase());
  return folded.charCodeAt(0);
});

function foldedAt(text: string, at: number): number {
  return FOLDED[text.charCodeAt(at)] ?? -1;
}

function folded(bytes: string): string {
  return String.fromCharCode(...Array.from(bytes, (_, at) => foldedAt(bytes, at)));
}

/** Every form in which a secret is searched for, folded. */
function needlesOf({ keys, headers, url }: EndpointSecrets): string[] {
  const secrets = [
    ...keys.flatMap(spellingsOfKey),
    ...headers.flatMap(spellingsOfHeader),
    ...textsOf(queryValues(url), LENGTH_MIN),
    ...textsOf(url.pathname.split('/'), PATH_TOKEN_LENGTH_MIN),
  ];
  // An escape in a secret is decoded with its text.
  const read = secrets.flatMap((bytes) =>
    levelsOf(Buffer.from(bytes, 'latin1').toString()).map((level) => level.bytes),
  );
  // Short ones are no runs.
  const encoded = secrets.flatMap((bytes) =>
    (['base64', 'hex'] as const).map((as) => Buffer.from(bytes, 'latin1').toString(as)),
  );
  const all = [...secrets, ...read, ...encoded].map(folded);
  const unpadded = all.map((needle) => needle.replace(/=+$/, ''));
  return [...new Set([...all, ...unpadded])].filter(
    ({ length }) => length >= CREDENTIAL_LENGTH_MIN,
  );
}

/** With its scheme, without, and its bytes as text and hex; base64 is the key without scheme. */
function spellingsOfKey(secret: string): string[] {
  const bare = secret.slice(secret.indexOf('_') + 1);
  const bytes = Buffer.from(bare, 'base64');
  const seed = secret.startsWith('whsk_') ? [bytes.subarray(0, SEED_BYTES)] : [];
  return [
    ...[secret, bare].map(bytesOf),
    ...[bytes, ...seed].flatMap((one) => [
      one.toString('hex'),
      one.toString('base64'),
      ...spellingsOfBytes(one),
    ]),
  ];
}

/** Bytes as they are, read as UTF-8, and read as Latin-1; responses are kept without NUL. */
function spellingsOfBytes(bytes: Buffer): string[] {
  const read = [bytes.toString('utf8'), bytes.toString('latin1')];
  const kept = read.map((text) => text.replaceAll('\0', '\ufffd'));
  return [bytes.toString('latin1'), ...textsOf([...read, ...kept], 0)];
}

const SCHEME = /^(?:basic|bearer|digest|negotiate|token|key|api-?key)$/i;

/** A header's value, its words, and what the words `name=value` and the Basic scheme hold. */
function spellingsOfHeader(value: string): string[] {
  const words = value.split(/[\s,;]+/).filter((word) => !SCHEME.test(word));
  const values = words.map((word) => word.replace(/^[\w-]+=/, '').replace(/^["']|["']$/g, ''));
  const basic = /\bBasic\s+([A-Za-z0-9+/_-]+)/i.exec(value)?.[1];
  const credentials = Buffer.from(basic ?? '', 'base64').toString('latin1');
  const colon = credentials.indexOf(':');
  const parts = [
    credentials,
    credentials.slice(0, Math.max(0, colon)),
    credentials.slice(colon + 1),
  ];
  return [
    ...textsOf([value, ...words, ...values], LENGTH_MIN),
    ...parts
      .filter(({ length }) => length >= CREDENTIAL_LENGTH_MIN)
      .flatMap((part) => spellingsOfBytes(Buffer.from(part, 'latin1'))),
  ];
}

/** As written in the URL, and decoded. */
function queryValues({ search, searchParams }: URL): string[] {
  const written = search.slice(1).split('&');
  return [...written.map((pair) => pair.slice(pair.indexOf('=') + 1)), ...searchParams.values()];
}

function textsOf(texts: readonly string[], lengthMin: number): string[] {
  return texts
    .filter(({ length }) => length >= lengthMin)
    .flatMap((text) => [bytesOf(text), Buffer.from(text, 'latin1').toString('latin1')]);
}

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}
