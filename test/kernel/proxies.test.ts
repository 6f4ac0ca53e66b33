/** Which targets go through which proxy, and who sent what came through trusted ones. */
import { expect, it } from 'vitest';
import { withoutBasePath } from '../../src/kernel/http/base-path.ts';
import { makeProxyOf, parseProxy } from '../../src/kernel/http/forward-proxy.ts';
import { makeTrustedProxies } from '../../src/kernel/http/trusted-proxies.ts';

it.each([
  ['http://proxy:3128', { hostname: 'proxy', port: 3128, isSecure: false }],
  ['http://proxy', { hostname: 'proxy', port: 80 }],
  ['https://proxy/', { hostname: 'proxy', port: 443, isSecure: true }],
  ['proxy.corp:8080', { hostname: 'proxy.corp', port: 8080, isSecure: false }],
  ['10.0.0.1:3128', { hostname: '10.0.0.1', port: 3128 }],
  ['http://[fd00::1]:3128', { hostname: 'fd00::1', port: 3128 }],
  ['me:pass@proxy:3128', { hostname: 'proxy', authorization: `Basic ${btoa('me:pass')}` }],
  ['http://me:p%40s:s@proxy', { authorization: `Basic ${btoa('me:p@s:s')}` }],
  ['http://me@proxy', { authorization: `Basic ${btoa('me:')}` }],
  ['http://proxy', { authorization: undefined }],
])('The proxy at %s is %j', (text, proxy) => {
  expect(parseProxy(text)).toMatchObject(proxy);
});

it.each(['socks5://proxy:1080', 'http://', 'http://proxy/path', 'http://proxy?a', 'http://a%zz@p'])(
  'There is no proxy at %s',
  (text) => {
    expect(parseProxy(text)).toBeUndefined();
  },
);

const BOTH = { https: 'http://secure:1', http: 'http://plain:2' };

/** The proxy of a URL by name; `direct` without one. */
function through(url: string, except: string, proxies: object = BOTH): string {
  const { protocol, hostname, port } = new URL(url);
  return makeProxyOf({ ...proxies, except })({ protocol, hostname, port })?.hostname ?? 'direct';
}

it.each([
  ['https://api.example', '', 'secure'],
  ['http://api.example', '', 'plain'],
  ['http://localhost:4000', '', 'direct'],
  ['https://a.localhost', '', 'direct'],
  ['http://127.8.0.1', '', 'direct'],
  ['http://[::1]:80', '', 'direct'],
  ['http://[::ffff:127.0.0.1]', '', 'direct'],
  ['http://10.0.0.1', '', 'plain'],
  ['https://api.example', '*', 'direct'],
  ['https://api.example', 'api.example', 'direct'],
  ['https://api.example.', 'api.example', 'direct'],
  ['https://API.example', 'Api.Example', 'direct'],
  ['https://v1.api.example', 'api.example', 'direct'],
  ['https://v1.api.example', '.api.example', 'direct'],
  ['https://v1.api.example', '*.api.example', 'direct'],
  ['https://notapi.example', 'api.example', 'secure'],
  ['https://api.example', 'v1.api.example', 'secure'],
  ['https://api.example', 'other, api.example', 'direct'],
  ['https://api.example', 'other api.example', 'direct'],
  ['https://api.example', ',,', 'secure'],
  ['https://api.example', 'api.example:443', 'direct'],
  ['http://api.example', 'api.example:443', 'plain'],
  ['https://api.example:8443', 'api.example:443', 'secure'],
  ['https://api.example:8443', 'api.example:8443', 'direct'],
  ['http://10.1.2.3', '10.0.0.0/8', 'direct'],
  ['http://11.1.2.3', '10.0.0.0/8', 'plain'],
  ['http://ten.example', '10.0.0.0/8', 'plain'],
  ['http://10.1.2.3', '10.1.2.3', 'direct'],
  ['http://10.1.2.3:81', '10.1.2.3:81', 'direct'],
  ['http://10.1.2.3', '1.2.3', 'plain'],
  ['http://[fd00::1]', 'fd00::/8', 'direct'],
  ['http://[fd00::1]', 'fd00:0::1', 'direct'],
  ['http://[fd00::1]:81', '[fd00::1]:81', 'direct'],
  ['http://[fd00::1]', '[fd00::2]', 'plain'],
  ['http://[::ffff:10.1.2.3]', '10.0.0.0/8', 'direct'],
])('%s with NO_PROXY=%s goes by way of: %s', (url, except, way) => {
  expect(through(url, except)).toBe(way);
});

it('Targets of a protocol without a proxy are reached directly', () => {
  expect(through('http://api.example', '', { https: 'http://secure' })).toBe('direct');
  expect(through('https://api.example', '', {})).toBe('direct');
});

const TRUSTED = makeTrustedProxies(['10.0.0.0/8', 'fd00::/8']);
const NOBODY = makeTrustedProxies([]);

it.each([
  ['8.8.8.8', undefined, '8.8.8.8'],
  ['8.8.8.8', '1.1.1.1', '8.8.8.8'],
  ['10.0.0.1', undefined, '10.0.0.1'],
  ['10.0.0.1', '', '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1', '1.1.1.1'],
  ['::ffff:10.0.0.1', '1.1.1.1', '1.1.1.1'],
  ['10.0.0.1', '6.6.6.6, 1.1.1.1', '1.1.1.1'],
  ['10.0.0.1', '6.6.6.6,1.1.1.1,10.0.0.2', '1.1.1.1'],
  ['10.0.0.1', '6.6.6.6, 10.0.0.9, 1.1.1.1, 10.0.0.2', '1.1.1.1'],
  ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
  ['10.0.0.1', '1.1.1.1:5000', '1.1.1.1'],
  ['10.0.0.1', '2606:4700::1', '2606:4700::1'],
  ['10.0.0.1', '2606:4700:0::1', '2606:4700::1'],
  ['10.0.0.1', '[2606:4700::1]:5000', '2606:4700::1'],
  ['10.0.0.1', '[2606:4700::1]', '2606:4700::1'],
  ['fd00::1%eth0', '::ffff:1.1.1.1', '1.1.1.1'],
  ['10.0.0.1', 'unknown', '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, unknown', '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, _hidden, 10.0.0.2', '10.0.0.2'],
  ['10.0.0.1', '1.1.1.1, ', '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, 134744072', '10.0.0.1'],
  ['10.0.0.1', ['6.6.6.6', '1.1.1.1, 10.0.0.2'], '1.1.1.1'],
  [undefined, '1.1.1.1', undefined],
])('From %s with X-Forwarded-For %j the client is %s', (remoteAddress, forwarded, client) => {
  const request = { headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } };
  expect(TRUSTED.addressOf(request)).toBe(client);
});

it('Without trusted proxies nothing that a request says of its sender is believed', () => {
  const headers = {
    host: 'own.example',
    'x-forwarded-for': '1.1.1.1',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'evil.example',
  };
  const request = { headers, socket: { remoteAddress: '10.0.0.1' } };
  expect(NOBODY.addressOf(request)).toBe('10.0.0.1');
  expect(NOBODY.originOf(request)).toBe('http://own.example');
});

it.each([
  [{}, 'http://own.example:81'],
  [{ 'x-forwarded-proto': 'https' }, 'https://own.example:81'],
  [{ 'x-forwarded-proto': 'http, HTTPS' }, 'https://own.example:81'],
  [{ 'x-forwarded-proto': 'javascript' }, 'http://own.example:81'],
  [{ 'x-forwarded-host': 'evil.example, shop.example:8443' }, 'http://shop.example:8443'],
  [{ 'x-forwarded-host': 'a b"<', 'x-forwarded-proto': 'https' }, 'https://own.example:81'],
  [{ host: '[::1]:80' }, 'http://[::1]:80'],
  [{ host: '<' }, 'http://localhost'],
])('With %j from a trusted proxy the client knows this server as %s', (more, origin) => {
  const request = {
    headers: { host: 'own.example:81', ...more },
    socket: { remoteAddress: '10.0.0.1' },
  };
  expect(TRUSTED.originOf(request)).toBe(origin);
});

it.each([
  ['/tallyhook/api/status?a=/tallyhook', '/api/status?a=/tallyhook'],
  ['/tallyhook', '/'],
  ['/tallyhook/', '/'],
  ['/tallyhook?a=1', '/?a=1'],
  ['/tallyhook/v1/%2e%2E/x//y', '/v1/%2e%2E/x//y'],
  ['/tallyhook/tallyhook/x', '/tallyhook/x'],
  ['/api/status', '/api/status'],
  ['/tallyhooks/api', '/tallyhooks/api'],
  ['/Tallyhook/api', '/Tallyhook/api'],
  ['*', '*'],
])('Under the path /tallyhook, %s is %s', (target, inside) => {
  expect(withoutBasePath(target, '/tallyhook')).toBe(inside);
  expect(withoutBasePath(target, '')).toBe(target);
});
