/** What forms, tabs, titles and addresses do for a person at the console. */
import { describe, expect, it } from 'vitest';
import { isoText, systemClock } from '../../src/kernel/clock.ts';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { operationIdOf, useRig } from '../harness/rig.ts';
import { FIRST, findingsOf, signIn } from './browsing.ts';

describe('A person at the console', () => {
  const browser = useBrowser();
  const rig = useRig();

  it('One Escape drops no filled form, the second does', async () => {
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/endpoints');
    const dialog = page.getByRole('dialog');
    const create = page.getByRole('button', { name: 'Create an endpoint' });
    await create.click();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await create.click();
    await page.fill('dialog input[name=url]', 'https://receiver.example/hooks');
    await page.keyboard.press('Escape');
    await dialog.getByText('Press Escape again to drop what you typed.').waitFor();
    await check('a warning before a form is dropped');
    expect(await page.inputValue('dialog input[name=url]')).toBe('https://receiver.example/hooks');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });

  it('What is wrong with a member stands at its field', async () => {
    const { page, open } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/endpoints');
    await page.getByRole('button', { name: 'Create an endpoint' }).click();
    await page.fill('dialog input[name=url]', 'https://receiver.example/hooks');
    await page.fill('dialog textarea[name=event_types]', 'no.such.type');
    const refused = page.waitForEvent('console', (message) => message.type() === 'error');
    await page.locator('dialog button[type=submit]').click();
    const field = page.locator('dialog label', { hasText: 'Event types' });
    expect(await field.locator('.bad-text').textContent()).toContain('no.such.type');
    expect(await field.locator('textarea').getAttribute('aria-invalid')).toBe('true');
    expect((await refused).text()).toContain('400');
    expect(await findingsOf(page, 'an error at its field', FIRST)).toEqual([]);
  });

  it('An endpoint that sends to a broker is made with its settings as JSON', async () => {
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/endpoints');
    await page.getByRole('button', { name: 'Create an endpoint' }).click();
    const destination = page.locator('dialog label', { hasText: 'A broker instead' });
    const input = destination.locator('textarea');
    const submit = page.locator('dialog button[type=submit]');
    await input.fill('{"kind": "nats"');
    await submit.click();
    await destination.getByText('destination is not JSON; texts stand in double quotes').waitFor();
    const settings = { kind: 'nats', servers: ['127.0.0.1:4222'], subject: 'tallyhook.events' };
    await input.fill(
      JSON.stringify({ ...settings, tls: false, username: 'shop', password: 'secret-of-nats' }),
    );
    await page.fill('dialog textarea[name=event_types]', 'endpoint.test');
    await submit.click();
    await page.getByRole('link', { name: /^nats:.*tallyhook\.events/ }).click();
    await page.getByRole('button', { name: 'Change' }).click();
    await page.fill('dialog input[name=description]', 'ours');
    expect(await destination.count()).toBe(0);
    await check('the change of an endpoint of a broker');
    await submit.click();
    await page.getByText('ours').waitFor();
    expect(await page.content()).not.toContain('secret-of-nats');
  });

  it('Arrow keys lead from tab to tab', async () => {
    const { page, open } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/endpoints');
    await page.getByRole('button', { name: 'Create an endpoint' }).click();
    await page.fill('dialog input[name=url]', `${(await rig.receiver()).url}/tabs`);
    await page.fill('dialog textarea[name=event_types]', 'endpoint.test');
    await page.locator('dialog button[type=submit]').click();
    const tabs = page.getByRole('tab');
    await tabs.first().focus();
    await page.keyboard.press('ArrowRight');
    expect(await tabs.nth(1).getAttribute('aria-selected')).toBe('true');
    expect(await tabs.nth(1).evaluate((tab) => tab.matches(':focus'))).toBe(true);
    await page.keyboard.press('Home');
    expect(await tabs.first().getAttribute('aria-selected')).toBe('true');
    await page.keyboard.press('ArrowLeft');
    expect(await tabs.last().getAttribute('aria-selected')).toBe('true');
  });

  it('The title of a page names its subject', async () => {
    const given = await rig.app.give(rig.world.ben, 7);
    const { page, open } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open(`/operations/${operationIdOf(given)}`);
    expect(await page.title()).toMatch(/^Operations op_\S+ · Tallyhook$/);
    await open('/endpoints');
    expect(await page.title()).toBe('Endpoints · Tallyhook');
    expect(await page.locator('link[rel=icon]').getAttribute('href')).toContain('svg');
  });

  it('An address without a page answers a page that says so, and a program a problem', async () => {
    const { page } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    const answer = await page.goto(`${rig.daemon.url}/operatoins`);
    expect(answer?.status()).toBe(404);
    await page.getByText('no such page', { exact: false }).waitFor();
    const asked = await fetch(`${rig.daemon.url}/operatoins`);
    expect(asked.status).toBe(404);
    expect(asked.headers.get('content-type')).toContain('application/problem+json');
  });

  it('A dry run is no change in the audit trail, and its values are in words', async () => {
    await rig.subscribe('/dry', ['wallet.*']);
    const { json } = await rig.app.call('GET', '/api/endpoints');
    const dry = await rig.app.call('POST', `/api/endpoints/${json.data[0].id}/replay`, {
      since: isoText(systemClock.now() - 3_600_000),
      dry_run: true,
    });
    expect(dry.status, dry.text).toBeLessThan(300);
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/audit');
    const row = page.locator('tbody tr', { hasText: 'replayed events' }).first();
    await row.locator('.pill', { hasText: 'dry run' }).waitFor();
    const text = await page.locator('main').textContent();
    expect(text).not.toContain('[object Object]');
    expect(text).not.toMatch(/\b1[6-9]\d{11}\b/);
    await check('the audit trail with a dry run');
  });
});
