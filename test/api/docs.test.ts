/** The page of the API at /docs. */
import { describe, expect, it } from 'vitest';
import { EVENT_TYPES } from '../../src/resources/delivery/events.ts';
import { findingsOf, SCREENS } from '../console/browsing.ts';
import { useBrowser } from '../harness/browser.ts';
import { openApi, startServer, useApi } from './rig.ts';

const api = useApi();

async function pageText(): Promise<string> {
  const { status, text } = await api.call('GET', '/docs', { key: undefined });
  expect(status).toBe(200);
  return text;
}

describe('The page of the API', () => {
  it('The page of the API shows every route of the document, and needs no key', async () => {
    const { body } = await api.call('GET', '/api/openapi.json');
    const routes = Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `<code>${method.toUpperCase()} ${path}</code>`),
    );
    const text = await pageText();
    expect(routes.filter((route) => !text.includes(route))).toEqual([]);
  });

  it('The page of the API shows every event type with the fields of its data', async () => {
    const text = await pageText();
    expect(EVENT_TYPES.filter((type) => !text.includes(`id="webhook-${type}"`))).toEqual([]);
    expect(text).toContain('<code>data.ledger_balance</code>');
  });

  it('Every link within the page of the API leads to a part of it', async () => {
    const text = await pageText();
    const targets = [...text.matchAll(/href="#([^"]+)"/g)].map((match) => match[1]);
    expect(targets.length).toBeGreaterThan(50);
    expect(targets.filter((target) => !text.includes(`id="${target}"`))).toEqual([]);
  });

  it.each([
    [
      'a required field with its bounds',
      /<code>queue_url<\/code><\/td><td>text<\/td><td>required; at most 1024/,
    ],
    ['a field of an object in a list', /<code>actions\[\]\.at<\/code>/],
    ['the values of a choice', /none \| subject/],
    ['the scope of a key', /POST \/api\/endpoints<\/code>[\s\S]{1,300}scope <code>manage<\/code>/],
    ['a request by curl', /curl -X POST http:\/\/[^ ]+\/api\/freeze/],
    ['the name of another schema', /list of <a href="#schema-\w+">/],
  ])('The page of the API shows %s', async (_what, shown) => {
    expect(shown.test(await pageText())).toBe(true);
  });

  it('The page of the API can be read without scripts and styles of others', async () => {
    const { headers, text } = await api.call('GET', '/docs', { key: undefined });
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'self'/);
    expect(text).not.toContain('<script');
  });
});

describe('In a browser', () => {
  const browser = useBrowser();

  it.each(SCREENS)('The page of the API has no fault at $width, $scheme', async (screen) => {
    const { api: served } = await openApi(api.database.db);
    const server = await startServer(served);
    try {
      const { width, scheme: colorScheme } = screen;
      const context = await browser().newContext({
        viewport: { width, height: 900 },
        colorScheme,
      });
      const page = await context.newPage();
      await page.goto(`${server.url}/docs`);
      for (const one of await page.locator('summary').all()) await one.click();
      expect(await findingsOf(page, '/docs', screen)).toEqual([]);
      await context.close();
    } finally {
      await server.close();
    }
  });
});
