/** The forms of a request's target (RFC 9112, section 3.2), on every surface. */
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { isNormalPath, originForm } from '../../src/kernel/http/request.ts';
import { useRig } from '../harness/rig.ts';

it.each([
  ['/v1/x?a=1', '/v1/x?a=1', undefined],
  ['//x', '//x', undefined],
  ['/?http://x/', '/?http://x/', undefined],
  ['http://shop.example/v1/x?a=%2f', '/v1/x?a=%2f', 'shop.example'],
  ['HTTP://Shop.example:81/', '/', 'Shop.example:81'],
  ['https://[::1]:8080/docs', '/docs', '[::1]:8080'],
  ['http://shop.example', '/', 'shop.example'],
  ['http://shop.example?a=1', '/?a=1', 'shop.example'],
])('The target %s is the path %s at the host %s', (target, url, host) => {
  expect(originForm(target)).toEqual(host === undefined ? { url } : { url, host });
});

it.each([
  '',
  '*',
  'shop.example:443',
  'v1/x',
  '/v1/x#y',
  '/v1/x?a=1#y',
  'http://shop.example/#y',
  'http:///v1/x',
  'http:/v1/x',
  'http://ann@shop.example/v1/x',
  'http://shop.example\\@x/v1/x',
  'ftp://shop.example/v1/x',
  'ws://shop.example/v1/x',
])('The target %j is no path', (target) => {
  expect(originForm(target)).toBeUndefined();
});

it.each([
  ['/', true],
  ['/api/wallets/0x%c3%A9', true],
  ['/api/accounts/a%2fb', true],
  ['/api/accounts/a:b@c', true],
  ['//api', false],
  ['/api//wallets', false],
  ['/api/../v1', false],
  ['/api/%2e%2E/v1', false],
  ['/api/.%2e/v1', false],
  ['/api/./x', false],
  ['/api\\x', false],
  ['/api/%5cx', false],
  ['/api/%00', false],
  ['/api/%zz', false],
  ['/api/%ff', false],
])('The path %s is read alike by every server: %s', (path, isNormal) => {
  expect(isNormalPath(path)).toBe(isNormal);
});

const rig = useRig();

/** What a daemon answers to a target as it is. */
async function exchanged(target: string, rest = 'HTTP/1.1\r\nhost: x'): Promise<string> {
  const socket = connect(Number(new URL(rig.daemon.url).port), '127.0.0.1');
  socket.write(`GET ${target} ${rest}\r\nconnection: close\r\n\r\n`);
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part);
  return Buffer.concat(parts).toString();
}

/** The status and the code, if any. */
async function answerTo(target: string, rest?: string): Promise<string> {
  const text = await exchanged(target, rest);
  const code = /"code":"([a-z_]+)"/.exec(text)?.[1];
  return [text.slice(9, 12), code].filter(Boolean).join(' ');
}

/** A path of each surface, and the answer to it. */
const SURFACES = [
  ['the gateway', '/v1/system/maintenance?lang=%c3%a9', '200'],
  ['the gateway without a key', '/v1/app/token/account?addr=x', '406'],
  ['the API', '/api/openapi.json', '200'],
  ['the API without a key', '/api/wallets?limit=1', '401 unauthorized'],
  ['the page of the API', '/docs', '200'],
  ['the console', '/', '200'],
  ['a page of the console', '/operations', '200'],
  ['a module of the console', '/console/style.css', '200'],
  ['the checks', '/healthz', '200'],
  ['the metrics', '/metrics', '200'],
  ['the keys of webhooks', '/.well-known/webhook-keys', '200'],
] as const;

it.each(SURFACES)(
  '%s answers a target in absolute form as one with the path',
  async (_, path, answer) => {
    expect(await answerTo(path)).toBe(answer);
    expect(await answerTo(`http://shop.example:81${path}`)).toBe(answer);
    expect(await answerTo(`HTTPS://shop.example${path}`)).toBe(answer);
  },
);

it.each(SURFACES)('%s answers a request of HTTP/1.0 without a host', async (_, path, answer) => {
  expect(await answerTo(path, 'HTTP/1.0')).toBe(answer);
});

it('The examples of the page of the API have the host of a target in absolute form', async () => {
  expect(await exchanged('http://shop.example/docs')).toContain('curl http://shop.example/api/');
});

it.each(['*', 'shop.example:443', 'ftp://x/api/wallets', '/api/wallets#x', '/v1/x#y', '/#y'])(
  'The target %s is answered with 400 malformed_http',
  async (target) => {
    expect(await answerTo(target)).toBe('400 malformed_http');
  },
);

it.each([
  '//api/openapi.json',
  '/api//openapi.json',
  '/api/../healthz',
  '/api/%2e%2e/healthz',
  '/x/..%2fhealthz/../docs',
  '/docs/./',
  '/operations\\x',
  '/v1/../healthz',
  '/v1//system/maintenance',
  'http://shop.example//healthz',
])(
  'The path %s, which servers could read differently, is not found on any surface',
  async (path) => {
    expect(await answerTo(path)).toBe('404 not_found');
  },
);
