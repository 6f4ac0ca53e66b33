/**
 * The console: one page whose modules the browser loads from here and which calls the API with the
 * session of the reader. Nothing is loaded from another origin, and the content security policy
 * allows nothing else.
 */
import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { type Asset, findAssets } from './assets.ts';
import { importMapOf, shellOf } from './shell.ts';
import { makeSignIn, type SignInDeps } from './sign-in.ts';

export { makeSessionRoutes } from './session.ts';
export type { SignInSettings } from './sign-in.ts';

/** The first segments of the page's own paths; `web/pages.ts` shows what belongs to each. */
const PAGES = [
  'operations',
  'drifts',
  'wallets',
  'tokens',
  'ledger',
  'periods',
  'reports',
  'endpoints',
  'deliveries',
  'events',
  'watches',
  'keys',
  'settings',
  'quarantine',
  'audit',
  'portal',
];

export interface ConsoleDeps {
  /** Inline style sheets that documents shown in a frame have, such as reports. */
  styles?: readonly string[];
  /** Undefined: people sign in by a key. */
  signIn?: Omit<SignInDeps, 'page' | 'headers' | 'basePath'> | undefined;
  /** Under which the browser reaches it; may be empty. */
  basePath?: string;
}

/** Serves `/`, the paths of the pages, `/console/…` and `/sign-in`; mounted beside the API. */
export function makeConsole({ styles = [], signIn, basePath = '' }: ConsoleDeps = {}): Hono {
  const app = new Hono();
  const issuer = signIn && new URL(signIn.settings.issuer).host;
  const meta: Record<string, string> = issuer ? { 'sign-in': issuer } : {};
  let loaded: Loaded | undefined;
  // With the first request: a start need not wait for it.
  const load = () => {
    loaded ??= loadShell(meta, basePath);
    return loaded;
  };
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policyOf(styles, basePath),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-cache',
  };
  const page = (values: Record<string, string>) =>
    shellOf(load().first, { ...meta, ...values }, basePath);
  if (signIn) app.route('/', makeSignIn({ ...signIn, page, headers, basePath }));
  app.get('/', (c) => c.body(load().shell, 200, headers));
  for (const page of PAGES) {
    app.get(`/${page}`, (c) => c.body(load().shell, 200, headers));
    app.get(`/${page}/:id{.+}`, (c) => c.body(load().shell, 200, headers));
  }
  app.get('/console/:path{.+}', (c) => {
    const asset = load().assets.get(c.req.param('path'));
    if (!asset) return c.notFound();
    return answer(asset(), c.req.header('if-none-match'), c.req.header('accept-encoding') ?? '');
  });
  // Last. A person who mistypes an address gets a page that says so, a program a problem document.
  app.all('/:path{.+}', (c, next) => {
    const isPerson = c.req.method === 'GET' && c.req.header('accept')?.includes('text/html');
    const isPage = !/^\/(?:api|v1|console)(?:\/|$)/.test(c.req.path);
    return isPerson && isPage ? c.body(load().shell, 404, headers) : next();
  });
  return app;
}

interface Loaded {
  assets: Map<string, () => Asset>;
  /** The modules that every view needs. */
  first: string[];
  shell: string;
}

function loadShell(meta: Readonly<Record<string, string>>, basePath: string): Loaded {
  const assets = findAssets();
  const first = [...assets.keys()].filter((path) => path.startsWith('kit/'));
  return { assets, first, shell: shellOf(first, meta, basePath) };
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

function policyOf(styles: readonly string[], basePath: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${hashOf(importMapOf(basePath))}`,
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
