/** The console and the login page in a real browser, where Chromium is installed. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findingsOf, SCREENS } from '../../console/browsing.ts';
import { useBrowser } from '../../harness/browser.ts';
import { type Caller, REDIRECT, startCaller, stopAll } from '../client.ts';

const LOGIN = new URLSearchParams({
  response_type: 'code',
  client_id: 'app',
  redirect_uri: REDIRECT,
  state: 's 1',
});

describe('The pages', () => {
  const browser = useBrowser();
  let caller: Caller;
  const fieldErrors: string[] = [];

  beforeAll(async () => {
    caller = await startCaller();
  });
  afterAll(async () => {
    await stopAll();
  });

  const opened = async (path: string): Promise<Page> => {
    const page = await browser().newPage();
    page.on('pageerror', (error) => fieldErrors.push(error.message));
    page.on('console', (line) => {
      if (line.type() === 'error') fieldErrors.push(line.text());
    });
    await page.goto(caller.sandbox.url + path);
    return page;
  };

  it('offer the control surface as a form', async () => {
    const page = await opened('/_sandbox');
    await page.getByText('Anything else').click();
    await page.selectOption('form[name=act] select', {
      label: 'Starts, announces or ends maintenance',
    });
    await page.fill('textarea', '{"state":"on","message":"<b>New disks</b>"}');
    await page.click('form[name=act] button');
    await page.locator('#response', { hasText: '200 {"maintenance"' }).waitFor();
    expect(await page.locator('#response b').count()).toBe(0);
    expect((await caller.send('GET', '/v1/system/maintenance')).at('data.status')).toBe('INACTIVE');
    await page.fill('textarea', '{"state":"off"}');
    await page.click('form[name=act] button');
    await page.locator('#response', { hasText: 'null' }).waitFor();
    expect(fieldErrors).toEqual([]);
  });

  it('script faults by button and show the world as it changes', async () => {
    const page = await opened('/_sandbox');
    await page.selectOption('#endpoint', 'give');
    await page.getByRole('button', { name: 'Lose the answer' }).click();
    const faults = page.getByRole('region', { name: 'Faults that wait' });
    expect(await faults.locator('tbody tr').innerText()).toMatch(/lost_answer\s+give\s+1\s+0/);
    await page.getByRole('button', { name: 'Start maintenance' }).click();
    await page.locator('.tile', { hasText: 'down' }).waitFor();
    await page.getByRole('button', { name: 'End maintenance' }).click();
    await page.locator('.tile', { hasText: 'active' }).waitFor();
    await page.getByRole('button', { name: 'Delete all faults' }).click();
    await faults.waitFor({ state: 'detached' });
    expect(fieldErrors).toEqual([]);
  });

  it('change a balance by button, and say what was done in words', async () => {
    const page = await opened('/_sandbox');
    const wallets = page.getByRole('region', { name: 'Wallets' });
    const row = wallets.locator('tbody tr').first();
    const cells = await row.locator('td').allInnerTexts();
    await row.getByRole('button', { name: '+100' }).click();
    await page.locator('#response', { hasText: `${cells[1]} was given 100.` }).waitFor();
    const [, , before = '0'] = cells;
    await expect
      .poll(() => row.locator('td').nth(2).innerText())
      .toBe(String(Number(before) + 100));
    await row.getByRole('button', { name: 'withdraw' }).click();
    await row.getByRole('button', { name: 'restore' }).click();
    await page.locator('#response', { hasText: 'is active again.' }).waitFor();
    expect(fieldErrors).toEqual([]);
  });

  it.each(SCREENS)('are accessible at $width px, $scheme', async (screen) => {
    const { width, scheme: colorScheme } = screen;
    const context = await browser().newContext({ viewport: { width, height: 900 }, colorScheme });
    const page = await context.newPage();
    await page.goto(`${caller.sandbox.url}/_sandbox`);
    await page.getByText('Control surface and endpoints').click();
    expect(await findingsOf(page, 'sandbox', screen)).toEqual([]);
    await page.goto(`${caller.sandbox.url}/v1/oauth/authorize?${LOGIN}`);
    expect(await findingsOf(page, 'login of the sandbox', screen)).toEqual([]);
  });

  it('log a member in and redirect with code and state', async () => {
    const page = await opened(`/v1/oauth/authorize?${LOGIN}`);
    expect(await page.textContent('h1')).toContain('Sandbox App');
    // No server listens at the redirect URI, so the browser's request is intercepted.
    await page.route(`${REDIRECT}*`, (route) => route.fulfill({ body: 'back' }));
    await page.getByRole('button', { name: 'Ada' }).click();
    await page.waitForURL(`${REDIRECT}*`);
    const { searchParams } = new URL(page.url());
    expect(searchParams.get('state')).toBe('s 1');
    const form = {
      grant_type: 'authorization_code',
      code: searchParams.get('code') ?? '',
      redirect_uri: REDIRECT,
    };
    const authorization = `Basic ${Buffer.from('app:hush').toString('base64')}`;
    const reply = await caller.send('POST', '/v1/oauth/token', { authorization, form });
    expect(reply.at('nickname')).toBe('Ada');
  });
});
