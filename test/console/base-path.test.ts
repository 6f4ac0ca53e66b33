/** A daemon under a path of Debian's nginx, with the block of docs/operators.md and a browser. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY, type DaemonProcess, startDaemon } from '../harness/daemon.ts';
import { useFolder } from '../harness/folder.ts';
import { type Nginx, startNginx } from '../harness/nginx.ts';
import { useWorld } from '../harness/rig.ts';
import { signIn } from './browsing.ts';

/** Run in the page: the links within this machine. */
const LINKS = `[...document.querySelectorAll('a[href^="/"]')].map((a) => a.getAttribute('href'))`;

const world = await useWorld();
const folder = useFolder();
const browser = useBrowser();
let daemon: DaemonProcess;
beforeAll(async () => {
  const env = {
    TALLYHOOK_BASE_PATH: '/tallyhook',
    TALLYHOOK_TRUSTED_PROXIES: '127.0.0.0/8',
  };
  daemon = await startDaemon(world, {}, env);
});
afterAll(() => daemon?.kill());

/** The block of the documents, for a daemon at this address. */
function documented(address: string): string {
  const text = readFileSync(join(import.meta.dirname, '../../docs/operators.md'), 'utf8');
  const block = / {4}location \/tallyhook\/ \{[\s\S]*?\n {4}\}\n/.exec(text)?.[0] ?? '';
  expect(block).toContain('proxy_pass http://127.0.0.1:8080;');
  return block.replace('http://127.0.0.1:8080', address);
}

describe.each([
  ['keeps the path, as documented', (block: string) => block, true],
  ['takes the path away', (block: string) => block.replace(/(proxy_pass .*);/, '$1/;'), false],
])('Under a path of nginx that %s', (_, changed, isRaw) => {
  let nginx: Nginx;
  let url: string;
  let app: App;
  beforeAll(async () => {
    nginx = await startNginx(folder, changed(documented(new URL(daemon.url).origin)));
    url = `${nginx.url}/tallyhook`;
    app = makeApp(() => url);
  });
  afterAll(() => nginx?.close());

  it('The console works in a browser: links, a search, the way back, and a reload', async () => {
    const written = await app.give(world.ada, 5);
    const operation = String(written.headers['tallyhook-operation']);
    const { page, check, open } = await signIn(browser(), url, ADMIN_KEY);
    expect(new URL(page.url()).pathname).toMatch(/^\/tallyhook\/?$/);
    await page.getByRole('link', { name: 'Operations', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Operations' }).waitFor();
    expect(page.url()).toBe(`${url}/operations`);
    await page.locator(`a[href="/tallyhook/operations/${operation}"]`).first().click();
    await page.waitForURL(`${url}/operations/${operation}`);
    await page.reload();
    await page.waitForSelector('main .view');
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Operations' }).waitFor();
    for (const path of ['/drifts', '/wallets', '/reports', '/endpoints', '/settings', '/keys'])
      await open(path);
    const links = await page.evaluate<string[]>(LINKS);
    expect(links.filter((href) => !href.startsWith('/tallyhook/'))).toEqual([]);
    await check('/keys');
  });

  it('The page of the API has its style, its links, and the address of nginx', async () => {
    const page = await browser().newPage();
    await page.goto(`${url}/docs`);
    const style = page.locator('link[rel=stylesheet]');
    expect(await style.getAttribute('href')).toBe('/tallyhook/console/style.css');
    expect((await fetch(`${nginx.url}/tallyhook/console/style.css`)).status).toBe(200);
    expect(await page.content()).toContain(`curl ${url}/api/status`);
    const links = await page.evaluate<string[]>(LINKS);
    expect(links.filter((href) => !href.startsWith('/tallyhook/'))).toEqual([]);
    await page.getByRole('link', { name: 'openapi.json' }).click();
    expect(page.url()).toBe(`${url}/api/openapi.json`);
    const document = (await app.call('GET', '/api/openapi.json')).json;
    expect(document.servers[0].url).toBe('/tallyhook');
    expect(document.externalDocs.url).toBe('/tallyhook/docs#gateway');
    await page.close();
  });

  it('The audit trail has the address of the client, which nginx saw', async () => {
    const from = { 'x-forwarded-for': '203.0.113.7' };
    expect((await app.call('POST', '/api/freeze', { reason: 'audited' }, from)).status).toBe(200);
    expect((await app.call('POST', '/api/unfreeze', { reason: 'audited' })).status).toBe(200);
    const { data } = (await app.call('GET', '/api/audit?limit=2')).json;
    const addresses = data.map((entry: { client_address: string }) => entry.client_address);
    expect(addresses).toEqual(['127.0.0.1', '203.0.113.7']);
  });

  it('The gateway gets the path of an app byte by byte, and health is answered', async () => {
    expect((await app.transfer(world.ada, world.ben, 1)).status).toBe(200);
    expect((await app.call('GET', '/readyz')).status).toBe(200);
    // Not in its normal form, which nginx must not have made of it.
    expect((await app.call('GET', '/v1/app/token/%61ccount')).status).toBe(isRaw ? 404 : 406);
  });
});
