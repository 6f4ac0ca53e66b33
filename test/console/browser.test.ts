/**
 * The pages in a real browser, against a whole daemon. Debian's Chromium is used where it is
 * installed.
 */

import { describe, expect, it } from 'vitest';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';

describe('the pages', () => {
  const browser = useBrowser();
  if (!browser) return;
  const rig = useRig();

  it('ask for a key, show the board with it, and show a report whose first line is its verdict', async () => {
    const { app, daemon } = rig;
    const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
    const made = await app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
    expect(made.status).toBe(201);
    const page = await browser().newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${daemon.url}/`);
    await page.fill('#key', 'thk_wrong-wrong-wrong-wrong-wrong-wrong-wrong');
    await page.click('#key-form button');
    await page.locator('#key-problem', { hasText: /\w/ }).waitFor();
    await page.fill('#key', ADMIN_KEY);
    await page.click('#key-form button');
    await page.locator('#board').waitFor({ state: 'visible' });
    await page.goto(`${daemon.url}/reports/${made.json.id}`);
    const report = page.frameLocator('#report');
    await report
      .getByText(/balanced|break/i)
      .first()
      .waitFor();
    expect(complaints).toEqual([]);
  });
});
