/** What a person on call sees: alerts that lead somewhere, and what the own key may do. */
import { beforeAll, describe, expect, it } from 'vitest';
import { makeApp } from '../harness/app.ts';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';
import { SCREENS, signIn, tabTo } from './browsing.ts';

describe('At night', () => {
  const browser = useBrowser();
  const rig = useRig({
    alerts: { rules: [{ name: 'any-drift', kind: 'drift_above', amount: 1 }] },
  });
  const keyOf = async (owner: string, scopes: string[]): Promise<string> => {
    const made = await rig.app.call('POST', '/api/keys', { name: owner, owner, scopes });
    return made.json.key;
  };
  // Two drifts of a wallet.
  beforeAll(async () => {
    const { ada, sandbox } = rig.world;
    await rig.observe(ada);
    for (const delta of [500n, 70n]) {
      sandbox.control.setWallet(ada, { delta });
      await rig.app.until(
        ({ type, data }) =>
          type === 'wallet.drift_opened' && data.addr === ada && data.amount === String(delta),
      );
    }
  });

  it.each(SCREENS)(
    'Alerts are sentences that lead to their drift and wallet, %j',
    async (screen) => {
      const { page, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY, screen);
      const alerts = page.locator('section', { hasText: 'Alerts' });
      await alerts
        .getByText(/any-drift: a drift of \+\d+ on wallet/)
        .first()
        .waitFor();
      await check('alerts');
      await alerts.getByRole('link', { name: 'a drift' }).first().click();
      await page.getByText('Propose how it ends').waitFor();
    },
  );

  it('The own proposal waits for another owner, who can approve it', async () => {
    const { json } = await rig.app.call('GET', '/api/drifts?state=open');
    const { id } = json.data[0];
    const ann = await signIn(browser(), rig.daemon.url, await keyOf('ann', ['read', 'decide']));
    await ann.open(`/drifts/${id}`);
    await ann.page.getByRole('button', { name: 'Propose to book' }).click();
    await ann.page.fill('dialog textarea', 'as agreed');
    await ann.page.locator('dialog button[type=submit]').click();
    const approve = ann.page.getByRole('button', { name: 'Approve: book' });
    await approve.waitFor();
    expect(await approve.getAttribute('aria-disabled')).toBe('true');
    await tabTo(ann.page, /Approve: book/);
    await ann.page.getByText('It waits for another owner.').waitFor();
    await ann.check('an own proposal');
    const eve = await signIn(browser(), rig.daemon.url, await keyOf('eve', ['read']));
    await eve.open(`/drifts/${id}`);
    await eve.page.getByRole('button', { name: 'Approve: book' }).hover();
    const why = eve.page.locator('.refused', { hasText: 'Approve: book' });
    await why.getByText('It needs a key with the scope decide.').waitFor();
    const ben = await signIn(browser(), rig.daemon.url, await keyOf('ben', ['read', 'decide']));
    await ben.open(`/drifts/${id}`);
    await ben.page.getByRole('button', { name: 'Approve: book' }).click();
    await ben.page.locator('dialog button[type=submit]').click();
    await rig.app.until(({ type, data }) => type === 'wallet.drift_closed' && data.drift_id === id);
  });

  it('A list says how many rows have come, and shows changes of those that it has', async () => {
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await rig.app.give(rig.world.ben, 31, { 'tallyhook-reference': 'live-1' });
    await open('/operations');
    const row = page.locator('tbody tr', { hasText: 'live-1' });
    await row.waitFor();
    await rig.app.give(rig.world.ben, 32, { 'tallyhook-reference': 'live-2' });
    const fresh = page.getByRole('button', { name: '1 new' });
    await fresh.waitFor();
    expect(await page.locator('tbody tr', { hasText: 'live-2' }).count()).toBe(0);
    await row.getByText('settled').waitFor();
    await check('a list with new rows');
    await fresh.click();
    await page.locator('tbody tr', { hasText: 'live-2' }).waitFor();
    await fresh.waitFor({ state: 'detached' });
  });

  it('No service is called active while the daemon does not respond', async () => {
    const daemon = await rig.another();
    const key = await keyOf('night', ['read']);
    expect((await makeApp(() => daemon.url, key).call('GET', '/api/status')).status).toBe(200);
    const { page } = await signIn(browser(), daemon.url, key);
    await page.locator('header').getByText('active').waitFor();
    await daemon.kill();
    await page.locator('header').getByText('daemon does not respond').waitFor();
    expect(await page.locator('header').getByText('active').count()).toBe(0);
  });
});
