/** Which addresses and URLs webhooks may be sent to, and name resolution. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { checkedLookup, type Resolve } from '../../src/webhooks/delivery/http/resolve.ts';
import { isRefused, parseRanges, validateUrl } from '../../src/webhooks/endpoints/address.ts';

const RULES = { allowed: [], allowHttp: true };

it.each([
  '1.1.1.1',
  '8.8.8.8',
  '172.15.255.255',
  '172.32.0.1',
  '100.63.255.255',
  '100.128.0.1',
  '223.255.255.254',
  '2606:4700:4700::1111',
  '2a00:1450:4001::1',
])('Address %s is public', (address) => {
  expect(isRefused(address, [])).toBe(false);
});

it.each([
  ['this network', '0.0.0.0'],
  ['this network', '0.1.2.3'],
  ['private', '10.0.0.1'],
  ['private', '172.16.0.1'],
  ['private', '172.31.255.255'],
  ['private', '192.168.1.1'],
  ['carrier-grade NAT', '100.64.0.1'],
  ['loopback', '127.0.0.1'],
  ['loopback', '127.255.255.254'],
  ['link-local and cloud metadata', '169.254.169.254'],
  ['protocol assignments', '192.0.0.1'],
  ['documentation', '192.0.2.1'],
  ['documentation', '198.51.100.1'],
  ['documentation', '203.0.113.1'],
  ['6to4 relay', '192.88.99.1'],
  ['benchmarks', '198.18.0.1'],
  ['multicast', '224.0.0.1'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['unspecified', '::'],
  ['loopback', '::1'],
  ['v4-mapped', '::ffff:127.0.0.1'],
  ['v4-mapped public', '::ffff:8.8.8.8'],
  ['v4-compatible', '::127.0.0.1'],
  ['v4-compatible public', '::8.8.8.8'],
  ['a part of IPv6 that is not assigned', '1::1'],
  ['a part of IPv6 that is not assigned', '4000::1'],
  ['a part of IPv6 that is not assigned', 'e000::1'],
  ['the metadata of Azure', '168.63.129.16'],
  ['the metadata of Alibaba', '100.100.100.200'],
  ['the metadata of Oracle', '192.0.0.192'],
  ['the metadata of AWS', 'fd00:ec2::254'],
  ['the metadata of Google', 'fd20:ce::254'],
  ['v4-translated', '::ffff:0:127.0.0.1'],
  ['NAT64', '64:ff9b::7f00:1'],
  ['local NAT64', '64:ff9b:1::1'],
  ['6to4', '2002:7f00:1::'],
  ['Teredo', '2001::1'],
  ['ORCHID', '2001:20::1'],
  ['documentation', '2001:db8::1'],
  ['documentation', '3fff::1'],
  ['discard', '100::1'],
  ['segment routing', '5f00::1'],
  ['unique local', 'fc00::1'],
  ['unique local', 'fd12:3456::1'],
  ['link-local', 'fe80::1'],
  ['site-local', 'fec0::1'],
  ['multicast', 'ff02::1'],
  ['no IP form', 'example.com'],
  ['no text', ''],
])('An address of %s is refused: %s', (_range, address) => {
  expect(isRefused(address, [])).toBe(true);
});

it('A configured range allows its own addresses only', () => {
  const allowed = parseRanges(['127.0.0.0/8', 'fd00::/8']);
  expect(isRefused('127.9.9.9', allowed)).toBe(false);
  expect(isRefused('fd00::7', allowed)).toBe(false);
  expect(isRefused('10.0.0.1', allowed)).toBe(true);
  expect(isRefused('::1', allowed)).toBe(true);
  expect(isRefused('::ffff:127.0.0.1', allowed)).toBe(true);
  expect(isRefused('fc00::1', allowed)).toBe(true);
});

it.each([
  '169.254.169.254',
  '169.254.170.2',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  'fd00:ec2::254',
  'fd20:ce::254',
  'fe80::a9fe:a9fe',
  '::ffff:169.254.169.254',
])('The metadata service of a cloud is refused with any ranges allowed: %s', (address) => {
  const all = parseRanges(['0.0.0.0/0', '::/0']);
  expect(isRefused(address, all)).toBe(true);
  expect(isRefused('10.0.0.1', all)).toBe(false);
});

it('An IPv6 address that embeds any IPv4 address is refused', () => {
  fc.assert(
    fc.property(fc.ipV4(), (v4) => {
      const [a = 0, b = 0, c = 0, d = 0] = v4.split('.').map(Number);
      const hex = [(a << 8) | b, (c << 8) | d].map((n) => n.toString(16)).join(':');
      for (const embedding of [`::ffff:${v4}`, `::${hex}`, `64:ff9b::${hex}`, `2002:${hex}::`])
        expect(isRefused(embedding, [])).toBe(true);
    }),
  );
});

it.each(['127.0.0.1', '10.0.0.0/33', 'localhost/8', ''])(
  'Malformed range %j is refused',
  (cidr) => {
    expect(() => parseRanges([cidr])).toThrow('bad_setting');
  },
);

it.each([
  ['an IPv4 address in hex', 'http://0x7f.1/'],
  ['an IPv4 address as one number', 'http://2130706433/'],
  ['an IPv4 address in octal', 'http://0177.0.0.1/'],
  ['a short IPv4 address', 'http://127.1/'],
  ['an IPv4 address with a dot behind', 'http://127.0.0.1./'],
  ['full-width digits', 'http://１２７.0.0.1/'],
  ['a mapped IPv6 address', 'http://[::ffff:127.0.0.1]/'],
  ['a mapped IPv6 address in hex', 'http://[::ffff:7f00:1]/'],
  ['IPv6 loopback', 'http://[::1]/'],
  ['cloud metadata', 'http://169.254.169.254/latest/meta-data'],
  ['another scheme', 'ftp://example.com/'],
  ['a file', 'file:///etc/passwd'],
  ['a script', 'javascript:alert(1)'],
  ['credentials', 'https://user:pass@example.com/'],
  ['a user', 'https://user@example.com/'],
  ['the port of SSH', 'http://example.com:22/'],
  ['the port of SMTP', 'http://example.com:25/'],
  ['the port of Postgres', 'http://example.com:5432/'],
  ['the port of Redis', 'http://example.com:6379/'],
  ['no scheme', 'example.com/hook'],
  ['no text', ''],
  ['too many characters', `https://example.com/${'a'.repeat(2_048)}`],
])('A URL with %s is refused', (_what, url) => {
  expect(() => validateUrl(url, RULES)).toThrow('url_refused');
});

it.each([
  ['https://example.com/hook?x=1', 'https://example.com/hook?x=1'],
  ['HTTP://EXAMPLE.com', 'http://example.com/'],
  ['https://example.com:8443/a#b', 'https://example.com:8443/a'],
  ['https://1.1.1.1/', 'https://1.1.1.1/'],
])('URL %s is accepted as %s', (url, normal) => {
  expect(validateUrl(url, RULES).href).toBe(normal);
});

it.each([
  ['https://example.com/', true],
  ['https://10.0.0.1/', true],
  ['http://127.0.0.1:8000/', true],
  ['http://localhost:8000/', true],
  ['http://example.com/', false],
  ['http://1.1.1.1/', false],
  ['http://10.0.0.1/', false],
  ['http://[::1]/', false],
  ['ftp://127.0.0.1/', false],
])('Without http, %s is accepted: %s', (url, isAccepted) => {
  const rules = { allowed: parseRanges(['10.0.0.0/8', '127.0.0.0/8']), allowHttp: false };
  if (isAccepted) expect(validateUrl(url, rules).href).toBe(url);
  else expect(() => validateUrl(url, rules)).toThrow('url_refused');
});

it('Without http, loopback needs https unless its range is allowed', () => {
  const rules = { allowed: [], allowHttp: false };
  expect(() => validateUrl('http://localhost/', rules)).toThrow('must start with https://');
});

const lookup = (resolve: Resolve, all: boolean) =>
  new Promise((done) => {
    checkedLookup(resolve, parseRanges(['127.0.0.0/8']))('name', { all }, (error, found) =>
      done(error?.code ?? found),
    );
  });
const ipv4 = (...addresses: string[]) => addresses.map((address) => ({ address, family: 4 }));

it('A lookup returns only allowed addresses', async () => {
  expect(await lookup(async () => ipv4('10.0.0.1', '127.0.0.1'), true)).toEqual(ipv4('127.0.0.1'));
  expect(await lookup(async () => ipv4('10.0.0.1', '127.0.0.1'), false)).toBe('127.0.0.1');
});

it('A lookup without an allowed address fails', async () => {
  expect(await lookup(async () => ipv4('10.0.0.1'), true)).toBe('BLOCKED_ADDRESS');
  expect(await lookup(async () => [], true)).toBe('BLOCKED_ADDRESS');
});

it('Concurrent lookups of a name share one query, and a failure is cached', async () => {
  let queries = 0;
  const resolve: Resolve = async () => {
    queries++;
    throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
  };
  const failing = checkedLookup(resolve, [], { now: () => 0 });
  const code = () =>
    new Promise((done) => {
      failing('name', { all: true }, (error) => done(error?.code));
    });
  expect(await Promise.all([code(), code()])).toEqual(['ENOTFOUND', 'ENOTFOUND']);
  expect(await code()).toBe('ENOTFOUND');
  expect(queries).toBe(1);
});
