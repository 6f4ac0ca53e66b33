/** Endpoints, deliveries and events in a browser, as an app developer uses them. */
import { describe, expect, it } from 'vitest';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { freePort } from '../harness/listen.ts';
import { useRig } from '../harness/rig.ts';
import { SCREENS, signIn } from './browsing.ts';

describe('The pages of webhooks', () => {
  const browser = useBrowser();
  const rig = useRig();

  /** A key of an app developer. */
  const developer = async (): Promise<string> => {
    const scopes = ['gateway', 'read', 'manage'];
    const made = await rig.app.call('POST', '/api/keys', { name: 'dev', owner: 'dev', scopes });
    expect(made.status, made.text).toBe(201);
    return made.json.key;
  };

  it('An endpoint is created, turns red while its receiver fails, and green after a retry', async () => {
    const receiver = await rig.receiver();
    receiver.answer(500, {}, '/orders');
    const { page, open, check } = await signIn(browser(), rig.daemon.url, await developer());
    await open('/endpoints');
    await page.getByRole('button', { name: 'Create an endpoint' }).click();
    await page.fill('dialog input[name=url]', `${receiver.url}/orders`);
    await page.fill('dialog textarea[name=event_types]', 'endpoint.test');
    await page.locator('dialog button[type=submit]').click();
    await page.getByText(/^whsec_/).waitFor();
    await check('the secret of a new endpoint');
    const secret = (await page.getByText(/^whsec_/).textContent()) ?? '';
    await page.getByRole('link', { name: `${receiver.url}/orders` }).click();
    await page.getByText('nothing delivered yet').waitFor();
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.getByText('HTTP 500').first().waitFor();
    await check('a delivery that failed');
    await page.getByRole('link', { name: `${receiver.url}/orders` }).click();
    await page.locator('.pill.bad', { hasText: 'fail' }).first().waitFor();
    const row = page.locator('tbody tr').first();
    await row.getByText('failing').waitFor();
    await row.getByText('500').waitFor();
    await page.getByRole('link', { name: '500' }).waitFor();
    await check('an endpoint that fails');
    await open('/');
    await page.getByRole('link', { name: 'failing endpoints' }).click();
    await page.getByRole('link', { name: `${receiver.url}/orders` }).click();
    await page.getByRole('button', { name: 'Retry what failed' }).waitFor();
    receiver.answer(204, {}, '/orders');
    await page.getByRole('button', { name: 'Retry what failed' }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.locator('.pill.good', { hasText: 'healthy' }).waitFor();
    expect((await rig.app.call('GET', '/api/endpoints?failing=true')).json.data).toEqual([]);
    const { json } = await rig.app.call('GET', '/api/status');
    expect(json.webhooks).toEqual({ endpoints_failing: 0, deliveries_exhausted: 0 });
    expect(await page.locator('main').textContent()).not.toContain(secret);
  });

  it('A filter and limits of its own are set in a form, and the filter is tested beside it', async () => {
    const receiver = await rig.receiver();
    const { page, open, check } = await signIn(browser(), rig.daemon.url, await developer());
    await open('/endpoints');
    await page.getByRole('button', { name: 'Create an endpoint' }).click();
    await page.fill('dialog input[name=url]', `${receiver.url}/filtered`);
    await page.fill('dialog textarea[name=filter]', '{"data.amount": }');
    await page.fill('dialog input[name=retry_schedule]', '5, 60, 600');
    await page.fill('dialog input[name=timeout_ms]', '5000');
    await page.fill('dialog input[name=max_in_flight]', '2');
    await page.locator('dialog button[type=submit]').click();
    const field = page.locator('dialog label', { hasText: 'Filter on the content' });
    await field.getByText('filter is not JSON; texts stand in double quotes').waitFor();
    await page.fill('dialog textarea[name=filter]', '{"data.amount": {"$gte": "1000000000"}}');
    await page.locator('dialog button[type=submit]').click();
    await page.getByRole('link', { name: `${receiver.url}/filtered` }).click();
    const facts = page.locator('section', { hasText: 'Retries after' });
    await facts.getByText('5 s, 1 min, 10 min').waitFor();
    await page.getByLabel(/^Type or event/).fill('operation.settled');
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await page.getByText('it is not delivered').waitFor();
    await check('a filter that is tested');
    await page.getByRole('button', { name: 'Change' }).click();
    await page.fill('dialog textarea[name=filter]', '{"type": "operation.settled"}');
    await page.locator('dialog button[type=submit]').click();
    await page.getByText('{"type":"operation.settled"}').waitFor();
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await page.getByText('it is delivered').waitFor();
    const { json } = await rig.app.call('GET', '/api/endpoints');
    const made = json.data.find(({ url }: { url: string }) => url.endsWith('/filtered'));
    expect(made).toMatchObject({
      retry_schedule: [5, 60, 600],
      timeout_ms: 5_000,
      max_in_flight: 2,
    });
  });

  it('An endpoint of a broker shows where it sends, and is changed without its credentials', async () => {
    const port = await freePort();
    const destination = {
      kind: 'nats',
      servers: [`127.0.0.1:${port}`],
      tls: false,
      subject: 'tallyhook.{type}',
      token: 'hidden-token',
    };
    const made = await rig.app.call('POST', '/api/endpoints', {
      destination,
      event_types: ['endpoint.test'],
    });
    expect(made.status, made.text).toBe(201);
    const { page, open } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open(`/endpoints/${made.json.id}`);
    await page.getByText(`nats://127.0.0.1:${port}/tallyhook.{type}`).first().waitFor();
    await page.getByRole('button', { name: 'Change' }).click();
    expect(await page.locator('dialog input[name=url]').count()).toBe(0);
    await page.fill('dialog input[name=description]', 'the stream of all');
    await page.locator('dialog button[type=submit]').click();
    await page.locator('main').getByText('the stream of all').waitFor();
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.getByText('refused').first().waitFor();
    expect(await page.locator('main').textContent()).not.toContain('hidden-token');
  });

  it('Deliveries of a disabled endpoint are held, and released when it is enabled', async () => {
    const receiver = await rig.receiver();
    receiver.answer(204, {}, '/held');
    await rig.subscribe('/held', ['wallet.*']);
    const { json } = await rig.app.call('GET', '/api/endpoints?limit=500');
    const { id } = json.data.find(({ url }: { url: string }) => url.endsWith('/held'));
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open(`/endpoints/${id}`);
    await page.getByRole('button', { name: 'Disable' }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.getByText('This endpoint is disabled').waitFor();
    await rig.watch(rig.world.ada);
    await rig.app.until(({ type }) => type === 'wallet.observed');
    await open(`/deliveries?endpoint_id=${id}&state=held`);
    await page
      .getByRole('link', { name: /\d\d:\d\d:\d\d/ })
      .first()
      .waitFor();
    await check('held deliveries');
    await open(`/endpoints/${id}`);
    await page.getByRole('button', { name: 'Enable and release' }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.locator('.pill', { hasText: 'healthy' }).waitFor();
  });

  it('A rotation shows the new secret once, and a deleted endpoint is gone', async () => {
    await rig.subscribe('/rotated', ['token.*']);
    const { page, open } = await signIn(browser(), rig.daemon.url, ADMIN_KEY);
    await open('/endpoints');
    await page.getByRole('link', { name: /rotated$/ }).click();
    await page.getByRole('button', { name: 'Rotate the secret' }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.getByText(/^whsec_/).waitFor();
    await page.getByText('Former v1 key').waitFor();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.locator('dialog button[type=submit]').click();
    await page.getByRole('heading', { name: 'Endpoints' }).waitFor();
    await page
      .getByRole('link', { name: /orders$|held$/ })
      .first()
      .waitFor();
    expect(await page.getByRole('link', { name: /rotated$/ }).count()).toBe(0);
  });

  it('Events appear while the page is open, wait while it is paused, and open their body', async () => {
    const { page, open, check } = await signIn(browser(), rig.daemon.url, await developer());
    await open('/events?types=operation.accepted');
    await page.getByText('live', { exact: true }).waitFor();
    await rig.app.give(rig.world.ada, 4_711, { 'tallyhook-reference': 'seen-live' });
    const entry = page.locator('details.entry', { hasText: '4 711' });
    await entry.waitFor();
    await entry.locator('summary').click();
    await entry.getByText('seen-live').first().waitFor();
    await check('an event that is open');
    await page.getByRole('button', { name: 'Pause' }).click();
    await rig.eventOf(await rig.app.give(rig.world.ada, 4_712), 'operation.accepted');
    expect(await page.locator('details.entry', { hasText: '4 712' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.locator('details.entry', { hasText: '4 712' }).waitFor();
    await page.fill('input[name=subject]', 'seen-live');
    await rig.app.give(rig.world.ada, 4_713);
    await page.locator('details.entry', { hasText: '4 713' }).waitFor();
    expect(await page.inputValue('input[name=subject]')).toBe('seen-live');
    await page.keyboard.press('Enter');
    await page.locator('details.entry', { hasText: '4 712' }).waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('subject')).toBe('seen-live');
  });

  it.each(SCREENS)('They have no fault at $width px, $scheme', async (screen) => {
    const { open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY, screen);
    const [endpoints, deliveries] = await Promise.all([
      rig.app.call('GET', '/api/endpoints?limit=1'),
      rig.app.call('GET', '/api/deliveries?limit=1'),
    ]);
    const one = `/endpoints/${endpoints.json.data[0].id}`;
    const delivery = `/deliveries/${deliveries.json.data[0].id}`;
    for (const path of ['/endpoints', one, '/deliveries', delivery, '/events']) {
      await open(path);
      await check(path);
    }
  });
});
