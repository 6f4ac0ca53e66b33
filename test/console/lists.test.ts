/** Lists and times of the console, in a browser whose clock has another zone than the reports. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { NAVIGATION } from '../../src/console/web/pages.ts';
import { useBrowser } from '../harness/browser.ts';
import { ADMIN_KEY } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';
import { FIRST, signIn } from './browsing.ts';

/** Run in the page: what it loaded, with the bytes that came over the network. */
const LOADED = `performance.getEntriesByType('resource').map(({ name, transferSize }) =>
  [name.slice(location.origin.length), transferSize])`;

describe('Lists and times', () => {
  const browser = useBrowser();
  const rig = useRig({ reports: { reconciliation: { time_zone: 'Asia/Seoul' } } });
  const reader = () =>
    signIn(browser(), rig.daemon.url, ADMIN_KEY, { ...FIRST, zone: 'America/New_York' });

  it('A page names the zone of its times: of the books that of the reports', async () => {
    const { page, open, check } = await reader();
    await open('/operations');
    await page.getByText('Times are in America/New_York.').waitFor();
    await page.getByRole('link', { name: 'Reports' }).click();
    await page.getByText('Times are in Asia/Seoul.').waitFor();
    await page.getByRole('button', { name: 'Make a report' }).click();
    await check('the month of a new report');
    await page.locator('dialog button[type=submit]').click();
    await page.locator('.report-page .report').waitFor();
    await open('/reports');
    const period = /^\d{4}-\d\d-01 to \d{4}-\d\d-01 \(Asia\/Seoul\)$/;
    await page.getByRole('link', { name: period }).waitFor();
    const { json } = await rig.app.call('GET', '/api/reports');
    for (const end of ['period_from', 'period_to'])
      expect(json.data[0][end]).toMatch(/T15:00:00.000Z$/);
    await page.getByRole('link', { name: 'Watches' }).click();
    await page.getByText('Times are in America/New_York.').waitFor();
  });

  it('A row is followed wherever it is pressed, and the rows are saved as CSV', async () => {
    const reference = '=order;1';
    const given = await rig.app.give(rig.world.ada, 5_151, { 'tallyhook-reference': reference });
    const { operation_id: id } = await rig.eventOf(given, 'operation.settled').then((e) => e.data);
    const { page, open, check } = await reader();
    await open('/operations');
    const row = page.locator('tbody tr', { hasText: '5 151' });
    await row.waitFor();
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: /^Save \d+ as CSV$/ }).click();
    const file = await saving;
    expect(file.suggestedFilename()).toBe('Operation.csv');
    const [head, ...lines] = (await readFile(await file.path(), 'utf8')).split('\r\n');
    expect(head).toMatch(/^\ufeff\w+(,\w+)+$/);
    expect(lines.find((line) => line.includes(',5151,'))).toContain(`"'${reference}"`);
    await check('operations with their file');
    await row.getByText('5 151').click();
    await page.waitForURL(`**/operations/${id}`);
  });

  it('A list says that rows have left it, also the only one, and that rows came at its end', async () => {
    const wallets = [{ kind: 'wallet', addr: rig.world.ben }];
    const { json } = await rig.app.call('POST', '/api/watches', wallets);
    const watches = await reader();
    await watches.open('/watches');
    await watches.page.locator('tbody tr').waitFor();
    const keys = await reader();
    await keys.open('/keys');
    await keys.page.locator('tbody tr').first().waitFor();
    expect((await rig.app.call('DELETE', `/api/watches/${json.data[0].id}`)).status).toBe(204);
    const made = { name: 'later', owner: 'later', scopes: ['read'] };
    expect((await rig.app.call('POST', '/api/keys', made)).status).toBe(201);
    await watches.page.getByRole('button', { name: 'Rows have left: load again' }).click();
    await watches.page.locator('tbody tr').waitFor({ state: 'detached' });
    await keys.page.getByRole('button', { name: '1 new' }).click();
    await keys.page.locator('tbody tr', { hasText: 'later' }).first().waitFor();
  });

  it('A page that opens asks for each path once, and for no module that the browser has', async () => {
    await rig.eventOf(await rig.app.give(rig.world.ada, 5_353), 'operation.settled');
    const { page, open } = await reader();
    const pages = NAVIGATION.flatMap(([, links]) => links.map(([href]) => href));
    for (const href of pages.filter((one) => one !== '/docs')) {
      await open(href);
      await page.reload();
      await page.waitForSelector('main .view');
      await page.getByText('Loading…').first().waitFor({ state: 'detached' });
      const loaded = await page.evaluate<[path: string, bytes: number][]>(LOADED);
      // The head of the page reads the status, too.
      const isOfPage = ([path, bytes]: [string, number]) => bytes > 0 && path !== '/api/status';
      const asked = loaded.filter(isOfPage).map(([path]) => path);
      const others = asked.filter((path) => !/^\/(?:session$|api\/)/.test(path));
      expect([asked.length > 1, others], href).toEqual([true, []]);
      expect(new Set(asked).size, `${href} asks for ${asked.join(' ')}`).toBe(asked.length);
    }
  });

  it('On a narrow screen a row of a list takes few lines', async () => {
    await rig.eventOf(await rig.app.give(rig.world.ada, 5_252), 'operation.settled');
    const { page, open, check } = await signIn(browser(), rig.daemon.url, ADMIN_KEY, {
      width: 390,
      scheme: 'dark',
    });
    await open('/operations');
    const row = page.locator('tbody tr', { hasText: '5 252' });
    await row.waitFor();
    const box = await row.boundingBox();
    expect(box?.height).toBeLessThan(100);
    await check('a list on a narrow screen');
  });

  it('Over a plot the values of that time are shown in place of its name', async () => {
    const { page } = await reader();
    const plot = page.locator('.plot', { hasText: 'Writes in a minute' });
    await plot.locator('.u-over').hover();
    await page.locator('.plot figcaption', { hasText: /\d\d:\d\d:\d\d.*all \d+/s }).waitFor();
    await page.locator('h1').hover();
    await plot.waitFor();
  });

  it('Events from before an endpoint are counted, then sent to it once', async () => {
    const receiver = await rig.receiver();
    await rig.eventOf(await rig.app.give(rig.world.ben, 6_161), 'operation.settled');
    await rig.subscribe('/late', ['operation.settled']);
    const { json } = await rig.app.call('GET', '/api/endpoints');
    const { id } = json.data.find(({ url }: { url: string }) => url.endsWith('/late'));
    const { page, open, check } = await reader();
    await open(`/endpoints/${id}`);
    const card = page.locator('section', { hasText: 'Send events again' });
    await card.locator('select[name=which]').selectOption('missing');
    await card.getByRole('button', { name: 'Count them' }).click();
    await card.getByText(/[1-9] of \d+ events/).waitFor();
    expect(receiver.requests.filter(({ path }) => path === '/late')).toEqual([]);
    await check('events that are counted');
    await card.getByRole('button', { name: /^Send \d+ again$/ }).click();
    await page.locator('dialog button[type=submit]').click();
    await card.getByText('done').waitFor();
    await page.locator('td', { hasText: 'delivered' }).first().waitFor();
    const sent = receiver.requests.filter(({ path }) => path === '/late');
    const ids = sent.map(({ headers }) => headers['webhook-id']);
    expect(new Set(ids).size).toBe(ids.length);
    expect(sent.map(({ body }) => JSON.parse(body).data.amount)).toContain('6161');
  });
});
