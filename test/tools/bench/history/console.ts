/**
 * How long a page of the console takes in a browser, from the request of its address until it
 * shows its data, on an embedded database full of settled operations, with many open drifts and
 * endpoints.
 */
import { type Browser, chromium, type Page } from 'playwright-core';
import { isoText } from '../../../../src/kernel/clock.ts';
import { CHROMIUM } from '../../../harness/browser.ts';
import { ADMIN_KEY, environmentOf, spawnDaemon } from '../../../harness/daemon.ts';
import { type Bench, figuresOf, type Result } from '../frame.ts';
import { onHistories } from './databases.ts';
import { HISTORY_END } from './generate.ts';

const SLOWEST_MS = 300;
const ROUNDS = 5;
const DRIFTS = 10_000;
const ENDPOINTS = 1_000;
/** Requests at once that make endpoints. */
const AT_ONCE = 8;
const ID = "'drf_00000000-0000-7000-8000-' || lpad(n::text, 12, '0')";
const AT = `timestamptz '${isoText(HISTORY_END)}' - n * interval '1 minute'`;
const OPEN_DRIFTS = `
  set session_replication_role = replica;
  insert into tallyhook.drifts (id, wallet_key, addr, amount, amount_min, amount_max, state,
    suspected_at, opened_at, window_from, window_to, evidence, cause)
  select ${ID}, lower(u.addr), u.addr, n, n, n, 'open', ${AT}, ${AT}, ${AT}, ${AT}, '{}',
    'made_elsewhere'
  from generate_series(1, ${DRIFTS}) n
  cross join lateral (select '0xuser' || lpad((n % 1000)::text, 36, '0') as addr) u`;

const PAGES: Record<string, string> = {
  overview: '/',
  operations: '/operations',
  'operations not executed': '/operations?state=not_executed',
  drifts: '/drifts',
  'a drift': '/drifts/drf_00000000-0000-7000-8000-000000000001',
  wallets: '/wallets',
  operators: '/operators',
  tokens: '/tokens',
  'the trial balance': '/ledger',
  'transactions of the ledger': '/ledger?show=transactions',
  reports: '/reports',
  periods: '/periods',
  endpoints: '/endpoints',
  deliveries: '/deliveries',
  events: '/events',
  watches: '/watches',
  keys: '/keys',
  'audit trail': '/audit',
};

export const consolePages: Bench = {
  name: 'console',
  what: `pages in a browser, with ${DRIFTS} open drifts and ${ENDPOINTS} endpoints`,
  target: `1,000,000 stored operations: each page within ${SLOWEST_MS} ms`,
  long: true,
  run: ({ stored }) =>
    onHistories(stored, { prepare: OPEN_DRIFTS }, (url, operations) => measure(url, operations)),
};

async function measure(url: string, operations: number): Promise<Result[]> {
  // There is no service: a daemon of this role asks it nothing.
  const daemon = await spawnDaemon(environmentOf(url, 'http://127.0.0.1:9'), {
    http: { port: 0 },
    log: { level: 'warn' },
    daemon: { roles: ['api'] },
  });
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  try {
    await makeEndpoints(daemon.url);
    const page = await signedIn(browser, daemon.url);
    const results: Result[] = [];
    for (const [what, path] of Object.entries(PAGES)) {
      await timeOf(page, daemon.url + path);
      const times: number[] = [];
      while (times.length < ROUNDS) times.push(await timeOf(page, daemon.url + path));
      results.push({
        what: `${what}, ${operations.toLocaleString('en')} stored`,
        unit: 'ms',
        measured: figuresOf(times.map((value) => ({ value }))),
        target: { of: 'measured', atMost: SLOWEST_MS },
      });
    }
    return results;
  } finally {
    await browser.close();
    await daemon.stop();
  }
}

async function makeEndpoints(url: string): Promise<void> {
  let left = ENDPOINTS;
  const make = async () => {
    while (left-- > 0) {
      const body = {
        url: `http://127.0.0.1:8099/hooks/${left}`,
        event_types: ['operation.settled'],
      };
      const answer = await fetch(`${url}/api/endpoints`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      if (answer.status !== 201) throw new Error(await answer.text());
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, make));
}

async function signedIn(browser: Browser, url: string): Promise<Page> {
  // The page's policy forbids what the bench evaluates in it.
  const page = await browser.newPage({
    viewport: { width: 1280, height: 900 },
    bypassCSP: true,
  });
  await page.goto(url);
  await page.fill('input[name=key]', ADMIN_KEY);
  await page.click('button[type=submit]');
  await page.waitForSelector('main .view');
  return page;
}

/** Run in the page: until its view is shown and nothing of it loads any more. */
const IS_SHOWN = `document.querySelector('main .view') !== null &&
  document.querySelector('main .opening') === null &&
  ![...document.querySelectorAll('main [role=status]')]
    .some((at) => at.textContent === 'Loading…') &&
  performance.now()`;

async function timeOf(page: Page, address: string): Promise<number> {
  await page.goto(address, { waitUntil: 'commit' });
  const shown = await page.waitForFunction(IS_SHOWN, undefined, { polling: 'raf' });
  return Number(await shown.jsonValue());
}
