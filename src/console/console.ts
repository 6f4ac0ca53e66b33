/**
 * The console: one page whose modules the browser loads from here and which calls the API with the
 * session of the reader. Nothing is loaded from another origin, and the content security policy
 * allows nothing else.
 */
import { createHash } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { type Asset, type Assets, assetOf, findAssets } from './assets.ts';
import { importMapOf, shellOf } from './shell.ts';
import { makeSignIn, type SignInDeps } from './sign-in.ts';

export { makeSessionRoutes } from './session.ts';
export type { SignInSettings } from './sign-in.ts';

/** The first segments of the page's own paths; `web/pages.ts` shows what belongs to each. */
const PAGES = [
  'operations',
  'drifts',
  'wallets',
  'operators',
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
  /** Undefined: people sign in by a key. */
  signIn?: Omit<SignInDeps, 'page' | 'headers' | 'basePath'> | undefined;
  /** Under which the browser reaches it; may be empty. */
  basePath?: string;
}

/** Serves `/`, the paths of the pages, `/console/…` and `/sign-in`; mounted beside the API. */
export function makeConsole({ signIn, basePath = '' }: ConsoleDeps = {}): Hono {
  const app = new Hono();
  const issuer = signIn && new URL(signIn.settings.issuer).host;
  const meta: Record<string, string> = issuer ? { 'sign-in': issuer } : {};
  let loaded: Loaded | undefined;
  // With the first request: a start need not wait for it.
  const load = () => {
    loaded ??= loadShell(meta, basePath);
    return loaded;
  };
  const headers = () => load().headers;
  const page = (values: Record<string, string>) =>
    shellOf(load().folder, load().assets.first, { ...meta, ...values }, basePath);
  if (signIn) app.route('/', makeSignIn({ ...signIn, page, headers, basePath }));
  const shell = (c: Context) => answer(load().shell, headers(), c.req.raw.headers);
  app.get('/', shell);
  for (const page of PAGES) {
    app.get(`/${page}`, shell);
    app.get(`/${page}/:id{.+}`, shell);
  }
  app.get('/console/:path{.+}', (c) => {
    const { assets } = load();
    const [, version, path = ''] = /^(?:v-([\w-]+)\/)?(.+)$/.exec(c.req.param('path')) ?? [];
    const asset = assets.byPath.get(path);
    if (!asset) return c.notFound();
    return answer(asset(), version === assets.version ? KEPT : {}, c.req.raw.headers);
  });
  // Last. A person who mistypes an address gets a page that says so, a program a problem document.
  app.all('/:path{.+}', (c, next) => {
    const isPerson = c.req.method === 'GET' && c.req.header('accept')?.includes('text/html');
    const isPage = !/^\/(?:api|v1|console)(?:\/|$)/.test(c.req.path);
    return isPerson && isPage ? answer(load().shell, headers(), c.req.raw.headers, 404) : next();
  });
  return app;
}

interface Loaded {
  assets: Assets;
  /** Under which the browser reaches the assets: another one for each version of them. */
  folder: string;
  shell: Asset;
  /** Of the shell. */
  headers: Record<string, string>;
}

function loadShell(meta: Readonly<Record<string, string>>, basePath: string): Loaded {
  const assets = findAssets();
  const folder = `${basePath}/console/v-${assets.version}`;
  const headers = {
    'content-type': HTML,
    'content-security-policy': policyOf(folder),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-cache',
  };
  const shell = assetOf(HTML, shellOf(folder, assets.first, meta, basePath));
  return { assets, folder, shell, headers };
}

const HTML = 'text/html; charset=utf-8';

/**
 * The browser keeps what it has under the version of all assets: asking for each again took most
 * of the time of a page. Of other versions, while daemons are replaced, it keeps nothing.
 */
const KEPT = { 'cache-control': 'public, max-age=31536000, immutable' };

function answer(
  { type, etag, bytes, gzipped }: Asset,
  special: Readonly<Record<string, string>>,
  asked: Headers,
  status = 200,
): Response {
  const headers = { 'cache-control': 'no-cache', vary: 'accept-encoding', ...special, etag };
  if (status === 200 && asked.get('if-none-match') === etag)
    return new Response(null, { status: 304, headers });
  const sent = { ...headers, 'content-type': type, 'x-content-type-options': 'nosniff' };
  return asked.get('accept-encoding')?.includes('gzip')
    ? new Response(gzipped, { status, headers: { ...sent, 'content-encoding': 'gzip' } })
    : new Response(bytes, { status, headers: sent });
}

function policyOf(folder: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${hashOf(importMapOf(folder))}`,
    "style-src 'self'",
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
