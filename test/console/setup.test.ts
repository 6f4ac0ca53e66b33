/** Watches, keys, settings and the audit trail in a browser, as an operator uses them. */
import { describe, expect, it } from 'vitest';
import { makeApp } from '../harness/app.ts';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';
import { SCREENS, signIn } from './browsing.ts';

describe('The pages of the setup', () => {
  const browser = useBrowser();
  const rig = useRig();

  it('A key is created with limits, shown once, keeps its limits, and is revoked', async () => {
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/keys');
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.fill('dialog input[name=name]', 'shop backend');
    await page.fill('dialog input[name=owner]', 'shop');
    await page.check('dialog input[name=scope_gateway]');
    await page.check('dialog input[name=scope_read]');
    await page.fill('dialog input[name=kinds]', 'give');
    await page.fill('dialog input[name=amount_per_call]', '1000');
    await page.fill('dialog input[name=expires]', '2999-01-01T00:00');
    await check('the form of a key');
    await page.locator('dialog button[type=submit]').click();
    const key = (await page.getByText(/^thk_/).textContent())?.trim() ?? '';
    await check('a new key');
    const app = makeApp(() => rig.daemon.url, key);
    expect((await app.give(rig.world.ada, 900)).status).toBe(200);
    expect((await app.give(rig.world.ada, 2_000)).json.code).toBe('key_limit');
    const row = page.locator('tbody tr', { hasText: 'shop backend' });
    expect(await row.textContent()).toMatch(/only give; 1.000 per write.*2999-01-01/);
    await open('/keys');
    await row.waitFor();
    expect(await page.locator('main').textContent()).not.toContain('thk_');
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.locator('dialog button[type=submit]').click();
    await row.waitFor({ state: 'detached' });
    await page.getByLabel('Show').selectOption('all');
    await row.getByText('revoked').waitFor();
    expect((await app.call('GET', '/api/keys')).status).toBe(401);
    await open('/audit');
    await page.getByText('revoked a key').first().waitFor();
    await check('the audit trail');
  });

  it('Wallets are watched one by one, and many by a file that is checked before', async () => {
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/watches');
    await page.getByText('Nothing is watched').waitFor();
    await page.getByRole('button', { name: 'Watch', exact: true }).first().click();
    await page.fill('dialog input', 'no-address');
    await page.locator('dialog button[type=submit]').click();
    await page.getByText('no-address is no wallet').waitFor();
    expect(await page.inputValue('dialog input')).toBe('no-address');
    await page.fill('dialog input', rig.world.ada);
    await page.locator('dialog button[type=submit]').click();
    await page.locator('tbody tr').first().waitFor();
    await page.getByText('Watch many at once').click();
    await page.fill('textarea[name=lines]', `nobody\n7/8\n\n${rig.world.ada}`);
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('Of 3 lines 1 would be added, 1 is watched already').waitFor();
    await page.getByText(/^line 1: /).waitFor();
    await check('checked lines');
    await page.fill('textarea[name=lines]', '');
    const wallets = Array.from(
      { length: 1_200 },
      (_, n) => `0x${n.toString(16).padStart(40, '0')}`,
    );
    const rows = ['addr,contract_id,token_id', ...wallets.map((addr) => `${addr},,`), ',9,10'];
    const file = {
      name: 'targets.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from(rows.join('\n')),
    };
    await page.setInputFiles('input[name=file]', file);
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('Of 1 201 lines 1 201 would be added.').waitFor();
    expect((await rig.app.call('GET', '/api/watches')).json.data).toHaveLength(1);
    await page.getByRole('button', { name: 'Watch 1 201' }).click();
    await page.getByText('Of 1 201 lines 1 201 are added.').waitFor();
    await check('many watches');
    await page.getByRole('button', { name: 'More' }).waitFor();
    const first = page.locator('tbody tr').first();
    await first.getByRole('button', { name: 'Remove' }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.locator(`tbody a[title="${rig.world.ada}"]`).waitFor({ state: 'detached' });
  });

  it('Settings show their sources, and no secret', async () => {
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/settings?show=changed');
    const row = (name: string) => page.locator('tbody tr').filter({ hasText: name }).first();
    await row('probe_interval_ms').getByText('file').waitFor();
    await row('allow_cidrs').getByText('environment').waitFor();
    await row('MASTER_KEY').getByText('set, hidden').waitFor();
    const text = await page.locator('main').textContent();
    for (const secret of [ADMIN_KEY, 'test-secret', Buffer.alloc(32, 7).toString('base64')])
      expect(text).not.toContain(secret);
    await page.getByLabel('Name', { exact: true }).fill('probe');
    await row('MASTER_KEY').waitFor({ state: 'detached' });
    await check('changed settings');
  });

  it('An operation with a repeated number is released from quarantine with a reason', async () => {
    const { sandbox, ben } = rig.world;
    await rig.app.give(ben, 31);
    sandbox.control.setSwitches({ tx_log_no_base: -1n });
    await rig.app.give(ben, 32);
    sandbox.control.setSwitches({ tx_log_no_base: 0n });
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/quarantine');
    await page.getByText('another operation has the same number').first().waitFor();
    await check('a quarantined operation');
    await page.getByRole('button', { name: 'Release' }).click();
    await page.fill('dialog textarea', 'the service confirmed both');
    await page.locator('dialog button[type=submit]').click();
    await page.getByText('the service confirmed both').waitFor();
    await page.getByText('Nothing is quarantined').waitFor();
  });

  it('A key that may only read is told what it lacks', async () => {
    const made = await rig.app.call('POST', '/api/keys', {
      name: 'reader',
      owner: 'reader',
      scopes: ['read'],
    });
    const { page, open } = await signIn(browser(), rig.daemon.url, made.json.key);
    await open('/keys');
    await page.getByRole('alert').getByText('Use another key').waitFor();
  });

  it.each(SCREENS)('They have no fault at $width px, $scheme', async (screen) => {
    const { open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY, screen);
    for (const path of ['/watches', '/keys?show=all', '/quarantine', '/settings', '/audit']) {
      await open(path);
      await check(path);
    }
  });
});
