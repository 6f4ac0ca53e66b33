/** The operation pages in a browser: search, decision and approval. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, useApi } from '../api/rig.ts';
import { useBrowser } from '../harness/browser.ts';

describe('The operation pages', () => {
  const browser = useBrowser();
  if (!browser) return;
  const api = useApi();
  let server: Awaited<ReturnType<typeof startServer>>;
  const pageErrors: string[] = [];

  beforeAll(async () => {
    server = await startServer(api.api);
  });
  afterAll(async () => {
    await server?.close();
    expect(pageErrors).toEqual([]);
  });

  /** A page of a person with a key of that owner. */
  const pageOf = async (owner: string, path: string): Promise<Page> => {
    const { secret } = await api.keys.create({ name: owner, owner, scopes: ['read', 'decide'] });
    const context = await browser().newContext();
    const page = await context.newPage();
    page.on('pageerror', (error) => pageErrors.push(error.message));
    await page.goto(`${server.url}${path}`);
    await page.fill('#key', secret);
    await page.click('#key-form button');
    await page.locator('#board').waitFor({ state: 'visible' });
    return page;
  };

  it('Two owners find and decide an undecided operation', async () => {
    const id = await api.recordLost({ reference: 'order <b>7</b>' });
    const at = api.deps.clock.now();
    await api.database.db.begin((tx) =>
      api.operations.move(tx, [
        { id, to: 'undecided', at, cause: 'observations', evidence: { observation: 1 } },
      ]),
    );
    const ann = await pageOf('ann', '/operations?state=undecided&query=order+%3Cb%3E7%3C%2Fb%3E');
    await ann.locator('#rows', { hasText: 'order <b>7</b>' }).waitFor();
    await ann.locator('#rows a').first().click();
    await ann.locator('#evidence', { hasText: '"observation": 1' }).waitFor();
    await ann.fill('#reason', 'receipt 17');
    await ann.click('#executed');
    await ann.locator('#decisions', { hasText: 'receipt 17' }).waitFor();
    await ann.click('#approve');
    await ann.locator('#problem', { hasText: 'another owner' }).waitFor();
    const bob = await pageOf('bob', `/operations/${id}`);
    await bob.locator('#approve', { hasText: 'Approve number 1: executed' }).click();
    await bob.locator('#state', { hasText: 'executed' }).waitFor();
    const { body } = await api.call('GET', `/api/operations/${id}`);
    expect(body).toMatchObject({ state: 'executed', effective_basis: 'decision' });
  });

  it('The start page links to undecided operations', async () => {
    const page = await pageOf('cleo', '/');
    await page.locator('a.tile').click();
    await page.locator('#advice', { hasText: 'propose its outcome' }).waitFor();
  });
});
