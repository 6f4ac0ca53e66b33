/** What finance does in the console, in a browser against a whole daemon. */
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { isoText, systemClock } from '../../src/kernel/clock.ts';
import { useBrowser } from '../harness/browser.ts';
import { useRig } from '../harness/rig.ts';
import { type Browsing, FIRST, SCREENS, type Screen, SECOND, signIn, tabTo } from './browsing.ts';

describe('Finance in the console', () => {
  const browser = useBrowser();
  const rig = useRig();
  const begun = isoText(systemClock.now() - 60_000);
  const keys: Record<string, string> = {};

  /** A person at a screen, with a key of their own. */
  const personOf = (owner: string, screen: Screen): Promise<Browsing> =>
    signIn(browser(), rig.daemon.url, keys[owner] ?? '', screen);
  /** Changes a wallet elsewhere; answers its drift. */
  const changed = async (addr: string, delta: bigint): Promise<string> => {
    rig.world.sandbox.control.setWallet(addr, { delta });
    const opened = await rig.app.until(
      (e) => e.type === 'wallet.drift_opened' && e.data.amount === `${delta}`,
    );
    return opened.data.drift_id;
  };
  const read = async (path: string) => (await rig.app.call('GET', path)).json;

  beforeAll(async () => {
    for (const owner of ['ann', 'bob']) {
      const body = { name: owner, owner, scopes: ['read', 'manage', 'decide'] };
      keys[owner] = (await rig.app.call('POST', '/api/keys', body)).json.key;
    }
    const { ada, ben } = rig.world;
    await rig.observe(ada, ben);
    await rig.eventOf(await rig.app.give(ada, 100), 'operation.settled');
    await rig.eventOf(await rig.app.mint(ada, 4711), 'operation.settled');
  });

  it('A drift leads from its event to its assignment and proposal, and another owner books it', async () => {
    const ann = await personOf('ann', FIRST);
    await ann.open('/events?types=wallet.drift_opened');
    const id = await changed(rig.world.ada, -3n);
    const event = ann.page.locator('details.entry', { hasText: '−3' });
    await event.locator('summary').click();
    await ann.check('the event of a drift');
    await event.locator(`a[href="/drifts/${id}"]`).click();
    await ann.page.getByText('none of our operations explains it').first().waitFor();
    await order(ann.page, 'Assign', { assignee: 'ann' });
    await order(ann.page, 'Propose to book', { reason: 'paid in cash, receipt 17' });
    await ann.page.getByText('A proposal waits for another owner').waitFor();
    await ann.check('a proposed drift');
    expect(await read(`/api/drifts/${id}`)).toMatchObject({ state: 'proposed', assignee: 'ann' });

    const bob = await personOf('bob', SECOND);
    await bob.page.getByRole('link', { name: 'drift proposals to be approved' }).click();
    await bob.page.getByText('book by ann').waitFor();
    await bob.check('the proposals that wait');
    await bob.page.locator('tbody a').first().click();
    await bob.page.getByText('paid in cash, receipt 17').first().waitFor();
    await bob.page.getByRole('button', { name: 'Approve: book' }).click();
    await bob.page.getByText('The ledger moves 3 tokens from the wallet').last().waitFor();
    await bob.check('the approval of a drift');
    await bob.page.locator('dialog button.danger').click();
    await bob.page.getByText('the difference was booked to the account external').first().waitFor();
    await bob.check('a booked drift');
    const ended = await read(`/api/drifts/${id}`);
    expect([ended.state, ended.proposal.approved_by]).toEqual(['booked', 'bob']);
  });

  it('All drifts are proposed with a keyboard alone, and approved at once', async () => {
    const { ada, ben } = rig.world;
    const ids = [await changed(ada, 11n), await changed(ben, 13n)];
    const ann = await personOf('ann', FIRST);
    const { keyboard } = ann.page;
    await tabTo(ann.page, /^open drifts$/);
    await keyboard.press('Enter');
    await ann.page.getByText(`All ${ids.length}`).waitFor();
    await tabTo(ann.page, /^All 2$/);
    await keyboard.press('Space');
    await ann.page.getByText(`${ids.length} chosen`).waitFor();
    await tabTo(ann.page, /^Propose to book$/);
    await keyboard.press('Enter');
    await keyboard.type('a campaign of the service');
    await tabTo(ann.page, /^Propose to book$/);
    await keyboard.press('Enter');
    await ann.page.getByText('book by ann').nth(1).waitFor();
    const bob = await personOf('bob', FIRST);
    await choose(bob, ids.length);
    await order(bob.page, 'Approve 2 proposals');
    await bob.page.getByText('No drift is open').waitFor();
    for (const id of ids) expect((await read(`/api/drifts/${id}`)).state).toBe('booked');
    await ann.check('many proposals');
    await bob.check('many approvals');
  });

  it('A booked drift is linked to the operation that is reported later', async () => {
    const { ben } = rig.world;
    const id = await changed(ben, 17n);
    const decide = (owner: string, path: string, body: object) =>
      rig.app.call('POST', `/api/drifts/${id}/${path}`, body, {
        authorization: `Bearer ${keys[owner]}`,
      });
    await decide('ann', 'propose', { proposal: 'book', reason: 'not known yet' });
    expect((await decide('bob', 'approve', {})).status).toBe(200);
    const occurred_at = (await read(`/api/drifts/${id}`)).suspected_at;
    const give = { kind: 'give', operation_no: '1', to_addr: ben, amount: '17' };
    const numbers = { tx_app_no: '7', tx_log_no: '170017', reference: 'campaign-17' };
    const body = { ...give, ...numbers, occurred_at };
    expect((await rig.app.call('POST', '/api/operations', body)).status).toBe(201);

    const ann = await personOf('ann', FIRST);
    await ann.open(`/drifts/${id}`);
    const label = 'Reference or number of an operation of this wallet';
    await ann.page.getByLabel(label).fill('campaign-17');
    await ann.page.getByRole('button', { name: 'Find' }).click();
    await ann.page.getByRole('cell', { name: 'campaign-17' }).waitFor();
    await order(ann.page, 'Propose to link', { reason: 'reported by the shop' });
    await ann.page.getByText('A proposal waits for another owner').waitFor();
    await ann.check('a proposed link');
    const bob = await personOf('bob', SECOND);
    await bob.open(`/drifts/${id}`);
    await order(bob.page, 'Approve: link');
    await bob.page.getByText('an operation explains it').first().waitFor();
    await bob.check('a linked drift');
    await expect.poll(async () => (await read(`/api/wallets/${ben}`)).drift).toBe('0');
  });

  it('A period is closed with a signed-off drift by one owner, and signed by another', async () => {
    await changed(rig.world.ben, 250n);
    const end = isoText(systemClock.now());
    const ann = await personOf('ann', FIRST);
    await ann.open('/periods');
    await ann.page.getByLabel(/^Begin/).fill(begun.slice(0, 23));
    await ann.page.getByLabel(/^End, exclusive/).fill(end.slice(0, 23));
    await ann.page.getByRole('button', { name: 'See what prevents it' }).click();
    await ann.page.getByRole('cell', { name: 'drift open' }).waitFor();
    await ann.check('what prevents a close');
    await ann.page
      .getByLabel(/Reason to sign off · drift open · \+250/)
      .fill('the refund is on its way');
    await ann.page.getByRole('button', { name: 'Close the period' }).click();
    const closed = ann.page.getByRole('row').filter({ hasText: 'the refund is on its way' });
    await closed.getByText('closed').first().waitFor();

    const bob = await personOf('bob', SECOND);
    await bob.open('/periods');
    await order(bob.page, 'Sign');
    await bob.page.locator('.pill', { hasText: /^signed$/ }).waitFor();
    await bob.check('a signed period');
    const [period] = (await read('/api/periods')).data;
    expect(period).toMatchObject({ state: 'signed', closed_by: 'ann', signed_by: 'bob' });

    await bob.open(`/reports/${period.report_id}`);
    const report = bob.page.locator('.report-page');
    await report.getByText('Balanced with 1 item signed off').waitFor();
    for (const words of ['the refund is on its way', /^ann, /, /^bob, /])
      await report.getByText(words).first().waitFor();
    await bob.check('a signed report');
    await bob.page.emulateMedia({ media: 'print' });
    const [shown, all] = await report.evaluate((of) => [of.clientHeight, of.scrollHeight]);
    expect(shown).toBe(all);
    await bob.page.emulateMedia({ media: null });
    const download = bob.page.waitForEvent('download');
    await bob.page.getByRole('button', { name: 'CSV', exact: true }).click();
    const file = await (await download).path();
    const { text } = await rig.app.call('GET', `/api/reports/${period.report_id}?format=csv`);
    // The mark of UTF-8, which the text of a response has no more.
    expect(await readFile(file, 'utf8')).toBe(`\ufeff${text}`);
    await ann.open('/periods');
    await order(ann.page, 'Propose to reopen', { reason: 'receipt 18 is missing' });
    await ann.page.getByText('receipt 18 is missing').waitFor();
    await bob.open('/periods');
    await order(bob.page, 'Approve reopening');
    await bob.page.locator('.pill', { hasText: /^reopened$/ }).waitFor();
    await bob.check('a reopened period');
  });

  it('A report is made from the page, and shown with its style', async () => {
    const { page, open, check } = await personOf('ann', FIRST);
    await open('/reports');
    await order(page, 'Make a report');
    const report = page.locator('.report-page .report');
    await report.getByText('There are no breaks.').waitFor();
    const font = `getComputedStyle(document.querySelector('.report-page').shadowRoot
      .querySelector('.report')).fontFamily`;
    expect(await page.evaluate(font)).toContain('sans-serif');
    await check('a report');
  });

  it('A wallet is opened by its address and shows balance, plot, statement and drifts', async () => {
    const { page, open, check } = await personOf('ann', FIRST);
    await open('/wallets');
    await page.getByLabel('Address of a wallet').fill(rig.world.ada);
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByText('admin since').waitFor();
    await page.locator('.plot canvas').waitFor();
    await page.getByRole('cell', { name: '+100' }).waitFor();
    await page.getByRole('tab', { name: 'Drifts' }).click();
    await page.getByText('3 tokens left wallet').waitFor();
    expect(new URL(page.url()).search).toBe('?show=drifts');
    await check('a wallet');
  });

  it('The wallet of an operator is mapped by two owners on the page of one of its drifts', async () => {
    const { operators } = rig.world.sandbox.control.state();
    const wallet = operators.find((one) => one.operation_no === 1n)?.addr ?? '';
    await rig.observe(wallet);
    const drifts = async (state: string) =>
      (await read(`/api/drifts?addr=${wallet}&state=${state}`)).data;
    for (const [n, amount] of [21, 22, 23].entries()) {
      await rig.app.give(rig.world.ada, amount);
      await expect.poll(async () => (await drifts('unclosed')).length).toBe(n + 1);
    }
    const path = `/drifts/${(await drifts('unclosed'))[0].id}`;
    const [map, approve] = ['Map this wallet to operator 1', 'Approve the mapping'];
    const [ann, bob] = [await personOf('ann', FIRST), await personOf('bob', SECOND)];
    await ann.open(path);
    await order(ann.page, map, { reason: 'a guess' });
    await ann.page.getByText('which waits for another owner').waitFor();
    const own = ann.page.getByRole('button', { name: approve });
    expect(await own.getAttribute('aria-disabled')).toBe('true');
    await ann.check('a proposed mapping');
    await bob.open(path);
    await order(bob.page, 'Reject the mapping', { reason: 'where does it say so?' });
    await bob.page.getByRole('button', { name: map }).waitFor();
    await ann.open(path);
    await ann.page.getByText('bob rejected that: “where does it say so?”').waitFor();
    await order(ann.page, map, { reason: 'the contract, page 3' });
    await bob.open('/');
    await bob.page.getByRole('link', { name: 'wallets of operators to be approved' }).click();
    await bob.page.getByText('the contract, page 3').waitFor();
    await bob.check('operators whose wallet waits');
    await bob.page.getByRole('button', { name: approve }).click();
    await bob.page.getByText('posted again, from the wallet: 3. Open drifts').waitFor();
    await bob.check('the approval of a mapping');
    await bob.page.locator('dialog button.danger').click();
    await bob.page.getByText('No proposal waits.').waitFor();
    await bob.open(path);
    await bob.page.getByText('operations explain it').first().waitFor();
    await bob.check('a drift that a mapping explains');
    expect(await drifts('unclosed')).toEqual([]);
    expect((await drifts('explained')).length).toBe(3);
  });

  it.each(SCREENS)('Its pages have no fault at $width px, $scheme', async (screen) => {
    const { open, check } = await personOf('ann', screen);
    const { data: drifts } = await read('/api/drifts?limit=1');
    const { data: reports } = await read('/api/reports?limit=1');
    const { ada } = rig.world;
    const paths = [
      '/drifts?state=all',
      `/drifts/${drifts[0].id}`,
      '/wallets',
      `/wallets/${ada}`,
      ...['operations', 'observations', 'drifts'].map((tab) => `/wallets/${ada}?show=${tab}`),
      '/operators',
      '/tokens',
      '/tokens/1',
      '/tokens/1/4711',
      '/reports',
      `/reports/${reports[0].id}`,
      '/periods',
      '/ledger',
      '/ledger?show=accounts',
      '/ledger?show=transactions',
    ];
    for (const path of paths) {
      await open(path);
      await check(path);
    }
  });
});

/** Gives an order through its dialog, and waits until it is carried out. */
async function order(page: Page, label: string, values: Record<string, string> = {}) {
  await page.getByRole('button', { name: label, exact: true }).click();
  for (const [name, value] of Object.entries(values))
    await page.fill(`dialog [name=${name}]`, value);
  await page.locator('dialog button[type=submit]').click();
  await page.locator('dialog').waitFor({ state: 'detached' });
}

/** Chooses every open drift of the inbox. */
async function choose({ page, open }: Browsing, count: number) {
  await open('/drifts');
  await page.getByLabel(`All ${count}`).check();
  await page.getByText(`${count} chosen`).waitFor();
}
