/** A subscriber in a browser, who came by a portal link. */
import { describe, expect, it } from 'vitest';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';
import { SCREENS, signIn } from './browsing.ts';

describe('The portal', () => {
  const browser = useBrowser();
  const rig = useRig();

  const linkOf = async (owner: string): Promise<string> => {
    const made = await rig.app.call('POST', '/api/portal-links', { owner });
    expect(made.status, made.text).toBe(201);
    return made.json.url;
  };

  it.each(SCREENS)('A link leads into the own endpoints and nowhere else, %j', async (screen) => {
    const receiver = await rig.receiver();
    await rig.subscribe('/of-others', ['wallet.*']);
    const { page, check, open } = await signIn(
      browser(),
      rig.daemon.url,
      {
        link: await linkOf(`subscriber ${screen.width}`),
      },
      screen,
    );
    expect(new URL(page.url()).href).toBe(`${rig.daemon.url}/endpoints`);
    await page.getByText('No endpoint yet').waitFor();
    expect(await page.locator('nav a').allTextContents()).toEqual(['Endpoints']);
    await check('the portal of a new subscriber');
    await page.getByRole('button', { name: 'Create an endpoint' }).click();
    await page.fill('dialog input[name=url]', `${receiver.url}/mine`);
    await page.fill('dialog textarea[name=event_types]', 'endpoint.test');
    await page.locator('dialog button[type=submit]').click();
    await page.getByText(/^whsec_/).waitFor();
    await page.getByRole('link', { name: `${receiver.url}/mine` }).click();
    receiver.answer(204, {}, '/mine');
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.locator('.pill.good', { hasText: 'delivered' }).first().waitFor();
    await check('a delivery to a subscriber');
    await open('/');
    expect(new URL(page.url()).pathname).toBe('/endpoints');
  });

  it('An administrator makes a link in the console, which signs its subscriber in', async () => {
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/keys');
    await page.getByRole('button', { name: 'Make a portal link' }).click();
    await page.fill('dialog input[name=owner]', 'linked');
    await check('the form of a portal link');
    await page.locator('dialog button[type=submit]').click();
    const link = (await page.getByText(/\/portal#thk_/).textContent()) ?? '';
    await check('a portal link that was made');
    await page
      .locator('tbody tr', { hasText: 'linked' })
      .getByText('portal', { exact: true })
      .waitFor();
    const subscriber = await signIn(browser(), rig.daemon.url, { link });
    await subscriber.page.locator('.head-state', { hasText: 'linked' }).waitFor();
  });

  it('A link that finds no daemon is followed when the page is loaded again', async () => {
    const link = await linkOf('patient');
    const page = await (await browser().newContext()).newPage();
    await page.route('**/session', (route) => route.abort());
    await page.goto(link);
    await page.getByText('The daemon does not respond.').waitFor();
    await page.unroute('**/session');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('No endpoint yet').waitFor();
    expect(new URL(page.url()).href).toBe(`${rig.daemon.url}/endpoints`);
  });

  it('A link that was ended leads to the sign-in', async () => {
    const url = await linkOf('ended');
    const { json } = await rig.app.call('GET', '/api/keys?limit=500');
    const [key] = json.data.filter(({ owner }: { owner: string }) => owner === 'ended');
    await rig.app.call('DELETE', `/api/keys/${key.id}`);
    const page = await (await browser().newContext()).newPage();
    await page.goto(url);
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    expect(page.url()).not.toContain('thk_');
  });
});

describe('A session', () => {
  const browser = useBrowser();
  const rig = useRig();

  it('is there in a second tab and after a reload, and its end is seen in both', async () => {
    const { page, open } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    const second = await page.context().newPage();
    await second.goto(`${rig.daemon.url}/endpoints`);
    await second.getByRole('heading', { name: 'Endpoints' }).waitFor();
    await open('/keys');
    await second.getByRole('button', { name: 'Sign out' }).click();
    await second.getByRole('button', { name: 'Sign in' }).waitFor();
    await page.getByRole('link', { name: 'Operations' }).click();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
  });
});
