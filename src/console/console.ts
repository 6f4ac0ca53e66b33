/**
 * The console: one page whose modules the browser loads from here and which calls the API with a
 * key that the reader enters and that stays in the tab. Nothing is loaded from another origin, and
 * the content security policy allows nothing else.
 */
import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { type Asset, loadAssets } from './assets.ts';
import { IMPORT_MAP, shellOf } from './shell.ts';

/** The first segments of the page's own paths; `web/pages.ts` shows what belongs to each. */
const PAGES = [
  ...['operations', 'drifts', 'wallets', 'tokens', 'ledger', 'periods', 'reports'],
  ...['endpoints', 'deliveries', 'events', 'watches', 'keys', 'settings', 'quarantine', 'audit'],
];

/**
 * Serves `/`, the paths of the pages and `/console/…`; mounted beside the API.
 * @param styles inline style sheets that documents shown in a frame have, such as reports
 */
export function makeConsole(styles: readonly string[] = []): Hono {
  const app = new Hono();
  let loaded: Loaded | undefined;
  // With the first request: a start need not wait for it.
  const load = () => {
    loaded ??= loadShell();
    return loaded;
  };
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policyOf(styles),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-cache',
  };
  app.get('/', (c) => c.body(load().shell, 200, headers));
  for (const page of PAGES) {
    app.get(`/${page}`, (c) => c.body(load().shell, 200, headers));
    app.get(`/${page}/:id{.+}`, (c) => c.body(load().shell, 200, headers));
  }
  app.get('/console/:path{.+}', (c) => {
    const asset = load().assets.get(c.req.param('path'));
    if (!asset) return c.notFound();
    return answer(asset, c.req.header('if-none-match'), c.req.header('accept-encoding') ?? '');
  });
  return app;
}

interface Loaded {
  assets: Map<string, Asset>;
  shell: string;
}

function loadShell(): Loaded {
  const assets = loadAssets();
  const shell = shellOf([...assets.keys()].filter((path) => path.startsWith('kit/')));
  return { assets, shell };
}

/** Assets change with the program only: the browser asks whether one is still the same. */
function answer(asset: Asset, known: string | undefined, encodings: string): Response {
  const { type, etag, bytes, gzipped } = asset;
  const headers = { etag, 'cache-control': 'no-cache', vary: 'accept-encoding' };
  if (known === etag) return new Response(null, { status: 304, headers });
  const sent = { ...headers, 'content-type': type, 'x-content-type-options': 'nosniff' };
  return encodings.includes('gzip')
    ? new Response(gzipped, { headers: { ...sent, 'content-encoding': 'gzip' } })
    : new Response(bytes, { headers: sent });
}

function policyOf(styles: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${hashOf(IMPORT_MAP)}`,
    ["style-src 'self'", ...styles.map(hashOf)].join(' '),
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
